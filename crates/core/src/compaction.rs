//! What becomes of a conversation that is too long for its model.
//!
//! [`cut`] says which messages a summary is to stand for, [`Cut::request`] asks a model for it and says what of its answer is
//! taken, [`Cut::digest`] makes one without. Stored as [`crate::Control::Compacted`] it is shown in their place, and the journal stays as it is. *Not here:*
//! asking the model, and when to compact, which the turn says.

use std::sync::Arc;

use crate::prompt::PromptMessage;
use crate::{Compacted, ContentBlock, Journal, ModelRef, Origin, Seq, Turn, TurnId, TurnSettings, UserMessage};

mod digest;
mod request;

pub use request::{Asked, NoSummary, Request};

/// The part of what is shown that stays as it is: what is newest, up to one in so many bytes.
const SHARE_THAT_STAYS: usize = 4;
/// The longest summary, in bytes.
const MAX_SUMMARY_BYTES: usize = 32_000;
/// However short the conversation, a summary may have this many bytes.
const MIN_BYTES: usize = 2_000;

/// What a summary begins with as a model is shown it.
const HEAD: &str = "[What was said and done in this conversation up to here is too long to be shown again. This is a summary of \
                    it. Go on from there; do not do again what was done.]";

/// What a model is shown in the place of a conversation's beginning, as a journal holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    seq: Seq,
    turn: Option<TurnId>,
    through: Seq,
    message: UserMessage,
    /// What was shown before it, and is again where it is undone.
    before: Option<Arc<Self>>,
}

impl Compaction {
    /// What the entry at `seq` says; `settings` are those of the newest turn, `before` is what it replaces.
    pub(crate) fn new(seq: Seq, compacted: &Compacted, settings: &TurnSettings, before: Option<Arc<Self>>) -> Self {
        let message = said(format!("{HEAD}\n\n{}", compacted.summary), settings.clone());
        Self { seq, turn: compacted.turn, through: compacted.through, message, before }
    }

    /// What was shown before it.
    pub(crate) fn before(&self) -> Option<&Arc<Self>> {
        self.before.as_ref()
    }

    /// The place of its entry, by which the summary is known among a prompt's messages.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The turn that was open, where one was. What people said in it is shown besides.
    pub fn turn(&self) -> Option<TurnId> {
        self.turn
    }

    /// The place up to which it stands for messages.
    pub fn through(&self) -> Seq {
        self.through
    }

    /// Puts the summary in the place of what it stands for. What people said in its turn stays before it, and what came
    /// later after it; a call stays with its result on either side.
    pub(crate) fn show<'a>(&'a self, messages: Vec<PromptMessage<'a>>) -> Vec<PromptMessage<'a>> {
        let (mut before, mut after) = (Vec::new(), vec![PromptMessage::User { seq: self.seq, message: &self.message }]);
        let mut is_shown = true;
        let stays = crate::context::that_stay(&messages);
        for message in messages {
            match message {
                PromptMessage::Context { context, .. } if context.message.0 > self.through => after.push(message),
                PromptMessage::Context { seq, context } => {
                    before.extend(
                        (stays.contains(&seq) || self.turn.is_some_and(|turn| context.message.0 >= turn.0)).then_some(message),
                    );
                }
                PromptMessage::User { seq, .. } if seq > self.through => after.push(message),
                PromptMessage::User { seq, .. } if self.turn.is_some_and(|turn| seq >= turn.0) => before.push(message),
                PromptMessage::User { .. } => {}
                PromptMessage::Assistant { seq, .. } => {
                    is_shown = seq > self.through;
                    after.extend(is_shown.then_some(message));
                }
                PromptMessage::Results(_) => after.extend(is_shown.then_some(message)),
            }
        }
        before.append(&mut after);
        before
    }
}

/// The messages that a summary is to stand for.
#[derive(Debug, Clone)]
pub struct Cut<'a> {
    /// The open turn, where one is open.
    pub turn: Option<TurnId>,
    /// The place up to which messages are compacted.
    pub through: Seq,
    /// The messages as they were shown.
    messages: Vec<PromptMessage<'a>>,
    /// About how many bytes of text were shown in all.
    shown_bytes: usize,
    /// Who answered, and about how many bytes of text were shown before each answer.
    answers: Vec<(&'a Origin, usize)>,
}

/// About how many bytes of text a message is to a model.
pub(crate) fn bytes(message: &PromptMessage<'_>) -> usize {
    digest::bytes(message)
}

/// What to compact now; `None` where nothing can be compacted. What people said in the open turn stays, and so do calls that
/// have no result yet; of the rest stays what is newest. Of a turn with many long steps the older ones are compacted, at the
/// worst all.
pub fn cut(journal: &Journal) -> Option<Cut<'_>> {
    let turn = journal.open_turn().map(Turn::id);
    let is_of_open_turn = |seq: Seq| turn.is_some_and(|turn| seq >= turn.0);
    let unanswered = journal.open_turn().and_then(Turn::unanswered_message);
    let compaction = journal.compaction();
    let summary = compaction.map(Compaction::seq);
    let mut shown_bytes = 0_usize;
    // Each message that can be compacted, with its results.
    let mut steps: Vec<Shown<'_>> = Vec::new();
    let mut earlier = Vec::new();
    let mut answers = Vec::new();
    let shown = crate::prompt::messages(journal);
    let stays = crate::context::that_stay(&shown);
    // What was gathered for the message that comes next.
    let mut gathered: Vec<PromptMessage<'_>> = Vec::new();
    for message in shown {
        let bytes = digest::bytes(&message);
        if let PromptMessage::Assistant { message, .. } = &message {
            answers.push((&message.origin, shown_bytes));
        }
        shown_bytes = shown_bytes.saturating_add(bytes);
        match message {
            PromptMessage::User { seq, .. } if summary == Some(seq) => earlier.push(message),
            PromptMessage::User { seq, .. } if is_of_open_turn(seq) => {}
            PromptMessage::Assistant { seq, .. } if unanswered == Some(seq) => break,
            PromptMessage::Context { seq, context } => {
                if !stays.contains(&seq) && !is_of_open_turn(context.message.0) {
                    gathered.push(message);
                }
            }
            PromptMessage::User { seq, .. } | PromptMessage::Assistant { seq, .. } => {
                let bytes = gathered.iter().map(digest::bytes).sum::<usize>().saturating_add(bytes);
                gathered.push(message);
                steps.push(Shown { seq, bytes, messages: std::mem::take(&mut gathered) });
            }
            PromptMessage::Results(_) => {
                if let Some(step) = steps.last_mut() {
                    step.bytes = step.bytes.saturating_add(bytes);
                    step.messages.push(message);
                }
            }
        }
    }
    // A message that a person sent meanwhile is shown after the answer that had not seen it, which was stored later.
    steps.sort_by_key(|step| step.seq);
    let mut left: usize = steps.iter().map(|step| step.bytes).sum();
    let may_stay = shown_bytes / SHARE_THAT_STAYS;
    let mut through = None;
    let mut messages = earlier;
    for step in steps {
        if through.is_some() && left <= may_stay {
            break;
        }
        left = left.saturating_sub(step.bytes);
        through = Some(step.seq);
        messages.extend(step.messages);
    }
    // What people said in a turn that was open then is shown beside the summary of that time, and is older than what that
    // stands for.
    let through = through?.max(compaction.map_or(Seq::FIRST, Compaction::through));
    Some(Cut { turn, through, messages, shown_bytes, answers })
}

struct Shown<'a> {
    seq: Seq,
    bytes: usize,
    messages: Vec<PromptMessage<'a>>,
}

impl Cut<'_> {
    /// The question for a summary: a transcript of as much as fits into the window of who is asked.
    pub fn request(&self, asked: &Asked<'_>) -> Request {
        request::of(self, asked)
    }

    /// A summary without a model: what was said and called, and how each call came out, long parts cut.
    pub fn digest(&self) -> String {
        self.told(self.digest_bytes())
    }

    /// The same, no longer than a summary may be for who is asked.
    pub fn digest_for(&self, asked: &Asked<'_>) -> String {
        request::fitting(asked.answer_tokens(), self.digest_bytes(), |bytes| self.told(bytes), |text| asked.tokens(text))
    }

    fn digest_bytes(&self) -> usize {
        (self.shown_bytes / SHARE_THAT_STAYS / 2).clamp(MIN_BYTES, MAX_SUMMARY_BYTES)
    }

    /// The messages as a text of at most about so many bytes.
    fn told(&self, max_bytes: usize) -> String {
        digest::of(&self.messages, max_bytes)
    }

    /// About how many bytes of text a model was shown before the newest answer that it gave.
    fn read_by(&self, model: &ModelRef) -> usize {
        let is_its = |origin: &Origin| origin.provider == model.provider() && origin.model == model.model();
        self.answers.iter().rev().find(|(origin, _)| is_its(origin)).map_or(0, |(_, bytes)| *bytes)
    }
}

fn said(text: String, settings: TurnSettings) -> UserMessage {
    UserMessage { content: vec![ContentBlock::text(text)], settings }
}
