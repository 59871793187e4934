//! An answer, from the events of a stream, from the list that comes without `alt=sse`, or from one body.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use turnwright_core::{Finish, FinishReason, NativeBlock, ProviderFailure, ProviderFailureKind, StreamDelta, Usage};

use super::calls::Calls;
use super::wire::{Candidate, Chunk, Part, UsageReport};
use crate::answered::AnsweredBy;
use crate::dialect::StreamDecoder;
use crate::failure::{self, malformed, of_event};
use crate::json;
use crate::limits::Length;
use crate::sse::SseEvent;

/// Decodes one answer of the `generateContent` format.
#[derive(Debug, Default)]
pub(super) struct GeminiDecoder {
    calls: Calls,
    /// The kind of the text block that more of the same kind goes on.
    open: Option<Kind>,
    usage: Usage,
    /// The last finish reason, in the provider's word.
    finish: Option<String>,
    /// What the provider says about it.
    finish_message: Option<String>,
    continuation_token: Option<String>,
    is_done: bool,
    /// What the provider said went wrong.
    failed: Option<ProviderFailure>,
    length: Length,
    /// The model, as the provider names it.
    model: AnsweredBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
}

impl GeminiDecoder {
    fn data(&mut self, data: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        match serde_json::from_str::<Chunk<'_>>(data) {
            // A list would be read as a chunk's fields in their order.
            Ok(chunk) if data.starts_with('{') => self.chunk(chunk, data, out),
            _ => match json::mended(data) {
                Some(mended) => self.data(&mended, out),
                None => self.odd(data, out),
            },
        }
    }

    /// Takes what is no chunk: a list around some, keys that are there twice, a word that means nothing.
    fn odd(&mut self, data: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let value: Value =
            serde_json::from_str(data).map_err(|_| malformed("the stream holds an event that is not JSON", data.as_bytes()))?;
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
        for report in chunk.usage.0 {
            self.usage(&report);
        }
        self.model.take(chunk.model);
        if chunk.error.is_some()
            && let Some(failure) = serde_json::from_str(data).ok().and_then(|value| failure::in_band(&value))
        {
            self.failed.get_or_insert(failure);
        }
        if self.failed.is_some() {
            return Ok(());
        }
        let has_candidates = !chunk.candidates.0.is_empty();
        // We never ask for more than one candidate.
        for candidate in chunk.candidates.0.into_iter().filter(|candidate| candidate.index.0.unwrap_or(0) == 0) {
            self.candidate(candidate, out)?;
        }
        let blocked = chunk.prompt_feedback.0.into_iter().find_map(|feedback| feedback.block_reason.filled());
        if let Some(reason) = blocked
            && !has_candidates
        {
            self.finish = Some(format!("{BLOCKED}{reason}"));
        }
        Ok(())
    }

    fn candidate(&mut self, candidate: Candidate<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        for raw in candidate.content.0.into_iter().flat_map(|content| content.parts.0) {
            self.part(raw.get(), out)?;
        }
        let message = candidate.finish_message.filled().map(Cow::into_owned);
        self.finish_message = message.or(self.finish_message.take());
        let token = candidate.continuation_token.filled().map(Cow::into_owned);
        self.continuation_token = token.or(self.continuation_token.take());
        let reason = candidate.finish_reason.filled().map(Cow::into_owned);
        self.finish = reason.or(self.finish.take());
        Ok(())
    }

    fn part(&mut self, raw: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if !raw.starts_with('{') {
            return Ok(());
        }
        let Ok(part) = serde_json::from_str::<Part<'_>>(raw) else {
            // Half of a surrogate pair, or a key that is there twice.
            return match json::mended(raw) {
                Some(mended) => self.part(&mended, out),
                None => self.opaque(raw, out),
            };
        };
        let is_thought = part.is_thought();
        let signature = part.signature.filled();
        if let Some(call) = part.call.0.into_iter().next() {
            self.open = None;
            self.length.add(raw.len())?;
            return self.calls.push(call, signature.as_deref(), raw, out);
        }
        match (part.text.filled(), signature) {
            (Some(text), None) => self.text(text, is_thought, out),
            (Some(text), Some(_)) => {
                // A part that is signed goes back as it is: it is a block of its own.
                if self.open.take().is_some() {
                    out.push(StreamDelta::BlockEnded { native: None });
                }
                self.text(text, is_thought, out)?;
                self.open = None;
                out.push(StreamDelta::BlockEnded { native: Some(NativeBlock(raw.to_owned())) });
                self.length.add(raw.len())
            }
            (None, None) if is_empty(raw) => Ok(()),
            (None, _) => self.opaque(raw, out),
        }
    }

    fn text(&mut self, text: Cow<'_, str>, is_thought: bool, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        self.calls.close(out);
        self.length.add(text.len())?;
        if is_thought {
            self.open = Some(Kind::Reasoning);
            out.push(StreamDelta::Reasoning(text.into_owned()));
        } else {
            self.open = Some(Kind::Text);
            out.push(StreamDelta::Text(text.into_owned()));
        }
        Ok(())
    }

    fn opaque(&mut self, raw: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        self.calls.close(out);
        self.open = None;
        self.length.add(raw.len())?;
        out.push(StreamDelta::Opaque(NativeBlock(raw.to_owned())));
        Ok(())
    }

    fn usage(&mut self, report: &UsageReport) {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        let usage = Usage {
            input_tokens: sum(report.prompt.0, report.tool_use_prompt.0),
            output_tokens: sum(report.candidates.0, report.thoughts.0),
            cached_input_tokens: report.cached.0,
            cache_write_tokens: None,
            reasoning_tokens: report.thoughts.0,
            cost_usd: None,
        };
        if usage != Usage::default() {
            self.usage = usage;
        }
    }

    /// Ends an answer whose terminal marker came.
    fn finish(&mut self, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        self.is_done = true;
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        let raw = self.finish.clone().unwrap_or_default();
        let reason = finish_reason(&raw);
        if reason == FinishReason::Error {
            return Err(self.failed_finish(&raw));
        }
        if reason == FinishReason::Stop && !self.length.is_something() {
            let text = "the model ended its answer without saying anything";
            return Err(ProviderFailure { code: Some(raw), ..ProviderFailure::new(ProviderFailureKind::CutOff, text) });
        }
        self.calls.close(out);
        if let Some(token) = self.continuation_token.take()
            && reason == FinishReason::Pause
        {
            out.push(StreamDelta::Opaque(super::continuation(&token)));
        }
        self.tell_usage(out);
        self.finish = None;
        out.push(StreamDelta::Finished(Finish { reason, raw: Some(raw) }));
        Ok(())
    }

    /// The failure that some words for the end are.
    fn failed_finish(&mut self, raw: &str) -> ProviderFailure {
        let kind = match raw {
            "MISSING_THOUGHT_SIGNATURE" => ProviderFailureKind::InvalidRequest,
            // The model wrote what cannot be read: it may do better the next time.
            _ => ProviderFailureKind::Server,
        };
        let said = self.finish_message.take();
        let message = match said {
            Some(said) => format!("the provider ended its answer with `{raw}`: {}", failure::cut(&said, 2000)),
            None => format!("the provider ended its answer with `{raw}`"),
        };
        ProviderFailure { code: Some(raw.to_owned()), ..ProviderFailure::new(kind, message) }
    }

    fn tell_usage(&mut self, out: &mut Vec<StreamDelta>) {
        let usage = std::mem::take(&mut self.usage);
        if usage != Usage::default() {
            out.push(StreamDelta::Usage(usage));
        }
    }
}

impl StreamDecoder for GeminiDecoder {
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let data = event.data.trim();
        if self.is_done || data == "[DONE]" {
            return Ok(());
        }
        if event.name == "error" {
            let failure = serde_json::from_str(data).ok().and_then(|value| failure::in_band(&value));
            self.failed.get_or_insert_with(|| failure.unwrap_or_else(|| of_event(data)));
            return Ok(());
        }
        self.data(data, out)
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let text = String::from_utf8_lossy(body);
        // One by one, so that of a list that was cut all that came is kept.
        for value in json::values(&text) {
            let value =
                value.map_err(|error| if error.is_eof() { ProviderFailure::cut_off() } else { malformed("not JSON", body) })?;
            self.data(value.get(), out)?;
        }
        if self.failed.is_none() && self.finish.is_none() && !self.length.is_something() {
            return Err(malformed("the provider's reply holds no answer", body));
        }
        self.end(out)
    }

    fn end(&mut self, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if self.is_done {
            return Ok(());
        }
        if self.failed.is_some() || self.finish.is_some() { self.finish(out) } else { Err(ProviderFailure::cut_off()) }
    }

    fn cut_off(&mut self, out: &mut Vec<StreamDelta>) {
        self.is_done = true;
        self.calls.cut_off(out);
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

/// What stands before the reason for which a prompt was withheld from the model.
const BLOCKED: &str = "blockReason:";

/// What a `finishReason` means.
fn finish_reason(raw: &str) -> FinishReason {
    match raw {
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR"
        | "ESCALATION" => FinishReason::ContentFilter,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE"
        | "MALFORMED_RESPONSE"
        | "OTHER"
        | "IMAGE_OTHER"
        | "NO_IMAGE" => FinishReason::Error,
        "CONTINUATION" => FinishReason::Pause,
        _ if raw.starts_with(BLOCKED) => FinishReason::ContentFilter,
        // `STOP`, `FINISH_REASON_UNSPECIFIED`, and words that nobody knows.
        _ => FinishReason::Stop,
    }
}

/// Whether a part without text and signature holds nothing else.
fn is_empty(raw: &str) -> bool {
    let held = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(raw).unwrap_or_default();
    held.keys().all(|key| matches!(&**key, "text" | "thought" | "thoughtSignature"))
}
