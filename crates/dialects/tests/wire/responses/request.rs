//! Requests.

use serde_json::{Value, json};
use turnwright_core::prompt::PromptMessage;
use turnwright_core::{
    AssistantBlock, Completion, ContentBlock, CutOffCause, EmbeddedResource, Outcome, OutputFormat, OutputSchema,
    ProviderFailure, ProviderFailureKind, ReasoningEffort, ToolChoice, ToolErrorKind,
};
use turnwright_dialects::openai_responses::OpenAiResponses;
use turnwright_dialects::{Dialect, Profile, ReasoningReplay, ReasoningStyle, by_name};

use super::ask::{Ask, assistant, call, native, of_another, results, says, seq, user};
use crate::support::tool;
use crate::validate::responses::validate;

const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAA"}"#;
const CALL: &str =
    r#"{"id":"fc_1", "type":"function_call","status":"completed","call_id":"call_a","name":"s__f","arguments":"{\"x\":1.0}"}"#;
const MESSAGE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":"final_answer","content":[{"type":"output_text","text":"So.","annotations":[],"logprobs":[]}]}"#;
const SEARCH: &str = r#"{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search"}}"#;
const PNG: &str = "iVBORw0KGgo=";

fn question(text: &str) -> turnwright_core::UserMessage {
    user(vec![ContentBlock::text(text)])
}

fn asks(number: u64, message: &turnwright_core::UserMessage) -> PromptMessage<'_> {
    PromptMessage::User { seq: seq(number), message }
}

fn ok(text: &str) -> (Outcome, Vec<ContentBlock>) {
    (Outcome::Success, vec![ContentBlock::text(text)])
}

fn text(text: &str, own: Option<&str>) -> AssistantBlock {
    AssistantBlock::Text { text: text.to_owned(), native: own.map(native) }
}

fn opaque(own: &str) -> AssistantBlock {
    AssistantBlock::Opaque { native: native(own) }
}

fn valid(ask: &Ask<'_>) -> Value {
    let body = ask.body();
    assert_eq!(validate(&body), Vec::<String>::new(), "{body:#}");
    body["input"].clone()
}

#[test]
fn a_plain_question_is_these_bytes() {
    let hello = question("Hello \"you\"");
    let mut ask = Ask::new(vec![asks(1, &hello)]);
    ask.settings.system_prompt = Some("Be brief.".to_owned());
    ask.tools = vec![tool("s__f", json!({"type": "object", "properties": {}}))];
    let expected = concat!(
        r#"{"model":"m","tools":[{"type":"function","name":"s__f","description":"Does s__f","#,
        r#""parameters":{"type":"object","properties":{}},"strict":false}],"instructions":"Be brief.","#,
        r#""input":[{"type":"message","role":"user","content":"Hello \"you\""}],"#,
        r#""include":["reasoning.encrypted_content"],"store":false,"stream":true}"#
    );
    assert_eq!(String::from_utf8(ask.bytes()).unwrap(), expected);
    valid(&ask);
}

#[test]
fn settings_are_parameters_and_what_is_not_chosen_is_left_out() {
    let hello = question("hi");
    let mut ask = Ask::new(vec![asks(1, &hello)]);
    ask.conversation = Some("c1".parse().unwrap());
    ask.settings.max_output_tokens = Some(5);
    ask.settings.temperature = Some(0.5);
    let body = ask.body();
    let chosen = json!([body["max_output_tokens"], body["temperature"], body["reasoning"], body["prompt_cache_key"]]);
    assert_eq!(chosen, json!([16, 0.5, null, "c1"]));
    ask.settings.reasoning_effort = Some(ReasoningEffort::High);
    let body = ask.body();
    let chosen = json!([body.get("temperature"), body["reasoning"]]);
    assert_eq!(chosen, json!([null, {"effort": "high", "summary": "auto"}]));
    let schema = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    ask.settings.output =
        Some(OutputFormat::Schema(OutputSchema { name: "answer".to_owned(), schema: schema.clone(), strict: true }));
    let format = json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": true});
    assert_eq!(ask.body()["text"], json!({"format": format}));
    valid(&ask);
}

#[test]
fn reasoning_is_asked_for_only_where_a_model_may_reason() {
    let hello = question("hi");
    let mut ask = Ask::new(vec![asks(1, &hello)]);
    ask.settings.max_output_tokens = Some(200_000);
    ask.settings.reasoning_effort = Some(ReasoningEffort::High);
    let sent = |ask: &Ask<'_>| {
        let body = ask.body();
        json!([body.get("include"), body.get("reasoning").is_some(), body["max_output_tokens"]])
    };
    assert_eq!(sent(&ask), json!([["reasoning.encrypted_content"], true, 200_000]));
    ask.model.reasoning = Some(ReasoningStyle::Never);
    ask.model.max_output_tokens = Some(16_384);
    assert_eq!(sent(&ask), json!([null, false, 16_384]));
    valid(&ask);
}

#[test]
fn the_key_of_the_cache_is_never_longer_than_the_api_takes() {
    let hello = question("hi");
    let mut ask = Ask::new(vec![asks(1, &hello)]);
    let mut key = |id: String| {
        ask.conversation = Some(id.parse().unwrap());
        ask.body()["prompt_cache_key"].as_str().unwrap().to_owned()
    };
    assert_eq!(key("a".repeat(64)), "a".repeat(64));
    let (one, other) = (key(format!("{}b", "a".repeat(99))), key(format!("{}c", "a".repeat(99))));
    assert_eq!((one.len(), other.len()), (64, 64));
    assert_ne!(one, other);
}

#[test]
fn a_tool_is_strict_where_nothing_of_its_schema_is_lost_by_it() {
    let hello = question("hi");
    let closed = |required: Value| {
        let path = json!({"path": {"type": "string"}});
        json!({"type": "object", "properties": path, "required": required, "additionalProperties": false})
    };
    let mut ask = Ask::new(vec![asks(1, &hello)]);
    ask.tools = vec![
        tool("s__closed", closed(json!(["path"]))),
        tool("s__optional", closed(json!([]))),
        tool("s__open", json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})),
        tool("s__any", json!({})),
        tool("s__broken", json!({"type": 7})),
    ];
    valid(&ask);
    let body = ask.body();
    let strict: Vec<&Value> = body["tools"].as_array().unwrap().iter().map(|tool| &tool["strict"]).collect();
    assert_eq!(strict, [&json!(true), &json!(true), &json!(false), &json!(false), &json!(false)]);
    assert_eq!(body["tools"][0]["parameters"], closed(json!(["path"])));
    // What is left out is given as null, which the tool is not shown.
    assert_eq!(body["tools"][1]["parameters"]["properties"]["path"]["type"], json!(["string", "null"]));
}

#[test]
fn an_answer_whose_form_cannot_be_strict_is_asked_for_loosely() {
    let hello = question("hi");
    let mut ask = Ask::new(vec![asks(1, &hello)]);
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for strict in [true, false] {
        ask.settings.output =
            Some(OutputFormat::Schema(OutputSchema { name: "answer".to_owned(), schema: open.clone(), strict }));
        valid(&ask);
        let format = ask.body()["text"]["format"].clone();
        assert_eq!(format, json!({"type": "json_schema", "name": "answer", "schema": open, "strict": false}));
    }
    let referring = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}});
    ask.settings.output =
        Some(OutputFormat::Schema(OutputSchema { name: "answer".to_owned(), schema: referring, strict: true }));
    let format = ask.body()["text"]["format"].clone();
    assert_eq!(format, json!({"type": "json_schema", "name": "answer", "schema": open, "strict": false}));
}

#[test]
fn every_choice_of_tools_has_its_form() {
    let hello = question("hi");
    let choice = |chosen: Option<ToolChoice>, allow_calls: bool| {
        let mut ask = Ask::new(vec![asks(1, &hello)]);
        ask.tools = vec![tool("s__f", json!({})), tool("s__g", json!({}))];
        (ask.settings.tool_choice, ask.allow_calls) = (chosen, allow_calls);
        valid(&ask);
        ask.body().get("tool_choice").cloned()
    };
    assert_eq!(choice(None, true), None);
    assert_eq!(choice(Some(ToolChoice::Auto), true), None);
    assert_eq!(choice(Some(ToolChoice::Required), true), Some(json!("required")));
    assert_eq!(choice(Some(ToolChoice::None), true), Some(json!("none")));
    assert_eq!(choice(Some(ToolChoice::Required), false), Some(json!("none")));
    let named = Some(ToolChoice::Tool("s__f".to_owned()));
    let f = json!({"type": "function", "name": "s__f"});
    assert_eq!(choice(named, true), Some(f.clone()));
    let several = Some(ToolChoice::Tools(vec!["s__f".to_owned(), "s__g".to_owned()]));
    let g = json!({"type": "function", "name": "s__g"});
    assert_eq!(choice(several, true), Some(json!({"type": "allowed_tools", "mode": "required", "tools": [f, g]})));
}

#[test]
fn several_calls_at_once_are_allowed_and_forbidden_where_there_are_tools() {
    let hello = question("hi");
    let mut ask = Ask::new(vec![asks(1, &hello)]);
    ask.settings.parallel_calls = Some(false);
    assert_eq!(ask.body().get("parallel_tool_calls"), None);
    ask.tools = vec![tool("s__f", json!({}))];
    valid(&ask);
    assert_eq!(ask.body()["parallel_tool_calls"], json!(false));
    ask.settings.parallel_calls = None;
    assert_eq!(ask.body().get("parallel_tool_calls"), None);
}

#[test]
fn what_the_provider_made_goes_back_to_it_byte_for_byte_and_in_its_place() {
    let (hello, again) = (question("hi"), question("and now?"));
    let looked = says(vec![opaque(REASONING), opaque(SEARCH), AssistantBlock::Call(call("call_a", "{\"x\":1.0}", Some(CALL)))]);
    let said = says(vec![text("So.", Some(MESSAGE))]);
    let messages = vec![
        asks(1, &hello),
        assistant(4, &looked),
        results(4, &looked, vec![ok("12 C")]),
        assistant(8, &said),
        asks(9, &again),
    ];
    let ask = Ask::new(messages);
    valid(&ask);
    let bytes = String::from_utf8(ask.bytes()).unwrap();
    let expected = format!(
        r#""input":[{{"type":"message","role":"user","content":"hi"}},{REASONING},{SEARCH},{CALL},{{"type":"function_call_output","call_id":"call_a","output":"12 C"}},{MESSAGE},{{"type":"message","role":"user","content":"and now?"}}],"#
    );
    assert!(bytes.contains(&expected), "{bytes}");
}

#[test]
fn elsewhere_it_goes_without_reasoning_ids_and_what_only_its_maker_understands() {
    let (hello, again) = (question("hi"), question("and now?"));
    let thought = AssistantBlock::Reasoning { text: "hm".to_owned(), native: Some(native(REASONING)) };
    let called = AssistantBlock::Call(call("call_a", "{\"x\":1.0}", Some(CALL)));
    let refusal = AssistantBlock::Refusal { text: "No.".to_owned() };
    let message = of_another(&says(vec![thought, opaque(SEARCH), text("So.", Some(MESSAGE)), refusal, called]));
    let messages = vec![asks(1, &hello), assistant(4, &message), results(4, &message, vec![ok("1")]), asks(9, &again)];
    let said = |text: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
    let expected = json!([
        {"type": "message", "role": "user", "content": "hi"},
        said("So."),
        said("No."),
        {"type": "function_call", "call_id": "call_4_0", "name": "s__f", "arguments": "{\"x\":1.0}"},
        {"type": "function_call_output", "call_id": "call_4_0", "output": "1"},
        {"type": "message", "role": "user", "content": "and now?"},
    ]);
    assert_eq!(valid(&Ask::new(messages)), expected);
}

#[test]
fn reasoning_goes_back_only_where_it_can_be_read_and_something_follows_it() {
    let hello = question("hi");
    let bare = r#"{"id":"rs_2","type":"reasoning","summary":[]}"#;
    let readable = r#"{"id":"rs_3","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}"#;
    let no_summary = r#"{"id":"rs_4","type":"reasoning","encrypted_content":"x"}"#;
    let kept = |blocks: Vec<AssistantBlock>, reasoning_replay: ReasoningReplay| {
        let message = says(blocks);
        let mut ask = Ask::new(vec![asks(1, &hello), assistant(4, &message), asks(9, &hello)]);
        ask.profile = Profile { reasoning_replay, ..ask.profile };
        let input = valid(&ask);
        let items = input.as_array().unwrap().iter().filter(|item| item["role"] != "user");
        items.map(|item| item.get("id").cloned().unwrap_or_default()).collect::<Vec<_>>()
    };
    let so = || text("So.", Some(MESSAGE));
    let never = ReasoningReplay::Never;
    assert_eq!(kept(vec![opaque(REASONING), so()], never), ["rs_1", "msg_1"]);
    assert_eq!(kept(vec![opaque(no_summary), so()], never), ["rs_4", "msg_1"]);
    assert_eq!(kept(vec![opaque(bare), opaque(readable), so()], never), ["msg_1"]);
    assert_eq!(kept(vec![opaque(bare), opaque(readable), so()], ReasoningReplay::Always), ["rs_3", "msg_1"]);
    assert_eq!(kept(vec![opaque(readable), so()], ReasoningReplay::WithCalls), ["msg_1"]);
    assert_eq!(kept(vec![so(), opaque(REASONING)], never), ["msg_1"]);
    assert_eq!(kept(vec![opaque(REASONING)], never), [] as [&str; 0]);
    assert_eq!(kept(vec![opaque("null"), opaque("{}"), opaque("[1]"), so()], never), ["msg_1"]);
}

#[test]
fn an_item_of_the_provider_that_waits_for_an_answer_goes_back_with_it_alone() {
    let hello = question("hi");
    let shell = r#"{"id":"sh_1","type":"shell_call","call_id":"c","action":{}}"#;
    let output = r#"{"id":"sho_1","type":"shell_call_output","call_id":"c","output":[]}"#;
    let asked = r#"{"id":"mcpr_1","type":"mcp_approval_request","name":"n"}"#;
    let message =
        says(vec![opaque(shell), opaque(output), opaque(&shell.replace("_1", "_2").replace("\"c\"", "\"d\"")), opaque(asked)]);
    let input = valid(&Ask::new(vec![asks(1, &hello), assistant(4, &message), asks(9, &hello)]));
    let ids: Vec<&Value> = input.as_array().unwrap().iter().filter_map(|item| item.get("id")).collect();
    assert_eq!(ids, ["sh_1", "sho_1"]);
}

#[test]
fn ids_that_are_there_twice_or_too_long_are_replaced_on_call_and_result() {
    let hello = question("hi");
    let long = "x".repeat(65);
    let once = says(vec![AssistantBlock::Call(call("call_a", "{\"x\":1.0}", Some(CALL)))]);
    let twice = says(vec![
        opaque(REASONING),
        AssistantBlock::Call(call("call_a", "{\"x\":1.0}", Some(CALL))),
        AssistantBlock::Call(call(&long, "{}", Some(&CALL.replace("call_a", &long).replace("fc_1", "fc_2")))),
    ]);
    let again = says(vec![opaque(REASONING), text("So.", None)]);
    let messages = vec![
        asks(1, &hello),
        assistant(4, &once),
        results(4, &once, vec![ok("1")]),
        assistant(8, &twice),
        results(8, &twice, vec![ok("2"), ok("3")]),
        assistant(12, &again),
    ];
    let input = valid(&Ask::new(messages));
    let seen: Vec<Value> = input.as_array().unwrap()[1..]
        .iter()
        .map(|item| json!([item["type"], item["id"], item["call_id"], item["output"]]))
        .collect();
    let expected = json!([
        ["function_call", "fc_1", "call_a", null],
        ["function_call_output", null, "call_a", "1"],
        ["reasoning", "rs_1", null, null],
        ["function_call", null, "call_8_0", null],
        ["function_call", null, "call_8_1", null],
        ["function_call_output", null, "call_8_0", "2"],
        ["function_call_output", null, "call_8_1", "3"],
        ["message", null, null, null],
    ]);
    assert_eq!(Value::from(seen), expected);
}

#[test]
fn a_failed_result_says_so_in_its_text_and_an_empty_one_that_it_is() {
    let hello = question("hi");
    let message = says((0..4).map(|number| AssistantBlock::Call(call(&format!("call_{number}"), "{}", None))).collect());
    let contents = vec![
        (Outcome::Error(ToolErrorKind::Timeout), vec![ContentBlock::text("too slow")]),
        (Outcome::Denied, vec![ContentBlock::text("no")]),
        (Outcome::Success, Vec::new()),
        (
            Outcome::Error(ToolErrorKind::ExecutionFailed),
            vec![ContentBlock::Image { data: PNG.to_owned(), mime_type: "image/png".to_owned() }],
        ),
    ];
    let input = valid(&Ask::new(vec![asks(1, &hello), assistant(4, &message), results(4, &message, contents)]));
    let outputs: Vec<&Value> = input.as_array().unwrap().iter().filter_map(|item| item.get("output")).collect();
    let url = format!("data:image/png;base64,{PNG}");
    let parts = json!([{"type": "input_text", "text": "ERROR:"}, {"type": "input_image", "image_url": url, "detail": "auto"}]);
    assert_eq!(outputs, [&json!("ERROR: too slow"), &json!("ERROR: no"), &json!("(no output)"), &parts]);
}

#[test]
fn images_and_documents_are_parts_of_questions_and_results_where_they_are_taken() {
    let blob = |uri: &str, mime_type: &str, data: &str| ContentBlock::Resource {
        resource: EmbeddedResource {
            uri: uri.to_owned(),
            mime_type: Some(mime_type.to_owned()),
            text: None,
            blob: Some(data.to_owned()),
        },
    };
    let content = vec![
        ContentBlock::text("What is it?"),
        ContentBlock::Image { data: PNG.to_owned(), mime_type: "image/jpeg".to_owned() },
        blob("file:///tmp/a.pdf", "application/pdf", "JVBERi0="),
        ContentBlock::Image { data: "AAAA".to_owned(), mime_type: "image/tiff".to_owned() },
        blob("file:///tmp/a.zip", "application/zip", "AAAA"),
    ];
    let ask_with = user(content.clone());
    let message = says(vec![AssistantBlock::Call(call("call_a", "{}", None))]);
    let messages = vec![asks(1, &ask_with), assistant(4, &message), results(4, &message, vec![(Outcome::Success, content)])];
    let mut ask = Ask::new(messages);
    let parts = json!([
        {"type": "input_text", "text": "What is it?"},
        {"type": "input_image", "image_url": format!("data:image/png;base64,{PNG}"), "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
        {"type": "input_text", "text": "[image, image/tiff]"},
        {"type": "input_text", "text": "[binary resource file:///tmp/a.zip]"},
    ]);
    let input = valid(&ask);
    assert_eq!((&input[0]["content"], &input[2]["output"]), (&parts, &parts));
    (ask.model.images, ask.model.documents) = (Some(false), Some(false));
    let shown = "What is it?\n[image, image/jpeg]\n[binary resource file:///tmp/a.pdf]\n[image, image/tiff]\n[binary resource file:///tmp/a.zip]";
    let input = valid(&ask);
    assert_eq!((&input[0]["content"], &input[2]["output"]), (&json!(shown), &json!(shown)));
}

#[test]
fn arguments_that_are_not_json_go_back_as_none_and_those_that_a_person_changed_as_the_model_wrote_them() {
    let hello = question("hi");
    let broken = call("call_a", "{\"x\":", Some(&CALL.replace("{\\\"x\\\":1.0}", "{\\\"x\\\":")));
    let changed = call("call_b", "{\"x\":1.0}", Some(&CALL.replace("call_a", "call_b").replace("fc_1", "fc_2")));
    let message = says(vec![AssistantBlock::Call(broken), AssistantBlock::Call(changed)]);
    let PromptMessage::Results(mut answers) = results(4, &message, vec![ok("1"), ok("2")]) else { panic!() };
    answers[1].edit = Some("{\"x\":2}");
    let messages = vec![asks(1, &hello), assistant(4, &message), PromptMessage::Results(answers)];
    let input = valid(&Ask::new(messages));
    assert_eq!(input[1], json!({"type": "function_call", "call_id": "call_a", "name": "s__f", "arguments": "{}"}));
    assert_eq!((&input[2]["id"], &input[2]["arguments"]), (&json!("fc_2"), &json!("{\"x\":1.0}")));
    assert_eq!(input[4]["output"], json!("[The user changed the arguments of this call to: {\"x\":2}]\n2"));
}

#[test]
fn a_call_without_arguments_goes_back_with_an_empty_object() {
    let hello = question("hi");
    let own = CALL.replace("{\\\"x\\\":1.0}", "");
    assert!(own.contains(r#""arguments":"""#), "{own}");
    let message = says(vec![AssistantBlock::Call(call("call_a", "", Some(&own)))]);
    let input = valid(&Ask::new(vec![asks(1, &hello), assistant(4, &message), results(4, &message, vec![ok("1")])]));
    assert_eq!(input[1], json!({"type": "function_call", "call_id": "call_a", "name": "s__f", "arguments": "{}"}));
}

#[test]
fn a_call_with_free_text_is_answered_in_kind_at_home_and_as_a_function_elsewhere() {
    let hello = question("hi");
    let own = r#"{"id":"ctc_1","type":"custom_tool_call","call_id":"call_a","name":"s__f","input":"print('hi')"}"#;
    let message = says(vec![AssistantBlock::Call(call("call_a", "print('hi')", Some(own)))]);
    let input = |message: &turnwright_core::AssistantMessage| {
        Ask::new(vec![asks(1, &hello), assistant(4, message), results(4, message, vec![ok("hi")])]).input()
    };
    let output = "[The arguments of this call were not a JSON object: \"print('hi')\"]\nhi";
    let answered = json!({"type": "custom_tool_call_output", "call_id": "call_a", "output": output});
    let home = input(&message);
    assert_eq!((&home[1], &home[2]), (&serde_json::from_str(own).unwrap(), &answered));
    let away = input(&of_another(&message));
    assert_eq!((&away[1]["type"], &away[1]["arguments"]), (&json!("function_call"), &json!("{}")));
    assert_eq!(away[2], json!({"type": "function_call_output", "call_id": "call_4_0", "output": output}));
}

#[test]
fn a_message_that_was_cut_off_goes_back_with_what_was_said() {
    let hello = question("hi");
    let cause = CutOffCause::Cancelled;
    let mut message = says(vec![opaque(REASONING), text("Half", None), AssistantBlock::Call(call("call_a", "{\"x\":", None))]);
    message.completion = Completion::CutOff(cause);
    let messages = vec![asks(1, &hello), assistant(4, &message), results(4, &message, vec![ok("It did not run.")])];
    let input = valid(&Ask::new(messages));
    let kinds: Vec<&Value> = input.as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["message", "reasoning", "message", "function_call", "function_call_output"]);
    assert_eq!(input[3]["arguments"], "{}");
}

#[test]
fn messages_that_follow_one_another_stay_apart_and_empty_ones_go() {
    let (a, b) = (question("one"), question("two"));
    let empty = says(vec![text("", None), AssistantBlock::Refusal { text: String::new() }]);
    let input = valid(&Ask::new(vec![asks(1, &a), asks(2, &b), assistant(4, &empty), asks(5, &a)]));
    let texts: Vec<&Value> = input.as_array().unwrap().iter().map(|item| &item["content"]).collect();
    assert_eq!(texts, ["one", "two", "one"]);
}

#[test]
fn names_that_the_format_does_not_take_are_mended_in_the_history() {
    let hello = question("hi");
    let mut odd = call("call_a", "{}", None);
    odd.name = "get weather/now.ü".to_owned();
    let message = says(vec![AssistantBlock::Call(odd)]);
    let input = valid(&Ask::new(vec![asks(1, &hello), assistant(4, &message), results(4, &message, vec![ok("1")])]));
    assert_eq!(input[1]["name"], "get_weather_now__");
}

#[test]
fn the_same_history_is_the_same_bytes_and_a_longer_one_begins_with_them() {
    let (hello, again) = (question("hi"), question("more"));
    let looked = says(vec![opaque(REASONING), AssistantBlock::Call(call("call_a", "{\"x\":1.0}", Some(CALL)))]);
    let said = says(vec![text("So.", Some(MESSAGE))]);
    let whole =
        [asks(1, &hello), assistant(4, &looked), results(4, &looked, vec![ok("1")]), assistant(8, &said), asks(9, &again)];
    let body = |count: usize| {
        let mut ask = Ask::new(whole.iter().take(count).cloned().collect());
        ask.settings.system_prompt = Some("Be brief.".to_owned());
        let bytes = ask.bytes();
        assert_eq!(ask.bytes(), bytes);
        String::from_utf8(bytes).unwrap()
    };
    for count in [1, 3] {
        let (shorter, longer) = (body(count), body(whole.len()));
        let end = shorter.find("],\"include\"").unwrap();
        assert!(longer.starts_with(shorter.get(..end).unwrap()), "{longer}");
    }
}

#[test]
fn ciphertext_that_cannot_be_read_any_more_is_done_without() {
    let hello = question("hi");
    let looked = says(vec![
        opaque(REASONING),
        opaque(SEARCH),
        text("So.", Some(MESSAGE)),
        AssistantBlock::Call(call("call_a", "{\"x\":1.0}", Some(CALL))),
    ]);
    let ask = Ask::new(vec![asks(1, &hello), assistant(4, &looked), results(4, &looked, vec![ok("1")])]);
    let refused = |code: Option<&str>, message: &str| ProviderFailure {
        status: Some(400),
        code: code.map(str::to_owned),
        ..ProviderFailure::new(ProviderFailureKind::InvalidRequest, message)
    };
    let mended = OpenAiResponses.mended(&ask.bytes(), &refused(Some("invalid_encrypted_content"), "no")).unwrap();
    let mended: Value = serde_json::from_slice(&mended.body).unwrap();
    assert_eq!(validate(&mended), Vec::<String>::new());
    let mut expected = ask.body();
    let input = expected["input"].as_array_mut().unwrap();
    input.remove(1);
    for item in input.iter_mut().filter(|item| item["type"] != "web_search_call") {
        item.as_object_mut().unwrap().remove("id");
    }
    assert_eq!(mended, expected);
    let text = "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.";
    assert!(OpenAiResponses.mended(&ask.bytes(), &refused(None, text)).is_some());
    assert_eq!(OpenAiResponses.mended(&ask.bytes(), &refused(Some("invalid_value"), "no")), None);
    let plain = Ask::new(vec![asks(1, &hello)]);
    assert_eq!(OpenAiResponses.mended(&plain.bytes(), &refused(Some("invalid_encrypted_content"), "no")), None);
}

#[test]
fn reasoning_that_was_refused_stays_left_out_and_newer_goes_back() {
    let (hello, more, again) = (question("hi"), question("more"), question("again"));
    let new = REASONING.replace("rs_1", "rs_2").replace("gAAAA", "gBBBB");
    let said = says(vec![opaque(REASONING), text("So.", Some(MESSAGE))]);
    let later = says(vec![opaque(&new), text("Well.", None)]);
    let messages = [asks(1, &hello), assistant(2, &said), asks(3, &more), assistant(4, &later), asks(5, &again)];
    let body_of = |count: usize| Ask::new(messages.iter().take(count).cloned().collect()).bytes();
    let code = Some("invalid_encrypted_content".to_owned());
    let refused =
        ProviderFailure { status: Some(400), code, ..ProviderFailure::new(ProviderFailureKind::InvalidRequest, "no") };
    let mended = OpenAiResponses.mended(&body_of(3), &refused).unwrap();
    assert_eq!(mended.messages, 4, "the reasoning is an item of its own");
    let later = String::from_utf8(OpenAiResponses.still_mended(&body_of(5), mended.messages).unwrap()).unwrap();
    let before = String::from_utf8(mended.body).unwrap();
    assert!(later.starts_with(before.split_once("],\"include\"").unwrap().0), "{later}");
    assert!(later.contains("gBBBB") && !later.contains("gAAAA"), "{later}");
    assert_eq!(OpenAiResponses.still_mended(&body_of(1), mended.messages), None, "there is nothing to leave out");
}

#[test]
fn the_dialect_is_known_by_its_name_and_speaks_as_openai_does() {
    let dialect = by_name("openai-responses").unwrap();
    assert_eq!(dialect.authorization("k"), ("authorization", "Bearer k".to_owned()));
    assert_eq!(dialect.models_path(), "/models");
    assert_eq!(dialect.models(br#"{"data":[{"id":"a"}]}"#), Ok(vec!["a".to_owned()]));
}
