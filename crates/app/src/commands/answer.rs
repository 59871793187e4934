//! A turn brought to its end, printed in one of the forms of `--output`.

use std::io::{self, IsTerminal};

use turnwright_core::{ConversationId, Journal, QuestionReason};
use turnwright_engine::{Engine, Event, WaitingCall, WaitingQuestion};
use turnwright_host::Environment;
use turnwright_server::turn_report;
use turnwright_terminal::{
    Audience, Carried, Follow, Interrupts, LineEditor, Look, Renderer, Settled, Teller, Told, answering, asked, carry,
    clean_line, compact, ending, suggested,
};

use crate::cli::{Everywhere, Form};
use crate::exit::{Exit, Failure};
use crate::flags::flags;
use crate::logging::wants_color;
use crate::output::{Output, say};

/// What a command that prints an answer has.
pub(super) struct Printer<'a> {
    pub(super) everywhere: &'a Everywhere,
    pub(super) form: Form,
    pub(super) output: &'a mut Output,
    pub(super) look: Look,
}

/// How text looks on this process's output.
pub(super) fn look(output: &Output, environment: &Environment) -> Look {
    let aside_is_on_terminal = io::stderr().is_terminal();
    Look {
        answer_is_on_terminal: output.is_terminal(),
        is_one_screen: output.is_terminal() && aside_is_on_terminal,
        has_color: aside_is_on_terminal && wants_color(environment),
    }
}

/// Follows a turn until it is over or parked and prints it. Where there is an `editor`, a person is asked about calls that
/// wait.
pub(super) async fn answer(
    engine: &Engine,
    id: &ConversationId,
    told: Told,
    printer: Printer<'_>,
    interrupts: &mut impl Interrupts,
    editor: Option<&mut LineEditor>,
) -> Result<Exit, Failure> {
    let Printer { everywhere, form, output, look } = printer;
    let carried = match form {
        Form::Text => {
            let mut teller = Teller { screen: &mut *output, renderer: Renderer::new(look), flags: flags(everywhere) };
            carry(engine, (id, told), &mut teller, interrupts, editor).await?
        }
        Form::Events => {
            let mut follow = Follow::begin(engine, id, told.after).await?;
            let settled = follow.until_settled(told.turn, interrupts, &mut EventLines { output: &mut *output }).await?;
            Carried { settled, interrupt: follow.interrupt() }
        }
        Form::Json => {
            let mut follow = Follow::silent(engine, id);
            let settled = follow.until_settled(told.turn, interrupts, &mut EventLines { output: &mut *output }).await?;
            Carried { settled, interrupt: follow.interrupt() }
        }
    };
    let journal = engine.journal(id).await?;
    if form == Form::Json {
        let report = turn_report(&journal, id, told.turn, engine.configured_policy());
        let report = report.ok_or_else(|| Failure::failed(format!("`{}` is not in `{id}` any more", told.turn)))?;
        let text = serde_json::to_string(&report).map_err(|error| Failure::failed(error.to_string()))?;
        tokio::select! {
            () = output.tell(format!("{text}\n")) => {}
            _ = interrupts.next() => return Ok(Exit::Cancelled),
        }
    }
    match &carried.settled {
        Settled::Left => {
            if journal.open_turn().is_none() {
                return Ok(Exit::Cancelled);
            }
            say("note: left before the turn had stopped; it is told to stop and does so when it is taken up");
            Ok(Exit::Cancelled)
        }
        Settled::Elsewhere => {
            say("note: left; the turn goes on without this process");
            Ok(Exit::Cancelled)
        }
        Settled::Parked if carried.interrupt.is_some() => Ok(Exit::Cancelled),
        Settled::Parked => {
            say_waiting(&engine.waiting(id).await?, everywhere);
            say_questions(&engine.questions(id).await?, everywhere);
            Ok(Exit::Parked)
        }
        Settled::Ended(status) => {
            let exit = if carried.interrupt.is_some() { Exit::Cancelled } else { Exit::of(status) };
            say_ending(&journal, told, status, exit);
            Ok(exit)
        }
    }
}

fn say_ending(journal: &Journal, told: Told, status: &turnwright_core::TurnStatus, exit: Exit) {
    let failure = journal.turn().filter(|turn| turn.id() == told.turn).and_then(|turn| turn.failure());
    if let Some(ending) = ending(status, failure) {
        let word = if exit == Exit::Cancelled { "note" } else { "error" };
        say(&format!("{word}: {}", ending.text));
        if let Some(hint) = ending.hint {
            say(&format!("hint: {hint}"));
        }
    }
}

/// Says which calls wait and how to decide about them.
fn say_waiting(waiting: &[WaitingCall], everywhere: &Everywhere) {
    for call in waiting {
        let by = call.rule.as_ref().map(|rule| format!(" ({})", clean_line(rule))).unwrap_or_default();
        let why = match call.reason {
            QuestionReason::Approval => "waits to be allowed",
            QuestionReason::UnknownOutcome => "was interrupted and may or may not have happened",
            QuestionReason::DefinitionChanged => "changed since it was allowed and waits to be allowed again",
            QuestionReason::Loop => "is called again and again with the same result",
            QuestionReason::ClientTool => "waits for its result from the program that offers it",
        };
        say(&format!("waiting: {} {} {why}{by}", clean_line(&call.name), clean_line(&compact(&call.arguments))));
    }
    for call in waiting {
        let choice = suggested(call.reason);
        let (id, asked, call) = (&call.conversation, call.approval, call.call);
        let flags = flags(everywhere);
        say(&format!("hint: turnwright approvals decide {call} {choice} --approval {asked} --conversation {id}{flags}"));
    }
}

/// Says what tools ask and how to answer.
fn say_questions(questions: &[WaitingQuestion], everywhere: &Everywhere) {
    let plain = Look { answer_is_on_terminal: false, is_one_screen: false, has_color: false };
    for question in questions {
        say(&format!("waiting: {}", asked(question, plain)));
    }
    let flags = flags(everywhere);
    for command in questions.iter().flat_map(|question| answering(question, &flags)) {
        say(&format!("hint: {command}"));
    }
}

/// Prints events, one per line.
struct EventLines<'a> {
    output: &'a mut Output,
}

impl Audience for EventLines<'_> {
    async fn hear(&mut self, events: &[Event]) {
        let mut lines = String::new();
        for event in events {
            match serde_json::to_string(event) {
                Ok(line) => {
                    lines.push_str(&line);
                    lines.push('\n');
                }
                Err(error) => tracing::error!(%error, "an event cannot be written"),
            }
        }
        self.output.tell(lines).await;
    }

    async fn stopping(&mut self) {
        say("note: stopping; once more leaves at once");
    }
}
