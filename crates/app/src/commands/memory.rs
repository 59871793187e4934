//! `turnwright memory`: what is remembered of the user.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use turnwright_core::UserId;
use turnwright_host::{Environment, Host, MAX_MEMORY_BYTES, Memory, Needs};

use crate::cli::Everywhere;
use crate::cli::knowledge::Memory as Typed;
use crate::exit::{Exit, Failure};
use crate::opened::{self, QUIET, people_only};
use crate::output::{Output, say};

pub(super) async fn run(everywhere: &Everywhere, command: Typed, output: &mut Output) -> Result<Exit, Failure> {
    let opened = opened::open(&opened::overrides(everywhere), QUIET)?.of(everywhere);
    let environment = opened.environment.clone();
    let host = opened.start(Needs::Store).await?;
    let result = carry_out(&host, &environment, command, output).await;
    host.shutdown().await;
    result.map(|()| Exit::Done)
}

async fn carry_out(host: &Host, environment: &Environment, command: Typed, output: &mut Output) -> Result<(), Failure> {
    if !matches!(command, Typed::Show) {
        people_only(host)?;
    }
    let off = || Failure::usage("nothing is remembered: `enabled = false` stands below `[memory]`");
    let (memory, user) = (host.memory().ok_or_else(off)?, host.engine().user().clone());
    let failed = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
    let text = memory.read(&user).await.map_err(|error| failed(&error))?;
    match command {
        Typed::Show => {
            if text.is_empty() {
                say("nothing is remembered");
            } else {
                output.line(&text);
            }
        }
        Typed::Edit => {
            if std::io::stdin().is_terminal() {
                let path = free_path(&host.loaded().data_dir);
                let edited = edited(environment, &path, &text)?;
                // What a person wrote by hand is theirs until it is stored.
                let kept = |failure: Failure| failure.hint(format!("what you wrote is kept in {}", path.display()));
                put(memory, &user, &text, &edited).await.map_err(kept)?;
                let _ = std::fs::remove_file(&path);
            } else {
                put(memory, &user, &text, &piped()?).await?;
            }
        }
        Typed::Clear => put(memory, &user, &text, "").await?,
    }
    Ok(())
}

async fn put(memory: &Memory, user: &UserId, before: &str, text: &str) -> Result<(), Failure> {
    let written = memory.write(user, text, |now| now == before).await.map_err(|error| Failure::usage(error.to_string()))?;
    say(&if written.is_empty() {
        "nothing is remembered any more".to_owned()
    } else {
        format!("the memory has {} of {MAX_MEMORY_BYTES} bytes", written.len())
    });
    Ok(())
}

/// The text that is piped in.
fn piped() -> Result<String, Failure> {
    let mut piped = String::new();
    let most = u64::try_from(MAX_MEMORY_BYTES).unwrap_or(u64::MAX).saturating_mul(8);
    let read = std::io::stdin().take(most).read_to_string(&mut piped);
    read.map_err(|error| Failure::usage(format!("what is piped in cannot be read: {error}")))?;
    // What was to write it may have failed.
    if piped.trim().is_empty() {
        return Err(
            Failure::usage("nothing was piped in; nothing was changed").hint("`turnwright memory clear` empties the memory")
        );
    }
    Ok(piped)
}

/// Where a text is edited: not where one is kept that was refused before.
fn free_path(data_dir: &Path) -> PathBuf {
    let id = std::process::id();
    let mut path = data_dir.join(format!("memory-{id}.md"));
    for number in 2_u32.. {
        if !path.exists() {
            break;
        }
        path = data_dir.join(format!("memory-{id}-{number}.md"));
    }
    path
}

/// What an editor makes of a text. The file stays where the editor came to its end.
fn edited(environment: &Environment, path: &Path, text: &str) -> Result<String, Failure> {
    let editor = environment.filled("VISUAL").or_else(|| environment.filled("EDITOR"));
    let none = || Failure::usage("no editor is named").hint("set EDITOR, or pipe the text in");
    let editor = editor.ok_or_else(none)?;
    let told = |error: std::io::Error| Failure::failed(format!("{} cannot be used: {error}", path.display()));
    std::fs::write(path, text).map_err(told)?;
    let mut words = editor.split_whitespace();
    let why = match Command::new(words.next().unwrap_or(editor)).args(words).arg(path).status() {
        Ok(status) if status.success() => return std::fs::read_to_string(path).map_err(told),
        Ok(status) => format!("the editor `{editor}` ended with {status}; nothing was changed"),
        Err(error) => format!("the editor `{editor}` cannot be started: {error}"),
    };
    let _ = std::fs::remove_file(path);
    Err(Failure::failed(why))
}
