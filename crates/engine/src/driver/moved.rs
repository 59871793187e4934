//! A call of a source that keeps something in the process that calls it, after calls of the conversation ran in another: what is
//! said of that with its result, to the model and to people (docs/nodes.md).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use turnwright_core::{CallId, ContentBlock, DriverId, ToolDefinition, ToolResult};

use super::Driver;
use crate::Store;
use crate::uses::last_before;

/// Where what a call may need was left, which is not this process.
#[derive(Debug)]
pub(super) struct Moved {
    store: Arc<dyn Store>,
    before: DriverId,
}

impl Driver {
    /// Where the calls before this one left what it may need, where that is another process. Whoever goes on with a chat has
    /// ended the process before, and is told nothing of it.
    pub(super) fn moved(&self, call: CallId, tool: &ToolDefinition) -> Option<Moved> {
        if !self.inner.is_server.load(Ordering::Relaxed) || !self.inner.keeps_state(tool) {
            return None;
        }
        let is_like = |other: &ToolDefinition| other.source == tool.source && self.inner.keeps_state(other);
        let state = self.live.lock();
        let before = last_before(&state.journal, call, is_like).filter(|before| *before != self.inner.store.driver())?;
        Some(Moved { store: Arc::clone(&self.inner.store), before: before.clone() })
    }
}

impl Moved {
    /// Says so before the content of the result of `source`.
    pub(super) async fn note(&self, source: &str, result: &mut ToolResult) {
        let note = match self.store.is_alive(&self.before).await {
            Ok(false) => format!(
                "Note: the server process in which `{source}` ran for this conversation before has ended. `{source}` runs anew: \
                 what it held in memory for this conversation is lost."
            ),
            Ok(true) | Err(_) => format!(
                "Note: `{source}` ran for this conversation in another server process before. What it held in memory for this \
                 conversation is there and not here."
            ),
        };
        let has_text = result.content.iter().any(|block| matches!(block, ContentBlock::Text { .. }));
        let structured = result.structured_content.as_ref().filter(|_| !has_text);
        // A model is shown it only where there is no text.
        let structured = structured.map(|value| ContentBlock::text(value.to_string()));
        result.content.splice(..0, [ContentBlock::text(note)].into_iter().chain(structured));
    }
}
