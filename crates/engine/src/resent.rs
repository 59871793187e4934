//! Requests that come without an idempotency key and may be sent again: what they begin is kept under a key of our own, in the
//! append that stores it, so that every process of the database knows it after whatever instant one is killed at.
//!
//! Such a key holds what the request is, when it came, and random digits: the same request that comes anew is another one, and
//! the last of them is the one that is sent again. Who asks says how old that may be; upkeep forgets those that are older. A new key is
//! behind those that were known as its request came, also where they were made by a clock that is ahead.

use crate::names::random;
use crate::{Engine, EngineError};

/// Between which texts these keys lie; no others do.
pub const RESENT: [&str; 2] = ["/again/", "/again0"];

/// The digits of a hash of a request.
const HASH_DIGITS: usize = 64;

/// Which character of such a key begins its time, the first of all being 1.
pub const TIME_AT: i32 = 73;

/// A time as such a key holds it, in milliseconds since 1970 UTC: times follow one another as their texts do.
pub fn written_time(at_ms: u64) -> String {
    format!("{at_ms:020}")
}

impl Engine {
    /// A key under which a request is kept that has none, for [`crate::NewMessage::idempotency`] and its like. `request` is a hash
    /// of it, of its route and of whose it is, in 64 hexadecimal digits; `last` is the key of the same request before.
    ///
    /// # Errors
    /// [`EngineError::Invalid`], where that is no such hash, or the system has no random numbers.
    pub fn new_request_key(&self, request: &str, last: Option<&str>) -> Result<String, EngineError> {
        if request.len() != HASH_DIGITS || !request.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(EngineError::Invalid { what: format!("`{request}` is no hash of a request") });
        }
        Ok(key(request, behind(last, self.clock().now_ms()), &random::<12>()?))
    }

    /// The key under which the same request was kept last, not before `since_ms`, in milliseconds since 1970 UTC.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub async fn last_request_key(&self, request: &str, since_ms: u64) -> Result<Option<String>, EngineError> {
        let [beginning, _] = RESENT;
        let (from, before) = (key(request, since_ms, ""), format!("{beginning}{request}0"));
        Ok(self.inner().store.last_key(&from, &before).await?)
    }
}

/// When a request came, as its key says it: later than the one that was kept before.
fn behind(last: Option<&str>, now_ms: u64) -> u64 {
    let last_ms = last.and_then(|last| last.rsplit('/').nth(1)?.parse::<u64>().ok());
    last_ms.map_or(now_ms, |last_ms| now_ms.max(last_ms.saturating_add(1)))
}

fn key(request: &str, at_ms: u64, random: &str) -> String {
    let [beginning, _] = RESENT;
    format!("{beginning}{request}/{}/{random}", written_time(at_ms))
}

#[cfg(test)]
mod tests {
    use super::{HASH_DIGITS, RESENT, TIME_AT, behind, key, written_time};

    #[test]
    fn a_new_key_is_behind_the_last_whatever_the_clock_says() {
        let last = key(&"0f".repeat(HASH_DIGITS / 2), 9, "ff");
        assert_eq!((behind(Some(&last), 7), behind(Some(&last), 20), behind(None, 7)), (10, 20, 7));
    }

    #[test]
    fn a_key_lies_among_its_like_by_its_request_and_its_time() {
        let request = "0f".repeat(HASH_DIGITS / 2);
        let [from, before] = RESENT;
        let (first, then) = (key(&request, 9, "ff"), key(&request, 10, "00"));
        assert!(from < first.as_str() && first < then && then.as_str() < before);
        let time_at = usize::try_from(TIME_AT - 1).unwrap();
        assert_eq!(first.split_at(time_at).1.split_once('/'), Some((written_time(9).as_str(), "ff")));
    }
}
