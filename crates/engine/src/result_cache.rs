//! Results that are given again: of tools that their operator says may be, to the same user, for the same arguments.
//!
//! Whoever asks for what is just being fetched waits for it (single flight). Only successes are kept, in memory alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use turnwright_core::UserId;

use crate::weight::of_content;
use crate::{SourceCall, ToolOutput};

/// The most results that are kept.
const MOST: usize = 1_000;
/// The most that they may take, in bytes.
const MOST_BYTES: usize = 32 << 20;

/// What is asked for: source, definition, arguments, user.
type Key = [u8; 32];

/// A result and until when it may be given again. Locked while it is fetched.
type Place = Arc<tokio::sync::Mutex<Option<ToolOutput>>>;

#[derive(Debug)]
struct Kept {
    place: Place,
    /// When it was last fetched or begun to be.
    since: Instant,
    until: Option<Instant>,
    bytes: usize,
}

/// Results that may be given again.
#[derive(Debug, Default)]
pub(crate) struct ResultCache(Mutex<HashMap<Key, Kept>>);

/// What the cache has for a call.
#[derive(Debug)]
pub(crate) enum Found {
    /// A result.
    Hit(ToolOutput),
    /// Nothing: whoever asks fetches it, and others wait as long as this is held.
    Miss(Flight),
}

/// A result that is being fetched.
#[derive(Debug)]
pub(crate) struct Flight {
    key: Key,
    guard: OwnedMutexGuard<Option<ToolOutput>>,
}

/// The key of a call. The order of members in its arguments makes no difference.
pub(crate) fn key(source: &str, definition_hash: &str, call: &SourceCall, user: &UserId) -> Key {
    let mut hasher = Sha256::new();
    let mut arguments = String::new();
    canonical(&Value::Object(call.arguments.clone()), &mut arguments);
    for part in [source, definition_hash, &call.tool, &arguments, user.as_str()] {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}

/// Writes a value with the members of its objects in the order of their names.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in members {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}

impl ResultCache {
    /// What there is for this key; waits for whoever fetches it.
    pub(crate) async fn look(&self, key: Key) -> Found {
        let place = {
            let now = Instant::now();
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            make_room(&mut kept, now);
            let new = || Kept { place: Place::default(), since: now, until: None, bytes: 0 };
            kept.entry(key).or_insert_with(new).place.clone()
        };
        let guard = place.lock_owned().await;
        let is_fresh = {
            let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.get(&key).and_then(|kept| kept.until).is_some_and(|until| Instant::now() < until)
        };
        match guard.as_ref().filter(|_| is_fresh) {
            Some(output) => Found::Hit(output.clone()),
            None => Found::Miss(Flight { key, guard }),
        }
    }

    /// Keeps what was fetched for so long. What failed is not kept.
    pub(crate) fn keep(&self, mut flight: Flight, output: &ToolOutput, time_to_live: Duration) {
        let structured = output.structured_content.as_ref().map_or(0, |value| value.to_string().len());
        let bytes = of_content(&output.content).saturating_add(structured);
        let now = Instant::now();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if output.is_error || bytes > MOST_BYTES / 8 {
            kept.remove(&flight.key);
            return;
        }
        if let Some(kept) = kept.get_mut(&flight.key) {
            (kept.since, kept.until, kept.bytes) = (now, now.checked_add(time_to_live), bytes);
            *flight.guard = Some(output.clone());
        }
        make_room(&mut kept, now);
    }
}

/// Drops what is too old, and then the oldest, until there is room for one more.
fn make_room(kept: &mut HashMap<Key, Kept>, now: Instant) {
    // What is being fetched is not old, however long that takes.
    kept.retain(|_, kept| {
        kept.until.is_none_or(|until| now < until) && (kept.until.is_some() || Arc::strong_count(&kept.place) > 1)
    });
    while kept.len() >= MOST || kept.values().map(|kept| kept.bytes).sum::<usize>() > MOST_BYTES {
        let oldest = kept.iter().filter(|(_, kept)| kept.until.is_some()).min_by_key(|(_, kept)| kept.since);
        let Some(oldest) = oldest.map(|(key, _)| *key) else { return };
        kept.remove(&oldest);
    }
}
