//! What requests of OpenAI's APIs choose, as settings of a turn.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::{
    ConversationId, Declared, Journal, OutputFormat, OutputSchema, ReasoningEffort, ToolChoice, ToolDefinition,
};
use turnwright_engine::{Engine, EngineError, SettingsOverlay};

use super::clients::model_name;
use crate::error::ApiError;

/// Where the tools of a client come from, as they are stored.
const CLIENT: &str = "client";

/// A tool that the client runs.
///
/// # Errors
/// 400, where it is none that a provider would take.
pub(crate) fn tool(
    place: &str,
    name: &str,
    description: Option<String>,
    parameters: Option<Value>,
) -> Result<Arc<ToolDefinition>, ApiError> {
    if !is_name(name) {
        let what = format!("`{place}.name` is {}, {NAMES}", short(&Value::from(name)));
        return Err(ApiError::invalid(what).about(format!("{place}.name")));
    }
    let input_schema = match parameters {
        None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
        Some(schema @ Value::Object(_)) => schema,
        Some(other) => {
            let what = format!("`{place}.parameters` is {}, it must be a JSON Schema, an object", short(&other));
            return Err(ApiError::invalid(what).about(format!("{place}.parameters")));
        }
    };
    Ok(Arc::new(ToolDefinition {
        name: name.to_owned(),
        source: CLIENT.to_owned(),
        tool: name.to_owned(),
        title: None,
        description: description.unwrap_or_default(),
        input_schema,
        annotations: None,
        declared: Declared::default(),
    }))
}

/// What a name must be.
const NAMES: &str = "it must be 1 to 64 characters of A-Z a-z 0-9 _ -";

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The beginning of a value as it is written.
fn short(value: &Value) -> String {
    value.to_string().chars().take(100).collect()
}

/// Refuses two tools of one name, which no provider takes.
///
/// # Errors
/// 400, about the second.
pub(crate) fn named_once(tools: &[Arc<ToolDefinition>]) -> Result<(), ApiError> {
    let is_named_before = |at: usize, name: &str| tools.iter().take(at).any(|before| before.name == name);
    match tools.iter().enumerate().find(|(at, tool)| is_named_before(*at, &tool.name)) {
        Some((at, tool)) => Err(named_twice(at, &tool.name)),
        None => Ok(()),
    }
}

/// A tool has the name of one before it.
pub(crate) fn named_twice(at: usize, name: &str) -> ApiError {
    let what = format!("`tools[{at}]` has the name `{name}`, as a tool before it");
    ApiError::invalid(what).about(format!("tools[{at}]"))
}

/// What `tool_choice` comes to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Chosen {
    /// Whether and what the model must call.
    pub(crate) choice: Option<ToolChoice>,
    /// The tools by name that alone can be called, where it says which.
    pub(crate) only: Option<Vec<String>>,
}

impl Chosen {
    /// Of tools what can be called.
    pub(crate) fn narrow(&self, tools: Vec<Arc<ToolDefinition>>) -> Vec<Arc<ToolDefinition>> {
        let is_meant = |tool: &Arc<ToolDefinition>| self.only.as_ref().is_none_or(|only| only.contains(&tool.name));
        tools.into_iter().filter(is_meant).collect()
    }

    /// Of ours by their names what can be called; all of ours where `None`.
    pub(crate) fn narrow_ours(&self, ours: Option<Vec<String>>) -> Option<Vec<String>> {
        match (ours, &self.only) {
            (ours, None) => ours,
            (None, Some(only)) => Some(only.clone()),
            (Some(ours), Some(only)) => Some(ours.into_iter().filter(|name| only.contains(name)).collect()),
        }
    }
}

/// Whether and what the model must call, and what it can, of these tools.
///
/// # Errors
/// 400, where it is not known, or names a tool that is not there.
pub(crate) fn tool_choice(choice: Option<&Value>, tools: &[Arc<ToolDefinition>]) -> Result<Chosen, ApiError> {
    let wrong = |what: &str| ApiError::invalid(format!("`tool_choice` {what}")).about("tool_choice");
    let unknown = || {
        let given = choice.map(short).unwrap_or_default();
        wrong(&format!("is {given}, it must be auto, none, required, name a tool, or list some as `allowed_tools`"))
    };
    let word = |choice| Ok(Chosen { choice: Some(choice), only: None });
    match choice {
        None | Some(Value::Null) => Ok(Chosen::default()),
        Some(Value::String(text)) => match text.as_str() {
            "auto" => word(ToolChoice::Auto),
            "required" => word(ToolChoice::Required),
            "none" => word(ToolChoice::None),
            _ => Err(unknown()),
        },
        Some(choice @ Value::Object(object)) => match object.get("type").and_then(Value::as_str) {
            Some("function" | "custom" | "mcp") => {
                let named = named(choice, tools).map_err(|what| wrong(&what))?;
                word(match <[String; 1]>::try_from(named) {
                    Ok([one]) => ToolChoice::Tool(one),
                    Err(several) => ToolChoice::Tools(several),
                })
            }
            Some("allowed_tools") => {
                let allowed = object.get("allowed_tools").unwrap_or(choice);
                let listed = allowed.get("tools").and_then(Value::as_array).filter(|listed| !listed.is_empty());
                let listed = listed.ok_or_else(|| wrong("lists no `tools` that are allowed"))?;
                let mut only = Vec::new();
                for entry in listed {
                    only.extend(named(entry, tools).map_err(|what| wrong(&what))?);
                }
                let choice = match allowed.get("mode").and_then(Value::as_str) {
                    Some("required") => ToolChoice::Tools(only.clone()),
                    None | Some("auto") => ToolChoice::Auto,
                    Some(_) => return Err(wrong("has a `mode` that is neither auto nor required")),
                };
                Ok(Chosen { choice: Some(choice), only: Some(only) })
            }
            _ => Err(unknown()),
        },
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => Err(unknown()),
    }
}

/// The tools that a function, or a tool of a server, or a server as a whole stands for; or what is wrong.
fn named(choice: &Value, tools: &[Arc<ToolDefinition>]) -> Result<Vec<String>, String> {
    let name = choice.get("name").or_else(|| choice.get("function")?.get("name")).and_then(Value::as_str);
    let namespace = choice.get("namespace").and_then(Value::as_str);
    let name = name.map(|name| model_name(namespace, name));
    let name = name.as_deref();
    let server = choice.get("server_label").and_then(Value::as_str);
    let is_named = |tool: &&Arc<ToolDefinition>| match (server, name) {
        (Some(server), Some(name)) => tool.source == server && tool.tool == name,
        (Some(server), None) => tool.source == server,
        (None, name) => name == Some(tool.name.as_str()),
    };
    let found: Vec<String> = tools.iter().filter(is_named).map(|tool| tool.name.clone()).collect();
    match (server, name) {
        _ if !found.is_empty() => Ok(found),
        (None, None) => Err("has a tool without a name".to_owned()),
        (Some(server), None) => Err(format!("names the server `{server}`, which offers no tool here")),
        (_, Some(name)) => Err(format!("names the tool `{name}`, which is not offered here")),
    }
}

/// All that `choice` can name: the client's own tools, and ours where it names any.
pub(crate) async fn choosable(
    engine: &Engine,
    choice: Option<&Value>,
    clients: &[Arc<ToolDefinition>],
) -> Vec<Arc<ToolDefinition>> {
    let mut all = clients.to_vec();
    if choice.is_some_and(Value::is_object) {
        // Where names meet, the client's is meant.
        let ours = engine.tools().await;
        all.extend(ours.into_iter().filter(|tool| clients.iter().all(|own| own.name != tool.name)));
    }
    all
}

/// Which tools on this side an open turn has from a request on that does not narrow them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OurTools {
    /// Those that it had.
    StayAsTheyWere,
    /// Those of its conversation, since the request says all that would narrow them.
    AreAsSaid,
}

/// The glob that every tool fits.
const EVERY_TOOL: &str = "*";

/// What a request chooses for the rest of the turn that is open there: what `tool_choice` allowed before was for one request.
///
/// # Errors
/// Where the conversation cannot be read.
pub(crate) async fn for_the_rest(
    engine: &Engine,
    conversation: &ConversationId,
    (chosen, ours): (&SettingsOverlay, OurTools),
) -> Result<SettingsOverlay, EngineError> {
    let as_it_is = || Ok(chosen.clone());
    if chosen.tools.is_some() || ours == OurTools::StayAsTheyWere {
        return as_it_is();
    }
    let look = |journal: &Journal| journal.open_turn().and_then(|turn| turn.settings().tools.clone());
    let narrowed = match engine.look(conversation, look).await {
        Ok(narrowed) => narrowed,
        Err(EngineError::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    let Some(narrowed) = narrowed else { return as_it_is() };
    let own = engine.conversation(conversation).await?.overlay.tools.or_else(|| engine.defaults().tools.clone());
    let own = own.unwrap_or_else(|| vec![EVERY_TOOL.to_owned()]);
    Ok(SettingsOverlay { tools: (own != narrowed).then_some(own), ..chosen.clone() })
}

/// How much a model should think.
///
/// # Errors
/// 400, where the word is not known.
pub(crate) fn effort(place: &str, word: Option<&str>) -> Result<Option<ReasoningEffort>, ApiError> {
    let Some(word) = word else { return Ok(None) };
    let read = serde_json::from_value(Value::from(word));
    let words = "none, minimal, low, medium, high, xhigh or max";
    read.map(Some).map_err(|_| ApiError::invalid(format!("`{place}` is `{word}`, it must be {words}")).about(place))
}

/// The form of the answer: `text`, `json_object` or `json_schema`, the schema's fields beside the type or inside
/// `json_schema`.
///
/// # Errors
/// 400, where it is not known.
pub(crate) fn output(place: &str, format: Option<&Value>) -> Result<Option<OutputFormat>, ApiError> {
    let Some(format) = format.filter(|format| !format.is_null()) else { return Ok(None) };
    let wrong = |what: &str| ApiError::invalid(format!("`{place}` {what}")).about(place);
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(OutputFormat::JsonObject)),
        Some("json_schema") => {
            let (inner, place) = match format.get("json_schema") {
                Some(inner) => (inner, format!("{place}.json_schema")),
                None => (format, place.to_owned()),
            };
            let wrong = |field: &str, what: &str| {
                ApiError::invalid(format!("`{place}.{field}` {what}")).about(format!("{place}.{field}"))
            };
            let schema = match inner.get("schema") {
                Some(schema @ Value::Object(_)) => schema.clone(),
                Some(other) => {
                    return Err(wrong("schema", &format!("is {}, it must be a JSON Schema, an object", short(other))));
                }
                None => return Err(wrong("schema", "is missing")),
            };
            let name = inner.get("name").and_then(Value::as_str).unwrap_or("answer").to_owned();
            if !is_name(&name) {
                return Err(wrong("name", &format!("is {}, {NAMES}", short(&Value::from(name)))));
            }
            let strict = inner.get("strict").and_then(Value::as_bool).unwrap_or(false);
            Ok(Some(OutputFormat::Schema(OutputSchema { name, schema, strict })))
        }
        _ => Err(wrong(&format!("is {}, it must be of type text, json_object or json_schema", short(format)))),
    }
}

/// Refuses what is out of range by the name that the request has for it.
///
/// # Errors
/// 400.
pub(crate) fn check(overlay: &SettingsOverlay, tokens: &str) -> Result<(), ApiError> {
    if overlay.max_output_tokens == Some(0) {
        return Err(ApiError::invalid(format!("`{tokens}` is 0, it must be at least 1")).about(tokens));
    }
    if let Some(temperature) = overlay.temperature.filter(|temperature| !(0.0..=2.0).contains(temperature)) {
        let what = format!("`temperature` is {temperature}, it must be between 0 and 2");
        return Err(ApiError::invalid(what).about("temperature"));
    }
    Ok(())
}

/// Something that is asked for and not to be had.
pub(crate) fn unsupported(param: &str, why: &str) -> ApiError {
    ApiError::bad_request("unsupported_parameter", format!("`{param}` {why}")).about(param)
}
