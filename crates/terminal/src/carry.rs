//! A turn carried to its end with a person who decides what waits.

use turnwright_core::{CallId, ConversationId, Entry, Journal, Verdict};
use turnwright_engine::{Choice, Engine, EngineError, WaitingCall};

use crate::Renderer;
use crate::approval::{Reply, choices, parse_reply, question, why};
use crate::clean::clean_line;
use crate::editor::{History, Line, LineEditor};
use crate::follow::{Follow, Interrupt, Interrupts, Settled};
use crate::screen::{Screen, Teller};
use crate::session::Told;

/// How far a turn was carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Where it came to rest.
    pub settled: Settled,
    /// The wish to stop that came on the way, if one did.
    pub interrupt: Option<Interrupt>,
}

/// Follows a turn and tells of it until it is over, or parked where there is no `editor` to ask with or whoever is asked
/// wants to decide later.
///
/// # Errors
/// As [`Engine::watch`], [`Engine::wait`] and [`Engine::decide`].
pub async fn carry(
    engine: &Engine,
    (conversation, told): (&ConversationId, Told),
    teller: &mut Teller<impl Screen>,
    interrupts: &mut impl Interrupts,
    mut editor: Option<&mut LineEditor>,
) -> Result<Carried, EngineError> {
    let mut follow = Follow::begin(engine, conversation, told.after).await?;
    know_calls(&engine.journal(conversation).await?, told, &mut teller.renderer);
    loop {
        let settled = follow.until_settled(told.turn, interrupts, teller).await?;
        let is_parked = settled == Settled::Parked;
        let asked = match editor.as_deref_mut().filter(|_| is_parked) {
            Some(editor) => ask_all(engine, conversation, editor, teller, interrupts).await?,
            None => Asked::Later,
        };
        match asked {
            Asked::Decided => drop(engine.resume(conversation).await?),
            Asked::Stop(interrupt) => {
                follow.stop(told.turn, interrupt.unwrap_or(Interrupt::Interrupt)).await?;
                if interrupt.is_none() {
                    let settled = follow.until_settled(told.turn, interrupts, teller).await?;
                    return Ok(Carried { settled, interrupt: None });
                }
            }
            Asked::Later => return Ok(Carried { settled, interrupt: follow.interrupt() }),
        }
    }
}

/// The calls that were asked for before the telling begins: what becomes of them is told by their names.
fn know_calls(journal: &Journal, told: Told, renderer: &mut Renderer) {
    let known = journal.turn_entries(told.turn).take_while(|stored| told.after.is_some_and(|after| stored.seq <= after));
    let newest = known.filter_map(|stored| match &*stored.entry {
        Entry::Assistant(message) => Some((stored.seq, message)),
        _ => None,
    });
    if let Some((seq, message)) = newest.last() {
        for (call, index) in message.calls().zip(0_u32..) {
            renderer.know(CallId { message: seq, index }, &call.name, &call.arguments);
        }
    }
}

/// What came of asking.
enum Asked {
    /// The turn can go on.
    Decided,
    /// It stays parked.
    Later,
    /// It is to stop; with the wish that came from outside, if one did.
    Stop(Option<Interrupt>),
}

async fn ask_all(
    engine: &Engine,
    conversation: &ConversationId,
    editor: &mut LineEditor,
    teller: &mut Teller<impl Screen>,
    interrupts: &mut impl Interrupts,
) -> Result<Asked, EngineError> {
    let waiting = engine.waiting(conversation).await?;
    if waiting.is_empty() {
        return Ok(Asked::Later);
    }
    for call in waiting {
        match ask(engine, &call, editor, teller, interrupts).await? {
            Asked::Decided => {}
            other => return Ok(other),
        }
    }
    Ok(Asked::Decided)
}

async fn ask(
    engine: &Engine,
    call: &WaitingCall,
    editor: &mut LineEditor,
    teller: &mut Teller<impl Screen>,
    interrupts: &mut impl Interrupts,
) -> Result<Asked, EngineError> {
    let look = teller.renderer.look();
    teller.say(&question(call, look)).await;
    loop {
        let line = tokio::select! {
            line = editor.read(choices(call.reason), "", History::NotKept) => line,
            // Ctrl-C is a key here: a signal comes from elsewhere, and the line that is read cannot be taken up again.
            _ = interrupts.next() => return Ok(Asked::Stop(Some(Interrupt::Terminate))),
        };
        let line = match line {
            Line::Text(line) => line,
            Line::Interrupted => return Ok(Asked::Stop(Some(Interrupt::Interrupt))),
            Line::End => return Ok(Asked::Later),
            Line::Failed(reason) => {
                teller.say(&format!("error: the terminal cannot be read: {reason}")).await;
                return Ok(Asked::Later);
            }
        };
        let choice = |verdict| Choice { verdict, arguments: None, reason: None };
        let choice = match parse_reply(call.reason, &line) {
            Reply::Allow => choice(Verdict::Allow),
            Reply::Deny(reason) => Choice { reason, ..choice(Verdict::Deny) },
            Reply::Happened => choice(Verdict::Happened),
            Reply::RunAgain => choice(Verdict::RunAgain),
            Reply::Skip => choice(Verdict::Skip),
            Reply::Edit => match editor.read("arguments: ", &call.arguments, History::NotKept).await {
                Line::Text(edited) => {
                    let arguments = Some(edited).filter(|edited| *edited != call.arguments);
                    Choice { arguments, ..choice(Verdict::Allow) }
                }
                Line::Interrupted | Line::End | Line::Failed(_) => continue,
            },
            Reply::Why => {
                let journal = engine.journal(&call.conversation).await?;
                let tool = journal.definition(&call.name).map(|tool| &**tool);
                teller.say(&why(call, tool)).await;
                continue;
            }
            Reply::Later => return Ok(Asked::Later),
            Reply::Stop => return Ok(Asked::Stop(None)),
            Reply::Unclear => {
                teller.say("one of the letters in brackets, or the word").await;
                continue;
            }
        };
        match engine.decide(&call.conversation, call.call, choice).await {
            Ok(()) => return Ok(Asked::Decided),
            Err(EngineError::Invalid { what }) => teller.say(&format!("error: {}", clean_line(&what))).await,
            Err(EngineError::NotWaiting { why, .. }) => {
                teller.say(&format!("note: {why}")).await;
                return Ok(Asked::Decided);
            }
            Err(error) => return Err(error),
        }
    }
}
