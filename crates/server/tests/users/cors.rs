//! Pages of other sites that the configuration lets ask in a browser.

use http::{Method, StatusCode};
use serde_json::json;
use turnwright_server::Site;

use super::{Server, server_at};

const PAGE: &str = "http://localhost:5173";

async fn allowing() -> Server {
    server_at(Site { allowed_origins: vec![PAGE.to_owned()], ..Site::default() }).await
}

/// What a browser asks before it sends a message from a page of this origin.
async fn preflight(server: &Server, origin: &str) -> (StatusCode, String, String) {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,content-type"),
    ];
    let told = server.ask(Method::OPTIONS, "/api/chat", &headers, "").await;
    assert_eq!(told.header("access-control-allow-credentials"), "", "no cookie is lent");
    (told.status, told.header("access-control-allow-origin").to_owned(), told.header("access-control-allow-headers").to_owned())
}

#[tokio::test]
async fn a_page_of_an_origin_that_is_allowed_asks_with_its_token_and_reads_the_answer() {
    let server = allowing().await;
    let (_, token) = server.member("anna").await;
    let allowed = (StatusCode::OK, PAGE.to_owned(), "authorization,content-type".to_owned());
    assert_eq!(preflight(&server, PAGE).await, allowed);
    let bearer = format!("Bearer {token}");
    let headers = [("origin", PAGE), ("authorization", &*bearer), ("content-type", "application/json")];
    let made = server.ask(Method::POST, "/api/v1/conversations", &headers, &json!({"id": "c"}).to_string()).await;
    assert_eq!((made.status, made.header("access-control-allow-origin")), (StatusCode::CREATED, PAGE), "{}", made.body);
    assert_eq!(made.header("access-control-expose-headers"), "*");
    // What is refused can be read as well.
    let refused = server.ask(Method::GET, "/api/v1/me", &[("origin", PAGE)], "").await;
    assert_eq!((refused.status.as_u16(), refused.header("access-control-allow-origin")), (401, PAGE));
}

#[tokio::test]
async fn pages_of_other_origins_are_told_nothing_and_none_where_none_is_allowed() {
    let server = allowing().await;
    for origin in ["http://localhost:5174", "https://localhost:5173", "null", "http://localhost:5173.evil.example"] {
        assert_eq!(preflight(&server, origin).await.1, "", "{origin}");
    }
    let closed = super::server().await;
    assert_eq!(preflight(&closed, PAGE).await.1, "");
    let me = closed.ask(Method::GET, "/api/v1/me", &[("origin", PAGE)], "").await;
    assert_eq!(me.header("access-control-allow-origin"), "");
}

#[tokio::test]
async fn a_page_that_is_allowed_is_not_lent_the_session_of_ours() {
    let server = server_at(Site {
        origin: Some("https://tw.example".to_owned()),
        allowed_origins: vec![PAGE.to_owned()],
        ..Site::default()
    })
    .await;
    let (_, token) = server.member("anna").await;
    let cookie = server.form("/login", &[super::OURS], &format!("token={token}")).await.cookie();
    let headers = [("origin", PAGE), ("cookie", &*cookie), ("content-type", "application/json")];
    let refused = server.ask(Method::POST, "/api/v1/conversations", &headers, "{}").await;
    assert_eq!(refused.code(), (403, "origin_not_allowed".to_owned()));
}
