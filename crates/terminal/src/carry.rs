//! A turn carried to its end with a person who decides what waits.

use std::collections::HashSet;

use turnwright_core::{CallId, ConversationId, ElicitationId, Entry, Hold, Journal, Verdict};
use turnwright_engine::{Choice, Engine, EngineError, Remember, WaitingCall};

use crate::Renderer;
use crate::answer::{answer, held};
use crate::approval::{Reply, choices, parse_reply, question, why};
use crate::clean::{clean_json, clean_line};
use crate::editor::{Line, LineEditor, Wanted};
use crate::follow::{Follow, Interrupt, Interrupts, Settled, Stop};
use crate::screen::{Screen, Teller};
use crate::session::Told;

/// Before what a person chooses.
const CHOICE: &str = "your choice: ";

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
    let mut later = HashSet::new();
    loop {
        let settled = match &editor {
            Some(_) => follow.until_settled_or_asked(told.turn, interrupts, teller).await?,
            None => Some(follow.until_settled(told.turn, interrupts, teller).await?),
        };
        let is_for_people = settled.is_none() || settled == Some(Settled::Parked);
        let asked = match editor.as_deref_mut().filter(|_| is_for_people) {
            Some(editor) => {
                let mut person = Person { engine, conversation, editor, teller, interrupts };
                ask_all(&mut person, &mut later).await?
            }
            None => Asked::Later,
        };
        let Some(settled) = settled else {
            // The call goes on, also where nobody answers it here.
            match asked {
                Asked::Decided | Asked::Later => {}
                Asked::Stop(interrupt) => {
                    let settled = match follow.stop(told.turn, interrupt.unwrap_or(Interrupt::Interrupt)).await? {
                        Stop::Asked => follow.until_settled(told.turn, interrupts, teller).await?,
                        Stop::Elsewhere => Settled::Elsewhere,
                    };
                    return Ok(Carried { settled, interrupt });
                }
            }
            continue;
        };
        match asked {
            Asked::Decided => drop(engine.resume(conversation).await?),
            Asked::Stop(interrupt) => {
                match follow.stop(told.turn, interrupt.unwrap_or(Interrupt::Interrupt)).await? {
                    Stop::Asked => {}
                    Stop::Elsewhere => return Ok(Carried { settled: Settled::Elsewhere, interrupt }),
                }
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
pub(crate) enum Asked {
    /// The turn can go on.
    Decided,
    /// It stays parked.
    Later,
    /// It is to stop; with the wish that came from outside, if one did.
    Stop(Option<Interrupt>),
}

/// Whoever is asked, and how.
pub(crate) struct Person<'a, S, I> {
    pub(crate) engine: &'a Engine,
    pub(crate) conversation: &'a ConversationId,
    pub(crate) editor: &'a mut LineEditor,
    pub(crate) teller: &'a mut Teller<S>,
    pub(crate) interrupts: &'a mut I,
}

impl<S: Screen, I: Interrupts> Person<'_, S, I> {
    /// What they choose of these, which are said before: a prompt that is wider than the window, and is drawn anew as that changes, wipes
    /// out the line above it.
    pub(crate) async fn chooses(&mut self, choices: &str) -> Result<String, Asked> {
        self.teller.say(choices).await;
        self.types(CHOICE, Wanted::Decision).await
    }

    /// What they type; `Err` where they do not go on with this.
    pub(crate) async fn types(&mut self, prompt: &str, wanted: Wanted) -> Result<String, Asked> {
        self.changes(prompt, "", wanted).await
    }

    /// What they make of what stands there.
    async fn changes(&mut self, prompt: &str, initial: &str, wanted: Wanted) -> Result<String, Asked> {
        let line = tokio::select! {
            line = self.editor.read(prompt, initial, wanted) => line,
            // Ctrl-C is a key here: a signal comes from elsewhere, and the line that is read cannot be taken up again.
            _ = self.interrupts.next() => return Err(Asked::Stop(Some(Interrupt::Terminate))),
        };
        match line {
            Line::Text(line) => Ok(line),
            Line::Interrupted => Err(Asked::Stop(Some(Interrupt::Interrupt))),
            Line::End => Err(Asked::Later),
            Line::Failed(reason) => {
                self.teller.say(&format!("error: the terminal cannot be read: {reason}")).await;
                Err(Asked::Later)
            }
        }
    }
}

/// Asks about all that waits. Questions that somebody wants to answer later are remembered and not asked again.
async fn ask_all(
    person: &mut Person<'_, impl Screen, impl Interrupts>,
    later: &mut HashSet<ElicitationId>,
) -> Result<Asked, EngineError> {
    let calls = person.engine.waiting(person.conversation).await?;
    let mut questions = person.engine.questions(person.conversation).await?;
    questions.retain(|question| !later.contains(&question.id));
    if calls.is_empty() && questions.is_empty() {
        return Ok(Asked::Later);
    }
    for question in questions {
        match answer(person, &question).await? {
            Asked::Decided => {}
            Asked::Later if matches!(question.hold, Hold::Connection { .. }) => {
                let flags = person.teller.flags.clone();
                person.teller.say(&held(&question, person.engine.clock().now_ms(), &flags)).await;
                later.insert(question.id);
            }
            other => return Ok(other),
        }
    }
    let mut decided = Vec::new();
    for call in calls {
        if decided.contains(&call.call) {
            continue;
        }
        match ask(person, &call, &mut decided).await? {
            Asked::Decided => {}
            other => return Ok(other),
        }
    }
    Ok(Asked::Decided)
}

/// Asks about one; what else is decided by the answer goes into `decided`.
async fn ask(
    person: &mut Person<'_, impl Screen, impl Interrupts>,
    call: &WaitingCall,
    decided: &mut Vec<CallId>,
) -> Result<Asked, EngineError> {
    let look = person.teller.renderer.look();
    person.teller.say(&question(call, look)).await;
    // What was edited and does not fit is edited again.
    let as_they_are = clean_json(&call.arguments);
    let mut arguments_typed = as_they_are.clone();
    loop {
        let line = match person.chooses(choices(call.reason)).await {
            Ok(line) => line,
            Err(asked) => return Ok(asked),
        };
        let choice = |verdict| Choice { verdict, arguments: None, reason: None };
        let mut remember = None;
        let choice = match parse_reply(call.reason, &line) {
            Reply::AllowFor(scope) if call.always.is_some() => {
                remember = Some(Remember::proposed(scope));
                choice(Verdict::Allow)
            }
            Reply::Allow => choice(Verdict::Allow),
            Reply::Deny(reason) => Choice { reason, ..choice(Verdict::Deny) },
            Reply::Happened => choice(Verdict::Happened),
            Reply::RunAgain => choice(Verdict::RunAgain),
            Reply::Skip => choice(Verdict::Skip),
            Reply::Edit => match person.changes("arguments: ", &arguments_typed, Wanted::Detail).await {
                Ok(edited) => {
                    arguments_typed.clone_from(&edited);
                    let arguments = Some(edited).filter(|edited| *edited != as_they_are);
                    Choice { arguments, ..choice(Verdict::Allow) }
                }
                Err(asked @ Asked::Stop(Some(Interrupt::Terminate))) => return Ok(asked),
                Err(Asked::Decided | Asked::Later | Asked::Stop(_)) => continue,
            },
            Reply::Why => {
                let journal = person.engine.journal(&call.conversation).await?;
                let tool = journal.definition(&call.name).map(|tool| &**tool);
                let flags = person.teller.flags.clone();
                person.teller.say(&why(call, tool, &flags)).await;
                continue;
            }
            Reply::Later => return Ok(Asked::Later),
            Reply::Stop => return Ok(Asked::Stop(None)),
            Reply::AllowFor(_) | Reply::Unclear => {
                person.teller.say("one of the letters in brackets, or the word").await;
                continue;
            }
        };
        match person.engine.decide_and_remember(&call.conversation, call.approval, choice, remember).await {
            Ok(done) => {
                if let Some(rule) = &done.remembered {
                    let rule = format!("{}, for {}: {}", rule.id, rule.reach.scope(), rule.rule);
                    person.teller.say(&format!("note: {} decides the like from now on", clean_line(&rule))).await;
                }
                decided.extend(done.also.iter().map(|(call, _)| *call));
                return Ok(Asked::Decided);
            }
            Err(EngineError::Invalid { what }) => person.teller.say(&format!("error: {}", clean_line(&what))).await,
            Err(EngineError::NotWaiting { why, .. }) => {
                person.teller.say(&format!("note: {why}")).await;
                return Ok(Asked::Decided);
            }
            Err(error) => return Err(error),
        }
    }
}
