//! What a user message appends.

use std::iter;
use std::sync::Arc;

use turnwright_core::{
    AnswerAction, Answered, AnsweredBy, ApproveMode, CallId, Control, DecidedBy, Decision, ElicitationId, Entry, MessageId,
    ModelRef, QuestionReason, Seq, StoredEntry, ToolDefinition, Turn, TurnId, TurnSettings, UserMessage, Verdict,
};

use super::answers::answers;
use super::results::{asked_anew, given_anew, not_waited_for};
use super::title::retitled;
use super::{Act, Beneath, Bounds, Joins, Kept, NewMessage, OnWaiting, Sent, SentState, beside_message, still_open};
use crate::engine::beside::kept_with;
use crate::inner::Inner;
use crate::live::{Live, State};
use crate::{EngineError, SettingsOverlay, SideRecord};

/// What became of a message, and the definitions that are agreed to by what was decided with it.
type Said = (Sent, Vec<Arc<ToolDefinition>>);

/// A user message in this conversation: opens a turn, joins the open one, or is held; with the decisions that come with it.
pub(super) fn say(
    inner: &Inner,
    live: &Live,
    state: &State,
    message: &NewMessage,
    bounds: Bounds,
) -> Result<Act<Said>, EngineError> {
    let newest = state.journal.newest_user();
    let is_overtaken = |after: Option<Seq>| newest != after;
    if message.known_as.as_ref().is_some_and(|known| is_overtaken(known.after))
        || message.only_after.is_some_and(|last| is_overtaken(Some(last)))
    {
        return Err(EngineError::SaidMeanwhile);
    }
    let answered = answers(inner, live, state, &message.answers)?;
    let before = before_joining(inner, state, message)?;
    let hidden = message.replaces.map(|replaced| replaced_with(state, replaced)).transpose()?.unwrap_or_default();
    let at = before.iter().chain(&hidden).fold(state.journal.next_seq(), |at, _| at.next());
    let settings = match state.journal.open_turn() {
        None => {
            let mut settings = match said_again(state, message) {
                Some(before) => inner.settings(&message.overlay, before),
                None => inner.settings(&state.overlay.merged(&message.overlay), &inner.defaults()),
            };
            if message.denies_questions && settings.approve == ApproveMode::Ask {
                settings.approve = ApproveMode::ReadOnly;
            }
            settings
        }
        // What joins a turn may change its model.
        Some(turn) => {
            if message.joins == Joins::AsItIs {
                fits(&SettingsOverlay { model: None, ..message.overlay.clone() }, turn)?;
            }
            let model = SettingsOverlay { model: message.overlay.model.clone(), ..SettingsOverlay::default() };
            inner.settings(&model, turn.settings())
        }
    };
    // Of the defaults and of fallbacks nobody has looked.
    if let Some(what) = iter::once(&settings.model).chain(&settings.fallback).find_map(ModelRef::problem) {
        return Err(EngineError::Invalid { what });
    }
    let default = inner.defaults().approve;
    let chosen = state.overlay.approve.unwrap_or(default);
    match state.journal.open_turn() {
        None => bounds.hold(settings.approve, default, chosen)?,
        Some(_) => bounds.hold_open(settings.approve, default, chosen)?,
    }
    let user = Entry::User(UserMessage { content: message.content.clone(), settings: settings.clone() });
    let mut agreed = Vec::new();
    let mut act = match state.journal.open_turn() {
        None => open(inner, state, message, user, &settings, at)?,
        Some(turn) => {
            agreed = answered.answer;
            let (after, became) = after_joining(turn, message, bounds, answered.entries)?;
            let is_alone = after.is_empty() && before.is_empty();
            let side = if is_alone { Vec::new() } else { vec![still_open(inner, state, turn.id())] };
            let answer = Sent { message_id: MessageId(at), turn_id: turn.id(), state: became };
            Act::of(before.into_iter().chain([user]).chain(after).collect(), side, answer)
        }
    };
    drop(act.entries.splice(..0, hidden));
    act.side.extend(retitled(state.chosen.title.as_deref(), &state.journal, &act.entries));
    let idempotency = message.idempotency.iter().map(|(key, fingerprint)| (key.as_str(), fingerprint.as_str()));
    for (key, fingerprint) in idempotency.chain(message.known_as.iter().map(|known| (known.key.as_str(), ""))) {
        let kept = Kept { conversation: Some(live.id.clone()), sent: Some(act.answer.clone()), summary: None };
        act.side.push(kept.record(key, fingerprint)?);
    }
    if let Some((name, text)) = &message.beside {
        act.side.push(kept_with(&live.id, &beside_message(name, at), text));
    }
    let Act { entries, side, answer, slot, is_for_all } = act;
    Ok(Act { entries, side, answer: (answer, agreed), slot, is_for_all })
}

/// What is stored before a message that joins a turn: what its client's tools gave, and what it asks for the rest of the turn.
fn before_joining(inner: &Inner, state: &State, message: &NewMessage) -> Result<Vec<Entry>, EngineError> {
    if let Some(other) = message.given.iter().find(|given| given.is_other_than_in(&state.journal)) {
        return Err(not_waited_for(other));
    }
    let mut before = given_anew(state, &message.given)?;
    if let Some(turn) = state.journal.open_turn().filter(|_| message.joins == Joins::Anew) {
        before.splice(..0, asked_anew(inner, state, turn, &message.overlay));
    }
    Ok(before)
}

/// What is stored after a message that joins this turn, which has what was decided and answered with it, and what becomes of the
/// message.
fn after_joining(
    turn: &Turn,
    message: &NewMessage,
    bounds: Bounds,
    mut decided: Vec<Entry>,
) -> Result<(Vec<Entry>, SentState), EngineError> {
    let on_waiting = message.on_waiting;
    let waits = turn.is_parked() || (turn.is_held() && on_waiting == OnWaiting::Deny);
    if !waits {
        return Ok((decided, SentState::Joined));
    }
    let is_given = |call: CallId| message.given.iter().any(|given| given.call == call);
    let is_decided =
        |call: CallId| is_given(call) || decided.iter().any(|entry| matches!(entry, Entry::Decision(one) if one.call == call));
    let undecided = turn.waiting().filter(|(call, _)| !is_decided(call.id));
    let mut declined: Vec<Entry> = undecided.map(|(call, question)| decline(call.id, question.reason)).collect();
    let is_answered =
        |id: ElicitationId| decided.iter().any(|entry| matches!(entry, Entry::Answered(one) if one.question == id));
    declined.extend(turn.questions().filter(|question| !is_answered(question.id)).map(|question| {
        let (action, by) = (AnswerAction::Decline, AnsweredBy::Person);
        Entry::Answered(Answered { question: question.id, action, content: None, by, reason: None })
    }));
    match on_waiting {
        _ if declined.is_empty() => Ok((decided, SentState::Joined)),
        OnWaiting::Hold => Ok((decided, SentState::Held)),
        OnWaiting::Deny => {
            bounds.hold_declining(turn)?;
            decided.extend(declined);
            Ok((decided, SentState::Joined))
        }
    }
}

/// The settings with which a message was said before that is said again.
fn said_again<'a>(state: &'a State, message: &NewMessage) -> Option<&'a TurnSettings> {
    let replaced = message.replaces.filter(|_| message.beneath == Beneath::Replaced)?;
    let Entry::User(said) = &*state.journal.entry(replaced.0)?.entry else { return None };
    Some(&said.settings)
}

/// Hides a message of a person's and what came after it, but for answers that had not seen it.
fn replaced_with(state: &State, replaced: MessageId) -> Result<Vec<Entry>, EngineError> {
    let journal = &state.journal;
    if let Some(turn) = journal.open_turn() {
        return Err(EngineError::TurnOpen { why: format!("{} is still open; stop it first", turn.id()) });
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
    let is_settled = inner.is_settled(&state.owner);
    if is_settled && let Some(offered) = inner.newly_offered(&state.owner, &state.journal, settings) {
        entries.push(offered);
    }
    let side = vec![SideRecord::TurnOpen { turn, parked: false, kept_by: message.kept_by }];
    let answer = Sent { message_id: MessageId(at), turn_id: turn, state: SentState::Started };
    Ok(Act { slot, is_for_all, ..Act::of(entries, side, answer) })
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
