//! Messages that are nested too deeply to be read, with what lies too deep left out.
//!
//! A reader of JSON goes as deep as its stack; one value that is deeper would cost the whole message, and a list of good
//! tools with it.

/// Objects and arrays within one another that are read; what lies deeper is replaced by [`LEFT_OUT`].
pub(crate) const MAX_DEPTH: usize = 100;
/// Stands where something was left out.
pub(crate) const LEFT_OUT: &str = "[left out: nested too deeply]";

/// The message without what lies deeper than [`MAX_DEPTH`]; `None` where nothing does, or where it is no JSON.
pub(super) fn cut(json: &[u8]) -> Option<Vec<u8>> {
    let (mut kept, mut depth, mut is_cut) = (Vec::new(), 0_usize, false);
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in json {
        let was_at = depth;
        if in_string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => in_string = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        match (was_at > MAX_DEPTH, depth > MAX_DEPTH) {
            (false, false) => kept.push(*byte),
            (false, true) => {
                is_cut = true;
                kept.push(b'"');
                kept.extend_from_slice(LEFT_OUT.as_bytes());
                kept.push(b'"');
            }
            (true, _) => {}
        }
    }
    (is_cut && depth == 0).then_some(kept)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_what_lies_too_deep_is_left_out() {
        let deep = format!(r#"{{"a":1,"b":{}"]}}"{},"c":[2]}}"#, "[".repeat(5_000), "]".repeat(5_000));
        let kept: Value = serde_json::from_slice(&cut(deep.as_bytes()).unwrap()).unwrap();
        let mut inner = &kept["b"];
        let mut levels = 0;
        while let Value::Array(items) = inner {
            (inner, levels) = (&items[0], levels + 1);
        }
        assert_eq!((levels, inner), (MAX_DEPTH - 1, &Value::from(LEFT_OUT)));
        assert_eq!((&kept["a"], &kept["c"]), (&Value::from(1), &serde_json::json!([2])));
    }

    #[test]
    fn what_is_not_too_deep_or_no_json_is_left_alone() {
        let quoted = format!(r#"{{"a":"{}\""}}"#, "[".repeat(200));
        for json in [r#"{"a":[1,{"b":2}]}"#, "}", &quoted, &"[".repeat(300)] {
            assert_eq!(cut(json.as_bytes()), None, "{json}");
        }
    }
}
