//! The servers of a host, and their resources as two tools for models: one lists them, one reads one.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use turnwright_core::{ContentBlock, Declared, EmbeddedResource, ToolErrorKind, UserId};
use turnwright_engine::{
    CallContext, CallLimits, SourceCall, SourceState, SourceTool, ToolError, ToolFace, ToolOutput, ToolSource,
};

use super::items::Shelf;
use crate::McpServer;
use crate::list::capped_to;

/// The source's name, the first half of its tools' names.
const NAME: &str = "resources";
/// How long a turn waits for what servers offer besides tools, where that is not known yet.
const SETTLES: Duration = Duration::from_secs(5);
/// Entries that are listed at once.
const PAGE: usize = 200;
/// Bytes of a description that a list shows.
const SHOWN_DESCRIPTION: usize = 200;

/// Offers `resources__list` and `resources__read` where some server has resources, and nothing where none has.
#[derive(Debug)]
pub struct ResourceSource {
    servers: Mutex<Vec<Weak<McpServer>>>,
    tools: Arc<[SourceTool]>,
    none: Arc<[SourceTool]>,
}

impl Default for ResourceSource {
    fn default() -> Self {
        Self { servers: Mutex::default(), tools: Arc::new([list_tool(), read_tool()]), none: Arc::new([]) }
    }
}

impl ResourceSource {
    /// Offers the resources of this server too, for as long as there is one.
    pub fn add(&self, server: &Arc<McpServer>) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|known| known.strong_count() > 0);
        servers.push(Arc::downgrade(server));
    }

    /// The server of this name.
    pub fn named(&self, name: &str) -> Option<Arc<McpServer>> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        // Of two the newer one: the other is on its way out.
        servers.iter().rev().filter_map(Weak::upgrade).find(|server| server.config().name == name)
    }

    fn servers(&self) -> Vec<Arc<McpServer>> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.iter().filter_map(Weak::upgrade).filter(|server| server.config().enabled).collect()
    }

    /// The servers that have resources, as far as that is known.
    fn known(&self) -> Vec<(Arc<McpServer>, Arc<Shelf>)> {
        let with_shelf = |server: Arc<McpServer>| Some((server.shared().shelving.known()?, server));
        let known = self.servers().into_iter().filter_map(with_shelf).map(|(shelf, server)| (server, shelf));
        known.filter(|(_, shelf)| shelf.has_resources()).collect()
    }

    fn list(&self, user: &UserId, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let known = self.known_to(user);
        let only = arguments.get("server").and_then(Value::as_str);
        if let Some(only) = only {
            self.server(user, only)?;
        }
        let skip = arguments.get("skip").and_then(Value::as_u64).and_then(|skip| usize::try_from(skip).ok()).unwrap_or(0);
        let chosen = known.iter().filter(|(server, _)| only.is_none_or(|only| only == server.config().name));
        let lines: Vec<String> = chosen.flat_map(|(server, shelf)| lines(&server.config().name, shelf)).collect();
        let mut text = lines.iter().skip(skip).take(PAGE).fold(String::new(), |text, line| text + line + "\n");
        let shown = skip.saturating_add(PAGE);
        if let Some(left) = lines.len().checked_sub(shown).filter(|left| *left > 0) {
            let _ = write!(text, "[{left} more: list again with skip = {shown}]");
        }
        if text.is_empty() {
            text.push_str("[there are none]");
        }
        Ok(ToolOutput::text(text))
    }

    async fn read(&self, user: &UserId, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        let contents = self.server(user, text("server"))?.read_resource(text("uri")).await?;
        let mut output = ToolOutput { content: contents.into_iter().map(shown).collect(), ..ToolOutput::default() };
        if output.content.is_empty() {
            output.content.push(ContentBlock::text("[the resource is empty]"));
        }
        Ok(output)
    }

    /// Those of them that are everybody's, and the user's own.
    fn known_to(&self, user: &UserId) -> Vec<(Arc<McpServer>, Arc<Shelf>)> {
        self.known().into_iter().filter(|(server, _)| is_for(server, user)).collect()
    }

    fn server(&self, user: &UserId, name: &str) -> Result<Arc<McpServer>, ToolError> {
        self.servers().into_iter().find(|server| server.config().name == name && is_for(server, user)).ok_or_else(|| {
            let names: Vec<String> =
                self.known_to(user).iter().map(|(server, _)| format!("`{}`", server.config().name)).collect();
            let text = format!("There is no server `{name}`. Those with resources are {}.", names.join(", "));
            ToolError::new(ToolErrorKind::NotFound, text)
        })
    }
}

fn is_for(server: &McpServer, user: &UserId) -> bool {
    server.config().owner.as_ref().is_none_or(|owner| owner == user)
}

#[async_trait]
impl ToolSource for ResourceSource {
    fn name(&self) -> &str {
        NAME
    }

    fn state(&self) -> SourceState {
        if self.servers().iter().any(|server| is_late(server)) { SourceState::Starting } else { SourceState::Ready }
    }

    fn tools(&self) -> Arc<[SourceTool]> {
        Arc::clone(if self.known().is_empty() { &self.none } else { &self.tools })
    }

    /// It is ready once the servers are, which are told by themselves.
    fn wait_in_words(&self) -> Option<String> {
        None
    }

    async fn settled(&self) {
        settled(&self.servers()).await;
    }

    fn is_awaited_by(&self, user: &UserId) -> bool {
        self.servers().iter().any(|server| is_for(server, user) && is_late(server))
    }

    async fn settled_for(&self, user: &UserId) {
        let mut servers = self.servers();
        servers.retain(|server| is_for(server, user));
        settled(&servers).await;
    }

    async fn call(&self, call: SourceCall, context: CallContext) -> Result<ToolOutput, ToolError> {
        let SourceCall { tool, arguments, .. } = call;
        match tool.as_str() {
            "list" => self.list(&context.user, &arguments),
            "read" => tokio::select! {
                biased;
                output = self.read(&context.user, &arguments) => output,
                () = context.cancel.cancelled() => {
                    Err(ToolError::new(ToolErrorKind::Cancelled, "The reading was cancelled."))
                }
            },
            other => Err(ToolError::new(ToolErrorKind::NotFound, format!("There is no tool `{other}` of `{NAME}`."))),
        }
    }

    fn limits(&self, _tool: &str) -> CallLimits {
        // Each server's own limit comes first.
        CallLimits { idle: Duration::from_mins(10), total: Duration::from_mins(10) }
    }

    async fn stop(&self) {}
}

/// Waits until it is known what each of these servers has.
async fn settled(servers: &[Arc<McpServer>]) {
    // One that is not started is not started for this.
    let known = servers.iter().filter(|server| is_late(server)).map(|server| async move {
        server.settled().await;
        if server.state() == SourceState::Ready {
            // Whoever does not list them in time has none in this turn.
            let _ = tokio::time::timeout(SETTLES, server.shelf()).await;
        }
    });
    futures_util::future::join_all(known).await;
}

/// Whether a server runs whose resources are not known yet.
fn is_late(server: &McpServer) -> bool {
    server.shared().shelving.known().is_none() && (server.is_awaited() || server.state() == SourceState::Ready)
}

/// A line for each resource and template.
fn lines(server: &str, shelf: &Shelf) -> Vec<String> {
    let line = |uri: &str, name: &str, mime_type: Option<&str>, description: Option<&str>| {
        let mut line = format!("{server} {uri}");
        if name != uri {
            let _ = write!(line, " \"{name}\"");
        }
        if let Some(mime_type) = mime_type {
            let _ = write!(line, " ({mime_type})");
        }
        if let Some(description) = description {
            let words: Vec<&str> = description.split_whitespace().collect();
            let _ = write!(line, ": {}", capped_to(words.join(" "), SHOWN_DESCRIPTION));
        }
        line
    };
    let resources = shelf
        .resources
        .iter()
        .map(|resource| line(&resource.uri, &resource.name, resource.mime_type.as_deref(), resource.description.as_deref()));
    let templates = shelf.templates.iter().map(|template| {
        let line = line(&template.uri_template, &template.name, template.mime_type.as_deref(), template.description.as_deref());
        format!("{line} [template: fill in what is in braces]")
    });
    resources.chain(templates).collect()
}

/// A resource's content as the kind of content that it is.
fn shown(resource: EmbeddedResource) -> ContentBlock {
    match resource {
        EmbeddedResource { mime_type: Some(mime_type), blob: Some(data), text: None, .. }
            if mime_type.starts_with("image/") =>
        {
            ContentBlock::Image { data, mime_type }
        }
        resource => ContentBlock::Resource { resource },
    }
}

fn list_tool() -> SourceTool {
    tool(
        "list",
        "Lists the resources that MCP servers have: documents, records and other things that can be read, each with its server and \
         address. An address with braces is a template.",
        json!({"type": "object", "properties": {
            "server": {"type": "string", "description": "Only those of this server."},
            "skip": {"type": "integer", "minimum": 0, "description": "How many to leave out at the beginning."},
        }, "additionalProperties": false}),
    )
}

fn read_tool() -> SourceTool {
    tool(
        "read",
        "Reads a resource of an MCP server.",
        json!({"type": "object", "properties": {
            "server": {"type": "string", "description": "The server that has it."},
            "uri": {"type": "string", "description": "Its address."},
        }, "required": ["server", "uri"], "additionalProperties": false}),
    )
}

fn tool(name: &str, description: &str, input_schema: Value) -> SourceTool {
    SourceTool {
        name: name.to_owned(),
        title: None,
        description: description.to_owned(),
        input_schema,
        annotations: None,
        declared: Declared { read_only: true, ..Declared::default() },
        face: Arc::new(ToolFace::default()),
    }
}
