//! The doors that the API's description does not have: clients of other protocols, the page, signing in. Whatever is wrong with
//! a request, each has its answer.

use futures_util::{StreamExt, stream};
use turnwright_core::{ApproveMode, Declared, ToolDefinition};
use turnwright_engine::{NewMessage, SettingsOverlay};

use super::*;

/// A door, and what it says to requests that are wrong in each way; 0 where it cannot be wrong so.
struct Door {
    method: &'static str,
    path: &'static str,
    kind: &'static str,
    /// A body of another type than it takes.
    wrong_type: u16,
    /// Bytes that are no UTF-8.
    invalid_utf8: u16,
    /// A body that is longer than any may be.
    huge: u16,
    /// A method that it has not.
    wrong_method: u16,
}

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

const fn takes(path: &'static str, kind: &'static str, [wrong_type, invalid_utf8, huge, wrong_method]: [u16; 4]) -> Door {
    Door { method: "POST", path, kind, wrong_type, invalid_utf8, huge, wrong_method }
}

const fn shows(path: &'static str) -> Door {
    Door { method: "GET", path, kind: "", wrong_type: 0, invalid_utf8: 0, huge: 0, wrong_method: 405 }
}

const DOORS: &[Door] = &[
    takes("/v1/chat/completions", JSON, [415, 400, 413, 405]),
    takes("/v1/responses", JSON, [415, 400, 413, 405]),
    takes("/v1/responses/resp_none/cancel", JSON, [0, 0, 0, 405]),
    takes("/api/chat", JSON, [415, 400, 413, 405]),
    takes("/ag-ui", JSON, [415, 400, 413, 405]),
    takes("/mcp", JSON, [415, 400, 413, 405]),
    // Where nobody has to sign in it leads on to the page, whatever it is sent.
    takes("/login", FORM, [0, 0, 413, 405]),
    takes("/logout", FORM, [0, 0, 0, 405]),
    shows("/v1/models"),
    shows("/v1/models/test/scripted"),
    shows("/v1/responses/resp_none"),
    shows("/v1/responses/resp_none/input_items"),
    shows("/api/chat/c/stream"),
    shows("/openapi.json"),
    shows("/docs"),
    shows("/docs/none.js"),
    shows("/login"),
    shows("/login/oidc"),
    shows("/login/callback"),
    shows("/page/none.js"),
    shows("/"),
];

async fn send(router: &Router, door: &Door, host: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answered {
    let mut request = Request::builder().method(door.method).uri(door.path).header("host", host);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = String::from_utf8_lossy(&to_bytes(body, usize::MAX).await.unwrap()).into_owned();
    Answered { status: parts.status, headers: parts.headers, body }
}

/// Whether a refusal is told in a form that the door's clients read, and tells nothing else.
fn is_told(door: &Door, answer: &Answered) {
    let which = format!("{} {}: {} {}", door.method, door.path, answer.status, answer.body);
    assert!(answer.status.as_u16() < 500 && !answer.body.contains("panicked"), "{which}");
    if door.path.starts_with("/v1/") {
        assert!(answer.json()["error"]["message"].is_string(), "{which}");
    } else if door.path != "/mcp" && answer.header("content-type") != "text/html; charset=utf-8" {
        assert_eq!(answer.header("content-type"), "application/problem+json", "{which}");
        assert_eq!(answer.json()["status"], answer.status.as_u16(), "{which}");
    }
}

#[tokio::test]
async fn a_page_of_another_site_and_another_name_get_nothing_at_any_door() {
    let server = server().await;
    for door in DOORS {
        let headers = [("origin", "https://evil.example"), ("content-type", door.kind)];
        let foreign = send(&server.local, door, "localhost", &headers, b"{}".to_vec()).await;
        // What everybody may read is read from everywhere: scripts of our own page come with an origin too.
        if door.path.ends_with("/none.js") {
            assert_eq!(foreign.status, StatusCode::NOT_FOUND, "{}: {}", door.path, foreign.body);
        } else {
            assert_eq!(foreign.status, StatusCode::FORBIDDEN, "{} {}: {}", door.method, door.path, foreign.body);
            assert!(foreign.body.contains("origin_not_allowed"), "{}", foreign.body);
        }
        is_told(door, &foreign);
        for host in ["evil.example", "localhost.evil.example", "user@localhost"] {
            let foreign = send(&server.local, door, host, &[("content-type", door.kind)], b"{}".to_vec()).await;
            assert_eq!(foreign.status, StatusCode::FORBIDDEN, "{} {} at {host}: {}", door.method, door.path, foreign.body);
            assert!(foreign.body.contains("host_not_allowed"), "{}", foreign.body);
        }
    }
}

#[tokio::test]
async fn nobody_is_signed_in_or_out_by_another_name() {
    let server = server_at(Site { host: Some(turnwright_server::Hosts::Named("tw.example".into())), ..Site::default() }).await;
    for door in DOORS.iter().filter(|door| door.path.starts_with("/log")) {
        let foreign = send(&server.router, door, "evil.example", &[OURS, ("content-type", door.kind)], Vec::new()).await;
        assert_eq!(foreign.status, StatusCode::FORBIDDEN, "{} {}: {}", door.method, door.path, foreign.body);
        assert!(foreign.body.contains("host_not_allowed"), "{}", foreign.body);
        let ours = send(&server.router, door, "tw.example", &[OURS, ("content-type", door.kind)], Vec::new()).await;
        assert!(!ours.body.contains("host_not_allowed"), "{} {}: {}", door.method, door.path, ours.body);
    }
    // Who looks after it asks by whatever name it has there.
    let healthy = send(&server.router, &shows("/healthz"), "10.0.0.7:8700", &[], Vec::new()).await;
    assert_eq!(healthy.status, StatusCode::OK);
}

#[tokio::test]
async fn who_is_not_known_yet_sends_no_large_form() {
    let server = server().await;
    let form = |bytes: usize| format!("token={}", "x".repeat(bytes - "token=".len()));
    let enter = async |bytes: usize| server.form("/login", &[OURS], &form(bytes)).await;
    assert_eq!(enter(16 * 1024).await.status, StatusCode::UNAUTHORIZED, "as long as it may be, and no token");
    assert_eq!(enter(16 * 1024 + 1).await.code(), (413, "body_too_large".to_owned()));
}

#[tokio::test]
async fn with_a_session_a_page_of_another_site_gets_nothing_at_any_door() {
    let server = server_at(Site { host: Some(turnwright_server::Hosts::Named("tw.example".into())), ..Site::default() }).await;
    let (_, token) = server.member("anna").await;
    let cookie = server.form("/login", &[OURS], &format!("token={token}")).await.cookie();
    // What anybody may see, a page of another site may have shown too; it reads nothing of it.
    let open = ["/openapi.json", "/docs", "/docs/none.js", "/login", "/login/oidc", "/login/callback", "/page/none.js"];
    for door in DOORS.iter().filter(|door| door.method == "POST" || !open.contains(&door.path)) {
        let headers = [("origin", "https://evil.example"), ("cookie", &*cookie), ("content-type", door.kind)];
        let foreign = send(&server.router, door, "tw.example", &headers, b"{}".to_vec()).await;
        assert_eq!(foreign.status, StatusCode::FORBIDDEN, "{} {}: {}", door.method, door.path, foreign.body);
        is_told(door, &foreign);
        let unnamed = [("cookie", &*cookie), ("content-type", door.kind)];
        if door.method == "POST" {
            let refused = send(&server.router, door, "tw.example", &unnamed, b"{}".to_vec()).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}: {}", door.path, refused.body);
        }
    }
    assert_eq!(server.ask(Method::GET, "/api/v1/me", &[("cookie", &cookie)], "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_request_that_does_not_fit_is_refused_as_each_door_does() {
    let server = server().await;
    for door in DOORS {
        let local = async |headers: &[(&str, &str)], body: Vec<u8>| send(&server.local, door, "localhost", headers, body).await;
        let both = ("accept", "application/json, text/event-stream");
        if door.wrong_type > 0 {
            let answer = local(&[("content-type", "text/plain"), both], b"{}".to_vec()).await;
            assert_eq!(answer.status.as_u16(), door.wrong_type, "{}: {}", door.path, answer.body);
            is_told(door, &answer);
        }
        if door.invalid_utf8 > 0 {
            let answer = local(&[("content-type", door.kind), both], b"\xff\xfe{\0}\0".to_vec()).await;
            assert_eq!(answer.status.as_u16(), door.invalid_utf8, "{}: {}", door.path, answer.body);
            is_told(door, &answer);
        }
        if door.huge > 0 {
            let answer = local(&[("content-type", door.kind), both], vec![b' '; 33 << 20]).await;
            assert_eq!(answer.status.as_u16(), door.huge, "{}: {}", door.path, answer.body);
            is_told(door, &answer);
        }
        for method in ["PUT", "PATCH", "TRACE"] {
            let other = Door { method, path: door.path, kind: door.kind, ..shows(door.path) };
            let answer = send(&server.local, &other, "localhost", &[], Vec::new()).await;
            let told = (answer.status.as_u16(), answer.headers.contains_key("allow"));
            assert_eq!(told, (door.wrong_method, true), "{method} {}: {}", door.path, answer.body);
            is_told(&other, &answer);
        }
    }
}

#[tokio::test]
async fn the_page_of_the_api_loads_nothing_from_elsewhere() {
    let server = server().await;
    let page = server.ask(Method::GET, "/docs", &[], "").await;
    let policy: Vec<&str> = page.header("content-security-policy").split(';').map(str::trim).collect();
    assert_eq!(
        policy,
        [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'"
        ]
    );
    // What it names it names below itself, and each of these is there.
    let named = ["src=\"", "href=\""].iter().flat_map(|attribute| page.body.split(attribute).skip(1));
    let named: Vec<&str> = named.filter_map(|rest| rest.split('"').next()).collect();
    assert!(named.len() >= 2, "{named:?}");
    let mut texts = vec![("/docs".to_owned(), page.body.clone())];
    for name in named {
        let path = format!("/{}", name.trim_start_matches('/'));
        let loaded = server.ask(Method::GET, &path, &[], "").await;
        assert_eq!(loaded.status, StatusCode::OK, "{name}");
        if path.starts_with("/docs") {
            texts.push((path, loaded.body));
        }
    }
    for (path, text) in texts {
        for elsewhere in ["http:", "https:", "\"//", "'//", "url(//", "@import", "data:", "javascript:"] {
            assert!(!text.contains(elsewhere), "{path} has {elsewhere}");
        }
    }
}

#[tokio::test]
async fn a_message_to_mcp_that_does_not_come_is_not_waited_for() {
    let server = server().await;
    let begun = stream::iter([Ok::<_, std::io::Error>("{\"jsonrpc\"")]);
    let request = Request::builder().method("POST").uri("/mcp").header("host", "localhost").header("content-type", JSON);
    let request = request.header("accept", "application/json, text/event-stream");
    let request = request.body(Body::from_stream(begun.chain(stream::pending()))).unwrap();
    tokio::time::pause();
    let response = server.local.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
    let answered = Answered { status: parts.status, headers: parts.headers, body };
    assert_eq!(answered.code(), (408, "body_timeout".to_owned()), "{}", answered.body);
}

#[tokio::test]
async fn what_a_clients_tool_gave_is_taken_of_no_token_that_may_say_nothing_in_its_turn() {
    let server = server().await;
    let (anna, whole) = server.member("anna").await;
    let (chats, _) = server.token(&anna.id, [Scope::Read, Scope::Chat], None).await;
    let engine = server.engine.acting_for(anna.id.clone());
    let pick = ToolDefinition {
        name: "pick".to_owned(),
        source: "client".to_owned(),
        tool: "pick".to_owned(),
        title: None,
        description: String::new(),
        input_schema: json!({"type": "object"}),
        annotations: None,
        declared: Declared::default(),
    };
    for (thread, door) in [("c", "/v1/chat/completions"), ("r", "/v1/responses"), ("a", "/ag-ui")] {
        let id = thread.parse().unwrap();
        let overlay = SettingsOverlay {
            approve: Some(ApproveMode::All),
            client_tools: Some(vec![Arc::new(pick.clone())]),
            ..SettingsOverlay::default()
        };
        let message = NewMessage { overlay, create: true, ..NewMessage::text("choose it") };
        let turn = engine.send(&id, message).await.unwrap().turn_id;
        engine.wait(&id, turn).await.unwrap();
        let waiting = engine.waiting(&id).await.unwrap();
        let call = format!("{}_{thread}", waiting[0].call);
        let function = json!({"name": "pick", "arguments": "{}"});
        let calls = json!([{"id": call, "type": "function", "function": function}]);
        let said = json!({"role": "user", "content": "choose it", "id": "u"});
        let body = match thread {
            "c" => json!({"model": "test/scripted", "messages": [said, {"role": "assistant", "tool_calls": calls},
                          {"role": "tool", "tool_call_id": call, "content": "blue"}]}),
            "r" => json!({"model": "test/scripted", "conversation": "r",
                          "input": [{"type": "function_call_output", "call_id": call, "output": "blue"}]}),
            _ => {
                json!({"threadId": "a", "runId": "r1", "messages": [said, {"role": "assistant", "id": "m", "toolCalls": calls},
                        {"role": "tool", "id": "t", "toolCallId": call, "content": "blue"}], "tools": [], "context": []})
            }
        };
        let refused = server.post(door, &chats, body.clone()).await;
        assert_eq!(refused.code(), (403, "insufficient_scope".to_owned()), "{door}: {}", refused.body);
        assert_eq!(engine.waiting(&id).await.unwrap(), waiting, "{door}");
        let taken = server.post(door, &whole, body).await;
        assert!(taken.status == StatusCode::OK && taken.body.contains("Done."), "{door}: {}", taken.body);
    }
}

#[tokio::test]
async fn what_only_looks_reads_no_body() {
    let server = server().await;
    let (_, token) = server.member("anna").await;
    let headers = [("authorization", &*format!("Bearer {token}"))];
    let large = "x".repeat(33 << 20);
    assert_eq!(server.ask(Method::GET, "/api/v1/memory", &headers, &large).await.status, StatusCode::OK);
}
