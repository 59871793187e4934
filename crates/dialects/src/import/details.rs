//! The `<details>` elements in which Open WebUI writes thoughts and calls into the text of an answer.

use serde_json::{Value, json};

/// A part of an answer's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Reasoning(String),
    Call { id: Option<String>, name: String, arguments: String, result: Option<String> },
}

const OPEN: &str = "<details";
const CLOSE: &str = "</details>";

/// The parts of a text, in their order. Elements of other kinds stay text.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = Piece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, element, after)) = next(rest) {
        plain.push_str(before);
        match piece(element) {
            Some(piece) => {
                flush(&mut plain, &mut pieces);
                pieces.push(piece);
            }
            None => plain.push_str(element),
        }
        rest = after;
    }
    plain.push_str(rest);
    flush(&mut plain, &mut pieces);
    pieces.into_iter()
}

fn flush(plain: &mut String, pieces: &mut Vec<Piece>) {
    let text = std::mem::take(plain);
    if !text.trim().is_empty() {
        pieces.push(Piece::Text(text.trim_matches('\n').to_owned()));
    }
}

/// What comes before the next element, the element, and what comes after it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find(OPEN)?;
    let (before, from) = text.split_at_checked(start)?;
    let end = from.find(CLOSE)?.checked_add(CLOSE.len())?;
    let (element, after) = from.split_at_checked(end)?;
    Some((before, element, after))
}

fn piece(element: &str) -> Option<Piece> {
    let (tag, body) = element.strip_prefix(OPEN)?.strip_suffix(CLOSE)?.split_once('>')?;
    let body = match body.split_once("</summary>") {
        Some((_, body)) => body,
        None => body,
    };
    let body = unescaped(body.trim());
    match attribute(tag, "type")?.as_str() {
        "reasoning" => {
            let lines = body.lines().map(|line| line.strip_prefix("> ").or(line.strip_prefix('>')).unwrap_or(line));
            Some(Piece::Reasoning(lines.collect::<Vec<_>>().join("\n")))
        }
        "tool_calls" => {
            let result = attribute(tag, "result").filter(|result| !result.is_empty());
            let result = result.or_else(|| (!body.is_empty()).then_some(body));
            Some(Piece::Call {
                id: attribute(tag, "id").filter(|id| !id.is_empty()),
                name: attribute(tag, "name").unwrap_or_else(|| "unknown".to_owned()),
                arguments: attribute(tag, "arguments").map(inner).unwrap_or_default(),
                result: result.map(inner),
            })
        }
        "code_interpreter" => Some(Piece::Call {
            id: None,
            name: "code_interpreter".to_owned(),
            arguments: json!({"code": body}).to_string(),
            result: attribute(tag, "output").filter(|output| !output.is_empty()),
        }),
        _ => None,
    }
}

/// The text inside of a JSON text; anything else as it is.
fn inner(text: String) -> String {
    match serde_json::from_str(&text) {
        Ok(Value::String(inner)) => inner,
        Ok(_) | Err(_) => text,
    }
}

/// An attribute's value.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    Some(unescaped(value))
}

/// Text with the escapes of HTML put back.
fn unescaped(text: &str) -> String {
    let escapes = [("&quot;", "\""), ("&#x27;", "'"), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    // What an ampersand begins comes last, so that nothing is put back twice.
    escapes.into_iter().fold(text.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

#[cfg(test)]
mod tests {
    use super::{Piece, pieces};

    #[test]
    fn thoughts_and_calls_are_taken_out_of_the_text() {
        let text = "<details type=\"reasoning\" done=\"true\" duration=\"3\">\n<summary>Thought for 3 seconds</summary>\n&gt; one\n&gt; two\n</details>\n\
                    Let me look.\n<details type=\"tool_calls\" done=\"true\" id=\"call_1\" name=\"get_weather\" \
                    arguments=\"{&quot;city&quot;: &quot;Lisbon &amp;amp; more&quot;}\" result=\"&quot;21 &lt;C&gt;&quot;\" files=\"\">\n\
                    <summary>Tool Executed</summary>\n</details>\n\
                    <details type=\"tool_calls\" done=\"false\" id=\"call_2\" name=\"slow\" arguments=\"&quot;{}&quot;\">\n<summary>Executing...</summary>\n</details>\n\
                    <details><summary>mine</summary>kept</details> Warm.";
        let expected = [
            Piece::Reasoning("one\ntwo".to_owned()),
            Piece::Text("Let me look.".to_owned()),
            Piece::Call {
                id: Some("call_1".to_owned()),
                name: "get_weather".to_owned(),
                arguments: "{\"city\": \"Lisbon &amp; more\"}".to_owned(),
                result: Some("21 <C>".to_owned()),
            },
            Piece::Call { id: Some("call_2".to_owned()), name: "slow".to_owned(), arguments: "{}".to_owned(), result: None },
            Piece::Text("<details><summary>mine</summary>kept</details> Warm.".to_owned()),
        ];
        assert_eq!(pieces(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_element_that_does_not_end_stays_text() {
        let text = "a <details type=\"reasoning\"> b";
        assert_eq!(pieces(text).collect::<Vec<_>>(), [Piece::Text(text.to_owned())]);
    }
}
