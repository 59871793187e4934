//! Conditions on what may have been changed by somebody else, and requests that come again.

use super::*;

impl Server {
    async fn with(&self, method: Method, path: &str, token: &str, header: (&str, &str), body: Value) -> Answered {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json"), header];
        self.ask(method, path, &headers, &if body.is_null() { String::new() } else { body.to_string() }).await
    }
}

#[tokio::test]
async fn of_two_who_read_the_same_one_changes_it_and_the_other_is_told() {
    let server = server().await;
    let root = server.user("root", Role::Admin).await;
    let (token, _) = server.token(&root.id, Scope::ALL, None).await;
    server.post("/api/v1/conversations", &token, json!({"id": "c1"})).await;
    server.post("/api/v1/mcp/servers", &token, json!({"name": "s1", "url": "http://127.0.0.1:9/"})).await;
    let member = server.user("anna", Role::Member).await;
    let user = format!("/api/v1/users/{}", member.id);
    let table = [
        ("/api/v1/conversations/c1", json!({"title": "mine"}), json!({"title": "yours"})),
        ("/api/v1/mcp/servers/s1", json!({"enabled": false}), json!({"enabled": true})),
        (&user, json!({"enabled": false}), json!({"enabled": true})),
    ];
    for (path, first, second) in table {
        let read = server.get(path, &token).await;
        let tag = read.header("etag").to_owned();
        assert!(tag.starts_with('"'), "{path} has the tag {tag}");
        let again = server.with(Method::GET, path, &token, ("if-none-match", &tag), Value::Null).await;
        assert_eq!((again.status, again.body.as_str()), (StatusCode::NOT_MODIFIED, ""), "{path}");
        let changed = server.with(Method::PATCH, path, &token, ("if-match", &tag), first).await;
        assert_eq!(changed.status, StatusCode::OK, "{path}: {}", changed.body);
        let late = server.with(Method::PATCH, path, &token, ("if-match", &tag), second.clone()).await;
        assert_eq!(late.code(), (412, "precondition_failed".to_owned()), "{path}");
        let late = server.with(Method::DELETE, path, &token, ("if-match", &tag), Value::Null).await;
        assert_eq!(late.code(), (412, "precondition_failed".to_owned()), "{path}");
        let newest = changed.header("etag").to_owned();
        let changed = server.with(Method::PATCH, path, &token, ("if-match", &newest), second).await;
        assert_eq!(changed.status, StatusCode::OK, "{path}: {}", changed.body);
        let gone = server.with(Method::DELETE, path, &token, ("if-match", "*"), Value::Null).await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{path}: {}", gone.body);
    }
}

#[tokio::test]
async fn a_turn_that_goes_on_refuses_no_change_of_the_settings_and_is_told_to_who_looks_again() {
    let server = server().await;
    let (_, token) = server.member("anna").await;
    server.post("/api/v1/conversations", &token, json!({"id": "c1", "title": "t"})).await;
    let tag = server.get("/api/v1/conversations/c1", &token).await.header("etag").to_owned();
    server.post("/api/v1/conversations/c1/chat", &token, json!({"content": "hello"})).await;
    let again = server.with(Method::GET, "/api/v1/conversations/c1", &token, ("if-none-match", &tag), Value::Null).await;
    assert_eq!(again.status, StatusCode::OK);
    let pin = json!({"pinned": true});
    let changed = server.with(Method::PATCH, "/api/v1/conversations/c1", &token, ("if-match", &tag), pin).await;
    assert_eq!((changed.status, &changed.json()["pinned"]), (StatusCode::OK, &json!(true)));
}

#[tokio::test]
async fn whatever_makes_something_makes_it_once_for_each_key() {
    let server = server().await;
    let root = server.user("root", Role::Admin).await;
    let (token, _) = server.token(&root.id, Scope::ALL, None).await;
    let key = ("idempotency-key", "k1");
    for (path, body, other) in [
        ("/api/v1/users", json!({"name": "anna"}), json!({"name": "ben"})),
        (
            "/api/v1/approvals/rules",
            json!({"tool": "lab__*", "action": "allow", "scope": "user"}),
            json!({"tool": "lab__*", "action": "deny", "scope": "user"}),
        ),
    ] {
        let made = server.with(Method::POST, path, &token, key, body.clone()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{path}: {}", made.body);
        let again = server.with(Method::POST, path, &token, key, body).await;
        assert_eq!((again.status, again.json()), (StatusCode::CREATED, made.json()), "{path}");
        let reused = server.with(Method::POST, path, &token, key, other).await;
        assert_eq!(reused.code(), (422, "idempotency_key_reused".to_owned()), "{path}");
        assert!(reused.body.contains("`k1`"), "{}", reused.body);
    }
    // A secret is shown once: the same request makes no second one, and is told so.
    let own = async || server.get("/api/v1/tokens", &token).await.json()["data"].as_array().unwrap().len();
    let before = own().await;
    let made = server.with(Method::POST, "/api/v1/tokens", &token, key, json!({"name": "ci"})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let again = server.with(Method::POST, "/api/v1/tokens", &token, key, json!({"name": "ci"})).await;
    assert_eq!(again.code(), (409, "already_made".to_owned()));
    assert!(again.body.contains(made.json()["id"].as_str().unwrap()), "{}", again.body);
    assert_eq!(own().await, before + 1);
    let ui = json!({"id": "c-ui", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]});
    for _ in 0..2 {
        assert_eq!(server.with(Method::POST, "/api/chat", &token, key, ui.clone()).await.status, StatusCode::OK);
    }
    let messages = server.get("/api/v1/conversations/c-ui/messages", &token).await.json();
    assert_eq!(messages["data"].as_array().unwrap().len(), 2, "{messages}");
}
