//! Calls that a model wrote as text.
//!
//! Many local models answer with `{"name": …, "arguments": …}`, bare, in a fenced block or in `<tool_call>` tags, where
//! their server should have parsed a call out of it. Such text is held back while it may still become a call, and is then
//! a call or text, in its place. Only tools that are offered are called, by their exact names.

mod candidate;

use self::candidate::{Candidate, Frame, Verdict};
use crate::dialect::Offered;

/// The most text that is held back, in bytes; a longer one is text.
const MAX_HELD_BYTES: usize = 1024 * 1024;

const OPEN_TAG: &str = "<tool_call>";
const FENCE: &str = "```";
/// What may follow the opening fence of a call.
const FENCE_WORDS: [&str; 4] = ["", "json", "tool_call", "tool_calls"];

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

/// Finds calls in text that comes in pieces.
#[derive(Debug)]
pub(crate) struct Recoverer {
    offered: Offered,
    /// What was not given on yet: white space that a call may follow, and what may become one.
    held: String,
    /// The call that `held` may become, after its white space.
    candidate: Option<Candidate>,
    /// Where `held` begins.
    place: Place,
    /// Nothing but white space came since a call: it belongs to the call.
    is_after_call: bool,
}

/// What is known of a place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// Only white space was seen on its line.
    is_line_blank: bool,
    /// It is within a fenced block that is no call.
    is_in_fence: bool,
}

/// Where the next call may be.
enum Look {
    /// Not before this byte; more must come.
    Hold(usize, Place),
    /// White space begins at the first byte; the candidate's inside at the second.
    Candidate(usize, usize, Frame),
}

impl Recoverer {
    pub(crate) fn new(offered: Offered) -> Self {
        let place = Place { is_line_blank: true, is_in_fence: false };
        Self { offered, held: String::new(), candidate: None, place, is_after_call: false }
    }

    /// Takes the next piece of text.
    pub(crate) fn push(&mut self, piece: &str, out: &mut Vec<Piece>) {
        self.held.push_str(piece);
        loop {
            if let Some(candidate) = &mut self.candidate {
                match candidate.look(&self.held, &self.offered) {
                    Verdict::Growing if self.held.len() <= MAX_HELD_BYTES => return,
                    Verdict::Growing => self.reject(self.held.len(), out),
                    Verdict::Text(end) => self.reject(end, out),
                    Verdict::Calls(calls, end) => self.accept(calls, end, out),
                }
            } else {
                match look(&self.held, self.place) {
                    Look::Hold(from, place) => {
                        self.release(from, out);
                        self.place = place;
                        return;
                    }
                    Look::Candidate(from, inside, frame) => {
                        self.release(from, out);
                        self.candidate = Some(Candidate::new(frame, inside - from));
                    }
                }
            }
        }
    }

    /// Gives what was held back: nothing more comes.
    pub(crate) fn finish(&mut self, out: &mut Vec<Piece>) {
        if let Some((calls, end)) = self.candidate.as_mut().and_then(Candidate::unclosed) {
            self.accept(calls, end, out);
        }
        self.candidate = None;
        self.release(self.held.len(), out);
    }

    fn accept(&mut self, calls: Vec<(String, String)>, end: usize, out: &mut Vec<Piece>) {
        out.extend(calls.into_iter().map(|(name, arguments)| Piece::Call { name, arguments }));
        self.held.drain(..end);
        self.candidate = None;
        self.place = Place { is_line_blank: true, is_in_fence: false };
        self.is_after_call = true;
    }

    fn reject(&mut self, end: usize, out: &mut Vec<Piece>) {
        let is_in_fence = self.candidate.take().is_some_and(|candidate| candidate.frame == Frame::Fence);
        self.place = Place { is_line_blank: false, is_in_fence };
        self.release(end, out);
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

/// Looks for the beginning of a call in `text`, which begins at `place`.
fn look(text: &str, mut place: Place) -> Look {
    // Where the white space at hand began, and what the place was like before it.
    let mut space: Option<(usize, Place)> = None;
    let mut skip_to = 0;
    for (at, byte) in text.bytes().enumerate() {
        if at < skip_to {
            continue;
        }
        let (from, before) = space.unwrap_or((at, place));
        let rest = || text.get(at..).unwrap_or_default();
        match byte {
            b'\n' | b' ' | b'\t' | b'\r' => {
                space = Some((from, before));
                place.is_line_blank |= byte == b'\n';
                continue;
            }
            b'{' | b'[' if place.is_line_blank && !place.is_in_fence => return Look::Candidate(from, at, Frame::Bare),
            b'<' if !place.is_in_fence && rest().starts_with(OPEN_TAG) => {
                return Look::Candidate(from, at + OPEN_TAG.len(), Frame::Tag);
            }
            b'<' if !place.is_in_fence && OPEN_TAG.starts_with(rest()) => return Look::Hold(from, before),
            b'`' if place.is_line_blank => match fence(rest(), place.is_in_fence) {
                Fence::Undecided => return Look::Hold(from, before),
                Fence::Call(length) => return Look::Candidate(from, at + length, Frame::Fence),
                Fence::Other => {
                    place.is_in_fence = !place.is_in_fence;
                    skip_to = at + FENCE.len();
                }
                Fence::None => {}
            },
            _ => {}
        }
        space = None;
        place.is_line_blank = false;
    }
    let (from, before) = space.unwrap_or((text.len(), place));
    Look::Hold(from, before)
}

/// What backticks at the start of a line are.
enum Fence {
    /// More must come.
    Undecided,
    /// The opening of a block that may hold calls, so many bytes long.
    Call(usize),
    /// The opening or the closing of another block.
    Other,
    /// No fence.
    None,
}

fn fence(text: &str, is_in_fence: bool) -> Fence {
    let Some(after) = text.strip_prefix(FENCE) else {
        return if FENCE.starts_with(text) { Fence::Undecided } else { Fence::None };
    };
    if is_in_fence {
        return Fence::Other;
    }
    match after.split_once('\n') {
        Some((word, _)) if FENCE_WORDS.contains(&word.trim()) => Fence::Call(FENCE.len() + word.len()),
        None if FENCE_WORDS.iter().any(|known| known.starts_with(after.trim_end())) => Fence::Undecided,
        Some(_) | None => Fence::Other,
    }
}

#[cfg(test)]
mod tests;
