//! What is gathered for messages that no model has seen: before the model is asked, and stored before it is shown.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use turnwright_core::context::{found, standing, wanting};
use turnwright_core::{Context, Control, Entry, MessageId, text_of};

use crate::context::{ContextAsk, ContextSource, Gathered};
use crate::inner::Inner;
use crate::live::Live;

/// How long is waited for what is gathered for one message.
const MAX_TIME: Duration = Duration::from_secs(30);
/// The most that one message may be shown with, in bytes.
const MAX_BYTES: usize = 512 * 1024;

/// Something that is being gathered.
pub(super) struct Gathering(Pin<Box<dyn Future<Output = Vec<Entry>> + Send>>);

/// The messages for which this driver gathered already, also where nothing came of it.
pub(super) type Asked = Vec<MessageId>;

impl Gathering {
    /// Begins to gather for the oldest message that wants it. `None` where none does.
    pub(super) fn start(inner: &Inner, live: &Arc<Live>, asked: &mut Asked) -> Option<Self> {
        let source = inner.context.get()?.clone();
        let (message, ask) = {
            let state = live.lock();
            let message = wanting(&state.journal).into_iter().find(|message| !asked.contains(message))?;
            let said = match state.journal.entry(message.0).map(|stored| &*stored.entry) {
                Some(Entry::User(said)) => text_of(&said.content),
                _ => return None,
            };
            let model = state.journal.turn()?.model().clone();
            let (conversation, owner) = (live.id.clone(), live.owner.clone());
            let (standing, found) = (standing(&state.journal), found(&state.journal));
            (message, ContextAsk { conversation, owner, model, said, standing, found })
        };
        asked.push(message);
        Some(Self(Box::pin(gather(source, message, ask))))
    }

    async fn done(&mut self) -> Vec<Entry> {
        (&mut self.0).await
    }
}

async fn gather(source: Arc<dyn ContextSource>, message: MessageId, ask: ContextAsk) -> Vec<Entry> {
    let conversation = ask.conversation.clone();
    let gathered = timeout(MAX_TIME, source.gather(ask)).await.unwrap_or_else(|_| {
        tracing::warn!(%conversation, "what is to be shown besides a message took too long to gather");
        let text = format!("what was to be looked up took longer than {} seconds and was left out", MAX_TIME.as_secs());
        vec![Gathered { notices: vec![text], ..Gathered::default() }]
    });
    let fits = |gathered: &Gathered| !gathered.is_empty() && gathered.text.len() <= MAX_BYTES;
    let entry = |Gathered { text, parts, notices }| Entry::Control(Control::Context(Context { message, text, parts, notices }));
    gathered.into_iter().filter(fits).map(entry).collect()
}

/// What was gathered, where something is.
pub(super) async fn next_gathered(gathering: &mut Option<Gathering>) -> Vec<Entry> {
    match gathering {
        Some(gathering) => gathering.done().await,
        None => std::future::pending().await,
    }
}
