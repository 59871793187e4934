//! What is kept of MCP servers that people add goes with them.

use std::path::{Path, PathBuf};
use std::task::Poll;

use serde_json::json;
use sha2::{Digest, Sha256};
use turnwright_core::UserId;
use turnwright_engine::{Document, SourceState};
use turnwright_host::{Environment, Host, Needs, NewMcpServer, Overrides, Owner, ServerRights, config};
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

/// A host over this folder that starts nothing by itself, and where it keeps what it knows.
async fn host(folder: &Path) -> (Host, PathBuf) {
    let data = folder.join("data");
    let environment = Environment::new(folder);
    let overrides = Overrides { data_dir: Some(data.clone()), ..Overrides::default() };
    (Host::start(config::open(&environment, &overrides).unwrap(), &environment, Needs::OnDemand).await.unwrap(), data)
}

fn new(name: &str, owner: Owner, keys: &serde_json::Value) -> NewMcpServer {
    NewMcpServer { name: name.to_owned(), owner, config: keys.as_object().unwrap().clone(), asked: None }
}

#[tokio::test]
async fn a_sign_in_and_what_was_offered_end_with_their_server_and_with_its_address() {
    let folder = tempfile::tempdir().unwrap();
    let (host, data) = host(folder.path()).await;
    let keys = |url: &str| json!({"url": url}).as_object().unwrap().clone();
    host.mcp().add(new("far", Owner::Everyone, &json!({"url": FIRST}))).await.unwrap();

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

/// What comes of it within so many polls; it is dropped where that is nothing.
async fn cut_off_after<T>(mut polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if polls == 0 => Poll::Ready(None),
        Poll::Pending => {
            polls -= 1;
            Poll::Pending
        }
    })
    .await
}

#[tokio::test]
async fn a_removal_that_is_cut_off_anywhere_leaves_no_sign_in_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (host, data) = host(folder.path()).await;
    for polls in 0.. {
        host.mcp().add(new("far", Owner::Everyone, &json!({"url": FIRST}))).await.unwrap();
        keep(&data, FIRST).await;
        let is_removed = cut_off_after(polls, host.mcp().remove("far", |_| true)).await;
        // What was begun is written in its turn.
        let after = Document { key: "after".to_owned(), body: String::new() };
        host.documents().put_document("test", after).await.unwrap();
        host.tidy_once().await;
        let is_there = host.mcp().all().await.unwrap().iter().any(|server| server.name == "far");
        assert_eq!(kept(&data, FIRST).await[0], is_there, "cut off after {polls} polls");
        if is_there {
            host.mcp().remove("far", |_| true).await.unwrap();
        }
        if let Some(done) = is_removed {
            done.unwrap();
            break;
        }
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_move_away_from_an_address_with_a_secret_that_is_cut_off_anywhere_leaves_no_sign_in_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (host, data) = host(folder.path()).await;
    let first = "http://me:sesame@127.0.0.1:9/mcp";
    let keys = json!({"url": SECOND});
    // How often it has to be polled up to which place is another each time.
    for (round, polls) in (0..3).flat_map(|round| (0..12).map(move |polls| (round, polls))) {
        host.mcp().add(new("far", Owner::Everyone, &json!({"url": first}))).await.unwrap();
        keep(&data, first).await;
        let moved = cut_off_after(polls, host.mcp().change("far", keys.as_object().unwrap(), None, |_| true)).await;
        // What was begun is written in its turn.
        let after = Document { key: "after".to_owned(), body: String::new() };
        host.documents().put_document("test", after).await.unwrap();
        host.tidy_once().await;
        let is_moved = host.mcp().one("far").await.unwrap().config.unwrap()["url"] == SECOND;
        assert_eq!(kept(&data, first).await[0], !is_moved, "cut off after {polls} polls, round {round}");
        host.mcp().remove("far", |_| true).await.unwrap();
        if let Some(done) = moved {
            done.unwrap();
        }
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_with_another_address_waits_for_no_other_and_keeps_what_it_has_offered() {
    let folder = tempfile::tempdir().unwrap();
    let (host, data) = host(folder.path()).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/misbehave.py");
    let noted = folder.path().join("pid");
    let begin = "echo $$ > \"$1\"; exec python3 \"$2\" deaf";
    let slow = json!({"command": "sh", "args": ["-c", begin, "sh", noted, script]});
    host.mcp().add(new("slow", Owner::Everyone, &slow)).await.unwrap();
    host.mcp().add(new("far", Owner::Everyone, &json!({"url": FIRST}))).await.unwrap();
    assert_eq!(host.mcp().start("slow").await.unwrap().state, SourceState::Ready);
    let process = Path::new("/proc").join(std::fs::read_to_string(noted).unwrap().trim());
    keep(&data, FIRST).await;
    // As if the one that comes had offered it already.
    keep(&data, SECOND).await;

    host.mcp().change("slow", json!({"serial": true}).as_object().unwrap(), None, |_| true).await.unwrap();
    let keys = json!({"url": SECOND});
    host.mcp().change("far", keys.as_object().unwrap(), None, |_| true).await.unwrap();
    assert!(process.exists(), "it waited for the other, which is deaf to what asks it to end");
    assert_eq!((kept(&data, FIRST).await, kept(&data, SECOND).await), ([false, false], [true, true]));
    host.shutdown().await;
}

#[tokio::test]
async fn nobody_is_told_of_a_server_that_is_not_there_for_them() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("turnwright.toml"), "[mcp]\nmembers_allow = [\"127.0.0.1\"]\n").unwrap();
    let (host, _) = host(folder.path()).await;
    let [anna, ben]: [UserId; 2] = ["u_0000000000000001", "u_0000000000000002"].map(|id| id.parse().unwrap());
    let keys = json!({"url": FIRST});
    host.mcp().add(new("hers", Owner::User(anna.clone()), &keys)).await.unwrap();
    host.mcp().add(new("all", Owner::Everyone, &keys)).await.unwrap();
    let mcp = host.mcp().acting_for(ben.clone(), ServerRights::Own, false);
    for (name, told) in [
        ("hers", "the name `hers` is taken; choose another"),
        ("all", "the name `all` is taken; choose another, or change the server that has it"),
    ] {
        let error = mcp.add(new(name, Owner::User(ben.clone()), &keys)).await.unwrap_err();
        assert_eq!(error.to_string(), told);
    }
    host.shutdown().await;
}
