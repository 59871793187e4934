//! `turnwright approvals`: what waits for a person.

use std::time::Duration;

use turnwright_api::Call;
use turnwright_core::{AnswerAction, ApprovalId, CallId, Control, ConversationId, Entry, Form, Journal, Seq, TurnId, Wants};
use turnwright_engine::{About, Choice, Engine, EngineError, Event, Remember, Reply, WaitingCall, WaitingQuestion, WatchFrom};
use turnwright_host::{Host, Needs};
use turnwright_server::{waiting_call, waiting_question};
use turnwright_terminal::{Interrupts, Told, clean_line, compact};

mod rules;

use super::answer::{Printer, answer, look};
use crate::cli::{Answer, Approvals, Decide, Everywhere, Listed, Rules};
use crate::exit::{Exit, Failure};
use crate::opened::{self, QUIET, people_only};
use crate::output::{Output, say};
use crate::signals::Signals;
use crate::table::{first_line, table};

/// The most characters of arguments in a list.
const MAX_ARGUMENTS: usize = 120;

/// How long to wait until somebody goes on with a turn that was decided about.
const TAKEN_UP: Duration = Duration::from_secs(2);

pub(super) async fn run(everywhere: &Everywhere, command: Approvals, output: &mut Output) -> Result<Exit, Failure> {
    let opened = opened::open(&opened::overrides(everywhere), QUIET)?.of(everywhere);
    match command {
        Approvals::List(listed) => {
            let host = opened.start(Needs::Store).await?;
            let (waiting, questions) = (host.engine().all_waiting().await, host.engine().all_questions().await);
            host.shutdown().await;
            list(waiting?, questions?, listed, output);
            Ok(Exit::Done)
        }
        Approvals::Rules(command) => {
            let host = opened.start(Needs::Store).await?;
            let is_change = !matches!(command, Rules::List(_));
            let result = match if is_change { people_only(&host) } else { Ok(()) } {
                Err(refused) => Err(refused),
                Ok(()) => rules::run(host.engine(), command, output).await,
            };
            host.shutdown().await;
            result
        }
        Approvals::Explain(call) => {
            let mut signals = Signals::new().map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
            let host = opened.start(Needs::Everything).await?;
            let result = tokio::select! {
                result = rules::explain(host.engine(), call, output) => result,
                _ = signals.next() => Ok(Exit::Cancelled),
            };
            host.shutdown().await;
            result
        }
        // Nothing starts before a call needs it: deciding needs the journal, and so does a turn that another process has.
        Approvals::Decide(decision) => {
            let look = look(output, &opened.environment);
            let mut signals = Signals::new().map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
            let host = opened.start(Needs::OnDemand).await?;
            let printer = Printer { everywhere, form: decision.output, output, look };
            host.engine().leave_unattended();
            let result = match people_only(&host) {
                Err(refused) => Err(refused),
                Ok(()) => decide(&host, decision, printer, &mut signals).await,
            };
            host.shutdown().await;
            result
        }
        Approvals::Answer(answered) => {
            let look = look(output, &opened.environment);
            let mut signals = Signals::new().map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
            let host = opened.start(Needs::OnDemand).await?;
            let printer = Printer { everywhere, form: answered.output, output, look };
            host.engine().leave_unattended();
            let result = match people_only(&host) {
                Err(refused) => Err(refused),
                Ok(()) => reply(&host, answered, printer, &mut signals).await,
            };
            host.shutdown().await;
            result
        }
    }
}

/// Sees to it that the tools which the open turn was offered are known, as they are where they were ever seen.
async fn learn(host: &Host, journal: &Journal) {
    let mut sources: Vec<&str> = journal.offered().iter().map(|tool| tool.source.as_str()).collect();
    sources.sort_unstable();
    sources.dedup();
    host.learn(&sources).await;
}

fn list(waiting: Vec<WaitingCall>, questions: Vec<WaitingQuestion>, listed: Listed, output: &mut Output) {
    if listed.json {
        let calls = waiting.into_iter().map(waiting_call).chain(questions.into_iter().map(waiting_question));
        output.json_pretty(&calls.collect::<Vec<Call>>());
        return;
    }
    let calls = waiting.iter().map(|call| {
        let arguments = first_line(&compact(&call.arguments), MAX_ARGUMENTS);
        let what = format!("{} {arguments}", call.name);
        let asked = call.approval.to_string();
        [call.call.to_string(), asked, call.conversation.to_string(), call.reason.as_str().to_owned(), what]
    });
    let questions = questions.iter().map(|question| {
        let what = format!("{} asks: {}", question.source, first_line(&question.ask.message, MAX_ARGUMENTS));
        let id = question.id.to_string();
        [id, "-".to_owned(), question.conversation.to_string(), "question".to_owned(), what]
    });
    output.lines(&table(&calls.chain(questions).collect::<Vec<_>>()));
}

/// Answers what a tool asks, and goes on with its turn.
async fn reply(host: &Host, answered: Answer, printer: Printer<'_>, signals: &mut Signals) -> Result<Exit, Failure> {
    let engine = host.engine();
    let asked = find_question(engine, &answered).await?;
    let id = asked.conversation.clone();
    engine.stays_in_its_folder(&id).await?;
    let before = engine.journal(&id).await?;
    learn(host, &before).await;
    match engine.answer(&id, asked.id, given(&answered, &asked)?).await {
        Ok(_) => {}
        Err(error @ (EngineError::NotFound { .. } | EngineError::NotAsked { .. })) => {
            return Err(Failure::from(error).hint("`turnwright approvals list` shows what waits"));
        }
        Err(error @ EngineError::Misfilled { .. }) => {
            return Err(Failure::usage(error.to_string()).hint(fields_hint(&asked)));
        }
        Err(error) => return Err(error.into()),
    }
    let after = before.last_seq();
    let Some(turn) = before.open_turn().map(turnwright_core::Turn::id) else { return Ok(Exit::Done) };
    if is_held_elsewhere(engine, &id, &before, after).await? {
        say("note: answered; the process that holds the conversation goes on with it");
        return Ok(Exit::Done);
    }
    go_on(engine, &id, (turn, after), printer, signals).await
}

/// What the command line answers.
fn given(answered: &Answer, asked: &WaitingQuestion) -> Result<Reply, Failure> {
    let action = match (answered.decline, answered.cancel) {
        (true, _) => return Ok(Reply::of(AnswerAction::Decline)),
        (_, true) => return Ok(Reply::of(AnswerAction::Cancel)),
        (false, false) => AnswerAction::Accept,
    };
    if let Some(content) = &answered.content {
        let content = serde_json::from_str(content);
        let content = content.map_err(|error| Failure::usage(format!("--content is no JSON object: {error}")))?;
        return Ok(Reply::accept(Some(content)));
    }
    let values = answered.accept.as_deref().unwrap_or_default();
    let Wants::Form { schema } = &asked.ask.wants else {
        if values.is_empty() {
            return Ok(Reply::of(action));
        }
        return Err(Failure::usage(format!("`{}` is no form; it takes no values", asked.id)));
    };
    let form = Form::read(schema).map_err(Failure::usage)?;
    let mut content = serde_json::Map::new();
    for given in values {
        let (name, text) = given
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("`{given}` is no FIELD=VALUE")).hint(fields_hint(asked)))?;
        let field = form.fields.iter().find(|field| field.name == name);
        let field = field.ok_or_else(|| Failure::usage(format!("the form has no field `{name}`")).hint(fields_hint(asked)))?;
        let value = field.read(text).map_err(|problem| Failure::usage(format!("`{name}` {problem}")))?;
        content.insert(name.to_owned(), value);
    }
    Ok(Reply::accept(Some(content)))
}

/// What the fields of a form are.
fn fields_hint(asked: &WaitingQuestion) -> String {
    let Wants::Form { schema } = &asked.ask.wants else { return String::new() };
    let fields = Form::read(schema).map(|form| form.fields).unwrap_or_default();
    let told: Vec<String> = fields
        .iter()
        .map(|field| {
            let described = field.described();
            let name = clean_line(&field.name);
            if described.is_empty() { name.into_owned() } else { format!("{name} ({})", clean_line(&described)) }
        })
        .collect();
    format!("its fields: {}", told.join("; "))
}

/// The question that is meant.
async fn find_question(engine: &Engine, answered: &Answer) -> Result<WaitingQuestion, Failure> {
    let question = answered.question;
    let mut waiting = match &answered.conversation {
        Some(id) => engine.questions(id).await?,
        None => engine.all_questions().await?,
    };
    waiting.retain(|waiting| waiting.id == question);
    if waiting.len() > 1 {
        let names: Vec<_> = waiting.iter().map(|waiting| waiting.conversation.to_string()).collect();
        let text = format!("`{question}` waits in several conversations: {}", names.join(", "));
        return Err(Failure::usage(text).hint("--conversation ID says which one is meant"));
    }
    waiting.pop().ok_or_else(|| {
        Failure::usage(format!("no question `{question}` waits for an answer"))
            .hint("`turnwright approvals list` shows what waits")
    })
}

async fn decide(host: &Host, decision: Decide, printer: Printer<'_>, signals: &mut Signals) -> Result<Exit, Failure> {
    let engine = host.engine();
    let about = about(decision.call, decision.approval)?;
    let id = match decision.conversation {
        Some(id) => id,
        None => find(engine, decision.call).await?,
    };
    engine.stays_in_its_folder(&id).await?;
    let before = engine.journal(&id).await?;
    learn(host, &before).await;
    let choice = Choice { verdict: decision.decision.into(), arguments: decision.arguments, reason: decision.reason };
    let remember = decision.remember.map(|scope| Remember::proposed(scope.into()));
    match engine.decide_and_remember(&id, about, choice, remember).await {
        Ok(decided) => rules::told(&decided),
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

/// What is decided about: the question, where it is named.
fn about(call: CallId, asked: Option<ApprovalId>) -> Result<About, Failure> {
    match asked {
        None => Ok(About::Call(call)),
        Some(asked) if asked.call == call => Ok(About::Question(asked)),
        Some(asked) => Err(Failure::usage(format!("`{asked}` is no question about `{call}`"))
            .hint("`turnwright approvals list` shows what waits")),
    }
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
