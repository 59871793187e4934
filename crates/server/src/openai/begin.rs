//! From a request to the turn that answers it: a conversation that goes on, or a new one, into which [`super::taking_over`] takes
//! the history that the client brings. Everything is stored as what comes in by any other door.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::{Map, Value};
use turnwright_core::{ApprovalId, CallId, ContentBlock, ConversationId, IdError, Journal, ToolDefinition, is_blank};
use turnwright_engine::{ClientResult, Engine, EngineError, Given, NewConversation, OnWaiting, SettingsOverlay, StoreError};

use super::again::{Again, Came, taken_up};
use super::answering::{self, goes_on_from};
use super::buried;
use super::decided::{decides_in_one, decision};
use super::deciding::decide;
use super::files;
use super::given::{self, GivenBefore, given, given_otherwise, goes_on};
use super::history::{History, Item, Said, mark, said_again, said_last};
use super::ids;
use super::known::Fingerprint;
use super::recalled;
use super::referred;
use super::responses::developers::{finish, joined, leave_later_out, stays_in_chain, with_more};
use super::responses::object::{PREFIX, offered_to, part_after};
use super::responses::stored::{Brings, continued};
use super::saying::{Place, is_overtaken, last_of_newest, say, say_after};
use super::settings::{OurTools, for_the_rest};
use super::taking_over::{say_in_copy, take_up};
use super::track::Part;
use crate::attached::Attached;
use crate::error::ApiError;
use crate::named::SaidAs;
use crate::state::ServerState;

/// The header that names a conversation, in requests and answers.
pub(crate) const CONVERSATION_HEADER: &str = "x-turnwright-conversation";

/// The field that does.
const IN_METADATA: &str = "metadata.conversation_id";

/// What is said for a client that says nothing after the model's own words.
const GO_ON: &str = "Go on.";

/// What a request asks for.
#[derive(Debug)]
pub(crate) struct Ask {
    /// The conversation, where the request names it.
    pub(crate) conversation: Option<ConversationId>,
    /// The response that it goes on from, where it names one and no conversation.
    pub(crate) previous: Option<String>,
    pub(crate) history: History,
    pub(crate) overlay: SettingsOverlay,
    /// What becomes of the tools on this side where it does not narrow them, and goes on with a turn.
    pub(crate) our_tools: OurTools,
    pub(crate) idempotency: Option<(String, String)>,
    /// What the page of the person calls what they say, by which that is said once.
    pub(crate) known_as: Option<SaidAs>,
    /// What becomes of what waits where it is said.
    pub(crate) on_waiting: OnWaiting,
    /// How the request is known where it comes again without a key, where its clients send such.
    pub(crate) again: Option<Again>,
}

impl Ask {
    /// What it adds to what is said before the rest of the chain of responses that it goes on with.
    pub(super) fn adds_to_chain(&self) -> Option<&str> {
        self.previous.as_ref().and(self.conversation.as_ref()).and(self.history.system.as_deref())
    }

    /// What it chooses for the rest of the turn that is open in a conversation.
    pub(super) async fn for_the_rest(
        &self,
        state: &ServerState,
        conversation: &ConversationId,
    ) -> Result<SettingsOverlay, EngineError> {
        for_the_rest(state.engine(), conversation, (&self.overlay, self.our_tools)).await
    }
}

/// The turn that answers.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) conversation: ConversationId,
    pub(crate) part: Part,
    /// What was offered when it began.
    pub(crate) offered: Arc<[Arc<ToolDefinition>]>,
    /// All that the client said.
    pub(crate) history: Fingerprint,
}

/// The conversation that a header or the metadata of a request names.
///
/// # Errors
/// 400, where it is no name.
pub(crate) fn named(headers: &HeaderMap, metadata: Option<&Map<String, Value>>) -> Result<Option<ConversationId>, ApiError> {
    let header = headers.get(CONVERSATION_HEADER).map(|value| value.to_str().unwrap_or("(not text)"));
    let field = metadata.and_then(|metadata| metadata.get("conversation_id")).filter(|field| !field.is_null());
    let name = match (header, field) {
        (Some(header), _) => Some(header),
        (None, Some(Value::String(name))) => Some(name.as_str()),
        (None, Some(other)) => {
            let what = format!("`{IN_METADATA}` is {other}, it must be the name of a conversation");
            return Err(ApiError::invalid(what).about(IN_METADATA));
        }
        (None, None) => None,
    };
    let about = if header.is_some() { CONVERSATION_HEADER } else { IN_METADATA };
    name.map(str::parse).transpose().map_err(|error: IdError| ApiError::from(error).about(about))
}

/// A refusal that is about no field, where it is about the conversation that a header or the metadata names.
pub(crate) fn about_named(error: ApiError, headers: &HeaderMap) -> ApiError {
    if error.param().is_some() || !matches!(error.code(), "not_found" | "exists" | "turn_open") {
        return error;
    }
    error.about(if headers.contains_key(CONVERSATION_HEADER) { CONVERSATION_HEADER } else { IN_METADATA })
}

/// Stores what the request says and starts, or goes on with, its turn.
pub(crate) async fn begin(state: &ServerState, mut ask: Ask) -> Result<Begun, ApiError> {
    buried::dig_out(state, &mut ask).await?;
    let mut users = ask.history.users();
    let placed = |error: ApiError| {
        let place = error.param().and_then(|part| ask.history.place_of(part.parse().ok()?));
        place.into_iter().fold(error, ApiError::about)
    };
    let attached = Attached::resolve(state, &mut users).await.map_err(placed)?;
    let answered = answering::conversation_of(state, &ask).await?;
    if ask.previous.is_some() {
        ask.conversation.clone_from(&answered);
    }
    if let Some(conversation) = answered.as_ref().or(ask.conversation.as_ref()) {
        let (lengths, most) = (ask.history.user_lengths(), ask.history.said_before_at_most(answered.is_some()));
        let look = |journal: &Journal| said_again(&users, (&lengths, most), &said_last(journal, lengths.len()));
        let again = where_there(state.engine().look(conversation, look).await)?;
        users.drain(..again.unwrap_or_default());
    }
    if goes_on_alone(&ask) {
        users = vec![ContentBlock::text(GO_ON)];
    }
    if is_blank(&users) {
        // No model takes it.
        users.clear();
    }
    let again = ask.again.clone();
    let begun = begin_with(state, ask, users).await?;
    if let Some(again) = again {
        again.keep(state, &begun.conversation, &begun.part);
    }
    attached.keep(state, &begun.conversation).await;
    Ok(begun)
}

async fn begin_with(state: &ServerState, mut ask: Ask, users: Vec<ContentBlock>) -> Result<Begun, ApiError> {
    decides_in_one(&ask)?;
    let before = marked_before(state, &ask.history);
    let mut history = before.clone();
    mark(&mut history, ask.history.fresh.iter().map(Arc::as_ref));
    if users.is_empty() && ask.history.results().next().is_none() && ask.history.approvals().next().is_none() {
        return Err(says_nothing(&ask.history));
    }
    let again = ask.again.clone();
    let has_key = ask.idempotency.is_some();
    let mut came = Came::Before;
    if let Some(again) = again.as_ref().filter(|_| !has_key)
        && let Some((key, of_key)) = again.key(state).await?
    {
        (ask.idempotency, came) = (Some(key), of_key);
    }
    // Before anything that depends on what was said meanwhile.
    if came == Came::Before
        && let Some(begun) = begun_before(state, &ask, &users, &history).await?
    {
        // Its first time may have been cut off there.
        finish(state, (&begun.conversation, begun.part.after)).await?;
        return Ok(begun);
    }
    // Who chose a key wants one request for each.
    if let Some(again) = again.filter(|again| !has_key || again.is_repetition())
        && let Some((conversation, part)) = again.joined(state, &ask.overlay).await?
    {
        return begun(state, conversation, part, history).await;
    }
    if let Some(previous) = ask.previous.as_ref().filter(|_| ask.conversation.is_none()) {
        match given::before(state, &ask, previous).await? {
            Some(GivenBefore::Same(conversation, calls)) if users.is_empty() => {
                return after_calls(state, conversation, calls, None, history).await;
            }
            Some(GivenBefore::Other(of, results)) => return give_otherwise(state, (&of, &results), &ask, users, history).await,
            Some(GivenBefore::Same(..)) => ask.conversation = Some(continued(state, previous, Brings::Words).await?),
            None => ask.conversation = Some(goes_on_from(state, &ask, previous, users.is_empty()).await?),
        }
    }
    let Some(chain) = ask.conversation.clone().filter(|_| ask.previous.is_some()) else {
        return go_on(state, ask, users, history, before).await;
    };
    if let Some((held, after)) = ask.previous.as_deref().and_then(|previous| ids::read_answer(PREFIX, previous))
        && held == chain
    {
        finish(state, (&chain, after)).await?;
    }
    if ask.overlay.system_prompt.is_some() {
        let before = state.engine().conversation(&chain).await?.overlay.system_prompt;
        let said = with_more(before, ask.history.system.as_deref());
        ask.overlay.system_prompt = joined([ask.history.instructions.clone(), said]);
    }
    let system = ask.adds_to_chain().map(str::to_owned);
    let begun = go_on(state, ask, users, history, before).await?;
    if let Some(system) = system {
        stays_in_chain(state, (&begun.conversation, begun.part.after), &system).await?;
    }
    Ok(begun)
}

/// The fingerprint of all that stands before what a request brings.
fn marked_before(state: &ServerState, history: &History) -> Fingerprint {
    let (known, beginning) = (state.known(), history.written_before());
    beginning.and_then(|beginning| known.seen().marked(beginning)).unwrap_or_else(|| {
        let mut before = known.fingerprint(state.engine().user());
        mark(&mut before, history.before.iter().map(Arc::as_ref));
        if let Some(beginning) = beginning {
            known.seen().keep_marked(beginning, &before);
        }
        before
    })
}

/// Says, decides or gives what the request brings, where it goes on; `before` is all that stands before that.
async fn go_on(
    state: &ServerState,
    mut ask: Ask,
    users: Vec<ContentBlock>,
    history: Fingerprint,
    before: Fingerprint,
) -> Result<Begun, ApiError> {
    if let Some(begun) = decide(state, &ask, users.clone(), &history).await? {
        return Ok(begun);
    }
    if let Some(begun) = give(state, &ask, &users, &history).await? {
        return Ok(begun);
    }
    if ask.previous.is_none()
        && let Some(conversation) = referred::conversation_of(state, &ask).await?
    {
        ask.conversation = Some(conversation);
    }
    let has_results = ask.history.results().next().is_some();
    // What ran elsewhere is put into no conversation that goes on.
    let has_more = ask.history.fresh.iter().any(|item| matches!(item.said, Said::Elsewhere { .. }));
    if let Some(conversation) = &ask.conversation {
        if has_results && users.is_empty() && is_there(state, conversation).await? {
            return Err(given::none_waits(&ask, conversation));
        }
        let brings_history = ask.history.before_users().any(Item::says_something);
        if !brings_history || is_there(state, conversation).await? {
            let is_own = |previous: &&String| ids::read_answer(PREFIX, previous).is_some_and(|(own, _)| own == *conversation);
            return match ask.previous.as_ref().filter(is_own) {
                Some(previous) => say_after(state, previous, &ask, users, history).await,
                None => say(state, Place::Named(conversation.clone()), &ask, users, history).await,
            };
        }
    }
    if !(has_results || has_more)
        && ask.conversation.is_none()
        && !ask.history.before.is_empty()
        && let Some((conversation, turn, known_at_ms)) = match state.known().find(&before) {
            Some(known) => Some(known),
            None => recalled::conversation_of(state, &ask.history.before, &before, &of_conversation(&ask)).await?,
        }
        && let Some(last) = last_of_newest(state.engine(), &conversation, (turn, known_at_ms)).await?
    {
        match say(state, Place::Next(conversation, last), &ask, users.clone(), history.clone()).await {
            // Another request goes on with it, and this one in a copy.
            Err(error) if is_overtaken(&error) => {}
            said => return said,
        }
    }
    let conversation = match &ask.conversation {
        Some(named) => named.clone(),
        None => new_name(state, &ask)?,
    };
    if ask.history.before_users().any(Item::says_something) {
        if let Some((at, what)) = &ask.history.stray {
            return Err(ApiError::invalid(format!("the message {what}")).about(format!("messages[{at}].tool_call_id")));
        }
        let users = ask.history.after_taken_over(users);
        state.engine().has_room_for(&users)?;
        let files = files::bring(state, &mut ask.history).await?;
        let begun = say_in_copy(state, conversation, &ask, users, history).await?;
        files.keep(state, &begun.conversation).await;
        return Ok(begun);
    }
    say(state, Place::New(conversation), &ask, users, history).await
}

/// What comes of results of the client's own calls, where the request brings some that its conversation goes on with.
async fn give(
    state: &ServerState,
    ask: &Ask,
    users: &[ContentBlock],
    history: &Fingerprint,
) -> Result<Option<Begun>, ApiError> {
    let Some((conversation, results)) = given(ask) else { return Ok(None) };
    if !goes_on(state.engine(), &conversation, &results, users.is_empty()).await? {
        return Ok(None);
    }
    let calls: Vec<CallId> = results.iter().map(|result| result.call).collect();
    let look =
        |journal: &Journal| (calls.iter().all(|call| journal.result(*call).is_some()), given_otherwise(journal, &results));
    let refuse = |call| {
        let what = format!("the call `{}` was given another result before", ids::call_id(&conversation, call));
        ApiError::invalid(what).about("messages")
    };
    let (are_there, other) = state.engine().look(&conversation, look).await?;
    if let Some(call) = other {
        return Err(refuse(call));
    }
    // What is said beside them is kept under the key.
    let key = ask.idempotency.clone().filter(|_| users.is_empty());
    let stored = if users.is_empty() {
        let asked = Some(ask.for_the_rest(state, &conversation).await?);
        let given = Given { results: results.clone(), asked, ..Given::default() };
        let stored = state.engine().give_results_once(&conversation, given, key).await;
        stored.map(|_turn| None).map_err(ApiError::from)
    } else {
        // The model sees both at its next step.
        let place = Place::Given(conversation.clone(), results.clone());
        say(state, place, ask, users.to_vec(), history.clone()).await.map(Some)
    };
    if let Ok(Some(begun)) = stored {
        return Ok(Some(begun));
    }
    // Of several that came at the same moment the first counts.
    if let Some(call) = state.engine().look(&conversation, |journal| given_otherwise(journal, &results)).await? {
        if ask.previous.is_none() {
            return Err(refuse(call));
        }
        return give_otherwise(state, (&conversation, &results), ask, users.to_vec(), history.clone()).await.map(Some);
    }
    stored?;
    let retry = are_there.then_some(&ask.overlay);
    after_calls(state, conversation, calls, retry, history.clone()).await.map(Some)
}

pub(super) fn brings(ask: &Ask) -> Brings {
    let is_answer = ask.history.results().next().is_some() || ask.history.approvals().next().is_some();
    if is_answer { Brings::WhatCallsWaitFor } else { Brings::Words }
}

/// Whether the request asks the model to go on after its own words, or to begin by itself, which OpenAI's API takes too.
fn goes_on_alone(ask: &Ask) -> bool {
    let is_quiet =
        |item: &Arc<Item>| matches!(item.said, Said::System(_) | Said::Elsewhere { .. } | Said::Echo | Said::Nothing);
    let is_quiet = ask.history.fresh.iter().all(is_quiet);
    let has_anything = !ask.history.before.is_empty() || ask.history.system.is_some();
    // Pages of AG-UI come back so, to be told.
    let is_of_openai = ask.again.is_some();
    is_of_openai && is_quiet && has_anything
}

fn says_nothing(history: &History) -> ApiError {
    let what = if history.has_users() {
        "the user's message is empty; say something"
    } else if history.fresh.is_empty() && history.before.is_empty() && history.system.is_none() {
        "nothing is said; there must be a user's message, or the result of a tool"
    } else {
        "the last message must be a user's, or the result of a tool"
    };
    ApiError::invalid(what).about("messages")
}

/// What is answered to a question about a call, and whether with a yes; nothing where its result is given.
type Decided = Option<(ApprovalId, bool)>;

/// What the same request with the same key began, where it came before.
pub(super) async fn begun_before(
    state: &ServerState,
    ask: &Ask,
    users: &[ContentBlock],
    history: &Fingerprint,
) -> Result<Option<Begun>, ApiError> {
    let Some((key, fingerprint)) = &ask.idempotency else { return Ok(None) };
    let said = state.engine().said_before(key, fingerprint).await?;
    let decides = ask.history.approvals().next().is_some();
    let retry = ask.again.as_ref().is_some_and(Again::is_repetition).then_some(&ask.overlay);
    match said {
        Some((conversation, sent)) if !decides => {
            let part = Part { turn: sent.turn_id, after: sent.message_id.0, calls: Vec::new() };
            let part = match retry {
                Some(overlay) => taken_up(state, &conversation, part, overlay).await?,
                None => part,
            };
            return begun(state, conversation, part, history.clone()).await.map(Some);
        }
        None if !users.is_empty() => return Ok(None),
        Some(_) | None => {}
    }
    // Results and decisions are each taken once, so those that are there came with it.
    let answered = ask.history.approvals().filter_map(|(_, request, is_approved, _)| {
        let (asked, conversation) = ids::read_request(request)?;
        Some((asked.call, conversation.or_else(|| ask.conversation.clone())?, Some((asked, is_approved))))
    });
    let (of, results) = given(ask).unzip();
    let results: Vec<ClientResult> = results.into_iter().flatten().collect();
    let gave = results.iter().filter_map(|result| Some((result.call, of.clone()?, None)));
    let calls: Vec<(CallId, ConversationId, Decided)> = answered.chain(gave).collect();
    let Some((_, conversation, _)) = calls.first() else { return Ok(None) };
    let is_there = |journal: &Journal, call: CallId, decided: Decided| match decided {
        None => {
            journal.result(call).is_some_and(|there| results.iter().any(|result| result.call == call && result.is_same(there)))
        }
        Some((asked, is_approved)) => decision(journal, asked).is_some_and(|made| made.verdict.lets_run() == is_approved),
    };
    let look = |journal: &Journal| calls.iter().all(|(call, _, decided)| is_there(journal, *call, *decided));
    match state.engine().look(conversation, look).await {
        Ok(true) => {
            let named = calls.iter().map(|(call, ..)| *call).collect();
            after_calls(state, conversation.clone(), named, retry, history.clone()).await.map(Some)
        }
        Ok(false) | Err(EngineError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn is_there(state: &ServerState, conversation: &ConversationId) -> Result<bool, ApiError> {
    Ok(where_there(state.engine().conversation(conversation).await)?.is_some())
}

/// What was found of a conversation; `None` where there is none. A store that fails knows nothing of that.
pub(super) fn where_there<T>(found: Result<T, EngineError>) -> Result<Option<T>, ApiError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(EngineError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The answer to what was given to calls, or decided about them. Where that was stored before and the turn failed since, it is taken
/// up again with these settings.
pub(super) async fn after_calls(
    state: &ServerState,
    conversation: ConversationId,
    calls: Vec<CallId>,
    retry: Option<&SettingsOverlay>,
    history: Fingerprint,
) -> Result<Begun, ApiError> {
    let part = state.engine().look(&conversation, |journal| part_after(journal, &calls)).await?;
    let part = part.ok_or_else(|| ApiError::not_found("such call"))?;
    let part = match retry {
        Some(overlay) => taken_up(state, &conversation, part, overlay).await?,
        None => part,
    };
    begun(state, conversation, part, history).await
}

pub(super) async fn begun(
    state: &ServerState,
    conversation: ConversationId,
    part: Part,
    history: Fingerprint,
) -> Result<Begun, ApiError> {
    let offered = state.engine().look(&conversation, |journal| offered_to(journal, &part)).await?;
    Ok(Begun { conversation, part, offered, history })
}

/// What a conversation keeps of what its first request chose.
pub(super) fn of_conversation(ask: &Ask) -> SettingsOverlay {
    SettingsOverlay {
        model: ask.overlay.model.clone(),
        // What a page shows at the moment is no part of it.
        system_prompt: ask.history.system.clone(),
        ..SettingsOverlay::default()
    }
}

/// Calls that were given results are given others in a conversation of its own, which is the same up to there; the first keeps its own.
async fn give_otherwise(
    state: &ServerState,
    (of, results): (&ConversationId, &[ClientResult]),
    ask: &Ask,
    users: Vec<ContentBlock>,
    history: Fingerprint,
) -> Result<Begun, ApiError> {
    let conversation = new_name(state, ask)?;
    let new = NewConversation { id: Some(conversation.clone()), ..NewConversation::default() };
    match state.engine().fork_given(of, results, new).await {
        Ok(copy) => {
            let previous = ask.previous.as_deref().and_then(|previous| ids::read_answer(PREFIX, previous));
            if let Some((_, after)) = previous.filter(|(held, _)| held == of) {
                leave_later_out(state, copy, (of, after)).await?;
            }
        }
        // The same request came before, and what it began is found by its key.
        Err(EngineError::Exists { .. } | EngineError::Store(StoreError::Exists { .. })) if ask.idempotency.is_some() => {}
        Err(error @ EngineError::Invalid { .. }) => return Err(ApiError::from(error).about("messages")),
        Err(error) => return Err(error.into()),
    }
    if users.is_empty() {
        return take_up(state, conversation, ask, None, history).await;
    }
    say(state, Place::There(conversation), ask, users, history).await
}

/// The name of the conversation that a request makes.
fn new_name(state: &ServerState, ask: &Ask) -> Result<ConversationId, ApiError> {
    match &ask.idempotency {
        // The same request that comes again finds what the first one made.
        Some((key, _)) => Ok(ids::of_key(state.engine().user(), key)?),
        None => Ok(Engine::new_id()?),
    }
}
