//! Reasoning that a model writes at the start of its text, in `<think>` tags.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Parts text into reasoning and text, wherever the pieces are cut.
#[derive(Debug)]
pub(crate) enum ThinkSplitter {
    /// Nothing but white space and a part of the opening tag came.
    Start(String),
    /// Within the tags; what may be a part of the closing tag.
    Inside(String),
    /// Reasoning has ended: white space before the text is not the model's words.
    Between,
    /// All that comes is text.
    Text,
}

/// A piece of a text that was parted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Thought {
    Reasoning(String),
    Text(String),
}

impl ThinkSplitter {
    pub(crate) fn new(is_wanted: bool) -> Self {
        if is_wanted { Self::Start(String::new()) } else { Self::Text }
    }

    /// Whether text passes as it is.
    pub(crate) fn is_through(&self) -> bool {
        matches!(self, Self::Text)
    }

    /// Takes the next piece.
    pub(crate) fn push(&mut self, piece: &str, out: &mut Vec<Thought>) {
        let mut piece = piece.to_owned();
        loop {
            match self {
                Self::Start(held) => {
                    held.push_str(&piece);
                    let begun = held.trim_start();
                    if let Some(rest) = begun.strip_prefix(OPEN) {
                        piece = String::from(rest);
                        *self = Self::Inside(String::new());
                    } else if OPEN.starts_with(begun) {
                        return;
                    } else {
                        piece = std::mem::take(held);
                        *self = Self::Text;
                    }
                }
                Self::Inside(held) => {
                    held.push_str(&piece);
                    if let Some((reasoning, rest)) = held.split_once(CLOSE) {
                        push(out, Thought::Reasoning(reasoning.to_owned()));
                        piece = String::from(rest);
                        *self = Self::Between;
                    } else {
                        let keep = partial_suffix(held, CLOSE);
                        let rest = held.split_off(held.len() - keep);
                        push(out, Thought::Reasoning(std::mem::replace(held, rest)));
                        return;
                    }
                }
                Self::Between => {
                    let text = piece.trim_start();
                    if text.is_empty() {
                        return;
                    }
                    piece = String::from(text);
                    *self = Self::Text;
                }
                Self::Text => {
                    push(out, Thought::Text(piece));
                    return;
                }
            }
        }
    }

    /// Gives what was held back: nothing more comes.
    pub(crate) fn finish(&mut self, out: &mut Vec<Thought>) {
        match std::mem::replace(self, Self::Text) {
            Self::Start(held) => push(out, Thought::Text(held)),
            Self::Inside(held) => push(out, Thought::Reasoning(held)),
            Self::Between | Self::Text => {}
        }
    }
}

fn push(out: &mut Vec<Thought>, thought: Thought) {
    match &thought {
        Thought::Reasoning(text) | Thought::Text(text) if text.is_empty() => {}
        Thought::Reasoning(_) | Thought::Text(_) => out.push(thought),
    }
}

/// How many bytes at the end of `text` are a beginning of `tag`.
pub(crate) fn partial_suffix(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|length| tag.get(..*length).is_some_and(|begin| text.ends_with(begin))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&str]) -> (String, String) {
        let mut splitter = ThinkSplitter::new(true);
        let mut thoughts = Vec::new();
        for piece in pieces {
            splitter.push(piece, &mut thoughts);
        }
        splitter.finish(&mut thoughts);
        let mut parted = (String::new(), String::new());
        for thought in thoughts {
            match thought {
                Thought::Reasoning(text) => parted.0.push_str(&text),
                Thought::Text(text) => parted.1.push_str(&text),
            }
        }
        parted
    }

    #[test]
    fn tags_are_found_wherever_the_text_is_cut() {
        let text = "\n<think>\nwhy < not </thin?\n</think>\n\nHello </think> you";
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let (head, tail) = text.split_at(cut);
            let expected = ("\nwhy < not </thin?\n".to_owned(), "Hello </think> you".to_owned());
            assert_eq!(split(&[head, tail]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn text_without_the_tag_at_its_start_is_text() {
        for text in ["", "  ", "<", "<thin", "<thing>", "say <think>x</think>"] {
            assert_eq!(split(&[text]), (String::new(), text.to_owned()));
        }
    }

    #[test]
    fn reasoning_without_its_closing_tag_is_reasoning() {
        assert_eq!(split(&["<think>abc</thi"]), ("abc</thi".to_owned(), String::new()));
    }
}
