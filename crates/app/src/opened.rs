//! The configuration and the host of a command.

use turnwright_core::{ApproveMode, UserId};
use turnwright_engine::Telemetry;
use turnwright_host::config::Place;
use turnwright_host::{Environment, Host, HostBuilder, Loaded, Needs, Overrides, config};

use crate::cli::Everywhere;
use crate::commands::users::find;
use crate::exit::Failure;
use crate::logging::Logging;
use crate::{hiding, logging, output, telemetry};

/// What is logged by a command that answers and ends.
pub(crate) const QUIET: &str = "warn";
/// What is logged by a command that says itself how MCP servers are.
pub(crate) const TELLS_OF_SERVERS: &str = "warn,turnwright_mcp::supervisor=off";
/// What is logged by a server.
pub(crate) const SERVER: &str = "info";

/// A configuration that was read.
pub(crate) struct Opened {
    pub(crate) environment: Environment,
    pub(crate) loaded: Loaded,
    /// For whom the command acts, by name or id; `local` where nobody is named.
    user: Option<String>,
}

/// The flags that every command has, as the configuration takes them.
pub(crate) fn overrides(everywhere: &Everywhere) -> Overrides {
    Overrides {
        config: everywhere.config.clone(),
        data_dir: everywhere.data_dir.clone(),
        database: everywhere.database.clone(),
        log_level: everywhere.log_level.clone(),
        ..Overrides::default()
    }
}

/// What the process was started with.
pub(crate) fn environment() -> Result<Environment, Failure> {
    let environment =
        Environment::read().map_err(|error| Failure::usage(format!("the working directory cannot be used: {error}")))?;
    Ok(match std::env::current_exe() {
        Ok(program) => environment.with_command_helper(vec![program.into(), crate::SANDBOX.into()]),
        Err(_) => environment,
    })
}

/// Reads the configuration and begins to log.
pub(crate) fn open(overrides: &Overrides, log_level: &str) -> Result<Opened, Failure> {
    let environment = environment()?;
    hiding::keep(environment.secrets());
    let loaded = config::open(&environment, overrides)?;
    let config = &loaded.config;
    let level = config.log_level.as_deref().unwrap_or(log_level);
    let logging = Logging { level, format: config.log_format, telemetry: &config.telemetry, network: &loaded.network };
    if let Err(problem) = logging::start(logging, &environment) {
        output::say(&format!("warning: {problem}"));
    }
    Ok(Opened { environment, loaded, user: None })
}

impl Opened {
    /// The same for the user whom the command line names.
    pub(crate) fn of(self, everywhere: &Everywhere) -> Self {
        Self { user: everywhere.user.clone(), ..self }
    }

    /// Starts the host, and says what looks wrong and does not hinder.
    pub(crate) fn start(self, needs: Needs) -> impl Future<Output = Result<Host, Failure>> {
        // A whole configuration moves through it, which is too much for the stack of each that waits.
        Box::pin(self.start_with(needs, |builder| builder))
    }

    /// The same with what `add` adds.
    pub(crate) async fn start_with(self, needs: Needs, add: impl FnOnce(HostBuilder) -> HostBuilder) -> Result<Host, Failure> {
        for warning in &self.loaded.warnings {
            output::say(&format!("warning: {warning}"));
        }
        let told = Telemetry {
            observer: None,
            trace_context: telemetry::is_on().then_some(telemetry::context),
            records_content: self.loaded.config.telemetry.content,
        };
        let mut host = add(Host::builder(self.loaded, self.environment).needs(needs).telemetry(told)).start().await?;
        if let Some(name) = &self.user {
            match find(&**host.accounts(), name).await {
                Ok(user) => host = host.acting_for(user.id),
                Err(failure) => {
                    let Some(id) = removed(name) else {
                        host.shutdown().await;
                        return Err(failure);
                    };
                    output::say(&format!("note: there is no user `{id}` (any more); this is about what belongs to that id"));
                    host = host.acting_for(id);
                }
            }
        }
        if let Err(failure) = own_choice(&host) {
            host.shutdown().await;
            return Err(failure);
        }
        if needs == Needs::Everything {
            for problem in host.problems() {
                output::say(&format!("warning: {problem}"));
            }
        }
        Ok(host)
    }
}

/// The id of a user who may have been removed: what belonged to them is stored and is reached by it. Nobody is called so.
fn removed(name: &str) -> Option<UserId> {
    let number = name.strip_prefix("user_")?;
    let is_id = number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_alphanumeric());
    name.parse().ok().filter(|_| is_id)
}

/// Refuses what a tool has started: no model decides about its own calls, or lets in what would.
pub(crate) fn people_only(host: &Host) -> Result<(), Failure> {
    if host.is_run_by_a_tool() { Err(Failure::failed("a tool has started this command; only people decide")) } else { Ok(()) }
}

/// Refuses a tool that has everything run by a variable of its own. What a file says was chosen by a person.
fn own_choice(host: &Host) -> Result<(), Failure> {
    let place = host.loaded().problem(&["approve"], "").place;
    let is_by_variable = matches!(place, Place::Variable(_) | Place::Flag(_));
    if host.config().approve == ApproveMode::All && is_by_variable { people_only(host) } else { Ok(()) }
}
