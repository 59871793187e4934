//! `turnwright approvals`: calls that wait for a person.

use std::time::Duration;

use turnwright_api::Call;
use turnwright_core::{CallId, Control, ConversationId, Entry, Journal, Seq, TurnId};
use turnwright_engine::{Choice, Engine, EngineError, Event, WaitingCall, WatchFrom};
use turnwright_host::Needs;
use turnwright_terminal::{Told, compact};

use super::answer::{Printer, answer, look};
use crate::cli::{Approvals, Decide, Everywhere, Listed};
use crate::exit::{Exit, Failure};
use crate::opened::{self, QUIET};
use crate::output::{Output, say};
use crate::signals::Signals;
use crate::table::{first_line, table};

/// The most characters of arguments in a list.
const MAX_ARGUMENTS: usize = 120;

/// How long to wait until somebody goes on with a turn that was decided about.
const TAKEN_UP: Duration = Duration::from_secs(2);

pub(super) async fn run(everywhere: &Everywhere, command: Approvals, output: &mut Output) -> Result<Exit, Failure> {
    let opened = opened::open(&opened::overrides(everywhere), QUIET)?;
    match command {
        Approvals::List(listed) => {
            let host = opened.start(Needs::Store).await?;
            let waiting = host.engine().all_waiting().await;
            host.shutdown().await;
            list(&waiting?, listed, output);
            Ok(Exit::Done)
        }
        Approvals::Decide(decision) => {
            let look = look(output, &opened.environment);
            let mut signals = Signals::new().map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
            let host = opened.start(Needs::Everything).await?;
            let printer = Printer { everywhere, form: decision.output, output, look };
            let result = decide(host.engine(), decision, printer, &mut signals).await;
            host.shutdown().await;
            result
        }
    }
}

fn list(waiting: &[WaitingCall], listed: Listed, output: &mut Output) {
    if listed.json {
        let calls = waiting.iter().map(|call| Call {
            id: call.call.to_string(),
            conversation_id: Some(call.conversation.to_string()),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            reason: call.reason.as_str().to_owned(),
            rule: call.rule.clone(),
        });
        output.json_pretty(&calls.collect::<Vec<_>>());
        return;
    }
    let rows: Vec<_> = waiting
        .iter()
        .map(|call| {
            let arguments = first_line(&compact(&call.arguments), MAX_ARGUMENTS);
            let what = format!("{} {arguments}", call.name);
            [call.call.to_string(), call.conversation.to_string(), call.reason.as_str().to_owned(), what]
        })
        .collect();
    output.lines(&table(&rows));
}

async fn decide(engine: &Engine, decision: Decide, printer: Printer<'_>, signals: &mut Signals) -> Result<Exit, Failure> {
    let id = match decision.conversation {
        Some(id) => id,
        None => find(engine, decision.call).await?,
    };
    let before = engine.journal(&id).await?;
    let choice = Choice { verdict: decision.decision.into(), arguments: decision.arguments, reason: decision.reason };
    match engine.decide(&id, decision.call, choice).await {
        Ok(()) => {}
        Err(error @ (EngineError::NotFound { .. } | EngineError::NotWaiting { .. })) => {
            return Err(Failure::from(error).hint("`turnwright approvals list` shows what waits"));
        }
        Err(error) => return Err(error.into()),
    }
    let after = before.last_seq();
    let Some(turn) = before.open_turn().map(turnwright_core::Turn::id) else { return Ok(Exit::Done) };
    if is_held_elsewhere(engine, &id, &before, after).await? {
        say("note: decided; the process that holds the conversation goes on with it");
        return Ok(Exit::Done);
    }
    go_on(engine, &id, (turn, after), printer, signals).await
}

async fn go_on(
    engine: &Engine,
    id: &ConversationId,
    (turn, after): (TurnId, Option<Seq>),
    printer: Printer<'_>,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    answer(engine, id, Told { turn, after }, printer, signals, None).await
}

/// The conversation in which this call waits.
async fn find(engine: &Engine, call: CallId) -> Result<ConversationId, Failure> {
    let mut waiting = engine.all_waiting().await?;
    waiting.retain(|waiting| waiting.call == call);
    match waiting.as_slice() {
        [only] => Ok(only.conversation.clone()),
        [] => Err(Failure::usage(format!("no call `{call}` waits for a decision"))
            .hint("`turnwright approvals list` shows what waits")),
        several => {
            let names: Vec<_> = several.iter().map(|waiting| waiting.conversation.to_string()).collect();
            let text = format!("`{call}` waits in several conversations: {}", names.join(", "));
            Err(Failure::usage(text).hint("--conversation ID says which one is meant"))
        }
    }
}

/// Whether whoever drove the turn before is alive and goes on with it: then nobody claims it anew, or the same process does.
async fn is_held_elsewhere(
    engine: &Engine,
    id: &ConversationId,
    before: &Journal,
    after: Option<Seq>,
) -> Result<bool, Failure> {
    let driver = |claim: &turnwright_core::Claim| claim.driver.clone();
    let held_by = before.open_turn().and_then(|turn| turn.claim()).map(driver);
    let mut watch = engine.watch(id, WatchFrom::After(after)).await?;
    let claimed = async {
        while let Some(frame) = watch.next().await {
            for event in frame.events.iter() {
                if let Event::Entry { entry, .. } = event
                    && let Entry::Control(Control::Claimed(claim)) = &**entry
                {
                    return Some(driver(claim));
                }
            }
        }
        None
    };
    let claimed_by = tokio::time::timeout(TAKEN_UP, claimed).await.ok().flatten();
    Ok(claimed_by.is_none() || claimed_by == held_by)
}
