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

/// What is to be started, by the system's own means.
#[derive(Debug)]
pub struct Prepared {
    /// With program, arguments, working directory and environment.
    pub command: Command,
    /// What its first process is.
    pub leader: Leader,
}

/// What the first process of a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leader {
    /// The command itself.
    Command,
    /// What stands around it, and takes it along when it is asked to end: so it is not asked, but what is in it.
    Enclosure,
}

/// Turns what shall be started into a system command. An isolating launcher puts its own program in front, such as
/// `bwrap --bind … -- program arguments`. Input, outputs and the process group are set by the caller afterwards.
pub trait Launcher: Send + Sync + Debug {
    /// The system command.
    ///
    /// # Errors
    /// Where it cannot be isolated as this launcher promises; nothing runs then.
    fn prepare(&self, launch: &Launch) -> io::Result<Prepared>;
}

/// Starts commands as they are, with the rights of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainLauncher;

impl Launcher for PlainLauncher {
    fn prepare(&self, launch: &Launch) -> io::Result<Prepared> {
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.arguments)
            .current_dir(&launch.cwd)
            .env_clear()
            .envs(launch.environment.iter().map(|(name, value)| (name, value)));
        Ok(Prepared { command, leader: Leader::Command })
    }
}
