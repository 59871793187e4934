//! What was written of a conversation's last request, to go on from.
//!
//! A conversation grows at its end: the next request repeats the last one's bytes (law 7). What was written of tools and
//! messages is kept with the writer's state, and only messages that are new are written: at the end of the last request's own
//! body, once nobody else has it. What is kept never changes what is written.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use turnwright_core::prompt::{Prompt, PromptMessage, ShownResult};
use turnwright_core::{Origin, Seq, SharedBeginning, ToolDefinition};

use crate::dialect::{Body, Target};
use crate::facts::ModelFacts;
use crate::profile::Profile;

/// What a message takes at least, in bytes, about.
const MESSAGE_BYTES: usize = 512;
/// Messages shorter than this together, in bytes, are written anew as quickly.
const MIN_SHARED_BYTES: usize = 4 * 1024;

/// What was written of the last request of one conversation to one target. Starts empty; may be dropped at any time.
#[derive(Debug, Default)]
pub struct Kept {
    target: Option<Arc<(Origin, Profile, ModelFacts)>>,
    tools: Option<Arc<Tools>>,
    messages: Option<Box<dyn Any + Send + Sync>>,
    /// The first of the messages, where other conversations begin with the very same.
    begun: Option<Arc<Begun>>,
    /// The last request, shared with who sends it: the next one goes on in its bytes once it is sent.
    body: Body,
    bytes: usize,
    message_bytes: usize,
}

#[derive(Debug)]
struct Tools {
    definitions: Vec<Arc<ToolDefinition>>,
    bytes: Arc<[u8]>,
}

/// The messages of entries with which several conversations begin.
#[derive(Debug)]
struct Begun {
    beginning: SharedBeginning,
    /// As in a body of `bytes` alone, before it is finished.
    written: Box<dyn Any + Send + Sync>,
    bytes: Vec<u8>,
}

/// Messages that were written, where they are in the last body, and the state in which their writer was then.
#[derive(Debug, Clone)]
struct Written<W> {
    keys: Vec<Key>,
    writer: W,
    range: Range<usize>,
    /// Where the newest that wrote anything begins.
    newest: usize,
    /// The end of them, as it was before the body was finished.
    unfinished: Vec<u8>,
}

/// Which message of a conversation it is. Entries never change, so what it says cannot either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    User(Seq),
    Context(Seq),
    Assistant(Seq),
    /// The results of the calls of the message before.
    Results,
}

/// Writes the messages of a request, one after another, as JSON text. Its state depends on earlier messages alone.
pub(crate) trait MessageWriter: Clone + Debug + Send + Sync + 'static {
    /// Writes the next message.
    fn push(&mut self, target: &Target<'_>, message: &PromptMessage<'_>, out: &mut Vec<u8>);

    /// Closes what is open, and adds what only the end of a request has.
    fn finish(&self, target: &Target<'_>, out: &mut Vec<u8>);

    /// The first byte that [`MessageWriter::finish`], or what is written behind it, may change, where the newest message begins at
    /// `newest`: the end, where they only add.
    fn settled(&self, _newest: usize, end: usize) -> usize {
        end
    }

    /// Closes what is open and adds nothing: the messages are no request.
    fn close(&self, _out: &mut Vec<u8>) {}
}

impl Kept {
    /// How much is kept, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How much of it is messages, in bytes.
    pub fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// What another conversation with the same target can go on from: the tools.
    #[must_use]
    pub fn for_another(&self) -> Self {
        Self { target: self.target.clone(), tools: self.tools.clone(), ..Self::default() }
    }

    /// Takes what other conversations with the same target that begin with the same entries can go on from: the first messages, and
    /// the tools. `None` where none are shared, or there is little of them. This conversation needs it no more.
    pub fn take_beginning(&mut self) -> Option<(SharedBeginning, Self)> {
        let begun = self.begun.take()?;
        Some((begun.beginning.clone(), Self { bytes: begun.bytes.len(), begun: Some(begun), ..self.for_another() }))
    }

    /// The same, to be gone on from once more.
    #[must_use]
    pub fn for_another_that_begins_so(&self) -> Self {
        Self { begun: self.begun.clone(), ..self.for_another() }
    }

    /// Forgets what was kept for another target.
    pub(crate) fn keep_for(&mut self, target: &Target<'_>) {
        let is_same = self.target.as_deref().is_some_and(|(origin, profile, model)| {
            origin == target.origin && profile == target.profile && model == target.model
        });
        if !is_same {
            let target = Arc::new((target.origin.clone(), *target.profile, *target.model));
            *self = Self { target: Some(target), ..Self::default() };
        }
    }

    /// Writes the definitions of `prompt`'s tools: what `write` writes, or what it wrote for the same definitions.
    pub(crate) fn write_tools(&mut self, prompt: &Prompt<'_>, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let is_same = |tools: &Tools| {
            tools.definitions.len() == prompt.tools.len()
                && tools.definitions.iter().zip(prompt.tools).all(|(before, now)| Arc::ptr_eq(before, now) || before == now)
        };
        if let Some(tools) = self.tools.as_deref().filter(|tools| is_same(tools)) {
            out.extend_from_slice(&tools.bytes);
            // The next request's are the very same as these, which is seen at once; long schemas are not.
            if tools.definitions.iter().zip(prompt.tools).any(|(before, now)| !Arc::ptr_eq(before, now)) {
                let bytes = Arc::clone(&tools.bytes);
                self.tools = Some(Arc::new(Tools { definitions: prompt.tools.to_vec(), bytes }));
            }
            return;
        }
        let start = out.len();
        write(out);
        let bytes = out.get(start..).unwrap_or_default().into();
        self.tools = Some(Arc::new(Tools { definitions: prompt.tools.to_vec(), bytes }));
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
        self.write_messages_and(target, prompt, out, begin, |_, _| {});
    }

    /// As [`Kept::write_messages`]; `end` writes what this request alone has behind them. It changes nothing before what the
    /// writer calls settled.
    pub(crate) fn write_messages_and<W: MessageWriter>(
        &mut self,
        target: &Target<'_>,
        prompt: &Prompt<'_>,
        out: &mut Vec<u8>,
        begin: impl FnOnce() -> W,
        end: impl FnOnce(&W, &mut Vec<u8>),
    ) {
        if out.last() != Some(&b'[') {
            out.push(b',');
        }
        let kept = self.messages.take().and_then(|kept| kept.downcast::<Written<W>>().ok());
        let mut written = if let Some(mut written) = kept.filter(|written| written.is_prefix(&prompt.messages)) {
            written.go_on(std::mem::take(&mut self.body), out);
            written
        } else if let Some(written) = self.begun.as_ref().and_then(|begun| begun.go_on(prompt, out)) {
            Box::new(written)
        } else {
            out.reserve(MESSAGE_BYTES * prompt.messages.len());
            Box::new(Written::new(begin(), out.len()))
        };
        let mut rest = prompt.messages.iter().skip(written.keys.len()).peekable();
        let mut beginning = prompt.conversation.and_then(|of| of.beginning).filter(|_| written.keys.is_empty());
        while let Some((message, key)) = rest.peek().and_then(|message| Some((*message, Key::of(message)?))) {
            if let Some(beginning) = beginning.take_if(|beginning| key.is_after(beginning.last())) {
                written.range.end = out.len();
                self.begun = Begun::of(beginning, &written, out).map(Arc::new);
            }
            push(&mut written.writer, &mut written.newest, target, message, out);
            written.keys.push(key);
            rest.next();
        }
        written.range.end = out.len();
        written.unfinished = if rest.peek().is_some() {
            let (mut writer, mut newest) = (written.writer.clone(), written.newest);
            rest.for_each(|message| push(&mut writer, &mut newest, target, message, out));
            let unfinished = finish(&writer, newest, written.range.end, target, out);
            end(&writer, out);
            unfinished
        } else {
            let unfinished = finish(&written.writer, written.newest, written.range.end, target, out);
            end(&written.writer, out);
            unfinished
        };
        if out.len() == written.range.start && out.last() == Some(&b',') {
            out.pop();
        }
        self.message_bytes = written.range.len();
        self.messages = Some(written);
    }

    /// Keeps the body of this request.
    pub(crate) fn keep(&mut self, body: Vec<u8>) -> Body {
        self.bytes = body.capacity() + self.tools.as_ref().map_or(0, |tools| tools.bytes.len());
        self.body = Body::from(body);
        self.body.clone()
    }
}

fn push<W: MessageWriter>(
    writer: &mut W,
    newest: &mut usize,
    target: &Target<'_>,
    message: &PromptMessage<'_>,
    out: &mut Vec<u8>,
) {
    let before = out.len();
    writer.push(target, message, out);
    if out.len() > before {
        *newest = before;
    }
}

/// Finishes the messages; gives what that may have changed before `end`, as it was.
fn finish<W: MessageWriter>(writer: &W, newest: usize, end: usize, target: &Target<'_>, out: &mut Vec<u8>) -> Vec<u8> {
    let settled = writer.settled(newest, out.len()).min(end);
    let unfinished = out.get(settled..end).unwrap_or_default().to_vec();
    writer.finish(target, out);
    unfinished
}

impl Begun {
    /// What of `out` is written by now; nothing where it is little.
    fn of<W: MessageWriter>(beginning: &SharedBeginning, written: &Written<W>, out: &[u8]) -> Option<Self> {
        let bytes = out.get(written.range.clone()).filter(|bytes| bytes.len() >= MIN_SHARED_BYTES)?.to_vec();
        let written = Written {
            newest: written.newest.saturating_sub(written.range.start),
            range: 0..bytes.len(),
            unfinished: Vec::new(),
            ..written.clone()
        };
        Some(Self { beginning: beginning.clone(), written: Box::new(written), bytes })
    }

    /// Writes them behind `out`, where `prompt` begins so.
    fn go_on<W: MessageWriter>(&self, prompt: &Prompt<'_>, out: &mut Vec<u8>) -> Option<Written<W>> {
        let is_same = prompt.conversation?.beginning? == &self.beginning;
        let written = self.written.downcast_ref::<Written<W>>()?;
        if !is_same || !written.is_prefix(&prompt.messages) {
            return None;
        }
        let more = prompt.messages.len().saturating_sub(written.keys.len());
        let start = out.len();
        out.reserve(self.bytes.len().saturating_add(more.saturating_add(1).saturating_mul(MESSAGE_BYTES)));
        out.extend_from_slice(&self.bytes);
        Some(Written { newest: written.newest.saturating_add(start), range: start..out.len(), ..written.clone() })
    }
}

impl<W> Written<W> {
    fn new(writer: W, start: usize) -> Self {
        Self { keys: Vec::new(), writer, range: start..start, newest: start, unfinished: Vec::new() }
    }

    fn is_prefix(&self, messages: &[PromptMessage<'_>]) -> bool {
        self.keys.len() <= messages.len()
            && self.keys.iter().zip(messages).all(|(key, message)| Key::of(message).as_ref() == Some(key))
    }

    /// Writes what is kept in `body` behind `out`: where `body` begins with the same, in its own bytes, which are only copied
    /// where another has them too.
    fn go_on(&mut self, body: Body, out: &mut Vec<u8>) {
        let settled = self.range.end - self.unfinished.len();
        if body.get(..self.range.start) == Some(out.as_slice()) {
            *out = body.into_vec();
            out.truncate(settled);
        } else {
            let start = out.len();
            out.extend_from_slice(body.get(self.range.start..settled).unwrap_or_default());
            self.newest = self.newest - self.range.start + start;
            self.range.start = start;
        }
        out.append(&mut self.unfinished);
    }
}

impl Key {
    /// Whether it is of an entry that stands behind `last`. Results stand where the message is that they answer.
    fn is_after(self, last: Seq) -> bool {
        match self {
            Self::User(seq) | Self::Context(seq) | Self::Assistant(seq) => seq > last,
            Self::Results => false,
        }
    }

    /// `None` for what may be another next time: results that are not stored.
    fn of(message: &PromptMessage<'_>) -> Option<Self> {
        match message {
            PromptMessage::User { seq, .. } => Some(Self::User(*seq)),
            PromptMessage::Context { seq, .. } => Some(Self::Context(*seq)),
            PromptMessage::Assistant { seq, .. } => Some(Self::Assistant(*seq)),
            PromptMessage::Results(results) => {
                let is_stored = results.iter().all(|result| matches!(result.result, ShownResult::Stored(_)));
                is_stored.then_some(Self::Results)
            }
        }
    }
}
