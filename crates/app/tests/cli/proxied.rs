//! A server behind a proxy: whose word counts for who asks, by what name and how.

use std::fmt::Write;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::timeout;

use crate::serve::Server;
use crate::support::{LIMIT, Place, wait_for};

/// The one that is trusted; every address that begins with 127 is this machine.
const PROXY: &str = "127.0.0.2";
const SOMEBODY: &str = "127.0.0.3";

/// What a request that comes from an address is answered.
async fn ask(server: &Server, from: &str, head: &str, headers: &[(&str, &str)], body: &str) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
    let mut stream = socket.connect(server.address().parse().unwrap()).await.unwrap();
    let mut text = format!("{head} HTTP/1.1\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(LIMIT, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

/// What a browser sends that is at `https://tw.example`, behind a proxy that knows the server by another name.
fn browser<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    [&[("Host", "inside:8700"), ("Origin", "https://tw.example"), form], more].concat()
}

#[tokio::test]
async fn a_trusted_proxy_is_believed_who_signs_in_and_from_where_and_others_are_not() {
    let place = Place::with(&format!("log_level = \"debug\"\n[server]\nauth = \"tokens\"\ntrusted_proxies = [\"{PROXY}\"]\n"));
    let token = place.run(&["users", "token", "local"]).stdout.trim().to_owned();
    let server = Server::start(&place);
    let usual: &[(&str, &str)] =
        &[("X-Forwarded-For", "192.0.2.66, 203.0.113.7"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "tw.example")];
    let standard = &[("Forwarded", "for=192.0.2.66;host=evil.example, for=203.0.113.8;proto=https;host=tw.example")];
    let form = format!("token={token}");
    for (said, client) in [(usual, "203.0.113.7"), (standard, "203.0.113.8")] {
        let entered = ask(&server, PROXY, "POST /login", &browser(said), &form).await;
        assert!(entered.starts_with("HTTP/1.1 303 "), "{entered}");
        let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        assert!(cookie.starts_with("__Host-tw_session=") && cookie.ends_with("; Secure"), "{cookie}");
        let (cookie, _) = cookie.split_once(';').unwrap();
        let with_cookie = browser(&[said, &[("Cookie", cookie)]].concat());
        let me = ask(&server, PROXY, "GET /api/v1/me", &with_cookie, "").await;
        assert!(me.starts_with("HTTP/1.1 200 ") && me.contains("\"how\":\"session\""), "{me}");
        wait_for("the line of the log", || {
            let is_there = |line: &str| line.contains("signed in") && line.ends_with(&format!("client={client}"));
            server.said().lines().any(is_there).then_some(())
        });

        // Who is no such proxy is nobody but itself: its page is another site's, and its cookie is none.
        for head in ["POST /login", "POST /logout"] {
            let refused = ask(&server, SOMEBODY, head, &browser(said), &form).await;
            assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("origin_not_allowed"), "{refused}");
        }
        let unknown = ask(&server, SOMEBODY, "GET /api/v1/me", &with_cookie, "").await;
        assert!(unknown.starts_with("HTTP/1.1 401 "), "{unknown}");
    }
    wait_for("the other's line", || {
        let is_there = |line: &str| line.contains("route=\"/login\"") && line.contains(&format!("client={SOMEBODY}"));
        server.said().lines().any(is_there).then_some(())
    });
    let both = [usual, &[("Forwarded", "for=127.0.0.1")]].concat();
    let refused = ask(&server, PROXY, "GET /healthz", &browser(&both), "").await;
    assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains("invalid_forwarding"), "{refused}");
    server.stop();
}

#[tokio::test]
async fn without_signing_in_a_proxy_lets_nobody_in_but_who_is_at_this_machine() {
    let place = Place::with(&format!("[server]\ntrusted_proxies = [\"{PROXY}\"]\n"));
    let server = Server::start(&place);
    let table = [
        (PROXY, "127.0.0.1", "200"),
        (PROXY, "::1", "200"),
        (PROXY, "203.0.113.7", "403"),
        (PROXY, "unknown", "403"),
        (SOMEBODY, "203.0.113.7", "200"),
    ];
    for (from, client, expected) in table {
        let headers = [("Host", server.address()), ("X-Forwarded-For", client)];
        let answer = ask(&server, from, "GET /api/v1/me", &headers, "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{from} {client}: {answer}");
        assert_eq!(answer.contains("client_not_allowed"), expected == "403", "{answer}");
    }
    // A person and a tool of this machine look alike by a proxy, trusted or not: neither decides.
    for from in [PROXY, SOMEBODY] {
        for said in ["X-Forwarded-For", "Via"] {
            let headers = [("Host", server.address()), (said, "127.0.0.1"), ("Content-Type", "application/json")];
            let rule = r#"{"rule":"allow * everyone"}"#;
            let answer = ask(&server, from, "POST /api/v1/approvals/rules", &headers, rule).await;
            assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("people_only"), "{from} {said}: {answer}");
            let new = ask(&server, from, "POST /api/v1/conversations", &headers, r#"{"settings":{"approve":"all"}}"#).await;
            assert!(new.starts_with("HTTP/1.1 403 ") && new.contains("let people sign in"), "{from} {said}: {new}");
        }
    }
    server.stop();
}

#[test]
fn a_range_that_is_none_is_told_with_its_line() {
    let place = Place::with("[server]\ntrusted_proxies = [\"10.0.0.1/8\"]\n");
    let ran = place.run(&["config", "check"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("turnwright.toml:3: "), "{ran:?}");
    assert!(ran.stderr.contains("an address or a range, such as `127.0.0.1` or `10.0.0.0/8`"), "{ran:?}");
}
