use serde_json::json;

use super::*;

fn tool(source: &str, tool: &str, description: &str) -> ToolDefinition {
    ToolDefinition {
        name: format!("{source}__{tool}"),
        source: source.to_owned(),
        tool: tool.to_owned(),
        title: None,
        description: description.to_owned(),
        input_schema: json!({"type": "object", "properties": {"recipient": {"type": "string", "description": "An address"}}}),
        annotations: None,
        declared: turnwright_core::Declared::default(),
    }
}

fn some() -> Vec<ToolDefinition> {
    vec![
        tool("files", "deleteFolder", "Removes a folder with all that is in it"),
        tool("files", "readFile", "Reads a text file"),
        tool("mailbox", "send_letter", "Sends a letter"),
        tool("printer", "print", "Prints a repository of documents"),
    ]
}

fn found(query: &str) -> Vec<String> {
    let tools = some();
    let found = ToolIndex::new(&tools).search(query, 2, |_| true);
    found.into_iter().map(|place| tools[place].tool.clone()).collect()
}

#[test]
fn a_tool_is_found_by_its_name_its_words_and_words_that_mean_the_same() {
    assert_eq!(found("delete folder").first().map(String::as_str), Some("deleteFolder"));
    assert_eq!(found("erase this directory").first().map(String::as_str), Some("deleteFolder"));
    assert_eq!(found("SENDING LETTERS")[0], "send_letter");
    assert_eq!(found("recipient").len(), 2, "parameters count too");
}

#[test]
fn what_is_mistyped_shortened_or_in_another_language_is_found() {
    assert_eq!(found("repo")[0], "print");
    assert_eq!(found("documnets")[0], "print");
    assert_eq!(found("Ordner löschen")[0], "deleteFolder");
}

#[test]
fn what_has_nothing_in_common_with_any_tool_finds_none() {
    assert_eq!(found("zzz qqq"), Vec::<String>::new());
    assert_eq!(found(""), Vec::<String>::new());
    assert_eq!(found("the of and"), Vec::<String>::new());
    assert_eq!(ToolIndex::new(&[]).search("anything", 5, |_| true), Vec::<usize>::new());
}

#[test]
fn only_what_is_meant_is_found_and_the_order_is_always_the_same() {
    let tools = some();
    let index = ToolIndex::new(&tools);
    let all = index.search("folder file letter", 10, |_| true);
    assert_eq!(all.len(), 4);
    assert_eq!(index.search("folder file letter", 10, |place| place == all[1]), vec![all[1]]);
    assert_eq!(index.search("folder file letter", 10, |_| true), all);
}
