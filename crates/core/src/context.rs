//! What a model is shown besides what was said: instructions, memories, and what was found in documents.
//!
//! Whoever gathers it stores it before the model is asked, word for word as it is shown. So a turn that is resumed, asked of
//! another model or looked at later shows the same, whatever became of the documents. *Not here:* where it comes from.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::prompt::{self, PromptMessage};
use crate::{ContentBlock, Control, Entry, Journal, MessageId, Seq};

/// What was gathered for one message of a person. Shown to models directly before that message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The message.
    pub message: MessageId,
    /// What models are shown, word for word.
    pub text: String,
    /// Of what it consists, in the order in which it is shown.
    pub parts: Vec<ContextPart>,
    /// What people should know of how it was gathered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// One part of what was gathered: where it comes from. Its words are in the text of its [`Context`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextPart {
    /// What it is.
    pub kind: ContextKind,
    /// Whose it is: the knowledge's name in the configuration, the folder of an instructions file.
    pub source: String,
    /// Which document: a path below its folder, a file's name.
    pub document: String,
    /// Where in the document; all of it where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<ContextPlace>,
    /// A hash of what was read; `None` where what was shown before does not hold any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What a part of a context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextKind {
    /// A file of instructions, such as `AGENTS.md`. It holds until it changes.
    Instructions,
    /// What a user had remembered. It holds until it changes.
    Memory,
    /// Found in documents, for one message.
    Knowledge,
}

impl ContextKind {
    /// Whether it holds until it changes, and not for one message alone.
    pub fn is_standing(self) -> bool {
        match self {
            Self::Instructions | Self::Memory => true,
            Self::Knowledge => false,
        }
    }

    /// The word of the HTTP API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Memory => "memory",
            Self::Knowledge => "knowledge",
        }
    }
}

/// A place in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextPlace {
    /// Lines, the first being 1, both ends in it.
    Lines {
        /// The first.
        first: u32,
        /// The last.
        last: u32,
    },
    /// Pages, the first being 1, both ends in it.
    Pages {
        /// The first.
        first: u32,
        /// The last.
        last: u32,
    },
}

impl fmt::Display for ContextPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, several, first, last) = match self {
            Self::Lines { first, last } => ("line", "lines", first, last),
            Self::Pages { first, last } => ("page", "pages", first, last),
        };
        if first == last { write!(f, "{one} {first}") } else { write!(f, "{several} {first}-{last}") }
    }
}

impl fmt::Display for ContextPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(f, "{}, {place}", self.document),
            None => f.write_str(&self.document),
        }
    }
}

impl Context {
    /// Whether it holds until it changes.
    pub fn is_standing(&self) -> bool {
        self.parts.iter().any(|part| part.kind.is_standing())
    }

    /// Whether it may stand at this place: behind the message that it was gathered for.
    pub(crate) fn fits_at(&self, seq: Seq) -> Result<(), &'static str> {
        let is_behind = self.message.0 < seq;
        if is_behind { Ok(()) } else { Err("what was gathered is for a message that comes after it") }
    }

    /// The text as content.
    pub fn block(&self) -> ContentBlock {
        ContentBlock::text(self.text.as_str())
    }
}

/// What names a part over its versions.
fn name(part: &ContextPart) -> (ContextKind, &str, &str) {
    (part.kind, &part.source, &part.document)
}

/// The instructions and memories that a model is shown now, each as it was gathered last. What does not hold any more is not
/// among them.
pub fn standing(journal: &Journal) -> Vec<ContextPart> {
    if !journal.has_context() {
        return Vec::new();
    }
    let messages = prompt::messages(journal);
    let mut order = Vec::new();
    let mut newest: HashMap<_, &ContextPart> = HashMap::new();
    for part in messages.iter().filter_map(context).flat_map(|(_, context)| &context.parts) {
        if part.kind.is_standing() && newest.insert(name(part), part).is_none() {
            order.push(name(part));
        }
    }
    let parts = order.iter().filter_map(|name| newest.get(name));
    parts.filter(|part| part.version.is_some()).map(|part| (*part).clone()).collect()
}

/// What was found in documents that a model is shown now: what is hidden, or stands behind a summary, is not among it.
pub fn found(journal: &Journal) -> Vec<Context> {
    if !journal.has_context() {
        return Vec::new();
    }
    let is_found = |context: &Context| context.parts.iter().any(|part| part.kind == ContextKind::Knowledge);
    let messages = prompt::messages(journal);
    messages.iter().filter_map(context).map(|(_, context)| context).filter(|context| is_found(context)).cloned().collect()
}

/// The messages of people that no answer has seen and for which nothing was gathered, oldest first.
pub fn wanting(journal: &Journal) -> Vec<MessageId> {
    let Some(turn) = journal.open_turn() else { return Vec::new() };
    let (mut wanting, mut gathered) = (Vec::new(), HashSet::new());
    for stored in journal.turn_entries(turn.id()) {
        match &*stored.entry {
            Entry::User(_) if !journal.is_hidden(MessageId(stored.seq)) => wanting.push(MessageId(stored.seq)),
            Entry::Assistant(message) if !journal.is_hidden(MessageId(stored.seq)) => {
                wanting.retain(|user| user.0 > message.saw);
            }
            Entry::Control(Control::Context(context)) => {
                gathered.insert(context.message);
            }
            _ => {}
        }
    }
    wanting.retain(|message| !gathered.contains(message));
    wanting
}

/// The places of the contexts that stay however much is compacted: those with the newest version of something that holds.
pub(crate) fn that_stay(messages: &[PromptMessage<'_>]) -> HashSet<Seq> {
    let mut newest = HashMap::new();
    for (seq, context) in messages.iter().filter_map(context) {
        newest.extend(context.parts.iter().filter(|part| part.kind.is_standing()).map(|part| (name(part), seq)));
    }
    newest.into_values().collect()
}

fn context<'a>(message: &PromptMessage<'a>) -> Option<(Seq, &'a Context)> {
    match message {
        PromptMessage::Context { seq, context } => Some((*seq, context)),
        PromptMessage::User { .. } | PromptMessage::Assistant { .. } | PromptMessage::Results(_) => None,
    }
}
