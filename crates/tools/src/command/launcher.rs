//! The seam between deciding what runs and how it is started: the place for a sandbox.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;

use tokio::process::Command;

/// What shall be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program: a path, or a name that is looked up in the environment's `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it begins; exists and is inside a root.
    pub cwd: PathBuf,
    /// The roots, for a launcher that shows nothing else to the command.
    pub roots: Vec<PathBuf>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// Turns what shall be started into a system command. An isolating launcher puts its own program in front, such as
/// `bwrap --bind … -- program arguments`. Input, outputs and the process group are set by the caller afterwards.
pub trait Launcher: Send + Sync + Debug {
    /// The system command, with program, arguments, working directory and environment.
    ///
    /// # Errors
    /// Where it cannot be isolated as this launcher promises; nothing runs then.
    fn prepare(&self, launch: &Launch) -> io::Result<Command>;
}

/// Starts commands as they are, with the rights of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainLauncher;

impl Launcher for PlainLauncher {
    fn prepare(&self, launch: &Launch) -> io::Result<Command> {
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.arguments)
            .current_dir(&launch.cwd)
            .env_clear()
            .envs(launch.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }
}
