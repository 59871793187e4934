//! An answer, from the events of a stream or from one body.

use serde_json::Value;
use serde_json::value::RawValue;
use turnwright_core::{Finish, FinishReason, ProviderFailure, ProviderFailureKind, StreamDelta, Usage};

use super::output::{Of, Output};
use super::wire::{Event, Field, Part, Response, UsageReport};
use crate::answered::AnsweredBy;
use crate::dialect::StreamDecoder;
use crate::failure;
use crate::json;
use crate::sse::SseEvent;

/// Decodes one answer of the Responses format.
#[derive(Debug, Default)]
pub(super) struct ResponsesDecoder {
    output: Output,
    /// The response with which the answer ended was taken into account.
    output_is_final: bool,
    usage: Usage,
    /// The end, in the provider's words, where it came.
    end: Option<Finish>,
    is_done: bool,
    /// What the provider said went wrong.
    failed: Option<ProviderFailure>,
    /// The model, as the provider names it.
    model: AnsweredBy,
}

impl ResponsesDecoder {
    fn data(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let data = event.data.trim();
        if let Ok(read) = serde_json::from_str::<Event<'_>>(data) {
            return self.read(&read, event.name, data, out);
        }
        if let Some(mended) = json::mended(data) {
            return self.data(SseEvent { data: &mended, ..event }, out);
        }
        // Something else than an object, or an object with a member twice.
        let value: Value = serde_json::from_str(data)
            .map_err(|_| failure::malformed("the stream holds an event that is not JSON", data.as_bytes()))?;
        let text = value.to_string();
        match serde_json::from_str(&text) {
            Ok(read) if value.is_object() => self.read(&read, event.name, &text, out),
            _ => Ok(()),
        }
    }

    fn read(&mut self, event: &Event<'_>, name: &str, data: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let of = Of { index: event.output_index.0, id: event.item_id.any() };
        let content = event.content_index.0.unwrap_or(0);
        let summary = event.summary_index.0.unwrap_or(0);
        let kind = event.kind.any().filter(|kind| !kind.is_empty()).unwrap_or(name);
        let kind = kind.strip_prefix("response.").unwrap_or(kind);
        let is_end = matches!(kind, "completed" | "incomplete" | "failed" | "cancelled" | "done");
        if self.failed.is_some() && !is_end {
            return Ok(());
        }
        let delta = event.delta.any().unwrap_or_default();
        let text = event.text.any().unwrap_or_default();
        match kind {
            "output_text.delta" => self.output.delta(of, (Field::Text, content), delta, out),
            "function_call_arguments.delta" | "custom_tool_call_input.delta" => {
                self.output.delta(of, (Field::Arguments, 0), delta, out)
            }
            "reasoning_summary_text.delta" => self.output.delta(of, (Field::Summary, summary), delta, out),
            "reasoning_text.delta" => self.output.delta(of, (Field::Reasoning, content), delta, out),
            "refusal.delta" => self.output.delta(of, (Field::Refusal, content), delta, out),
            "output_text.done" => self.output.text_done(of, (Field::Text, content), text, out),
            "reasoning_summary_text.done" => self.output.text_done(of, (Field::Summary, summary), text, out),
            "reasoning_text.done" => self.output.text_done(of, (Field::Reasoning, content), text, out),
            "refusal.done" => {
                self.output.text_done(of, (Field::Refusal, content), event.refusal.any().unwrap_or_default(), out)
            }
            "function_call_arguments.done" => {
                if let Some(name) = event.name.any() {
                    self.output.named(of, name, out)?;
                }
                self.output.text_done(of, (Field::Arguments, 0), &event.arguments.text(), out)
            }
            "custom_tool_call_input.done" => {
                self.output.text_done(of, (Field::Arguments, 0), event.input.any().unwrap_or_default(), out)
            }
            "content_part.done" => self.part(of, content, event.part, out),
            "reasoning_summary_part.done" => self.part(of, summary, event.part, out),
            "output_item.added" => event.item.map_or(Ok(()), |item| self.output.added(of, item, out)),
            "output_item.done" => event.item.map_or(Ok(()), |item| self.output.done(of, item, out)),
            _ if is_end => match event.response {
                Some(response) => self.response(response.get(), kind, out),
                None => Ok(()),
            },
            "error" => {
                self.fail(failure::of_event(data));
                Ok(())
            }
            // The beginning, the progress of what the provider does itself, and what nobody here knows.
            _ => {
                if event.error.is_some()
                    && let Some(failure) = serde_json::from_str(data).ok().and_then(|value| failure::in_band(&value))
                {
                    self.fail(failure);
                }
                Ok(())
            }
        }
    }

    fn part(&mut self, of: Of<'_>, at: u64, raw: Option<&RawValue>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let part = raw.and_then(|raw| serde_json::from_str::<Part<'_>>(raw.get()).ok());
        match part.and_then(Part::piece) {
            Some((field, text)) => self.output.text_done(of, (field, at), &text, out),
            None => Ok(()),
        }
    }

    /// Takes the whole response, with which an answer ends.
    fn response(&mut self, raw: &str, kind: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let mended;
        let response: Response<'_> = if let Ok(response) = serde_json::from_str(raw) {
            response
        } else {
            // Half of a surrogate pair, or a member that is there twice.
            let whole = json::mended(raw);
            mended = serde_json::from_str::<Value>(whole.as_deref().unwrap_or(raw)).unwrap_or_default().to_string();
            let malformed = |_| failure::malformed("the provider's reply is no response", raw.as_bytes());
            serde_json::from_str(&mended).map_err(malformed)?
        };
        self.usage(response.usage);
        self.model.take(response.model.clone());
        let status = response.status.any().filter(|status| !status.is_empty());
        let status = status.unwrap_or(kind).to_owned();
        let error = response.error.filter(|error| error.get() != "null" && error.get() != "{}");
        if let Some(error) = error {
            self.fail(failure::of_event(&format!("{{\"error\":{}}}", error.get())));
        }
        match status.as_str() {
            "failed" => {
                let text = "the provider says that its answer failed, and not why";
                self.fail(ProviderFailure::new(ProviderFailureKind::Server, text));
            }
            "cancelled" | "queued" | "in_progress" => {
                let text = format!("the provider ended its answer with the status `{status}`");
                self.fail(ProviderFailure::new(ProviderFailureKind::CutOff, text));
            }
            _ => {}
        }
        if let Some(failure) = self.failed.take() {
            let items = response.items();
            if !items.is_empty() && self.output.finish(&items, out).is_ok() {
                self.output_is_final = true;
            }
            self.end = (!status.is_empty()).then_some(Finish { reason: FinishReason::Error, raw: Some(status) });
            return Err(failure);
        }
        self.output.finish(&response.items(), out)?;
        let details = response.incomplete_details.0.first();
        let finish = finish(&status, details.and_then(|details| details.reason.any()));
        self.is_done = true;
        self.tell_usage(out);
        out.push(StreamDelta::Finished(finish));
        Ok(())
    }

    fn usage(&mut self, raw: Option<&RawValue>) {
        let Some(report) = raw.and_then(|raw| serde_json::from_str::<UsageReport>(raw.get()).ok()) else { return };
        let input = report.input_tokens_details.0.first().copied().unwrap_or_default();
        let output = report.output_tokens_details.0.first().copied().unwrap_or_default();
        let costs = report.cost_details.0.first().copied().unwrap_or_default();
        self.usage = Usage {
            input_tokens: report.input_tokens.0,
            output_tokens: report.output_tokens.0,
            cached_input_tokens: input.cached_tokens.0,
            cache_write_tokens: input.cache_write_tokens.0,
            reasoning_tokens: output.reasoning_tokens.0,
            cost_usd: report.cost.with_own_key(report.is_byok == true, &costs),
        };
    }

    fn tell_usage(&mut self, out: &mut Vec<StreamDelta>) {
        let usage = std::mem::take(&mut self.usage);
        if usage != Usage::default() {
            out.push(StreamDelta::Usage(usage));
        }
    }

    /// The first thing that is said to be wrong counts: the response that may follow says it again.
    fn fail(&mut self, failure: ProviderFailure) {
        self.failed.get_or_insert(failure);
    }
}

impl StreamDecoder for ResponsesDecoder {
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        // Nothing but the response may follow an error; `[DONE]` says nothing.
        if self.is_done || event.data.trim() == "[DONE]" {
            return Ok(());
        }
        self.data(event, out)
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let text = String::from_utf8_lossy(body);
        let value: Value = json::value(&text)
            .map_err(|error| if error.is_eof() { ProviderFailure::cut_off() } else { failure::malformed("not JSON", body) })?;
        if value.get("output").is_none_or(Value::is_null) {
            return Err(failure::in_band(&value)
                .or_else(|| (value.get("type") == Some(&Value::from("error"))).then(|| failure::of_event(&text)))
                .unwrap_or_else(|| failure::malformed("the provider's reply holds no answer", body)));
        }
        self.response(text.trim(), "", out)
    }

    fn end(&mut self, _: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        if self.is_done {
            return Ok(());
        }
        Err(self.failed.take().unwrap_or_else(|| {
            if self.output.is_empty() {
                return ProviderFailure::new(ProviderFailureKind::CutOff, "the provider sent an empty answer");
            }
            ProviderFailure::cut_off()
        }))
    }

    fn cut_off(&mut self, out: &mut Vec<StreamDelta>) {
        self.is_done = true;
        // A limit that it is over was told before.
        if !self.output_is_final {
            drop(self.output.finish(&[], out));
        }
        self.tell_usage(out);
        out.extend(self.end.take().map(StreamDelta::Finished));
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

/// What a status means (section "Response object" of the API's reference).
fn finish(status: &str, reason: Option<&str>) -> Finish {
    if status != "incomplete" {
        return Finish { reason: FinishReason::Stop, raw: (!status.is_empty()).then(|| status.to_owned()) };
    }
    let meaning = match reason {
        Some("content_filter") => FinishReason::ContentFilter,
        // `max_output_tokens`, and other limits: the answer is not all there.
        _ => FinishReason::Length,
    };
    let raw = reason.map_or_else(|| status.to_owned(), |reason| format!("{status}:{reason}"));
    Finish { reason: meaning, raw: Some(raw) }
}
