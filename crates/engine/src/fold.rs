//! From a stored entry to the events that it means. Pure: a replay and a live turn tell the same.

use std::sync::Arc;

use turnwright_core::{
    ApprovalId, AssistantMessage, CallId, Control, DecidedBy, Elicitation, ElicitationId, Elicited, Entry, Journal, MessageId,
    Outcome, ProviderFailure, SamplingOutcome, Seq, Step, StoredEntry, Turn, TurnId, TurnStatus, Usage, Waits, Wants,
};

use crate::in_flight::tell_message;
use crate::withheld::withheld;
use crate::{Event, TurnError};

/// Of a call whose model wrote none: who reads them reads JSON.
const NO_ARGUMENTS: &str = "{}";

/// Tells the newest entry of `journal`, which holds everything up to it and nothing after; `next` was stored with it.
pub(crate) fn tell_newest(journal: &Journal, next: Option<&Entry>, out: &mut Vec<Event>) {
    if let Some(stored) = journal.entries().last() {
        tell_entry(stored, out);
        tell(journal, journal.turn(), stored, out);
        out.extend(held(journal.turn(), &stored.entry, next));
    }
}

/// Tells the entries of `journal` after `after`, as somebody who watched would have seen them, deltas merged; but nothing of
/// what is hidden by then.
pub(crate) fn replay(journal: &Journal, after: Option<Seq>, out: &mut Vec<Event>) {
    journal.look_back(after, |turn, stored| {
        let withheld = withheld(journal, stored);
        let is_told = withheld.as_ref().is_none_or(|withheld| withheld.is_told);
        let told = withheld.map(|withheld| StoredEntry { entry: Arc::new(withheld.entry), ..stored.clone() });
        let told = told.as_ref().unwrap_or(stored);
        if let Entry::Assistant(message) = &*told.entry {
            tell_message(told.seq, &message.blocks, out);
        }
        tell_entry(told, out);
        if is_told {
            // How long a summary is tells nothing of it.
            let is_summary = matches!(*stored.entry, Entry::Control(Control::Compacted(_)));
            tell(journal, turn, if is_summary { stored } else { told }, out);
        }
        let next = journal.entry(stored.seq.next());
        out.extend(held(turn, &stored.entry, next.map(|next| &*next.entry)));
    });
}

fn tell_entry(stored: &StoredEntry, out: &mut Vec<Event>) {
    out.push(Event::Entry { seq: stored.seq, at_ms: stored.at_ms, entry: stored.entry.clone() });
}

/// That nothing goes on before a person answers, where this entry left it so.
fn held(turn: Option<&Turn>, entry: &Entry, next: Option<&Entry>) -> Option<Event> {
    let turn = turn.filter(|turn| turn.is_held_since(entry, next))?;
    Some(Event::TurnHeld { turn_id: turn.id(), waiting: waiting(turn) })
}

/// The calls that wait for people.
fn waiting(turn: &Turn) -> Vec<CallId> {
    let asking = turn.questions().map(|question| question.call.id);
    let mut waiting: Vec<CallId> = turn.waiting().map(|(call, _)| call.id).chain(asking).collect();
    waiting.sort_unstable();
    waiting.dedup();
    waiting
}

/// The tokens of a turn up to the entry at `last`.
fn usage_of(journal: &Journal, turn: TurnId, last: Seq) -> Usage {
    let so_far = journal.turn_entries(turn).take_while(|stored| stored.seq <= last);
    so_far.fold(Usage::default(), |sum, stored| match &*stored.entry {
        Entry::Assistant(message) => sum.plus(message.usage),
        Entry::Control(Control::Compacted(compacted)) => sum.plus(compacted.usage),
        Entry::Sampled(sampled) => sum.plus(sampled.usage()),
        _ => sum,
    })
}

/// Tells what an entry means; `turn` is the newest turn as it stood once the entry was taken. Of `journal` only what was there by then
/// is looked at.
fn tell(journal: &Journal, turn: Option<&Turn>, stored: &StoredEntry, out: &mut Vec<Event>) {
    match &*stored.entry {
        Entry::User(_) => {
            if let Some(turn) = turn.filter(|turn| turn.id().0 == stored.seq) {
                out.push(Event::TurnStarted { turn_id: turn.id(), model: turn.settings().model.clone() });
            }
        }
        Entry::Assistant(message) => tell_assistant(stored, message, out),
        Entry::Decision(decision) => out.push(Event::ToolApprovalDecided {
            call_id: decision.call,
            decision: decision.verdict,
            rule: match &decision.by {
                DecidedBy::Policy { rule } => Some(rule.clone()),
                DecidedBy::Person => None,
            },
            arguments: decision.arguments.clone(),
            reason: decision.reason.clone(),
        }),
        Entry::Question(question) => out.push(Event::ToolApprovalRequested {
            call_id: question.call,
            approval_id: turn
                .and_then(|turn| turn.call(question.call))
                .map_or(ApprovalId { call: question.call, number: 1 }, |call| call.approval()),
            reason: question.reason.as_str(),
            rule: question.rule.clone(),
        }),
        Entry::Elicited(elicited) => {
            let next = turn.map_or(0, |turn| turn.next_question(elicited.call).index);
            let first = next.saturating_sub(u32::try_from(elicited.asks.len()).unwrap_or(u32::MAX));
            out.extend((first..).zip(&elicited.asks).map(|(index, ask)| elicitation(elicited, index, ask)));
        }
        Entry::Answered(answered) => out.push(Event::ElicitationAnswered {
            question_id: answered.question,
            call_id: answered.question.call,
            action: answered.action.as_str(),
            content: answered.content.clone(),
            by: answered.by.as_str(),
            reason: answered.reason.clone(),
        }),
        // How far it is, its source tells as progress.
        Entry::TaskAccepted(_) => {}
        Entry::Sampled(sampled) => out.push(Event::SamplingFinished {
            question_id: sampled.question,
            call_id: sampled.question.call,
            error: match &sampled.outcome {
                SamplingOutcome::Answered(_) => None,
                SamplingOutcome::Failed { failure, .. } => Some(failure.to_string()),
            },
            usage: sampled.usage(),
        }),
        Entry::Started(started) => out.push(Event::ToolStarted { call_id: started.call }),
        Entry::Result(result) => out.push(Event::ToolFinished {
            call_id: result.call,
            outcome: match result.outcome {
                Outcome::Success => "success",
                Outcome::Denied => "denied",
                Outcome::Error(kind) => kind.as_str(),
            },
            is_error: result.outcome.is_error(),
            content: result.content.clone(),
            structured_content: result.structured_content.clone(),
            duration_ms: result.duration_ms,
        }),
        Entry::Control(control) => tell_control(journal, turn, stored.seq, control, out),
    }
}

fn elicitation(elicited: &Elicited, index: u32, ask: &Elicitation) -> Event {
    let (mode, requested_schema, url, sampling) = match &ask.wants {
        Wants::Form { schema } => ("form", Some(schema.clone()), None, None),
        Wants::Url { url } => ("url", None, Some(url.clone()), None),
        Wants::Sampling { request } => ("sampling", None, None, Some(request.clone())),
    };
    let expires_at_ms = match &elicited.waits {
        Waits::Open { until_ms } => Some(*until_ms),
        Waits::Parked { .. } => None,
    };
    Event::ElicitationRequested {
        question_id: ElicitationId { call: elicited.call, index },
        call_id: elicited.call,
        server: elicited.source.clone(),
        mode,
        message: ask.message.clone(),
        requested_schema,
        url,
        sampling,
        holds_connection: expires_at_ms.is_some(),
        expires_at_ms,
    }
}

fn tell_assistant(stored: &StoredEntry, message: &AssistantMessage, out: &mut Vec<Event>) {
    let finish_reason = message.finish.reason.as_contract();
    out.push(Event::StepFinished { message_id: MessageId(stored.seq), finish_reason, usage: message.usage });
    out.extend(message.calls().zip(0_u32..).map(|(call, index)| Event::ToolInputReady {
        call_id: CallId { message: stored.seq, index },
        name: call.name.clone(),
        arguments: if call.arguments.trim().is_empty() { NO_ARGUMENTS.to_owned() } else { call.arguments.clone() },
    }));
}

fn tell_control(journal: &Journal, turn: Option<&Turn>, at: Seq, control: &Control, out: &mut Vec<Event>) {
    match control {
        Control::Suspended => {
            if let Some(turn) = turn {
                out.push(Event::TurnSuspended { turn_id: turn.id(), waiting: waiting(turn) });
            }
        }
        Control::Retried { .. } => {
            if let Some(turn) = turn {
                out.push(Event::TurnStarted { turn_id: turn.id(), model: turn.settings().model.clone() });
            }
        }
        Control::Ended { turn: ended, status } => {
            out.push(Event::Usage { usage: usage_of(journal, *ended, at) });
            let error = match status {
                TurnStatus::Failed { reason } => Some(TurnError::new(reason, turn.and_then(Turn::failure))),
                TurnStatus::Stopped { .. } | TurnStatus::Completed | TurnStatus::Cancelled | TurnStatus::StepLimit => None,
            };
            let (stop, stop_summary) = match status {
                TurnStatus::Stopped { reason, summary, .. } => (Some(reason.as_contract()), summary.clone()),
                TurnStatus::Completed | TurnStatus::Cancelled | TurnStatus::StepLimit | TurnStatus::Failed { .. } => {
                    (None, None)
                }
            };
            out.push(Event::TurnFinished { turn_id: *ended, status: status.as_contract(), stop, stop_summary, error });
        }
        Control::Nudged { call, .. } => {
            let name = turn.and_then(|turn| turn.call(*call)).map(|call| call.name.to_owned()).unwrap_or_default();
            let text = format!("the model repeats itself with the same result (`{name}`), and was told so");
            out.push(Event::Notice { level: "info", text });
        }
        Control::Compacted(compacted) => {
            let by = compacted.origin.as_ref().map_or_else(String::new, |origin| format!(", by `{}`", origin.model));
            let text = format!(
                "what was said up to here is shown to the model as a summary of {} characters{by}",
                compacted.summary.chars().count()
            );
            out.push(Event::Notice { level: "info", text });
        }
        Control::Uncompacted { .. } => {
            let text = "a summary was taken back; the model is shown again what it stood for".to_owned();
            out.push(Event::Notice { level: "info", text });
        }
        Control::Context(context) => {
            if !context.parts.is_empty() {
                out.push(Event::ContextGathered { message_id: context.message, parts: context.parts.clone() });
            }
            out.extend(context.notices.iter().map(|text| Event::Notice { level: "warning", text: text.clone() }));
        }
        Control::Failed(failure) => out.extend(turn.and_then(|turn| going_on(turn, failure))),
        Control::Claimed(_)
        | Control::Resumed { .. }
        | Control::Offered { .. }
        | Control::Found { .. }
        | Control::Settings { .. }
        | Control::CancelRequested { .. }
        | Control::Hidden { .. }
        | Control::Reserved(_)
        | Control::Settled { .. }
        | Control::Imported { .. } => {}
    }
}

/// What people should know of a failed model call after which the turn goes on.
fn going_on(turn: &Turn, failure: &ProviderFailure) -> Option<Event> {
    let what = match turn.step() {
        Step::CallModel { .. } => format!("going on with `{}`", turn.model()),
        Step::Compact => "a summary is put in the place of its beginning".to_owned(),
        Step::Nudge { .. } | Step::Calls(_) | Step::End(_) | Step::Park | Step::Done => return None,
    };
    let request = failure.request_id.as_ref().map(|id| format!(" (request {id})")).unwrap_or_default();
    Some(Event::Notice { level: "warning", text: format!("{failure}{request}; {what}") })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use turnwright_core::{
        AssistantBlock, AssistantMessage, Completion, Finish, FinishReason, Origin, Seq, StoredEntry, ToolCall, Usage,
    };

    use super::tell_assistant;
    use crate::Event;

    #[test]
    fn arguments_that_a_model_did_not_write_are_told_as_an_empty_object() {
        let call = |arguments: &str| {
            let (name, arguments) = ("lab__look".to_owned(), arguments.to_owned());
            AssistantBlock::Call(ToolCall { name, arguments, provider_id: None, native: None, recovered: false })
        };
        let message = AssistantMessage {
            origin: Origin { dialect: "test".to_owned(), provider: "test".to_owned(), model: "scripted".to_owned() },
            saw: Seq::FIRST,
            blocks: ["", " \n", "{\"at\": 1}", "no JSON"].map(call).into(),
            finish: Finish { reason: FinishReason::ToolCalls, raw: None },
            completion: Completion::Complete,
            usage: Usage::default(),
        };
        let entry = Arc::new(turnwright_core::Entry::Assistant(message.clone()));
        let mut events = Vec::new();
        tell_assistant(&StoredEntry { seq: Seq::FIRST.next(), at_ms: 0, entry }, &message, &mut events);
        let told = events.iter().filter_map(|event| match event {
            Event::ToolInputReady { arguments, .. } => Some(arguments.as_str()),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), ["{}", "{}", "{\"at\": 1}", "no JSON"]);
    }
}
