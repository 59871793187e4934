//! An answer, from the events of a stream or from one body.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;
use turnwright_core::{Finish, FinishReason, NativeBlock, ProviderFailure, ProviderFailureKind, StreamDelta, Usage};

use super::calls::Calls;
use super::reasoning::Reasoning;
use super::wire::{Chunk, Content, Delta, Groq, Part, UsageReport};
use crate::alike::Alike;
use crate::answered::AnsweredBy;
use crate::dialect::{Offered, StreamDecoder};
use crate::failure;
use crate::json;
use crate::limits::Length;
use crate::profile::Profile;
use crate::sse::SseEvent;
use crate::words::{self, Word, WordReader};

/// Decodes one answer of the Chat Completions format.
#[derive(Debug)]
pub(crate) struct ChatDecoder {
    words: WordReader,
    calls: Calls,
    reasoning: Reasoning,
    usage: Usage,
    /// The last finish reason, in the provider's word.
    finish: Option<String>,
    is_done_without_finish: bool,
    is_done: bool,
    /// A finish reason came that is no text.
    is_odd: bool,
    /// What the provider said went wrong: only usage may follow.
    failed: Option<ProviderFailure>,
    length: Length,
    /// The newest chunk that was a piece of text and nothing else.
    piece: Alike,
    /// Room for the words of a chunk, empty between two.
    said: Vec<Word>,
    /// The model, as the provider names it.
    model: AnsweredBy,
}

impl ChatDecoder {
    pub(crate) fn new(profile: &Profile, offered: &Offered) -> Self {
        Self {
            words: WordReader::new(profile, offered),
            calls: Calls::default(),
            reasoning: Reasoning::default(),
            usage: Usage::default(),
            finish: None,
            is_done_without_finish: profile.done_without_finish,
            is_done: false,
            is_odd: false,
            failed: None,
            length: Length::default(),
            piece: Alike::default(),
            said: Vec::new(),
            model: AnsweredBy::default(),
        }
    }

    fn data(&mut self, data: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if self.failed.is_none()
            && let Some(text) = self.piece.text(data)
        {
            return self.text(Cow::Borrowed(text), out);
        }
        match serde_json::from_str::<Chunk<'_>>(data) {
            Ok(chunk) => {
                if let Some(text) = chunk.only_text() {
                    self.piece.remember(data, text);
                }
                self.chunk(chunk, data, out)
            }
            Err(_) => match json::mended(data) {
                Some(mended) => self.data(&mended, out),
                None => self.odd(data, out),
            },
        }
    }

    /// Takes what is no chunk: a list around one, keys that are there twice, a word that means nothing.
    fn odd(&mut self, data: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let value: Value = serde_json::from_str(data)
            .map_err(|_| failure::malformed("the stream holds an event that is not JSON", data.as_bytes()))?;
        let items = match value {
            Value::Array(items) => items,
            other => vec![other],
        };
        for item in items.iter().filter(|item| item.is_object()) {
            let text = item.to_string();
            // What is still no chunk is an event of a kind that we do not know.
            if let Ok(chunk) = serde_json::from_str(&text) {
                self.chunk(chunk, &text, out)?;
            }
        }
        Ok(())
    }

    fn chunk(&mut self, chunk: Chunk<'_>, data: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let groq = chunk.x_groq.and_then(|raw| serde_json::from_str::<Groq<'_>>(raw.get()).ok()).unwrap_or_default();
        for usage in [groq.usage, chunk.usage].into_iter().flatten() {
            self.usage(usage);
        }
        self.model.take(chunk.model);
        let may_be_error = chunk.error.is_some() || chunk.base_resp.is_some() || chunk.object.any() == Some("error");
        if may_be_error && let Some(failure) = serde_json::from_str(data).ok().and_then(|value| failure::in_band(&value)) {
            self.fail(failure);
        }
        if let Some(error) = groq.error
            && chunk.choices.0.is_empty()
        {
            self.fail(failure::of_event(&format!("{{\"error\":{}}}", error.get())));
        }
        if self.failed.is_some() {
            return Ok(());
        }
        // We never ask for more than one choice.
        for choice in chunk.choices.0.into_iter().filter(|choice| choice.index.0.unwrap_or(0) == 0) {
            if let Some(usage) = choice.usage {
                self.usage(usage);
            }
            if let Some(delta) = choice.delta.or(choice.message) {
                self.delta(delta, out)?;
            }
            if let Some(raw) = choice.finish_reason {
                self.reason(raw.get());
            }
        }
        Ok(())
    }

    /// Only a text ends an answer.
    fn reason(&mut self, raw: &str) {
        match serde_json::from_str::<Cow<'_, str>>(raw) {
            Ok(reason) if self.finish.is_none() || !reason.is_empty() => self.finish = Some(reason.into_owned()),
            Ok(_) => {}
            Err(_) => self.is_odd = true,
        }
    }

    /// An error ends the answer, but servers may still say what it cost.
    fn fail(&mut self, failure: ProviderFailure) {
        self.failed.get_or_insert(failure);
    }

    fn usage(&mut self, raw: &RawValue) {
        let Ok(report) = serde_json::from_str::<UsageReport>(raw.get()) else { return };
        let prompt = report.prompt_tokens_details.unwrap_or_default();
        let completion = report.completion_tokens_details.unwrap_or_default();
        let cached = [prompt.cached_tokens, report.prompt_cache_hit_tokens, report.num_cached_tokens];
        let cached = cached.into_iter().find(|count| count.0.is_some()).unwrap_or_default();
        let reasoning = completion.reasoning_tokens.0.or(report.reasoning_tokens.0);
        let costs = report.cost_details.0.first().copied().unwrap_or_default();
        let usage = Usage {
            input_tokens: report.prompt_tokens.0,
            output_tokens: output_tokens(report.prompt_tokens.0, report.completion_tokens.0, reasoning, report.total_tokens.0),
            cached_input_tokens: cached.0,
            cache_write_tokens: prompt.cache_write_tokens.0.or(report.cache_creation_input_tokens.0),
            reasoning_tokens: reasoning,
            cost_usd: report.cost.with_own_key(report.is_byok == true, &costs),
        };
        if usage != Usage::default() {
            self.usage = usage;
        }
    }

    fn delta(&mut self, mut delta: Box<Delta<'_>>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let reasoning = self.reasoning.take(&mut delta);
        if let Some(text) = reasoning {
            self.flush_text(out);
            self.length.add(text.len())?;
            out.push(StreamDelta::Reasoning(text.into_owned()));
        }
        match delta.content {
            Content::Nothing => {}
            Content::Text(text) => self.text(text, out)?,
            Content::Parts(parts) => self.parts(parts, out)?,
        }
        if let Some(text) = delta.refusal.filled() {
            self.refusal(text.into_owned(), out)?;
        }
        for call in delta.tool_calls.0 {
            self.begin_other(out);
            self.counted(out, |this, out| this.calls.push(call, out))?;
        }
        if let Some(call) = delta.function_call {
            self.begin_other(out);
            self.counted(out, |this, out| this.calls.push_legacy(*call, out))?;
        }
        Ok(())
    }

    fn parts(&mut self, parts: Vec<Part<'_>>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        for part in parts {
            match part.thinking {
                Content::Nothing => {}
                Content::Text(text) => self.reasoning(text, out)?,
                Content::Parts(inner) => {
                    for text in inner.into_iter().filter_map(|inner| inner.text.filled()) {
                        self.reasoning(text, out)?;
                    }
                }
            }
            if let Some(text) = part.text.filled() {
                self.text(text, out)?;
            }
            if let Some(text) = part.refusal.filled() {
                self.refusal(text.into_owned(), out)?;
            }
        }
        Ok(())
    }

    fn reasoning(&mut self, text: Cow<'_, str>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if text.is_empty() {
            return Ok(());
        }
        self.flush_text(out);
        self.length.add(text.len())?;
        self.reasoning.is_shown = true;
        out.push(StreamDelta::Reasoning(text.into_owned()));
        Ok(())
    }

    fn refusal(&mut self, text: String, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        self.begin_other(out);
        self.length.add(text.len())?;
        out.push(StreamDelta::Refusal(text));
        Ok(())
    }

    fn text(&mut self, text: Cow<'_, str>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if text.is_empty() {
            return Ok(());
        }
        self.length.add(text.len())?;
        if self.words.is_through() {
            self.close_reasoning(out);
            out.push(StreamDelta::Text(text.into_owned()));
            return Ok(());
        }
        let mut words = std::mem::take(&mut self.said);
        self.words.push(&text, &mut words);
        self.said(&mut words, out);
        self.said = words;
        Ok(())
    }

    fn said(&mut self, words: &mut Vec<Word>, out: &mut Vec<StreamDelta>) {
        for word in words.drain(..) {
            match word {
                Word::Reasoning(text) => {
                    self.reasoning.is_shown = true;
                    out.push(StreamDelta::Reasoning(text));
                }
                Word::Text(text) => {
                    self.close_reasoning(out);
                    out.push(StreamDelta::Text(text));
                }
                Word::Call { name, arguments } => {
                    self.close_reasoning(out);
                    let key = self.calls.take_key();
                    out.extend(words::recovered(key, name, arguments));
                }
            }
        }
    }

    /// Something else begins: what was held back of the text is what it is.
    fn flush_text(&mut self, out: &mut Vec<StreamDelta>) {
        if !self.words.is_through() {
            let mut words = Vec::new();
            self.words.finish(&mut words);
            self.said(&mut words, out);
        }
    }

    fn begin_other(&mut self, out: &mut Vec<StreamDelta>) {
        self.flush_text(out);
        self.close_reasoning(out);
    }

    fn close_reasoning(&mut self, out: &mut Vec<StreamDelta>) {
        if !self.reasoning.is_open() {
            return;
        }
        let is_shown = self.reasoning.is_shown;
        let native = self.reasoning.close();
        match native {
            Some(native) if !is_shown => out.push(StreamDelta::Opaque(native)),
            native => out.push(StreamDelta::BlockEnded { native }),
        }
    }

    /// Counts what `push` adds.
    fn counted(
        &mut self,
        out: &mut Vec<StreamDelta>,
        push: impl FnOnce(&mut Self, &mut Vec<StreamDelta>) -> Result<(), ProviderFailure>,
    ) -> Result<(), ProviderFailure> {
        let before = out.len();
        push(self, out)?;
        let added = out.iter().skip(before).map(|delta| match delta {
            StreamDelta::CallArguments { text, .. } | StreamDelta::CallNative { native: NativeBlock(text), .. } => text.len(),
            _ => 0,
        });
        let added = added.sum();
        self.length.add(added)
    }

    /// Ends an answer whose terminal marker came.
    fn finish(&mut self, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        self.is_done = true;
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        let raw = self.finish.take();
        if let Some(raw) = &raw
            && let Some(failure) = failed_finish(raw)
        {
            self.finish = Some(raw.clone());
            return Err(failure);
        }
        self.flush_text(out);
        self.calls.finish(out);
        self.close_reasoning(out);
        self.tell_usage(out);
        let reason = raw.as_deref().map_or(FinishReason::Stop, finish_reason);
        out.push(StreamDelta::Finished(Finish { reason, raw }));
        Ok(())
    }

    fn tell_usage(&mut self, out: &mut Vec<StreamDelta>) {
        let usage = std::mem::take(&mut self.usage);
        if usage != Usage::default() {
            out.push(StreamDelta::Usage(usage));
        }
    }

    /// Takes `[DONE]`.
    fn done(&mut self, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        // A server that names no reason and still reports what the answer cost has finished it.
        let is_whole = self.length.is_something() && self.calls.are_whole() && self.usage.output_tokens.is_some();
        let is_end = self.finish.is_some() || self.failed.is_some() || is_whole || self.is_done_without_finish;
        if is_end { self.finish(out) } else { Err(self.cut()) }
    }

    fn cut(&self) -> ProviderFailure {
        if self.length.is_something() {
            return ProviderFailure::cut_off();
        }
        if self.is_odd {
            let text = "the provider's reply holds no answer: its finish reason is no text";
            return ProviderFailure::new(ProviderFailureKind::Malformed, text);
        }
        let text = "the provider sent an empty answer; the prompt may be too long for the model";
        ProviderFailure::new(ProviderFailureKind::CutOff, text)
    }
}

impl StreamDecoder for ChatDecoder {
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if self.is_done {
            return Ok(());
        }
        let data = event.data.trim();
        if data == "[DONE]" {
            return self.done(out);
        }
        if event.name == "error" {
            self.fail(failure::of_event(data));
            return Ok(());
        }
        self.data(data, out)
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let text = String::from_utf8_lossy(body);
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&text) {
            return Err(if error.is_eof() { ProviderFailure::cut_off() } else { failure::malformed("not JSON", body) });
        }
        self.data(text.trim(), out)?;
        if self.failed.is_none() && self.finish.is_none() && !self.length.is_something() {
            return Err(failure::malformed("the provider's reply holds no answer", body));
        }
        self.finish(out)
    }

    fn end(&mut self, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if self.is_done {
            return Ok(());
        }
        let is_end = self.failed.is_some() || self.finish.as_deref().is_some_and(|reason| !reason.is_empty());
        if is_end { self.finish(out) } else { Err(self.cut()) }
    }

    fn cut_off(&mut self, out: &mut Vec<StreamDelta>) {
        self.is_done = true;
        self.flush_text(out);
        self.calls.finish(out);
        self.close_reasoning(out);
        self.tell_usage(out);
        if let Some(raw) = self.finish.take() {
            out.push(StreamDelta::Finished(Finish { reason: finish_reason(&raw), raw: Some(raw) }));
        }
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

/// What a provider's word for the end means (`finish_reason` of Chat Completions, and what compatible servers say).
fn finish_reason(raw: &str) -> FinishReason {
    match raw {
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "length" | "model_length" | "max_tokens" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        "error" | "abort" | "insufficient_system_resource" => FinishReason::Error,
        // `stop`, `eos`, `end`, `end_turn`, `stop_sequence`, nothing, and words that nobody knows.
        _ => FinishReason::Stop,
    }
}

/// The whole answer's tokens. Some servers count its reasoning beside it, which their total shows.
fn output_tokens(prompt: Option<u64>, completion: Option<u64>, reasoning: Option<u64>, total: Option<u64>) -> Option<u64> {
    let both = completion?.checked_add(reasoning.unwrap_or(0));
    let is_apart = reasoning.is_some_and(|reasoning| reasoning > 0)
        && total.is_some()
        && both.zip(prompt).and_then(|(both, prompt)| both.checked_add(prompt)) == total;
    if is_apart { both } else { completion }
}

/// The failure that some words for the end are.
fn failed_finish(raw: &str) -> Option<ProviderFailure> {
    let kind = match raw {
        "error" => ProviderFailureKind::Server,
        "abort" => ProviderFailureKind::CutOff,
        "insufficient_system_resource" => ProviderFailureKind::Overloaded,
        _ => return None,
    };
    let message = format!("the provider ended its answer with `{raw}`");
    Some(ProviderFailure { code: Some(raw.to_owned()), ..ProviderFailure::new(kind, message) })
}
