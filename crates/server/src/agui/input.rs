//! What a request of AG-UI says. Pure.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use turnwright_core::{ContentBlock, EmbeddedResource, ToolDefinition};
use turnwright_host::import;
use utoipa::ToSchema;

use crate::agui::fold::Knows;
use crate::attached::shown_name;
use crate::error::ApiError;
use crate::openai::history::{Called, History, Item, Messages, Said};
use crate::openai::settings;

/// `RunAgentInput`. What is not named here is ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunInput {
    /// The conversation, begun where it is not there yet.
    #[schema(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    pub(crate) thread_id: String,
    /// What the page calls this run.
    pub(crate) run_id: String,
    /// The protocol that the page speaks; what came before 1.0 says none.
    #[serde(default)]
    pub(crate) protocol_version: Option<String>,
    /// What was said, the newest last.
    #[serde(default)]
    #[schema(value_type = Vec<Map<String, Value>>)]
    pub(crate) messages: Vec<Value>,
    /// Tools that the page runs.
    #[serde(default)]
    #[schema(value_type = Vec<PageTool>)]
    pub(crate) tools: Option<Vec<PageTool>>,
    /// What the page shows, for the model.
    #[serde(default)]
    #[schema(value_type = Vec<Context>)]
    pub(crate) context: Option<Vec<Context>>,
    /// `model` chooses one.
    #[serde(default)]
    pub(crate) forwarded_props: Option<Map<String, Value>>,
    /// Answers to all interrupts that are open.
    #[serde(default)]
    pub(crate) resume: Vec<Resume>,
}

/// A tool that the page runs.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct PageTool {
    /// 1 to 64 characters.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    name: String,
    /// What it does.
    #[serde(default)]
    description: Option<String>,
    /// The JSON Schema of its arguments.
    #[serde(default)]
    parameters: Option<Value>,
}

/// Something that the page knows.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = PageContext)]
pub(crate) struct Context {
    /// What it is.
    description: String,
    /// What it says.
    value: String,
}

/// The address that a video gets, which has none of its own.
pub(super) const VIDEO_URI: &str = "file:///video";

/// The answer to an interrupt.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resume {
    /// The interrupt.
    pub(crate) interrupt_id: String,
    pub(crate) status: Status,
    /// The answer.
    // As it was written: read, a number of more digits than fit would be another.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    payload: Option<Box<RawValue>>,
    /// What the page knows of it besides.
    #[serde(default)]
    pub(crate) metadata: Option<Value>,
}

impl Resume {
    /// The answer.
    pub(crate) fn payload(&self) -> Option<Value> {
        serde_json::from_str(self.payload.as_ref()?.get()).ok()
    }

    /// The arguments of a call as a person changed them, as they were written.
    pub(crate) fn edited_arguments(&self) -> Option<&str> {
        let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(self.payload.as_ref()?.get()).ok()?;
        fields.get("editedArgs").map(|arguments| arguments.get())
    }
}

/// What became of an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = InterruptStatus)]
pub(crate) enum Status {
    /// Somebody answered.
    Resolved,
    /// Nobody did.
    Cancelled,
}

/// What people said in a row, as the page has it.
#[derive(Debug, PartialEq)]
pub(crate) struct Spoken {
    /// What the page calls the last message of it.
    pub(crate) id: String,
    pub(crate) content: Vec<ContentBlock>,
    /// Its messages, each with what the page calls it.
    pub(crate) messages: Vec<(String, Vec<ContentBlock>)>,
}

impl Spoken {
    /// Its last message.
    pub(crate) fn last(&self) -> &[ContentBlock] {
        self.messages.last().map_or(&self.content, |(_, content)| content)
    }
}

/// The messages that the page has, by what it calls them.
#[derive(Debug)]
pub(crate) struct OnPage {
    pub(crate) spoken: Vec<Spoken>,
    /// What it calls that which each call gave.
    pub(crate) results: BTreeMap<String, String>,
}

impl RunInput {
    /// What the page knows of the protocol.
    pub(crate) fn knows(&self) -> Knows {
        if self.protocol_version.is_some() { Knows::All } else { Knows::NoNewOutcomes }
    }

    /// What the page knows, for the model; nothing where it knows nothing, and `None` where it does not say.
    pub(crate) fn context(&self) -> Option<String> {
        let known = self.context.as_ref()?;
        let lines: Vec<String> = known.iter().map(|known| format!("- {}: {}", known.description, known.value)).collect();
        Some(if lines.is_empty() { String::new() } else { format!("What the user's page shows:\n{}", lines.join("\n")) })
    }

    /// The tools that the page runs, of which there may be none; `None` where it does not say.
    pub(crate) fn tools(&self) -> Result<Option<Vec<Arc<ToolDefinition>>>, ApiError> {
        let Some(tools) = &self.tools else { return Ok(None) };
        let read = tools.iter().enumerate().map(|(at, tool)| {
            settings::tool(&format!("tools[{at}]"), &tool.name, tool.description.clone(), tool.parameters.clone())
        });
        let read: Vec<_> = read.collect::<Result<_, _>>()?;
        settings::named_once(&read)?;
        Ok(Some(read))
    }

    /// What people said, the newest last. What follows one another is said as one.
    pub(crate) fn spoken(&self) -> Result<Vec<Spoken>, ApiError> {
        let mut spoken: Vec<Spoken> = Vec::new();
        let mut goes_on = false;
        for (message, item) in self.messages.iter().zip(self.items()?) {
            match item.said {
                Said::User(content) => {
                    let id = message.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
                    if let Some(last) = spoken.last_mut().filter(|_| goes_on) {
                        last.id.clone_from(&id);
                        last.content.extend(content.iter().cloned());
                        last.messages.push((id, content));
                    } else {
                        let messages = vec![(id.clone(), content.clone())];
                        spoken.push(Spoken { id, content, messages });
                    }
                    goes_on = true;
                }
                Said::Answer { .. } | Said::Reference { .. } | Said::Echo => goes_on = false,
                // What a tool gave is no answer to what is said before it.
                Said::System(_) | Said::Result { .. } | Said::Approval { .. } | Said::Elsewhere { .. } | Said::Nothing => {}
            }
        }
        Ok(spoken)
    }

    /// What the page calls its messages.
    pub(crate) fn on_page(&self) -> Result<OnPage, ApiError> {
        let text = |message: &Value, key: &str| message.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let results = self.messages.iter().filter(|message| message.get("role").is_some_and(|role| role == "tool"));
        let results = results.filter_map(|message| Some((text(message, "toolCallId")?, text(message, "id")?)));
        Ok(OnPage { spoken: self.spoken()?, results: results.collect() })
    }

    /// What people said last, where the page has no answer to it.
    pub(crate) fn unanswered(&self) -> Result<Option<Spoken>, ApiError> {
        let is_said = History::of(self.items()?).has_users();
        Ok(self.spoken()?.pop().filter(|_| is_said))
    }

    /// The calls whose results come after the newest answer.
    pub(crate) fn results(&self) -> Result<Vec<String>, ApiError> {
        Ok(History::of(self.items()?).results().map(|gave| gave.call.to_owned()).collect())
    }

    /// What was said.
    pub(crate) fn items(&self) -> Result<Vec<Item>, ApiError> {
        self.messages.iter().enumerate().map(|(at, message)| item(&format!("messages[{at}]"), message)).collect()
    }
}

fn item(place: &str, message: &Value) -> Result<Item, ApiError> {
    let wrong = |what: String| ApiError::invalid(format!("`{place}` {what}"));
    let content = message.get("content").unwrap_or(&Value::Null);
    let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let role = text("role");
    match role.as_str() {
        "system" | "developer" => Ok(Item { said: Said::System(text("content")), messages: Messages::Made(Vec::new()) }),
        "user" => {
            let said = blocks(place, content)?;
            let parts = serde_json::to_value(said.iter().map(part).collect::<Vec<_>>()).unwrap_or_default();
            Ok(Item { said: Said::User(said), messages: Messages::Made(vec![json!({"role": "user", "content": parts})]) })
        }
        "assistant" => {
            let calls = message.get("toolCalls").cloned().unwrap_or_else(|| json!([]));
            let made = calls.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(Called::read).collect();
            let wire = json!({"role": "assistant", "content": content, "tool_calls": calls});
            Ok(Item { said: Said::Answer { text: text("content"), calls: made }, messages: Messages::Made(vec![wire]) })
        }
        "tool" => {
            let call = text("toolCallId");
            if call.is_empty() {
                return Err(wrong("has no `toolCallId`".to_owned()));
            }
            let mut gave = blocks(place, content)?;
            let error = text("error");
            let wire = if error.is_empty() { content.clone() } else { failed(content, &error) };
            if !error.is_empty() {
                gave.insert(0, ContentBlock::text(&error));
            }
            let wire = json!({"role": "tool", "tool_call_id": call, "content": wire});
            let said = Said::Result { call, content: gave, is_error: !error.is_empty() };
            Ok(Item { said, messages: Messages::Made(vec![wire]) })
        }
        "reasoning" => Ok(Item { said: Said::Echo, messages: Messages::Made(Vec::new()) }),
        "activity" => Ok(Item { said: Said::Nothing, messages: Messages::Made(Vec::new()) }),
        _ => Err(wrong(format!("has the role `{role}`, which is not known here"))),
    }
}

/// What a tool gave that failed with this error, in the form that histories are taken over in.
fn failed(content: &Value, error: &str) -> Value {
    let error = json!({"type": "text", "text": import::failed_result(error.to_owned())});
    let gave = match content {
        Value::Array(parts) => parts.clone(),
        Value::String(text) if !text.is_empty() => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    [error].into_iter().chain(gave).collect()
}

fn blocks(place: &str, content: &Value) -> Result<Vec<ContentBlock>, ApiError> {
    let Value::Array(parts) = content else {
        let text = content.as_str().filter(|text| !text.is_empty());
        return Ok(text.map(ContentBlock::text).into_iter().collect());
    };
    let read = parts.iter().enumerate().map(|(at, part)| {
        let wrong = |what: &str| ApiError::invalid(format!("`{place}.content[{at}]` {what}"));
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind == "text" {
            return Ok(ContentBlock::text(part.get("text").and_then(Value::as_str).unwrap_or_default()));
        }
        // Before 1.0 there was one form for all bytes, of which CopilotKit's clients still send some.
        let is_binary = kind == "binary";
        let source = if is_binary { Some(part) } else { part.get("source").filter(|source| is_data(source)) };
        let field = |key: &str| source.and_then(|source| source.get(key)?.as_str().map(str::to_owned));
        let bytes = field(if is_binary { "data" } else { "value" });
        let (Some(data), Some(mime_type)) = (bytes, field("mimeType")) else {
            return Err(wrong("holds no bytes: addresses are not fetched here, send a source of type `data`"));
        };
        let kind = if is_binary { kind_of(&mime_type) } else { kind };
        let block = match kind {
            "image" => ContentBlock::Image { data, mime_type },
            "audio" => ContentBlock::Audio { data, mime_type },
            "video" | "document" => {
                let named = field("filename").filter(|_| is_binary && kind != "video").map(|name| shown_name(&name));
                let uri = if kind == "video" {
                    VIDEO_URI.to_owned()
                } else {
                    format!("file:///{}", named.as_deref().unwrap_or(kind))
                };
                let resource = EmbeddedResource { uri, mime_type: Some(mime_type), text: None, blob: Some(data) };
                ContentBlock::Resource { resource }
            }
            _ => return Err(wrong("is of a type that is not known here")),
        };
        block.shown().map_err(|error| wrong(&format!("cannot be taken: {error}")))
    });
    read.collect()
}

fn is_data(source: &Value) -> bool {
    source.get("type").is_some_and(|kind| kind == "data")
}

/// The type of a part that holds bytes of this media type.
fn kind_of(mime_type: &str) -> &'static str {
    match mime_type.split('/').next() {
        Some("image") => "image",
        Some("audio") => "audio",
        Some("video") => "video",
        Some(_) | None => "document",
    }
}

/// A block in the form that histories are taken over in.
fn part(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Image { data, mime_type } => {
            json!({"type": "image_url", "image_url": {"url": format!("data:{mime_type};base64,{data}")}})
        }
        ContentBlock::Text { .. }
        | ContentBlock::Audio { .. }
        | ContentBlock::Resource { .. }
        | ContentBlock::ResourceLink { .. } => json!({"type": "text", "text": block.as_text()}),
    }
}
