//! What a user message appends.

use turnwright_core::{
    AnswerAction, Answered, AnsweredBy, CallId, ContentBlock, Control, ConversationId, DecidedBy, Decision, Entry, MessageId,
    QuestionReason, Seq, StoredEntry, Turn, TurnId, TurnSettings, UserMessage, Verdict,
};

use super::{Act, Bounds, Kept, NewMessage, OnWaiting, Sent, SentState, still_open};
use crate::inner::Inner;
use crate::live::State;
use crate::{EngineError, SettingsOverlay, SideRecord};

/// A user message in this conversation: opens a turn, joins the open one, or is held.
pub(super) fn say(
    inner: &Inner,
    state: &State,
    message: &NewMessage,
    (conversation, bounds): (&ConversationId, Bounds),
) -> Result<Act<Sent>, EngineError> {
    let hidden = message.replaces.map(|replaced| replaced_with(state, replaced)).transpose()?.unwrap_or_default();
    let at = hidden.iter().fold(state.journal.next_seq(), |at, _| at.next());
    let settings = match state.journal.open_turn() {
        None => inner.settings(&state.overlay.merged(&message.overlay), &inner.defaults()),
        // What joins a turn may change its model.
        Some(turn) => {
            fits(&SettingsOverlay { model: None, ..message.overlay.clone() }, turn)?;
            let model = SettingsOverlay { model: message.overlay.model.clone(), ..SettingsOverlay::default() };
            inner.settings(&model, turn.settings())
        }
    };
    let default = inner.defaults().approve;
    match state.journal.open_turn() {
        None => bounds.hold(settings.approve, default, state.overlay.approve.unwrap_or(default))?,
        Some(_) => bounds.hold_open(settings.approve, default)?,
    }
    let user = Entry::User(UserMessage { content: message.content.clone(), settings: settings.clone() });
    let mut act = match state.journal.open_turn() {
        None => open(inner, state, message, user, &settings, at)?,
        Some(turn) if turn.is_parked() || (turn.is_held() && message.on_waiting == OnWaiting::Deny) => match message.on_waiting
        {
            OnWaiting::Hold => {
                let answer = Sent { message_id: MessageId(at), turn_id: turn.id(), state: SentState::Held };
                Act::of(vec![user], Vec::new(), answer)
            }
            OnWaiting::Deny => {
                if turn.waiting().next().is_some() || turn.questions().next().is_some() {
                    bounds.hold_declining()?;
                }
                let declined = turn.waiting().map(|(call, question)| decline(call.id, question.reason));
                let unanswered = turn.questions().map(|question| {
                    let (action, by) = (AnswerAction::Decline, AnsweredBy::Person);
                    Entry::Answered(Answered { question: question.id, action, content: None, by, reason: None })
                });
                let entries = std::iter::once(user).chain(declined).chain(unanswered).collect();
                let answer = Sent { message_id: MessageId(at), turn_id: turn.id(), state: SentState::Joined };
                Act::of(entries, vec![still_open(inner, state, turn.id())], answer)
            }
        },
        Some(turn) => {
            let answer = Sent { message_id: MessageId(at), turn_id: turn.id(), state: SentState::Joined };
            Act::of(vec![user], Vec::new(), answer)
        }
    };
    drop(act.entries.splice(..0, hidden));
    if let Some((key, fingerprint)) = &message.idempotency {
        let kept = Kept { conversation: Some(conversation.clone()), sent: Some(act.answer.clone()) };
        act.side.push(kept.record(key, fingerprint)?);
    }
    Ok(act)
}

/// Hides a message of a person's and what came after it, but for answers that had not seen it.
fn replaced_with(state: &State, replaced: MessageId) -> Result<Vec<Entry>, EngineError> {
    let journal = &state.journal;
    if journal.open_turn().is_some() {
        return Err(EngineError::NoOpenTurn { why: "the turn is still open; stop it first".to_owned() });
    }
    let is_there = journal.entry(replaced.0).is_some_and(|stored| matches!(*stored.entry, Entry::User(_)));
    if !is_there || journal.is_hidden(replaced) {
        return Err(EngineError::NotFound { what: format!("message `{replaced}` of a person in this conversation") });
    }
    let is_after = |stored: &&StoredEntry| match &*stored.entry {
        Entry::User(_) => stored.seq >= replaced.0,
        Entry::Assistant(message) => stored.seq > replaced.0 && message.saw >= replaced.0,
        Entry::Decision(_)
        | Entry::Question(_)
        | Entry::Started(_)
        | Entry::Elicited(_)
        | Entry::TaskAccepted(_)
        | Entry::Answered(_)
        | Entry::Sampled(_)
        | Entry::Result(_)
        | Entry::Control(_) => false,
    };
    let messages = journal.entries().iter().filter(is_after).map(|stored| MessageId(stored.seq));
    let shown = messages.filter(|message| !journal.is_hidden(*message));
    Ok(shown.map(|message| Entry::Control(Control::Hidden { message })).collect())
}

/// An open turn keeps what it began with. Whoever chose something else is told so before anything runs: they may have chosen
/// it so that a call is not carried out.
pub(in crate::engine) fn fits(chosen: &SettingsOverlay, turn: &Turn) -> Result<(), EngineError> {
    let settings = turn.settings();
    if chosen.over(settings) == *settings {
        return Ok(());
    }
    Err(EngineError::OtherSettings { turn: turn.id(), settings: Box::new(settings.clone()) })
}

/// The message that opens a turn, with the claim of this process and, where no source is starting, what is offered.
fn open(
    inner: &Inner,
    state: &State,
    message: &NewMessage,
    user: Entry,
    settings: &TurnSettings,
    at: Seq,
) -> Result<Act<Sent>, EngineError> {
    let is_for_all = inner.is_for_all(message.kept_by);
    let slot = inner.room_for_turn(&state.owner, is_for_all)?;
    let turn = TurnId(at);
    let mut entries = vec![user];
    if !is_for_all {
        entries.push(Entry::Control(Control::Claimed(inner.next_claim(&state.journal))));
    }
    let is_settled = inner.is_settled();
    if is_settled && let Some(offered) = inner.newly_offered(&state.owner, &state.journal, settings) {
        entries.push(offered);
    }
    let mut side = vec![SideRecord::TurnOpen { turn, parked: false, kept_by: message.kept_by }];
    if state.title.is_none() && state.journal.last_seq().is_none() {
        side.extend(title_of(&message.content).map(SideRecord::Title));
    }
    let answer = Sent { message_id: MessageId(at), turn_id: turn, state: SentState::Started };
    Ok(Act { slot, is_for_all, ..Act::of(entries, side, answer) })
}

/// The longest title that is made from a message, in characters.
const MAX_TITLE_CHARS: usize = 60;

/// A title from a first message: its first line that says something, cut at a word.
pub(in crate::engine) fn title_of(content: &[ContentBlock]) -> Option<String> {
    let line = content.iter().find_map(|block| match block {
        ContentBlock::Text { text } => text.lines().map(str::trim).find(|line| !line.is_empty()),
        ContentBlock::Image { .. }
        | ContentBlock::Audio { .. }
        | ContentBlock::Resource { .. }
        | ContentBlock::ResourceLink { .. } => None,
    })?;
    if line.chars().count() <= MAX_TITLE_CHARS {
        return Some(line.to_owned());
    }
    let cut: String = line.chars().take(MAX_TITLE_CHARS).collect();
    let at_word = cut.rsplit_once(char::is_whitespace).map_or(cut.as_str(), |(words, _)| words);
    Some(format!("{}…", at_word.trim_end()))
}

fn decline(call: CallId, reason: QuestionReason) -> Entry {
    let verdict = match reason {
        QuestionReason::Approval | QuestionReason::DefinitionChanged | QuestionReason::ClientTool | QuestionReason::Loop => {
            Verdict::Deny
        }
        QuestionReason::UnknownOutcome => Verdict::Skip,
    };
    let reason = Some("they sent another message instead".to_owned());
    Entry::Decision(Decision {
        call,
        verdict,
        by: DecidedBy::Person,
        definition_hash: None,
        arguments: None,
        reason,
        remembered: None,
    })
}
