//! What the format's maker lets each family of models do. What is known of a model (`ModelFacts`) goes before.

use crate::dialect::Target;
use crate::facts::ReasoningStyle;

/// What a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// How it is told to think.
    pub(super) thinking: Thinking,
    /// Which words of effort it knows.
    pub(super) efforts: Efforts,
    /// Whether it can be told not to.
    pub(super) quiet: Quiet,
    /// Whether it takes a temperature.
    pub(super) temperature: Sampling,
    /// Whether it can be made to call a tool.
    pub(super) forced_calls: Forced,
    /// Whether it can be held to the schemas of tools.
    pub(super) strict_tools: Strict,
    /// Whether an answer can be held to a form of its own.
    pub(super) forms: Forms,
    /// The most tokens of one answer.
    pub(super) max_output_tokens: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    Never,
    /// With a budget in tokens.
    Budget,
    /// As much as it likes; a word of effort steers it.
    Adaptive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Efforts {
    All,
    /// All but `xhigh`.
    WithoutXhigh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quiet {
    Can,
    Cannot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    Takes,
    Refuses,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forced {
    Takes,
    Refuses,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strict {
    Takes,
    Refuses,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forms {
    Takes,
    Refuses,
}

/// The newest family, and the ones that are not known yet.
const NEWEST: Rules = Rules {
    thinking: Thinking::Adaptive,
    efforts: Efforts::All,
    quiet: Quiet::Cannot,
    temperature: Sampling::Refuses,
    forced_calls: Forced::Refuses,
    strict_tools: Strict::Takes,
    forms: Forms::Takes,
    max_output_tokens: 128_000,
};
const FORCED: Rules = Rules { forced_calls: Forced::Takes, ..NEWEST };
const QUIET: Rules = Rules { quiet: Quiet::Can, ..FORCED };
const SAMPLED: Rules = Rules { temperature: Sampling::Takes, ..QUIET };
const ADAPTIVE: Rules = Rules { efforts: Efforts::WithoutXhigh, ..SAMPLED };
const BUDGET: Rules = Rules { thinking: Thinking::Budget, max_output_tokens: 64_000, ..SAMPLED };
/// Before there were strict tools and forms.
const LOOSE: Rules = Rules { strict_tools: Strict::Refuses, forms: Forms::Refuses, ..BUDGET };
const OLD: Rules = Rules { thinking: Thinking::Never, max_output_tokens: 8_192, ..LOOSE };
/// The maker's, by a name that says no more.
const OTHER_CLAUDES: Rules = Rules { max_output_tokens: 32_000, strict_tools: Strict::Refuses, ..NEWEST };

/// Rules by a part of the model's name, the longer part first.
const FAMILIES: [(&str, Rules); 21] = [
    ("sonnet-5-5", NEWEST),
    ("opus-5-5", NEWEST),
    ("fable-5-1", NEWEST),
    ("fable-5", FORCED),
    ("haiku-5-5", QUIET),
    ("sonnet-5", QUIET),
    ("opus-5", QUIET),
    ("opus-4-8", QUIET),
    ("opus-4-7", QUIET),
    ("opus-4-6", ADAPTIVE),
    ("sonnet-4-6", ADAPTIVE),
    ("-4-5", BUDGET),
    ("sonnet-4", LOOSE),
    ("opus-4-1", Rules { max_output_tokens: 32_000, forms: Forms::Takes, ..LOOSE }),
    ("opus-4", Rules { max_output_tokens: 32_000, ..LOOSE }),
    ("3-7-sonnet", LOOSE),
    ("3-5-", OLD),
    ("claude-3", Rules { max_output_tokens: 4_096, ..OLD }),
    ("claude-2", Rules { max_output_tokens: 4_096, ..OLD }),
    ("mythos-preview", Rules { efforts: Efforts::WithoutXhigh, ..OTHER_CLAUDES }),
    ("claude", OTHER_CLAUDES),
];

/// The models of others who speak the format: they took its first version over.
const OTHERS: Rules = Rules { max_output_tokens: 8_192, forms: Forms::Takes, ..LOOSE };

/// What the target's model takes.
pub(super) fn rules(target: &Target<'_>) -> Rules {
    // Sellers write `claude-3.5-sonnet` where the maker writes `claude-3-5-sonnet`.
    let id = target.origin.model.to_ascii_lowercase().replace('.', "-");
    let mut rules = FAMILIES.iter().find(|(part, _)| id.contains(part)).map_or(OTHERS, |(_, rules)| *rules);
    rules.thinking = match target.model.reasoning {
        None => rules.thinking,
        Some(ReasoningStyle::Never) => Thinking::Never,
        Some(ReasoningStyle::Budget) => Thinking::Budget,
        Some(ReasoningStyle::Effort | ReasoningStyle::Adaptive) => Thinking::Adaptive,
    };
    rules.temperature = match target.model.temperature {
        None => rules.temperature,
        Some(true) => Sampling::Takes,
        Some(false) => Sampling::Refuses,
    };
    rules.max_output_tokens = target.model.max_output_tokens.unwrap_or(rules.max_output_tokens);
    rules
}
