//! What was written of a conversation's last request, to go on from.
//!
//! A conversation grows at its end: the next request repeats the last one's bytes (law 7). What was written of tools and
//! messages is kept with the writer's state, and only messages that are new are written. What is kept never changes what is
//! written.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{Origin, Seq, ToolDefinition};

use crate::dialect::Target;
use crate::facts::ModelFacts;
use crate::profile::Profile;

/// What was written of the last request of one conversation to one target. Starts empty; may be dropped at any time.
#[derive(Debug, Default)]
pub struct Kept {
    target: Option<(Origin, Profile, ModelFacts)>,
    tools: Option<Tools>,
    messages: Option<Box<dyn Any + Send + Sync>>,
    bytes: usize,
}

#[derive(Debug)]
struct Tools {
    definitions: Vec<Arc<ToolDefinition>>,
    bytes: Vec<u8>,
}

/// Messages that were written, and the state in which their writer was then.
#[derive(Debug)]
struct Written<W> {
    keys: Vec<Key>,
    bytes: Vec<u8>,
    writer: W,
}

/// Which message of a conversation it is. Entries never change, so what it says cannot either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    User(Seq),
    Assistant(Seq),
    /// The results of the calls of the message before.
    Results,
}

/// Writes the messages of a request, one after another, as JSON text. Its state depends on earlier messages alone.
pub(crate) trait MessageWriter: Clone + Debug + Send + Sync + 'static {
    /// Writes the next message.
    fn push(&mut self, target: &Target<'_>, message: &PromptMessage<'_>, out: &mut Vec<u8>);

    /// Closes what is open, and adds what only the end of a request has. The first message begins at `start`.
    fn finish(&self, target: &Target<'_>, out: &mut Vec<u8>, start: usize);

    /// Closes what is open and adds nothing: the messages are no request.
    fn close(&self, _out: &mut Vec<u8>) {}
}

impl Kept {
    /// How much is kept, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets what was kept for another target.
    pub(crate) fn keep_for(&mut self, target: &Target<'_>) {
        let is_same = self.target.as_ref().is_some_and(|(origin, profile, model)| {
            origin == target.origin && profile == target.profile && model == target.model
        });
        if !is_same {
            *self = Self { target: Some((target.origin.clone(), *target.profile, *target.model)), ..Self::default() };
        }
    }

    /// Writes the definitions of `prompt`'s tools: what `write` writes, or what it wrote for the same definitions.
    pub(crate) fn write_tools(&mut self, prompt: &Prompt<'_>, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let is_same = |tools: &Tools| {
            tools.definitions.len() == prompt.tools.len()
                && tools.definitions.iter().zip(prompt.tools).all(|(before, now)| Arc::ptr_eq(before, now))
        };
        if let Some(tools) = self.tools.as_ref().filter(|tools| is_same(tools)) {
            out.extend_from_slice(&tools.bytes);
            return;
        }
        let start = out.len();
        write(out);
        let bytes = out.get(start..).unwrap_or_default().to_vec();
        self.tools = Some(Tools { definitions: prompt.tools.to_vec(), bytes });
    }

    /// Writes the messages of `prompt` behind the `[` or the elements that `out` ends with: with what `begin` gives, or going
    /// on with what is kept.
    pub(crate) fn write_messages<W: MessageWriter>(
        &mut self,
        target: &Target<'_>,
        prompt: &Prompt<'_>,
        out: &mut Vec<u8>,
        begin: impl FnOnce() -> W,
    ) {
        let kept = self.messages.take().and_then(|kept| kept.downcast::<Written<W>>().ok());
        let mut written = kept
            .filter(|written| written.is_prefix(&prompt.messages))
            .unwrap_or_else(|| Box::new(Written { keys: Vec::new(), bytes: Vec::new(), writer: begin() }));
        let mut rest = prompt.messages.iter().skip(written.keys.len()).peekable();
        while let Some((message, key)) = rest.peek().and_then(|message| Some((*message, Key::of(message)?))) {
            written.writer.push(target, message, &mut written.bytes);
            written.keys.push(key);
            rest.next();
        }
        if !written.bytes.is_empty() && out.last() != Some(&b'[') {
            out.push(b',');
        }
        let start = out.len();
        out.extend_from_slice(&written.bytes);
        if rest.peek().is_some() {
            let mut writer = written.writer.clone();
            rest.for_each(|message| writer.push(target, message, out));
            writer.finish(target, out, start);
        } else {
            written.writer.finish(target, out, start);
        }
        self.bytes = written.bytes.len() + self.tools.as_ref().map_or(0, |tools| tools.bytes.len());
        self.messages = Some(written);
    }
}

impl<W> Written<W> {
    fn is_prefix(&self, messages: &[PromptMessage<'_>]) -> bool {
        self.keys.len() <= messages.len()
            && self.keys.iter().zip(messages).all(|(key, message)| Key::of(message).as_ref() == Some(key))
    }
}

impl Key {
    /// `None` for what may be another next time: results that are not stored.
    fn of(message: &PromptMessage<'_>) -> Option<Self> {
        match message {
            PromptMessage::User { seq, .. } => Some(Self::User(*seq)),
            PromptMessage::Assistant { seq, .. } => Some(Self::Assistant(*seq)),
            PromptMessage::Results(results) => {
                let is_stored = results.iter().all(|result| matches!(result.result, std::borrow::Cow::Borrowed(_)));
                is_stored.then_some(Self::Results)
            }
        }
    }
}
