//! Servers of other programs' files, as they would be added. Nothing is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use turnwright_core::secrets::{Secrets, given, given_in_argument};
use turnwright_mcp::import::{self, Expansions, ImportedInput, ImportedServer, ImportedTransport, Known, translate};

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
    /// What the file asks for by its `id`, has no default for, and was not told.
    pub unanswered: Vec<String>,
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
        let is_unanswered =
            |input: &&ImportedInput| !input.is_password && input.default.is_none() && !answers.contains_key(&input.id);
        let unanswered = list.inputs.iter().filter(is_unanswered).map(|input| input.id.clone()).collect();
        let mut import = McpImport { servers: Vec::new(), problems: [list.left_out, list.problems].concat(), unanswered };
        let mut secrets = BTreeMap::new();
        for id in answers.keys().filter(|id| !list.inputs.iter().any(|input| input.id == **id)) {
            import.problems.push(format!("the file asks for no input `{id}`"));
        }
        for server in list.servers {
            let name = server.name.clone();
            let mut taking = Taking { name: &name, known: &known, words: Vec::new(), secrets: &mut secrets, taken_out: 0 };
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
    /// How many of them were parts of texts of this server.
    taken_out: usize,
}

impl Taking<'_> {
    fn server(&mut self, server: ImportedServer) -> Result<Map<String, Value>, String> {
        let mut config = Map::new();
        let about = [("title", server.title), ("description", server.description)];
        for (key, text) in about.into_iter().filter_map(|(key, text)| Some((key, text?))) {
            self.words.push(format!("its {key} {text:?} is not taken over: what a server is, it says itself"));
        }
        match server.transport {
            ImportedTransport::Stdio { command, args, env, env_file, cwd } => {
                let command = self.text(&command)?;
                let is_relative = command.contains('/') && !command.starts_with('/') && !command.starts_with("${");
                let command =
                    if is_relative { self.known.workspace.join(command).to_string_lossy().into_owned() } else { command };
                config.insert("command".to_owned(), command.into());
                let args = args.iter().map(|arg| self.text(arg)).collect::<Result<Vec<_>, _>>()?;
                // Only an option names what comes after it.
                let option = |arg: &String| if arg.starts_with('-') { arg.clone() } else { String::new() };
                let before = std::iter::once(String::new()).chain(args.iter().map(option));
                let secrets: Vec<_> = args.iter().zip(before).map(|(arg, before)| given_in_argument(&before, arg)).collect();
                let args: Vec<_> =
                    args.into_iter().zip(secrets).map(|(arg, secrets)| self.taken_out("args", arg, &secrets)).collect();
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
                let url = self.text(&url)?;
                let secrets = given("", &url);
                config.insert("url".to_owned(), self.taken_out("url", url, &secrets).into());
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

    /// A text without the secrets that were found in it, which are taken from variables.
    fn taken_out(&mut self, key: &str, text: String, secrets: &[String]) -> String {
        let mut text = text;
        for secret in secrets.iter().filter(|secret| !secret.is_empty() && !secret.contains("${")) {
            self.taken_out += 1;
            let variable = self.variable(&import::variable_of(&format!("{}_{key}_{}", self.name, self.taken_out)), secret);
            // One that is short may stand in the name before it, too.
            let begin = if secret.len() < Secrets::MIN_BYTES { text.rfind(secret.as_str()).unwrap_or_default() } else { 0 };
            let (before, after) = text.split_at_checked(begin).unwrap_or(("", &text));
            text = format!("{before}{}", after.replace(secret.as_str(), &format!("${{{variable}}}")));
            self.words.push(format!(
                "what may be a secret in `{key}` was written out in the file; it is taken from the variable {variable}, which must be set before the server is added"
            ));
        }
        text
    }

    /// This variable, or another where it stands for another secret of the file.
    fn variable(&mut self, wanted: &str, secret: &str) -> String {
        let others = (2_u32..).map(|number| format!("{wanted}_{number}"));
        let mut free = std::iter::once(wanted.to_owned()).chain(others).filter(|variable| self.is_free(variable, secret));
        let variable = free.next().unwrap_or_else(|| wanted.to_owned());
        drop(free);
        self.secrets.insert(variable.clone(), secret.to_owned());
        variable
    }

    fn is_free(&self, variable: &str, secret: &str) -> bool {
        self.secrets.get(variable).is_none_or(|known| known == secret)
    }

    fn pairs(&mut self, config: &mut Map<String, Value>, key: &str, pairs: &[(String, String)]) -> Result<(), String> {
        let mut taken = Map::new();
        for (name, value) in pairs {
            let value = self.text(value)?;
            let value = if looks_secret(name) && !value.is_empty() && !value.contains("${") {
                self.reference(key, name, &value)
            } else {
                let secrets = given("", &value);
                self.taken_out(key, value, &secrets)
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
        let wanted = if key == "env" && self.is_free(&own, secret) { own } else { with_name };
        let variable = self.variable(&wanted, secret);
        self.words.push(format!(
            "`{key}.{name}` was written out in the file; it is taken from the variable {variable}, which must be set before the server is added"
        ));
        format!("{kind}${{{variable}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a list of servers becomes, with how much is said of each.
    fn taken(text: &str) -> Vec<(Value, usize)> {
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
            let mut taking = Taking { name: &name, known: &known, words: Vec::new(), secrets: &mut secrets, taken_out: 0 };
            taken.push((Value::Object(taking.server(server).unwrap()), taking.words.len()));
        }
        taken
    }

    #[test]
    fn what_is_a_secret_is_taken_from_variables() {
        let text = r#"{"mcpServers": {
            "far": {"url": "https://e.example/mcp?key=sesame-1&team=${TEAM}"},
            "near": {"command": "npx", "args": ["mcp-remote", "https://me-sesame@e.example/", "postgres://me:sesame-2@host/name", "--quiet"]},
            "told": {"command": "t", "args": ["--header", "Authorization: Bearer sesame-zzzz-1111", "--api-key", "key", "--pass=pass"],
                "env": {"DATABASE": "postgres://me:sesame-3@host/name"}}
        }}"#;
        let near = json!({"command": "npx", "args": [
            "mcp-remote", "https://${NEAR_ARGS_1}@e.example/", "postgres://me:${NEAR_ARGS_2}@host/name", "--quiet",
        ]});
        let told = json!({"command": "t", "args": [
            "--header", "Authorization: Bearer ${TOLD_ARGS_1}", "--api-key", "${TOLD_ARGS_2}", "--pass=${TOLD_ARGS_3}",
        ], "env": {"DATABASE": "postgres://me:${TOLD_ENV_4}@host/name"}});
        let far = json!({"url": "https://e.example/mcp?key=${FAR_URL_1}&team=${TEAM}"});
        assert_eq!(taken(text), [(far, 1), (near, 2), (told, 4)]);
    }

    #[test]
    fn what_says_how_something_is_done_is_no_secret() {
        let servers = json!({
            "supabase": {"url": "https://mcp.supabase.com/mcp?read_only=true"},
            "serena": {"command": "uvx", "args": ["--from", "git+https://github.com/oraios/serena@0123456789abcdef0123456789abcdef01234567"]},
            "pg": {"command": "npx", "args": ["postgresql://localhost/mydb?sslmode=disable"]},
            "tokens": {"command": "node", "args": ["/srv/tokens/server.js", "stdio"]},
        });
        let expected: Vec<_> = servers.as_object().unwrap().values().map(|server| (server.clone(), 0)).collect();
        assert_eq!(taken(&json!({ "mcpServers": servers }).to_string()), expected);
    }

    #[test]
    fn a_variable_stands_for_one_secret() {
        let text = r#"{"mcpServers": {
            "a.b": {"url": "https://e.example/?key=sesame-1", "headers": {"X-Token": "sesame-3"}},
            "a-b": {"url": "https://e.example/?key=sesame-2", "headers": {"X-Token": "sesame-4"}}
        }}"#;
        let server = |url: &str, token: &str| json!({"url": format!("https://e.example/?key=${{{url}}}"), "headers": {"X-Token": format!("${{{token}}}")}});
        let expected = [server("A_B_URL_1", "A_B_X_TOKEN"), server("A_B_URL_1_2", "A_B_X_TOKEN_2")];
        assert_eq!(taken(text), expected.map(|server| (server, 2)));
    }
}
