//! What a person answers to several questions at once: one append, all of it or nothing.

use std::sync::Arc;

use turnwright_core::{AnsweredBy, ConversationId, ElicitationId, Entry, ToolDefinition};

use super::answer::answer;
use super::decision::{About, decisions};
use super::{Act, Choice, NewMessage, Sent, act};
use crate::engine::Engine;
use crate::inner::Inner;
use crate::limits::admit_choices;
use crate::live::{Live, State};
use crate::{EngineError, Reply};

/// What a person answers at once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answers {
    /// About calls that wait.
    pub decisions: Vec<(About, Choice)>,
    /// To what calls ask.
    pub replies: Vec<(ElicitationId, Reply)>,
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
            let answer = |state: &State| Ok(self::answers(&engine.inner, &live, state, &answers)?.with(kept.clone()));
            let agreed = act(&engine.inner, &live, answer).await?;
            engine.inner.keep_agreed(&live, &agreed).await;
            Ok(())
        };
        let answered = self.inner.whole(answering).await;
        self.or_reused(answered, idempotency).await
    }

    /// As [`Engine::send`], with what the person answers beside the message: stored after it, all of it or nothing.
    ///
    /// # Errors
    /// As [`Engine::send`] and [`Engine::answer_all`]. A message that was sent before is told whatever is answered beside it.
    pub async fn send_answering(
        &self,
        id: &ConversationId,
        message: NewMessage,
        answers: Answers,
    ) -> Result<Sent, EngineError> {
        if !answers.is_empty() {
            self.may_answer(id, &answers).await?;
        }
        self.send_with(id, message, answers).await
    }

    async fn may_answer(&self, id: &ConversationId, answers: &Answers) -> Result<(), EngineError> {
        self.must_decide().await?;
        admit_choices(answers.decisions.iter().map(|(_, choice)| choice))?;
        let live = self.load_newest(id).await?;
        for (question, _) in &answers.replies {
            self.close_what_is_gone(&live, *question).await?;
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
    let decided = decisions(inner, live, state, &answers.decisions, None)?;
    let mut all = Act::of(decided.entries, decided.side, decided.answer.1);
    for (question, reply) in &answers.replies {
        let is_answered = |entry: &Entry| matches!(entry, Entry::Answered(before) if before.question == *question);
        if all.entries.iter().any(is_answered) {
            return Err(EngineError::NotAsked { question: *question, why: "it is answered twice at once".to_owned() });
        }
        let one = answer(inner, state, *question, (reply, AnsweredBy::Person))?;
        all.entries.extend(one.entries);
        // Of the turn each says the same.
        if all.side.is_empty() {
            all.side = one.side;
        }
    }
    Ok(all)
}
