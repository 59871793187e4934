//! What is kept of MCP servers that people add goes with them.

#![cfg(test)]

use std::path::Path;

use serde_json::json;
use sha2::{Digest, Sha256};
use turnwright_host::{Environment, Host, Needs, NewMcpServer, Overrides, Owner, config};
use turnwright_mcp::{Definitions, FileDefinitions, FileTokens, HttpConfig, ServerConfig, TokenStore};

const FIRST: &str = "http://127.0.0.1:9/mcp";
const SECOND: &str = "http://127.0.0.1:9/other";

/// The name under which a sign-in of everyone's server is kept: those of before stay valid.
fn name_of_sign_in(url: &str) -> String {
    let digest = Sha256::digest(format!("far\0{url}"));
    digest.iter().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// Keeps what a sign-in brought and what the server offered, as if both had been.
async fn keep(data: &Path, url: &str) {
    FileTokens::new(data.join("mcp/tokens")).save(&name_of_sign_in(url), "{}").await.unwrap();
    let definitions = FileDefinitions::new(data.join("mcp/definitions"));
    definitions.keep(&ServerConfig::new("far", HttpConfig::new(url)), &[json!({"name": "t"})]);
}

/// Whether each of both is kept.
async fn kept(data: &Path, url: &str) -> [bool; 2] {
    let token = FileTokens::new(data.join("mcp/tokens")).load(&name_of_sign_in(url)).await.unwrap();
    let offered = FileDefinitions::new(data.join("mcp/definitions")).kept(&ServerConfig::new("far", HttpConfig::new(url)));
    [token.is_some(), offered.is_some()]
}

#[tokio::test]
async fn a_sign_in_and_what_was_offered_end_with_their_server_and_with_its_address() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let environment = Environment::new(folder.path());
    let overrides = Overrides { data_dir: Some(data.clone()), ..Overrides::default() };
    let host = Host::start(config::open(&environment, &overrides).unwrap(), &environment, Needs::OnDemand).await.unwrap();
    let keys = |url: &str| json!({"url": url}).as_object().unwrap().clone();
    let new = NewMcpServer { name: "far".to_owned(), owner: Owner::Everyone, config: keys(FIRST), asked: None };
    host.mcp().add(new.clone()).await.unwrap();

    keep(&data, FIRST).await;
    host.mcp().change("far", json!({"serial": true}).as_object().unwrap(), None, |_| true).await.unwrap();
    assert_eq!(kept(&data, FIRST).await, [true, true], "the same server");
    host.mcp().change("far", &keys(SECOND), None, |_| true).await.unwrap();
    assert_eq!(kept(&data, FIRST).await, [false, false]);

    keep(&data, SECOND).await;
    host.mcp().remove("far", |_| true).await.unwrap();
    assert_eq!(kept(&data, SECOND).await, [false, false]);
    host.shutdown().await;
}
