//! What a configuration names and what cannot be used on this machine. Whatever needs it says so by itself where it begins: a
//! turn its model, a tool its folder. This is for whoever wants to know before, so it looks at files and starts nothing.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use turnwright_tools::http::DescriptionPlace;

use super::key_path::KeyPath;
use super::{Loaded, Problem, Problems, Secret, endpoint};
use crate::Environment;
use crate::storage::Place;
use crate::{apis, env_file, executables, sources};

impl Loaded {
    /// What it names and what cannot be used as it stands; `None` where all can.
    pub fn unusable(&self, environment: &Environment) -> Option<Problems> {
        let missing = self.config.model.as_ref().and_then(|model| endpoint::missing(model.provider(), &self.endpoints));
        // What reading it only warned of, since it may matter to nobody who runs.
        let hinders = |warning: &Problem| {
            let is_left_out = || self.left_out.values().any(|why| why.contains(&warning.to_string()));
            missing.as_ref() == Some(&warning.text) || is_left_out()
        };
        let mut problems: Vec<Problem> = self.warnings.iter().filter(|warning| hinders(warning)).cloned().collect();
        self.folders(&mut problems);
        self.files_of_tools(environment, &mut problems);
        self.servers(&mut problems);
        self.programs_by_name(environment, &mut problems);
        let database = match Place::of(self) {
            Ok(Place::Sqlite(options)) => options.look().map_err(|error| error.to_string()),
            Ok(Place::Postgres { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = database {
            problems.push(self.problem(&["storage", "database"], format!("the database cannot be used: {why}")));
        }
        let said = &self.config.mcp.servers;
        // What has no way is about a server of a file.
        let servers = said.iter().filter(|(_, server)| server.transport().is_some()).map(|(name, _)| name.as_str());
        let taken: Vec<&str> = self.config.built_in_sources().into_iter().chain(servers).collect();
        for file in self.mcp_files.iter().filter(|file| file.is_required || file.path.exists()) {
            let told = sources::unusable(&file.path, environment, (&taken, said));
            problems.extend(told.into_iter().map(|text| self.problem(&["mcp", "files"], text)));
        }
        Problems::new(problems)
    }

    /// Descriptions of APIs that are files, and programs that are named by a path.
    fn files_of_tools(&self, environment: &Environment, problems: &mut Vec<Problem>) {
        let mut look = |path: &Path, keys: [&str; 4]| {
            if let Some(why) = why_not_a_file(path) {
                let text = format!("`{}` is `{}`, which cannot be used: {why}", KeyPath::of(keys), path.display());
                problems.push(self.problem(&keys, text));
            }
        };
        let tools = &self.config.tools;
        for (name, api) in tools.http.iter().filter(|(_, api)| api.enabled) {
            if let DescriptionPlace::File(path) = apis::place_of(&api.description) {
                look(&path, ["tools", "http", name, "description"]);
            }
        }
        for (name, tool) in tools.executable.iter().filter(|(_, tool)| tool.enabled && tool.command.contains('/')) {
            let program = executables::program(&tool.command, self, environment);
            look(Path::new(&program), ["tools", "executable", name, "command"]);
        }
    }

    /// What MCP servers are started with: programs that are named by a path, folders, and files of variables.
    fn servers(&self, problems: &mut Vec<Problem>) {
        for (name, server) in &self.config.mcp.servers {
            if !server.enabled || self.left_out.contains_key(name) {
                continue;
            }
            let mut look = |key: &str, path: &Path, why: Option<String>| {
                let keys = ["mcp", "servers", name, key];
                if let Some(why) = why {
                    let text = format!("`{}` is `{}`, which cannot be used: {why}", KeyPath::of(keys), path.display());
                    problems.push(self.problem(&keys, text));
                }
            };
            if let Some(program) = server.command.as_deref().filter(|program| program.contains('/')).map(Path::new) {
                look("command", program, why_not_a_file(program));
            }
            if let Some(folder) = server.cwd.as_deref().filter(|_| server.command.is_some()) {
                look("cwd", folder, why_not_a_folder(folder));
            }
            if let Some(file) = server.env_file.as_deref().filter(|_| server.url.is_none()) {
                look("env_file", file, env_file::of(file).err());
            }
        }
    }

    /// Programs that are looked up in `PATH` where they are started.
    fn programs_by_name(&self, environment: &Environment, problems: &mut Vec<Problem>) {
        let Some(path) = environment.get("PATH") else { return };
        let mut look = |keys: &[&str], name: Option<&str>| {
            let name = name.filter(|name| !name.contains('/') && !is_in(path, name, environment.working_directory()));
            if let Some(name) = name {
                let text = format!(
                    "`{}` is `{name}`, which cannot be used: no folder of PATH has a program of this name; install it, or name its path",
                    KeyPath::of(keys.iter().copied())
                );
                problems.push(self.problem(keys, text));
            }
        };
        // Who has a `PATH` of their own is looked up there.
        let is_own = |env: &indexmap::IndexMap<String, Secret>| env.contains_key("PATH");
        for (name, server) in self.config.mcp.servers.iter().filter(|(name, _)| !self.left_out.contains_key(*name)) {
            let is_looked_up = server.enabled && server.env_file.is_none() && !is_own(&server.env);
            look(&["mcp", "servers", name, "command"], server.command.as_deref().filter(|_| is_looked_up));
        }
        let tools = &self.config.tools;
        let is_looked_up = tools.command.enabled && !is_own(&tools.command.env);
        look(&["tools", "command", "shell"], tools.command.shell.as_deref().filter(|_| is_looked_up));
        for (name, tool) in tools.executable.iter().filter(|(_, tool)| tool.enabled && !is_own(&tool.env)) {
            look(&["tools", "executable", name, "command"], Some(&tool.command));
        }
        let notify = &self.config.notify;
        look(&["notify", "command"], notify.command.first().map(String::as_str).filter(|_| !is_own(&notify.env)));
    }

    /// Folders that tools work in, and those that are looked up.
    fn folders(&self, problems: &mut Vec<Problem>) {
        let mut look = |path: &Path, keys: &[&str], shown: String| {
            if let Some(why) = why_not_a_folder(path) {
                let text = format!("`{shown}` is `{}`, which cannot be used: {why}", path.display());
                problems.push(self.problem(keys, text));
            }
        };
        let (files, commands) = (&self.config.tools.filesystem, &self.config.tools.command);
        let is_written = |tool: &str| self.written.contains_key(&format!("tools.{tool}.roots"));
        // Commands that are given no roots of their own have those of the files.
        let of_files = files.enabled || (commands.enabled && !is_written("command"));
        for (tool, is_used, roots) in [("filesystem", of_files, &files.roots), ("command", commands.enabled, &commands.roots)] {
            let keys = ["tools", tool, "roots"];
            for (index, root) in roots.iter().enumerate().filter(|_| is_used && is_written(tool)) {
                look(root, &keys, KeyPath::of(keys).index(index).to_string());
            }
        }
        for (name, folder) in self.config.knowledge.folders.iter().filter(|_| self.config.knowledge.enabled) {
            let keys = ["knowledge", "folders", name, "path"];
            look(&folder.path, &keys, KeyPath::of(keys).to_string());
        }
        for (index, pattern) in
            files.deny.iter().enumerate().filter(|(_, pattern)| files.enabled && is_elsewhere(pattern, &files.roots))
        {
            let keys = ["tools", "filesystem", "deny"];
            let path = KeyPath::of(keys).index(index);
            let text =
                format!("`{path}` is `{pattern}`, which is in none of `tools.filesystem.roots`, so that it denies nothing");
            problems.push(self.problem(&keys, text));
        }
    }
}

/// Whether a pattern is the path of something that is there and in none of these roots, and names nothing from one of them. That is
/// known only of a path of several parts: one alone may be meant from a root in which it is not yet.
fn is_elsewhere(pattern: &str, roots: &[PathBuf]) -> bool {
    let Some(below) = pattern.strip_prefix('/').filter(|_| !pattern.contains(['*', '?', '[', '{', '\\'])) else {
        return false;
    };
    let has_it = |root: &PathBuf| {
        let real = std::fs::canonicalize(root);
        let begins = [Some(root), real.as_ref().ok()].into_iter().flatten().any(|root| Path::new(pattern).starts_with(root));
        begins || root.join(below).exists()
    };
    below.trim_end_matches('/').contains('/') && Path::new(pattern).exists() && !roots.iter().any(has_it)
}

/// Whether a folder of this `PATH` has such a program.
fn is_in(path: &str, name: &str, working_directory: &Path) -> bool {
    std::env::split_paths(path).map(|folder| working_directory.join(folder).join(name)).any(|file| {
        let found = std::fs::metadata(file);
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

fn why_not_a_folder(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some("it is not a folder".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

fn why_not_a_file(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Some("it is a folder".to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}
