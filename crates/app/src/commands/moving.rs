//! `turnwright conversations export` and `import`: conversations in the forms of others.

use std::io::Read;
use std::path::Path;

use serde::Serialize;
use turnwright_core::{ConversationId, counted, prompt};
use turnwright_engine::{Conversation, Engine, EngineError, MAX_TITLE_CHARS, NewConversation, SettingsOverlay, WholeJournal};
use turnwright_host::export::{self, ExportForm};
use turnwright_host::import::{self, ImportedConversation, LeftOut};

use crate::cli::Listed;
use crate::exit::Failure;
use crate::output::{Output, say};
use crate::table::table;

/// Prints the messages as one JSON list, a message on each line.
pub(super) async fn export(engine: &Engine, id: &ConversationId, form: ExportForm, output: &mut Output) -> Result<(), Failure> {
    let journal = engine.journal(id).await.map_err(Failure::to_open)?;
    let system = journal.turn().and_then(|turn| turn.settings().system_prompt.as_deref());
    let history = prompt::history(&journal);
    let messages = export::export(form, system, &export::History::whole(&history, journal.turns()));
    output.write("[");
    for (message, separator) in messages.iter().zip(std::iter::once("\n").chain(std::iter::repeat(",\n"))) {
        output.write(separator);
        output.write(message.get());
    }
    output.write("\n]\n");
    if let (Some(system), false) = (system, form.holds_system()) {
        say(&format!("note: the system prompt is no message in this form, it goes beside them: {}", serde_json::json!(system)));
    }
    Ok(())
}

/// What became of a conversation of the file.
#[derive(Debug, Serialize)]
struct Taken {
    id: String,
    title: Option<String>,
    source: &'static str,
    messages: usize,
    status: &'static str,
    left_out: LeftOut,
    /// Why it was not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Takes every conversation of a file over. What is here already stays as it is; one that cannot be taken keeps no other from it.
pub(super) async fn import(engine: &Engine, file: &Path, listed: Listed, output: &mut Output) -> Result<(), Failure> {
    let bytes = read(file)?;
    let found = import::read(&bytes, &engine.defaults()).map_err(|error| Failure::usage(error.to_string()))?;
    drop(bytes);
    let mut taken = Vec::new();
    for conversation in found.conversations {
        let number = taken.len() + 1;
        taken.push(take(engine, conversation, number).await?);
    }
    if listed.json {
        output.json_pretty(&taken);
    } else {
        let rows: Vec<_> = taken
            .iter()
            .filter(|taken| taken.error.is_none())
            .map(|taken| [taken.id.clone(), counted(taken.messages, "message"), taken.title.clone().unwrap_or_default()])
            .collect();
        output.lines(&table(&rows));
    }
    for taken in &taken {
        if taken.status == "exists" {
            say(&format!("note: {} is here already and was left as it is", taken.id));
        }
        tell(&taken.id, &taken.left_out);
    }
    tell("the file", &found.left_out);
    let refused: Vec<_> =
        taken.iter().filter_map(|taken| Some(format!("{} was not taken: {}", taken.id, taken.error.as_ref()?))).collect();
    if refused.is_empty() { Ok(()) } else { Err(Failure::failed(refused.join("\n"))) }
}

/// Takes over a conversation, the one of this number in the file.
///
/// # Errors
/// Where nothing can be stored.
async fn take(engine: &Engine, conversation: ImportedConversation, number: usize) -> Result<Taken, Failure> {
    let ImportedConversation {
        source,
        id,
        title,
        system_prompt,
        pinned,
        created_at_ms,
        entries,
        times_ms,
        messages,
        mut left_out,
    } = conversation;
    let title = title.map(|title| shortened(title, &mut left_out));
    let called = id.clone().or_else(|| title.clone()).unwrap_or_else(|| format!("conversation {number} of the file"));
    let id: Option<ConversationId> = id.and_then(|id| id.parse().ok());
    let overlay = SettingsOverlay { system_prompt, pinned: pinned.then_some(true), ..SettingsOverlay::default() };
    let new = NewConversation { id, title: title.clone(), overlay, ..NewConversation::default() };
    match store(engine, WholeJournal { conversation: new, created_at_ms, entries, times_ms }).await {
        Ok(stored) => {
            let (id, title) = (stored.id.to_string(), stored.title);
            Ok(Taken { id, title, source, messages, status: "imported", left_out, error: None })
        }
        Err(EngineError::Exists { id }) => {
            let left_out = LeftOut::new();
            Ok(Taken { id: id.to_string(), title, source, messages, status: "exists", left_out, error: None })
        }
        Err(error @ (EngineError::Invalid { .. } | EngineError::OverLimit(_))) => {
            let error = Some(error.to_string());
            Ok(Taken { id: called, title, source, messages, status: "refused", left_out: LeftOut::new(), error })
        }
        Err(error) => Err(Failure::from(error)),
    }
}

/// Stores it under the name it had, or where a conversation of another user has that, under one that is the user's own and the same
/// each time.
async fn store(engine: &Engine, mut whole: WholeJournal) -> Result<Conversation, EngineError> {
    let stored = engine.import(whole.clone()).await;
    let Err(EngineError::Exists { id }) = &stored else { return stored };
    match engine.conversation(id).await {
        Err(EngineError::NotFound { .. }) => {
            whole.conversation.id = format!("{id}-{}", engine.user()).parse().ok();
            engine.import(whole).await
        }
        Ok(_) | Err(_) => stored,
    }
}

/// As much of a title as one may have.
fn shortened(title: String, left_out: &mut LeftOut) -> String {
    let Some((end, _)) = title.char_indices().nth(MAX_TITLE_CHARS) else { return title };
    left_out.insert(format!("the end of a title of more than {MAX_TITLE_CHARS} characters"), 1);
    let mut title = title;
    title.truncate(end);
    title
}

fn tell(of: &str, left_out: &LeftOut) {
    for (what, count) in left_out {
        say(&format!("left out: {of}: {count} × {what}"));
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("cannot read {}: {error}", file.display()));
    if file.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(failed)?;
        return Ok(bytes);
    }
    std::fs::read(file).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use turnwright_core::policy::Policy;
    use turnwright_core::{ModelRef, TurnSettings};
    use turnwright_engine::{EngineParts, Limits};
    use turnwright_testkit::{ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders};

    use super::*;
    use crate::exit::Exit;

    fn engine() -> Engine {
        Engine::new(EngineParts {
            providers: Arc::new(ScriptedProviders(ScriptedProvider::new([]))),
            sources: Vec::new(),
            store: Arc::new(MemoryStore::default()),
            clock: Arc::new(ManualClock::at(1_000)),
            policy: Policy::new(Vec::new()).unwrap(),
            defaults: TurnSettings::new(ModelRef::new("test", "none")),
        })
    }

    #[tokio::test]
    async fn what_was_pinned_is_pinned() {
        let engine = engine();
        let message = json!({"id": "m", "parentId": null, "childrenIds": [], "role": "user", "content": "hello"});
        let chat = json!({"history": {"messages": {"m": message}, "currentId": "m"}});
        let chats = [true, false].map(|pinned| json!({"id": format!("pinned-{pinned}"), "pinned": pinned, "chat": chat}));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("export.json");
        std::fs::write(&file, json!(chats).to_string()).unwrap();
        import(&engine, &file, Listed { json: true }, &mut Output::standard()).await.unwrap();
        let kept = engine.conversations(None, 10).await.unwrap();
        let mut kept: Vec<_> = kept.iter().map(|kept| (kept.id.as_str(), kept.overlay.pinned)).collect();
        kept.sort_unstable();
        assert_eq!(kept, [("pinned-false", None), ("pinned-true", Some(true))]);
        engine.shutdown().await;
    }

    #[tokio::test]
    async fn a_conversation_that_is_refused_is_named_and_those_beside_it_are_taken() {
        let engine = engine();
        engine.limit(Limits { message_bytes: 500, ..Limits::default() });
        let said = |title: &str, system: &str| {
            let messages = json!([{"role": "system", "content": system}, {"role": "user", "content": "hello"}]);
            json!({"title": title, "messages": messages}).to_string()
        };
        let large = "Be brief. ".repeat(100);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("export.jsonl");
        let lines = [said("First", "Be brief."), said("Large", &large), said("Last", "")];
        std::fs::write(&file, lines.join("\n")).unwrap();
        let refused = import(&engine, &file, Listed { json: true }, &mut Output::standard()).await.unwrap_err();
        assert_eq!(refused.exit, Exit::Failed);
        assert!(refused.text.starts_with("Large was not taken: "), "{}", refused.text);
        assert!(refused.text.ends_with("the limit is 500 bytes (`[server.limits] message_bytes`)"), "{}", refused.text);
        let kept = engine.conversations(None, 10).await.unwrap();
        let mut titles: Vec<_> = kept.iter().map(|kept| kept.title.as_deref().unwrap_or_default()).collect();
        titles.sort_unstable();
        assert_eq!(titles, ["First", "Last"]);
        engine.shutdown().await;
    }
}
