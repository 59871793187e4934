//! Texts that were just asked for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use tokio::time::Instant;

use super::page::Page;
use super::readable::Part;
use crate::net::Target;

/// What a text is kept under.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The address without what a browser keeps to itself.
    url: String,
    part: Part,
}

impl Key {
    pub(super) fn new(target: &Target, part: Part) -> Self {
        let mut url = target.url().clone();
        url.set_fragment(None);
        Self { url: url.into(), part }
    }
}

/// Keeps texts for a while, as many as fit.
#[derive(Debug)]
pub(super) struct Cache {
    ttl: Duration,
    max_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    pages: LruCache<Key, (Arc<Page>, Instant)>,
    bytes: usize,
}

impl Cache {
    pub(super) fn new(ttl: Duration, max_bytes: usize) -> Self {
        Self { ttl, max_bytes, kept: Mutex::new(Kept { pages: LruCache::unbounded(), bytes: 0 }) }
    }

    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<Arc<Page>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (page, put) = kept.pages.get(key)?;
        if now.duration_since(*put) < self.ttl {
            return Some(Arc::clone(page));
        }
        kept.remove(key);
        None
    }

    pub(super) fn put(&self, key: Key, page: Arc<Page>, now: Instant) {
        let size = page.text.len();
        if self.ttl.is_zero() || size > self.max_bytes {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(&key);
        while kept.bytes + size > self.max_bytes {
            let Some((_, (old, _))) = kept.pages.pop_lru() else { break };
            kept.bytes -= old.text.len();
        }
        kept.bytes += size;
        kept.pages.put(key, (page, now));
    }
}

impl Kept {
    fn remove(&mut self, key: &Key) {
        if let Some((old, _)) = self.pages.pop(key) {
            self.bytes -= old.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Allow;

    fn key(url: &str) -> Key {
        Key::new(&Target::parse(url, &Allow::nothing()).unwrap(), Part::Main)
    }

    fn page(text: &str) -> Arc<Page> {
        Arc::new(Page { text: text.to_owned(), ..Page::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_text_is_given_again_until_its_time_is_over() {
        let (cache, begun) = (Cache::new(Duration::from_mins(1), 100), Instant::now());
        cache.put(key("https://a.org/#x"), page("one"), begun);
        assert_eq!(cache.get(&key("https://a.org/#y"), begun + Duration::from_secs(59)), Some(page("one")));
        assert_eq!(cache.get(&key("https://a.org/"), begun + Duration::from_mins(1)), None);
        assert_eq!(cache.kept.lock().unwrap().bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_asked_for_longest_goes_first() {
        let (cache, now) = (Cache::new(Duration::from_mins(1), 6), Instant::now());
        for (url, text) in [("https://a.org", "aaa"), ("https://b.org", "bbb"), ("https://c.org", "ccc")] {
            cache.put(key(url), page(text), now);
        }
        cache.put(key("https://d.org"), page("more than all"), now);
        let there = ["https://a.org", "https://b.org", "https://c.org", "https://d.org"];
        assert_eq!(there.map(|url| cache.get(&key(url), now).is_some()), [false, true, true, false]);
    }
}
