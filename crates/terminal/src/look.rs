//! How text is shown, depending on where it goes.

/// How text is shown. Without colour everything says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Whether the answer goes to a terminal, where control characters must not reach it.
    pub answer_is_on_terminal: bool,
    /// Whether what is said beside the answer goes to the same screen, so that one ends its line before the other begins.
    pub is_one_screen: bool,
    /// Whether what is said beside the answer may have colour.
    pub has_color: bool,
}

/// A colour with a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Quiet,
    Good,
    Bad,
    Strong,
}

impl Look {
    /// `text` in a colour, where there is colour.
    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        if !self.has_color {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Quiet => "2",
            Paint::Good => "32",
            Paint::Bad => "31",
            Paint::Strong => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
