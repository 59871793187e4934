//! Texts before which an answer's text ends: `stop`. Pure.
//!
//! Providers end each of a turn's messages there, and few take it at all: here it ends what the client is told, while the turn goes on
//! and is kept whole.

use serde_json::Value;

use crate::error::ApiError;

/// The most texts that OpenAI takes.
const MAX_STOPS: usize = 4;

/// Texts that end the answer's text, and what of it is held back since it may be the beginning of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stops {
    texts: Vec<String>,
    held: String,
    is_over: bool,
    /// Whether it was when the message that comes began.
    was_over: bool,
}

impl Stops {
    /// What a request asks for.
    ///
    /// # Errors
    /// 400, where it is neither a text nor a list of up to four.
    pub(crate) fn of(stop: Option<&Value>) -> Result<Self, ApiError> {
        let wrong = || ApiError::invalid(format!("`stop` must be a text, or a list of up to {MAX_STOPS}")).about("stop");
        let texts = match stop {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(texts)) if texts.len() <= MAX_STOPS => {
                let read: Option<Vec<String>> = texts.iter().map(|text| text.as_str().map(str::to_owned)).collect();
                read.ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
        };
        let texts = texts.into_iter().filter(|text| !text.is_empty()).collect();
        Ok(Self { texts, ..Self::default() })
    }

    /// Whether nothing ends the text.
    pub(crate) fn is_none(&self) -> bool {
        self.texts.is_empty()
    }

    /// Whether the text was ended.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// What can be told once this was said.
    pub(crate) fn push(&mut self, text: &str) -> String {
        if self.is_over {
            return String::new();
        }
        self.held.push_str(text);
        let end = self.texts.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        if let Some(end) = end {
            self.is_over = true;
            let mut told = std::mem::take(&mut self.held);
            told.truncate(end);
            return told;
        }
        let is_beginning =
            |at: &usize| self.held.get(*at..).is_some_and(|rest| self.texts.iter().any(|stop| stop.starts_with(rest)));
        let from = self.held.char_indices().map(|(at, _)| at).find(is_beginning).unwrap_or(self.held.len());
        let kept = self.held.split_off(from);
        std::mem::replace(&mut self.held, kept)
    }

    /// The message that comes is told from its beginning.
    pub(crate) fn begin_again(&mut self) {
        self.held.clear();
        self.is_over = self.was_over;
    }

    /// What was held back and ends nothing, since the message is over.
    pub(crate) fn flush(&mut self) -> String {
        self.was_over = self.is_over;
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Stops;

    #[test]
    fn a_text_ends_before_the_first_stop_in_whatever_pieces_it_comes() {
        let text = "Ein – Wort\n\nUser: no";
        for (stop, expected) in [
            (json!("User:"), "Ein – Wort\n\n"),
            (json!(["User:", "\n\n"]), "Ein – Wort"),
            (json!("none"), text),
            (json!("nobody"), text),
            (json!("–"), "Ein "),
            (json!([]), text),
            (json!(""), text),
        ] {
            for size in 1..=text.chars().count() {
                let mut stops = Stops::of(Some(&stop)).unwrap();
                let pieces: Vec<char> = text.chars().collect();
                let pieces = pieces.chunks(size).map(|piece| piece.iter().collect::<String>());
                let mut told: String = pieces.map(|piece| stops.push(&piece)).collect();
                told.push_str(&stops.flush());
                assert_eq!((told.as_str(), stops.is_over()), (expected, expected != text), "{stop} in pieces of {size}");
            }
        }
    }

    #[test]
    fn what_is_no_stop_is_refused() {
        for wrong in [json!(1), json!([1]), json!(["a", "b", "c", "d", "e"]), json!({})] {
            assert_eq!(Stops::of(Some(&wrong)).unwrap_err().param(), Some("stop"), "{wrong}");
        }
        assert!(Stops::of(None).unwrap().is_none());
    }
}
