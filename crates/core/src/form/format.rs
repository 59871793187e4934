//! What texts of a form must look like.

use super::TextFormat;

impl TextFormat {
    /// The format of this name, where it is one that forms have; others are not checked.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "email" => Some(Self::Email),
            "uri" => Some(Self::Uri),
            "date" => Some(Self::Date),
            "date-time" => Some(Self::DateTime),
            _ => None,
        }
    }

    pub(super) fn described(self) -> &'static str {
        match self {
            Self::Email => "an e-mail address",
            Self::Uri => "an address with its scheme, such as https://example.org/",
            Self::Date => "a day such as 2026-11-22",
            Self::DateTime => "a moment such as 2026-11-22T09:30:00Z",
        }
    }

    pub(super) fn fits(self, text: &str) -> bool {
        match self {
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
            Self::Date => is_date(text),
            Self::DateTime => is_date_time(text),
        }
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|letter| letter.is_whitespace() || letter.is_control())
}

fn is_email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(name, host)| {
        is_plain(name) && is_plain(host) && !name.contains('@') && !host.starts_with('.') && !host.ends_with('.')
    })
}

fn is_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.');
        scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.chars().all(is_letter) && is_plain(rest)
    })
}

/// The number that exactly so many digits make.
fn number(digits: &str, count: usize) -> Option<u32> {
    let fits = digits.len() == count && digits.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| digits.parse().ok()).flatten()
}

fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut part = |count| parts.next().and_then(|digits| number(digits, count));
    let (Some(year), Some(month), Some(day)) = (part(4), part(2), part(2)) else { return false };
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    let Some((date, rest)) = text.split_once(['T', 't']) else { return false };
    let offset = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (Some(time), Some(zone)) = (rest.get(..offset), rest.get(offset..)) else { return false };
    let (seconds, fraction) = time.split_once('.').map_or((time, None), |(seconds, fraction)| (seconds, Some(fraction)));
    let is_fraction = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_zone = match zone.get(..1) {
        Some("Z" | "z") => zone.len() == 1,
        Some(_) => is_clock(zone.get(1..).unwrap_or_default(), &[23, 59]),
        None => false,
    };
    is_date(date) && is_clock(seconds, &[23, 59, 60]) && fraction.is_none_or(is_fraction) && is_zone
}

/// Whether a text is two digits for each of these, at most so many, with colons between.
fn is_clock(text: &str, most: &[u32]) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == most.len() && parts.iter().zip(most).all(|(part, most)| number(part, 2).is_some_and(|part| part <= *most))
}
