//! Servers with an address that speak the transport of 2024-11-05, HTTP+SSE.

use crate::support::far::{at, everything_over};
use crate::support::http_server::{Answer, HttpServer};
use crate::support::{call, context, fixture, text};
use serde_json::json;
use turnwright_engine::{SourceState, ToolSource};

#[tokio::test]
async fn everything_is_listed_called_and_heard_over_http_and_sse() {
    let Some((_child, fixture)) = everything_over("sse", "sse").await else { return };
    assert_eq!(fixture.tool_names().len(), 15, "{:?}", fixture.tool_names());
    let echo = fixture.call("echo", json!({"message": "hello \u{1f642}"})).await.unwrap();
    assert_eq!((text(&echo), echo.is_error), ("Echo: hello \u{1f642}", false));
    let (context, reports) = context();
    let long = call("trigger-long-running-operation", json!({"duration": 0.2, "steps": 2}));
    fixture.server.call(long, context).await.unwrap();
    let progress: Vec<_> = reports.0.lock().unwrap().iter().map(|report| (report.progress, report.total)).collect();
    assert_eq!(progress, [(1.0, Some(2.0)), (2.0, Some(2.0))]);
    let calls = (0..20).map(|number| fixture.call("echo", json!({"message": number.to_string()})));
    for (number, answer) in futures_util::future::join_all(calls).await.into_iter().enumerate() {
        assert_eq!(text(&answer.unwrap()), format!("Echo: {number}"));
    }
    fixture.stop().await;
}

#[tokio::test]
async fn messages_are_sent_to_no_other_origin() {
    let elsewhere = HttpServer::start(|_| Answer::status("202 Accepted")).await;
    let target = elsewhere.url.clone();
    let server = HttpServer::start(move |asked| match asked.verb.as_str() {
        "GET" => Answer::of_type("200 OK", "text/event-stream", format!("event: endpoint\ndata: {target}\n\n")),
        _ => Answer::status("404 Not Found"),
    })
    .await;
    let fixture = fixture(at(&server.url, &[("Authorization", "Bearer hidden")]));
    fixture.server.settled().await;
    let SourceState::Failing { reason } = fixture.server.state() else { panic!("{:?}", fixture.server.state()) };
    let expected = "it refused the handshake: it wants its messages at another origin than its own";
    assert!(reason.starts_with(expected), "{reason}");
    fixture.stop().await;
    assert_eq!(elsewhere.asked(), []);
}
