//! Calls in the form of Python's.

use serde_json::{Map, Value};

use super::cursor::{Call, Cursor, Read};

/// How deep a value may be.
const MAX_DEPTH: u32 = 64;

/// `[name(key=value, …), …]`.
pub(super) fn list(cursor: &mut Cursor<'_>) -> Read<Vec<Call>> {
    cursor.expect("[")?;
    let mut calls = Vec::new();
    loop {
        match cursor.next()? {
            ']' if !calls.is_empty() => {
                cursor.at += 1;
                return Ok(calls);
            }
            ',' if !calls.is_empty() => {
                cursor.at += 1;
                cursor.space();
            }
            _ if !calls.is_empty() => return cursor.no(),
            _ => {}
        }
        calls.push(call(cursor)?);
    }
}

/// `name(key=value, …)`.
pub(super) fn call(cursor: &mut Cursor<'_>) -> Read<Call> {
    cursor.next()?;
    let name = cursor.name()?;
    Ok((name, arguments(cursor)?))
}

/// `(key=value, …)`, as a JSON object.
pub(super) fn arguments(cursor: &mut Cursor<'_>) -> Read<String> {
    cursor.expect("(")?;
    let mut arguments = Map::new();
    loop {
        match cursor.next()? {
            ')' => {
                cursor.at += 1;
                return Ok(Value::Object(arguments).to_string());
            }
            ',' if !arguments.is_empty() => {
                cursor.at += 1;
                cursor.space();
            }
            _ if !arguments.is_empty() => return cursor.no(),
            _ => {}
        }
        if cursor.next()? == ')' {
            continue;
        }
        let key = cursor.word(|c| c.is_alphanumeric() || c == '_');
        if key.is_empty() || key.starts_with(|c: char| c.is_ascii_digit()) {
            return cursor.no();
        }
        cursor.at += key.len();
        if cursor.next()? != '=' {
            return cursor.no();
        }
        cursor.at += 1;
        cursor.space();
        arguments.insert(key.to_owned(), literal(cursor)?);
    }
}

/// A literal of Python's or of JSON's.
pub(super) fn literal(cursor: &mut Cursor<'_>) -> Read<Value> {
    value(cursor, 0)
}

fn value(cursor: &mut Cursor<'_>, depth: u32) -> Read<Value> {
    match cursor.next()? {
        _ if depth > MAX_DEPTH => cursor.no(),
        quote @ ('"' | '\'') => text(cursor, quote).map(Value::String),
        '[' => items(cursor, ']', depth).map(Value::Array),
        '(' => items(cursor, ')', depth).map(Value::Array),
        '{' => members(cursor, depth).map(Value::Object),
        _ => word(cursor),
    }
}

fn items(cursor: &mut Cursor<'_>, close: char, depth: u32) -> Read<Vec<Value>> {
    cursor.at += 1;
    let mut items = Vec::new();
    loop {
        if cursor.next()? == close {
            cursor.at += 1;
            return Ok(items);
        }
        items.push(value(cursor, depth + 1)?);
        separator(cursor, close)?;
    }
}

fn members(cursor: &mut Cursor<'_>, depth: u32) -> Read<Map<String, Value>> {
    cursor.at += 1;
    let mut members = Map::new();
    loop {
        let key = match cursor.next()? {
            '}' => {
                cursor.at += 1;
                return Ok(members);
            }
            quote @ ('"' | '\'') => text(cursor, quote)?,
            _ => return cursor.no(),
        };
        if cursor.next()? != ':' {
            return cursor.no();
        }
        cursor.at += 1;
        members.insert(key, value(cursor, depth + 1)?);
        separator(cursor, '}')?;
    }
}

/// Goes past a comma, which only the closing bracket may stand in place of.
fn separator(cursor: &mut Cursor<'_>, close: char) -> Read<()> {
    match cursor.next()? {
        ',' => {
            cursor.at += 1;
            Ok(())
        }
        other if other == close => Ok(()),
        _ => cursor.no(),
    }
}

fn text(cursor: &mut Cursor<'_>, quote: char) -> Read<String> {
    let triple = if quote == '"' { "\"\"\"" } else { "'''" };
    let one = if quote == '"' { "\"" } else { "'" };
    // Two quotes are an empty text, or the first of three.
    let empty = if quote == '"' { "\"\"" } else { "''" };
    let end = if cursor.take(triple)? {
        triple
    } else if cursor.take(empty)? {
        return Ok(String::new());
    } else {
        cursor.expect(one)?;
        one
    };
    let mut text = String::new();
    loop {
        let rest = cursor.rest();
        let plain = rest.find(['\\', quote, '\n']).unwrap_or(rest.len());
        text.push_str(rest.get(..plain).unwrap_or_default());
        cursor.at += plain;
        match cursor.rest().chars().next() {
            None => return cursor.ended(),
            Some('\\') => escape(cursor, &mut text)?,
            Some('\n') if end.len() == 1 => return cursor.no(),
            Some(other) => {
                if other == quote && cursor.take(end)? {
                    return Ok(text);
                }
                text.push(other);
                cursor.at += 1;
            }
        }
    }
}

fn escape(cursor: &mut Cursor<'_>, text: &mut String) -> Read<()> {
    let mut characters = cursor.rest().chars().skip(1);
    let Some(escaped) = characters.next() else { return cursor.ended() };
    cursor.at += 1 + escaped.len_utf8();
    let digits = match escaped {
        'n' => return push(text, '\n'),
        't' => return push(text, '\t'),
        'r' => return push(text, '\r'),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        '\\' | '\'' | '"' | '/' => return push(text, escaped),
        '\n' => return Ok(()),
        other => {
            text.push('\\');
            return push(text, other);
        }
    };
    let code = cursor.word(|c| c.is_ascii_hexdigit());
    if code.len() < digits {
        return if code.len() == cursor.rest().len() { cursor.ended() } else { cursor.no() };
    }
    let character = code.get(..digits).and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
    let Some(character) = character else { return cursor.no() };
    cursor.at += digits;
    push(text, character)
}

#[expect(clippy::unnecessary_wraps, reason = "every branch of an escape gives the same")]
fn push(text: &mut String, character: char) -> Read<()> {
    text.push(character);
    Ok(())
}

/// A number, or one of the words that stand for values.
fn word(cursor: &mut Cursor<'_>) -> Read<Value> {
    let word = cursor.word(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'));
    if word.len() == cursor.rest().len() {
        return cursor.ended();
    }
    let value = match word {
        "True" | "true" => Value::Bool(true),
        "False" | "false" => Value::Bool(false),
        "None" | "null" => Value::Null,
        number => match serde_json::from_str(&number.replace('_', "")) {
            Ok(value @ Value::Number(_)) => value,
            Ok(_) | Err(_) => return cursor.no(),
        },
    };
    cursor.at += word.len();
    Ok(value)
}
