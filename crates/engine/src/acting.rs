//! What doors of this process are storing at this moment.
//!
//! Between the moment at which a turn is stored and the one at which its driver begins, others that read it in the store see a
//! turn that nobody drives. Here they see that somebody of this process is about to.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use turnwright_core::ConversationId;

/// The conversations for which something is being stored, and how much.
#[derive(Debug, Default)]
pub(crate) struct Acting(Mutex<HashMap<ConversationId, UnderWay>>);

#[derive(Debug)]
struct UnderWay {
    count: usize,
    /// Tells of each end, and with the last goes itself.
    ended: watch::Sender<()>,
}

/// Something that is being stored, until it is acted on.
#[derive(Debug)]
pub(crate) struct ActUnderWay<'a> {
    acting: &'a Acting,
    conversation: &'a ConversationId,
}

impl Acting {
    fn all(&self) -> MutexGuard<'_, HashMap<ConversationId, UnderWay>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something begins to be stored.
    pub(crate) fn begin<'a>(&'a self, conversation: &'a ConversationId) -> ActUnderWay<'a> {
        let mut all = self.all();
        match all.get_mut(conversation) {
            Some(one) => one.count += 1,
            None => drop(all.insert(conversation.clone(), UnderWay { count: 1, ended: watch::Sender::new(()) })),
        }
        ActUnderWay { acting: self, conversation }
    }

    /// What tells of the next end, where something is being stored.
    pub(crate) fn under_way(&self, conversation: &ConversationId) -> Option<watch::Receiver<()>> {
        self.all().get(conversation).map(|one| one.ended.subscribe())
    }
}

impl Drop for ActUnderWay<'_> {
    fn drop(&mut self) {
        let mut all = self.acting.all();
        if let Some(one) = all.get_mut(self.conversation) {
            one.count -= 1;
            one.ended.send_replace(());
            if one.count == 0 {
                all.remove(self.conversation);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn who_waits_hears_of_each_end_and_nothing_is_left_of_what_is_over() {
        let acting = Acting::default();
        let id: ConversationId = "c".parse().unwrap();
        let (one, two) = (acting.begin(&id), acting.begin(&id));
        let mut told = acting.under_way(&id).unwrap();
        assert!(told.changed().now_or_never().is_none());
        drop(one);
        assert!(told.changed().now_or_never().is_some());
        drop(two);
        assert!(told.changed().now_or_never().is_some());
        assert!(acting.under_way(&id).is_none());
        assert!(acting.all().is_empty());
    }
}
