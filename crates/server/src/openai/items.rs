//! The items of a request to Responses. Pure.

use serde_json::{Value, json};
use turnwright_core::{ContentBlock, text_of};
use turnwright_engine::qualified;
use turnwright_host::import;

use super::clients;
use super::foreign;
use super::history::{Called, Item, Messages, Said};
use super::ids;
use super::parts::{blocks, plain_text};
use crate::error::ApiError;

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
            Ok(Item { said: Said::Result { call, content: blocks(place, output)?, is_error: false }, messages })
        }
        "mcp_approval_response" => {
            let is_approved =
                item.get("approve").and_then(Value::as_bool).ok_or_else(|| wrong("has no `approve`".to_owned()))?;
            let said = Said::Approval { at, request: needed("approval_request_id")?, is_approved, reason: text("reason") };
            Ok(Item { said, messages: Messages::Made(Vec::new()) })
        }
        "item_reference" => Ok(Item { said: Said::Reference { at, id: needed("id")? }, messages: Messages::Made(Vec::new()) }),
        "mcp_call" => Ok(ran(at, item)),
        kind => foreign::item(at, kind, item).ok_or_else(|| wrong(format!("is of type `{kind}`, which is not known here"))),
    }
}

/// A call that a server of tools ran, and what came of it.
fn ran(at: usize, item: &Value) -> Item {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let id = text("id").map_or_else(|| format!("mcp_{at}"), str::to_owned);
    let name = match (text("server_label"), text("name").unwrap_or("unknown")) {
        (Some(server), tool) => qualified(server, tool),
        (None, tool) => tool.to_owned(),
    };
    let arguments = text("arguments").unwrap_or_default();
    let call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let output = match item.get("error").filter(|error| !error.is_null()) {
        None => text("output").map(str::to_owned),
        Some(error) => {
            let said = error.get("content").map(plain_text).filter(|said| !said.is_empty());
            let said = said.or_else(|| error.as_str().or_else(|| error.get("message")?.as_str()).map(str::to_owned));
            Some(import::failed_result(said.unwrap_or_else(|| error.to_string())))
        }
    };
    let result = output.as_ref().map(|output| json!({"role": "tool", "tool_call_id": id, "content": output}));
    let call = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let elsewhere = || Said::Elsewhere { name, arguments: arguments.to_owned(), gave: output.unwrap_or_default() };
    let said = ids::read_item(&id).map_or_else(elsewhere, |_ours| Said::Echo);
    Item { said, messages: Messages::Made([call].into_iter().chain(result).collect()) }
}
