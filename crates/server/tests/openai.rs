//! OpenAI's APIs over a real engine with scripted provider and tools.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{HeaderMap, Method, Request};
use serde_json::{Value, json};
use tower::ServiceExt;
use turnwright_core::policy::Policy;
use turnwright_core::{Declared, ModelRef, ProviderFailure, ProviderFailureKind, TurnSettings};
use turnwright_engine::{Engine, EngineParts, ToolSource};
use turnwright_server::{ServerOptions, ServerState, router};
use turnwright_testkit::{
    Answer, ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders, ScriptedSource, ScriptedTool, call, text,
};

use crate::documented::documented;

mod again;
mod anew;
mod apart;
mod at_once;
mod awaiting;
mod between;
mod choosing;
mod clients;
mod elsewhere;
mod ending;
mod failing;
mod formed;
mod going_on;
mod interleaved;
mod joining;
mod killed;
mod offered;
mod recalled;
mod referring;
mod refusing;
mod retelling;
mod rounds;
mod stopping;
mod their_tools;
mod told_later;
mod told_otherwise;

/// A server over a store that others may share.
struct Server {
    router: Router,
    provider: Arc<ScriptedProvider>,
    source: Arc<ScriptedSource>,
    engine: Engine,
    clock: Arc<ManualClock>,
}

struct Answered {
    status: u16,
    headers: HeaderMap,
    body: String,
}

fn server(answers: impl IntoIterator<Item = Answer>) -> Server {
    server_on(MemoryStore::default(), answers)
}

fn server_on(store: MemoryStore, answers: impl IntoIterator<Item = Answer>) -> Server {
    server_with(store, ScriptedProvider::new(answers))
}

fn server_with(store: MemoryStore, provider: Arc<ScriptedProvider>) -> Server {
    server_as(store, provider, Policy::default())
}

fn server_as(store: MemoryStore, provider: Arc<ScriptedProvider>, policy: Policy) -> Server {
    let read_only = Declared { read_only: true, ..Declared::default() };
    let source =
        Arc::new(ScriptedSource::new("lab", [ScriptedTool::echo("look").declared(read_only), ScriptedTool::echo("touch")]));
    let clock = Arc::new(ManualClock::at(1_736_622_000_000));
    let engine = Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(provider.clone())),
        sources: vec![source.clone() as Arc<dyn ToolSource>],
        store: Arc::new(store),
        clock: clock.clone(),
        policy,
        defaults: TurnSettings::new(ModelRef::new("test", "scripted")),
    });
    let router = router(ServerState::new(engine.clone(), ServerOptions::default()));
    Server { router, provider, source, engine, clock }
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The chunks of a stream.
    fn chunks(&self) -> Vec<Value> {
        let lines = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        lines.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    /// Status, type and code of OpenAI's error object.
    fn error(&self) -> (u16, String, String) {
        let error = &self.json()["error"];
        let word = |key: &str| error[key].as_str().unwrap_or_else(|| panic!("{}", self.body)).to_owned();
        assert!(!word("message").is_empty());
        (self.status, word("type"), word("code"))
    }
}

impl Server {
    async fn send(&self, method: Method, path: &str, body: Body, headers: &[(&str, &str)]) -> Answered {
        let mut request = Request::builder().method(method.clone()).uri(path).header("host", "127.0.0.1:8700");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = documented(&method, path, response).into_parts();
        let body = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
        Answered { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    async fn get(&self, path: &str) -> Answered {
        self.send(Method::GET, path, Body::empty(), &[]).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answered {
        self.send(Method::POST, path, Body::from(body.to_string()), &[("content-type", "application/json")]).await
    }

    async fn chat(&self, body: &Value) -> Answered {
        self.post("/v1/chat/completions", body).await
    }

    async fn respond(&self, body: &Value) -> Answered {
        self.post("/v1/responses", body).await
    }

    async fn keyed(&self, path: &str, key: &str, body: &Value) -> Answered {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        self.send(Method::POST, path, Body::from(body.to_string()), &headers).await
    }

    async fn messages(&self, conversation: &str) -> Vec<(String, String)> {
        let page = self.get(&format!("/api/v1/conversations/{conversation}/messages")).await.json();
        let said = |message: &Value, key: &str| message[key].as_str().unwrap_or_default().to_owned();
        page["data"].as_array().unwrap().iter().map(|message| (said(message, "role"), said(message, "content"))).collect()
    }
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// A tool of the client's.
fn pick() -> Value {
    let parameters = json!({"type": "object", "properties": {"from": {"type": "string"}}});
    json!({"type": "function", "function": {"name": "pick", "description": "Picks.", "parameters": parameters}})
}

fn picks() -> Answer {
    Answer::whole([text("Pick!"), call(0, "pick", r#"{"from":"x"}"#)])
}

#[tokio::test(start_paused = true)]
async fn a_completion_is_a_turn_that_is_kept_and_goes_on_by_its_history() {
    let server = server([
        Answer::whole([text("Let me look."), call(0, "lab__look", r#"{"at":1}"#)]),
        Answer::whole([text("Seen.")]),
        Answer::whole([text("Again.")]),
    ]);
    let asked = json!({"model": "test/scripted", "messages": [{"role": "system", "content": "Be brief."}, user("Look!")]});
    let answer = server.chat(&asked).await;
    let body = answer.json();
    let conversation = body["turnwright"]["conversation_id"].as_str().unwrap().to_owned();
    let expected = json!({
        "id": format!("chatcmpl-1_{conversation}"), "object": "chat.completion", "created": 1_736_622_000, "model": "test/scripted",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Let me look.\n\nSeen.", "refusal": null},
                     "logprobs": null, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30,
                  "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}},
        "turnwright": {"conversation_id": conversation, "turn_id": "turn_1",
                       "tool_events": [{"call_id": "call_4_0", "name": "lab__look", "is_error": false, "duration_ms": 0}]},
    });
    assert_eq!((answer.status, body), (200, expected));
    assert_eq!(answer.header("x-turnwright-conversation"), conversation);
    let kept = server.get(&format!("/api/v1/conversations/{conversation}")).await.json();
    assert_eq!((&kept["system_prompt"], &kept["model"]), (&json!("Be brief."), &json!("test/scripted")));

    let history = json!([user("Look!"), {"role": "assistant", "content": "Let me look.\n\nSeen."}, user("And again?")]);
    let next = server.chat(&json!({"messages": history})).await;
    assert_eq!(next.json()["choices"][0]["message"]["content"], "Again.");
    assert_eq!(next.header("x-turnwright-conversation"), conversation);
}

#[tokio::test]
async fn an_answer_has_the_name_of_its_request() {
    let server = server(["One.", "Two.", "Three."].map(|said| Answer::whole([text(said)])));
    for body in [json!({"messages": [user("Go")]}), json!({"messages": [user("Go")], "stream": true}), json!({"input": "Go"})] {
        let path = if body["input"].is_null() { "/v1/chat/completions" } else { "/v1/responses" };
        let headers = [("content-type", "application/json"), ("x-request-id", "mine-1")];
        let answered = server.send(Method::POST, path, Body::from(body.to_string()), &headers).await;
        assert_eq!((answered.status, answered.header("x-request-id")), (200, "mine-1"), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_text_alone_and_ends_once() {
    let answers = || [Answer::whole([call(0, "lab__look", "{}")]), Answer::whole([text("Se"), text("en \"it\".")])];
    let asked = json!({"messages": [user("Look!")], "stream": true, "stream_options": {"include_usage": true}});
    let answer = server(answers()).chat(&asked).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"));
    assert!(answer.body.ends_with("data: [DONE]\n\n"), "{}", answer.body);
    let chunks = answer.chunks();
    let deltas: Vec<&Value> =
        chunks.iter().filter_map(|chunk| chunk["choices"].get(0)).map(|choice| &choice["delta"]).collect();
    assert_eq!(
        deltas,
        [
            &json!({"role": "assistant", "content": ""}),
            &json!({"content": ""}),
            &json!({"content": "Seen \"it\"."}),
            &json!({}),
        ]
    );
    let reasons: Vec<&Value> =
        chunks.iter().filter_map(|chunk| Some(&chunk["choices"].get(0)?["finish_reason"])).filter(|r| !r.is_null()).collect();
    assert_eq!(reasons, [&json!("stop")]);
    let last = chunks.last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]["total_tokens"]), (&json!([]), &json!(30)));

    let headers = [("x-turnwright-tool-activity", "reasoning")];
    let again = server(answers());
    let shown = again.send(Method::POST, "/v1/chat/completions", Body::from(asked.to_string()), &headers).await;
    let thoughts: String = shown
        .chunks()
        .iter()
        .filter_map(|chunk| chunk["choices"].get(0)?["delta"]["reasoning_content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(thoughts, "\n[lab] look {}\n\n[lab] look: done, 0 ms\n");
}

#[tokio::test(start_paused = true)]
async fn what_tools_do_is_shown_in_the_text_where_that_is_asked_for_and_the_history_is_known_again() {
    let block = concat!(
        "\n<details type=\"tool_calls\" done=\"true\" id=\"call_4_0\" name=\"lab__look\" ",
        "arguments=\"{&quot;at&quot;:&quot;&lt;b&gt; &amp;&quot;}\">\n<summary>Tool Executed</summary>\n",
        "{&quot;at&quot;:&quot;&lt;b&gt; &amp;&quot;}\n</details>\n"
    );
    let lines = "\n[lab] look {\"at\":\"<b> &\"}\n\n[lab] look: done, 0 ms\n";
    for (mode, before, shown) in
        [("content", "", lines), ("content", "Hm.", lines), ("details", "", block), ("details", "Hm.", block)]
    {
        let first = [text(before), call(0, "lab__look", r#"{"at":"<b> &"}"#)];
        let first = Answer::whole(first.into_iter().skip(usize::from(before.is_empty())));
        let server = server([first, Answer::whole([text("Seen.")]), Answer::whole([text("Again.")])]);
        let headers = [("x-turnwright-tool-activity", mode), ("content-type", "application/json")];
        let ask =
            async |body: Value| server.send(Method::POST, "/v1/chat/completions", Body::from(body.to_string()), &headers).await;
        let streamed = ask(json!({"messages": [user("Look!")], "stream": true})).await;
        let content: String = streamed
            .chunks()
            .iter()
            .filter_map(|chunk| chunk["choices"].get(0)?["delta"]["content"].as_str().map(str::to_owned))
            .collect();
        let between = if before.is_empty() { "" } else { "\n\n" };
        assert_eq!(content, format!("{before}{shown}{between}Seen."), "{mode}");
        assert!(!streamed.body.contains("reasoning_content"), "{mode}: {}", streamed.body);
        let history = json!([user("Look!"), {"role": "assistant", "content": content}, user("And again?")]);
        let next = ask(json!({"messages": history})).await;
        assert_eq!(next.json()["choices"][0]["message"]["content"], "Again.");
        let conversation = streamed.chunks()[0]["turnwright"]["conversation_id"].clone();
        assert_eq!(next.json()["turnwright"]["conversation_id"], conversation, "{mode} after {before:?}: it is the same one");
    }
}

#[tokio::test]
async fn a_clients_tool_is_handed_back_and_its_result_goes_on_with_the_same_turn_once() {
    let both = Answer::whole([call(0, "pick", r#"{"from":"x"}"#), call(1, "lab__look", "{}")]);
    let server = server([both, Answer::whole([text("Picked.")])]);
    let asked = json!({"messages": [user("Pick!")], "tools": [pick()]});
    let first = server.chat(&asked).await.json();
    let conversation = first["turnwright"]["conversation_id"].as_str().unwrap().to_owned();
    let choice = &first["choices"][0];
    let id = format!("call_4_0_{conversation}");
    let handed = json!([{"id": id, "type": "function", "function": {"name": "pick", "arguments": "{\"from\":\"x\"}"}}]);
    assert_eq!((&choice["finish_reason"], &choice["message"]["tool_calls"]), (&json!("tool_calls"), &handed));
    assert_eq!(server.source.effects().len(), 1, "ours ran meanwhile");

    let said = |result: &str| {
        let calls = json!({"role": "assistant", "content": null, "tool_calls": handed});
        json!({"messages": [user("Pick!"), calls, {"role": "tool", "tool_call_id": id, "content": result}], "tools": [pick()]})
    };
    let second = server.chat(&said("the red one")).await.json();
    assert_eq!(second["choices"][0]["message"]["content"], "Picked.");
    assert_eq!(second["turnwright"]["turn_id"], first["turnwright"]["turn_id"]);
    assert!(server.provider.asked()[1].contains("the red one"), "{:?}", server.provider.asked());

    assert_eq!(server.chat(&said("another one")).await.status, 400, "what is stored stays");
    assert_eq!(server.chat(&said("the red one")).await.json(), second, "and the answer is the same");
    let results = server.messages(&conversation).await;
    assert_eq!(results.iter().filter(|(role, _)| role == "tool").count(), 2, "{results:?}");
}

#[tokio::test]
async fn a_clients_result_goes_on_after_the_process_is_gone() {
    let store = MemoryStore::default();
    let first = server_on(store.another_process(), [picks()]);
    let begun = first.chat(&json!({"messages": [user("Pick!")], "tools": [pick()]})).await.json();
    let call = begun["choices"][0]["message"]["tool_calls"][0].clone();
    first.engine.shutdown().await;

    let second = server_on(store.another_process(), [Answer::whole([text("Picked.")])]);
    let calls = json!({"role": "assistant", "content": "Pick!", "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": call["id"], "content": "red"});
    let answer = second.chat(&json!({"messages": [user("Pick!"), calls, result]})).await.json();
    assert_eq!(answer["choices"][0]["message"]["content"], "Picked.");
    assert_eq!(answer["turnwright"]["turn_id"], begun["turnwright"]["turn_id"]);
}

#[tokio::test]
async fn a_client_that_says_something_else_is_not_waited_for() {
    let server = server([picks(), Answer::whole([text("As you like.")])]);
    let asked = json!({"messages": [user("Pick!")], "tools": [pick()], "metadata": {"conversation_id": "c1"}});
    assert_eq!(server.chat(&asked).await.json()["choices"][0]["finish_reason"], "tool_calls");
    let other = json!({"messages": [user("Never mind.")], "metadata": {"conversation_id": "c1"}});
    assert_eq!(server.chat(&other).await.json()["choices"][0]["message"]["content"], "As you like.");
    let said = server.messages("c1").await;
    assert_eq!(said[2].0, "tool");
    assert!(said[2].1.contains("they sent another message instead"), "{said:?}");
}

#[tokio::test]
async fn a_history_from_elsewhere_is_taken_over_and_its_results_are_gone_on_with() {
    let server = server([Answer::whole([text("So it is 7.")])]);
    let call = json!({"id": "toolu_1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":3,\"b\":4}"}});
    let messages = json!([
        {"role": "system", "content": "Add."}, user("Hello"), {"role": "assistant", "content": "Hi."}, user("3 and 4?"),
        {"role": "assistant", "content": null, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "toolu_1", "content": "7"}
    ]);
    let body = json!({"messages": messages});
    let ask = || server.keyed("/v1/chat/completions", "k", &body);
    let answer = ask().await.json();
    assert_eq!(answer["choices"][0]["message"]["content"], "So it is 7.", "{answer}");
    assert_eq!(ask().await.json(), answer, "it is gone on with once");
    let conversation = answer["turnwright"]["conversation_id"].as_str().unwrap();
    let said: Vec<String> = server.messages(conversation).await.into_iter().map(|(_, content)| content).collect();
    assert_eq!(said, ["Hello", "Hi.", "3 and 4?", "", "7", "So it is 7."]);
}

#[tokio::test]
async fn a_turn_that_waits_for_approval_says_where_to_decide() {
    let server = server([Answer::whole([call(0, "lab__touch", "{}")]), Answer::whole([text("Done.")])]);
    let answer = server.chat(&json!({"messages": [user("Touch!")], "metadata": {"conversation_id": "c1"}})).await.json();
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "stop");
    let text = choice["message"]["content"].as_str().unwrap();
    assert!(
        text.contains("`lab__touch` with {}")
            && text.contains("turnwright approvals decide call_4_0 allow --approval appr_4_0 --conversation c1")
    );
    let decided = server.post("/api/v1/conversations/c1/calls/call_4_0/decision", &json!({"decision": "allow"})).await;
    assert_eq!(decided.status, 200);
}

#[tokio::test]
async fn the_same_key_runs_a_turn_once() {
    let server = server([Answer::whole([text("Once.")])]);
    let body = json!({"messages": [user("Go")]});
    let ask = || server.keyed("/v1/chat/completions", "k1", &body);
    let (first, second) = (ask().await.json(), ask().await.json());
    assert_eq!(first["choices"][0]["message"]["content"], "Once.");
    assert_eq!(first, second);
}

#[tokio::test]
async fn the_same_key_finds_its_turn_in_whatever_conversation_it_went_on() {
    let server = server([
        Answer::whole([text("One.")]),
        Answer::whole([text("Two.")]),
        Answer::whole([text("Three.")]),
        Answer::whole([text("Branch.")]),
    ]);
    let chat = |messages: Value, key: &'static str| {
        let server = &server;
        async move { server.keyed("/v1/chat/completions", key, &json!({"messages": messages})).await }
    };
    let said = |text: &str| json!({"role": "assistant", "content": text});
    let (one, two) = (json!([user("1")]), json!([user("1"), said("One."), user("2")]));
    let first = chat(one, "a").await.json();
    let second = chat(two.clone(), "b").await.json();
    assert_eq!(second["turnwright"]["conversation_id"], first["turnwright"]["conversation_id"]);
    // More is said before the second comes again.
    chat(json!([user("1"), said("One."), user("2"), said("Two."), user("3")]), "c").await;
    assert_eq!(chat(two, "b").await.json(), second);
    let other = chat(json!([user("other")]), "b").await;
    assert_eq!(other.error(), (400, "invalid_request_error".to_owned(), "idempotency_key_reused".to_owned()));
    assert!(other.body.contains("the idempotency key `b` was"), "{}", other.body);
    // A header leads somewhere else.
    let headers = [("content-type", "application/json"), ("idempotency-key", "a"), ("x-turnwright-conversation", "elsewhere")];
    let one = Body::from(json!({"messages": [user("1")]}).to_string());
    let elsewhere = server.send(Method::POST, "/v1/chat/completions", one, &headers).await;
    assert_eq!(elsewhere.error(), (400, "invalid_request_error".to_owned(), "idempotency_key_reused".to_owned()));

    let id = format!("resp_{}", first["id"].as_str().unwrap().trim_start_matches("chatcmpl-"));
    let body = json!({"input": "else", "previous_response_id": id});
    let respond = || server.keyed("/v1/responses", "r", &body);
    let branch = respond().await.json();
    assert_ne!(branch["conversation"]["id"], first["turnwright"]["conversation_id"], "{branch}");
    assert_eq!(respond().await.json(), branch);
    let all = server.get("/api/v1/conversations").await.json();
    assert_eq!(all["data"].as_array().unwrap().len(), 2, "{all}");
}

#[tokio::test]
async fn the_same_key_answers_once_what_waits() {
    let touch = || Answer::whole([call(0, "lab__touch", r#"{"a":1}"#)]);
    let server = server([touch(), Answer::whole([text("Done.")]), picks(), Answer::whole([text("Picked.")])]);
    let keyed = |path: &'static str, body: Value| {
        let server = &server;
        async move { server.keyed(path, "k", &body).await }
    };
    let first = server.respond(&json!({"input": "Touch!"})).await.json();
    let answer = |approve: bool| {
        let answer =
            json!({"type": "mcp_approval_response", "approval_request_id": first["output"][0]["id"], "approve": approve});
        json!({"previous_response_id": first["id"], "input": [answer]})
    };
    let second = keyed("/v1/responses", answer(true)).await.json();
    assert_eq!(second["output"][1]["content"][0]["text"], "Done.", "{second}");
    assert_eq!(keyed("/v1/responses", answer(true)).await.json()["output"], second["output"]);
    assert_eq!(server.respond(&answer(false)).await.status, 400, "it was allowed");
    assert_eq!(server.source.effects().len(), 1);

    let asked = json!({"messages": [user("Pick!")], "tools": [pick()], "metadata": {"conversation_id": "c1"}});
    let waits = server.chat(&asked).await.json()["choices"][0]["message"].clone();
    let result = json!({"role": "tool", "tool_call_id": waits["tool_calls"][0]["id"], "content": "red"});
    let given = json!({"messages": [user("Pick!"), waits, result], "tools": [pick()], "metadata": {"conversation_id": "c1"}});
    let picked = keyed("/v1/chat/completions", given.clone()).await.json();
    assert_eq!(picked["choices"][0]["message"]["content"], "Picked.");
    assert_eq!(keyed("/v1/chat/completions", given).await.json(), picked);
}

#[tokio::test]
async fn what_is_refused_is_refused_in_openais_shape() {
    let server = server([]);
    let chat = |body: Value| {
        let server = &server;
        async move { server.chat(&body).await.error() }
    };
    let wrong = |code: &str| (400, "invalid_request_error".to_owned(), code.to_owned());
    let go = || json!([user("Go")]);
    assert_eq!(chat(json!({"messages": go(), "n": 2})).await, wrong("unsupported_parameter"));
    assert_eq!(chat(json!({"messages": []})).await, wrong("invalid_request"));
    assert_eq!(chat(json!({"messages": [{"role": "robot", "content": "x"}]})).await, wrong("invalid_request"));
    assert_eq!(chat(json!({"messages": go(), "tools": [{"type": "web_search"}]})).await, wrong("unsupported_value"));
    let remote = json!([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]);
    assert_eq!(chat(json!({"messages": [{"role": "user", "content": remote}]})).await, wrong("invalid_request"));
    let missing = (404, "invalid_request_error".to_owned(), "model_not_found".to_owned());
    assert_eq!(chat(json!({"model": "gpt-9", "messages": go()})).await, missing);
    assert_eq!(server.get("/v1/models/test/none").await.error(), missing);
    let not_json = server.send(Method::POST, "/v1/chat/completions", Body::from("{"), &[]).await;
    assert_eq!(not_json.error(), wrong("invalid_json"));
    let nowhere = server.get("/v1/embeddings").await;
    assert_eq!(nowhere.error(), (404, "invalid_request_error".to_owned(), "no_such_route".to_owned()));
    let method = server.get("/v1/chat/completions").await;
    assert_eq!(method.error(), (405, "invalid_request_error".to_owned(), "method_not_allowed".to_owned()));
    let foreign = server.send(Method::GET, "/v1/models", Body::empty(), &[("origin", "http://evil.example")]).await;
    assert_eq!(foreign.error(), (403, "permission_error".to_owned(), "origin_not_allowed".to_owned()));
}

#[tokio::test]
async fn a_failed_turn_is_not_to_be_sent_again() {
    let failing = || Answer::of([]).failing(ProviderFailure::new(ProviderFailureKind::RateLimit, "too many requests"));
    let server = server([failing(), failing()]);
    let whole = server.chat(&json!({"messages": [user("Go")]})).await;
    assert_eq!(whole.error(), (429, "rate_limit_error".to_owned(), "rate_limit_exceeded".to_owned()));
    assert_eq!(whole.header("x-should-retry"), "false");
    assert!(!whole.header("x-turnwright-conversation").is_empty());
    let streamed = server.chat(&json!({"messages": [user("Go")], "stream": true})).await;
    assert_eq!(streamed.error(), (429, "rate_limit_error".to_owned(), "rate_limit_exceeded".to_owned()));
    assert_eq!(streamed.header("x-should-retry"), "false");
}

#[tokio::test]
async fn models_are_listed_as_openai_lists_them() {
    let server = server([]);
    let listed = server.get("/v1/models").await.json();
    let model = json!({"id": "test/scripted", "object": "model", "created": 0, "owned_by": "test"});
    assert_eq!(listed, json!({"object": "list", "data": [model]}));
    assert_eq!(server.get("/v1/models/test%2Fscripted").await.json(), model);
}

/// The events of a stream, each checked for its name and number.
fn events(answer: &Answered) -> Vec<Value> {
    let names = answer.body.lines().filter_map(|line| line.strip_prefix("event: "));
    let chunks = answer.chunks();
    assert_eq!(names.collect::<Vec<_>>(), chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect::<Vec<_>>());
    let numbers: Vec<u64> = chunks.iter().map(|chunk| chunk["sequence_number"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    chunks
}

/// What a stream comes to: its events besides the pieces of texts, and the texts.
fn assembled(events: &[Value]) -> (Vec<Value>, String) {
    let is_piece = |event: &&Value| event["type"] == "response.output_text.delta";
    let text = events.iter().filter(is_piece).map(|event| event["delta"].as_str().unwrap()).collect();
    (events.iter().filter(|event| !is_piece(event)).cloned().collect(), text)
}

#[tokio::test]
async fn a_stream_goes_on_after_any_number_that_a_client_has() {
    let server = server([
        Answer::whole([text("Über "), text("die "), text("漢字"), call(0, "lab__look", r#"{"at":1}"#)]),
        Answer::whole([text("Se"), text("en.")]),
    ]);
    let told = events(&server.respond(&json!({"input": "Look!", "stream": true})).await);
    let id = told[0]["response"]["id"].as_str().unwrap();
    for (at, event) in told.iter().enumerate() {
        let path = format!("/v1/responses/{id}?stream=true&starting_after={}", event["sequence_number"]);
        let again = events(&server.get(&path).await);
        assert_eq!(assembled(&again), assembled(&told[at + 1..]), "after {event}");
    }
    let refused = server.get(&format!("/v1/responses/{id}?stream=true&starting_after=x")).await;
    assert_eq!(refused.status, 400);
}

#[tokio::test]
async fn what_a_response_answers_is_told_in_pages() {
    let server = server([Answer::whole([text("A cat.")])]);
    let image = "data:image/png;base64,AAAA";
    let input = json!([{"role": "user", "content": [{"type": "input_text", "text": "What is it?"},
                                                   {"type": "input_image", "image_url": image}]}]);
    let id = server.respond(&json!({"input": input})).await.json()["id"].as_str().unwrap().to_owned();
    let items = server.get(&format!("/v1/responses/{id}/input_items")).await.json();
    let message = json!({"id": "msg_1", "type": "message", "role": "user", "status": "completed", "content": [
        {"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": image, "detail": "auto"}]});
    let page = json!({"object": "list", "data": [message], "first_id": "msg_1", "last_id": "msg_1", "has_more": false});
    assert_eq!(items, page);
    let rest = server.get(&format!("/v1/responses/{id}/input_items?after=msg_1&order=asc")).await.json();
    assert_eq!((&rest["data"], &rest["first_id"]), (&json!([]), &Value::Null));
    for wrong in ["limit=0", "limit=101", "order=up", "after=msg_9"] {
        assert_eq!(server.get(&format!("/v1/responses/{id}/input_items?{wrong}")).await.status, 400, "{wrong}");
    }
    assert_eq!(server.get("/v1/responses/resp_nothing/input_items").await.status, 404);
}

#[tokio::test]
async fn a_response_shows_our_calls_as_items_and_every_item_that_is_added_is_done() {
    let server =
        server([Answer::whole([text("Let me look."), call(0, "lab__look", r#"{"at":1}"#)]), Answer::whole([text("Seen.")])]);
    let answer = server.respond(&json!({"input": "Look!", "stream": true, "instructions": "Be brief."})).await;
    assert!(answer.body.ends_with("data: [DONE]\n\n"));
    let events = events(&answer);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let text = |deltas: usize| {
        let mut kinds = vec!["response.output_item.added", "response.content_part.added"];
        kinds.extend(std::iter::repeat_n("response.output_text.delta", deltas));
        kinds.extend(["response.output_text.done", "response.content_part.done", "response.output_item.done"]);
        kinds
    };
    let mut expected = vec!["response.created", "response.in_progress"];
    expected.extend(text(1));
    expected.extend([
        "response.output_item.added",
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_call.completed",
        "response.output_item.done",
    ]);
    expected.extend(text(1));
    expected.push("response.completed");
    assert_eq!(kinds, expected);

    let response = &events.last().unwrap()["response"];
    let id = response["id"].as_str().unwrap();
    let conversation = response["conversation"]["id"].as_str().unwrap();
    let item = json!({"id": format!("mcp_1_1_{conversation}"), "type": "mcp_call", "server_label": "lab", "name": "look", "arguments": "{\"at\":1}",
                      "output": "{\"at\":1}", "error": null, "status": "completed", "approval_request_id": null});
    assert_eq!(
        (&response["output"][1], &response["status"], &response["instructions"]),
        (&item, &json!("completed"), &json!("Be brief."))
    );
    assert_eq!(server.get(&format!("/v1/responses/{id}")).await.json(), *response, "what is asked for later is the same");

    let deleted = server.send(Method::DELETE, &format!("/v1/responses/{id}"), Body::empty(), &[]).await.json();
    assert_eq!(deleted, json!({"id": id, "object": "response", "deleted": true}));
    assert_eq!(server.get(&format!("/v1/responses/{id}")).await.status, 404);
}

#[tokio::test]
async fn an_approval_is_asked_for_and_answered_as_items() {
    let server = server([
        Answer::whole([call(0, "lab__touch", r#"{"a":1}"#), call(1, "lab__touch", r#"{"a":2}"#)]),
        Answer::whole([text("Done.")]),
    ]);
    let first = server.respond(&json!({"input": "Touch!"})).await.json();
    let asked: Vec<&Value> = first["output"].as_array().unwrap().iter().collect();
    assert_eq!((first["status"].as_str(), asked.len()), (Some("completed"), 3));
    assert_eq!((&asked[0]["type"], &asked[0]["name"]), (&json!("mcp_approval_request"), &json!("touch")));
    let unknown = json!([{"type": "mcp_approval_response", "approval_request_id": "mcpr_9_9", "approve": true}]);
    let refused = server.respond(&json!({"previous_response_id": first["id"], "input": unknown})).await;
    assert_eq!(refused.json()["error"]["param"], "input[0].approval_request_id");
    let behind = json!([{"role": "system", "content": "Be brief."}, user("So:"), unknown[0]]);
    let refused = server.respond(&json!({"previous_response_id": first["id"], "input": behind})).await;
    assert_eq!(refused.json()["error"]["param"], "input[2].approval_request_id");
    let answer = json!([{"type": "mcp_approval_response", "approval_request_id": asked[0]["id"], "approve": true}]);
    let second = server.respond(&json!({"previous_response_id": first["id"], "input": answer})).await.json();
    let output = second["output"].as_array().unwrap();
    let kinds: Vec<&str> = output.iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["mcp_call", "message"], "{second}");
    assert_eq!((&output[0]["approval_request_id"], &output[0]["output"]), (&asked[0]["id"], &json!("{\"a\":1}")));
    assert_eq!(server.source.effects().len(), 1, "what was not answered is denied");
    let again = server.respond(&json!({"previous_response_id": first["id"], "input": answer})).await.json();
    assert_eq!(again["output"], second["output"], "an answer counts once, and what came of it comes again");
}

#[tokio::test]
async fn what_is_said_beside_an_approval_is_said() {
    let touch = Answer::whole([call(0, "lab__touch", r#"{"a":1}"#)]);
    let server = server([touch, Answer::whole([text("Done, and X.")])]);
    let first = server.respond(&json!({"input": "Touch!"})).await.json();
    let answer = json!([
        {"type": "mcp_approval_response", "approval_request_id": first["output"][0]["id"], "approve": true},
        {"role": "user", "content": "And do X."}
    ]);
    let second = server.respond(&json!({"previous_response_id": first["id"], "input": answer})).await.json();
    assert_eq!(second["output"][1]["content"][0]["text"], "Done, and X.", "{second}");
    let said = server.messages(first["conversation"]["id"].as_str().unwrap()).await;
    assert!(said.iter().any(|(role, said)| role == "user" && said == "And do X."), "{said:?}");
    assert_eq!(server.source.effects().len(), 1);
}

#[tokio::test]
async fn a_response_is_deleted_once_it_is_over() {
    let server = server([Answer::whole([call(0, "lab__touch", r#"{"a":1}"#)])]);
    let waits = server.respond(&json!({"input": "Touch!"})).await.json();
    let path = format!("/v1/responses/{}", waits["id"].as_str().unwrap());
    let delete = || server.send(Method::DELETE, &path, Body::empty(), &[]);
    assert_eq!(delete().await.error(), (409, "conflict_error".to_owned(), "turn_open".to_owned()));
    server.send(Method::POST, &format!("{path}/cancel"), Body::empty(), &[]).await;
    assert_eq!(delete().await.status, 200);
}

#[tokio::test]
async fn chats_that_differ_in_a_picture_alone_are_two() {
    let server = server(["A cat.", "A cat.", "Yes."].map(|said| Answer::whole([text(said)])));
    let picture = |data: &str| {
        let image = json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}});
        json!({"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]})
    };
    let first = server.chat(&json!({"messages": [picture("AAAA")]})).await.json();
    server.chat(&json!({"messages": [picture("BBBB")]})).await;
    let cat = json!({"role": "assistant", "content": "A cat."});
    let on = server.chat(&json!({"messages": [picture("AAAA"), cat, user("Sure?")]})).await.json();
    assert_eq!(on["turnwright"]["conversation_id"], first["turnwright"]["conversation_id"]);
}

#[tokio::test]
async fn a_request_can_want_to_be_asked() {
    let server = server([Answer::whole([call(0, "lab__look", "{}")])]);
    let tools = json!([{"type": "mcp", "server_label": "lab", "require_approval": "always", "allowed_tools": ["look"]}]);
    let answer = server.respond(&json!({"input": "Look!", "tools": tools})).await.json();
    assert_eq!(answer["output"][0]["type"], "mcp_approval_request", "{answer}");
    assert_eq!(server.source.effects().len(), 0);
}

#[tokio::test]
async fn a_clients_function_is_called_by_an_item_and_goes_on_by_its_output() {
    let server = server([picks(), Answer::whole([text("Picked.")]), Answer::whole([text("Other.")])]);
    let tool = json!({"type": "function", "name": "pick", "parameters": {"type": "object"}});
    let first = server.respond(&json!({"input": "Pick!", "tools": [tool]})).await.json();
    let item = first["output"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&item["type"], &item["name"], &item["arguments"]),
        (&json!("function_call"), &json!("pick"), &json!("{\"from\":\"x\"}"))
    );
    let output = json!([{"type": "function_call_output", "call_id": item["call_id"], "output": "red"}]);
    let second = server.respond(&json!({"previous_response_id": first["id"], "input": output})).await.json();
    assert_eq!(second["output"][0]["content"][0]["text"], "Picked.");
    assert_eq!(second["conversation"], first["conversation"]);
    assert_ne!(second["id"], first["id"]);
    let other = server.respond(&json!({"previous_response_id": second["id"], "input": "And?"})).await.json();
    assert_eq!(other["output"][0]["content"][0]["text"], "Other.");
    assert_eq!(server.get(&format!("/v1/responses/{}", first["id"].as_str().unwrap())).await.json()["output"], first["output"]);
}

#[tokio::test]
async fn a_response_that_goes_on_from_an_older_one_begins_a_conversation_of_its_own() {
    let server = server([Answer::whole([text("One.")]), Answer::whole([text("Two.")]), Answer::whole([text("Other.")])]);
    let first = server.respond(&json!({"input": "1"})).await.json();
    let second = server.respond(&json!({"input": "2", "previous_response_id": first["id"]})).await.json();
    assert_eq!(second["conversation"], first["conversation"]);
    let other = server.respond(&json!({"input": "3", "previous_response_id": first["id"]})).await.json();
    assert_ne!(other["conversation"], first["conversation"]);
    let said = server.messages(other["conversation"]["id"].as_str().unwrap()).await;
    let said: Vec<&str> = said.iter().map(|(_, content)| content.as_str()).collect();
    assert_eq!(said, ["1", "One.", "3", "Other."]);
    let gone = server.respond(&json!({"input": "4", "previous_response_id": "resp_9_none"})).await;
    assert_eq!((gone.status, &gone.json()["error"]["param"]), (404, &json!("previous_response_id")));
}

#[tokio::test]
async fn a_history_that_comes_again_begins_another_conversation_that_says_the_same() {
    let server = server(["one", "two", "three", "four"].map(|said| Answer::whole([text(said)])));
    let history = json!([user("a"), {"role": "assistant", "content": null, "tool_calls": [
        {"id": "x", "type": "function", "function": {"name": "theirs", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "x", "content": "r"}, {"role": "assistant", "content": "b"}]);
    let says = |history: &Value, last: &str| {
        let messages: Vec<Value> = history.as_array().unwrap().iter().cloned().chain([user(last)]).collect();
        json!({"messages": messages})
    };
    let named = |answered: &Answered| answered.header("x-turnwright-conversation").to_owned();
    let first = named(&server.chat(&says(&history, "c")).await);
    let second = named(&server.chat(&says(&history, "d")).await);
    assert_ne!(first, second);
    let expected = |question: &str, answer: &str| {
        [("user", "a"), ("assistant", ""), ("tool", "r"), ("assistant", "b"), ("user", question), ("assistant", answer)]
            .map(|(role, said)| (role.to_owned(), said.to_owned()))
    };
    assert_eq!(server.messages(&first).await, expected("c", "one"));
    assert_eq!(server.messages(&second).await, expected("d", "two"));
    assert_eq!(server.provider.asked()[1].replace("user: d", "user: c"), server.provider.asked()[0]);

    // What is another result is another history, and what was deleted is taken over anew.
    let mut other = history.clone();
    other[2]["content"] = json!("s");
    let third = named(&server.chat(&says(&other, "c")).await);
    assert_eq!(server.messages(&third).await[2], ("tool".to_owned(), "s".to_owned()));
    let path = format!("/api/v1/conversations/{first}");
    assert_eq!(server.send(Method::DELETE, &path, Body::empty(), &[]).await.status, 204);
    let fourth = named(&server.chat(&says(&history, "e")).await);
    assert_eq!(server.messages(&fourth).await, expected("e", "four"));
    assert_eq!(server.messages(&second).await, expected("d", "two"));
}

#[tokio::test]
async fn what_should_not_be_stored_is_stored_and_told_to_be() {
    let server = server([Answer::whole([text("one")])]);
    let answered = server.respond(&json!({"input": "1", "store": false})).await.json();
    assert_eq!(answered["store"], true);
    let path = format!("/v1/responses/{}", answered["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.status, 200);
}
