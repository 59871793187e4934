//! Lines of JSON out of a stream of bytes, wherever the network cut it (`application/x-ndjson`).

use serde::de::IgnoredAny;

use crate::sse::{MAX_EVENT_BYTES, SseError, SseEvent, text};

/// Cuts bytes into lines, each an event without a name. Give it every chunk with [`LineFramer::push`], then call
/// [`LineFramer::end`] once. A line that lies in one chunk is handed on without being copied; memory is bounded by
/// [`MAX_EVENT_BYTES`].
#[derive(Debug, Default)]
pub(crate) struct LineFramer {
    /// The part of a line whose end has not come.
    line: Vec<u8>,
}

impl LineFramer {
    /// Takes the next bytes and gives every line that they complete to `on_event`.
    pub(crate) fn push<E: From<SseError>>(
        &mut self,
        chunk: &[u8],
        mut on_event: impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = chunk;
        while let Some(position) = memchr::memchr(b'\n', rest) {
            let (line, tail) = rest.split_at(position);
            rest = tail.get(1..).unwrap_or_default();
            if self.line.is_empty() {
                dispatch(line, &mut on_event)?;
            } else {
                self.take(line)?;
                let whole = std::mem::take(&mut self.line);
                dispatch(&whole, &mut on_event)?;
            }
        }
        Ok(self.take(rest)?)
    }

    /// Takes the end of the stream; the last line may lack its line break where it is complete JSON.
    pub(crate) fn end<E: From<SseError>>(&mut self, mut on_event: impl FnMut(SseEvent<'_>) -> Result<(), E>) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        match serde_json::from_slice::<IgnoredAny>(&line) {
            Ok(_) => dispatch(&line, &mut on_event),
            Err(_) => Err(SseError::Truncated.into()),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        if self.line.len() + bytes.len() > MAX_EVENT_BYTES {
            return Err(SseError::EventTooLarge { limit: MAX_EVENT_BYTES });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }
}

/// Whether `body` begins with a line that is JSON by itself; `None` where its first line has not ended.
pub(crate) fn begins_with_line(body: &[u8]) -> Option<bool> {
    let body = body.trim_ascii_start();
    let end = memchr::memchr(b'\n', body)?;
    let line = body.get(..end).unwrap_or_default();
    Some(serde_json::from_slice::<IgnoredAny>(line).is_ok())
}

fn dispatch<E: From<SseError>>(line: &[u8], on_event: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>) -> Result<(), E> {
    if line.len() > MAX_EVENT_BYTES {
        return Err(SseError::EventTooLarge { limit: MAX_EVENT_BYTES }.into());
    }
    let line = line.trim_ascii();
    if line.is_empty() { Ok(()) } else { on_event(SseEvent { name: "", data: &text(line) }) }
}
