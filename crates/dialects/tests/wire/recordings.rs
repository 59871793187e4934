//! Real provider traffic: every recorded answer decodes to what a correct client makes of it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, ModelRef, Outcome, ProviderFailure, Seq, ToolResult, TurnSettings,
};
use turnwright_dialects::anthropic::Anthropic;
use turnwright_dialects::gemini::Gemini;
use turnwright_dialects::ollama::Ollama;
use turnwright_dialects::openai_chat::OpenAiChat;
use turnwright_dialects::openai_responses::OpenAiResponses;
use turnwright_dialects::{Dialect, ErrorResponse, Offered, Profile};

use crate::support::{Decoded, decode_reply, request};

/// A folder of recordings and who reads them.
struct Row {
    api: &'static str,
    dialect: &'static dyn Dialect,
}

const ROWS: [Row; 6] = [
    Row { api: "anthropic-messages", dialect: &Anthropic },
    Row { api: "openai-chat", dialect: &OpenAiChat },
    Row { api: "openai-compat", dialect: &OpenAiChat },
    Row { api: "openai-responses", dialect: &OpenAiResponses },
    Row { api: "gemini", dialect: &Gemini },
    Row { api: "ollama", dialect: &Ollama },
];

pub(crate) struct Case {
    row: &'static Row,
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) status: u16,
    body: Vec<u8>,
    headers: Value,
    expected: Value,
    pub(crate) request: Value,
    conversation: Value,
}

fn folder() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/recordings");
    std::env::var_os("TURNWRIGHT_RECORDINGS").map_or_else(default, PathBuf::from)
}

/// The conversation that a case is a turn of, and which turn.
pub(crate) fn turns_of(api: &str) -> HashMap<String, (String, u64)> {
    let Ok(index) = std::fs::read(folder().join("index.json")) else { return HashMap::new() };
    let index: Vec<Value> = serde_json::from_slice(&index).unwrap();
    let text = |case: &Value, key: &str| case[key].as_str().unwrap().to_owned();
    let turns = index.iter().filter(|case| case["api"] == api && case["conversation"].is_string());
    turns.map(|case| (text(case, "case"), (text(case, "conversation"), case["interaction"].as_u64().unwrap()))).collect()
}

/// The recordings, or nothing where they are not there.
pub(crate) fn cases() -> Vec<Case> {
    let folder = folder();
    let mut cases = Vec::new();
    for row in &ROWS {
        let folder = folder.join(row.api);
        let Ok(entries) = std::fs::read_dir(&folder) else {
            println!("skipped: no recordings at {} (TURNWRIGHT_RECORDINGS names them)", folder.display());
            continue;
        };
        cases.extend(entries.map(|entry| case(row, &entry.unwrap().path())));
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

fn case(row: &'static Row, folder: &Path) -> Case {
    let json = |file: &str| -> Value {
        std::fs::read(folder.join(file)).map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap())
    };
    let files = ["response.sse", "response.json", "response.ndjson", "response.txt"];
    let body = files.iter().find_map(|file| std::fs::read(folder.join(file)).ok());
    Case {
        row,
        name: folder.file_name().unwrap().to_string_lossy().into_owned(),
        model: json("meta.json")["model"].as_str().unwrap_or_default().to_owned(),
        status: json("meta.json")["status"].as_u64().unwrap().try_into().unwrap(),
        body: body.unwrap_or_default(),
        headers: json("response_headers.json"),
        expected: json("expected.json"),
        request: json("request.json"),
        conversation: json("conversation.json"),
    }
}

impl Case {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(Value::as_str)
    }

    pub(crate) fn dialect(&self) -> &'static str {
        self.row.dialect.name()
    }

    /// How long the provider said that the prompt was.
    pub(crate) fn input_tokens(&self) -> Option<u64> {
        self.expected["usage"]["input"].as_u64().filter(|input| self.status == 200 && *input > 0)
    }

    /// The request in a form that no provider has.
    pub(crate) fn conversation(&self) -> Option<Value> {
        self.conversation.is_object().then(|| self.conversation.clone())
    }

    /// Whether tools were offered that the provider runs itself.
    pub(crate) fn uses_provider_tools(&self) -> bool {
        let offered = self.request["tools"].as_array().map_or(0, Vec::len);
        let own = self.conversation["tools"].as_array().map_or(0, Vec::len);
        let ran = self.expected["server_tools"].as_array().is_some_and(|ran| !ran.is_empty());
        ran || (own == 0 && offered > 0)
    }

    /// The recorded answer.
    pub(crate) fn answer(&self) -> AssistantMessage {
        self.decode(&[&self.body]).message
    }

    /// The body of an answer with a success status.
    pub(crate) fn answer_body(&self) -> Option<&[u8]> {
        (self.status == 200).then_some(&self.body)
    }

    pub(crate) fn decode(&self, chunks: &[&[u8]]) -> Decoded {
        let decoder = self.row.dialect.decoder(&Profile::COMPATIBLE, &Offered::default());
        decode_reply(decoder, self.header("content-type"), chunks)
    }
}

/// The parts of `expected.json` that we decode, from what we decoded.
fn seen(message: &AssistantMessage, failure: Option<&ProviderFailure>, expected: &Value) -> Value {
    let join = |pick: fn(&AssistantBlock) -> Option<&str>| -> Option<String> {
        let texts: Vec<&str> = message.blocks.iter().filter_map(pick).collect();
        (!texts.is_empty()).then(|| texts.concat())
    };
    let calls: Vec<Value> = message
        .calls()
        .map(|call| {
            let text = if call.arguments.is_empty() { "{}" } else { &call.arguments };
            let arguments: Option<Value> = serde_json::from_str(text).ok();
            let mut seen = serde_json::json!({"id": call.provider_id, "name": call.name, "arguments": arguments});
            if arguments.is_none() {
                seen["arguments_raw"] = Value::from(call.arguments.clone());
            }
            seen
        })
        .collect();
    let usage = &message.usage;
    let usage = (message.usage != turnwright_core::Usage::default()).then(|| {
        serde_json::json!({
            "input": usage.input_tokens, "output": usage.output_tokens,
            "cached": usage.cached_input_tokens, "reasoning": usage.reasoning_tokens,
        })
    });
    // A stream that named no reason and was done all the same has none.
    let finish = if expected["finish_reason"].is_null() { None } else { Some(message.finish.reason.as_contract()) };
    serde_json::json!({
        "kind": if failure.is_some() { "error" } else { "message" },
        "text": message.text(),
        "refusal": join(|block| if let AssistantBlock::Refusal { text } = block { Some(text) } else { None }),
        "thinking": join(|block| if let AssistantBlock::Reasoning { text, .. } = block { Some(text) } else { None }),
        "tool_calls": calls,
        "finish_reason_raw": message.finish.raw,
        "finish_reason": finish,
        "usage": usage,
        "error": failure.map(|failure| serde_json::json!({
            "status": failure.status, "code": failure.code, "message": failure.message,
        })),
    })
}

/// The same parts of `expected.json`. Our failures have one code: the provider's code, else its type. Usage of which nothing
/// is known is no usage.
fn wanted(expected: &Value) -> Value {
    let mut wanted = serde_json::Map::new();
    for key in ["kind", "text", "refusal", "thinking", "tool_calls", "finish_reason_raw", "finish_reason", "usage"] {
        wanted.insert(key.to_owned(), expected[key].clone());
    }
    if wanted["usage"].as_object().is_some_and(|usage| usage.values().all(Value::is_null)) {
        wanted.insert("usage".to_owned(), Value::Null);
    }
    let error = &expected["error"];
    let code = match (&error["code"], &error["type"]) {
        (Value::Null, kind) => kind.clone(),
        (Value::Number(number), _) => Value::from(number.to_string()),
        (code, _) => code.clone(),
    };
    let error =
        error.is_object().then(|| serde_json::json!({"status": error["status"], "code": code, "message": error["message"]}));
    wanted.insert("error".to_owned(), serde_json::json!(error));
    Value::Object(wanted)
}

#[test]
fn every_recorded_answer_decodes_to_what_is_expected() {
    for case in cases() {
        if (200..300).contains(&case.status) {
            let decoded = case.decode(&[&case.body]);
            let seen = seen(&decoded.message, decoded.failure.as_ref(), &case.expected);
            assert_eq!(seen, wanted(&case.expected), "{}", case.name);
        } else {
            let header = |name: &str| case.header(name);
            let response = ErrorResponse { status: case.status, header: &header, body: &case.body };
            let failure = case.row.dialect.failure(&response);
            let error = serde_json::json!({"status": failure.status, "code": failure.code, "message": failure.message});
            assert_eq!(error, wanted(&case.expected)["error"], "{}", case.name);
        }
    }
}

#[test]
fn every_recorded_answer_is_the_same_in_small_pieces() {
    for case in cases().iter().filter(|case| case.status == 200) {
        let whole = case.decode(&[&case.body]);
        for size in [1, 7, 4096] {
            let chunks: Vec<&[u8]> = case.body.chunks(size).collect();
            assert_eq!(case.decode(&chunks), whole, "{} in pieces of {size}", case.name);
        }
    }
}

/// No answer of this API is taken for whole where it is cut. A test for each API: all of them take minutes.
fn a_cut_is_never_a_silent_success(api: &str) {
    for case in cases_of(api).iter().filter(|case| case.status == 200) {
        let whole = case.decode(&[&case.body]);
        for cut in places(case.body.len()) {
            let decoded = case.decode(&[&case.body[..cut]]);
            // What follows a finish reason may be lost: usage, or an error that came too late.
            let is_all_there =
                decoded.message.blocks == whole.message.blocks && decoded.message.finish.raw == whole.message.finish.raw;
            assert!(decoded.failure.is_some() || is_all_there, "{} cut at {cut}: {decoded:?}", case.name);
        }
    }
}

#[test]
fn a_recorded_answer_of_anthropic_that_is_cut_is_never_a_silent_success() {
    a_cut_is_never_a_silent_success("anthropic-messages");
}

#[test]
fn a_recorded_answer_of_chat_that_is_cut_is_never_a_silent_success() {
    a_cut_is_never_a_silent_success("openai-chat");
}

#[test]
fn a_recorded_answer_of_compatible_servers_that_is_cut_is_never_a_silent_success() {
    a_cut_is_never_a_silent_success("openai-compat");
}

#[test]
fn a_recorded_answer_of_responses_that_is_cut_is_never_a_silent_success() {
    a_cut_is_never_a_silent_success("openai-responses");
}

#[test]
fn a_recorded_answer_of_gemini_that_is_cut_is_never_a_silent_success() {
    a_cut_is_never_a_silent_success("gemini");
}

#[test]
fn a_recorded_answer_of_ollama_that_is_cut_is_never_a_silent_success() {
    a_cut_is_never_a_silent_success("ollama");
}

/// The messages of a request that follow its last question: calls as values, results as text.
fn last_step(messages: &[Value]) -> Vec<Value> {
    let start = messages.iter().rposition(|message| message["role"] == "assistant").unwrap_or(messages.len());
    let step = messages.iter().skip(start).filter(|message| message["role"] != "user");
    step.map(|message| {
        let calls: Vec<Value> = message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| {
                let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
                serde_json::json!([call["id"], call["function"]["name"], arguments])
            })
            .collect();
        let is_call = message["role"] == "assistant";
        let content = if is_call { Value::Null } else { Value::from(text_of_content(&message["content"])) };
        serde_json::json!([message["role"], message["tool_call_id"], content, calls])
    })
    .collect()
}

fn text_of_content(content: &Value) -> String {
    let part = |part: &Value| part["text"].as_str().map(str::to_owned);
    content.as_str().map_or_else(|| content.as_array().into_iter().flatten().filter_map(part).collect(), str::to_owned)
}

/// What we would send after `message`, with the results that the recorded client sent.
fn encoded(message: &AssistantMessage, recorded: &[Value]) -> Vec<Value> {
    let result_of = |id: Option<&str>| {
        let sent = recorded.iter().rfind(|message| message["tool_call_id"].as_str() == id && id.is_some());
        sent.map(|message| text_of_content(&message["content"])).unwrap_or_default()
    };
    let results = message.calls().zip(0..).map(|(call, index)| {
        let id = CallId { message: Seq::FIRST, index };
        let result = ToolResult::of(id, Outcome::Success, result_of(call.provider_id.as_deref()));
        PromptResult { id, call, result: ShownResult::from(result), edit: None, nudge: None }
    });
    let settings = TurnSettings::new(ModelRef::new("p", "m"));
    let messages = vec![PromptMessage::Assistant { seq: Seq::FIRST, message }, PromptMessage::Results(results.collect())];
    let prompt =
        Prompt { conversation: None, settings: &settings, messages, tools: &[], allow_calls: true, has_open_demand: false };
    let request = request(&OpenAiChat, &prompt, &Profile::COMPATIBLE);
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    body["messages"].as_array().unwrap().clone()
}

#[test]
fn a_recorded_answer_and_its_results_are_encoded_as_the_recorded_client_did() {
    let mut cases = cases();
    cases.retain(|case| case.row.dialect.name() == OpenAiChat.name());
    let mut compared = 0;
    for before in cases.iter().filter(|case| case.expected["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty())) {
        let decoded = before.decode(&[&before.body]);
        let ids: Vec<&str> = decoded.message.calls().filter_map(|call| call.provider_id.as_deref()).collect();
        // Ids that were scrubbed are the same in conversations that have nothing to do with one another.
        if ids.iter().any(|id| id.contains("REDACTED")) {
            continue;
        }
        // The next request of a conversation is the one whose last calls have these ids.
        let after = cases.iter().find(|case| {
            let messages = case.request["messages"].as_array();
            let last = messages.and_then(|all| all.iter().rfind(|message| message["role"] == "assistant"));
            let calls = last.and_then(|message| message["tool_calls"].as_array());
            calls.is_some_and(|calls| !ids.is_empty() && calls.iter().map(|call| &call["id"]).eq(ids.iter().copied()))
        });
        let Some(after) = after else { continue };
        let recorded = after.request["messages"].as_array().unwrap();
        assert_eq!(last_step(&encoded(&decoded.message, recorded)), last_step(recorded), "{}", after.name);
        compared += 1;
    }
    assert!(cases.is_empty() || compared >= 10, "{compared} conversations were compared");
}

/// The recordings of one API.
pub(crate) fn cases_of(api: &str) -> Vec<Case> {
    let mut cases = cases();
    cases.retain(|case| case.row.api == api);
    cases
}

/// Every byte of the first 4 KiB, and 100 places beyond that are always the same.
fn places(length: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..length.min(4096)).collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..100 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        places.push(usize::try_from(state % u64::try_from(length.max(1)).unwrap()).unwrap());
    }
    places
}
