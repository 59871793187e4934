//! JSON as some editors take it: with comments and trailing commas.

/// The text as strict JSON: comments become blanks, so that places in error messages stay right, and commas before a
/// closing bracket go.
pub(super) fn strip(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    // Where in `out` a comma stands that only blanks followed so far.
    let mut comma = None;
    while let Some(next) = rest.next() {
        match (next, rest.peek()) {
            ('"', _) => {
                comma = None;
                out.push('"');
                while let Some(next) = rest.next() {
                    out.push(next);
                    match next {
                        '\\' => out.extend(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => while rest.next_if(|next| *next != '\n').is_some() {},
            ('/', Some('*')) => {
                rest.next();
                let mut star = false;
                for next in rest.by_ref() {
                    if next == '\n' {
                        out.push('\n');
                    }
                    if star && next == '/' {
                        break;
                    }
                    star = next == '*';
                }
            }
            (',', _) => {
                comma = Some(out.len());
                out.push(',');
            }
            ('}' | ']', _) => {
                if let Some(at) = comma.take() {
                    out.replace_range(at..=at, " ");
                }
                out.push(next);
            }
            (blank, _) if blank.is_whitespace() => out.push(blank),
            (other, _) => {
                comma = None;
                out.push(other);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_go_and_strings_stay() {
        let text = "{ // one\n \"a\": \"// \\\" /* no */\", /* two\n lines */ \"b\": [1, 2, /* x */ ],\n}";
        let value: serde_json::Value = serde_json::from_str(&strip(text)).unwrap();
        assert_eq!(value, serde_json::json!({"a": "// \" /* no */", "b": [1, 2]}));
    }

    #[test]
    fn an_error_stays_in_its_line() {
        let error = serde_json::from_str::<serde_json::Value>(&strip("{ /* a\nb */\n \"x\" }")).unwrap_err();
        assert_eq!(error.line(), 3);
    }
}
