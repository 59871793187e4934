//! Commands: a shell line, or a program with its arguments.
//!
//! A command runs in a process group of its own, which ends with the call: after the command's own end, at its time limit,
//! when the call is cancelled and when it is dropped. A process that leaves the group (`setsid`) is found by the mark that
//! it inherits; one that also throws its environment away is out of reach, and keeping it in is the work of a [`Launcher`]
//! that isolates.

mod group;
mod launcher;
mod output;
mod program;
mod run;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use launcher::{Launch, Launcher, PlainLauncher};
pub use program::Program;
use turnwright_engine::source::CallLimits;

use crate::roots::Roots;
use crate::{RootsError, ToolSpec, TypedSource};

/// What commands may do.
#[derive(Debug, Clone)]
pub struct CommandConfig {
    /// The folders in which a command may begin; the first is the default. What it does from there is up to the launcher.
    pub roots: Vec<PathBuf>,
    /// Its whole environment.
    pub inherited_env: Vec<(OsString, OsString)>,
    /// What reads shell lines, given `-c` and the line.
    pub shell: PathBuf,
    /// How long a command may take where the call does not say.
    pub default_timeout: Duration,
    /// The longest time that a call may ask for.
    pub max_timeout: Duration,
    /// How long it has between the request to end and its end.
    pub grace: Duration,
    /// The most bytes that are kept of each of its two outputs: the first and the last half.
    pub max_output_bytes: usize,
    /// How it is started.
    pub launcher: Arc<dyn Launcher>,
}

impl CommandConfig {
    /// These roots and this environment, with `/bin/sh`, 30 seconds (10 minutes where a call asks for it), 2 seconds of
    /// grace, 256 KiB of each output, and no isolation.
    pub fn new(roots: Vec<PathBuf>, inherited_env: Vec<(OsString, OsString)>) -> Self {
        Self {
            roots,
            inherited_env,
            shell: PathBuf::from("/bin/sh"),
            default_timeout: Duration::from_secs(30),
            max_timeout: Duration::from_mins(10),
            grace: Duration::from_secs(2),
            max_output_bytes: 256 * 1024,
            launcher: Arc::new(PlainLauncher),
        }
    }
}

#[derive(Debug)]
struct Shared {
    roots: Roots,
    config: CommandConfig,
}

/// The tool source `command`: `run`.
///
/// # Errors
/// [`RootsError`] where a root is not a folder that can be opened.
pub fn command(config: CommandConfig) -> Result<TypedSource, RootsError> {
    // The command's own limit comes first, so that its output is kept; the engine's is the net below.
    let longest = config.max_timeout.saturating_add(config.grace).saturating_add(Duration::from_secs(5));
    let shared = Arc::new(Shared { roots: Roots::open(&config.roots)?, config });
    let spec =
        ToolSpec::new("run", run::DESCRIPTION).title("Run a command").limits(CallLimits { idle: longest, total: longest });
    Ok(TypedSource::new("command").tool(spec, move |arguments, context| {
        let shared = Arc::clone(&shared);
        async move { run::run(&shared, arguments, &context).await }
    }))
}
