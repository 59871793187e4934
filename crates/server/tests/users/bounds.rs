//! What somebody makes for themselves with a token can do no more than that token, by whatever route.

use super::*;

#[tokio::test]
async fn what_an_admin_makes_for_themselves_is_bound_as_their_own_tokens_are() {
    let server = server().await;
    let root = server.user("root", Role::Admin).await;
    let (token, id) = server.token(&root.id, [Scope::Admin, Scope::Read, Scope::Chat], Some(NOW_MS + 60_000)).await;
    let own = format!("/api/v1/users/{}/tokens", root.id);
    for path in [&*own, "/api/v1/tokens"] {
        let more = server.post(path, &token, json!({"scopes": ["read", "approve"]})).await;
        assert_eq!(more.code(), (403, "insufficient_scope".to_owned()), "{path}");
        let made = server.post(path, &token, json!({"scopes": ["read"], "expires_in_days": 9})).await.json();
        assert_eq!((&made["scopes"], &made["expires_at"]), (&json!(["read"]), &json!("2025-01-11T19:01:00.000Z")), "{path}");
    }
    let made = server.post(&own, &token, json!({})).await.json();
    assert_eq!(made["scopes"], json!(["read", "chat"]));
    let child = made["secret"].as_str().unwrap();

    let link = server.post(&format!("/api/v1/users/{}/links", root.id), &token, json!({})).await.json();
    let code = link["path"].as_str().unwrap().split_once('?').unwrap().1.to_owned();
    let cookie = server.form("/login", &[OURS], &code).await.cookie();
    let me = server.ask(Method::GET, "/api/v1/me", &[("cookie", &cookie)], "").await;
    assert_eq!(me.json()["scopes"], json!(["read", "chat", "admin"]));
    let session = server.accounts.credentials(&root.id).await.unwrap();
    let session = session.into_iter().find(|known| known.kind == CredentialKind::Session).unwrap();
    assert_eq!((session.parent.as_deref(), session.expires_at_ms), (Some(&*id), Some(NOW_MS + 60_000)));

    // What is made for another is theirs.
    let (anna, _) = server.member("anna").await;
    let made = server.post(&format!("/api/v1/users/{}/tokens", anna.id), &token, json!({})).await.json();
    assert_eq!((&made["scopes"], &made["expires_at"]), (&json!(["read", "chat", "approve"]), &json!(null)));
    server.accounts.remove_credential(&id).await.unwrap();
    assert_eq!(server.get("/api/v1/me", child).await.status, StatusCode::UNAUTHORIZED);
    let over = server.ask(Method::GET, "/api/v1/me", &[("cookie", &cookie)], "").await;
    assert_eq!(over.status, StatusCode::UNAUTHORIZED);
    assert_eq!(server.get("/api/v1/me", made["secret"].as_str().unwrap()).await.status, StatusCode::OK);
}
