//! `turnwright knowledge`: documents that are looked up for each message.

use std::time::Duration;

use serde_json::{Value, json};
use turnwright_core::counted;
use turnwright_engine::StoreError;
use turnwright_engine::knowledge::CollectionSize;
use turnwright_host::{FoundPiece, Host, Knowledge, KnowledgeAnswer, Needs};

use crate::cli::Everywhere;
use crate::cli::knowledge::{Knowledge as Command, SearchKnowledge};
use crate::exit::{Exit, Failure};
use crate::opened::{self, QUIET};
use crate::output::{Output, say};
use crate::table::table;

/// How long one folder is indexed at once before how far it is, is said.
const ROUND: Duration = Duration::from_secs(10);
/// The longest piece that is printed for people, in lines.
const MOST_LINES: usize = 12;

pub(super) async fn run(everywhere: &Everywhere, command: Command, output: &mut Output) -> Result<Exit, Failure> {
    let opened = opened::open(&opened::overrides(everywhere), QUIET)?.of(everywhere);
    let host = opened.start(Needs::Store).await?;
    for problem in host.problems().iter().filter(|problem| problem.starts_with("knowledge")) {
        say(&format!("warning: {problem}"));
    }
    let result = carry_out(&host, command, output).await;
    host.shutdown().await;
    result.map(|()| Exit::Done)
}

async fn carry_out(host: &Host, command: Command, output: &mut Output) -> Result<(), Failure> {
    let off = || Failure::usage("documents are not looked up: `enabled = false` stands below `[knowledge]`");
    let knowledge = host.knowledge().ok_or_else(off)?;
    match command {
        Command::List(listed) => list(host, knowledge, listed.json, output).await,
        Command::Index { name } => index(knowledge, name.as_deref()).await,
        Command::Files { name, listed } => files(knowledge, &name, listed.json, output).await,
        Command::Search(search) => find(knowledge, search, output).await,
    }
}

fn unstored(error: &StoreError) -> Failure {
    Failure::failed(error.to_string())
}

/// The folders that are meant.
fn meant<'a>(knowledge: &'a Knowledge, name: Option<&'a str>) -> Result<Vec<&'a str>, Failure> {
    let all: Vec<&str> = knowledge.names().collect();
    match name {
        _ if all.is_empty() => Err(Failure::usage("no folder of documents is configured")
            .hint("`[knowledge.folders.NAME]` with `path = \"…\"` names one")),
        None => Ok(all),
        Some(name) if all.contains(&name) => Ok(vec![name]),
        Some(name) => Err(Failure::usage(format!("there is no folder of documents `{name}`; there are {}", all.join(", ")))),
    }
}

async fn list(host: &Host, knowledge: &Knowledge, as_json: bool, output: &mut Output) -> Result<(), Failure> {
    let mut sizes = Vec::new();
    for name in knowledge.names() {
        let size = knowledge.size(name).await.map_err(|error| unstored(&error))?;
        let path =
            host.config().knowledge.folders.get(name).map(|folder| folder.path.display().to_string()).unwrap_or_default();
        sizes.extend(size.map(|size| (name.to_owned(), path, size)));
    }
    if as_json {
        let row = |(name, path, size): &(String, String, CollectionSize)| json!({"id": name, "path": path, "files": size.files, "skipped": size.skipped, "pieces": size.pieces, "vectors": size.vectors});
        output.json_pretty(&sizes.iter().map(row).collect::<Vec<_>>());
        return Ok(());
    }
    if sizes.is_empty() {
        say("no folder of documents is configured; `[knowledge.folders.NAME]` with `path = \"…\"` names one");
    }
    let rows: Vec<_> = sizes
        .into_iter()
        .map(|(name, path, size)| {
            let skipped = if size.skipped > 0 { format!(", {} passed over", size.skipped) } else { String::new() };
            let vectors = if size.vectors > 0 { format!(", {}", counted(size.vectors, "vector")) } else { String::new() };
            [name, path, format!("{}{vectors}{skipped}", holdings(&size))]
        })
        .collect();
    output.lines(&table(&rows));
    Ok(())
}

/// How much there is in a folder.
fn holdings(size: &CollectionSize) -> String {
    format!("{}, {}", counted(size.files, "document"), counted(size.pieces, "piece"))
}

async fn index(knowledge: &Knowledge, name: Option<&str>) -> Result<(), Failure> {
    for name in meant(knowledge, name)? {
        let (mut read, mut removed) = (0, 0);
        loop {
            let Some((done, notices)) = knowledge.refresh(name, ROUND).await.map_err(|error| unstored(&error))? else { break };
            read += done.read;
            removed += done.removed;
            for notice in &notices {
                say(&format!("warning: {name}: {notice}"));
            }
            if done.is_elsewhere {
                say(&format!("{name}: another process is indexing it"));
                break;
            }
            if done.is_cut {
                say(&format!("warning: {name}: a part of the folder cannot be looked at; what was known of it stays"));
            }
            if done.left == 0 && !done.lacks_vectors {
                let size = knowledge.size(name).await.map_err(|error| unstored(&error))?;
                let has = size.as_ref().map(holdings).unwrap_or_default();
                say(&format!("{name}: read {read}, removed {removed}; it has {has}"));
                break;
            }
            let and = if done.lacks_vectors { ", not all with vectors yet" } else { "" };
            say(&format!("{name}: read {read}, {} left{and}", done.left));
        }
    }
    Ok(())
}

async fn files(knowledge: &Knowledge, name: &str, as_json: bool, output: &mut Output) -> Result<(), Failure> {
    meant(knowledge, Some(name))?;
    let files = knowledge.files(name).await.map_err(|error| unstored(&error))?.unwrap_or_default();
    if as_json {
        let row = |file: &turnwright_host::IndexedFile| json!({"id": file.path, "bytes": file.bytes, "version": file.hash, "skipped": file.skipped});
        output.json_pretty(&files.iter().map(row).collect::<Vec<_>>());
        return Ok(());
    }
    let rows: Vec<_> = files
        .into_iter()
        .map(|file| {
            [
                file.path,
                format!("{} bytes", file.bytes),
                file.skipped.map(|why| format!("passed over: {why}")).unwrap_or_default(),
            ]
        })
        .collect();
    output.lines(&table(&rows));
    Ok(())
}

async fn find(knowledge: &Knowledge, search: SearchKnowledge, output: &mut Output) -> Result<(), Failure> {
    let question = search.words.join(" ");
    let mut all = KnowledgeAnswer::default();
    for name in meant(knowledge, search.name.as_deref())? {
        let answer = knowledge.search(name, &question).await.map_err(|error| unstored(&error))?.unwrap_or_default();
        all.found.extend(answer.found);
        all.notices.extend(answer.notices);
    }
    all.notices.dedup();
    for notice in &all.notices {
        say(&format!("warning: {notice}"));
    }
    if search.listed.json {
        output.json_pretty(&all.found.iter().map(|(name, found)| told(name, found)).collect::<Vec<_>>());
        return Ok(());
    }
    if all.found.is_empty() {
        say("nothing was found");
    }
    for (name, found) in &all.found {
        let under = if found.piece.heading.is_empty() { String::new() } else { format!("  {}", found.piece.heading) };
        output.line(&format!("{name}: {}, {}{under}", found.path, found.piece.place));
        for line in found.piece.text.lines().take(MOST_LINES) {
            output.line(&format!("    {line}"));
        }
    }
    Ok(())
}

fn told(name: &str, found: &FoundPiece) -> Value {
    json!({"knowledge": name, "document": found.path, "place": found.piece.place.to_string(), "heading": found.piece.heading,
        "text": found.piece.text, "version": found.hash})
}
