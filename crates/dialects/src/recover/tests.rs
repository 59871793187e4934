use std::sync::Arc;

use super::*;
use turnwright_core::prompt::Prompt;
use turnwright_core::{Declared, ModelRef, ToolDefinition, TurnSettings};

fn offered() -> Offered {
    let tools: Vec<Arc<ToolDefinition>> = ["time__now", "files__read"]
        .into_iter()
        .map(|name| {
            Arc::new(ToolDefinition {
                name: name.to_owned(),
                source: String::new(),
                tool: String::new(),
                title: None,
                description: String::new(),
                input_schema: serde_json::json!({}),
                annotations: None,
                declared: Declared::default(),
            })
        })
        .collect();
    let settings = TurnSettings::new(ModelRef::new("p", "m"));
    Offered::of(&Prompt { conversation: None, settings: &settings, messages: Vec::new(), tools: &tools, allow_calls: true })
}

/// The text with calls in guillemets.
fn recover(pieces: &[&str]) -> String {
    let mut recoverer = Recoverer::new(offered());
    let mut out = Vec::new();
    for piece in pieces {
        recoverer.push(piece, &mut out);
    }
    recoverer.finish(&mut out);
    out.into_iter()
        .map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Call { name, arguments } => format!("«{name} {arguments}»"),
        })
        .collect()
}

fn check(text: &str, expected: &str) {
    assert_eq!(recover(&[text]), expected, "whole: {text}");
    for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
        let (head, tail) = text.split_at(cut);
        assert_eq!(recover(&[head, tail]), expected, "cut at {cut}: {text}");
    }
    let characters: Vec<String> = text.chars().map(String::from).collect();
    let pieces: Vec<&str> = characters.iter().map(String::as_str).collect();
    assert_eq!(recover(&pieces), expected, "by characters: {text}");
}

const CALL: &str = r#"{"name": "time__now", "arguments": {"zone": "A/\"}B"}}"#;
const TAKEN: &str = r#"«time__now {"zone": "A/\"}B"}»"#;

#[test]
fn a_call_is_recovered_from_every_form_that_models_write() {
    check(CALL, TAKEN);
    check(&format!("\n  {CALL}\n"), TAKEN);
    check(&format!("```json\n{CALL}\n```"), TAKEN);
    check(&format!("```\n{CALL}\n```\n"), TAKEN);
    check(&format!("```json\n{CALL}"), TAKEN);
    check(&format!("<tool_call>\n{CALL}\n</tool_call>"), TAKEN);
    check(&format!("<tool_call>{CALL}"), TAKEN);
    check(r#"{"name":"time__now","parameters":{}}"#, "«time__now {}»");
    check(r#"{"arguments":"{\"a\":1}","name":"time__now"}"#, r#"«time__now {"a":1}»"#);
    check(r#"{"type":"function","function":{"name":"time__now","arguments":{}}}"#, "«time__now {}»");
}

#[test]
fn several_calls_are_recovered_in_their_order() {
    let second = r#"{"name":"files__read","arguments":{"path":"ü"}}"#;
    let both = format!("{TAKEN}«files__read {{\"path\":\"ü\"}}»");
    check(&format!("[{CALL}, {second}]"), &both);
    check(&format!("{CALL}\n{second}"), &both);
    check(&format!("```json\n{CALL}\n{second}\n```"), &both);
    check(&format!("<tool_call>{CALL}</tool_call>\n<tool_call>{second}</tool_call>"), &both);
}

#[test]
fn text_around_a_call_stays_in_its_place() {
    check(&format!("Let me look.\n\n```json\n{CALL}\n```\nDone, I think."), &format!("Let me look.{TAKEN}Done, I think."));
    check(&format!("I call <tool_call>{CALL}</tool_call> now"), &format!("I call{TAKEN}now"));
}

#[test]
fn what_is_no_call_stays_as_it_was_written() {
    for text in [
        "",
        "Hello, you.\n",
        "  indented\n\n  text  \n",
        r#"{"name":"unknown__tool","arguments":{}}"#,
        r#"{"name":"time__now"}"#,
        r#"{"name":"time__now","arguments":[]}"#,
        r#"{"name":"time__now","arguments":{},"version":"1.0.0"}"#,
        r#"{"name":"time__now","arguments":{"a":"#,
        r#"Write {"name":"time__now","arguments":{}} in a line"#,
        "[1, 2]\n{}\n[]\n[[{}]]",
        "{ x: 1 }",
        "```json\n{\"a\": 1}\n```\nand ```` more",
        "```python\n{\"name\":\"time__now\",\"arguments\":{}}\n```\n",
        "```",
        "``",
        "a < b <tool_cal",
        "<tool_call>none</tool_call>",
        "<tool_call></tool_call>",
    ] {
        check(text, text);
    }
}

#[test]
fn text_that_cannot_become_a_call_is_not_held_back() {
    let mut recoverer = Recoverer::new(offered());
    let mut out = Vec::new();
    recoverer.push("Some words", &mut out);
    recoverer.push("\n```json\n{\n  \"name\": \"my-package\"", &mut out);
    let expected = ["Some words", "\n```json\n{\n  \"name\": \"my-package\""];
    assert_eq!(out, expected.map(|text| Piece::Text(text.to_owned())));
}

#[test]
fn an_endless_candidate_is_released_as_text() {
    let mut recoverer = Recoverer::new(offered());
    let mut out = Vec::new();
    recoverer.push(r#"{"name":"time__now","arguments":{"a":""#, &mut out);
    for _ in 0..17 {
        recoverer.push(&"x".repeat(64 * 1024), &mut out);
    }
    assert_eq!(out.len(), 2, "{out:?}");
}
