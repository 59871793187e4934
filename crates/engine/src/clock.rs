//! The port to the wall clock. Waiting uses tokio's time, which tests pause.

use std::fmt::Debug;

/// Tells the time of day.
pub trait Clock: Send + Sync + Debug {
    /// Milliseconds since 1970 UTC.
    fn now_ms(&self) -> u64;
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock port's one implementation that reads the clock")]
    fn now_ms(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
