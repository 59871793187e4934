//! How long what happens takes from the node that drives a turn to a watcher at another: two servers on PostgreSQL and NATS. A
//! measurement, run by hand (benches/README.md); its figures are for an idle machine.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwright_testkit::model_server::{Piece, call_chunk, finish_chunk, text_chunk};

use super::{drives, world_in};
use crate::support::{LIMIT, Place, wait_for};
use crate::watching::Watcher;

const TURNS: usize = 5;
/// Below the step limit of a turn.
const STEPS: usize = 20;
const WORDS: usize = 20;
/// Where the model waits in its first answer, until both watch.
const BEGINNING: &str = "the first answer";
/// What is asked for: an event in under so much at the median, and at the 99th percentile.
const MEDIAN: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_millis(25);

/// When each thing that happens was seen: entries by their place, text by its turn, message and end.
#[derive(Debug, Default)]
struct Seen {
    entries: BTreeMap<u64, Instant>,
    texts: BTreeMap<(u64, u64, u64), Instant>,
}

fn watch(mut watcher: Watcher) -> Seen {
    let mut seen = Seen::default();
    let (mut ended, mut last) = (0, 0);
    while ended < TURNS {
        let told = watcher.next().unwrap();
        let now = Instant::now();
        let event = told.event;
        match event["type"].as_str().unwrap() {
            "entry" => {
                last = event["seq"].as_u64().unwrap();
                seen.entries.insert(last, now);
            }
            "text.delta" => {
                let end = event["offset"].as_u64().unwrap() + event["text"].as_str().unwrap().len() as u64;
                seen.texts.insert((last, event["block"].as_u64().unwrap(), end), now);
            }
            "turn.finished" => {
                assert_eq!(event["status"], "completed", "{event}");
                ended += 1;
            }
            _ => {}
        }
    }
    seen
}

/// Prints how much later the second of the two saw what both saw, and gives the median and the 99th percentile. Which of them
/// has the driver may change from turn to turn.
fn crossing<K: Ord>(what: &str, here: &BTreeMap<K, Instant>, there: &BTreeMap<K, Instant>) -> (Duration, Duration) {
    let between = |one: Instant, other: Instant| one.max(other) - one.min(other);
    let mut took: Vec<Duration> = here.iter().filter_map(|(key, at)| Some(between(*at, *there.get(key)?))).collect();
    took.sort_unstable();
    let at = |share: usize| took[(took.len() - 1) * share / 100];
    let (median, long) = (at(50), at(99));
    println!("{} {what} from one node to a watcher at the other: median {median:?}, 99th percentile {long:?}", took.len());
    (median, long)
}

#[test]
#[ignore = "a measurement; its figures are for an idle machine"]
fn what_happens_at_one_node_is_seen_at_the_other_in_5_ms_at_the_median_and_25_at_the_99th_percentile() {
    let Some(place) = Place::on_postgres() else { return };
    for file in 0..TURNS * STEPS {
        place.write(&format!("f{file}.txt"), format!("file {file}\n"));
    }
    let answers = AtomicUsize::new(0);
    let script = move |_: &Value| {
        let answer = answers.fetch_add(1, Ordering::Relaxed);
        let begins = (answer == 0).then_some(Piece::Point(BEGINNING));
        let words = (0..WORDS).flat_map(|word| [text_chunk(&format!("word {word} ")), Piece::Pause(Duration::from_millis(5))]);
        let is_last = answer % STEPS == STEPS - 1;
        let path = json!({"path": format!("f{answer}.txt")}).to_string();
        let end = if is_last {
            vec![finish_chunk("stop"), Piece::Done]
        } else {
            vec![call_chunk(0, "filesystem__read", &path), finish_chunk("tool_calls"), Piece::Done]
        };
        begins.into_iter().chain(words).chain(end).collect()
    };
    let Some(world) = world_in(place, "", 2, &[BEGINNING], script) else { return };
    world.create();
    world.say(0, "Go.");
    assert!(world.model.wait_for(BEGINNING, LIMIT));
    let driver = world.driver();
    let watchers = [driver, 1 - driver].map(|at| world.watch(at, None));
    let seen = std::thread::scope(|scope| {
        let watching = watchers.map(|watcher| scope.spawn(|| watch(watcher)));
        world.model.run_free();
        for turn in 1..TURNS {
            wait_for("the end of the turn", || (world.model.requests().len() == turn * STEPS).then_some(()));
            wait_for("the end of the turn", || (!world.servers.iter().any(drives)).then_some(()));
            world.say(driver, "Go on.");
        }
        watching.map(|watching| watching.join().unwrap())
    });
    let [here, there] = seen;
    let texts = crossing("pieces of text", &here.texts, &there.texts);
    let entries = crossing("entries", &here.entries, &there.entries);
    for (median, long) in [texts, entries] {
        assert!(median < MEDIAN && long < LONG, "{median:?}, {long:?}");
    }
    for server in world.servers {
        server.stop();
    }
}
