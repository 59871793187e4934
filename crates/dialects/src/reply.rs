//! A response with a success status, from its bytes: a stream of events, lines of JSON, one JSON body, or something else.
//!
//! Which it is, is seen by its first character: gateways name the wrong content type, and answer a request for a stream
//! with a whole reply or with an error.

use turnwright_core::{ProviderFailure, ProviderFailureKind, StreamDelta};

use crate::dialect::StreamDecoder;
use crate::failure;
use crate::halves::Halves;
use crate::lines::{LineFramer, begins_with_line};
use crate::sse::{BYTE_ORDER_MARK, SseError, SseEvent, SseFramer};

/// The largest body that is taken whole, in bytes.
pub const MAX_WHOLE_BYTES: usize = 32 * 1024 * 1024;

/// How much of a body that is no answer is awaited, to show it, in bytes.
const MAX_SHOWN_BYTES: usize = 512;

/// Decodes one response. Give it every chunk of the body with [`ReplyDecoder::push`], then call [`ReplyDecoder::end`] once;
/// where the connection breaks call [`ReplyDecoder::cut_off`] instead. After an error nothing more may be called.
#[derive(Debug)]
pub struct ReplyDecoder {
    decoder: Box<dyn StreamDecoder>,
    body: Body,
    /// What waits for the second half of a character.
    halves: Halves,
    is_event_stream: bool,
}

#[derive(Debug)]
enum Body {
    /// Nothing but white space came.
    Unknown(Vec<u8>),
    Events(SseFramer),
    /// Of a decoder that takes them.
    Lines(LineFramer),
    Whole(Vec<u8>),
}

impl ReplyDecoder {
    /// A decoder for a response with this content type.
    pub fn new(decoder: Box<dyn StreamDecoder>, content_type: Option<&str>) -> Self {
        let is_event_stream = content_type.is_some_and(|text| text.trim_start().starts_with("text/event-stream"));
        Self { decoder, body: Body::Unknown(Vec::new()), halves: Halves::default(), is_event_stream }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// What the provider says went wrong, or what is wrong with the bytes. `out` then ends with what there is of the answer.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let answer = self.take(bytes, out);
        self.settle(answer, out)
    }

    /// Takes the end of the body.
    ///
    /// # Errors
    /// As [`ReplyDecoder::push`], and where the answer ended before its end.
    pub fn end(&mut self, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let answer = self.take_end(out);
        self.settle(answer, out)
    }

    /// Gives what is known of an answer whose connection broke.
    pub fn cut_off(&mut self, out: &mut Vec<StreamDelta>) {
        // What it says went wrong does not matter any more.
        drop(self.halves.release(&mut |event| self.decoder.event(event, out)));
        self.decoder.cut_off(out);
    }

    /// The model that answers, as its provider names it, where it has said so.
    pub fn model(&self) -> Option<&str> {
        self.decoder.model()
    }

    /// What is wrong with an answer that was taken as complete all the same, in words for the operator.
    pub fn warning(&self) -> Option<&'static str> {
        self.decoder.warning()
    }

    /// Whether the terminal marker came: nothing more is to be read.
    pub fn is_done(&self) -> bool {
        self.decoder.is_done()
    }

    /// Whether the provider said that it failed: little more comes, and [`ReplyDecoder::end`] says how it failed.
    pub fn is_failing(&self) -> bool {
        self.decoder.is_failing()
    }

    fn settle(&mut self, answer: Result<(), ProviderFailure>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if answer.is_err() {
            self.cut_off(out);
        }
        answer
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        match &mut self.body {
            Body::Unknown(held) if held.is_empty() && self.is_event_stream && is_event_field(bytes) => {
                // The usual case, without a copy.
                self.body = Body::Events(SseFramer::default());
                self.take(bytes, out)
            }
            Body::Unknown(held) => {
                held.extend_from_slice(bytes);
                if held.starts_with(BYTE_ORDER_MARK) {
                    held.drain(..BYTE_ORDER_MARK.len());
                } else if BYTE_ORDER_MARK.starts_with(held) {
                    return Ok(());
                }
                let Some(first) = held.iter().find(|byte| !byte.is_ascii_whitespace()) else {
                    return check(held.len());
                };
                let body = match first {
                    b'{' if self.decoder.takes_lines() => {
                        // Only what came now may end the first line.
                        let line = if bytes.contains(&b'\n') { begins_with_line(held) } else { None };
                        match line {
                            None => return check(held.len()),
                            Some(true) => Body::Lines(LineFramer::default()),
                            Some(false) => Body::Whole(Vec::new()),
                        }
                    }
                    b'{' | b'[' => Body::Whole(Vec::new()),
                    b'<' if held.len() < MAX_SHOWN_BYTES => return Ok(()),
                    b'<' => return Err(no_answer(held)),
                    _ if self.is_event_stream || may_be_events(held) => Body::Events(SseFramer::default()),
                    _ if held.len() < MAX_SHOWN_BYTES => return Ok(()),
                    _ => return Err(no_answer(held)),
                };
                let held = std::mem::take(held);
                self.body = body;
                self.take(&held, out)
            }
            Body::Events(framer) => {
                let mut decode = |event: SseEvent<'_>| self.decoder.event(event, out).map_err(Failed::Said);
                framer.push(bytes, |event| self.halves.push(event, &mut decode)).map_err(Failed::into_failure)
            }
            Body::Lines(framer) => {
                let mut decode = |event: SseEvent<'_>| self.decoder.event(event, out).map_err(Failed::Said);
                framer.push(bytes, |event| self.halves.push(event, &mut decode)).map_err(Failed::into_failure)
            }
            Body::Whole(body) => {
                check(body.len() + bytes.len())?;
                body.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn take_end(&mut self, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if self.decoder.is_done() {
            return Ok(());
        }
        match &mut self.body {
            Body::Unknown(held) if held.trim_ascii_start().starts_with(b"{") => self.decoder.whole(held, out),
            Body::Unknown(held) if held.iter().any(|byte| !byte.is_ascii_whitespace()) => Err(no_answer(held)),
            Body::Unknown(_) => self.decoder.end(out),
            Body::Whole(body) => {
                let body = std::mem::take(body);
                self.decoder.whole(&body, out)
            }
            Body::Events(framer) => {
                let mut decode = |event: SseEvent<'_>| self.decoder.event(event, out).map_err(Failed::Said);
                let end = framer.end(|event| self.halves.push(event, &mut decode));
                let end = self.halves.release(&mut decode).and(end);
                self.ended(end, out)
            }
            Body::Lines(framer) => {
                let mut decode = |event: SseEvent<'_>| self.decoder.event(event, out).map_err(Failed::Said);
                let end = framer.end(|event| self.halves.push(event, &mut decode));
                let end = self.halves.release(&mut decode).and(end);
                self.ended(end, out)
            }
        }
    }

    fn ended(&mut self, end: Result<(), Failed>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if !self.decoder.is_failing() {
            end.map_err(Failed::into_failure)?;
        }
        self.decoder.end(out)
    }
}

/// What can stop the framing.
enum Failed {
    Said(ProviderFailure),
    Framing(SseError),
}

impl From<SseError> for Failed {
    fn from(error: SseError) -> Self {
        Self::Framing(error)
    }
}

impl Failed {
    fn into_failure(self) -> ProviderFailure {
        match self {
            Self::Said(failure) => failure,
            Self::Framing(SseError::Truncated) => ProviderFailure::cut_off(),
            Self::Framing(error @ SseError::EventTooLarge { .. }) => {
                ProviderFailure::new(ProviderFailureKind::Limit, error.to_string())
            }
        }
    }
}

/// The failure of a body that is no answer, once enough of it came to show what it is.
fn no_answer(body: &[u8]) -> ProviderFailure {
    if body.trim_ascii_start().starts_with(b"<") {
        return failure::page(body);
    }
    failure::malformed("the provider sent something that is no answer", body)
}

/// Whether bytes begin as most event streams do.
fn is_event_field(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(b'd' | b'e' | b':' | b'i' | b'r'))
}

/// Whether bytes of an unknown type are an event stream.
fn may_be_events(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).trim_ascii_start();
    [b"data:".as_slice(), b"event:", b":", b"id:", b"retry:"].iter().any(|field| text.starts_with(field))
}

fn check(bytes: usize) -> Result<(), ProviderFailure> {
    if bytes <= MAX_WHOLE_BYTES {
        return Ok(());
    }
    let text = format!("the provider's reply is over the limit of {MAX_WHOLE_BYTES} bytes");
    Err(ProviderFailure::new(ProviderFailureKind::Limit, text))
}
