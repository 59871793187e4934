//! A tool source of an embedder's own functions.

use std::time::Duration;

use crate::support::{failure, text};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnwright_core::{Declared, ToolErrorKind};
use turnwright_engine::source::{CallLimits, SourceTool, ToolError, ToolOutput, ToolSource};
use turnwright_tools::{ToolSpec, TypedSource};

/// Not shown to anybody.
#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What is said again.
    message: String,
    /// How often.
    times: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn source() -> TypedSource {
    let limits = CallLimits { idle: Duration::from_secs(1), total: Duration::from_secs(2) };
    TypedSource::new("own")
        .tool(ToolSpec::new("echo", "Says it again.").title("Echo").read_only(), |echo: Echo, _| async move {
            Ok(ToolOutput::text(echo.message.repeat(echo.times.map_or(1, |times| times as usize))))
        })
        .tool(ToolSpec::new("fail", "Fails.").replayable().limits(limits), |_: Nothing, _| async move {
            Err(ToolError::new(ToolErrorKind::ExecutionFailed, "it failed"))
        })
}

#[test]
fn a_tool_is_offered_as_its_types_and_spec_say() {
    let tool = SourceTool {
        name: "echo".to_owned(),
        title: Some("Echo".to_owned()),
        description: "Says it again.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "message": {"description": "What is said again.", "type": "string"},
                "times": {"description": "How often.", "type": ["integer", "null"], "minimum": 0},
            },
            "required": ["message"],
        }),
        annotations: None,
        declared: Declared { read_only: true, ..Declared::default() },
        face: std::sync::Arc::default(),
    };
    assert_eq!(source().tools()[0], tool);
    assert_eq!(source().limits("fail").total, Duration::from_secs(2));
    assert_eq!(source().limits("echo"), CallLimits::default());
}

#[tokio::test]
async fn calls_reach_their_function_with_typed_arguments() {
    let source = source();
    assert_eq!(text(&source, "echo", json!({"message": "hello", "times": 2})).await, "hellohello");
    assert_eq!(failure(&source, "fail", json!({})).await, (ToolErrorKind::ExecutionFailed, "it failed".to_owned()));
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_function() {
    let expected = "the arguments do not fit the tool `echo`: missing field `message`";
    let result = failure(&source(), "echo", json!({})).await;
    assert_eq!(result, (ToolErrorKind::InvalidArguments, expected.to_owned()));
}
