//! What a person decides by a request about calls that wait.

use turnwright_core::{ApprovalId, CallId, ContentBlock, ConversationId, Journal, QuestionReason, Verdict};
use turnwright_engine::{Answers, Choice, ClientResult, Given};

use super::begin::{Ask, Begun, after_calls, begun_before, where_there};
use super::decided::decided_before;
use super::given::given;
use super::ids;
use super::known::Fingerprint;
use super::saying::{Place, say};
use crate::error::ApiError;
use crate::state::ServerState;

/// A person's decisions, where the request brings some, are stored with what they say beside them, or neither is: what waits too and is not
/// decided about is denied. What comes of them; the same where somebody decided before, so that whoever sends them again gets the same answer.
pub(super) async fn decide(
    state: &ServerState,
    ask: &Ask,
    users: Vec<ContentBlock>,
    history: &Fingerprint,
) -> Result<Option<Begun>, ApiError> {
    let mut conversation = ask.conversation.clone();
    let mut decided: Vec<(ApprovalId, Choice)> = Vec::new();
    let mut before: Vec<CallId> = Vec::new();
    let mut asked: Vec<(ApprovalId, bool, ApiError)> = Vec::new();
    for (place, request, is_approved, reason) in ask.history.approvals() {
        let param = format!("input[{place}].approval_request_id");
        let unknown = || ApiError::invalid(format!("nothing waits under the name `{request}`")).about(&param);
        let (approval, held) = ids::read_request(request).ok_or_else(unknown)?;
        let call = approval.call;
        let otherwise = ApiError::invalid(format!("`{request}` was decided about otherwise before")).about(&param);
        conversation = held.or(conversation);
        let id = conversation.as_ref().ok_or_else(unknown)?;
        let look = |journal: &Journal| {
            let waits = journal.turn().and_then(|turn| turn.waiting().find(|(waits, _)| waits.approval() == approval));
            waits.map(|(_, question)| Ok(question.reason)).or_else(|| decided_before(journal, approval).map(Err))
        };
        let reason_of = match where_there(state.engine().look(id, look).await)?.flatten().ok_or_else(unknown)? {
            Ok(reason) => reason,
            Err(was_approved) if was_approved == is_approved => {
                before.push(call);
                continue;
            }
            Err(_) => return Err(otherwise),
        };
        asked.push((approval, is_approved, otherwise));
        let verdict = match (reason_of, is_approved) {
            (QuestionReason::UnknownOutcome, true) => Verdict::RunAgain,
            (QuestionReason::UnknownOutcome, false) => Verdict::Skip,
            (QuestionReason::ClientTool, _) => return Err(unknown()),
            (QuestionReason::Approval | QuestionReason::DefinitionChanged | QuestionReason::Loop, true) => Verdict::Allow,
            (QuestionReason::Approval | QuestionReason::DefinitionChanged | QuestionReason::Loop, false) => Verdict::Deny,
        };
        decided.push((approval, Choice { verdict, arguments: None, reason: reason.map(str::to_owned) }));
    }
    let Some(conversation) = conversation.filter(|_| !decided.is_empty() || !before.is_empty()) else { return Ok(None) };
    if decided.is_empty() && !users.is_empty() {
        // The same request may have decided a moment ago, and said it.
        if let Some(begun) = begun_before(state, ask, &users, history).await? {
            return Ok(Some(begun));
        }
        return say(state, Place::There(conversation), ask, users, history.clone()).await.map(Some);
    }
    // Nothing is stored for whoever may not decide.
    state.engine().must_decide().await?;
    let results: Vec<ClientResult> =
        given(ask).filter(|(of, _)| *of == conversation).map(|(_, results)| results).unwrap_or_default();
    if decided.is_empty() {
        give_beside(state, ask, &conversation, (results, Answers::default()), None).await?;
        return after_calls(state, conversation, before, Some(&ask.overlay), history.clone()).await.map(Some);
    }
    let look = |journal: &Journal| {
        let turn = journal.turn()?;
        let waiting = turn.waiting().filter(|(_, question)| question.reason != QuestionReason::ClientTool);
        Some(waiting.map(|(call, question)| (call.approval(), question.reason)).collect::<Vec<_>>())
    };
    let Some(waiting) = state.engine().look(&conversation, look).await? else { return Ok(None) };
    let named: Vec<CallId> = decided.iter().map(|(asked, _)| asked.call).chain(before).collect();
    for (asked, reason) in waiting.into_iter().filter(|(asked, _)| !named.contains(&asked.call)) {
        let verdict = if reason == QuestionReason::UnknownOutcome { Verdict::Skip } else { Verdict::Deny };
        decided.push((asked, Choice { verdict, arguments: None, reason: None }));
    }
    let decisions = decided.into_iter().map(|(asked, choice)| (asked.into(), choice)).collect();
    let answers = Answers { decisions, ..Answers::default() };
    let stored = if users.is_empty() {
        give_beside(state, ask, &conversation, (results.clone(), answers), ask.idempotency.clone()).await
    } else {
        // The model sees it at its next step, and not a step later.
        let place = Place::Beside(conversation.clone(), answers, results.clone());
        say(state, place, ask, users.clone(), history.clone()).await.map(drop)
    };
    if let Err(error) = stored {
        if !matches!(error.code(), "not_waiting" | "conflict") {
            return Err(error);
        }
        // It may have been decided at the same moment.
        for (asked, is_approved, otherwise) in asked {
            match state.engine().look(&conversation, |journal| decided_before(journal, asked)).await? {
                Some(made) if made == is_approved => {}
                Some(_) => return Err(otherwise),
                None => return Err(error),
            }
        }
        give_beside(state, ask, &conversation, (results, Answers::default()), None).await?;
        if !users.is_empty() {
            return say(state, Place::There(conversation), ask, users, history.clone()).await.map(Some);
        }
    }
    after_calls(state, conversation, named, None, history.clone()).await.map(Some)
}

/// Stores what the client's tools gave, where they gave something, and what is decided beside it: all of it or nothing.
async fn give_beside(
    state: &ServerState,
    ask: &Ask,
    conversation: &ConversationId,
    (results, answers): (Vec<ClientResult>, Answers),
    key: Option<(String, String)>,
) -> Result<(), ApiError> {
    if results.is_empty() {
        if !answers.is_empty() {
            state.engine().answer_all(conversation, answers, key).await?;
        }
        return Ok(());
    }
    let asked = Some(ask.for_the_rest(state, conversation).await?);
    state.engine().give_results_once(conversation, Given { results, asked, answers }, key).await?;
    Ok(())
}
