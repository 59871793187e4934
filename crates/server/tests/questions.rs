//! What tools ask of people, over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Method, Request};
use serde_json::{Value, json};
use tower::ServiceExt;
use turnwright_core::policy::{Action, Policy, RuleText};
use turnwright_core::{ApproveMode, Elicitation, ModelRef, TurnSettings, Wants};
use turnwright_engine::{CONVERSATION_DOCUMENTS, Documents, Engine, EngineParts, ToolOutput, ToolReply, ToolSource};
use turnwright_server::{ServerOptions, ServerState, router};
use turnwright_testkit::{
    Answer, ManualClock, MemoryDocuments, MemoryStore, ScriptedProvider, ScriptedProviders, ScriptedSource, ScriptedTool, call,
    text,
};

use crate::documented::documented;

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "default": 30}}, "required": ["name"]})
}

/// A server whose model calls these tools, joined by `+`: `fill` ends to ask for a form and an address, `hold` asks for a form over its
/// connection, `pack` waits to be allowed, `twice` asks for the form and then for the address.
fn server(tool: &str) -> (Router, Engine) {
    server_with(tool, Arc::new(MemoryDocuments::default()))
}

fn server_with(tool: &str, documents: Arc<MemoryDocuments>) -> (Router, Engine) {
    let form = || Elicitation { key: "who".into(), message: "Who?".into(), wants: Wants::Form { schema: schema() } };
    let address = || Elicitation {
        key: "pay".into(),
        message: "Pay.".into(),
        wants: Wants::Url { url: "https://shop@pay.example.org/a?b=c".into() },
    };
    let fill = ScriptedTool::asking("fill", move |_, context| async move {
        Ok(match context.resume {
            None => ToolReply::Asks { asks: vec![form(), address()], resume: Value::Null },
            Some(resume) => {
                let told: Vec<Value> =
                    resume.answers.iter().map(|one| json!([one.ask.key, one.answer.action, one.answer.content])).collect();
                ToolReply::Done(ToolOutput::text(Value::from(told).to_string()))
            }
        })
    });
    let hold = ScriptedTool::new("hold", move |_, context| async move {
        let reply = context.asks.ask(form()).await.unwrap();
        Ok(ToolOutput::text(json!([reply.action, reply.content]).to_string()))
    });
    let ponder = ScriptedTool::asking("ponder", move |_, context| async move {
        Ok(match context.resume {
            None => ToolReply::Asks { asks: vec![pondering()], resume: Value::Null },
            Some(resume) => ToolReply::Done(ToolOutput::text(resume.answers.first().unwrap().answer.action.as_str())),
        })
    });
    let pack = ScriptedTool::echo("pack")
        .schema(json!({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}));
    let twice = ScriptedTool::asking("twice", move |_, context| async move {
        let answered = context.resume.map(|resume| resume.answers.iter().map(|one| one.ask.key.clone()).collect::<Vec<_>>());
        Ok(match answered {
            Some(keys) if keys.contains(&"pay".to_owned()) => ToolReply::Done(ToolOutput::text("paid")),
            Some(_) => ToolReply::Asks { asks: vec![address()], resume: Value::Null },
            None => ToolReply::Asks { asks: vec![form()], resume: Value::Null },
        })
    });
    let called = tool.split('+').zip(0..).map(|(tool, at)| {
        let arguments = if tool == "pack" { r#"{"count":1}"# } else { "{}" };
        call(at, &format!("shop__{tool}"), arguments)
    });
    let calls = Answer::whole(called.collect::<Vec<_>>());
    // The tools run without being asked about; what they want of models is for people to allow.
    let rule = |tool: &str, action| RuleText { tool: tool.to_owned(), when: BTreeMap::new(), action };
    let rules = vec![rule("shop__*", Action::Allow), rule("shop__pack", Action::Ask)];
    let engine = Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(ScriptedProvider::new([calls, Answer::whole([text("Done.")])]))),
        sources: vec![Arc::new(ScriptedSource::new("shop", [fill, hold, ponder, pack, twice])) as Arc<dyn ToolSource>],
        store: Arc::new(MemoryStore::default()),
        clock: Arc::new(ManualClock::at(1_736_622_000_000)),
        policy: Policy::new(rules).unwrap(),
        defaults: TurnSettings { approve: ApproveMode::Ask, ..TurnSettings::new(ModelRef::new("test", "scripted")) },
    });
    let state = ServerState::new(engine.clone(), ServerOptions { body_limit_bytes: 4096, ..ServerOptions::default() });
    (router(state.with_documents(documents)), engine)
}

fn pondering() -> Elicitation {
    let tool = json!({"name": "dice", "source": "", "tool": "dice", "input_schema": {"type": "object"}});
    let request = json!({
        "system_prompt": "Be short.", "messages": [{"role": "user", "content": [{"type": "text", "text": "What is a bit?"}]}],
        "max_tokens": 50, "tools": [tool], "budget": {"max_requests": 1, "max_output_tokens": 50},
    });
    let request = Box::new(serde_json::from_value(request).unwrap());
    Elicitation { key: "m".into(), message: "May a model be asked this?".into(), wants: Wants::Sampling { request } }
}

async fn ask(router: &Router, method: Method, path: &str, body: Value) -> (u16, Value) {
    ask_with(router, (method, path), None, body).await
}

async fn ask_with(router: &Router, (method, path): (Method, &str), key: Option<&str>, body: Value) -> (u16, Value) {
    let request = Request::builder().method(method.clone()).uri(path).header("host", "127.0.0.1:8700");
    let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let request = request.header("content-type", "application/json").body(body).unwrap();
    let response = documented(&method, path, router.clone().oneshot(request).await.unwrap());
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or_else(|_| panic!("not JSON: {}", String::from_utf8_lossy(&bytes))))
}

async fn get(router: &Router, path: &str) -> Value {
    ask(router, Method::GET, path, Value::Null).await.1
}

async fn post(router: &Router, path: &str, body: Value) -> (u16, Value) {
    ask(router, Method::POST, path, body).await
}

const FORM: &str = "/api/v1/conversations/c1/questions/question_4_0_0/answer";
const ADDRESS: &str = "/api/v1/conversations/c1/questions/question_4_0_1/answer";

#[tokio::test]
async fn what_a_tool_asks_is_listed_whole_and_answered_once() {
    let (router, engine) = server("fill");
    let (_, parked) = post(&router, "/api/v1/conversations/c1/chat", json!({"content": "go"})).await;
    assert_eq!(parked.pointer("/turn/status"), Some(&json!("suspended")));
    let form = json!({"id": "question_4_0_0", "name": "shop__fill", "arguments": "{}", "reason": "question", "rule": null,
        "question": {"call_id": "call_4_0", "server": "shop", "mode": "form", "message": "Who?", "requested_schema": schema(),
            "holds_connection": false, "expires_at": null}});
    let address = json!({"id": "question_4_0_1", "name": "shop__fill", "arguments": "{}", "reason": "question", "rule": null,
        "question": {"call_id": "call_4_0", "server": "shop", "mode": "url", "message": "Pay.",
            "url": "https://shop@pay.example.org/a?b=c", "host": "pay.example.org", "holds_connection": false,
            "expires_at": null}});
    assert_eq!(get(&router, "/api/v1/conversations/c1/calls").await.get("data"), Some(&json!([form, address])));
    assert_eq!(parked.pointer("/turn/waiting"), Some(&json!([form, address])));
    let everywhere = get(&router, "/api/v1/approvals").await;
    assert_eq!(everywhere.pointer("/data/1/conversation_id"), Some(&json!("c1")));

    let (status, problem) = post(&router, FORM, json!({"action": "accept", "content": {"age": -1, "hat": 1}})).await;
    assert_eq!((status, problem.get("code")), (422, Some(&json!("invalid_answer"))));
    let errors = json!([
        {"field": "name", "message": "is required"},
        {"field": "age", "message": "must be at least 0, not -1"},
        {"field": "hat", "message": "is no field of the form; its fields are `name`, `age`"},
    ]);
    assert_eq!(problem.get("errors"), Some(&errors));
    for wrong in [
        json!({}),
        json!({"action": "maybe"}),
        json!({"action": "accept", "extra": 1}),
        json!({"action": "decline", "content": {}}),
    ] {
        assert_eq!(post(&router, FORM, wrong.clone()).await.0, 422, "{wrong}");
    }
    let accepted = post(&router, FORM, json!({"action": "accept", "content": {"name": "Ann"}})).await;
    let receipt = json!({"id": "question_4_0_0", "action": "accept", "content": {"name": "Ann", "age": 30}});
    assert_eq!(accepted, (200, receipt));
    assert_eq!(post(&router, FORM, json!({"action": "cancel"})).await.0, 409);
    // The call's name stands for the one question that is left.
    let by_call = "/api/v1/conversations/c1/questions/call_4_0/answer";
    let declined = post(&router, by_call, json!({"action": "decline"})).await;
    assert_eq!(declined, (200, json!({"id": "question_4_0_1", "action": "decline", "content": null})));
    let turn = parked.pointer("/turn/turn_id").and_then(Value::as_str).unwrap().parse().unwrap();
    engine.wait(&"c1".parse().unwrap(), turn).await.unwrap();
    assert_eq!(post(&router, ADDRESS, json!({"action": "accept"})).await.0, 409);
    assert_eq!(post(&router, by_call, json!({"action": "accept"})).await.0, 409);
    let unknown = "/api/v1/conversations/c1/questions/question_4_0_9/answer";
    assert_eq!(post(&router, unknown, json!({"action": "accept"})).await.0, 404);
    let nonsense = "/api/v1/conversations/c1/questions/nonsense/answer";
    assert_eq!(post(&router, nonsense, json!({"action": "accept"})).await.0, 400);
    let messages = get(&router, "/api/v1/conversations/c1/messages").await;
    let told = r#"[["who","accept",{"name":"Ann","age":30}],["pay","decline",null]]"#;
    assert_eq!(messages.pointer("/data/2/content"), Some(&json!(told)));
}

#[tokio::test]
async fn a_question_over_a_held_connection_says_until_when_and_the_stream_tells_of_it() {
    let (router, engine) = server("hold");
    let (status, accepted) = post(&router, "/api/v1/conversations", json!({"id": "c1"})).await;
    assert_eq!(status, 201, "{accepted}");
    let (status, accepted) = post(&router, "/api/v1/conversations/c1/messages", json!({"content": "go"})).await;
    assert_eq!(status, 202, "{accepted}");
    let waiting = loop {
        let waiting = get(&router, "/api/v1/conversations/c1/calls").await;
        if waiting.pointer("/data/0").is_some() {
            break waiting;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(waiting.pointer("/data/0/question/holds_connection"), Some(&json!(true)));
    assert_eq!(waiting.pointer("/data/0/question/expires_at"), Some(&json!("2025-01-11T19:10:00.000Z")));
    let stream = Request::builder().uri("/api/v1/conversations/c1/stream").header("host", "127.0.0.1").body(Body::empty());
    let stream = router.clone().oneshot(stream.unwrap()).await.unwrap();
    assert_eq!(post(&router, FORM, json!({"action": "accept", "content": {"name": "Bo", "age": 3}})).await.0, 200);
    let bytes = to_bytes(stream.into_body(), usize::MAX).await.unwrap();
    let told = String::from_utf8_lossy(&bytes);
    let parts: Vec<Value> = told
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .filter(|chunk| chunk.get("type") == Some(&json!("data-elicitation")))
        .collect();
    let part = |state: Value| {
        let mut data = json!({"id": "question_4_0_0", "server": "shop", "mode": "form", "message": "Who?", "callId": "call_4_0",
            "holdsConnection": true, "state": "open", "requestedSchema": schema()});
        data.as_object_mut().unwrap().extend(state.as_object().unwrap().clone());
        json!({"type": "data-elicitation", "id": "question_4_0_0", "data": data})
    };
    assert_eq!(parts, [part(json!({})), part(json!({"state": "answered", "action": "accept"}))], "{told}");
    let turn = accepted.get("turn_id").and_then(Value::as_str).unwrap().parse().unwrap();
    engine.wait(&"c1".parse().unwrap(), turn).await.unwrap();
}

/// The events of a run.
async fn run(router: &Router, resume: &Value) -> Vec<Value> {
    let text = run_as(router, resume, None).await.1;
    text.lines().filter_map(|line| line.strip_prefix("data: ")).map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Status and text of the answer to a run with this idempotency key.
async fn run_as(router: &Router, resume: &Value, key: Option<&str>) -> (u16, String) {
    run_saying(router, &json!([{"id": "u1", "role": "user", "content": "go"}]), resume, key).await
}

/// What a run told, without what a page that may have it already is told first.
fn told(events: &[Value]) -> Vec<Value> {
    let is_first = |event: &&Value| event.get("type") != Some(&json!("MESSAGES_SNAPSHOT"));
    events.iter().filter(is_first).cloned().collect()
}

async fn run_saying(router: &Router, messages: &Value, resume: &Value, key: Option<&str>) -> (u16, String) {
    let body = json!({"threadId": "c1", "runId": "r1", "messages": messages, "tools": [], "context": [], "resume": resume});
    let request = Request::builder().method(Method::POST).uri("/ag-ui").header("host", "127.0.0.1:8700");
    let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
    let response = router.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn a_key_that_brought_answers_of_a_page_brings_no_others() {
    let (router, _engine) = server("fill");
    let asked = run_as(&router, &json!([]), Some("k0")).await;
    assert_eq!(run_as(&router, &json!([]), Some("k0")).await, asked, "it is told again, although something waits");
    let answers = |name: &str| {
        json!([{"interruptId": "question_4_0_0_c1", "status": "resolved", "payload": {"name": name}},
               {"interruptId": "question_4_0_1_c1", "status": "cancelled"}])
    };
    let first = run_as(&router, &answers("Ada"), Some("k")).await;
    assert!(first.0 == 200 && first.1.contains("RUN_FINISHED"), "{first:?}");
    let again = run_as(&router, &answers("Ada"), Some("k")).await;
    assert!(again.0 == 200 && again.1.contains("RUN_FINISHED"), "{again:?}");
    let (status, other) = run_as(&router, &answers("Bob"), Some("k")).await;
    assert!(status == 422 && other.contains("idempotency_key_reused"), "{other}");
}

#[tokio::test]
async fn a_page_of_ag_ui_answers_what_a_tool_asks_all_at_once() {
    let (router, _engine) = server("fill");
    let asked = run(&router, &json!([])).await;
    let interrupts = asked.last().unwrap().pointer("/outcome/interrupts").unwrap().clone();
    let shown = |at: usize, key: &str| interrupts.pointer(&format!("/{at}/{key}")).cloned();
    assert_eq!((shown(0, "reason"), shown(0, "responseSchema")), (Some(json!("input_required")), Some(schema())));
    assert_eq!(shown(1, "metadata/turnwright/url"), Some(json!("https://shop@pay.example.org/a?b=c")));

    let form = json!({"interruptId": "question_4_0_0_c1", "status": "resolved", "payload": {"name": "Ada"}});
    let address = json!({"interruptId": "question_4_0_1_c1", "status": "cancelled"});
    // What another thread asked under the same number is not what is asked here.
    let of = |name: &str| json!({"interruptId": name, "status": "resolved", "payload": {"name": "Eve"}});
    for wrong in [
        json!([form]),
        json!([form, form]),
        json!([form, {"interruptId": "mcpr_9_9_c1", "status": "cancelled"}]),
        json!([of("question_4_0_0_c2"), address]),
        json!([of("question_4_0_0"), address]),
    ] {
        let refused = run(&router, &wrong).await;
        assert_eq!(refused.last().unwrap().get("type"), Some(&json!("RUN_ERROR")), "{wrong}");
    }
    let answers = json!([form, address]);
    let resumed = run(&router, &answers).await;
    let kinds: Vec<&str> = resumed.iter().filter_map(|event| event.get("type")?.as_str()).collect();
    let expected = [
        "RUN_STARTED",
        "TOOL_CALL_RESULT",
        "STEP_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ];
    assert_eq!(kinds, expected);
    let result = resumed.get(1).and_then(|event| event.get("content")?.as_str());
    assert_eq!(result, Some("[[\"who\",\"accept\",{\"name\":\"Ada\",\"age\":30}],[\"pay\",\"cancel\",null]]"));
    assert_eq!(told(&run(&router, &answers).await), resumed, "the same answers again change nothing");
}

#[tokio::test]
async fn answers_of_a_page_of_which_one_does_not_fit_are_none() {
    let (router, _engine) = server("fill+pack");
    assert!(run(&router, &json!([])).await.last().unwrap().pointer("/outcome/interrupts/2").is_some());
    let waiting = get(&router, "/api/v1/conversations/c1/calls").await;
    assert_eq!(waiting.get("data").and_then(Value::as_array).map(Vec::len), Some(3));
    let answers = |name: &str, payload: Value| {
        json!([{"interruptId": "question_4_0_0_c1", "status": "resolved", "payload": {"name": name}},
               {"interruptId": "question_4_0_1_c1", "status": "cancelled"},
               {"interruptId": "mcpr_4_1_c1", "status": "resolved", "payload": payload}])
    };
    let mut misfilled = answers("Ada", json!({"approved": true}));
    *misfilled.pointer_mut("/0/payload").unwrap() = json!({"age": -1});
    for wrong in [misfilled, answers("Ada", json!({"approved": true, "editedArgs": {"count": "two"}}))] {
        let refused = run(&router, &wrong).await;
        assert_eq!(refused.last().unwrap().get("type"), Some(&json!("RUN_ERROR")), "{wrong}");
        assert_eq!(get(&router, "/api/v1/conversations/c1/calls").await, waiting, "{wrong}");
    }
    let right = answers("Zoe", json!({"approved": true}));
    let resumed = run(&router, &right).await;
    assert_eq!(resumed.last().unwrap().pointer("/outcome/type"), Some(&json!("success")), "{resumed:?}");
    assert!(resumed.iter().any(|event| event.to_string().contains("Zoe")), "{resumed:?}");
    let other = run(&router, &answers("Ann", json!({"approved": true}))).await;
    let text = "What shop__fill asks had been answered with something else before this answer came; that counts.";
    assert!(other.iter().any(|event| event.pointer("/value/text") == Some(&json!(text))), "{other:?}");
    assert!(other.iter().any(|event| event.to_string().contains("Zoe")), "{other:?}");
    assert_eq!(told(&run(&router, &right).await), resumed, "the same answers again change nothing");
}

#[tokio::test]
async fn a_page_of_ag_ui_is_shown_what_a_model_is_to_be_asked() {
    let (router, _engine) = server("ponder");
    let expected = json!([{
        "id": "question_4_0_0_c1", "reason": "input_required", "toolCallId": "call_4_0_c1",
        "message": "May a model be asked this? It goes to test/scripted, at your cost, for at most 50 tokens:\nsystem: Be short.\n\
                    user: What is a bit?\ntools of its own: dice",
        "responseSchema": {"type": "object", "properties": {}},
        "metadata": {"turnwright": {"sampling": {
            "model": "test/scripted", "system_prompt": "Be short.", "max_tokens": 50, "tools": ["dice"],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "What is a bit?"}]}],
        }}},
    }]);
    let asked = run(&router, &json!([])).await;
    assert_eq!(asked.last().unwrap().pointer("/outcome/interrupts"), Some(&expected));
    let declined = run(&router, &json!([{"interruptId": "question_4_0_0_c1", "status": "cancelled"}])).await;
    assert_eq!(declined.get(1).and_then(|event| event.get("content")?.as_str()), Some("cancel"));
}

#[tokio::test]
async fn a_page_of_ag_ui_answers_what_a_tool_asks_over_a_connection_that_it_holds() {
    let (router, _engine) = server("hold");
    let asked = run(&router, &json!([])).await;
    let expected = json!([{
        "id": "question_4_0_0_c1", "reason": "input_required", "toolCallId": "call_4_0_c1", "message": "Who?",
        "responseSchema": schema(), "metadata": {"turnwright": {"url": null}},
    }]);
    let last = asked.last().unwrap();
    assert_eq!((last.get("type"), last.pointer("/outcome/type")), (Some(&json!("RUN_FINISHED")), Some(&json!("interrupt"))));
    assert_eq!(last.pointer("/outcome/interrupts"), Some(&expected));
    assert_eq!(run(&router, &json!([])).await, asked, "the same run again is told again");
    let answers = json!([{"interruptId": "question_4_0_0_c1", "status": "resolved", "payload": {"name": "Ada"}}]);
    let resumed = run(&router, &answers).await;
    let result = resumed.get(1).and_then(|event| event.get("content")?.as_str());
    assert_eq!(result, Some("[\"accept\",{\"name\":\"Ada\",\"age\":30}]"));
    assert_eq!(resumed.last().unwrap().pointer("/outcome/type"), Some(&json!("success")));
    assert_eq!(told(&run(&router, &answers).await), resumed, "the same answers again change nothing");
}

#[tokio::test]
async fn what_a_page_says_beside_its_answer_over_a_held_connection_is_said_and_declines_nothing() {
    let (router, _engine) = server("hold");
    assert!(run(&router, &json!([])).await.last().unwrap().pointer("/outcome/interrupts").is_some());
    let answers = json!([{"interruptId": "question_4_0_0_c1", "status": "resolved", "payload": {"name": "Ada"}}]);
    let messages = ["go", "and more"].map(|text| json!({"id": text, "role": "user", "content": text}));
    let (_, told) = run_saying(&router, &json!(messages), &answers, None).await;
    assert!(told.contains("Ada") && told.contains(r#""type":"success""#), "{told}");
    let said = get(&router, "/api/v1/conversations/c1/messages").await;
    let people =
        said.get("data").and_then(Value::as_array).unwrap().iter().filter(|one| one.get("role") == Some(&json!("user")));
    let people: Vec<&Value> = people.filter_map(|one| one.get("content")).collect();
    assert_eq!(people, ["go", "and more"]);
}

/// The name of a response, its status and its items.
async fn respond(router: &Router, body: Value) -> (String, Value, Vec<Value>) {
    let (status, response) = post(router, "/v1/responses", body).await;
    assert_eq!(status, 200, "{response}");
    let id = response.get("id").and_then(Value::as_str).unwrap().to_owned();
    (id, response.get("status").unwrap().clone(), response.get("output").and_then(Value::as_array).unwrap().clone())
}

#[tokio::test]
async fn a_response_ends_where_a_tool_asks_and_another_message_declines_it() {
    for tool in ["hold", "fill"] {
        let (router, _engine) = server(tool);
        let (id, status, output) = respond(&router, json!({"input": "go"})).await;
        assert_eq!(status, "completed");
        let text = output.last().unwrap().pointer("/content/0/text").and_then(Value::as_str).unwrap();
        assert!(text.contains("Who?\n  `turnwright approvals answer question_4_0_0 --conversation conv"), "{text}");
        let (_, later) = ask(&router, Method::GET, &format!("/v1/responses/{id}"), Value::Null).await;
        assert_eq!(later.get("output").and_then(Value::as_array), Some(&output));
        let (_, status, next) = respond(&router, json!({"input": "never mind", "previous_response_id": id})).await;
        let said: Vec<_> = next.iter().filter_map(|item| item.pointer("/content/0/text")?.as_str()).collect();
        assert_eq!((status, said), (json!("completed"), vec!["Done."]), "{tool}");
        let (_, before) = ask(&router, Method::GET, &format!("/v1/responses/{id}"), Value::Null).await;
        assert_eq!(before.get("output").and_then(Value::as_array), Some(&output));
    }
}

#[tokio::test]
async fn a_completion_ends_where_a_tool_asks_over_its_connection_and_the_answer_goes_on_by_any_door() {
    let (router, engine) = server("hold");
    let body = json!({"messages": [{"role": "user", "content": "go"}], "metadata": {"conversation_id": "c1"}});
    let (status, told) = post(&router, "/v1/chat/completions", body).await;
    let text = told.pointer("/choices/0/message/content").and_then(Value::as_str).unwrap();
    assert!(text.contains("Who?\n  `turnwright approvals answer question_4_0_0 --conversation c1`"), "{text}");
    assert_eq!((status, told.pointer("/choices/0/finish_reason")), (200, Some(&json!("stop"))));
    assert_eq!(post(&router, FORM, json!({"action": "accept", "content": {"name": "Bo"}})).await.0, 200);
    let turn = engine.look(&"c1".parse().unwrap(), |journal| journal.turn().unwrap().id()).await.unwrap();
    engine.wait(&"c1".parse().unwrap(), turn).await.unwrap();
    let messages = get(&router, "/api/v1/conversations/c1/messages").await;
    assert_eq!(messages.pointer("/data/3/content"), Some(&json!("Done.")));
}

/// The process ended after the answer was stored and before it was kept that it had been given.
#[tokio::test]
async fn an_answer_by_the_name_of_a_call_is_none_to_what_the_call_asks_later() {
    let documents = Arc::new(MemoryDocuments::default());
    let (router, _engine) = server_with("twice", documents.clone());
    post(&router, "/api/v1/conversations/c1/chat", json!({"content": "go"})).await;
    let by_call = "/api/v1/conversations/c1/questions/call_4_0/answer";
    let body = json!({"action": "accept", "content": {"name": "Ann"}});
    let answer = async || ask_with(&router, (Method::POST, by_call), Some("k"), body.clone()).await;
    assert_eq!(answer().await.1.get("id"), Some(&json!("question_4_0_0")));
    let waiting = async || get(&router, "/api/v1/conversations/c1/calls").await.pointer("/data/0/id").cloned();
    while waiting().await.is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(waiting().await, Some(json!("question_4_0_1")));
    let kept = documents.documents(CONVERSATION_DOCUMENTS).await.unwrap();
    let mut kept = kept.into_iter().find(|document| document.key.starts_with("c1/once/")).unwrap();
    let mut left: Value = serde_json::from_str(&kept.body).unwrap();
    let gone = "0123456789abcdef0123456789abcdef";
    left.as_object_mut().unwrap().extend([
        ("under_way".to_owned(), json!({"id": "conv_0", "since_ms": 5, "by": gone})),
        ("answer".to_owned(), Value::Null),
    ]);
    kept.body = left.to_string();
    documents.put_document(CONVERSATION_DOCUMENTS, kept).await.unwrap();
    let (status, problem) = answer().await;
    assert_eq!((status, problem.get("code")), (409, Some(&json!("request_under_way"))), "{problem}");
    assert_eq!(waiting().await, Some(json!("question_4_0_1")));
}
