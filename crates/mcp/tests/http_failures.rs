//! What servers with an address get wrong: what the model reads, what the operator sees, and that the next call works.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::far::at;
use crate::support::http_server::{Answer, Asked, HttpServer, usual};
use crate::support::{Fixture, LONG, fixture, fixture_in, nothing, started, text, told};
use serde_json::json;
use turnwright_core::ToolErrorKind;
use turnwright_engine::{SourceState, ToolSource};
use turnwright_mcp::{ServerConfig, Shelf};

/// A server that answers its first call so, and everything else as it should.
async fn first_call(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> (HttpServer, Fixture) {
    let calls = AtomicUsize::new(0);
    let server = HttpServer::start(move |asked| match asked.method() {
        "tools/call" if calls.fetch_add(1, Ordering::Relaxed) == 0 => answer(asked),
        _ => usual(asked),
    })
    .await;
    let fixture = started(at(&server.url, &[])).await;
    (server, fixture)
}

/// The calls that reached the server.
fn calls(server: &HttpServer) -> usize {
    server.asked().iter().filter(|asked| asked.method() == "tools/call").count()
}

/// Checks what is told about a first call that is answered so, that it was sent once, and that the next one works.
async fn fails_once(
    answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    kind: ToolErrorKind,
    model: &str,
    operator: &str,
) {
    let (server, fixture) = first_call(answer).await;
    let error = fixture.call("t", nothing()).await.unwrap_err();
    assert_eq!(told(&error), (kind, model, Some(operator)));
    assert_eq!(calls(&server), 1);
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok");
    fixture.stop().await;
}

const FAILED: ToolErrorKind = ToolErrorKind::ExecutionFailed;
const ON_ITS_WAY: &str = "The call of `t` on the MCP server `far` failed on its way. Whether it took effect is unknown.";

#[tokio::test]
async fn a_call_that_is_taken_and_never_answered_fails_at_once() {
    fails_once(
        |_| Answer::status("202 Accepted"),
        FAILED,
        "The call of `t` on the MCP server `far` failed: it took the request and sent no answer (HTTP 202)",
        "JSON-RPC error -32603: it took the request and sent no answer (HTTP 202)",
    )
    .await;
}

#[tokio::test]
async fn what_a_user_gave_to_their_server_is_not_in_the_error_that_it_answers() {
    const TOKEN: &str = "sesame-open-1234567";
    let server = HttpServer::start(|asked| match asked.method() {
        "tools/call" => {
            let error = json!({"code": -32000, "message": format!("token {TOKEN} has expired")});
            let answer = json!({"jsonrpc": "2.0", "id": asked.body["id"], "error": error});
            Answer::of_type("200 OK", "application/json", answer.to_string())
        }
        _ => usual(asked),
    })
    .await;
    let mut config = at(&server.url, &[("X-Api-Token", TOKEN)]);
    config.owner = Some("u_0000000000000001".parse().unwrap());
    let fixture = started(config).await;
    let error = fixture.call("t", nothing()).await.unwrap_err();
    let said = "token [secret] has expired";
    let (model, operator) =
        (format!("The call of `t` on the MCP server `far` failed: {said}"), format!("JSON-RPC error -32000: {said}"));
    assert_eq!(told(&error), (FAILED, model.as_str(), Some(operator.as_str())));
    fixture.stop().await;
}

#[tokio::test]
async fn half_a_character_in_what_a_server_says_of_itself_does_not_cost_the_server() {
    let server = HttpServer::start(|asked| match asked.method() {
        "initialize" => {
            let info = json!({"name": "s", "version": "1"});
            let opened = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info, "instructions": "cut HERE"});
            let answer = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": opened}).to_string();
            Answer::of_type("200 OK", "application/json", answer.replace("HERE", r"\ud83d"))
        }
        _ => usual(asked),
    })
    .await;
    let fixture = started(at(&server.url, &[])).await;
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok");
    fixture.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_nested_too_deeply_fails_its_call_and_says_so() {
    let deep = format!(r#"{{"content":[],"structuredContent":{}1{}}}"#, "[".repeat(500), "]".repeat(500));
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{deep}}}"#);
    fails_once(
        move |_| Answer::of_type("200 OK", "application/json", body.clone()),
        FAILED,
        ON_ITS_WAY,
        "unexpected server response: its answer is nested too deeply to be read; as a stream of events it would be cut there",
    )
    .await;
}

#[tokio::test]
async fn number_7_an_answer_that_is_too_long_is_told_with_the_limit_to_ask_for_less() {
    let message = |bytes: usize| {
        let text = "x".repeat(bytes);
        format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
    };
    let as_json = Answer::of_type("200 OK", "application/json", message(16 << 20));
    let as_event = Answer::of_type("200 OK", "text/event-stream", format!("data: {}\n\n", message(100_000)));
    for (answer, limit) in [(as_json, 16 << 20), (as_event, 100_000)] {
        let calls = AtomicUsize::new(0);
        let server = HttpServer::start(move |asked| match asked.method() {
            "tools/call" if calls.fetch_add(1, Ordering::Relaxed) == 0 => answer.clone(),
            _ => usual(asked),
        })
        .await;
        let fixture = started(ServerConfig { max_message_bytes: 100_000, ..at(&server.url, &[]) }).await;
        let error = fixture.call("t", nothing()).await.unwrap_err();
        let said = format!("the answer is over the limit of {limit} bytes: ask for less");
        let (model, operator) =
            (format!("The call of `t` on the MCP server `far` failed: {said}"), format!("JSON-RPC error -32603: {said}"));
        assert_eq!(told(&error), (FAILED, model.as_str(), Some(operator.as_str())));
        assert_eq!(self::calls(&server), 1);
        assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok");
        fixture.stop().await;
    }
}

#[tokio::test]
async fn an_error_that_names_no_request_fails_the_call_it_answers() {
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no thanks"}}"#;
    let answers = [
        Answer::of_type("400 Bad Request", "application/json", error),
        Answer::of_type("200 OK", "application/json", error),
        Answer::of_type("500 Internal Server Error", "application/json", error),
        Answer::of_type("200 OK", "text/event-stream", format!("data: {error}\n\n")),
    ];
    for answer in answers {
        fails_once(
            move |_| answer.clone(),
            FAILED,
            "The call of `t` on the MCP server `far` failed: no thanks",
            "JSON-RPC error -32600: no thanks",
        )
        .await;
    }
}

#[tokio::test]
async fn the_result_of_another_request_is_not_taken_for_this_one() {
    fails_once(
        |_| Answer::of_type("200 OK", "application/json", r#"{"jsonrpc":"2.0","id":4711,"result":{"content":[]}}"#),
        FAILED,
        "The call of `t` on the MCP server `far` failed: it answered with the result of another request (4711)",
        "JSON-RPC error -32603: it answered with the result of another request (4711)",
    )
    .await;
}

#[tokio::test]
async fn a_page_in_place_of_an_answer_is_named_as_one() {
    fails_once(
        |_| Answer::of_type("200 OK", "text/html", "<html>Sign in</html>"),
        FAILED,
        ON_ITS_WAY,
        "unexpected server response: it answered with `text/html`, not in the protocol: its address may be wrong, or behind \
         a login page",
    )
    .await;
    fails_once(
        |_| Answer::status("200 OK"),
        FAILED,
        ON_ITS_WAY,
        "unexpected server response: it answered with nothing, or without a content-type: its address may be wrong, or behind a \
         login page",
    )
    .await;
}

#[tokio::test]
async fn a_call_that_a_busy_server_refuses_is_not_sent_again() {
    fails_once(|_| Answer::of_type("502 Bad Gateway", "text/html", "<html>oops</html>"), FAILED, ON_ITS_WAY, "HTTP 502").await;
    fails_once(
        |_| Answer::status("429 Too Many Requests").with("retry-after", "7"),
        FAILED,
        ON_ITS_WAY,
        "unexpected server response: HTTP 429; it asks to come back after 7",
    )
    .await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_fails_its_call_alone() {
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"half"}}"#;
    fails_once(
        move |_| Answer::of_type("200 OK", "text/event-stream", format!("data: {progress}\n\n")),
        FAILED,
        "The answer to the call of `t` on the MCP server `far` broke off. Whether it took effect is unknown: check before you \
         call it again.",
        "the stream of the answer ended before the answer",
    )
    .await;
}

#[tokio::test]
async fn a_list_is_asked_for_again_where_the_server_was_busy() {
    let lists = AtomicUsize::new(0);
    let server = HttpServer::start(move |asked| match asked.method() {
        "tools/list" => match lists.fetch_add(1, Ordering::Relaxed) {
            0 => Answer::status("429 Too Many Requests").with("retry-after", "0"),
            1 => Answer::of_type("502 Bad Gateway", "text/html", "<html>oops</html>").with("retry-after", "0"),
            _ => usual(asked),
        },
        _ => usual(asked),
    })
    .await;
    let fixture = started(at(&server.url, &[])).await;
    assert_eq!(fixture.tool_names(), ["t"]);
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_whose_address_is_a_web_page_says_so() {
    let server = HttpServer::start(|_| Answer::of_type("200 OK", "text/html; charset=utf-8", "<html>Welcome</html>")).await;
    let fixture = fixture(at(&server.url, &[]));
    fixture.server.settled().await;
    let reason = "it refused the handshake: unexpected server response: it answered with `text/html; charset=utf-8`, not in the \
                  protocol: its address may be wrong, or behind a login page";
    let SourceState::Failing { reason: seen } = fixture.server.state() else { panic!("{:?}", fixture.server.state()) };
    assert!(seen.starts_with(reason), "{seen}");
    fixture.stop().await;
}

/// A server that gives sessions and forgets the first one before its first call, saying so in this way.
async fn forgetful(refusal: fn(&Asked) -> Answer) -> (HttpServer, Fixture) {
    let sessions = AtomicUsize::new(0);
    let server = HttpServer::start(move |asked| match (asked.method(), asked.header("mcp-session-id")) {
        ("initialize", _) => {
            let session = sessions.fetch_add(1, Ordering::Relaxed) + 1;
            usual(asked).with("mcp-session-id", format!("session-{session}"))
        }
        ("tools/call", Some("session-1")) => refusal(asked),
        _ => usual(asked),
    })
    .await;
    let fixture = started(at(&server.url, &[])).await;
    (server, fixture)
}

#[tokio::test]
async fn a_forgotten_session_is_opened_again_and_no_call_is_sent_twice() {
    let refusals: [fn(&Asked) -> Answer; 4] = [
        |_| Answer::status("404 Not Found"),
        |_| {
            let error = json!({"jsonrpc": "2.0", "id": null,
                "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}});
            Answer::of_type("400 Bad Request", "application/json", error.to_string())
        },
        |_| {
            let error = json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "Server not initialized"}});
            Answer::of_type("400 Bad Request", "application/json", error.to_string())
        },
        |_| Answer::of_type("400 Bad Request", "text/plain", "Invalid session ID"),
    ];
    for refusal in refusals {
        let (server, fixture) = forgetful(refusal).await;
        let error = fixture.call("t", nothing()).await.unwrap_err();
        let model = "The MCP server `far` has lost its session, which is opened again: `t` was not called.";
        assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::Unavailable, model));
        assert_eq!(calls(&server), 1);
        assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok");
        let opened = server.asked().iter().filter(|asked| asked.method() == "initialize").count();
        assert_eq!((calls(&server), opened), (2, 2));
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_call_that_may_have_been_run_is_not_told_as_one_that_was_not_because_its_error_speaks_of_a_session() {
    let refusals: [fn(&Asked) -> Answer; 3] = [
        |_| {
            let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "database session closed"}});
            Answer::of_type("200 OK", "application/json", error.to_string())
        },
        |_| {
            let error = json!({"jsonrpc": "2.0", "id": 4711, "error": {"code": -32000, "message": "the session was reset"}});
            Answer::of_type("200 OK", "application/json", error.to_string())
        },
        |_| Answer::of_type("400 Bad Request", "text/plain", "the shop closed the session"),
    ];
    for refusal in refusals {
        let (server, fixture) = forgetful(refusal).await;
        let error = fixture.call("t", nothing()).await.unwrap_err();
        let model = "The MCP server `far` ended while `t` was running. Whether the call took effect is unknown: check before you \
                     call it again.";
        assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::Unavailable, model));
        assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok");
        let opened = server.asked().iter().filter(|asked| asked.method() == "initialize").count();
        assert_eq!((calls(&server), opened), (2, 2), "a session that may be lost is opened again");
        fixture.stop().await;
    }
}

/// A server with a resource, which lists another each time and fails the second time.
async fn stumbling() -> HttpServer {
    let lists = AtomicUsize::new(0);
    HttpServer::start(move |asked| match asked.method() {
        "initialize" => Answer::result(
            asked,
            &json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                "serverInfo": {"name": "small", "version": "1"}}),
        ),
        "resources/list" => match lists.fetch_add(1, Ordering::Relaxed) {
            1 => Answer::status("503 Service Unavailable"),
            number => Answer::result(asked, &json!({"resources": [{"uri": format!("note://{number}"), "name": "a note"}]})),
        },
        "resources/templates/list" => Answer::result(asked, &json!({"resourceTemplates": []})),
        "prompts/list" => Answer::result(asked, &json!({"prompts": [{"name": "review"}]})),
        _ => usual(asked),
    })
    .await
}

#[tokio::test]
async fn what_is_known_stays_while_it_cannot_be_listed_and_is_asked_for_again() {
    let server = stumbling().await;
    let first = started(at(&server.url, &[])).await;
    let uris = |shelf: &Shelf| shelf.resources.iter().map(|resource| resource.uri.clone()).collect::<Vec<_>>();
    assert_eq!(uris(&first.server.shelf().await.unwrap()), ["note://0"]);
    first.stop().await;
    let failing = fixture_in(at(&server.url, &[]), first.folder.path());
    failing.start();
    let until = async |wanted: fn(&Shelf) -> bool| {
        let found = async {
            loop {
                let shelf = failing.shelf().await.unwrap();
                if wanted(&shelf) {
                    return shelf;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, found).await.unwrap()
    };
    let kept = until(|shelf| !shelf.problems.is_empty()).await;
    assert_eq!((uris(&kept), kept.prompts.len(), kept.problems.len()), (vec!["note://0".to_owned()], 1, 1));
    assert!(kept.problems[0].starts_with("resources/list: ") && kept.problems[0].contains("503"), "{:?}", kept.problems);
    let next = fixture_in(at(&server.url, &[]), first.folder.path());
    assert_eq!(next.shelf().await.unwrap(), kept, "as it was kept for the next start");
    let listed = until(|shelf| shelf.problems.is_empty()).await;
    assert_eq!(uris(&listed), ["note://2"]);
    failing.stop().await;
}

#[tokio::test]
async fn calls_that_hang_do_not_keep_others_from_being_sent() {
    const HANGING: usize = 40;
    let calls = AtomicUsize::new(0);
    let server = HttpServer::start(move |asked| match asked.method() {
        "tools/call" if calls.fetch_add(1, Ordering::Relaxed) < HANGING => Answer::never(),
        _ => usual(asked),
    })
    .await;
    let fixture = started(at(&server.url, &[])).await;
    let hanging = futures_util::future::join_all((0..HANGING).map(|_| fixture.call("t", nothing())));
    let next = async {
        while self::calls(&server) < HANGING {
            tokio::task::yield_now().await;
        }
        fixture.call("t", nothing()).await
    };
    tokio::select! {
        all = hanging => panic!("{all:?}"),
        next = next => assert_eq!(text(&next.unwrap()), "ok"),
    }
    fixture.stop().await;
}

#[tokio::test]
async fn a_sign_in_that_is_wanted_in_the_middle_is_told_without_a_challenge_too() {
    let (server, fixture) = first_call(|_| Answer::status("401 Unauthorized")).await;
    let error = fixture.call("t", nothing()).await.unwrap_err();
    let model = "The MCP server `far` needs somebody to sign in: `t` was not called.";
    assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::Unavailable, model));
    let reason = "it needs a sign-in: it refused a request";
    fixture.until(|state| matches!(state, SourceState::NeedsSignIn { reason: seen } if seen.starts_with(reason))).await;
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok");
    assert_eq!(calls(&server), 2);
    fixture.stop().await;
}

#[tokio::test]
async fn what_a_broken_server_says_at_the_handshake_reaches_the_person() {
    let words = "  database\n\tis locked \u{1b}[31m";
    for (status, code) in [("500 Internal Server Error", "HTTP 500"), ("429 Too Many Requests", "HTTP 429")] {
        let broken = HttpServer::start(move |_| Answer::of_type(status, "text/plain", words).with("retry-after", "0")).await;
        let fixture = fixture(at(&broken.url, &[]));
        fixture.server.settled().await;
        let SourceState::Failing { reason } = fixture.server.state() else { panic!("{:?}", fixture.server.state()) };
        assert!(reason.starts_with("it refused the handshake: ") && reason.contains(code), "{reason}");
        assert!(reason.contains(": database is locked [31m"), "{reason}");
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_sends_to_another_address_is_not_followed_and_the_address_is_named() {
    let elsewhere = HttpServer::start(usual).await;
    let target = format!("{}?key=hidden", elsewhere.url);
    let moved = HttpServer::start(move |_| Answer::status("307 Temporary Redirect").with("location", target.clone())).await;
    let fixture = fixture(at(&moved.url, &[("x-api-key", "k")]));
    fixture.server.settled().await;
    let reason = format!(
        "it refused the handshake: HTTP 307 Temporary Redirect, it sends to `{}`, which is not followed; configure that address if \
         it is meant",
        elsewhere.url
    );
    assert_eq!(fixture.server.state(), SourceState::Failing { reason });
    fixture.stop().await;
    assert_eq!(elsewhere.asked(), []);
}

#[tokio::test]
async fn a_call_that_is_sent_to_another_address_is_not_followed() {
    let elsewhere = HttpServer::start(usual).await;
    let target = elsewhere.url.clone();
    fails_once(
        move |_| Answer::status("308 Permanent Redirect").with("location", target.clone()),
        FAILED,
        ON_ITS_WAY,
        "unexpected server response: HTTP 308 Permanent Redirect: ",
    )
    .await;
    assert_eq!(elsewhere.asked(), []);
}

#[tokio::test]
async fn a_call_as_a_task_that_may_have_been_run_is_not_told_as_one_that_was_not() {
    let server = HttpServer::start(|asked| match asked.method() {
        "initialize" => Answer::result(
            asked,
            &json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "small", "version": "1"},
                "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}}),
        )
        .with("mcp-session-id", "one"),
        "tools/call" if asked.body["params"].get("task").is_none() => {
            let error =
                json!({"jsonrpc": "2.0", "id": asked.body["id"], "error": {"code": -32601, "message": "only as a task"}});
            Answer::of_type("200 OK", "application/json", error.to_string())
        }
        "tools/call" => {
            let text = "transfer made; then the database session was closed";
            let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": text}});
            Answer::of_type("400 Bad Request", "application/json", error.to_string())
        }
        _ => usual(asked),
    })
    .await;
    let fixture = started(at(&server.url, &[])).await;
    let error = fixture.call("t", nothing()).await.unwrap_err();
    let model = "The MCP server `far` ended while `t` was running. Whether the call took effect is unknown: check before you call \
                 it again.";
    assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::Unavailable, model));
    fixture.stop().await;
}
