//! Requests that come again without a key: OpenAI's libraries say so, others send the same once more after a failure. What ran for the
//! first one must not run again, so the turn that it began is joined, or taken up again where it failed.
//!
//! Kept in memory beside the histories: after a restart such a request is a new one.

use http::HeaderMap;
use turnwright_core::{ConversationId, Journal, UserId};
use turnwright_engine::{EngineError, SettingsOverlay};

use super::begin::CONVERSATION_HEADER;
use super::known::{Fingerprint, KnownHistories};
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

/// A request as it may come again.
#[derive(Debug, Clone)]
pub(crate) struct Again {
    fingerprint: Fingerprint,
    /// Whether its library says that it was sent before.
    is_repetition: bool,
}

impl Again {
    /// The request to this route.
    pub(crate) fn of(known: &KnownHistories, user: &UserId, route: &str, whole: &Whole) -> Self {
        let named = whole.headers.get(CONVERSATION_HEADER).map_or(&b""[..], |name| name.as_bytes());
        let key = whole.headers.get("idempotency-key").map_or(&b""[..], |key| key.as_bytes());
        let fingerprint = known.fingerprint(user).of_request(&[route.as_bytes(), named, key, &whole.body]);
        Self { fingerprint, is_repetition: is_repetition(&whole.headers) }
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
        let is_joined = self.is_repetition && is_within(at_ms, REPEATED_WITHIN_MS);
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

fn is_repetition(headers: &HeaderMap) -> bool {
    let count = headers.get(RETRY_HEADER).and_then(|count| count.to_str().ok()?.trim().parse::<u32>().ok());
    count.is_some_and(|count| count > 0)
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
        // Somebody else did meanwhile.
        Err(EngineError::NoOpenTurn { .. }) => Ok(state.engine().look(conversation, look).await?.0),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::is_repetition;

    #[test]
    fn a_library_says_that_it_sends_a_request_again() {
        for (count, expected) in [("0", false), ("1", true), ("2", true), ("", false), ("x", false)] {
            let headers = HeaderMap::from_iter([("x-stainless-retry-count".parse().unwrap(), count.parse().unwrap())]);
            assert_eq!(is_repetition(&headers), expected, "{count}");
        }
        assert!(!is_repetition(&HeaderMap::new()));
    }
}
