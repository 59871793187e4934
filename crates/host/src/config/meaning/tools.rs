//! What is said of tools: MCP servers, built-in ones, APIs, and the rules for them.

use indexmap::IndexMap;
use turnwright_core::policy::Policy;

use super::{Meaning, is_header_value, place_of};
use crate::config::document::NodeValue;
use crate::config::key_path::KeyPath;
use crate::config::listed::listed;
use crate::config::{McpServer, Problem};

impl Meaning<'_> {
    /// A command may take the time that it is given.
    pub(crate) fn command(self, problems: &mut Vec<Problem>) {
        let Some((given, longest)) = self.config.tools.command.is_above_longest() else { return };
        let keys = ["tools", "command", "timeout_ms"];
        let text = format!(
            "`{}` is {given}, above the {longest} of `tools.command.max_timeout_ms`, so that no command would run; it must be at most \
             that",
            KeyPath::of(keys)
        );
        problems.push(Problem::new(place_of(self.root, keys), text));
    }

    /// Whoever searches the web can be asked.
    pub(crate) fn web(self, problems: &mut Vec<Problem>) {
        let Some(search) = self.config.tools.web.search.as_ref().filter(|search| search.enabled) else { return };
        let keys = ["tools", "web", "search"];
        if let Some((key, right)) = search.missing() {
            let text = format!("{} has no `{key}`; it must be {right}", KeyPath::of(keys).section());
            problems.push(Problem::new(place_of(self.root, keys), text));
        }
        if search.api_key.as_ref().is_some_and(|key| !is_header_value(key.expose())) {
            let keys = keys.into_iter().chain(["api_key"]);
            let text = format!(
                "`{}` holds a line break or another control character; it must be one line of text",
                KeyPath::of(keys.clone())
            );
            problems.push(Problem::new(place_of(self.root, keys), text));
        }
    }

    /// Each API has a name of its own, and what it is sent can be sent.
    pub(crate) fn apis(self, problems: &mut Vec<Problem>) {
        const BUILT_IN: [&str; 9] =
            ["filesystem", "command", "web", "executable", "resources", "artifact", "memory", "knowledge", "tools"];
        for (name, api) in &self.config.tools.http {
            let keys = ["tools", "http", name];
            let mut tell = |more: &[&str], text: &str| {
                let keys = keys.into_iter().chain(more.iter().copied());
                problems.push(Problem::new(place_of(self.root, keys.clone()), format!("`{}` {text}", KeyPath::of(keys))));
            };
            if BUILT_IN.contains(&name.as_str()) {
                tell(&[], "has the name of built-in tools; it must be another one");
            } else if self.config.mcp.servers.contains_key(name) {
                tell(&[], "has the name of an MCP server; one of them must have another");
            }
            let written = self.root.at(keys.into_iter().chain(["operations"])).map(|written| &written.value);
            if matches!(written, Some(NodeValue::Array(globs)) if globs.is_empty()) {
                tell(
                    &["operations"],
                    "is empty, and so is what would be offered; it must name operations, or be left out for all",
                );
            }
            for (more, text) in api.wrong() {
                tell(&more, text);
            }
        }
    }

    /// Less of a piece than all of it is repeated in the next: what nobody wrote gives way by itself. A message can be shown with
    /// a whole piece, and a folder has documents.
    pub(crate) fn pieces(self, problems: &mut Vec<Problem>, warnings: &mut Vec<Problem>) {
        let knowledge = &self.config.knowledge;
        if knowledge.budget_tokens < knowledge.piece_tokens {
            let text = format!(
                "`knowledge.budget_tokens` is {}, less than `knowledge.piece_tokens`, which is {}: no message is shown with a whole piece",
                knowledge.budget_tokens, knowledge.piece_tokens
            );
            warnings.push(Problem::new(place_of(self.root, ["knowledge", "budget_tokens"]), text));
        }
        for name in knowledge.folders.keys() {
            let keys = ["knowledge", "folders", name, "include"];
            if matches!(self.root.at(keys).map(|written| &written.value), Some(NodeValue::Array(globs)) if globs.is_empty()) {
                let text = format!(
                    "`{}` is empty, and so is what would be looked up; it must hold globs, or be left out for all files",
                    KeyPath::of(keys)
                );
                problems.push(Problem::new(place_of(self.root, keys), text));
            }
        }
        let (piece, overlap) = (self.config.knowledge.piece_tokens, self.config.knowledge.overlap_tokens);
        let is_written = self.root.get("knowledge").is_some_and(|knowledge| knowledge.get("overlap_tokens").is_some());
        if is_written && overlap >= piece {
            let place = place_of(self.root, ["knowledge", "overlap_tokens"]);
            let text = format!(
                "`knowledge.overlap_tokens` is {overlap}; it must be less than `knowledge.piece_tokens`, which is {piece}"
            );
            problems.push(Problem::new(place, text));
        }
    }

    /// Each MCP server says exactly once how it is reached, here or in a file of servers that has it; `is_of_file` says which do, where
    /// there can be any.
    pub(crate) fn servers(
        self,
        is_of_file: Option<&dyn Fn(&str) -> bool>,
        problems: &mut Vec<Problem>,
        warnings: &mut Vec<Problem>,
    ) {
        for (name, server) in &self.config.mcp.servers {
            let keys = ["mcp", "servers", name];
            let (place, section) = (place_of(self.root, keys), KeyPath::of(keys).section());
            match transport(server, |key| self.root.at(keys.into_iter().chain([key])).is_some()) {
                Ok(None) => {}
                Err(NoTransport::NotHere) if is_of_file.is_some_and(|is_of_file| is_of_file(name)) => {}
                Err(NoTransport::NotHere) => {
                    let nor_there = if is_of_file.is_some() { ", and no file of servers has one of this name" } else { "" };
                    let text =
                        format!("{section} has no `command`, `url` or `image`{nor_there}; it must have exactly one of them");
                    problems.push(Problem::new(place, text));
                }
                Ok(Some(warning)) => warnings.push(Problem::new(place, format!("{section} {warning}"))),
                Err(NoTransport::Wrong(problem)) => problems.push(Problem::new(place, format!("{section} {problem}"))),
            }
            for (header, value) in &server.headers {
                // RFC 9110, section 5.5: a value is one line.
                if value.expose().chars().any(|letter| letter.is_ascii_control() && letter != '\t') {
                    let place = place_of(self.root, keys.into_iter().chain(["headers", header.as_str()]));
                    let text = format!(
                        "{section} `headers.{header}` holds a line break or another control character, which cannot be sent"
                    );
                    problems.push(Problem::new(place, text));
                }
            }
        }
    }

    /// A server with the name of a built-in source is left out where that is offered. Other programs' files call theirs so too.
    /// One that is switched off hinders nobody, but could not be switched on either.
    pub(crate) fn names(self, warnings: &mut Vec<Problem>, left_out: &mut IndexMap<String, String>) {
        let built_in = self.config.built_in_sources();
        let servers = self.config.mcp.servers.iter();
        for (name, server) in servers.filter(|(name, _)| built_in.contains(&name.as_str())) {
            let keys = ["mcp", "servers", name];
            let what = if server.enabled { "is left out" } else { "is left out, also once it is enabled" };
            let text = format!(
                "{} has the name of built-in tools and {what}; it must have another, or they be turned off",
                KeyPath::of(keys).section()
            );
            let problem = Problem::new(place_of(self.root, keys), text);
            if server.enabled {
                left_out.insert(name.clone(), problem.to_string());
            }
            warnings.push(problem);
        }
    }

    /// Each rule is one that the policy can use.
    pub(crate) fn rules(self, problems: &mut Vec<Problem>) {
        let written = self.root.at(["approval", "rules"]).map(|rules| &rules.value);
        for (index, rule) in self.config.approval.rules.iter().enumerate() {
            let Err(error) = Policy::new([rule.clone()]) else { continue };
            let path = KeyPath::of(["approval", "rules"]).index(index);
            let node = match written {
                Some(NodeValue::Array(rules)) => rules.get(index),
                _ => None,
            };
            let place =
                node.map_or_else(|| place_of(self.root, ["approval", "rules"]), |rule| place_of(rule, error.at.split('.')));
            problems.push(Problem::new(place, format!("`{path}.{}` {}", error.at, error.reason)));
        }
    }
}

/// Why it is not said how a server is reached.
enum NoTransport {
    /// Nothing is said of it.
    NotHere,
    /// What is wrong.
    Wrong(String),
}

/// Whether a server says exactly once how it is reached: a warning about keys that mean nothing there, or what is wrong.
/// `written` counts a key whose value is broken too.
fn transport(server: &McpServer, written: impl Fn(&str) -> bool) -> Result<Option<String>, NoTransport> {
    const TRANSPORTS: [&str; 3] = ["command", "url", "image"];
    let given: Vec<_> = TRANSPORTS.into_iter().filter(|key| written(key)).collect();
    let only = match given.as_slice() {
        [] => return Err(NoTransport::NotHere),
        [only] => *only,
        more => {
            let text = format!("has {}; it must have exactly one of them", listed(more.iter().copied()));
            return Err(NoTransport::Wrong(text));
        }
    };
    let value = match only {
        "command" => &server.command,
        "url" => &server.url,
        _ => &server.image,
    };
    if value.as_deref().is_some_and(|value| value.trim().is_empty()) {
        let text = format!("has `{only}`, which is empty; it must say what is started or reached");
        return Err(NoTransport::Wrong(text));
    }
    let idle = [
        ("args", !server.args.is_empty() && only == "url"),
        ("env", !server.env.is_empty() && only == "url"),
        ("cwd", server.cwd.is_some() && only != "command"),
        ("env_file", server.env_file.is_some() && only == "url"),
        ("headers", !server.headers.is_empty() && only != "url"),
        ("oauth", server.oauth.is_some() && only != "url"),
        ("docker", server.docker.is_some() && only != "image"),
    ];
    let idle: Vec<_> = idle.into_iter().filter(|(_, is_idle)| *is_idle).map(|(key, _)| key).collect();
    Ok((!idle.is_empty()).then(|| format!("is reached by `{only}`; {} has no effect there", listed(idle))))
}
