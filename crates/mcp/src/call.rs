//! One call of a tool on an open connection.
//!
//! Nothing here repeats a call: whether that is safe is the engine's to know.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientNotification, ClientRequest, CustomNotification, CustomRequest, ErrorCode,
    ErrorData, GetExtensions, RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::json;
use turnwright_core::ToolErrorKind;
use turnwright_engine::telemetry::spans::{mcp_call, mcp_request};
use turnwright_engine::{CallContext, SourceCall, ToolError, ToolOutput, TraceContext};

use crate::Granted;
use crate::connection::Connection;
use crate::input::{self, Again, URL_ELICITATION_REQUIRED, Wanted};
use crate::log::ServerLog;
use crate::output::{self, NoOutput};
use crate::pending::{CANCEL_WRITTEN, Pending};
use crate::task::{self, Task};
use crate::transport::{Door, ProgressRoute};

/// The longest unknown word of a server's that is repeated, in characters.
const MAX_KIND_CHARS: usize = 60;
/// How long the reason of a server's end is waited for.
const END_KNOWN: Duration = Duration::from_secs(2);
/// What keeps an answer from being read that came line by line.
const SPREAD: &str = "it prints its messages over many lines, and each must be one";

/// Whose call it is, for its texts and its tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) server: &'a str,
    pub(crate) log: &'a ServerLog,
    pub(crate) granted: &'a Granted,
    pub(crate) total: Duration,
    pub(crate) cancel_grace: Duration,
}

/// What came of waiting for the answer.
#[expect(clippy::large_enum_variant, reason = "it lives on the stack for a moment; a box would cost every call an allocation")]
enum Waited {
    Answer(Result<ServerResult, ServiceError>),
    Cancelled,
    TimedOut,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) enum Called {
    /// It is done.
    Done(ToolOutput),
    /// The server wants something first.
    Wants(Wanted),
    /// The server goes on with it by itself.
    Task(Task),
    /// The server takes it as a task alone, and did not begin.
    OnlyAsTask,
    /// It is not what it was when it was offered, and was not called.
    Changed,
}

/// In which form a tool is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As one request, whose answer is its result.
    Plain,
    /// As a task, which the server goes on with by itself (2025-11-25).
    Task,
}

/// What a server is told of the trace that its work belongs to (`_meta.traceparent`, W3C Trace Context).
fn meta_of(trace: TraceContext) -> RequestMetaObject {
    let mut meta = RequestMetaObject::default();
    meta.0.insert("traceparent".to_owned(), trace.traceparent.into());
    if let Some(state) = trace.tracestate {
        meta.0.insert("tracestate".to_owned(), state.into());
    }
    meta
}

/// Calls the tool and waits for its end.
pub(crate) async fn call(
    caller: Caller<'_>,
    connection: &Connection,
    (call, form): (&SourceCall, Form),
    again: Again,
    context: &CallContext,
) -> Result<Called, ToolError> {
    let (tool, arguments) = (&call.tool, call.arguments.clone());
    let mut request = match form {
        Form::Plain => {
            let mut params = CallToolRequestParams::new(tool.clone()).with_arguments(arguments);
            if let Again::Answered { responses, state } = again {
                (params.input_responses, params.request_state) = (Some(responses), state);
            }
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        }
        Form::Task => {
            let params = json!({"name": tool, "arguments": arguments, "task": task::wish()});
            ClientRequest::CustomRequest(CustomRequest::new("tools/call", Some(params)))
        }
    };
    if let Some(trace) = &context.trace {
        request.extensions_mut().insert(meta_of(trace.clone()));
    }
    mcp_call(&connection.traced());
    request.extensions_mut().insert(ProgressRoute(context.progress.clone()));
    request.extensions_mut().insert(Door { asks: context.asks.clone(), standstill: context.standstill.clone() });
    let mut sent = pin!(connection.peer.send_request_with_option(request, PeerRequestOptions::no_options()));
    // What seldom happens, and what holds a timer, is in boxes: else every call would be as large as its rarest way.
    let handle = match poll!(&mut sent) {
        Poll::Ready(sent) => Ok(sent),
        Poll::Pending => Box::pin(tokio::time::timeout(caller.total, sent)).await,
    };
    let handle = match handle {
        Ok(Ok(handle)) => handle,
        Ok(Err(error)) => return Err(Box::pin(unanswered(caller, connection, tool, error)).await),
        Err(_) => {
            connection.wire.condemn("it does not read its input");
            return Err(timed_out(caller, tool));
        }
    };
    let id = handle.id.clone();
    mcp_request(&id);
    let mut pending = Pending::new(handle, &connection.tracker);
    let waited = tokio::select! {
        biased;
        answer = pending.answer() => Waited::Answer(answer),
        () = context.cancel.cancelled() => Waited::Cancelled,
        () = Box::pin(context.standstill.run_out(caller.total)) => Waited::TimedOut,
    };
    match waited {
        Waited::Answer(answer) => {
            pending.over();
            result(caller, connection, tool, &id, answer).await
        }
        Waited::Cancelled => match Box::pin(cancelled(caller, connection, &mut pending)).await {
            Some(answer) => {
                pending.over();
                result(caller, connection, tool, &id, answer).await
            }
            None => Err(ToolError::new(
                ToolErrorKind::Interrupted,
                format!(
                    "The call of `{tool}` on the MCP server `{}` was cancelled. Whether it took effect is unknown.",
                    caller.server
                ),
            )),
        },
        Waited::TimedOut => {
            connection.wire.timed_out();
            let mut error = timed_out(caller, tool);
            if connection.wire.is_spread.get().is_some() {
                let why = format!("no answer to tools/call within {} ms: {SPREAD}", caller.total.as_millis());
                error.diagnostic = Some(caller.log.with_last_words(&why));
            }
            Err(error)
        }
    }
}

/// Tells the server that the answer is not needed, and takes one that comes soon all the same.
async fn cancelled(
    caller: Caller<'_>,
    connection: &Connection,
    pending: &mut Pending<'_>,
) -> Option<Result<ServerResult, ServiceError>> {
    let id = pending.id()?.clone();
    connection.wire.cancelled(&id);
    // `rmcp`'s own cancellation forgets the call at once, and a real result with it.
    let params = json!({"requestId": id, "reason": "the caller does not need the result any more"});
    let notification = ClientNotification::CustomNotification(CustomNotification::new("notifications/cancelled", Some(params)));
    let told = async {
        if tokio::time::timeout(CANCEL_WRITTEN, connection.peer.send_notification(notification)).await.is_err() {
            connection.wire.condemn("it does not read its input");
        }
    };
    let ((), answer) = tokio::join!(told, tokio::time::timeout(caller.cancel_grace, pending.answer()));
    answer.ok()
}

async fn result(
    caller: Caller<'_>,
    connection: &Connection,
    tool: &str,
    id: &RequestId,
    answer: Result<ServerResult, ServiceError>,
) -> Result<Called, ToolError> {
    let answer = match answer {
        Ok(ServerResult::CustomResult(answer)) => answer.0,
        Ok(_) => return Err(Box::pin(unanswered(caller, connection, tool, ServiceError::UnexpectedResponse)).await),
        Err(ServiceError::McpError(error)) if error.code.0 == URL_ELICITATION_REQUIRED => {
            return match input::addresses(&error) {
                Some(wanted) => Ok(Called::Wants(wanted)),
                None => Err(refused(caller.server, tool, &error)),
            };
        }
        // "Not in this form"; without its method no server has tools.
        Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND && connection.agreed.knows_tasks() => {
            return Ok(Called::OnlyAsTask);
        }
        Err(error) => {
            return Err(match connection.wire.why_not_taken(id) {
                Some(why) => not_called(caller.server, tool, why, &error),
                None => Box::pin(unanswered(caller, connection, tool, error)).await,
            });
        }
    };
    let failed = |why: &str| {
        let text = format!("The tool `{tool}` of the MCP server `{}` {why}.", caller.server);
        ToolError::new(ToolErrorKind::ExecutionFailed, text)
    };
    let read = match output::read(answer) {
        // Before 2026-07-28 the word means nothing.
        Err(NoOutput::Unknown(_, answer)) if !connection.agreed.is_modern() => output::read(answer),
        read => read,
    };
    match read {
        Ok(output) => Ok(Called::Done(output)),
        Err(NoOutput::InputRequired(_)) if !connection.agreed.is_modern() => {
            Err(failed("asks for more input in a way that its version of the protocol does not have"))
        }
        Err(NoOutput::InputRequired(answer)) => match input::wanted(answer, caller.granted) {
            Ok(wanted) => Ok(Called::Wants(wanted)),
            Err(why) => Err(failed(&why)),
        },
        Err(NoOutput::Unknown(kind, _)) => {
            let kind: String = kind.chars().take(MAX_KIND_CHARS).collect();
            Err(failed(&format!(
                "answered with a kind of result that is not known here, `{kind}`; whether it took effect is unknown"
            )))
        }
        Err(NoOutput::Task(answer)) => {
            let task = Task::read(&answer).map(Called::Task);
            task.ok_or_else(|| failed("goes on as a task and does not say as which; its result cannot be fetched"))
        }
    }
}

async fn unanswered(caller: Caller<'_>, connection: &Connection, tool: &str, error: ServiceError) -> ToolError {
    let server = caller.server;
    match error {
        ServiceError::McpError(error) => refused(server, tool, &error),
        ServiceError::Cancelled { .. } => ToolError::new(
            ToolErrorKind::Interrupted,
            format!("The call of `{tool}` on the MCP server `{server}` was cancelled. Whether it took effect is unknown."),
        ),
        ServiceError::TransportSend(error) if connection.is_open() => ToolError {
            kind: ToolErrorKind::ExecutionFailed,
            model_text: format!(
                "The call of `{tool}` on the MCP server `{server}` failed on its way. Whether it took effect is unknown."
            ),
            diagnostic: Some(error.error.to_string()),
        },
        ServiceError::TransportClosed if connection.is_open() => ToolError {
            kind: ToolErrorKind::ExecutionFailed,
            model_text: format!(
                "The answer to the call of `{tool}` on the MCP server `{server}` broke off. Whether it took effect is unknown: \
                 check before you call it again."
            ),
            diagnostic: Some("the stream of the answer ended before the answer".to_owned()),
        },
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            let end = connection.end(END_KNOWN).await;
            let reason = end.map_or_else(|| caller.log.with_last_words("its connection was closed"), str::to_owned);
            let text = format!(
                "The MCP server `{server}` ended while `{tool}` was running. Whether the call took effect is unknown: check \
                 before you call it again."
            );
            ToolError { kind: ToolErrorKind::Unavailable, model_text: text, diagnostic: Some(reason) }
        }
        other => ToolError {
            kind: ToolErrorKind::ExecutionFailed,
            model_text: format!("The call of `{tool}` on the MCP server `{server}` failed."),
            diagnostic: Some(other.to_string()),
        },
    }
}

/// A call that the server refused before it looked at it.
fn not_called(server: &str, tool: &str, why: &str, error: &ServiceError) -> ToolError {
    let diagnostic = match error {
        ServiceError::TransportSend(error) => error.error.to_string(),
        _ => why.to_owned(),
    };
    let model_text = format!("The MCP server `{server}` {why}: `{tool}` was not called.");
    ToolError { kind: ToolErrorKind::Unavailable, model_text, diagnostic: Some(diagnostic) }
}

/// A JSON-RPC error is the server's own word on the call.
pub(crate) fn refused(server: &str, tool: &str, error: &ErrorData) -> ToolError {
    let (kind, verb) = match error.code {
        ErrorCode::INVALID_PARAMS => (ToolErrorKind::InvalidArguments, "was refused"),
        _ => (ToolErrorKind::ExecutionFailed, "failed"),
    };
    let diagnostic = match &error.data {
        Some(data) => format!("JSON-RPC error {}: {}; data: {data}", error.code.0, error.message),
        None => format!("JSON-RPC error {}: {}", error.code.0, error.message),
    };
    let model_text = format!("The call of `{tool}` on the MCP server `{server}` {verb}: {}", error.message);
    ToolError { kind, model_text, diagnostic: Some(diagnostic) }
}

fn timed_out(caller: Caller<'_>, tool: &str) -> ToolError {
    let (server, limit) = (caller.server, caller.total.as_millis());
    let text = format!(
        "The tool `{tool}` of the MCP server `{server}` did not finish within {limit} ms and was cancelled. Whether it took \
         effect is unknown."
    );
    ToolError {
        kind: ToolErrorKind::Timeout,
        model_text: text,
        diagnostic: Some(caller.log.with_last_words(&format!("no answer to tools/call within {limit} ms"))),
    }
}
