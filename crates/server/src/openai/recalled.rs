//! The conversation of a history that this process did not tell itself, since it was started later or another one told it: found by
//! what the newest journals say.
//!
//! A journal is taken for the history where each message of a person's and all that was answered to it are the same to the letter.
//! Where anything is left open the history is taken over as any other: with files, which are written otherwise in a journal, after
//! messages that were hidden and turns that were tried again, of which the client may have either, and where an answer was shown with
//! more than the model's words; but for the one that a person is waited for, which names its conversation: what came after it, once they
//! had decided elsewhere, the client was not told.

use std::sync::Arc;

use turnwright_core::{ContentBlock, Control, ConversationId, Entry, Journal, TurnId, text_of};
use turnwright_engine::{EngineError, SettingsOverlay, StoreError};

use super::begin::where_there;
use super::history::{Item, Said, arguments_elsewhere};
use super::known::Fingerprint;
use crate::arguments;
use crate::error::ApiError;
use crate::state::ServerState;

/// How many of the user's newest conversations are looked at.
const MOST: usize = 32;

/// With what a text begins that a person is waited for to decide, or to answer.
pub(crate) const WAITS_FOR_DECISION: &str = "Waiting for a person's decision:";
pub(crate) const WAITS_FOR_ANSWER: &str = "Waiting for a person's answer:";
/// What stands around the conversation's name in it.
const AROUND_NAME: (&str, &str) = ("`GET /api/v1/conversations/", "/calls`");

/// What a person said, and all that was answered to it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Exchange {
    said: String,
    answered: String,
    /// Whether its answer ended with a person being waited for.
    waited: bool,
}

impl Exchange {
    /// Whether a client that has this was told it of `stored`.
    fn is_of(&self, stored: &Self) -> bool {
        let rest = stored.answered.strip_prefix(&self.answered);
        let is_told =
            rest.is_some_and(|rest| rest.is_empty() || (self.waited && (self.answered.is_empty() || rest.starts_with("\n\n"))));
        self.said == stored.said && is_told
    }
}

/// The conversation that says what the history up to its newest answer says and no more, and its newest turn. It is one that has no
/// other settings than a new one would have, so that nothing runs that would not there. The history is known from then on; one that
/// nobody told is looked for once. As [`KnownHistories::find`](super::known::KnownHistories::find) tells it; it is what it is now.
///
/// # Errors
/// As the store's.
pub(crate) async fn conversation_of(
    state: &ServerState,
    before: &[Arc<Item>],
    history: &Fingerprint,
    settings: &SettingsOverlay,
) -> Result<Option<(ConversationId, TurnId, u64)>, ApiError> {
    if state.known().was_missed(history) {
        return Ok(None);
    }
    if let Some((exchanges, waited)) = of_history(before) {
        let (given, asked) = (given_in(before), asked_in(before));
        let is_named = waited.is_some();
        let candidates = match waited {
            Some(named) => where_there(state.engine().conversation(&named).await)?.into_iter().collect(),
            None => state.engine().conversations(None, MOST).await?,
        };
        let alike = candidates.into_iter().filter(|conversation| conversation.overlay == *settings);
        let alike = alike.map(|conversation| conversation.id).collect();
        for conversation in if is_named { alike } else { state.known().untold(alike) } {
            let look = |journal: &Journal| {
                let (said, turn) = of_journal(journal).filter(|_| is_named || journal.open_turn().is_none())?;
                let is_it = said.len() == exchanges.len() && exchanges.iter().zip(&said).all(|(told, said)| told.is_of(said));
                let has_all = || {
                    given.iter().all(|given| has_result(journal, given)) && asked.iter().all(|asked| has_call(journal, asked))
                };
                (is_it && has_all()).then_some(turn)
            };
            match state.engine().look(&conversation, look).await {
                Ok(Some(turn)) => {
                    state.known().remember(history, conversation.clone(), turn);
                    return Ok(Some((conversation, turn, u64::MAX)));
                }
                Ok(None) => {}
                Err(error @ (EngineError::Store(StoreError::Unusable { .. }) | EngineError::ShuttingDown)) => {
                    return Err(error.into());
                }
                // It was deleted meanwhile, or this version cannot read it: then it says nothing.
                Err(error) => tracing::debug!(%conversation, %error, "not looked at for what it says"),
            }
        }
    }
    state.known().missed(history);
    Ok(None)
}

/// What a history says, and the conversation whose person was waited for last; nothing where a journal may say the same otherwise.
fn of_history(items: &[Arc<Item>]) -> Option<(Vec<Exchange>, Option<ConversationId>)> {
    let mut exchanges = Exchanges::default();
    let mut waited = None;
    for item in items {
        match &item.said {
            Said::User(content) => exchanges.said(content)?,
            Said::Answer { text, .. } => match waited_for(text) {
                Some((told, conversation)) => {
                    exchanges.answered(told);
                    exchanges.waited = true;
                    waited = Some(conversation);
                }
                None => exchanges.answered(text),
            },
            // What was decided, and what ran, stands between answers; what that gave is compared for itself.
            Said::System(_)
            | Said::Result { .. }
            | Said::Approval { .. }
            | Said::Elsewhere { .. }
            | Said::Echo
            | Said::Nothing => {}
            Said::Reference { .. } => return None,
        }
    }
    Some((exchanges.done(), waited))
}

/// What the client's tools gave, and those elsewhere, as text.
fn given_in(items: &[Arc<Item>]) -> Vec<String> {
    let given = items.iter().filter_map(|item| match &item.said {
        Said::Result { content, .. } => Some(text_of(content)),
        Said::Elsewhere { gave, .. } => Some(gave.clone()).filter(|gave| !gave.is_empty()),
        _ => None,
    });
    given.collect()
}

/// What was asked of them elsewhere, as arguments.
fn asked_in(items: &[Arc<Item>]) -> Vec<&str> {
    items.iter().flat_map(|item| arguments_elsewhere(item)).collect()
}

fn has_call(journal: &Journal, asked: &str) -> bool {
    journal.entries().iter().any(|stored| match &*stored.entry {
        Entry::Assistant(message) => message.calls().any(|call| arguments::told(&call.arguments) == asked),
        _ => false,
    })
}

fn has_result(journal: &Journal, given: &str) -> bool {
    let mut results = journal.entries().iter().filter_map(|stored| match &*stored.entry {
        Entry::Result(result) => Some(text_of(&result.content)),
        _ => None,
    });
    results.any(|result| result == given)
}

/// What was told before a person was waited for, and the conversation that was named with that.
fn waited_for(text: &str) -> Option<(&str, ConversationId)> {
    let (told, waiting) = [WAITS_FOR_DECISION, WAITS_FOR_ANSWER].iter().find_map(|begin| text.split_once(begin))?;
    let (_, named) = waiting.rsplit_once(AROUND_NAME.0)?;
    let (name, _) = named.split_once(AROUND_NAME.1)?;
    Some((told, name.parse().ok()?))
}

/// What a journal says, with its newest turn; nothing where a client may have something else of it.
fn of_journal(journal: &Journal) -> Option<(Vec<Exchange>, TurnId)> {
    let turn = journal.turn()?.id();
    let mut exchanges = Exchanges::default();
    let mut has_form = false;
    for stored in journal.entries() {
        match &*stored.entry {
            Entry::User(message) => {
                has_form = message.settings.output.is_some();
                exchanges.said(&message.content)?;
            }
            // It was told as what the model thinks.
            Entry::Assistant(message) if has_form && message.calls().next().is_some() => exchanges.answered(""),
            Entry::Assistant(message) => exchanges.answered(&message.text()),
            Entry::Control(Control::Hidden { .. } | Control::Retried { .. }) => return None,
            _ => {}
        }
    }
    Some((exchanges.done(), turn))
}

/// Exchanges in the making.
#[derive(Debug, Default)]
struct Exchanges {
    done: Vec<Exchange>,
    /// What a person says, until it is answered.
    saying: Vec<ContentBlock>,
    /// What was answered.
    answers: Vec<String>,
    waited: bool,
}

impl Exchanges {
    /// Nothing where there is more than text in it.
    fn said(&mut self, content: &[ContentBlock]) -> Option<()> {
        if !self.answers.is_empty() || self.waited {
            self.end();
        }
        let is_text = content.iter().all(|block| matches!(block, ContentBlock::Text { .. }));
        self.saying.extend(content.iter().cloned());
        is_text.then_some(())
    }

    fn answered(&mut self, text: &str) {
        // Steps that say nothing leave no paragraph.
        if !text.trim().is_empty() {
            self.answers.push(text.trim().to_owned());
        }
    }

    fn end(&mut self) {
        let said = text_of(&std::mem::take(&mut self.saying)).trim().to_owned();
        let answered = std::mem::take(&mut self.answers).join("\n\n");
        self.done.push(Exchange { said, answered, waited: std::mem::take(&mut self.waited) });
    }

    fn done(mut self) -> Vec<Exchange> {
        self.end();
        self.done
    }
}
