//! What a model is told about a tool, and what the operator says about it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as it is offered in a conversation, and the way back to whoever offers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The qualified name `source__tool` that models see: `[A-Za-z][A-Za-z0-9_-]{0,63}`.
    pub name: String,
    /// The tool source's name in the configuration.
    pub source: String,
    /// The tool's name at its source.
    pub tool: String,
    /// A title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool does, for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of its arguments; always an object schema.
    pub input_schema: Value,
    /// The source's own hints (MCP `annotations`), shown to people and never a ground to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// What the operator declares about it.
    #[serde(default, skip_serializing_if = "Declared::is_default")]
    pub declared: Declared,
}

/// The most of a tool's own name that a model is told beside the name that it calls.
const MAX_OWN_NAME_CHARS: usize = 64;

impl ToolDefinition {
    /// What a model is told that the tool does: the description, behind the tool's own name where that has letters that the name which
    /// is called cannot have.
    pub fn described(&self) -> Cow<'_, str> {
        if self.tool.chars().all(|c| c.is_ascii() || !c.is_alphanumeric()) {
            return Cow::Borrowed(&self.description);
        }
        let own: String = self.tool.chars().filter(|c| !c.is_control()).take(MAX_OWN_NAME_CHARS).collect();
        Cow::Owned(if self.description.is_empty() { own } else { format!("{own}: {}", self.description) })
    }
}

/// What the operator declares about a tool. Nothing is true until it is declared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is declared by itself, and none follows from another")]
pub struct Declared {
    /// It changes nothing: runs without being asked, and may be run again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// Running it twice is the same as running it once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replayable: bool,
    /// Its calls run one after another.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub serial: bool,
    /// It is asked again and again for how far something is: its calls are no loop.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub polled: bool,
}

impl Declared {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a call whose outcome is unknown may be run again by itself (read-only implies it).
    pub fn is_replayable(self) -> bool {
        self.replayable || self.read_only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_another_script_is_told_before_the_description() {
        let described = |tool: &str, description: &str| {
            let definition = ToolDefinition {
                name: "s__t".to_owned(),
                source: "s".to_owned(),
                tool: tool.to_owned(),
                title: None,
                description: description.to_owned(),
                input_schema: Value::Null,
                annotations: None,
                declared: Declared::default(),
            };
            definition.described().into_owned()
        };
        assert_eq!(described("get.weather/now", "Tells the weather."), "Tells the weather.");
        assert_eq!(described("погода", "Tells the weather."), "погода: Tells the weather.");
        assert_eq!(described("天気\n", ""), "天気");
    }
}
