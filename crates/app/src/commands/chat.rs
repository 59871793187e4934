//! `turnwright chat`: one answer, or a chat on a terminal.

use std::io::{self, IsTerminal};

use turnwright_core::{ContentBlock, ModelRef};
use turnwright_engine::knowledge::Beside;
use turnwright_engine::{Engine, SettingsOverlay};
use turnwright_host::{Host, Needs, Overrides};
use turnwright_terminal::{Interrupts, Leave, LineEditor, Look, Renderer, Session, Teller, Told, Which, interactive};

use super::answer::{Printer, answer, look};
use super::attach::{Document, attach, documents};
use super::message::message;
use crate::cli::{Chat, Everywhere, Form};
use crate::exit::{Exit, Failure};
use crate::flags::flags;
use crate::opened::{self, QUIET};
use crate::output::{Output, say};
use crate::signals::Signals;

/// The model that answers where no provider is there, `PRACTICE/PRACTICE`.
const PRACTICE: &str = "practice";

/// What is wanted of the conversation.
enum Wanted {
    /// A chat on the terminal.
    Chat,
    /// An answer to this message; where it is empty, to what is open.
    Answer(String),
    /// The last turn again.
    Retry,
}

/// What the command line asks for.
struct Asked {
    wanted: Wanted,
    attached: Vec<ContentBlock>,
    documents: Vec<Document>,
    which: Which,
    overlay: SettingsOverlay,
    form: Form,
    /// Whether a person can be asked about calls.
    can_ask: bool,
}

pub(super) async fn run(everywhere: &Everywhere, chat: Chat, output: &mut Output) -> Result<Exit, Failure> {
    let asked = asked(chat)?;
    let model = asked.overlay.model.as_ref();
    let overrides = Overrides { model: model.map(ToString::to_string), ..opened::overrides(everywhere) };
    let opened = opened::open(&overrides, QUIET)?.of(everywhere);
    if let Some(missing) = model.and_then(|model| opened.loaded.missing_provider(model.provider())) {
        return Err(Failure::usage(missing).hint("`turnwright models list` shows the models that there are"));
    }
    let look = look(output, &opened.environment);
    let mut signals = Signals::new().map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
    let host = tokio::select! {
        host = opened.start(Needs::Everything) => host?,
        _ = signals.next() => return Ok(Exit::Cancelled),
    };
    let result = talk(&host, asked, Printing { everywhere, output, look }, &mut signals).await;
    host.shutdown().await;
    result
}

fn asked(chat: Chat) -> Result<Asked, Failure> {
    let is_chat = chat.prompt.is_none() && !chat.retry && io::stdin().is_terminal();
    if is_chat && chat.output != Form::Text {
        let text = "--output json and --output events answer one message and there is none";
        return Err(Failure::usage(text).hint("give a PROMPT, or pipe it in"));
    }
    let attached = chat.attach.iter().map(|path| attach(path)).collect::<Result<Vec<_>, _>>()?;
    let documents = documents(&chat.document)?;
    let overlay = SettingsOverlay {
        model: chat.model,
        approve: chat.approve.map(Into::into),
        max_steps: chat.max_steps,
        system_prompt: chat.system,
        tools: (!chat.tools.is_empty()).then_some(chat.tools),
        ..SettingsOverlay::default()
    };
    if let Some(problem) = overlay.problem() {
        return Err(Failure::usage(problem));
    }
    let which = match (chat.conversation, chat.continue_) {
        (Some(id), _) => Which::Named(id),
        (None, true) => Which::Latest,
        (None, false) => Which::New,
    };
    let wanted = match (chat.retry, is_chat) {
        (true, _) if which == Which::New => {
            return Err(
                Failure::usage("--retry is for a conversation that there is").hint("add --conversation ID or --continue")
            );
        }
        (true, _) => Wanted::Retry,
        (false, true) => Wanted::Chat,
        (false, false) => Wanted::Answer(message(chat.prompt)?),
    };
    if matches!(&wanted, Wanted::Answer(message) if message.trim().is_empty()) && attached.is_empty() && which == Which::New {
        return Err(Failure::usage("the message is empty").hint("give a PROMPT, or pipe it in"));
    }
    let can_ask = chat.output == Form::Text && io::stdin().is_terminal();
    Ok(Asked { wanted, attached, documents, which, overlay, form: chat.output, can_ask })
}

struct Printing<'a> {
    everywhere: &'a Everywhere,
    output: &'a mut Output,
    look: Look,
}

async fn talk(host: &Host, asked: Asked, printing: Printing<'_>, signals: &mut Signals) -> Result<Exit, Failure> {
    let Asked { wanted, attached, documents, which, overlay, form, can_ask } = asked;
    let Printing { everywhere, output, look } = printing;
    let engine = host.engine();
    if !can_ask {
        engine.leave_unattended();
    }
    let globs = overlay.tools.clone().unwrap_or_default();
    let mut session = Session::open(engine, which, overlay).await?;
    say_practice(host, &session).await?;
    let is_told = say_idle_globs(engine, &globs);
    if !documents.is_empty() {
        put_beside(host, &mut session, documents).await?;
    }
    let (id, told) = match wanted {
        Wanted::Chat => {
            let mut teller = Teller { screen: &mut *output, renderer: Renderer::new(look), flags: flags(everywhere) };
            let leave = interactive(&mut session, attached, &mut teller, signals).await?;
            return Ok(match leave {
                Leave::Quit => Exit::Done,
                Leave::Interrupted => Exit::Cancelled,
                Leave::Failed => Exit::Failed,
            });
        }
        Wanted::Retry => session.retry().await?,
        Wanted::Answer(message) => {
            let text = (!message.trim().is_empty()).then(|| ContentBlock::text(message));
            let content: Vec<ContentBlock> = text.into_iter().chain(attached).collect();
            if content.is_empty() { go_on(&session).await? } else { session.say(content).await? }
        }
    };
    let mut editor = can_ask.then(LineEditor::default);
    let answered = answer(engine, &id, told, Printer { everywhere, form, output, look }, signals, editor.as_mut()).await;
    if !is_told {
        // The turn has waited for what was starting.
        say_idle_globs(engine, &globs);
    }
    answered
}

/// Says which of `--tools` leave no tool; false where that is not known yet.
fn say_idle_globs(engine: &Engine, globs: &[String]) -> bool {
    let Some(idle) = engine.globs_without_tools(globs) else { return false };
    for glob in idle {
        say(&format!("warning: no tool matches `{glob}`"));
    }
    true
}

/// Puts documents beside the conversation, all or none where it is a new one.
async fn put_beside(host: &Host, session: &mut Session, documents: Vec<Document>) -> Result<(), Failure> {
    let off = || Failure::usage("documents are not looked up: `enabled = false` stands below `[knowledge]`");
    let knowledge = host.knowledge().ok_or_else(off)?;
    let was_there = session.is_there();
    let id = session.begin().await?;
    let created_at_ms = session.engine().conversation(&id).await?.created_at_ms;
    let beside = Beside { conversation: id.clone(), created_at_ms };
    for Document { name, bytes } in documents {
        let put = knowledge.attach(&beside, &name, bytes).await.map_err(|error| Failure::failed(error.to_string()));
        let refused = match put {
            Ok(Some(Ok(_))) => {
                say(&format!("note: `{name}` is looked up for each message of this conversation"));
                continue;
            }
            Ok(Some(Err(why))) => Failure::usage(format!("`{name}` cannot be looked up: {why}")),
            Ok(None) => Failure::failed(format!("conversation `{id}` is not there any more")),
            Err(failure) => failure,
        };
        if !was_there {
            session.engine().delete(&id).await?;
        }
        return Err(refused);
    }
    Ok(())
}

/// The open turn of the conversation, or how its last one ended.
async fn go_on(session: &Session) -> Result<(turnwright_core::ConversationId, Told), Failure> {
    if let Some(open) = session.take_up().await? {
        return Ok(open);
    }
    let Some(id) = session.id().filter(|_| session.is_there()) else {
        let name = session.id().map(ToString::to_string).unwrap_or_default();
        return Err(Failure::usage(format!("there is no conversation `{name}` to go on with and the message is empty"))
            .hint("`turnwright conversations list` shows those that there are"));
    };
    match session.engine().journal(id).await?.turn() {
        Some(turn) => {
            say("note: no turn is open; this is how the last one ended");
            Ok((id.clone(), Told::from_its_beginning(turn.id())))
        }
        None => Err(Failure::usage(format!("nothing was said in `{id}` yet and the message is empty"))),
    }
}

/// Says who answers where nobody chose and no provider is there.
async fn say_practice(host: &Host, session: &Session) -> Result<(), Failure> {
    let is_chosen = session.overlay.model.is_some() || host.config().model.is_some();
    if is_chosen || *host.default_model() != ModelRef::new(PRACTICE, PRACTICE) {
        return Ok(());
    }
    if let Some(id) = session.id().filter(|_| session.is_there())
        && host.engine().conversation(id).await?.overlay.model.is_some()
    {
        return Ok(());
    }
    say("note: no model provider is configured, so the practice model answers: word matching, no language model");
    say("hint: set OPENAI_API_KEY or another provider's key, or write [providers.NAME] into turnwright.toml");
    Ok(())
}
