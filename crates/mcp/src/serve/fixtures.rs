//! What the official conformance suite calls by name, for `turnwright serve --conformance-fixtures`.
//!
//! [`FixtureTools`] is a tool source like any other: what a tool gives goes the way of every call. [`Fixtures`] answers
//! beside it what the product has no tools for: `rounds` asks the client, `documents` has resources and prompts. Nothing
//! here is offered unless that flag is given.

mod documents;
mod rounds;
mod tools;

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, CreateMessageRequestParams, ElicitRequestParams, ErrorData,
    GetPromptRequestParams, GetPromptResponse, JsonObject, LoggingLevel, LoggingMessageNotificationParam, Tool,
};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::result::failed;
pub(super) use documents::{complete, prompts, read, resources, templates};
pub use tools::FixtureTools;

/// Between two log messages.
const PAUSE: Duration = Duration::from_millis(50);

/// What is answered in the place of the product.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fixtures;

impl Fixtures {
    /// The tools that are not a source's.
    pub(super) fn tools() -> Vec<Tool> {
        let plain = ["test_tool_with_logging", "test_logging_tool", "test_missing_capability", "test_streaming_elicitation"];
        let asking = ["test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"];
        let mut tools: Vec<Tool> = plain.into_iter().chain(asking).chain(rounds::NAMES).map(|name| tool(name, None)).collect();
        tools.push(tool("test_sampling", Some("prompt")));
        tools.push(tool("test_elicitation", Some("message")));
        tools
    }

    /// The answer to a call of one of them; `None` where the tool is another's.
    pub(super) async fn call(
        params: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        let capabilities = context.client_capabilities().unwrap_or_default();
        let argument = |name: &str| {
            let given = params.arguments.as_ref().and_then(|arguments| arguments.get(name)).and_then(Value::as_str);
            given.unwrap_or_default().to_owned()
        };
        Some(match &*params.name {
            "test_tool_with_logging" => log(context, PAUSE).await,
            // What a request did not ask to be logged is not.
            "test_logging_tool" => said("It logs nothing unless it is asked to."),
            "test_missing_capability" if capabilities.sampling.is_none() => {
                let required = ClientCapabilities::builder().enable_sampling().build();
                Err(ErrorData::missing_required_client_capability(required))
            }
            "test_missing_capability" => said("The client can sample."),
            "test_streaming_elicitation" => rounds::answer("test_input_required_result_elicitation", params, &capabilities),
            "test_elicitation" => elicit(context, &argument("message"), documents::user()).await,
            "test_elicitation_sep1034_defaults" => elicit(context, "Defaults?", documents::defaults()).await,
            "test_elicitation_sep1330_enums" => elicit(context, "Which?", documents::enums()).await,
            "test_sampling" => sample(context, &argument("prompt")).await,
            name if rounds::NAMES.contains(&name) => rounds::answer(name, params, &capabilities),
            _ => return None,
        })
    }

    /// A prompt.
    pub(super) fn prompt(params: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
        if params.name == "test_input_required_result_prompt" {
            return rounds::prompt(params);
        }
        documents::prompt(params).map(GetPromptResponse::from)
    }
}

/// A tool without arguments, or with one text.
fn tool(name: &'static str, argument: Option<&str>) -> Tool {
    let schema = match argument {
        Some(argument) => json!({"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}),
        None => json!({"type": "object", "properties": {}}),
    };
    let schema: JsonObject = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, "For the conformance suite", schema)
}

/// A value of a type of the protocol from its JSON.
fn typed<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// A whole result: `rmcp` takes the mark away again where the revision has none.
fn whole<T: DeserializeOwned>(mut json: Value) -> Result<T, ErrorData> {
    if let Some(result) = json.as_object_mut() {
        result.insert("resultType".to_owned(), json!("complete"));
    }
    typed(json)
}

fn said(text: &str) -> Result<CallToolResponse, ErrorData> {
    whole::<rmcp::model::CallToolResult>(json!({"content": [{"type": "text", "text": text}]})).map(CallToolResponse::from)
}

async fn log(context: &RequestContext<RoleServer>, pause: Duration) -> Result<CallToolResponse, ErrorData> {
    for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(text));
        let told = context.peer.notify_logging_message(message).await;
        told.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        tokio::time::sleep(pause).await;
    }
    said("It logged three times.")
}

async fn elicit(context: &RequestContext<RoleServer>, message: &str, schema: Value) -> Result<CallToolResponse, ErrorData> {
    let params: ElicitRequestParams = typed(json!({"mode": "form", "message": message, "requestedSchema": schema}))?;
    match context.peer.create_elicitation(params).await {
        Ok(answer) => {
            let action = serde_json::to_value(&answer.action).unwrap_or_default();
            let given = answer.content.unwrap_or_default();
            said(&format!("Elicitation completed: action={}, content={given}", action.as_str().unwrap_or_default()))
        }
        Err(error) => Ok(failed(format!("the client was not asked: {error}")).into()),
    }
}

async fn sample(context: &RequestContext<RoleServer>, prompt: &str) -> Result<CallToolResponse, ErrorData> {
    let block = json!({"type": "text", "text": prompt});
    let params: CreateMessageRequestParams =
        typed(json!({"messages": [{"role": "user", "content": block}], "maxTokens": 100}))?;
    match context.peer.create_message(params).await {
        Ok(answer) => {
            let answer = serde_json::to_value(&answer).unwrap_or_default();
            let text = answer.pointer("/content/text").or_else(|| answer.pointer("/content/0/text"));
            said(&format!("LLM response: {}", text.and_then(Value::as_str).unwrap_or_default()))
        }
        Err(error) => Ok(failed(format!("the client did not sample: {error}")).into()),
    }
}
