//! What a model's text holds besides words for the person: reasoning in tags, and calls that its server did not parse.

use turnwright_core::StreamDelta;

use crate::dialect::Offered;
use crate::profile::Profile;
use crate::recover::{Piece, Recoverer};
use crate::think::{ThinkSplitter, Thought};

/// Parts text as the profile says, wherever the pieces are cut.
#[derive(Debug)]
pub(crate) struct WordReader {
    think: ThinkSplitter,
    recover: Option<Recoverer>,
    /// Room for what comes of a piece, empty between two.
    pieces: Vec<Piece>,
}

/// A piece of a text that was parted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    Reasoning(String),
    Text(String),
    /// A call of an offered tool; its arguments are a JSON object.
    Call {
        name: String,
        arguments: String,
    },
}

impl WordReader {
    pub(crate) fn new(profile: &Profile, offered: &Offered) -> Self {
        let forms = profile.recover_text_calls;
        Self {
            think: ThinkSplitter::new(profile.think_tags),
            recover: (!forms.is_empty() && !offered.is_empty()).then(|| Recoverer::new(offered.clone(), forms)),
            pieces: Vec::new(),
        }
    }

    /// Whether text passes as it is.
    pub(crate) fn is_through(&self) -> bool {
        self.think.is_through() && self.recover.is_none()
    }

    /// Takes the next piece.
    pub(crate) fn push(&mut self, text: &str, out: &mut Vec<Word>) {
        if self.think.is_through() {
            self.visible(text, out);
            return;
        }
        let mut thoughts = Vec::new();
        self.think.push(text, &mut thoughts);
        self.thoughts(thoughts, out);
    }

    /// Something else begins: what was held back is what it is.
    pub(crate) fn finish(&mut self, out: &mut Vec<Word>) {
        if !self.think.is_through() {
            let mut thoughts = Vec::new();
            self.think.finish(&mut thoughts);
            self.thoughts(thoughts, out);
        }
        if let Some(recoverer) = &mut self.recover {
            recoverer.finish(&mut self.pieces);
            out.extend(self.pieces.drain(..).map(Word::from));
        }
    }

    fn thoughts(&mut self, thoughts: Vec<Thought>, out: &mut Vec<Word>) {
        for thought in thoughts {
            match thought {
                Thought::Reasoning(text) => out.push(Word::Reasoning(text)),
                Thought::Text(text) => self.visible(&text, out),
            }
        }
    }

    fn visible(&mut self, text: &str, out: &mut Vec<Word>) {
        let Some(recoverer) = &mut self.recover else {
            out.push(Word::Text(text.to_owned()));
            return;
        };
        recoverer.push(text, &mut self.pieces);
        out.extend(self.pieces.drain(..).map(Word::from));
    }
}

/// What a call that was found in text is in an answer.
pub(crate) fn recovered(key: u32, name: String, arguments: String) -> [StreamDelta; 3] {
    [
        StreamDelta::CallStarted { key, name, provider_id: None },
        StreamDelta::CallArguments { key, text: arguments },
        StreamDelta::CallRecovered { key },
    ]
}

impl From<Piece> for Word {
    fn from(piece: Piece) -> Self {
        match piece {
            Piece::Text(text) => Self::Text(text),
            Piece::Call { name, arguments } => Self::Call { name, arguments },
        }
    }
}
