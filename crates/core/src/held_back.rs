//! Tools that are not listed to a model, and the one tool by which it finds them.
//!
//! Where all definitions together would take too much of a model's window, a conversation is offered this tool in their place.
//! What it finds is stored ([`crate::Control::Found`]) and offered from then on, after what was offered before (law 7). *Not
//! here:* when to hold back, and what is found.

use serde_json::json;

use crate::{Declared, ToolDefinition, counted};

/// The qualified name of the tool that finds others.
pub const SEARCH_TOOL: &str = "tools__search";
/// The most sources that are named, the largest first.
const MAX_SOURCES: usize = 80;
/// The longest name of a source that is told whole, in characters.
const MAX_SOURCE_CHARS: usize = 40;

/// The tool that finds others, of which `sources` have so many each.
pub fn search_tool(sources: &[(&str, usize)]) -> ToolDefinition {
    let mut told: Vec<(&str, usize)> = sources.to_vec();
    told.sort_by(|(a, many), (b, more)| more.cmp(many).then(a.cmp(b)));
    let count: usize = told.iter().map(|(_, count)| count).sum();
    let left_out = told.len().saturating_sub(MAX_SOURCES);
    let first = told.iter().take(MAX_SOURCES).map(|(name, count)| {
        let name: String = name.chars().take(MAX_SOURCE_CHARS).collect();
        format!("{name} ({count})")
    });
    let rest = if left_out > 0 { format!(" and {left_out} more") } else { String::new() };
    let names = first.collect::<Vec<_>>().join(", ") + &rest;
    let tools = counted(count, "tool") + if count == 1 { " is" } else { " are" };
    let description = format!(
        "Finds tools. {tools} not listed here, of: {names}. Say in a few English words what is to be done and, where \
         it is known, of which of these; the tools that fit best can be called from then on. Search before you say that \
         something cannot be done."
    );
    ToolDefinition {
        name: SEARCH_TOOL.to_owned(),
        source: "tools".to_owned(),
        tool: String::new(),
        title: Some("Find tools".to_owned()),
        description,
        input_schema: json!({
            "type": "object",
            "properties": {"query": {"type": "string", "description": "What is to be done, such as `create an issue in github`"}},
            "required": ["query"],
            "additionalProperties": false
        }),
        annotations: None,
        declared: Declared { read_only: true, ..Declared::default() },
    }
}

impl ToolDefinition {
    /// Whether this is the tool that finds others. One that a source offers has a name there; this has none.
    pub fn is_search(&self) -> bool {
        self.tool.is_empty() && self.name == SEARCH_TOOL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_are_named_with_how_many_tools_they_have_the_largest_first() {
        let tool = search_tool(&[("a", 2), ("b", 30), ("c", 2)]);
        assert!(tool.is_search());
        assert!(tool.description.contains("34 tools are not listed here, of: b (30), a (2), c (2)."), "{}", tool.description);
    }

    #[test]
    fn however_many_sources_there_are_the_tool_stays_short() {
        let names: Vec<String> = (0..5_000).map(|number| format!("{number}{}", "x".repeat(100))).collect();
        let sources: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        let tool = search_tool(&sources);
        assert!(tool.description.contains("and 4920 more"));
        assert!(tool.description.len() < 6_000, "{}", tool.description.len());
    }

    #[test]
    fn a_tool_of_a_source_by_the_same_name_is_another() {
        let own = search_tool(&[]);
        assert!(!ToolDefinition { tool: "search".to_owned(), ..own }.is_search());
    }
}
