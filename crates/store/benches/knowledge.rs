//! How long it takes to find what documents say to a question, in an index of 100,000 pieces: by words, by vectors, and the
//! pieces themselves. The limit is 50 ms.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark fails loudly, reports to standard output and reads the real clock"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::Criterion;
use tokio::runtime::Runtime;
use turnwright_core::ContextPlace;
use turnwright_engine::knowledge::{IndexedFile, KnowledgeIndex, Piece, PieceId};
use turnwright_store::{SqliteOptions, SqliteStore};

const PIECES: u32 = 100_000;
const PER_FILE: u32 = 50;
/// Words of a piece: 400 tokens or so.
const WORDS: u32 = 250;
/// Different words in all.
const VOCABULARY: f64 = 60_000.0;
const DIMENSIONS: usize = 384;
const COLLECTION: &str = "folder/bench";
const MODEL: &str = "bench/model";
const ROUNDS: usize = 101;

/// Numbers that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        f64::from(u32::try_from(self.0 >> 40).unwrap()) / f64::from(1_u32 << 24)
    }

    /// A word as languages have them: the most frequent is in nearly every text, most are rare (Zipf's law).
    fn word(&mut self) -> String {
        let rank = VOCABULARY.powf(self.next());
        format!("w{}", rank.floor())
    }

    fn vector(&mut self) -> Vec<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "the numbers are between -1 and 1")]
        let number = |number: f64| (number * 2.0 - 1.0) as f32;
        (0..DIMENSIONS).map(|_| number(self.next())).collect()
    }
}

async fn filled(folder: &std::path::Path, numbers: &mut Numbers) -> SqliteStore {
    let store = SqliteStore::open(&SqliteOptions::in_directory(folder)).unwrap();
    assert!(store.claim(COLLECTION, "bench", 0, 1_000).await.unwrap());
    for number in 0..PIECES / PER_FILE {
        let piece = |at: u32, numbers: &mut Numbers| {
            let text: Vec<String> = (0..WORDS).map(|_| numbers.word()).collect();
            let place = ContextPlace::Lines { first: at * 20 + 1, last: at * 20 + 20 };
            Piece { place, heading: "Chapter".to_owned(), text: text.join(" ") }
        };
        let pieces = (0..PER_FILE).map(|at| piece(at, numbers)).collect();
        let (path, hash) = (format!("folder/{number}.md"), "h".to_owned());
        store.put(COLLECTION, IndexedFile { path, bytes: 1, modified_ns: 1, hash, skipped: None }, pieces).await.unwrap();
    }
    loop {
        let lacking = store.without_vector(COLLECTION, MODEL, 500).await.unwrap();
        if lacking.is_empty() {
            return store;
        }
        let vectors: Vec<(PieceId, Vec<f32>)> = lacking.iter().map(|found| (found.id, numbers.vector())).collect();
        store.put_vectors(COLLECTION, MODEL, vectors).await.unwrap();
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn main() {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let begun = Instant::now();
    let store = runtime.block_on(filled(folder.path(), &mut numbers));
    println!("{PIECES} pieces indexed in {:.1} s\n", begun.elapsed().as_secs_f64());
    let collections = [COLLECTION.to_owned()];
    // Ten words each, frequent and rare ones as in a text.
    let questions: Vec<String> = (0..ROUNDS).map(|_| (0..10).map(|_| numbers.word()).collect::<Vec<_>>().join(" ")).collect();
    let vectors: Vec<Vec<f32>> = (0..ROUNDS).map(|_| numbers.vector()).collect();
    let by_words = |at: usize| {
        runtime.block_on(async {
            let found = store.by_words(&collections, questions.get(at % ROUNDS).unwrap(), 64).await.unwrap();
            store.pieces(&found.iter().map(|hit| hit.piece).collect::<Vec<_>>()).await.unwrap()
        })
    };
    let by_vector = |at: usize| {
        runtime.block_on(async {
            let found = store.by_vector(&collections, MODEL, vectors.get(at % ROUNDS).unwrap(), 64).await.unwrap();
            store.pieces(&found.iter().map(|hit| hit.piece).collect::<Vec<_>>()).await.unwrap()
        })
    };
    for (what, run) in [("by words", &by_words as &dyn Fn(usize) -> _), ("by vectors", &by_vector)] {
        let timed = |at| {
            let begun = Instant::now();
            black_box(run(at));
            begun.elapsed()
        };
        let taken: Vec<Duration> = (0..ROUNDS).map(timed).collect();
        let most = taken.iter().max().copied().unwrap_or_default();
        println!("{what:<12} median {:>10.1?}   most {most:>10.1?}", median(taken));
    }
    println!();
    let mut criterion = Criterion::default().configure_from_args().sample_size(20);
    let mut at = 0;
    criterion.bench_function("100,000 pieces by words", |bencher| {
        bencher.iter(|| {
            at += 1;
            black_box(by_words(at))
        });
    });
    criterion.bench_function("100,000 pieces by vectors", |bencher| {
        bencher.iter(|| {
            at += 1;
            black_box(by_vector(at))
        });
    });
    criterion.final_summary();
    runtime.block_on(turnwright_engine::Store::close(&store));
}
