//! What the results of a client's own tools append.

use turnwright_core::{
    ContentBlock, Control, Entry, Journal, Outcome, QuestionReason, ToolChoice, ToolErrorKind, ToolResult, Turn, TurnId,
    TurnSettings, text_of,
};

use super::{Act, Bounds, still_open};
use crate::inner::Inner;
use crate::live::State;
use crate::{EngineError, SettingsOverlay};

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

impl ClientResult {
    /// Whether this says what was given to the call.
    pub fn is_same(&self, there: &ToolResult) -> bool {
        let is_text = |block: &&ContentBlock| matches!(block, ContentBlock::Text { .. });
        let rest = |content: &[ContentBlock]| content.iter().filter(|block| !is_text(block)).cloned().collect::<Vec<_>>();
        text_of(&self.content) == text_of(&there.content) && rest(&self.content) == rest(&there.content)
    }

    /// Whether its call waited for its client.
    pub fn is_waited_for_in(&self, journal: &Journal) -> bool {
        let after = journal.entries().iter().rev().take_while(|stored| stored.seq > self.call.message);
        let mut questions = after.filter_map(|stored| match &*stored.entry {
            Entry::Question(question) => Some(question),
            _ => None,
        });
        questions.any(|question| question.call == self.call && question.reason == QuestionReason::ClientTool)
    }

    /// Whether the client gave its call another result before. What was decided in the place of a result is no result of the
    /// client's.
    pub fn is_other_than_in(&self, journal: &Journal) -> bool {
        let is_given =
            |there: &&ToolResult| matches!(there.outcome, Outcome::Success | Outcome::Error(ToolErrorKind::ExecutionFailed));
        let given = journal.result(self.call).filter(is_given);
        given.is_some_and(|there| self.is_waited_for_in(journal) && !self.is_same(there))
    }
}

/// The results that are not there yet. Who brings one a second time is not told otherwise than the first time: whether it was
/// stored may be what they did not hear. They say what the turn goes on with, so they are bounded as a message is that joins it.
pub(super) fn results(
    inner: &Inner,
    state: &State,
    (given, asked): (&[ClientResult], Option<&SettingsOverlay>),
    bounds: Bounds,
) -> Result<Act<TurnId>, EngineError> {
    let mut entries = given_anew(state, given)?;
    let Some(newest) = state.journal.turn() else {
        return Err(EngineError::NoOpenTurn { why: "nothing was said yet".to_owned() });
    };
    let turn = newest.id();
    if entries.is_empty() {
        return Ok(Act::of(entries, Vec::new(), turn));
    }
    let default = inner.defaults().approve;
    bounds.hold_open(newest.settings().approve, default, state.overlay.approve.unwrap_or(default))?;
    if let Some(asked) = asked {
        entries.splice(..0, asked_anew(inner, state, newest, asked));
    }
    Ok(Act::of(entries, vec![still_open(inner, state, turn)], turn))
}

/// The results that are not there yet, each of which its call waits for.
pub(super) fn given_anew(state: &State, given: &[ClientResult]) -> Result<Vec<Entry>, EngineError> {
    let waits = |result: &ClientResult| {
        let mut waiting = state.journal.turn().into_iter().flat_map(Turn::waiting);
        waiting.any(|(call, question)| call.id == result.call && question.reason == QuestionReason::ClientTool)
    };
    let is_new = |result: &&ClientResult| state.journal.result(result.call).is_none();
    let entry = |given: &ClientResult| if waits(given) { Ok(Entry::Result(result(given))) } else { Err(not_waited_for(given)) };
    given.iter().filter(is_new).map(entry).collect()
}

/// No client is waited for to give this.
pub(super) fn not_waited_for(given: &ClientResult) -> EngineError {
    EngineError::NotFound { what: format!("call `{}` that waits for a client's result", given.call) }
}

/// What is stored before results, or a message, whose client asks for the rest of the turn otherwise than before, or demands calls again.
pub(super) fn asked_anew(inner: &Inner, state: &State, turn: &Turn, asked: &SettingsOverlay) -> Vec<Entry> {
    // What may run was promised to whoever began the turn.
    let asked = SettingsOverlay { approve: None, max_steps: None, ..asked.clone() };
    let settings = inner.settings(&asked, turn.settings());
    let settings = TurnSettings { tool_choice: asked.tool_choice, output: asked.output, ..settings };
    let demands = matches!(settings.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_) | ToolChoice::Tools(_)));
    if settings == *turn.settings() && !demands {
        return Vec::new();
    }
    let offered =
        if inner.is_settled(&state.owner) { inner.newly_offered(&state.owner, &state.journal, &settings) } else { None };
    let settings = Entry::Control(Control::Settings { settings: Box::new(settings) });
    std::iter::once(settings).chain(offered).collect()
}

/// A client's result as it is stored.
pub(in crate::engine) fn result(given: &ClientResult) -> ToolResult {
    let outcome = if given.is_error { Outcome::Error(ToolErrorKind::ExecutionFailed) } else { Outcome::Success };
    ToolResult { content: given.content.clone(), ..ToolResult::of(given.call, outcome, "") }
}
