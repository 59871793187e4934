//! Text that may become a call: looked at once, byte by byte, as it grows.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::Offered;

/// The keys of a call, in all the forms in which models write one.
const KEYS: [&str; 7] = ["name", "arguments", "parameters", "function", "type", "id", "index"];

/// What surrounds the JSON of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    Bare,
    Fence,
    Tag,
}

impl Frame {
    fn closing(self) -> &'static str {
        match self {
            Self::Bare => "",
            Self::Fence => super::FENCE,
            Self::Tag => "</tool_call>",
        }
    }
}

/// What a candidate has become.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It cannot be said yet.
    Growing,
    /// No call, up to this byte.
    Text(usize),
    /// Names and arguments of calls, up to this byte.
    Calls(Vec<(String, String)>, usize),
}

/// Text that may become a call.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) frame: Frame,
    /// The bytes that were looked at.
    seen: usize,
    /// The JSON value that was begun.
    value: Option<Scanner>,
    calls: Vec<(String, String)>,
}

impl Candidate {
    /// A candidate whose inside begins at byte `inside`.
    pub(super) fn new(frame: Frame, inside: usize) -> Self {
        Self { frame, seen: inside, value: None, calls: Vec::new() }
    }

    /// Looks at what came.
    pub(super) fn look(&mut self, text: &str, offered: &Offered) -> Verdict {
        loop {
            if let Some(scanner) = &mut self.value {
                match scanner.scan(text, &mut self.seen, offered) {
                    Scan::Growing => return Verdict::Growing,
                    Scan::No => return Verdict::Text(self.seen),
                    Scan::End => {
                        let json = text.get(scanner.start..self.seen).unwrap_or_default();
                        let Some(calls) = calls_in(json, offered) else { return Verdict::Text(self.seen) };
                        self.calls.extend(calls);
                        self.value = None;
                        if self.frame == Frame::Bare {
                            return Verdict::Calls(std::mem::take(&mut self.calls), self.seen);
                        }
                    }
                }
                continue;
            }
            let rest = text.get(self.seen..).unwrap_or_default();
            let inside = rest.trim_start();
            self.seen += rest.len() - inside.len();
            let closing = self.frame.closing();
            if inside.starts_with(['{', '[']) {
                self.value = Some(Scanner::new(self.seen));
            } else if !self.calls.is_empty() && inside.starts_with(closing) {
                return Verdict::Calls(std::mem::take(&mut self.calls), self.seen + closing.len());
            } else if closing.starts_with(inside) {
                return Verdict::Growing;
            } else {
                return Verdict::Text(self.seen);
            }
        }
    }

    /// The calls of a candidate whose closing tag or fence never came, up to which byte.
    pub(super) fn unclosed(&mut self) -> Option<(Vec<(String, String)>, usize)> {
        (self.value.is_none() && !self.calls.is_empty()).then(|| (std::mem::take(&mut self.calls), self.seen))
    }
}

/// Whether a JSON value has ended.
enum Scan {
    Growing,
    End,
    /// It cannot become a call.
    No,
}

/// Follows a JSON value to its end, and notices early where it is no call: a key that calls do not have, a name that is
/// not offered.
#[derive(Debug)]
struct Scanner {
    start: usize,
    depth: u32,
    /// The depth of the members of a call: 1, or 2 in a list.
    call_depth: u32,
    string: Option<StringAt>,
    is_key_next: bool,
    is_name: bool,
}

#[derive(Debug)]
struct StringAt {
    start: usize,
    is_escaped: bool,
}

impl Scanner {
    fn new(start: usize) -> Self {
        Self { start, depth: 0, call_depth: 1, string: None, is_key_next: false, is_name: false }
    }

    fn scan(&mut self, text: &str, seen: &mut usize, offered: &Offered) -> Scan {
        let from = *seen;
        for (byte, at) in text.as_bytes().get(from..).unwrap_or_default().iter().zip(from..) {
            *seen = at + 1;
            if let Some(string) = &mut self.string {
                if string.is_escaped {
                    string.is_escaped = false;
                } else if *byte == b'\\' {
                    string.is_escaped = true;
                } else if *byte == b'"' {
                    let word = text.get(string.start..at).unwrap_or_default();
                    self.string = None;
                    if !self.may_be_call(word, offered) {
                        return Scan::No;
                    }
                }
                continue;
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
                _ if self.depth < self.call_depth || (self.depth == self.call_depth && self.is_key_next) => {
                    return Scan::No;
                }
                _ => {}
            }
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
            self.is_name = word == "name";
            return KEYS.contains(&word);
        }
        !std::mem::take(&mut self.is_name) || offered.contains(word)
    }
}

/// A call in one of the forms in which models write them.
#[derive(Debug, Deserialize)]
struct Written<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<&'a RawValue>,
}

fn calls_in(json: &str, offered: &Offered) -> Option<Vec<(String, String)>> {
    let written: Vec<Written<'_>> =
        if json.starts_with('[') { serde_json::from_str(json).ok()? } else { vec![serde_json::from_str(json).ok()?] };
    if written.is_empty() {
        return None;
    }
    written.into_iter().map(|written| call_of(written, offered)).collect()
}

fn call_of(written: Written<'_>, offered: &Offered) -> Option<(String, String)> {
    let written = match (&written.name, written.function) {
        (None, Some(function)) => serde_json::from_str(function.get()).ok()?,
        _ => written,
    };
    let name = written.name.filter(|name| offered.contains(name))?.into_owned();
    let raw = written.arguments.or(written.parameters)?.get();
    let arguments = if raw.starts_with('"') { serde_json::from_str(raw).ok()? } else { raw.to_owned() };
    let is_object =
        arguments.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(&arguments).is_ok();
    is_object.then_some((name, arguments))
}
