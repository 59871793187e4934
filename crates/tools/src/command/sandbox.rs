//! A [`Launcher`] that confines commands.
//!
//! A command is started through a helper, a small program that confines itself and then becomes the command; so nothing
//! runs between a fork and an exec in this process. Where bubblewrap is there and works it stands around the helper: a view
//! of the file system with the roots alone to write to, and processes and a network of its own. Elsewhere the helper uses
//! Landlock for files, with mounts over what is hidden in a root, and seccomp against the network. In both cases seccomp closes the calls of the kernel that no
//! command of this kind needs, and limits are set.
//!
//! The helper is any program whose `main` hands its arguments to [`confine`] where it is called as one:
//! `turnwright-sandbox` of this crate does nothing else.

mod confine;
mod cover;
mod filter;
mod plan;
mod system;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

pub use self::confine::confine;
pub use self::plan::CommandLimits;
use self::plan::{Plan, View};
pub use self::system::{Enclosure, Protections};
use super::{Launch, Launcher, Leader, Prepared};
use crate::{OwnPaths, links};

/// Whether commands run where the system cannot confine them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// They do not.
    Required,
    /// They do, with the limits alone.
    #[default]
    Preferred,
    /// They are never confined; the limits are set.
    Off,
}

/// Whether commands reach the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Network {
    /// They do not, nor sockets of this machine.
    #[default]
    Off,
    /// As this process does.
    On,
}

/// How commands are confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Whether they run where they cannot be confined.
    pub mode: SandboxMode,
    /// The helper: a program that calls [`confine`], with the arguments that make it do so.
    pub helper: Vec<OsString>,
    /// Whether they reach the network.
    pub network: Network,
    /// Folders and files to write to beside the roots.
    pub writable: Vec<PathBuf>,
    /// Folders and files that are not to be read, wherever they are: keys of this program's user. Where the system lets a command have
    /// no mounts of its own, Landlock hides what lies in a root only where the sandbox is required: nothing new can be made beside it
    /// then.
    pub hidden: Vec<PathBuf>,
    /// The same of what this program reads at its start. Nothing runs where a command could put another one in the place of a link on the
    /// way to it.
    pub kept: OwnPaths,
    /// The same of this program's own data: hidden in every case, also where nothing new can be made beside it then. A root that is one of
    /// these is empty.
    pub never: Vec<PathBuf>,
    /// Below which they have a folder of their own for temporary files; it is made, and removed at the end.
    pub temporary: PathBuf,
    /// What a command may use.
    pub limits: CommandLimits,
}

impl SandboxConfig {
    /// Confined where possible, without network, with the default limits.
    pub fn new(helper: Vec<OsString>, temporary: PathBuf) -> Self {
        Self {
            mode: SandboxMode::default(),
            helper,
            network: Network::default(),
            writable: Vec::new(),
            hidden: Vec::new(),
            kept: OwnPaths::default(),
            never: Vec::new(),
            temporary,
            limits: CommandLimits::default(),
        }
    }
}

impl SandboxConfig {
    /// Why no command with these roots can be confined: a link to what this program reads at its start lies where commands write to.
    pub fn refusal(&self, roots: &[PathBuf]) -> Option<String> {
        self.loose_link_in(&self.view(roots, None)).map(|link| loose(&link))
    }

    /// What a command sees. What is not there cannot be opened, and need not be.
    fn view(&self, roots: &[PathBuf], temporary: Option<&Path>) -> View {
        let there = |paths: &[PathBuf]| paths.iter().filter_map(|path| std::fs::canonicalize(path).ok()).collect::<Vec<_>>();
        let (roots, hidden) = (there(roots), [there(&self.hidden), there(&self.kept.known())].concat());
        // A root in which nothing new can be made is of little use.
        let spared = if self.mode == SandboxMode::Required { Vec::new() } else { hidden.clone() };
        View {
            spared: spared.into_iter().filter(|path| roots.iter().any(|root| path.starts_with(root))).collect(),
            writable: [roots, there(&self.writable), temporary.and_then(|path| path.canonicalize().ok()).into_iter().collect()]
                .concat(),
            hidden: [hidden, there(&self.never)].concat(),
            network: self.network,
        }
    }

    /// A link in whose place a command could put another one, so that the next start reads something else. Nothing can be mounted over
    /// a link.
    fn loose_link_in(&self, view: &View) -> Option<PathBuf> {
        let paths = self.kept.known().into_iter().chain(self.never.iter().cloned());
        paths.filter(|path| path.exists()).flat_map(|path| links::passed(&path)).find(|link| view.is_open(link))
    }
}

fn loose(link: &Path) -> String {
    format!(
        "`{}` is a link to what this program reads at its start, and a command could put another one in its place: put what it leads to \
         there itself, or let commands write elsewhere (roots, writable)",
        link.display()
    )
}

/// Starts commands confined as far as the configuration asks and the system can.
#[derive(Debug)]
pub struct SandboxLauncher {
    config: SandboxConfig,
    system: OnceLock<Protections>,
    temporary: OnceLock<PathBuf>,
}

impl SandboxLauncher {
    /// The launcher. What the system can do is looked at when the first command is started.
    pub fn new(config: SandboxConfig) -> Self {
        Self { config, system: OnceLock::new(), temporary: OnceLock::new() }
    }

    /// The same, with what the system can do said by the caller.
    pub fn with_protections(config: SandboxConfig, system: Protections) -> Self {
        Self { config, system: OnceLock::from(system), temporary: OnceLock::new() }
    }

    fn enclosure(&self) -> io::Result<Enclosure> {
        if self.config.mode == SandboxMode::Off {
            return Ok(Enclosure::None);
        }
        let system = self.system.get_or_init(Protections::of_this_system);
        match (system.enclosure(), self.config.mode) {
            (Enclosure::None, SandboxMode::Required) => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "the configuration requires a sandbox (sandbox = \"required\"), and here is none: {}",
                    system.missing()
                ),
            )),
            (enclosure, _) => Ok(enclosure),
        }
    }

    /// The folder of temporary files of this launcher's commands.
    fn temporary(&self) -> io::Result<&Path> {
        if let Some(path) = self.temporary.get() {
            return Ok(path);
        }
        let path = self.config.temporary.join(format!("{}-{}", std::process::id(), super::group::new_mark()));
        std::fs::create_dir_all(&path)?;
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        Ok(self.temporary.get_or_init(|| path))
    }
}

impl Drop for SandboxLauncher {
    fn drop(&mut self) {
        if let Some(path) = self.temporary.get()
            && let Err(error) = std::fs::remove_dir_all(path)
        {
            tracing::debug!(folder = %path.display(), %error, "temporary files of commands could not be removed");
        }
    }
}

impl Launcher for SandboxLauncher {
    fn prepare(&self, launch: &Launch) -> io::Result<Prepared> {
        let enclosure = self.enclosure()?;
        // The helper is there even where the program is not, so its absence is told here.
        let program = find(launch)?;
        let config = &self.config;
        let Some((helper, helper_arguments)) = config.helper.split_first() else {
            return Err(io::Error::other("no helper is configured"));
        };
        let temporary = self.temporary()?.to_path_buf();
        let view = config.view(&launch.roots, Some(&temporary));
        if enclosure != Enclosure::None
            && let Some(link) = config.loose_link_in(&view)
        {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, loose(&link)));
        }
        let plan = Plan::new(enclosure, &view, config.limits);
        let mut command = match enclosure {
            Enclosure::Bubblewrap => {
                let bwrap = system::bwrap().ok_or_else(|| io::Error::other("bubblewrap is not there any more"))?;
                let mut command = Command::new(bwrap);
                command.args(view.bubblewrap(&launch.cwd, helper)).arg("--").arg(helper);
                command
            }
            Enclosure::Landlock | Enclosure::None => Command::new(helper),
        };
        command.args(helper_arguments).arg(plan.to_argument()?).arg(program).args(&launch.arguments);
        command.current_dir(&launch.cwd).env_clear();
        command.envs(launch.environment.iter().map(|(name, value)| (name, value)));
        if enclosure != Enclosure::None {
            command.env("TMPDIR", &temporary);
        }
        let leader = match enclosure {
            Enclosure::Bubblewrap => Leader::Enclosure,
            Enclosure::Landlock | Enclosure::None => Leader::Command,
        };
        Ok(Prepared { command, leader })
    }
}

/// The program's path, as the system would find it.
fn find(launch: &Launch) -> io::Result<PathBuf> {
    let program = Path::new(&launch.program);
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    if program.as_os_str().as_bytes().contains(&b'/') {
        let path = launch.cwd.join(program);
        return if path.exists() { Ok(path) } else { Err(missing()) };
    }
    let folders = launch.environment.iter().find(|(name, _)| name == OsStr::new("PATH")).map(|(_, path)| path.as_os_str());
    let mut found = std::env::split_paths(folders.unwrap_or(OsStr::new("/usr/bin:/bin"))).map(|folder| folder.join(program));
    found.find(|path| is_program(path)).ok_or_else(missing)
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
