//! AG-UI: one run per request.
//!
//! The journal is the history: of a thread that is known, what the page says that is new is taken, and nothing that it claims of
//! models and of tools on this side.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use turnwright_core::{
    CallId, ContentBlock, ConversationId, Entry, Journal, MessageId, QuestionReason, Seq, ToolChoice, ToolDefinition, Turn,
    TurnId, TurnStatus, text_of,
};
use turnwright_engine::{
    ClientResult, EngineError, Given, Joins, KnownAs, NewMessage, OnWaiting, Sent, SettingsOverlay, StoreError, WatchFrom,
};

use crate::agui::answers::{Resumed, interrupts, not_answered, resumed};
use crate::agui::back::{
    Back, back, before as before_part, has_failed, is_said_last, last_retry, newest_retry, ran_here, retried, retry_of,
    says_again,
};
use crate::agui::fold::{RunFold, refusal};
use crate::agui::input::{RunInput, Spoken};
use crate::agui::names::is_said_name;
use crate::error::ApiError;
use crate::extract::{State, Whole, id};
use crate::named::{Named, SaidAs, says, standing};
use crate::open_stream::OpenStream;
use crate::openai::begin::{Ask, begin};
use crate::openai::history::{self, History};
use crate::openai::ids;
use crate::openai::models;
use crate::openai::responses::object::{part_after, settings};
use crate::openai::settings::{OurTools, choosable, tool_choice as chosen_tool};
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
    match before {
        Before::Told(fold) => return told(&state, &conversation, *fold, stream).await,
        Before::Nothing => match answered(&state, &conversation, &input, &once, stood.said).await? {
            Answered::Refused(error) => return Ok(refused(&error)),
            Answered::Part { part, again, otherwise } => {
                let fold = fold(&state, &conversation, &input, part).await?.resuming(again, otherwise);
                return told(&state, &conversation, fold, stream).await;
            }
            Answered::Nothing => {}
        },
        Before::Repeated => {}
    }
    let part = Box::pin(say(&state, &conversation, &input, Some(once), stood.said)).await?;
    // A page that left while something was said has a piece of that, which is told anew.
    let page = input.on_page()?;
    let look = |journal: &Journal| joins(journal, &part).then(|| before_part(&conversation, journal, &page, &part)).flatten();
    let again = state.engine().look(&conversation, look).await?;
    let fold = fold(&state, &conversation, &input, part).await?.resuming(again, Vec::new());
    told(&state, &conversation, fold, stream).await
}

/// Whether a part begins with what a person said in a turn that was open.
fn joins(journal: &Journal, part: &Part) -> bool {
    let is_said = || journal.entry(part.after).is_some_and(|stored| matches!(&*stored.entry, Entry::User(_)));
    part.after > part.turn.0 && is_said()
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
            let page = input.on_page()?;
            Some(state.engine().look(conversation, |journal| retried(conversation, journal, &page, retry)).await?)
        }
        None if is_repeated => return Ok(Before::Repeated),
        None => comes_back(state, conversation, input).await?,
    };
    if let Some(back) = back {
        let fold = fold(state, conversation, input, back.part).await?.after(back.messages, back.asked);
        return Ok(Before::Told(Box::new(fold)));
    }
    let Some(part) = said_again(state, conversation, input).await? else { return Ok(Before::Nothing) };
    Ok(Before::Told(Box::new(fold(state, conversation, input, part).await?)))
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
async fn fold(state: &ServerState, conversation: &ConversationId, input: &RunInput, part: Part) -> Result<RunFold, ApiError> {
    let look = |journal: &Journal| {
        let asked = journal
            .turn()
            .into_iter()
            .flat_map(|turn| turn.questions().map(|question| (question.id, question.ask.wants.clone())));
        (journal.offered().clone(), asked.collect::<Vec<_>>(), settings(journal, part.turn))
    };
    let (offered, asked, settings) = state.engine().look(conversation, look).await?;
    let model = settings.map_or_else(|| state.engine().defaults().model.clone(), |settings| settings.model);
    let run = (input.run_id.clone(), input.knows(), model);
    Ok(RunFold::new(conversation.clone(), run, part, offered, asked))
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
    let said = text_of(&history.users());
    let (says_nothing, is_alone) = (history.users().is_empty(), history.before.is_empty());
    let (page, results) = (input.on_page()?, input.results()?);
    let look = |journal: &Journal| {
        // While that is answered, what was said last is not said a second time.
        let is_lost =
            || journal.open_turn().is_some_and(|turn| !turn.is_parked()) && says_again(journal, &page.spoken, &results);
        let is_asked = results.is_empty() && !interrupts(conversation, journal).is_empty();
        // A message that the page has alone says nothing of its place.
        let is_repeated = is_asked && is_alone && is_said_last(journal, &said);
        let is_silent = is_repeated || (says_nothing && ran_here(journal, results.iter().map(String::as_str))) || is_lost();
        let is_back = is_silent || is_asked;
        if is_back { (is_silent, back(conversation, journal, &page)) } else { (false, None) }
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
    let Some(spoken) = input.unanswered()? else { return Ok(None) };
    let all = input.messages.iter().filter_map(|message| message.get("id")?.as_str());
    let named = Named::of(state.engine(), conversation, ("ag-ui", &spoken.id), all).await?;
    Ok(named.map(|named| (named, spoken)))
}

/// What is said last by its name, or by its words where it has none.
async fn said_as(state: &ServerState, conversation: &ConversationId, input: &RunInput) -> Result<Option<String>, ApiError> {
    if let Some((named, _)) = named(state, conversation, input).await? {
        return Ok(Some(named.name()));
    }
    let Some(spoken) = input.unanswered()? else { return Ok(None) };
    let words = serde_json::to_vec(&spoken.content).unwrap_or_default();
    Ok(Some(format!("ag-ui words {}", crate::routes::hash_of(&words))))
}

/// What a page answered.
enum Answered {
    /// This comes of it, and of what is said beside it.
    Part {
        part: Part,
        /// What was said before that, where all was answered before: the page may have a piece of the part, which is told anew.
        again: Option<Vec<Value>>,
        /// What was answered otherwise before, in words.
        otherwise: Vec<String>,
    },
    /// Nothing that is open: what it says is for the turn after.
    Nothing,
    /// What does not fit, of which nothing is stored. In this protocol that is an event.
    Refused(ApiError),
}

/// Stores what answers all that is open, with what is said beside it.
async fn answered(
    state: &ServerState,
    conversation: &ConversationId,
    input: &RunInput,
    once: &(String, String),
    said_last: Option<Seq>,
) -> Result<Answered, ApiError> {
    if input.resume.is_empty() {
        return match state.engine().look(conversation, |journal| interrupts(conversation, journal)).await {
            Ok(open) if !open.is_empty() => Ok(Answered::Refused(not_answered(&open))),
            Ok(_) | Err(EngineError::NotFound { .. }) => Ok(Answered::Nothing),
            Err(error) => Err(error.into()),
        };
    }
    if let Err(error) = read(state, conversation, input).await {
        return Ok(Answered::Refused(error));
    }
    // Nothing is decided by a request that is refused for what it says.
    let beside = beside(state, conversation, input, once, said_last).await?;
    Ok(match resume(state, conversation, input, (beside, said_last), once).await {
        Ok(answered) => answered,
        Err(error) => Answered::Refused(error),
    })
}

async fn read(state: &ServerState, conversation: &ConversationId, input: &RunInput) -> Result<Resumed, ApiError> {
    state.engine().look(conversation, |journal| resumed(conversation, journal, &input.resume)).await?
}

/// What a person says beside their answers; nothing where it was said before.
async fn beside(
    state: &ServerState,
    conversation: &ConversationId,
    input: &RunInput,
    once: &(String, String),
    said_last: Option<Seq>,
) -> Result<Option<NewMessage>, ApiError> {
    let engine = state.engine();
    let is_repeated = engine.said_before(&once.0, &once.1).await?.is_some();
    if is_repeated || !says_more(state, conversation, input).await? {
        return Ok(None);
    }
    let overlay = overlay(state, conversation, input).await?;
    engine.open_turn(conversation, &SettingsOverlay::default()).await?;
    let history = History::of(input.items()?);
    let (mut content, lengths) = (history.users(), history.user_lengths());
    let most = history.said_before_at_most(false);
    let look = |journal: &Journal| history::said_again(&content, (&lengths, most), &history::said_last(journal, lengths.len()));
    let again = engine.look(conversation, look).await?;
    content.drain(..again);
    engine.admits(&content)?;
    // Another request may have said it meanwhile.
    let Ok(known_as) = known_as(state, conversation, input, said_last).await? else { return Ok(None) };
    // The page's own calls have results that come with it, and what it was asked is answered. What another door opens meanwhile is not
    // declined: the page knows nothing of it.
    let on_waiting = OnWaiting::Hold;
    let joins = Joins::Anew;
    let said =
        NewMessage { content, overlay, joins, on_waiting, idempotency: Some(once.clone()), known_as, ..NewMessage::text("") };
    Ok(Some(said))
}

/// What the page calls what is said last, where it is not said yet.
async fn known_as(
    state: &ServerState,
    conversation: &ConversationId,
    input: &RunInput,
    said_last: Option<Seq>,
) -> Result<Result<Option<KnownAs>, Sent>, ApiError> {
    let Some(name) = said_as(state, conversation, input).await? else { return Ok(Ok(None)) };
    let known = SaidAs { name, after: said_last }.known(state.engine(), conversation).await?;
    Ok(known.map(Some))
}

/// What the page's tools gave to calls that wait for it.
fn given(conversation: &ConversationId, journal: &Journal, history: &History) -> Vec<ClientResult> {
    let waits = |call: CallId| {
        let mut waiting = journal.turn().into_iter().flat_map(Turn::waiting);
        waiting.any(|(waits, question)| waits.id == call && question.reason == QuestionReason::ClientTool)
    };
    let results = history.results().filter_map(|gave| {
        let (call, held) = ids::read_call(gave.call)?;
        let is_it = held.is_none_or(|held| held == *conversation) && waits(call);
        is_it.then(|| gave.to(call))
    });
    results.collect()
}

/// Whether a person said something beside their answers. A page that knows nothing of what was asked has their last message at the
/// end, which was said before: it has its name, or, where it has none, its words and no answer before it.
async fn says_more(state: &ServerState, conversation: &ConversationId, input: &RunInput) -> Result<bool, ApiError> {
    let history = History::of(input.items()?);
    let said = text_of(&history.users());
    if said.is_empty() {
        return Ok(false);
    }
    let (spoken, results) = (input.spoken()?, input.results()?);
    let named = named(state, conversation, input).await?;
    let known = match &named {
        Some((named, _)) => named.message(state.engine()).await?,
        None => None,
    };
    let look = |journal: &Journal| {
        let newest = journal.entries().iter().rev().find_map(|stored| match &*stored.entry {
            Entry::User(message) => Some((MessageId(stored.seq), text_of(&message.content))),
            _ => None,
        });
        let Some((newest, words)) = newest else { return true };
        let is_last = words == said || is_said_last(journal, &said);
        match &named {
            Some((_, spoken)) => {
                let is_it = |message| says(journal, message, &spoken.content) || says(journal, message, spoken.last());
                !(known.is_some_and(is_it) || (is_last && is_said_name(&spoken.id, newest.0)))
            }
            None if history.before.is_empty() => !is_last,
            None => !is_last || !says_again(journal, &spoken, &results),
        }
    };
    Ok(state.engine().look(conversation, look).await?)
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
    if let Some((at, what)) = &history.stray
        && let Err(EngineError::NotFound { .. }) = state.engine().look(conversation, |_| ()).await
    {
        return Err(ApiError::invalid(format!("`messages[{at}]` {what}")));
    }
    let known_as = said_as(state, conversation, input).await?.map(|name| SaidAs { name, after: said_last });
    let look = |journal: &Journal| journal.open_turn().is_some_and(|turn| turn.is_parked() || turn.is_held());
    // What waits here is for the page's own tools, which it has given up. What another door opens from here on the page knows nothing of:
    // it is not declined, and asked once the page is told of it.
    let on_waiting = match state.engine().look(conversation, look).await {
        Ok(true) => OnWaiting::Deny,
        Ok(false) | Err(EngineError::NotFound { .. }) => OnWaiting::Hold,
        Err(error) => return Err(error.into()),
    };
    let conversation = Some(conversation.clone());
    let our_tools = OurTools::StayAsTheyWere;
    let ask = Ask { conversation, previous: None, history, overlay, our_tools, idempotency, known_as, on_waiting, again: None };
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
        (Some(context), Some(said)) => Some(joined(Some(said.clone()), context)),
        // It stands beside what is told there anyway.
        (Some(context), None) => {
            let own = match state.engine().conversation(conversation).await {
                Ok(there) => there.overlay.system_prompt,
                Err(EngineError::NotFound { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            let told = own.or_else(|| state.engine().defaults().system_prompt.clone());
            // What the page showed before is gone, also where nothing is left to be told.
            Some(joined(told, context))
        }
    };
    let client_tools = input.tools()?;
    let tool_choice = tool_choice(state, input, client_tools.as_deref().unwrap_or_default()).await;
    Ok(SettingsOverlay { model, system_prompt: prompt, client_tools, tool_choice, ..SettingsOverlay::default() })
}

/// What the model must call, in the form of Chat Completions: so `@copilotkit/core` asks for its suggestions. What is said in
/// another form, or of a tool that is not there, is for another agent and ignored, as all that a page forwards and nothing here knows.
async fn tool_choice(state: &ServerState, input: &RunInput, own: &[Arc<ToolDefinition>]) -> Option<ToolChoice> {
    let chosen = input.forwarded_props.as_ref()?.get("toolChoice")?;
    let choosable = choosable(state.engine(), Some(chosen), own).await;
    chosen_tool(Some(chosen), &choosable).ok().filter(|chosen| chosen.only.is_none())?.choice
}

/// What the model is told, with what the page shows at the moment.
fn joined(told: Option<String>, context: String) -> String {
    told.into_iter().chain([context]).filter(|said| !said.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Stores the answers to all interrupts that are open, with what is said beside them, in one: what comes of that. The same answers
/// again change nothing, nor do others to what somebody answered before.
async fn resume(
    state: &ServerState,
    conversation: &ConversationId,
    input: &RunInput,
    (mut beside, said_last): (Option<NewMessage>, Option<Seq>),
    once: &(String, String),
) -> Result<Answered, ApiError> {
    let engine = state.engine();
    let mut looks = 0_u32;
    let (calls, otherwise) = loop {
        let Resumed { fresh, calls, otherwise } = read(state, conversation, input).await?;
        if fresh.is_empty() {
            break (calls, otherwise);
        }
        let stored = match &beside {
            Some(message) => engine.send(conversation, NewMessage { answers: fresh, ..message.clone() }).await.map(drop),
            None => engine.answer_all(conversation, fresh, Some(once.clone())).await,
        };
        looks = looks.saturating_add(1);
        match stored {
            // What was said before is taken for said, whatever else was answered beside it.
            Ok(()) => beside = None,
            Err(EngineError::SaidMeanwhile) => match known_as(state, conversation, input, said_last).await? {
                Ok(known) => beside.iter_mut().for_each(|message| message.known_as.clone_from(&known)),
                Err(_said) => beside = None,
            },
            // Somebody may have answered the same at the same moment.
            Err(
                EngineError::NotWaiting { .. } | EngineError::NotAsked { .. } | EngineError::Store(StoreError::Repeated { .. }),
            ) if looks < MOST_LOOKS => {}
            Err(error) => return Err(error.into()),
        }
    };
    if beside.is_some() {
        let open = engine.look(conversation, |journal| interrupts(conversation, journal)).await?;
        return if open.is_empty() { Ok(Answered::Nothing) } else { Err(not_answered(&open)) };
    }
    let history = History::of(input.items()?);
    let results = engine.look(conversation, |journal| given(conversation, journal, &history)).await?;
    if !results.is_empty() {
        let asked = Some(overlay(state, conversation, input).await?);
        engine.give_results_once(conversation, Given { results, asked, ..Given::default() }, None).await?;
    }
    let page = input.on_page()?;
    let look = |journal: &Journal| {
        let part = part_after(journal, &calls)?;
        let again = (looks == 0).then(|| before_part(conversation, journal, &page, &part)).flatten();
        Some((part, again))
    };
    let part = engine.look(conversation, look).await?;
    let (part, again) = part.ok_or_else(|| ApiError::invalid("no such interrupt was open"))?;
    Ok(Answered::Part { part, again, otherwise })
}

/// A stream that says no.
fn refused(error: &ApiError) -> Response {
    let mut response = Response::new(Body::from(refusal(error)));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}
