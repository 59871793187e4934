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
                input_schema: serde_json::json!({"type": "object", "properties": {
                    "zone": {"type": "string"}, "count": {"type": "integer"}, "tags": {"type": "array"}, "on": {"type": "boolean"},
                }}),
                annotations: None,
                declared: Declared::default(),
            })
        })
        .collect();
    let settings = TurnSettings::new(ModelRef::new("p", "m"));
    Offered::of(&Prompt {
        conversation: None,
        settings: &settings,
        messages: Vec::new(),
        tools: &tools,
        allow_calls: true,
        has_open_demand: false,
    })
}

/// The text with calls in guillemets.
fn recover(pieces: &[&str]) -> String {
    let mut recoverer = Recoverer::new(offered(), TextForms::ALL);
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
fn a_call_in_doubled_braces_is_recovered() {
    check(&format!("{{{CALL}}}"), TAKEN);
    check(&format!("{{ {CALL}\n}}"), TAKEN);
    check(&format!("```json\n{{{CALL}}}\n```"), TAKEN);
    check(&format!("<tool_call>\n{{{CALL}}}\n</tool_call>"), TAKEN);
    for text in [format!("{{{CALL}"), format!("{{{CALL}, 1}}"), "{{ name }}".to_owned()] {
        check(&text, &text);
    }
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
        "<tool_response></tool_response>",
        "<tool_response>time__now</tool_response>",
        "<tool_response>{\"zone\":\"A\"}</tool_response>",
    ] {
        check(text, text);
    }
}

/// What a model writes, and what it is. `T` stands for `time__now`, `F` for `files__read`, `«…»` for calls.
fn table(rows: &[(&str, &str)]) {
    let full = |text: &str| text.replace("T!", "time__now").replace("F!", "files__read");
    for (text, expected) in rows {
        check(&full(text), &full(expected));
    }
}

const ZONE: &str = r#"«T! {"zone":"A"}»"#;

#[test]
fn mistrals_token_opens_a_list_or_a_name_with_arguments() {
    table(&[
        (r#"[TOOL_CALLS][{"name": "T!", "arguments": {"zone":"A"}}]"#, ZONE),
        (r#"[TOOL_CALLS] [{"name": "T!", "arguments": {}}, {"name": "F!", "arguments": {"a":1}}]"#, r#"«T! {}»«F! {"a":1}»"#),
        (r#"I look.[TOOL_CALLS]T![ARGS]{"zone":"A"}"#, r#"I look.«T! {"zone":"A"}»"#),
        (r#"[TOOL_CALLS]T!{"zone":"A"}[TOOL_CALLS]F!{}"#, r#"«T! {"zone":"A"}»«F! {}»"#),
        (r#"[TOOL_CALLS]T![CALL_ID]aB3dE6gH9[ARGS]{"zone":"A"}"#, ZONE),
        (r#"[TOOL_CALLS]{"name": "T!", "arguments": {"zone":"A"}}"#, ZONE),
    ]);
}

#[test]
fn llamas_tag_opens_calls_in_json_or_as_pythons() {
    table(&[
        (r#"<|python_tag|>{"name": "T!", "parameters": {"zone":"A"}}"#, ZONE),
        (r#"<|python_tag|>{"name":"T!","parameters":{}}; {"name":"F!","parameters":{}}<|eom_id|>"#, "«T! {}»«F! {}»"),
        (r#"<|python_tag|>T!.call(zone="A")<|eom_id|>"#, ZONE),
        (r#"<|python_tag|>[{"name": "T!", "parameters": {"zone":"A"}}]<|eot_id|>"#, ZONE),
        (r"<|python_tag|>[T!(zone='A')] and more", r#"«T! {"zone":"A"}»and more"#),
        (r#"<function=T!>{"zone":"A"}</function>"#, ZONE),
        (r#"<function=T!>{"zone":"A"}"#, ZONE),
        (r#"<function=T!{"zone":"A"}></function>"#, ZONE),
        ("<function=T!></function>\n<function=F!>{}</function>", "«T! {}»«F! {}»"),
    ]);
}

#[test]
fn a_python_list_that_has_its_line_to_itself_is_calls() {
    table(&[
        (r#"[T!(zone="A")]"#, ZONE),
        ("Let me see.\n[T!(zone=\"A\"), F!()]\n\nThen:", "Let me see.«T! {\"zone\":\"A\"}»«F! {}»Then:"),
        (
            "[T!(count=-3, on=True, tags=['x', \"y\",], zone=None)]",
            r#"«T! {"count":-3,"on":true,"tags":["x","y"],"zone":null}»"#,
        ),
        (
            r#"[T!(zone="a\"b\u00e9\n", count=1.5e3, tags=({'k': False},))]"#,
            r#"«T! {"zone":"a\"bé\n","count":1500.0,"tags":[{"k":false}]}»"#,
        ),
        ("[T!(zone=\"\"\"two\nlines\"\"\")]", r#"«T! {"zone":"two\nlines"}»"#),
        (r#"<|python_start|>[T!(zone="A")]<|python_end|>"#, ZONE),
        (r#"<|tool_call_start|>[T!(zone="A")]<|tool_call_end|>Good."#, r#"«T! {"zone":"A"}»Good."#),
        ("```tool_code\nT!(zone=\"A\")\n```", ZONE),
        ("```tool_code\nprint(default_api.T!(zone=\"A\"))\nF!()\n```\nDone", r#"«T! {"zone":"A"}»«F! {}»Done"#),
    ]);
}

#[test]
fn what_tags_hold_may_be_json_a_function_or_keys_with_values() {
    table(&[
        (r"<tool_call>{'name': 'T!', 'arguments': {'zone': 'A'}}</tool_call>", ZONE),
        (r#"<tool_call>[{"name":"T!","arguments":{"zone":"A"}}]</tool_call>"#, r#"«T! {"zone":"A"}»"#),
        (r#"<tool_call>{"name":"T!","arguments":{}}<tool_call>"#, "«T! {}»"),
        (r#"<tool_call>{"name":"T!","arguments":{}}</tool_ca"#, "«T! {}»"),
        (r#"<tools>{"name":"T!","arguments":{}}</tools>"#, "«T! {}»"),
        (r#"<function_call>{"name":"T!","arguments":{}}</function_call>"#, "«T! {}»"),
        ("<tool_response>\n{\"name\":\"T!\",\"arguments\":{}}\n</tool_response>", "«T! {}»"),
        (
            "<tool_call>\n<function=T!>\n<parameter=zone>\nA\n</parameter>\n<parameter=count>\n3\n</parameter>\n</function>\n</tool_call>",
            r#"«T! {"zone":"A","count":3}»"#,
        ),
        (
            "<tool_call>T!\n<arg_key>zone</arg_key>\n<arg_value>7</arg_value>\n<arg_key>tags</arg_key><arg_value>[1]</arg_value>\n</tool_call>",
            r#"«T! {"zone":"7","tags":[1]}»"#,
        ),
        ("<tool_call>T!</tool_call>", "«T! {}»"),
        ("✿FUNCTION✿: T!\n✿ARGS✿: {\"zone\":\"A\"}", ZONE),
    ]);
}

#[test]
fn special_tokens_that_a_server_left_in_the_text_open_calls() {
    table(&[
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>T!\n```json\n{\"zone\":\"A\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            ZONE,
        ),
        (
            "So:<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>T!<｜tool▁sep｜>{\"zone\":\"A\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>F!<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
            "So:«T! {\"zone\":\"A\"}»«F! {}»",
        ),
        ("<｜tool▁call▁begin｜>T!<｜tool▁sep｜>{\"zone\":\"A\"}<｜tool▁call▁end｜>", ZONE),
        (
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"T!\">\n<｜DSML｜parameter name=\"zone\" string=\"true\">A</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
            ZONE,
        ),
        (r#"<|tool_call|>[{"name": "T!", "arguments": {"zone":"A"}}]<|/tool_call|>"#, ZONE),
        (r#"<|tool_call|>{"name": "T!", "arguments": {"zone":"A"}} I wait."#, r#"«T! {"zone":"A"}»I wait."#),
        (r#"functools[{"name": "T!", "arguments": {"zone":"A"}}]"#, ZONE),
        (
            r#"<|tool_calls_section_begin|><|tool_call_begin|>functions.T!:0<|tool_call_argument_begin|>{"zone":"A"}<|tool_call_end|><|tool_calls_section_end|>"#,
            ZONE,
        ),
        (r#"<|channel|>commentary to=functions.T! <|constrain|>json<|message|>{"zone":"A"}<|call|>"#, ZONE),
        (r#"<|start|>assistant to=functions.T!<|channel|>commentary json<|message|>{"zone":"A"}"#, ZONE),
        (
            "<minimax:tool_call>\n<invoke name=\"T!\">\n<parameter name=\"zone\">A</parameter>\n</invoke>\n</minimax:tool_call>",
            ZONE,
        ),
        ("<invoke name=\"T!\"></invoke>", "«T! {}»"),
        (r#"<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "T!", "parameters": {"zone":"A"}}]<|END_ACTION|>"#, ZONE),
    ]);
}

#[test]
fn what_mentions_or_quotes_a_call_stays_as_it_was_written() {
    let call = r#"{"name": "T!", "arguments": {}}"#;
    let rows = [
        "Mistral writes [TOOL_CALLS] before its calls.".to_owned(),
        "[TOOL_CALLS] is a token, <|python_tag|> another, <tool_call> a tag.".to_owned(),
        format!("It is written as `<tool_call>{call}</tool_call>` in Qwen's template."),
        format!("```xml\n<tool_call>{call}</tool_call>\n```\n"),
        format!("```text\n[TOOL_CALLS][{call}]\n```\n"),
        format!("```\n<|python_tag|>{call}\n```\n"),
        "```python\n[T!(zone=\"A\")]\n```".to_owned(),
        "```tool_code\nx = 1\n```".to_owned(),
        r#"[T!(zone="A")] is how I would call it."#.to_owned(),
        r#"I would call [T!(zone="A")]"#.to_owned(),
        r#"[T!("A")]"#.to_owned(),
        "[T!]\n[T!(zone)]\n[T!(zone=x)]\n[T!(zone=1".to_owned(),
        "[other(zone=\"A\")]".to_owned(),
        "[see the notes](https://example.org)".to_owned(),
        "T!(zone=\"A\")".to_owned(),
        r#"[TOOL_CALLS][{"name": "other", "arguments": {}}]"#.to_owned(),
        "[TOOL_CALLS]other[ARGS]{}".to_owned(),
        "[TOOL_CALLS]T![ARGS]{\"a\":".to_owned(),
        "[TOOL_CALLS]T!".to_owned(),
        "<function=other>{}</function>".to_owned(),
        "<function=T!>later</function>".to_owned(),
        "f(x) = 3, functools[1] and from functools import cache".to_owned(),
        "<｜tool▁calls▁begin｜>none<｜tool▁calls▁end｜>".to_owned(),
        "<|channel|>final<|message|>Hello".to_owned(),
        "<invoke name=\"other\"></invoke> <invoke".to_owned(),
        "✿ a flower".to_owned(),
    ];
    for text in rows {
        table(&[(&text, &text)]);
    }
}

#[test]
fn only_the_forms_that_are_asked_for_are_looked_for() {
    let text = r#"{"name":"time__now","arguments":{}}[TOOL_CALLS]time__now{}"#;
    let with = |forms| {
        let mut recoverer = Recoverer::new(offered(), forms);
        let mut out = Vec::new();
        recoverer.push(text, &mut out);
        recoverer.finish(&mut out);
        out.iter().filter(|piece| matches!(piece, Piece::Call { .. })).count()
    };
    assert_eq!(with(TextForms::NONE), 0);
    assert_eq!(with(TextForms::only(TextForm::Json)), 1);
    assert_eq!(with(TextForms::only(TextForm::Mistral)), 1);
    assert_eq!(with(TextForms::only(TextForm::Json).with(TextForm::Mistral)), 2);
    assert_eq!(text_forms_in(text, &offered()), [TextForm::Json, TextForm::Mistral]);
}

#[test]
fn the_set_of_forms_is_written_as_true_false_or_a_list_of_names() {
    let read = |json: &str| serde_json::from_str::<TextForms>(json);
    assert_eq!(read("true").unwrap(), TextForms::ALL);
    assert_eq!(read("false").unwrap(), TextForms::NONE);
    assert_eq!(read("\"llama\"").unwrap(), TextForms::only(TextForm::Llama));
    let two = TextForms::only(TextForm::Mistral).with(TextForm::Json);
    assert_eq!(read(r#"["mistral", "json"]"#).unwrap(), two);
    assert_eq!(serde_json::to_string(&two).unwrap(), r#"["json","mistral"]"#);
    assert_eq!(serde_json::to_string(&TextForms::ALL).unwrap(), "true");
    let error = read(r#"["mistrl"]"#).unwrap_err().to_string();
    let known = "json, hermes, mistral, llama, python, deepseek, granite, kimi, harmony, invoke, cohere";
    assert!(
        error.starts_with(&format!("invalid value: string \"mistrl\", expected true, false or a list of {known}")),
        "{error}"
    );
}

#[test]
fn no_mark_is_the_beginning_of_another() {
    for (mark, ..) in MARKS {
        assert!(may_begin_mark(mark.as_bytes()[0]), "{mark}");
        assert_eq!(MARKS.iter().filter(|(other, ..)| other.starts_with(mark)).count(), 1, "{mark}");
    }
}

#[test]
fn long_arguments_that_come_in_small_pieces_are_a_call() {
    let mut recoverer = Recoverer::new(offered(), TextForms::ALL);
    let mut out = Vec::new();
    recoverer.push(r#"[TOOL_CALLS]time__now{"zone":""#, &mut out);
    for _ in 0..50_000 {
        recoverer.push("word ", &mut out);
    }
    recoverer.push("\"}", &mut out);
    recoverer.finish(&mut out);
    let arguments = format!("{{\"zone\":\"{}\"}}", "word ".repeat(50_000));
    assert_eq!(out, [Piece::Call { name: "time__now".to_owned(), arguments }]);
}

#[test]
fn text_that_cannot_become_a_call_is_not_held_back() {
    let mut recoverer = Recoverer::new(offered(), TextForms::ALL);
    let mut out = Vec::new();
    recoverer.push("Some words", &mut out);
    recoverer.push("\n```json\n{\n  \"name\": \"my-package\"", &mut out);
    let expected = ["Some words", "\n```json\n{\n  \"name\": \"my-package\""];
    assert_eq!(out, expected.map(|text| Piece::Text(text.to_owned())));
}

#[test]
fn an_endless_candidate_is_released_as_text() {
    let mut recoverer = Recoverer::new(offered(), TextForms::ALL);
    let mut out = Vec::new();
    recoverer.push(r#"{"name":"time__now","arguments":{"a":""#, &mut out);
    for _ in 0..17 {
        recoverer.push(&"x".repeat(64 * 1024), &mut out);
    }
    assert_eq!(out.len(), 2, "{out:?}");
}
