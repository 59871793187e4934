//! How each API writes its answers, and its own errors as its makers document them.

use serde_json::{Value, json};

use super::{Failure, Row, fails, row};

/// One API.
pub(crate) struct Api {
    pub(crate) dialect: &'static str,
    /// The header that names a request, where the API has one.
    pub(crate) request_id: Option<&'static str>,
    framing: Framing,
    /// The beginning of an answer with this text.
    pub(crate) says: fn(&str) -> Vec<Value>,
    /// The end of such an answer, which may repeat its text.
    pub(crate) ends: fn(&str) -> Vec<Value>,
    /// A whole answer that asks for these calls of `command__run`.
    pub(crate) calls: fn(&[Call]) -> Vec<Value>,
    /// The errors that are the API's own.
    pub(crate) refusals: fn(&Self) -> Vec<Row>,
}

/// A call that an answer asks for.
pub(crate) struct Call {
    pub(crate) index: u64,
    pub(crate) id: &'static str,
    pub(crate) arguments: String,
}

/// How events are written.
enum Framing {
    /// `data:` alone.
    Data,
    /// With `event:`, which says the type once more.
    NamedEvents,
    /// A line each.
    Lines,
}

impl Api {
    /// A whole response.
    pub(crate) fn response(&self, status: &str, content_type: &str, headers: &str, body: &str) -> String {
        let (length, id) = (body.len(), self.id());
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n{id}{headers}\r\n{body}"
        )
    }

    /// A good answer with this text.
    pub(crate) fn good(&self, text: &str) -> String {
        self.stream([(self.says)(text), (self.ends)(text)].concat())
    }

    /// A streamed answer of these events, which ends with its connection.
    pub(crate) fn stream(&self, events: Vec<Value>) -> String {
        let content_type = match self.framing {
            Framing::Data | Framing::NamedEvents => "text/event-stream",
            Framing::Lines => "application/x-ndjson",
        };
        let id = self.id();
        let mut text = format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n{id}\r\n");
        for event in events {
            let framed = match self.framing {
                Framing::Data => format!("data: {event}\n\n"),
                Framing::NamedEvents => format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()),
                Framing::Lines => format!("{event}\n"),
            };
            text.push_str(&framed);
        }
        text
    }

    fn id(&self) -> String {
        self.request_id.map(|name| format!("{name}: req_7\r\n")).unwrap_or_default()
    }

    fn refusal(&self, status: &str, body: &Value) -> String {
        self.response(status, "application/json", "", &body.to_string())
    }

    /// A refusal that asks to wait for longer than anybody waits.
    fn not_now(&self, body: &Value) -> String {
        self.response("429 Too Many Requests", "application/json", "retry-after: 500\r\n", &body.to_string())
    }

    /// The answer that begins with `Half` and then fails so.
    fn fails_after_half(&self, event: Value) -> String {
        self.stream([(self.says)("Half"), vec![event]].concat())
    }
}

const WAIT: &str = "it asks to wait 500 s";
const CREDIT: &str = "has no credit or quota left";
const KEY: &str = "[secret]";
const TOO_LONG: &str = "there is nothing before the newest message that could be put into a summary";

fn after_half(failure: Failure) -> Failure {
    Failure { said: "Half", ..failure }
}

fn overloaded(status: u16) -> Failure {
    fails("overloaded", status, "is overloaded", "--retry")
}

fn limited(status: u16, says: &str) -> Failure {
    fails("rate_limit", status, says, "--retry")
}

fn too_long(status: u16) -> Failure {
    fails("context_length", status, TOO_LONG, "begin a new one")
}

fn no_credit(status: u16) -> Failure {
    fails("quota", status, CREDIT, "--model")
}

fn wrong_key(status: u16) -> Failure {
    fails("auth", status, KEY, "check the provider's key")
}

fn no_model() -> Failure {
    fails("not_found", 404, "does not know the model `m`", "models list")
}

/// OpenAI's error body.
fn openai(message: &str, kind: &str, code: &Value) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

/// What OpenAI refuses with a status, over either of its APIs.
fn openai_refusals(api: &Api) -> Vec<Row> {
    let key =
        openai("Incorrect API key provided: sk-secret-key-of-a-test.", "invalid_request_error", &json!("invalid_api_key"));
    let quota = openai("You exceeded your current quota.", "insufficient_quota", &json!("insufficient_quota"));
    let busy = openai("The server is currently overloaded.", "server_error", &Value::Null);
    let broken = openai("The server had an error.", "server_error", &Value::Null);
    let slow = openai("Rate limit reached for m.", "tokens", &json!("rate_limit_exceeded"));
    let long = openai("Your input exceeds the context window.", "invalid_request_error", &json!("context_length_exceeded"));
    let model = openai("The model `m` does not exist.", "invalid_request_error", &json!("model_not_found"));
    let parameter = openai("Unsupported parameter.", "invalid_request_error", &json!("unsupported_parameter"));
    vec![
        row("a wrong key", api.refusal("401 Unauthorized", &key), wrong_key(401)),
        row("no credit", api.refusal("429 Too Many Requests", &quota), no_credit(429)),
        row("an overload", api.refusal("503 Service Unavailable", &busy), overloaded(503)),
        row(
            "an error of the server",
            api.refusal("500 Internal Server Error", &broken),
            fails("server", 500, "failed", "--retry"),
        ),
        row("a limit", api.not_now(&slow), limited(429, WAIT)),
        row("a conversation that is too long", api.refusal("400 Bad Request", &long), too_long(400)),
        row("no such model", api.refusal("404 Not Found", &model), no_model()),
        row(
            "a wrong request",
            api.refusal("400 Bad Request", &parameter),
            fails("invalid_request", 400, "refused the request (400 unsupported_parameter)", "--model"),
        ),
    ]
}

pub(crate) const CHAT: Api = Api {
    dialect: "openai-chat",
    request_id: Some("x-request-id"),
    framing: Framing::Data,
    says: |text| vec![json!({"choices": [{"index": 0, "delta": {"content": text}}]})],
    ends: |_| vec![json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})],
    calls: |calls| {
        let call = |call: &Call, function: Value| {
            let call = json!({"index": call.index, "id": call.id, "type": "function", "function": function});
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        };
        let mut events: Vec<Value> =
            calls.iter().map(|it| call(it, json!({"name": "command__run", "arguments": it.arguments}))).collect();
        events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
        events
    },
    refusals: |api| {
        let mut rows = openai_refusals(api);
        let busy = json!({"error": {"message": "Busy.", "type": "service_unavailable", "code": 503}});
        rows.push(row("an overload after content", api.fails_after_half(busy), after_half(overloaded(503))));
        rows
    },
};

fn completed(output: &[Value]) -> Value {
    let usage = json!({"input_tokens": 9, "output_tokens": 1});
    json!({"type": "response.completed", "response": {"status": "completed", "output": output, "usage": usage}})
}

fn failed_response(code: &str, message: &str) -> Value {
    let error = json!({"code": code, "message": message});
    json!({"type": "response.failed", "response": {"status": "failed", "output": [], "error": error}})
}

pub(crate) const RESPONSES: Api = Api {
    dialect: "openai-responses",
    request_id: Some("x-request-id"),
    framing: Framing::NamedEvents,
    says: |text| {
        let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []});
        vec![
            json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": text}),
        ]
    },
    ends: |text| {
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        vec![completed(&[
            json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}),
        ])]
    },
    calls: |calls| {
        let item = |at: usize, call: &Call, arguments: &str, status: &str| {
            json!({"type": "function_call", "id": format!("fc_{at}"), "call_id": call.id, "name": "command__run",
                   "arguments": arguments, "status": status})
        };
        let mut events = Vec::new();
        for (at, call) in calls.iter().enumerate() {
            let (id, index) = (format!("fc_{at}"), call.index);
            events.push(
                json!({"type": "response.output_item.added", "output_index": index, "item": item(at, call, "", "in_progress")}),
            );
            events.push(json!({"type": "response.function_call_arguments.delta", "output_index": index, "item_id": id, "delta": call.arguments}));
        }
        for (at, call) in calls.iter().enumerate() {
            let item = item(at, call, &call.arguments, "completed");
            events.push(json!({"type": "response.output_item.done", "output_index": call.index, "item": item}));
        }
        let items = calls.iter().enumerate().map(|(at, call)| item(at, call, &call.arguments, "completed"));
        events.push(completed(&items.collect::<Vec<_>>()));
        events
    },
    refusals: |api| {
        let mut rows = openai_refusals(api);
        let failed = |code: &str| failed_response(code, "It did not work.");
        let alone = |event: Value| api.stream(vec![event]);
        let error = json!({"type": "error", "code": "server_error", "message": "It did not work.", "param": null});
        rows.extend([
            row("a response that failed", alone(failed("server_error")), fails("server", 0, "It did not work", "--retry")),
            row(
                "a response that failed after content",
                api.fails_after_half(failed("server_error")),
                after_half(fails("server", 0, "It did not work", "--retry")),
            ),
            row("a limit as an event", alone(failed("rate_limit_exceeded")), limited(0, "It did not work")),
            row("an overload as an event", alone(failed("server_overloaded")), overloaded(0)),
            row("a conversation that is too long, as an event", alone(failed("context_length_exceeded")), too_long(0)),
            row("an error as an event", alone(error), fails("server", 0, "It did not work", "--retry")),
        ]);
        rows
    },
};

fn anthropic(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_7"})
}

fn anthropic_end(reason: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ]
}

fn message_start() -> Value {
    let usage = json!({"input_tokens": 9, "output_tokens": 1});
    json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": usage}})
}

pub(crate) const ANTHROPIC: Api = Api {
    dialect: "anthropic",
    request_id: Some("request-id"),
    framing: Framing::NamedEvents,
    says: |text| {
        vec![
            message_start(),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        ]
    },
    ends: |_| [vec![json!({"type": "content_block_stop", "index": 0})], anthropic_end("end_turn")].concat(),
    calls: |calls| {
        let mut events = vec![message_start()];
        for call in calls {
            let block = json!({"type": "tool_use", "id": call.id, "name": "command__run", "input": {}});
            let delta = json!({"type": "input_json_delta", "partial_json": call.arguments});
            events.push(json!({"type": "content_block_start", "index": call.index, "content_block": block}));
            events.push(json!({"type": "content_block_delta", "index": call.index, "delta": delta}));
        }
        events.extend(calls.iter().map(|call| json!({"type": "content_block_stop", "index": call.index})));
        events.extend(anthropic_end("tool_use"));
        events
    },
    refusals: |api| {
        let overload = || anthropic("overloaded_error", "Overloaded");
        let spent = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "You reached your limit.",
            "details": {"error_code": "enforced_spend_limit_reached"}}});
        let long = anthropic("invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum");
        vec![
            row(
                "a wrong key",
                api.refusal(
                    "401 Unauthorized",
                    &anthropic("authentication_error", "invalid x-api-key sk-secret-key-of-a-test"),
                ),
                wrong_key(401),
            ),
            row("no credit", api.refusal("402 Payment Required", &anthropic("billing_error", "No credit.")), no_credit(402)),
            row("a limit on spending", api.refusal("429 Too Many Requests", &spent), no_credit(429)),
            row("an overload", api.refusal("529 ", &overload()), overloaded(529)),
            row("an overload as the first event", api.stream(vec![overload()]), overloaded(529)),
            row("an overload after content", api.fails_after_half(overload()), after_half(overloaded(529))),
            row("a limit", api.not_now(&anthropic("rate_limit_error", "Slow down.")), limited(429, WAIT)),
            row("a conversation that is too long", api.refusal("400 Bad Request", &long), too_long(400)),
            row("no such model", api.refusal("404 Not Found", &anthropic("not_found_error", "model: m")), no_model()),
            row(
                "a request that is too large",
                api.refusal("413 Payload Too Large", &anthropic("request_too_large", "Request exceeds the maximum size")),
                fails("too_large", 413, "finds the request too large", "send less at once"),
            ),
            row(
                "a key that may not",
                api.refusal("403 Forbidden", &anthropic("permission_error", "Not for you.")),
                fails("permission", 403, "does not permit this", "check the provider's key"),
            ),
        ]
    },
};

fn gemini(code: u16, status: &str, message: &str, details: &Value) -> Value {
    json!({"error": {"code": code, "message": message, "status": status, "details": details}})
}

pub(crate) const GEMINI: Api = Api {
    dialect: "gemini",
    request_id: None,
    framing: Framing::Data,
    says: |text| vec![json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": text}]}}]})],
    ends: |_| vec![json!({"candidates": [{"index": 0, "content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}]})],
    calls: |calls| {
        // The format counts no calls: each is a part of its own, and they are told apart by their order.
        let part = |call: &Call| {
            let args: Value = serde_json::from_str(&call.arguments).unwrap();
            json!({"functionCall": {"id": call.id, "name": "command__run", "args": args}})
        };
        let parts: Vec<Value> = calls.iter().map(part).collect();
        vec![json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})]
    },
    refusals: |api| {
        let none = json!([]);
        let invalid = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]);
        let key = gemini(400, "INVALID_ARGUMENT", "API key not valid: sk-secret-key-of-a-test", &invalid);
        let retry = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "500s"}]);
        let spent =
            gemini(429, "RESOURCE_EXHAUSTED", "Quota exceeded for metric: free_tier_requests, limit: 0, model: m", &none);
        let busy = || gemini(503, "UNAVAILABLE", "The model is overloaded.", &none);
        let long = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
        let elsewhere =
            json!({"candidates": [{"index": 10_000_000, "content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]});
        vec![
            row("a wrong key", api.refusal("400 Bad Request", &key), wrong_key(400)),
            row("no credit", api.refusal("429 Too Many Requests", &spent), no_credit(429)),
            row("an overload", api.refusal("503 Service Unavailable", &busy()), overloaded(503)),
            row("an overload in a list", api.refusal("503 Service Unavailable", &json!([busy()])), overloaded(503)),
            row("an overload after content", api.fails_after_half(busy()), after_half(overloaded(503))),
            row(
                "a limit",
                api.refusal("429 Too Many Requests", &gemini(429, "RESOURCE_EXHAUSTED", "Slow down.", &retry)),
                limited(429, WAIT),
            ),
            row(
                "a conversation that is too long",
                api.refusal("400 Bad Request", &gemini(400, "INVALID_ARGUMENT", long, &none)),
                too_long(400),
            ),
            row(
                "no such model",
                api.refusal("404 Not Found", &gemini(404, "NOT_FOUND", "models/m is not found", &none)),
                no_model(),
            ),
            row(
                "an answer that took too long",
                api.refusal("504 Gateway Timeout", &gemini(504, "DEADLINE_EXCEEDED", "Deadline expired.", &none)),
                fails("timeout", 504, "did not answer in time", "--retry"),
            ),
            row(
                "a call that cannot be read",
                api.stream(vec![json!({"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}]})]),
                fails("server", 0, "MALFORMED_FUNCTION_CALL", "--retry"),
            ),
            row("a candidate that nobody asked for", api.stream(vec![elsewhere]), fails("cut_off", 0, "broke off", "--retry")),
        ]
    },
};

pub(crate) const OLLAMA: Api = Api {
    dialect: "ollama",
    request_id: None,
    framing: Framing::Lines,
    says: |text| vec![json!({"model": "m", "message": {"role": "assistant", "content": text}, "done": false})],
    ends: |_| vec![json!({"model": "m", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"})],
    calls: |calls| {
        let call = |call: &Call| {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            json!({"id": call.id, "function": {"index": call.index, "name": "command__run", "arguments": arguments}})
        };
        let calls: Vec<Value> = calls.iter().map(call).collect();
        vec![
            json!({"message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": false}),
            json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"}),
        ]
    },
    refusals: |api| {
        let error = |message: &str| json!({"error": message});
        let long = error("the input length exceeds the context length");
        vec![
            row(
                "a wrong key",
                api.refusal("401 Unauthorized", &error("unauthorized: sk-secret-key-of-a-test")),
                wrong_key(401),
            ),
            row("no credit", api.refusal("402 Payment Required", &error("you reached your usage limit")), no_credit(402)),
            row("an overload", api.refusal("503 Service Unavailable", &error("server busy")), overloaded(503)),
            row(
                "a failure after content",
                api.fails_after_half(error("an error was encountered while running the model")),
                after_half(fails("server", 0, "while running the model", "--retry")),
            ),
            row("a limit", api.not_now(&error("too many requests")), limited(429, WAIT)),
            row("a conversation that is too long", api.refusal("400 Bad Request", &long), too_long(400)),
            row("no such model", api.refusal("404 Not Found", &error("model 'm' not found")), no_model()),
        ]
    },
};
