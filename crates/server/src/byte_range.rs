//! Which part of a file a client asks for (RFC 9110, section 14).

use http::{HeaderMap, header};

/// What is wanted of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it: nothing else was asked for, in a form that is understood here.
    Whole,
    /// The bytes from the first up to the second, which is not one of them.
    Part(u64, u64),
    /// What is not there.
    Nothing,
}

impl Wanted {
    /// What these headers ask for of a file of so many bytes whose tag is this. One range is understood; of several the whole
    /// is given, as of what is no range.
    pub(crate) fn of(headers: &HeaderMap, tag: &str, bytes: u64) -> Self {
        let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        if text(header::IF_RANGE).is_some_and(|known| known.trim() != tag) {
            return Self::Whole;
        }
        let range = text(header::RANGE).and_then(|range| range.trim().strip_prefix("bytes="));
        let Some((first, last)) = range.filter(|range| !range.contains(',')).and_then(|range| range.split_once('-')) else {
            return Self::Whole;
        };
        match (number(first), number(last)) {
            (Number::Of(first), Number::Of(last)) if first > last => Self::Whole,
            (Number::Of(first), Number::Of(_) | Number::None) if first >= bytes => Self::Nothing,
            (Number::Of(first), Number::Of(last)) => Self::Part(first, last.saturating_add(1).min(bytes)),
            (Number::Of(first), Number::None) => Self::Part(first, bytes),
            (Number::None, Number::Of(0)) => Self::Nothing,
            (Number::None, Number::Of(_)) if bytes == 0 => Self::Nothing,
            (Number::None, Number::Of(last)) => Self::Part(bytes.saturating_sub(last), bytes),
            (Number::None, Number::None) | (Number::Wrong, _) | (_, Number::Wrong) => Self::Whole,
        }
    }
}

enum Number {
    Of(u64),
    None,
    Wrong,
}

fn number(text: &str) -> Number {
    let text = text.trim();
    if text.is_empty() {
        return Number::None;
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Number::Wrong;
    }
    // What is too large to be counted is behind every end.
    Number::Of(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn wanted(range: &'static str, if_range: Option<&'static str>, bytes: u64) -> Wanted {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, HeaderValue::from_static(range));
        if let Some(tag) = if_range {
            headers.insert(header::IF_RANGE, HeaderValue::from_static(tag));
        }
        Wanted::of(&headers, "\"a\"", bytes)
    }

    #[test]
    fn one_range_is_a_part_and_what_is_not_understood_is_the_whole() {
        use Wanted::{Nothing, Part, Whole};
        for (range, expected) in [
            ("bytes=0-0", Part(0, 1)),
            ("bytes=2-5", Part(2, 6)),
            ("bytes=2-", Part(2, 10)),
            ("bytes=-3", Part(7, 10)),
            ("bytes=-30", Part(0, 10)),
            ("bytes=9-99999999999999999999999", Part(9, 10)),
            ("bytes=10-", Nothing),
            ("bytes=10-12", Nothing),
            ("bytes=-0", Nothing),
            ("bytes=5-2", Whole),
            ("bytes=-", Whole),
            ("bytes=a-b", Whole),
            ("bytes=+1-2", Whole),
            ("bytes=0-1,3-4", Whole),
            ("lines=1-2", Whole),
        ] {
            assert_eq!(wanted(range, None, 10), expected, "{range}");
        }
        assert_eq!([wanted("bytes=-1", None, 0), wanted("bytes=0-", None, 0)], [Nothing, Nothing]);
        assert_eq!(Wanted::of(&HeaderMap::new(), "\"a\"", 10), Whole);
    }

    #[test]
    fn a_part_of_something_else_is_not_given() {
        assert_eq!(wanted("bytes=1-2", Some("\"a\""), 10), Wanted::Part(1, 3));
        assert_eq!(wanted("bytes=1-2", Some("\"b\""), 10), Wanted::Whole);
        assert_eq!(wanted("bytes=1-2", Some("W/\"a\""), 10), Wanted::Whole);
    }
}
