//! Calls between tags: JSON, a function with its parameters, a name with keys and values.

use serde_json::{Map, Value};

use super::cursor::{Call, Cursor, Read};
use super::{json, python};

/// What the inside of a `<tool_call>` is, up to and with the closing tag, which the end of an answer stands for too.
pub(super) fn tool_call(cursor: &mut Cursor<'_>, closing: &str) -> Read<Vec<Call>> {
    let mut calls = Vec::new();
    loop {
        if !calls.is_empty() && cursor.is_over() {
            return Ok(calls);
        }
        match cursor.next()? {
            '{' if cursor.rest().starts_with("{'") => {
                let dictionary = python::literal(cursor)?;
                calls.extend(json::calls_of(&dictionary.to_string(), cursor)?);
            }
            '{' | '[' => calls.extend(json::calls(cursor)?),
            '<' if cursor.take("<function=")? => calls.push(function(cursor)?),
            '<' if !calls.is_empty() => {
                // Small models open a second tag where they should close the first.
                if closing == "</tool_call>" && cursor.take("<tool_call>")? {
                    if cursor.is_over() {
                        return Ok(calls);
                    }
                    continue;
                }
                cursor.close(closing)?;
                return Ok(calls);
            }
            // A word between the tags of a result is one.
            _ if calls.is_empty() && closing != "</tool_response>" => calls.push(keys_and_values(cursor)?),
            _ => return cursor.no(),
        }
    }
}

/// `NAME>…</function>`: a JSON object, or parameters in tags.
pub(super) fn function(cursor: &mut Cursor<'_>) -> Read<Call> {
    let name = cursor.name()?;
    cursor.next()?;
    // Some leave out the bracket.
    cursor.take(">")?;
    let arguments = match cursor.next()? {
        '{' => json::arguments(cursor)?,
        '<' => parameters(cursor, &name, "<parameter=", ">", "</parameter>")?,
        _ => return cursor.no(),
    };
    cursor.space();
    cursor.take(">")?;
    cursor.close("</function>")?;
    Ok((name, arguments))
}

/// GLM's `NAME` with `<arg_key>` and `<arg_value>`.
fn keys_and_values(cursor: &mut Cursor<'_>) -> Read<Call> {
    let name = cursor.name()?;
    let mut arguments = Map::new();
    cursor.next()?;
    while cursor.take("<arg_key>")? {
        let key = cursor.until("</arg_key>")?.trim().to_owned();
        cursor.space();
        cursor.expect("<arg_value>")?;
        let text = cursor.until("</arg_value>")?;
        let value = typed(cursor, &name, &key, text);
        arguments.insert(key, value);
        cursor.next()?;
    }
    if !cursor.rest().starts_with('<') {
        return cursor.no();
    }
    Ok((name, Value::Object(arguments).to_string()))
}

/// `<invoke name="NAME">…</invoke>`, after a mark that closes with `closing`. `prefix` begins each tag's name.
pub(super) fn invokes(cursor: &mut Cursor<'_>, prefix: &str, closing: &str) -> Read<Vec<Call>> {
    let open = format!("<{prefix}invoke name=\"");
    let mut calls = Vec::new();
    loop {
        if !calls.is_empty() && cursor.is_over() {
            return Ok(calls);
        }
        cursor.next()?;
        if cursor.take(&open)? {
            calls.push(invoke(cursor, prefix)?);
        } else if calls.is_empty() {
            return cursor.no();
        } else {
            cursor.close(closing)?;
            return Ok(calls);
        }
    }
}

/// What follows `<invoke name="`.
pub(super) fn invoke(cursor: &mut Cursor<'_>, prefix: &str) -> Read<Call> {
    let name = cursor.name()?;
    cursor.expect("\"")?;
    cursor.space();
    cursor.expect(">")?;
    let (open, close) = (format!("<{prefix}parameter name=\""), format!("</{prefix}parameter>"));
    let arguments = parameters(cursor, &name, &open, "\"", &close)?;
    cursor.close(&format!("</{prefix}invoke>"))?;
    Ok((name, arguments))
}

/// Parameters in tags: each one's name is between `open` and `name_end`, its value before `close`.
fn parameters(cursor: &mut Cursor<'_>, tool: &str, open: &str, name_end: &str, close: &str) -> Read<String> {
    let mut arguments = Map::new();
    loop {
        cursor.next()?;
        if !cursor.take(open)? {
            break;
        }
        let key = cursor.until(name_end)?.trim().to_owned();
        let mut is_text = None;
        if name_end != ">" {
            let attributes = cursor.until(">")?;
            is_text = attributes.trim().strip_prefix("string=").map(|value| value.trim_matches('"') == "true");
        }
        let text = cursor.until(close)?;
        let value = match is_text {
            Some(true) => Value::String(text.to_owned()),
            Some(false) | None => typed(cursor, tool, &key, text),
        };
        arguments.insert(key, value);
    }
    Ok(Value::Object(arguments).to_string())
}

/// A value that was written without quotes, as the tool's schema means it.
fn typed(cursor: &Cursor<'_>, tool: &str, key: &str, text: &str) -> Value {
    let schema = cursor.tool(tool).and_then(|tool| tool.input_schema.get("properties")?.get(key));
    let is_type =
        |kind: &Value, word: &str| kind == word || kind.as_array().is_some_and(|kinds| kinds.iter().any(|k| k == word));
    let kind = schema.and_then(|schema| schema.get("type"));
    let text = text.strip_prefix('\n').unwrap_or(text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    if kind.is_some_and(|kind| is_type(kind, "string")) {
        return Value::String(text.to_owned());
    }
    let trimmed = text.trim();
    match trimmed {
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        "None" => Value::Null,
        _ => match serde_json::from_str(trimmed) {
            // Of an unknown type, text stays text.
            Ok(Value::String(_)) | Err(_) => Value::String(text.to_owned()),
            Ok(value) => value,
        },
    }
}
