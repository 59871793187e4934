//! From a file, variables and flags to a configuration.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indexmap::IndexMap;
use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use turnwright_core::secrets::Secrets;
use turnwright_network::Network;

use super::check::Check;
use super::document::{self, LeftOut, Node, NodeValue};
use super::endpoint::{self, DefaultModel, Endpoint};
use super::folders;
use super::key_path::KeyPath;
use super::known::{self, Known};
use super::meaning::Meaning;
use super::network;
use super::overrides::{FILE_VARIABLE, Overrides, apply_variables};
use super::secret_table::SecretTables;
use super::{Config, Dialect, Place, Problem, Problems, schema, show};
use crate::{Environment, sources};

/// The name of the configuration file.
pub const FILE_NAME: &str = "turnwright.toml";

/// How long a pipe in the place of the configuration file is left alone where nothing is in it, and how often: 5 seconds in all.
const PIPE_PAUSE: Duration = Duration::from_millis(10);
const MAX_PIPE_PAUSES: u32 = 500;
/// The most that is read out of one.
const MAX_PIPE_BYTES: usize = 16 << 20;

/// Where servers are looked for unless `[mcp] files` says otherwise.
const DEFAULT_MCP_FILE: &str = "config/mcp-servers.json";

/// A configuration file that was read.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

impl std::fmt::Debug for ConfigFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A configuration that is ready for use.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What it says.
    pub config: Config,
    /// The file that it comes from.
    pub file: Option<PathBuf>,
    /// All providers: the configured ones in file order, then those that variables stand for.
    pub endpoints: Vec<Endpoint>,
    /// The JSON files with MCP servers.
    pub mcp_files: Vec<McpFile>,
    /// Where conversations and other data are kept.
    pub data_dir: PathBuf,
    /// What looks wrong but does not hinder.
    pub warnings: Vec<Problem>,
    /// The MCP servers that the file names and that cannot run as it stands, with the reasons, which are among the warnings.
    pub left_out: IndexMap<String, String>,
    /// Secrets that are too short to be hidden where somebody repeats them.
    pub not_hidden: Vec<Problem>,
    /// How requests leave this machine.
    pub network: Network,
    pub(crate) written: HashMap<String, Written>,
}

/// Where a value was written, and whether variables were put into it.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(crate) place: Place,
    pub(crate) has_variables: bool,
}

/// A JSON file with MCP servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Whether the configuration names it: then it must exist.
    pub is_required: bool,
}

impl Loaded {
    /// The model that answers where nobody names one: the top-level `model`, else the first provider's first, where a found
    /// provider counts only if `is_built` says so of its dialect. `None` where only local servers and practice are left.
    pub fn default_model(&self, is_built: impl Fn(Dialect) -> bool) -> Option<DefaultModel> {
        endpoint::default_model(&self.config, &self.endpoints, is_built)
    }

    /// Whether the configuration says which model answers by default: by `model`, or by a provider that is written in it.
    pub fn names_a_model(&self) -> bool {
        self.config.model.is_some() || !self.config.providers.is_empty()
    }

    /// A problem that only whoever uses a value can see, with the place of that value or of the nearest table above it.
    pub fn problem(&self, keys: &[&str], text: impl Into<String>) -> Problem {
        let written = (0..=keys.len())
            .rev()
            .find_map(|length| self.written.get(&KeyPath::of(keys.iter().copied().take(length)).to_string()));
        let place = written.map_or(Place::File { name: FILE_NAME.into(), line: None }, |written| written.place.clone());
        Problem::new(place, text)
    }

    /// Why there is no provider with this name, and what would be right. `None` where there is one, and for the names of
    /// local servers, which only asking them can tell.
    pub fn missing_provider(&self, name: &str) -> Option<String> {
        endpoint::missing(name, &self.endpoints)
    }

    /// The effective configuration as TOML, each value with the place that it comes from, without secrets.
    pub fn show(&self) -> String {
        show::show(self)
    }
}

/// Where a configuration file is looked for: the one that is named, or the working directory, then the user's directory.
fn candidates(environment: &Environment, overrides: &Overrides) -> (Option<Place>, Vec<PathBuf>) {
    let working_directory = environment.working_directory();
    let variable = || Some((Place::Variable(FILE_VARIABLE.to_owned()), PathBuf::from(environment.filled(FILE_VARIABLE)?)));
    if let Some((place, path)) = overrides.config.clone().map(|path| (Place::Flag("--config"), path)).or_else(variable) {
        return (Some(place), vec![working_directory.join(path)]);
    }
    let folders = [Some(working_directory.to_owned()), environment.config_dir()];
    (None, folders.into_iter().flatten().map(|folder| folder.join(FILE_NAME)).collect())
}

/// The configuration file that counts; one that is named counts whether it exists or not.
pub fn find(environment: &Environment, overrides: &Overrides) -> Option<PathBuf> {
    let (named, candidates) = candidates(environment, overrides);
    // What cannot even be looked at is there, and so is a link that leads nowhere: reading it says why it cannot be used.
    let is_there = |path: &Path| !std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    candidates.into_iter().find(|path| named.is_some() || is_there(path))
}

/// Finds, reads and loads the configuration.
///
/// # Errors
/// All that is wrong with it.
pub fn open(environment: &Environment, overrides: &Overrides) -> Result<Loaded, Problems> {
    let file = match find(environment, overrides) {
        None => None,
        Some(path) => match read_text(&path) {
            Ok(text) => Some(ConfigFile { path, text }),
            Err(error) => {
                let place = candidates(environment, overrides).0;
                let place = place.unwrap_or_else(|| Place::File { name: name_of(&path, environment).into(), line: None });
                let shown = path.display();
                let text = match std::fs::read_link(&path) {
                    Ok(to) if error.kind() == ErrorKind::NotFound => {
                        format!("{shown} is a link to `{}`, and nothing is there; mend the link or remove it", to.display())
                    }
                    Ok(_) | Err(_) => format!("{shown} cannot be read ({error}); it must be a TOML file"),
                };
                return Err(Problem::new(place, text).into());
            }
        },
    };
    load(file.as_ref(), environment, overrides)
}

/// The text of a file. What is written into a pipe meanwhile, as a shell's `<(…)` is, is waited for.
fn read_text(path: &Path) -> io::Result<String> {
    let is_pipe = std::fs::metadata(path)?.file_type().is_fifo();
    if !is_pipe {
        return std::fs::read_to_string(path);
    }
    let mut pipe = File::from(rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?);
    let (mut text, mut buffer, mut pauses) = (Vec::new(), [0; 8 << 10], 0);
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) if !text.is_empty() => break,
            Ok(0) => {}
            Ok(length) => {
                text.extend_from_slice(buffer.get(..length).unwrap_or_default());
                if text.len() > MAX_PIPE_BYTES {
                    let why = format!("more than {MAX_PIPE_BYTES} bytes come out of the pipe");
                    return Err(io::Error::new(ErrorKind::FileTooLarge, why));
                }
                continue;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        pauses += 1;
        if pauses > MAX_PIPE_PAUSES {
            return Err(io::Error::new(ErrorKind::TimedOut, "it is a pipe, and nobody wrote all of it within 5 seconds"));
        }
        std::thread::sleep(PIPE_PAUSE);
    }
    String::from_utf8(text).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Makes a configuration of a file's text, variables and flags.
///
/// # Errors
/// All that is wrong with them.
pub fn load(file: Option<&ConfigFile>, environment: &Environment, overrides: &Overrides) -> Result<Loaded, Problems> {
    let (mut problems, mut warnings, mut aside) = (Vec::new(), Vec::new(), Vec::new());
    let folder = file.and_then(|file| file.path.parent()).unwrap_or(environment.working_directory());
    let environment = &environment.reading_in(folder);
    let schema = schema::json_schema();
    let mut root = match file {
        Some(file) => document::parse(&name_of(&file.path, environment), &file.text, environment, &mut problems, &mut aside),
        None => None,
    }
    .unwrap_or_else(|| Node::new(NodeValue::Table(IndexMap::new()), Place::File { name: FILE_NAME.into(), line: None }));
    SecretTables { environment, problems: &mut problems, aside: &mut aside }.resolve(&mut root, &schema, &KeyPath::default());
    let mut left_out: IndexMap<String, String> = IndexMap::new();
    for LeftOut { server, problem } in aside {
        let why = problem.to_string();
        left_out.entry(server).and_modify(|known| known.extend(["; ", why.as_str()])).or_insert(why);
        warnings.push(problem);
    }
    apply_variables(&mut root, &schema::leaves(&schema), environment, (&mut problems, &mut warnings));
    overrides.apply(&mut root);

    let working_directory = environment.working_directory();
    let home = environment.home();
    let mut check =
        Check { root: &schema, file_folder: folder, working_directory, home: home.as_deref(), problems: &mut problems };
    let value = check.value(&root, &schema, &KeyPath::default()).unwrap_or(Value::Null);
    let config: Result<Config, _> = serde_json::from_value(value);
    let mut config = match (config, problems.is_empty()) {
        (Ok(config), _) => config,
        (Err(error), true) => return Err(Problem::new(root.place, error.to_string()).into()),
        (Err(_), false) => Config::default(),
    };
    let meaning = Meaning { config: &config, root: &root };
    let endpoints = meaning.endpoints(environment, &mut problems);
    meaning.providers(&mut problems);
    meaning.server(&mut problems, &mut warnings);
    meaning.apps(&mut problems);
    meaning.notify(&mut problems);
    meaning.telemetry(&mut problems);
    meaning.nats(&mut problems);
    let data_dir = config.data_dir.clone().unwrap_or_else(|| environment.data_dir());
    meaning.command(&mut problems);
    meaning.folders(&data_dir, &mut problems);
    meaning.web(&mut problems);
    meaning.apis(&mut problems);
    meaning.loops(&mut problems);
    meaning.pieces(&mut problems, &mut warnings);
    meaning.embeddings(&endpoints, &mut problems);
    meaning.profiles(&mut problems);
    let mcp_files = mcp_files(&config, folder, working_directory);
    let is_of_file =
        |name: &str| mcp_files.iter().flat_map(|file| sources::names_in(&file.path)).any(|of_file| of_file == name);
    meaning.servers(Some(&is_of_file), &mut problems, &mut warnings);
    meaning.names(&mut warnings, &mut left_out);
    // What is not right by itself would be told twice.
    if problems.is_empty() {
        meaning.budgets(&mut problems);
        meaning.rules(&mut problems);
    }
    let (problems_of, warnings_of) = (&mut problems, &mut warnings);
    let network =
        network::Reading { root: &root, environment, problems: problems_of, warnings: warnings_of }.network(&config.network);
    meaning.fallbacks(&endpoints, &mut problems, &mut warnings);
    if let Some(problems) = Problems::new(problems) {
        return Err(problems);
    }
    meaning.models(&endpoints, &mut warnings);
    meaning.prices(&endpoints, &mut warnings);

    let tools = &mut config.tools;
    if tools.filesystem.roots.is_empty() {
        tools.filesystem.roots.push(folders::usual_root(working_directory, &data_dir));
    }
    if tools.command.roots.is_empty() {
        tools.command.roots.clone_from(&tools.filesystem.roots);
    }
    let secrets = known::of(&config, &endpoints);
    environment.secrets().learn(secrets.iter().map(|known| known.value.as_str()));
    let others = known::of_environment(environment);
    environment.secrets().learn(others.iter().map(String::as_str));
    let written = written(&root);
    let not_hidden = secrets.iter().filter(|known| known.value.len() < Secrets::MIN_BYTES);
    let not_hidden = not_hidden.map(|known| too_short(known, written.get(&known.key.to_string()))).collect();
    Ok(Loaded {
        file: file.map(|file| file.path.clone()),
        endpoints,
        mcp_files,
        data_dir,
        warnings,
        left_out,
        network,
        not_hidden,
        written,
        config,
    })
}

fn too_short(known: &Known, written: Option<&Written>) -> Problem {
    let place = written.map_or(Place::File { name: FILE_NAME.into(), line: None }, |written| written.place.clone());
    let least = Secrets::MIN_BYTES;
    let text = format!(
        "`{}` is {} bytes long; a secret under {least} is not hidden where somebody repeats it",
        known.key,
        known.value.len()
    );
    Problem::new(place, text)
}

/// The files that are named, or the default one beside the configuration and in the working directory.
fn mcp_files(config: &Config, folder: &Path, working_directory: &Path) -> Vec<McpFile> {
    if let Some(files) = &config.mcp.files {
        return files.iter().map(|path| McpFile { path: path.clone(), is_required: true }).collect();
    }
    let mut files = vec![McpFile { path: folder.join(DEFAULT_MCP_FILE), is_required: false }];
    if folder != working_directory {
        files.push(McpFile { path: working_directory.join(DEFAULT_MCP_FILE), is_required: false });
    }
    files
}

/// The file as people know it.
fn name_of(path: &Path, environment: &Environment) -> String {
    path.strip_prefix(environment.working_directory()).unwrap_or(path).display().to_string()
}

/// The places of all values, by path.
fn written(root: &Node) -> HashMap<String, Written> {
    fn visit(node: &Node, path: &KeyPath, found: &mut HashMap<String, Written>) {
        found.insert(path.to_string(), Written { place: node.place.clone(), has_variables: node.has_variables });
        if let NodeValue::Table(table) = &node.value {
            table.iter().for_each(|(key, child)| visit(child, &path.key(key), found));
        } else if let NodeValue::Array(items) = &node.value {
            items.iter().enumerate().for_each(|(index, item)| visit(item, &path.index(index), found));
        }
    }
    let mut found = HashMap::new();
    visit(root, &KeyPath::default(), &mut found);
    found
}
