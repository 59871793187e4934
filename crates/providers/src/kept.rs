//! What was written of each conversation's last request, so that the next one costs only what is new.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use turnwright_core::prompt::PromptOf;
use turnwright_core::{ConversationId, SharedBeginning};
use turnwright_dialects::Kept;

/// The most bytes that are kept for all conversations of an endpoint.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Messages shorter than this together, in bytes, are written anew as quickly, and the tools are kept for all conversations.
const MIN_MESSAGE_BYTES: usize = 16 * 1024;
/// The most models whose tools are kept for the conversations to come.
const MAX_MODELS: NonZeroUsize = NonZeroUsize::new(16).unwrap();
/// Of how many beginnings that conversations share the messages are kept, and how many bytes of each.
const MAX_BEGINNINGS: NonZeroUsize = NonZeroUsize::new(16).unwrap();
const MAX_BEGINNING_BYTES: usize = 1024 * 1024;

/// What was written of the last requests, by conversation and model, the longest unused dropped first.
#[derive(Debug)]
pub(crate) struct KeptRequests(Mutex<Cache>);

#[derive(Debug)]
struct Cache {
    requests: LruCache<(ConversationId, String), Kept>,
    /// What was kept last for each model, without messages: most conversations have the same tools, and to bring their
    /// schemas into a dialect's form costs more than all the rest of a short request.
    by_model: LruCache<String, Kept>,
    /// The messages with which several conversations begin: each of them goes on from there.
    by_beginning: LruCache<(SharedBeginning, String), Kept>,
    bytes: usize,
}

impl Default for KeptRequests {
    fn default() -> Self {
        Self(Mutex::new(Cache {
            requests: LruCache::unbounded(),
            by_model: LruCache::new(MAX_MODELS),
            by_beginning: LruCache::new(MAX_BEGINNINGS),
            bytes: 0,
        }))
    }
}

impl KeptRequests {
    /// Takes what is kept for a conversation's next request to `model`, or else what any conversation can go on from.
    pub(crate) fn take(&self, of: Option<PromptOf<'_>>, model: &str) -> Kept {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = of.filter(|_| !cache.requests.is_empty());
        if let Some(kept) = known.and_then(|of| cache.requests.pop(&(of.id.clone(), model.to_owned()))) {
            cache.bytes -= kept.bytes();
            return kept;
        }
        if let Some(beginning) = of.and_then(|of| of.beginning)
            && let Some(kept) = cache.by_beginning.get(&(beginning.clone(), model.to_owned()))
        {
            return kept.for_another_that_begins_so();
        }
        cache.by_model.get(model).map(Kept::for_another).unwrap_or_default()
    }

    /// Drops what was written of a conversation that is gone. What several begin with may be its text too: those that are left write
    /// that once more.
    pub(crate) fn forget(&self, conversation: &ConversationId) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_it = cache.requests.iter().filter(|((of, _), _)| of == conversation);
        let gone: Vec<_> = of_it.map(|(key, _)| key.clone()).collect();
        for kept in gone.into_iter().filter_map(|key| cache.requests.pop(&key)).collect::<Vec<_>>() {
            cache.bytes -= kept.bytes();
        }
        cache.by_beginning.clear();
    }

    /// The conversations of which something is kept, once for each model.
    pub(crate) fn conversations(&self) -> Vec<ConversationId> {
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.requests.iter().map(|((conversation, _), _)| conversation.clone()).collect()
    }

    /// Keeps what was written for the next time, where it is worth it.
    pub(crate) fn put(&self, of: Option<PromptOf<'_>>, model: &str, mut kept: Kept) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match cache.by_model.get_mut(model) {
            Some(last) => *last = kept.for_another(),
            None => drop(cache.by_model.put(model.to_owned(), kept.for_another())),
        }
        if let Some((beginning, kept)) = kept.take_beginning().filter(|(_, kept)| kept.bytes() <= MAX_BEGINNING_BYTES) {
            cache.by_beginning.put((beginning, model.to_owned()), kept);
        }
        let Some(of) = of.filter(|_| kept.message_bytes() >= MIN_MESSAGE_BYTES && kept.bytes() < MAX_BYTES) else {
            return;
        };
        cache.bytes += kept.bytes();
        if let Some(before) = cache.requests.put((of.id.clone(), model.to_owned()), kept) {
            cache.bytes -= before.bytes();
        }
        while cache.bytes > MAX_BYTES {
            let Some((_, oldest)) = cache.requests.pop_lru() else { break };
            cache.bytes -= oldest.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use turnwright_core::prompt::{Prompt, PromptMessage};
    use turnwright_core::{ContentBlock, Entry, Journal, ModelRef, Origin, Seq, StoredEntry, TurnSettings, UserMessage};
    use turnwright_dialects::{ModelFacts, Profile, Target, by_name};

    use super::*;

    /// The bytes that are kept of the prompt of a journal that begins with a long message.
    fn written(kept: &KeptRequests, journal: &Journal, id: &ConversationId) -> usize {
        let of = Some(PromptOf { id, beginning: journal.beginning() });
        let settings = TurnSettings::new(ModelRef::new("local", "m"));
        let messages = journal.entries().iter().filter_map(|stored| match &*stored.entry {
            Entry::User(message) => Some(PromptMessage::User { seq: stored.seq, message }),
            _ => None,
        });
        let messages = messages.collect();
        let prompt =
            Prompt { conversation: of, settings: &settings, messages, tools: &[], allow_calls: true, has_open_demand: false };
        let dialect = by_name("openai-chat").unwrap();
        let origin = Origin { dialect: "openai-chat".to_owned(), provider: "local".to_owned(), model: "m".to_owned() };
        let (profile, model) = (Profile::for_base_url("https://api.openai.com/v1"), ModelFacts::default());
        let target = Target { origin: &origin, profile: &profile, model: &model };
        let mut taken = kept.take(of, "m");
        let before = taken.bytes();
        drop(dialect.request(&target, &prompt, &mut taken));
        kept.put(of, "m", taken);
        before
    }

    #[test]
    fn nothing_is_kept_of_a_conversation_that_is_gone_nor_of_what_others_begin_with() {
        let content = vec![ContentBlock::text("x".repeat(2 * MIN_MESSAGE_BYTES))];
        let message = UserMessage { content, settings: TurnSettings::new(ModelRef::new("local", "m")) };
        let journal = Journal::replay([StoredEntry { seq: Seq::FIRST, at_ms: 0, entry: Entry::User(message).into() }]).unwrap();
        let shared = journal.begin_with(Seq::FIRST).unwrap();
        let kept = KeptRequests::default();
        let [gone, left] = ["gone", "left"].map(|id| id.parse().unwrap());
        for id in [&gone, &left] {
            assert!(written(&kept, &shared, id) < MIN_MESSAGE_BYTES);
            assert!(written(&kept, &shared, id) > MIN_MESSAGE_BYTES, "the second request goes on from the first");
        }
        kept.forget(&gone);
        let cache = kept.0.lock().unwrap();
        assert_eq!((cache.requests.len(), cache.by_beginning.len()), (1, 0));
        assert_eq!(cache.bytes, cache.requests.iter().map(|(_, kept)| kept.bytes()).sum::<usize>());
        drop(cache);
        assert!(written(&kept, &journal, &gone) < MIN_MESSAGE_BYTES);
        assert!(written(&kept, &journal, &left) > MIN_MESSAGE_BYTES);
    }
}
