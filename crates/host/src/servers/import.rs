//! Servers of other programs' files, as they would be added. Nothing is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use turnwright_core::secrets::{OfPath, in_addresses};
use turnwright_mcp::import::{self, Expansions, ImportedServer, ImportedTransport, Known, translate};

use super::McpServers;
use super::stored::looks_secret;

/// The largest file that is read.
const MAX_BYTES: u64 = 8 << 20;

/// What importing a file would add.
#[derive(Debug, Clone, PartialEq)]
pub struct McpImport {
    /// The servers that can be added.
    pub servers: Vec<McpImported>,
    /// What could not be taken over, and why.
    pub problems: Vec<String>,
}

/// A server as it would be added.
#[derive(Debug, Clone, PartialEq)]
pub struct McpImported {
    /// Its name.
    pub name: String,
    /// The keys of `[mcp.servers.NAME]`, secrets as references.
    pub config: Map<String, Value>,
    /// What the person should know.
    pub words: Vec<String>,
}

impl McpImported {
    /// The server as a configuration file names it.
    ///
    /// # Errors
    /// Where TOML has no form for a value.
    pub fn as_toml(&self) -> Result<String, String> {
        let (tables, values): (Map<_, _>, Map<_, _>) =
            self.config.clone().into_iter().partition(|(_, value)| value.is_object());
        let keys: Map<String, Value> = values.into_iter().chain(tables).collect();
        toml::to_string(&json!({ "mcp": { "servers": { &self.name: keys } } })).map_err(|error| error.to_string())
    }
}

impl McpServers {
    /// Reads the server list of another program. `answers` are what a person said to what the file asks for.
    ///
    /// # Errors
    /// Why nothing of the file can be used, in words for people.
    pub fn import(&self, file: &Path, answers: &BTreeMap<String, String>) -> Result<McpImport, String> {
        let environment = &self.set.environment;
        let file = environment.working_directory().join(file);
        let shown = file.display();
        let length = std::fs::metadata(&file).map_err(|error| format!("{shown} cannot be read: {error}"))?.len();
        if length > MAX_BYTES {
            return Err(format!("{shown} is {length} bytes long, limit {MAX_BYTES}"));
        }
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{shown} cannot be read: {error}"))?;
        let form = import::form_of(&file);
        let list = import::read_as(form, &text).map_err(|error| format!("{shown} cannot be used: {error}"))?;
        let workspace = workspace(&file);
        let is_desktop = file.file_name().is_some_and(|name| name == "claude_desktop_config.json");
        let known = Known {
            expansions: if is_desktop { Expansions::None } else { Expansions::All },
            workspace: workspace.clone(),
            home: environment.home(),
            variables: environment.names().collect(),
            inputs: &list.inputs,
            answers,
        };
        let mut import = McpImport { servers: Vec::new(), problems: [list.left_out, list.problems].concat() };
        let mut secrets = BTreeMap::new();
        for id in answers.keys().filter(|id| !list.inputs.iter().any(|input| input.id == **id)) {
            import.problems.push(format!("the file asks for no input `{id}`"));
        }
        for server in list.servers {
            let name = server.name.clone();
            let mut taking = Taking { name: &name, known: &known, words: Vec::new(), secrets: &mut secrets, of_addresses: 0 };
            match taking.server(server) {
                Ok(config) => {
                    let words = taking.words;
                    import.servers.push(McpImported { name, config, words });
                }
                Err(why) => import.problems.push(format!("`{name}` was left out: {why}")),
            }
        }
        Ok(import)
    }
}

/// The folder of the project that a file belongs to.
fn workspace(file: &Path) -> PathBuf {
    let folder = file.parent().unwrap_or_else(|| Path::new("/"));
    let is_within = folder.file_name().is_some_and(|name| name == ".vscode" || name == ".cursor" || name == "config");
    folder.parent().filter(|_| is_within).unwrap_or(folder).to_owned()
}

/// One server on its way.
struct Taking<'a> {
    name: &'a str,
    known: &'a Known<'a>,
    words: Vec<String>,
    /// The literal secrets of the file, by the variables that stand for them.
    secrets: &'a mut BTreeMap<String, String>,
    /// How many of them were parts of addresses of this server.
    of_addresses: usize,
}

impl Taking<'_> {
    fn server(&mut self, server: ImportedServer) -> Result<Map<String, Value>, String> {
        let mut config = Map::new();
        match server.transport {
            ImportedTransport::Stdio { command, args, env, env_file, cwd } => {
                let command = self.text(&command)?;
                let is_relative = command.contains('/') && !command.starts_with('/') && !command.starts_with("${");
                let command =
                    if is_relative { self.known.workspace.join(command).to_string_lossy().into_owned() } else { command };
                config.insert("command".to_owned(), command.into());
                let args = args.iter().map(|arg| self.address("args", arg)).collect::<Result<Vec<_>, _>>()?;
                if !args.is_empty() {
                    config.insert("args".to_owned(), args.into());
                }
                self.pairs(&mut config, "env", &env)?;
                for (key, path) in [("env_file", env_file), ("cwd", cwd)] {
                    if let Some(path) = path {
                        let path = self.text(&path)?;
                        config.insert(key.to_owned(), json!(self.known.workspace.join(path)));
                    }
                }
            }
            ImportedTransport::Http { url, headers } => {
                config.insert("url".to_owned(), self.address("url", &url)?.into());
                self.pairs(&mut config, "headers", &headers)?;
            }
        }
        if !server.enabled {
            config.insert("enabled".to_owned(), false.into());
        }
        if let Some(total_ms) = server.total_ms {
            config.insert("total_ms".to_owned(), total_ms.into());
        }
        Ok(config)
    }

    fn text(&mut self, text: &str) -> Result<String, String> {
        let translated = translate(text, self.known).map_err(|error| error.to_string())?;
        self.words.extend(translated.words);
        Ok(translated.text)
    }

    /// A text that may be an address: what is shown of it as `***` is taken from variables.
    fn address(&mut self, key: &str, text: &str) -> Result<String, String> {
        let text = self.text(text)?;
        Ok(in_addresses(&text, OfPath::Keys, |part| {
            if part.is_empty() || part.contains("${") {
                return part.to_owned();
            }
            self.of_addresses += 1;
            let variable = import::variable_of(&format!("{}_{key}_{}", self.name, self.of_addresses));
            self.secrets.insert(variable.clone(), part.to_owned());
            self.words.push(format!(
                "what may be a secret in `{key}` was written out in the file; it is taken from the variable {variable}, which must be set before the server is added"
            ));
            format!("${{{variable}}}")
        }))
    }

    fn pairs(&mut self, config: &mut Map<String, Value>, key: &str, pairs: &[(String, String)]) -> Result<(), String> {
        let mut taken = Map::new();
        for (name, value) in pairs {
            let value = self.text(value)?;
            let value = if looks_secret(name) && !value.is_empty() && !value.contains("${") {
                self.reference(key, name, &value)
            } else {
                value
            };
            taken.insert(name.clone(), value.into());
        }
        if !taken.is_empty() {
            config.insert(key.to_owned(), taken.into());
        }
        Ok(())
    }

    /// A reference in place of a secret that the file has written out.
    fn reference(&mut self, key: &str, name: &str, value: &str) -> String {
        // What kind of credential it is belongs to no secret.
        let (kind, secret) = match value.split_once(' ') {
            Some((kind, secret)) if key == "headers" => (format!("{kind} "), secret),
            _ => (String::new(), value),
        };
        let own = import::variable_of(name);
        let with_name = import::variable_of(&format!("{}_{name}", self.name));
        let is_free = |variable: &String| self.secrets.get(variable).is_none_or(|known| known == secret);
        let variable = if key == "env" && is_free(&own) { own } else { with_name };
        self.secrets.insert(variable.clone(), secret.to_owned());
        self.words.push(format!(
            "`{key}.{name}` was written out in the file; it is taken from the variable {variable}, which must be set before the server is added"
        ));
        format!("{kind}${{{variable}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_in_an_address_is_taken_from_variables() {
        let text = r#"{"mcpServers": {
            "far": {"url": "https://e.example/mcp?key=sesame-1&team=${TEAM}"},
            "near": {"command": "npx", "args": ["mcp-remote", "https://me@e.example/", "postgres://me:sesame-2@host/name", "--quiet"]}
        }}"#;
        let list = import::read(text).unwrap();
        let answers = BTreeMap::new();
        let known = Known {
            expansions: Expansions::All,
            workspace: PathBuf::from("/work"),
            home: None,
            variables: ["TEAM"].into(),
            inputs: &list.inputs,
            answers: &answers,
        };
        let (mut secrets, mut taken) = (BTreeMap::new(), Vec::new());
        for server in list.servers {
            let name = server.name.clone();
            let mut taking = Taking { name: &name, known: &known, words: Vec::new(), secrets: &mut secrets, of_addresses: 0 };
            taken.push((Value::Object(taking.server(server).unwrap()), taking.words.len()));
        }
        let near = json!({"command": "npx", "args": [
            "mcp-remote", "https://${NEAR_ARGS_1}@e.example/", "postgres://me:${NEAR_ARGS_2}@host/name", "--quiet",
        ]});
        assert_eq!(taken, [(json!({"url": "https://e.example/mcp?key=${FAR_URL_1}&team=${TEAM}"}), 1), (near, 2)]);
    }
}
