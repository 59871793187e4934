//! What holds for every format: silence, retries, redirects, keys, and the end of a connection.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use tokio::sync::Notify;
use turnwright_core::{FinishReason, ProviderFailureKind as Kind, StreamDelta};
use turnwright_dialects::by_name;
use turnwright_providers::{EndpointConfig, Secret, Timeouts};

use crate::support::{Act, Server, ask, collect, provider, response, short_timeouts, write};

/// A format: how an answer begins, goes on and ends in it, and how it fails.
struct Format {
    dialect: &'static str,
    content_type: &'static str,
    /// The answer's text `hello`, and what comes before it.
    text: &'static str,
    end: &'static str,
    /// What keeps a connection alive and means nothing.
    nothing: &'static str,
    /// A failure in the middle: the provider is overloaded, or failed.
    failure: &'static str,
    /// The body of an error status, with the key in it.
    refusal: &'static str,
}

const KEY: &str = "sk-secret-1";
const EVENTS: &str = "text/event-stream";

const FORMATS: [Format; 5] = [
    Format {
        dialect: "openai-chat",
        content_type: EVENTS,
        text: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n",
        end: "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        nothing: ": wait\n\n",
        failure: "data: {\"error\":{\"message\":\"busy\",\"type\":\"overloaded_error\"}}\n\n",
        refusal: r#"{"error":{"message":"not with sk-secret-1","code":"c"}}"#,
    },
    Format {
        dialect: "openai-responses",
        content_type: EVENTS,
        text: "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"hello\"}\n\n",
        end: "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n",
        nothing: "data: {\"type\":\"keepalive\"}\n\n",
        failure: "data: {\"type\":\"error\",\"code\":\"server_overloaded\",\"message\":\"busy\"}\n\n",
        refusal: r#"{"error":{"message":"not with sk-secret-1","type":"t"}}"#,
    },
    Format {
        dialect: "anthropic",
        content_type: EVENTS,
        text: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[]}}\n\n\
               data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
               data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}\n\n",
        end: "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
              data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
        nothing: "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        failure: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
        refusal: r#"{"type":"error","error":{"type":"t","message":"not with sk-secret-1"}}"#,
    },
    Format {
        dialect: "gemini",
        content_type: EVENTS,
        text: "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"hello\"}]}}]}\n\n",
        end: "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
        nothing: ": wait\n\n",
        failure: "data: {\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":\"busy\"}}\n\n",
        refusal: r#"[{"error":{"code":0,"message":"not with sk-secret-1","status":"S"}}]"#,
    },
    Format {
        dialect: "ollama",
        content_type: "application/x-ndjson",
        text: "{\"message\":{\"role\":\"assistant\",\"content\":\"hello\"},\"done\":false}\n",
        end: "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
        nothing: "\n",
        failure: "{\"error\":\"busy\"}\n",
        refusal: r#"{"error":"not with sk-secret-1"}"#,
    },
];

impl Format {
    fn begins(&self) -> Act {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {}\r\nx-request-id: req_1\r\n", self.content_type);
        write(format!("{head}connection: close\r\n\r\n{}", self.text))
    }

    fn good(&self) -> Vec<Act> {
        vec![self.begins(), write(self.end)]
    }

    fn refuses(&self, status: &str, headers: &str) -> Vec<Act> {
        vec![response(status, &format!("connection: close\r\nx-request-id: req_7\r\n{headers}"), self.refusal)]
    }

    fn config(&self, server: &Server) -> EndpointConfig {
        let api_key = Some(Secret::from(KEY));
        EndpointConfig { dialect: by_name(self.dialect).unwrap(), api_key, max_retries: 1, ..server.config() }
    }
}

#[tokio::test]
async fn silence_ends_an_answer_with_what_there_is_of_it() {
    for format in &FORMATS {
        for (script, text) in [(vec![], ""), (vec![format.begins()], "hello")] {
            let silent = Act::Hold(Arc::new(Notify::new()));
            let server = Server::start(vec![[script, vec![silent]].concat()]).await;
            let config = EndpointConfig { timeouts: short_timeouts(), max_retries: 0, ..format.config(&server) };
            let came = collect(ask(&provider(config))).await;
            assert_eq!(came.text(), text, "{}", format.dialect);
            let failure = came.failed();
            assert_eq!((failure.kind, failure.after_content), (Kind::Timeout, !text.is_empty()), "{}", format.dialect);
        }
    }
}

#[tokio::test]
async fn an_answer_that_said_that_it_is_finished_is_whole_also_where_its_server_keeps_the_connection() {
    for (dialect, last) in [("openai-chat", "data: [DONE]\n\n"), ("anthropic", "data: {\"type\":\"message_stop\"}\n\n")] {
        let format = FORMATS.iter().find(|format| format.dialect == dialect).unwrap();
        let end = format.end.strip_suffix(last).unwrap();
        let silent = Act::Hold(Arc::new(Notify::new()));
        let server = Server::start(vec![vec![format.begins(), write(end), silent]]).await;
        let config = EndpointConfig { timeouts: short_timeouts(), max_retries: 0, ..format.config(&server) };
        let came = collect(ask(&provider(config))).await;
        assert_eq!((came.text().as_str(), &came.failure), ("hello", &None), "{dialect}");
        let is_end =
            |delta: &StreamDelta| matches!(delta, StreamDelta::Finished(finish) if finish.reason == FinishReason::Stop);
        assert_eq!(came.batches.iter().flatten().filter(|delta| is_end(delta)).count(), 1, "{dialect}");
    }
}

#[tokio::test]
async fn what_means_nothing_keeps_an_answer_alive() {
    let idle = Duration::from_secs(1);
    let asked = FORMATS.iter().map(|format| async move {
        let mut script = vec![format.begins()];
        for _ in 0..6 {
            script.extend([Act::Pause(idle / 4), write(format.nothing)]);
        }
        script.push(write(format.end));
        let server = Server::start(vec![script]).await;
        let timeouts = Timeouts { idle, ..Timeouts::default() };
        let came = collect(ask(&provider(EndpointConfig { timeouts, ..format.config(&server) }))).await;
        assert_eq!((came.text().as_str(), &came.failure), ("hello", &None), "{}", format.dialect);
    });
    join_all(asked).await;
}

#[tokio::test]
async fn an_answer_that_nobody_wants_any_more_is_hung_up_on() {
    for format in &FORMATS {
        let closed = Arc::new(Notify::new());
        let server = Server::start(vec![vec![format.begins(), Act::Hold(Arc::clone(&closed))]]).await;
        let mut stream = ask(&provider(format.config(&server)));
        stream.next().await.unwrap().unwrap();
        drop(stream);
        let seen = tokio::time::timeout(Duration::from_secs(1), closed.notified()).await;
        assert!(seen.is_ok(), "{}: the server sees no end", format.dialect);
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again_before_any_content_and_never_after() {
    for format in &FORMATS {
        let busy = format.refuses("503 Service Unavailable", "retry-after-ms: 1\r\n");
        let server = Server::start(vec![busy, format.good()]).await;
        let came = collect(ask(&provider(format.config(&server)))).await;
        assert_eq!((came.text().as_str(), &came.failure), ("hello", &None), "{}", format.dialect);
        assert_eq!(server.requests().len(), 2, "{}", format.dialect);
        for rest in [vec![write(format.failure)], vec![]] {
            let is_told = !rest.is_empty();
            let server = Server::start(vec![[vec![format.begins()], rest].concat(), format.good()]).await;
            let came = collect(ask(&provider(format.config(&server)))).await;
            assert_eq!(came.text(), "hello", "{}", format.dialect);
            let failure = came.failed();
            assert!(failure.after_content && failure.request_id.as_deref() == Some("req_1"), "{}", format.dialect);
            assert_eq!(failure.kind == Kind::CutOff, !is_told, "{}: {failure}", format.dialect);
            assert_eq!(failure.message.contains("busy"), is_told, "{}: {failure}", format.dialect);
            assert_eq!(server.requests().len(), 1, "{}", format.dialect);
        }
    }
}

#[tokio::test]
async fn a_refused_request_is_sent_once_and_its_key_is_told_to_nobody() {
    for format in &FORMATS {
        for (status, kind) in [
            ("400 Bad Request", Kind::InvalidRequest),
            ("401 Unauthorized", Kind::Auth),
            ("402 Payment Required", Kind::Quota),
            ("403 Forbidden", Kind::Permission),
            ("404 Not Found", Kind::NotFound),
            ("413 Payload Too Large", Kind::TooLarge),
        ] {
            let server = Server::start(vec![format.refuses(status, "")]).await;
            let config = format.config(&server);
            let failure = collect(ask(&provider(config.clone()))).await.failed();
            assert_eq!((failure.kind, server.requests().len()), (kind, 1), "{} {status}", format.dialect);
            assert_eq!(failure.request_id.as_deref(), Some("req_7"), "{} {status}", format.dialect);
            assert!(failure.message.contains("not with [secret]"), "{}: {}", format.dialect, failure.message);
            let shown = format!("{failure:?} {failure} {config:?}");
            assert!(!shown.contains(KEY), "{}: {shown}", format.dialect);
            assert!(server.requests()[0].contains(KEY), "{}: the key is sent", format.dialect);
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_no_page_is_an_answer() {
    for format in &FORMATS {
        let moved = response("307 Temporary Redirect", "location: https://api.example.com/v1?key=x\r\n", "");
        let page = response("200 OK", "content-type: text/html\r\n", "<html><title>Sign in</title></html>");
        let nothing = response("200 OK", &format!("content-type: {}\r\n", format.content_type), "");
        for (script, kind, words) in [
            (moved, Kind::NotFound, "redirects to https://api.example.com/v1, and"),
            (page, Kind::Malformed, "Sign in"),
            (nothing, Kind::CutOff, ""),
        ] {
            let server = Server::start(vec![vec![script]]).await;
            let config = EndpointConfig { max_retries: 0, ..format.config(&server) };
            let failure = collect(ask(&provider(config))).await.failed();
            assert_eq!(failure.kind, kind, "{}: {failure}", format.dialect);
            assert!(failure.message.contains(words), "{}: {failure}", format.dialect);
            assert_eq!(server.requests().len(), 1, "{}", format.dialect);
        }
    }
}
