//! What stock `useChat` of the AI SDK sends.
//!
//! The journal is the history. From the body only what a person can say is taken: the last message where it is theirs, the
//! wish to try again, and answers to questions. What it claims of tools and models is ignored.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwright_api as api;
use turnwright_core::{
    ApprovalId, ApproveMode, CallId, ContentBlock, Control, ConversationId, EmbeddedResource, Entry, Journal, MessageId,
    QuestionReason, Seq, StoredEntry, TurnId, TurnStatus, Verdict, is_blank,
};
use turnwright_engine::{
    Answers, Beneath, Choice, EngineError, KeptBy, NewMessage, OnWaiting, SettingsOverlay, Stale, WaitingCall,
};

use super::chat::{begin_of, cannot_ask, on_waiting};
use super::idempotency::{asked, repeatable};
use super::streams::{MessagePosition, UiQuery, resume as resume_turn, stream_of};
use super::ui_said_again::{Meant, answered_elsewhere, can_be_retried, named, names, newest, question};
use crate::attached::{self, Attached};
use crate::error::ApiError;
use crate::extract::{InConversation, Search, State, Whole, id};
use crate::named::{Named, says};
use crate::open_stream::OpenStream;
use crate::openai::responses::object::turn_of;
use crate::openapi::{BodyRefused, Conflicting, ConversationPath, Limited, NotAnswered, NotThere, Refused, RepeatableHeader};
use crate::repeat::once_alike;
use crate::settings;
use crate::state::ServerState;
use crate::ui::{Begin, UiVersion};

/// What `useChat` sends; what else a page adds is ignored.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(super) struct UiRequest<'a> {
    /// The conversation, begun where it is not there yet.
    #[schema(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    id: String,
    /// The `UIMessage` objects that the page has; of these the last counts.
    #[serde(borrow, default)]
    #[schema(value_type = Vec<serde_json::Map<String, serde_json::Value>>)]
    messages: Vec<&'a RawValue>,
    /// The last of them, from a page that sends no others.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    message: Option<&'a RawValue>,
    /// What the page wants; that its last message is answered where absent.
    #[serde(default)]
    trigger: Option<Trigger>,
    /// The message that is said otherwise, or the answer that another is wanted for.
    #[serde(default, rename = "messageId")]
    message_id: Option<String>,
    /// `PROVIDER/MODEL`; the conversation's where absent.
    #[serde(default)]
    model: Option<String>,
    /// What happens where a turn waits already. Where it is not said, what waits is declined, as far as the caller may do that: a
    /// stock client answers nothing that is asked before its last message.
    #[serde(default)]
    on_waiting: Option<api::OnWaiting>,
}

/// `submit-message`, or `regenerate-message` for another answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Trigger {
    SubmitMessage,
    RegenerateMessage,
}

#[derive(Debug, Deserialize)]
struct UiMessage {
    #[serde(default)]
    id: String,
    role: String,
    #[serde(default)]
    parts: Vec<UiPart>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UiPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    url: Option<String>,
    media_type: Option<String>,
    filename: Option<String>,
    state: Option<String>,
    approval: Option<UiApproval>,
}

#[derive(Debug, Deserialize)]
struct UiApproval {
    id: String,
    approved: Option<bool>,
    reason: Option<String>,
}

/// Takes what a person says or answers, and streams what comes of it.
#[utoipa::path(
    post,
    path = "/api/chat",
    operation_id = "uiChat",
    tag = "pages",
    params(UiQuery, RepeatableHeader),
    request_body = UiRequest<'static>,
    responses((status = 200, description = "An AI SDK UI message stream.", body = serde_json::Value, content_type = "text/event-stream"), Refused, BodyRefused, NotThere, Conflicting, NotAnswered, Limited)
)]
pub(super) async fn chat(State(state): State, Search(query): Search<UiQuery>, whole: Whole) -> Result<Response, ApiError> {
    let version = query.version(UiVersion::V6)?;
    let mut request: UiRequest<'_> = whole.json()?;
    if request.messages.is_empty() {
        request.messages.extend(request.message);
    }
    let conversation: ConversationId = id(&request.id)?;
    let stream = OpenStream::of(&state)?;
    let key = repeatable(&whole, &format!("{conversation}/ui"))?;
    if request.trigger == Some(Trigger::RegenerateMessage) && !is_unheard(&state, &conversation, &request, key.as_ref()).await?
    {
        let turn = regenerated(&state, &conversation, &whole, version).await;
        let turn = turn.map_err(|error| saying_how_to_stop(error, &conversation))?;
        return stream_of(&state, conversation, turn, (version, Begin::Turn), stream).await;
    }
    let last = request.messages.last().ok_or_else(|| ApiError::invalid("`messages` is empty"))?;
    let last: UiMessage = serde_json::from_str(last.get())
        .map_err(|error| ApiError::invalid(format!("the last of `messages` is wrong: {error}")))?;
    if last.role != "user" {
        let (turn, begin) = answer(&state, &conversation, last, key).await?;
        return stream_of(&state, conversation, turn, (version, begin), stream).await;
    }
    let mut content = content(last.parts)?;
    let attached = Attached::resolve(&state, &mut content).await?;
    let replaces = request.message_id.as_deref() == Some(last.id.as_str());
    let (turn, begin) = loop {
        let said = say(&state, &conversation, (&request, version), (&content, replaces), key.as_ref()).await;
        match said.map_err(|error| saying_how_to_stop(error, &conversation))? {
            Some(said) => break said,
            // Somebody else said something, so that this may have come meanwhile.
            None => tokio::task::yield_now().await,
        }
    };
    attached.keep(&state, &conversation).await;
    stream_of(&state, conversation, turn, (version, begin), stream).await
}

/// A page's own `stop()` leaves its turn open.
fn saying_how_to_stop(error: ApiError, conversation: &ConversationId) -> ApiError {
    if error.code() != "turn_open" {
        return error;
    }
    let what = format!("{error} (POST /api/v1/conversations/{conversation}/cancel stops it)");
    ApiError::new(error.status(), error.code(), what)
}

/// Says what a page says last, unless it came before; its turn, and where its stream begins. `None` where others said something
/// meanwhile, and nothing is stored.
async fn say(
    state: &ServerState,
    conversation: &ConversationId,
    (request, version): (&UiRequest<'_>, UiVersion),
    (content, replaces): (&[ContentBlock], bool),
    key: Option<&(String, String)>,
) -> Result<Option<(TurnId, Begin)>, ApiError> {
    let named = named_last(state, conversation, request).await?;
    if let (None, Some(named)) = (key, &named)
        && let Some(again) = comes_again(state, conversation, named, (content, request.model.clone(), version)).await?
    {
        return Ok(Some(again));
    }
    let replaces = if replaces { replaced(state, conversation, request, named.as_ref()).await? } else { None };
    let message = NewMessage {
        content: content.to_vec(),
        overlay: settings::overlay(state.engine(), request.model.clone(), api::Settings::default())?,
        on_waiting: match request.on_waiting {
            Some(choice) => on_waiting(choice),
            None if state.engine().may_decide() => OnWaiting::Deny,
            None => OnWaiting::Hold,
        },
        answers: answered_beside(state, conversation, &request.messages).await?,
        kept_by: KeptBy::Servers,
        create: true,
        conversation: SettingsOverlay::default(),
        replaces,
        beneath: Beneath::Conversation,
        idempotency: key.cloned(),
        known_as: named.map(|named| named.known()),
        denies_questions: cannot_ask(version),
        ..NewMessage::text("")
    };
    match state.engine().send(conversation, message).await {
        Err(EngineError::SaidMeanwhile) => Ok(None),
        sent => sent.map(|sent| Some((sent.turn_id, begin_of(&sent)))).map_err(ApiError::from),
    }
}

/// The last message that the page has, by its name, where that is a person's.
async fn named_last<'a>(
    state: &ServerState,
    conversation: &'a ConversationId,
    request: &UiRequest<'_>,
) -> Result<Option<Named<'a>>, ApiError> {
    let names = names(&request.messages);
    let Some((_, name)) = names.last().filter(|(role, _)| role == "user") else { return Ok(None) };
    Named::of(state.engine(), conversation, ("ui", name), names.iter().map(|(_, name)| name.as_str())).await
}

/// Where the page says once more what was said last: its turn, which is told, and taken up again where it did not end well.
async fn comes_again(
    state: &ServerState,
    conversation: &ConversationId,
    named: &Named<'_>,
    (content, model, version): (&[ContentBlock], Option<String>, UiVersion),
) -> Result<Option<(TurnId, Begin)>, ApiError> {
    let Some(sent) = named.newest(state.engine()).await? else { return Ok(None) };
    let look = |journal: &Journal| {
        let turn = journal.turn().filter(|turn| turn.id() == sent.turn_id && says(journal, sent.message_id, content))?;
        Some((turn.ended().is_none_or(|status| *status == TurnStatus::Completed), turn.settings().approve))
    };
    match state.engine().look(conversation, look).await? {
        None => Ok(None),
        Some((true, _)) => Ok(Some((sent.turn_id, begin_of(&sent)))),
        Some((false, approve)) => {
            let mut overlay = settings::overlay(state.engine(), model, api::Settings::default())?;
            overlay.approve = retried_with(approve, version);
            Ok(Some((state.engine().retry(conversation, overlay).await?, Begin::Turn)))
        }
    }
}

/// Whether another answer is wanted to a message that never came here: it is said by that.
async fn is_unheard(
    state: &ServerState,
    conversation: &ConversationId,
    request: &UiRequest<'_>,
    key: Option<&(String, String)>,
) -> Result<bool, ApiError> {
    if names(&request.messages).last().is_none_or(|(role, _)| role != "user") {
        return Ok(false);
    }
    if let Some((key, fingerprint)) = key
        && state.engine().said_before(key, fingerprint).await?.is_some()
    {
        return Ok(true);
    }
    let journal = match state.engine().journal(conversation).await {
        Err(EngineError::NotFound { .. }) => return Ok(true),
        journal => journal?,
    };
    if request.message_id.as_deref().is_some_and(|name| named(&journal, name).is_some()) {
        return Ok(false);
    }
    if let Some(last) = named_last(state, conversation, request).await?
        && last.message(state.engine()).await?.is_some()
    {
        return Ok(false);
    }
    Ok(question(&journal, &request.messages).message(meant(request))?.is_none())
}

/// What a page calls the message that it means.
fn meant<'a>(request: &'a UiRequest<'_>) -> &'a str {
    request.message_id.as_deref().unwrap_or("the last of `messages`")
}

/// The message that a person says otherwise.
async fn replaced(
    state: &ServerState,
    conversation: &ConversationId,
    request: &UiRequest<'_>,
    named: Option<&Named<'_>>,
) -> Result<Option<MessageId>, ApiError> {
    if let Some(named) = named
        && let Some(message) = named.message(state.engine()).await?
    {
        return Ok(Some(message));
    }
    match state.engine().journal(conversation).await {
        Ok(journal) => question(&journal, &request.messages).message(meant(request)),
        // It is new.
        Err(EngineError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The mode with which a turn of this one is taken up again for a client, where that cannot be asked.
fn retried_with(approve: ApproveMode, version: UiVersion) -> Option<ApproveMode> {
    (approve == ApproveMode::Ask && cannot_ask(version)).then_some(ApproveMode::ReadOnly)
}

/// The turn of another answer; with an idempotency key the one that the first such request began.
async fn regenerated(
    state: &ServerState,
    conversation: &ConversationId,
    whole: &Whole,
    version: UiVersion,
) -> Result<TurnId, ApiError> {
    let again = {
        let (state, conversation, whole) = (state.clone(), conversation.clone(), whole.clone());
        let key = repeatable(&whole, &format!("{conversation}/ui/regenerate"))?;
        async move {
            let turn = regenerate(&state, &conversation, (&whole.json()?, version), key).await?;
            Ok(api::TurnAccepted { turn_id: turn.to_string(), turn_status: "running".to_owned() })
        }
    };
    let accepted = once_alike(state, asked(whole)?, (Some(conversation), "regenerate"), again).await?;
    id(accepted.get("turn_id").and_then(Value::as_str).unwrap_or_default())
}

/// Another answer: the last turn goes on that did not end well; else the question is asked again, and what came of it is
/// hidden. Once for a key, also where the process died before it said so.
async fn regenerate(
    state: &ServerState,
    conversation: &ConversationId,
    (request, version): (&UiRequest<'_>, UiVersion),
    key: Option<(String, String)>,
) -> Result<TurnId, ApiError> {
    let mut overlay = settings::overlay(state.engine(), request.model.clone(), api::Settings::default())?;
    let journal = state.engine().journal(conversation).await?;
    let by_name = request.message_id.as_deref().and_then(|name| named(&journal, name));
    let last = named_last(state, conversation, request).await?;
    let by_its_own = match &last {
        Some(last) => last.message(state.engine()).await?,
        None => None,
    };
    let has_question = || names(&request.messages).iter().any(|(role, _)| role == "user");
    let asked = match by_name.or(by_its_own) {
        Some(asked) => Some(asked),
        // Nothing says which one the name stands for.
        None if request.message_id.is_some() && !has_question() => Meant::Unknown.message(meant(request))?,
        None => question(&journal, &request.messages).message(meant(request))?.or_else(|| newest(&journal)),
    };
    if request.message_id.is_none() && asked != newest(&journal) {
        // The page has not seen all that would be hidden.
        Meant::Unknown.message(meant(request))?;
    }
    let unheard =
        asked.and_then(|asked| answered_elsewhere(&journal, asked)).filter(|turn| !state.heard().has(conversation, *turn));
    if let Some(turn) = unheard.filter(|_| request.model.is_none()) {
        // What broke off is tried again so: the answer is there, and what its calls did is not done a second time.
        return Ok(turn);
    }
    let asked = asked.filter(|asked| !can_be_retried(&journal, *asked));
    let stored = asked.and_then(|asked| Some((asked, journal.entry(asked.0)?)));
    let Some((asked, Entry::User(said))) = stored.map(|(asked, stored)| (asked, &*stored.entry)) else {
        overlay.approve = journal.turn().and_then(|turn| retried_with(turn.settings().approve, version));
        return Ok(state.engine().retry_once(conversation, overlay, key).await?.turn_id);
    };
    let message = NewMessage {
        content: said.content.clone(),
        overlay,
        replaces: Some(asked),
        beneath: Beneath::Replaced,
        idempotency: key,
        // The page calls it what it called the one before.
        known_as: last.filter(|_| by_its_own == Some(asked)).map(|last| last.known()),
        denies_questions: cannot_ask(version),
        ..NewMessage::text(String::new())
    };
    match state.engine().send(conversation, message.clone()).await {
        Err(EngineError::SaidMeanwhile) => {
            Ok(state.engine().send(conversation, NewMessage { known_as: None, ..message }).await?.turn_id)
        }
        sent => Ok(sent?.turn_id),
    }
}

/// As `…/conversations/{id}/stream`; 204 also where nobody said anything yet.
///
/// Where a message joined the open turn, the answer to it is a message of its own, as in the history: a `start` begins it. Clients
/// of the AI SDK before 6 take one message of a stream: they are told the last that has begun, or the turn as one message.
#[utoipa::path(
    get,
    path = "/api/chat/{id}/stream",
    operation_id = "resumeUiChat",
    tag = "pages",
    params(ConversationPath, UiQuery, MessagePosition),
    responses((status = 200, description = "An AI SDK UI message stream; the id of each chunk is a position to come back to.", body = serde_json::Value, content_type = "text/event-stream"), (status = 204, description = "No turn is open, nothing follows on the position, or there is no such conversation."), Refused, NotThere, Limited)
)]
pub(super) async fn resume(
    State(state): State,
    InConversation(id): InConversation,
    Search(query): Search<UiQuery>,
    Search(position): Search<MessagePosition>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let version = query.version(UiVersion::V6)?;
    let position = position.named(&headers)?;
    match state.engine().look(&id, said_last).await {
        Err(EngineError::NotFound { .. }) => Ok(StatusCode::NO_CONTENT.into_response()),
        Err(error) => Err(error.into()),
        Ok(Some((turn, message))) if position.is_none() => {
            let stream = OpenStream::of(&state)?;
            let begin = if version < UiVersion::V6 { Begin::Answer(message) } else { Begin::Apart(message) };
            stream_of(&state, id, turn, (version, begin), stream).await
        }
        Ok(_) => resume_turn(&state, id, version, position).await,
    }
}

/// What a person said last in the open turn: what began it, or the newest message that joined it.
fn said_last(journal: &Journal) -> Option<(TurnId, Seq)> {
    let turn = journal.open_turn()?;
    let is_said = |stored: &&StoredEntry| matches!(&*stored.entry, Entry::User(said) if !said.content.is_empty());
    let is_shown = |stored: &&StoredEntry| !journal.is_hidden(MessageId(stored.seq));
    let last = journal.turn_entries(turn.id()).filter(is_said).filter(is_shown).last()?;
    Some((turn.id(), last.seq))
}

/// What a page says of a question about a call.
struct UiAnswer {
    asked: ApprovalId,
    is_approved: bool,
    reason: Option<String>,
}

/// Stores a person's answers; the turn that they belong to, and where its stream goes on: the same where they came before.
async fn answer(
    state: &ServerState,
    conversation: &ConversationId,
    message: UiMessage,
    key: Option<(String, String)>,
) -> Result<(TurnId, Begin), ApiError> {
    let engine = state.engine();
    if let Some((key, fingerprint)) = &key {
        engine.said_before(key, fingerprint).await?;
    }
    let joined = message.id.strip_prefix("turn_").and_then(|name| Seq::new(name.split_once('_')?.1.parse().ok()?));
    let answers = answers(message.parts)?;
    let asked: Vec<ApprovalId> = answers.iter().map(|answer| answer.asked).collect();
    // Before anything is decided: what others decided meanwhile is told too.
    let (turn, after) = left(&engine.journal(conversation).await?, &asked)
        .ok_or_else(|| ApiError::invalid("the last of `messages` answers what nobody asked in this conversation"))?;
    let waiting = engine.waiting(conversation).await?;
    let not_ours = allows_another_clients(&answers, &waiting);
    let answers = to_what_waits(answers, &waiting);
    if !answers.is_empty() {
        engine.answer_all(conversation, answers, key).await?;
    } else if let Some(call) = not_ours {
        // A stream that changes nothing would be asked for at once again.
        let why = "it runs at the client that offers it: deny it, or wait for its result";
        return Err(ApiError::invalid(format!("`{call}` cannot be decided like this: {why}")));
    }
    Ok((turn, Begin::Continue { after, joined }))
}

/// The decisions about what waits that the page's newest message before the person's own holds: a page sends no other where its
/// person, who was asked about several calls, says something before all are answered. Between them stand messages of the person's
/// that never came here.
async fn answered_beside(
    state: &ServerState,
    conversation: &ConversationId,
    messages: &[&RawValue],
) -> Result<Answers, ApiError> {
    let mut before = messages.iter().rev().skip(1).map_while(|message| serde_json::from_str::<UiMessage>(message.get()).ok());
    // Of what is long over the page may say what it wants.
    let parts = before.find(|message| message.role != "user").into_iter().flat_map(|message| message.parts);
    let answers: Vec<UiAnswer> = parts.filter_map(answer_of).filter_map(Result::ok).collect();
    if answers.is_empty() {
        return Ok(Answers::default());
    }
    match state.engine().waiting(conversation).await {
        Err(EngineError::NotFound { .. }) => Ok(Answers::default()),
        waiting => Ok(to_what_waits(answers, &waiting?)),
    }
}

/// What a page answers to what waits. Who answers twice, or what another tab answered, is told by the stream; so is what was asked
/// about the call since.
fn to_what_waits(answers: Vec<UiAnswer>, waiting: &[WaitingCall]) -> Answers {
    let decisions = answers.into_iter().filter_map(|UiAnswer { asked, is_approved, reason }| {
        let waiting = waiting.iter().find(|waiting| waiting.approval == asked)?;
        Some((asked.into(), Choice { verdict: verdict(waiting.reason, is_approved)?, arguments: None, reason }))
    });
    Answers { decisions: decisions.collect(), stale: Stale::Left, ..Answers::default() }
}

/// A call that waits for another client's result, which a page says may run.
fn allows_another_clients(answers: &[UiAnswer], waiting: &[WaitingCall]) -> Option<CallId> {
    let is_allowed = |call: &WaitingCall| answers.iter().any(|answer| answer.is_approved && answer.asked == call.approval);
    waiting.iter().find(|call| call.reason == QuestionReason::ClientTool && is_allowed(call)).map(|call| call.call)
}

/// What an answer to this question means; nothing where the page has no say in it.
fn verdict(reason: QuestionReason, is_approved: bool) -> Option<Verdict> {
    match (reason, is_approved) {
        (QuestionReason::Approval | QuestionReason::DefinitionChanged | QuestionReason::Loop, true) => Some(Verdict::Allow),
        (
            QuestionReason::Approval | QuestionReason::DefinitionChanged | QuestionReason::ClientTool | QuestionReason::Loop,
            false,
        ) => Some(Verdict::Deny),
        // It is another client's to run.
        (QuestionReason::ClientTool, true) => None,
        (QuestionReason::UnknownOutcome, true) => Some(Verdict::RunAgain),
        (QuestionReason::UnknownOutcome, false) => Some(Verdict::Skip),
    }
}

/// What a part says of a question, where it answers one.
fn answer_of(part: UiPart) -> Option<Result<UiAnswer, ApiError>> {
    let (Some("approval-responded"), Some(UiApproval { id, approved: Some(is_approved), reason })) =
        (part.state.as_deref(), part.approval)
    else {
        return None;
    };
    let unknown = |_| ApiError::invalid(format!("nothing was asked here under the name `{id}`"));
    Some(id.parse().map_err(unknown).map(|asked| UiAnswer { asked, is_approved, reason }))
}

/// The questions that a message of the page's says to be answered, and nothing of what came of them.
fn answers(parts: Vec<UiPart>) -> Result<Vec<UiAnswer>, ApiError> {
    let answers: Vec<UiAnswer> = parts.into_iter().filter_map(answer_of).collect::<Result<_, _>>()?;
    if answers.is_empty() {
        return Err(ApiError::invalid("the last of `messages` is neither a user's nor does it answer a question"));
    }
    Ok(answers)
}

/// The turn of the newest of these calls, and where a page was left that was asked this about them and knows nothing of what came of
/// it: where the turn waited, before any of them was decided about.
fn left(journal: &Journal, asked: &[ApprovalId]) -> Option<(TurnId, Seq)> {
    let message = asked.iter().map(|asked| asked.call.message).max()?;
    let newest: Vec<ApprovalId> = asked.iter().copied().filter(|asked| asked.call.message == message).collect();
    let is_newest = |call: CallId| newest.iter().any(|asked| asked.call == call);
    let Entry::Assistant(made) = &*journal.entry(message)?.entry else { return None };
    let is_there = |call: CallId| usize::try_from(call.index).is_ok_and(|index| index < made.calls().count());
    if !newest.iter().all(|asked| is_there(asked.call)) {
        return None;
    }
    let known = newest.iter().map(|asked| asked_at(journal, *asked)).collect::<Option<Vec<_>>>()?.into_iter().max()?;
    let (mut waited, mut open) = (message, Vec::new());
    for stored in journal.entries().iter().skip_while(|stored| stored.seq <= message) {
        match &*stored.entry {
            Entry::Control(Control::Suspended) => waited = stored.seq,
            Entry::Question(question) => open.push(question.call),
            Entry::Decision(decision) if is_newest(decision.call) && open.contains(&decision.call) => {
                if stored.seq > known {
                    break;
                }
                open.retain(|call| *call != decision.call);
            }
            Entry::Result(result) if is_newest(result.call) && stored.seq > known => break,
            _ => {}
        }
    }
    Some((turn_of(journal, message)?, waited))
}

/// Where this was asked about a call; its message, where nobody was asked the first thing. `None` where nothing was asked under the name.
fn asked_at(journal: &Journal, asked: ApprovalId) -> Option<Seq> {
    let (mut number, mut at) = (1_u32, None);
    for stored in journal.entries().iter().skip_while(|stored| stored.seq <= asked.call.message) {
        match &*stored.entry {
            Entry::Question(question) if question.call == asked.call && number == asked.number => at = Some(stored.seq),
            Entry::Decision(decision) if decision.call == asked.call => number = number.saturating_add(1),
            _ => {}
        }
    }
    at.or(Some(asked.call.message).filter(|_| asked.number == 1))
}

/// Text and files of a user's message.
fn content(parts: Vec<UiPart>) -> Result<Vec<ContentBlock>, ApiError> {
    let mut blocks = Vec::new();
    for part in parts {
        match (part.kind.as_str(), part.text, part.url) {
            ("text", Some(text), _) => blocks.push(ContentBlock::Text { text }),
            ("file", _, Some(url)) => blocks.push(file(&url, part.media_type, part.filename)?),
            _ => {}
        }
    }
    if is_blank(&blocks) { Err(ApiError::invalid("the user's message is empty; say something")) } else { Ok(blocks) }
}

/// A file: its bytes where the address holds them, else what was uploaded here.
fn file(url: &str, media_type: Option<String>, filename: Option<String>) -> Result<ContentBlock, ApiError> {
    let name = filename.map_or_else(|| "file".to_owned(), |name| attached::shown_name(&name));
    let Some(data) = url.strip_prefix("data:") else {
        if attached::named(url).is_none() {
            let what = format!(
                "the file `{name}` is at an address that is not fetched here: send it as a `data:` URL with base64, or upload it by POST /api/v1/artifacts"
            );
            return Err(ApiError::invalid(what));
        }
        let (title, description, size) = (None, None, None);
        return Ok(ContentBlock::ResourceLink { uri: url.to_owned(), name, title, description, mime_type: media_type, size });
    };
    let (head, data) = data
        .split_once(";base64,")
        .ok_or_else(|| ApiError::invalid(format!("the file `{name}` is a data URL without base64")))?;
    let (mime_type, blob) = (Some(media_type.unwrap_or_else(|| head.to_owned())), Some(data.to_owned()));
    let resource = EmbeddedResource { uri: format!("file:///{name}"), mime_type, text: None, blob };
    ContentBlock::Resource { resource }.shown().map_err(|error| ApiError::invalid(error.to_string()))
}
