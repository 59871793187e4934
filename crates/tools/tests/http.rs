//! HTTP APIs as tools, against servers on loopback.

#![allow(clippy::format_push_string, clippy::format_collect, reason = "texts of tests, made as they read best")]

mod answers;
mod secrets;
mod sources;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use turnwright_core::{ToolErrorKind, text_of};
use turnwright_engine::source::{ToolError, ToolOutput, ToolSource};
use turnwright_tools::Hidden;
use turnwright_tools::http::{DescriptionPlace, HttpApi, HttpAuth, HttpSource};

use crate::support::site::Site;
use crate::support::{call_of, context};

/// A description with these paths.
fn described(paths: &Value) -> String {
    json!({"openapi": "3.1.0", "info": {"title": "An API", "version": "1"}, "paths": paths}).to_string()
}

/// A file with a text, as long as it is held.
fn file(text: &str) -> (tempfile::TempDir, DescriptionPlace) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.json");
    std::fs::write(&path, text).unwrap();
    (folder, DescriptionPlace::File(path))
}

/// An API at a site, which knows us by a token.
fn api(site: &Site, place: DescriptionPlace) -> HttpApi {
    let mut api = HttpApi::new("it", place);
    api.base_url = Some(site.url(""));
    api.auth = Some(HttpAuth::Bearer(Hidden::new("s3cret-token")));
    api
}

/// The source of an API with these paths at a site, ready.
async fn source(site: &Site, paths: &Value) -> HttpSource {
    let (_folder, place) = file(&described(paths));
    let source = HttpSource::new(api(site, place));
    source.settled().await;
    assert_eq!(source.set_aside(), [], "{:?}", source.state());
    source
}

async fn called(source: &HttpSource, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
    source.call(call_of(tool, arguments), context(&CancellationToken::new())).await
}

async fn text(source: &HttpSource, tool: &str, arguments: Value) -> String {
    text_of(&called(source, tool, arguments).await.expect("the call works").content)
}

async fn failure(source: &HttpSource, tool: &str, arguments: Value) -> (ToolErrorKind, String) {
    let error = called(source, tool, arguments).await.expect_err("the call fails");
    (error.kind, error.model_text)
}
