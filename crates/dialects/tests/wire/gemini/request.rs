//! Requests.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, EmbeddedResource, Finish, FinishReason, ModelRef,
    Origin, Outcome, OutputFormat, OutputSchema, ReasoningEffort, Seq, ToolCall, ToolChoice, ToolDefinition, ToolErrorKind,
    ToolResult, TurnSettings, Usage, UserMessage,
};
use turnwright_dialects::gemini::Gemini;
use turnwright_dialects::{Dialect, HttpRequest, Kept, ModelFacts, Profile, SchemaFields, Target, by_name};

use super::{good, native, stream, text};
use crate::support::tool;
use crate::validate::gemini::validate;

const NEW: &str = "gemini-3-flash-preview";
const OLD: &str = "gemini-2.0-flash";

pub(super) fn origin(model: &str) -> Origin {
    Origin { dialect: "gemini".to_owned(), provider: "p".to_owned(), model: model.to_owned() }
}

fn user(content: Vec<ContentBlock>) -> UserMessage {
    UserMessage { content, settings: TurnSettings::new(ModelRef::new("p", "m")) }
}

fn says(text: &str) -> UserMessage {
    user(vec![ContentBlock::text(text)])
}

pub(super) fn answer(origin: Origin, blocks: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage {
        origin,
        saw: Seq::FIRST,
        blocks,
        finish: Finish { reason: FinishReason::Stop, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    }
}

fn call(name: &str, arguments: &str, id: Option<&str>, own: Option<&str>) -> ToolCall {
    ToolCall {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        provider_id: id.map(str::to_owned),
        native: own.map(native),
        recovered: false,
    }
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

/// A result for each call of a message.
fn results(number: u64, message: &AssistantMessage, all: Vec<(Outcome, Vec<ContentBlock>)>) -> PromptMessage<'_> {
    let results = message.calls().zip(all).zip(0..).map(|((call, (outcome, content)), index)| {
        let id = CallId { message: seq(number), index };
        let result = ToolResult { content, ..ToolResult::of(id, outcome, "") };
        PromptResult { id, call, result: ShownResult::from(result), edit: None, nudge: None }
    });
    PromptMessage::Results(results.collect())
}

fn done(text: &str) -> (Outcome, Vec<ContentBlock>) {
    (Outcome::Success, vec![ContentBlock::text(text)])
}

struct Ask<'a> {
    model: &'a str,
    facts: ModelFacts,
    profile: Profile,
    settings: TurnSettings,
    messages: Vec<PromptMessage<'a>>,
    tools: Vec<Arc<ToolDefinition>>,
    allow_calls: bool,
}

impl<'a> Ask<'a> {
    fn new(model: &'a str, messages: Vec<PromptMessage<'a>>) -> Self {
        let settings = TurnSettings::new(ModelRef::new("p", model));
        let (facts, profile) = (ModelFacts::default(), Profile::COMPATIBLE);
        Self { model, facts, profile, settings, messages, tools: Vec::new(), allow_calls: true }
    }

    fn request(&self, kept: &mut Kept) -> HttpRequest {
        let prompt = Prompt {
            conversation: None,
            settings: &self.settings,
            messages: self.messages.clone(),
            tools: &self.tools,
            allow_calls: self.allow_calls,
            has_open_demand: false,
        };
        let target = Target { origin: &origin(self.model), profile: &self.profile, model: &self.facts };
        Gemini.request(&target, &prompt, kept)
    }

    /// The body, which the API takes.
    fn body(&self) -> Value {
        let body = serde_json::from_slice(&self.request(&mut Kept::default()).body).unwrap();
        assert_eq!(validate(&body, self.model), Vec::<String>::new(), "{body}");
        body
    }

    fn contents(&self) -> Value {
        self.body()["contents"].clone()
    }
}

#[test]
fn a_plain_question_is_these_bytes() {
    let hello = says("Hello \"you\"");
    let mut ask = Ask::new(OLD, vec![asks(1, &hello)]);
    let bytes = |ask: &Ask<'_>| String::from_utf8(ask.request(&mut Kept::default()).body.into_vec()).unwrap();
    assert_eq!(bytes(&ask), r#"{"contents":[{"role":"user","parts":[{"text":"Hello \"you\""}]}],"generationConfig":{}}"#);
    ask.settings.system_prompt = Some("Be kind.".to_owned());
    ask.settings.temperature = Some(0.5);
    ask.settings.max_output_tokens = Some(9);
    ask.tools = vec![tool("s__f", json!({"type": "object", "$schema": "x", "properties": {"a": {"type": "string"}}}))];
    let expected = r#"{"tools":[{"functionDeclarations":[{"name":"s__f","description":"Does s__f","parametersJsonSchema":{"type":"object","properties":{"a":{"type":"string"}}}}]}],"systemInstruction":{"parts":[{"text":"Be kind."}]},"contents":[{"role":"user","parts":[{"text":"Hello \"you\""}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},"generationConfig":{"temperature":0.5,"maxOutputTokens":9}}"#;
    assert_eq!(bytes(&ask), expected);
    ask.facts.temperature = Some(false);
    assert_eq!(ask.body()["generationConfig"], json!({"maxOutputTokens": 9}));
}

#[test]
fn the_model_stands_in_the_path() {
    let hello = says("Hi");
    for (model, path) in [
        ("gemini-2.5-pro", "/models/gemini-2.5-pro:streamGenerateContent?alt=sse"),
        ("models/gemini-2.5-pro", "/models/gemini-2.5-pro:streamGenerateContent?alt=sse"),
        ("tunedModels/mine", "/tunedModels/mine:streamGenerateContent?alt=sse"),
        ("a b?c#d:e", "/models/a%20b%3Fc%23d%3Ae:streamGenerateContent?alt=sse"),
    ] {
        assert_eq!(Ask::new(model, vec![asks(1, &hello)]).request(&mut Kept::default()).path, path);
    }
}

#[test]
fn the_key_goes_in_a_header_and_the_models_are_those_that_answer() {
    let gemini = by_name("gemini").unwrap();
    assert_eq!(gemini.authorization("k"), ("x-goog-api-key", "k".to_owned()));
    let list = br#"{"models":[{"name":"models/gemini-2.5-pro","supportedGenerationMethods":["generateContent","countTokens"]},{"name":"models/embedding-001","supportedGenerationMethods":["embedContent"]},{"name":"other"}],"nextPageToken":"x"}"#;
    assert_eq!(gemini.models(list).unwrap(), ["gemini-2.5-pro", "other"]);
    assert!(gemini.models(b"[]").is_err());
}

#[test]
fn every_tool_choice_has_its_mode() {
    let hello = says("Hi");
    let mut ask = Ask::new(OLD, vec![asks(1, &hello)]);
    ask.tools = vec![tool("s__f", json!({})), tool("s__g", json!({}))];
    let both = vec!["s__f".to_owned(), "s__g".to_owned()];
    let table = [
        (ToolChoice::Tools(both), json!({"mode": "ANY", "allowedFunctionNames": ["s__f", "s__g"]})),
        (ToolChoice::Auto, json!({"mode": "AUTO"})),
        (ToolChoice::Required, json!({"mode": "ANY"})),
        (ToolChoice::None, json!({"mode": "NONE"})),
        (ToolChoice::Tool("s__f".to_owned()), json!({"mode": "ANY", "allowedFunctionNames": ["s__f"]})),
    ];
    for (choice, config) in table {
        ask.settings.tool_choice = Some(choice);
        assert_eq!(ask.body()["toolConfig"]["functionCallingConfig"], config);
    }
    ask.allow_calls = false;
    assert_eq!(ask.body()["toolConfig"]["functionCallingConfig"], json!({"mode": "NONE"}));
    ask.tools.clear();
    assert_eq!(ask.body()["toolConfig"], Value::Null);
}

#[test]
fn thinking_is_a_budget_or_a_level_as_the_model_takes_it() {
    let hello = says("Hi");
    let config = |model: &str, effort| {
        let mut ask = Ask::new(model, vec![asks(1, &hello)]);
        ask.settings.reasoning_effort = effort;
        ask.body()["generationConfig"]["thinkingConfig"].clone()
    };
    assert_eq!(config(OLD, Some(ReasoningEffort::High)), Value::Null);
    assert_eq!(config("gemini-2.5-flash", None), json!({"includeThoughts": true}));
    let off = json!({"includeThoughts": false, "thinkingBudget": 0});
    assert_eq!(config("gemini-2.5-flash", Some(ReasoningEffort::None)), off);
    let some = json!({"includeThoughts": true, "thinkingBudget": 8192});
    assert_eq!(config("gemini-2.5-pro", Some(ReasoningEffort::Medium)), some);
    let level = json!({"includeThoughts": true, "thinkingLevel": "LOW"});
    assert_eq!(config(NEW, Some(ReasoningEffort::Low)), level);
}

#[test]
fn refused_signatures_are_left_out_and_the_first_call_of_a_step_has_the_word_for_none() {
    let refused = |message: &str| {
        let failure = turnwright_core::ProviderFailure::new(turnwright_core::ProviderFailureKind::InvalidRequest, message);
        turnwright_core::ProviderFailure { status: Some(400), ..failure }
    };
    let body = json!({"contents": [
        {"role": "user", "parts": [{"text": "thoughtSignature"}]},
        {"role": "model", "parts": [
            {"text": "t", "thought": true, "thoughtSignature": "a"},
            {"functionCall": {"name": "f", "args": {"thoughtSignature": 1}}, "thoughtSignature": "b"},
            {"functionCall": {"name": "g"}},
        ]},
        {"role": "model", "parts": [{"text": "x", "thoughtSignature": "c"}]},
    ], "generationConfig": {}});
    let signed = "skip_thought_signature_validator";
    let mut expected = body.clone();
    expected["contents"][1]["parts"] = json!([
        {"text": "t", "thought": true},
        {"functionCall": {"name": "f", "args": {"thoughtSignature": 1}}, "thoughtSignature": signed},
        {"functionCall": {"name": "g"}},
    ]);
    let still: Value = serde_json::from_slice(&Gemini.still_mended(body.to_string().as_bytes(), 2).unwrap()).unwrap();
    assert_eq!(still, expected);
    expected["contents"][2]["parts"] = json!([{"text": "x"}]);
    for message in ["Corrupted thought signature.", "Thought signature is not valid", "missing a thought_signature in x"] {
        let mended = Gemini.mended(body.to_string().as_bytes(), &refused(message)).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&mended.body).unwrap(), expected, "{message}");
        assert_eq!((mended.messages, Gemini.mended(&mended.body, &refused(message))), (3, None));
    }
    assert_eq!(Gemini.mended(body.to_string().as_bytes(), &refused("no")), None);
}

#[test]
fn no_limit_is_above_what_the_model_can_and_what_it_may_refuse_can_be_taken_out() {
    let hello = says("Hi");
    let mut ask = Ask::new(NEW, vec![asks(1, &hello)]);
    ask.settings.max_output_tokens = Some(200_000);
    ask.settings.reasoning_effort = Some(ReasoningEffort::Medium);
    assert_eq!(ask.body()["generationConfig"]["maxOutputTokens"], 200_000);
    ask.facts.max_output_tokens = Some(65_536);
    assert_eq!(ask.body()["generationConfig"]["maxOutputTokens"], 65_536);
    let mut request = ask.request(&mut Kept::default());
    for name in request.optional.clone() {
        assert!(request.drop_optional(name), "{name}");
    }
    let left: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(left["generationConfig"], json!({"thinkingConfig": {"includeThoughts": true}}));
}

#[test]
fn a_form_for_the_answer_is_a_response_schema() {
    let hello = says("Where?");
    let mut ask = Ask::new(OLD, vec![asks(1, &hello)]);
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    ask.settings.output =
        Some(OutputFormat::Schema(OutputSchema { name: "place".to_owned(), schema: schema.clone(), strict: true }));
    let expected = json!({"responseMimeType": "application/json", "responseJsonSchema": schema});
    assert_eq!(ask.body()["generationConfig"], expected);
}

#[test]
fn older_models_are_told_of_a_form_in_words_while_tools_are_offered() {
    let hello = says("Where?");
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let sent = |model: &str, has_tools: bool| {
        let mut ask = Ask::new(model, vec![asks(1, &hello)]);
        ask.settings.output =
            Some(OutputFormat::Schema(OutputSchema { name: "place".to_owned(), schema: schema.clone(), strict: true }));
        if has_tools {
            ask.tools = vec![tool("s__f", json!({"type": "object", "properties": {}}))];
        }
        let body = ask.body();
        let is_told = body["systemInstruction"].to_string().contains("city");
        (is_told, body["generationConfig"].get("responseMimeType").is_some())
    };
    assert_eq!(sent("gemini-2.5-flash", true), (true, false));
    assert_eq!(sent("gemini-2.5-flash", false), (false, true));
    assert_eq!(sent(NEW, true), (false, true));
}

#[test]
fn a_form_for_the_answer_is_compiled_and_need_not_be_an_object() {
    let hello = says("Where?");
    let mut ask = Ask::new(OLD, vec![asks(1, &hello)]);
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": {"city": {"$ref": "#/$defs/name"}}, "$defs": {"name": {"type": "string"}},
    });
    let list = json!({"type": "array", "items": {"type": "string"}});
    let word = json!({"enum": ["yes", "no"]});
    let compiled = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    for (schema, expected) in [(schema, &compiled), (list.clone(), &list), (word.clone(), &word)] {
        ask.settings.output = Some(OutputFormat::Schema(OutputSchema { name: "place".to_owned(), schema, strict: true }));
        assert_eq!(&ask.body()["generationConfig"]["responseJsonSchema"], expected);
    }
}

#[test]
fn schemas_are_sent_in_the_older_fields_where_the_profile_says_so() {
    let hello = says("Where?");
    let mut ask = Ask::new(OLD, vec![asks(1, &hello)]);
    ask.profile.schema_fields = SchemaFields::OpenApi;
    let schema = json!({"type": "object", "properties": {"city": {"type": ["string", "null"]}}, "additionalProperties": false});
    ask.tools = vec![tool("s__f", schema.clone()), tool("s__none", json!({"type": "object"}))];
    ask.settings.output = Some(OutputFormat::Schema(OutputSchema { name: "place".to_owned(), schema, strict: true }));
    let body = ask.body();
    let lowered = json!({"type": "object", "properties": {"city": {"type": "string", "nullable": true}}});
    let declarations = &body["tools"][0]["functionDeclarations"];
    assert_eq!((&declarations[0]["parameters"], declarations[0].get("parametersJsonSchema")), (&lowered, None));
    assert_eq!((declarations[1].get("parameters"), declarations[1].get("parametersJsonSchema")), (None, None));
    let expected = json!({"responseMimeType": "application/json", "responseSchema": lowered});
    ask.tools.clear();
    assert_eq!(ask.body()["generationConfig"], expected);
}

#[test]
fn an_answer_and_its_results_go_back_as_the_parts_that_came() {
    let signed = r#"{"functionCall":{"id":"fc1","name":"f","args":{"a": 1}},"thoughtSignature":"c2ln"}"#;
    let alone = r#"{"text":"","thoughtSignature":"bGFzdA=="}"#;
    let thought = r#"{"text":"Plan.","thought":true}"#;
    let code = r#"{"executableCode":{"language":"PYTHON","code":"1"}}"#;
    let plain = r#"{"functionCall":{"id":"fc2","name":"f","args":{"a":2}}}"#;
    let parts = [thought, r#"{"text":"Checking."}"#, code, signed, r#"{"text":"And:"}"#, plain, alone];
    let mut message = good(&stream(&parts, "STOP")).message;
    message.origin = origin(NEW);
    let hello = says("Hi");
    let failed = (Outcome::Error(ToolErrorKind::ExecutionFailed), vec![ContentBlock::text("no")]);
    let ask = Ask::new(NEW, vec![asks(1, &hello), answers(2, &message), results(2, &message, vec![done("one"), failed])]);
    let parts = json!([
        {"text": "Checking."},
        serde_json::from_str::<Value>(code).unwrap(),
        serde_json::from_str::<Value>(signed).unwrap(),
        {"text": "And:"},
        serde_json::from_str::<Value>(plain).unwrap(),
        serde_json::from_str::<Value>(alone).unwrap(),
    ]);
    let responses = json!([
        {"functionResponse": {"id": "fc1", "name": "f", "response": {"output": "one"}}},
        {"functionResponse": {"id": "fc2", "name": "f", "response": {"error": "no"}}},
    ]);
    let expected = json!([
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": parts},
        {"role": "user", "parts": responses},
    ]);
    assert_eq!(ask.contents(), expected);
    let body = String::from_utf8(ask.request(&mut Kept::default()).body.into_vec()).unwrap();
    for verbatim in [signed, alone, code] {
        assert!(body.contains(verbatim), "{verbatim}");
    }
}

#[test]
fn another_models_blocks_are_left_out_and_its_calls_are_marked_as_unsigned() {
    let own = r#"{"functionCall":{"id":"fc1","name":"f","args":{}},"thoughtSignature":"c2ln"}"#;
    let blocks = || {
        vec![
            AssistantBlock::Reasoning { text: "Hm".to_owned(), native: Some(native(r#"{"signature":"x"}"#)) },
            AssistantBlock::Text { text: "So".to_owned(), native: Some(native(r#"{"text":"So","thoughtSignature":"c2ln"}"#)) },
            AssistantBlock::Call(call("f", "", Some("toolu_1"), Some(own))),
            AssistantBlock::Call(call("g", "not json", None, None)),
            AssistantBlock::Opaque { native: native(r#"{"type":"redacted_thinking","data":"x"}"#) },
            AssistantBlock::Refusal { text: "No.".to_owned() },
        ]
    };
    let hello = says("Hi");
    let contents = |model: &str| {
        let message = answer(origin("other"), blocks());
        let all = vec![asks(1, &hello), answers(2, &message), results(2, &message, vec![done("1"), done("2")])];
        Ask::new(model, all).contents()
    };
    let new = contents(NEW);
    let parts = json!([
        {"text": "So"},
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"},
        {"functionCall": {"name": "g", "args": {}}},
        {"text": "No."},
    ]);
    assert_eq!(new[1]["parts"], parts);
    let responses = json!([
        {"functionResponse": {"name": "f", "response": {"output": "1"}}},
        {"functionResponse": {"name": "g", "response": {"output": "[The arguments of this call were not a JSON object: \"not json\"]\n2"}}},
    ]);
    assert_eq!(new[2]["parts"], responses);
    let old = contents(OLD);
    assert_eq!(old[1]["parts"][1], json!({"functionCall": {"name": "f", "args": {}}}));
}

#[test]
fn going_away_and_coming_back_restores_what_came() {
    let signed = r#"{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}"#;
    let message = answer(origin(NEW), vec![AssistantBlock::Call(call("f", "", None, Some(signed)))]);
    let hello = says("Hi");
    let body = |model: &str| {
        let all = vec![asks(1, &hello), answers(2, &message), results(2, &message, vec![done("1")])];
        String::from_utf8(Ask::new(model, all).request(&mut Kept::default()).body.into_vec()).unwrap()
    };
    assert!(body(NEW).contains(signed));
    assert!(!body("gemini-3-pro-preview").contains("c2ln"));
    assert_eq!(body(NEW), body(NEW));
}

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

fn image(declared: &str, data: &str) -> ContentBlock {
    ContentBlock::Image { data: data.to_owned(), mime_type: declared.to_owned() }
}

fn pdf() -> ContentBlock {
    ContentBlock::Resource {
        resource: EmbeddedResource {
            uri: "file:///tmp/a.pdf".to_owned(),
            mime_type: Some("application/pdf".to_owned()),
            text: None,
            blob: Some("JVBERi0=".to_owned()),
        },
    }
}

#[test]
fn images_documents_and_sounds_are_inline_where_the_model_takes_them() {
    let audio = ContentBlock::Audio { data: "SUQzBAAA".to_owned(), mime_type: "audio/mp3".to_owned() };
    let hello = user(vec![ContentBlock::text("What?"), image("image/jpeg", PNG), pdf(), audio, image("image/gif", "R0lGODlh")]);
    let mut ask = Ask::new(OLD, vec![asks(1, &hello)]);
    let parts = json!([
        {"text": "What?"},
        {"inlineData": {"mimeType": "image/png", "data": PNG}},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}},
        {"inlineData": {"mimeType": "audio/mp3", "data": "SUQzBAAA"}},
        {"text": "[image, image/gif]"},
    ]);
    assert_eq!(ask.contents()[0]["parts"], parts);
    ask.facts = ModelFacts { images: Some(false), documents: Some(false), ..ModelFacts::default() };
    let parts = ask.contents()[0]["parts"].clone();
    assert_eq!(parts[1], json!({"text": "[image, image/jpeg]"}));
    assert_eq!(parts[2], json!({"text": "[binary resource file:///tmp/a.pdf]"}));
}

#[test]
fn images_from_tools_are_in_their_response_or_follow_all_responses() {
    let message = answer(
        origin("other"),
        vec![AssistantBlock::Call(call("f", "{}", None, None)), AssistantBlock::Call(call("g", "{}", None, None))],
    );
    let (hello, more) = (says("Hi"), says("And?"));
    let contents = |model: &str| {
        let picture = (Outcome::Success, vec![ContentBlock::text("a picture"), image("image/png", PNG)]);
        let results = results(2, &message, vec![picture, done("2")]);
        Ask::new(model, vec![asks(1, &hello), answers(2, &message), results, asks(3, &more)]).contents()
    };
    let data = json!({"inlineData": {"mimeType": "image/png", "data": PNG}});
    let new = contents(NEW);
    assert_eq!(new[2]["parts"][0]["functionResponse"]["parts"], json!([data]));
    assert_eq!(new[3], json!({"role": "user", "parts": [{"text": "And?"}]}));
    let old = contents(OLD);
    assert_eq!(old[2]["parts"][0]["functionResponse"]["parts"], Value::Null);
    let later = json!([{"text": "What the tool `f` returned beside its text:"}, data, {"text": "And?"}]);
    assert_eq!(old[3], json!({"role": "user", "parts": later}));
}

#[test]
fn roles_alternate_and_the_user_speaks_first_and_last() {
    let (a, b, nothing) = (says("a"), says("b"), user(vec![ContentBlock::text("")]));
    let first = answer(origin(OLD), vec![text("one")]);
    let second = answer(origin(OLD), vec![text("two")]);
    let thought = answer(origin("other"), vec![AssistantBlock::Opaque { native: native("{\"x\":1}") }]);
    let roles = |messages| {
        let contents = Ask::new(OLD, messages).contents();
        let line = |content: &Value| {
            let parts = content["parts"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap().to_owned());
            format!("{}: {}", content["role"].as_str().unwrap(), parts.collect::<Vec<_>>().join(" | "))
        };
        contents.as_array().unwrap().iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(roles(vec![asks(1, &a), asks(2, &b)]), ["user: a | b"]);
    assert_eq!(roles(vec![asks(1, &nothing)]), ["user: (empty message)"]);
    assert_eq!(roles(vec![asks(1, &a), answers(2, &thought), asks(3, &b)]), ["user: a | b"]);
    let opening = "user: (The beginning of the conversation is not shown.)";
    assert_eq!(roles(Vec::new()), [opening]);
    let merged = roles(vec![answers(1, &first), answers(2, &second), asks(3, &b)]);
    assert_eq!(merged, [opening, "model: one | two", "user: b"]);
    assert_eq!(roles(vec![asks(1, &a), answers(2, &first)]), ["user: a", "model: one", "user: (Go on.)"]);
}

#[test]
fn names_that_the_api_does_not_take_are_mended_in_calls_and_in_their_responses() {
    let names = ["weather.get/now", "wetter für alle", &"x".repeat(200), "1st", "", "default_api:f"];
    let calls = names.iter().map(|name| AssistantBlock::Call(call(name, "{}", Some(&"i".repeat(200)), None)));
    let message = answer(origin("other"), calls.collect());
    let hello = says("Hi");
    let all = names.iter().map(|_| done("x")).collect();
    let contents = Ask::new(OLD, vec![asks(1, &hello), answers(2, &message), results(2, &message, all)]).contents();
    let called: Vec<&str> =
        contents[1]["parts"].as_array().unwrap().iter().map(|part| part["functionCall"]["name"].as_str().unwrap()).collect();
    assert_eq!(called, ["weather.get_now", "wetter_f_r_alle", &"x".repeat(63), "_1st", "_", "default_api:f"]);
}

#[test]
fn an_answer_that_is_to_be_continued_is_asked_for_again_with_its_token() {
    let message =
        answer(origin(NEW), vec![text("Once"), AssistantBlock::Opaque { native: native(r#"{"continuationToken":"t"}"#) }]);
    let rest = answer(origin(NEW), vec![text(" upon")]);
    let (hello, more) = (says("Hi"), says("More"));
    let body =
        |messages| -> Value { serde_json::from_slice(&Ask::new(NEW, messages).request(&mut Kept::default()).body).unwrap() };
    let asked = json!([{"role": "user", "parts": [{"text": "Hi"}]}]);
    let again = body(vec![asks(1, &hello), answers(2, &message)]);
    assert_eq!((&again["contents"], &again["continuationToken"]), (&asked, &json!("t")));
    let later = body(vec![asks(1, &hello), answers(2, &message), answers(3, &rest), asks(4, &more)]);
    assert_eq!(later["continuationToken"], Value::Null);
    assert_eq!(later["contents"][1], json!({"role": "model", "parts": [{"text": "Once"}, {"text": " upon"}]}));
}

#[test]
fn the_bytes_before_a_new_message_stay_the_same_whatever_was_kept() {
    let signed = r#"{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}"#;
    let message = answer(origin(NEW), vec![text("So"), AssistantBlock::Call(call("f", "", None, Some(signed)))]);
    let last = answer(origin(NEW), vec![text("Done")]);
    let (first, second, third) = (says("a"), says("b"), says("c"));
    let stored = ToolResult::of(CallId { message: seq(3), index: 0 }, Outcome::Success, "one");
    let calls: Vec<_> = message.calls().collect();
    let result = PromptResult { id: stored.call, call: calls[0], result: ShownResult::from(&stored), edit: None, nudge: None };
    let all = [
        asks(1, &first),
        asks(2, &second),
        answers(3, &message),
        PromptMessage::Results(vec![result]),
        answers(5, &last),
        asks(6, &third),
    ];
    let mut kept = Kept::default();
    let mut before = String::new();
    for count in 1..=all.len() {
        let mut ask = Ask::new(NEW, all[..count].to_vec());
        ask.tools = vec![tool("f", json!({}))];
        let bytes = |kept: &mut Kept| String::from_utf8(ask.request(kept).body.into_vec()).unwrap();
        let body = bytes(&mut kept);
        assert_eq!(body, bytes(&mut Kept::default()));
        let contents = body.split_once("],\"toolConfig\"").unwrap().0;
        // What closes the last content may be followed by more of it.
        let shared = before.trim_end_matches("]}").trim_end_matches(",{\"role\":\"user\",\"parts\":[{\"text\":\"(Go on.)\"}");
        let shared = shared.trim_end_matches("]}");
        assert!(contents.starts_with(shared), "{shared}\n{contents}");
        contents.clone_into(&mut before);
    }
}
