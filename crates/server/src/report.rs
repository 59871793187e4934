//! From a journal to the messages and turn reports of the API. Pure.

use turnwright_api as api;
use turnwright_core::policy::Policy;
use turnwright_core::{
    AssistantMessage, CallId, Completion, ContextKind, ContextPart, ContextPlace, Control, ConversationId, CutOffCause, Entry,
    Journal, MessageId, Outcome, ProviderFailure, Seq, StopReason, StoredEntry, Turn, TurnId, TurnStatus, Usage, text_of,
};
use turnwright_engine::{TurnError, always, questions_in};

use crate::arguments;
use crate::budgets::budget_stop;
use crate::rules::rule_text;
use crate::timestamp::timestamp;
use crate::waiting::waiting_question;

/// What came of `turn` so far; `None` where the journal holds no such turn. `policy` is that of the engine's configuration.
pub fn turn_report(journal: &Journal, conversation: &ConversationId, turn: TurnId, policy: &Policy) -> Option<api::TurnReport> {
    let first = journal.entry(turn.0)?;
    if !matches!(*first.entry, Entry::User(_)) {
        return None;
    }
    let facts = Facts::of(journal, turn);
    let newest = journal.turn().filter(|newest| newest.id() == turn);
    let status = word_of(facts.ended, newest);
    let waiting = newest.map_or_else(Vec::new, |newest| {
        let waiting = newest.waiting().map(|(call, question)| api::Call {
            id: call.id.to_string(),
            approval_id: Some(call.approval().to_string()),
            conversation_id: None,
            name: call.name.to_owned(),
            arguments: arguments::told(call.arguments).to_owned(),
            reason: question.reason.as_str().to_owned(),
            rule: question.rule.clone(),
            always: always(policy, &call, question.reason).as_ref().map(rule_text),
            question: None,
        });
        let questions = questions_in(conversation, journal).into_iter().map(waiting_question);
        waiting.chain(questions.map(|question| api::Call { conversation_id: None, ..question })).collect()
    });
    let (finish_reason, finish_reason_raw) = match (facts.failed_after, facts.last) {
        (true, _) => (Some("error"), None),
        (false, Some(last)) => (Some(last.finish.reason.as_contract()), last.finish.raw.clone()),
        (false, None) => (None, None),
    };
    Some(api::TurnReport {
        conversation_id: conversation.to_string(),
        turn_id: turn.to_string(),
        status: status.to_owned(),
        stop: facts.ended.and_then(stop).map(|(reason, _)| reason.as_contract().to_owned()),
        stop_summary: facts.ended.and_then(stop).and_then(|(_, summary)| summary.map(str::to_owned)),
        stop_budget: facts.ended.and_then(stop).and_then(|(reason, _)| budget_of(reason)),
        finish_reason: finish_reason.map(str::to_owned),
        finish_reason_raw,
        text: facts.last.map(AssistantMessage::text_and_media).unwrap_or_default(),
        refusal: facts.last.and_then(AssistantMessage::refusal),
        messages: messages_of(journal, journal.turn_entries(turn)).collect(),
        usage: usage(facts.usage),
        steps: facts.steps,
        waiting,
        error: facts.ended.and_then(|status| error(status, facts.failure)),
    })
}

/// All messages of a conversation that are not hidden, oldest first; results come in call order after their call.
pub fn messages(journal: &Journal) -> Vec<api::Message> {
    messages_of(journal, journal.entries().iter()).collect()
}

/// At most `limit` of the messages that come after the one named `cursor`, also where that is hidden, or from the first on;
/// `None` where there is no such message. What comes before and after is not looked at.
pub fn messages_after(journal: &Journal, cursor: Option<&str>, limit: usize) -> Option<Vec<api::Message>> {
    let Some(cursor) = cursor else {
        return Some(messages_of(journal, journal.entries().iter()).take(limit).collect());
    };
    let named = journal.entry(cursor.parse::<MessageId>().ok()?.0)?;
    // A result stands with the message that asked for it.
    let begin = match &*named.entry {
        Entry::User(_) | Entry::Assistant(_) => named.seq,
        Entry::Result(result) => result.call.message,
        Entry::Decision(_)
        | Entry::Question(_)
        | Entry::Started(_)
        | Entry::TaskAccepted(_)
        | Entry::Elicited(_)
        | Entry::Answered(_)
        | Entry::Sampled(_)
        | Entry::Control(_) => return None,
    };
    let together: Vec<_> = messages_of(journal, journal.entry(begin).into_iter()).collect();
    let skipped = together.iter().position(|message| message.id == cursor).map_or(0, |at| at.saturating_add(1));
    let rest = journal.entries().get(usize::try_from(begin.get()).ok()?..).unwrap_or_default();
    Some(together.into_iter().skip(skipped).chain(messages_of(journal, rest.iter())).take(limit).collect())
}

/// One message of a person or a model; `None` where there is none of this name, or it is hidden.
pub fn message(journal: &Journal, id: MessageId) -> Option<api::Message> {
    messages_of(journal, journal.entry(id.0).into_iter()).next()
}

/// The answer to what was said at `said` in this turn: the last one that saw it and nothing said later, else, where that one only
/// calls tools, the last of the turn that saw it. `None` where no answer has seen it.
pub fn answer_to(journal: &Journal, turn: TurnId, said: MessageId) -> Option<api::Message> {
    let entries = || journal.turn_entries(turn);
    let next = entries().find(|stored| stored.seq > said.0 && matches!(*stored.entry, Entry::User(_))).map(|next| next.seq);
    let answers = entries().filter_map(|stored| match &*stored.entry {
        Entry::Assistant(message) if message.saw >= said.0 && !journal.is_hidden(MessageId(stored.seq)) => {
            Some((stored, message))
        }
        _ => None,
    });
    let answers: Vec<_> = answers.collect();
    let its_own = answers.iter().rfind(|(_, message)| next.is_none_or(|next| message.saw < next));
    let its_own = its_own.filter(|(_, message)| message.calls().next().is_none());
    let (stored, _) = its_own.or(answers.last())?;
    message(journal, MessageId(stored.seq))
}

/// Tokens as the API tells them.
pub fn usage(usage: Usage) -> api::Usage {
    api::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        reasoning_tokens: usage.reasoning_tokens,
        cost_usd: usage.cost_usd,
    }
}

/// What the entries of a turn add up to.
#[derive(Debug, Default)]
struct Facts<'a> {
    /// The newest assistant message that is not hidden.
    last: Option<&'a AssistantMessage>,
    /// Whether a model call failed after it and left no message.
    failed_after: bool,
    failure: Option<&'a ProviderFailure>,
    ended: Option<&'a TurnStatus>,
    usage: Usage,
    steps: u32,
}

impl<'a> Facts<'a> {
    fn of(journal: &'a Journal, turn: TurnId) -> Self {
        let mut facts = Self::default();
        for stored in journal.turn_entries(turn) {
            match &*stored.entry {
                Entry::Assistant(message) => {
                    facts.steps = facts.steps.saturating_add(1);
                    facts.usage = facts.usage.plus(message.usage);
                    facts.failure = match &message.completion {
                        Completion::CutOff(CutOffCause::Provider(failure)) => Some(failure),
                        Completion::CutOff(CutOffCause::Cancelled) | Completion::Complete => None,
                    };
                    if !journal.is_hidden(MessageId(stored.seq)) {
                        facts.last = Some(message);
                        facts.failed_after = false;
                    }
                }
                Entry::Control(Control::Failed(failure)) => {
                    facts.failure = Some(failure);
                    facts.failed_after = true;
                }
                Entry::Control(Control::Compacted(compacted)) => facts.usage = facts.usage.plus(compacted.usage),
                Entry::Sampled(sampled) => facts.usage = facts.usage.plus(sampled.usage()),
                Entry::Control(Control::Retried { .. }) => {
                    facts.failure = None;
                    facts.failed_after = false;
                    facts.ended = None;
                }
                Entry::Control(Control::Ended { status, .. }) => facts.ended = Some(status),
                Entry::User(_)
                | Entry::Decision(_)
                | Entry::Question(_)
                | Entry::Started(_)
                | Entry::TaskAccepted(_)
                | Entry::Elicited(_)
                | Entry::Answered(_)
                | Entry::Result(_)
                | Entry::Control(
                    Control::Claimed(_)
                    | Control::Resumed { .. }
                    | Control::Offered { .. }
                    | Control::Found { .. }
                    | Control::Context(_)
                    | Control::Settings { .. }
                    | Control::CancelRequested { .. }
                    | Control::Suspended
                    | Control::Nudged { .. }
                    | Control::Uncompacted { .. }
                    | Control::Hidden { .. }
                    | Control::Reserved(_)
                    | Control::Settled { .. }
                    | Control::Imported { .. },
                ) => {}
            }
        }
        facts
    }
}

/// The newest turn and its status.
pub(crate) fn newest_turn(journal: &Journal) -> Option<api::TurnSummary> {
    let turn = journal.turn()?;
    let status = word_of(turn.ended(), Some(turn));
    Some(api::TurnSummary { id: turn.id().to_string(), status: status.to_owned() })
}

/// The status of `turn` in one word of the contract.
pub(crate) fn turn_status(journal: &Journal, turn: TurnId) -> &'static str {
    let newest = journal.turn().filter(|newest| newest.id() == turn);
    word_of(Facts::of(journal, turn).ended, newest)
}

/// The same of a turn that ended so, where it did; `newest` where it is the newest.
fn word_of(ended: Option<&TurnStatus>, newest: Option<&Turn>) -> &'static str {
    match (ended, newest) {
        (Some(status), _) => status.as_contract(),
        (None, Some(newest)) if newest.is_parked() => "suspended",
        (None, _) => "running",
    }
}

fn stop(status: &TurnStatus) -> Option<(StopReason, Option<&str>)> {
    match status {
        TurnStatus::Stopped { reason, summary } => Some((*reason, summary.as_deref())),
        TurnStatus::Completed | TurnStatus::Cancelled | TurnStatus::Failed { .. } | TurnStatus::StepLimit => None,
    }
}

/// Which budget stopped a turn.
fn budget_of(reason: StopReason) -> Option<api::BudgetStop> {
    match reason {
        StopReason::Budget(stop) => Some(budget_stop(&stop)),
        StopReason::Refused | StopReason::Loop => None,
    }
}

fn error(status: &TurnStatus, failure: Option<&ProviderFailure>) -> Option<api::TurnError> {
    let TurnStatus::Failed { reason } = status else { return None };
    let TurnError { kind, status, message, request_id } = TurnError::new(reason, failure);
    Some(api::TurnError { kind: kind.to_owned(), status, message, request_id })
}

/// What models were shown besides the message at `seq`: it was gathered before an answer saw the message.
fn context_of(journal: &Journal, seq: Seq) -> Option<Vec<api::ContextPart>> {
    let mut answers = 0;
    let mut parts = Vec::new();
    for stored in journal.entries().get(usize::try_from(seq.get()).ok()?..)? {
        match &*stored.entry {
            Entry::Control(Control::Context(context)) if context.message.0 == seq => {
                parts.extend(context.parts.iter().map(context_part));
            }
            // The first may have been on its way when the message came.
            Entry::Assistant(_) => answers += 1,
            _ => {}
        }
        if answers > 1 {
            break;
        }
    }
    (!parts.is_empty()).then_some(parts)
}

/// A part of what was gathered, as the API tells it.
pub(crate) fn context_part(part: &ContextPart) -> api::ContextPart {
    api::ContextPart {
        kind: match part.kind {
            ContextKind::Instructions => api::ContextKind::Instructions,
            ContextKind::Memory => api::ContextKind::Memory,
            ContextKind::Knowledge => api::ContextKind::Knowledge,
        },
        source: part.source.clone(),
        document: part.document.clone(),
        place: part.place.map(context_place),
        version: part.version.clone(),
    }
}

/// A place, as the API tells it.
pub(crate) fn context_place(place: ContextPlace) -> api::ContextPlace {
    match place {
        ContextPlace::Lines { first, last } => api::ContextPlace::Lines { first, last },
        ContextPlace::Pages { first, last } => api::ContextPlace::Pages { first, last },
    }
}

fn messages_of<'a>(journal: &'a Journal, entries: impl Iterator<Item = &'a StoredEntry>) -> impl Iterator<Item = api::Message> {
    entries.filter(|stored| !journal.is_hidden(MessageId(stored.seq))).flat_map(|stored| match &*stored.entry {
        Entry::User(message) => vec![api::Message {
            id: MessageId(stored.seq).to_string(),
            role: api::Role::User,
            content: Some(text_of(&message.content)),
            refusal: None,
            finish_reason: None,
            timestamp: timestamp(stored.at_ms),
            tool_calls: None,
            tool_call_id: None,
            name: None,
            is_error: None,
            error_type: None,
            changed_arguments: None,
            context: context_of(journal, stored.seq),
        }],
        Entry::Assistant(message) => assistant(journal, stored, message),
        // Results stand after the call that they answer.
        Entry::Result(_)
        | Entry::Decision(_)
        | Entry::Question(_)
        | Entry::Started(_)
        | Entry::TaskAccepted(_)
        | Entry::Elicited(_)
        | Entry::Answered(_)
        | Entry::Sampled(_)
        | Entry::Control(_) => Vec::new(),
    })
}

/// A message of a model and the results of its calls.
fn assistant(journal: &Journal, stored: &StoredEntry, message: &AssistantMessage) -> Vec<api::Message> {
    let mut messages = Vec::new();
    let calls: Vec<_> =
        message.calls().zip(0_u32..).map(|(call, index)| (CallId { message: stored.seq, index }, call)).collect();
    let tool_calls = calls.iter().map(|(id, call)| api::ToolCall {
        id: id.to_string(),
        kind: api::ToolCallType::Function,
        function: api::Function { name: call.name.clone(), arguments: arguments::told(&call.arguments).to_owned() },
    });
    let content = Some(message.text_and_media()).filter(|text| !text.is_empty());
    messages.push(api::Message {
        id: MessageId(stored.seq).to_string(),
        role: api::Role::Assistant,
        content,
        refusal: message.refusal(),
        finish_reason: Some(message.finish.reason.as_contract().to_owned()),
        timestamp: timestamp(stored.at_ms),
        tool_calls: if calls.is_empty() { None } else { Some(tool_calls.collect()) },
        tool_call_id: None,
        name: None,
        is_error: None,
        error_type: None,
        changed_arguments: None,
        context: None,
    });
    for (id, call) in calls {
        let Some((result_entry, result)) = result_of(journal, id) else { continue };
        messages.push(api::Message {
            id: MessageId(result_entry.seq).to_string(),
            role: api::Role::Tool,
            content: Some(text_of(&result.content)),
            refusal: None,
            finish_reason: None,
            timestamp: timestamp(result_entry.at_ms),
            tool_calls: None,
            tool_call_id: Some(id.to_string()),
            name: Some(call.name.clone()),
            is_error: Some(result.outcome.is_error()),
            error_type: error_type(result.outcome).map(str::to_owned),
            changed_arguments: changed_arguments(journal, id, result_entry.seq).map(str::to_owned),
            context: None,
        });
    }
    messages
}

/// How a call failed, in the words of `tools call`.
fn error_type(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Success => None,
        Outcome::Denied => Some("denied"),
        Outcome::Error(kind) => Some(kind.as_str()),
    }
}

/// The arguments that a person put in the place of a call's before its result at `seq`.
fn changed_arguments(journal: &Journal, call: CallId, seq: Seq) -> Option<&str> {
    let place = |seq: Seq| usize::try_from(seq.get()).ok();
    let between = journal.entries().get(place(call.message)?..place(seq)?)?;
    between.iter().rev().find_map(|stored| match &*stored.entry {
        Entry::Decision(decision) if decision.call == call => decision.changed_arguments(),
        _ => None,
    })
}

fn result_of(journal: &Journal, call: CallId) -> Option<(&StoredEntry, &turnwright_core::ToolResult)> {
    let after = usize::try_from(call.message.get()).ok()?;
    journal.entries().get(after..)?.iter().find_map(|stored| match &*stored.entry {
        Entry::Result(result) if result.call == call => Some((stored, result)),
        _ => None,
    })
}
