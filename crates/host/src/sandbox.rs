//! How commands are confined, from the configuration, and what `doctor` says of it.

use turnwright_tools::{Enclosure, Network, Protections, SandboxConfig, SandboxMode};

use crate::config::{Loaded, Sandbox};
use crate::{Environment, Level, kept};

/// Whether something is confined, and whether it reaches the network then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) sandbox: Sandbox,
    pub(crate) network: Network,
}

impl Wanted {
    /// What the configuration says of commands.
    pub(crate) fn of_commands(loaded: &Loaded) -> Self {
        let tools = &loaded.config.tools.command;
        Self { sandbox: tools.sandbox, network: network(tools.network) }
    }
}

pub(crate) fn network(is_on: bool) -> Network {
    if is_on { Network::On } else { Network::Off }
}

/// Why no command is offered at all; `None` where commands run, or say themselves why they do not.
pub(crate) fn why_none(loaded: &Loaded, environment: &Environment) -> Option<String> {
    lacks_helper(loaded.config.tools.command.sandbox, environment).then(no_commands)
}

/// Whether something is not offered, since nobody chose that it runs unconfined: a program that forgot its helper must not make it
/// do so.
pub(crate) fn lacks_helper(sandbox: Sandbox, environment: &Environment) -> bool {
    match sandbox {
        Sandbox::Preferred => environment.command_helper().is_empty(),
        Sandbox::Required | Sandbox::Off => false,
    }
}

/// What is said of that: `what` is left out, and the table `key` of the configuration is about it.
pub(crate) fn no_helper(what: &str, key: &str) -> String {
    format!(
        "{what} left out: this program brings no helper that confines what is run (`Environment::with_command_helper`); \
         `{key}.sandbox = \"off\"` runs it unconfined, `{key}.enabled = false` says that it is not wanted"
    )
}

fn no_commands() -> String {
    no_helper("the tools of `command` are", "tools.command")
}

/// How that is done; `None` where nothing can confine them and nothing must.
pub(crate) fn config(loaded: &Loaded, environment: &Environment, wanted: Wanted) -> Option<SandboxConfig> {
    let tools = &loaded.config.tools.command;
    let helper = environment.command_helper();
    if helper.is_empty() && wanted.sandbox != Sandbox::Required {
        return None;
    }
    let mut sandbox = SandboxConfig::new(helper.to_vec(), loaded.data_dir.join("tmp"));
    sandbox.mode = match wanted.sandbox {
        Sandbox::Required => SandboxMode::Required,
        Sandbox::Preferred => SandboxMode::Preferred,
        Sandbox::Off => SandboxMode::Off,
    };
    sandbox.network = wanted.network;
    sandbox.writable.clone_from(&tools.writable);
    let keys =
        [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".config/gcloud", ".config/gh"];
    let of_home = environment.home().into_iter().flat_map(|home| keys.map(|name| home.join(name)));
    sandbox.hidden = of_home.collect();
    sandbox.kept = kept::files(loaded, environment);
    sandbox.never = vec![loaded.data_dir.clone()];
    let limits = &mut sandbox.limits;
    limits.memory_bytes = tools.max_memory_mb.map_or(limits.memory_bytes, |mebibytes| u64::from(mebibytes) << 20);
    limits.processes = tools.max_processes.map_or(limits.processes, u64::from);
    limits.cpu_seconds = tools.max_cpu_seconds.map_or(limits.cpu_seconds, u64::from);
    Some(sandbox)
}

/// What `doctor` says of the sandbox: whether it is as the configuration wants it, and the words.
pub(crate) fn finding(loaded: &Loaded, environment: &Environment) -> Option<(Level, String)> {
    let tools = &loaded.config.tools.command;
    if !tools.enabled {
        return None;
    }
    let system = Protections::of_this_system();
    let (present, missing) = (system.present(), system.missing());
    let network = if tools.network { "with network" } else { "without network" };
    let confined = match (environment.command_helper().is_empty(), system.enclosure()) {
        (false, Enclosure::Bubblewrap) => Some("bubblewrap and seccomp"),
        (false, Enclosure::Landlock) => Some("Landlock and seccomp"),
        (false, Enclosure::None) | (true, _) => None,
    };
    let refusal = config(loaded, environment, Wanted::of_commands(loaded))
        .and_then(|config| config.refusal(&loaded.config.tools.command_roots(environment.working_directory())));
    Some(match (tools.sandbox, confined) {
        (Sandbox::Off, _) => (Level::Note, format!("commands are not confined (sandbox = \"off\"); this system has {present}")),
        (Sandbox::Required | Sandbox::Preferred, Some(confined)) => {
            if let Some(why) = refusal {
                return Some((Level::Problem, format!("no command runs: {why}")));
            }
            let what = format!("commands are confined by {confined}, {network}, and write to their roots alone");
            (Level::Ok, format!("{what}; this system has {present}"))
        }
        (Sandbox::Required, None) => (Level::Problem, format!("no command runs: a sandbox is required, and {missing}")),
        (Sandbox::Preferred, None) if environment.command_helper().is_empty() => (Level::Note, no_commands()),
        (Sandbox::Preferred, None) => (Level::Note, format!("commands are not confined: {missing}")),
    })
}
