//! The log: to standard error, for the operator.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use turnwright_host::Environment;

/// Begins to log at `level`, which may be directives such as `warn,turnwright_mcp=debug`; colours only where a person reads
/// and wants them.
pub(crate) fn start(level: &str, environment: &Environment) {
    let has_color = io::stderr().is_terminal() && wants_color(environment);
    // What the MCP library says below an error is about its own inside; directives after it win.
    let filter = EnvFilter::builder().parse_lossy(format!("rmcp=error,{level}"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(has_color)
        .log_internal_errors(false)
        .finish();
    // One that is there already stays.
    drop(tracing::subscriber::set_global_default(subscriber));
}

/// Whether colours are wanted (<https://no-color.org>).
pub(crate) fn wants_color(environment: &Environment) -> bool {
    environment.filled("NO_COLOR").is_none() && environment.get("TERM") != Some("dumb")
}
