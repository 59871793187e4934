//! Server-sent events out of a stream of bytes, wherever the network cut it (WHATWG HTML, "Server-sent events").

use std::borrow::Cow;

/// The largest event that is taken, in bytes: an image comes as one event.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// What a body in UTF-8 may begin with.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `event` field; empty where there was none.
    pub name: &'a str,
    /// The `data` lines, joined by `\n`; never empty.
    pub data: &'a str,
}

/// Bytes that are not a stream of events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event is larger than [`MAX_EVENT_BYTES`].
    #[error("an event of the stream is over the limit of {limit} bytes")]
    EventTooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The stream ended within an event.
    #[error("the stream ended within an event")]
    Truncated,
}

/// Cuts bytes into events. Give it every chunk with [`SseFramer::push`], then call [`SseFramer::end`] once.
///
/// An event that lies in one chunk is handed on without being copied. Time is linear in the bytes, memory is bounded by
/// [`MAX_EVENT_BYTES`]. Invalid UTF-8 becomes the replacement character.
#[derive(Debug, Default)]
pub struct SseFramer {
    /// The part of a line whose end has not come.
    line: Vec<u8>,
    /// The data of the event whose end has not come, except for a borrowed first line.
    data: Vec<u8>,
    has_data: bool,
    name: String,
    /// The last chunk ended in `\r`: a `\n` that follows belongs to it.
    is_after_cr: bool,
    /// How much of the byte order mark was seen; `None` once the stream has begun.
    start: Start,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// So many bytes of the byte order mark came, and nothing else.
    Mark(usize),
    Begun,
}

impl Default for Start {
    fn default() -> Self {
        Self::Mark(0)
    }
}

impl SseFramer {
    /// Takes the next bytes and gives every event that they complete to `on_event`.
    ///
    /// # Errors
    /// [`SseError::EventTooLarge`], or whatever `on_event` answers; the framer is of no use after either.
    pub fn push<E: From<SseError>>(
        &mut self,
        chunk: &[u8],
        mut on_event: impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = self.skip_mark(chunk);
        if self.is_after_cr && !rest.is_empty() {
            self.is_after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        // The only data line so far of the event at hand, where it lies in this chunk.
        let mut borrowed: Option<&[u8]> = None;
        while let Some(position) = memchr::memchr2(b'\n', b'\r', rest) {
            let (line, tail) = rest.split_at(position);
            rest = match tail {
                [b'\r', b'\n', more @ ..] | [_, more @ ..] => more,
                [] => tail,
            };
            self.is_after_cr = rest.is_empty() && tail == b"\r";
            if self.line.is_empty() {
                self.line(line, &mut borrowed, &mut on_event)?;
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                // A line that is put together here does not outlive this call: its data is copied.
                let mut nothing = None;
                self.own(&mut borrowed);
                self.line(&whole, &mut nothing, &mut on_event)?;
                self.own(&mut nothing);
                whole.clear();
                self.line = whole;
            }
        }
        self.own(&mut borrowed);
        self.line.extend_from_slice(rest);
        check(self.line.len() + self.data.len())?;
        Ok(())
    }

    /// Takes the end of the stream. An event whose last line break is missing is still one where its data is complete JSON
    /// or `[DONE]`: some gateways leave the break out.
    ///
    /// # Errors
    /// [`SseError::Truncated`] where an event was cut, or whatever `on_event` answers.
    pub fn end<E: From<SseError>>(&mut self, mut on_event: impl FnMut(SseEvent<'_>) -> Result<(), E>) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            if !line.starts_with(b"data:") && !line.starts_with(b":") {
                return Err(SseError::Truncated.into());
            }
            let mut borrowed = None;
            self.line(&line, &mut borrowed, &mut on_event)?;
            self.own(&mut borrowed);
        }
        if !self.has_data {
            return Ok(());
        }
        let is_whole =
            self.data.trim_ascii() == b"[DONE]" || serde_json::from_slice::<serde::de::IgnoredAny>(&self.data).is_ok();
        if is_whole { self.line(b"", &mut None, &mut on_event) } else { Err(SseError::Truncated.into()) }
    }

    fn skip_mark<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        let mut rest = chunk;
        while let Start::Mark(seen) = self.start {
            let Some((first, more)) = rest.split_first() else { return rest };
            if BYTE_ORDER_MARK.get(seen) == Some(first) {
                rest = more;
                self.start = if seen + 1 == BYTE_ORDER_MARK.len() { Start::Begun } else { Start::Mark(seen + 1) };
            } else {
                self.line.extend(BYTE_ORDER_MARK.iter().take(seen));
                self.start = Start::Begun;
            }
        }
        rest
    }

    /// Copies what is only borrowed, since its chunk goes away.
    fn own(&mut self, borrowed: &mut Option<&[u8]>) {
        if let Some(data) = borrowed.take() {
            self.data.extend_from_slice(data);
        }
    }

    fn line<'a, E: From<SseError>>(
        &mut self,
        line: &'a [u8],
        borrowed: &mut Option<&'a [u8]>,
        on_event: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if line.is_empty() {
            return self.dispatch(borrowed.take(), on_event);
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            return self.add_data(value, borrowed).map_err(E::from);
        }
        if let Some(value) = line.strip_prefix(b"event:") {
            self.name.clear();
            self.name.push_str(&text(without_space(value)));
        } else if line == b"data" {
            return self.add_data(b"", borrowed).map_err(E::from);
        }
        // Comments, `id`, `retry` and unknown fields mean nothing to a model's answer.
        Ok(())
    }

    fn add_data<'a>(&mut self, value: &'a [u8], borrowed: &mut Option<&'a [u8]>) -> Result<(), SseError> {
        let value = without_space(value);
        if self.has_data {
            self.own(borrowed);
            self.data.push(b'\n');
            self.data.extend_from_slice(value);
        } else {
            self.has_data = true;
            *borrowed = Some(value);
        }
        check(self.data.len() + value.len())
    }

    fn dispatch<E>(
        &mut self,
        borrowed: Option<&[u8]>,
        on_event: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let bytes = borrowed.unwrap_or(&self.data);
        let data = if self.has_data { text(bytes) } else { Cow::Borrowed("") };
        let answer = if data.is_empty() { Ok(()) } else { on_event(SseEvent { name: &self.name, data: &data }) };
        drop(data);
        self.data.clear();
        self.name.clear();
        self.has_data = false;
        answer
    }
}

/// Bytes as text. Nearly all are, and that is seen several times as quickly as where they are not.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn without_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}

fn check(bytes: usize) -> Result<(), SseError> {
    if bytes > MAX_EVENT_BYTES { Err(SseError::EventTooLarge { limit: MAX_EVENT_BYTES }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
