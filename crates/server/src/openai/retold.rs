//! What a client was told of a text of the message in flight, which may be told again from its beginning. Pure.

/// The text so far, and how much of it came again.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Retold {
    told: String,
    /// While it comes again: how many bytes did.
    again: Option<usize>,
}

/// What more there is to tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum More<'a> {
    /// This; nothing where the client has it.
    Text(&'a str),
    /// It is another text than what was told, which does not count.
    Other {
        /// What was told.
        dropped: String,
        /// The other text from its beginning.
        text: String,
    },
}

impl Retold {
    /// Whether nothing was told.
    pub(super) fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// What follows is told from the beginning.
    pub(super) fn begin_again(&mut self) {
        self.again = (!self.told.is_empty()).then_some(0);
    }

    /// Takes what is said.
    pub(super) fn push<'a>(&mut self, text: &'a str) -> More<'a> {
        let Some((before, rest)) = self.again.and_then(|at| self.told.split_at_checked(at)) else {
            self.told.push_str(text);
            return More::Text(text);
        };
        if rest.len() > text.len() && rest.starts_with(text) {
            self.again = Some(before.len().saturating_add(text.len()));
            return More::Text("");
        }
        self.again = None;
        if let Some(new) = text.strip_prefix(rest) {
            self.told.push_str(new);
            return More::Text(new);
        }
        let text = format!("{before}{text}");
        More::Other { dropped: std::mem::replace(&mut self.told, text.clone()), text }
    }

    /// The text as it came again, where more was told before.
    pub(super) fn shorter(&self) -> Option<&str> {
        self.told.get(..self.again?)
    }

    /// What was told, once the message is whole.
    pub(super) fn end(&mut self) -> String {
        std::mem::take(self).told
    }
}

#[cfg(test)]
mod tests {
    use super::{More, Retold};

    #[test]
    fn what_comes_again_is_told_once_in_whatever_pieces_it_comes() {
        let text = "Ein – Wort, und noch eines.";
        let pieces = |size: usize| {
            let signs: Vec<char> = text.chars().collect();
            signs.chunks(size).map(|piece| piece.iter().collect::<String>()).collect::<Vec<_>>()
        };
        for (first, then) in [(1, 4), (4, 1), (5, 3), (100, 7), (2, 100)] {
            for told in 0..pieces(first).len() {
                let mut retold = Retold::default();
                let mut client = String::new();
                let before = pieces(first).into_iter().take(told);
                for (at, piece) in before.chain(pieces(then)).enumerate() {
                    if at == told {
                        retold.begin_again();
                    }
                    match retold.push(&piece) {
                        More::Text(more) => client.push_str(more),
                        More::Other { .. } => panic!("it is the same text"),
                    }
                }
                assert_eq!((client.as_str(), retold.shorter()), (text, None), "{told} of {first}");
                assert_eq!(retold.end(), text);
            }
        }
    }

    #[test]
    fn another_text_is_told_from_its_beginning() {
        let mut retold = Retold::default();
        assert_eq!(retold.push("I look: <call>"), More::Text("I look: <call>"));
        retold.begin_again();
        assert_eq!(retold.push("I look: "), More::Text(""));
        assert_eq!(retold.shorter(), Some("I look: "));
        let other = More::Other { dropped: "I look: <call>".to_owned(), text: "I look: there".to_owned() };
        assert_eq!(retold.push("there"), other);
        assert_eq!((retold.push("."), retold.shorter()), (More::Text("."), None));
        assert_eq!(retold.end(), "I look: there.");
        assert!(retold.is_empty());
    }
}
