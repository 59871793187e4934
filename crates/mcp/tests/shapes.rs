//! What servers send in shapes that do not fit: set aside, cut or named, and the rest is used.

use crate::support::{misbehaving, nothing, started, text};
use serde_json::json;
use turnwright_core::ContentBlock;
use turnwright_mcp::Quarantined;

fn quarantined(tool: &str, reason: &str) -> Quarantined {
    Quarantined { tool: tool.into(), reason: reason.into() }
}

#[tokio::test]
async fn a_tool_that_is_nested_too_deeply_or_named_too_long_is_set_aside_alone() {
    let (deep, long) = ("it is nested more than 64 levels deep", "its name is 5000 bytes long, limit 1024");
    let cut = format!("{}…", "n".repeat(100));
    for (mode, argument, name, reason) in [
        ("deep_tool", "35", "u", deep),
        ("deep_tool", "100", "u", deep),
        ("deep_tool", "400", "u", deep),
        ("long_name", "5000", cut.as_str(), long),
    ] {
        let fixture = started(misbehaving(mode, argument)).await;
        assert_eq!(fixture.tool_names(), ["t"], "{mode} {argument}");
        assert_eq!(*fixture.server.quarantined(), [quarantined(name, reason)]);
        let told = |text: &str| fixture.server.logs().iter().filter(|line| line.text.contains(text)).count();
        assert_eq!((told(reason), told("inner")), (1, 0), "once, and without the tool itself: {:?}", fixture.server.logs());
        assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok {}");
        fixture.stop().await;
    }
}

#[tokio::test]
async fn an_answer_that_is_nested_too_deeply_is_kept_as_far_as_it_can_be_read() {
    let fixture = started(misbehaving("deep_answer", "5000")).await;
    let output = fixture.call("t", nothing()).await.unwrap();
    assert_eq!(text(&output), "fine");
    assert!(output.structured_content.unwrap().to_string().contains("[left out: nested too deeply]"));
    let logs = fixture.server.logs();
    let lines: Vec<&str> = logs.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(lines, ["an answer is nested more than 100 levels deep: what lies deeper was left out"]);
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "fine");
    fixture.stop().await;
}

#[tokio::test]
async fn a_result_that_is_not_what_its_tool_promised_is_kept_and_both_are_told() {
    let fixture = started(misbehaving("promises", "")).await;
    let good = fixture.call("t", json!({"celsius": 4})).await.unwrap();
    assert_eq!((text(&good), &good.diagnostic), (r#"{"celsius": 4}"#, &None));
    let bad = fixture.call("t", json!({"celsius": "warm"})).await.unwrap();
    let problem = "at /celsius: \"warm\" is not of type \"number\"";
    let told = format!("[The result of this tool is not what its output schema promises: {problem}. It is kept as it came.]");
    assert_eq!(bad.content, [r#"{"celsius": "warm"}"#, &told].map(ContentBlock::text));
    assert_eq!(bad.structured_content, Some(json!({"celsius": "warm"})));
    assert_eq!(bad.diagnostic, Some(format!("the result does not fit the tool's outputSchema: {problem}")));
    fixture.call("u", json!({"celsius": 4})).await.unwrap();
    fixture.logged("the tool `u`: its outputSchema is no object: its results are not checked").await;
    assert_eq!(*fixture.server.quarantined(), []);
    fixture.stop().await;
}
