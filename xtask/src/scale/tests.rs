//! The simulation, by what must follow from it whatever the costs are.

use super::costs::MEASURED;
use super::model::{Layout, Load, Part, fullest, most_turns, share, split};
use super::play::play;
use super::{LIMIT, LOADS, report};

const ONE: Layout = Layout { databases: 1.0, nats: 1.0 };

fn load() -> Load {
    Load { nodes: 10.0, streams: 10_000.0, turns_per_second: 100.0, turn_seconds: 10.0, watchers_per_turn: 2.0 }
}

#[test]
fn more_of_anything_never_takes_less_of_any_part() {
    for part in Part::ALL {
        let before = share(&MEASURED, &load(), &ONE, part);
        let more = [
            Load { streams: 20_000.0, ..load() },
            Load { turns_per_second: 200.0, ..load() },
            Load { turn_seconds: 20.0, ..load() },
            Load { watchers_per_turn: 4.0, ..load() },
        ];
        for load in more {
            assert!(share(&MEASURED, &load, &ONE, part) >= before, "{part:?}: {load:?}");
        }
    }
}

#[test]
fn the_share_of_a_part_is_what_one_works_out_by_hand() {
    // 10,000 streams on 10 nodes: 1,000 of 19.2 KiB and 17.3 MiB, of 16 GiB.
    let memory = share(&MEASURED, &load(), &ONE, Part::NodeMemory);
    assert!((memory - (1_000.0 * 19.2 / 1_048_576.0 + 17.3 / 1_024.0) / 16.0).abs() < 1e-12, "{memory}");
    let connections = share(&MEASURED, &load(), &ONE, Part::DatabaseConnections);
    assert!((connections - 0.09).abs() < 1e-12, "{connections}");
    let log = share(&MEASURED, &load(), &ONE, Part::DatabaseLog);
    assert!((log - 100.0 * MEASURED.log_bytes_per_turn.value / MEASURED.log_bytes_per_second.value).abs() < 1e-12, "{log}");
}

#[test]
fn nodes_help_where_nodes_are_full_and_databases_where_those_are() {
    let twice = |load: Load| Load { nodes: load.nodes * 2.0, ..load };
    assert!(share(&MEASURED, &twice(load()), &ONE, Part::NodeMemory) < share(&MEASURED, &load(), &ONE, Part::NodeMemory));
    for part in [Part::DatabaseCpu, Part::DatabaseLog, Part::DatabaseConnections] {
        let two = Layout { databases: 2.0, nats: 1.0 };
        assert!(share(&MEASURED, &load(), &two, part) < share(&MEASURED, &load(), &ONE, part), "{part:?}");
    }
}

#[test]
fn the_highest_rate_fits_and_a_little_more_does_not() {
    let most = most_turns(&MEASURED, &load(), &ONE, LIMIT);
    assert!(most > 0.0);
    let at = |turns| fullest(&MEASURED, &Load { turns_per_second: turns, ..load() }, &ONE).1;
    assert!(at(most) <= LIMIT && at(most * 1.01) > LIMIT, "{most}");
}

#[test]
fn a_split_leaves_no_part_too_full() {
    for load in LOADS {
        if let Some(layout) = split(&MEASURED, &load, LIMIT) {
            assert!(fullest(&MEASURED, &load, &layout).1 <= LIMIT, "{load:?}: {layout:?}");
        }
    }
    // A load that the nodes themselves are too few for is not split.
    assert_eq!(split(&MEASURED, &Load { turns_per_second: 1e9, ..load() }, LIMIT), None);
}

#[test]
fn what_is_played_through_comes_to_the_means_of_the_arithmetic_and_to_more_at_worst() {
    for (load, layout) in [(load(), ONE), (LOADS[3], Layout { databases: 5.0, nats: 2.0 })] {
        let played = play(&MEASURED, &load, &layout, 7);
        let shares = [
            (played.nodes, Part::NodeCpu),
            (played.databases, Part::DatabaseCpu),
            (played.nats, Part::NatsCpu),
            (played.memory, Part::NodeMemory),
        ];
        for (fill, part) in shares {
            let mean = share(&MEASURED, &load, &layout, part);
            assert!((fill.mean / mean - 1.0).abs() < 0.05, "{part:?}: {} played, {mean} worked out", fill.mean);
            assert!(fill.worst >= fill.mean, "{part:?}");
        }
        assert_eq!(play(&MEASURED, &load, &layout, 7), played, "the same seed is the same minute");
    }
}

#[test]
fn turns_that_rest_longer_than_a_sweep_are_read_by_every_node() {
    // As many are open at once, and as much is stored in each: every 4 s, or every 8.
    let quick = MEASURED.upkeep(10.0, 100.0, 16.0);
    let slow = MEASURED.upkeep(10.0, 50.0, 32.0);
    let notices = 10.0 * (50.0 * 4.0 / 10.0) * 9.0 * MEASURED.database_cpu_per_notice.value;
    let looks = 10.0 * 50.0 * 4.0 * 0.6 * 2.0 * MEASURED.database_cpu_per_turn.value / MEASURED.statements_per_turn.value;
    let quick_notices = 10.0 * 25.0 * 9.0 * MEASURED.database_cpu_per_notice.value;
    assert!(((slow - notices) - (quick - quick_notices) - looks).abs() < 1e-6, "{slow} {quick} {looks}");
}

#[test]
fn the_document_holds_what_is_worked_out() {
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/scale.md");
    let document = std::fs::read_to_string(document).unwrap();
    assert!(document.contains(&report()), "run `cargo xtask scale` and put what it prints into docs/scale.md");
}
