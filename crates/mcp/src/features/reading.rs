//! Single things that are asked of a server: a resource's content, a prompt's messages, how a value may go on.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ErrorCode;
use serde_json::{Map, Value, json};
use turnwright_core::{ContentBlock, EmbeddedResource, ToolErrorKind};
use turnwright_engine::ToolError;

use super::asking::{NoAnswer, ask};
use super::items::Shelf;
use crate::agreed::Offer;
use crate::list::text;
use crate::secrets::hidden_in_error;
use crate::{McpServer, input, output};

/// How long a completion may take: somebody is typing.
const COMPLETION_LIMIT: Duration = Duration::from_secs(5);
/// Values of a completion that are taken.
const MAX_VALUES: usize = 100;
/// How often a request is made again since the server wants something first.
const MAX_ROUNDS: u32 = 10;
/// The code of older servers for a resource that is not there.
const RESOURCE_NOT_FOUND: ErrorCode = ErrorCode(-32002);

/// What a prompt came to.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessages {
    /// What it is for.
    pub description: Option<String>,
    /// What is to be said, in order.
    pub messages: Vec<SaidMessage>,
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct SaidMessage {
    /// Whose it is: `user` or `assistant`.
    pub role: String,
    /// What it says.
    pub content: ContentBlock,
}

/// What a value belongs to that is to be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionOf {
    /// An argument of the prompt with this name.
    Prompt(String),
    /// A variable of the template with this address.
    Template(String),
}

/// How a value may go on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completion {
    /// Whole values, at most 100.
    pub values: Vec<String>,
    /// Whether there are more.
    pub has_more: bool,
}

impl McpServer {
    /// What it offers besides tools. Listed once and kept; where it is not known, the server is started.
    ///
    /// # Errors
    /// As a call where the server is not there.
    pub async fn shelf(&self) -> Result<Arc<Shelf>, ToolError> {
        if let Some(shelf) = self.shared().shelving.known() {
            return Ok(shelf);
        }
        let _user = self.in_use();
        self.connection("resources/list").await?;
        let limit = self.config().start_limit;
        self.shared().shelving.listed(limit).await.ok_or_else(|| {
            let text = format!(
                "The MCP server `{}` did not list its resources and prompts within {} ms.",
                self.config().name,
                limit.as_millis()
            );
            ToolError::new(ToolErrorKind::Timeout, text)
        })
    }

    /// The content of a resource, which need not be listed.
    ///
    /// # Errors
    /// [`ToolErrorKind::NotFound`] where there is none, and as a call.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<EmbeddedResource>, ToolError> {
        let limit = self.config().limits.total;
        let answer = self.asked(Offer::Resources, "resources/read", json!({"uri": uri}), limit).await?;
        let Some(Value::Array(contents)) = answer.get("contents").cloned() else {
            return Err(self.unreadable("resources/read", "the answer has no array `contents`"));
        };
        let contents = contents.into_iter().map(|mut content| {
            if let Value::Object(content) = &mut content {
                content.entry("uri").or_insert_with(|| uri.into());
            }
            serde_json::from_value(content)
        });
        contents.collect::<Result<_, _>>().map_err(|error| self.unreadable("resources/read", &error.to_string()))
    }

    /// What a prompt comes to with these arguments.
    ///
    /// # Errors
    /// [`ToolErrorKind::InvalidArguments`] where the server does not take them, and as a call.
    pub async fn prompt(&self, name: &str, arguments: &Map<String, Value>) -> Result<PromptMessages, ToolError> {
        let params = json!({"name": name, "arguments": arguments});
        let mut answer = self.asked(Offer::Prompts, "prompts/get", params, self.config().limits.total).await?;
        let Some(Value::Array(messages)) = answer.get_mut("messages").map(Value::take) else {
            return Err(self.unreadable("prompts/get", "the answer has no array `messages`"));
        };
        let said = |mut message: Value| SaidMessage {
            role: message.get("role").and_then(Value::as_str).unwrap_or("user").to_owned(),
            content: output::block(message.get_mut("content").map(Value::take).unwrap_or_default()),
        };
        let description = answer.get_mut("description").map(Value::take);
        Ok(PromptMessages { description: text(description), messages: messages.into_iter().map(said).collect() })
    }

    /// How a value may go on. A server that completes nothing, or nothing of this, has no values; `others` are the values that
    /// other arguments have already.
    ///
    /// # Errors
    /// As a call.
    pub async fn complete(
        &self,
        of: &CompletionOf,
        argument: &str,
        value: &str,
        others: &Map<String, Value>,
    ) -> Result<Completion, ToolError> {
        let of = match of {
            CompletionOf::Prompt(name) => json!({"type": "ref/prompt", "name": name}),
            CompletionOf::Template(uri) => json!({"type": "ref/resource", "uri": uri}),
        };
        let mut params = json!({"ref": of, "argument": {"name": argument, "value": value}});
        if let (Value::Object(params), false) = (&mut params, others.is_empty()) {
            params.insert("context".to_owned(), json!({"arguments": others}));
        }
        let answer = match self.asked(Offer::Completions, "completion/complete", params, COMPLETION_LIMIT).await {
            Ok(answer) => answer,
            Err(error) if error.kind == ToolErrorKind::NotFound => return Ok(Completion::default()),
            Err(error) => return Err(error),
        };
        let values = answer.pointer("/completion/values").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_cut = values.len() > MAX_VALUES;
        Ok(Completion {
            values: values.into_iter().filter_map(|value| text(Some(value))).take(MAX_VALUES).collect(),
            has_more: is_cut || answer.pointer("/completion/hasMore") == Some(&Value::Bool(true)),
        })
    }

    /// The answer to a request that a server of this offer knows, or why there is none, without secrets.
    pub(crate) async fn asked(&self, offer: Offer, method: &str, params: Value, limit: Duration) -> Result<Value, ToolError> {
        let answered = self.answered(offer, method, params, limit).await;
        let secrets = self.shared().log.secrets();
        let mut answer = answered.map_err(|error| hidden_in_error(&secrets, error))?;
        secrets.hide_in_value(&mut answer);
        Ok(answer)
    }

    async fn answered(&self, offer: Offer, method: &str, params: Value, limit: Duration) -> Result<Value, ToolError> {
        let _user = self.in_use();
        let connection = self.connection(method).await?;
        let server = self.config().name.as_str();
        if !connection.agreed.offers(offer) {
            let text = format!("The MCP server `{server}` has no {}: `{method}` was not asked.", offer.as_str());
            return Err(ToolError::new(ToolErrorKind::NotFound, text));
        }
        let mut params = params;
        for _ in 0..MAX_ROUNDS {
            let asked = ask(&connection, method, params.clone(), limit).await;
            let answer = asked.map_err(|error| not_answered(server, method, &error))?;
            match answer.get("resultType").and_then(Value::as_str) {
                None | Some("complete") => return Ok(answer),
                Some("input_required") => {
                    let answer = answer.as_object().cloned().unwrap_or_default();
                    let given = input::wanted(answer, &self.config().granted).map_err(|why| self.unreadable(method, &why))?;
                    if given.asks.is_empty() && given.again.is_nothing() {
                        return Err(self.unreadable(method, "it asks for more input, which cannot be given here"));
                    }
                    if !given.asks.is_empty() {
                        return Err(self.unreadable(method, "it asks people for something, who cannot be asked here"));
                    }
                    given.again.add_to(&mut params);
                }
                Some(other) => {
                    return Err(self.unreadable(method, &format!("it goes on as `{other}`, which nobody here knows")));
                }
            }
        }
        Err(self.unreadable(method, &format!("it wanted something first {MAX_ROUNDS} times and still wants more")))
    }

    fn unreadable(&self, method: &str, reason: &str) -> ToolError {
        let text = format!("The answer of the MCP server `{}` to `{method}` cannot be used: {reason}.", self.config().name);
        ToolError::new(ToolErrorKind::ExecutionFailed, text)
    }
}

fn not_answered(server: &str, method: &str, error: &NoAnswer) -> ToolError {
    let (kind, verb) = match error {
        NoAnswer::TooLong(_) => (ToolErrorKind::Timeout, "failed"),
        NoAnswer::Lost(_) => (ToolErrorKind::Unavailable, "failed"),
        NoAnswer::Refused(error) => match error.code {
            RESOURCE_NOT_FOUND | ErrorCode::METHOD_NOT_FOUND => (ToolErrorKind::NotFound, "was refused"),
            // Of a resource that is not there in 2026-07-28.
            ErrorCode::INVALID_PARAMS if method == "resources/read" => (ToolErrorKind::NotFound, "was refused"),
            ErrorCode::INVALID_PARAMS => (ToolErrorKind::InvalidArguments, "was refused"),
            _ => (ToolErrorKind::ExecutionFailed, "failed"),
        },
    };
    let text = format!("`{method}` of the MCP server `{server}` {verb}: {}.", error.in_words(method));
    ToolError::new(kind, text)
}
