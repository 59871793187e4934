//! Requests.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, Finish, FinishReason, ModelRef, Origin, Outcome,
    OutputFormat, OutputSchema, ReasoningEffort, Seq, ToolCall, ToolChoice, ToolDefinition, ToolErrorKind, ToolResult,
    TurnSettings, Usage, UserMessage,
};
use turnwright_dialects::ollama::Ollama;
use turnwright_dialects::{Dialect, HttpRequest, Kept, ModelFacts, Profile, ReasoningStyle, Target, by_name};

use crate::support::tool;
use crate::validate::ollama::validate;

pub(super) fn origin(model: &str) -> Origin {
    Origin { dialect: "ollama".to_owned(), provider: "p".to_owned(), model: model.to_owned() }
}

fn user(content: Vec<ContentBlock>) -> UserMessage {
    UserMessage { content, settings: TurnSettings::new(ModelRef::new("p", "m")) }
}

fn says(text: &str) -> UserMessage {
    user(vec![ContentBlock::text(text)])
}

pub(super) fn answer(model: &str, blocks: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage {
        origin: origin(model),
        saw: Seq::FIRST,
        blocks,
        finish: Finish { reason: FinishReason::Stop, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    }
}

pub(super) fn call(name: &str, arguments: &str, id: Option<&str>) -> AssistantBlock {
    AssistantBlock::Call(ToolCall {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        provider_id: id.map(str::to_owned),
        native: None,
        recovered: false,
    })
}

pub(super) fn seq(number: u64) -> Seq {
    Seq::new(number).unwrap()
}

fn asks(number: u64, message: &UserMessage) -> PromptMessage<'_> {
    PromptMessage::User { seq: seq(number), message }
}

fn answers(number: u64, message: &AssistantMessage) -> PromptMessage<'_> {
    PromptMessage::Assistant { seq: seq(number), message }
}

fn results(number: u64, message: &AssistantMessage, all: Vec<(Outcome, Vec<ContentBlock>)>) -> PromptMessage<'_> {
    let results = message.calls().zip(all).zip(0..).map(|((call, (outcome, content)), index)| {
        let id = CallId { message: seq(number), index };
        let result = ToolResult { content, ..ToolResult::of(id, outcome, "") };
        PromptResult { id, call, result: ShownResult::from(result), edit: None, nudge: None }
    });
    PromptMessage::Results(results.collect())
}

struct Ask<'a> {
    model: &'a str,
    facts: ModelFacts,
    settings: TurnSettings,
    messages: Vec<PromptMessage<'a>>,
    tools: Vec<Arc<ToolDefinition>>,
}

impl<'a> Ask<'a> {
    fn new(messages: Vec<PromptMessage<'a>>) -> Self {
        let settings = TurnSettings::new(ModelRef::new("p", "m"));
        Self { model: "m", facts: ModelFacts::default(), settings, messages, tools: Vec::new() }
    }

    fn request(&self) -> HttpRequest {
        self.request_with(&mut Kept::default())
    }

    fn request_with(&self, kept: &mut Kept) -> HttpRequest {
        let prompt = Prompt {
            conversation: None,
            settings: &self.settings,
            messages: self.messages.clone(),
            tools: &self.tools,
            allow_calls: true,
            has_open_demand: false,
        };
        let target = Target { origin: &origin(self.model), profile: &Profile::COMPATIBLE, model: &self.facts };
        Ollama.request(&target, &prompt, kept)
    }

    /// The body, which the API takes.
    fn body(&self) -> Value {
        let body = serde_json::from_slice(&self.request().body).unwrap();
        assert_eq!(validate(&body), Vec::<String>::new(), "{body}");
        body
    }
}

#[test]
fn a_plain_question_is_these_bytes() {
    let hello = says("Hello \"you\"");
    let mut ask = Ask::new(vec![asks(1, &hello)]);
    ask.settings.system_prompt = Some("Be kind.".to_owned());
    ask.settings.temperature = Some(0.5);
    ask.settings.max_output_tokens = Some(9);
    ask.tools = vec![tool("s__f", json!({"type": "object", "properties": {"a": {"type": "string"}}}))];
    let expected = r#"{"model":"m","tools":[{"type":"function","function":{"name":"s__f","description":"Does s__f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}],"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hello \"you\""}],"options":{"num_ctx":8192,"num_predict":9,"temperature":0.5},"truncate":false,"shift":false,"stream":true}"#;
    let request = ask.request();
    assert_eq!((request.path.as_str(), String::from_utf8(request.body.into_vec()).unwrap().as_str()), ("/api/chat", expected));
    ask.body();
}

#[test]
fn an_answer_and_its_results_follow_one_another_by_name() {
    let blocks = vec![
        AssistantBlock::Reasoning { text: "Hm".to_owned(), native: None },
        AssistantBlock::Text { text: "So".to_owned(), native: None },
        call("f", "", Some("call_1")),
        call("g!", "{\"a\":1}", None),
    ];
    let hello = says("Hi");
    let picture = ContentBlock::Image { data: "iVBORw0KGgo=".to_owned(), mime_type: "image/jpeg".to_owned() };
    let messages = |from: &str| {
        let message = answer(from, blocks.clone());
        let all = vec![
            (Outcome::Success, vec![ContentBlock::text("one"), picture.clone()]),
            (Outcome::Error(ToolErrorKind::NotFound), vec![ContentBlock::text("no")]),
        ];
        Ask::new(vec![asks(1, &hello), answers(2, &message), results(2, &message, all)]).body()["messages"].clone()
    };
    let expected = json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "So", "thinking": "Hm", "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": {}}},
            {"type": "function", "function": {"name": "g_", "arguments": {"a": 1}}},
        ]},
        {"role": "tool", "content": "one", "images": ["iVBORw0KGgo="], "tool_name": "f", "tool_call_id": "call_1"},
        {"role": "tool", "content": "ERROR: no", "tool_name": "g_"},
    ]);
    assert_eq!(messages("m"), expected);
    let foreign = messages("other");
    assert_eq!(foreign[1]["thinking"], Value::Null);
    assert_eq!(foreign[1]["tool_calls"][0]["id"], Value::Null);
    assert_eq!(foreign[2]["tool_call_id"], Value::Null);
}

#[test]
fn an_answer_of_which_nothing_means_anything_here_is_left_out() {
    let hello = says("Hi");
    let message = answer("other", vec![AssistantBlock::Reasoning { text: "Hm".to_owned(), native: None }]);
    let body = Ask::new(vec![asks(1, &hello), answers(2, &message), asks(3, &hello)]).body();
    assert_eq!(body["messages"], json!([{"role": "user", "content": "Hi"}, {"role": "user", "content": "Hi"}]));
}

#[test]
fn images_are_beside_the_text_where_the_model_takes_them() {
    let image = |data: &str, mime: &str| ContentBlock::Image { data: data.to_owned(), mime_type: mime.to_owned() };
    let hello = user(vec![ContentBlock::text("What?"), image("iVBORw0KGgo=", "image/png"), image("R0lGODlh", "image/gif")]);
    let mut ask = Ask::new(vec![asks(1, &hello)]);
    let message = &ask.body()["messages"][0];
    assert_eq!(*message, json!({"role": "user", "content": "What?\n[image, image/gif]", "images": ["iVBORw0KGgo="]}));
    ask.facts.images = Some(false);
    assert_eq!(ask.body()["messages"][0]["images"], Value::Null);
}

#[test]
fn a_choice_of_tools_is_told_in_words_and_no_call_means_no_tools() {
    let hello = says("Hi");
    let mut ask = Ask::new(vec![asks(1, &hello)]);
    ask.tools = vec![tool("s__f", json!({})), tool("s__g", json!({}))];
    let mut told = |choice| {
        ask.settings.tool_choice = Some(choice);
        let body = ask.body();
        (body["tools"].is_array(), body["messages"][1]["content"].as_str().map(str::to_owned))
    };
    assert_eq!(told(ToolChoice::Auto), (true, None));
    assert_eq!(told(ToolChoice::None), (false, None));
    let any = "Call at least one of the tools before you answer.".to_owned();
    assert_eq!(told(ToolChoice::Required), (true, Some(any)));
    let one = "Call the tool `s__f` before you answer.".to_owned();
    assert_eq!(told(ToolChoice::Tool("s__f".to_owned())), (true, Some(one)));
    let several = "Call at least one of the tools `s__f`, `s__g` before you answer, and no other.".to_owned();
    assert_eq!(told(ToolChoice::Tools(vec!["s__f".to_owned(), "s__g".to_owned()])), (true, Some(several)));
}

#[test]
fn thinking_is_a_switch_or_a_level_and_can_be_taken_out() {
    let hello = says("Hi");
    let think = |model, reasoning, effort| {
        let mut ask = Ask::new(vec![asks(1, &hello)]);
        ask.model = model;
        ask.facts.reasoning = reasoning;
        ask.settings.reasoning_effort = effort;
        ask.body()["think"].clone()
    };
    assert_eq!(think("qwen3:4b", None, None), Value::Null);
    assert_eq!(think("qwen3:4b", None, Some(ReasoningEffort::High)), json!(true));
    assert_eq!(think("qwen3:4b", None, Some(ReasoningEffort::None)), json!(false));
    assert_eq!(think("gpt-oss:20b", None, Some(ReasoningEffort::Max)), json!("high"));
    assert_eq!(think("other", Some(ReasoningStyle::Effort), Some(ReasoningEffort::Medium)), json!("medium"));
    assert_eq!(think("other", Some(ReasoningStyle::Never), Some(ReasoningEffort::High)), Value::Null);
    let mut ask = Ask::new(vec![asks(1, &hello)]);
    ask.settings.reasoning_effort = Some(ReasoningEffort::High);
    let mut request = ask.request();
    assert!(request.drop_optional("think"));
    ask.settings.reasoning_effort = None;
    assert_eq!(request, ask.request());
}

#[test]
fn a_form_for_the_answer_is_the_format() {
    let hello = says("Where?");
    let mut ask = Ask::new(vec![asks(1, &hello)]);
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    ask.settings.output =
        Some(OutputFormat::Schema(OutputSchema { name: "place".to_owned(), schema: schema.clone(), strict: true }));
    assert_eq!(ask.body()["format"], schema);
    let referring =
        json!({"type": "object", "properties": {"city": {"$ref": "#/$defs/name"}}, "$defs": {"name": {"type": "string"}}});
    ask.settings.output =
        Some(OutputFormat::Schema(OutputSchema { name: "place".to_owned(), schema: referring, strict: true }));
    assert_eq!(ask.body()["format"], schema);
    // Held to it, the model could call nothing.
    ask.tools = vec![tool("s__f", json!({}))];
    let body = ask.body();
    assert_eq!((body.get("format"), body["messages"][0]["content"].to_string().contains("city")), (None, true));
}

#[test]
fn the_window_holds_prompt_and_answer_and_grows_in_doubles() {
    let long = says(&"word ".repeat(10_000));
    let picture = user(vec![ContentBlock::Image { data: "iVBORw0KGgo".repeat(100_000), mime_type: "image/png".to_owned() }]);
    let window = |message: &UserMessage, facts: ModelFacts| {
        let mut ask = Ask::new(vec![asks(1, message)]);
        ask.facts = facts;
        serde_json::from_slice::<Value>(&ask.request().body).unwrap()["options"]["num_ctx"].as_u64().unwrap()
    };
    let known = |tokens| ModelFacts { context_window: Some(tokens), ..ModelFacts::default() };
    assert_eq!(window(&says("Hi"), ModelFacts::default()), 8192);
    assert_eq!(window(&says("Hi"), known(4096)), 4096);
    assert_eq!(window(&long, ModelFacts::default()), 32_768);
    assert_eq!(window(&long, known(20_000)), 20_000);
    assert_eq!(window(&picture, ModelFacts::default()), 8192);
}

#[test]
fn the_models_are_listed_and_a_key_is_sent_to_who_needs_one() {
    let ollama = by_name("ollama").unwrap();
    assert_eq!(ollama.models_path(), "/api/tags");
    assert_eq!(ollama.authorization("k"), ("authorization", "Bearer k".to_owned()));
    let list = br#"{"models":[{"name":"qwen3:4b","model":"qwen3:4b","size":1},{"model":"x"}]}"#;
    assert_eq!(ollama.models(list).unwrap(), ["qwen3:4b", "x"]);
    assert!(ollama.models(b"{}").is_err());
}

#[test]
fn the_bytes_before_a_new_message_stay_the_same_whatever_was_kept() {
    let message = answer("m", vec![call("f", "{}", Some("call_1"))]);
    let last = answer("m", vec![AssistantBlock::Text { text: "Done".to_owned(), native: None }]);
    let (first, second) = (says("a"), says("b"));
    let stored = ToolResult::of(CallId { message: seq(2), index: 0 }, Outcome::Success, "one");
    let asked: Vec<_> = message.calls().collect();
    let result = PromptResult { id: stored.call, call: asked[0], result: ShownResult::from(&stored), edit: None, nudge: None };
    let all =
        [asks(1, &first), answers(2, &message), PromptMessage::Results(vec![result]), answers(4, &last), asks(5, &second)];
    let mut kept = Kept::default();
    let mut before = String::new();
    for count in 1..=all.len() {
        let mut ask = Ask::new(all[..count].to_vec());
        ask.settings.system_prompt = Some("Be kind.".to_owned());
        ask.tools = vec![tool("f", json!({}))];
        let bytes = |kept: &mut Kept| String::from_utf8(ask.request_with(kept).body.into_vec()).unwrap();
        let body = bytes(&mut kept);
        assert_eq!(body, bytes(&mut Kept::default()));
        let messages = body.split_once("],\"options\"").unwrap().0;
        assert!(messages.starts_with(&before), "{before}\n{messages}");
        messages.clone_into(&mut before);
    }
}
