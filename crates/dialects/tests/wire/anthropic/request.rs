//! Requests.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, CutOffCause, EmbeddedResource, Finish, FinishReason,
    ModelRef, Origin, Outcome, OutputFormat, OutputSchema, ProviderFailure, ReasoningEffort, Seq, ToolCall, ToolDefinition,
    ToolErrorKind, ToolResult, TurnSettings, Usage, UserMessage,
};
use turnwright_dialects::anthropic::Anthropic;
use turnwright_dialects::{Dialect, HttpRequest, Kept, ModelFacts, Profile, ReasoningStyle, Target};

use super::{native, opaque, text};
use crate::support::tool;
use crate::validate::anthropic::validate;

const THOUGHT: &str = r#"{"type":"thinking","thinking":"Hm\u002e","signature":"s\/1"}"#;
const REDACTED: &str = r#"{"type":"redacted_thinking","data":"r"}"#;
const USE: &str = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"q":1.0}}"#;
const FOUND: &str = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#;
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub(super) fn origin(model: &str) -> Origin {
    Origin { dialect: "anthropic".to_owned(), provider: "p".to_owned(), model: model.to_owned() }
}

fn settings() -> TurnSettings {
    TurnSettings::new(ModelRef::new("p", "m"))
}

pub(super) fn user(content: Vec<ContentBlock>) -> UserMessage {
    UserMessage { content, settings: settings() }
}

pub(super) fn asks(text: &str) -> UserMessage {
    user(vec![ContentBlock::text(text)])
}

pub(super) fn says(blocks: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage {
        origin: origin("claude-sonnet-4-5"),
        saw: Seq::FIRST,
        blocks,
        finish: Finish { reason: FinishReason::Stop, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    }
}

fn ended(message: AssistantMessage, reason: FinishReason) -> AssistantMessage {
    AssistantMessage { finish: Finish { reason, raw: None }, ..message }
}

pub(super) fn thought(text: &str) -> AssistantBlock {
    AssistantBlock::Reasoning { text: text.to_owned(), native: Some(native(THOUGHT)) }
}

pub(super) fn call(id: Option<&str>, arguments: &str) -> ToolCall {
    ToolCall {
        name: "s__f".to_owned(),
        arguments: arguments.to_owned(),
        provider_id: id.map(str::to_owned),
        native: None,
        recovered: false,
    }
}

pub(super) fn seq(number: u64) -> Seq {
    Seq::new(number).unwrap()
}

pub(super) fn message(number: u64, message: &UserMessage) -> PromptMessage<'_> {
    PromptMessage::User { seq: seq(number), message }
}

pub(super) fn answer(number: u64, message: &AssistantMessage) -> PromptMessage<'_> {
    PromptMessage::Assistant { seq: seq(number), message }
}

fn result(number: u64, index: u32, call: &ToolCall, outcome: Outcome, content: Vec<ContentBlock>) -> PromptResult<'_> {
    let id = CallId { message: seq(number), index };
    let result = ToolResult { content, ..ToolResult::of(id, outcome, "") };
    PromptResult { id, call, result: ShownResult::from(result), edit: None, nudge: None }
}

pub(super) fn ok(number: u64, index: u32, call: &ToolCall) -> PromptResult<'_> {
    result(number, index, call, Outcome::Success, vec![ContentBlock::text("ok")])
}

pub(super) struct Ask<'a> {
    pub(super) model: String,
    pub(super) facts: ModelFacts,
    pub(super) settings: TurnSettings,
    pub(super) messages: Vec<PromptMessage<'a>>,
    pub(super) tools: Vec<Arc<ToolDefinition>>,
    pub(super) allow_calls: bool,
    pub(super) profile: Profile,
}

impl<'a> Ask<'a> {
    pub(super) fn new(messages: Vec<PromptMessage<'a>>) -> Self {
        let (model, facts) = ("claude-sonnet-4-5".to_owned(), ModelFacts::default());
        Self {
            model,
            facts,
            settings: settings(),
            messages,
            tools: vec![tool("s__f", json!({}))],
            allow_calls: true,
            profile: Profile::COMPATIBLE,
        }
    }

    pub(super) fn request_with(&self, kept: &mut Kept) -> HttpRequest {
        let (settings, messages, tools) = (&self.settings, self.messages.clone(), &self.tools);
        let prompt =
            Prompt { conversation: None, settings, messages, tools, allow_calls: self.allow_calls, has_open_demand: false };
        let target = Target { origin: &origin(&self.model), profile: &self.profile, model: &self.facts };
        Anthropic.request(&target, &prompt, kept)
    }

    pub(super) fn request(&self) -> HttpRequest {
        self.request_with(&mut Kept::default())
    }

    /// The body, which the API takes.
    pub(super) fn body(&self) -> Value {
        let body = serde_json::from_slice(&self.request().body).unwrap();
        assert_eq!(validate(&body), Vec::<String>::new(), "{body:#}");
        body
    }

    /// The messages as `role: blocks`, without marks.
    pub(super) fn messages(&self) -> Value {
        let mut messages = self.body()["messages"].clone();
        for message in messages.as_array_mut().unwrap() {
            for block in message["content"].as_array_mut().unwrap() {
                block.as_object_mut().unwrap().remove("cache_control");
            }
        }
        messages.as_array().unwrap().iter().map(|message| json!([message["role"], message["content"]])).collect()
    }
}

pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn a_plain_question_is_these_bytes() {
    let hello = asks("Hello \"you\"");
    let mut ask = Ask::new(vec![message(1, &hello)]);
    ask.tools.clear();
    let request = ask.request();
    let plain = r#"{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":[{"type":"text","text":"Hello \"you\"","cache_control":{"type":"ephemeral"}}]}],"max_tokens":64000,"stream":true}"#;
    assert_eq!(String::from_utf8(request.body.into_vec()).unwrap(), plain);
    assert_eq!(request.path, "/v1/messages");
    assert_eq!(request.headers, [("anthropic-version", "2023-06-01".to_owned())]);
    ask.settings.system_prompt = Some("Be kind.".to_owned());
    ask.settings.temperature = Some(1.5);
    ask.settings.max_output_tokens = Some(9);
    ask.tools = vec![tool("s__f", json!({"type": "object", "properties": {}}))];
    let full = r#"{"model":"claude-sonnet-4-5","tools":[{"name":"s__f","description":"Does s__f","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],"system":[{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"Hello \"you\"","cache_control":{"type":"ephemeral"}}]}],"max_tokens":9,"temperature":1.0,"stream":true}"#;
    assert_eq!(String::from_utf8(ask.request().body.into_vec()).unwrap(), full);
    ask.body();
}

#[test]
fn text_and_calls_keep_their_order_and_all_results_follow_in_one_message() {
    let (hello, more) = (asks("Hi"), asks("And?"));
    let (a, b) = (call(Some("toolu_1"), "{\"a\": 1.0}"), call(Some("functions.f:0"), "not json"));
    let said = says(vec![
        thought("Hm."),
        opaque(REDACTED),
        text("One. "),
        AssistantBlock::Call(a.clone()),
        text(" \n"),
        text("Two."),
        AssistantBlock::Call(b.clone()),
    ]);
    let failed = Outcome::Error(ToolErrorKind::NotFound);
    let with_note = result(2, 1, &b, failed, vec![]);
    let results = vec![result(2, 0, &a, Outcome::Success, vec![]), with_note];
    let ask = Ask::new(vec![message(1, &hello), answer(2, &said), PromptMessage::Results(results), message(9, &more)]);
    let expected = json!([
        ["user", [text_block("Hi")]],
        ["assistant", [
            serde_json::from_str::<Value>(THOUGHT).unwrap(),
            serde_json::from_str::<Value>(REDACTED).unwrap(),
            text_block("One. "),
            {"type": "tool_use", "id": "toolu_1", "name": "s__f", "input": {"a": 1.0}},
            text_block("Two."),
            {"type": "tool_use", "id": "call_2_1", "name": "s__f", "input": {}},
        ]],
        ["user", [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "(no output)"},
            {"type": "tool_result", "tool_use_id": "call_2_1", "content": "[The arguments of this call were not a JSON object: \"not json\"]", "is_error": true},
            text_block("And?"),
        ]],
    ]);
    assert_eq!(ask.messages(), expected);
    let body = String::from_utf8(ask.request().body.into_vec()).unwrap();
    assert!(body.contains(THOUGHT) && body.contains(REDACTED) && body.contains(r#""input":{"a": 1.0}"#), "{body}");
}

#[test]
fn thoughts_and_what_only_the_provider_knows_go_to_no_other_model() {
    let hello = asks("Hi");
    let a = ToolCall { native: Some(native(r#"{"caller":{"type":"direct"}}"#)), ..call(Some("toolu_1"), "") };
    let cited = r#"{"type":"text","text":"So.","citations":[{"type":"web_search_result_location","cited_text":"x"}]}"#;
    let blocks = vec![
        thought("Hm."),
        opaque(USE),
        opaque(FOUND),
        AssistantBlock::Text { text: "So.".to_owned(), native: Some(native(cited)) },
        AssistantBlock::Call(a.clone()),
    ];
    let said = says(blocks);
    let messages = vec![message(1, &hello), answer(2, &said), PromptMessage::Results(vec![ok(2, 0, &a)])];
    let mut ask = Ask::new(messages);
    let body = String::from_utf8(ask.request().body.into_vec()).unwrap();
    let own = r#"{"type":"tool_use","id":"toolu_1","name":"s__f","input":{},"caller":{"type":"direct"}}"#;
    let expected = format!("[{THOUGHT},{USE},{FOUND},{cited},{own}]");
    assert!(body.contains(&expected), "{body}");
    ask.body();
    ask.model = "claude-opus-5".to_owned();
    let expected = json!([
        text_block("So."),
        {"type": "tool_use", "id": "call_2_0", "name": "s__f", "input": {}},
    ]);
    assert_eq!(ask.messages()[1][1], expected);
}

#[test]
fn roles_alternate_whoever_speaks_twice() {
    let (one, two, empty) = (asks("One"), asks("Two"), asks(" \n"));
    let (a, b) = (says(vec![text("A")]), says(vec![text("B")]));
    let thoughts = says(vec![thought("Hm."), opaque(REDACTED)]);
    let foreign = AssistantMessage { origin: origin("other"), ..says(vec![opaque("{\"type\":\"x\"}")]) };
    let go_on = text_block("(Your answer was cut off. Go on.)");
    let begin = text_block("(The conversation begins with your answer.)");
    let table: [(Vec<PromptMessage<'_>>, Value); 6] = [
        (
            vec![message(1, &one), message(2, &two), answer(3, &a), message(4, &empty)],
            json!([
                ["user", [text_block("One"), text_block("Two")]],
                ["assistant", [text_block("A")]],
                ["user", [text_block("(an empty message)")]],
            ]),
        ),
        (
            vec![answer(1, &a), message(2, &one)],
            json!([["user", [begin]], ["assistant", [text_block("A")]], ["user", [text_block("One")]]]),
        ),
        (
            vec![message(1, &one), answer(2, &a), answer(3, &b)],
            json!([
                ["user", [text_block("One")]],
                ["assistant", [text_block("A")]],
                ["user", [go_on]],
                ["assistant", [text_block("B")]],
                ["user", [go_on]],
            ]),
        ),
        (
            vec![message(1, &one), answer(2, &foreign), message(3, &two)],
            json!([["user", [text_block("One"), text_block("Two")]]]),
        ),
        // No answer may end with a thought, or be one.
        (
            vec![message(1, &one), answer(2, &thoughts), message(3, &two)],
            json!([["user", [text_block("One"), text_block("Two")]]]),
        ),
        (vec![], json!([["user", [begin]]])),
    ];
    for (messages, expected) in table {
        assert_eq!(Ask::new(messages).messages(), expected);
    }
}

#[test]
fn an_answer_that_the_provider_paused_in_goes_back_as_it_is() {
    let (hello, more) = (asks("Hi"), asks("More"));
    let paused = ended(says(vec![thought("Hm."), text("Let me see. \n"), opaque(USE)]), FinishReason::Pause);
    let rest = says(vec![opaque(FOUND), text("So.")]);
    let mut ask = Ask::new(vec![message(1, &hello), answer(2, &paused)]);
    let body = String::from_utf8(ask.request().body.into_vec()).unwrap();
    assert!(body.contains(&format!("[{THOUGHT},{{\"type\":\"text\",\"text\":\"Let me see. \\n\"}},{USE}]}}],")), "{body}");
    ask.body();
    // What follows is the same answer.
    ask.messages = vec![message(1, &hello), answer(2, &paused), answer(3, &rest), message(4, &more)];
    let body = String::from_utf8(ask.request().body.into_vec()).unwrap();
    assert!(body.contains(&format!("\"}},{USE},{FOUND},{{\"type\":\"text\",\"text\":\"So.\"}}]}}")), "{body}");
    ask.body();
    // A person who speaks, and another model, find no use without a result, and no result without its use.
    for rest in [vec![message(4, &more)], vec![message(4, &more), answer(5, &rest), message(6, &more)]] {
        ask.messages = [vec![message(1, &hello), answer(2, &paused)], rest].concat();
        let body = String::from_utf8(ask.request().body.into_vec()).unwrap();
        assert!(!body.contains("srvtoolu_1"), "{body}");
        ask.body();
    }
    ask.messages = vec![message(1, &hello), answer(2, &paused)];
    ask.model = "claude-opus-5".to_owned();
    assert_eq!(ask.messages()[2][1], json!([text_block("(Your answer was cut off. Go on.)")]));
    // Where the answer was cut off there is nothing to go on from.
    let cause = CutOffCause::Provider(Box::new(ProviderFailure::cut_off()));
    let cut = AssistantMessage { completion: Completion::CutOff(cause), ..paused.clone() };
    let mut ask = Ask::new(vec![message(1, &hello), answer(2, &cut)]);
    ask.tools.clear();
    assert_eq!(ask.messages()[1][1].as_array().unwrap().len(), 2);
}

#[test]
fn the_end_of_a_paused_answer_has_no_white_space() {
    let hello = asks("Hi");
    for (said, expected) in [("A \n\t", "A"), ("A\\n", "A\\n"), ("A\\\n ", "A\\"), ("Ü\r", "Ü")] {
        let paused = ended(says(vec![opaque(USE), opaque(FOUND), text(said)]), FinishReason::Pause);
        let messages = Ask::new(vec![message(1, &hello), answer(2, &paused)]).messages();
        assert_eq!((messages.as_array().unwrap().len(), &messages[1][1][2]), (2, &text_block(expected)), "{said:?}");
    }
}

#[test]
fn what_the_provider_refused_is_not_shown_to_it_again() {
    let (one, two) = (asks("One"), asks("Two"));
    let refusal = AssistantBlock::Refusal { text: "Not that.".to_owned() };
    let refused = ended(says(vec![text("Well"), refusal]), FinishReason::Refusal);
    let mut ask = Ask::new(vec![message(1, &one), answer(2, &refused), message(3, &two)]);
    assert_eq!(ask.messages(), json!([["user", [text_block("One"), text_block("Two")]]]));
    ask.model = "claude-opus-5".to_owned();
    assert_eq!(ask.messages()[1], json!(["assistant", [text_block("Well"), text_block("Not that.")]]));
}

#[test]
fn models_from_before_there_were_forms_are_told_of_one_in_words() {
    let hello = user(vec![ContentBlock::text("Where?")]);
    let sent = |model: &str| {
        let mut ask = Ask::new(vec![message(1, &hello)]);
        ask.model = model.to_owned();
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": false});
        ask.settings.output = Some(OutputFormat::Schema(OutputSchema { name: "place".to_owned(), schema, strict: true }));
        let body: Value = serde_json::from_slice(&ask.request().body).unwrap();
        (body["system"].to_string().contains("city"), body.get("output_config").is_some())
    };
    for model in ["claude-sonnet-4-20250514", "claude-3-7-sonnet-latest", "claude-3-5-haiku-20241022"] {
        assert_eq!(sent(model), (true, false), "{model}");
    }
    for model in ["claude-sonnet-4-5", "claude-opus-4-1-20250805", "claude-opus-5", "another"] {
        assert_eq!(sent(model), (false, true), "{model}");
    }
}

#[test]
fn images_and_documents_go_with_people_and_with_results() {
    let image = |data: &str, mime_type: &str| ContentBlock::Image { data: data.to_owned(), mime_type: mime_type.to_owned() };
    let resource = |uri: &str, mime_type: &str, text: Option<&str>, blob: Option<&str>| ContentBlock::Resource {
        resource: EmbeddedResource {
            uri: uri.to_owned(),
            mime_type: Some(mime_type.to_owned()),
            text: text.map(str::to_owned),
            blob: blob.map(str::to_owned),
        },
    };
    let content = vec![
        ContentBlock::text(" "),
        // The bytes say what it is.
        image(PNG, "image/jpeg"),
        resource("file:///a/b.pdf", "application/pdf", None, Some("JVBERi0=")),
        image("AAAA", "image/svg+xml"),
        image("", "image/png"),
        image("no base64!", "image/png"),
        image(&"A".repeat(6_000_000), "image/png"),
        // 200 × 9000 pixels.
        image("iVBORw0KGgoAAAANSUhEUgAAAMgAACMoCAIAAAA=", "image/png"),
        resource("file:///a.txt", "text/plain", Some("words"), None),
        ContentBlock::Audio { data: "AAAA".to_owned(), mime_type: "audio/wav".to_owned() },
    ];
    let shown = [
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}),
        json!({"type": "document", "title": "b.pdf",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}),
        text_block("[image, image/svg+xml]"),
        text_block("[image, image/png]"),
        text_block("[image, image/png]"),
        text_block("[image, image/png] (left out: larger than the model takes)"),
        text_block("[image, image/png] (left out: larger than the model takes)"),
        text_block("file:///a.txt:\nwords"),
        text_block("[audio, audio/wav]"),
    ];
    let (asked, a) = (user(content.clone()), call(None, ""));
    let said = says(vec![AssistantBlock::Call(a.clone()), AssistantBlock::Call(a.clone())]);
    let failed = Outcome::Error(ToolErrorKind::ExecutionFailed);
    let results =
        vec![result(2, 0, &a, Outcome::Success, content.clone()), result(2, 1, &a, failed, vec![image(PNG, "image/png")])];
    let mut ask = Ask::new(vec![message(1, &asked), answer(2, &said), PromptMessage::Results(results)]);
    let messages = ask.messages();
    assert_eq!(messages[0][1], json!(shown));
    assert_eq!(messages[2][1][0]["content"], json!(shown));
    // The API takes nothing but text with an error.
    assert_eq!(messages[2][1][1]["content"], json!("[image, image/png]"));
    let label = text_block("Images in the result of the tool call call_2_1:");
    assert_eq!((&messages[2][1][2], &messages[2][1][3], &messages[2][1][4]), (&label, &shown[0], &Value::Null));
    ask.facts = ModelFacts { images: Some(false), documents: Some(false), ..ModelFacts::default() };
    let messages = ask.messages();
    assert_eq!(messages[0][1][0], text_block("[image, image/jpeg]"));
    assert!(messages[2][1][0]["content"].is_string());
}

#[test]
fn an_image_beside_structured_content_shows_both() {
    let (hello, a) = (asks("Hi"), call(None, ""));
    let said = says(vec![AssistantBlock::Call(a.clone())]);
    let image = ContentBlock::Image { data: PNG.to_owned(), mime_type: "image/png".to_owned() };
    let mut result = result(2, 0, &a, Outcome::Success, vec![image]);
    result.result = ToolResult { structured_content: Some(json!({"x": 1})), ..(*result.result).clone() }.into();
    result.edit = Some("{}");
    let ask = Ask::new(vec![message(1, &hello), answer(2, &said), PromptMessage::Results(vec![result])]);
    let content = ask.messages()[2][1][0]["content"].clone();
    assert_eq!(
        (&content[0], &content[1]["type"], &content[2]),
        (&text_block("[The user changed the arguments of this call to: {}]"), &json!("image"), &text_block("{\"x\":1}"))
    );
}

#[test]
fn thinking_is_asked_for_in_the_way_of_each_family_and_never_unasked() {
    let hello = asks("Hi");
    let mut ask = Ask::new(vec![message(1, &hello)]);
    ask.settings.temperature = Some(0.5);
    let table = [
        ("claude-sonnet-4-5", None, json!([null, null, 0.5, 64_000])),
        ("claude-sonnet-4-5", Some(ReasoningEffort::None), json!([{"type": "disabled"}, null, 0.5, 64_000])),
        (
            "claude-sonnet-4-5",
            Some(ReasoningEffort::Low),
            json!([{"type": "enabled", "budget_tokens": 4096}, null, null, 64_000]),
        ),
        (
            "claude-opus-4-1",
            Some(ReasoningEffort::Max),
            json!([{"type": "enabled", "budget_tokens": 24_000}, null, null, 32_000]),
        ),
        ("claude-3-5-haiku-latest", Some(ReasoningEffort::High), json!([null, null, 0.5, 8_192])),
        (
            "anthropic/claude-3.7-sonnet",
            Some(ReasoningEffort::Minimal),
            json!([{"type": "enabled", "budget_tokens": 1024}, null, null, 64_000]),
        ),
        (
            "claude-opus-4-6",
            Some(ReasoningEffort::High),
            json!([{"type": "adaptive", "display": "summarized"}, "high", null, 128_000]),
        ),
        ("claude-opus-4-6", None, json!([null, null, 0.5, 128_000])),
        ("claude-opus-5", None, json!([null, null, null, 128_000])),
        ("claude-opus-5", Some(ReasoningEffort::None), json!([{"type": "disabled"}, null, null, 128_000])),
        ("claude-fable-5", Some(ReasoningEffort::None), json!([null, "low", null, 128_000])),
        (
            "claude-fable-5",
            Some(ReasoningEffort::Xhigh),
            json!([{"type": "adaptive", "display": "summarized"}, "xhigh", null, 128_000]),
        ),
        ("claude-unheard-of", None, json!([null, null, null, 32_000])),
        ("glm-9", None, json!([null, null, 0.5, 8_192])),
        ("glm-9", Some(ReasoningEffort::Medium), json!([{"type": "enabled", "budget_tokens": 6_144}, null, null, 8_192])),
    ];
    for (model, effort, expected) in table {
        ask.model = model.to_owned();
        ask.settings.reasoning_effort = effort;
        let body = ask.body();
        let seen = json!([body["thinking"], body["output_config"]["effort"], body["temperature"], body["max_tokens"]]);
        assert_eq!(seen, expected, "{model} {effort:?}");
    }
    // What is known of the model goes before, and what the person chose has its bounds.
    ask.model = "glm-9".to_owned();
    ask.facts.max_output_tokens = Some(4_000);
    ask.facts.reasoning = Some(ReasoningStyle::Adaptive);
    ask.facts.temperature = Some(false);
    ask.settings.max_output_tokens = Some(5_000);
    let body = ask.body();
    let seen = json!([body["thinking"]["type"], body["output_config"]["effort"], body["temperature"], body["max_tokens"]]);
    assert_eq!(seen, json!(["adaptive", "medium", null, 4_000]));
    ask.facts.reasoning = Some(ReasoningStyle::Budget);
    ask.settings.max_output_tokens = Some(1_200);
    assert_eq!(ask.body().get("thinking"), None);
}

#[test]
fn thinking_does_not_begin_in_the_middle_of_an_answer() {
    let (hello, a) = (asks("Hi"), call(None, ""));
    let plain = says(vec![AssistantBlock::Call(a.clone())]);
    let thinking = says(vec![thought("Hm."), AssistantBlock::Call(a.clone())]);
    let foreign = AssistantMessage { origin: origin("other"), ..thinking.clone() };
    let thinks = |messages: Vec<PromptMessage<'_>>| {
        let mut ask = Ask::new(messages);
        ask.settings.reasoning_effort = Some(ReasoningEffort::Low);
        ask.body().get("thinking").is_some()
    };
    let results = |number| PromptMessage::Results(vec![ok(number, 0, &a)]);
    assert!(thinks(vec![message(1, &hello), answer(2, &thinking), results(2)]));
    assert!(thinks(vec![message(1, &hello), answer(2, &thinking), results(2), answer(4, &plain), results(4)]));
    assert!(!thinks(vec![message(1, &hello), answer(2, &plain), results(2)]));
    assert!(!thinks(vec![message(1, &hello), answer(2, &foreign), results(2)]));
    assert!(!thinks(vec![message(1, &hello), answer(2, &plain), results(2), answer(4, &thinking), results(4)]));
    // The next question begins another answer.
    let ended = says(vec![text("So.")]);
    let more = asks("More");
    assert!(thinks(vec![message(1, &hello), answer(2, &plain), results(2), answer(4, &ended), message(5, &more)]));
}

#[test]
fn the_form_of_an_answer_is_demanded_as_far_as_the_api_can() {
    let hello = asks("Hi");
    let mut ask = Ask::new(vec![message(1, &hello)]);
    let schema = json!({
        "$schema": "x", "type": "object", "title": "T",
        "properties": {
            "n": {"type": "integer", "minimum": 3, "description": "How many."},
            "l": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "null"}}}, "minItems": 2},
            "c": {"oneOf": [{"type": "string", "format": "uuid"}, {"type": "string", "format": "hostname"}]},
            "f": {"type": "string", "format": "phone"},
        },
        "required": ["n"],
    });
    ask.settings.output = Some(OutputFormat::Schema(OutputSchema { name: "o".to_owned(), schema, strict: true }));
    let item = json!({"type": "object", "properties": {"x": {"type": "null"}}, "additionalProperties": false});
    let expected = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "description": "How many. {minimum: 3}"},
            "l": {"type": "array", "items": item, "description": "{minItems: 2}"},
            "c": {"anyOf": [{"type": "string", "format": "uuid"}, {"type": "string", "format": "hostname"}]},
            "f": {"type": "string", "description": "{format: \"phone\"}"},
        },
        "required": ["n"],
        "additionalProperties": false,
    });
    assert_eq!(ask.body()["output_config"], json!({"format": {"type": "json_schema", "schema": expected}}));
}

#[test]
fn the_form_of_an_answer_has_its_references_in_place() {
    let hello = asks("Hi");
    let mut ask = Ask::new(vec![message(1, &hello)]);
    let schema =
        json!({"type": "object", "properties": {"city": {"$ref": "#/$defs/name"}}, "$defs": {"name": {"type": "string"}}});
    ask.settings.output = Some(OutputFormat::Schema(OutputSchema { name: "o".to_owned(), schema, strict: true }));
    let expected = json!({"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": false});
    assert_eq!(ask.body()["output_config"]["format"]["schema"], expected);
}

#[test]
fn ids_that_come_twice_are_told_apart() {
    let (hello, a, b) = (asks("Hi"), call(Some("toolu_1"), ""), call(Some(&"x".repeat(200)), ""));
    let said = says(vec![AssistantBlock::Call(a.clone()), AssistantBlock::Call(a.clone()), AssistantBlock::Call(b.clone())]);
    let results = vec![ok(2, 0, &a), ok(2, 1, &a), ok(2, 2, &b)];
    let messages = Ask::new(vec![message(1, &hello), answer(2, &said), PromptMessage::Results(results)]).messages();
    let ids = |blocks: &Value, key: &str| blocks.as_array().unwrap().iter().map(|block| block[key].clone()).collect::<Vec<_>>();
    let expected = ["toolu_1", "call_2_1", "call_2_2"];
    assert_eq!(ids(&messages[1][1], "id"), expected);
    assert_eq!(ids(&messages[2][1], "tool_use_id"), expected);
}

#[test]
fn names_that_no_api_takes_are_mended_in_a_history() {
    let hello = asks("Hi");
    let names = ["a.b/c d", "größe", "", &"x".repeat(100)];
    let calls: Vec<_> = names.iter().map(|name| ToolCall { name: (*name).to_owned(), ..call(None, "") }).collect();
    let said = says(calls.iter().cloned().map(AssistantBlock::Call).collect());
    let results = calls.iter().zip(0..).map(|(call, index)| ok(2, index, call)).collect();
    let messages = Ask::new(vec![message(1, &hello), answer(2, &said), PromptMessage::Results(results)]).messages();
    let seen: Vec<_> =
        messages[1][1].as_array().unwrap().iter().map(|block| block["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(seen, ["a_b_c_d", "gr__e", "unnamed", &"x".repeat(64)].map(str::to_owned));
}
