//! What a request of the Responses API chooses.

use std::sync::Arc;

use serde_json::Value;
use turnwright_api::openai::ResponsesRequest;
use turnwright_core::{ModelRef, ToolDefinition};
use turnwright_engine::SettingsOverlay;

use crate::error::ApiError;
use crate::openai::{clients, settings};
use crate::state::ServerState;

/// The settings of the turn, and the kinds of tools that are left out of it.
pub(super) async fn overlay(
    state: &ServerState,
    request: &ResponsesRequest,
    system_prompt: Option<String>,
    model: ModelRef,
) -> Result<(SettingsOverlay, Vec<String>), ApiError> {
    let tools = Tools::of(state, request.tools.as_deref().unwrap_or_default()).await?;
    let effort = request.reasoning.as_ref().and_then(|reasoning| reasoning.effort.as_deref());
    let format = request.text.as_ref().and_then(|text| text.format.as_ref());
    let choosable = settings::choosable(state.engine(), request.tool_choice.as_ref(), &tools.clients).await;
    let chosen = settings::tool_choice(request.tool_choice.as_ref(), &choosable)?;
    let clients = chosen.narrow(tools.clients);
    let overlay = SettingsOverlay {
        model: Some(model),
        system_prompt,
        temperature: request.temperature,
        max_output_tokens: request.max_output_tokens,
        reasoning_effort: settings::effort("reasoning.effort", effort)?,
        tools: chosen.narrow_ours(tools.ours),
        tool_choice: chosen.choice,
        parallel_calls: request.parallel_tool_calls,
        output: settings::output("text.format", format)?,
        // They are all that the client has for what follows: it may be another that goes on with the turn.
        client_tools: Some(clients),
        always_ask: (!tools.always_ask.is_empty()).then_some(tools.always_ask),
        max_tool_calls: request.max_tool_calls,
        ..SettingsOverlay::default()
    };
    settings::check(&overlay, "max_output_tokens")?;
    Ok((overlay, tools.left_out))
}

/// Refuses what a client would miss in the response.
pub(super) fn refuse(request: &ResponsesRequest) -> Result<(), ApiError> {
    let is_there = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    if is_there(request.prompt.as_ref()) {
        return Err(settings::unsupported("prompt", "names a prompt that is kept at OpenAI; send it as `instructions`"));
    }
    match request.truncation.as_deref() {
        None | Some("auto" | "disabled") => {}
        Some(other) => {
            let what = format!("`truncation` is `{other}`, it must be auto or disabled");
            return Err(ApiError::invalid(what).about("truncation"));
        }
    }
    let asked = request.include.iter().flatten().enumerate();
    match asked.into_iter().find(|(_, value)| !INCLUDED.contains(&value.as_str())) {
        Some((at, value)) => {
            let what = format!("`include[{at}]` is `{value}`, which is not known; these are: {}", INCLUDED.join(", "));
            Err(ApiError::bad_request("unsupported_value", what).about(format!("include[{at}]")))
        }
        None => Ok(()),
    }
}

/// What OpenAI's clients can have in a response besides; of none of it there is more here than is told anyway.
const INCLUDED: [&str; 8] = [
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];

/// What the tools of a request come to.
#[derive(Debug, Default)]
struct Tools {
    clients: Vec<Arc<ToolDefinition>>,
    /// Ours by their names, where the request narrows them.
    ours: Option<Vec<String>>,
    always_ask: Vec<String>,
    /// What OpenAI, or a machine at its word, would run.
    left_out: Vec<String>,
}

/// Whether a tool is one that OpenAI runs itself, or that its clients run at its word in a form of its own.
fn is_openais(kind: &str) -> bool {
    let versioned = ["web_search", "computer"];
    let exact = ["file_search", "code_interpreter", "image_generation", "local_shell", "shell", "apply_patch", "tool_search"];
    exact.contains(&kind) || versioned.iter().any(|prefix| kind.starts_with(prefix))
}

impl Tools {
    async fn of(state: &ServerState, tools: &[Value]) -> Result<Self, ApiError> {
        let mut read = Self::default();
        for (at, tool) in tools.iter().enumerate() {
            let place = format!("tools[{at}]");
            match tool.get("type").and_then(Value::as_str).unwrap_or_default() {
                "function" => read.client(at, clients::function(&place, tool, None)?)?,
                "custom" => read.client(at, clients::custom(&place, tool, None)?)?,
                "namespace" => read.namespace(at, &place, tool)?,
                "mcp" => read.server(state, &place, tool).await?,
                kind if is_openais(kind) => read.left_out.push(kind.to_owned()),
                kind => {
                    let what = format!("`{place}` is of type `{kind}`; function, custom, namespace and mcp are taken here");
                    return Err(ApiError::bad_request("unsupported_value", what).about(place));
                }
            }
        }
        Ok(read)
    }

    fn client(&mut self, at: usize, tool: Arc<ToolDefinition>) -> Result<(), ApiError> {
        if self.clients.iter().any(|before| before.name == tool.name) {
            return Err(settings::named_twice(at, &tool.name));
        }
        self.clients.push(tool);
        Ok(())
    }

    /// A group of the client's own tools.
    fn namespace(&mut self, at: usize, place: &str, group: &Value) -> Result<(), ApiError> {
        let name = group.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            return Err(ApiError::invalid(format!("`{place}` has no `name`")).about(format!("{place}.name")));
        }
        let listed = group.get("tools").and_then(Value::as_array);
        let listed = listed.ok_or_else(|| {
            ApiError::invalid(format!("`{place}.tools` must be a list of functions")).about(format!("{place}.tools"))
        })?;
        for (inner, tool) in listed.iter().enumerate() {
            let place = format!("{place}.tools[{inner}]");
            match tool.get("type").and_then(Value::as_str).unwrap_or("function") {
                "function" => self.client(at, clients::function(&place, tool, Some(name))?)?,
                "custom" => self.client(at, clients::custom(&place, tool, Some(name))?)?,
                kind => self.left_out.push(format!("{name}.{kind}")),
            }
        }
        Ok(())
    }

    /// A server of ours, which narrows what is offered and can have its calls asked about.
    async fn server(&mut self, state: &ServerState, place: &str, tool: &Value) -> Result<(), ApiError> {
        if tool.get("server_url").is_some_and(|url| !url.is_null()) {
            let what = "is not taken: name a server of this installation by its `server_label`";
            return Err(settings::unsupported(&format!("{place}.server_url"), what));
        }
        let Some(label) = tool.get("server_label").and_then(Value::as_str).filter(|label| !label.is_empty()) else {
            let what = format!("`{place}.server_label` is missing; GET /api/v1/tools names the servers as `server_id`");
            return Err(ApiError::invalid(what).about(format!("{place}.server_label")));
        };
        if !state.engine().sources().iter().any(|source| source.name() == label) {
            let what = format!("there is no server `{label}` here; GET /api/v1/tools names them as `server_id`");
            return Err(ApiError::invalid(what).about(format!("{place}.server_label")));
        }
        let tools = state.engine().tools_of(label).await;
        let allowed = tool.get("allowed_tools").filter(|allowed| !allowed.is_null());
        let taken = tools.iter().filter(|tool| allowed.is_none_or(|allowed| is_named(allowed, tool)));
        let taken: Vec<String> = taken.map(|tool| tool.name.clone()).collect();
        let approval = tool.get("require_approval");
        let is_asked = |tool: &ToolDefinition| match approval {
            Some(Value::String(word)) => word == "always",
            Some(Value::Object(object)) => object.get("always").is_some_and(|filter| is_named(filter, tool)),
            _ => false,
        };
        self.always_ask.extend(tools.iter().filter(|tool| is_asked(tool)).map(|tool| tool.name.clone()));
        self.ours.get_or_insert_default().extend(taken);
        Ok(())
    }
}

/// Whether a filter names a tool: a list of names, or an object with `tool_names` or `read_only`.
fn is_named(filter: &Value, tool: &ToolDefinition) -> bool {
    let is_in = |names: &Vec<Value>| names.iter().any(|name| name.as_str() == Some(tool.tool.as_str()));
    match filter {
        Value::Array(names) => is_in(names),
        Value::Object(object) => {
            let by_name = object.get("tool_names").and_then(Value::as_array).is_none_or(is_in);
            let by_hint =
                object.get("read_only").and_then(Value::as_bool).is_none_or(|wanted| wanted == tool.declared.read_only);
            by_name && by_hint
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
