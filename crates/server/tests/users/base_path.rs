//! A server that shares its host with others, below a path.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use turnwright_engine::accounts::Role;
use turnwright_server::{Apps, Site};

use super::{OURS, Server, server_at};

/// One that is known as `https://tw.example/tw`.
async fn below() -> Server {
    let origin = Some("https://tw.example".to_owned());
    server_at(Site {
        host: None,
        origin,
        is_tls: false,
        path: "/tw".to_owned(),
        trusted_proxies: Vec::new(),
        allowed_origins: Vec::new(),
        apps: Apps::default(),
    })
    .await
}

#[tokio::test]
async fn a_browser_signs_in_and_stays_below_the_path() {
    let server = below().await;
    let (_, token) = server.member("anna").await;
    let page = server.ask(Method::GET, "/tw", &[], "").await;
    assert_eq!((page.status, page.header("location")), (StatusCode::PERMANENT_REDIRECT, "/tw/"));
    let page = server.ask(Method::GET, "/tw/", &[], "").await;
    assert_eq!((page.status, page.header("location")), (StatusCode::SEE_OTHER, "/tw/login"));
    // A proxy that takes the path away hands on `/tw` like this: from there `login` would lead out of the path.
    let page = server.ask(Method::GET, "/", &[], "").await;
    assert_eq!((page.status, page.header("location")), (StatusCode::SEE_OTHER, "/tw/login"));
    let table = [
        ("", "/tw/"),
        ("&return=%2Ftw%2F%3Fc%3D1", "/tw/?c=1"),
        ("&return=%2F", "/tw/"),
        ("&return=%2Fother", "/tw/"),
        ("&return=%2Ftwice%2F", "/tw/"),
        ("&return=%2Ftw%2F..%2Fother", "/tw/"),
        ("&return=%2F%2Fevil.example", "/tw/"),
    ];
    for (back, expected) in table {
        let entered = server.form("/tw/login", &[OURS], &format!("token={token}{back}")).await;
        assert_eq!((entered.status, entered.header("location")), (StatusCode::SEE_OTHER, expected), "{back}");
        let set = entered.header("set-cookie");
        // A name with `__Host-` would need the path `/`, and others on the host would be sent the session.
        assert!(set.starts_with("__Secure-tw_session=") && set.contains("; Path=/tw; ") && set.ends_with("; Secure"), "{set}");
    }
    let cookie = server.form("/tw/login", &[OURS], &format!("token={token}")).await.cookie();
    let me = server.ask(Method::GET, "/tw/api/v1/me", &[("cookie", &cookie)], "").await;
    assert_eq!(me.json()["how"], "session");
    let left = server.form("/tw/logout", &[OURS, ("cookie", &cookie)], "").await;
    assert!(left.header("set-cookie").contains("; Path=/tw; Max-Age=0"), "{}", left.header("set-cookie"));
}

#[tokio::test]
async fn what_is_refused_names_the_path_as_it_was_asked_for() {
    let server = below().await;
    let (_, token) = server.member("anna").await;
    let said = async |method: Method, path: &str| {
        let bearer = format!("Bearer {token}");
        let refused = server.ask(method, path, &[("authorization", &bearer)], "").await.json();
        refused.get("detail").unwrap_or(&refused["error"]["message"]).as_str().unwrap().to_owned()
    };
    let way = "; the Allow header lists what it answers to";
    for (path, expected) in [
        ("/tw/nope", "there is no route `/tw/nope`; the API is under /tw/api/v1".to_owned()),
        ("/tw/api/v1/nope", "there is no route `/tw/api/v1/nope`; the API is under /tw/api/v1".to_owned()),
        ("/tw/chat/completions", "there is no route `/tw/chat/completions`; the base URL of OpenAI's API is /tw/v1".to_owned()),
        (
            "/tw/v1/nope",
            "there is no route `/tw/v1/nope`; of OpenAI's API /tw/v1 has chat/completions, responses and models alone"
                .to_owned(),
        ),
    ] {
        assert_eq!(said(Method::GET, path).await, expected);
    }
    for path in ["/tw/api/v1/conversations", "/tw/v1/chat/completions", "/tw/healthz"] {
        assert_eq!(said(Method::PUT, path).await, format!("`{path}` does not answer to PUT{way}"));
    }
    let nobody = server.ask(Method::GET, "/tw/api/v1/conversations", &[], "").await.json();
    assert_eq!(nobody["detail"], "sign in: send a token as `Authorization: Bearer tw_…`, or open /tw/login in a browser");
    let basic = server.ask(Method::GET, "/tw/api/v1/conversations", &[("authorization", "Basic abc")], "").await.json();
    assert_eq!(basic["detail"], "the Authorization header holds no token; send `Authorization: Bearer tw_…`");
}

#[tokio::test]
async fn every_door_is_there_below_the_path_and_where_a_proxy_takes_it_away() {
    let server = below().await;
    let (_, token) = server.member("anna").await;
    let say = json!({"model": "test/scripted", "messages": [{"role": "user", "content": "Hi."}]});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let run = json!({"threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "messages": [{"id": "m", "role": "user", "content": "Hi."}]});
    for path in ["/tw", ""] {
        for open in ["/healthz", "/readyz", "/login", "/docs", "/docs/docs.js"] {
            assert_eq!(server.ask(Method::GET, &format!("{path}{open}"), &[], "").await.status, StatusCode::OK, "{path}{open}");
        }
        for read in ["/api/v1/conversations", "/v1/models", "/"] {
            assert_eq!(server.get(&format!("{path}{read}"), &token).await.status, StatusCode::OK, "{path}{read}");
        }
        let document = server.ask(Method::GET, &format!("{path}/openapi.json"), &[], "").await.json();
        assert_eq!(document["servers"], json!([{"url": "/tw"}]));
        let made = server.post(&format!("{path}/api/v1/conversations"), &token, json!({})).await;
        let expected = format!("/tw/api/v1/conversations/{}", made.json()["id"].as_str().unwrap());
        assert_eq!((made.status, made.header("location")), (StatusCode::CREATED, &*expected));
        assert_eq!(server.get(&expected, &token).await.status, StatusCode::OK);
        let said = server.post(&format!("{path}/v1/chat/completions"), &token, say.clone()).await;
        assert_eq!(said.json()["choices"][0]["message"]["content"], "Done.");
        let bearer = format!("Bearer {token}");
        let headers = [
            ("authorization", &*bearer),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let mcp = server.ask(Method::POST, &format!("{path}/mcp"), &headers, &initialize.to_string()).await;
        assert_eq!(mcp.status, StatusCode::OK, "{}", mcp.body);
        let agui = server.ask(Method::POST, &format!("{path}/ag-ui"), &headers, &run.to_string()).await;
        assert!(agui.body.contains("RUN_FINISHED"), "{}", agui.body);
        // What is refused in the form of OpenAI's API is so below the path too.
        let refused = server.ask(Method::GET, &format!("{path}/v1/models"), &[], "").await;
        assert_eq!(refused.json()["error"]["code"], "unauthenticated");
    }
    let missing = server.get("/tw/nothing", &token).await;
    assert_ne!(missing.status, StatusCode::OK);
}

#[tokio::test]
async fn a_link_names_the_path() {
    let server = below().await;
    let root = server.user("root", Role::Admin).await;
    let (token, _) = server.token(&root.id, turnwright_engine::accounts::Scope::ALL, None).await;
    let made: Value = server.post(&format!("/tw/api/v1/users/{}/links", root.id), &token, json!({})).await.json();
    let path = made["path"].as_str().unwrap();
    assert!(path.starts_with("/tw/login?code="), "{path}");
    assert_eq!(server.ask(Method::GET, path, &[], "").await.status, StatusCode::OK);
}
