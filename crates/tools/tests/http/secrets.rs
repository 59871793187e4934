//! Who is told the secrets: the API alone, and neither models nor other hosts.

use std::sync::Arc;

use serde_json::json;
use turnwright_core::ToolErrorKind;
use turnwright_tools::Hidden;
use turnwright_tools::http::{HttpAuth, HttpSource};

use super::{ToolSource, api, called, described, failure, file, source, text};
use crate::support::site::{Names, Reply, Site};

fn paths() -> serde_json::Value {
    let key = json!({"name": "api_key", "in": "query", "schema": {"type": "string"}});
    json!({"/it": {"get": {"operationId": "read", "parameters": [key]}, "post": {"operationId": "write"}}})
}

#[tokio::test]
async fn each_way_of_telling_who_asks_is_sent_as_its_standard_says() {
    let cases = [
        (HttpAuth::Bearer(Hidden::new("t0ken")), "authorization", "Bearer t0ken", "/it"),
        (HttpAuth::Basic { user: "me".into(), password: Hidden::new("pass") }, "authorization", "Basic bWU6cGFzcw==", "/it"),
        (HttpAuth::Header { name: "X-Api-Key".into(), value: Hidden::new("k") }, "x-api-key", "k", "/it"),
        (
            HttpAuth::Query { name: "api_key".into(), value: Hidden::new("a b") },
            "accept",
            "application/json, */*;q=0.5",
            "/it?api_key=a%20b",
        ),
    ];
    for (auth, header, value, path) in cases {
        let site = Site::new(|_| Reply::ok("application/json", "{}"));
        let (_folder, place) = file(&described(&paths()));
        let mut api = api(&site, place);
        api.auth = Some(auth);
        api.headers = vec![("X-Org".into(), Hidden::new("acme"))];
        let source = HttpSource::new(api);
        source.settled().await;
        // What the configuration fills is nothing that a model could.
        let output = called(&source, "read", json!({"api_key": "mine"})).await.unwrap();
        assert!(!output.is_error);
        let asked = &site.asked()[0];
        assert_eq!((asked.headers[header].as_str(), asked.headers["x-org"].as_str()), (value, "acme"));
        if path != "/it" {
            assert_eq!(asked.path, path);
        }
    }
}

#[tokio::test]
async fn an_api_that_repeats_a_secret_does_not_show_it_to_the_model() {
    let site = Site::new(|asked| {
        let said = json!({"headers": asked.headers, "token": "s3cret-token"}).to_string();
        let status = if asked.method == "GET" { 200 } else { 400 };
        Reply(status, vec![("content-type".into(), "application/json".into())], said.into())
    });
    let source = source(&site, &paths()).await;
    let shown = text(&source, "read", json!({})).await;
    assert!(shown.contains("\"authorization\":\"Bearer ***\"") && !shown.contains("s3cret"), "{shown}");
    let (_, told) = failure(&source, "write", json!({})).await;
    assert!(told.contains("***") && !told.contains("s3cret"), "{told}");
    assert!(!format!("{source:?}").contains("s3cret"), "{source:?}");
}

#[tokio::test]
async fn a_redirect_takes_the_secret_to_the_same_host_and_to_no_other() {
    let other = Site::new(|_| Reply::ok("text/plain", "elsewhere"));
    let away = format!("http://other.example:{}/x", other.port());
    let inside = other.url("/inside");
    let site = Site::new(move |asked| match (asked.method.as_str(), asked.path.as_str()) {
        ("GET", "/it") => Reply::to("/there"),
        ("GET", "/it?api_key=away") => Reply::to(&away),
        ("GET", "/it?api_key=inside") => Reply::to(&inside),
        ("GET", "/it?api_key=circle") => Reply::to("/it?api_key=circle"),
        ("POST", _) => Reply(307, vec![("location".into(), "/there".into())], Vec::new()),
        _ => Reply::ok("text/plain", "there"),
    });
    let (_folder, place) = file(&described(&paths()));
    let mut api = api(&site, place);
    // A public name that leads to this machine once it is connected to, which is not allowed.
    api.lookup = Arc::new(Names::default().with("other.example", &[&["127.0.0.1"]]));
    let source = HttpSource::new(api);
    source.settled().await;
    assert_eq!(text(&source, "read", json!({})).await, "there");
    assert_eq!(site.asked()[1].headers["authorization"], "Bearer s3cret-token");
    for id in ["away", "inside"] {
        let (kind, told) = failure(&source, "read", json!({"api_key": id})).await;
        assert!(kind == ToolErrorKind::PermissionDenied && told.contains("is a loopback address"), "{told}");
    }
    assert_eq!(other.connections(), 0);
    let (_, told) = failure(&source, "read", json!({"api_key": "circle"})).await;
    assert_eq!(told, "The API leads on more than 5 times. Tell the person.");
    // What changes something is not sent a second time.
    let before = site.asked().len();
    let (kind, told) = failure(&source, "write", json!({})).await;
    assert!(kind == ToolErrorKind::Unavailable && told.contains("It is somewhere else now (`/there`)"), "{told}");
    assert_eq!(site.asked().len(), before + 1);
}

#[tokio::test]
async fn a_secret_that_cannot_be_sent_leaves_the_api_out_and_is_not_told() {
    let site = Site::new(|_| Reply::ok("application/json", "{}"));
    let (_folder, place) = file(&described(&paths()));
    let mut api = api(&site, place);
    api.auth = Some(HttpAuth::Bearer(Hidden::new("s3cret\ntoken")));
    let source = HttpSource::new(api);
    source.settled().await;
    let told = format!("{:?}", source.state());
    assert!(told.contains("holds a line break") && !told.contains("s3cret"), "{told}");
}
