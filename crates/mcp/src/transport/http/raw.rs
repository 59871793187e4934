//! What a server wrote, as it was written: `rmcp` reads it into types, and what these do not hold is lost.
//!
//! A request that is read by ourselves goes past its types under another method, which no type has, and comes out of
//! [`unwrapped`] as it was. On the stream of a call it is told whose it is: that is what the stream says. A result goes past them as
//! a text, which no type is either, or as plain JSON where it need not be written again, and comes out of [`result`].

use rmcp::model::{CustomResult, JsonRpcMessage, NumberOrString, RequestId, ServerJsonRpcMessage, ServerResult};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sse_stream::Sse;

use crate::client::is_read_here;
use crate::transport::mended::mended;
use crate::transport::shallow;

/// Stands before the method of a request, and before the text of a result, on its way past `rmcp`'s types.
const PAST: &str = "turnwright:";
/// The key in a request's `_meta` under which is the id of the call on whose stream it came.
pub(crate) const CALL: &str = "turnwright/call";
/// The longest event that is looked through for a request; results may be long, requests are not.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Events that are shorter cannot be nested too deeply.
const MIN_DEEP_BYTES: usize = 2 * shallow::MAX_DEPTH;

/// An event without what is nested too deeply, with what JSON does not have mended, and with a request that goes past the types. `call` is the request on whose
/// stream it came.
pub(super) fn wrapped(mut event: Sse, call: Option<&RequestId>) -> Sse {
    if let Some(whole) =
        event.data.as_deref().and_then(|data| mended(data.as_bytes())).and_then(|data| String::from_utf8(data).ok())
    {
        event.data = Some(whole);
    }
    let Some(data) = &event.data else { return event };
    if data.len() >= MIN_DEEP_BYTES
        && let Some(cut) = shallow::cut(data.as_bytes()).and_then(|cut| String::from_utf8(cut).ok())
    {
        event.data = Some(cut);
    }
    if let Some(past) = event.data.as_deref().and_then(|data| past(data, call)) {
        event.data = Some(past);
    }
    event
}

fn past(data: &str, call: Option<&RequestId>) -> Option<String> {
    if data.len() > MAX_REQUEST_BYTES || !data.contains("\"method\"") {
        return None;
    }
    let Ok(Value::Object(mut message)) = serde_json::from_str(data) else { return None };
    let method = message.get("method")?.as_str().filter(|method| is_read_here(method))?;
    let method = format!("{PAST}{method}");
    message.get("id")?;
    message.insert("method".to_owned(), method.into());
    if let Some(call) = call
        && let Value::Object(params) = message.entry("params").or_insert_with(|| Map::new().into())
        && let Value::Object(meta) = params.entry("_meta").or_insert_with(|| Map::new().into())
    {
        meta.insert(CALL.to_owned(), json!(call));
    }
    Some(Value::Object(message).to_string())
}

/// An answer that holds a result; with any other member here it is another message.
#[derive(Deserialize)]
struct Answer<'a> {
    id: RequestId,
    #[serde(borrow)]
    result: &'a RawValue,
    #[serde(default)]
    method: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

impl<'a> Answer<'a> {
    fn read(json: &'a [u8]) -> Option<Self> {
        serde_json::from_slice::<Self>(json).ok().filter(|answer| answer.method.is_none() && answer.error.is_none())
    }
}

/// An event with a result that goes past the types.
pub(super) fn answered(mut event: Sse) -> Sse {
    if let Some(answer) = event.data.as_deref().and_then(|data| Answer::read(data.as_bytes())) {
        let result = format!("{PAST}{}", answer.result.get());
        event.data = Some(json!({"jsonrpc": "2.0", "id": answer.id, "result": result}).to_string());
    }
    event
}

/// The message of a body, with a result that goes past the types.
pub(super) fn answer(body: &[u8]) -> Result<ServerJsonRpcMessage, serde_json::Error> {
    let whole = mended(body);
    let body = whole.as_deref().unwrap_or(body);
    let Some(Answer { id, result, .. }) = Answer::read(body) else { return serde_json::from_slice(body) };
    let result = serde_json::from_str(result.get())?;
    Ok(JsonRpcMessage::response(ServerResult::CustomResult(CustomResult::new(result)), id))
}

/// The message of a body as its types hold it.
pub(super) fn typed(body: &[u8]) -> Result<ServerJsonRpcMessage, serde_json::Error> {
    serde_json::from_slice(mended(body).as_deref().unwrap_or(body))
}

/// A result as its server wrote it, where it went past the types.
pub(super) fn result(typed: ServerResult) -> Result<Value, serde_json::Error> {
    if let ServerResult::CustomResult(CustomResult(Value::String(text))) = &typed
        && let Some(written) = text.strip_prefix(PAST)
    {
        return serde_json::from_str(written);
    }
    match typed {
        ServerResult::CustomResult(plain) => Ok(plain.0),
        typed => serde_json::to_value(typed),
    }
}

/// The method as its server wrote it.
pub(super) fn unwrapped(method: String) -> String {
    method.strip_prefix(PAST).map(str::to_owned).unwrap_or(method)
}

/// The call on whose stream a request came, where it came on one.
pub(crate) fn call_of(params: Option<&Value>) -> Option<RequestId> {
    match params?.get("_meta")?.get(CALL)? {
        Value::Number(number) => number.as_i64().map(NumberOrString::Number),
        Value::String(text) => Some(NumberOrString::String(text.as_str().into())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: &Value) -> Sse {
        Sse { data: Some(data.to_string()), ..Sse::default() }
    }

    fn read(event: &Sse) -> Value {
        serde_json::from_str(event.data.as_deref().unwrap()).unwrap()
    }

    #[test]
    fn a_question_keeps_its_order_and_is_told_whose_stream_it_came_on() {
        let asks = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {"b": 1, "a": 2}});
        let call = NumberOrString::Number(7);
        let past = read(&wrapped(event(&asks), Some(&call)));
        assert_eq!(past["params"].to_string(), r#"{"b":1,"a":2,"_meta":{"turnwright/call":7}}"#);
        assert_eq!(unwrapped(past["method"].as_str().unwrap().to_owned()), "elicitation/create");
        assert_eq!(call_of(past.get("params")), Some(call));
        assert_eq!(call_of(read(&wrapped(event(&asks), None)).get("params")), None);
        let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": "\"method\""}});
        assert_eq!(read(&wrapped(event(&result), None)), result);
    }

    #[test]
    fn a_result_comes_as_it_was_written_and_what_is_no_result_is_left_alone() {
        let list = json!({"jsonrpc": "2.0", "id": "7", "result": {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "execution": {"z": 1, "a": 2}}]}});
        let passed = |message: ServerJsonRpcMessage| match message {
            JsonRpcMessage::Response(response) => (response.id, result(response.result).unwrap().to_string()),
            other => panic!("{other:?}"),
        };
        let expected = (NumberOrString::String("7".into()), list["result"].to_string());
        let as_event = answered(event(&list));
        assert_eq!(passed(serde_json::from_str(as_event.data.as_deref().unwrap()).unwrap()), expected);
        assert_eq!(passed(answer(list.to_string().as_bytes()).unwrap()), expected);
        for other in [
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}, "result": {}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"result": {}}}),
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"result": 1}}),
        ] {
            assert_eq!(read(&answered(event(&other))), other);
        }
    }

    #[test]
    fn half_a_character_costs_neither_an_event_nor_a_body() {
        let cut = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","description":"\ud83d","inputSchema":{}}]}}"#;
        let whole = cut.replace(r"\ud83d", "\u{fffd}");
        let event = wrapped(Sse { data: Some(cut.to_owned()), ..Sse::default() }, None);
        assert_eq!(read(&event), serde_json::from_str::<Value>(&whole).unwrap());
        for message in [answer(cut.as_bytes()).unwrap(), typed(cut.as_bytes()).unwrap()] {
            let JsonRpcMessage::Response(response) = message else { panic!("{message:?}") };
            assert_eq!(result(response.result).unwrap()["tools"][0]["description"], "\u{fffd}");
        }
    }

    #[test]
    fn only_what_is_nested_too_deeply_is_left_out_of_an_event() {
        let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":{}1{},"b":2}}}}"#, "[".repeat(500), "]".repeat(500));
        let kept = read(&wrapped(Sse { data: Some(deep), ..Sse::default() }, None));
        assert_eq!(kept["result"]["b"], 2);
        assert!(kept.to_string().contains(shallow::LEFT_OUT));
    }
}
