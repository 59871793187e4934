//! The example of a tool of one's own does what it says.

#![cfg(test)]

#[path = "../../../examples/own_tool.rs"]
mod own_tool;

#[tokio::test]
async fn a_tool_of_ten_lines_is_called_and_answered_with() {
    let folder = tempfile::tempdir().unwrap();
    let said = own_tool::ask(folder.path(), "Reverse the text \"desserts\"").await.unwrap();
    assert_eq!(said.first().map(String::as_str), Some("stressed"), "{said:?}");
    assert!(said.len() == 2 && said[1].contains("stressed"), "{said:?}");
}
