//! What the helper does: it confines itself, and becomes the command.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
    path_beneath_rules,
};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::plan::{CommandLimits, DEVICES, Files, Plan, View, names_in};
use super::{cover, filter};

/// The newest Landlock that is made use of; an older kernel gives what it has.
const NEWEST: ABI = ABI::V6;

/// Confines this process as its first argument says and becomes the program that the others name. Returns only where that
/// fails; nothing of the command has run then. To be called from `main` before anything else, by a process of one thread.
pub fn confine(arguments: impl IntoIterator<Item = OsString>) -> io::Error {
    match prepared(arguments) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn prepared(arguments: impl IntoIterator<Item = OsString>) -> io::Result<Command> {
    let mut arguments = arguments.into_iter();
    let plan = arguments.next().and_then(|plan| plan.into_string().ok());
    let plan: Plan = serde_json::from_str(&plan.unwrap_or_default())?;
    let program = arguments.next().ok_or_else(|| io::Error::other("no program is named"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    limit(plan.limits)?;
    if let Some(view) = &plan.view {
        restrict(&opened(view)?)?;
        give_up_capabilities()?;
    }
    if plan.seccomp {
        filter::close(plan.sockets)?;
    }
    if let Some(parent) = plan.ends_with {
        end_with(parent)?;
    }
    Ok(command)
}

/// What Landlock leaves open; what is hidden in that is covered, where it can be.
fn opened(view: &View) -> io::Result<Files> {
    let places = view.cover();
    if places.is_empty() {
        return Ok(view.files(&names_in));
    }
    if cover::cover(&places)? {
        return Ok(view.files_beside_cover(&names_in));
    }
    if let Some(note) = view.closed_root() {
        // Whoever runs the command reads it.
        writeln!(io::stderr(), "{note}")?;
    }
    Ok(view.files(&names_in))
}

/// What root may do beyond its own files; as no new privileges can be had any more, programs that are run get none back.
fn give_up_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    rustix::thread::clear_ambient_capability_set()?;
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

/// The command is killed where the process that started it ends, however it ends.
fn end_with(parent: u32) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    if u32::try_from(nix::unistd::getppid().as_raw()) == Ok(parent) {
        Ok(())
    } else {
        Err(io::Error::other("the process that started it has ended"))
    }
}

/// No limit is raised, and what the system does not know is left out.
fn limit(limits: CommandLimits) -> io::Result<()> {
    let CommandLimits { cpu_seconds, memory_bytes, processes, file_bytes, open_files } = limits;
    let wanted = [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_CPU, cpu_seconds),
        (Resource::RLIMIT_DATA, memory_bytes),
        (Resource::RLIMIT_FSIZE, file_bytes),
        (Resource::RLIMIT_NOFILE, open_files),
        (Resource::RLIMIT_NPROC, running().saturating_add(processes)),
    ];
    for (resource, wanted) in wanted {
        let (_, most) = nix::sys::resource::getrlimit(resource)?;
        let limit = wanted.min(most);
        setrlimit(resource, limit, limit)?;
    }
    Ok(())
}

/// How many processes and threads there are: the system counts all of a user, so those that run already count too.
fn running() -> u64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let all = load.split(' ').nth(3).and_then(|counts| counts.split('/').nth(1)?.parse().ok());
    all.unwrap_or(1_024)
}

fn restrict(files: &Files) -> io::Result<()> {
    let Files { readable, writable, network } = files;
    let restrict = || {
        let mut rules =
            Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(NEWEST))?;
        if !network {
            rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
        }
        let devices = DEVICES.iter().map(PathBuf::from);
        rules
            .scope(Scope::from_all(NEWEST))?
            .create()?
            .add_rules(path_beneath_rules(readable, AccessFs::from_read(NEWEST)))?
            .add_rules(path_beneath_rules(writable, AccessFs::from_all(NEWEST)))?
            .add_rules(path_beneath_rules(devices, AccessFs::from_all(NEWEST)))?
            .restrict_self()
    };
    let status = restrict().map_err(|error: landlock::RulesetError| io::Error::other(error))?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(io::Error::other("Landlock is not there any more")),
    }
}
