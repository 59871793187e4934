//! The log: to standard error, for the operator.

use std::io::{self, IsTerminal};

use tracing::Level;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};
use turnwright_engine::telemetry::spans;
use turnwright_host::config::{LogFormat, TelemetryConfig};
use turnwright_host::{Environment, Network};

use crate::hiding::Lines;
use crate::output::say;
use crate::telemetry;

/// What is logged, and where traces go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logging<'a> {
    /// A level, or directives such as `warn,turnwright_mcp=debug`.
    pub(crate) level: &'a str,
    pub(crate) format: LogFormat,
    pub(crate) telemetry: &'a TelemetryConfig,
    /// How they get there.
    pub(crate) network: &'a Network,
}

/// Begins to log; colours only where a person reads and wants them. The error is for people: nothing is traced then.
pub(crate) fn start(logging: Logging<'_>, environment: &Environment) -> Result<(), String> {
    let has_color = io::stderr().is_terminal() && wants_color(environment);
    // What the MCP library says is about its own inside and names no server: ours say what failed; directives after it win.
    // What is traced is not logged.
    let filter = format!("rmcp=off,{},{}=off,{SAID}=info", logging.level, spans::TARGET);
    // The library for editors logs each message whole at `trace`: what people and models say is not logged, whatever the level is.
    let is_quiet = filter_fn(|line| !(*line.level() == Level::TRACE && line.target().starts_with(ACP)));
    let filter = EnvFilter::builder().parse_lossy(filter).and(is_quiet);
    let lines = tracing_subscriber::fmt::layer().with_writer(Lines).with_ansi(has_color).log_internal_errors(false);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match logging.format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_filter(filter).boxed(),
    };
    let (traces, problem) = match telemetry::layer(logging.telemetry, logging.network, environment) {
        Ok(traces) => (traces, None),
        Err(problem) => (None, Some(problem)),
    };
    // One that is there already stays.
    drop(tracing::subscriber::set_global_default(Registry::default().with(lines).with(traces)));
    problem.map_or(Ok(()), Err)
}

/// The library that speaks to editors.
const ACP: &str = "agent_client_protocol";

/// What is told whatever the level is.
const SAID: &str = "turnwright::said";

/// Says a line beside the output, as a line of the log where that is for programs.
pub(crate) fn announce(format: LogFormat, line: &str) {
    match format {
        LogFormat::Text => say(line),
        LogFormat::Json => tracing::info!(target: SAID, "{line}"),
    }
}

/// Whether colours are wanted (<https://no-color.org>).
pub(crate) fn wants_color(environment: &Environment) -> bool {
    environment.filled("NO_COLOR").is_none() && environment.get("TERM") != Some("dumb")
}
