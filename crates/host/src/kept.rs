//! What of this program lies among the files of tools and is none of theirs: where its secrets come from, and what says what it starts.

use std::path::PathBuf;

use turnwright_tools::OwnPaths;

use crate::Environment;
use crate::config::{FILE_NAME, Loaded};

/// The files that no tool touches and no command sees, whether they are there or not: those of the configuration, which the next start
/// reads and does what they say, and those that hold secrets, also those of servers that are added later.
pub(crate) fn files(loaded: &Loaded, environment: &Environment) -> OwnPaths {
    let config = &loaded.config;
    let folders = [Some(environment.working_directory().to_owned()), environment.config_dir()];
    let mut files: Vec<PathBuf> = folders.into_iter().flatten().map(|folder| folder.join(FILE_NAME)).collect();
    files.extend(loaded.file.clone());
    files.extend(loaded.mcp_files.iter().map(|file| file.path.clone()));
    files.extend(config.mcp.servers.values().filter_map(|server| server.env_file.clone()));
    files.extend(config.server.tls.as_ref().map(|tls| tls.key.clone()));
    files.extend(config.nats.credentials.clone());
    environment.secret_files().and(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigFile, Overrides, load};

    #[test]
    fn what_is_read_at_a_start_and_where_secrets_are_is_kept_whether_it_is_there_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["key", "token", "cert.pem", "tls.pem"] {
            std::fs::write(at(name), "sesame-open-1234\n").unwrap();
        }
        let text = "[providers.a]\ndialect = \"openai-chat\"\nbase_url = \"https://a.test/v1\"\napi_key = { file = \"key\" }\n\
            [mcp.servers.s]\ncommand = \"c\"\nenv_file = \"s.env\"\nenv = { T = \"${file:token}\", U = \"${file:missing:-none}\" }\n\
            [server.tls]\ncert = \"cert.pem\"\nkey = \"tls.pem\"\n";
        let file = ConfigFile { path: at("own.toml"), text: text.to_owned() };
        let environment = Environment::new("/work-dir").with("HOME", "/home/ann");
        let loaded = load(Some(&file), &environment, &Overrides::default()).unwrap();
        let mut expected: Vec<PathBuf> =
            ["/home/ann/.config/turnwright/turnwright.toml", "/work-dir/turnwright.toml"].map(PathBuf::from).into();
        let beside = ["config/mcp-servers.json", "key", "missing", "own.toml", "s.env", "tls.pem", "token"];
        expected.extend(beside.map(at).into_iter().chain(["/work-dir/config/mcp-servers.json".into()]));
        expected.sort();
        assert_eq!(files(&loaded, &environment).known(), expected);
    }
}
