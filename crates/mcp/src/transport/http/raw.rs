//! Events of a server's streams as they were written: `rmcp` reads them into types, and what these do not hold is lost.
//!
//! A request that is read by ourselves goes past its types under another method, which no type has, and comes out of
//! [`unwrapped`] as it was. On the stream of a call it is told whose it is: that is what the stream says.

use rmcp::model::{NumberOrString, RequestId};
use serde_json::{Map, Value, json};
use sse_stream::Sse;

use crate::client::is_read_here;
use crate::transport::shallow;

/// Stands before the method of a request on its way past `rmcp`'s types.
const PAST: &str = "turnwright:";
/// The key in a request's `_meta` under which is the id of the call on whose stream it came.
pub(crate) const CALL: &str = "turnwright/call";
/// The longest event that is looked through for a request; results may be long, requests are not.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Events that are shorter cannot be nested too deeply.
const MIN_DEEP_BYTES: usize = 2 * shallow::MAX_DEPTH;

/// An event without what is nested too deeply, and with a request that goes past the types. `call` is the request on whose
/// stream it came.
pub(super) fn wrapped(mut event: Sse, call: Option<&RequestId>) -> Sse {
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
    fn only_what_is_nested_too_deeply_is_left_out_of_an_event() {
        let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":{}1{},"b":2}}}}"#, "[".repeat(500), "]".repeat(500));
        let kept = read(&wrapped(Sse { data: Some(deep), ..Sse::default() }, None));
        assert_eq!(kept["result"]["b"], 2);
        assert!(kept.to_string().contains(shallow::LEFT_OUT));
    }
}
