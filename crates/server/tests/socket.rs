//! What only a real connection shows.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use turnwright_core::policy::Policy;
use turnwright_core::{ModelRef, TurnSettings};
use turnwright_engine::{Engine, EngineParts};
use turnwright_server::{ServeError, ServerOptions, ServerState, router, serve, while_starting};
use turnwright_testkit::{Answer, ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders, text};

fn app() -> axum::Router {
    let engine = Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(ScriptedProvider::new([Answer::whole([text("Hello")])]))),
        sources: Vec::new(),
        store: Arc::new(MemoryStore::default()),
        clock: Arc::new(ManualClock::at(0)),
        policy: Policy::default(),
        defaults: TurnSettings::new(ModelRef::new("test", "m")),
    });
    router(ServerState::new(engine, ServerOptions::default()))
}

/// Sends a chat message of so many bytes and reads the answer to its end.
async fn chat(address: std::net::SocketAddr, size: usize) -> String {
    let body = format!("{{\"content\":\"{}\"}}", "x".repeat(size));
    let head = format!(
        "POST /api/v1/conversations/c1/chat HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn what_the_server_asks_of_itself_decides_nothing() {
    if !std::path::Path::new("/proc/net/tcp").exists() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    // As a tool that calls an API over HTTP does: the connection is this process's own.
    let client = async {
        let mut told = Vec::new();
        for (path, body) in [
            ("/api/v1/approvals/rules", r#"{"tool":"*","action":"allow","scope":"user"}"#),
            ("/api/v1/tools/call", r#"{"tool":"command__run","arguments":"{}","approve":"all"}"#),
            ("/api/v1/mcp/servers/me/tools/command__run/approve", "{}"),
            ("/api/v1/conversations", r#"{"settings":{"approve":"all"}}"#),
        ] {
            let request = format!(
                "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            told.push((path, answer));
        }
        shutdown.cancel();
        told
    };
    let (served, told) = tokio::join!(serve(listener, app(), shutdown.clone().cancelled_owned()), client);
    served.unwrap();
    for (path, answer) in told {
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("people_only"), "{path}: {answer}");
    }
}

#[tokio::test]
async fn those_who_wait_for_something_else_keep_nobody_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let waiting = axum::routing::get(std::future::pending::<()>);
    let router = axum::Router::new().route("/waiting", waiting).route("/now", axum::routing::get(async || "answered"));
    let ask = async |path: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    };
    let client = async {
        // More than come in at once, on a machine of a few processors.
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let mut held = Vec::new();
        for _ in 0..(processors * 16 + 8).min(400) {
            held.push(ask("/waiting").await);
        }
        let mut answer = String::new();
        ask("/now").await.read_to_string(&mut answer).await.unwrap();
        shutdown.cancel();
        answer
    };
    let (served, answer) = tokio::join!(serve(listener, router, shutdown.clone().cancelled_owned()), client);
    served.unwrap();
    assert!(answer.ends_with("answered"), "{answer}");
}

#[tokio::test]
async fn a_large_prompt_works_and_one_over_the_limit_is_refused_where_its_sender_sees_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let client = async {
        let fits = chat(address, 10_000_000).await;
        let refused = chat(address, 40_000_000).await;
        shutdown.cancel();
        (fits, refused)
    };
    let (served, (fits, refused)) = tokio::join!(serve(listener, app(), shutdown.clone().cancelled_owned()), client);
    served.unwrap();
    assert!(fits.starts_with("HTTP/1.1 200 OK"), "{}", fits.chars().take(500).collect::<String>());
    assert!(refused.starts_with("HTTP/1.1 413 Payload Too Large"), "{refused}");
    assert!(refused.contains("the request body is 40000014 bytes, the limit is 33554432 bytes"), "{refused}");
}

/// A request that ends its connection.
fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n").into_bytes()
}

#[tokio::test]
async fn while_a_server_starts_for_long_it_says_so_and_who_came_then_is_answered_after_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (has_started, shutdown) = (CancellationToken::new(), CancellationToken::new());
    let start = has_started.cancelled();
    let client = async {
        // It waits for the start until that takes long.
        let healthy = told(address, &get("/below/healthz")).await;
        let (unready, page) = (told(address, &get("/readyz")).await, told(address, &get("/below/")).await);
        let openai = told(address, &get("/v1/models")).await;
        // One that has said nothing yet holds nothing up.
        let silent = TcpStream::connect(address).await.unwrap();
        has_started.cancel();
        let ready = told(address, &get("/readyz")).await;
        drop(silent);
        shutdown.cancel();
        (healthy, [unready, page, openai], ready)
    };
    let server = async {
        while_starting(&listener, None, "/below", start).await;
        serve(listener, app(), shutdown.clone().cancelled_owned()).await
    };
    let (ended, (healthy, refused, ready)) = tokio::join!(server, client);
    ended.unwrap();
    assert!(healthy.starts_with("HTTP/1.1 200 OK") && healthy.ends_with(r#"{"status":"ok"}"#), "{healthy}");
    for answer in &refused {
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains(r#""code":"starting""#), "{answer}");
        assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    }
    assert!(ready.starts_with("HTTP/1.1 200 OK"), "{ready}");
}

#[tokio::test]
async fn who_comes_while_a_server_starts_quickly_is_answered_by_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (came, shutdown) = (CancellationToken::new(), CancellationToken::new());
    let client = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&get("/readyz")).await.unwrap();
        came.cancel();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        shutdown.cancel();
        answer
    };
    let server = async {
        while_starting(&listener, None, "", came.cancelled()).await;
        serve(listener, app(), shutdown.clone().cancelled_owned()).await
    };
    let (ended, ready) = tokio::join!(server, client);
    ended.unwrap();
    assert!(ready.starts_with("HTTP/1.1 200 OK"), "{ready}");
}

#[tokio::test]
async fn an_address_that_others_can_reach_is_not_served() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = serve(listener, app(), std::future::pending()).await;
    assert!(matches!(refused, Err(ServeError::NotLoopback { .. })), "{refused:?}");
}

/// What a connection gives until it ends, on which this was sent.
async fn told(address: std::net::SocketAddr, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(sent).await.unwrap();
    let mut answer = Vec::new();
    // A connection that is reset has nothing more to tell.
    drop(stream.read_to_end(&mut answer).await);
    String::from_utf8(answer).unwrap()
}

#[tokio::test(start_paused = true)]
async fn half_a_head_is_waited_for_so_long_and_half_a_body_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let client = async {
        let half_open = told(address, b"").await;
        let half_a_head = told(address, b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ").await;
        let head = "POST /api/v1/conversations HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
        let half_a_body = told(address, head.as_bytes()).await;
        shutdown.cancel();
        (half_open, half_a_head, half_a_body)
    };
    let (served, told) = tokio::join!(serve(listener, app(), shutdown.clone().cancelled_owned()), client);
    served.unwrap();
    assert_eq!((told.0.as_str(), told.1.as_str()), ("", ""), "there is nobody to answer yet");
    assert!(told.2.starts_with("HTTP/1.1 408 Request Timeout") && told.2.contains("body_timeout"), "{}", told.2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_answered_in_time_is_cut_off_where_the_server_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = CancellationToken::new();
    let (goes_on, held) = tokio::sync::watch::channel(());
    let is_asked = asked.clone();
    let never = move || {
        let (is_asked, held) = (is_asked.clone(), held.clone());
        async move {
            is_asked.cancel();
            std::future::pending::<()>().await;
            drop(held);
        }
    };
    let router = axum::Router::new().route("/", axum::routing::get(never));
    let served = async {
        serve(listener, router, asked.cancelled_owned()).await.unwrap();
        goes_on.receiver_count()
    };
    let request = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
    let (go_on, told) = tokio::join!(served, told(address, request));
    assert_eq!((go_on, told.as_str()), (0, ""), "what answers it goes on, and nobody waits for it");
}

#[tokio::test]
async fn a_head_of_ten_thousand_bytes_is_read_and_one_that_is_too_large_or_no_http_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let head = |more: &str| format!("GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n{more}\r\n");
    let client = async {
        let table = [
            (head(&format!("x-long: {}\r\n", "x".repeat(10_000))), "200"),
            (head(&format!("x-long: {}\r\n", "x".repeat(1 << 20))), "431"),
            (head(&"x-many: 1\r\n".repeat(1_000)), "431"),
            (head("no header at all\r\n"), "400"),
            (head("x-evil: a\0b\r\n"), "400"),
            ("GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n".to_owned(), "403"),
            (head("content-length: 5\r\ncontent-length: 6\r\n"), "400"),
            (head("content-length: -1\r\n"), "400"),
            (head("transfer-encoding: gzip, chunked\r\n") + "0\r\n\r\n", "501"),
            (head("transfer-encoding: chunked\r\n") + "0\r\n\r\n", "200"),
            ("\u{16}\u{3}\u{1} not HTTP\r\n\r\n".to_owned(), "400"),
        ];
        for (sent, status) in table {
            let answer = told(address, sent.as_bytes()).await;
            assert_eq!(answer.get(9..12), Some(status), "{sent:.200}: {answer}");
        }
        shutdown.cancel();
    };
    let (served, ()) = tokio::join!(serve(listener, app(), shutdown.clone().cancelled_owned()), client);
    served.unwrap();
}

/// What a connection gives to a client that says this and that it says no more.
async fn told_last(address: std::net::SocketAddr, sent: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn who_says_no_more_is_answered_and_a_stream_ends_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let body = r#"{"content":"hi"}"#;
    let chat = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let client = async {
        let health = told_last(address, &format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n")).await;
        let said = told_last(address, &chat("/api/v1/conversations/c1/chat")).await;
        let missing = told_last(address, &format!("GET /api/v1/conversations/none HTTP/1.1\r\nhost: {address}\r\n\r\n")).await;
        let halfway = told_last(address, &chat("/api/v1/conversations/c2/chat").replace(body, "{")).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let events = format!("GET /api/v1/conversations/c1/events HTTP/1.1\r\nhost: {address}\r\n\r\n");
        stream.write_all(events.as_bytes()).await.unwrap();
        let mut begun = vec![0; 12];
        stream.read_exact(&mut begun).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        drop(stream.read_to_end(&mut rest).await);
        shutdown.cancel();
        assert_eq!(String::from_utf8(begun).unwrap(), "HTTP/1.1 200");
        [health, said, missing, halfway]
    };
    let (served, told) = tokio::join!(serve(listener, app(), shutdown.clone().cancelled_owned()), client);
    served.unwrap();
    for (answer, begins) in told.iter().zip(["HTTP/1.1 200 ", "HTTP/1.1 200 ", "HTTP/1.1 404 ", ""]) {
        assert!(answer.starts_with(begins), "{begins}: {answer}");
    }
    assert!(told[1].contains("Hello"), "{}", told[1]);
}
