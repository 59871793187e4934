//! What belongs to another is not there: every route of the API's own description, walked over by somebody else.

use serde_json::{Map, Value, json};

use super::*;

/// A value that fits a schema, as small as it can be.
pub(super) fn sample(document: &Value, schema: &Value) -> Value {
    if let Some(named) = schema["$ref"].as_str() {
        return sample(document, document.pointer(named.trim_start_matches('#')).unwrap());
    }
    if let Some(value) = schema["enum"].get(0).or_else(|| schema.get("const")).or_else(|| schema.get("default")) {
        return value.clone();
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(all) = schema[choice].as_array() {
            return sample(document, all.iter().find(|one| one["type"] != "null").unwrap());
        }
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    if kind == Some("object") || schema.get("properties").is_some() || schema.get("allOf").is_some() {
        let mut whole = Map::new();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            whole.extend(sample(document, part).as_object().cloned().unwrap_or_default());
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            whole.insert(name.to_owned(), sample(document, &schema["properties"][name]));
        }
        return Value::Object(whole);
    }
    match kind {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        _ => json!("x"),
    }
}

struct Annas {
    call: String,
    token: String,
    artifact: String,
    rule: String,
    response: String,
}

/// What the first user has: a conversation in which a call waits, a server, a token, a file, a rule, something to remember.
async fn annas(server: &Server, anna: &User, token: &str) -> Annas {
    let parked = server.post("/api/v1/conversations/c-anna/chat", token, json!({"content": "touch it"})).await.json();
    assert_eq!(parked["turn"]["status"], "suspended", "{parked}");
    let added = server.post("/api/v1/mcp/servers", token, json!({"name": "annas", "url": "http://127.0.0.1:9/"})).await;
    assert_eq!((added.status, &added.json()["owner"]), (StatusCode::CREATED, &json!(anna.id)), "{}", added.body);
    let (_, id) = server.token(&anna.id, [Scope::Read], None).await;
    let file = server.ask(Method::POST, "/api/v1/artifacts", &[("authorization", &format!("Bearer {token}"))], "hers").await;
    let artifact = file.json()["id"].as_str().unwrap().to_owned();
    let rule = json!({"tool": "lab__anna", "action": "deny", "scope": "user"});
    let rule = server.post("/api/v1/approvals/rules", token, rule).await.json();
    let rule = rule["id"].as_str().unwrap_or_else(|| panic!("{rule}")).to_owned();
    let memory = json!({"text": "anna likes tea"});
    let remembered = server.with(Method::PUT, "/api/v1/memory", token, ("x-none", ""), memory).await;
    assert_eq!(remembered.status, StatusCode::OK, "{}", remembered.body);
    let answer = server.post("/v1/responses", token, json!({"model": "test/scripted", "input": "hello"})).await.json();
    let response = answer["id"].as_str().unwrap().to_owned();
    Annas { response, artifact, rule, call: parked["turn"]["waiting"][0]["id"].as_str().unwrap().to_owned(), token: id }
}

/// A path with the names of what is there, or of nothing.
fn filled(path: &str, annas: &Annas, anna: &User, is_there: bool) -> String {
    let id = match (path.split('/').nth(3), is_there) {
        (Some("conversations"), true) => "c-anna",
        (Some("mcp"), true) => "annas",
        (Some("tokens"), true) => &annas.token,
        (Some("artifacts"), true) => &annas.artifact,
        (Some("users"), true) => anna.id.as_str(),
        (_, true) if path.starts_with("/v1/responses/") => &annas.response,
        (_, true) if path.starts_with("/api/chat/") => "c-anna",
        (_, _) => "nothing",
    };
    path.replace("{id}", id)
        .replace("{call}", &annas.call)
        .replace("{message}", "msg_1")
        .replace("{question}", &format!("question{}_0", annas.call.trim_start_matches("call")))
        .replace("{tool}", "x")
}

#[tokio::test]
async fn no_route_tells_anybody_what_another_has_or_changes_it() {
    let server = server().await;
    let (anna, hers) = server.member("anna").await;
    let (_, his) = server.member("ben").await;
    let annas = annas(&server, &anna, &hers).await;
    let known = async || {
        let journal = server.get("/api/v1/conversations/c-anna/turns", &hers).await.body;
        let servers = server.get("/api/v1/mcp/servers/annas", &hers).await.json();
        let tokens = server.get("/api/v1/tokens", &hers).await.json()["data"].as_array().unwrap().len();
        (journal, servers["config"].clone(), servers["state"].clone(), tokens)
    };
    let before = known().await;

    let document = serde_json::to_value(turnwright_server::openapi()).unwrap();
    let mut walked = 0;
    for (path, item) in document["paths"].as_object().unwrap().iter().filter(|(path, _)| path.contains('{')) {
        for (method, operation) in item.as_object().unwrap() {
            let which = format!("{method} {path}");
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let body = if schema.is_null() { String::new() } else { sample(&document, schema).to_string() };
            let method: Method = method.to_uppercase().parse().unwrap();
            let bearer = format!("Bearer {his}");
            let headers = [("authorization", &*bearer), ("content-type", "application/json")];
            let there = server.ask(method.clone(), &filled(path, &annas, &anna, true), &headers, &body).await;
            let is_look = method == Method::GET;
            let concerns_all = path.starts_with("/api/v1/users/") || (path.starts_with("/api/v1/providers/") && !is_look);
            // To ask for the stream of what is not there is no failure with the AI SDK.
            let expected = match &**path {
                _ if concerns_all => 403,
                "/api/chat/{id}/stream" => 204,
                _ => 404,
            };
            assert_eq!(there.status.as_u16(), expected, "{which} with {body}: {}", there.body);
            // Nothing tells it from what is not there at all. A chat begins what is not there.
            if !path.ends_with("/chat") {
                let nowhere = server.ask(method, &filled(path, &annas, &anna, false), &headers, &body).await;
                let named = ["c-anna", "annas", &annas.token, &annas.artifact, &annas.response]
                    .iter()
                    .fold(there.body, |body, name| body.replace(name, "nothing"));
                assert_eq!((there.status, named), (nowhere.status, nowhere.body), "{which}");
            }
            walked += 1;
        }
    }
    assert!(walked > 30, "{walked} operations name something");
    assert_eq!(known().await, before);
    let lists = [
        "conversations",
        "conversations?q=touch",
        "approvals",
        "approvals/rules",
        "mcp/servers",
        "tokens",
        "tools",
        "usage",
        "memory",
        "me",
    ];
    for list in lists {
        let told = |answer: Answered| {
            assert!(answer.status.is_success(), "{list}: {}", answer.body);
            ["anna", &*annas.call, &*annas.rule, &*annas.token].iter().any(|hers| answer.body.contains(hers))
        };
        assert!(!told(server.get(&format!("/api/v1/{list}"), &his).await), "{list}");
    }
    // What is told of her own she is told: the lists were not empty for everybody.
    let usage = async |token: &str| server.get("/api/v1/usage", token).await.json();
    let (of_anna, of_ben) = (usage(&hers).await, usage(&his).await);
    assert_ne!(of_anna, of_ben);
    for (list, hers_is) in [("approvals", &*annas.call), ("approvals/rules", &*annas.rule), ("memory", "anna likes tea")] {
        let own = server.get(&format!("/api/v1/{list}"), &hers).await;
        assert!(own.body.contains(hers_is), "{list}: {}", own.body);
    }
    // Nor does another's memory or rule change by a request that does not name whose it is.
    let written = server.with(Method::PUT, "/api/v1/memory", &his, ("x-none", ""), json!({"text": "ben likes coffee"})).await;
    assert_eq!(written.status, StatusCode::OK, "{}", written.body);
    assert_eq!(server.get("/api/v1/memory", &hers).await.json()["text"], "anna likes tea");
    let rule = format!("/api/v1/approvals/rules/{}", annas.rule);
    let removed = server.with(Method::DELETE, &rule, &his, ("x-none", ""), Value::Null).await;
    assert_eq!(removed.status, StatusCode::NOT_FOUND, "{}", removed.body);
    assert!(server.get("/api/v1/approvals/rules", &hers).await.body.contains(&annas.rule));
}

#[tokio::test]
async fn nor_does_any_door_for_the_clients_of_others() {
    let server = server().await;
    let (anna, hers) = server.member("anna").await;
    let (_, his) = server.member("ben").await;
    let annas = annas(&server, &anna, &hers).await;
    let said = json!([{"role": "user", "content": "mine?"}]);
    let answer = server.post("/v1/responses", &hers, json!({"model": "test/scripted", "input": "hello"})).await.json();
    let response = answer["id"].as_str().unwrap();
    let asked = [
        ("/v1/responses", json!({"model": "test/scripted", "input": "mine?", "conversation": "c-anna"})),
        ("/v1/responses", json!({"model": "test/scripted", "input": "mine?", "previous_response_id": response})),
        (
            "/v1/chat/completions",
            json!({"model": "test/scripted", "messages": said, "metadata": {"conversation_id": "c-anna"}}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "test/scripted", "metadata": {"conversation_id": "c-anna"}, "messages": [
                {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]}),
        ),
        (
            "/api/chat",
            json!({"id": "c-anna", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "mine?"}]}]}),
        ),
        (
            "/ag-ui",
            json!({"threadId": "c-anna", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "mine?"}],
                   "tools": [], "context": [], "state": {}, "forwardedProps": {}}),
        ),
    ];
    for (door, body) in asked {
        let refused = server.post(door, &his, body).await;
        assert_eq!(refused.status.as_u16(), 404, "{door}: {}", refused.body);
    }
    assert_eq!(server.get(&format!("/v1/responses/{response}"), &his).await.status.as_u16(), 404);
    // There it is no failure to ask for the stream of what is not there.
    for id in ["c-anna", "nothing"] {
        let streamed = server.get(&format!("/api/chat/{id}/stream"), &his).await;
        assert_eq!((streamed.status.as_u16(), &*streamed.body), (204, ""), "{id}");
    }
    // The same words of another are another conversation, also where the client names none.
    let begin = json!({"model": "test/scripted", "messages": [{"role": "user", "content": "one"}]});
    let first = server.post("/v1/chat/completions", &hers, begin).await;
    let text = first.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let on = json!({"model": "test/scripted", "messages": [
        {"role": "user", "content": "one"}, {"role": "assistant", "content": text}, {"role": "user", "content": "two"}]});
    let hers_on = server.post("/v1/chat/completions", &hers, on.clone()).await;
    let his_on = server.post("/v1/chat/completions", &his, on).await;
    let conversation = |answer: &Answered| answer.header("x-turnwright-conversation").to_owned();
    assert_eq!(conversation(&hers_on), conversation(&first));
    assert_ne!(conversation(&his_on), conversation(&first));
    // So is a key of another's.
    for door in ["/api/v1/conversations", "/v1/chat/completions", "/v1/responses"] {
        let body = json!({"model": "test/scripted"});
        let body = match door {
            "/v1/chat/completions" => json!({"model": "test/scripted", "messages": said}),
            "/v1/responses" => json!({"model": "test/scripted", "input": "hello"}),
            _ => body,
        };
        let with_key = async |token: &str| {
            let bearer = format!("Bearer {token}");
            let headers = [("authorization", &*bearer), ("content-type", "application/json"), ("idempotency-key", "k")];
            let answer = server.ask(Method::POST, door, &headers, &body.to_string()).await;
            assert!(answer.status.is_success(), "{door}: {}", answer.body);
            answer.json()["id"].as_str().unwrap().to_owned()
        };
        let (a, b) = (with_key(&hers).await, with_key(&his).await);
        assert_ne!(a, b, "{door}");
        assert_eq!(with_key(&his).await, b, "{door}");
    }
    assert_eq!(server.get("/api/v1/approvals", &hers).await.json()["data"][0]["id"], annas.call.as_str());
    server.engine.shutdown().await;
}

#[tokio::test]
async fn a_members_server_runs_nothing_here_and_everyones_are_for_admins() {
    let server = server().await;
    let (_, token) = server.member("anna").await;
    let admin = server.user("root", Role::Admin).await;
    let (root, _) = server.token(&admin.id, Scope::ALL, None).await;
    let add = async |token: &str, body: Value| server.post("/api/v1/mcp/servers", token, body).await;
    for wrong in [
        json!({"name": "a", "command": "sh", "args": ["-c", "id"]}),
        json!({"name": "a", "image": "busybox"}),
        json!({"name": "a", "url": "http://127.0.0.1:9/", "env": {"A": "b"}}),
        json!({"name": "a", "url": "http://127.0.0.1:9/${OPENAI_API_KEY}"}),
        json!({"name": "a", "url": "http://127.0.0.1:9/", "headers": {"X": "${HOME}"}}),
        json!({"name": "a", "url": "http://127.0.0.1:9/", "headers": {"X": {"file": "/etc/hostname"}}}),
        json!({"name": "a", "url": "http://127.0.0.1:9/", "headers": {"X": {"env": "HOME", "file": null}}}),
        json!({"name": "a", "url": "http://127.0.0.1:9/", "headers": {"X": {"keyring": "service/name"}}}),
        json!({"name": "a", "url": "http://127.0.0.1:9/", "owner": "everyone"}),
    ] {
        let refused = add(&token, wrong.clone()).await;
        assert_eq!(refused.code(), (403, "not_allowed".to_owned()), "{wrong}: {}", refused.body);
    }
    assert_eq!(add(&root, json!({"name": "all", "url": "http://127.0.0.1:9/"})).await.json()["owner"], "everyone");
    let seen = server.get("/api/v1/mcp/servers/all", &token).await;
    assert_eq!(seen.status, StatusCode::OK);
    for act in ["start", "stop", "restart"] {
        let refused = server.post(&format!("/api/v1/mcp/servers/all/{act}"), &token, Value::Null).await;
        assert_eq!(refused.code(), (403, "not_allowed".to_owned()), "{act}");
    }
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    let patch = server.ask(Method::PATCH, "/api/v1/mcp/servers/all", &headers, r#"{"enabled": false}"#).await;
    assert_eq!(patch.status, StatusCode::FORBIDDEN);
    assert_eq!(add(&token, json!({"name": "mine", "url": "http://127.0.0.1:9/"})).await.status, StatusCode::CREATED);
    let patch = server.ask(Method::PATCH, "/api/v1/mcp/servers/mine", &headers, r#"{"command": "sh", "url": null}"#).await;
    assert_eq!(patch.code(), (403, "not_allowed".to_owned()));
    let leak = r#"{"headers": {"X": {"file": "/etc/hostname"}}}"#;
    let patch = server.ask(Method::PATCH, "/api/v1/mcp/servers/mine", &headers, leak).await;
    assert_eq!(patch.code(), (403, "not_allowed".to_owned()));
    let named_as_tables = r#"{"headers": {"env": "a", "file": null}}"#;
    let patch = server.ask(Method::PATCH, "/api/v1/mcp/servers/mine", &headers, named_as_tables).await;
    assert_eq!(patch.status, StatusCode::OK, "{}", patch.body);
    assert_eq!(server.ask(Method::DELETE, "/api/v1/mcp/servers/mine", &headers, "").await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn the_secrets_of_a_servers_address_are_shown_to_nobody_and_survive_being_sent_back() {
    let server = server().await;
    let (_, token) = server.member("anna").await;
    let admin = server.user("root", Role::Admin).await;
    let (root, _) = server.token(&admin.id, Scope::ALL, None).await;
    let written = json!({"name": "all", "url": "http://svc:open-word@127.0.0.1:9/mcp?api_key=open-key"});
    let added = server.post("/api/v1/mcp/servers", &root, written).await;
    assert_eq!(added.status, StatusCode::CREATED, "{}", added.body);
    let shown = json!("http://***@127.0.0.1:9/mcp?api_key=***");
    for reader in [&root, &token] {
        for path in ["/api/v1/mcp/servers", "/api/v1/mcp/servers/all"] {
            let seen = server.get(path, reader).await;
            assert!(!seen.body.contains("open-"), "{}", seen.body);
        }
        let seen = server.get("/api/v1/mcp/servers/all", reader).await.json();
        assert_eq!((&seen["transport"], &seen["config"]["url"]), (&shown, &shown));
    }
    let bearer = format!("Bearer {root}");
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    let back = json!({"url": shown, "enabled": false}).to_string();
    let patched = server.ask(Method::PATCH, "/api/v1/mcp/servers/all", &headers, &back).await.json();
    assert_eq!((&patched["enabled"], &patched["config"]["url"]), (&json!(false), &shown));
    let files = std::fs::read_dir(server.folder.path()).unwrap().filter_map(|found| std::fs::read(found.unwrap().path()).ok());
    let is_in = |bytes: Vec<u8>| bytes.windows(9).any(|piece| piece == b"open-word");
    assert_eq!(files.map(is_in).filter(|is_in| *is_in).count(), 0, "what is stored has it in clear");
}
