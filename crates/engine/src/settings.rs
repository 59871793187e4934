//! Settings in layers: the configuration's, the conversation's, the message's.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use turnwright_core::{
    ApproveMode, ConversationId, ModelRef, OutputFormat, ReasoningEffort, ToolChoice, ToolDefinition, TurnSettings, counted,
};

use crate::StoreError;
use crate::chosen_tools::of_glob;

/// How many globs choose tools, and how many wildcards are in all of them: each is made ready for a turn.
const MAX_GLOBS: usize = 1_000;
const MAX_WILDCARDS: usize = 1_000;

/// Settings that somebody chose, to be laid over others. What is `None` was not chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SettingsOverlay {
    /// The model, `PROVIDER/MODEL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// What happens to calls for which no rule decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<ApproveMode>,
    /// The most model calls of a turn; at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// What the model is told before the conversation; empty for nothing, whatever it is told there otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Sampling temperature, 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens of one model answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// How much a reasoning model should think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Globs over qualified tool names that narrow what is offered, as [`ChosenTools`](crate::ChosenTools) reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether and what the model must call before it may answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether one answer may hold several calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_calls: Option<bool>,
    /// The form that the answer must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputFormat>,
    /// Tools that whoever asks runs itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_tools: Option<Vec<Arc<ToolDefinition>>>,
    /// Globs over qualified tool names that a person is asked about whatever the policy allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always_ask: Option<Vec<String>>,
    /// The most calls of tools on this side in the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u32>,
    /// Of a conversation: whether it is kept however old it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
}

impl SettingsOverlay {
    /// A conversation's own settings as they are stored.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], where they cannot be read.
    pub fn stored(of: &ConversationId, settings: &str) -> Result<Self, StoreError> {
        serde_json::from_str(settings).map_err(|error| {
            let what = format!("the settings of conversation `{of}`");
            StoreError::Damaged { what, reason: error.to_string() }
        })
    }

    /// Whether nothing was chosen.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This over `base`: what was not chosen here stays as it is there.
    #[must_use]
    pub fn over(&self, base: &TurnSettings) -> TurnSettings {
        TurnSettings {
            model: self.model.clone().unwrap_or_else(|| base.model.clone()),
            approve: self.approve.unwrap_or(base.approve),
            max_steps: self.max_steps.unwrap_or(base.max_steps).max(1),
            system_prompt: match &self.system_prompt {
                Some(said) => Some(said.clone()).filter(|said| !said.is_empty()),
                None => base.system_prompt.clone(),
            },
            temperature: self.temperature.or(base.temperature),
            max_output_tokens: self.max_output_tokens.or(base.max_output_tokens),
            reasoning_effort: self.reasoning_effort.or(base.reasoning_effort),
            tools: self.tools.clone().or_else(|| base.tools.clone()),
            tool_choice: self.tool_choice.clone().or_else(|| base.tool_choice.clone()),
            parallel_calls: self.parallel_calls.or(base.parallel_calls),
            fallback: base.fallback.clone(),
            output: self.output.clone().or_else(|| base.output.clone()),
            client_tools: self.client_tools.clone().unwrap_or_else(|| base.client_tools.clone()),
            always_ask: self.always_ask.clone().unwrap_or_else(|| base.always_ask.clone()),
            max_tool_calls: self.max_tool_calls.or(base.max_tool_calls),
            loops: base.loops,
        }
    }

    /// `above` over this.
    #[must_use]
    pub fn merged(&self, above: &Self) -> Self {
        Self {
            model: above.model.clone().or_else(|| self.model.clone()),
            approve: above.approve.or(self.approve),
            max_steps: above.max_steps.or(self.max_steps),
            system_prompt: above.system_prompt.clone().or_else(|| self.system_prompt.clone()),
            temperature: above.temperature.or(self.temperature),
            max_output_tokens: above.max_output_tokens.or(self.max_output_tokens),
            reasoning_effort: above.reasoning_effort.or(self.reasoning_effort),
            tools: above.tools.clone().or_else(|| self.tools.clone()),
            tool_choice: above.tool_choice.clone().or_else(|| self.tool_choice.clone()),
            parallel_calls: above.parallel_calls.or(self.parallel_calls),
            output: above.output.clone().or_else(|| self.output.clone()),
            client_tools: above.client_tools.clone().or_else(|| self.client_tools.clone()),
            always_ask: above.always_ask.clone().or_else(|| self.always_ask.clone()),
            max_tool_calls: above.max_tool_calls.or(self.max_tool_calls),
            pinned: above.pinned.or(self.pinned),
        }
    }

    /// What is out of range, in words; `None` where nothing is.
    pub fn problem(&self) -> Option<String> {
        if let Some(problem) = self.model.as_ref().and_then(ModelRef::problem) {
            return Some(problem);
        }
        if self.max_steps == Some(0) {
            return Some("max_steps is 0, it must be at least 1".to_owned());
        }
        if self.max_output_tokens == Some(0) {
            return Some("max_output_tokens is 0, it must be at least 1".to_owned());
        }
        if let Some(temperature) = self.temperature
            && !(0.0..=2.0).contains(&temperature)
        {
            return Some(format!("temperature is {temperature}, it must be between 0 and 2"));
        }
        if self.tool_choice == Some(ToolChoice::Tools(Vec::new())) {
            return Some("tool_choice names no tool; name one, or choose `none`".to_owned());
        }
        if let Some(OutputFormat::Schema(output)) = &self.output {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if !(1..=64).contains(&output.name.len()) || !output.name.chars().all(fits) {
                return Some(format!(
                    "the output's name is `{}`, it must be 1 to 64 characters of A-Z a-z 0-9 _ -",
                    output.name
                ));
            }
            if !output.schema.is_object() {
                return Some("the output's schema is not a JSON object".to_owned());
            }
        }
        if let Some(problem) =
            nameless("tools", self.tools.as_deref()).or_else(|| nameless("always_ask", self.always_ask.as_deref()))
        {
            return Some(problem);
        }
        let globs = || self.tools.iter().flatten().chain(self.always_ask.iter().flatten());
        let wildcards = globs().flat_map(|glob| glob.chars()).filter(|c| matches!(c, '*' | '?' | '[' | '{')).count();
        if globs().count() > MAX_GLOBS || wildcards > MAX_WILDCARDS {
            let (count, wildcards) = (counted(globs().count(), "glob"), counted(wildcards, "wildcard"));
            return Some(format!("tools and always_ask are {count} with {wildcards}, limits {MAX_GLOBS} and {MAX_WILDCARDS}"));
        }
        let bad_glob = globs().find_map(|glob| Some((glob, globset::Glob::new(of_glob(glob)).err()?)));
        bad_glob.map(|(glob, error)| format!("`{glob}` in tools is not a glob: {}", error.kind()))
    }

    /// As [`SettingsOverlay::problem`] of what is chosen otherwise than `before`. What is stored already stands in the way of no other
    /// change: it may be from a time when it was not refused.
    pub fn problem_since(&self, before: &Self) -> Option<String> {
        let changed = Self {
            model: chosen_anew(self.model.as_ref(), before.model.as_ref()),
            max_steps: chosen_anew(self.max_steps.as_ref(), before.max_steps.as_ref()),
            temperature: chosen_anew(self.temperature.as_ref(), before.temperature.as_ref()),
            max_output_tokens: chosen_anew(self.max_output_tokens.as_ref(), before.max_output_tokens.as_ref()),
            tools: chosen_anew(self.tools.as_ref(), before.tools.as_ref()),
            tool_choice: chosen_anew(self.tool_choice.as_ref(), before.tool_choice.as_ref()),
            output: chosen_anew(self.output.as_ref(), before.output.as_ref()),
            always_ask: chosen_anew(self.always_ask.as_ref(), before.always_ask.as_ref()),
            ..self.clone()
        };
        changed.problem()
    }
}

/// What is chosen, where it is not what was.
fn chosen_anew<T: Clone + PartialEq>(now: Option<&T>, before: Option<&T>) -> Option<T> {
    now.filter(|_| now != before).cloned()
}

/// Which of the globs of this field is none, since nothing stands in it.
fn nameless(field: &str, globs: Option<&[String]>) -> Option<String> {
    let place = globs?.iter().position(|glob| of_glob(glob).is_empty())?;
    Some(format!("`{field}[{place}]` is empty, which is no tool's name; `*` stands for all"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_globs_that_choose_tools_have_a_limit() {
        let problem = |globs: Vec<String>| SettingsOverlay { tools: Some(globs), ..SettingsOverlay::default() }.problem();
        assert_eq!(problem(vec!["x__*".to_owned(); 1_000]), None);
        let expected = "tools and always_ask are 1001 globs with 0 wildcards, limits 1000 and 1000";
        assert_eq!(problem(vec!["x__y".to_owned(); 1_001]).as_deref(), Some(expected));
        let expected = "tools and always_ask are 1 glob with 5000 wildcards, limits 1000 and 1000";
        assert_eq!(problem(vec!["*".repeat(5_000)]).as_deref(), Some(expected));
    }

    #[test]
    fn an_empty_glob_is_told_by_its_place_and_one_that_is_stored_blocks_no_other_change() {
        let of = |globs: &[&str]| SettingsOverlay {
            tools: Some(globs.iter().map(|glob| (*glob).to_owned()).collect()),
            ..SettingsOverlay::default()
        };
        let told = |place: u8| Some(format!("`tools[{place}]` is empty, which is no tool's name; `*` stands for all"));
        assert_eq!(of(&["lab__look", ""]).problem(), told(1));
        assert_eq!(of(&["!"]).problem(), told(0));
        let stored = of(&["lab__look", ""]);
        let other = SettingsOverlay { max_steps: Some(3), ..stored.clone() };
        assert_eq!(other.problem_since(&stored), None);
        let none = SettingsOverlay { max_steps: Some(0), ..other };
        assert_eq!(none.problem_since(&stored).as_deref(), Some("max_steps is 0, it must be at least 1"));
        assert_eq!(of(&["", "lab__look"]).problem_since(&stored), told(0));
        assert_eq!(of(&["lab__look"]).problem_since(&stored), None);
    }
}
