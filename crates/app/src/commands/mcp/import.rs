//! `turnwright mcp import`.

use std::collections::BTreeMap;

use turnwright_host::{McpServers, NewMcpServer, Owner};

use super::change::{pairs_of, refused};
use crate::cli::McpImport;
use crate::exit::{Exit, Failure};
use crate::output::{Output, say};

/// Shows what a file would add, or adds it. Starts nothing.
pub(super) async fn run(servers: &McpServers, import: McpImport, output: &mut Output) -> Result<Exit, Failure> {
    let answers: BTreeMap<String, String> =
        pairs_of(&import.input, '=')?.into_iter().filter_map(|(id, value)| Some((id, value.as_str()?.to_owned()))).collect();
    let found = servers.import(&import.file, &answers).map_err(Failure::usage)?;
    let mut exit = Exit::Done;
    for problem in &found.problems {
        say(&format!("warning: {problem}"));
    }
    for id in &found.unanswered {
        say(&format!("hint: --input {id}=VALUE gives what the file asks for"));
    }
    if found.servers.is_empty() && !found.problems.is_empty() {
        exit = Exit::Failed;
    }
    for server in found.servers {
        for word in &server.words {
            say(&format!("note: {}: {word}", server.name));
        }
        if !import.write {
            let text =
                server.as_toml().map_err(|error| Failure::failed(format!("`{}` cannot be shown: {error}", server.name)))?;
            output.write(&format!("{text}\n"));
            continue;
        }
        let name = server.name.clone();
        let new = NewMcpServer { name: server.name, owner: Owner::Everyone, config: server.config, asked: None };
        match servers.add(new).await {
            Ok(added) => output.line(&format!("added {}, which runs: {}", added.name, added.transport)),
            Err(error) => {
                exit = Exit::Failed;
                refused(&error).text.lines().for_each(|line| say(&format!("error: {name} was not added: {line}")));
            }
        }
    }
    if !import.write {
        say("hint: nothing was changed; --write adds these servers, or put them into turnwright.toml");
    }
    Ok(exit)
}
