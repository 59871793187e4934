//! Programs of the configuration that are tools.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;
use turnwright_core::Declared;
use turnwright_tools::{ExecutableTool, Executables, Launcher, PlainLauncher, SandboxLauncher};

use crate::config::{self, Loaded, Sandbox};
use crate::sandbox::{self, Wanted};
use crate::{Environment, sources};

/// The name of their source.
pub(crate) const SOURCE: &str = "executable";

/// How long a call may take where nothing is said.
const TIMEOUT: Duration = Duration::from_mins(1);
/// How long a program has to end once it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// The largest result where nothing is said, in bytes.
const MAX_RESULT_BYTES: usize = 1024 * 1024;

/// Those programs that are offered. Of the others that are wanted, `problems` is told why they are not.
pub(crate) fn offered<'a>(
    programs: &'a IndexMap<String, config::ExecutableTool>,
    environment: &Environment,
    problems: &mut Vec<String>,
) -> Vec<(&'a String, &'a config::ExecutableTool)> {
    let (left_out, offered): (Vec<_>, Vec<_>) = programs
        .iter()
        .filter(|(_, tool)| tool.enabled)
        .partition(|(_, tool)| tool.sandbox.is_some_and(|sandbox| sandbox::lacks_helper(sandbox, environment)));
    problems.extend(
        left_out.into_iter().map(|(name, _)| {
            sandbox::no_helper(&format!("the tool `{SOURCE}__{name}` is"), &format!("tools.executable.{name}"))
        }),
    );
    offered
}

/// The source of these programs.
pub(crate) fn source(
    programs: &[(&String, &config::ExecutableTool)],
    loaded: &Loaded,
    environment: &Environment,
    mark: &str,
) -> Executables {
    let tools = programs.iter().map(|(name, tool)| executable(name, tool, loaded, environment, mark));
    Executables::new(SOURCE, tools.collect())
}

fn executable(
    name: &str,
    tool: &config::ExecutableTool,
    loaded: &Loaded,
    environment: &Environment,
    mark: &str,
) -> ExecutableTool {
    let program = std::iter::once(program(&tool.command, loaded, environment));
    ExecutableTool {
        name: name.to_owned(),
        command: program.chain(tool.args.iter().map(OsString::from)).collect(),
        description: tool.description.clone(),
        input_schema: tool.schema.clone().map(Value::Object),
        declared: Declared { read_only: tool.read_only, replayable: tool.replayable, serial: tool.serial, polled: tool.polled },
        environment: sources::variables(environment, &tool.env, Some(mark)),
        folder: tool.cwd.clone().unwrap_or_else(|| environment.working_directory().to_owned()),
        timeout: tool.timeout_ms.map_or(TIMEOUT, Duration::from_millis),
        grace: GRACE,
        cache_ttl: tool.cache_ttl_ms.map(Duration::from_millis),
        max_result_bytes: tool.max_result_bytes.and_then(|most| usize::try_from(most).ok()).unwrap_or(MAX_RESULT_BYTES),
        launcher: launcher(tool, loaded, environment),
    }
}

/// A name is looked up by the system; a path begins where the configuration is.
pub(crate) fn program(command: &str, loaded: &Loaded, environment: &Environment) -> OsString {
    if !command.contains('/') {
        return command.into();
    }
    if let (Some(rest), Some(home)) = (command.strip_prefix("~/"), environment.home()) {
        return home.join(rest).into();
    }
    let folder = loaded.file.as_deref().and_then(Path::parent).map(Path::to_owned);
    let folder: PathBuf = folder.unwrap_or_else(|| environment.working_directory().to_owned());
    folder.join(command).into()
}

fn launcher(tool: &config::ExecutableTool, loaded: &Loaded, environment: &Environment) -> Arc<dyn Launcher> {
    let wanted = Wanted { sandbox: tool.sandbox.unwrap_or(Sandbox::Off), network: sandbox::network(tool.network) };
    let confined = match wanted.sandbox {
        Sandbox::Off => None,
        Sandbox::Required | Sandbox::Preferred => sandbox::config(loaded, environment, wanted),
    };
    confined.map_or_else(|| -> Arc<dyn Launcher> { Arc::new(PlainLauncher) }, |config| Arc::new(SandboxLauncher::new(config)))
}
