//! What a model's name says about it: Gemini's API says it nowhere else in time.

use turnwright_core::ReasoningEffort;

use crate::facts::{ModelFacts, ReasoningStyle};

/// The generation of models from which on calls must be signed and results may hold images.
const SIGNED_GENERATION: f32 = 3.0;
/// The first generation that thinks.
const THINKING_GENERATION: f32 = 2.5;

/// A model, by its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model<'a> {
    /// Without the collection in front of it.
    name: &'a str,
    facts: &'a ModelFacts,
}

/// How a model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    Level(&'static str),
    Budget(u32),
    /// As much as it likes.
    Free,
}

impl<'a> Model<'a> {
    pub(crate) fn new(name: &'a str, facts: &'a ModelFacts) -> Self {
        Self { name: name.rsplit('/').next().unwrap_or(name), facts }
    }

    /// The number in its name: 2.5 of `gemini-2.5-pro`. The newest for names such as `gemini-flash-latest`; `None` where it
    /// is no Gemini at all.
    fn generation(self) -> Option<f32> {
        let (_, rest) = self.name.split_once("gemini-")?;
        let number = rest.split(|c: char| !(c.is_ascii_digit() || c == '.')).next().unwrap_or_default();
        Some(number.parse().unwrap_or(f32::INFINITY))
    }

    /// Whether the API refuses calls without a signature, and takes images in results.
    pub(crate) fn is_signed(self) -> bool {
        self.generation().is_some_and(|generation| generation >= SIGNED_GENERATION)
    }

    /// Whether an answer in a form of its own can be asked for beside tools.
    pub(super) fn takes_a_form_with_tools(self) -> bool {
        self.generation().is_some_and(|generation| generation >= SIGNED_GENERATION)
    }

    /// Whether it takes images.
    pub(super) fn takes_images(self) -> bool {
        self.facts.images != Some(false)
    }

    /// Whether it takes PDF documents.
    pub(super) fn takes_documents(self) -> bool {
        self.facts.documents != Some(false)
    }

    /// Whether it takes a sampling temperature.
    pub(super) fn takes_temperature(self) -> bool {
        self.facts.temperature != Some(false)
    }

    /// How to tell it how much to think; `None` where it is not known to think.
    pub(super) fn thinking(self, effort: Option<ReasoningEffort>) -> Option<Thinking> {
        let style = self.facts.reasoning.or_else(|| self.style())?;
        let Some(effort) = effort else {
            return match style {
                ReasoningStyle::Never => None,
                ReasoningStyle::Effort | ReasoningStyle::Budget | ReasoningStyle::Adaptive => Some(Thinking::Free),
            };
        };
        match style {
            ReasoningStyle::Never => None,
            ReasoningStyle::Budget => Some(Thinking::Budget(self.budget(effort))),
            ReasoningStyle::Effort | ReasoningStyle::Adaptive => Some(Thinking::Level(self.level(effort))),
        }
    }

    fn style(self) -> Option<ReasoningStyle> {
        let other_uses = ["image", "tts", "audio", "live", "embedding"];
        if other_uses.iter().any(|other_use| self.name.contains(other_use)) {
            return None;
        }
        match self.generation()? {
            generation if generation >= SIGNED_GENERATION => Some(ReasoningStyle::Effort),
            generation if generation >= THINKING_GENERATION => Some(ReasoningStyle::Budget),
            _ => None,
        }
    }

    fn is_pro(self) -> bool {
        self.name.contains("pro")
    }

    /// In tokens, within what the models of generation 2.5 take.
    fn budget(self, effort: ReasoningEffort) -> u32 {
        match effort {
            // The large ones cannot do without thinking.
            ReasoningEffort::None if self.is_pro() => 128,
            ReasoningEffort::None => 0,
            ReasoningEffort::Minimal => 512,
            ReasoningEffort::Low => 1024,
            ReasoningEffort::Medium => 8192,
            ReasoningEffort::Xhigh | ReasoningEffort::Max if self.is_pro() => 32_768,
            ReasoningEffort::High | ReasoningEffort::Xhigh | ReasoningEffort::Max => 24_576,
        }
    }

    fn level(self, effort: ReasoningEffort) -> &'static str {
        match effort {
            // The large ones know no less.
            ReasoningEffort::None | ReasoningEffort::Minimal if self.is_pro() => "LOW",
            ReasoningEffort::None | ReasoningEffort::Minimal => "MINIMAL",
            ReasoningEffort::Low => "LOW",
            // The first large one with levels knows two.
            ReasoningEffort::Medium if self.name.contains("gemini-3-pro") => "HIGH",
            ReasoningEffort::Medium => "MEDIUM",
            // Few take a word above it.
            ReasoningEffort::High | ReasoningEffort::Xhigh | ReasoningEffort::Max => "HIGH",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_the_generation_and_how_to_think() {
        use ReasoningEffort as E;
        use Thinking as T;
        let facts = ModelFacts::default();
        let table = [
            ("gemini-1.5-flash", false, None, None),
            ("gemini-2.0-flash", false, None, None),
            ("gemini-2.5-flash", false, Some(T::Free), Some(T::Budget(0))),
            ("models/gemini-2.5-pro", false, Some(T::Free), Some(T::Budget(128))),
            ("gemini-2.5-flash-image", false, None, None),
            ("gemini-3-flash-preview", true, Some(T::Free), Some(T::Level("MINIMAL"))),
            ("gemini-3.1-pro-preview", true, Some(T::Free), Some(T::Level("LOW"))),
            ("gemini-flash-latest", true, Some(T::Free), Some(T::Level("MINIMAL"))),
            ("gemma-3-27b-it", false, None, None),
        ];
        for (name, is_signed, free, none) in table {
            let model = Model::new(name, &facts);
            assert_eq!(
                (model.is_signed(), model.thinking(None), model.thinking(Some(E::None))),
                (is_signed, free, none),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_known_of_a_model_counts_more_than_its_name() {
        let facts = |style| ModelFacts { reasoning: Some(style), ..ModelFacts::default() };
        let thinking = |style, effort| Model::new("tuned", &facts(style)).thinking(Some(effort));
        assert_eq!(thinking(ReasoningStyle::Never, ReasoningEffort::High), None);
        assert_eq!(thinking(ReasoningStyle::Budget, ReasoningEffort::High), Some(Thinking::Budget(24_576)));
        assert_eq!(thinking(ReasoningStyle::Adaptive, ReasoningEffort::Max), Some(Thinking::Level("HIGH")));
    }
}
