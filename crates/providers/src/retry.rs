//! Whether and when a failed call is tried again.

use std::time::{Duration, UNIX_EPOCH};

use turnwright_core::{ModelRef, ProviderFailure};

/// The longest wait that a server may ask for; a longer one is told to the user instead.
const MAX_SERVER_DELAY_MS: u64 = 120_000;
/// The same where another model may be asked instead.
const MAX_SERVER_DELAY_BEFORE_FALLBACK_MS: u64 = 10_000;
/// The code of servers that could not read the call that a model wrote: it may write another, but what it cannot write it
/// cannot write the third time either.
const UNREADABLE_CALL: &str = "tool_use_failed";
const FIRST_BACKOFF_MS: u64 = 500;
const MAX_BACKOFF_MS: u64 = 8_000;

/// How often and how long a failed call is worth waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    max_retries: u32,
    max_server_delay_ms: u64,
}

impl Patience {
    /// With so many retries. `fallback` are the models that are asked where this one does not answer.
    pub(crate) fn new(max_retries: u32, fallback: &[ModelRef]) -> Self {
        let max_server_delay_ms = if fallback.is_empty() { MAX_SERVER_DELAY_MS } else { MAX_SERVER_DELAY_BEFORE_FALLBACK_MS };
        Self { max_retries, max_server_delay_ms }
    }
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failed {
    pub(crate) failure: ProviderFailure,
    /// What the server says about trying again.
    pub(crate) should_retry: Option<bool>,
}

impl From<ProviderFailure> for Failed {
    fn from(failure: ProviderFailure) -> Self {
        Self { failure, should_retry: None }
    }
}

impl Failed {
    /// How long to wait before attempt `attempt + 1`, counted from 0; `None` where it should not be made. `jitter` is any
    /// number; it moves our own delays by up to a quarter.
    pub(crate) fn delay(&self, attempt: u32, patience: Patience, jitter: u64) -> Option<Duration> {
        let is_unreadable = self.failure.code.as_deref() == Some(UNREADABLE_CALL);
        let max_retries = if is_unreadable { patience.max_retries.min(1) } else { patience.max_retries };
        let is_worth_it = self.should_retry.unwrap_or_else(|| is_unreadable || self.failure.is_retryable());
        if attempt >= max_retries || !is_worth_it {
            return None;
        }
        let delay_ms = match self.failure.retry_after_ms {
            Some(asked) if asked > patience.max_server_delay_ms => return None,
            Some(asked) => asked,
            None => {
                let backoff = FIRST_BACKOFF_MS.saturating_mul(1 << attempt.min(10)).min(MAX_BACKOFF_MS);
                (backoff * 3 / 4 + jitter % (backoff / 2 + 1)).min(MAX_BACKOFF_MS)
            }
        };
        Some(Duration::from_millis(delay_ms))
    }
}

/// How long a response asks to wait, in milliseconds.
pub(crate) fn retry_after_ms<'a>(header: impl Fn(&str) -> Option<&'a str>, now_ms: u64) -> Option<u64> {
    if let Some(delay) = header("retry-after-ms").and_then(|text| whole_ms(text, 1.0)) {
        return Some(delay);
    }
    let text = header("retry-after")?;
    whole_ms(text, 1000.0).or_else(|| {
        let at = httpdate::parse_http_date(text.trim()).ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(u64::try_from(at.as_millis()).ok()?.saturating_sub(now_ms))
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates and is checked for its sign")]
fn whole_ms(text: &str, factor: f64) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number * factor).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwright_core::ProviderFailureKind;

    fn failed(kind: ProviderFailureKind, retry_after_ms: Option<u64>) -> Failed {
        Failed::from(ProviderFailure { retry_after_ms, ..ProviderFailure::new(kind, "m") })
    }

    #[test]
    fn delays_double_up_to_a_limit_and_move_by_a_quarter() {
        let failed = failed(ProviderFailureKind::Server, None);
        let delays = |jitter| {
            (0..7).map(|attempt| failed.delay(attempt, Patience::new(9, &[]), jitter).unwrap().as_millis()).collect::<Vec<_>>()
        };
        assert_eq!(delays(0), [375, 750, 1500, 3000, 6000, 6000, 6000]);
        let longest: Vec<u128> = (0..7)
            .map(|attempt| {
                (0..9000).map(|jitter| failed.delay(attempt, Patience::new(9, &[]), jitter).unwrap().as_millis()).max().unwrap()
            })
            .collect();
        assert_eq!(longest, [625, 1250, 2500, 5000, 8000, 8000, 8000]);
    }

    #[test]
    fn only_what_may_succeed_later_is_tried_again_and_only_so_often() {
        let delay = |failed: &Failed, attempt| failed.delay(attempt, Patience::new(2, &[]), 0).is_some();
        let server = failed(ProviderFailureKind::Server, None);
        assert_eq!((delay(&server, 0), delay(&server, 1), delay(&server, 2)), (true, true, false));
        assert!(!delay(&failed(ProviderFailureKind::Auth, None), 0));
        assert!(!delay(&failed(ProviderFailureKind::Quota, Some(1)), 0));
        assert!(!delay(&Failed { should_retry: Some(false), ..server }, 0));
        assert!(delay(&Failed { should_retry: Some(true), ..failed(ProviderFailureKind::InvalidRequest, None) }, 0));
    }

    #[test]
    fn a_servers_delay_is_kept_up_to_two_minutes() {
        let limited = |ms| failed(ProviderFailureKind::RateLimit, Some(ms));
        let asked = |ms| limited(ms).delay(0, Patience::new(2, &[]), 7);
        assert_eq!(asked(120_000), Some(Duration::from_mins(2)));
        assert_eq!(asked(120_001), None);
        let fallback = [ModelRef::new("b", "two")];
        let asked = |ms| limited(ms).delay(0, Patience::new(2, &fallback), 7);
        assert_eq!((asked(10_000), asked(10_001)), (Some(Duration::from_secs(10)), None), "another model need not wait");
    }

    #[test]
    fn the_delay_is_read_from_every_form_of_header() {
        let read = |name: &'static str, value: &'static str| {
            retry_after_ms(move |asked: &str| (asked == name).then_some(value), 784_111_776_000)
        };
        assert_eq!(read("retry-after-ms", "20.5"), Some(21));
        assert_eq!(read("retry-after", "1.5"), Some(1500));
        assert_eq!(read("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(1000));
        assert_eq!(read("retry-after", "Sun, 06 Nov 1994 08:49:30 GMT"), Some(0));
        assert_eq!(read("retry-after", "soon"), None);
        assert_eq!(read("retry-after", "-1"), None);
    }
}
