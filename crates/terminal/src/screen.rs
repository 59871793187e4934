//! Where text goes.

use turnwright_engine::Event;

use crate::{Audience, Renderer};

/// Where a piece of text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The answer itself: standard output.
    Answer,
    /// What is said beside it: standard error.
    Aside,
}

/// A piece of text on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where it goes.
    pub stream: Stream,
    /// The text, ready to be written.
    pub text: String,
}

/// Writes text. A stream that was closed takes text and drops it.
pub trait Screen {
    /// Writes pieces in their order; they are seen when this is ready.
    fn show(&mut self, pieces: Vec<Piece>) -> impl Future<Output = ()>;
}

/// Shows events on a screen.
#[derive(Debug)]
pub struct Teller<S> {
    /// The screen.
    pub screen: S,
    /// What turns events into text.
    pub renderer: Renderer,
    /// What follows a command of this program that is told of, so that it finds the same data: ` --user ann`.
    pub flags: String,
}

impl<S: Screen> Teller<S> {
    /// Shows a line beside the answer.
    pub async fn say(&mut self, line: &str) {
        let mut pieces = Vec::new();
        self.renderer.aside(line, &mut pieces);
        self.screen.show(pieces).await;
    }
}

impl<S: Screen> Audience for Teller<S> {
    async fn hear(&mut self, events: &[Event]) {
        let mut pieces = Vec::new();
        for event in events {
            self.renderer.render(event, &mut pieces);
        }
        if !pieces.is_empty() {
            self.screen.show(pieces).await;
        }
    }

    async fn stopping(&mut self) {
        // The terminal shows the key, and its line is not ended.
        let gap = if self.renderer.look().is_one_screen { "\n" } else { "" };
        self.say(&format!("{gap}note: stopping; once more leaves at once")).await;
    }
}
