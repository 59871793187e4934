//! The tool sources of an installation: the built-ins, MCP servers of the configuration and of other programs' files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use turnwright_core::SamplingBudget;
use turnwright_engine::accounts::Accounts;
use turnwright_engine::artifacts::Artifacts;
use turnwright_engine::{CallLimits, Completed, HoldBack, Rates, SystemClock, ToolSource};
use turnwright_mcp::import::{self, Import, ImportedServer, ImportedTransport};
use turnwright_mcp::{
    Board, DockerConfig, FileDefinitions, Granted, HttpConfig, MARK, McpServer, Mount, OauthConfig, OauthGrant, ProcessLedger,
    ProcessRecord, Root, ServerConfig, StartPolicy, StdioConfig, Surroundings, TokenStore, ToolDeclaration, TransportConfig,
    is_inherited,
};
use turnwright_network::Network;
use turnwright_tools::net::Way;
use turnwright_tools::{CommandConfig, FilesystemConfig, SandboxLauncher, artifact, command, filesystem, web};

use crate::config::{self, Loaded, McpGrant, McpTransport, expand};
use crate::env_file;
use crate::servers::WaysOfUsers;
use crate::{Environment, HostError, apis, context, executables, sandbox};

/// How much of what servers say is done in a browser may wait to be looked at.
const MAX_COMPLETED: usize = 64;

/// A server of the configuration that runs, or would.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) name: String,
    /// The server, or why it is left out.
    pub(crate) made: Result<Arc<McpServer>, String>,
    /// The file that names it.
    pub(crate) origin: String,
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Sources {
    /// All but the MCP servers: the built-ins, and an embedder's own.
    pub(crate) built_in: Vec<Arc<dyn ToolSource>>,
    pub(crate) servers: Vec<Server>,
    /// Names of built-in sources, those that are not there yet among them.
    reserved: Vec<&'static str>,
    /// What every MCP server gets.
    pub(crate) surroundings: Surroundings,
    /// What servers say is done in a browser.
    pub(crate) completed: mpsc::Receiver<Completed>,
    /// What is not right and does not hinder the rest.
    pub(crate) problems: Vec<String>,
    /// The mark that every command carries in its environment, by which the next start finds what was left (law 8).
    pub(crate) command_mark: Option<String>,
}

impl Sources {
    fn is_taken(&self, name: &str) -> bool {
        self.built_in.iter().any(|source| source.name() == name) || self.servers.iter().any(|server| server.name == name)
    }

    /// Whether no server can have this name, also where what has it is added later.
    fn is_taken_from_servers(&self, name: &str) -> bool {
        self.reserved.contains(&name) || self.is_taken(name)
    }

    /// Tells, once, of folders that tools are to work in and that are not there.
    fn tell_missing(&mut self, roots: &[PathBuf]) {
        for root in roots.iter().filter(|root| !root.is_dir()) {
            let text = format!(
                "the root `{}` is not a folder that is there; paths in it are refused until the next start",
                root.display()
            );
            if !self.problems.contains(&text) {
                self.problems.push(text);
            }
        }
    }

    /// The mark of the commands, a new one where there is none yet.
    fn marked(&mut self, ledger: &dyn ProcessLedger, data_dir: &Path) -> Result<String, HostError> {
        if let Some(mark) = &self.command_mark {
            return Ok(mark.clone());
        }
        let mark = mark(ledger, data_dir)?;
        Ok(self.command_mark.insert(mark).clone())
    }

    /// Adds a server of a file; one that cannot be one is there with the reason.
    fn add_server(&mut self, name: &str, config: Result<ServerConfig, String>, origin: String) {
        if self.is_taken_from_servers(name) {
            self.problems.push(format!("{origin}: the name `{name}` is taken; this server is left out"));
            return;
        }
        let made = config.map(|config| McpServer::shared_in(config, self.surroundings.clone()));
        if let Err(why) = &made {
            self.problems.push(format!("{origin}: MCP server `{name}` is left out: {why}"));
        }
        self.servers.push(Server { name: name.to_owned(), made, origin });
    }
}

/// When tools are held back; `None` where they never are.
pub(crate) fn hold_back(search: &config::ToolSearch) -> Option<HoldBack> {
    let above_share = f64::from(search.above_percent) / 100.0;
    let results = usize::try_from(search.results).unwrap_or(usize::MAX);
    (search.above_percent < 100).then(|| HoldBack { above_share, always: search.always.clone(), results })
}

/// Where sources keep what they know.
pub(crate) struct Kept {
    /// Processes that run.
    pub(crate) ledger: Arc<dyn ProcessLedger>,
    /// What others are told of the servers here.
    pub(crate) board: Arc<dyn Board>,
    /// Files.
    pub(crate) artifacts: Arc<dyn Artifacts>,
    /// How often things happened.
    pub(crate) rates: Arc<dyn Rates>,
    /// Who may use the installation.
    pub(crate) accounts: Arc<dyn Accounts>,
    /// What is secret.
    pub(crate) tokens: Arc<dyn TokenStore>,
}

/// The sources of a configuration, none of them started.
pub(crate) fn sources(
    (loaded, environment): (&Loaded, &Environment),
    Kept { ledger, board, artifacts, rates, accounts, tokens }: Kept,
    (own, shows_apps): (Vec<Arc<dyn ToolSource>>, bool),
) -> Result<Sources, HostError> {
    let inherited_env = environment
        .variables()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
        .filter(|(name, _)| is_inherited(name))
        .collect();
    let mut surroundings = Surroundings::new(Arc::new(SystemClock));
    (surroundings.inherited_env, surroundings.ledger) = (inherited_env, Arc::clone(&ledger));
    surroundings.tokens = tokens;
    surroundings.definitions = Arc::new(FileDefinitions::new(loaded.data_dir.join("mcp/definitions")));
    surroundings.board = board;
    let (says, completed) = mpsc::channel(MAX_COMPLETED);
    surroundings.completed = Some(says);
    surroundings.network = loaded.network.clone();
    surroundings.ways = Some(Arc::new(WaysOfUsers::new(&loaded.network, &loaded.config.mcp.members_allow, accounts)));
    surroundings.secrets = environment.secrets().clone();
    surroundings.shows_apps = shows_apps;
    surroundings.docker_host = environment.filled("DOCKER_HOST").map(str::to_owned);
    let mut sources = Sources {
        built_in: own,
        servers: Vec::new(),
        reserved: loaded.config.built_in_sources(),
        surroundings,
        completed,
        problems: Vec::new(),
        command_mark: None,
    };
    // A file that nobody named is read where it lies, and not missed where it does not.
    let files = loaded.mcp_files.iter().filter(|file| file.is_required || file.path.exists());
    let said = &loaded.config.mcp.servers;
    let files: Vec<_> = files.map(|file| (&file.path, ServersOfFile::read(&file.path, environment, said))).collect();
    add_built_ins(&mut sources, loaded, environment, &*ledger, (artifacts, rates))?;
    // It knows every server that is made with these surroundings, also later.
    let resources = Arc::clone(&sources.surroundings.resources);
    if !sources.is_taken(resources.name()) {
        sources.built_in.push(resources);
    }
    let origin = loaded.file.as_deref().map_or_else(|| config::FILE_NAME.to_owned(), |path| path.display().to_string());
    let left_out = |name: &str| loaded.left_out.contains_key(name);
    let (own, about_others): (Vec<_>, Vec<_>) = said.iter().partition(|(_, server)| server.transport().is_some());
    for (name, server) in own.into_iter().filter(|(name, _)| !left_out(name)) {
        if !server.enabled && sources.is_taken_from_servers(name) {
            // The configuration's own warning says it.
            continue;
        }
        sources.add_server(name, server_config(name, server), origin.clone());
    }
    for (name, why) in &loaded.left_out {
        if !sources.is_taken_from_servers(name) {
            // The configuration's own warning says it too.
            sources.servers.push(Server { name: name.clone(), made: Err(why.clone()), origin: origin.clone() });
        }
    }
    for (path, read) in files {
        add_file(&mut sources, path, read);
    }
    for (name, server) in about_others {
        // Its file was another when the configuration was read.
        if !sources.is_taken(name) {
            sources.add_server(name, server_config(name, server), origin.clone());
        }
    }
    Ok(sources)
}

/// A server of these keys, or why it is left out.
pub(crate) fn server_config(name: &str, server: &config::McpServer) -> Result<ServerConfig, String> {
    Ok(configured(name, transport(server)?, server))
}

/// How a configured server is reached, or why it is left out.
fn transport(server: &config::McpServer) -> Result<TransportConfig, String> {
    match server.transport() {
        Some(McpTransport::Command(command)) => {
            let mut stdio = StdioConfig::new(command);
            stdio.args.clone_from(&server.args);
            stdio.env = env_file::with(exposed(&server.env), server.env_file.as_deref())?;
            stdio.cwd.clone_from(&server.cwd);
            Ok(stdio.into())
        }
        Some(McpTransport::Url(url)) => {
            let mut http = HttpConfig::new(url);
            http.headers = exposed(&server.headers);
            if let Some(oauth) = &server.oauth {
                http.oauth = OauthConfig {
                    client_id: oauth.client_id.clone(),
                    client_secret: oauth.client_secret.as_ref().map(|secret| secret.expose().to_owned()),
                    client_metadata_url: oauth.client_metadata_url.clone(),
                    grant: match oauth.grant {
                        McpGrant::Person => OauthGrant::Person,
                        McpGrant::ClientCredentials => OauthGrant::ClientCredentials,
                    },
                    scopes: oauth.scopes.clone(),
                    redirect_port: oauth.redirect_port.and_then(|port| u16::try_from(port).ok()).unwrap_or(0),
                };
            }
            Ok(http.into())
        }
        Some(McpTransport::Image(image)) => {
            let mut docker = docker(image, server);
            docker.env = env_file::with(docker.env, server.env_file.as_deref())?;
            Ok(docker.into())
        }
        None => Err("it has no command".to_owned()),
    }
}

fn docker(image: &str, server: &config::McpServer) -> DockerConfig {
    let given = server.docker.clone().unwrap_or_default();
    let mut docker = DockerConfig::new(image);
    docker.args.clone_from(&server.args);
    docker.env = exposed(&server.env);
    docker.mounts = given.mounts.iter().filter_map(|mount| self::mount(mount)).collect();
    docker.network = given.network;
    docker.memory = given.memory_mb.map_or(docker.memory, |mebibytes| u64::from(mebibytes) << 20);
    docker.cpus = given.cpus.unwrap_or(docker.cpus);
    docker.max_processes = given.max_processes.unwrap_or(docker.max_processes);
    docker.writable = given.writable;
    docker.user = given.user;
    docker.fetches_image = match given.pull {
        config::Pull::Never => false,
        config::Pull::Missing => true,
    };
    docker
}

/// `/here:/there`, with `:rw` after it where it may be changed; the configuration has looked at its form.
fn mount(written: &str) -> Option<Mount> {
    let mut parts = written.split(':');
    let (source, target) = (parts.next()?.into(), parts.next()?.into());
    Some(Mount { source, target, writable: parts.next() == Some("rw") })
}

fn exposed(secrets: &indexmap::IndexMap<String, config::Secret>) -> Vec<(String, String)> {
    secrets.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
}

/// Makes the folder in the data directory in which tools work, where they do; what hinders it is told of the root.
pub(crate) fn make_own_root(loaded: &Loaded) {
    let tools = &loaded.config.tools;
    let own = loaded.files_folder();
    if (tools.filesystem.enabled || tools.command.enabled)
        && tools.filesystem.roots.iter().chain(&tools.command.roots).any(|root| *root == own)
    {
        let made = std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700).create(&own);
        if let Err(error) = made {
            tracing::warn!(folder = %own.display(), %error, "the folder of tools could not be made");
        }
    }
}

fn add_built_ins(
    sources: &mut Sources,
    loaded: &Loaded,
    environment: &Environment,
    ledger: &dyn ProcessLedger,
    (artifacts, rates): (Arc<dyn Artifacts>, Arc<dyn Rates>),
) -> Result<(), HostError> {
    let tools = &loaded.config.tools;
    let or_here = |roots: &[PathBuf]| -> Vec<PathBuf> {
        if roots.is_empty() { vec![environment.working_directory().to_owned()] } else { roots.to_owned() }
    };
    let roots = or_here(&tools.filesystem.roots);
    if tools.filesystem.enabled && !sources.is_taken("filesystem") {
        let mut config = FilesystemConfig::new(roots.clone());
        config.max_read_bytes = tools.filesystem.max_read_bytes.unwrap_or(config.max_read_bytes);
        config.denied.extend(tools.filesystem.deny.iter().cloned());
        config.hard_links = tools.filesystem.hard_links;
        config.trash = Some(loaded.data_dir.join("trash"));
        config.ours = context::ours(loaded, environment);
        config.max_image_bytes = tools.filesystem.max_image_bytes.unwrap_or(config.max_image_bytes);
        config.max_write_bytes = tools.filesystem.max_write_bytes.unwrap_or(config.max_write_bytes);
        config.max_entries =
            tools.filesystem.max_entries.and_then(|most| usize::try_from(most).ok()).unwrap_or(config.max_entries);
        sources.built_in.push(Arc::new(filesystem(config)?));
        sources.tell_missing(&roots);
    }
    if let Some(mut config) = tools.web.working().filter(|_| !sources.is_taken("web")) {
        // What a name leads to is seen by whoever connects: a proxy that happens to be in the environment is not trusted with that.
        if loaded.config.network.proxy.is_some() {
            config.way = Way::Proxy;
            config.clients = apis::clients(&loaded.network, apis::of_proxy);
        } else {
            config.clients = apis::clients(&loaded.network, Network::client);
        }
        config.rates = rates;
        sources.built_in.push(Arc::new(web(config)));
    }
    for (name, api) in tools.http.iter().filter(|(_, api)| api.enabled) {
        if !sources.is_taken(name) {
            sources.built_in.push(Arc::new(apis::source(name, api, loaded)));
        }
    }
    let is_wanted = tools.command.enabled && !sources.is_taken("command");
    let why_none = sandbox::why_none(loaded, environment).filter(|_| is_wanted);
    if let Some(why) = why_none {
        sources.problems.push(why);
    } else if is_wanted {
        let roots = tools.command_roots(environment.working_directory());
        let mark = sources.marked(ledger, &loaded.data_dir)?;
        sources.tell_missing(&roots);
        let mut config = CommandConfig::new(roots, variables(environment, &tools.command.env, Some(&mark)));
        config.shell = tools.command.shell.clone().map_or(config.shell, PathBuf::from);
        (config.default_timeout, config.max_timeout) = (tools.command.usual(), tools.command.longest());
        let most = tools.command.max_output_bytes.and_then(|most| usize::try_from(most).ok());
        config.max_output_bytes = most.unwrap_or(config.max_output_bytes);
        let background = &mut config.background;
        let most = tools.command.max_background.and_then(|most| usize::try_from(most).ok());
        background.per_conversation = most.unwrap_or(background.per_conversation);
        background.overall = background.overall.max(background.per_conversation);
        background.longest = tools.command.background_ms.map_or(background.longest, Duration::from_millis);
        if let Some(sandbox) = sandbox::config(loaded, environment, sandbox::Wanted::of_commands(loaded)) {
            config.launcher = Arc::new(SandboxLauncher::new(sandbox));
        }
        sources.built_in.push(Arc::new(command(config)?));
    }
    if tools.artifact.enabled && !sources.is_taken("artifact") {
        sources.built_in.push(Arc::new(artifact(artifacts, tools.artifact.large_results().shown_bytes)));
    }
    if tools.executable.values().any(|tool| tool.enabled) && !sources.is_taken(executables::SOURCE) {
        let programs = executables::offered(&tools.executable, environment, &mut sources.problems);
        let mark = sources.marked(ledger, &loaded.data_dir)?;
        sources.built_in.push(Arc::new(executables::source(&programs, loaded, environment, &mark)));
    }
    if !loaded.config.notify.command.is_empty() {
        // Who tells people is none of the tools, and must be found like one where it is left.
        sources.marked(ledger, &loaded.data_dir)?;
    }
    Ok(())
}

/// The variables of a program: those that are inherited, those of the configuration, and the mark, where there is one.
pub(crate) fn variables(
    environment: &Environment,
    own: &indexmap::IndexMap<String, config::Secret>,
    mark: Option<&str>,
) -> Vec<(OsString, OsString)> {
    let inherited = environment.variables().filter(|(name, _)| name.to_str().is_some_and(is_inherited));
    let mut variables: Vec<_> = inherited.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    variables.extend(own.iter().map(|(name, value)| (name.into(), value.expose().into())));
    variables.extend(mark.map(|mark| (MARK.into(), mark.into())));
    variables
}

/// How the commands of this process are remembered.
pub(crate) fn command_record(mark: &str) -> ProcessRecord {
    ProcessRecord::new(mark, "command")
}

/// A new mark, remembered for the next start.
fn mark(ledger: &dyn ProcessLedger, data_dir: &Path) -> Result<String, HostError> {
    let unusable = |reason: String| HostError::DataDir { path: data_dir.display().to_string(), reason };
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| unusable(error.to_string()))?;
    let mark = format!("{:032x}", u128::from_ne_bytes(bytes));
    ledger.started(&command_record(&mark)).map_err(|error| unusable(error.to_string()))?;
    Ok(mark)
}

fn configured(name: &str, transport: TransportConfig, server: &config::McpServer) -> ServerConfig {
    let mut config = ServerConfig::new(name, transport);
    config.enabled = server.enabled;
    config.serial = server.serial;
    config.trust_annotations = server.trust_annotations;
    config.keeps_state = server.keeps_state;
    config.start = match server.start {
        config::Start::Lazy => StartPolicy::Lazy,
        config::Start::Eager => StartPolicy::Eager,
    };
    config.idle_stop = server.idle_stop_ms.map(Duration::from_millis);
    config.granted = Arc::new(granted(server));
    config.log_level = server.log_level;
    config.protocol = server.protocol;
    config.start_limit = server.start_ms.map_or(config.start_limit, Duration::from_millis);
    config.limits = limits(config.limits, server.idle_ms, server.total_ms);
    config.max_concurrent_calls =
        server.max_concurrent_calls.and_then(|most| usize::try_from(most).ok()).unwrap_or(config.max_concurrent_calls);
    let declare = |tool: &config::McpTool| ToolDeclaration {
        read_only: tool.read_only,
        replayable: tool.replayable,
        serial: tool.serial,
        polled: tool.polled,
        limits: (tool.idle_ms.is_some() || tool.total_ms.is_some()).then(|| limits(config.limits, tool.idle_ms, tool.total_ms)),
        cache_ttl: tool.cache_ttl_ms.map(Duration::from_millis),
    };
    config.tools = server.tools.iter().map(|(name, tool)| (name.clone(), declare(tool))).collect();
    config
}

fn granted(server: &config::McpServer) -> Granted {
    let allowed = server.sampling.filter(|sampling| sampling.allow);
    let sampling = allowed.map(|sampling| SamplingBudget {
        max_requests: sampling.max_requests.unwrap_or(config::McpSampling::MAX_REQUESTS),
        max_output_tokens: sampling.max_output_tokens.unwrap_or(config::McpSampling::MAX_OUTPUT_TOKENS),
    });
    Granted { roots: server.roots.iter().filter_map(|path| Root::at(path)).collect(), sampling }
}

fn limits(base: CallLimits, idle_ms: Option<u64>, total_ms: Option<u64>) -> CallLimits {
    CallLimits {
        idle: idle_ms.map_or(base.idle, Duration::from_millis),
        total: total_ms.map_or(base.total, Duration::from_millis),
    }
}

/// What another program's file says, with its servers, or why they are left out.
struct ServersOfFile {
    import: Import,
    servers: Vec<(String, Result<ServerConfig, String>)>,
}

impl ServersOfFile {
    fn read(path: &Path, environment: &Environment, said: &Said) -> Result<Self, String> {
        let mut import = read_file(path)?;
        let servers = std::mem::take(&mut import.servers).into_iter();
        let servers = servers.map(|server| (server.name.clone(), imported(server, path, environment, said))).collect();
        Ok(Self { import, servers })
    }
}

/// The servers of the configuration; those that it does not say how to reach are of files.
type Said = indexmap::IndexMap<String, config::McpServer>;

/// The names of the servers that a file has; none where it cannot be read.
pub(crate) fn names_in(path: &Path) -> Vec<String> {
    let servers = read_file(path).map(|import| import.servers).unwrap_or_default();
    servers.into_iter().map(|server| server.name).collect()
}

/// The servers of another program's file.
fn add_file(sources: &mut Sources, path: &Path, read: Result<ServersOfFile, String>) {
    let origin = path.display().to_string();
    let ServersOfFile { import, servers } = match read {
        Ok(read) => read,
        Err(reason) => return sources.problems.push(reason),
    };
    if !import.inputs.is_empty() {
        let text = "`inputs` are not asked for here: `turnwright mcp import` takes them, or give `${input:…}` a value by hand";
        sources.problems.push(format!("{origin}: {text}"));
    }
    let told = import.left_out.iter().chain(&import.problems);
    sources.problems.extend(told.map(|problem| format!("{origin}: {problem}")));
    for (name, server) in servers {
        sources.add_server(&name, server, origin.clone());
    }
}

fn read_file(path: &Path) -> Result<Import, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let read = text.and_then(|text| import::read(&text).map_err(|error| error.to_string()));
    read.map_err(|reason| format!("{} cannot be used: {reason}", path.display()))
}

/// Why another program's file cannot be used, or servers of it, where others have these names. Starts nothing.
pub(crate) fn unusable(path: &Path, environment: &Environment, (taken, said): (&[&str], &Said)) -> Vec<String> {
    let import = match read_file(path) {
        Ok(import) => import,
        Err(reason) => return vec![reason],
    };
    let origin = path.display();
    let left_out = import.left_out.iter().map(|why| format!("{origin}: {why}"));
    let servers = import.servers.into_iter().filter_map(|server| {
        let name = server.name.clone();
        if taken.contains(&name.as_str()) {
            return Some(format!("{origin}: the name `{name}` is taken; this server is left out"));
        }
        let why = imported(server, path, environment, said).err()?;
        Some(format!("{origin}: MCP server `{name}` is left out: {why}"))
    });
    left_out.chain(servers).collect()
}

/// A server of the file at this path, or why it is left out. What the configuration says of it holds before what the file does.
fn imported(server: ImportedServer, file: &Path, environment: &Environment, said: &Said) -> Result<ServerConfig, String> {
    let ImportedServer { name, enabled, total_ms, transport, title: _, description: _ } = server;
    config::server_name(&name).map_err(|right| format!("it cannot be called {name:?}: choose {right}"))?;
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    // A server that is switched off misses nothing.
    let expanded = |text: &str| match expand(text, environment) {
        Ok(whole) => Ok(whole.text),
        Err(_) if !enabled => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let path = |written: &str| expanded(written).map(|path| folder.join(path));
    let add_missing = |known: &mut indexmap::IndexMap<String, config::Secret>, pairs: &[(String, String)]| {
        for (key, value) in pairs.iter().filter(|(key, _)| !known.contains_key(key)).cloned().collect::<Vec<_>>() {
            known.insert(key, config::Secret::new(expanded(&value)?));
        }
        Ok::<_, String>(())
    };
    let mut keys = said.get(&name).filter(|said| said.transport().is_none()).cloned().unwrap_or_default();
    match &transport {
        ImportedTransport::Stdio { command, args, env, env_file, cwd } => {
            keys.command = Some(expanded(command)?);
            if keys.args.is_empty() {
                keys.args = args.iter().map(|arg| expanded(arg)).collect::<Result<_, _>>()?;
            }
            add_missing(&mut keys.env, env)?;
            if let (None, Some(written)) = (&keys.env_file, env_file) {
                keys.env_file = Some(path(written)?);
            }
            if let (None, Some(written)) = (&keys.cwd, cwd) {
                keys.cwd = Some(path(written)?);
            }
            if let Some(path) = &keys.env_file {
                environment.secret_files().add(path.clone());
            }
        }
        ImportedTransport::Http { url, headers } => {
            keys.url = Some(expanded(url)?);
            add_missing(&mut keys.headers, headers)?;
        }
    }
    keys.enabled &= enabled;
    keys.env_file = keys.env_file.filter(|_| keys.enabled);
    keys.total_ms = keys.total_ms.or(total_ms);
    server_config(&name, &keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_a_file_is_what_the_configuration_says_and_then_what_its_file_does() {
        let list = import::read(
            r#"{"mcpServers": {"weather": {"command": "w", "args": ["-q"], "env": {"A": "file", "B": "file"}, "total_ms": 1500}}}"#,
        );
        let server = list.unwrap().servers.remove(0);
        let environment = Environment::new("/work");
        let plain = imported(server.clone(), Path::new("/work/m.json"), &environment, &Said::new()).unwrap();
        assert_eq!((plain.limits.total, plain.tools.len()), (Duration::from_millis(1500), 0));
        let mut keys = config::McpServer { serial: true, total_ms: Some(7), ..Default::default() };
        keys.env.insert("A".to_owned(), config::Secret::new("told"));
        keys.tools.insert("t".to_owned(), config::McpTool { read_only: Some(true), ..Default::default() });
        let said = Said::from([("weather".to_owned(), keys)]);
        let told = imported(server, Path::new("/work/m.json"), &environment, &said).unwrap();
        let mut stdio = StdioConfig::new("w");
        stdio.args = vec!["-q".to_owned()];
        stdio.env = [("A", "told"), ("B", "file")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(told.transport, stdio.into());
        assert_eq!((told.serial, told.limits.total, told.tools["t"].read_only), (true, Duration::from_millis(7), Some(true)));
    }

    #[test]
    fn a_container_gets_what_the_configuration_says_and_the_usual_limits_where_it_says_nothing() {
        let mut given = config::McpServer { image: Some("mcp/time".into()), args: vec!["--utc".into()], ..Default::default() };
        let mut expected = DockerConfig::new("mcp/time");
        expected.args = vec!["--utc".into()];
        assert_eq!(docker("mcp/time", &given), expected);
        given.docker = Some(config::McpDocker {
            mounts: vec!["/a:/b".into(), "/c:/d:ro".into(), "/e:/f:rw".into()],
            network: Some("bridge".into()),
            memory_mb: Some(64),
            cpus: Some(0.5),
            max_processes: Some(9),
            writable: true,
            user: Some("1000".into()),
            pull: config::Pull::Missing,
        });
        let mount = |source: &str, target: &str, writable| Mount { source: source.into(), target: target.into(), writable };
        expected.mounts = vec![mount("/a", "/b", false), mount("/c", "/d", false), mount("/e", "/f", true)];
        (expected.network, expected.user) = (Some("bridge".into()), Some("1000".into()));
        (expected.memory, expected.cpus, expected.max_processes) = (64 << 20, 0.5, 9);
        (expected.writable, expected.fetches_image) = (true, true);
        assert_eq!(docker("mcp/time", &given), expected);
    }
}
