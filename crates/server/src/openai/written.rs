//! A history as a list of messages of Chat Completions, in which form it is taken over. Pure.

use serde_json::{Value, json};

use super::history::{Item, Messages};

/// The list. What Responses says in several items, its texts and each of its calls, is one answer of the model's.
pub(super) fn list<'a>(items: impl Iterator<Item = &'a Item>) -> serde_json::Result<Vec<u8>> {
    let mut out = vec![b'['];
    let mut answer: Option<Value> = None;
    for item in items {
        match &item.messages {
            Messages::Written(text) => {
                write(&mut out, answer.take().as_ref())?;
                begin(&mut out);
                out.extend_from_slice(text.as_bytes());
            }
            Messages::Made(values) => {
                for value in values {
                    if answer.as_mut().is_some_and(|answer| goes_on(answer, value)) {
                        continue;
                    }
                    write(&mut out, answer.take().as_ref())?;
                    if is_answer(value) {
                        answer = Some(value.clone());
                    } else {
                        write(&mut out, Some(value))?;
                    }
                }
            }
        }
    }
    write(&mut out, answer.as_ref())?;
    out.push(b']');
    Ok(out)
}

fn begin(out: &mut Vec<u8>) {
    if out.last() != Some(&b'[') {
        out.push(b',');
    }
}

fn write(out: &mut Vec<u8>, message: Option<&Value>) -> serde_json::Result<()> {
    let Some(message) = message else { return Ok(()) };
    begin(out);
    serde_json::to_writer(out, message)
}

fn is_answer(message: &Value) -> bool {
    message.get("role").and_then(Value::as_str) == Some("assistant")
}

/// Adds to an answer what goes on with it: not a text beside another, which are two answers.
fn goes_on(answer: &mut Value, more: &Value) -> bool {
    if !is_answer(more) || (has_text(answer) && has_text(more)) {
        return false;
    }
    let Value::Object(answer) = answer else { return false };
    if has_text(more) {
        answer.insert("content".to_owned(), more.get("content").cloned().unwrap_or_default());
    }
    if let Some(calls) = more.get("tool_calls").and_then(Value::as_array).filter(|calls| !calls.is_empty()) {
        let all = answer.entry("tool_calls").or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            all.extend(calls.iter().cloned());
        }
    }
    true
}

fn has_text(message: &Value) -> bool {
    match message.get("content") {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(parts)) => !parts.is_empty(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use turnwright_core::{Entry, ModelRef, TurnSettings, text_of};
    use turnwright_host::import;

    use super::list;
    use crate::openai::history::Item;
    use crate::openai::items::items;
    use crate::openai::messages::message;

    fn written(input: &Value) -> Value {
        serde_json::from_slice(&list(items(input).unwrap().iter()).unwrap()).unwrap()
    }

    fn called(id: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
    }

    fn calls(id: &str) -> Value {
        json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
    }

    fn gives(id: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": id})
    }

    #[test]
    fn a_text_and_parallel_calls_are_one_answer() {
        let user = json!({"role": "user", "content": "q"});
        let thought = json!({"type": "reasoning", "summary": []});
        let looks = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking"}]});
        let input =
            json!([user, thought, looks, calls("z1"), thought, calls("z2"), gives("z1"), gives("z2"), looks, looks, user]);
        let said = json!({"role": "assistant", "content": looks["content"]});
        let answer = json!({"role": "assistant", "content": looks["content"], "tool_calls": [called("z1"), called("z2")]});
        let given = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": id});
        assert_eq!(written(&input), json!([user, answer, given("z1"), given("z2"), said, said, user]));
        assert_eq!(
            written(&json!([calls("z1"), looks])),
            json!([{"role": "assistant", "content": looks["content"],
            "tool_calls": [called("z1")]}])
        );
    }

    #[test]
    fn a_call_that_a_server_ran_is_a_call_with_its_result() {
        let call = |more: Value| {
            let mut item = json!({"type": "mcp_call", "id": "mcp_1", "server_label": "lab", "name": "look", "arguments": "{}",
                                  "output": null, "error": null});
            item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            item
        };
        let looks = json!({"role": "assistant", "content": "Looking"});
        let failed = json!({"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "gone"}]});
        let asked = json!([{"id": "mcp_1", "type": "function", "function": {"name": "lab__look", "arguments": "{}"}}]);
        for (more, given) in [(json!({"output": "seen"}), "seen"), (json!({"error": failed}), "ERROR (this call failed): gone")]
        {
            let answer = json!({"role": "assistant", "content": "Looking", "tool_calls": asked});
            let result = json!({"role": "tool", "tool_call_id": "mcp_1", "content": given});
            let list = written(&json!([looks, call(more), looks]));
            assert_eq!(list, json!([answer, result, looks]));
            let settings = TurnSettings::new(ModelRef::new("p", "m"));
            let read = import::read(list.to_string().as_bytes(), &settings).unwrap();
            let results = read.conversations[0].entries.iter().filter_map(|entry| match entry {
                Entry::Result(result) => Some((result.outcome.is_error(), text_of(&result.content))),
                _ => None,
            });
            let expected = if given == "seen" { (false, "seen") } else { (true, "gone") };
            assert_eq!(results.collect::<Vec<_>>(), [(expected.0, expected.1.to_owned())]);
        }
        assert_eq!(written(&json!([call(json!({}))])), json!([{"role": "assistant", "content": null, "tool_calls": asked}]));
    }

    #[test]
    fn messages_of_chat_completions_stay_as_they_are_written() {
        let raw = r#"[{"role":"assistant","content":"A" },{"role":"assistant","content":null,"tool_calls":[]}]"#;
        let read: Vec<&serde_json::value::RawValue> = serde_json::from_str(raw).unwrap();
        let items: Vec<Item> = read.iter().enumerate().map(|(at, one)| message(at, one).unwrap()).collect();
        assert_eq!(list(items.iter()).unwrap(), raw.as_bytes());
    }
}
