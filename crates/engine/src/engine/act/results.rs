//! What the results of a client's own tools append.

use std::sync::Arc;

use turnwright_core::{
    ContentBlock, Control, ConversationId, Entry, Journal, Outcome, QuestionReason, ToolChoice, ToolDefinition, ToolErrorKind,
    ToolResult, Turn, TurnId, TurnSettings, text_of,
};

use super::answers::{Answers, answers};
use super::{Act, Bounds, act, still_open};
use crate::engine::Engine;
use crate::inner::Inner;
use crate::live::{Live, State};
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

/// What whoever runs tools itself brings to a turn that waits for that: all of it is stored, or nothing.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// What the tools gave.
    pub results: Vec<ClientResult>,
    /// What is chosen for the rest of the turn, where anything is. What is not chosen stays as the turn has it, but for what the model
    /// must call and the form of its answer, which are for one request each; approve mode and step limit are the turn's.
    pub asked: Option<SettingsOverlay>,
    /// What a person answers beside them.
    pub answers: Answers,
}

impl Engine {
    /// Stores what a client's own tools gave, each once; the turn that goes on with it once nothing else is waited for. What is
    /// stored already is left as it is.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], also where a call does not wait for a client; [`EngineError::NotAllowed`] and
    /// [`EngineError::PeopleOnly`] where more runs in the turn without a person than was chosen for its conversation, and no
    /// person asks. Nothing is stored then.
    pub async fn give_results(&self, id: &ConversationId, results: Vec<ClientResult>) -> Result<TurnId, EngineError> {
        self.give_results_once(id, Given { results, ..Given::default() }, None).await
    }

    /// As [`Engine::give_results`], with what is chosen and answered beside them, and kept under an idempotency key (the key, and a hash
    /// of what was asked), where there is one.
    ///
    /// # Errors
    /// As [`Engine::give_results`]; as [`Engine::answer_all`] where something is answered; [`EngineError::KeyReused`].
    pub async fn give_results_once(
        &self,
        id: &ConversationId,
        given: Given,
        idempotency: Option<(String, String)>,
    ) -> Result<TurnId, EngineError> {
        if let Some(asked) = &given.asked {
            if let Some(problem) = asked.problem() {
                return Err(EngineError::Invalid { what: problem });
            }
            self.limits().admit_chosen(None, asked)?;
        }
        if !given.answers.is_empty() {
            self.may_answer(id, &given.answers).await?;
        }
        let kept = self.to_keep(id, idempotency.clone()).await?;
        let (engine, id) = (self.clone(), id.clone());
        let giving = async move {
            let live = engine.load_newest(&id).await?;
            let give = |bounds: Bounds| {
                let (engine, live, given, kept) = (&engine, &live, &given, &kept);
                async move {
                    let give = |state: &State| Ok(results(&engine.inner, live, state, given, bounds)?.with(kept.clone()));
                    act(&engine.inner, live, give).await
                }
            };
            let bounds = engine.bounds();
            let (turn, agreed) = match give(bounds).await {
                Err(EngineError::NotAllowed { what }) => give(engine.wider(bounds, what).await?).await?,
                given => given?,
            };
            engine.inner.keep_agreed(&live, &agreed).await;
            Ok(turn)
        };
        let given = self.inner.whole(giving).await;
        self.or_reused(given, idempotency).await
    }
}

/// The turn that goes on, and the definitions that are agreed to by what was decided with it.
type GoesOn = (TurnId, Vec<Arc<ToolDefinition>>);

/// The results that are not there yet, with what is answered beside them. Who brings one a second time is not told otherwise than the first time: whether it was
/// stored may be what they did not hear. They say what the turn goes on with, so they are bounded as a message is that joins it.
fn results(inner: &Inner, live: &Live, state: &State, given: &Given, bounds: Bounds) -> Result<Act<GoesOn>, EngineError> {
    let answered = answers(inner, live, state, &given.answers)?;
    let mut entries = given_anew(state, &given.results)?;
    let Some(newest) = state.journal.turn() else {
        return Err(EngineError::NoOpenTurn { why: "nothing was said yet".to_owned() });
    };
    let turn = newest.id();
    if entries.is_empty() {
        return Ok(Act::of(answered.entries, answered.side, (turn, answered.answer)));
    }
    let default = inner.defaults().approve;
    bounds.hold_open(newest.settings().approve, default, state.overlay.approve.unwrap_or(default))?;
    if let Some(asked) = &given.asked {
        entries.splice(..0, asked_anew(inner, state, newest, asked));
    }
    entries.extend(answered.entries);
    Ok(Act::of(entries, vec![still_open(inner, state, turn)], (turn, answered.answer)))
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
