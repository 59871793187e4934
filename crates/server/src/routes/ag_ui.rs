//! AG-UI: one run per request.
//!
//! The journal is the history: of a thread that is known, what the page says that is new is taken, and nothing that it claims of
//! models and of tools on this side.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use turnwright_core::{
    AnswerAction, ApprovalId, CallId, ContentBlock, ConversationId, ElicitationId, Entry, Journal, QuestionReason, Seq, TurnId,
    TurnStatus, Verdict, text_of,
};
use turnwright_engine::{Choice, EngineError, Reply, SettingsOverlay, WatchFrom, shown_name};

use crate::agui::back::{
    Back, back, has_failed, is_said_last, last_retry, newest_retry, ran_here, retried, retry_of, says_again,
};
use crate::agui::fold::{RunFold, refusal};
use crate::agui::input::{Resume, RunInput, Spoken, Status};
use crate::agui::interrupt::Interrupt;
use crate::error::ApiError;
use crate::extract::{State, Whole, id};
use crate::named::{Named, SaidAs, says, standing};
use crate::open_stream::OpenStream;
use crate::openai::begin::{Ask, begin};
use crate::openai::history::{History, Said};
use crate::openai::models;
use crate::openai::responses::object::{part_after, settings};
use crate::openai::track::Part;
use crate::openapi::{BodyRefused, Conflicting, Limited, NotAnswered, NotThere, Refused, RepeatableHeader};
use crate::sse;
use crate::state::ServerState;

/// How much of a run's name counts.
const MOST_RUN_CHARS: usize = 128;
/// How often it is looked what a request is, where turns begin and end meanwhile.
const MOST_LOOKS: u32 = 8;

/// Runs, or goes on with, a turn.
#[utoipa::path(
    post,
    path = "/ag-ui",
    operation_id = "runAgent",
    tag = "pages",
    params(RepeatableHeader),
    request_body = RunInput,
    responses((status = 200, description = "The events of an AG-UI run.", body = Value, content_type = "text/event-stream"), Refused, BodyRefused, NotThere, Conflicting, NotAnswered, Limited)
)]
pub(super) async fn run(State(state): State, whole: Whole) -> Result<Response, ApiError> {
    let input: RunInput = whole.json()?;
    let conversation: ConversationId = id(&input.thread_id)?;
    let once = once(&whole, &conversation, &input)?;
    let stream = OpenStream::of(&state)?;
    let mut looks = 0_u32;
    let (stood, before) = loop {
        let stood = standing(state.engine(), &conversation).await?;
        let before = before(&state, &conversation, &input, &once).await?;
        looks = looks.saturating_add(1);
        // What was seen one after another is of one time, so that none of it is said anew of which something came meanwhile.
        let is_one = looks >= MOST_LOOKS || standing(state.engine(), &conversation).await? == stood;
        if is_one || !matches!(before, Before::Nothing) {
            break (stood, before);
        }
    };
    let answered = match before {
        Before::Told(fold) => return told(&state, &conversation, *fold, stream).await,
        Before::Repeated => None,
        Before::Nothing => match answered(&state, &conversation, &input, &once).await {
            Ok(answered) => answered,
            // In this protocol that is an event.
            Err(error) => return Ok(refused(&error)),
        },
    };
    let part = match answered {
        None => say(&state, &conversation, &input, Some(once), stood.said).await?,
        Some((part, Beside::More)) => {
            say(&state, &conversation, &input, Some(once), stood.said).await?;
            part
        }
        Some((part, Beside::Nothing)) => part,
    };
    let fold = fold(&state, &conversation, input.run_id, part).await?;
    told(&state, &conversation, fold, stream).await
}

/// What a request is by what was said before.
enum Before {
    /// It says nothing new: this is told.
    Told(Box<RunFold>),
    /// It came before.
    Repeated,
    /// Nothing of it was said.
    Nothing,
}

async fn before(
    state: &ServerState,
    conversation: &ConversationId,
    input: &RunInput,
    once: &(String, String),
) -> Result<Before, ApiError> {
    let said = state.engine().said_before(&once.0, &once.1).await?.filter(|_| input.resume.is_empty());
    // It is told again, whatever waits by now.
    let is_repeated = said.is_some();
    let retry = match said {
        Some((_, sent)) => state.engine().look(conversation, |journal| retry_of(journal, &sent)).await?,
        None => tried_again(state, conversation, input, once).await?,
    };
    let back = match retry {
        Some(retry) => {
            let spoken = input.spoken()?;
            Some(state.engine().look(conversation, |journal| retried(conversation, journal, &spoken, retry)).await?)
        }
        None if is_repeated => return Ok(Before::Repeated),
        None => comes_back(state, conversation, input).await?,
    };
    if let Some(back) = back {
        let fold = fold(state, conversation, input.run_id.clone(), back.part).await?.after(back.messages, back.asked);
        return Ok(Before::Told(Box::new(fold)));
    }
    let Some(part) = said_again(state, conversation, input).await? else { return Ok(Before::Nothing) };
    Ok(Before::Told(Box::new(fold(state, conversation, input.run_id.clone(), part).await?)))
}

/// What makes a run happen once: the client's own key, else the run's name with all that it asks.
fn once(whole: &Whole, conversation: &ConversationId, input: &RunInput) -> Result<(String, String), ApiError> {
    if let Some((key, fingerprint)) = crate::routes::asked(whole)? {
        return Ok((format!("{conversation}/ag-ui {key}"), fingerprint));
    }
    let fingerprint = crate::routes::fingerprint(whole);
    let run: String = input.run_id.chars().filter(|c| !c.is_control()).take(MOST_RUN_CHARS).collect();
    // Who gives two runs one name wants two runs.
    Ok((format!("{conversation}/ag-ui run {run} {fingerprint}"), fingerprint))
}

/// The run that tells a part of a turn.
async fn fold(state: &ServerState, conversation: &ConversationId, run: String, part: Part) -> Result<RunFold, ApiError> {
    let look = |journal: &Journal| {
        let asked = journal
            .turn()
            .into_iter()
            .flat_map(|turn| turn.questions().map(|question| (question.id, question.ask.wants.clone())));
        (journal.offered().clone(), asked.collect::<Vec<_>>(), settings(journal, part.turn))
    };
    let (offered, asked, settings) = state.engine().look(conversation, look).await?;
    let model = settings.map_or_else(|| state.engine().defaults().model.clone(), |settings| settings.model);
    Ok(RunFold::new(conversation.clone(), (run, model), part, offered, asked))
}

async fn told(
    state: &ServerState,
    conversation: &ConversationId,
    fold: RunFold,
    stream: OpenStream,
) -> Result<Response, ApiError> {
    let from = WatchFrom::After(Seq::new(fold.begins_after().get().saturating_sub(1)));
    let watch = state.engine().watch(conversation, from).await?;
    Ok(sse::response(watch, fold, stream).await)
}

/// Takes the newest turn up again where that failed and the page says once more what was said last: as often as it asks for it, and once
/// for each run, under whose key it is kept. The turn, and the entry that takes it up.
async fn tried_again(
    state: &ServerState,
    conversation: &ConversationId,
    input: &RunInput,
    once: &(String, String),
) -> Result<Option<(TurnId, Seq)>, ApiError> {
    if !input.resume.is_empty() {
        return Ok(None);
    }
    let (spoken, results) = (input.spoken()?, input.results()?);
    // What was stopped, or ended well, is not tried again by saying it again.
    let look = |journal: &Journal| has_failed(journal) && says_again(journal, &spoken, &results);
    match state.engine().look(conversation, look).await {
        Ok(true) => {}
        Ok(false) | Err(EngineError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let overlay = overlay(state, conversation, input).await?;
    let engine = state.engine();
    match engine.retry_once(conversation, overlay, Some(once.clone())).await {
        Ok(sent) => Ok(engine.look(conversation, |journal| retry_of(journal, &sent)).await?),
        // Another run did meanwhile, and may be over.
        Err(EngineError::NoOpenTurn { .. } | EngineError::TurnOpen { .. }) => {
            Ok(engine.look(conversation, |journal| newest_retry(journal, &spoken, &results)).await?)
        }
        Err(error) => Err(error.into()),
    }
}

/// What a page is told that says nothing new: it lost the run, or never had it.
async fn comes_back(state: &ServerState, conversation: &ConversationId, input: &RunInput) -> Result<Option<Back>, ApiError> {
    if !input.resume.is_empty() {
        return Ok(None);
    }
    let history = History::of(input.items()?);
    let says_nothing = history.users().is_empty();
    let (spoken, results) = (input.spoken()?, input.results()?);
    let look = |journal: &Journal| {
        // While that is answered, what was said last is not said a second time.
        let is_lost = || journal.open_turn().is_some_and(|turn| !turn.is_parked()) && says_again(journal, &spoken, &results);
        let is_silent = (says_nothing && ran_here(journal, results.iter().map(String::as_str))) || is_lost();
        let is_back = is_silent || (results.is_empty() && !interrupts(conversation, journal).is_empty());
        if is_back { (is_silent, back(conversation, journal, &spoken)) } else { (false, None) }
    };
    match state.engine().look(conversation, look).await {
        Ok((true, back)) => Ok(back),
        Ok((false, Some(back))) => Ok((!says_more(state, conversation, input).await?).then_some(back)),
        Ok((false, None)) | Err(EngineError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What came of what was said last, where the page says that once more under its name, and it is answered: the page lost the answer.
async fn said_again(state: &ServerState, conversation: &ConversationId, input: &RunInput) -> Result<Option<Part>, ApiError> {
    if !input.resume.is_empty() {
        return Ok(None);
    }
    let Some((named, spoken)) = named(state, conversation, input).await? else { return Ok(None) };
    let Some(sent) = named.newest(state.engine()).await? else { return Ok(None) };
    let look = |journal: &Journal| {
        let newest = journal.turn().filter(|turn| turn.id() == sent.turn_id);
        let is_answered = newest.is_some_and(|turn| turn.ended() == Some(&TurnStatus::Completed));
        let is_it = |content: &[ContentBlock]| says(journal, sent.message_id, content);
        let is_it = is_answered && (is_it(&spoken.content) || is_it(spoken.last()));
        // What it came to before it was tried again is no answer.
        is_it.then(|| last_retry(journal, sent.turn_id).map_or(sent.message_id.0, |at| at.max(sent.message_id.0)))
    };
    let after = state.engine().look(conversation, look).await?;
    Ok(after.map(|after| Part { turn: sent.turn_id, after, calls: Vec::new() }))
}

/// What the page says last, where that is a person's, by its name.
async fn named<'a>(
    state: &ServerState,
    conversation: &'a ConversationId,
    input: &RunInput,
) -> Result<Option<(Named<'a>, Spoken)>, ApiError> {
    let is_said = input.items()?.last().is_some_and(|item| matches!(item.said, Said::User(_)));
    let Some(spoken) = input.spoken()?.pop().filter(|_| is_said) else { return Ok(None) };
    let all = input.messages.iter().filter_map(|message| message.get("id")?.as_str());
    let named = Named::of(state.engine(), conversation, ("ag-ui", &spoken.id), all).await?;
    Ok(named.map(|named| (named, spoken)))
}

/// What is said last by its name, or by its words where it has none.
async fn said_as(state: &ServerState, conversation: &ConversationId, input: &RunInput) -> Result<Option<String>, ApiError> {
    if let Some((named, _)) = named(state, conversation, input).await? {
        return Ok(Some(named.name()));
    }
    let is_said = input.items()?.last().is_some_and(|item| matches!(item.said, Said::User(_)));
    let Some(spoken) = input.spoken()?.pop().filter(|_| is_said) else { return Ok(None) };
    let words = serde_json::to_vec(&spoken.content).unwrap_or_default();
    Ok(Some(format!("ag-ui words {}", crate::routes::hash_of(&words))))
}

/// The names of the interrupts that are open.
fn interrupts(conversation: &ConversationId, journal: &Journal) -> Vec<String> {
    // Of what waits while something else still runs the page was not told.
    let Some(turn) = journal.open_turn().filter(|turn| turn.is_parked() || turn.is_held()) else { return Vec::new() };
    let waiting = turn.waiting().filter(|(_, question)| question.reason != QuestionReason::ClientTool);
    let calls = waiting.map(|(call, _)| Interrupt::Approval(call.approval()).name(conversation));
    calls.chain(turn.questions().map(|question| Interrupt::Question(question.id).name(conversation))).collect()
}

/// What a person says beside their answers.
enum Beside {
    /// Something.
    More,
    /// Nothing that was not said before.
    Nothing,
}

/// Stores the answers to what is open; nothing where nothing is, and none are given. They are kept under the request's key where
/// nothing is said beside them: else that is.
async fn answered(
    state: &ServerState,
    conversation: &ConversationId,
    input: &RunInput,
    once: &(String, String),
) -> Result<Option<(Part, Beside)>, ApiError> {
    if !input.resume.is_empty() {
        let (beside, key) = if says_more(state, conversation, input).await? {
            (Beside::More, None)
        } else {
            (Beside::Nothing, Some(once.clone()))
        };
        return Ok(Some((resume(state, conversation, &input.resume, key).await?, beside)));
    }
    match state.engine().look(conversation, |journal| interrupts(conversation, journal)).await {
        Ok(open) if !open.is_empty() => {
            let open = open.join(", ");
            Err(ApiError::invalid(format!("interrupts are open; `resume` must answer each of them: {open}")))
        }
        Ok(_) | Err(EngineError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a person said something beside their answers. A page that knows nothing of what was asked has their last message at the
/// end, which was said before.
async fn says_more(state: &ServerState, conversation: &ConversationId, input: &RunInput) -> Result<bool, ApiError> {
    let said = text_of(&History::of(input.items()?).users());
    let is_new = |journal: &Journal| {
        let newest = journal.entries().iter().rev().find_map(|stored| match &*stored.entry {
            Entry::User(message) => Some(text_of(&message.content)),
            _ => None,
        });
        newest.is_none_or(|newest| newest != said) && !is_said_last(journal, &said)
    };
    Ok(!said.is_empty() && state.engine().look(conversation, is_new).await?)
}

/// Stores what the page says, or what its tools gave.
async fn say(
    state: &ServerState,
    conversation: &ConversationId,
    input: &RunInput,
    idempotency: Option<(String, String)>,
    said_last: Option<Seq>,
) -> Result<Part, ApiError> {
    let overlay = overlay(state, conversation, input).await?;
    let history = History::of(input.items()?);
    let known_as = said_as(state, conversation, input).await?.map(|name| SaidAs { name, after: said_last });
    let conversation = Some(conversation.clone());
    let ask = Ask { conversation, previous: None, history, overlay, idempotency, known_as, again: None };
    Ok(begin(state, ask).await?.part)
}

/// What the page chooses for the turn.
async fn overlay(state: &ServerState, conversation: &ConversationId, input: &RunInput) -> Result<SettingsOverlay, ApiError> {
    let chosen = input.forwarded_props.as_ref().and_then(|props| props.get("model")?.as_str());
    let model = match chosen {
        Some(name) => Some(models::named(state.engine(), Some(name)).await?),
        None => None,
    };
    let history = History::of(input.items()?);
    let prompt = match (input.context(), &history.system) {
        (None, said) => said.clone(),
        (Some(context), Some(said)) => Some(format!("{said}\n\n{context}")),
        // It stands beside what is told there anyway.
        (Some(context), None) => {
            let own = match state.engine().conversation(conversation).await {
                Ok(there) => there.overlay.system_prompt,
                Err(EngineError::NotFound { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            let told = own.or_else(|| state.engine().defaults().system_prompt.clone());
            Some(told.into_iter().chain([context]).collect::<Vec<_>>().join("\n\n"))
        }
    };
    Ok(SettingsOverlay { model, system_prompt: prompt, client_tools: input.tools()?, ..SettingsOverlay::default() })
}

/// What an answer is to.
enum Asked {
    Call(ApprovalId, Choice),
    Question(ElicitationId, Reply),
}

/// Stores the answers to all interrupts that are open. The same answers again change nothing.
async fn resume(
    state: &ServerState,
    conversation: &ConversationId,
    answers: &[Resume],
    mut key: Option<(String, String)>,
) -> Result<Part, ApiError> {
    let engine = state.engine();
    let refuse = |what: String| ApiError::invalid(what);
    let waiting = engine.waiting(conversation).await?;
    let waiting = waiting.iter().filter(|call| call.reason != QuestionReason::ClientTool);
    let open: Vec<(ApprovalId, QuestionReason)> = waiting.map(|call| (call.approval, call.reason)).collect();
    let questions: Vec<ElicitationId> = engine.questions(conversation).await?.iter().map(|question| question.id).collect();
    let read: Vec<Asked> = answers.iter().map(|answer| asked(conversation, answer, &open)).collect::<Result<_, _>>()?;
    let calls: Vec<CallId> = read
        .iter()
        .map(|answer| match answer {
            Asked::Call(asked, _) => asked.call,
            Asked::Question(question, _) => question.call,
        })
        .collect();
    let is_open = |answer: &Asked| match answer {
        // An answer to what was asked about the call before is none to what is asked now.
        Asked::Call(asked, _) => open.iter().any(|(waits, _)| waits == asked),
        Asked::Question(question, _) => questions.contains(question),
    };
    let is_known = |journal: &Journal| {
        read.iter().all(|answer| {
            let (call, number) = match answer {
                Asked::Call(asked, _) => (asked.call, asked.number),
                Asked::Question(question, _) => (question.call, 1),
            };
            let known = journal.turn().and_then(|turn| turn.call(call));
            known.map_or(journal.result(call).is_some(), |call| number <= call.approval().number)
        })
    };
    let names: BTreeSet<&str> = answers.iter().map(|answer| answer.interrupt_id.as_str()).collect();
    if names.len() != answers.len() || !engine.look(conversation, is_known).await? {
        return Err(refuse("`resume` must answer each open interrupt once, and no other".to_owned()));
    }
    // What was answered before may come again.
    let fresh: Vec<Asked> = read.into_iter().filter(is_open).collect();
    if !fresh.is_empty() {
        if fresh.len() != open.len().saturating_add(questions.len()) {
            return Err(refuse("`resume` must answer every open interrupt".to_owned()));
        }
        let mut choices = Vec::new();
        let mut replies = Vec::new();
        for answer in fresh {
            match answer {
                Asked::Call(asked, choice) => choices.push((asked.call, choice)),
                Asked::Question(question, reply) => replies.push((question, reply)),
            }
        }
        // The first that is stored is kept under the key.
        for (question, reply) in replies {
            engine.answer_once(conversation, question, reply, key.take()).await?;
        }
        if !choices.is_empty() {
            engine.decide_once(conversation, choices, key).await?;
        }
    }
    let part = engine.look(conversation, |journal| part_after(journal, &calls)).await?;
    part.ok_or_else(|| refuse("no such interrupt was open".to_owned()))
}

/// What an answer says; refused where it is of another conversation, or does not fit what was asked for.
fn asked(conversation: &ConversationId, answer: &Resume, open: &[(ApprovalId, QuestionReason)]) -> Result<Asked, ApiError> {
    let unknown = || ApiError::invalid(format!("there is no interrupt `{}` in this thread", answer.interrupt_id));
    let given = answer.payload.as_ref().filter(|payload| !payload.is_null());
    let wrong = |what: String| ApiError::invalid(format!("the payload for `{}` {what}", answer.interrupt_id));
    if let Some(other) = given.filter(|payload| !payload.is_object()) {
        return Err(wrong(format!("is {}, it must be an object", shown_name(&other.to_string()))));
    }
    let field = |key: &str| given.and_then(|payload| payload.get(key)).filter(|field| !field.is_null());
    let asked = match Interrupt::read(&answer.interrupt_id, conversation).ok_or_else(unknown)? {
        Interrupt::Approval(asked) => asked,
        Interrupt::Question(question) => return Ok(Asked::Question(question, reply(answer))),
    };
    let is_approved = match (answer.status, field("approved")) {
        (Status::Cancelled, _) => false,
        (Status::Resolved, Some(Value::Bool(approved))) => *approved,
        (Status::Resolved, other) => {
            let got = other.map_or_else(|| "is missing".to_owned(), |other| format!("is {}", shown_name(&other.to_string())));
            return Err(wrong(format!("says nothing: `approved` {got}, it must be true or false")));
        }
    };
    let is_unknown = open.iter().any(|(waits, reason)| *waits == asked && *reason == QuestionReason::UnknownOutcome);
    let verdict = match (is_unknown, is_approved) {
        (false, true) => Verdict::Allow,
        (false, false) => Verdict::Deny,
        (true, true) => Verdict::RunAgain,
        (true, false) => Verdict::Skip,
    };
    let arguments = match field("editedArgs").filter(|_| is_approved) {
        None => None,
        Some(Value::Object(edited)) => Some(Value::Object(edited.clone()).to_string()),
        Some(other) => {
            return Err(wrong(format!("has {} as `editedArgs`, it must be an object", shown_name(&other.to_string()))));
        }
    };
    let reason = match field("reason") {
        None => None,
        Some(Value::String(reason)) => Some(reason.clone()),
        Some(other) => return Err(wrong(format!("has {} as `reason`, it must be a text", shown_name(&other.to_string())))),
    };
    Ok(Asked::Call(asked, Choice { verdict, arguments, reason }))
}

/// What an answer to a form says.
fn reply(answer: &Resume) -> Reply {
    let declines = answer.metadata.as_ref().and_then(|data| data.get("turnwright")?.get("action")?.as_str()) == Some("decline");
    match answer.status {
        Status::Resolved => Reply::accept(answer.payload.as_ref().and_then(Value::as_object).cloned()),
        Status::Cancelled if declines => Reply::of(AnswerAction::Decline),
        Status::Cancelled => Reply::of(AnswerAction::Cancel),
    }
}

/// A stream that says no.
fn refused(error: &ApiError) -> Response {
    let mut response = Response::new(Body::from(refusal(error)));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}
