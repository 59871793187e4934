//! Commands: a shell line, or a program with its arguments.
//!
//! A command runs in a process group of its own, which ends with the call: after the command's own end, at its time limit,
//! when the call is cancelled and when it is dropped. A process that leaves the group (`setsid`) is found by the mark that
//! it inherits; one that also throws its environment away is out of reach, and keeping it in is the work of a [`Launcher`]
//! that isolates: [`SandboxLauncher`].

mod background;
pub(crate) mod group;
mod launcher;
pub(crate) mod output;
mod program;
pub(crate) mod run;
mod sandbox;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use background::{INPUT, OUTPUT, Processes, START, STOP};
pub use launcher::{Launch, Launcher, Leader, PlainLauncher, Prepared};
pub use program::Program;
pub use sandbox::{CommandLimits, Enclosure, Network, Protections, SandboxConfig, SandboxLauncher, SandboxMode, confine};
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
    /// How many commands may go on in the background; where it is none, the tools for that are not offered.
    pub background: BackgroundLimits,
}

/// How many commands may go on in the background, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundLimits {
    /// Those that one conversation may have at once.
    pub per_conversation: usize,
    /// Those of all conversations.
    pub overall: usize,
    /// After which time one is ended.
    pub longest: Duration,
}

impl Default for BackgroundLimits {
    /// 8 in a conversation, 64 in all, 12 hours.
    fn default() -> Self {
        Self { per_conversation: 8, overall: 64, longest: Duration::from_hours(12) }
    }
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
            background: BackgroundLimits::default(),
        }
    }
}

#[derive(Debug)]
struct Shared {
    roots: Roots,
    config: CommandConfig,
}

/// The tool source `command`: `run`; and `start`, `output`, `input` and `stop` for what goes on in the background.
///
/// # Errors
/// [`RootsError`] where no root is a folder that can be opened.
pub fn command(config: CommandConfig) -> Result<TypedSource, RootsError> {
    // The command's own limit comes first, so that its output is kept; the engine's is the net below.
    let longest = config.max_timeout.saturating_add(config.grace).saturating_add(Duration::from_secs(5));
    let shared = Arc::new(Shared { roots: Roots::open(&config.roots)?, config });
    let spec =
        ToolSpec::new("run", run::DESCRIPTION).title("Run a command").limits(CallLimits { idle: longest, total: longest });
    let command = Arc::clone(&shared);
    let source = TypedSource::new("command").tool(spec, move |arguments, context| {
        let shared = Arc::clone(&command);
        async move { run::run(&shared, arguments, &context).await }
    });
    Ok(if shared.config.background.per_conversation == 0 { source } else { with_background(source, &shared) })
}

fn with_background(source: TypedSource, shared: &Arc<Shared>) -> TypedSource {
    let processes = Arc::new(Processes::new(source.tracker().clone(), source.stop_token()));
    let (all, commands) = (Arc::clone(&processes), Arc::clone(shared));
    let source =
        source.tool(ToolSpec::new("start", START).title("Start a command").keeping_state(), move |arguments, context| {
            let (all, shared) = (Arc::clone(&all), Arc::clone(&commands));
            async move { all.start(&shared, arguments, &context).await }
        });
    let all = Arc::clone(&processes);
    let spec = ToolSpec::new("output", OUTPUT).title("Read a background process").read_only().polled().keeping_state();
    let source = source.tool(spec, move |arguments, context| {
        let all = Arc::clone(&all);
        async move { all.output(arguments, &context).await }
    });
    let all = Arc::clone(&processes);
    let source =
        source.tool(ToolSpec::new("input", INPUT).title("Write to a process").keeping_state(), move |arguments, context| {
            let all = Arc::clone(&all);
            async move { all.input(arguments, &context).await }
        });
    let (all, commands) = (Arc::clone(&processes), Arc::clone(shared));
    let spec = ToolSpec::new("stop", STOP).title("Stop a background process").replayable().keeping_state();
    let source = source.tool(spec, move |arguments, context| {
        let (all, shared) = (Arc::clone(&all), Arc::clone(&commands));
        async move { all.stop(&shared, arguments, &context).await }
    });
    source.when_over(move |conversation| processes.end_of(conversation))
}
