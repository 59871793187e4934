//! Calls in JSON.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::cursor::{Call, Cursor, Read};
use crate::dialect::Offered;

/// The keys of a call, in all the forms in which models write one.
const KEYS: [&str; 9] = ["name", "arguments", "parameters", "function", "type", "id", "index", "tool_name", "tool_call_id"];

/// The calls of one value: an object, or a list of them.
pub(super) fn calls(cursor: &mut Cursor<'_>) -> Read<Vec<Call>> {
    let json = value(cursor, Wanted::Calls)?;
    calls_of(json, cursor)
}

/// The calls of a value that is behind the cursor.
pub(super) fn calls_of(json: &str, cursor: &Cursor<'_>) -> Read<Vec<Call>> {
    calls_in(json, cursor.offered).map_or_else(|| cursor.no(), Ok)
}

/// The object of a call's arguments.
pub(super) fn arguments(cursor: &mut Cursor<'_>) -> Read<String> {
    if cursor.next()? != '{' {
        return cursor.no();
    }
    let json = value(cursor, Wanted::Anything)?;
    if serde_json::from_str::<IgnoredAny>(json).is_ok() { Ok(json.to_owned()) } else { cursor.no() }
}

/// What a value is meant to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Calls,
    Anything,
}

/// Goes past the object or list here. Where calls are wanted, notices early what is none: a key that calls do not have, a
/// name that is not offered.
fn value<'a>(cursor: &mut Cursor<'a>, wanted: Wanted) -> Read<&'a str> {
    let start = cursor.at;
    let text = cursor.rest();
    let mut scanner = Scanner { depth: 0, call_depth: 1, string: None, is_key_next: false, is_name: false };
    let is_strict = wanted == Wanted::Calls;
    for (at, byte) in text.bytes().enumerate() {
        cursor.at = start + at + 1;
        match scanner.byte(text, at, byte, is_strict.then_some(cursor.offered)) {
            Scan::Growing => {}
            Scan::End => return Ok(text.get(..=at).unwrap_or_default()),
            Scan::No => {
                // In the middle of a character there is nothing to go on from.
                while !text.is_char_boundary(cursor.at - start) {
                    cursor.at += 1;
                }
                return cursor.no();
            }
        }
    }
    cursor.ended()
}

enum Scan {
    Growing,
    End,
    /// It cannot become a call.
    No,
}

struct Scanner {
    depth: u32,
    /// The depth of the members of a call: 1, or 2 in a list.
    call_depth: u32,
    string: Option<StringAt>,
    is_key_next: bool,
    is_name: bool,
}

struct StringAt {
    start: usize,
    is_escaped: bool,
}

impl Scanner {
    /// Takes the byte at `at`. `offered` where calls are wanted.
    fn byte(&mut self, text: &str, at: usize, byte: u8, offered: Option<&Offered>) -> Scan {
        if let Some(string) = &mut self.string {
            if string.is_escaped {
                string.is_escaped = false;
            } else if byte == b'\\' {
                string.is_escaped = true;
            } else if byte == b'"' {
                let word = text.get(string.start..at).unwrap_or_default();
                self.string = None;
                if offered.is_some_and(|offered| !self.may_be_call(word, offered)) {
                    return Scan::No;
                }
            }
            return Scan::Growing;
        }
        match byte {
            b'"' => self.string = Some(StringAt { start: at + 1, is_escaped: false }),
            b'[' if self.depth == 0 => {
                self.depth = 1;
                self.call_depth = 2;
            }
            b'{' | b'[' => {
                if self.depth + 1 == self.call_depth {
                    self.is_key_next = true;
                }
                self.depth += 1;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return Scan::End;
                }
            }
            b',' if self.depth == self.call_depth => self.is_key_next = true,
            b':' if self.depth == self.call_depth => self.is_key_next = false,
            b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => {}
            _ if offered.is_none() => {}
            _ if self.depth < self.call_depth || (self.depth == self.call_depth && self.is_key_next) => {
                return Scan::No;
            }
            _ => {}
        }
        Scan::Growing
    }

    /// Whether a string that ended may stand where it does.
    fn may_be_call(&mut self, word: &str, offered: &Offered) -> bool {
        if self.depth < self.call_depth {
            return false;
        }
        if self.depth > self.call_depth {
            return true;
        }
        if self.is_key_next {
            self.is_name = matches!(word, "name" | "tool_name");
            return KEYS.contains(&word);
        }
        !std::mem::take(&mut self.is_name) || offered.contains(word)
    }
}

/// A call in one of the forms in which models write them.
#[derive(Debug, Deserialize)]
struct Written<'a> {
    #[serde(borrow, default, alias = "tool_name")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<&'a RawValue>,
}

/// What stands in doubled braces: Qwen2.5-Coder's template shows the form of a call so, and its models write some so. No
/// object in JSON begins like that.
fn single(json: &str) -> &str {
    let inner = json.strip_prefix('{').and_then(|json| json.strip_suffix('}')).map(str::trim);
    inner.filter(|inner| inner.starts_with('{')).unwrap_or(json)
}

fn calls_in(json: &str, offered: &Offered) -> Option<Vec<Call>> {
    let json = single(json);
    let written: Vec<Written<'_>> =
        if json.starts_with('[') { serde_json::from_str(json).ok()? } else { vec![serde_json::from_str(json).ok()?] };
    if written.is_empty() {
        return None;
    }
    written.into_iter().map(|written| call_of(written, offered)).collect()
}

fn call_of(written: Written<'_>, offered: &Offered) -> Option<Call> {
    let written = match (&written.name, written.function) {
        (None, Some(function)) => serde_json::from_str(function.get()).ok()?,
        _ => written,
    };
    let name = written.name.filter(|name| offered.contains(name))?.into_owned();
    let raw = written.arguments.or(written.parameters)?.get();
    let arguments = if raw.starts_with('"') { serde_json::from_str(raw).ok()? } else { raw.to_owned() };
    let is_object = arguments.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(&arguments).is_ok();
    is_object.then_some((name, arguments))
}
