//! Calls that a model wrote as text.
//!
//! Many local models answer with `{"name": …, "arguments": …}`, with special tokens or in tags, where their server should
//! have parsed a call out of it. [`TextForm`] lists the forms. Such text is held back while it may still become a call, and
//! is then a call or text, in its place. Only tools that are offered are called, by their exact names; what stands in a
//! fenced block of another language or in inline code is a quotation.

mod cursor;
mod form;
mod json;
mod python;
mod tagged;
mod tokens;

use self::cursor::{Call, Cursor, Read, Stop};
use self::form::{MARKS, Opening, may_begin_mark};
pub use self::form::{TextForm, TextForms};
use crate::dialect::Offered;

/// The most text that is held back, in bytes; a longer one is text.
const MAX_HELD_BYTES: usize = 1024 * 1024;
/// Up to this length, in bytes, held text is looked at whenever some came; longer text when it has grown by an eighth, so
/// that all looks together cost no more than a few of the last.
const OFTEN_BYTES: usize = 4 * 1024;

const FENCE: &str = "```";
/// What may follow the opening fence of a call in JSON.
const FENCE_WORDS: [&str; 4] = ["", "json", "tool_call", "tool_calls"];
/// What follows the opening fence of a call as Python's.
const CODE_FENCE_WORD: &str = "tool_code";

/// A piece of a model's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text that is no call.
    Text(String),
    /// A call.
    Call {
        /// An offered tool's name.
        name: String,
        /// A JSON object, as the model wrote it.
        arguments: String,
    },
}

/// The forms in which `text` holds a call of a tool that is offered, each looked for alone.
pub fn text_forms_in(text: &str, offered: &Offered) -> Vec<TextForm> {
    let has_call = |form: &TextForm| {
        let mut recoverer = Recoverer::new(offered.clone(), TextForms::only(*form));
        let mut pieces = Vec::new();
        recoverer.push(text, &mut pieces);
        recoverer.finish(&mut pieces);
        pieces.iter().any(|piece| matches!(piece, Piece::Call { .. }))
    };
    TextForm::ALL.into_iter().filter(has_call).collect()
}

/// Finds calls in text that comes in pieces.
#[derive(Debug)]
pub(crate) struct Recoverer {
    offered: Offered,
    forms: TextForms,
    /// What was not given on yet: white space that a call may follow, and what may become one.
    held: String,
    /// The call that `held` may become, after its white space.
    candidate: Option<Candidate>,
    /// Where `held` begins.
    place: Place,
    /// Nothing but white space came since a call: it belongs to the call.
    is_after_call: bool,
}

/// Text that may become a call.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    opening: Opening,
    /// The first byte after the opening.
    inside: usize,
    /// How many bytes there were when it was looked at.
    looked: usize,
}

/// What is known of a place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// Only white space was seen on its line.
    is_line_blank: bool,
    /// It is within a fenced block that is no call.
    is_in_fence: bool,
    /// It is within inline code.
    is_in_code: bool,
}

impl Place {
    const START: Self = Self { is_line_blank: true, is_in_fence: false, is_in_code: false };
}

/// Where the next call may be.
enum Look {
    /// Not before this byte; more must come.
    Hold(usize, Place),
    /// White space begins at this byte.
    Candidate(usize, Candidate),
}

impl Recoverer {
    pub(crate) fn new(offered: Offered, forms: TextForms) -> Self {
        Self { offered, forms, held: String::new(), candidate: None, place: Place::START, is_after_call: false }
    }

    /// Takes the next piece of text.
    pub(crate) fn push(&mut self, piece: &str, out: &mut Vec<Piece>) {
        self.held.push_str(piece);
        self.go_on(Ends::No, out);
    }

    /// Gives what was held back: nothing more comes.
    pub(crate) fn finish(&mut self, out: &mut Vec<Piece>) {
        self.go_on(Ends::Here, out);
        self.release(self.held.len(), out);
    }

    fn go_on(&mut self, ends: Ends, out: &mut Vec<Piece>) {
        loop {
            let Some(candidate) = &mut self.candidate else {
                match look(&self.held, self.place, self.forms) {
                    Look::Hold(from, place) => {
                        self.release(from, out);
                        self.place = place;
                        return;
                    }
                    Look::Candidate(from, mut candidate) => {
                        self.release(from, out);
                        candidate.inside -= from;
                        self.candidate = Some(candidate);
                    }
                }
                continue;
            };
            let held = self.held.len();
            if ends == Ends::No && held > OFTEN_BYTES && held - candidate.looked < candidate.looked / 8 {
                return;
            }
            candidate.looked = held;
            let mut cursor = Cursor::new(&self.held, candidate.inside, ends == Ends::Here, &self.offered);
            match calls(&mut cursor, candidate.opening, self.forms) {
                Ok(calls) => {
                    let end = cursor.at;
                    self.accept(calls, end, out);
                }
                Err(Stop::No(end)) => self.reject(end, out),
                Err(Stop::Growing) if held <= MAX_HELD_BYTES => return,
                Err(Stop::Growing) => self.reject(held, out),
            }
        }
    }

    fn accept(&mut self, calls: Vec<Call>, end: usize, out: &mut Vec<Piece>) {
        out.extend(calls.into_iter().map(|(name, arguments)| Piece::Call { name, arguments }));
        self.held.drain(..end);
        self.candidate = None;
        self.place = Place::START;
        self.is_after_call = true;
    }

    fn reject(&mut self, end: usize, out: &mut Vec<Piece>) {
        let candidate = self.candidate.take();
        let is_in_fence = candidate.is_some_and(|it| matches!(it.opening, Opening::Fence | Opening::CodeFence));
        self.place = Place { is_line_blank: false, is_in_fence, is_in_code: false };
        // What opened it is not looked at again.
        self.release(end.max(candidate.map_or(0, |candidate| candidate.inside)), out);
    }

    /// Gives the first `end` held bytes as text.
    fn release(&mut self, end: usize, out: &mut Vec<Piece>) {
        let rest = self.held.split_off(end);
        let text = std::mem::replace(&mut self.held, rest);
        let is_for_call = self.is_after_call && text.trim().is_empty();
        if text.is_empty() || is_for_call {
            return;
        }
        let text = if self.is_after_call { text.trim_start().to_owned() } else { text };
        self.is_after_call = false;
        out.push(Piece::Text(text));
    }
}

/// Whether the text ends with what was given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    No,
    Here,
}

/// Reads the calls that follow an opening.
fn calls(cursor: &mut Cursor<'_>, opening: Opening, forms: TextForms) -> Read<Vec<Call>> {
    match opening {
        Opening::Bare => bare(cursor, forms),
        Opening::Fence => fenced(cursor),
        Opening::CodeFence => tokens::tool_code(cursor),
        Opening::Tag(closing) => tagged::tool_call(cursor, closing),
        Opening::MistralToken => tokens::mistral(cursor),
        Opening::PythonTag => tokens::python_tag(cursor),
        Opening::FunctionTag => tagged::function(cursor).map(|call| vec![call]),
        Opening::PythonTokens(closing) => tokens::python_tokens(cursor, closing),
        Opening::DeepseekCalls => tokens::deepseek_calls(cursor),
        Opening::DeepseekCall => tokens::deepseek_call(cursor).map(|call| vec![call]),
        Opening::ToolCallToken => tokens::tool_call_token(cursor),
        Opening::Functools => json::calls(cursor),
        Opening::KimiSection => tokens::kimi_section(cursor),
        Opening::KimiCall => tokens::kimi_call(cursor).map(|call| vec![call]),
        Opening::Harmony => tokens::harmony(cursor),
        Opening::InvokeSection(closing) => tagged::invokes(cursor, "", closing),
        Opening::InvokeCall => tagged::invoke(cursor, "").map(|call| vec![call]),
        Opening::DsmlSection => tagged::invokes(cursor, "｜DSML｜", "</｜DSML｜function_calls>"),
        Opening::CohereAction => tokens::cohere(cursor),
        Opening::QwenFunction => tokens::qwen(cursor),
    }
}

/// A JSON value, or a Python list that has its line to itself.
fn bare(cursor: &mut Cursor<'_>, forms: TextForms) -> Read<Vec<Call>> {
    let mut ahead = *cursor;
    ahead.at += 1;
    if cursor.rest().starts_with('[') && forms.contains(TextForm::Python) && !matches!(ahead.next()?, '{' | '[' | ']') {
        let calls = python::list(cursor)?;
        let line = cursor.rest().trim_start_matches([' ', '\t', '\r']);
        return match line.chars().next() {
            Some('\n') => Ok(calls),
            None if cursor.is_end => Ok(calls),
            None => cursor.ended(),
            Some(_) => cursor.no(),
        };
    }
    if forms.contains(TextForm::Json) { json::calls(cursor) } else { cursor.no() }
}

/// JSON values up to the closing fence, which the end of an answer stands for too.
fn fenced(cursor: &mut Cursor<'_>) -> Read<Vec<Call>> {
    let mut calls = Vec::new();
    loop {
        if !calls.is_empty() && cursor.is_over() {
            return Ok(calls);
        }
        match cursor.next()? {
            '{' | '[' => calls.extend(json::calls(cursor)?),
            _ if calls.is_empty() => return cursor.no(),
            _ => {
                cursor.close(FENCE)?;
                return Ok(calls);
            }
        }
    }
}

/// Looks for the beginning of a call in `text`, which begins at `place`.
fn look(text: &str, mut place: Place, forms: TextForms) -> Look {
    // Where the white space at hand began, and what the place was like before it.
    let mut space: Option<(usize, Place)> = None;
    let mut skip_to = 0;
    for (at, byte) in text.bytes().enumerate() {
        if at < skip_to {
            continue;
        }
        let (from, before) = space.unwrap_or((at, place));
        let rest = || text.get(at..).unwrap_or_default();
        let candidate = |opening, inside| Look::Candidate(from, Candidate { opening, inside, looked: 0 });
        if matches!(byte, b'\n' | b' ' | b'\t' | b'\r') {
            space = Some((from, before));
            if byte == b'\n' {
                place = Place { is_line_blank: true, is_in_code: false, ..place };
            }
            continue;
        }
        if may_begin_mark(byte) && !place.is_in_fence && !place.is_in_code {
            match mark(rest(), place, forms) {
                Mark::Undecided => return Look::Hold(from, before),
                Mark::Opens(opening, length) => return candidate(opening, at + length),
                Mark::None => {}
            }
        }
        match byte {
            b'{' | b'[' if place.is_line_blank && !place.is_in_fence && may_be_bare(byte, forms) => {
                return candidate(Opening::Bare, at);
            }
            b'`' if place.is_line_blank => match fence(rest(), place, forms) {
                Fence::Undecided => return Look::Hold(from, before),
                Fence::Call(opening, length) => return candidate(opening, at + length),
                Fence::Other => {
                    place.is_in_fence = !place.is_in_fence;
                    skip_to = at + FENCE.len();
                }
                Fence::None => place.is_in_code = !place.is_in_code,
            },
            b'`' => place.is_in_code = !place.is_in_code,
            _ => {}
        }
        space = None;
        place.is_line_blank = false;
    }
    let (from, before) = space.unwrap_or((text.len(), place));
    Look::Hold(from, before)
}

/// Whether a bracket may open a call without a mark.
fn may_be_bare(byte: u8, forms: TextForms) -> bool {
    forms.contains(TextForm::Json) || (byte == b'[' && forms.contains(TextForm::Python))
}

/// Whether a mark is here.
enum Mark {
    /// More must come.
    Undecided,
    /// One is, so many bytes long.
    Opens(Opening, usize),
    None,
}

fn mark(text: &str, place: Place, forms: TextForms) -> Mark {
    let mut is_undecided = false;
    for (mark, opening, form) in MARKS {
        if !forms.contains(form) || (opening == Opening::Functools && !place.is_line_blank) {
            continue;
        }
        if text.starts_with(mark) {
            // The bracket is a part of the list.
            let length = if opening == Opening::Functools { mark.len() - 1 } else { mark.len() };
            return Mark::Opens(opening, length);
        }
        is_undecided |= mark.starts_with(text);
    }
    if is_undecided { Mark::Undecided } else { Mark::None }
}

/// What backticks at the start of a line are.
enum Fence {
    /// More must come.
    Undecided,
    /// The opening of a block that may hold calls, so many bytes long.
    Call(Opening, usize),
    /// The opening or the closing of another block.
    Other,
    /// No fence.
    None,
}

fn fence(text: &str, place: Place, forms: TextForms) -> Fence {
    let Some(after) = text.strip_prefix(FENCE) else {
        return if FENCE.starts_with(text) { Fence::Undecided } else { Fence::None };
    };
    if place.is_in_fence {
        return Fence::Other;
    }
    let json = FENCE_WORDS.iter().filter(|_| forms.contains(TextForm::Json)).map(|word| (*word, Opening::Fence));
    let code = forms.contains(TextForm::Python).then_some((CODE_FENCE_WORD, Opening::CodeFence));
    let mut known = json.chain(code);
    match after.split_once('\n') {
        Some((word, _)) => match known.find(|(known, _)| *known == word.trim()) {
            Some((_, opening)) => Fence::Call(opening, FENCE.len() + word.len()),
            None => Fence::Other,
        },
        None if known.any(|(known, _)| known.starts_with(after.trim_end())) => Fence::Undecided,
        None => Fence::Other,
    }
}

#[cfg(test)]
mod tests;
