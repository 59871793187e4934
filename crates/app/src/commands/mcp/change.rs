//! `turnwright mcp add`, `mcp remove` and `mcp logs`.

use serde_json::{Map, Value, json};
use turnwright_core::shell_word;
use turnwright_host::{Host, McpChangeError, McpServers, NewMcpServer, Owner};

use crate::cli::{Everywhere, Listed, McpAdd};
use crate::exit::{Exit, Failure};
use crate::flags::flags;
use crate::output::{Output, say};

pub(super) async fn add(
    servers: &McpServers,
    add: McpAdd,
    everywhere: &Everywhere,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let owner = if add.mine { Owner::User(servers.user().clone()) } else { Owner::Everyone };
    let name = add.name.clone();
    let config = keys(add)?;
    let runs = servers.preview(&name, &config).await.map_err(|error| refused(&error))?;
    for path in McpServers::literal_secrets(&config) {
        say(&format!("note: `{path}` is kept sealed; a reference such as '${{NAME}}' in its place is put in at each start"));
    }
    let added = servers.add(NewMcpServer { name, owner, config, asked: None }).await.map_err(|error| refused(&error))?;
    output.line(&format!("added {}, which runs: {runs}", added.name));
    let env = added.config.as_ref().and_then(|config| config.get("env")).and_then(Value::as_object);
    for (name, value) in env.into_iter().flatten() {
        output.line(&format!("  with {name}={}", value.as_str().unwrap_or_default()));
    }
    let (name, flags) = (shell_word(&added.name), flags(everywhere));
    say(&format!("hint: `turnwright mcp check {name}{flags}` starts it and lists its tools"));
    Ok(Exit::Done)
}

pub(super) async fn approve(host: &Host, name: &str, tool: Option<&str>, output: &mut Output) -> Result<Exit, Failure> {
    // What it offers now, and not what it offered the last time.
    let before = host.check_mcp(name).await.map(|status| status.quarantined).unwrap_or_default();
    let is_meant = |text: &&String| tool.is_none_or(|tool| text.starts_with(&format!("{tool}: ")));
    for change in before.iter().filter(is_meant) {
        say(&format!("note: {change}"));
    }
    let agreed = host.mcp().agree(name, tool, None).await.map_err(|error| refused(&error))?;
    for tool in agreed {
        output.line(&format!("agreed to {tool} as it is now"));
    }
    Ok(Exit::Done)
}

pub(super) async fn remove(servers: &McpServers, name: &str, output: &mut Output) -> Result<Exit, Failure> {
    servers.remove(name, |_| true).await.map_err(|error| refused(&error))?;
    output.line(&format!("removed {name}"));
    Ok(Exit::Done)
}

pub(super) async fn logs(servers: &McpServers, name: &str, listed: Listed, output: &mut Output) -> Result<Exit, Failure> {
    let lines = servers.logs(name).await.map_err(|error| refused(&error))?;
    if listed.json {
        let lines = lines.iter().map(|line| {
            json!({ "timestamp": turnwright_server::timestamp(line.at_ms), "origin": line.origin.as_str(), "text": line.text })
        });
        output.json_pretty(&lines.collect::<Vec<_>>());
        return Ok(Exit::Done);
    }
    if lines.is_empty() {
        say(&format!("{name} has not written anything, or has not run yet"));
    }
    for line in lines {
        output.line(&format!("{} {:7} {}", turnwright_server::timestamp(line.at_ms), line.origin.as_str(), line.text));
    }
    Ok(Exit::Done)
}

/// What was typed, as the keys of `[mcp.servers.NAME]`.
fn keys(add: McpAdd) -> Result<Map<String, Value>, Failure> {
    let McpAdd { command, url, image, env, header, cwd, disabled, .. } = add;
    let mut keys = Map::new();
    let mut set = |key: &str, value: Value| drop(keys.insert(key.to_owned(), value));
    let mut words = command.into_iter();
    if url.is_none() && image.is_none() {
        set("command", words.next().into());
    }
    for (key, value) in [("url", url), ("image", image), ("cwd", cwd)] {
        if let Some(value) = value {
            set(key, value.into());
        }
    }
    let args: Vec<String> = words.collect();
    if !args.is_empty() {
        set("args", args.into());
    }
    for (key, pairs, separator) in [("env", env, '='), ("headers", header, ':')] {
        if !pairs.is_empty() {
            set(key, pairs_of(&pairs, separator)?.into());
        }
    }
    if disabled {
        set("enabled", false.into());
    }
    Ok(keys)
}

pub(super) fn pairs_of(pairs: &[String], separator: char) -> Result<Map<String, Value>, Failure> {
    let pair = |text: &String| match text.split_once(separator) {
        Some((name, value)) => Ok((name.trim().to_owned(), Value::from(if separator == ':' { value.trim() } else { value }))),
        None => Err(Failure::usage(format!("`{text}` is not NAME{separator}VALUE"))),
    };
    pairs.iter().map(pair).collect()
}

pub(super) fn refused(error: &McpChangeError) -> Failure {
    match error {
        McpChangeError::Store(_) => Failure::failed(error.to_string()),
        McpChangeError::NotFound(_) => {
            Failure::usage(error.to_string()).hint("`turnwright mcp list` shows those that there are")
        }
        McpChangeError::NoTool(_)
        | McpChangeError::Exists(_)
        | McpChangeError::OfFile { .. }
        | McpChangeError::Disabled(_)
        | McpChangeError::Changed(_)
        | McpChangeError::Invalid(_)
        | McpChangeError::NotAllowed(_)
        | McpChangeError::KeyReused(_) => Failure::usage(error.to_string()),
    }
}
