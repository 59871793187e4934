//! Requests.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, EmbeddedResource, Finish, FinishReason, ModelRef,
    NativeBlock, Origin, Outcome, OutputFormat, OutputSchema, ReasoningEffort, Seq, ToolCall, ToolChoice, ToolDefinition,
    ToolErrorKind, ToolResult, TurnSettings, Usage, UserMessage,
};
use turnwright_dialects::openai_chat::OpenAiChat;
use turnwright_dialects::{
    Dialect, EmptyContent, HttpRequest, Kept, ModelFacts, Profile, ReasoningReplay, Target, ToolCallIds,
};

use crate::support::{origin, request, tool};

fn settings() -> TurnSettings {
    TurnSettings::new(ModelRef::new("p", "m"))
}

fn user(content: Vec<ContentBlock>) -> UserMessage {
    UserMessage { content, settings: settings() }
}

fn says(blocks: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage {
        origin: origin(),
        saw: Seq::FIRST,
        blocks,
        finish: Finish { reason: FinishReason::Stop, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    }
}

fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text { text: text.to_owned(), native: None }
}

fn call(id: Option<&str>, arguments: &str) -> ToolCall {
    ToolCall {
        name: "s__f".to_owned(),
        arguments: arguments.to_owned(),
        provider_id: id.map(str::to_owned),
        native: None,
        recovered: false,
    }
}

fn native(text: &str) -> NativeBlock {
    NativeBlock(text.to_owned())
}

fn seq(number: u64) -> Seq {
    Seq::new(number).unwrap()
}

fn result(message: u64, index: u32, call: &ToolCall, outcome: Outcome, content: Vec<ContentBlock>) -> PromptResult<'_> {
    let id = CallId { message: seq(message), index };
    let result = ToolResult { content, ..ToolResult::of(id, outcome, "") };
    PromptResult { id, call, result: ShownResult::from(result), edit: None, nudge: None }
}

struct Ask<'a> {
    settings: TurnSettings,
    messages: Vec<PromptMessage<'a>>,
    tools: Vec<Arc<ToolDefinition>>,
    allow_calls: bool,
}

impl<'a> Ask<'a> {
    fn new(messages: Vec<PromptMessage<'a>>) -> Self {
        Self { settings: settings(), messages, tools: Vec::new(), allow_calls: true }
    }

    fn prompt(&self) -> Prompt<'_> {
        Prompt {
            conversation: None,
            settings: &self.settings,
            messages: self.messages.clone(),
            tools: &self.tools,
            allow_calls: self.allow_calls,
            has_open_demand: false,
        }
    }

    fn request(&self, profile: &Profile) -> HttpRequest {
        request(&OpenAiChat, &self.prompt(), profile)
    }

    fn body(&self, profile: &Profile) -> Value {
        serde_json::from_slice(&self.request(profile).body).unwrap()
    }

    fn messages(&self, profile: &Profile) -> Value {
        self.body(profile)["messages"].clone()
    }
}

fn assistant(number: u64, message: &AssistantMessage) -> PromptMessage<'_> {
    PromptMessage::Assistant { seq: seq(number), message }
}

const COMPATIBLE: &Profile = &Profile::COMPATIBLE;

#[test]
fn a_plain_question_is_these_bytes() {
    let hello = user(vec![ContentBlock::text("Hello \"you\"")]);
    let mut ask = Ask::new(vec![PromptMessage::User { seq: Seq::FIRST, message: &hello }]);
    let body = |ask: &Ask<'_>, profile| String::from_utf8(ask.request(profile).body.into_vec()).unwrap();
    let plain = r#"{"model":"m","messages":[{"role":"user","content":"Hello \"you\""}],"stream":true,"stream_options":{"include_usage":true}}"#;
    assert_eq!(body(&ask, COMPATIBLE), plain);
    assert_eq!(ask.request(COMPATIBLE).path, "/chat/completions");
    ask.settings.system_prompt = Some("Be kind.".to_owned());
    ask.settings.temperature = Some(0.5);
    ask.settings.max_output_tokens = Some(9);
    ask.settings.reasoning_effort = Some(ReasoningEffort::Low);
    let compatible = r#"{"model":"m","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hello \"you\""}],"max_tokens":9,"temperature":0.5,"reasoning_effort":"low","stream":true,"stream_options":{"include_usage":true}}"#;
    assert_eq!(body(&ask, COMPATIBLE), compatible);
    let openai = compatible.replace("\"system\"", "\"developer\"").replace("\"max_tokens\"", "\"max_completion_tokens\"");
    assert_eq!(body(&ask, &Profile::OPENAI), openai);
}

#[test]
fn the_optional_parameter_can_be_taken_out() {
    let hello = user(vec![ContentBlock::text("Hi")]);
    let mut request = Ask::new(vec![PromptMessage::User { seq: Seq::FIRST, message: &hello }]).request(COMPATIBLE);
    assert_eq!(request.optional, ["stream_options"]);
    assert!(request.drop_optional("stream_options"));
    let expected = r#"{"model":"m","messages":[{"role":"user","content":"Hi"}],"stream":true}"#;
    assert_eq!(String::from_utf8(request.body.clone().into_vec()).unwrap(), expected);
    assert!(!request.drop_optional("stream_options"));
}

#[test]
fn tools_are_object_schemas_and_stay_when_calls_are_not_allowed() {
    let hello = user(vec![ContentBlock::text("Hi")]);
    let mut ask = Ask::new(vec![PromptMessage::User { seq: Seq::FIRST, message: &hello }]);
    ask.tools = vec![
        tool(
            "s__a",
            json!({"$schema": "x", "type": "object", "properties": {"p": {"type": ["string", "null"]}}, "required": ["p"]}),
        ),
        tool("s__b", json!({})),
    ];
    let body = ask.body(COMPATIBLE);
    let expected = json!([
        {"type": "function", "function": {"name": "s__a", "description": "Does s__a", "parameters":
            {"type": "object", "properties": {"p": {"type": ["string", "null"]}}, "required": ["p"]}}},
        {"type": "function", "function": {"name": "s__b", "description": "Does s__b", "parameters":
            {"type": "object", "properties": {}}}},
    ]);
    assert_eq!((&body["tools"], body.get("tool_choice")), (&expected, None));
    ask.allow_calls = false;
    let body = ask.body(COMPATIBLE);
    assert_eq!((&body["tools"], &body["tool_choice"]), (&expected, &json!("none")));
    ask.tools.clear();
    let body = ask.body(COMPATIBLE);
    assert_eq!((body.get("tools"), body.get("tool_choice")), (None, None));
    ask.tools = vec![tool("s__a", json!({"$schema": "x", "$id": "y", "type": "object"}))];
    let mistral = ask.body(&Profile::preset("mistral").unwrap());
    assert_eq!(mistral["tools"][0]["function"]["parameters"], json!({"type": "object", "properties": {}}));
    assert_eq!(mistral.get("stream_options"), None);
}

#[test]
fn calls_and_their_results_follow_one_another_and_failures_say_so() {
    let (a, b, c) = (call(Some("x"), "{\"a\":1}"), call(None, "not json"), call(Some("x"), ""));
    let blocks = [
        text("One."),
        AssistantBlock::Call(a.clone()),
        text(" Two."),
        AssistantBlock::Call(b.clone()),
        AssistantBlock::Call(c.clone()),
    ];
    let message = says(blocks.to_vec());
    let failed = Outcome::Error(ToolErrorKind::NotFound);
    let results = vec![
        result(5, 0, &a, Outcome::Success, vec![ContentBlock::text("ok")]),
        result(5, 1, &b, failed, vec![ContentBlock::text("no")]),
        result(5, 2, &c, Outcome::Success, Vec::new()),
    ];
    let ask = Ask::new(vec![assistant(5, &message), PromptMessage::Results(results)]);
    let function = |arguments: &str| json!({"name": "s__f", "arguments": arguments});
    let expected = json!([
        {"role": "assistant", "content": "One. Two.", "tool_calls": [
            {"id": "x", "type": "function", "function": function("{\"a\":1}")},
            {"id": "call_5_1", "type": "function", "function": function("{}")},
            {"id": "call_5_2", "type": "function", "function": function("{}")},
        ]},
        {"role": "tool", "tool_call_id": "x", "content": "ok"},
        {"role": "tool", "tool_call_id": "call_5_1", "content": "ERROR: [The arguments of this call were not a JSON object: \"not json\"]\nno"},
        {"role": "tool", "tool_call_id": "call_5_2", "content": "(no output)"},
    ]);
    assert_eq!(ask.messages(COMPATIBLE), expected);
}

#[test]
fn content_is_null_only_beside_calls() {
    let message = says(vec![AssistantBlock::Call(call(Some("x"), "{}"))]);
    let content = |empty_content| {
        let ask = Ask::new(vec![assistant(1, &message)]);
        ask.messages(&Profile { empty_content, ..Profile::COMPATIBLE })[0].get("content").cloned()
    };
    assert_eq!(content(EmptyContent::Null), Some(Value::Null));
    assert_eq!(content(EmptyContent::Omitted), None);
    assert_eq!(content(EmptyContent::Text), Some(json!("")));
}

fn ids(ids: &[Option<&str>], profile: &Profile, is_foreign: bool) -> Vec<String> {
    let mut message = says(ids.iter().map(|id| AssistantBlock::Call(call(*id, "{}"))).collect());
    if is_foreign {
        message.origin = Origin { model: "other".to_owned(), ..origin() };
    }
    let body = Ask::new(vec![assistant(5, &message)]).messages(profile);
    body[0]["tool_calls"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_providers_own_id_goes_back_to_it_alone_and_once() {
    assert_eq!(ids(&[Some("x"), Some("y"), Some("x")], COMPATIBLE, false), ["x", "y", "call_5_2"]);
    assert_eq!(ids(&[Some("x"), None], COMPATIBLE, true), ["call_5_0", "call_5_1"]);
    assert_eq!(ids(&[Some("call_5_1"), None], COMPATIBLE, false), ["call_5_0", "call_5_1"]);
    let long = "x".repeat(200);
    assert_eq!(ids(&[Some(&long), Some("")], COMPATIBLE, false), ["call_5_0", "call_5_1"]);
    let any = Profile { tool_call_ids: ToolCallIds::Any, ..Profile::COMPATIBLE };
    assert_eq!(ids(&[Some(&long)], &any, false), [long]);
}

#[test]
fn ids_of_nine_characters_are_always_the_same() {
    let mistral = Profile::preset("mistral").unwrap();
    let mapped = ids(&[Some("D681PevKs"), Some("call_abc"), None], &mistral, false);
    assert_eq!(mapped[0], "D681PevKs");
    assert!(mapped.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())), "{mapped:?}");
    assert_ne!(mapped[1], mapped[2]);
    assert_eq!(mapped, ids(&[Some("D681PevKs"), Some("call_abc"), None], &mistral, false));
}

#[test]
fn the_bytes_before_a_new_message_stay_the_same() {
    let hello = user(vec![ContentBlock::text("Hi")]);
    let (a, b) = (call(Some("x"), "{}"), call(Some("x"), "{}"));
    let (first, second) = (says(vec![AssistantBlock::Call(a.clone())]), says(vec![AssistantBlock::Call(b)]));
    let mut messages = vec![
        PromptMessage::User { seq: Seq::FIRST, message: &hello },
        assistant(2, &first),
        PromptMessage::Results(vec![result(2, 0, &a, Outcome::Success, Vec::new())]),
    ];
    let short = Ask::new(messages.clone()).request(COMPATIBLE).body;
    messages.push(assistant(5, &second));
    let long = Ask::new(messages).request(COMPATIBLE).body;
    let end_of_messages = short.windows(2).rposition(|pair| pair == b"}]").unwrap() + 1;
    assert_eq!(short[..end_of_messages], long[..end_of_messages]);
}

const PNG: &str = "iVBORw0KGgoAAAAA";

fn png() -> ContentBlock {
    ContentBlock::Image { data: PNG.to_owned(), mime_type: "image/jpeg".to_owned() }
}

#[test]
fn images_are_parts_with_the_type_that_their_bytes_say() {
    let hello = user(vec![ContentBlock::text("What is it?"), png()]);
    let ask = Ask::new(vec![PromptMessage::User { seq: Seq::FIRST, message: &hello }]);
    let url = format!("data:image/png;base64,{PNG}");
    let expected = json!([{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]);
    assert_eq!(ask.messages(COMPATIBLE)[0]["content"], expected);
    let blind = ask.messages(&Profile { images: false, ..Profile::COMPATIBLE });
    assert_eq!(blind[0]["content"], json!("What is it?\n[image, image/jpeg]"));
}

#[test]
fn images_from_tools_follow_all_tool_messages() {
    let (a, b) = (call(Some("x"), "{}"), call(Some("y"), "{}"));
    let message = says(vec![AssistantBlock::Call(a.clone()), AssistantBlock::Call(b.clone())]);
    let results = vec![
        result(5, 0, &a, Outcome::Success, vec![png(), png()]),
        result(5, 1, &b, Outcome::Success, vec![ContentBlock::text("ok")]),
    ];
    let ask = Ask::new(vec![assistant(5, &message), PromptMessage::Results(results)]);
    let image = json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}});
    let expected = [
        json!({"role": "tool", "tool_call_id": "x", "content": "[image, image/jpeg]\n[image, image/jpeg]"}),
        json!({"role": "tool", "tool_call_id": "y", "content": "ok"}),
        json!({"role": "user", "content": [{"type": "text", "text": "Images in the result of the tool call x:"}, image, image]}),
    ];
    assert_eq!(ask.messages(COMPATIBLE).as_array().unwrap()[1..], expected);
}

#[test]
fn documents_are_parts_where_they_are_taken() {
    let blob = EmbeddedResource {
        uri: "file:///tmp/a.pdf".to_owned(),
        mime_type: Some("application/pdf".to_owned()),
        text: None,
        blob: Some("JVBERi0=".to_owned()),
    };
    let hello = user(vec![ContentBlock::Resource { resource: blob }]);
    let ask = Ask::new(vec![PromptMessage::User { seq: Seq::FIRST, message: &hello }]);
    let file = json!([{"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}]);
    assert_eq!(ask.messages(&Profile::OPENAI)[0]["content"], file);
    assert_eq!(ask.messages(COMPATIBLE)[0]["content"], json!("[binary resource file:///tmp/a.pdf]"));
}

#[test]
fn reasoning_goes_back_in_its_field_to_its_origin_where_the_profile_says_so() {
    let reasoning = |native_form: &str| AssistantBlock::Reasoning { text: "why".to_owned(), native: Some(native(native_form)) };
    let details = r#"{"field":"reasoning_details","value":[{"type":"reasoning.text","text":"why","index":0}]}"#;
    let opaque = AssistantBlock::Opaque { native: native(r#"{"field":"reasoning_details","value":[{"data":"x"}]}"#) };
    let plain = says(vec![reasoning(r#"{"field":"reasoning"}"#), text("so")]);
    let called = says(vec![reasoning(r#"{"field":"reasoning_content"}"#), AssistantBlock::Call(call(Some("x"), "{}"))]);
    let detailed = says(vec![reasoning(details), opaque, text("so")]);
    let mut foreign = plain.clone();
    foreign.origin.model = "other".to_owned();
    let messages = [&plain, &called, &detailed, &foreign].map(|message| assistant(5, message));
    let ask = Ask::new(messages.to_vec());
    let replayed = |reasoning_replay| -> Vec<Value> {
        let messages = ask.messages(&Profile { reasoning_replay, ..Profile::COMPATIBLE });
        let of = |message: &Value| {
            let fields = message.as_object().unwrap().iter().filter(|(key, _)| key.starts_with("reasoning"));
            Value::Object(fields.map(|(key, value)| (key.clone(), value.clone())).collect())
        };
        messages.as_array().unwrap().iter().map(of).collect()
    };
    let none = json!({});
    let content = json!({"reasoning_content": "why"});
    let items = json!([{"type": "reasoning.text", "text": "why", "index": 0}, {"data": "x"}]);
    assert_eq!(replayed(ReasoningReplay::Never), [&none; 4].map(Clone::clone));
    assert_eq!(replayed(ReasoningReplay::WithCalls), [none.clone(), content.clone(), none.clone(), none.clone()]);
    let always = [json!({"reasoning": "why"}), content.clone(), json!({"reasoning_details": items}), none];
    assert_eq!(replayed(ReasoningReplay::Always), always);
    let required = [
        json!({"reasoning": "why", "reasoning_content": ""}),
        content,
        json!({"reasoning_details": items, "reasoning_content": ""}),
        json!({"reasoning_content": ""}),
    ];
    assert_eq!(replayed(ReasoningReplay::Required), required);
}

#[test]
fn extra_content_of_a_call_goes_back_to_its_origin() {
    let signed = ToolCall { native: Some(native(r#"{"extra_content":{"google":{"s":"t"}}}"#)), ..call(Some("x"), "{}") };
    let message = says(vec![AssistantBlock::Call(signed)]);
    let mut foreign = message.clone();
    foreign.origin.provider = "other".to_owned();
    let messages = Ask::new(vec![assistant(5, &message), assistant(6, &foreign)]).messages(COMPATIBLE);
    assert_eq!(messages[0]["tool_calls"][0]["extra_content"], json!({"google": {"s": "t"}}));
    assert_eq!(messages[1]["tool_calls"][0].get("extra_content"), None);
}

#[test]
fn a_refusal_goes_back_as_one_to_its_origin_and_as_text_elsewhere() {
    let message = says(vec![AssistantBlock::Refusal { text: "No.".to_owned() }]);
    let mut foreign = message.clone();
    foreign.origin.provider = "other".to_owned();
    let messages = Ask::new(vec![assistant(5, &message), assistant(6, &foreign)]).messages(&Profile::OPENAI);
    let expected = json!([
        {"role": "assistant", "content": null, "refusal": "No."},
        {"role": "assistant", "content": "No."},
    ]);
    assert_eq!(messages, expected);
}

#[test]
fn a_message_that_means_nothing_here_is_left_out() {
    let message = says(vec![AssistantBlock::Opaque { native: native("{}") }]);
    assert_eq!(Ask::new(vec![assistant(5, &message)]).messages(COMPATIBLE), json!([]));
}

#[test]
fn a_name_that_no_server_takes_is_mended_in_the_history() {
    let names = ["", "get weather/now.ü", "s__f"].map(|name| {
        let message = says(vec![AssistantBlock::Call(ToolCall { name: name.to_owned(), ..call(None, "{}") })]);
        Ask::new(vec![assistant(5, &message)]).messages(COMPATIBLE)[0]["tool_calls"][0]["function"]["name"].clone()
    });
    assert_eq!(names, ["unnamed", "get_weather_now__", "s__f"].map(Value::from));
}

#[test]
fn the_models_of_an_endpoint_are_read_from_every_form_of_list() {
    for body in [
        r#"{"object":"list","data":[{"id":"a","name":"A"},{"id":"b"}]}"#,
        r#"[{"id":"a"},{"id":"b"}]"#,
        r#"{"models":[{"name":"a"},{"name":"b"}]}"#,
        r#"{"models":[{"name":"x"}],"data":[{"id":"a"},{"id":"b"}]}"#,
    ] {
        assert_eq!(OpenAiChat.models(body.as_bytes()), Ok(vec!["a".to_owned(), "b".to_owned()]), "{body}");
    }
    assert!(OpenAiChat.models(b"<html>").is_err());
}

#[test]
fn each_request_of_a_conversation_begins_with_the_messages_of_the_one_before() {
    let calls = says(vec![
        text("I look."),
        AssistantBlock::Call(ToolCall {
            name: "f__read".to_owned(),
            arguments: r#"{"b": 1, "a": 2}"#.to_owned(),
            provider_id: Some("call_x".to_owned()),
            native: None,
            recovered: false,
        }),
    ]);
    let answer = says(vec![text("It says hi.")]);
    let (first, second) = (user(vec![ContentBlock::text("Read it.")]), user(vec![ContentBlock::text("Again.")]));
    let id = CallId { message: Seq::new(4).unwrap(), index: 0 };
    let result = ToolResult::of(id, Outcome::Success, "hi");
    let call = calls.calls().next().unwrap();
    let results =
        || PromptMessage::Results(vec![PromptResult { id, call, result: ShownResult::from(&result), edit: None, nudge: None }]);
    let whole = || {
        vec![
            PromptMessage::User { seq: Seq::FIRST, message: &first },
            PromptMessage::Assistant { seq: Seq::new(4).unwrap(), message: &calls },
            results(),
            PromptMessage::Assistant { seq: Seq::new(8).unwrap(), message: &answer },
            PromptMessage::User { seq: Seq::FIRST, message: &second },
        ]
    };
    let (settings, tools) = (settings(), [tool("f__read", json!({"type": "object"}))]);
    let body = |count: usize| {
        let messages = whole().into_iter().take(count).collect();
        let prompt = Prompt {
            conversation: None,
            settings: &settings,
            messages,
            tools: &tools,
            allow_calls: true,
            has_open_demand: false,
        };
        let body = request(&OpenAiChat, &prompt, &Profile::preset("openai").unwrap()).body;
        let body = String::from_utf8(body.into_vec()).unwrap();
        let value: Value = serde_json::from_str(&body).unwrap();
        let last = value["messages"].as_array().unwrap().last().unwrap().to_string();
        // What a provider can keep: everything up to the end of the last message.
        let end = body.find(&last).unwrap() + last.len();
        body.get(..end).unwrap().to_owned()
    };
    let bodies: Vec<String> = [1, 3, 5].into_iter().map(body).collect();
    for pair in bodies.windows(2) {
        assert!(pair[1].starts_with(&pair[0]), "{}\n{}", pair[0], pair[1]);
    }
}

#[test]
fn what_was_kept_changes_nothing_of_what_is_written() {
    let (first, second) = (user(vec![ContentBlock::text("Read it.")]), user(vec![ContentBlock::text("Again.")]));
    let call = call(Some("x"), "{}");
    let message = says(vec![AssistantBlock::Call(call.clone())]);
    let stored = ToolResult::of(CallId { message: seq(2), index: 0 }, Outcome::Success, "done");
    let result = PromptResult { id: stored.call, call: &call, result: ShownResult::from(&stored), edit: None, nudge: None };
    let all = [
        PromptMessage::User { seq: seq(1), message: &first },
        PromptMessage::Assistant { seq: seq(2), message: &message },
        PromptMessage::Results(vec![result]),
        PromptMessage::User { seq: seq(3), message: &second },
    ];
    let mut ask = Ask::new(Vec::new());
    ask.settings.system_prompt = Some("Be kind.".to_owned());
    let mut kept = Kept::default();
    // It grows, shrinks, and loses its beginning; its tools go and come.
    for (messages, tools) in
        [(&all[..1], 0), (&all[..2], 1), (&all, 1), (&all, 0), (&all[..1], 1), (&all[..3], 1), (&all[3..], 1)]
    {
        ask.messages = messages.to_vec();
        ask.tools = vec![tool("s__f", json!({})); tools];
        let body = |kept: &mut Kept| {
            let target = Target { origin: &origin(), profile: COMPATIBLE, model: &ModelFacts::default() };
            String::from_utf8(OpenAiChat.request(&target, &ask.prompt(), kept).body.into_vec()).unwrap()
        };
        assert_eq!(body(&mut kept), body(&mut Kept::default()));
        assert!(kept.bytes() > 0);
    }
}

#[test]
fn a_demand_for_a_call_is_met_by_the_first_calls_after_a_question() {
    let question = user(vec![ContentBlock::text("Read it.")]);
    let call = call(Some("x"), "{}");
    let message = says(vec![AssistantBlock::Call(call.clone())]);
    let ask = |tool_choice, messages| {
        let mut ask = Ask::new(messages);
        ask.settings.tool_choice = Some(tool_choice);
        ask.tools = vec![tool("s__f", json!({}))];
        ask.body(COMPATIBLE)["tool_choice"].clone()
    };
    let asked = || vec![PromptMessage::User { seq: Seq::FIRST, message: &question }];
    let answered = || {
        let results = PromptMessage::Results(vec![result(1, 0, &call, Outcome::Success, Vec::new())]);
        [asked(), vec![PromptMessage::Assistant { seq: Seq::FIRST, message: &message }, results]].concat()
    };
    assert_eq!(ask(ToolChoice::Required, asked()), "required");
    assert_eq!(ask(ToolChoice::Required, answered()), Value::Null);
    let this = ToolChoice::Tool("s__f".to_owned());
    assert_eq!(ask(this, asked()), json!({"type": "function", "function": {"name": "s__f"}}));
    assert_eq!(ask(ToolChoice::Tool("s__g".to_owned()), asked()), Value::Null);
    // Of several tools count those that are offered.
    let several = |names: &[&str]| ToolChoice::Tools(names.iter().map(|name| (*name).to_owned()).collect());
    let one = json!({"type": "function", "function": {"name": "s__f"}});
    assert_eq!(ask(several(&["s__g", "s__f", "s__f"]), asked()), one);
    assert_eq!(ask(several(&["s__g"]), asked()), Value::Null);
    assert_eq!(ask(several(&["s__f"]), answered()), Value::Null);
    assert_eq!(ask(ToolChoice::None, answered()), "none");
    assert_eq!(ask(ToolChoice::Auto, asked()), Value::Null);
}

#[test]
fn a_form_for_the_answer_is_a_response_format() {
    let question = user(vec![ContentBlock::text("Where?")]);
    let mut ask = Ask::new(vec![PromptMessage::User { seq: Seq::FIRST, message: &question }]);
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
        "additionalProperties": false});
    ask.settings.output =
        Some(OutputFormat::Schema(OutputSchema { name: "place".to_owned(), schema: schema.clone(), strict: true }));
    let expected = json!({"type": "json_schema", "json_schema": {"name": "place", "schema": schema, "strict": true}});
    for profile in [COMPATIBLE, &Profile::OPENAI] {
        assert_eq!(ask.body(profile)["response_format"], expected);
    }
}

#[test]
fn a_form_for_the_answer_is_strict_where_it_was_asked_for_and_can_be() {
    let question = user(vec![ContentBlock::text("Where?")]);
    let mut ask = Ask::new(vec![PromptMessage::User { seq: Seq::FIRST, message: &question }]);
    let referring = |closed: Value| {
        json!({"type": "object", "properties": {"city": {"$ref": "#/$defs/name"}}, "$defs": {"name": {"type": "string"}},
            "additionalProperties": closed})
    };
    let city = |kind: Value| json!({"type": "object", "properties": {"city": {"type": kind}}});
    let (mut strict, mut loose) = (city(json!(["string", "null"])), city(json!("string")));
    strict["required"] = json!(["city"]);
    (strict["additionalProperties"], loose["additionalProperties"]) = (json!(false), json!(false));
    let list = json!({"type": "array", "items": {"type": "string"}});
    let rows = [
        (referring(json!(false)), true, strict, true),
        (referring(json!(false)), false, loose.clone(), false),
        (
            referring(json!({"type": "string"})),
            true,
            {
                loose["additionalProperties"] = json!({"type": "string"});
                loose
            },
            false,
        ),
        (list.clone(), true, list, false),
    ];
    for (schema, asked, sent, is_strict) in rows {
        ask.settings.output = Some(OutputFormat::Schema(OutputSchema { name: "place".to_owned(), schema, strict: asked }));
        let expected = json!({"name": "place", "schema": sent, "strict": is_strict});
        assert_eq!(ask.body(&Profile::OPENAI)["response_format"]["json_schema"], expected);
    }
}

#[test]
fn a_schema_that_can_be_strict_is_strict_where_the_profile_says_so() {
    let hello = user(vec![]);
    let mut ask = Ask::new(vec![PromptMessage::User { seq: Seq::FIRST, message: &hello }]);
    let closed = json!({"type": "object", "properties": {"p": {"type": "string"}}, "additionalProperties": false});
    ask.tools = vec![tool("s__closed", closed.clone()), tool("s__open", json!({"type": "object"}))];
    let strict = json!({"type": "object", "properties": {"p": {"type": ["string", "null"]}}, "required": ["p"],
        "additionalProperties": false});
    let tools = &ask.body(&Profile::OPENAI)["tools"];
    assert_eq!((&tools[0]["function"]["parameters"], &tools[0]["function"]["strict"]), (&strict, &json!(true)));
    assert_eq!(tools[1]["function"].get("strict"), None);
    let tools = &ask.body(COMPATIBLE)["tools"];
    assert_eq!((&tools[0]["function"]["parameters"], tools[0]["function"].get("strict")), (&closed, None));
}

#[test]
fn one_tool_with_a_broken_schema_spoils_no_request() {
    let hello = user(vec![]);
    let mut ask = Ask::new(vec![PromptMessage::User { seq: Seq::FIRST, message: &hello }]);
    ask.tools = vec![tool("s__broken", json!({"type": "object", "properties": {"a": {"$ref": "https://x.test/a.json"}}}))];
    let parameters = &ask.body(COMPATIBLE)["tools"][0]["function"]["parameters"];
    assert_eq!(parameters, &json!({"type": "object", "properties": {}}));
}
