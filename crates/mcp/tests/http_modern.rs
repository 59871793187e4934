//! Servers with an address that speak 2026-07-28: without a handshake, without sessions.

use crate::support::far::modern;
use crate::support::{call, context, text, told};
use serde_json::json;
use turnwright_core::ToolErrorKind;
use turnwright_engine::ToolSource;
use turnwright_mcp::Ground;

#[tokio::test]
async fn a_modern_server_is_listed_called_heard_and_cancelled_over_http() {
    let Some((_child, fixture)) = modern().await else { return };
    let agreed = fixture.server.agreed().unwrap();
    assert_eq!((agreed.version.as_str(), agreed.ground), ("2026-07-28", Ground::Discovered));
    assert_eq!(fixture.tool_names(), ["add", "steps", "forever", "fails"]);

    let sums = (0..20).map(|number| fixture.call("add", json!({"a": number, "b": 1})));
    for (number, sum) in futures_util::future::join_all(sums).await.into_iter().enumerate() {
        let sum = sum.unwrap();
        assert_eq!(
            (text(&sum), sum.structured_content.clone()),
            ((number + 1).to_string().as_str(), Some(json!({"result": number + 1})))
        );
    }
    let failed = fixture.call("fails", json!({})).await.unwrap();
    assert!(failed.is_error && text(&failed).contains("Error executing tool fails"), "{failed:?}");

    let (hearing, reports) = context();
    let done = fixture.server.call(call("steps", json!({"count": 3})), hearing).await.unwrap();
    assert_eq!(text(&done), "done");
    let progress: Vec<_> = reports.0.lock().unwrap().iter().map(|report| (report.progress, report.total)).collect();
    assert_eq!(progress, [(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))]);

    let (stopping, _) = context();
    stopping.cancel.cancel();
    let stopped = fixture.server.call(call("forever", json!({})), stopping).await.unwrap_err();
    assert!(matches!(told(&stopped).0, ToolErrorKind::Interrupted | ToolErrorKind::Cancelled), "{stopped:?}");
    let after = fixture.call("add", json!({"a": 2, "b": 2})).await.unwrap();
    assert_eq!(text(&after), "4");
    fixture.stop().await;
}
