//! Messages with what JSON does not have, and what servers write all the same: half a character (`"\ud83d"`, what is left where a text
//! was cut), and numbers out of range (`1e999`, `NaN`, `Infinity`).
//!
//! A reader of JSON refuses the whole message for one of them: a list of good tools, or a result that took effect.

use memchr::memchr2;

/// The message with U+FFFD in place of half characters, and numbers out of range as texts; `None` where there is nothing to mend.
pub(super) fn mended(json: &[u8]) -> Option<Vec<u8>> {
    let (mut kept, mut taken, mut at, mut in_string) = (Vec::new(), 0, 0, false);
    while let Some(rest) = json.get(at..).filter(|rest| !rest.is_empty()) {
        let (length, instead) = if in_string { in_text(rest) } else { between_texts(rest) };
        in_string ^= rest.first() == Some(&b'"') && length == 1;
        if let Some(instead) = instead {
            kept.extend_from_slice(json.get(taken..at)?);
            kept.extend_from_slice(&instead);
            taken = at + length;
        }
        at += length;
    }
    if taken == 0 {
        return None;
    }
    kept.extend_from_slice(json.get(taken..)?);
    Some(kept)
}

/// How far the next step within a string goes, and what stands in its place where that is not itself.
fn in_text(rest: &[u8]) -> (usize, Option<Vec<u8>>) {
    match rest {
        [b'\\', b'u', ..] => match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
            (Some(0xd800..=0xdfff), _) => (6, Some(br"\ufffd".to_vec())),
            (Some(_), _) => (6, None),
            (None, _) => (2, None),
        },
        [b'\\', _, ..] => (2, None),
        [b'"' | b'\\', ..] => (1, None),
        _ => (memchr2(b'"', b'\\', rest).unwrap_or(rest.len()), None),
    }
}

/// The same between strings.
fn between_texts(rest: &[u8]) -> (usize, Option<Vec<u8>>) {
    let is_of_number = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let word = rest.get(..rest.iter().take_while(|byte| is_of_number(byte)).count()).unwrap_or_default();
    if word.is_empty() {
        return (1, None);
    }
    let is_out_of_range = match word {
        b"NaN" | b"Infinity" | b"-Infinity" => true,
        [b'0'..=b'9' | b'-', ..] => {
            let number = std::str::from_utf8(word).ok().and_then(|word| word.parse::<f64>().ok());
            number.is_some_and(f64::is_infinite)
        }
        _ => false,
    };
    (word.len(), is_out_of_range.then(|| [b"\"", word, b"\""].concat()))
}

/// The unit of UTF-16 that `\uXXXX` at the beginning stands for.
fn unit(rest: &[u8]) -> Option<u16> {
    let digits = rest.strip_prefix(br"\u")?.get(..4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn half_characters_and_numbers_out_of_range_cost_nothing_else() {
        for (written, read) in [
            (r#"{"a":"cut \ud83d","b":"\ude00!"}"#, r#"{"a":"cut \ufffd","b":"\ufffd!"}"#),
            (r#"["\ud83d\ud83d\ude00","\ud83d\u0041","\uD83D"]"#, r#"["\ufffd\ud83d\ude00","\ufffd\u0041","\ufffd"]"#),
            ("[1e999,-1E+999,NaN, Infinity,-Infinity,2]", r#"["1e999","-1E+999","NaN", "Infinity","-Infinity",2]"#),
        ] {
            let whole = mended(written.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(whole.clone()).unwrap(), read);
            serde_json::from_slice::<Value>(&whole).unwrap();
        }
    }

    #[test]
    fn what_can_be_read_is_left_alone() {
        for whole in [
            r#"{"a":"\ud83d\ude00 \\ud83d \"1e999\" NaN","b":[1e300,-0.5,true,null,12345678901234567890]}"#,
            r#"{"a":"\u12"#,
            r#"{"a":1e9x9,"b":"\"#,
            "",
        ] {
            assert_eq!(mended(whole.as_bytes()), None, "{whole}");
        }
    }
}
