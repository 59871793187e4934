//! Calls that write: those that write the same run one after the other, in call order, and the others at the same time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;
use turnwright_core::Declared;
use turnwright_engine::{ToolOutput, Writes};
use turnwright_testkit::{Answer, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, world};

const SERIAL: Declared = Declared { read_only: false, replayable: false, serial: true, polled: false };

fn paths(arguments: &Map<String, Value>) -> Vec<PathBuf> {
    arguments["paths"].as_array().into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from).collect()
}

/// A call that ran: its number, and when it began and ended, in milliseconds since the turn did.
type Ran = (usize, u128, u128);

/// A step of calls, each of which takes so many milliseconds to write its paths: when each ran, in call order.
async fn step(calls: &[(Vec<&str>, u64)]) -> Vec<Ran> {
    let ran: Arc<Mutex<Vec<Ran>>> = Arc::default();
    let begun = Instant::now();
    let inside = ran.clone();
    let write = ScriptedTool::new("write", move |call, _| {
        let ran = inside.clone();
        let number = |key: &str| call.arguments[key].as_u64().unwrap();
        let (index, takes) = (usize::try_from(number("n")).unwrap(), number("takes_ms"));
        async move {
            let from = begun.elapsed().as_millis();
            tokio::time::sleep(Duration::from_millis(takes)).await;
            ran.lock().unwrap().push((index, from, begun.elapsed().as_millis()));
            Ok(ToolOutput::text("written"))
        }
    });
    let asked = (0_u32..).zip(calls).map(|(key, (paths, takes))| {
        call(key, "tools__write", &json!({"n": key, "paths": paths, "takes_ms": takes}).to_string())
    });
    let provider = ScriptedProvider::new([Answer::whole(asked), Answer::whole([text("Done.")])]);
    let source = ScriptedSource::new("tools", [write.declared(SERIAL)]);
    let source = source.slots(64).writing(|arguments| Writes::Paths(paths(arguments)));
    let world = world(provider, source, Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
    let mut ran = ran.lock().unwrap().clone();
    ran.sort_unstable();
    ran
}

#[tokio::test(start_paused = true)]
async fn writers_of_one_file_wait_for_one_another_and_those_of_others_do_not() {
    let calls = [
        (vec!["/r/a"], 1_000),
        (vec!["/r/b"], 1_000),
        (vec!["/r/a"], 1_000),
        // A folder is moved: what is written in it before is there by then, what comes after waits for it.
        (vec!["/r/d/x"], 500),
        (vec!["/r/d", "/r/e"], 1_000),
        (vec!["/r/d/y"], 100),
        (vec!["/r/e/z"], 100),
        (vec!["/r/dd"], 100),
    ];
    let expected = [
        (0, 0, 1_000),
        (1, 0, 1_000),
        (2, 1_000, 2_000),
        (3, 0, 500),
        (4, 500, 1_500),
        (5, 1_500, 1_600),
        (6, 1_500, 1_600),
        (7, 0, 100),
    ];
    assert_eq!(step(&calls).await, expected);
}

/// Whatever the calls write: each begins the moment the last of those before it ends that write the same, and no sooner.
#[tokio::test(start_paused = true)]
async fn every_writer_begins_as_soon_as_those_before_it_that_write_the_same_are_done() {
    const PATHS: [&str; 8] = ["/a", "/a/b", "/a/b/c", "/a/d", "/ab", "/e", "/e/f", "/"];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |most: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % most
    };
    let overlap = |one: &str, other: &str| Path::new(one).starts_with(other) || Path::new(other).starts_with(one);
    for round in 0..150 {
        let calls: Vec<(Vec<&str>, u64)> = (0..2 + next(8))
            .map(|_| {
                let paths = (0..=next(2)).map(|_| PATHS[usize::try_from(next(PATHS.len() as u64)).unwrap()]).collect();
                (paths, 1 + next(50))
            })
            .collect();
        let ran = step(&calls).await;
        assert_eq!(ran.len(), calls.len(), "{round}: {calls:?}");
        for (index, from, to) in &ran {
            let before = ran[..*index].iter().filter(|(other, _, _)| {
                calls[*other].0.iter().any(|their| calls[*index].0.iter().any(|our| overlap(our, their)))
            });
            let free = before.map(|(_, _, to)| *to).max().unwrap_or_default();
            assert_eq!((*from, *to), (free, free + u128::from(calls[*index].1)), "{round}: call {index} of {calls:?}: {ran:?}");
        }
    }
}
