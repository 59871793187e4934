//! Each request: its name, its line in the log, its place in the metrics.

use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use http::{HeaderName, HeaderValue, Method};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::Instant;
use tracing::{Instrument, error_span};

use crate::forwarded::Client;
use crate::state::ServerState;

/// The header with a request's name, in both directions.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest name that a client, or a proxy before us, may give to its request.
const MAX_ID: usize = 128;

/// Seconds at which the histogram of requests counts, up to the head of the answer: a stream goes on after it.
const SECONDS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: String,
}

/// What is counted of requests.
#[derive(Debug)]
pub(crate) struct Counted {
    all: Family<Labels, Counter>,
    seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
}

impl Counted {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(SECONDS);
        let counted = Self { all: Family::default(), seconds: Family::new_with_constructor(seconds) };
        registry.register("http_requests", "Requests, by route and status", counted.all.clone());
        registry.register_with_unit(
            "http_request",
            "How long requests took up to the head of their answer",
            Unit::Seconds,
            counted.seconds.clone(),
        );
        counted
    }

    fn count(&self, method: &Method, route: Option<&str>, status: u16, took: Duration) {
        // What was asked for in vain is a client's choice.
        let route = route.unwrap_or("none").to_owned();
        let method = word(method);
        self.all.get_or_create(&Labels { method, route: route.clone(), status }).inc();
        self.seconds.get_or_create(&RouteLabels { method, route }).observe(took.as_secs_f64());
    }
}

fn word(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Gives the request a name, the client's own where it sent one; answers with it, logs with it, and counts.
pub(crate) async fn named(
    state: &ServerState,
    request: &mut Request,
    next: impl AsyncFnOnce(&mut Request) -> Response,
) -> Response {
    let begun = Instant::now();
    let id = request.headers().get(&REQUEST_ID).filter(|id| is_name(id)).cloned().unwrap_or_else(new_name);
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let shown = route.as_ref().map_or("none", MatchedPath::as_str).to_owned();
    let span = error_span!("request", id = id.to_str().unwrap_or_default());
    let client = Client::of(request.extensions());
    let mut response = next(request).instrument(span.clone()).await;
    let (status, took) = (response.status().as_u16(), begun.elapsed());
    state.metrics().requests().count(&method, route.as_ref().map(MatchedPath::as_str), status, took);
    span.in_scope(|| tracing::debug!(%method, route = shown, status, %client, ms = took.as_millis(), "answered"));
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Whether it can be told again in a header and in a log as it is.
fn is_name(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'/');
    !id.is_empty() && id.len() <= MAX_ID && id.as_bytes().iter().all(is_plain)
}

/// 96 random bits.
fn new_name() -> HeaderValue {
    let mut bytes = [0; 12];
    // Without random numbers requests are told apart by nothing, and are answered all the same.
    let _ = getrandom::fill(&mut bytes);
    let mut name = String::with_capacity(28);
    name.push_str("req_");
    for byte in bytes {
        use std::fmt::Write as _;
        let _ = write!(name, "{byte:02x}");
    }
    HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("req_unnamed"))
}
