//! A place in a text that may become a call, and what can be read there.

use turnwright_core::ToolDefinition;

use crate::dialect::Offered;

/// A call: an offered tool's name, and a JSON object.
pub(super) type Call = (String, String);

/// Why nothing could be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It cannot be said before more has come.
    Growing,
    /// It is no call, up to this byte.
    No(usize),
}

pub(super) type Read<T> = Result<T, Stop>;

/// A place in a text. What it says of a text holds for every longer one that begins with it, so it does not matter where a
/// stream is cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    pub(super) at: usize,
    /// Whether nothing more comes.
    pub(super) is_end: bool,
    pub(super) offered: &'a Offered,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, at: usize, is_end: bool, offered: &'a Offered) -> Self {
        Self { text, at, is_end, offered }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// It is no call.
    pub(super) fn no<T>(&self) -> Read<T> {
        Err(Stop::No(self.at))
    }

    /// The text ends here: more may come, or it is no call.
    pub(super) fn ended<T>(&self) -> Read<T> {
        Err(if self.is_end { Stop::No(self.text.len()) } else { Stop::Growing })
    }

    pub(super) fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// White space and what follows it; there is something.
    pub(super) fn next(&mut self) -> Read<char> {
        self.space();
        match self.rest().chars().next() {
            Some(next) => Ok(next),
            None => self.ended(),
        }
    }

    /// Whether `literal` comes here, and goes past it.
    pub(super) fn take(&mut self, literal: &str) -> Read<bool> {
        let rest = self.rest();
        if rest.starts_with(literal) {
            self.at += literal.len();
            return Ok(true);
        }
        if !self.is_end && literal.starts_with(rest) { Err(Stop::Growing) } else { Ok(false) }
    }

    /// Goes past `literal`, which must come here.
    pub(super) fn expect(&mut self, literal: &str) -> Read<()> {
        if self.take(literal)? { Ok(()) } else { self.no() }
    }

    /// Goes past white space and `literal`, of which the end of the text may have cut off all or a part.
    pub(super) fn close(&mut self, literal: &str) -> Read<()> {
        self.space();
        if self.is_end && literal.starts_with(self.rest()) {
            self.at = self.text.len();
            return Ok(());
        }
        self.expect(literal)
    }

    /// Whether nothing but white space is left, and nothing more comes.
    pub(super) fn is_over(&self) -> bool {
        self.is_end && self.rest().trim().is_empty()
    }

    /// The text up to `literal`, and goes past it.
    pub(super) fn until(&mut self, literal: &str) -> Read<&'a str> {
        let Some((before, _)) = self.rest().split_once(literal) else { return self.ended() };
        self.at += before.len() + literal.len();
        Ok(before)
    }

    /// A name that is offered.
    pub(super) fn name(&mut self) -> Read<String> {
        let word = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if word.len() == self.rest().len() && !self.is_end && self.offered.names().any(|name| name.starts_with(word)) {
            return Err(Stop::Growing);
        }
        if !self.offered.contains(word) {
            return self.no();
        }
        self.at += word.len();
        Ok(word.to_owned())
    }

    /// The characters from here that fit. Does not go past them.
    pub(super) fn word(&self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    pub(super) fn tool(&self, name: &str) -> Option<&'a ToolDefinition> {
        self.offered.tool(name)
    }
}
