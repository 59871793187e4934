use serde_json::json;

use super::*;

fn read_all(line: impl AsRef<[u8]>) -> (Vec<Message>, Remark) {
    let mut messages = Vec::new();
    let remark = read(line.as_ref(), |message| messages.push(message));
    (messages, remark)
}

fn answer(id: i64, result: Value) -> Message {
    Message::Response { id: NumberOrString::Number(id), result }
}

fn error(id: i64, code: i32, message: &str) -> Message {
    Message::Error { id: Some(NumberOrString::Number(id)), code, message: message.to_owned(), data: None }
}

#[test]
fn every_way_to_write_an_answer_is_read() {
    for (line, remark) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#, Remark::Clean),
        ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}\r", Remark::Clean),
        (r#"[{"jsonrpc":"2.0","id":1,"result":{"a":1}}]"#, Remark::Clean),
        (r#"{"id":1,"result":{"a":1}}"#, Remark::Clean),
        (r#"INFO calling {"jsonrpc":"2.0","id":1,"result":{"a":1}}"#, Remark::Glued(13)),
    ] {
        assert_eq!(read_all(line), (vec![answer(1, json!({"a": 1}))], remark), "{line}");
    }
}

#[test]
fn invalid_utf8_is_replaced() {
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"caf\xe9\"}";
    assert_eq!(read_all(line), (vec![answer(1, json!("caf\u{fffd}"))], Remark::Clean));
}

#[test]
fn broken_answers_fail_their_call_at_once() {
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","id":1}"#, error(1, INTERNAL_ERROR, "the answer has neither result nor error")),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"e"}}"#, error(1, 1, "e")),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"E_FAIL","message":"x"}}"#, error(1, INTERNAL_ERROR, "x")),
        (r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#, error(1, INTERNAL_ERROR, "no")),
    ] {
        assert_eq!(read_all(line), (vec![expected], Remark::Clean), "{line}");
    }
    let broken = r#"{"jsonrpc":"2.0","id":1,"result":{"a":nothing}}"#;
    let failed = vec![error(1, INTERNAL_ERROR, "the answer could not be parsed")];
    assert_eq!(read_all(broken), (failed.clone(), Remark::Unreadable));
    let broken = r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":nothing}}"#;
    assert_eq!(read_all(broken), (failed, Remark::Unreadable));
    let asked = r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":nothing, "result": 1}}"#;
    let unknown = Message::Request { id: NumberOrString::Number(1), method: "unreadable".to_owned(), params: None };
    assert_eq!(read_all(asked), (vec![unknown], Remark::Unreadable));
}

#[test]
fn half_a_character_and_a_number_out_of_range_cost_no_message() {
    let read = r#"{"jsonrpc":"2.0","id":1,"result":{"text":"cut \ud83d","ratio":1e999,"other":NaN}}"#;
    let whole = json!({"text": "cut \u{fffd}", "ratio": "1e999", "other": "NaN"});
    assert_eq!(read_all(read), (vec![answer(1, whole.clone())], Remark::Clean));
    assert_eq!(read_all(format!("it is \"ready {read}")), (vec![answer(1, whole)], Remark::Glued(13)));
    let failed = r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"\udc00"}}"#;
    assert_eq!(read_all(failed), (vec![error(1, 1, "\u{fffd}")], Remark::Clean));
    let asked = r#"{"jsonrpc":"2.0","id":"s","method":"elicitation/create","params":{"message":"\ud83d?"}}"#;
    let params = Some(json!({"message": "\u{fffd}?"}));
    let asks = Message::Request { id: NumberOrString::String("s".into()), method: "elicitation/create".into(), params };
    assert_eq!(read_all(asked), (vec![asks], Remark::Clean));
}

#[test]
fn an_answer_that_is_nested_too_deeply_is_read_without_what_lies_too_deep() {
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":1,"b":{}{}}}}}"#, "[".repeat(200), "]".repeat(200));
    let (messages, remark) = read_all(deep);
    assert_eq!(remark, Remark::Cut);
    let [Message::Response { id: NumberOrString::Number(1), result }] = messages.as_slice() else {
        panic!("one answer: {messages:?}")
    };
    assert_eq!(result["a"], 1);
    assert!(result.to_string().contains(shallow::LEFT_OUT));
}

#[test]
fn log_lines_are_no_messages() {
    for line in ["Starting server ...", "\u{1b}[32mready\u{1b}[0m", "{not json}", "[1,2]", r#"{"level":"info"}"#, "7", "null"] {
        assert_eq!(read_all(line), (vec![], Remark::Noise), "{line}");
    }
    assert_eq!(read_all(" \r"), (vec![], Remark::Clean));
}

#[test]
fn requests_and_notifications_are_told_apart_by_their_id() {
    let request = Message::Request { id: NumberOrString::String("s".into()), method: "ping".into(), params: None };
    assert_eq!(read_all(r#"{"jsonrpc":"2.0","id":"s","method":"ping"}"#), (vec![request], Remark::Clean));
    let notification = Message::Notification { method: "n".into(), params: Some(json!({"a": 1})) };
    assert_eq!(read_all(r#"{"jsonrpc":"2.0","method":"n","params":{"a":1}}"#), (vec![notification], Remark::Clean));
}

#[test]
fn an_answer_over_the_limit_fails_its_call_by_the_id_at_either_end() {
    let expected = Some(error(4, INTERNAL_ERROR, "the answer is 900 bytes, limit 100: ask for less"));
    assert_eq!(too_long(br#"{"jsonrpc":"2.0","id":4,"result":{"content"#, b"xxx", 900, 100), expected);
    assert_eq!(too_long(br#"{"result":{"content""#, br#"xxx"}]},"id": 4}"#, 900, 100), expected);
    assert_eq!(too_long(b"{", b"}", 900, 100), None);
    // An id inside the result is somebody else's.
    assert_eq!(too_long(br#"{"result":{"id":7,"content""#, br#"{"id":7}]}}"#, 900, 100), None);
    assert_eq!(too_long(br#"{"text":"{\"id\":7","id":4,"result":"#, b"", 900, 100), expected);
}
