//! A host that is killed leaves nothing: its servers, their children and those that hide from their group are gone soon
//! after the next start.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::child::{run_again, until_ready};
use crate::support::{LONG, call, context, fixture_in, misbehaving, nothing, stdio};
use turnwright_engine::{SourceState, ToolSource};
use turnwright_mcp::{ServerConfig, sweep_gone};

const SERVERS: usize = 20;
const CALLS: usize = 10;
/// What the next start may take until nothing is left.
const LIMIT: Duration = Duration::from_secs(10);
/// Names the folder of the host that this binary is when the test starts it.
const HOST: &str = "TURNWRIGHT_TEST_ORPHANS_HOST";

/// Every fourth has children, one of them out of its group; every fourth ignores SIGTERM and the end of its input; every
/// fourth does both. None answers a call.
fn server(number: usize) -> ServerConfig {
    let mode = ["hold", "hold_tree", "hold_deaf", "hold_tree_deaf"][number % 4];
    let mut config = misbehaving(mode, "");
    config.name = format!("s{number}");
    // By it their processes are found.
    let folder = std::env::var_os(HOST).unwrap().into_string().unwrap();
    stdio(&mut config).env = vec![(HOST.to_owned(), folder)];
    // Many start at once on a busy machine.
    config.start_limit = Duration::from_mins(1);
    config
}

/// The host: starts the servers, calls them, says so, and never ends.
async fn host(folder: &Path) {
    let servers: Vec<_> = (0..SERVERS).map(|number| Arc::new(fixture_in(server(number), folder))).collect();
    for server in &servers {
        server.start();
    }
    let mut calls = tokio::task::JoinSet::new();
    for server in &servers {
        server.settled().await;
        assert_eq!(server.state(), SourceState::Ready, "{:?}", server.logs());
        for _ in 0..CALLS {
            let server = Arc::clone(server);
            calls.spawn(async move { server.call(call("t", nothing()), context().0).await });
        }
    }
    // Every call has reached its server, which says so.
    for server in &servers {
        while server.logs().iter().filter(|line| line.text == "called").count() < CALLS {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    std::fs::write(folder.join("ready"), "").unwrap();
    while calls.join_next().await.is_some() {}
    panic!("calls of servers that never answer ended");
}

/// The processes whose environment names this folder: the host, its servers and all that they started.
fn processes_of(folder: &Path) -> Vec<i32> {
    let variable = format!("{HOST}={}", folder.display());
    let named = |entry: std::io::Result<std::fs::DirEntry>| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|byte| *byte == 0).any(|it| it == variable.as_bytes()).then_some(pid)
    };
    std::fs::read_dir("/proc").unwrap().filter_map(named).filter(|pid| crate::support::is_alive(*pid)).collect()
}

#[tokio::test]
async fn nothing_is_left_of_twenty_servers_under_calls_ten_seconds_after_the_start_that_follows_a_kill() {
    if let Some(folder) = std::env::var_os(HOST) {
        return host(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let name = "orphans::nothing_is_left_of_twenty_servers_under_calls_ten_seconds_after_the_start_that_follows_a_kill";
    let mut host = run_again(name, HOST, folder.path());
    until_ready(&mut host, folder.path(), LONG * 3).await;
    host.kill().unwrap();
    host.wait().unwrap();
    // Two children of every second server, and those that do not mind the end of their input.
    let left = processes_of(folder.path());
    assert!(left.len() >= SERVERS / 2 * 3, "the kill must leave something to sweep: {left:?}");

    let processes = folder.path().join("processes");
    let swept = tokio::time::timeout(LIMIT, sweep_gone(&processes, async |_| false)).await.expect("in time").unwrap();
    assert_eq!((swept, processes_of(folder.path())), (SERVERS, Vec::new()));
    assert!(processes.read_dir().unwrap().next().is_none(), "and nothing is remembered");
}
