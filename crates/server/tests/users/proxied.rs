//! What a proxy that is trusted says.

use std::net::SocketAddr;

use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt;
use turnwright_engine::accounts::{Role, Scope};
use turnwright_server::{Apps, Site};

use super::server_at;

#[tokio::test]
async fn a_refusal_of_what_a_proxy_says_has_a_name_a_place_in_the_metrics_and_the_shape_of_its_door() {
    let server = server_at(Site {
        host: None,
        origin: None,
        is_tls: false,
        path: String::new(),
        trusted_proxies: vec!["10.0.0.0/24".parse().unwrap()],
        allowed_origins: Vec::new(),
        apps: Apps::default(),
    })
    .await;
    let ask = async |path: &str, forwarded: &str| {
        let request = Request::get(path).header("host", "127.0.0.1").header("x-request-id", "mine");
        let mut request = request.header("forwarded", forwarded).body(Body::empty()).unwrap();
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([10, 0, 0, 2], 7))));
        let (head, body) = server.router.clone().oneshot(request).await.unwrap().into_parts();
        (head, to_bytes(body, usize::MAX).await.unwrap())
    };
    for (path, code, kind) in
        [("/api/v1/conversations", "/code", "application/problem+json"), ("/v1/models", "/error/code", "application/json")]
    {
        let (head, body) = ask(path, "for=1.2.3.4;host=\"a@b\"").await;
        assert_eq!((head.status.as_u16(), head.headers["x-request-id"].to_str().unwrap()), (400, "mine"), "{path}");
        assert_eq!(head.headers["content-type"], kind);
        let told: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(told.pointer(code), Some(&json!("invalid_forwarding")), "{told}");
    }
    let root = server.user("root", Role::Admin).await;
    let (token, _) = server.token(&root.id, Scope::ALL, None).await;
    let metrics = server.get("/metrics", &token).await.body;
    let refused = "turnwright_http_requests_total{method=\"GET\",route=\"/v1/models\",status=\"400\"} 1";
    assert!(metrics.contains(refused), "{metrics}");
}
