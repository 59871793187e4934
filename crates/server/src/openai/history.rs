//! What a request says: the conversation as its client has it, with what is new at its end. Pure.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use turnwright_core::{ContentBlock, Control, EmbeddedResource, Entry, Journal, MessageId, TurnStatus, text_of};
use turnwright_engine::artifacts::is_artifact_id;
use turnwright_engine::qualified;
use turnwright_host::import;

use super::clients;
use super::foreign;
use super::ids;
use super::known::Fingerprint;
use crate::error::ApiError;

/// One thing that was said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    /// What the model is told before the conversation.
    System(String),
    /// A person's message.
    User(Vec<ContentBlock>),
    /// A model's message, with its calls.
    Answer { text: String, calls: Vec<Called> },
    /// What a tool of the client's gave.
    Result { call: String, content: Vec<ContentBlock> },
    /// A person's decision about a call that waits, by its place in the request.
    Approval { at: usize, request: String, is_approved: bool, reason: Option<String> },
    /// An item of an answer of ours, by its place in the request and its name.
    Reference { at: usize, id: String },
    /// Of our own making, sent back.
    Echo,
}

/// A call that an answer makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) id: String,
    /// As they are written; empty where there are none.
    pub(crate) arguments: String,
}

impl Called {
    /// Of the form that Chat Completions and AG-UI have for one; nothing where it has no name.
    pub(crate) fn read(call: &Value) -> Option<Self> {
        let made = call.get("function").or_else(|| call.get("custom")).unwrap_or(call);
        let arguments = match made.get("arguments").or_else(|| made.get("input")) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        Some(Self { id: call.get("id")?.as_str()?.to_owned(), arguments })
    }
}

/// One thing that was said, and the messages of Chat Completions that say it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) said: Said,
    pub(crate) messages: Messages,
}

impl Item {
    /// Whether there is anything in it to be taken over: not in what a model thought elsewhere.
    pub(crate) fn says_something(&self) -> bool {
        match &self.messages {
            Messages::Written(_) => true,
            Messages::Made(messages) => !messages.is_empty(),
        }
    }
}

/// Messages of Chat Completions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Messages {
    /// One, as the client wrote it.
    Written(String),
    /// What is said in another form.
    Made(Vec<Value>),
}

/// What a request says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct History {
    /// What the model is told before the conversation.
    pub(crate) system: Option<String>,
    /// What it is told besides, for this answer alone.
    pub(crate) instructions: Option<String>,
    /// Up to the newest answer.
    pub(crate) before: Vec<Item>,
    /// What came since.
    pub(crate) fresh: Vec<Item>,
    /// The place of each of those in the request.
    pub(crate) places: Vec<usize>,
    /// The first result, by its place in the request, whose call no answer before it holds.
    pub(crate) lone: Option<(usize, String)>,
}

impl History {
    /// Sorts what was said.
    pub(crate) fn of(items: Vec<Item>) -> Self {
        let mut history = Self::default();
        let mut system = Vec::new();
        history.lone = lone(&items);
        for (at, item) in items.into_iter().enumerate() {
            match item.said {
                Said::System(text) => system.push(text),
                Said::Answer { .. } | Said::Reference { .. } => {
                    history.before.append(&mut history.fresh);
                    history.before.push(item);
                    history.places.clear();
                }
                Said::User(_) | Said::Result { .. } | Said::Approval { .. } | Said::Echo => {
                    history.fresh.push(item);
                    history.places.push(at);
                }
            }
        }
        history.system = (!system.is_empty()).then(|| system.join("\n\n"));
        history
    }

    /// All that people say at the end.
    pub(crate) fn users(&self) -> Vec<ContentBlock> {
        let said = self.fresh.iter().skip(self.first_user()).filter_map(|item| match &item.said {
            Said::User(content) => Some(content.clone()),
            Said::System(_)
            | Said::Answer { .. }
            | Said::Result { .. }
            | Said::Approval { .. }
            | Said::Reference { .. }
            | Said::Echo => None,
        });
        said.flatten().collect()
    }

    /// Where a part of that stands in the request, of Chat Completions.
    pub(crate) fn place_of(&self, mut part: usize) -> Option<String> {
        for (item, at) in self.fresh.iter().zip(&self.places).skip(self.first_user()) {
            let Said::User(content) = &item.said else { continue };
            if part < content.len() {
                return Some(format!("messages[{at}].content[{part}]"));
            }
            part = part.saturating_sub(content.len());
        }
        None
    }

    /// What comes before that.
    pub(crate) fn before_users(&self) -> impl Iterator<Item = &Item> {
        self.before.iter().chain(self.fresh.iter().take(self.first_user()))
    }

    /// The same, to be changed.
    pub(crate) fn before_users_mut(&mut self) -> impl Iterator<Item = &mut Item> {
        let first = self.first_user();
        self.before.iter_mut().chain(self.fresh.iter_mut().take(first))
    }

    /// How many blocks each of those messages has.
    pub(crate) fn user_lengths(&self) -> Vec<usize> {
        let said = self.fresh.iter().skip(self.first_user()).map(|item| match &item.said {
            Said::User(content) => content.len(),
            _ => 0,
        });
        said.collect()
    }

    fn first_user(&self) -> usize {
        let is_user = |item: &Item| matches!(item.said, Said::User(_));
        self.fresh.iter().rposition(|item| !is_user(item)).map_or(0, |at| at.saturating_add(1))
    }

    /// What people decided since the newest answer, each with its place in the request.
    pub(crate) fn approvals(&self) -> impl Iterator<Item = (usize, &str, bool, Option<&str>)> {
        self.fresh.iter().filter_map(|item| match &item.said {
            Said::Approval { at, request, is_approved, reason } => {
                Some((*at, request.as_str(), *is_approved, reason.as_deref()))
            }
            Said::System(_)
            | Said::User(_)
            | Said::Answer { .. }
            | Said::Result { .. }
            | Said::Reference { .. }
            | Said::Echo => None,
        })
    }

    /// What tools of the client's gave since the newest answer.
    pub(crate) fn results(&self) -> impl Iterator<Item = (&str, &[ContentBlock])> {
        self.fresh.iter().filter_map(|item| match &item.said {
            Said::Result { call, content } => Some((call.as_str(), content.as_slice())),
            Said::System(_)
            | Said::User(_)
            | Said::Answer { .. }
            | Said::Approval { .. }
            | Said::Reference { .. }
            | Said::Echo => None,
        })
    }
}

/// How many of these blocks, which are messages of these `lengths`, were said before and have no answer, so that clients say them again
/// with what they say next: they are the newest of `unanswered`, which has the oldest first. The last message is always new.
pub(crate) fn said_again(said: &[ContentBlock], lengths: &[usize], unanswered: &[&[ContentBlock]]) -> usize {
    // Several messages may be stored as one.
    let there: Vec<&ContentBlock> = unanswered.iter().copied().flatten().collect();
    let blocks = |count: usize| lengths.iter().take(count).sum::<usize>();
    let is_it = |again: &usize| {
        let newest = there.len().checked_sub(*again).and_then(|from| there.get(from..));
        newest.zip(said.get(..*again)).is_some_and(|(newest, again)| again.iter().eq(newest.iter().copied()))
    };
    (1..lengths.len()).rev().map(blocks).find(is_it).unwrap_or_default()
}

/// What people said since a turn was completed last, the oldest first: who has no answer may say it again, also where a part of one
/// was told.
pub(crate) fn unanswered(journal: &Journal) -> Vec<&[ContentBlock]> {
    let since = journal.entries().iter().rev().take_while(|stored| !completes(&stored.entry));
    let mut said: Vec<&[ContentBlock]> = since
        .filter_map(|stored| match &*stored.entry {
            Entry::User(message) if !journal.is_hidden(MessageId(stored.seq)) => Some(message.content.as_slice()),
            _ => None,
        })
        .collect();
    said.reverse();
    said
}

/// What people said last, at most so many messages, the oldest first: whoever has none of the answers may say it again.
pub(crate) fn said_last(journal: &Journal, most: usize) -> Vec<&[ContentBlock]> {
    let said = journal.entries().iter().rev().filter_map(|stored| match &*stored.entry {
        Entry::User(message) if !journal.is_hidden(MessageId(stored.seq)) => Some(message.content.as_slice()),
        _ => None,
    });
    let mut said: Vec<&[ContentBlock]> = said.take(most).collect();
    said.reverse();
    said
}

/// Whether an entry says that a turn was completed.
pub(crate) fn completes(entry: &Entry) -> bool {
    matches!(entry, Entry::Control(Control::Ended { status: TurnStatus::Completed, .. }))
}

fn lone(items: &[Item]) -> Option<(usize, String)> {
    let mut called: HashSet<&str> = HashSet::new();
    items.iter().enumerate().find_map(|(at, item)| match &item.said {
        Said::Answer { calls, .. } => {
            called.extend(calls.iter().map(|call| call.id.as_str()));
            None
        }
        Said::Result { call, .. } => (!called.contains(call.as_str())).then(|| (at, call.clone())),
        Said::System(_) | Said::User(_) | Said::Approval { .. } | Said::Reference { .. } | Said::Echo => None,
    })
}

/// Adds things that were said to a fingerprint. Answers that follow one another are one, as whoever told them as one marks it.
pub(crate) fn mark(fingerprint: &mut Fingerprint, items: &[Item]) {
    let mut answer: Option<(Vec<&str>, Vec<&str>)> = None;
    for item in items {
        match &item.said {
            Said::Answer { text, calls } => {
                let (texts, all) = answer.get_or_insert_default();
                texts.extend(Some(text.trim()).filter(|text| !text.is_empty()));
                all.extend(calls.iter().map(|call| call.id.as_str()));
                arguments_elsewhere(item).for_each(|arguments| fingerprint.named(arguments));
                continue;
            }
            Said::System(_) | Said::Echo => continue,
            Said::User(_) | Said::Result { .. } | Said::Approval { .. } | Said::Reference { .. } => {
                mark_answer(fingerprint, answer.take());
            }
        }
        match &item.said {
            Said::User(content) => {
                fingerprint.user(&text_of(content));
                content.iter().filter_map(bytes_of).for_each(|bytes| fingerprint.attached(bytes));
            }
            Said::Result { call, content } => {
                fingerprint.result(call, &text_of(content));
                content.iter().filter_map(bytes_of).for_each(|bytes| fingerprint.attached(bytes));
            }
            Said::Approval { request: id, .. } | Said::Reference { id, .. } => fingerprint.named(id),
            Said::System(_) | Said::Answer { .. } | Said::Echo => {}
        }
    }
    mark_answer(fingerprint, answer);
}

fn mark_answer(fingerprint: &mut Fingerprint, answer: Option<(Vec<&str>, Vec<&str>)>) {
    if let Some((texts, calls)) = answer {
        fingerprint.answer(&texts.join("\n\n"), calls.into_iter());
    }
}

/// The arguments of the calls of an answer, where it was given elsewhere: the names of our own are each of one call, what others are
/// called may be called so again.
pub(crate) fn arguments_elsewhere(item: &Item) -> impl Iterator<Item = &str> {
    let calls = match &item.said {
        Said::Answer { calls, .. } if calls.iter().any(|call| ids::read_call(&call.id).is_none()) => calls.as_slice(),
        _ => &[],
    };
    calls.iter().map(|call| call.arguments.as_str()).filter(|arguments| !arguments.is_empty())
}

/// What a block holds that its text does not tell.
fn bytes_of(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Image { data, .. } | ContentBlock::Audio { data, .. } => Some(data),
        ContentBlock::Resource { resource } => resource.blob.as_deref(),
        ContentBlock::ResourceLink { uri, .. } => Some(uri),
        ContentBlock::Text { .. } => None,
    }
}

/// The messages of a chat completion.
///
/// # Errors
/// 400, with the message that is wrong.
pub(crate) fn messages(messages: &[&RawValue]) -> Result<Vec<Item>, ApiError> {
    messages.iter().enumerate().map(|(at, message)| self::message(at, message)).collect()
}

/// What of a message says what it is. The rest is read where it is taken over.
#[derive(Debug, Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_call_id: Option<&'a RawValue>,
}

/// A text; nothing where it is something else.
fn raw_text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let raw = raw?.get();
    match raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(raw).ok().map(Cow::Owned),
    }
}

/// Calls, but for those without a name.
fn raw_calls(raw: Option<&RawValue>) -> Vec<Called> {
    let calls: Vec<Value> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    calls.iter().filter_map(Called::read).collect()
}

/// The `content` of a message. Most are one text, which is read without a value of it.
enum Content<'a> {
    Text(Cow<'a, str>),
    Other(Value),
}

impl<'a> Content<'a> {
    fn read(raw: Option<&'a RawValue>) -> serde_json::Result<Self> {
        match (raw_text(raw), raw) {
            (Some(text), _) => Ok(Self::Text(text)),
            (None, Some(raw)) => serde_json::from_str(raw.get()).map(Self::Other),
            (None, None) => Ok(Self::Other(Value::Null)),
        }
    }

    fn blocks(self, place: impl Fn() -> String) -> Result<Vec<ContentBlock>, ApiError> {
        match self {
            Self::Text(text) if text.is_empty() => Ok(Vec::new()),
            Self::Text(text) => Ok(vec![ContentBlock::text(text)]),
            Self::Other(value) => blocks(&place(), &value),
        }
    }

    fn plain_text(self) -> String {
        match self {
            Self::Text(text) => text.into_owned(),
            Self::Other(value) => plain_text(&value),
        }
    }
}

fn message(at: usize, message: &RawValue) -> Result<Item, ApiError> {
    let place = || format!("messages[{at}]");
    let wrong = |what: String| ApiError::invalid(format!("`{}` {what}", place())).about(place());
    let no_message = |error: serde_json::Error| wrong(format!("is no message: {error}"));
    let wire: WireMessage<'_> = serde_json::from_str(message.get()).map_err(no_message)?;
    let content = Content::read(wire.content).map_err(no_message)?;
    let said = match raw_text(wire.role).as_deref() {
        Some("system" | "developer") => Said::System(text_of(&content.blocks(place)?)),
        Some("user") => Said::User(content.blocks(place)?),
        Some("assistant") => Said::Answer { text: content.plain_text(), calls: raw_calls(wire.tool_calls) },
        Some("tool") => {
            let call = raw_text(wire.tool_call_id).filter(|id| !id.is_empty());
            let call = call.ok_or_else(|| wrong("has no `tool_call_id`".to_owned()))?.into_owned();
            Said::Result { call, content: content.blocks(place)? }
        }
        Some("function") => Said::Echo,
        Some(role) => {
            return Err(wrong(format!("has the role `{role}`; system, developer, user, assistant and tool are known")));
        }
        None => return Err(wrong("has no `role`".to_owned())),
    };
    Ok(Item { said, messages: Messages::Written(message.get().to_owned()) })
}

/// The text of an answer that is sent back.
fn plain_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter(|part| part.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("text")))
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// A text, or parts in the forms of Chat Completions and Responses.
///
/// # Errors
/// 400, where a part is not known or holds no bytes.
pub(crate) fn blocks(place: &str, content: &Value) -> Result<Vec<ContentBlock>, ApiError> {
    match content {
        Value::String(text) if text.is_empty() => Ok(Vec::new()),
        Value::String(text) => Ok(vec![ContentBlock::text(text)]),
        Value::Null => Ok(Vec::new()),
        Value::Array(parts) => {
            let places = (0..parts.len()).map(|at| format!("{place}.content[{at}]"));
            parts.iter().zip(places).map(|(part, place)| block(&place, part)).collect()
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            let what = format!("`{place}.content` must be a text or a list of parts");
            Err(ApiError::invalid(what).about(format!("{place}.content")))
        }
    }
}

fn block(place: &str, part: &Value) -> Result<ContentBlock, ApiError> {
    let block = as_sent(place, part)?;
    block.shown().map_err(|error| ApiError::invalid(format!("`{place}`: {error}")).about(place))
}

fn as_sent(place: &str, part: &Value) -> Result<ContentBlock, ApiError> {
    let wrong = |what: &str| ApiError::invalid(format!("`{place}` {what}")).about(place);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match part.get("type").and_then(Value::as_str) {
        Some("text" | "input_text" | "output_text") => {
            text(part, "text").map(ContentBlock::text).ok_or_else(|| wrong("has no `text`"))
        }
        Some("refusal") => Ok(ContentBlock::text(text(part, "refusal").unwrap_or_default())),
        Some("image_url" | "input_image") => {
            if let Some(id) = text(part, "file_id") {
                return link(&id).ok_or_else(|| no_file(&format!("{place}.file_id"), &id));
            }
            let url = part.get("image_url").and_then(|url| url.as_str().or_else(|| url.get("url")?.as_str()));
            let (mime_type, data) = url.and_then(bytes_in).ok_or_else(|| {
                wrong("holds no image: send it as a `data:` URL with base64, since addresses are not fetched here")
            })?;
            Ok(ContentBlock::Image { data, mime_type })
        }
        Some("input_audio") => {
            let audio = part.get("input_audio").unwrap_or(part);
            let data = text(audio, "data").ok_or_else(|| wrong("has no `data`"))?;
            Ok(ContentBlock::Audio { data, mime_type: format!("audio/{}", text(audio, "format").unwrap_or("wav".to_owned())) })
        }
        Some("file" | "input_file") => {
            let inner = part.get("file");
            let file = inner.unwrap_or(part);
            if let Some(id) = text(file, "file_id") {
                let inner = if inner.is_some() { ".file" } else { "" };
                return link(&id).ok_or_else(|| no_file(&format!("{place}{inner}.file_id"), &id));
            }
            let name = text(file, "filename").unwrap_or_else(|| "file".to_owned());
            let (mime_type, blob) = text(file, "file_data").as_deref().and_then(bytes_in).ok_or_else(|| {
                wrong("holds no file: send it as `file_data`, a `data:` URL with base64, or as the `file_id` that POST /api/v1/artifacts gave")
            })?;
            let uri = format!("file:///{name}");
            let resource = EmbeddedResource { uri, mime_type: Some(mime_type), text: None, blob: Some(blob) };
            Ok(ContentBlock::Resource { resource })
        }
        Some(kind) => Err(wrong(&format!("is of type `{kind}`, which is not known here"))),
        None => Err(wrong("has no `type`")),
    }
}

fn no_file(place: &str, id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    let what =
        format!("`{place}` is `{id}`, which names no file that was uploaded here; POST /api/v1/artifacts gives the names");
    ApiError::invalid(what).about(place)
}

/// A file that was uploaded here.
fn link(id: &str) -> Option<ContentBlock> {
    let (title, description, mime_type, size) = (None, None, None, None);
    let uri = format!("/api/v1/artifacts/{id}");
    is_artifact_id(id).then(|| ContentBlock::ResourceLink { uri, name: "file".to_owned(), title, description, mime_type, size })
}

/// The media type and the base64 of a `data:` URL.
fn bytes_in(url: &str) -> Option<(String, String)> {
    let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some((mime_type.to_owned(), data.to_owned()))
}

/// The items of a request of the Responses API.
///
/// # Errors
/// 400, with the item that is wrong.
pub(crate) fn items(input: &Value) -> Result<Vec<Item>, ApiError> {
    match input {
        Value::String(text) => {
            let messages = Messages::Made(vec![json!({"role": "user", "content": text})]);
            Ok(vec![Item { said: Said::User(vec![ContentBlock::text(text)]), messages }])
        }
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| self::item(at, item)).collect(),
        Value::Null => Err(ApiError::invalid("`input` is missing; say something").about("input")),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(ApiError::invalid("`input` must be a text or a list of items").about("input"))
        }
    }
}

fn item(at: usize, item: &Value) -> Result<Item, ApiError> {
    let place = format!("input[{at}]");
    let place = place.as_str();
    let wrong = |what: String| ApiError::invalid(format!("`{place}` {what}")).about(place);
    let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
    let needed = |key: &str| text(key).filter(|text| !text.is_empty()).ok_or_else(|| wrong(format!("has no `{key}`")));
    let kind = text("type").unwrap_or_else(|| "message".to_owned());
    let content = item.get("content").unwrap_or(&Value::Null);
    match kind.as_str() {
        "message" => {
            let role = needed("role")?;
            let said = match role.as_str() {
                "system" | "developer" => Said::System(text_of(&blocks(place, content)?)),
                "user" => Said::User(blocks(place, content)?),
                "assistant" => Said::Answer { text: plain_text(content), calls: Vec::new() },
                _ => return Err(wrong(format!("has the role `{role}`; system, developer, user and assistant are known"))),
            };
            Ok(Item { said, messages: Messages::Made(vec![json!({"role": role, "content": content})]) })
        }
        "function_call" | "custom_tool_call" => {
            let (id, name) = (needed("call_id")?, clients::model_name(text("namespace").as_deref(), &needed("name")?));
            let arguments = match kind.as_str() {
                "custom_tool_call" => clients::arguments_of(&text("input").unwrap_or_default()),
                _ => text("arguments").unwrap_or_default(),
            };
            let function = json!({"name": name, "arguments": arguments});
            let call = json!({"id": id, "type": "function", "function": function});
            let messages = Messages::Made(vec![json!({"role": "assistant", "content": null, "tool_calls": [call]})]);
            Ok(Item { said: Said::Answer { text: String::new(), calls: vec![Called { id, arguments }] }, messages })
        }
        "function_call_output" | "custom_tool_call_output" => {
            let call = needed("call_id")?;
            let output = item.get("output").filter(|output| !output.is_null());
            let output = output.ok_or_else(|| wrong("has no `output`".to_owned()))?;
            let messages = Messages::Made(vec![json!({"role": "tool", "tool_call_id": call, "content": output})]);
            Ok(Item { said: Said::Result { call, content: blocks(place, output)? }, messages })
        }
        "mcp_approval_response" => {
            let is_approved =
                item.get("approve").and_then(Value::as_bool).ok_or_else(|| wrong("has no `approve`".to_owned()))?;
            let said = Said::Approval { at, request: needed("approval_request_id")?, is_approved, reason: text("reason") };
            Ok(Item { said, messages: Messages::Made(Vec::new()) })
        }
        "item_reference" => Ok(Item { said: Said::Reference { at, id: needed("id")? }, messages: Messages::Made(Vec::new()) }),
        "mcp_call" => Ok(Item { said: Said::Echo, messages: Messages::Made(ran(at, item)) }),
        kind => foreign::item(at, kind, item).ok_or_else(|| wrong(format!("is of type `{kind}`, which is not known here"))),
    }
}

/// A call that a server of tools ran, and what came of it.
fn ran(at: usize, item: &Value) -> Vec<Value> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let id = text("id").map_or_else(|| format!("mcp_{at}"), str::to_owned);
    let name = match (text("server_label"), text("name").unwrap_or("unknown")) {
        (Some(server), tool) => qualified(server, tool),
        (None, tool) => tool.to_owned(),
    };
    let function = json!({"name": name, "arguments": text("arguments").unwrap_or_default()});
    let call = json!({"id": id, "type": "function", "function": function});
    let output = match item.get("error").filter(|error| !error.is_null()) {
        None => text("output").map(str::to_owned),
        Some(error) => {
            let said = error.get("content").map(plain_text).filter(|said| !said.is_empty());
            let said = said.or_else(|| error.as_str().or_else(|| error.get("message")?.as_str()).map(str::to_owned));
            Some(import::failed_result(said.unwrap_or_else(|| error.to_string())))
        }
    };
    let result = output.map(|output| json!({"role": "tool", "tool_call_id": id, "content": output}));
    [json!({"role": "assistant", "content": null, "tool_calls": [call]})].into_iter().chain(result).collect()
}
