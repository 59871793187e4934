//! A word of a shell line: its text, and what the shell may make of it. *Not here:* how it is read, which is `shell.rs`.

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the word, and none follows from another")]
pub(super) struct Word {
    /// Its text; of what the shell would put in, nothing.
    pub(super) text: String,
    /// Whether the text is all there is: nothing is expanded in it.
    pub(super) is_literal: bool,
    /// Where in the text something is put in that may be any text; what only is a number is none.
    pub(super) varies_at: Option<usize>,
    /// Whether it may become several words.
    pub(super) splits: bool,
    /// Whether what is put in may begin it, or make several words of it: then it may be an option.
    pub(super) may_be_options: bool,
    pub(super) is_quoted: bool,
    /// The variable that it sets, where it stands before a command.
    pub(super) sets: Option<String>,
}

impl Word {
    /// A word that stands for itself.
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_quoted: true, ..Self::empty() }
    }

    pub(super) fn empty() -> Self {
        Self {
            text: String::new(),
            is_literal: true,
            varies_at: None,
            splits: false,
            may_be_options: false,
            is_quoted: false,
            sets: None,
        }
    }

    /// Whether it is this text, or may be with what is put in.
    pub(super) fn may_be(&self, text: &str) -> bool {
        match self.varies_at {
            Some(at) => self.splits || text.starts_with(self.text.get(..at).unwrap_or_default()),
            None => self.text == text,
        }
    }

    /// Whether it begins with this, or may with what is put in behind its first sign.
    pub(super) fn may_begin_with(&self, start: &str) -> bool {
        let varies = self.varies_at.filter(|at| *at > 0 && *at < start.len());
        self.text.starts_with(start) || varies.is_some_and(|at| self.text.get(..at).is_some_and(|text| start.starts_with(text)))
    }

    /// Something is put in here.
    pub(super) fn takes(&mut self, put_in: PutIn, is_quoted: bool) {
        if put_in == PutIn::Known {
            return;
        }
        self.is_literal = false;
        if put_in == PutIn::Number {
            return;
        }
        self.varies_at.get_or_insert(self.text.len());
        let splits = put_in == PutIn::List || !is_quoted;
        self.splits |= splits;
        self.may_be_options |= splits || self.text.is_empty();
    }

    /// File names are put in here: each begins as the word does.
    pub(super) fn globs(&mut self) {
        let may_be_options = self.may_be_options || self.text.is_empty();
        self.takes(PutIn::List, false);
        self.may_be_options = may_be_options;
    }

    pub(super) fn set(&self) -> Option<Set> {
        self.sets.clone().map(|name| Set { name, is_number: self.sets_number() })
    }

    /// Whether what it sets is a plain number.
    pub(super) fn sets_number(&self) -> bool {
        let value = self.text.split_once('=').map(|(_, value)| value);
        self.is_literal && value.is_some_and(|value| value.bytes().all(|b| b.is_ascii_digit()))
    }
}

/// What a shell puts into a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PutIn {
    /// Nothing: what stands there is the text.
    Known,
    Number,
    Text,
    /// Words, also between quotes.
    List,
}

/// A variable that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Set {
    pub(super) name: String,
    /// Whether its value is a plain number.
    pub(super) is_number: bool,
}
