//! What was tried in a turn and what came of it, for people who read why it was stopped.

use crate::{AssistantMessage, CallId, Entry, Outcome, ToolCall, ToolResult};

/// How much of the arguments and of the result of a call is shown, in characters.
const MAX_SHOWN: usize = 200;

/// What a turn's entries tell.
#[derive(Debug, Default)]
pub(crate) struct Story<'a> {
    /// The calls of each message that asked for some, oldest first.
    pub(crate) rounds: Vec<Vec<Tried<'a>>>,
    /// What the model said last in words.
    pub(crate) said: String,
}

/// A call, and what came of it.
#[derive(Debug)]
pub(crate) struct Tried<'a> {
    call: &'a ToolCall,
    result: Option<&'a ToolResult>,
}

impl<'a> Story<'a> {
    /// Of a turn's entries.
    pub(crate) fn of(entries: impl Iterator<Item = &'a Entry>) -> Self {
        let mut story = Self::default();
        let mut seq_of_round = None;
        for entry in entries {
            match entry {
                Entry::Assistant(message) => {
                    seq_of_round = None;
                    story.hear(message);
                }
                Entry::Result(result) => {
                    // All results before the next message are of its calls; which message that was, the first one tells.
                    let CallId { message, index } = result.call;
                    if *seq_of_round.get_or_insert(message) == message {
                        let round = story.rounds.last_mut();
                        if let Some(tried) = round.and_then(|round| round.get_mut(usize::try_from(index).ok()?)) {
                            tried.result = Some(result);
                        }
                    }
                }
                Entry::User(_)
                | Entry::Decision(_)
                | Entry::Question(_)
                | Entry::Started(_)
                | Entry::TaskAccepted(_)
                | Entry::Elicited(_)
                | Entry::Answered(_)
                | Entry::Sampled(_)
                | Entry::Control(_) => {}
            }
        }
        story
    }

    fn hear(&mut self, message: &'a AssistantMessage) {
        let text = message.text();
        if !text.trim().is_empty() {
            self.said = text;
        }
        let calls: Vec<_> = message.calls().map(|call| Tried { call, result: None }).collect();
        if !calls.is_empty() {
            self.rounds.push(calls);
        }
    }
}

impl Tried<'_> {
    /// On one line.
    pub(crate) fn told(&self) -> String {
        let name = short(&self.call.name);
        let arguments = short(&self.call.arguments);
        let Some(result) = self.result else { return format!("{name} {arguments}: no result") };
        let outcome = match result.outcome {
            Outcome::Success => "success",
            Outcome::Denied => "denied",
            Outcome::Error(kind) => kind.as_str(),
        };
        let content: Vec<String> = result.content.iter().map(|block| block.as_text().into_owned()).collect();
        format!("{name} {arguments}: {outcome}: {}", short(&content.join(" ")))
    }
}

/// A text on one line, cut where it is long.
pub(crate) fn short(text: &str) -> String {
    let mut words = text.split_whitespace();
    let mut line = words.next().unwrap_or_default().to_owned();
    for word in words {
        if line.len() > MAX_SHOWN.saturating_mul(4) {
            break;
        }
        line.push(' ');
        line.push_str(word);
    }
    match line.char_indices().nth(MAX_SHOWN).and_then(|(at, _)| line.get(..at)) {
        Some(cut) => format!("{cut}…"),
        None => line,
    }
}
