//! Times as the API writes them.

use jiff::Timestamp;

/// Milliseconds since 1970 UTC as ISO 8601 in UTC, such as `2025-01-11T19:00:00.125Z`.
pub fn timestamp(at_ms: u64) -> String {
    let time = i64::try_from(at_ms).ok().and_then(|at_ms| Timestamp::from_millisecond(at_ms).ok());
    format!("{:.3}", time.unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn times_are_iso_8601_in_utc() {
        assert_eq!(timestamp(1_736_622_000_000), "2025-01-11T19:00:00.000Z");
        assert_eq!(timestamp(1_736_622_000_125), "2025-01-11T19:00:00.125Z");
    }
}
