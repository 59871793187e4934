//! From engine events to what a client shows of a session. Pure.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    Content, ContentBlock as Block, ContentChunk, MessageId as MessageName, SessionUpdate, ToolCall, ToolCallContent,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use serde_json::Value;
use turnwright_core::{CallId, ContentBlock, Control, Entry, Journal, Media, MediaKind, MessageId, ToolDefinition};
use turnwright_engine::Event;

use super::before::text_before;
use super::changes;

/// How a turn came to rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rest {
    /// People must decide or answer.
    Waits,
    /// It is over, with this status, why it was stopped, and its error.
    Over { status: &'static str, stop: Option<&'static str>, finish_reason: &'static str, error: Option<String> },
}

/// How a turn comes to rest, from its events.
#[derive(Debug, Default)]
pub(super) struct Rests {
    finish_reason: &'static str,
}

impl Rests {
    /// How the turn came to rest with an event, where it did.
    pub(super) fn fold(&mut self, event: &Event) -> Option<Rest> {
        match event {
            Event::StepFinished { finish_reason, .. } => self.finish_reason = finish_reason,
            Event::TurnSuspended { .. } => return Some(Rest::Waits),
            Event::TurnFinished { status, stop, .. } => {
                let (stop, error) = (*stop, event.why_it_ended().map(str::to_owned));
                return Some(Rest::Over { status, stop, finish_reason: self.finish_reason, error });
            }
            _ => {}
        }
        None
    }
}

/// What is known of a session while its events are told.
#[derive(Debug, Default)]
pub(super) struct Updates {
    /// Where relative paths begin.
    folder: PathBuf,
    offered: Arc<[Arc<ToolDefinition>]>,
    calls: HashMap<CallId, (String, Value)>,
    /// The calls that run.
    running: BTreeSet<CallId>,
    /// The message that is told now, and how often it began anew.
    message: Option<(MessageId, u32)>,
    /// The messages that are not told, nor what came of their calls.
    hidden: BTreeSet<MessageId>,
}

impl Updates {
    /// With the tools that were offered before.
    pub(super) fn new(folder: &Path, offered: Arc<[Arc<ToolDefinition>]>) -> Self {
        Self { folder: folder.to_owned(), offered, ..Self::default() }
    }

    /// Of a whole conversation, from its beginning, without the messages that are hidden by now.
    pub(super) fn replaying(folder: &Path, journal: &Journal) -> Self {
        let all = journal.entries().iter().map(|stored| MessageId(stored.seq));
        let hidden = all.filter(|message| journal.is_hidden(*message)).collect();
        Self { folder: folder.to_owned(), hidden, ..Self::default() }
    }

    /// What an event means to the client.
    pub(super) fn fold(&mut self, event: &Event, out: &mut Vec<SessionUpdate>) {
        if self.told_with(event).is_some_and(|message| self.hidden.contains(&message)) {
            return;
        }
        match event {
            Event::Entry { entry, .. } => self.entry(entry, out),
            Event::StepStarted { message_id } => self.message = Some((*message_id, 0)),
            Event::StepReset => {
                if let Some((_, tries)) = &mut self.message {
                    *tries = tries.saturating_add(1);
                }
            }
            Event::TextDelta { text, .. } | Event::RefusalDelta { text, .. } => {
                out.push(SessionUpdate::AgentMessageChunk(self.chunk(text)));
            }
            Event::ReasoningDelta { text, .. } => out.push(SessionUpdate::AgentThoughtChunk(self.chunk(text))),
            Event::ToolInputReady { call_id, name, arguments } => {
                let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments.as_str()));
                out.push(SessionUpdate::ToolCall(self.call(*call_id, name, &input)));
                self.calls.insert(*call_id, (name.clone(), input));
            }
            Event::ToolStarted { call_id } => {
                self.running.insert(*call_id);
                out.push(changed(*call_id, ToolCallUpdateFields::new().status(ToolCallStatus::InProgress)));
            }
            Event::ToolProgress { call_id, message: Some(message), .. } => {
                let content = vec![ToolCallContent::Content(Content::new(Block::from(message.as_str())))];
                out.push(changed(*call_id, ToolCallUpdateFields::new().content(content)));
            }
            Event::ToolFinished { call_id, is_error, content, structured_content, .. } => {
                self.running.remove(call_id);
                let status = if *is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
                let mut shown: Vec<ToolCallContent> = self.diffs(*call_id, *is_error, structured_content.as_ref());
                shown.extend(content.iter().filter_map(block).map(|block| ToolCallContent::Content(Content::new(block))));
                let fields = ToolCallUpdateFields::new().status(status).content(shown).raw_output(structured_content.clone());
                out.push(changed(*call_id, fields));
            }
            // The answer has nothing of what was tried: the model did not come to one.
            Event::TurnFinished { status: "stopped", stop_summary: Some(summary), .. } => {
                out.push(SessionUpdate::AgentMessageChunk(self.chunk(summary)));
            }
            _ => {}
        }
    }

    /// The message without which an event is not told.
    fn told_with(&self, event: &Event) -> Option<MessageId> {
        match event {
            Event::Entry { seq, entry, .. } if matches!(**entry, Entry::User(_)) => Some(MessageId(*seq)),
            Event::TextDelta { .. } | Event::RefusalDelta { .. } | Event::ReasoningDelta { .. } => {
                self.message.map(|(message, _)| message)
            }
            Event::ToolInputReady { call_id, .. }
            | Event::ToolStarted { call_id }
            | Event::ToolProgress { call_id, .. }
            | Event::ToolFinished { call_id, .. } => Some(MessageId(call_id.message)),
            Event::TurnFinished { turn_id, .. } => Some(MessageId(turn_id.0)),
            _ => None,
        }
    }

    fn entry(&mut self, entry: &Entry, out: &mut Vec<SessionUpdate>) {
        if let Entry::Control(Control::Offered { definitions }) = entry {
            self.offered = definitions.as_slice().into();
        }
        if let Entry::Control(Control::Found { definitions }) = entry {
            self.offered = self.offered.iter().chain(definitions).cloned().collect();
        }
        if matches!(entry, Entry::Control(Control::CancelRequested { .. })) {
            // Who stopped it may be elsewhere, and tools may take their time.
            out.extend(self.running.iter().map(|call| {
                let told = ToolCallContent::Content(Content::new(Block::from("The turn was stopped; this was told to end.")));
                changed(*call, ToolCallUpdateFields::new().content(vec![told]))
            }));
        }
        if let Entry::Assistant(message) = entry {
            out.extend(message.media().map(|media| SessionUpdate::AgentMessageChunk(self.media(&media))));
        }
        if let Entry::User(message) = entry {
            out.extend(
                message.content.iter().filter_map(block).map(|block| SessionUpdate::UserMessageChunk(ContentChunk::new(block))),
            );
        }
    }

    fn chunk(&self, text: &str) -> ContentChunk {
        self.chunk_of(Block::from(text))
    }

    /// A picture or a sound; of another kind, that it is there.
    fn media(&self, media: &Media<'_>) -> ContentChunk {
        let (data, mime_type) = (media.data.to_string(), media.mime_type.to_string());
        let told = match media.kind() {
            MediaKind::Image => block(&ContentBlock::Image { data, mime_type }),
            MediaKind::Audio => block(&ContentBlock::Audio { data, mime_type }),
            MediaKind::Other => None,
        };
        self.chunk_of(told.unwrap_or_else(|| Block::from(media.to_string().as_str())))
    }

    fn chunk_of(&self, block: Block) -> ContentChunk {
        let chunk = ContentChunk::new(block);
        match self.message {
            // One that began anew is another message, since what was shown of the first cannot be taken back.
            Some((message, 0)) => chunk.message_id(MessageName::new(message.to_string())),
            Some((message, tries)) => chunk.message_id(MessageName::new(format!("{message}_{tries}"))),
            None => chunk,
        }
    }

    fn call(&self, id: CallId, name: &str, input: &Value) -> ToolCall {
        let definition = self.offered.iter().find(|tool| tool.name == name);
        let title = title(definition.map(|tool| &**tool), name, input);
        let locations: Vec<ToolCallLocation> =
            changes::path(&self.folder, input).into_iter().map(ToolCallLocation::new).collect();
        let content = changes::told(&self.folder, name, input).map(ToolCallContent::Diff).into_iter().collect::<Vec<_>>();
        ToolCall::new(id.to_string(), title)
            .kind(kind(name, definition.map(|tool| &**tool)))
            .locations(locations)
            .content(content)
            .raw_input(input.clone())
    }

    /// What a call changed. What a file held that was written, its tool tells only now.
    fn diffs(&self, id: CallId, is_error: bool, result: Option<&Value>) -> Vec<ToolCallContent> {
        let made = self.calls.get(&id).filter(|_| !is_error);
        let diff = made.and_then(|(name, input)| {
            let diff = changes::told(&self.folder, name, input)?;
            let lines = result.filter(|_| name == "filesystem__write").and_then(|result| result.get("diff")?.as_str());
            let before = lines.and_then(|lines| text_before(&diff.new_text, lines));
            Some(if before.is_some() { diff.old_text(before) } else { diff })
        });
        diff.map(ToolCallContent::Diff).into_iter().collect()
    }
}

fn changed(id: CallId, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_string(), fields))
}

/// A block as the protocol writes it: both have MCP's shapes.
fn block(block: &ContentBlock) -> Option<Block> {
    serde_json::to_value(block).and_then(serde_json::from_value).ok()
}

/// What a tool does, in the protocol's words: of our own by name, of others by what their operator declares.
fn kind(name: &str, definition: Option<&ToolDefinition>) -> ToolKind {
    match name {
        "filesystem__read" | "filesystem__stat" | "filesystem__list" => ToolKind::Read,
        "filesystem__search" => ToolKind::Search,
        "filesystem__write" | "filesystem__edit" => ToolKind::Edit,
        "filesystem__delete" => ToolKind::Delete,
        "filesystem__move" => ToolKind::Move,
        "command__run" | "command__start" | "command__input" => ToolKind::Execute,
        _ if definition.is_some_and(|tool| tool.declared.read_only) => ToolKind::Read,
        _ => ToolKind::Other,
    }
}

/// What a call is called where it is shown: what its tool is called, and what it is about.
pub(super) fn title(definition: Option<&ToolDefinition>, name: &str, input: &Value) -> String {
    let title = definition.and_then(|tool| tool.title.clone()).unwrap_or_else(|| name.to_owned());
    let subject = ["path", "command", "url", "query"].iter().find_map(|key| input.get(key)?.as_str());
    subject.map_or(title.clone(), |subject| format!("{title}: {}", shortened(subject)))
}

fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(MOST).collect();
    if cut.len() < text.trim_end().len() { format!("{cut}…") } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_file_away_is_shown_as_that() {
        let kinds =
            ["filesystem__delete", "filesystem__move", "filesystem__write", "of_others__delete"].map(|name| kind(name, None));
        assert_eq!(kinds, [ToolKind::Delete, ToolKind::Move, ToolKind::Edit, ToolKind::Other]);
    }
}
