//! Servers with an address.

use crate::support::far::{at, everything};
use crate::support::http_server::{Answer, Asked, HttpServer, usual};
use crate::support::{call, context, fixture, nothing, started, text, told};
use serde_json::json;
use turnwright_core::ToolErrorKind;
use turnwright_engine::{SourceState, ToolSource};
use turnwright_mcp::{Agreed, Ground, Offer};
use turnwright_testkit::Port;

#[tokio::test]
async fn everything_is_listed_called_and_heard_over_http() {
    let Some((_child, fixture)) = everything().await else { return };
    let agreed = fixture.server.agreed().unwrap();
    assert_eq!((agreed.version.as_str(), agreed.ground, agreed.offers(Offer::Tools)), ("2025-11-25", Ground::Declined, true));
    assert_eq!(fixture.tool_names().len(), 15, "{:?}", fixture.tool_names());
    let echo = fixture.call("echo", json!({"message": "hello \u{1f642}"})).await.unwrap();
    assert_eq!((text(&echo), echo.is_error), ("Echo: hello \u{1f642}", false));
    let (context, reports) = context();
    let long = call("trigger-long-running-operation", json!({"duration": 0.2, "steps": 2}));
    fixture.server.call(long, context).await.unwrap();
    let progress: Vec<_> = reports.0.lock().unwrap().iter().map(|report| (report.progress, report.total)).collect();
    assert_eq!(progress, [(1.0, Some(2.0)), (2.0, Some(2.0))]);
    fixture.stop().await;
}

#[tokio::test]
async fn many_calls_at_once_do_not_wait_for_one_another_over_http() {
    let Some((_child, fixture)) = everything().await else { return };
    let calls = (0..100).map(|number| fixture.call("echo", json!({"message": number.to_string()})));
    let answers = futures_util::future::join_all(calls).await;
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(text(&answer.unwrap()), format!("Echo: {number}"));
    }
    fixture.stop().await;
}

#[tokio::test]
async fn configured_headers_go_with_every_request_and_show_nowhere() {
    let server = HttpServer::start(usual).await;
    let fixture = started(at(&server.url, &[("X-Team", "blue"), ("Authorization", "Bearer hidden")])).await;
    let agreed = Agreed {
        version: "2025-11-25".into(),
        ground: Ground::Declined,
        server: Some("small 1".into()),
        instructions: None,
        offers: vec![Offer::Tools],
    };
    assert_eq!(fixture.server.agreed(), Some(agreed));
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok");
    let asked = server.asked();
    let methods: Vec<_> = asked.iter().map(Asked::method).filter(|method| !method.is_empty()).collect();
    assert_eq!(methods, ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"]);
    for one in &asked {
        assert_eq!((one.header("x-team"), one.header("authorization")), (Some("blue"), Some("Bearer hidden")), "{one:?}");
    }
    fixture.stop().await;
    assert!(!format!("{:?} {:?}", fixture.server.config(), fixture.server.logs()).contains("hidden"));
}

#[tokio::test]
async fn a_server_that_wants_a_sign_in_says_so_and_is_asked_again_by_the_next_call() {
    let server = HttpServer::start(|asked| match asked.header("authorization") {
        Some(_) => usual(asked),
        None => Answer { headers: vec![("www-authenticate", "Bearer".to_owned())], ..Answer::status("401 Unauthorized") },
    })
    .await;
    let fixture = fixture(at(&server.url, &[]));
    fixture.server.settled().await;
    let reason = "it needs a sign-in: HTTP 401 Unauthorized; `turnwright mcp login far` leads through it".to_owned();
    assert_eq!(fixture.server.state(), SourceState::NeedsSignIn { reason: reason.clone() });
    let error = fixture.call("t", nothing()).await.unwrap_err();
    let model = "The MCP server `far` needs somebody to sign in: `t` was not called. Go on without it, or tell the user.";
    assert_eq!(told(&error), (ToolErrorKind::Unavailable, model, Some(reason.as_str())));
    assert_eq!(server.asked().len(), 2);
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_failing_and_named_by_its_address_alone() {
    let port = Port::reserve().unwrap();
    let address = port.address();
    let fixture = fixture(at(&format!("http://{address}/mcp?key=hidden"), &[]));
    fixture.server.settled().await;
    let SourceState::Failing { reason } = fixture.server.state() else { panic!("{:?}", fixture.server.state()) };
    let expected = format!("it cannot be reached at http://{address}/mcp: ");
    assert!(reason.starts_with(&expected) && reason.contains("refused") && !reason.contains("hidden"), "{reason}");
    fixture.stop().await;
}
