//! What is revoked, disabled or removed while a request still comes: nothing of that request is done.

use futures_util::{StreamExt, stream};
use tokio::sync::oneshot;

use super::*;

/// Asks with a body whose first byte comes at once, and the rest of it after `meanwhile`.
async fn halting(
    server: &Server,
    (path, kind): (&str, &str),
    token: &str,
    body: &str,
    meanwhile: impl AsyncFnOnce(),
) -> Answered {
    let (reached, reach) = oneshot::channel();
    let (go_on, goes_on) = oneshot::channel::<()>();
    let (first, rest) = body.split_at(1);
    let (first, rest) = (first.to_owned(), rest.to_owned());
    let later = stream::once(async move {
        reached.send(()).unwrap();
        goes_on.await.unwrap();
        Ok::<_, std::io::Error>(rest)
    });
    let request = Request::post(path)
        .header("host", "tw.example")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", kind)
        .header("accept", "application/json, text/event-stream")
        .body(Body::from_stream(stream::iter([Ok(first)]).chain(later)))
        .unwrap();
    let between = async {
        reach.await.unwrap();
        meanwhile().await;
        go_on.send(()).unwrap();
    };
    let (response, ()) = tokio::join!(server.router.clone().oneshot(request), between);
    let (parts, body) = response.unwrap().into_parts();
    let body = String::from_utf8_lossy(&to_bytes(body, usize::MAX).await.unwrap()).into_owned();
    Answered { status: parts.status, headers: parts.headers, body }
}

const JSON: &str = "application/json";

async fn admin(server: &Server, name: &str) -> (User, String) {
    let user = server.user(name, Role::Admin).await;
    let (token, _) = server.token(&user.id, Scope::ALL, None).await;
    (user, token)
}

async fn revoke(server: &Server, with: &str, id: &str) {
    let path = format!("/api/v1/tokens/{id}");
    let gone = server.ask(Method::DELETE, &path, &[("authorization", &format!("Bearer {with}"))], "").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
}

#[tokio::test]
async fn what_a_revoked_token_still_sends_is_refused_at_every_door() {
    let server = server().await;
    let (anna, stays) = server.member("anna").await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
    .to_string();
    for (path, kind, body) in [
        ("/api/v1/tokens", JSON, "{}"),
        ("/api/v1/artifacts?name=a", "text/plain", "words"),
        (
            "/api/v1/artifacts",
            "multipart/form-data; boundary=x",
            "--x\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\nwords\r\n--x--\r\n",
        ),
        ("/mcp", JSON, &call),
        ("/v1/chat/completions", JSON, r#"{"model": "test/scripted", "messages": [{"role": "user", "content": "Hi"}]}"#),
    ] {
        let (token, id) = server.token(&anna.id, [Scope::Read, Scope::Chat], None).await;
        let refused = halting(&server, (path, kind), &token, body, async || revoke(&server, &stays, &id).await).await;
        assert_eq!(refused.code(), (401, "invalid_token".to_owned()), "{path}");
        assert!(refused.header("www-authenticate").contains("invalid_token"), "{path}");
        // What is revoked of others is nothing to it.
        let (token, _) = server.token(&anna.id, [Scope::Read, Scope::Chat], None).await;
        let (_, other) = server.token(&anna.id, [Scope::Read], None).await;
        let done = halting(&server, (path, kind), &token, body, async || revoke(&server, &stays, &other).await).await;
        assert!(done.status.is_success(), "{path}: {} {}", done.status, done.body);
    }
    let made = server.accounts.credentials(&anna.id).await.unwrap();
    assert_eq!(made.iter().filter(|known| known.name == "token").count(), 1, "that which was taken");
}

#[tokio::test]
async fn what_a_user_still_sends_who_is_removed_or_kept_out_or_may_do_less_is_refused() {
    let server = server().await;
    let (_, root) = admin(&server, "root").await;
    let change = async |method: Method, user: &User, body: Value| {
        let headers = [("authorization", &*format!("Bearer {root}")), ("content-type", JSON)];
        let path = format!("/api/v1/users/{}", user.id);
        assert!(server.ask(method, &path, &headers, &body.to_string()).await.status.is_success());
    };
    let add = r#"{"name": "mallory", "role": "admin"}"#;
    let (anna, token) = admin(&server, "anna").await;
    let removed = async || change(Method::DELETE, &anna, json!({})).await;
    assert_eq!(halting(&server, ("/api/v1/users", JSON), &token, add, removed).await.code().0, 401);
    let (ben, token) = admin(&server, "ben").await;
    let less = async || change(Method::PATCH, &ben, json!({"role": "member"})).await;
    let refused = halting(&server, ("/api/v1/users", JSON), &token, add, less).await;
    assert_eq!(refused.code(), (403, "insufficient_scope".to_owned()));
    assert_eq!(server.accounts.user_named("mallory").await.unwrap(), None);

    let (cleo, token) = server.member("cleo").await;
    let disabled = async || change(Method::PATCH, &cleo, json!({"enabled": false})).await;
    let said = r#"{"content": "Hi"}"#;
    let refused = halting(&server, ("/api/v1/conversations/c1/chat", JSON), &token, said, disabled).await;
    assert_eq!(refused.code(), (401, "invalid_token".to_owned()));
    change(Method::PATCH, &cleo, json!({"enabled": true})).await;
    assert_eq!(server.get("/api/v1/conversations/c1", &token).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_another_process_revoked_is_seen_where_a_body_comes_slowly() {
    let server = server().await;
    let anna = server.user("anna", Role::Member).await;
    let (token, id) = server.token(&anna.id, [Scope::Read, Scope::Chat], None).await;
    let elsewhere = async || {
        server.accounts.remove_credential(&id).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    };
    let refused = halting(&server, ("/api/v1/tokens", JSON), &token, "{}", elsewhere).await;
    assert_eq!(refused.code(), (401, "invalid_token".to_owned()));
}
