//! What must be true of every world.

use turnwright_core::budgets::Purpose;
use turnwright_core::prompt::{self, PromptMessage};
use turnwright_core::{
    CallId, Completion, Control, DecidedBy, ElicitationId, Entry, Journal, MessageId, Reserved, Seq, StopReason, TurnStatus,
    Verdict, Waits, text_of,
};

use crate::script::{EDITED, Service, TURN_TOKENS, is_replayable};
use crate::world::World;

/// How much of a world's story is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Its end.
    End,
    /// The state after each entry.
    EveryPrefix,
}

type Law = Result<(), String>;

macro_rules! must {
    ($holds:expr, $($broken:tt)+) => {
        if !$holds {
            return Err(format!($($broken)+));
        }
    };
}

pub(crate) fn check_world(world: &World) -> Law {
    let journal = &world.shadow;
    must!(journal.open_turn().is_none(), "a turn is still open");
    every_call_has_one_result(world)?;
    effects_are_allowed_and_not_repeated(world)?;
    every_question_is_answered_once_or_closed_with_its_call(world)?;
    every_user_message_is_answered(world)?;
    every_call_is_spent_once(world)?;
    every_user_message_is_shown_once(journal)?;
    well_formed(&prompt::messages(journal))?;
    if world.depth == Depth::EveryPrefix {
        every_prefix_stands(world)?;
    }
    Ok(())
}

fn every_call_has_one_result(world: &World) -> Law {
    let mut open: Vec<CallId> = Vec::new();
    for stored in &world.log {
        match &*stored.entry {
            Entry::Assistant(message) => {
                must!(open.is_empty(), "the model is asked while {open:?} have no result");
                open = message.calls().zip(0..).map(|(_, index)| CallId { message: stored.seq, index }).collect();
            }
            Entry::Result(result) => {
                let before = open.len();
                open.retain(|call| *call != result.call);
                must!(open.len() + 1 == before, "{} has two results, or none was due", result.call);
            }
            _ => {}
        }
    }
    must!(open.is_empty(), "{open:?} have no result");
    Ok(())
}

fn effects_are_allowed_and_not_repeated(world: &World) -> Law {
    for (id, runs) in &world.effects {
        let Some(Entry::Assistant(message)) = world.log.get(index(id.message)).map(|stored| &*stored.entry) else {
            return Err(format!("{id} ran and no message asked for it"));
        };
        must!(message.completion == Completion::Complete, "{id} ran and its message is cut off");
        let name = &message.calls().nth(id.index as usize).ok_or("there is no such call")?.name;
        let decided = |wanted: Verdict| {
            let decisions = world.log.iter().filter(|stored| match &*stored.entry {
                Entry::Decision(decision) => decision.call == *id && decision.verdict == wanted,
                _ => false,
            });
            decisions.count()
        };
        must!(decided(Verdict::Allow) == 1, "{id} ran without a decision");
        must!(decided(Verdict::Deny) == 0, "{id} ran though it was denied");
        if !is_replayable(name) {
            must!(runs.len() <= 1 + decided(Verdict::RunAgain), "{id} ({name}) ran {} times", runs.len());
        }
        let by_person = world.log.iter().any(|stored| match &*stored.entry {
            Entry::Decision(decision) => decision.call == *id && decision.by == DecidedBy::Person,
            _ => false,
        });
        if name == "edit" && by_person && decided(Verdict::RunAgain) == 0 {
            must!(runs.iter().all(|arguments| arguments == EDITED), "{id} ran with {runs:?}, the person wanted {EDITED}");
        }
    }
    Ok(())
}

fn every_question_is_answered_once_or_closed_with_its_call(world: &World) -> Law {
    let mut asked: Vec<(ElicitationId, bool)> = Vec::new();
    for stored in &world.log {
        match &*stored.entry {
            Entry::Elicited(elicited) => {
                for _ in &elicited.asks {
                    let before = asked.iter().filter(|(id, _)| id.call == elicited.call).count();
                    let index = u32::try_from(before).map_err(|error| error.to_string())?;
                    asked.push((ElicitationId { call: elicited.call, index }, false));
                }
            }
            Entry::Answered(answered) => {
                let question = asked.iter_mut().find(|(id, _)| *id == answered.question).ok_or("nobody asked that")?;
                must!(!question.1, "{} has two answers", answered.question);
                question.1 = true;
            }
            Entry::Started(started) => {
                let parked =
                    world.log.iter().filter(|before| before.seq < stored.seq).rev().find_map(|before| match &*before.entry {
                        Entry::Elicited(elicited) if elicited.call == started.call => {
                            Some(matches!(elicited.waits, Waits::Parked { .. }))
                        }
                        Entry::Decision(decision) if decision.call == started.call => Some(false),
                        _ => None,
                    });
                let is_open = |(id, is_answered): &&(ElicitationId, bool)| id.call == started.call && !is_answered;
                must!(
                    parked != Some(true) || !asked.iter().any(|asked| is_open(&asked)),
                    "{} was made again too early",
                    started.call
                );
            }
            _ => {}
        }
    }
    Ok(())
}

/// What was spent is what the messages tell, and for each call of which nothing came what was reserved; it is counted once,
/// wherever a process died, and a turn takes no more than its budget and one reservation.
fn every_call_is_spent_once(world: &World) -> Law {
    let (mut open, mut all, mut turn): (Vec<Reserved>, u64, u64) = (Vec::new(), 0, 0);
    let mut is_before_its_turn = true;
    for stored in &world.log {
        let mut spend = |tokens: u64| {
            all += tokens;
            turn += tokens;
        };
        match &*stored.entry {
            Entry::Control(Control::Reserved(reserved)) => open.push(reserved.clone()),
            Entry::Assistant(message) => {
                let was_reserved = open.iter().position(|reserved| reserved.purpose == Purpose::Answer);
                let is_budgeted = world.script.provider == Service::Spending;
                must!(was_reserved.is_some() == is_budgeted, "{} was asked for without a reservation", stored.seq);
                if let Some(at) = was_reserved {
                    let reserved = open.remove(at);
                    let told = message.usage.input_tokens.unwrap_or(0) + message.usage.output_tokens.unwrap_or(0);
                    let calls: usize = message.calls().map(|call| call.name.len() + call.arguments.len()).sum();
                    let said = (message.text().len() + calls) as u64;
                    match message.completion {
                        Completion::Complete => spend(told),
                        Completion::CutOff(_) => spend(told.max(reserved.input.tokens + said.div_ceil(3))),
                    }
                }
            }
            Entry::Sampled(sampled) => {
                if let Some(at) = open.iter().position(|reserved| reserved.purpose == Purpose::Sampling(sampled.question)) {
                    open.remove(at);
                    spend(sampled.usage().input_tokens.unwrap_or(0) + sampled.usage().output_tokens.unwrap_or(0));
                }
            }
            Entry::Control(Control::Claimed(_)) => {
                for reserved in open.drain(..) {
                    spend(reserved.amount().tokens);
                }
            }
            Entry::Control(Control::Ended { .. }) => {
                for reserved in open.drain(..) {
                    spend(reserved.input.tokens);
                }
                is_before_its_turn = true;
            }
            Entry::Control(Control::Retried { .. }) => {
                is_before_its_turn = false;
                turn = 0;
            }
            Entry::User(_) if is_before_its_turn => {
                is_before_its_turn = false;
                turn = 0;
            }
            _ => {}
        }
        must!(turn <= TURN_TOKENS, "{turn} tokens are spent after {}, {TURN_TOKENS} may be", stored.seq);
    }
    let (reserved, spent) = &world.ledger;
    must!(open.is_empty() && reserved.is_empty(), "{open:?} and {reserved:?} are never settled");
    must!(spent.tokens == all, "the ledger has {} tokens, {all} were spent", spent.tokens);
    let books = world.shadow.books().conversation().tokens;
    must!(books == all, "the journal's fold has {books} tokens, {all} were spent");
    Ok(())
}

/// Every user message is seen by a whole answer, unless a person stopped the turn after it, or a budget.
fn every_user_message_is_answered(world: &World) -> Law {
    for (at, user) in world.log.iter().enumerate() {
        if !matches!(*user.entry, Entry::User(_)) {
            continue;
        }
        let rest = &world.log[at..];
        let is_answered = rest.iter().any(|stored| match &*stored.entry {
            Entry::Assistant(message) => message.saw >= user.seq && message.completion == Completion::Complete,
            _ => false,
        });
        let end = rest.iter().find_map(|stored| match &*stored.entry {
            Entry::Control(Control::Ended { status, .. }) => Some((stored.seq, status)),
            _ => None,
        });
        let is_stopped = rest.iter().any(|stored| matches!(*stored.entry, Entry::Control(Control::CancelRequested { .. })))
            && rest
                .iter()
                .any(|stored| matches!(*stored.entry, Entry::Control(Control::Ended { status: TurnStatus::Cancelled, .. })));
        let is_stopped = is_stopped
            || end.is_some_and(|(_, status)| matches!(status, TurnStatus::Stopped { reason: StopReason::Budget(_), .. }));
        must!(is_answered || is_stopped, "the message {} is not answered; its turn ended {end:?}", user.seq);
    }
    Ok(())
}

/// In its own words or, where it is of an earlier turn than the one that was too long, in the summary.
fn every_user_message_is_shown_once(journal: &Journal) -> Law {
    let messages = prompt::messages(journal);
    let summary = journal.compaction();
    let is_summary = |at: Seq| summary.is_some_and(|summary| summary.seq() == at);
    let mut summed_up = String::new();
    let mut shown = Vec::new();
    for message in &messages {
        match message {
            PromptMessage::User { seq, message } if is_summary(*seq) => summed_up = text_of(&message.content),
            PromptMessage::User { seq, .. } => shown.push(*seq),
            PromptMessage::Context { .. } | PromptMessage::Assistant { .. } | PromptMessage::Results(_) => {}
        }
    }
    for stored in journal.entries() {
        let Entry::User(message) = &*stored.entry else { continue };
        if journal.is_hidden(MessageId(stored.seq)) {
            continue;
        }
        let own_words = shown.iter().filter(|seq| **seq == stored.seq).count();
        let is_old = summary
            .is_some_and(|summary| stored.seq <= summary.through() && summary.turn().is_none_or(|turn| stored.seq < turn.0));
        must!(own_words == usize::from(!is_old), "the message {} is shown {own_words} times", stored.seq);
        let has_words = summed_up.contains(&text_of(&message.content));
        must!(!is_old || has_words, "the message {} is neither shown nor summed up", stored.seq);
    }
    Ok(())
}

/// What every API demands: results directly after the message that asked for them, one each, in call order.
pub(crate) fn well_formed(messages: &[PromptMessage<'_>]) -> Law {
    let mut due: Vec<CallId> = Vec::new();
    for message in messages {
        match message {
            PromptMessage::User { .. } | PromptMessage::Context { .. } => {
                must!(due.is_empty(), "a user message stands before the results of {due:?}");
            }
            PromptMessage::Assistant { seq, message } => {
                must!(due.is_empty(), "a message stands before the results of {due:?}");
                due = message.calls().zip(0..).map(|(_, index)| CallId { message: *seq, index }).collect();
            }
            PromptMessage::Results(results) => {
                let given: Vec<CallId> = results.iter().map(|result| result.id).collect();
                must!(given == due, "the results are of {given:?}, due are {due:?}");
                must!(!given.is_empty(), "there are results of nothing");
                must!(results.iter().all(|result| result.result.call == result.id), "a result stands at another call");
                due.clear();
            }
        }
    }
    must!(due.is_empty(), "the results of {due:?} are missing");
    must!(matches!(messages.first(), Some(PromptMessage::User { .. })), "the first message is not a user's");
    Ok(())
}

/// The state is a function of the entries: folded one by one, or from the start after each.
fn every_prefix_stands(world: &World) -> Law {
    let mut live = Journal::default();
    for (at, stored) in world.log.iter().enumerate() {
        live.apply(stored.clone()).map_err(|error| error.to_string())?;
        let replayed = Journal::replay(world.log[..=at].iter().cloned()).map_err(|error| error.to_string())?;
        must!(replayed == live, "the first {} entries replay to another state", at + 1);
        well_formed(&prompt::messages(&live)).map_err(|broken| format!("after entry {}: {broken}", stored.seq))?;
        if let Some(turn) = live.turn() {
            must!(turn.step() == turn.step(), "asked twice, another answer");
        }
    }
    Ok(())
}

fn index(seq: Seq) -> usize {
    usize::try_from(seq.get() - 1).expect("small")
}
