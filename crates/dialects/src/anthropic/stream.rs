//! An answer, from the events of a stream or from one body.

use serde_json::value::RawValue;
use turnwright_core::{Finish, FinishReason, ProviderFailure, StreamDelta, Usage};

use super::blocks::Blocks;
use super::failure::of_event;
use super::wire::{BlockDelta, Event, Message, StopDetails, UsageReport};
use crate::answered::AnsweredBy;
use crate::dialect::StreamDecoder;
use crate::failure;
use crate::json;
use crate::lenient::Text;
use crate::sse::SseEvent;

/// Decodes one answer of the Messages format.
#[derive(Debug, Default)]
pub(super) struct MessagesDecoder {
    blocks: Blocks,
    /// The last counters that were reported. Those of a stream's end count from its beginning.
    usage: UsageReport,
    /// Why the model stopped, in the provider's word.
    stop_reason: Option<String>,
    /// Whether the stream ended without its terminal marker.
    is_unmarked: bool,
    /// Why it refused, where it says so.
    refusal: Option<String>,
    is_done: bool,
    /// The model, as the provider names it.
    model: AnsweredBy,
}

impl MessagesDecoder {
    fn take(&mut self, event: Event<'_>, name: &str, data: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        match event.kind.any().unwrap_or(name) {
            "content_block_delta" => match event.delta {
                Some(delta) => self.blocks.delta(event.index.0, delta, out),
                None => Ok(()),
            },
            "content_block_start" => match event.content_block {
                Some(raw) => self.blocks.start(event.index.0, raw, out),
                None => Ok(()),
            },
            "content_block_stop" => {
                self.blocks.stop(event.index.0, out);
                Ok(())
            }
            "message_start" => match event.message.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
                Some(message) => self.message(message, out),
                None => Ok(()),
            },
            "message_delta" => {
                if let Some(raw) = event.usage {
                    self.usage(raw);
                }
                if let Some(delta) = event.delta {
                    self.stop(delta.stop_reason, delta.stop_details);
                }
                Ok(())
            }
            "message_stop" if self.stop_reason.is_none() && (self.blocks.is_open() || !self.blocks.has_content()) => {
                Err(ProviderFailure::cut_off())
            }
            "message_stop" => {
                self.finish(out);
                Ok(())
            }
            "error" => Err(of_event(data)),
            // A whole reply that came as the one event of a stream.
            "message" => self.whole_message(data, out),
            // `ping`, an error of another shape, and events that nobody knows.
            _ if event.error.is_some() => Err(of_event(data)),
            _ => Ok(()),
        }
    }

    fn whole_message(&mut self, data: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let message = data.starts_with('{').then(|| serde_json::from_str::<Message<'_>>(data).ok()).flatten();
        let message = message.filter(|message| message.content.is_some());
        let message = message.ok_or_else(|| failure::malformed("the provider's reply holds no answer", data.as_bytes()))?;
        self.message(message, out)?;
        if self.stop_reason.is_none() {
            return Err(ProviderFailure::cut_off());
        }
        self.finish(out);
        Ok(())
    }

    /// Takes a message; the content of one that begins is empty.
    fn message(&mut self, message: Message<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if let Some(raw) = message.usage {
            self.usage(raw);
        }
        self.model.take(message.model);
        let blocks = message.content.map(RawValue::get).unwrap_or_default();
        for raw in serde_json::from_str::<Vec<&RawValue>>(blocks).unwrap_or_default() {
            self.blocks.start(None, raw, out)?;
            self.blocks.stop(None, out);
        }
        self.stop(message.stop_reason, message.stop_details);
        Ok(())
    }

    fn stop(&mut self, reason: Text<'_>, details: Option<&RawValue>) {
        if let Some(reason) = reason.filled() {
            self.stop_reason = Some(reason.into_owned());
        }
        let details = details.and_then(|raw| serde_json::from_str::<StopDetails<'_>>(raw.get()).ok());
        if let Some(text) = details.and_then(|details| details.explanation.filled()) {
            self.refusal = Some(text.into_owned());
        }
    }

    fn usage(&mut self, raw: &RawValue) {
        let Ok(report) = serde_json::from_str::<UsageReport>(raw.get()) else { return };
        let (known, thinking) = (&mut self.usage, report.output_tokens_details.unwrap_or_default().thinking_tokens);
        for (known, new) in [
            (&mut known.input_tokens, report.input_tokens),
            (&mut known.cache_creation_input_tokens, report.cache_creation_input_tokens),
            (&mut known.cache_read_input_tokens, report.cache_read_input_tokens),
            (&mut known.output_tokens, report.output_tokens),
            (&mut known.output_tokens_details.get_or_insert_default().thinking_tokens, thinking),
        ] {
            if new.0.is_some() {
                *known = new;
            }
        }
    }

    fn tell_usage(&mut self, out: &mut Vec<StreamDelta>) {
        let report = std::mem::take(&mut self.usage);
        let (read, written) = (report.cache_read_input_tokens.0, report.cache_creation_input_tokens.0);
        let usage = Usage {
            // What is reported as input leaves out what came from the cache and what went into it.
            input_tokens: report
                .input_tokens
                .0
                .map(|rest| rest.saturating_add(read.unwrap_or_default()).saturating_add(written.unwrap_or_default())),
            output_tokens: report.output_tokens.0,
            cached_input_tokens: read,
            cache_write_tokens: written,
            reasoning_tokens: report.output_tokens_details.and_then(|details| details.thinking_tokens.0),
            cost_usd: None,
        };
        if usage != Usage::default() {
            out.push(StreamDelta::Usage(usage));
        }
    }

    fn finish(&mut self, out: &mut Vec<StreamDelta>) {
        self.is_done = true;
        self.blocks.stop_all(out);
        self.tell_finish(out);
    }

    fn tell_finish(&mut self, out: &mut Vec<StreamDelta>) {
        if let Some(text) = self.refusal.take() {
            out.push(StreamDelta::Refusal(text));
        }
        self.tell_usage(out);
        let raw = self.stop_reason.take();
        if self.is_done || raw.is_some() {
            let reason = raw.as_deref().map_or(FinishReason::Stop, finish_reason);
            out.push(StreamDelta::Finished(Finish { reason, raw }));
        }
    }
}

impl StreamDecoder for MessagesDecoder {
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if self.is_done {
            return Ok(());
        }
        let data = event.data.trim();
        if data == "[DONE]" {
            return self.end(out);
        }
        if let Some(more) = BlockDelta::of(data) {
            return self.blocks.delta(Some(more.index), more.into_delta(), out);
        }
        match serde_json::from_str::<Event<'_>>(data) {
            Ok(known) => self.take(known, event.name, data, out),
            Err(_) if event.name == "error" => Err(of_event(data)),
            // Half of a surrogate pair, an event of a kind that we do not know, or not even JSON.
            Err(_) => match json::mended(data) {
                Some(mended) => self.event(SseEvent { data: &mended, ..event }, out),
                None if serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok() => Ok(()),
                None => Err(failure::malformed("the stream holds an event that is not JSON", data.as_bytes())),
            },
        }
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let text = String::from_utf8_lossy(body);
        match serde_json::from_str::<serde_json::Value>(&text) {
            Err(error) if error.is_eof() => Err(ProviderFailure::cut_off()),
            Err(_) => match json::mended(&text) {
                Some(mended) => self.whole(mended.as_bytes(), out),
                None => Err(failure::malformed("not JSON", body)),
            },
            Ok(value) => match failure::in_band(&value) {
                Some(_) => Err(of_event(&text)),
                None => self.whole_message(text.trim(), out),
            },
        }
    }

    fn end(&mut self, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if self.is_done {
            return Ok(());
        }
        // Some gateways leave out the event that ends the stream. What the model said last came before its stop reason.
        if self.stop_reason.is_none() {
            return Err(ProviderFailure::cut_off());
        }
        self.is_unmarked = true;
        self.finish(out);
        Ok(())
    }

    fn cut_off(&mut self, out: &mut Vec<StreamDelta>) {
        self.blocks.cut_off(out);
        self.tell_finish(out);
        self.is_done = true;
    }

    fn warning(&self) -> Option<&'static str> {
        self.is_unmarked
            .then_some("the stream ended after its stop reason without `message_stop`; the answer is taken as whole")
    }

    fn model(&self) -> Option<&str> {
        self.model.name()
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn is_failing(&self) -> bool {
        false
    }
}

/// What the provider's word for the end means.
fn finish_reason(raw: &str) -> FinishReason {
    match raw {
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        // After a compaction, too, the answer goes on when it is asked for again.
        "pause_turn" | "compaction" => FinishReason::Pause,
        "refusal" => FinishReason::Refusal,
        // `end_turn`, `stop_sequence`, and words that nobody knows.
        _ => FinishReason::Stop,
    }
}
