//! `turnwright mcp exercise URL`: everything that a host does with a server, once, with a server that nobody configured.
//!
//! It connects, signs in where that is wanted, lists, and calls each tool. Nothing of it is kept: the data is in a folder
//! that is removed again, so that two of these at once do not meet.

mod arguments;
mod place;

use serde_json::{Map, Value, json};
use turnwright_engine::SourceState;
use turnwright_host::{Host, McpServing, Needs, Questions};

use super::login::{self, Opener};
use crate::cli::McpExercise;
use crate::exit::{Exit, Failure};
use crate::opened::{self, QUIET};
use crate::output::Output;
use place::{NAME, Place};

/// How often it signs in before it gives up.
const MAX_SIGN_INS: u32 = 3;

/// A call to make.
struct Planned {
    tool: String,
    arguments: Map<String, Value>,
}

/// What one connection came to.
enum Came {
    /// Everything was called.
    Whole(Value),
    /// Somebody has to sign in before more can be done.
    NeedsSignIn,
}

pub(crate) async fn run(exercise: McpExercise, output: &mut Output) -> Result<Exit, Failure> {
    let planned = planned(&exercise.call)?;
    let place = Place::new(&exercise)?;
    let opened = opened::open(&place.overrides(), QUIET)?;
    let (loaded, environment) = (opened.loaded, opened.environment);
    let mut sign_ins = 0;
    loop {
        let host = Host::start(loaded.clone(), &environment, Needs::Everything).await?;
        let came = once(&host, &planned, &exercise, sign_ins).await;
        let came = match came {
            Ok(Came::NeedsSignIn) if sign_ins < MAX_SIGN_INS => {
                sign_ins += 1;
                sign_in(&host, &exercise).await.map(|()| None)
            }
            Ok(Came::NeedsSignIn) => Err(Failure::failed(format!("it wants a sign-in still, after {sign_ins}"))),
            Ok(Came::Whole(report)) => Ok(Some(report)),
            Err(failure) => Err(failure),
        };
        host.shutdown().await;
        if let Some(report) = came? {
            output.json_pretty(&report);
            return Ok(Exit::Done);
        }
    }
}

/// The calls that were named; each is `{"name": …, "arguments": {…}}`.
fn planned(calls: &[String]) -> Result<Vec<Planned>, Failure> {
    let read = |text: &String| {
        let call: Value = serde_json::from_str(text).ok()?;
        let tool = call.get("name")?.as_str()?.to_owned();
        let arguments = call.get("arguments").cloned().unwrap_or_else(|| json!({}));
        Some(Planned { tool, arguments: arguments.as_object()?.clone() })
    };
    let read = |text| {
        read(text).ok_or_else(|| Failure::usage(format!("`{text}` is no call; say {{\"name\": …, \"arguments\": {{…}}}}")))
    };
    calls.iter().map(read).collect()
}

async fn once(host: &Host, planned: &[Planned], exercise: &McpExercise, sign_ins: u32) -> Result<Came, Failure> {
    let status = host.check_mcp(NAME).await.ok_or_else(|| Failure::usage(format!("{} cannot be a server", exercise.url)))?;
    match &status.state {
        SourceState::NeedsSignIn { .. } => return Ok(Came::NeedsSignIn),
        SourceState::Ready => {}
        SourceState::Failing { reason } => return Err(Failure::failed(reason.clone())),
        SourceState::Starting | SourceState::Stopped | SourceState::Disabled => {
            return Err(Failure::failed(format!("the server is {}", status.state.as_str())));
        }
    }
    let tools: Vec<_> = host.engine().tools().await.into_iter().filter(|tool| tool.source == NAME).collect();
    let all: Vec<Planned>;
    let calls = if planned.is_empty() {
        let smallest = |tool: &std::sync::Arc<turnwright_core::ToolDefinition>| Planned {
            tool: tool.tool.clone(),
            arguments: arguments::smallest(&tool.input_schema),
        };
        all = tools.iter().map(smallest).collect();
        &all
    } else {
        planned
    };
    let questions = Questions::AcceptDefaults;
    let serving = McpServing { unqualified: Some(NAME.to_owned()), questions, ..McpServing::default() };
    let mut results = Vec::new();
    for call in calls {
        let result = host.run_tool(serving.clone(), &call.tool, call.arguments.clone()).await;
        if matches!(state(host), Some(SourceState::NeedsSignIn { .. })) {
            return Ok(Came::NeedsSignIn);
        }
        results.push(json!({
            "tool": call.tool,
            "arguments": call.arguments,
            "is_error": result.is_error,
            "content": result.content,
            "structured_content": result.structured_content,
        }));
    }
    Ok(Came::Whole(json!({
        "url": exercise.url,
        "protocol": status.agreed.map(|agreed| agreed.version),
        "sign_ins": sign_ins,
        "tools": tools.iter().map(|tool| &tool.tool).collect::<Vec<_>>(),
        "set_aside": status.quarantined,
        "calls": results,
    })))
}

fn state(host: &Host) -> Option<SourceState> {
    host.mcp_servers().into_iter().find(|server| server.name == NAME).map(|server| server.state)
}

async fn sign_in(host: &Host, exercise: &McpExercise) -> Result<(), Failure> {
    let opener = match (&exercise.open, exercise.no_browser) {
        (_, true) => Opener::Nobody,
        (Some(program), false) => Opener::Program(program.clone()),
        (None, false) => Opener::System,
    };
    let signed_in = host.sign_in_mcp(NAME, |address| login::show(address, &opener)).await;
    let signed_in = signed_in.ok_or_else(|| Failure::usage(format!("{} cannot be signed in to", exercise.url)))?;
    signed_in.map_err(|error| Failure::failed(error.to_string()))
}
