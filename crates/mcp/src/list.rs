//! The list of a server's tools, read so that one bad tool spoils itself alone.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rmcp::{Peer, RoleClient};
use serde_json::{Map, Value, json};
use tokio_util::task::TaskTracker;
use turnwright_core::Declared;
use turnwright_engine::{SourceTool, Visibility, shown_name};

use crate::pending::Pending;
use crate::promise::Promises;
use crate::weight::{MAX_LIST_BYTES, weight};
use crate::{McpError, ServerConfig, face};

/// Pages and tools that are taken from one server.
const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 10_000;
/// How many of those that are not offered are named.
const MAX_COMPLAINTS: usize = 1_000;
/// The longest name that a tool may have, in bytes.
const MAX_NAME_BYTES: usize = 1024;
/// How deep a tool may be nested: nobody means more, and what keeps and reads it goes as deep.
const MAX_DEPTH: usize = 64;
/// Bytes of a description that are kept.
const MAX_DESCRIPTION_BYTES: usize = 16 << 10;

/// A tool that is not offered, or not quite as its server wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The tool's name at the server; empty where it has none.
    pub tool: String,
    /// What is wrong with it.
    pub reason: String,
}

/// What a server offers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<SourceTool>,
    pub(crate) quarantined: Vec<Quarantined>,
    /// What is not right with tools that are offered.
    pub(crate) remarks: Vec<Quarantined>,
    /// The names of those that are called as tasks (2025-11-25).
    pub(crate) tasks: HashSet<String>,
    /// The tools as they came.
    pub(crate) raw: Vec<Value>,
    /// How long the server says that the list stays true (2026-07-28, `ttlMs`), where it says so.
    pub(crate) fresh_for: Option<Duration>,
}

/// Lists are not asked for more often for being out of date.
const LEAST_FRESH: Duration = Duration::from_mins(1);

/// How long a list with this `ttlMs` is taken for true. Of one that is out of date at once only a notice tells more.
fn fresh_for(ttl_ms: Option<&Value>) -> Option<Duration> {
    let ttl = ttl_ms?.as_u64().filter(|ttl_ms| *ttl_ms > 0).map(Duration::from_millis)?;
    Some(ttl.max(LEAST_FRESH))
}

impl Listing {
    /// What a server sent at another time, read as if it came now.
    pub(crate) fn read(config: &ServerConfig, tools: &[Value]) -> Self {
        let mut reader = ListReader::new(config);
        reader.page(json!({ "tools": tools }));
        reader.listing
    }
}

/// Asks for all pages. What is left of a request for one is the tracker's.
pub(crate) async fn list(
    (peer, tracker): (&Peer<RoleClient>, &TaskTracker),
    config: &ServerConfig,
    limit: Duration,
) -> Result<Listing, McpError> {
    let failed = |message: String| McpError::List { message };
    let pages = async {
        let mut reader = ListReader::new(config);
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = ask((peer, tracker), request).await.map_err(|error| {
                failed(match error {
                    ServiceError::McpError(error) => format!("{} ({})", error.message, error.code.0),
                    other => other.to_string(),
                })
            })?;
            cursor = reader.page(page);
            if cursor.is_none() {
                return Ok(reader.listing);
            }
        }
        reader.complain("", format!("the list has more than {MAX_PAGES} pages: the rest is left out"));
        Ok(reader.listing)
    };
    match tokio::time::timeout(limit, pages).await {
        Ok(listing) => listing,
        Err(_) => Err(failed(format!("no answer to tools/list within {} ms", limit.as_millis()))),
    }
}

async fn ask((peer, tracker): (&Peer<RoleClient>, &TaskTracker), request: ClientRequest) -> Result<Value, ServiceError> {
    let handle = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
    let mut pending = Pending::new(handle, tracker);
    let answer = pending.answer().await;
    pending.over();
    match answer? {
        ServerResult::CustomResult(result) => Ok(result.0),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

struct ListReader<'a> {
    config: &'a ServerConfig,
    listing: Listing,
    names: HashSet<String>,
    cursors: HashSet<String>,
    /// What all entries so far take in memory.
    bytes: usize,
}

impl<'a> ListReader<'a> {
    fn new(config: &'a ServerConfig) -> Self {
        Self { config, listing: Listing::default(), names: HashSet::new(), cursors: HashSet::new(), bytes: 0 }
    }

    /// Takes a page; returns the cursor of the next one.
    fn page(&mut self, page: Value) -> Option<String> {
        let Value::Object(mut page) = page else {
            self.complain("", "the answer to tools/list is no object");
            return None;
        };
        let fresh_for = fresh_for(page.get("ttlMs"));
        // Of several pages, the one that is out of date first counts.
        self.listing.fresh_for = self.listing.fresh_for.into_iter().chain(fresh_for).min();
        match page.remove("tools") {
            Some(Value::Array(tools)) => {
                for tool in tools {
                    if let Some(full) = self.full(&tool) {
                        self.complain("", full);
                        return None;
                    }
                    let kept = (!is_deeper(&tool, MAX_DEPTH)).then(|| tool.clone());
                    self.tool(tool);
                    self.listing.raw.extend(kept);
                }
            }
            _ => self.complain("", "the answer to tools/list has no array `tools`"),
        }
        let Some(Value::String(cursor)) = page.remove("nextCursor") else { return None };
        if !self.cursors.insert(cursor.clone()) {
            self.complain("", "the cursor of tools/list repeats: the rest of the list is left out");
            return None;
        }
        Some(cursor)
    }

    /// Why this one and those after it are left out, where they are.
    fn full(&mut self, next: &Value) -> Option<String> {
        if self.listing.tools.len() >= MAX_TOOLS {
            return Some(format!("there are more than {MAX_TOOLS} tools: the rest is left out"));
        }
        self.bytes = self.bytes.saturating_add(weight(next));
        let limit = MAX_LIST_BYTES >> 20;
        (self.bytes > MAX_LIST_BYTES).then(|| format!("the tools take more than {limit} MiB: the rest is left out"))
    }

    fn tool(&mut self, tool: Value) {
        let is_deep = is_deeper(&tool, MAX_DEPTH);
        let Value::Object(mut tool) = tool else { return self.complain("", "the entry is no object") };
        let name = match tool.remove("name") {
            Some(Value::String(name)) if !name.is_empty() => name,
            _ => return self.complain("", "the tool has no name"),
        };
        if name.len() > MAX_NAME_BYTES {
            return self.complain(&name, format!("its name is {} bytes long, limit {MAX_NAME_BYTES}", name.len()));
        }
        if is_deep {
            return self.complain(&name, format!("it is nested more than {MAX_DEPTH} levels deep"));
        }
        if !self.names.insert(name.clone()) {
            return self.complain(&name, "the name is there twice: the first one is kept");
        }
        let input_schema = match schema(tool.remove("inputSchema")) {
            Ok(schema) => schema,
            Err(reason) => return self.complain(&name, reason),
        };
        let annotations = tool.remove("annotations").filter(Value::is_object);
        let title =
            text(tool.remove("title")).or_else(|| annotations.as_ref().and_then(|hints| text(hints.get("title").cloned())));
        let description = capped(text(tool.remove("description")).unwrap_or_default());
        let declared = declared(self.config, &name, annotations.as_ref());
        let (face, problem) = face::read(&mut tool);
        let remark = |reason| Quarantined { tool: shown_name(&name), reason };
        self.listing.remarks.extend(problem.map(|problem| remark(format!("{problem}: its results are not checked"))));
        if face.visibility == Visibility::Pages {
            self.listing.remarks.push(remark("it is for its server's pages alone: models are not offered it".to_owned()));
        }
        let support = tool.get("execution").and_then(|execution| execution.get("taskSupport")).and_then(Value::as_str);
        // What may be called anew after a restart needs nothing that outlives one.
        if support == Some("required") || (support == Some("optional") && !declared.is_replayable()) {
            self.listing.tasks.insert(name.clone());
        }
        let face = Arc::new(face);
        self.listing.tools.push(SourceTool { name, title, description, input_schema, annotations, declared, face });
    }

    fn complain(&mut self, tool: &str, reason: impl Into<String>) {
        let (tool, reason) = match self.listing.quarantined.len() {
            0..MAX_COMPLAINTS => (tool, reason.into()),
            MAX_COMPLAINTS => ("", format!("there are more than {MAX_COMPLAINTS}; the others are not named")),
            _ => return,
        };
        self.listing.quarantined.push(Quarantined { tool: shown_name(tool), reason });
    }
}

/// Whether objects and arrays lie more than `levels` within one another.
fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(members) => members.values().any(|member| is_deeper(member, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The schema of a tool's arguments: an object schema, or the reason why there is none. A tool without one takes any
/// object.
fn schema(schema: Option<Value>) -> Result<Value, String> {
    let mut schema = match schema {
        None | Some(Value::Null) => return Ok(json!({"type": "object"})),
        Some(Value::Object(schema)) => schema,
        Some(_) => return Err("its inputSchema is no object".to_owned()),
    };
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        None => {
            schema.insert("type".to_owned(), "object".into());
        }
        Some(kind) => return Err(format!("its inputSchema is of type {kind}, not of type \"object\"")),
    }
    let schema = Value::Object(schema);
    is_schema(&schema).map_err(|reason| format!("its inputSchema is no JSON Schema: {reason}"))?;
    Ok(schema)
}

/// Whether a value is a JSON Schema, or why it is none. A dialect that nobody here knows is read as the protocol's own
/// (2020-12).
pub(crate) fn is_schema(schema: &Value) -> Result<(), String> {
    let checked = match jsonschema::meta::validator_for(schema) {
        Ok(validator) => validator.validate(schema).map_err(|error| error.to_string()),
        Err(_) => jsonschema::draft202012::meta::validate(schema).map_err(|error| error.to_string()),
    };
    checked.map_err(|reason| capped_to(reason, 300))
}

/// What holds for the calls of a tool: what the operator declares, and where they say nothing the server's hints, if they are trusted.
fn declared(config: &ServerConfig, tool: &str, annotations: Option<&Value>) -> Declared {
    let own = config.tools.get(tool).copied().unwrap_or_default();
    let hints = annotations.filter(|_| config.trust_annotations).and_then(Value::as_object);
    let says = |hint: &str| hints.and_then(|hints: &Map<String, Value>| hints.get(hint)) == Some(&Value::Bool(true));
    Declared {
        read_only: own.read_only.unwrap_or_else(|| says("readOnlyHint")),
        replayable: own.replayable.unwrap_or_else(|| says("idempotentHint")),
        serial: own.serial.unwrap_or(config.serial),
        polled: own.polled,
    }
}

pub(crate) fn text(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

fn capped(text: String) -> String {
    capped_to(plain(text), MAX_DESCRIPTION_BYTES)
}

/// The text without what moves a cursor or turns the direction of writing: it may show people something else than it says.
fn plain(text: String) -> String {
    let is_shown = |letter: char| {
        let turns = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        !turns && (!letter.is_control() || matches!(letter, '\n' | '\t' | '\r'))
    };
    if text.chars().all(is_shown) { text } else { text.chars().filter(|letter| is_shown(*letter)).collect() }
}

pub(crate) fn capped_to(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.push('…');
    }
    text
}

/// What a server offers, as it is shared. Its promises are new with each list, since the schemas may be.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    pub(crate) tools: Arc<[SourceTool]>,
    pub(crate) quarantined: Arc<[Quarantined]>,
    pub(crate) remarks: Arc<[Quarantined]>,
    /// The names of those that are called as tasks alone.
    pub(crate) tasks: Arc<HashSet<String>>,
    pub(crate) promises: Arc<Promises>,
    pub(crate) fresh_for: Option<Duration>,
}

impl From<Listing> for Offered {
    fn from(listing: Listing) -> Self {
        Self {
            tools: listing.tools.into(),
            quarantined: listing.quarantined.into(),
            remarks: listing.remarks.into(),
            tasks: Arc::new(listing.tasks),
            promises: Arc::default(),
            fresh_for: listing.fresh_for,
        }
    }
}

#[cfg(test)]
mod tests;
