//! Requests that come again without a key: OpenAI's libraries say so, others send the same once more after a failure. What ran for the
//! first one must not run again, so the turn that it began is joined, or taken up again where it failed.
//!
//! Where a library counts, what a request begins is stored under a key of ours in the append that begins it, so a request that is
//! sent again finds it at any process of the database, also after one was killed. Others are kept in memory beside the histories:
//! after a restart they are new ones.

use std::fmt::Write;

use http::HeaderMap;
use sha2::{Digest, Sha256};
use turnwright_core::{ConversationId, Journal};
use turnwright_engine::{EngineError, SettingsOverlay};

use super::begin::CONVERSATION_HEADER;
use super::known::Fingerprint;
use super::responses::object::newest_try;
use super::track::Part;
use crate::error::ApiError;
use crate::extract::Whole;
use crate::state::ServerState;

/// How long after the first request one that its library calls a repetition is taken for one. The libraries wait for an answer for ten
/// minutes and send up to two more.
const REPEATED_WITHIN_MS: u64 = 60 * 60 * 1_000;
/// How long after a turn failed the same request goes on with it.
const FAILED_WITHIN_MS: u64 = 5 * 60 * 1_000;
/// The header in which OpenAI's libraries count how often they sent a request before.
const RETRY_HEADER: &str = "x-stainless-retry-count";

/// Whether a request came before, as far as is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// It is not known.
    First,
    /// The same is kept.
    Before,
}

/// A request as it may come again.
#[derive(Debug, Clone)]
pub(crate) struct Again {
    fingerprint: Fingerprint,
    /// Whether its library says that it was sent before.
    is_repetition: bool,
    /// The same in every process, where its library counts and it has no key.
    lasting: Option<String>,
}

impl Again {
    /// The request to this route, which comes just now.
    pub(crate) fn of(state: &ServerState, route: &str, whole: &Whole) -> Self {
        let (known, user) = (state.known(), state.engine().user());
        let named = whole.headers.get(CONVERSATION_HEADER).map_or(&b""[..], |name| name.as_bytes());
        let key = whole.headers.get("idempotency-key").map(http::HeaderValue::as_bytes);
        let (route, body) = (route.as_bytes(), &whole.body[..]);
        let fingerprint = known.fingerprint(user).of_request(&[route, named, key.unwrap_or_default(), body]);
        let sent_before = sent_before(&whole.headers);
        let lasting = sent_before.filter(|_| key.is_none()).map(|_| lasting(&[user.as_str().as_bytes(), route, named, body]));
        let is_repetition = sent_before.is_some_and(|count| count > 0);
        Self { fingerprint, is_repetition, lasting }
    }

    /// The key under which the request is kept, with its hash, where its library counts; and whether the same request is kept there.
    pub(crate) async fn key(&self, state: &ServerState) -> Result<Option<((String, String), Came)>, EngineError> {
        let Some(request) = &self.lasting else { return Ok(None) };
        let engine = state.engine();
        let since_ms = engine.clock().now_ms().saturating_sub(REPEATED_WITHIN_MS);
        let last = engine.last_request_key(request, since_ms).await?;
        if !self.is_repetition {
            // Where it is refused, its repetition is not the one that was answered before.
            state.known().came(&self.fingerprint, last.clone());
        }
        let is_meant = |_: &String| self.is_repetition && state.known().find_came(&self.fingerprint) != last;
        let (key, came) = match last.clone().filter(is_meant) {
            Some(key) => (key, Came::Before),
            None => (engine.new_request_key(request, last.as_deref())?, Came::First),
        };
        Ok(Some(((key, request.clone()), came)))
    }

    /// Whether its library says that it was sent before.
    pub(crate) fn is_repetition(&self) -> bool {
        self.is_repetition
    }

    /// What the same request began, where this one is to go on with that.
    pub(crate) async fn joined(
        &self,
        state: &ServerState,
        overlay: &SettingsOverlay,
    ) -> Result<Option<(ConversationId, Part)>, ApiError> {
        let Some((conversation, part, at_ms)) = state.known().find_asked(&self.fingerprint) else { return Ok(None) };
        let look = |journal: &Journal| newest_try(journal, &part);
        let (newest, failed) = match state.engine().look(&conversation, look).await {
            Ok(found) => found,
            // It was deleted.
            Err(EngineError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let now = state.engine().clock().now_ms();
        let is_within = |since: u64, limit_ms: u64| now.saturating_sub(since) <= limit_ms;
        // Where it is stored, that is what counts.
        let is_joined = self.is_repetition && self.lasting.is_none() && is_within(at_ms, REPEATED_WITHIN_MS);
        let is_taken_up = failed.is_some_and(|failed| is_within(failed.at_ms, FAILED_WITHIN_MS));
        if !is_joined && !is_taken_up {
            return Ok(None);
        }
        let part = taken_up(state, &conversation, newest, overlay).await?;
        Ok(Some((conversation, part)))
    }

    /// Keeps what a request began.
    pub(crate) fn keep(&self, state: &ServerState, conversation: &ConversationId, part: &Part) {
        state.known().asked(&self.fingerprint, conversation.clone(), part.clone(), state.engine().clock().now_ms());
    }
}

/// How often its library says that it sent a request before.
fn sent_before(headers: &HeaderMap) -> Option<u32> {
    headers.get(RETRY_HEADER).and_then(|count| count.to_str().ok()?.trim().parse().ok())
}

/// A hash of these parts, of which none can be taken for two.
fn lasting(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        // Writing to memory does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The newest try of a part; a new one, where that failed and nothing was said since.
pub(crate) async fn taken_up(
    state: &ServerState,
    conversation: &ConversationId,
    part: Part,
    overlay: &SettingsOverlay,
) -> Result<Part, ApiError> {
    let look = |journal: &Journal| newest_try(journal, &part);
    let (newest, failed) = state.engine().look(conversation, look).await?;
    let Some(failed) = failed else { return Ok(newest) };
    match state.engine().retry(conversation, overlay.clone()).await {
        Ok(turn) => Ok(Part { turn, after: failed.end, calls: Vec::new() }),
        // Somebody else did meanwhile, and that may be over.
        Err(EngineError::NoOpenTurn { .. } | EngineError::TurnOpen { .. }) => {
            Ok(state.engine().look(conversation, look).await?.0)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::{lasting, sent_before};

    #[test]
    fn a_library_says_how_often_it_sent_a_request() {
        for (count, expected) in [("0", Some(0)), ("1", Some(1)), ("2", Some(2)), ("", None), ("x", None)] {
            let headers = HeaderMap::from_iter([("x-stainless-retry-count".parse().unwrap(), count.parse().unwrap())]);
            assert_eq!(sent_before(&headers), expected, "{count}");
        }
        assert_eq!(sent_before(&HeaderMap::new()), None);
    }

    #[test]
    fn a_request_is_the_same_in_every_process_and_no_other() {
        let request = lasting(&[b"ada", b"v1/chat", b"", b"{}"]);
        assert_eq!(request, "ee961f25b07b33d24a0f66d01688a8b0f0182578a5e276c8688edbd34a7c6f36");
        for other in [[&b"ben"[..], b"v1/chat", b"", b"{}"], [b"ada", b"v1/chat", b"{", b"}"], [b"ada", b"v1/chat", b"{}", b""]]
        {
            assert_ne!(lasting(&other), request, "{other:?}");
        }
    }
}
