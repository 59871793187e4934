//! Nodes that share turns by another queue over the same database: two clusters by mistake.
//!
//! Each queue has a document that one of its nodes writes anew every few seconds. Whoever sees another queue's change knows that
//! nodes of it live; clocks of machines are not compared. Where NATS was replaced, its document changes no more.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};
use turnwright_engine::{Document, Documents, Engine};
use turnwright_nodes::NatsNodes;

/// The kind of the documents; the key is the queue's name.
const KIND: &str = "queue";
/// How often it is looked, and the own document written where no other node did since the last look.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// How long nodes of another queue count as living after a change.
const HOLDS_FOR: Duration = Duration::from_secs(10);
/// After how long without a change the document of another queue is removed.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(1);

/// Looks for as long as it is let, and tells the node what it found.
pub(super) async fn keep_looking(documents: Arc<dyn Documents>, engine: Engine, nodes: Arc<NatsNodes>) {
    let mut queues = Queues::new(nodes.queue_id());
    let mut has_strangers = false;
    let mut every = tokio::time::interval(LOOK_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let found = match documents.documents(KIND).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "it is not known whether other nodes use the database");
                continue;
            }
        };
        let looked = queues.look(found, Instant::now());
        if looked.is_own_still {
            let own = Document { key: nodes.queue_id().to_owned(), body: engine.clock().now_ms().to_string() };
            if let Err(error) = documents.put_document(KIND, own).await {
                tracing::debug!(%error, "other nodes are not told which queue the database is used with");
            }
        }
        for key in looked.forgotten {
            // It comes again where that was wrong.
            drop(documents.remove_document(KIND, &key).await);
        }
        if looked.has_strangers != has_strangers {
            has_strangers = looked.has_strangers;
            nodes.note_strangers(has_strangers);
            tell(has_strangers);
        }
    }
}

fn tell(has_strangers: bool) {
    if has_strangers {
        tracing::warn!(
            "this database is used by nodes that share turns over another NATS cluster or prefix, too; they take no turns of this \
             one's queue, and hear nothing of it: name the same `[nats] url` and `prefix` for all"
        );
    } else {
        tracing::info!("no nodes of another NATS cluster or prefix use this database any more");
    }
}

/// The queues whose documents were seen.
#[derive(Debug)]
struct Queues {
    own: String,
    seen: HashMap<String, Seen>,
}

#[derive(Debug)]
struct Seen {
    body: String,
    /// When it was first seen, or seen to have changed.
    at: Instant,
    /// Whether it ever changed.
    has_changed: bool,
}

/// What a look says.
#[derive(Debug, PartialEq, Eq)]
struct Looked {
    /// Nobody wrote the own queue's document since the last look.
    is_own_still: bool,
    /// Nodes of another queue live.
    has_strangers: bool,
    /// Queues that nobody uses any more.
    forgotten: Vec<String>,
}

impl Queues {
    fn new(own: &str) -> Self {
        Self { own: own.to_owned(), seen: HashMap::new() }
    }

    fn look(&mut self, found: Vec<Document>, now: Instant) -> Looked {
        let mut is_own_still = true;
        self.seen.retain(|key, _| found.iter().any(|document| document.key == *key));
        for Document { key, body } in found {
            let is_own = key == self.own;
            let seen = self.seen.entry(key).or_insert_with(|| Seen { body: body.clone(), at: now, has_changed: false });
            if seen.body != body {
                *seen = Seen { body, at: now, has_changed: true };
                is_own_still &= !is_own;
            }
        }
        let others = || self.seen.iter().filter(|(key, _)| **key != self.own);
        let has_strangers = others().any(|(_, seen)| seen.has_changed && now - seen.at < HOLDS_FOR);
        let forgotten = others().filter(|(_, seen)| now - seen.at >= FORGOTTEN_AFTER).map(|(key, _)| key.clone()).collect();
        Looked { is_own_still, has_strangers, forgotten }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_queue_counts_while_its_document_changes_and_is_forgotten_once_it_does_not() {
        let mut queues = Queues::new("own");
        let begun = Instant::now();
        let mut look = |after: u64, own: &str, other: Option<&str>| {
            let document = |(key, body): (&str, &str)| Document { key: key.to_owned(), body: body.to_owned() };
            let found = [Some(("own", own)), other.map(|body| ("other", body))];
            queues.look(found.into_iter().flatten().map(document).collect(), begun + Duration::from_secs(after))
        };
        let looked = |is_own_still, has_strangers, forgotten: &[&str]| {
            let forgotten = forgotten.iter().map(|key| (*key).to_owned()).collect();
            Looked { is_own_still, has_strangers, forgotten }
        };
        // It may have been left by nodes of a NATS that was replaced.
        assert_eq!(look(0, "1", Some("7")), looked(true, false, &[]));
        assert_eq!(look(3, "2", Some("7")), looked(false, false, &[]));
        assert_eq!(look(6, "2", Some("8")), looked(true, true, &[]));
        assert_eq!(look(9, "3", Some("8")), looked(false, true, &[]));
        assert_eq!(look(15, "3", Some("9")), looked(true, true, &[]));
        assert_eq!(look(25, "4", Some("9")), looked(false, false, &[]));
        assert_eq!(look(75, "5", Some("9")), looked(false, false, &["other"]));
        assert_eq!(look(78, "6", None), looked(false, false, &[]));
    }
}
