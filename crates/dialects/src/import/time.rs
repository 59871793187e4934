//! Times as exports write them.

use serde_json::Value;

/// A time in milliseconds since 1970 UTC: a number of seconds, of milliseconds where it is too large for seconds, or a text
/// in ISO 8601.
pub(super) fn milliseconds(value: Option<&Value>) -> Option<u64> {
    /// Seconds up to the year 5138; milliseconds from 1973 on.
    const MOST_SECONDS: f64 = 1e11;
    match value? {
        Value::Number(number) => {
            let number = number.as_f64().filter(|number| *number > 0.0 && *number < 1e16)?;
            Some(whole(if number < MOST_SECONDS { number * 1000.0 } else { number }))
        }
        Value::String(text) => of_text(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the caller holds it between 0 and 10^16")]
fn whole(milliseconds: f64) -> u64 {
    milliseconds.round() as u64
}

/// `2025-01-11T19:00:00.125Z`, with any fraction and any offset, or with none.
fn of_text(text: &str) -> Option<u64> {
    let (date, time) = text.trim().split_once(['T', ' '])?;
    let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let at = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (time, offset) = time.split_at_checked(at)?;
    let mut time = time.split(':');
    let (hour, minute) = (time.next()?.parse::<i64>().ok()?, time.next()?.parse::<i64>().ok()?);
    let seconds: f64 = time.next().unwrap_or("0").parse().ok()?;
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let offset = offset.trim_start_matches(['Z', '+', '-']);
    let (hours, minutes) = offset.split_once(':').unwrap_or((offset, ""));
    let number = |text: &str| text.parse::<i64>().unwrap_or(0);
    let shift = sign * (number(hours) * 60 + number(minutes));
    let is_date = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..61.0).contains(&seconds);
    if !is_date || !is_time {
        return None;
    }
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute - shift;
    let seconds = whole(seconds * 1000.0);
    u64::try_from(minutes).ok()?.checked_mul(60_000)?.checked_add(seconds)
}

/// The days from 1970-01-01 to a date of the Gregorian calendar, counted in years that begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::milliseconds;

    #[test]
    fn times_are_read_in_every_usual_form() {
        for (value, expected) in [
            (json!(1_736_622_000), Some(1_736_622_000_000)),
            (json!(1_736_622_000.125), Some(1_736_622_000_125)),
            (json!(1_736_622_000_125_u64), Some(1_736_622_000_125)),
            (json!("2025-01-11T19:00:00.125Z"), Some(1_736_622_000_125)),
            (json!("2025-01-11T20:30:00.125000+01:30"), Some(1_736_622_000_125)),
            (json!("2025-01-11 19:00:00"), Some(1_736_622_000_000)),
            (json!("2024-02-29T00:00:00Z"), Some(1_709_164_800_000)),
            (json!("1970-01-01T00:00:00Z"), Some(0)),
            (json!("yesterday"), None),
            (json!("2025-13-11T19:00:00Z"), None),
            (json!(0), None),
            (json!(null), None),
        ] {
            assert_eq!(milliseconds(Some(&value)), expected, "{value}");
        }
    }
}
