//! Requests that make something and may be sent again: a key stands for one request, which is carried out once, also where
//! the server starts anew in between or another node is asked. What is made in the journal has its keys there; this is for
//! everything else.
//!
//! The key is taken in the store before anything is made, and what was answered is put beside it after. So of many who send
//! it at once, to whatever nodes, one is the first for all; and where a process dies in between it is known that nobody knows.

use std::pin::Pin;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnwright_core::{CallId, ConversationId, DriverId, Entry, Journal};
use turnwright_engine::{CONVERSATION_DOCUMENTS, Document, Documents, Engine, EngineError, REPEATABLE_REQUESTS, StoreError};

use crate::error::ApiError;
use crate::state::ServerState;
use crate::timestamp::timestamp;

/// The longest answer that is remembered, in bytes of JSON. Of a longer one it is remembered that there was one.
const MAX_ANSWER_BYTES: usize = 256 * 1024;

/// What stands under a key.
#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    fingerprint: String,
    /// When it came first; not in what older versions stored.
    #[serde(default)]
    at_ms: Option<u64>,
    /// Who carries it out; nobody any more, once it was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    under_way: Option<UnderWay>,
    /// What was answered; nothing, where it held a secret that nobody but its reader may have.
    answer: Option<Value>,
    /// What was made, in words.
    made: String,
}

/// A request that was begun.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UnderWay {
    /// Tells this one from all others that took the same key at the same time.
    id: String,
    since_ms: u64,
    /// Whose process carries it out; not in what older versions stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

/// What may be remembered of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keeps {
    /// All of it.
    Answer,
    /// That it was given: it holds a secret. What was made is named.
    Secret(fn(&Value) -> String),
}

/// A request, as far as it matters here.
#[derive(Debug)]
struct Request {
    /// The key as the client wrote it.
    written: String,
    /// The kind of its document.
    kind: &'static str,
    /// The name of its document: one user's keys are nobody else's, nor are those of one route another's.
    key: String,
    fingerprint: String,
    keeps: Keeps,
    cut_off: CutOff,
}

/// What becomes of a request whose process ended before it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CutOff {
    /// Nobody knows what came of it.
    Unknown,
    /// It is carried out for whoever asks again: it names what the journal takes once, or it makes the same each time.
    Again,
    /// The same as long as nothing was decided about the call: later it would be about another question.
    WhileUndecided(ConversationId, CallId),
    /// The same as long as nothing that the call asks has an answer: what it asks later is something else.
    WhileUnanswered(ConversationId, CallId),
}

/// Carries `make` out, or gives the answer that the same request had; to its end, also where the client does not wait: it may
/// ask for the answer again.
///
/// `asked` is the key with a hash of what was asked; without one `make` is carried out each time, for as long as it is waited for.
///
/// # Errors
/// Those of `make`; 422 where the key stands for another request; 409 where the answer is not kept, or the request is under
/// way or was cut off.
pub(crate) async fn once<T: Serialize + Send + 'static>(
    state: &ServerState,
    asked: Option<(String, String)>,
    route: &str,
    keeps: Keeps,
    make: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<Value, ApiError> {
    // What is made may be a whole call of a tool, too much for the stack of each that waits.
    remembered(state, asked, (None, route), (keeps, CutOff::Unknown), Box::pin(make)).await
}

/// The same for what is done in a conversation: what is remembered goes with that.
///
/// # Errors
/// As [`once`].
pub(crate) async fn once_in<T: Serialize + Send + 'static>(
    state: &ServerState,
    asked: Option<(String, String)>,
    (conversation, route): (&ConversationId, &str),
    make: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<Value, ApiError> {
    remembered(state, asked, (Some(conversation), route), (Keeps::Answer, CutOff::Unknown), Box::pin(make)).await
}

/// The same for what makes the same however often it is carried out, in a conversation where it belongs to one.
///
/// # Errors
/// As [`once`].
pub(crate) async fn once_alike<T: Serialize + Send + 'static>(
    state: &ServerState,
    asked: Option<(String, String)>,
    place: (Option<&ConversationId>, &str),
    make: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<Value, ApiError> {
    remembered(state, asked, place, (Keeps::Answer, CutOff::Again), Box::pin(make)).await
}

/// The same for what the journal of the conversation takes once, as a decision.
///
/// # Errors
/// As [`once`].
pub(crate) async fn once_in_journal<T: Serialize + Send + 'static>(
    state: &ServerState,
    asked: Option<(String, String)>,
    (conversation, route): (&ConversationId, &str),
    cut_off: CutOff,
    make: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<Value, ApiError> {
    remembered(state, asked, (Some(conversation), route), (Keeps::Answer, cut_off), Box::pin(make)).await
}

async fn remembered<T: Serialize + Send + 'static>(
    state: &ServerState,
    asked: Option<(String, String)>,
    (conversation, route): (Option<&ConversationId>, &str),
    (keeps, cut_off): (Keeps, CutOff),
    make: Pin<Box<impl Future<Output = Result<T, ApiError>> + Send + 'static>>,
) -> Result<Value, ApiError> {
    let engine = state.engine();
    let make = async move { serde_json::to_value(make.await?).map_err(|error| ApiError::invalid(error.to_string())) };
    let Some((written, fingerprint)) = asked else { return make.await };
    let documents = state.documents()?.clone();
    let key = format!("{}\t{route} {written}", state.caller().user());
    let (kind, key) = match conversation {
        Some(conversation) => (CONVERSATION_DOCUMENTS, format!("{conversation}/once/{key}")),
        None => (REPEATABLE_REQUESTS, key),
    };
    let request = Request { written, kind, key, fingerprint, keeps, cut_off };
    let now_ms = engine.clock().now_ms();
    let (there, conversation) = (engine.clone(), conversation.cloned());
    let carried_out = async move {
        let name = request.key.clone();
        let answer = carried_out((&there, &*documents), request, now_ms, make).await;
        // Deleted meanwhile: another one of its name begins anew.
        if let Some(conversation) = conversation
            && let Err(EngineError::NotFound { .. }) = there.conversation(&conversation).await
        {
            documents.remove_document(kind, &name).await?;
        }
        answer
    };
    engine.carry_through(carried_out).await?
}

async fn carried_out(
    (engine, documents): (&Engine, &dyn Documents),
    request: Request,
    now_ms: u64,
    make: impl Future<Output = Result<Value, ApiError>>,
) -> Result<Value, ApiError> {
    let Request { kind, key, fingerprint, keeps, .. } = &request;
    let own = UnderWay { id: Engine::new_id()?.to_string(), since_ms: now_ms, by: Some(engine.driver().0.clone()) };
    let (fingerprint, at_ms) = (fingerprint.clone(), Some(now_ms));
    let taken = Remembered { fingerprint, at_ms, under_way: Some(own), answer: None, made: String::new() };
    documents.add_document(kind, taken.document(key)).await?;
    let found = documents.document(kind, key).await?;
    let first = found.as_ref().map(Remembered::read).transpose()?;
    match first {
        Some(first) if first.under_way != taken.under_way => {
            let left = found.filter(|_| first.fingerprint == request.fingerprint && first.under_way.is_some());
            let Some(left) = left else { return first.told(&request) };
            if !first.is_left(engine).await? || !request.cut_off.may_be_done(engine).await? {
                return first.told(&request);
            }
            match documents.change_document(kind, &left, Some(taken.document(key).body)).await {
                // Another request was first to take it over.
                Err(StoreError::Altered { .. }) => return Err(under_way(now_ms)),
                taken_over => taken_over?,
            }
        }
        // It was there a moment ago: somebody gave the key back whose request failed. This one may come again.
        None => return Err(under_way(now_ms)),
        Some(_) => {}
    }
    let answer = match make.await {
        Ok(answer) => answer,
        Err(error) => {
            if may_come_again(&error, *keeps)
                && let Err(unkept) = documents.remove_document(kind, key).await
            {
                tracing::warn!(error = %unkept, "a request that failed cannot be sent again with its key");
            }
            return Err(error);
        }
    };
    let (kept, in_words) = match keeps {
        Keeps::Secret(named) => (None, named(&answer)),
        Keeps::Answer => match answer.to_string().len() {
            0..=MAX_ANSWER_BYTES => (Some(answer.clone()), String::new()),
            bytes => (None, format!("an answer of {bytes} bytes")),
        },
    };
    let done = Remembered { under_way: None, answer: kept, made: in_words, ..taken };
    if let Err(error) = documents.put_document(kind, done.document(key)).await {
        tracing::warn!(%error, "what a request made is not known to the same request if it comes again");
    }
    Ok(answer)
}

/// Whether a request that failed so may be sent again with its key. Whatever fails does so before anything is made: what a tool does is
/// an answer, and the rest is made by one write. Where the store fails, whether that write came through may be known to nobody. Then
/// it is there already if it comes again, or there as it was; only of a secret there would be a second one.
fn may_come_again(error: &ApiError, keeps: Keeps) -> bool {
    match keeps {
        Keeps::Answer => true,
        Keeps::Secret(_) => error.code() != "store_unusable",
    }
}

impl CutOff {
    /// Whether it can be carried out now.
    async fn may_be_done(&self, engine: &Engine) -> Result<bool, EngineError> {
        match self {
            Self::Unknown => Ok(false),
            Self::Again => Ok(true),
            Self::WhileUndecided(conversation, call) => {
                let is_about_it = |entry: &Entry| matches!(entry, Entry::Decision(decision) if decision.call == *call);
                let is_decided = |journal: &Journal| journal.entries().iter().rev().any(|stored| is_about_it(&stored.entry));
                Ok(!engine.look(conversation, is_decided).await?)
            }
            Self::WhileUnanswered(conversation, call) => {
                let is_its_own = |entry: &Entry| matches!(entry, Entry::Answered(answered) if answered.question.call == *call);
                let is_answered = |journal: &Journal| journal.entries().iter().rev().any(|stored| is_its_own(&stored.entry));
                Ok(!engine.look(conversation, is_answered).await?)
            }
        }
    }
}

fn under_way(since_ms: u64) -> ApiError {
    let detail = format!(
        "a request with this key was begun at {} and has no answer yet; where its server ended meanwhile, nobody knows what came of \
         it: look before you send it with another key",
        timestamp(since_ms)
    );
    ApiError::new(StatusCode::CONFLICT, "request_under_way", detail)
}

impl Remembered {
    fn document(&self, key: &str) -> Document {
        Document { key: key.to_owned(), body: serde_json::to_string(self).unwrap_or_default() }
    }

    fn read(found: &Document) -> Result<Self, StoreError> {
        serde_json::from_str(&found.body).map_err(|error| {
            let reason = error.to_string();
            StoreError::Damaged { what: "the answer of an idempotency key".to_owned(), reason }
        })
    }

    /// Whether nobody carries it out any more.
    async fn is_left(&self, engine: &Engine) -> Result<bool, EngineError> {
        match self.under_way.as_ref().and_then(|under_way| under_way.by.clone()) {
            Some(by) => Ok(!engine.lives(&DriverId(by)).await?),
            None => Ok(false),
        }
    }

    /// The answer to a request that comes again.
    fn told(self, request: &Request) -> Result<Value, ApiError> {
        if self.fingerprint != request.fingerprint {
            return Err(ApiError::key_reused(request.written.clone()));
        }
        if let Some(UnderWay { since_ms, .. }) = self.under_way {
            return Err(under_way(since_ms));
        }
        self.answer.ok_or_else(|| {
            let detail = format!("{} was made by this request before and is not kept: it was shown once", self.made);
            ApiError::new(StatusCode::CONFLICT, "already_made", detail)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_failed_may_come_again_unless_there_could_be_two_secrets() {
        let secret = Keeps::Secret(|_| String::new());
        let unusable = || StoreError::Unusable { reason: "gone".to_owned() }.into();
        let table: [(ApiError, Keeps, bool); 5] = [
            (ApiError::invalid("no"), secret, true),
            (EngineError::ShuttingDown.into(), secret, true),
            (StoreError::TooManyTurns.into(), Keeps::Answer, true),
            (unusable(), Keeps::Answer, true),
            (unusable(), secret, false),
        ];
        for (error, keeps, expected) in table {
            assert_eq!(may_come_again(&error, keeps), expected, "{} {keeps:?}", error.code());
        }
    }
}
