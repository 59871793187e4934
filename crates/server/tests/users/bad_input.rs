//! What is wrong about a request is answered with a status that the API's own description names, whatever it is: every
//! route of that description, with everything that may be wrong.

use std::collections::BTreeSet;

use super::belonging::sample;
use super::*;

/// A route as it is described.
struct Operation {
    method: Method,
    path: String,
    statuses: BTreeSet<u16>,
    /// A body that fits, where it takes one.
    body: Option<Value>,
}

impl Operation {
    fn is_openai(&self) -> bool {
        self.path.starts_with("/v1/")
    }

    fn kind_of_refusals(&self) -> &'static str {
        if self.is_openai() { "application/json" } else { "application/problem+json" }
    }
}

fn operations() -> Vec<Operation> {
    let document = serde_json::to_value(turnwright_server::openapi()).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |(method, told)| (path, method, told)));
    all.map(|(path, method, told)| {
        let schema = &told["requestBody"]["content"]["application/json"]["schema"];
        Operation {
            method: method.to_uppercase().parse().unwrap(),
            path: path.clone(),
            statuses: told["responses"].as_object().unwrap().keys().map(|status| status.parse().unwrap()).collect(),
            body: (!schema.is_null()).then(|| sample(&document, schema)),
        }
    })
    .collect()
}

struct Wrong {
    path: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
}

/// An installation in which there is something to lose, and an admin who may do all.
struct World {
    server: Server,
    token: String,
    call: String,
    response: String,
    spare: String,
    carl: User,
}

impl World {
    async fn new() -> Self {
        Box::pin(Self::made()).await
    }

    async fn made() -> Self {
        let server = server_at(Site {
            host: Some(turnwright_server::Hosts::Named("tw.example".into())),
            origin: None,
            is_tls: false,
            path: String::new(),
            trusted_proxies: Vec::new(),
            allowed_origins: Vec::new(),
            apps: turnwright_server::Apps::default(),
        })
        .await;
        let admin = server.user("anna", Role::Admin).await;
        let scopes = [Scope::Read, Scope::Chat, Scope::Approve, Scope::Admin];
        let (token, _) = server.token(&admin.id, scopes, None).await;
        let member = server.user("carl", Role::Member).await;
        let (_, spare) = server.token(&member.id, [Scope::Read], None).await;
        let parked = server.post("/api/v1/conversations/c/chat", &token, json!({"content": "touch it"})).await.json();
        let call = parked["turn"]["waiting"][0]["id"].as_str().unwrap().to_owned();
        let answer = server.post("/v1/responses", &token, json!({"model": "test/scripted", "input": "hello"})).await.json();
        let response = answer["id"].as_str().unwrap().to_owned();
        Self { server, token, call, response, spare, carl: member }
    }

    /// A path that names what is there.
    fn path(&self, operation: &Operation) -> String {
        let id = match operation.path.split('/').nth(3) {
            Some("conversations") => "c",
            Some("users") => self.carl.id.as_str(),
            Some("tokens") => &self.spare,
            _ if operation.path.starts_with("/api/chat/") => "c",
            _ if operation.path.starts_with("/v1/responses/") => &self.response,
            _ => "nothing",
        };
        self.named(operation, id)
    }

    /// The same with another name in place of the first.
    fn named(&self, operation: &Operation, id: &str) -> String {
        let question = format!("question{}_0", self.call.trim_start_matches("call"));
        let path = operation.path.replace("{id}", id).replace("{call}", &self.call).replace("{message}", "msg_1");
        path.replace("{question}", &question).replace("{tool}", "x").replace("{rule}", id)
    }

    async fn send(&self, operation: &Operation, request: Wrong) -> Answered {
        let mut built = Request::builder().method(operation.method.clone()).uri(&request.path);
        let has = |name: &str| request.headers.iter().any(|(given, _)| *given == name);
        if !has("host") {
            built = built.header("host", "tw.example");
        }
        if !has("authorization") {
            built = built.header("authorization", format!("Bearer {}", self.token));
        }
        if !has("content-type") && operation.body.is_some() {
            built = built.header("content-type", "application/json");
        }
        for (name, value) in &request.headers {
            built = built.header(*name, value.as_slice());
        }
        let response = self.server.router.clone().oneshot(built.body(Body::from(request.body)).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        // A stream of a conversation that is there goes on.
        let is_stream = parts.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let body = if is_stream { Vec::new() } else { to_bytes(body, usize::MAX).await.unwrap().to_vec() };
        Answered { status: parts.status, headers: parts.headers, body: String::from_utf8(body).unwrap() }
    }

    /// Sends it and looks whether the answer is one that is described.
    async fn check(&self, operation: &Operation, what: &str, request: Wrong) -> u16 {
        let path = request.path.clone();
        let answer = self.send(operation, request).await;
        let which = format!("{} {path} with {what}: {} {}", operation.method, answer.status, answer.body);
        let status = answer.status.as_u16();
        assert!(operation.statuses.contains(&status) && status < 500, "{which}");
        assert!(!answer.body.contains(&self.token) && !answer.body.contains("panicked"), "{which}");
        if status >= 400 {
            let problem = answer.json();
            // Its protocol has a form of its own for what it refuses.
            if operation.path == "/mcp" && answer.header("content-type") == "application/json" {
                assert!(problem["error"]["code"].is_i64() && problem["error"]["message"].is_string(), "{which}");
                return status;
            }
            assert_eq!(answer.header("content-type"), operation.kind_of_refusals(), "{which}");
            if operation.is_openai() {
                assert!(problem["error"]["code"].is_string() && problem["error"]["message"].is_string(), "{which}");
            } else {
                assert_eq!(problem["status"], status, "{which}");
                assert!(problem["code"].is_string() && problem["detail"].is_string(), "{which}");
            }
        }
        status
    }

    async fn known(&self) -> String {
        let turns = self.server.get("/api/v1/conversations/c/turns", &self.token).await.body;
        let calls = self.server.get("/api/v1/conversations/c/calls", &self.token).await.body;
        turns + &calls
    }
}

fn plain(path: String) -> Wrong {
    Wrong { path, headers: Vec::new(), body: Vec::new() }
}

#[tokio::test]
async fn a_body_that_does_not_fit_is_refused_as_described_by_every_route() {
    let world = World::new().await;
    let before = world.known().await;
    let deep = "[".repeat(100_000);
    let raw: [&[u8]; 10] = [
        b"{",
        b"[]",
        b"7",
        b"null",
        b"\"x\"",
        b"{\"\xff\":\"\xfe\"}",
        b"\xff\xfe{\0}\0",
        b"{\"a\":1,\"a\":1}{}",
        deep.as_bytes(),
        b"{\"no_such_field\": true}",
    ];
    let mut refused = 0;
    for operation in operations().iter().filter(|operation| operation.body.is_some()) {
        let path = world.path(operation);
        for body in raw {
            let what = String::from_utf8_lossy(body.get(..60.min(body.len())).unwrap()).into_owned();
            let status = world.check(operation, &what, Wrong { body: body.to_vec(), ..plain(path.clone()) }).await;
            assert!(status >= 400, "{} {path} took {what}", operation.method);
            refused += 1;
        }
        // Each field in each wrong type, the others as they should be.
        let fields = operation.body.as_ref().unwrap().as_object().cloned().unwrap_or_default();
        for name in fields.keys() {
            for wrong in [json!([[]]), json!({"a": {}}), json!(-1.5e300), json!(u64::MAX)] {
                let mut body = fields.clone();
                body.insert(name.clone(), wrong);
                let body = Value::Object(body).to_string();
                world.check(operation, &body, Wrong { body: body.clone().into_bytes(), ..plain(path.clone()) }).await;
            }
        }
        for kind in ["text/plain", "multipart/form-data", "", "application/json, text/plain"] {
            let headers = vec![("content-type", kind.into())];
            world.check(operation, kind, Wrong { headers, body: b"{}".to_vec(), ..plain(path.clone()) }).await;
        }
        // So large that it is not waited for.
        let headers = vec![("content-length", b"1099511627776".to_vec()), ("expect", b"100-continue".to_vec())];
        let status = world.check(operation, "a terabyte", Wrong { headers, ..plain(path) }).await;
        assert_eq!(status, 413, "{} {}", operation.method, operation.path);
    }
    assert!(refused > 200, "{refused}");
    assert_eq!(world.known().await, before, "nothing was lost");
}

#[tokio::test]
async fn a_name_that_is_none_leads_nowhere_by_every_route() {
    let world = World::new().await;
    let before = world.known().await;
    let long = "x".repeat(5_000);
    let names = [
        "..",
        ".",
        "%2e%2e",
        "..%2f..%2f..%2fetc%2fpasswd",
        "..%5c..%5cwindows",
        "%00",
        "a%00b",
        "%ff%fe",
        "a%2Fb",
        "%20",
        "%F0%9F%92%A5",
        "%27%3B%20DROP%20TABLE%20conversation%3B--",
        "c%0d%0aX-Evil:1",
        &long,
    ];
    for operation in operations().iter().filter(|operation| operation.path.contains('{')) {
        let body = operation.body.as_ref().map(Value::to_string).unwrap_or_default();
        for name in names {
            let request = Wrong { body: body.clone().into_bytes(), ..plain(world.named(operation, name)) };
            let status = world.check(operation, "", request).await;
            assert!(status >= 400, "{} {} took {name}", operation.method, operation.path);
        }
    }
    assert_eq!(world.known().await, before);
}

#[tokio::test]
async fn a_query_or_a_header_that_does_not_fit_is_answered_as_described_by_every_route() {
    let world = World::new().await;
    let queries = [
        "limit=x",
        "limit=-1",
        "limit=0",
        "limit=99999999999999999999",
        "limit=1&limit=2",
        "cursor=..%2f..",
        "cursor=%ff",
        "cursor=msg_0",
        "q=%ff",
        "q=%00",
        "format=xml",
        "ui=99",
        "after=-1",
        "after=x",
        "after=999999999999999999",
        "%ff=%ff",
        "=&&=",
        "purge=perhaps",
        "nonsense=1",
        "since=x",
        "days=-1",
    ];
    let long = vec![b'x'; 10_000];
    let headers: [(&'static str, &[u8]); 8] = [
        ("last-event-id", b"\xff"),
        ("last-event-id", &long),
        ("idempotency-key", &long),
        ("idempotency-key", b"\xff"),
        ("accept", b"nothing/*;;;q=x"),
        ("x-filler", &long),
        ("cookie", &long),
        ("if-match", b"\"no-such\""),
    ];
    for operation in operations().iter().filter(|operation| operation.method == Method::GET) {
        for query in queries {
            world.check(operation, query, plain(format!("{}?{query}", world.path(operation)))).await;
        }
    }
    for operation in operations().iter().filter(|operation| operation.body.is_some() || operation.method == Method::GET) {
        for (name, value) in headers {
            let body = b"[]".to_vec();
            let request = Wrong { headers: vec![(name, value.to_vec())], body, ..plain(world.path(operation)) };
            world.check(operation, name, request).await;
        }
    }
}

#[tokio::test]
async fn a_method_that_a_route_has_not_is_refused() {
    let world = World::new().await;
    let all = operations();
    for operation in &all {
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::TRACE] {
            if all.iter().any(|other| other.path == operation.path && other.method == method) {
                continue;
            }
            let wrong = Operation { method, path: operation.path.clone(), statuses: BTreeSet::new(), body: None };
            let answer = world.send(&wrong, plain(world.path(&wrong))).await;
            let told = (answer.status.as_u16(), answer.header("content-type"), answer.headers.contains_key("allow"));
            assert_eq!(told, (405, wrong.kind_of_refusals(), true), "{} {}: {}", wrong.method, wrong.path, answer.body);
        }
    }
}

#[tokio::test]
async fn whoever_is_not_known_or_comes_from_elsewhere_is_refused_by_every_route() {
    let world = World::new().await;
    let before = world.known().await;
    let (expired, _) = world.server.token(&world.carl.id, [Scope::Read], Some(NOW_MS)).await;
    let (revoked, id) = world.server.token(&world.carl.id, [Scope::Read], None).await;
    world
        .server
        .ask(Method::DELETE, &format!("/api/v1/tokens/{id}"), &[("authorization", &format!("Bearer {revoked}"))], "")
        .await;
    let (gone, id) = world.server.token(&world.carl.id, [Scope::Read], None).await;
    assert!(world.server.accounts.remove_credential(&id).await.is_ok());
    let long = "x".repeat(10_000);
    let unknown = [
        "",
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        "Bearer \u{e9}",
        &long,
        &format!("Bearer {long}"),
        &format!("Bearer {expired}"),
        &format!("Bearer {gone}"),
        &format!("bearer {}x", world.token),
    ];
    let open = ["/healthz", "/readyz"];
    for operation in operations().iter().filter(|operation| !open.contains(&&*operation.path)) {
        for value in unknown {
            let request = Wrong { headers: vec![("authorization", value.into())], ..plain(world.path(operation)) };
            let status = world.check(operation, value, request).await;
            assert_eq!(status, 401, "{} {} for {:.60}", operation.method, operation.path, value);
        }
        for host in ["evil.example", "tw.example.evil.example", "tw.example@evil.example", ""] {
            let request = Wrong { headers: vec![("host", host.into())], ..plain(world.path(operation)) };
            assert_eq!(world.check(operation, host, request).await, 403, "{} {} at {host}", operation.method, operation.path);
        }
    }
    assert_eq!(world.known().await, before);
}

#[tokio::test]
async fn a_page_of_another_site_gets_nothing_by_any_route() {
    let world = World::new().await;
    let before = world.known().await;
    let member = world.server.token(&world.carl.id, [Scope::Read, Scope::Chat, Scope::Approve], None).await.0;
    let entered = world.server.form("/login", &[OURS], &format!("token={member}")).await;
    let cookie = entered.cookie();
    let me = world.server.ask(Method::GET, "/api/v1/me", &[("cookie", &cookie), OURS], "").await;
    assert_eq!((me.status, &me.json()["how"]), (StatusCode::OK, &json!("session")), "its own page may: {}", me.body);
    let mut asked = 0;
    for operation in operations() {
        let path = world.path(&operation);
        let body = operation.body.as_ref().map(Value::to_string).unwrap_or_default();
        let which = format!("{} {path}", operation.method);
        for origin in ["https://evil.example", "http://tw.example.evil.example", "null", "https://tw.example:1"] {
            let refused = |answer: Answered| {
                assert_eq!(answer.code(), (403, "origin_not_allowed".to_owned()), "{which} from {origin}: {}", answer.body);
            };
            // Where nobody has to sign in; the name of the machine is right.
            let local = Request::builder().method(operation.method.clone()).uri(&path).header("host", "localhost");
            let local = local.header("origin", origin).header("content-type", "application/json");
            let response = world.server.local.clone().oneshot(local.body(Body::from(body.clone())).unwrap()).await.unwrap();
            let (parts, read) = response.into_parts();
            let read = String::from_utf8(to_bytes(read, usize::MAX).await.unwrap().to_vec()).unwrap();
            refused(Answered { status: parts.status, headers: parts.headers, body: read });
            // With the browser's cookie. Whether the server is well it tells everybody.
            if !["/healthz", "/readyz"].contains(&&*operation.path) {
                let headers = [("cookie", &*cookie), ("origin", origin), ("content-type", "application/json")];
                let answer = world.server.ask(operation.method.clone(), &path, &headers, &body).await;
                let lacks = answer.status == StatusCode::FORBIDDEN && answer.code().1 == "insufficient_scope";
                if !lacks {
                    refused(answer);
                }
            }
            asked += 1;
        }
    }
    assert!(asked > 250, "{asked}");
    assert_eq!(world.known().await, before);
}

#[tokio::test]
async fn what_comes_at_the_same_moment_or_too_late_has_one_outcome() {
    let world = World::new().await;
    let server = &world.server;
    // Two answers to one question.
    let decision = format!("/api/v1/conversations/c/calls/{}/decision", world.call);
    let decide = |word: &'static str| server.post(&decision, &world.token, json!({"decision": word}));
    let (one, other) = tokio::join!(decide("allow"), decide("deny"));
    let mut statuses = [one.status.as_u16(), other.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{} {}", one.body, other.body);
    assert_eq!(decide("allow").await.status, StatusCode::CONFLICT, "an answer that is sent again");
    // A stop of what is over.
    let ended = server.post("/api/v1/conversations/d/chat", &world.token, json!({"content": "hello"})).await.json();
    assert_eq!(ended["turn"]["status"], "completed");
    for body in [json!({}), json!({"turn_id": "turn_1"}), json!({"turn_id": "turn_99"})] {
        let late = server.post("/api/v1/conversations/d/cancel", &world.token, body).await;
        assert_eq!(late.status, StatusCode::CONFLICT, "{}", late.body);
    }
    // A message to what is being deleted: it is part of what is deleted, or begins anew, or is told that it is gone.
    for round in 0..20 {
        let id = format!("e{round}");
        let chat = format!("/api/v1/conversations/{id}/chat");
        server.post(&chat, &world.token, json!({"content": "hello"})).await;
        let path = format!("/api/v1/conversations/{id}");
        let bearer = format!("Bearer {}", world.token);
        let headers = [("authorization", bearer.as_str())];
        let deleting = server.ask(Method::DELETE, &path, &headers, "");
        let (said, deleted) = tokio::join!(server.post(&chat, &world.token, json!({"content": "again"})), deleting);
        assert!([200, 404, 409].contains(&said.status.as_u16()), "{}: {}", said.status, said.body);
        assert!([204, 404, 409].contains(&deleted.status.as_u16()), "{}: {}", deleted.status, deleted.body);
        let left = server.get(&format!("{path}/messages"), &world.token).await;
        let said_so = said.status == StatusCode::OK && said.json()["turn"]["status"] == "completed";
        assert!(left.status == StatusCode::OK || left.status == StatusCode::NOT_FOUND, "{}", left.body);
        if left.status == StatusCode::OK && said_so {
            assert!(left.body.contains("again"), "{}", left.body);
        }
    }
}
