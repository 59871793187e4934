//! The port over a real NATS server, which each test starts and ends.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, also in the helpers that clippy does not know as tests"
)]

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use turnwright_core::{Claim, DriverId, Seq};
use turnwright_engine::Slots;
use turnwright_engine::nodes::{Condition, LiveFrame, LiveNews, News, Nodes, NotOffered, Offer, Trouble};
use turnwright_nodes::{Credentials, JoinError, NatsNodes, Node, Options};
use turnwright_testkit::Port;
use turnwright_testkit::nats_server::{Keeps, NatsServer, program};

/// No wait of these tests is longer; none is measured.
const LIMIT: Duration = Duration::from_mins(1);

struct World {
    server: NatsServer,
    _folder: TempDir,
}

/// A server; `None` where none is installed.
fn world(keeps: Keeps, more: &[&str]) -> Option<World> {
    let Some(program) = program().unwrap() else {
        println!("skipped: run scripts/install-test-servers");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    Some(World { server: NatsServer::start(&program, folder.path(), keeps, more).unwrap(), _folder: folder })
}

fn options(url: String, name: &str) -> Options {
    Options {
        urls: vec![url],
        credentials: Credentials::None,
        ca: None,
        prefix: "tw".to_owned(),
        replicas: 1,
        queue: 100,
        cluster: "ours".to_owned(),
        driver: DriverId(name.to_owned()),
        node: Node {
            name: name.to_owned(),
            address: "http://127.0.0.1:1".to_owned(),
            version: "1".to_owned(),
            started_at_ms: 1,
        },
    }
}

async fn two(world: &World) -> (NatsNodes, NatsNodes) {
    let join = |name| NatsNodes::join(options(world.server.url(), name));
    (join("one").await.unwrap(), join("other").await.unwrap())
}

fn offer(conversation: &str) -> Offer {
    Offer { conversation: conversation.parse().unwrap(), let_go: None, home: None }
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.unwrap()
}

/// Waits until `ready` holds.
async fn until(what: &str, mut ready: impl FnMut() -> bool) {
    for _ in 0..LIMIT.as_millis() / 20 {
        if ready() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("waited in vain for {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_is_one_goes_to_another_node_where_it_is_left_and_is_gone_once_it_is_done() {
    let Some(world) = world(Keeps::Messages, &[]) else { return };
    let (one, other) = two(&world).await;
    let let_go = Some(Claim { driver: DriverId("d".to_owned()), epoch: 3, folder: None });
    let first = Offer { let_go, ..offer("a.b") };
    one.offer(&first).await.unwrap();
    other.offer(&offer("a.b")).await.unwrap();
    let taken = within(one.next()).await;
    assert_eq!(*taken.offer(), first);
    // Nothing is said of it any more, as where a node dies: another has it.
    drop(taken);
    let again = within(other.next()).await;
    assert_eq!(*again.offer(), first);
    again.progress().await;
    again.give_back(Duration::ZERO).await;
    let third = within(one.next()).await;
    third.done().await;
    // The next is another one: the first is gone.
    other.offer(&offer("c")).await.unwrap();
    let next = within(one.next()).await;
    assert_eq!(*next.offer(), offer("c"));
    next.done().await;
    one.offer(&offer("a.b")).await.unwrap();
    assert_eq!(*within(other.next()).await.offer(), offer("a.b"));
    one.leave().await;
    other.leave().await;
}

/// What the server says while there is nothing to do must not keep a node from hearing that there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_waited_takes_an_offer_at_once() {
    let Some(world) = world(Keeps::Messages, &[]) else { return };
    let (waiting, other) = two(&world).await;
    // In a task of its own that nothing but the queue wakes: a limit around it would look again by itself.
    let mut taking = tokio::task::JoinSet::new();
    taking.spawn(async move {
        let heard = waiting.next().await;
        assert_eq!(*heard.offer(), offer("a"));
        heard.done().await;
        waiting.leave().await;
    });
    tokio::time::sleep(Duration::from_secs(3)).await;
    other.offer(&offer("a")).await.unwrap();
    // A wait of the queue is ten seconds: whoever hears at its end alone is too late.
    tokio::time::timeout(Duration::from_secs(5), taking.join_next()).await.unwrap().unwrap().unwrap();
    other.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_told_with_its_limit() {
    let Some(world) = world(Keeps::Messages, &[]) else { return };
    let nodes = NatsNodes::join(Options { queue: 2, ..options(world.server.url(), "one") }).await.unwrap();
    nodes.offer(&offer("a")).await.unwrap();
    nodes.offer(&offer("b")).await.unwrap();
    nodes.offer(&offer("b")).await.unwrap();
    assert_eq!(nodes.offer(&offer("c")).await, Err(NotOffered::Full { most: 2 }));
    nodes.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_tells_the_others_hear_and_it_does_not_itself() {
    let Some(world) = world(Keeps::Messages, &[]) else { return };
    let (one, other) = two(&world).await;
    let id: turnwright_core::ConversationId = "a.b".parse().unwrap();
    let mut frames = other.follow(&id).await.unwrap();
    let news = |node: &str| News::Appended { conversation: node.parse().unwrap(), seq: Some(Seq::FIRST) };
    one.tell(news("from-one")).await;
    let frame = |number| LiveFrame { relay: "r".to_owned(), number, news: LiveNews::Stored { seq: Seq::FIRST } };
    // A subscription of another connection may take a moment to be known.
    let mut number = 0;
    let first = loop {
        one.tell(News::Live { conversation: id.clone(), frame: frame(number) }).await;
        number += 1;
        if let Ok(frame) = tokio::time::timeout(Duration::from_millis(100), frames.next()).await {
            break frame.unwrap();
        }
    };
    assert_eq!(first.news, LiveNews::Stored { seq: Seq::FIRST });
    other.tell(news("from-other")).await;
    let next = async |nodes: &NatsNodes| loop {
        match within(nodes.hear()).await {
            News::Reconnected => {}
            news => return news,
        }
    };
    assert_eq!(next(&one).await, news("from-other"));
    assert_eq!(next(&other).await, news("from-one"));
    one.leave().await;
    other.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_and_starts_again_loses_no_offer_and_is_told() {
    let Some(mut world) = world(Keeps::Messages, &[]) else { return };
    let nodes = NatsNodes::join(options(world.server.url(), "one")).await.unwrap();
    nodes.offer(&offer("a")).await.unwrap();
    world.server.kill();
    until("the break to be seen", || !nodes.is_shared()).await;
    assert!(matches!(nodes.condition(), Condition::Unreachable { .. }), "{:?}", nodes.condition());
    assert!(matches!(nodes.offer(&offer("b")).await, Err(NotOffered::Unreachable { .. })));
    let (offered, heard) = tokio::join!(within(nodes.next()), async {
        world.server.start_again().unwrap();
        within(nodes.hear()).await
    });
    assert_eq!((offered.offer(), heard), (&offer("a"), News::Reconnected));
    offered.done().await;
    assert!(nodes.is_shared());
    nodes.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_counted_while_they_live() {
    let Some(world) = world(Keeps::Messages, &[]) else { return };
    let (one, other) = two(&world).await;
    until("both to be known", || one.condition() == Condition::Connected { nodes: Some(2), troubles: Vec::new() }).await;
    other.leave().await;
    until("one to be gone", || one.condition() == Condition::Connected { nodes: Some(1), troubles: Vec::new() }).await;
    one.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_knows_how_many_streams_a_user_has_open_at_the_others_that_live() {
    let Some(world) = world(Keeps::Messages, &[]) else { return };
    let (one, other) = two(&world).await;
    let (here, there) = (Slots::new(9, 8), Slots::new(9, 8));
    one.share_streams(&here);
    other.share_streams(&there);
    let (ada, bob) = ("ada".parse().unwrap(), "bob".parse().unwrap());
    let mut open = [here.enter(&ada), here.enter(&ada), here.enter(&bob), there.enter(&ada)].map(Some);
    until("both to be told", || other.streams_elsewhere(&ada) == 2 && one.streams_elsewhere(&ada) == 1).await;
    assert_eq!((other.streams_elsewhere(&bob), one.streams_elsewhere(&bob)), (1, 0), "what is open here is not elsewhere");
    // What is closed counts no more, what is opened then counts.
    open[0] = None;
    open[3] = None;
    until("fewer", || other.streams_elsewhere(&ada) == 1 && one.streams_elsewhere(&ada) == 0).await;
    open[0] = Some(here.enter(&ada));
    until("more", || other.streams_elsewhere(&ada) == 2).await;
    // A third that comes is told at once what is open, and a node that leaves counts no more.
    let third = NatsNodes::join(options(world.server.url(), "third")).await.unwrap();
    until("the third to be told", || third.streams_elsewhere(&ada) == 2).await;
    one.leave().await;
    until("the node to be gone", || other.streams_elsewhere(&ada) == 0 && other.streams_elsewhere(&bob) == 0).await;
    other.leave().await;
    third.leave().await;
}

async fn refused(options: Options) -> String {
    Box::pin(within(NatsNodes::join(options))).await.unwrap_err().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_cannot_join_is_told_why() {
    let port = Port::reserve().unwrap();
    let free = port.address();
    let nobody = refused(options(format!("nats://{free}"), "one")).await;
    assert!(nobody.starts_with(&format!("no NATS server answers at nats://{free}: ")), "{nobody}");
    let prefix = refused(Options { prefix: "a.b".to_owned(), ..options(format!("nats://{free}"), "one") }).await;
    assert_eq!(prefix, "`a.b` is not a prefix for NATS: 1 to 32 characters of A-Z a-z 0-9 _ -");

    let Some(secret) = world(Keeps::Messages, &["--auth", "right"]) else { return };
    let token = |token: &str| Credentials::Token(token.to_owned());
    let wrong = Options { credentials: token("wrong"), ..options(secret.server.url(), "one") };
    let url = secret.server.url();
    assert_eq!(refused(wrong).await, format!("the NATS server at {url} refuses these credentials"));
    let right = Options { credentials: token("right"), ..options(secret.server.url(), "one") };
    let nodes = NatsNodes::join(right).await.unwrap();
    let foreign = Options { credentials: token("right"), cluster: "theirs".to_owned(), ..options(secret.server.url(), "one") };
    let told = refused(foreign).await;
    let expected = "the NATS prefix `tw` belongs to nodes of another database (theirs is ours, this one is theirs); choose \
                    another prefix, or the same database";
    assert_eq!(told, expected);
    nodes.leave().await;

    let Some(plain) = world(Keeps::Nothing, &[]) else { return };
    let told = refused(options(plain.server.url(), "one")).await;
    let url = plain.server.url();
    assert!(told.starts_with(&format!("the NATS server at {url} offers no JetStream to this account (")), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_too_old_is_told_with_what_is_needed() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    let old = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let info = "INFO {\"server_id\":\"x\",\"server_name\":\"x\",\"version\":\"2.9.25\",\"go\":\"go1\",\"host\":\"127.0.0.1\",\
                    \"port\":4222,\"headers\":true,\"max_payload\":1048576,\"proto\":1,\"jetstream\":true}\r\n";
        stream.write_all(info.as_bytes()).await.unwrap();
        let mut bytes = [0; 4096];
        while stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {
            if stream.write_all(b"PONG\r\n").await.is_err() {
                return;
            }
        }
    };
    let joined = tokio::select! {
        joined = within(NatsNodes::join(options(url.clone(), "one"))) => joined,
        () = async { old.await; std::future::pending().await } => return,
    };
    assert!(matches!(joined, Err(JoinError::TooOld { .. })), "{joined:?}");
    assert_eq!(
        joined.unwrap_err().to_string(),
        format!("the NATS server at {url} is version 2.9.25; 2.10.0 or newer is needed")
    );
}

/// Three servers that keep three copies.
struct Three {
    servers: Vec<NatsServer>,
    /// Where they listen for each other.
    _ports: Vec<Port>,
    _folder: TempDir,
}

/// `None` where none is installed.
fn three() -> Option<Three> {
    let Some(program) = program().unwrap() else {
        println!("skipped: run scripts/install-test-servers");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let ports: Vec<Port> = (0..3).map(|_| Port::reserve().unwrap()).collect();
    let routes: Vec<String> = ports.iter().map(|port| format!("nats://{}", port.address())).collect();
    let start = |(at, route): (usize, &String)| {
        let (name, all) = (format!("nats-{at}"), routes.join(","));
        let more = ["-n", &name, "--cluster_name", "three", "--cluster", route, "--routes", &all];
        NatsServer::start(&program, &folder.path().join(&name), Keeps::Messages, &more).unwrap()
    };
    let servers = routes.iter().enumerate().map(start).collect();
    Some(Three { servers, _ports: ports, _folder: folder })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_too_few_servers_are_left_for_is_told_until_they_are_back() {
    let Some(mut three) = three() else { return };
    let servers = &mut three.servers;
    let joined = async {
        loop {
            let three = Options { replicas: 3, ..options(servers[0].url(), "one") };
            // They choose a leader first.
            match Box::pin(NatsNodes::join(three)).await {
                Ok(nodes) => return nodes,
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    };
    let nodes = within(joined).await;
    let troubles = || match nodes.condition() {
        Condition::Connected { troubles, .. } => troubles,
        other => panic!("{other:?}"),
    };
    until("the queue to answer", || troubles().is_empty()).await;
    servers[1].kill();
    servers[2].kill();
    // Nothing is offered here meanwhile.
    until("the queue to be silent", || troubles() == [Trouble::Silent]).await;
    assert!(matches!(nodes.offer(&offer("a")).await, Err(NotOffered::Unreachable { .. })));
    servers[1].start_again().unwrap();
    servers[2].start_again().unwrap();
    until("the queue to answer again", || troubles().is_empty()).await;
    nodes.leave().await;
}

/// The subjects that docs/nodes.md says an account needs, for the prefix `tw`.
fn documented_rights() -> Vec<String> {
    let document = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/nodes.md")).unwrap();
    let line = document.lines().find(|line| line.starts_with("An account needs to publish and subscribe to ")).unwrap();
    line.split('`').skip(1).step_by(2).map(|subject| subject.replace("PREFIX", "tw")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_that_the_document_names_are_enough() {
    let rights: Vec<String> = documented_rights().iter().map(|subject| format!("\"{subject}\"")).collect();
    let rights = rights.join(", ");
    let folder = tempfile::tempdir().unwrap();
    let (config, log) = (folder.path().join("nats.conf"), folder.path().join("log"));
    let users = format!(
        "authorization {{ users = [\n{{ user: watcher, password: right }}\n\
         {{ user: node, password: right, permissions: {{ publish: [{rights}], subscribe: [{rights}] }} }}\n] }}\n"
    );
    std::fs::write(&config, users).unwrap();
    let more = ["-c", config.to_str().unwrap(), "-l", log.to_str().unwrap()];
    let Some(world) = world(Keeps::Messages, &more) else { return };
    let join = |name: &str, address: String| {
        let mut options = options(world.server.url(), name);
        options.credentials = Credentials::Password { user: "node".to_owned(), password: "right".to_owned() };
        options.node.address = address;
        NatsNodes::join(options)
    };
    let watcher = async_nats::ConnectOptions::with_user_and_password("watcher".to_owned(), "right".to_owned());
    let watcher = watcher.connect(world.server.url()).await.unwrap();
    let mut flow = watcher.subscribe("$JS.FC.>").await.unwrap();
    watcher.flush().await.unwrap();
    // Its words are so long that the server soon asks whether they are read.
    let one = join("one", "a".repeat(500_000)).await.unwrap();
    let other = join("other", "a".to_owned()).await.unwrap();
    one.offer(&offer("a")).await.unwrap();
    let taken = within(other.next()).await;
    taken.progress().await;
    let home = DriverId("one".to_owned());
    let (was_handed, handed) = tokio::join!(taken.hand_to(&home), within(one.handed()));
    assert!(was_handed);
    handed.done().await;
    one.offer(&offer("b")).await.unwrap();
    within(other.next()).await.give_back(Duration::ZERO).await;
    within(one.next()).await.done().await;
    drop(other.follow(&"a".parse().unwrap()).await.unwrap());
    let told = News::Appended { conversation: "a".parse().unwrap(), seq: Some(Seq::FIRST) };
    one.tell(told.clone()).await;
    while within(other.hear()).await != told {}
    within(flow.next()).await.unwrap();
    until("both to be known", || other.condition() == Condition::Connected { nodes: Some(2), troubles: Vec::new() }).await;
    other.drain().await;
    other.leave().await;
    one.leave().await;
    let log = std::fs::read_to_string(log).unwrap();
    assert!(!log.contains("Violation"), "{log}");
}
