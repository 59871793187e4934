//! Servers in containers of a real engine: what they may do there, and that nothing is left of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::child::{run_again, until_ready};
use crate::support::{Fixture, LONG, context, fixture, fixture_in, nothing, quick, text};
use serde_json::Value;
use turnwright_engine::{SourceState, ToolSource};
use turnwright_mcp::{DockerConfig, Mount, ServerConfig, TransportConfig, sweep_gone};

const IMAGE: &str = "turnwright-test-server:1";
/// Names the folder of the host that this binary is when a test starts it.
const HOST: &str = "TURNWRIGHT_TEST_DOCKER_HOST";

/// The engine of the tests; `None`, after saying so, where there is none.
fn engine() -> Option<String> {
    let engine = crate::support::test_engine();
    if engine.is_none() {
        assert!(
            std::env::var_os("TURNWRIGHT_REQUIRE_TEST_DOCKER").is_none_or(|value| value != "1"),
            "there is no Docker engine: run this by scripts/start-test-docker"
        );
        println!("skipped: no Docker engine, run this by scripts/start-test-docker");
    }
    engine
}

fn server(docker: DockerConfig) -> ServerConfig {
    let mut config = ServerConfig::new("boxed", docker);
    quick(&mut config);
    config
}

fn deaf() -> ServerConfig {
    let mut docker = DockerConfig::new(IMAGE);
    docker.args = vec!["deaf".into()];
    server(docker)
}

/// The ids of the containers with this mark, running or not.
async fn containers(engine: &str, mark: &str) -> Vec<String> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder().unix_socket(Path::new(engine.strip_prefix("unix://").unwrap()).to_owned());
    let filters = format!("%7B%22label%22%3A%5B%22dev.turnwright.process%3D{mark}%22%5D%7D");
    let client = client.tls_certs_only([]).build().unwrap();
    let answer = client.get(format!("http://docker/containers/json?all=1&filters={filters}")).send().await.unwrap();
    let Value::Array(found) = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap() else { panic!("no list") };
    found.iter().map(|container| container["Id"].as_str().unwrap().to_owned()).collect()
}

fn mark(fixture: &Fixture) -> String {
    match fixture.records().as_slice() {
        [record] => record.mark.clone(),
        other => panic!("one record: {other:?}"),
    }
}

async fn ready(config: ServerConfig) -> Fixture {
    let fixture = fixture(config);
    fixture.server.settled().await;
    assert_eq!(fixture.server.state(), SourceState::Ready, "{:?}", fixture.server.logs());
    fixture
}

/// The reason why it cannot be started.
async fn refusal(config: ServerConfig) -> String {
    let fixture = fixture(config);
    fixture.server.outcome().await;
    let SourceState::Failing { reason } = fixture.server.state() else { panic!("{:?}", fixture.server.state()) };
    fixture.server.stop().await;
    assert_eq!(fixture.records(), []);
    reason
}

#[tokio::test]
async fn a_server_in_a_container_has_what_it_was_given_and_nothing_else_and_is_gone_after_a_stop() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().unwrap();
    for name in ["shut", "open"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("shut/note"), "from here").unwrap();
    let mount = |name: &str, writable| Mount { source: folder.path().join(name), target: Path::new("/").join(name), writable };
    let mut docker = DockerConfig::new(IMAGE);
    docker.env = vec![("GIVEN".into(), "this".into())];
    docker.mounts = vec![mount("shut", false), mount("open", true)];
    // Without capabilities root may not write what belongs to somebody else.
    let fixture = ready(server(docker)).await;
    assert_eq!(fixture.tool_names(), ["look", "crash", "eat"]);
    let seen = fixture.call("look", nothing()).await.unwrap();
    assert_eq!(
        text(&seen),
        "networks: lo\n\
         CapEff: 0000000000000000\n\
         NoNewPrivs: 1\n\
         /written: refused\n\
         /tmp/written: written\n\
         /shut/written: refused\n\
         /open/written: written\n\
         /shut/note: from here\n\
         variables: GIVEN HOME HOSTNAME PATH\n\
         GIVEN=this"
    );
    fixture.logged("started").await;
    let mark = mark(&fixture);
    assert_eq!(containers(&engine, &mark).await.len(), 1);
    fixture.server.stop().await;
    assert_eq!((containers(&engine, &mark).await, fixture.records()), (vec![], vec![]));
}

#[tokio::test]
async fn a_deaf_server_in_a_container_is_gone_after_a_stop() {
    let Some(engine) = engine() else { return };
    let fixture = ready(deaf()).await;
    let mark = mark(&fixture);
    tokio::time::timeout(LONG, fixture.server.stop()).await.expect("the stop ends");
    assert_eq!((containers(&engine, &mark).await, fixture.records()), (vec![], vec![]));
}

#[tokio::test]
async fn a_container_is_gone_after_a_crash_and_the_next_call_has_a_new_one() {
    let Some(engine) = engine() else { return };
    let fixture = ready(server(DockerConfig::new(IMAGE))).await;
    let first = mark(&fixture);
    let error = fixture.call("crash", nothing()).await.unwrap_err();
    assert!(error.model_text.contains("`boxed`"), "{error:?}");
    fixture.logged("it ended by itself (exit code 3)").await;
    fixture.call("look", nothing()).await.unwrap();
    assert_eq!(containers(&engine, &first).await, Vec::<String>::new());
    fixture.server.stop().await;
}

#[tokio::test]
async fn a_server_that_takes_more_memory_than_it_has_is_named_as_such() {
    let Some(_) = engine() else { return };
    let mut docker = DockerConfig::new(IMAGE);
    docker.memory = 32 << 20;
    let fixture = ready(server(docker)).await;
    let ended = || fixture.server.logs().into_iter().filter(|line| line.text.starts_with("it ended by itself"));
    // An engine may hear of an end before it hears why, and then never says so: seldom, and not each time.
    for tried in 1..=5 {
        fixture.call("eat", nothing()).await.unwrap_err();
        let told = async {
            while ended().count() < tried {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, told).await.unwrap();
        if ended().any(|line| line.text.contains("(killed for memory: it has 32 MiB)")) {
            return fixture.server.stop().await;
        }
    }
    panic!("{:?}", fixture.server.logs());
}

#[tokio::test]
async fn hundred_calls_at_once_go_through_a_container() {
    let Some(_) = engine() else { return };
    let fixture = Arc::new(ready(server(DockerConfig::new(IMAGE))).await);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let fixture = Arc::clone(&fixture);
        calls.spawn(async move { fixture.call("look", nothing()).await.is_ok() });
    }
    assert_eq!(calls.join_all().await, [true; 100]);
    fixture.server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_started_says_why_and_leaves_nothing() {
    let Some(_) = engine() else { return };
    assert_eq!(
        refusal(server(DockerConfig::new("no-such-image:7"))).await,
        "the image `no-such-image:7` is not on this machine; fetch it with `docker pull no-such-image:7`, or set \
         `docker.pull = \"missing\"`"
    );
    let mut mounts = DockerConfig::new(IMAGE);
    mounts.mounts = vec![Mount { source: "/no/such/folder".into(), target: "/x".into(), writable: false }];
    let mut network = DockerConfig::new(IMAGE);
    network.network = Some("no-such-network".into());
    let mut fetched = DockerConfig::new("127.0.0.1:9/no/such:1");
    fetched.fetches_image = true;
    for (docker, named) in [(mounts, "/no/such/folder"), (network, "no-such-network"), (fetched, "127.0.0.1:9")] {
        let image = docker.image.clone();
        let reason = refusal(server(docker)).await;
        let expected = format!("the container of `{image}` could not be started: ");
        assert!(reason.starts_with(&expected) && reason.contains(named), "{reason}");
    }
}

/// The host: starts two servers, says so, and never ends.
async fn host(folder: &Path) {
    let servers = [fixture_in(server(DockerConfig::new(IMAGE)), folder), fixture_in(deaf(), folder)];
    for server in &servers {
        server.settled().await;
        assert_eq!(server.state(), SourceState::Ready, "{:?}", server.logs());
    }
    std::fs::write(folder.join("ready"), "").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn containers_of_a_killed_host_are_gone_after_the_next_start() {
    if let Some(folder) = std::env::var_os(HOST) {
        return host(Path::new(&folder)).await;
    }
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut host = run_again("docker::containers_of_a_killed_host_are_gone_after_the_next_start", HOST, folder.path());
    until_ready(&mut host, folder.path(), LONG).await;
    host.kill().unwrap();
    host.wait().unwrap();
    let processes = folder.path().join("processes");
    let marks: Vec<String> = std::fs::read_dir(processes.join("test"))
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut before = 0;
    for mark in &marks {
        before += containers(&engine, mark).await.len();
    }
    assert_eq!((marks.len(), before), (2, 2), "the kill must leave something to sweep");
    let swept = tokio::time::timeout(Duration::from_secs(10), sweep_gone(&processes, async |_| false)).await;
    assert_eq!(swept.expect("in time").unwrap(), 2);
    for mark in &marks {
        assert_eq!(containers(&engine, mark).await, Vec::<String>::new());
    }
    assert!(processes.read_dir().unwrap().next().is_none(), "and nothing is remembered");
}

#[tokio::test]
async fn without_an_engine_it_says_where_one_was_looked_for_and_remembers_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = format!("unix://{}/none.sock", folder.path().display());
    let config = server(DockerConfig::new(IMAGE));
    assert_eq!(TransportConfig::from(DockerConfig::new(IMAGE)).to_string(), IMAGE);
    let server = crate::support::fixture_at(config, folder.path(), &nowhere);
    server.outcome().await;
    let SourceState::Failing { reason } = server.state() else { panic!("{:?}", server.state()) };
    let expected = format!("no Docker engine answers at {nowhere}: ");
    assert!(reason.starts_with(&expected) && reason.contains("is it running"), "{reason}");
    let error = server.call(crate::support::call("look", nothing()), context().0).await.unwrap_err();
    assert!(error.model_text.starts_with("The MCP server `boxed` cannot be started"), "{error:?}");
    server.stop().await;
    assert!(folder.path().join("processes/test").read_dir().unwrap().next().is_none(), "nothing was made");
}
