//! Traces: the engine's spans, sent by OTLP where a receiver is configured.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::hiding::Spans;
use async_trait::async_trait;
use opentelemetry::propagation::{Injector, TextMapPropagator};
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace as sdk;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData};
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;
use turnwright_core::secrets::{OfPath, in_addresses};
use turnwright_engine::{TraceContext, telemetry::spans};
use turnwright_host::{Environment, Network, config::TelemetryConfig};

/// The environment's own ways to say where traces go (OpenTelemetry's specification of the OTLP exporter).
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// How long sending may take.
const SEND_LIMIT: Duration = Duration::from_secs(10);

/// What sends, for as long as the process lives, and what is known of how that goes.
static PROVIDER: OnceLock<(SdkTracerProvider, Arc<Sending>)> = OnceLock::new();

/// Whether traces are sent.
pub(crate) fn is_on() -> bool {
    PROVIDER.get().is_some()
}

/// The layer that sends spans; none where no receiver is known. The error is for people.
pub(crate) fn layer<S>(
    config: &TelemetryConfig,
    network: &Network,
    environment: &Environment,
) -> Result<Option<impl Layer<S> + Send + Sync + use<S>>, String>
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let from_environment = ENDPOINTS.iter().any(|name| environment.filled(name).is_some());
    let is_off = environment.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if is_off || (config.otlp_endpoint.is_none() && !from_environment) {
        return Ok(None);
    }
    // The client that sends takes the process's choice; another part may have made it already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
    if let Some(endpoint) = &config.otlp_endpoint {
        exporter = exporter.with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')));
    }
    let failed = |error: &dyn std::fmt::Display| format!("traces cannot be sent: {error}");
    let builder = network.blocking_client().timeout(SEND_LIMIT);
    // Such a client must not begin where others wait for one another.
    let client = std::thread::spawn(move || builder.build()).join();
    let client = client.map_err(|_| failed(&"no client can be made"))?.map_err(|error| failed(&error))?;
    let headers: HashMap<String, String> =
        config.otlp_headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
    let sending = Arc::new(Sending::default());
    let client = Asking { client, network: network.clone(), sending: Arc::clone(&sending) };
    let exporter = exporter.with_http_client(client).with_headers(headers).build().map_err(|error| failed(&error))?;
    let resource =
        Resource::builder().with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    let is_named = environment.filled("OTEL_SERVICE_NAME").is_some()
        || environment.filled("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.split(',').any(names_the_service));
    let resource = if is_named { resource } else { resource.with_service_name("turnwright") };
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(Told { exporter: Spans(exporter), sending: Arc::clone(&sending) })
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.sample))))
        .with_resource(resource.build())
        .build();
    let layer =
        tracing_opentelemetry::layer().with_tracer(provider.tracer("turnwright")).with_location(false).with_threads(false);
    // A process logs once; the provider of a second try would only go unused.
    let _ = PROVIDER.set((provider, sending));
    Ok(Some(layer.with_filter(Targets::new().with_target(spans::TARGET, LevelFilter::INFO))))
}

/// Whether an attribute of `OTEL_RESOURCE_ATTRIBUTES`, `NAME=VALUE`, says how the service is called.
fn names_the_service(attribute: &str) -> bool {
    attribute.split_once('=').is_some_and(|(name, value)| name.trim() == "service.name" && !value.trim().is_empty())
}

/// How sending goes.
#[derive(Debug, Default)]
struct Sending {
    /// Where the receiver was asked last and what came of it, where that was no success.
    why: Mutex<Option<String>>,
    /// Whether it was said that nothing can be sent.
    is_told: AtomicBool,
}

impl Sending {
    fn asked(&self, why: Option<String>) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Says in the log that nothing can be sent, once for as long as that lasts.
    fn fails(&self, error: &dyn std::fmt::Display) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            let why = self.why.lock().unwrap_or_else(PoisonError::into_inner).take();
            let error = why.unwrap_or_else(|| error.to_string());
            tracing::warn!(error, "traces cannot be sent; those that are not are lost");
        }
    }

    fn works(&self) {
        if self.is_told.swap(false, Ordering::Relaxed) {
            tracing::info!("traces are sent again");
        }
    }
}

/// Asks the receiver, and keeps why it could not be told: the library says that it could not, and no more.
#[derive(Debug)]
struct Asking<C> {
    client: C,
    network: Network,
    sending: Arc<Sending>,
}

#[async_trait]
impl<C: HttpClient> HttpClient for Asking<C> {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let address = in_addresses(&request.uri().to_string(), OfPath::Keys, |_| "***".to_owned());
        let answer = self.client.send_bytes(request).await;
        let why = match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("{address} answers {}", answer.status())),
            Err(error) => {
                let reason =
                    self.network.reason_within(&**error).map_or_else(|| error.to_string(), |reason| reason.to_string());
                Some(format!("{address} does not answer: {reason}"))
            }
        };
        self.sending.asked(why);
        answer
    }
}

/// An exporter that says in the log where it cannot send: the library says so to nobody.
#[derive(Debug)]
struct Told<E> {
    exporter: E,
    sending: Arc<Sending>,
}

impl<E: sdk::SpanExporter> sdk::SpanExporter for Told<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let sent = self.exporter.export(batch).await;
        match &sent {
            Ok(()) => self.sending.works(),
            Err(error) => self.sending.fails(error),
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Where the current span stands in its trace.
pub(crate) fn context() -> Option<TraceContext> {
    let mut found = Found::default();
    TraceContextPropagator::new().inject_context(&tracing::Span::current().context(), &mut found);
    let tracestate = found.tracestate.filter(|state| !state.is_empty());
    found.traceparent.map(|traceparent| TraceContext { traceparent, tracestate })
}

#[derive(Default)]
struct Found {
    traceparent: Option<String>,
    tracestate: Option<String>,
}

impl Injector for Found {
    fn set(&mut self, key: &str, value: String) {
        match key {
            "traceparent" => self.traceparent = Some(value),
            "tracestate" => self.tracestate = Some(value),
            _ => {}
        }
    }
}

/// How long the last traces may take to be sent: whoever ends the process waits for it, and no signal is heard any more.
const LAST: Duration = Duration::from_secs(1);

/// Sends what was not sent yet. At the end of the process.
pub(crate) fn finish() {
    if let Some((provider, sending)) = PROVIDER.get()
        && let Err(error) = provider.shutdown_with_timeout(LAST)
    {
        // A receiver that fails is asked again, which alone may take as long as is waited here.
        sending.fails(&error);
    }
}
