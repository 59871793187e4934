//! An answer, from the lines of a stream or from one body.

use serde_json::Value;
use turnwright_core::{Finish, FinishReason, ProviderFailure, ProviderFailureKind, StreamDelta, Usage};

use super::wire::{Call, Line, Message};
use crate::answered::AnsweredBy;
use crate::dialect::{Offered, StreamDecoder};
use crate::failure;
use crate::json;
use crate::limits::{self, Length, MAX_ARGUMENT_BYTES, MAX_CALLS};
use crate::profile::Profile;
use crate::sse::SseEvent;
use crate::words::{self, Word, WordReader};

/// Decodes one answer of Ollama's format.
#[derive(Debug)]
pub(super) struct OllamaDecoder {
    words: WordReader,
    calls: u32,
    is_done: bool,
    /// What the server said went wrong.
    failed: Option<ProviderFailure>,
    length: Length,
    /// The model, as the provider names it.
    model: AnsweredBy,
}

impl OllamaDecoder {
    pub(super) fn new(profile: &Profile, offered: &Offered) -> Self {
        let words = WordReader::new(profile, offered);
        Self { words, calls: 0, is_done: false, failed: None, length: Length::default(), model: AnsweredBy::default() }
    }

    fn data(&mut self, data: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        match serde_json::from_str::<Line<'_>>(data) {
            Ok(line) if data.starts_with('{') => self.line(line, data, out),
            _ => match json::mended(data) {
                Some(mended) => self.data(&mended, out),
                // What is JSON and no line of an answer is of a kind that we do not know.
                None if serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok() => Ok(()),
                None => Err(failure::malformed("the stream holds a line that is not JSON", data.as_bytes())),
            },
        }
    }

    fn line(&mut self, line: Line<'_>, data: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if line.error.is_some()
            && let Some(failure) = serde_json::from_str(data).ok().and_then(|value| in_band(&value))
        {
            self.failed.get_or_insert(failure);
        }
        if self.failed.is_some() || self.is_done {
            return Ok(());
        }
        let (is_done, reason) = (line.is_done(), line.done_reason.any().map(str::to_owned));
        self.model.take(line.model);
        let usage = Usage { input_tokens: line.prompt_eval_count.0, output_tokens: line.eval_count.0, ..Usage::default() };
        for message in line.message.0 {
            self.message(message, out)?;
        }
        if is_done {
            self.is_done = true;
            self.flush(out);
            if usage != Usage::default() {
                out.push(StreamDelta::Usage(usage));
            }
            let finish = Finish { reason: reason.as_deref().map_or(FinishReason::Stop, finish_reason), raw: reason };
            out.push(StreamDelta::Finished(finish));
        }
        Ok(())
    }

    fn message(&mut self, message: Message<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if let Some(text) = message.thinking.filled() {
            self.flush(out);
            self.length.add(text.len())?;
            out.push(StreamDelta::Reasoning(text.into_owned()));
        }
        if let Some(text) = message.content.filled() {
            self.length.add(text.len())?;
            if self.words.is_through() {
                out.push(StreamDelta::Text(text.into_owned()));
            } else {
                let mut words = Vec::new();
                self.words.push(&text, &mut words);
                self.said(words, out);
            }
        }
        for call in message.tool_calls.0 {
            self.flush(out);
            self.call(call, out)?;
        }
        Ok(())
    }

    /// Takes a call, which comes whole.
    fn call(&mut self, call: Call<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let function = call.function.0.into_iter().next().unwrap_or_default();
        let name = function.name.filled().unwrap_or_default().into_owned();
        let arguments = function.arguments.text();
        if arguments.len() > MAX_ARGUMENT_BYTES {
            return Err(limits::arguments_too_large(&name));
        }
        self.length.add(name.len() + arguments.len())?;
        if usize::try_from(self.calls).is_ok_and(|count| count >= MAX_CALLS) {
            return Err(limits::too_many_calls());
        }
        let key = self.take_key();
        out.push(StreamDelta::CallStarted { key, name, provider_id: call.id.filled().map(std::borrow::Cow::into_owned) });
        if !arguments.is_empty() {
            out.push(StreamDelta::CallArguments { key, text: arguments.into_owned() });
        }
        Ok(())
    }

    fn take_key(&mut self) -> u32 {
        let key = self.calls;
        self.calls += 1;
        key
    }

    fn said(&mut self, words: Vec<Word>, out: &mut Vec<StreamDelta>) {
        for word in words {
            match word {
                Word::Reasoning(text) => out.push(StreamDelta::Reasoning(text)),
                Word::Text(text) => out.push(StreamDelta::Text(text)),
                Word::Call { name, arguments } => {
                    let key = self.take_key();
                    out.extend(words::recovered(key, name, arguments));
                }
            }
        }
    }

    /// Something else begins: what was held back of the text is what it is.
    fn flush(&mut self, out: &mut Vec<StreamDelta>) {
        if !self.words.is_through() {
            let mut words = Vec::new();
            self.words.finish(&mut words);
            self.said(words, out);
        }
    }
}

impl StreamDecoder for OllamaDecoder {
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        self.data(event.data.trim(), out)
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let text = String::from_utf8_lossy(body);
        for value in json::values(&text) {
            let value = value.map_err(|error| {
                if error.is_eof() { ProviderFailure::cut_off() } else { failure::malformed("not JSON", body) }
            })?;
            self.data(value.get(), out)?;
        }
        if self.failed.is_none() && !self.is_done && !self.length.is_something() {
            return Err(failure::malformed("the provider's reply holds no answer", body));
        }
        self.end(out)
    }

    fn takes_lines(&self) -> bool {
        true
    }

    fn end(&mut self, _: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        match self.failed.take() {
            Some(failure) => Err(failure),
            None if self.is_done => Ok(()),
            None => Err(ProviderFailure::cut_off()),
        }
    }

    fn cut_off(&mut self, out: &mut Vec<StreamDelta>) {
        self.is_done = true;
        self.flush(out);
    }

    fn model(&self) -> Option<&str> {
        self.model.name()
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn is_failing(&self) -> bool {
        self.failed.is_some()
    }
}

/// What a `done_reason` means.
fn finish_reason(raw: &str) -> FinishReason {
    match raw {
        "length" => FinishReason::Length,
        // `stop`, `load`, `unload`, and words that nobody knows.
        _ => FinishReason::Stop,
    }
}

/// What a line says went wrong; the server names no kind in it.
fn in_band(value: &Value) -> Option<ProviderFailure> {
    let mut failure = failure::in_band(value)?;
    if failure.kind == ProviderFailureKind::Server {
        if failure.message.contains("does not support") {
            failure.kind = ProviderFailureKind::InvalidRequest;
        } else if failure.message.contains("not found") {
            failure.kind = ProviderFailureKind::NotFound;
        }
    }
    Some(failure)
}
