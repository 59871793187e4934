//! What servers of members may reach.

use std::net::TcpListener;

use super::*;

const SERVERS: &str = "/api/v1/mcp/servers";

#[tokio::test]
async fn a_members_server_is_at_no_address_of_this_machine_or_its_network_that_is_not_listed() {
    let server = server().await;
    let (_, token) = server.member("anna").await;
    let admin = server.user("root", Role::Admin).await;
    let (root, _) = server.token(&admin.id, Scope::ALL, None).await;
    let (limited, _) = server.token(&admin.id, [Scope::Read, Scope::Chat, Scope::Approve], None).await;
    for (host, special) in [
        ("127.0.0.1:8", "a loopback address"),
        ("[::1]:9", "a loopback address"),
        ("10.0.0.1", "a private address"),
        ("169.254.169.254", "a cloud's metadata address"),
        ("localhost:9", "a name of this machine"),
    ] {
        let body = json!({"name": "near", "url": format!("http://{host}/mcp"), "owner": "me", "enabled": false});
        for token in [&token, &limited] {
            let refused = server.post(SERVERS, token, body.clone()).await;
            assert_eq!(refused.code(), (422, "invalid_request".to_owned()), "{host}: {}", refused.body);
            let detail = refused.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains(special) && detail.contains("`mcp.members_allow`"), "{detail}");
        }
        assert_eq!(server.post(SERVERS, &root, body).await.status, StatusCode::CREATED, "{host} for an admin");
        server.with(Method::DELETE, &format!("{SERVERS}/near"), &root, ("x-none", ""), Value::Null).await;
    }
    let mine = json!({"name": "mine", "url": "http://127.0.0.1:9/", "enabled": false});
    assert_eq!(server.post(SERVERS, &token, mine).await.status, StatusCode::CREATED);
    let moved = json!({"config": {"url": "http://127.0.0.1:8/"}});
    let moved = server.with(Method::PATCH, &format!("{SERVERS}/mine"), &token, ("x-none", ""), moved).await;
    assert_eq!(moved.code(), (422, "invalid_request".to_owned()), "{}", moved.body);
}

#[tokio::test]
async fn a_server_that_is_near_is_not_connected_to_once_its_owner_is_a_member() {
    let server = server().await;
    let admin = server.user("root", Role::Admin).await;
    server.user("other", Role::Admin).await;
    let (root, _) = server.token(&admin.id, Scope::ALL, None).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let near = json!({"name": "near", "url": format!("http://127.0.0.1:{port}/"), "owner": "me"});
    assert_eq!(server.post(SERVERS, &root, near).await.status, StatusCode::CREATED);
    server.accounts.change_user(&admin, Role::Member, true, Staying::SignedIn(NOW_MS)).await.unwrap();
    let (token, _) = server.token(&admin.id, [Scope::Read, Scope::Chat, Scope::Approve], None).await;
    let started = server.post(&format!("{SERVERS}/near/start"), &token, Value::Null).await;
    assert!(started.body.contains("is a loopback address") && started.body.contains("mcp.members_allow"), "{}", started.body);
    assert!(listener.accept().is_err(), "somebody came");
}
