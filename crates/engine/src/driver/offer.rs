//! What a turn is offered: waited for where it is starting, and stored where it changed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use turnwright_core::{Control, Entry, Journal, ToolDefinition, Turn};

use super::{Driver, Halt};
use crate::Event;
use crate::chosen_tools::letting_in;
use crate::names::may_let_in;

/// How long sources may start before who watches is told what is waited for.
const UNTOLD_WAIT: Duration = Duration::from_secs(2);

/// The sources that a turn waits for.
enum Meant {
    /// All that its user has.
    All,
    /// Those that may have a tool that these globs let in.
    ByGlobs(Vec<String>),
    /// Those of these names.
    Named(HashSet<String>),
}

impl Meant {
    fn is(&self, source: &str) -> bool {
        match self {
            Self::All => true,
            Self::ByGlobs(globs) => letting_in(globs).any(|glob| may_let_in(glob, source)),
            Self::Named(names) => names.contains(source),
        }
    }
}

impl Driver {
    /// Before a turn's first model call, also since somebody took it up again, or where a task is taken up: waits for sources that are starting, and stores what is
    /// offered where it changed. A turn that began in another process waits for the sources of what it was offered, as far as they
    /// are not known here.
    pub(super) async fn offer(&mut self, first: &mut Vec<Entry>) -> Result<(), Halt> {
        if self.has_offered {
            return Ok(());
        }
        self.has_offered = true;
        let catalog = self.inner.catalogs.of(&self.live.owner);
        let (settings, meant) = {
            let state = self.live.lock();
            match state.journal.open_turn() {
                Some(turn) if turn.steps() == 0 || is_taken_up_again(&state.journal) => {
                    let settings = turn.settings().clone();
                    let meant = settings.tools.clone().map_or(Meant::All, Meant::ByGlobs);
                    (Some(settings), meant)
                }
                // A task is asked for at its source, which must be there for that.
                Some(turn) if turn.calls().any(|call| call.task.is_some() && !call.is_answered) => (None, Meant::All),
                Some(_) => {
                    let is_unknown = |tool: &&Arc<ToolDefinition>| !tool.is_search() && catalog.get(&tool.name).is_none();
                    let unknown = state.journal.offered().iter().filter(is_unknown);
                    (None, Meant::Named(unknown.map(|tool| tool.source.clone()).collect()))
                }
                None => return Ok(()),
            }
        };
        if matches!(&meant, Meant::Named(names) if names.is_empty()) {
            return Ok(());
        }
        self.live.lock().watchers.release();
        let owner = &self.live.owner;
        let is_meant = |source: &str| meant.is(source);
        let settle = self.inner.settle_sources(owner, is_meant);
        let patience = tokio::time::sleep(UNTOLD_WAIT);
        tokio::pin!(settle, patience);
        let mut is_told = false;
        let late = loop {
            tokio::select! {
                biased;
                () = self.inner.shutdown.cancelled() => return Err(Halt::Quietly),
                late = &mut settle => break late,
                () = &mut patience, if !is_told => {
                    is_told = true;
                    let awaited = self.inner.awaited_in_words(owner, is_meant);
                    if !awaited.is_empty() {
                        let text = format!("waiting for what is starting and was never seen before: {awaited}");
                        self.live.lock().tell(vec![Event::Notice { level: "info", text }]);
                    }
                }
                // Nothing runs yet, so all that could have to be told to end is this waiting.
                () = self.live.changed.notified() => {
                    let state = self.live.lock();
                    if state.is_gone || state.journal.open_turn().is_none_or(Turn::is_cancelling) {
                        return Ok(());
                    }
                }
            }
        };
        let Some(settings) = settings else { return Ok(()) };
        let changed = self.inner.catalogs.of(&self.live.owner).changed_in_words();
        let mut state = self.live.lock();
        if let Some(text) = changed {
            state.tell(vec![Event::Notice { level: "warning", text }]);
        }
        if !late.is_empty() {
            let text = format!("not ready in time, left out of this turn: {}", late.join(", "));
            state.tell(vec![Event::Notice { level: "warning", text }]);
        }
        if let Some(offered) = self.inner.newly_offered(&self.live.owner, &state.journal, &settings) {
            first.push(offered);
        }
        Ok(())
    }
}

/// Whether no model has answered since somebody took the turn up again: what it was offered before may be another choice's, or nothing,
/// where it ran elsewhere.
fn is_taken_up_again(journal: &Journal) -> bool {
    let newest = journal.entries().iter().rev().find_map(|stored| match &*stored.entry {
        Entry::Assistant(_) | Entry::User(_) => Some(false),
        Entry::Control(Control::Retried { .. }) => Some(true),
        _ => None,
    });
    newest.unwrap_or(false)
}
