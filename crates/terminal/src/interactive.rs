//! The chat: reads a line, brings its turn to an end, reads the next.

use turnwright_core::{ContentBlock, ConversationId, ModelRef};
use turnwright_engine::{Compaction, EngineError};

use crate::carry::carry;
use crate::clean::{clean_line, clean_text};
use crate::command::{Command, HELP, message, parse_command};
use crate::editor::{Line, LineEditor, Wanted};
use crate::ending::ending;
use crate::follow::{Interrupt, Interrupts, Settled};
use crate::screen::{Screen, Teller};
use crate::session::{Session, Told};
use crate::tool_line::short;

/// The most characters of a tool's description in a list.
const MAX_DESCRIPTION: usize = 80;

/// Why the chat is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// The person wants to.
    Quit,
    /// By Ctrl-C, or since the process is to end.
    Interrupted,
    /// The terminal cannot be read.
    Failed,
}

/// Whether the chat goes on.
enum Next {
    GoOn,
    Leave(Leave),
}

/// Chats until the person leaves. What `attached` holds goes with the first message. An open turn of the conversation is
/// taken up first.
///
/// # Errors
/// Where the store or the engine does not go on; what only one message is wrong with is said and asked again.
pub async fn interactive(
    session: &mut Session,
    mut attached: Vec<ContentBlock>,
    teller: &mut Teller<impl Screen>,
    interrupts: &mut impl Interrupts,
) -> Result<Leave, EngineError> {
    let mut editor = LineEditor::default();
    teller.say(&greeting(session).await?).await;
    if let Some((id, told)) = session.take_up().await? {
        teller.say("note: going on with the open turn").await;
        if let Next::Leave(leave) = turn(session, &id, told, teller, interrupts, &mut editor).await? {
            return Ok(leave);
        }
    }
    let mut has_interrupted = false;
    loop {
        let line = tokio::select! {
            line = editor.read("> ", "", Wanted::Message) => line,
            _ = interrupts.next() => return Ok(Leave::Interrupted),
        };
        let line = match line {
            Line::Text(line) => line,
            Line::Interrupted if has_interrupted => return Ok(Leave::Interrupted),
            Line::Interrupted => {
                has_interrupted = true;
                teller.say("once more leaves").await;
                continue;
            }
            Line::End => return Ok(Leave::Quit),
            Line::Failed(reason) => {
                teller.say(&format!("error: the terminal cannot be read: {reason}")).await;
                return Ok(Leave::Failed);
            }
        };
        has_interrupted = false;
        let next = match parse_command(&line) {
            Some(Command::Quit) => return Ok(Leave::Quit),
            Some(Command::Stop) => stop(session, teller, interrupts, &mut editor).await?,
            Some(Command::Retry) => match session.retry().await {
                Ok((id, told)) => turn(session, &id, told, teller, interrupts, &mut editor).await?,
                Err(
                    error @ (EngineError::NoOpenTurn { .. }
                    | EngineError::TurnOpen { .. }
                    | EngineError::NotFound { .. }
                    | EngineError::Invalid { .. }
                    | EngineError::OtherSettings { .. }
                    | EngineError::OtherFolder { .. }),
                ) => {
                    teller.say(&format!("note: {}", clean_line(&error.to_string()))).await;
                    Next::GoOn
                }
                Err(error) => return Err(error),
            },
            Some(Command::Compact) => {
                compact(session, teller, interrupts).await?;
                Next::GoOn
            }
            Some(command) => {
                let text = answer(session, command).await?;
                teller.say(&text).await;
                Next::GoOn
            }
            None if line.trim().is_empty() => Next::GoOn,
            None => {
                let content = [ContentBlock::text(message(line))].into_iter().chain(attached.iter().cloned()).collect();
                match session.say(content).await {
                    Ok((id, told)) => {
                        // They stay for the next message where this one was refused.
                        attached.clear();
                        turn(session, &id, told, teller, interrupts, &mut editor).await?
                    }
                    Err(
                        error @ (EngineError::Invalid { .. }
                        | EngineError::OtherSettings { .. }
                        | EngineError::OtherFolder { .. }),
                    ) => {
                        teller.say(&format!("error: {}", clean_line(&error.to_string()))).await;
                        Next::GoOn
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        if let Next::Leave(leave) = next {
            return Ok(leave);
        }
    }
}

async fn greeting(session: &Session) -> Result<String, EngineError> {
    let place = match session.id().filter(|_| session.is_there()) {
        Some(id) => match session.engine().conversation(id).await?.title {
            Some(title) => format!("{id}: {}", clean_line(&title)),
            None => id.to_string(),
        },
        None => "a new conversation".to_owned(),
    };
    Ok(format!("{} answers in {place}; /help says what there is", clean_line(&model(session).await?.to_string())))
}

/// The model that answers next.
async fn model(session: &Session) -> Result<ModelRef, EngineError> {
    let own = match session.id().filter(|_| session.is_there()) {
        Some(id) => session.engine().conversation(id).await?.overlay,
        None => turnwright_engine::SettingsOverlay::default(),
    };
    Ok(own.merged(&session.overlay).over(&session.engine().defaults()).model)
}

async fn turn(
    session: &Session,
    id: &ConversationId,
    told: Told,
    teller: &mut Teller<impl Screen>,
    interrupts: &mut impl Interrupts,
    editor: &mut LineEditor,
) -> Result<Next, EngineError> {
    let engine = session.engine();
    let carried = carry(engine, (id, told), teller, interrupts, Some(editor)).await?;
    match carried.settled {
        Settled::Left | Settled::Elsewhere => return Ok(Next::Leave(Leave::Interrupted)),
        Settled::Parked => teller.say("note: the turn waits; the next message asks again, /stop ends it").await,
        Settled::Ended(status) => {
            let journal = engine.journal(id).await?;
            let failure = journal.turn().filter(|turn| turn.id() == told.turn).and_then(|turn| turn.failure());
            if let Some(ending) = ending(&status, failure) {
                teller.say(&format!("note: {}", clean_text(&ending.text))).await;
                if let Some(hint) = ending.hint {
                    teller.say(&format!("hint: {hint}")).await;
                }
            }
        }
    }
    let must_end = carried.interrupt == Some(Interrupt::Terminate);
    Ok(if must_end { Next::Leave(Leave::Interrupted) } else { Next::GoOn })
}

/// Stops the turn that waits, or that another process drives.
async fn stop(
    session: &Session,
    teller: &mut Teller<impl Screen>,
    interrupts: &mut impl Interrupts,
    editor: &mut LineEditor,
) -> Result<Next, EngineError> {
    let Some(id) = session.id().filter(|_| session.is_there()) else {
        teller.say("note: no turn is open").await;
        return Ok(Next::GoOn);
    };
    let after = session.engine().journal(id).await?.last_seq();
    match session.engine().cancel(id, None).await {
        Ok(stopped) => turn(session, id, Told { turn: stopped, after }, teller, interrupts, editor).await,
        Err(EngineError::NoOpenTurn { why }) => {
            teller.say(&format!("note: {why}")).await;
            Ok(Next::GoOn)
        }
        Err(error) => Err(error),
    }
}

/// Puts a summary in the place of what was said. Who does not want to wait for it leaves it to itself.
async fn compact(
    session: &Session,
    teller: &mut Teller<impl Screen>,
    interrupts: &mut impl Interrupts,
) -> Result<(), EngineError> {
    let Some(id) = session.id().filter(|_| session.is_there()) else {
        teller.say("note: nothing was said yet").await;
        return Ok(());
    };
    teller.say("note: a summary is made").await;
    let made = tokio::select! {
        made = session.engine().compact(id, session.overlay.model.clone()) => made,
        _ = interrupts.next() => {
            teller.say("note: not waited for; `/compact undo` takes it back once it is there").await;
            return Ok(());
        }
    };
    let text = match made {
        Ok(made) => compacted(&made),
        Err(EngineError::Invalid { what }) => format!("note: {}", clean_line(&what)),
        Err(error) => return Err(error),
    };
    teller.say(&text).await;
    Ok(())
}

fn compacted(made: &Compaction) -> String {
    let by = match &made.model {
        Some(model) => format!("by {}", clean_line(&model.to_string())),
        None => "put together without the model, which gave none".to_owned(),
    };
    let characters = made.summary.chars().count();
    format!("note: the model is shown a summary of {characters} characters from here on, {by}; `/compact undo` takes it back")
}

async fn undo_compact(session: &Session) -> Result<String, EngineError> {
    let Some(id) = session.id().filter(|_| session.is_there()) else { return Ok("note: nothing was said yet".to_owned()) };
    Ok(match session.engine().uncompact(id).await {
        Ok(None) => "note: the model is shown all as it was said".to_owned(),
        Ok(Some(_)) => "note: the model is shown the summary that was made before".to_owned(),
        Err(EngineError::Invalid { what }) => format!("note: {}", clean_line(&what)),
        Err(error) => return Err(error),
    })
}

/// What a command says.
async fn answer(session: &mut Session, command: Command) -> Result<String, EngineError> {
    Ok(match command {
        Command::Help | Command::Quit | Command::Stop | Command::Retry | Command::Compact => HELP.to_owned(),
        Command::UndoCompact => undo_compact(session).await?,
        Command::Misused(word) => {
            let takes = if word == "/compact" { "nothing or `undo`" } else { "nothing" };
            format!("error: {word} takes {takes} after it; with one more / before it it is a message")
        }
        Command::Unknown(word) => {
            let word = clean_line(&word);
            format!("error: there is no command {word}; /help lists them, and with one more / before it it is a message")
        }
        Command::Model(None) => model(session).await?.to_string(),
        Command::Model(Some(name)) => choose(session, &name),
        Command::Tools => {
            let tools = session.engine().tools().await;
            let line = |tool: &std::sync::Arc<turnwright_core::ToolDefinition>| {
                let first = tool.description.lines().next().unwrap_or_default();
                format!("{}  {}", clean_line(&tool.name), short(first, MAX_DESCRIPTION))
            };
            if tools.is_empty() {
                "no tools are offered".to_owned()
            } else {
                tools.iter().map(line).collect::<Vec<_>>().join("\n")
            }
        }
    })
}

fn choose(session: &mut Session, name: &str) -> String {
    let model: ModelRef = match name.parse() {
        Ok(model) => model,
        Err(error) => return format!("error: {error}\nhint: `turnwright models list` shows the models that there are"),
    };
    match session.engine().providers().get(model.provider()) {
        Ok(_) => {
            let text = format!("{} answers from here on", clean_line(name));
            session.overlay.model = Some(model);
            text
        }
        Err(failure) => {
            let why = clean_line(&failure.message).into_owned();
            format!("error: {why}\nhint: `turnwright models list` shows the models that there are")
        }
    }
}
