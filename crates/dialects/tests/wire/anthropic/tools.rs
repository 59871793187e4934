//! Tools: which are strict, and what must be called of them.

use serde_json::{Value, json};
use turnwright_core::prompt::PromptMessage;
use turnwright_core::{AssistantBlock, ReasoningEffort, ToolChoice};
use turnwright_dialects::Profile;

use super::request::{Ask, answer, asks, call, message, ok, says, text_block};
use crate::support::tool;

#[test]
fn every_tool_choice_is_said_in_the_words_of_the_api() {
    let hello = asks("Hi");
    let mut ask = Ask::new(vec![message(1, &hello)]);
    let choice = |ask: &Ask<'_>| ask.body().get("tool_choice").cloned().unwrap_or_default();
    let table = [
        (ToolChoice::Auto, Value::Null),
        (ToolChoice::Required, json!({"type": "any"})),
        (ToolChoice::Tool("s__f".to_owned()), json!({"type": "tool", "name": "s__f"})),
        (ToolChoice::None, json!({"type": "none"})),
    ];
    for (demanded, expected) in table {
        ask.settings.tool_choice = Some(demanded);
        assert_eq!(choice(&ask), expected);
    }
    ask.settings.tool_choice = None;
    ask.allow_calls = false;
    assert_eq!(choice(&ask), json!({"type": "none"}));
    ask.allow_calls = true;
    // A thinking model cannot be made to call, so it does not think; a model that cannot be made to call is told to.
    ask.settings.tool_choice = Some(ToolChoice::Required);
    ask.settings.reasoning_effort = Some(ReasoningEffort::High);
    let body = ask.body();
    assert_eq!((&body["tool_choice"], body.get("thinking")), (&json!({"type": "any"}), None));
    ask.tools.push(tool("s__g", json!({})));
    let both = || ToolChoice::Tools(vec!["s__f".to_owned(), "s__g".to_owned()]);
    let told = "(Call at least one of the tools `s__f`, `s__g` before you answer, and no other.)";
    ask.settings.tool_choice = Some(both());
    assert_eq!(choice(&ask), json!({"type": "any"}));
    assert_eq!(ask.messages(), json!([["user", [text_block("Hi"), text_block(told)]]]));
    for (demanded, text) in [
        (ToolChoice::Required, "(Call at least one of the tools before you answer.)"),
        (both(), told),
        (ToolChoice::Tool("s__f".to_owned()), "(Call the tool `s__f` before you answer.)"),
    ] {
        ask.model = "claude-opus-5-5".to_owned();
        ask.settings.tool_choice = Some(demanded);
        assert_eq!(choice(&ask), Value::Null);
        assert_eq!(ask.messages(), json!([["user", [text_block("Hi"), text_block(text)]]]));
    }
}

#[test]
fn several_calls_at_once_are_forbidden_beside_every_choice_that_allows_calls() {
    let hello = asks("Hi");
    let mut ask = Ask::new(vec![message(1, &hello)]);
    ask.settings.parallel_calls = Some(false);
    for (demanded, expected) in [
        (None, json!({"type": "auto", "disable_parallel_tool_use": true})),
        (Some(ToolChoice::Required), json!({"type": "any", "disable_parallel_tool_use": true})),
        (Some(ToolChoice::Tool("s__f".to_owned())), json!({"type": "tool", "name": "s__f", "disable_parallel_tool_use": true})),
        (Some(ToolChoice::None), json!({"type": "none"})),
    ] {
        ask.settings.tool_choice = demanded;
        assert_eq!(ask.body()["tool_choice"], expected);
    }
    (ask.settings.tool_choice, ask.model) = (Some(ToolChoice::Required), "claude-opus-5-5".to_owned());
    assert_eq!(ask.body()["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
    ask.tools.clear();
    assert_eq!(ask.body().get("tool_choice"), None);
    (ask.settings.tool_choice, ask.settings.parallel_calls) = (None, Some(true));
    ask.tools.push(tool("s__f", json!({})));
    assert_eq!(ask.body().get("tool_choice"), None);
}

#[test]
fn a_tool_is_strict_where_its_schema_the_model_and_the_room_of_the_request_allow_it() {
    let hello = asks("Hi");
    let closed = |count: usize| {
        let properties: serde_json::Map<String, Value> =
            (0..count).map(|number| (format!("p{number}"), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    let mut ask = Ask::new(vec![message(1, &hello)]);
    let strict = |ask: &Ask<'_>| {
        let body = ask.body();
        let names = body["tools"].as_array().unwrap().iter().filter(|tool| tool["strict"] == true);
        names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    ask.tools = vec![
        tool("open", json!({"type": "object", "properties": {}})),
        tool("a", closed(20)),
        tool(
            "bounded",
            json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}},
            "required": ["n"], "additionalProperties": false}),
        ),
        tool("b", closed(5)),
        tool("c", closed(4)),
    ];
    assert_eq!(strict(&ask), Vec::<String>::new());
    ask.profile = Profile::for_base_url("https://api.anthropic.com");
    // 24 optional properties are all that the strict tools of a request may have.
    assert_eq!(strict(&ask), ["a", "c"]);
    assert_eq!(ask.body()["tools"][1]["input_schema"], closed(20));
    for model in ["claude-sonnet-4-20250514", "claude-3-7-sonnet-latest", "claude-next", "other"] {
        ask.model = model.to_owned();
        assert_eq!(strict(&ask), Vec::<String>::new(), "{model}");
    }
    ask.model = "claude-opus-5-5".to_owned();
    ask.tools = (0..22).map(|number| tool(&format!("t{number}"), closed(0))).collect();
    assert_eq!(strict(&ask).len(), 20);
}

#[test]
fn a_history_with_calls_has_tools_even_where_none_is_offered() {
    let (hello, a) = (asks("Hi"), call(None, ""));
    let said = says(vec![AssistantBlock::Call(a.clone())]);
    let mut ask = Ask::new(vec![message(1, &hello), answer(2, &said), PromptMessage::Results(vec![ok(2, 0, &a)])]);
    ask.tools.clear();
    let body = ask.body();
    assert_eq!((body["tools"].as_array().map(Vec::len), &body["tool_choice"]), (Some(1), &json!({"type": "none"})));
}
