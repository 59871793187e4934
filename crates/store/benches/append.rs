//! Whether appending, reading and listing grow with what else is in the database.
//!
//! Every measurement is made in an empty database and in one of 1,000,000 entries, in turns, so that whatever the machine
//! does besides falls on both; the table says how much dearer the large one is. Criterion then measures each alone.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark fails loudly, reports to standard output and reads the real clock"
)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use tokio::runtime::Runtime;
use turnwright_core::{ContentBlock, ConversationId, Entry, Seq, TurnSettings, UserMessage};
use turnwright_engine::{Append, ConversationRecord, Page, SideRecord, Store};
use turnwright_store::{SqliteOptions, SqliteStore};

const ENTRIES: u64 = 1_000_000;
const PER_CONVERSATION: u64 = 400;
/// How often each measurement is made in each database for the table.
const ROUNDS: usize = 400;

/// A store with the conversation that is read and the one that grows.
struct Subject {
    store: SqliteStore,
    read: ConversationId,
    grows: ConversationId,
    next: AtomicU64,
    _folder: tempfile::TempDir,
}

fn entries(count: u64) -> Vec<Entry> {
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    let content = vec![ContentBlock::text("The quick brown fox jumps over the lazy dog. ".repeat(4))];
    let entry = Entry::User(UserMessage { content, settings });
    (0..count).map(|_| entry.clone()).collect()
}

/// A whole conversation as its first append.
fn whole(id: &str, at_ms: u64, count: u64) -> Append {
    let conversation: ConversationId = id.parse().unwrap();
    let settings = "{}".to_owned();
    let record = ConversationRecord {
        id: conversation.clone(),
        owner: turnwright_core::UserId::local(),
        title: None,
        settings,
        created_at_ms: at_ms,
        updated_at_ms: at_ms,
    };
    Append { conversation, at: Seq::FIRST, entries: entries(count), at_ms, side: vec![SideRecord::Create(record)] }
}

impl Subject {
    /// `others` conversations lie around those that are measured.
    async fn with(others: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&SqliteOptions::in_directory(folder.path())).unwrap();
        for number in 0..others {
            if number == others / 2 {
                store.append(whole("read", number, PER_CONVERSATION)).await.unwrap();
                store.append(whole("grows", number, 2)).await.unwrap();
            }
            store.append(whole(&format!("other-{number}"), number, PER_CONVERSATION)).await.unwrap();
        }
        if others == 0 {
            store.append(whole("read", 1, PER_CONVERSATION)).await.unwrap();
            store.append(whole("grows", 1, 2)).await.unwrap();
            for number in 0..50 {
                store.append(whole(&format!("listed-{number}"), number, 0)).await.unwrap();
            }
        }
        let (read, grows) = ("read".parse().unwrap(), "grows".parse().unwrap());
        Self { store, read, grows, next: AtomicU64::new(3), _folder: folder }
    }

    async fn run(&self, what: What) {
        match what {
            What::Append => {
                let next = self.next.fetch_add(2, Ordering::Relaxed);
                let append = Append {
                    conversation: self.grows.clone(),
                    at: Seq::new(next).unwrap(),
                    entries: entries(2),
                    at_ms: ENTRIES + next,
                    side: Vec::new(),
                };
                drop(black_box(self.store.append(append).await.unwrap()));
            }
            What::Read => {
                let read = self.store.entries(&self.read, Seq::FIRST, usize::MAX).await.unwrap();
                assert_eq!(read.len() as u64, PER_CONVERSATION);
                drop(black_box(read));
            }
            What::List => {
                let list = self
                    .store
                    .conversations(Page {
                        owner: &turnwright_core::UserId::local(),
                        after: None,
                        limit: 50,
                        only_pinned: false,
                    })
                    .await
                    .unwrap();
                assert_eq!(list.len(), 50);
                drop(black_box(list));
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum What {
    Append,
    Read,
    List,
}

impl What {
    const ALL: [Self; 3] = [Self::Append, Self::Read, Self::List];

    fn name(self) -> &'static str {
        match self {
            Self::Append => "append 2 entries",
            Self::Read => "read 400 entries",
            Self::List => "list 50 conversations",
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn main() {
    let runtime = Runtime::new().unwrap();
    let empty = runtime.block_on(Subject::with(0));
    let begun = Instant::now();
    let large = runtime.block_on(Subject::with(ENTRIES / PER_CONVERSATION));
    println!("{ENTRIES} entries stored in {:.1} s\n", begun.elapsed().as_secs_f64());
    println!("{:<24}{:>12}{:>12}{:>8}", "median", "empty", "large", "ratio");
    for what in What::ALL {
        let (mut in_empty, mut in_large) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let mut turns = [(&empty, &mut in_empty), (&large, &mut in_large)];
            // Each comes first as often as the other.
            turns.rotate_left(round % 2);
            for (subject, times) in turns {
                let begun = Instant::now();
                runtime.block_on(subject.run(what));
                times.push(begun.elapsed());
            }
        }
        let (in_empty, in_large) = (median(in_empty), median(in_large));
        let ratio = in_large.as_secs_f64() / in_empty.as_secs_f64();
        println!("{:<24}{in_empty:>12.1?}{in_large:>12.1?}{ratio:>8.2}", what.name());
    }
    println!();

    let mut criterion = Criterion::default().configure_from_args();
    for what in What::ALL {
        let mut group = criterion.benchmark_group(what.name());
        for (name, subject) in [("in an empty database", &empty), ("beside 1,000,000 entries", &large)] {
            group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                bencher.iter(|| runtime.block_on(subject.run(what)));
            });
        }
        group.finish();
    }
    criterion.final_summary();
    for subject in [&empty, &large] {
        runtime.block_on(subject.store.close());
    }
}
