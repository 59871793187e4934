//! What leaves the process beside its answers, without secrets: lines of the log, and spans.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

use opentelemetry::trace::Status;
use opentelemetry::{Array, KeyValue, StringValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tracing_subscriber::fmt::MakeWriter;
use turnwright_engine::KnownSecrets;
use turnwright_engine::telemetry::spans;
use turnwright_terminal::hold;

/// The secrets of this process, for what is written before there is a host, and after it.
static KNOWN: OnceLock<KnownSecrets> = OnceLock::new();

/// Hides these from here on.
pub(crate) fn keep(known: &KnownSecrets) {
    // They are the process's; a second reading of the configuration adds to the first.
    let _ = KNOWN.set(known.clone());
}

/// A text without secrets.
pub(crate) fn hidden(text: &str) -> Cow<'_, str> {
    match KNOWN.get() {
        Some(known) => Cow::Owned(known.now().hide(text).into_owned()),
        None => Cow::Borrowed(text),
    }
}

/// Standard error, for the log: what is written at once is one line, whatever words of others are in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines;

impl<'w> MakeWriter<'w> for Lines {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        *self
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = hidden(&text);
        let line = in_one_line(&text);
        if !hold(&line) {
            io::stderr().write_all(line.as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// A text whose line breaks but the last are written as `\\n` and `\\r`.
fn in_one_line(text: &str) -> Cow<'_, str> {
    match text.strip_suffix('\n') {
        Some(line) if line.contains(['\n', '\r']) => {
            Cow::Owned(format!("{}\n", line.replace('\n', "\\n").replace('\r', "\\r")))
        }
        _ => Cow::Borrowed(text),
    }
}

/// An exporter that is told no secrets, and lists where a span has none.
#[derive(Debug)]
pub(crate) struct Spans<E>(pub(crate) E);

impl<E: SpanExporter> SpanExporter for Spans<E> {
    fn export(&self, mut batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        batch.iter_mut().for_each(hide_in_span);
        self.0.export(batch)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

fn hide_in_span(span: &mut SpanData) {
    span.name = Cow::Owned(hidden(&span.name).into_owned());
    hide_in_attributes(&mut span.attributes);
    for event in &mut span.events.events {
        event.name = Cow::Owned(hidden(&event.name).into_owned());
        hide_in_attributes(&mut event.attributes);
    }
    if let Status::Error { description } = &mut span.status {
        *description = Cow::Owned(hidden(description).into_owned());
    }
}

fn hide_in_attributes(attributes: &mut [KeyValue]) {
    let string = |text: &StringValue| StringValue::from(hidden(text.as_str()).into_owned());
    for attribute in attributes {
        if attribute.key.as_str() == spans::FINISH_REASONS
            && let Value::String(reason) = &attribute.value
        {
            attribute.value = Value::Array(Array::String(vec![reason.clone()]));
        }
        match &mut attribute.value {
            Value::String(text) => *text = string(text),
            Value::Array(Array::String(texts)) => texts.iter_mut().for_each(|text| *text = string(text)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::in_one_line;

    #[test]
    fn a_line_break_in_words_of_others_begins_no_line() {
        assert_eq!(in_one_line("a line\n"), "a line\n");
        assert_eq!(
            in_one_line("it says boom\n2030-01-01 INFO signed in\r\n\n"),
            "it says boom\\n2030-01-01 INFO signed in\\r\\n\n"
        );
    }
}
