//! What a person answers to several questions at once: one append, all of it or nothing.

use std::sync::Arc;

use serde_json::{Map, Value};
use turnwright_core::{AnsweredBy, ConversationId, ElicitationId, Entry, ToolDefinition};

use super::answer::answer;
use super::decision::{About, decided_once};
use super::{Act, Choice, act};
use crate::engine::Engine;
use crate::inner::Inner;
use crate::limits::admit_choices;
use crate::live::{Live, State};
use crate::{EngineError, Reply, SideRecord};

/// What a person answers at once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answers {
    /// About calls that wait.
    pub decisions: Vec<(About, Choice)>,
    /// To what calls ask.
    pub replies: Vec<(ElicitationId, Reply)>,
    /// What becomes of all of it where some does not wait for this any more.
    pub stale: Stale,
}

/// What becomes of answers where somebody was faster with one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stale {
    /// None is stored, nor what was said with them.
    #[default]
    Refused,
    /// That one is left as it is.
    Left,
}

impl Answers {
    /// Whether nothing is answered.
    pub fn is_empty(&self) -> bool {
        self.decisions.is_empty() && self.replies.is_empty()
    }
}

impl Engine {
    /// Stores what a person answers, kept under an idempotency key (the key, and a hash of what was asked), where there is one:
    /// all of it or nothing.
    ///
    /// # Errors
    /// As [`Engine::decide`] and [`Engine::answer`]; [`EngineError::KeyReused`].
    pub async fn answer_all(
        &self,
        id: &ConversationId,
        answers: Answers,
        idempotency: Option<(String, String)>,
    ) -> Result<(), EngineError> {
        self.may_answer(id, &answers).await?;
        let kept = self.to_keep(id, idempotency.clone()).await?;
        let (engine, id) = (self.clone(), id.clone());
        let answering = async move {
            let live = engine.load_newest(&id).await?;
            let answer = |state: &State| {
                let all = self::answers(&engine.inner, &live, state, &answers)?;
                // Where all is left as it is, nothing came of it that a key could stand for.
                let kept = kept.clone().filter(|_| !all.entries.is_empty());
                Ok(all.with(kept))
            };
            let agreed = act(&engine.inner, &live, answer).await?;
            engine.inner.keep_agreed(&live, &agreed).await;
            Ok(())
        };
        let answered = self.inner.whole(answering).await;
        self.or_reused(answered, idempotency).await
    }

    /// What must be so before answers are looked at: whoever asks may decide, what cannot be answered any more is closed, and
    /// what nobody decided about in time is denied.
    pub(super) async fn may_answer(&self, id: &ConversationId, answers: &Answers) -> Result<(), EngineError> {
        self.must_decide().await?;
        admit_choices(answers.decisions.iter().map(|(_, choice)| choice))?;
        if !answers.is_empty() {
            let live = self.load_newest(id).await?;
            self.deny_overdue_before(&live).await?;
            for (question, _) in &answers.replies {
                self.close_what_is_gone(&live, *question).await?;
            }
        }
        self.inner.refresh_sources().await;
        Ok(())
    }
}

/// The entries of answers, each checked as if it came alone, and the definitions that are agreed to by them.
pub(super) fn answers(
    inner: &Inner,
    live: &Live,
    state: &State,
    answers: &Answers,
) -> Result<Act<Vec<Arc<ToolDefinition>>>, EngineError> {
    let mut all = Act::of(Vec::new(), Vec::new(), Vec::new());
    for (about, choice) in &answers.decisions {
        let decided = decided_once(inner, live, state, (*about, choice), &all.entries);
        if let Some(one) = answers.stale.or_left(decided)?.flatten() {
            all.answer.extend(one.answer);
            take(&mut all, one.entries, one.side);
        }
    }
    for (question, reply) in &answers.replies {
        if let Some(one) = answers.stale.or_left(answered_once(inner, state, (*question, reply), &all.entries))? {
            take(&mut all, one.entries, one.side);
        }
    }
    Ok(all)
}

/// The entry of one answer, beside those that are stored with it.
fn answered_once(
    inner: &Inner,
    state: &State,
    (question, reply): (ElicitationId, &Reply),
    beside: &[Entry],
) -> Result<Act<Option<Map<String, Value>>>, EngineError> {
    let is_answered = |entry: &Entry| matches!(entry, Entry::Answered(before) if before.question == question);
    if beside.iter().any(is_answered) {
        return Err(EngineError::NotAsked { question, why: "it is answered twice at once".to_owned() });
    }
    answer(inner, state, question, (reply, AnsweredBy::Person))
}

fn take<T>(all: &mut Act<T>, entries: Vec<Entry>, side: Vec<SideRecord>) {
    all.entries.extend(entries);
    // Of the turn each says the same.
    if all.side.is_empty() {
        all.side = side;
    }
}

impl Stale {
    /// What one answer comes to; nothing where it is left as it is.
    fn or_left<T>(self, answered: Result<T, EngineError>) -> Result<Option<T>, EngineError> {
        match (answered, self) {
            (Err(EngineError::NotWaiting { .. } | EngineError::NotFound { .. } | EngineError::NotAsked { .. }), Self::Left) => {
                Ok(None)
            }
            (answered, _) => answered.map(Some),
        }
    }
}
