//! A response as its request chose it, and which part of which turn a response is. Pure.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use turnwright_api::openai::{Extras, InputTokens, OutputTokens, ResponsesUsage, WireResponse};
use turnwright_core::{
    CallId, ContentBlock, Control, ConversationId, DecidedBy, Entry, Journal, MessageId, OutputFormat, QuestionReason, Seq,
    StoredEntry, ToolChoice, ToolDefinition, ToolResult, TurnId, TurnSettings, TurnStatus, Usage, text_of,
};

use crate::arguments;
use crate::offered::offered_in;
use crate::openai::apart::Apart;
use crate::openai::clients;
use crate::openai::ids;
use crate::openai::track::{Call, Part};

/// What the names of responses begin with.
pub(crate) const PREFIX: &str = "resp_";

/// The response that a part is, before anything is known of its end.
pub(crate) fn object(conversation: &ConversationId, part: &Part, settings: &TurnSettings) -> WireResponse {
    let tools = settings.client_tools.iter().map(|tool| clients::told(tool));
    let format = match &settings.output {
        None => json!({"type": "text"}),
        Some(OutputFormat::JsonObject) => json!({"type": "json_object"}),
        Some(OutputFormat::Schema(output)) => {
            json!({"type": "json_schema", "name": output.name, "schema": output.schema, "strict": output.strict})
        }
    };
    WireResponse {
        id: ids::answer_id(PREFIX, conversation, part.after),
        object: "response".to_owned(),
        created_at: 0,
        completed_at: None,
        status: "in_progress".to_owned(),
        model: settings.model.to_string(),
        output: Vec::new(),
        error: None,
        incomplete_details: None,
        instructions: settings.system_prompt.clone(),
        metadata: Map::new(),
        parallel_tool_calls: settings.parallel_calls.unwrap_or(true),
        previous_response_id: None,
        conversation: json!({"id": conversation}),
        store: true,
        temperature: settings.temperature,
        top_p: None,
        tool_choice: choice(settings.tool_choice.as_ref()),
        tools: tools.collect(),
        truncation: "disabled".to_owned(),
        reasoning: json!({"effort": settings.reasoning_effort, "summary": null}),
        text: json!({"format": format}),
        background: false,
        max_output_tokens: settings.max_output_tokens,
        max_tool_calls: settings.max_tool_calls,
        usage: None,
        turnwright: Extras {
            conversation_id: conversation.to_string(),
            turn_id: part.turn.to_string(),
            tool_events: Vec::new(),
            is_stopping: false,
            stop: None,
            status: None,
        },
    }
}

/// Tokens as this API tells them.
pub(super) fn usage(usage: Usage) -> ResponsesUsage {
    let input_tokens = usage.input_tokens.unwrap_or(0);
    let output_tokens = usage.output_tokens.unwrap_or(0);
    ResponsesUsage {
        input_tokens,
        input_tokens_details: InputTokens {
            cached_tokens: usage.cached_input_tokens.unwrap_or(0),
            cache_write_tokens: usage.cache_write_tokens.unwrap_or(0),
        },
        output_tokens,
        output_tokens_details: OutputTokens { reasoning_tokens: usage.reasoning_tokens.unwrap_or(0) },
        total_tokens: input_tokens.saturating_add(output_tokens),
    }
}

fn choice(choice: Option<&ToolChoice>) -> Value {
    match choice {
        None | Some(ToolChoice::Auto) => json!("auto"),
        Some(ToolChoice::Required | ToolChoice::Tools(_)) => json!("required"),
        Some(ToolChoice::None) => json!("none"),
        Some(ToolChoice::Tool(name)) => json!({"type": "function", "name": name}),
    }
}

/// The part that comes after an entry; `None` where no response begins there.
pub(crate) fn part(journal: &Journal, after: Seq) -> Option<Part> {
    if let Entry::Control(Control::Hidden { .. }) = &*journal.entry(after)?.entry {
        // So ends a copy in which something is hidden; its last turn is taken up again.
        let next = journal.entry(after.next()).map(|stored| &*stored.entry);
        let Some(Entry::Control(Control::Retried { turn, .. })) = next else { return None };
        return Some(Part { turn: *turn, after, calls: Vec::new() });
    }
    let calls = match &*journal.entry(after)?.entry {
        Entry::Assistant(_) | Entry::Control(Control::Suspended) => calls_at(journal, after),
        Entry::User(_) | Entry::Control(Control::Ended { .. }) => Vec::new(),
        Entry::Elicited(_) | Entry::Question(_) | Entry::Result(_) if held(journal, after).first() == Some(&after) => {
            calls_at(journal, after)
        }
        Entry::Decision(_)
        | Entry::Question(_)
        | Entry::Started(_)
        | Entry::Elicited(_)
        | Entry::Answered(_)
        | Entry::TaskAccepted(_)
        | Entry::Sampled(_)
        | Entry::Result(_)
        | Entry::Control(_) => return None,
    };
    Some(Part { turn: turn_of(journal, after)?, after, calls })
}

/// The part that comes of what was given to these calls, or decided about them: it begins where the turn waited for that.
pub(crate) fn part_after(journal: &Journal, calls: &[CallId]) -> Option<Part> {
    let message = calls.iter().map(|call| call.message).max()?;
    let mut suspended = message;
    let mut waited = message;
    let held = held(journal, message);
    for stored in journal.entries().iter().skip_while(|stored| stored.seq <= message) {
        let is_given = match &*stored.entry {
            Entry::Result(result) => calls.contains(&result.call),
            Entry::Answered(answered) => calls.contains(&answered.question.call),
            // What a rule decides of itself, it decides before anybody is asked.
            Entry::Decision(decision) => {
                let is_answer = decision.by == DecidedBy::Person || suspended > message;
                is_answer && calls.contains(&decision.call)
            }
            Entry::Control(Control::Suspended) => {
                suspended = stored.seq;
                false
            }
            _ => false,
        };
        if is_given {
            waited = suspended;
        }
        if held.contains(&stored.seq) {
            suspended = stored.seq;
        }
    }
    part(journal, waited)
}

/// How a try of a turn failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failed {
    /// The entry that ends it.
    pub(crate) end: Seq,
    /// When, in milliseconds since 1970 UTC.
    pub(crate) at_ms: u64,
}

/// The part that tells what became of a part whose turn was taken up again after it had ended in it; and how that failed, where it
/// did and nothing came after it.
pub(crate) fn newest_try(journal: &Journal, part: &Part) -> (Part, Option<Failed>) {
    let mut newest = part.clone();
    let mut ended: Option<(Seq, bool, u64)> = None;
    let held = held(journal, part.after.next());
    let mut apart = journal.entry(part.after).map(|stored| Apart::of(part, &stored.entry));
    for stored in journal.entries().iter().skip_while(|stored| stored.seq <= part.after) {
        if let Some(apart) = &mut apart {
            apart.take(stored.seq, &stored.entry);
        }
        if apart.as_ref().is_some_and(Apart::is_over) {
            // What comes of the turn answers what somebody else said.
            return (newest, None);
        }
        match &*stored.entry {
            Entry::Control(Control::Ended { turn, status }) if *turn == part.turn => {
                ended = Some((stored.seq, matches!(status, TurnStatus::Failed { .. }), stored.at_ms));
            }
            Entry::Control(Control::Retried { turn, .. }) if *turn == part.turn => {
                if let Some((after, ..)) = ended.take() {
                    newest = Part { turn: *turn, after, calls: Vec::new() };
                }
            }
            // It waits there, or another turn begins.
            Entry::Control(Control::Suspended) if apart.as_ref().is_some_and(Apart::waits_on) => {}
            Entry::Control(Control::Suspended) if ended.is_none() => break,
            Entry::User(_) if ended.is_some() => break,
            _ if held.contains(&stored.seq) => break,
            _ => {}
        }
    }
    let is_last = journal.turn().is_some_and(|turn| turn.id() == part.turn && turn.ended().is_some());
    let failed = ended.filter(|(_, is_failed, _)| *is_failed && is_last);
    (newest, failed.map(|(end, _, at_ms)| Failed { end, at_ms }))
}

/// The entries from this one on since which a turn was held for a person, see [`turnwright_core::Turn::is_held_since`].
pub(crate) fn held(journal: &Journal, from: Seq) -> Vec<Seq> {
    let mut held = Vec::new();
    journal.look_back(Seq::new(from.get().saturating_sub(1)), |turn, stored| {
        let next = journal.entry(stored.seq.next()).map(|next| &*next.entry);
        if turn.is_some_and(|turn| turn.is_held_since(&stored.entry, next)) {
            held.push(stored.seq);
        }
    });
    held
}

/// Whether the turn waited for results of its client's where it stopped after the message at this place.
pub(crate) fn waited_for_client(journal: &Journal, message: Seq) -> bool {
    let mut after = journal.entries().iter().skip_while(|stored| stored.seq <= message);
    let suspended = after.find_map(|stored| match &*stored.entry {
        Entry::User(_) | Entry::Assistant(_) => Some(None),
        Entry::Control(Control::Suspended) => Some(Some(stored.seq)),
        _ => None,
    });
    suspended.flatten().is_some_and(|at| calls_at(journal, at).iter().any(is_clients))
}

/// The calls of the newest message at an entry, with what they wait for there.
pub(crate) fn calls_at(journal: &Journal, at: Seq) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let wait = |calls: &mut Vec<Call>, id: CallId, reason| {
        if let Some(call) = calls.iter_mut().find(|call| call.id == id) {
            call.waits = reason;
        }
    };
    let all = journal.entries();
    let from = all.iter().rposition(|stored| stored.seq <= at && matches!(&*stored.entry, Entry::Assistant(_)));
    for stored in all.iter().skip(from.unwrap_or(all.len())).take_while(|stored| stored.seq <= at) {
        match &*stored.entry {
            Entry::Assistant(message) => {
                let made = message.calls().zip(0_u32..).map(|(call, index)| Call {
                    id: CallId { message: stored.seq, index },
                    name: call.name.clone(),
                    arguments: arguments::told(&call.arguments).to_owned(),
                    changed: None,
                    waits: None,
                    decided: 0,
                });
                calls = made.collect();
            }
            Entry::Question(question) => wait(&mut calls, question.call, Some(question.reason)),
            Entry::Decision(decision) => {
                if let Some(call) = calls.iter_mut().find(|call| call.id == decision.call) {
                    call.take_decision(decision);
                }
            }
            Entry::Result(result) => wait(&mut calls, result.call, None),
            _ => {}
        }
    }
    calls
}

/// The turn that an entry belongs to.
pub(crate) fn turn_of(journal: &Journal, at: Seq) -> Option<TurnId> {
    let mut turn = None;
    for stored in journal.entries().iter().take_while(|stored| stored.seq <= at) {
        match &*stored.entry {
            Entry::User(_) => turn = turn.or(Some(TurnId(stored.seq))),
            Entry::Control(Control::Ended { .. }) if stored.seq < at => turn = None,
            Entry::Control(Control::Retried { turn: retried, .. }) => turn = Some(*retried),
            _ => {}
        }
    }
    turn
}

/// What was offered where a part begins; of the newest turn, what is offered there by now.
pub(crate) fn offered_to(journal: &Journal, part: &Part) -> Arc<[Arc<ToolDefinition>]> {
    offered_in(journal, part.turn, part.after)
}

/// What a turn began with, or goes on with since it was taken up again.
pub(crate) fn settings(journal: &Journal, turn: TurnId) -> Option<TurnSettings> {
    match journal.turn() {
        Some(newest) if newest.id() == turn => Some(newest.settings().clone()),
        Some(_) | None => match &*journal.entry(turn.0)?.entry {
            Entry::User(message) => Some(message.settings.clone()),
            _ => None,
        },
    }
}

/// The messages that a part holds: the one it answers, and the answers.
pub(crate) fn messages(journal: &Journal, part: &Part) -> Vec<MessageId> {
    let mut messages = Vec::new();
    let held = held(journal, part.after.next());
    let Some(first) = journal.entry(part.after) else { return messages };
    messages.extend(matches!(&*first.entry, Entry::User(_)).then_some(MessageId(part.after)));
    let mut apart = Apart::of(part, &first.entry);
    // An answer that was begun before is of it where people are asked about its calls: that is how the part ends.
    let mut before = None;
    for stored in journal.entries().iter().skip_while(|stored| stored.seq <= part.after) {
        apart.take(stored.seq, &stored.entry);
        if matches!(&*stored.entry, Entry::Assistant(_)) {
            before = Some(MessageId(stored.seq)).filter(|_| apart.is_before());
            messages.extend(Some(MessageId(stored.seq)).filter(|_| !apart.is_before()));
        }
        let waits = matches!(&*stored.entry, Entry::Control(Control::Suspended)) && !apart.waits_on();
        if waits || held.contains(&stored.seq) {
            messages.extend(before);
            break;
        }
        if apart.is_over() || matches!(&*stored.entry, Entry::Control(Control::Ended { .. })) {
            break;
        }
    }
    messages
}

/// What somebody said meanwhile, where its turn goes on behind it with an answer to that.
pub(crate) fn followed_by(journal: &Journal, part: &Part) -> Option<MessageId> {
    let mut apart = Apart::of(part, &journal.entry(part.after)?.entry);
    let since = journal.entries().iter().skip_while(|stored| stored.seq <= part.after);
    let mut since = since.take_while(|stored| !matches!(&*stored.entry, Entry::Control(Control::Ended { .. })));
    let is_over = since.any(|stored| {
        apart.take(stored.seq, &stored.entry);
        apart.is_over()
    });
    let shown = apart.answered().filter(|_| is_over)?;
    let is_it = |stored: &&StoredEntry| stored.seq > shown.max(part.after) && matches!(&*stored.entry, Entry::User(_));
    journal.entries().iter().find(is_it).map(|stored| MessageId(stored.seq))
}

/// Whether its turn has not gone on from where a part ends: the part is told yet, or what it ends with is waited for.
pub(crate) fn is_newest(journal: &Journal, part: &Part) -> bool {
    let Some(turn) = journal.turn().filter(|turn| turn.id() == part.turn) else { return false };
    if followed_by(journal, part).is_some() {
        return false;
    }
    let held = held(journal, part.after.next());
    let mut apart = journal.entry(part.after).map(|stored| Apart::of(part, &stored.entry));
    let is_end = |stored: &&StoredEntry| {
        if let Some(apart) = &mut apart {
            apart.take(stored.seq, &stored.entry);
        }
        match &*stored.entry {
            Entry::Control(Control::Suspended) => !apart.as_ref().is_some_and(Apart::waits_on),
            Entry::Control(Control::Ended { .. }) => true,
            _ => held.contains(&stored.seq),
        }
    };
    let mut ends = journal.entries().iter().skip_while(|stored| stored.seq <= part.after).filter(is_end);
    match (ends.next(), ends.next()) {
        (None, _) => true,
        (Some(_), Some(_)) => false,
        (Some(_), None) => turn.ended().is_some() || turn.is_suspended() || turn.is_held(),
    }
}

/// What a part answers: the message, or what was given to the calls that it goes on from; in its order.
pub(crate) fn input_items(journal: &Journal, conversation: &ConversationId, part: &Part) -> Vec<Value> {
    let output_item = |stored: &StoredEntry, result: &ToolResult| {
        let output = text_of(&result.content);
        let call = ids::call_id(conversation, result.call);
        json!({"id": format!("fco_{}", stored.seq), "type": "function_call_output", "call_id": call, "output": output,
               "status": "completed"})
    };
    let mut items: Vec<Value> =
        brought_with(journal, part).into_iter().map(|(stored, result)| output_item(stored, result)).collect();
    let held = held(journal, part.after.next());
    let shown = shown_to_answer(journal, part);
    for stored in journal.entries().iter().skip_while(|stored| stored.seq < part.after) {
        let id = |prefix: &str| format!("{prefix}_{}", stored.seq);
        match &*stored.entry {
            Entry::User(_) if journal.is_hidden(MessageId(stored.seq)) => {}
            // Somebody said it while the model answered.
            Entry::User(_) if stored.seq > part.after && shown.is_some_and(|shown| stored.seq > shown) => {}
            Entry::User(message) => {
                let content: Vec<Value> = message.content.iter().map(content_part).collect();
                items.push(
                    json!({"id": id("msg"), "type": "message", "role": "user", "status": "completed", "content": content}),
                );
            }
            Entry::Result(result) if part.calls.iter().any(|call| call.id == result.call && is_clients(call)) => {
                items.push(output_item(stored, result));
            }
            Entry::Decision(decision) if decision.by == DecidedBy::Person => {
                let Some(call) = part.calls.iter().find(|call| call.id == decision.call) else { continue };
                let approve = decision.verdict.lets_run();
                let request = ids::request_id(conversation, call.approval());
                items.push(json!({"id": id("mcpa"), "type": "mcp_approval_response", "approval_request_id": request,
                                  "approve": approve, "reason": decision.reason}));
            }
            Entry::Assistant(_) | Entry::Control(Control::Ended { .. } | Control::Suspended) if stored.seq > part.after => {
                break;
            }
            _ => {}
        }
        if held.contains(&stored.seq) {
            break;
        }
    }
    items
}

/// What the model was shown last of the first answer of a part; `None` where there is none yet.
fn shown_to_answer(journal: &Journal, part: &Part) -> Option<Seq> {
    let mut apart = Apart::of(part, &journal.entry(part.after)?.entry);
    let mut since = journal.entries().iter().skip_while(|stored| stored.seq <= part.after);
    since.find_map(|stored| {
        apart.take(stored.seq, &stored.entry);
        match &*stored.entry {
            Entry::Assistant(message) if !apart.is_before() => Some(message.saw),
            _ => None,
        }
    })
}

/// What the tool of a call is called.
pub(crate) fn name_of(journal: &Journal, call: CallId) -> Option<&str> {
    let Entry::Assistant(message) = &*journal.entry(call.message)?.entry else { return None };
    let call = message.calls().nth(usize::try_from(call.index).ok()?)?;
    Some(&call.name)
}

/// The results of client's tools that a turn was taken up again with: they are the last that was stored before it ended, but for how its
/// model was asked with them and failed.
fn brought_with<'a>(journal: &'a Journal, part: &Part) -> Vec<(&'a StoredEntry, &'a ToolResult)> {
    let settings = settings(journal, part.turn);
    let is_clients = |call: CallId| {
        let since = journal.entries().iter().skip_while(|stored| stored.seq <= call.message);
        let mut since = since.take_while(|stored| stored.seq <= part.after);
        let is_asked = since.any(|stored| {
            matches!(&*stored.entry, Entry::Question(asked) if asked.call == call && asked.reason == QuestionReason::ClientTool)
        });
        // A copy of a conversation has no questions.
        is_asked
            || name_of(journal, call)
                .is_some_and(|name| settings.as_ref().is_some_and(|settings| settings.client_tool(name).is_some()))
    };
    let is_hiding = |stored: &StoredEntry| matches!(&*stored.entry, Entry::Control(Control::Hidden { .. }));
    let before = journal.entries().iter().rev().skip_while(|stored| stored.seq > part.after || is_hiding(stored));
    let mut before = before.peekable();
    if before.next_if(|stored| matches!(&*stored.entry, Entry::Control(Control::Ended { .. }))).is_none() {
        return Vec::new();
    }
    let before = before.filter(|stored| !matches!(&*stored.entry, Entry::Control(_)));
    let results = before.map_while(|stored| match &*stored.entry {
        Entry::Result(result) => Some((stored, result)),
        _ => None,
    });
    let mut results: Vec<_> = results.filter(|(_, result)| is_clients(result.call)).collect();
    results.reverse();
    results
}

fn is_clients(call: &Call) -> bool {
    call.waits == Some(QuestionReason::ClientTool)
}

/// A part of a user's message in the form of this API.
fn content_part(block: &ContentBlock) -> Value {
    let url = |mime_type: &str, data: &str| format!("data:{mime_type};base64,{data}");
    match block {
        ContentBlock::Image { data, mime_type } => {
            json!({"type": "input_image", "image_url": url(mime_type, data), "detail": "auto"})
        }
        ContentBlock::Audio { data, mime_type } => {
            let format = mime_type.strip_prefix("audio/").unwrap_or(mime_type);
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
        ContentBlock::Resource { resource } => match &resource.blob {
            Some(blob) => {
                let mime_type = resource.mime_type.as_deref().unwrap_or("application/octet-stream");
                let name = resource.uri.rsplit('/').next().unwrap_or_default();
                json!({"type": "input_file", "filename": name, "file_data": url(mime_type, blob)})
            }
            None => json!({"type": "input_text", "text": block.as_text()}),
        },
        ContentBlock::Text { .. } | ContentBlock::ResourceLink { .. } => json!({"type": "input_text", "text": block.as_text()}),
    }
}
