//! What the results of a client's own tools append.

use turnwright_core::{ContentBlock, Entry, Outcome, QuestionReason, ToolErrorKind, ToolResult, TurnId};

use super::{Act, Bounds, still_open};
use crate::EngineError;
use crate::inner::Inner;
use crate::live::State;

/// The result of a call that its client ran.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientResult {
    /// Which call.
    pub call: turnwright_core::CallId,
    /// What the model is shown.
    pub content: Vec<ContentBlock>,
    /// Whether the client says that it failed.
    pub is_error: bool,
}

/// The results that are not there yet. Who brings one a second time is not told otherwise than the first time: whether it was
/// stored may be what they did not hear. They say what the turn goes on with, so they are bounded as a message is that joins it.
pub(super) fn results(
    inner: &Inner,
    state: &State,
    given: &[ClientResult],
    bounds: Bounds,
) -> Result<Act<TurnId>, EngineError> {
    let newest = state.journal.turn();
    let mut entries = Vec::new();
    for result in given {
        if state.journal.result(result.call).is_some() {
            continue;
        }
        let is_waited_for = newest.is_some_and(|turn| {
            turn.waiting().any(|(call, question)| call.id == result.call && question.reason == QuestionReason::ClientTool)
        });
        if !is_waited_for {
            return Err(EngineError::NotFound { what: format!("call `{}` that waits for a client's result", result.call) });
        }
        entries.push(Entry::Result(self::result(result)));
    }
    let Some(newest) = newest else {
        return Err(EngineError::NoOpenTurn { why: "nothing was said yet".to_owned() });
    };
    let turn = newest.id();
    if entries.is_empty() {
        return Ok(Act::of(entries, Vec::new(), turn));
    }
    let default = inner.defaults().approve;
    bounds.hold_open(newest.settings().approve, default, state.overlay.approve.unwrap_or(default))?;
    Ok(Act::of(entries, vec![still_open(inner, state, turn)], turn))
}

/// A client's result as it is stored.
pub(in crate::engine) fn result(given: &ClientResult) -> ToolResult {
    let outcome = if given.is_error { Outcome::Error(ToolErrorKind::ExecutionFailed) } else { Outcome::Success };
    ToolResult { content: given.content.clone(), ..ToolResult::of(given.call, outcome, "") }
}
