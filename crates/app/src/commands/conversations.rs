//! `turnwright conversations`: what is stored.

use serde_json::json;
use turnwright_api::{Message, Role};
use turnwright_core::{ConversationId, Journal, MessageId, ModelRef};
use turnwright_engine::{Compaction, Conversation, Engine, Length, NewConversation, TurnState};
use turnwright_host::{Host, Needs};
use turnwright_server::report::messages;
use turnwright_server::timestamp;
use turnwright_terminal::compact;

use crate::cli::{Conversations, Everywhere, Listed};
use crate::exit::{Exit, Failure};
use crate::flags::flags;
use crate::opened::{self, QUIET, people_only};
use crate::output::{Output, say};
use crate::table::{first_line, table};

/// The most characters of a tool's arguments and result in a transcript.
const MAX_RESULT: usize = 400;

pub(super) async fn run(everywhere: &Everywhere, command: Conversations, output: &mut Output) -> Result<Exit, Failure> {
    let opened = opened::open(&opened::overrides(everywhere), QUIET)?.of(everywhere);
    let needs = match command {
        // The one ends the turn itself where the process is gone that held it, the other asks a model.
        Conversations::Stop { .. } | Conversations::Compact { undo: false, .. } => Needs::Everything,
        Conversations::List { .. }
        | Conversations::Search { .. }
        | Conversations::Show { .. }
        | Conversations::Export { .. }
        | Conversations::Import { .. }
        | Conversations::Fork { .. }
        | Conversations::Compact { undo: true, .. }
        | Conversations::Delete { .. } => Needs::Store,
    };
    let host = opened.start(needs).await?;
    let engine = host.engine();
    let is_for_people =
        matches!(command, Conversations::Compact { .. } | Conversations::Stop { .. } | Conversations::Delete { .. });
    if is_for_people && let Err(refused) = people_only(&host) {
        host.shutdown().await;
        return Err(refused);
    }
    let result = match command {
        Conversations::List { limit, listed } => list(engine, limit, listed, output).await,
        Conversations::Search { words, limit, listed } => search(&host, &words.join(" "), limit, listed, output).await,
        Conversations::Show { id, listed } => show(engine, &id, listed, output).await,
        Conversations::Export { id, format } => super::moving::export(engine, &id, format.into(), output).await,
        Conversations::Import { file, listed } => super::moving::import(engine, &file, listed, output).await,
        Conversations::Fork { id, at, listed } => fork(engine, &id, (at, listed), everywhere, output).await,
        Conversations::Compact { id, model, undo: false, listed } => {
            put_in_summary(engine, &id, (model, listed), everywhere, output).await
        }
        Conversations::Compact { id, undo: true, listed, .. } => take_summary_back(engine, &id, listed, output).await,
        Conversations::Stop { id } => stop(engine, &id).await,
        Conversations::Delete { id, purge } => delete(&host, &id, purge).await,
    };
    host.shutdown().await;
    result.map(|()| Exit::Done)
}

async fn list(engine: &Engine, limit: usize, listed: Listed, output: &mut Output) -> Result<(), Failure> {
    let conversations = engine.conversations(None, limit).await?;
    if listed.json {
        output.json_pretty(&conversations.iter().map(conversation).collect::<Vec<_>>());
        return Ok(());
    }
    let rows: Vec<_> = conversations
        .iter()
        .map(|conversation| {
            let title = conversation.title.clone().unwrap_or_default();
            [conversation.id.to_string(), timestamp(conversation.updated_at_ms), title]
        })
        .collect();
    output.lines(&table(&rows));
    Ok(())
}

async fn delete(host: &Host, id: &ConversationId, is_purged: bool) -> Result<(), Failure> {
    let owed = if is_purged {
        host.engine().conversation(id).await?;
        Some(host.engine().owe_erasure().await?)
    } else {
        None
    };
    host.engine().delete(id).await?;
    drop(owed);
    if !is_purged {
        say(&format!("deleted {id}"));
        return Ok(());
    }
    host.engine().erase(&**host.upkeep()).await.map_err(|error| {
        let gone = format!("{id} is deleted, and what was left of it is not overwritten yet");
        Failure::failed(format!("{gone}, which a server over the same data does within minutes: {error}"))
    })?;
    say(&format!("deleted {id} and overwrote what was left of it"));
    Ok(())
}

async fn search(host: &Host, words: &str, limit: usize, listed: Listed, output: &mut Output) -> Result<(), Failure> {
    let found = host.engine().search(&**host.texts(), words, None, limit).await?;
    if listed.json {
        let told = found.iter().map(|(found, excerpt)| {
            let mut value = conversation(found);
            if let (Some(fields), Some(excerpt)) = (value.as_object_mut(), excerpt) {
                let excerpt = json!({"message_id": excerpt.message.to_string(), "text": excerpt.text});
                fields.insert("excerpt".to_owned(), excerpt);
            }
            value
        });
        output.json_pretty(&told.collect::<Vec<_>>());
        return Ok(());
    }
    if found.is_empty() {
        say("nothing was found");
    }
    for (conversation, excerpt) in found {
        let title = conversation.title.unwrap_or_default();
        output.line(&format!("{}  {}  {title}", conversation.id, timestamp(conversation.updated_at_ms)));
        if let Some(excerpt) = excerpt {
            output.line(&format!("    {}: {}", excerpt.message, excerpt.text));
        }
    }
    Ok(())
}

async fn show(engine: &Engine, id: &ConversationId, listed: Listed, output: &mut Output) -> Result<(), Failure> {
    let found = engine.conversation(id).await.map_err(Failure::to_open)?;
    let journal = engine.journal(id).await?;
    let messages = messages(&journal);
    let length = engine.length(id).await?;
    if listed.json {
        let mut value = conversation(&found);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("turn".to_owned(), turn(&journal));
            fields.insert("length".to_owned(), json!(length.as_ref().map(measured)));
            fields.insert("messages".to_owned(), json!(messages));
        }
        output.json_pretty(&value);
        return Ok(());
    }
    output.line(&format!("{id}  {}  {}", timestamp(found.updated_at_ms), found.title.as_deref().unwrap_or_default()));
    for message in &messages {
        output.line("");
        print(message, output);
    }
    if let Some(length) = length {
        say(&format!("note: {}", in_words(&length)));
    }
    if let Some(open) = journal.open_turn() {
        let text = if open.is_parked() { "waits for a decision" } else { "is not over" };
        say(&format!("note: {} {text}", open.id()));
    }
    Ok(())
}

/// How long a conversation is, for programs.
fn measured(length: &Length) -> serde_json::Value {
    json!({
        "model": length.model,
        "tokens": length.tokens,
        "token_counting": length.counting,
        "context_window": length.budget.map(|budget| budget.window),
        "room": length.budget.map(|budget| budget.room()),
    })
}

/// The same for people.
fn in_words(length: &Length) -> String {
    let Length { model, tokens, counting, budget } = length;
    let how = counting.as_str();
    match budget {
        Some(budget) => format!("{tokens} tokens for {model}, {how}; compacted above {}", budget.room()),
        None => format!("{tokens} tokens for {model}, {how}; how many it takes is not known"),
    }
}

async fn fork(
    engine: &Engine,
    id: &ConversationId,
    (at, listed): (Option<MessageId>, Listed),
    everywhere: &Everywhere,
    output: &mut Output,
) -> Result<(), Failure> {
    let created = engine.fork(id, at, NewConversation::default()).await?;
    if listed.json {
        output.json_pretty(&conversation(&created));
        return Ok(());
    }
    output.line(created.id.as_str());
    say(&format!("go on with it: turnwright chat --conversation {}{}", created.id, flags(everywhere)));
    Ok(())
}

async fn put_in_summary(
    engine: &Engine,
    id: &ConversationId,
    (model, listed): (Option<ModelRef>, Listed),
    everywhere: &Everywhere,
    output: &mut Output,
) -> Result<(), Failure> {
    let made = engine.compact(id, model).await?;
    if listed.json {
        output.json_pretty(&summary(&made));
        return Ok(());
    }
    output.line(&made.summary);
    match &made.model {
        Some(model) => {
            let flags = flags(everywhere);
            say(&format!("by {model}; `turnwright conversations compact {id} --undo{flags}` takes it back"));
        }
        None => say("note: put together without the model, which gave no summary"),
    }
    Ok(())
}

async fn take_summary_back(engine: &Engine, id: &ConversationId, listed: Listed, output: &mut Output) -> Result<(), Failure> {
    let shown = engine.uncompact(id).await?;
    if listed.json {
        output.json_pretty(&shown.as_ref().map(summary));
        return Ok(());
    }
    match shown {
        None => say(&format!("models are shown all of {id} as it was said")),
        Some(_) => say(&format!("models are shown the summary of {id} that was made before")),
    }
    Ok(())
}

fn summary(made: &Compaction) -> serde_json::Value {
    json!({"seq": made.seq, "through": made.through, "summary": made.summary, "model": made.model})
}

async fn stop(engine: &Engine, id: &ConversationId) -> Result<(), Failure> {
    let turn = engine.cancel(id, None).await?;
    match engine.wait(id, turn).await? {
        TurnState::Ended(_) => say(&format!("{turn} of {id} is over")),
        TurnState::Parked => {
            say(&format!("{turn} of {id} is told to stop; `turnwright approvals list` shows what it waits for"));
        }
    }
    Ok(())
}

fn print(message: &Message, output: &mut Output) {
    for line in lines(message) {
        output.line(&line);
    }
}

/// A message for people.
fn lines(message: &Message) -> Vec<String> {
    let content = message.content.as_deref().unwrap_or_default();
    match message.role {
        Role::User => vec![format!("user: {content}")],
        Role::System => vec![format!("system: {content}")],
        Role::Assistant => {
            let text = (!content.is_empty()).then(|| format!("assistant: {content}"));
            let refusal = message.refusal.as_ref().map(|words| format!("assistant (refused): {words}"));
            let calls = message.tool_calls.iter().flatten().map(|call| {
                let arguments = first_line(&compact(&call.function.arguments), MAX_RESULT);
                format!("assistant calls {} {arguments}", call.function.name)
            });
            let end = match message.finish_reason.as_deref() {
                Some("length") => Some("assistant ends here: the model's limit for one answer is reached".to_owned()),
                Some("content_filter") if message.refusal.is_none() => {
                    Some("assistant ends here: the model or its provider declined to answer".to_owned())
                }
                _ => None,
            };
            text.into_iter().chain(refusal).chain(calls).chain(end).collect()
        }
        Role::Tool => {
            let name = message.name.as_deref().unwrap_or_default();
            let failed = if message.is_error == Some(true) { " failed" } else { "" };
            let changed = message.changed_arguments.as_ref().map(|changed| {
                let arguments = first_line(&compact(changed), MAX_RESULT);
                format!("{name} ran with arguments that a person changed: {arguments}")
            });
            changed.into_iter().chain([format!("{name}{failed}: {}", cut(content))]).collect()
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_RESULT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn conversation(conversation: &Conversation) -> serde_json::Value {
    let overlay = &conversation.overlay;
    json!({
        "id": conversation.id,
        "title": conversation.title,
        "model": overlay.model,
        "system_prompt": overlay.system_prompt,
        "settings": overlay,
        "tools": overlay.tools,
        "pinned": overlay.pinned == Some(true),
        "created_at": timestamp(conversation.created_at_ms),
        "updated_at": timestamp(conversation.updated_at_ms),
    })
}

fn turn(journal: &Journal) -> serde_json::Value {
    let Some(turn) = journal.turn() else { return serde_json::Value::Null };
    let status = match turn.ended() {
        Some(status) => status.as_contract(),
        None if turn.is_parked() => "suspended",
        None => "running",
    };
    json!({"id": turn.id(), "status": status})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(message: &serde_json::Value) -> Vec<String> {
        lines(&serde_json::from_value(message.clone()).unwrap())
    }

    #[test]
    fn a_transcript_says_what_was_refused_and_where_an_answer_was_cut() {
        let message = |content: Option<&str>, finish_reason: &str, refusal: Option<&str>| {
            json!({"id": "msg_4", "role": "assistant", "timestamp": "2025-01-11T19:00:00.000Z",
                   "content": content, "finish_reason": finish_reason, "refusal": refusal})
        };
        assert_eq!(shown(&message(Some("1. stop"), "stop", None)), ["assistant: 1. stop"]);
        assert_eq!(
            shown(&message(Some("1. stop"), "length", None)),
            ["assistant: 1. stop", "assistant ends here: the model's limit for one answer is reached"]
        );
        assert_eq!(shown(&message(None, "content_filter", Some("I will not."))), ["assistant (refused): I will not."]);
        assert_eq!(
            shown(&message(None, "content_filter", None)),
            ["assistant ends here: the model or its provider declined to answer"]
        );
    }
}
