//! What a host says about itself.

#![cfg(test)]

use turnwright_engine::SourceState;
use turnwright_host::{Environment, Host, Needs, Overrides, config};

#[tokio::test]
async fn a_server_that_does_not_start_in_time_is_told_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let text = "model = \"practice/practice\"\n[mcp.servers.late]\ncommand = \"sleep\"\nargs = [\"1000\"]\nstart_ms = 100\n";
    std::fs::write(folder.path().join("turnwright.toml"), text).unwrap();
    let environment = Environment::new(folder.path()).with("PATH", "/usr/bin:/bin");
    let overrides = Overrides { data_dir: Some(folder.path().join("data")), ..Overrides::default() };
    let loaded = config::open(&environment, &overrides).unwrap();
    let host = Host::start(loaded, &environment, Needs::Everything).await.unwrap();
    let status = host.check_mcp("late").await.unwrap();
    let reason = "it did not finish its start within 100 ms: no answer to server/discover or initialize came".to_owned();
    assert_eq!(status.state, SourceState::Failing { reason });
    host.shutdown().await;
}
