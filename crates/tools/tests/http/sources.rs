//! Where descriptions come from, and which of them are believed what.

use serde_json::{Value, json};
use turnwright_core::ToolErrorKind;
use turnwright_engine::source::SourceState;
use turnwright_tools::http::{DescriptionPlace, HttpApi, HttpSource};

use super::{ToolSource, api, described, failure, file, text};
use crate::support::site::{Reply, Site};

fn paths() -> Value {
    json!({"/it": {"get": {"operationId": "read"}}})
}

fn with_server(address: &str) -> String {
    json!({"openapi": "3.1.0", "servers": [{"url": address}], "paths": paths()}).to_string()
}

/// Why nothing is offered.
async fn reason(api: HttpApi) -> String {
    let source = HttpSource::new(api);
    assert_eq!(source.state(), SourceState::Starting);
    source.settled().await;
    assert!(source.tools().is_empty());
    let SourceState::Failing { reason } = source.state() else { panic!("{:?}", source.state()) };
    let (kind, told) = failure(&source, "read", json!({})).await;
    assert!(kind == ToolErrorKind::Unavailable && told.contains(&reason), "{told}");
    source.stop().await;
    assert_eq!(source.state(), SourceState::Stopped);
    reason
}

#[tokio::test]
async fn a_description_of_an_address_says_where_the_api_is() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/old" => Reply::to("/docs/openapi.yaml"),
        "/docs/openapi.yaml" => Reply::ok(
            "text/yaml",
            "openapi: 3.0.1\nservers: [{url: ../v1}]\npaths:\n  /it:\n    get:\n      operationId: read\n",
        ),
        _ => Reply::ok("text/plain", asked.path.clone()),
    });
    // Its own host, which the operator named, may be a private one.
    let source = HttpSource::new(HttpApi::new("it", DescriptionPlace::Address(site.url("/docs/openapi.yaml"))));
    source.settled().await;
    assert_eq!(source.state(), SourceState::Ready);
    assert_eq!(text(&source, "read", json!({})).await, "/v1/it");
    let moved = HttpSource::new(HttpApi::new("it", DescriptionPlace::Address(site.url("/old"))));
    moved.settled().await;
    assert_eq!(moved.state(), SourceState::Ready);
    assert!(site.asked().iter().all(|asked| !asked.headers.contains_key("authorization")));
}

#[tokio::test]
async fn a_description_does_not_lead_to_private_addresses() {
    let inside = Site::new(|_| Reply::ok("text/plain", "inside"));
    let server = with_server(&inside.url("/v1"));
    let (_folder, place) = file(&server);
    let mut api = HttpApi::new("it", place);
    let source = HttpSource::new(api.clone());
    source.settled().await;
    let (kind, told) = failure(&source, "read", json!({})).await;
    assert_eq!(kind, ToolErrorKind::PermissionDenied);
    assert!(
        told.contains("127.0.0.1 is a loopback address") && told.contains("The person can name it as its `base_url`"),
        "{told}"
    );
    assert_eq!(inside.connections(), 0);
    api.base_url = Some(inside.url("/v1"));
    let source = HttpSource::new(api);
    source.settled().await;
    assert_eq!(text(&source, "read", json!({})).await, "inside");
    // One that was fetched, with a secret that would go to whoever it says.
    let site = Site::new(move |_| Reply::ok("application/json", server.clone()));
    let mut fetched = super::api(&site, DescriptionPlace::Address(site.url("/openapi.json")));
    fetched.base_url = None;
    let told = reason(fetched).await;
    assert!(told.contains("name the API's own address as `base_url`, so that the secrets go there"), "{told}");
    assert_eq!(inside.connections(), 1);
}

#[tokio::test]
async fn a_description_that_cannot_be_used_says_why() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/html" => Reply::ok("text/html", "<html></html>"),
        _ => Reply::status(404, "no"),
    });
    let of = |place| reason(api(&site, place));
    let address = |path: &str| DescriptionPlace::Address(site.url(path));
    assert!(of(address("/html")).await.ends_with("it is no OpenAPI description: it has no `openapi` with a version"));
    assert!(of(address("/none?key=s3cret")).await.ends_with("/none cannot be used: its address answers 404 Not Found"));
    let (_folder, place) = file("{");
    assert!(of(place).await.contains("it is neither JSON nor YAML that can be read: EOF while parsing"));
    assert!(of(DescriptionPlace::File("/nowhere/at/all".into())).await.contains("No such file"));
    assert!(of(DescriptionPlace::File("/dev/zero".into())).await.ends_with("it is no file"));
    assert!(of(DescriptionPlace::File("/".into())).await.ends_with("it is no file"));
    let (_folder, place) = file(&described(&json!({})));
    assert!(of(place).await.ends_with("it has no `paths` with operations"));
    let (_folder, place) = file(&with_server("/v1"));
    let mut without = HttpApi::new("it", place);
    without.base_url = None;
    assert!(reason(without).await.contains("its server `/v1` is no whole address"));
}

#[tokio::test]
async fn an_operation_at_another_server_is_left_out_visibly() {
    let site = Site::new(|_| Reply::ok("text/plain", "here"));
    let paths = json!({"/it": {"get": {"operationId": "read"}}, "/up": {"servers": [{"url": "https://uploads.example"}], "post": {"operationId": "upload"}}});
    let (_folder, place) = file(&described(&paths));
    let source = HttpSource::new(api(&site, place));
    source.settled().await;
    let tools: Vec<String> = source.tools().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(tools, ["read"]);
    let told = source.set_aside()[0].to_string();
    assert!(told.starts_with("upload of it: it is at a server of its own, `uploads.example`"), "{told}");
}
