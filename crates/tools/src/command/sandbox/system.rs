//! What the system offers to confine commands with.

use std::path::Path;
use std::process::{Command, Stdio};

use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};

/// The least version of Landlock that keeps files from being changed: those before let them be emptied.
const LEAST_LANDLOCK: u8 = 3;

/// What stands around a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enclosure {
    /// Name spaces made by bubblewrap.
    Bubblewrap,
    /// The rules of Landlock, and seccomp against sockets.
    Landlock,
    /// Nothing but limits.
    None,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protections {
    /// bubblewrap works; else why not.
    pub bubblewrap: Result<(), String>,
    /// The version of Landlock, up to the newest that is made use of; 0 where there is none.
    pub landlock: u8,
    /// Whether the kernel takes filters of seccomp.
    pub seccomp: bool,
}

impl Protections {
    /// Looks: starts `bwrap` once, and asks the kernel.
    pub fn of_this_system() -> Self {
        let bubblewrap = bubblewrap();
        let seccomp = std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("Seccomp:"));
        Self { bubblewrap, landlock: landlock(), seccomp }
    }

    /// The best that there is.
    pub fn enclosure(&self) -> Enclosure {
        match (self.seccomp, &self.bubblewrap, self.landlock) {
            (true, Ok(()), _) => Enclosure::Bubblewrap,
            (true, Err(_), LEAST_LANDLOCK..) => Enclosure::Landlock,
            (false, _, _) | (true, Err(_), 0..LEAST_LANDLOCK) => Enclosure::None,
        }
    }

    /// What is not there, in words for the operator.
    pub fn missing(&self) -> String {
        let mut missing = Vec::new();
        if let Err(reason) = &self.bubblewrap {
            missing.push(format!("bubblewrap does not work ({reason})"));
        }
        match self.landlock {
            0 => missing.push("the kernel has no Landlock".to_owned()),
            old @ 1..LEAST_LANDLOCK => missing.push(format!("the kernel's Landlock {old} lets files be emptied")),
            LEAST_LANDLOCK.. => {}
        }
        if !self.seccomp {
            missing.push("the kernel has no seccomp".to_owned());
        }
        missing.join(", ")
    }

    /// What is there, in words for the operator.
    pub fn present(&self) -> String {
        let landlock = match self.landlock {
            0 => "no Landlock".to_owned(),
            version => format!("Landlock {version}"),
        };
        let bubblewrap = match &self.bubblewrap {
            Ok(()) => "bubblewrap".to_owned(),
            Err(reason) => format!("no bubblewrap ({reason})"),
        };
        format!("{bubblewrap}, {landlock}, {}", if self.seccomp { "seccomp" } else { "no seccomp" })
    }
}

/// Where `bwrap` may be. Never looked up by a search path, in which somebody else may have put one.
const PLACES: &[&str] = &["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

/// The program of bubblewrap.
pub(super) fn bwrap() -> Option<&'static Path> {
    PLACES.iter().map(Path::new).find(|path| path.exists())
}

fn bubblewrap() -> Result<(), String> {
    let Some(program) = bwrap() else { return Err("it is not installed".to_owned()) };
    let mut command = Command::new(program);
    command.args(["--unshare-user-try", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc"]);
    command.args(["--dev", "/dev", "--", "true"]).stdin(Stdio::null()).stdout(Stdio::null());
    match command.output() {
        Ok(ended) if ended.status.success() => Ok(()),
        Ok(ended) => {
            let said = String::from_utf8_lossy(&ended.stderr);
            Err(said.lines().next().unwrap_or("it fails").to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Making a set of rules restricts nobody and fails where its rules are not known.
fn landlock() -> u8 {
    let knows = |abi: ABI| {
        let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(abi));
        rules.and_then(Ruleset::create).is_ok()
    };
    let versions = [(5, ABI::V5), (3, ABI::V3), (2, ABI::V2), (1, ABI::V1)];
    versions.into_iter().find(|(_, abi)| knows(*abi)).map_or(0, |(version, _)| version)
}
