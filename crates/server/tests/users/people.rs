//! What people read in a browser, and what the page asks, where a proxy before the server hands on less than it must.

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Method, Request, StatusCode};
use tower::ServiceExt;

use super::{Answered, server};

const IN_A_BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

async fn ask(router: &Router, method: Method, path: &str, headers: &[(&str, &str)]) -> Answered {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (parts, body) = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().into_parts();
    let body = String::from_utf8_lossy(&to_bytes(body, usize::MAX).await.unwrap()).into_owned();
    Answered { status: parts.status, headers: parts.headers, body }
}

/// Whether it is a page with this code and these lines.
fn is_page(answer: &Answered, code: &str, lines: &[&str]) {
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.body);
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert!(answer.header("content-security-policy").starts_with("default-src 'none'"));
    assert!(answer.header("x-request-id").starts_with("req_"));
    for line in [&[code, "proxy_set_header Host $http_host;"], lines].concat() {
        assert!(answer.body.contains(line), "{line}: {}", answer.body);
    }
}

#[tokio::test]
async fn who_opens_the_server_by_a_name_that_it_does_not_know_reads_which_lines_mend_it() {
    let server = server().await;
    let local = ask(&server.local, Method::GET, "/", &[("host", "tw.example"), IN_A_BROWSER]).await;
    let lines = ["<code>tw.example</code>", "auth       = \"tokens\"", "public_url = &quot;https://tw.example&quot;"];
    is_page(&local, "403 host_not_allowed", &lines);

    // nginx' plain `proxy_pass` names the server as it is called there, so that the form seems to be another site's.
    let form = [("host", "127.0.0.1:8700"), ("origin", "http://tw.example"), IN_A_BROWSER];
    let signing_in = ask(&server.router, Method::POST, "/login", &form).await;
    is_page(&signing_in, "403 origin_not_allowed", &["public_url = &quot;http://tw.example&quot;"]);
    assert!(!signing_in.body.contains("auth       ="), "{}", signing_in.body);

    // Programs are told the same as ever, with the line in it.
    let program = ask(&server.router, Method::POST, "/login", &form[..2]).await;
    assert_eq!(program.code(), (403, "origin_not_allowed".to_owned()));
    let detail = "the Origin is `http://tw.example` and the Host `127.0.0.1:8700`; only this server's own page may do this; if it is that \
                  page behind a proxy, write `public_url = \"http://tw.example\"` below `[server]`";
    assert_eq!(program.json()["detail"], detail);

    // What it is asked by is shown and is no markup, and what is no address is in no line.
    let hostile = ask(&server.local, Method::GET, "/", &[("host", "<script>alert(1)</script>"), IN_A_BROWSER]).await;
    is_page(&hostile, "403 host_not_allowed", &["&lt;script&gt;", "public_url = &quot;https://NAME&quot;"]);
    assert!(!hostile.body.contains("<script"), "{}", hostile.body);
}

#[tokio::test]
async fn the_page_comes_up_behind_such_a_proxy_and_hears_at_once_that_nothing_of_it_is_taken() {
    let server = server().await;
    let ours = [("host", "localhost:8700"), ("origin", "http://localhost:8700")];
    let foreign = [("host", "localhost:8700"), ("origin", "http://tw.example")];
    let nearby = [("host", "127.0.0.1:8700"), ("origin", "http://localhost:8080")];
    // Scripts that are modules come with an origin.
    let script = ask(&server.local, Method::GET, "/docs/docs.js", &foreign).await;
    assert_eq!(script.status, StatusCode::OK, "{}", script.body);
    let taken = ask(&server.local, Method::OPTIONS, "/api/v1/me", &ours).await;
    assert_eq!((taken.status, taken.header("allow")), (StatusCode::NO_CONTENT, "GET,HEAD"), "{}", taken.body);
    for (headers, mend) in [
        (&foreign, "write `auth = \"tokens\"` and `public_url = \"http://tw.example\"` below `[server]`"),
        (&nearby, "let the proxy hand on by what name it is asked (nginx: `proxy_set_header Host $http_host;`)"),
    ] {
        let refused = ask(&server.local, Method::OPTIONS, "/api/v1/me", headers).await;
        assert_eq!(refused.code(), (403, "origin_not_allowed".to_owned()));
        assert!(refused.body.replace("\\\"", "\"").contains(mend), "{}", refused.body);
    }
}
