//! `cargo xtask scale`: what is full first, worked out from measured costs up to 100 nodes and a million open streams.
//! docs/scale.md has what it prints.

mod costs;
mod model;
mod play;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use costs::MEASURED;
use model::{Layout, Load, Part, fullest, most_turns, share, split};
use play::{Fill, play};

/// How full a part may be: above it waits grow.
const LIMIT: f64 = 0.7;

/// Of what is played through.
const SEED: u64 = 1;

const fn load(nodes: f64, streams: f64, turns_per_second: f64) -> Load {
    Load { nodes, streams, turns_per_second, turn_seconds: 10.0, watchers_per_turn: 2.0 }
}

/// From one node to a hundred, and to as many as the most turns want.
const LOADS: [Load; 8] = [
    load(1.0, 1_000.0, 10.0),
    load(3.0, 10_000.0, 100.0),
    load(10.0, 50_000.0, 500.0),
    load(30.0, 200_000.0, 2_000.0),
    load(100.0, 500_000.0, 5_000.0),
    load(100.0, 1_000_000.0, 5_000.0),
    load(100.0, 1_000_000.0, 10_000.0),
    load(160.0, 1_000_000.0, 10_000.0),
];

/// Prints the tables of docs/scale.md.
pub(crate) fn run() -> ExitCode {
    match io::stdout().write_all(report().as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The tables.
fn report() -> String {
    let mut text = String::new();
    // Writing into a text does not fail.
    let _ = tables(&mut text);
    text
}

fn tables(text: &mut String) -> std::fmt::Result {
    let one = Layout { databases: 1.0, nats: 1.0 };
    writeln!(text, "| Cost | Value | From |\n|---|--:|---|")?;
    for cost in MEASURED.all() {
        writeln!(text, "| {} | {} {} | {} |", cost.name, number(cost.value), cost.unit, cost.origin)?;
    }
    writeln!(text, "\nOne database and one NATS cluster: how full each part is, in per cent.\n")?;
    writeln!(text, "| Nodes | Streams | Turns/s | {} |", Part::ALL.map(Part::name).join(" | "))?;
    writeln!(text, "|--:|--:|--:|{}", "--:|".repeat(Part::ALL.len()))?;
    for load in &LOADS {
        let shares = Part::ALL.map(|part| {
            let share = share(&MEASURED, load, &one, part);
            let shown = format!("{:.1}", share * 100.0);
            if share > LIMIT { format!("**{shown}**") } else { shown }
        });
        writeln!(text, "| {} | {} |", named(load), shares.join(" | "))?;
    }
    writeln!(text, "\nWhat is full first as turns become more, at {:.0} % of a part:\n", LIMIT * 100.0)?;
    writeln!(text, "| Nodes | Streams | Most turns/s | First full | What helps |\n|--:|--:|--:|---|---|")?;
    for load in &LOADS {
        let most = most_turns(&MEASURED, load, &one, LIMIT);
        let (part, _) = fullest(&MEASURED, &Load { turns_per_second: most * 1.001 + 0.001, ..*load }, &one);
        let (nodes, streams) = (number(load.nodes), number(load.streams));
        writeln!(text, "| {nodes} | {streams} | {} | {} | {} |", number(most.floor()), part.name(), part.remedy())?;
    }
    writeln!(text, "\nThe smallest split that carries each load:\n")?;
    writeln!(
        text,
        "| Nodes | Streams | Turns/s | Databases | NATS clusters or accounts | Then fullest |\n|--:|--:|--:|--:|--:|---|"
    )?;
    for load in &LOADS {
        match split(&MEASURED, load, LIMIT) {
            Some(layout) => {
                let (part, share) = fullest(&MEASURED, load, &layout);
                let (databases, nats) = (number(layout.databases), number(layout.nats));
                writeln!(text, "| {} | {databases} | {nats} | {}, {:.0} % |", named(load), part.name(), share * 100.0)?;
            }
            None => writeln!(text, "| {} | - | - | more nodes are needed |", named(load))?,
        }
    }
    writeln!(
        text,
        "\nEach load in that split, played through for a minute of turns that begin at random (mean; the fullest in its worst second; in per cent):\n"
    )?;
    writeln!(text, "| Nodes | Streams | Turns/s | CPU of nodes | CPU of databases | CPU of NATS | Memory of nodes |")?;
    writeln!(text, "|--:|--:|--:|--:|--:|--:|--:|")?;
    for load in &LOADS {
        let Some(layout) = split(&MEASURED, load, LIMIT) else { continue };
        let played = play(&MEASURED, load, &layout, SEED);
        let shown = |fill: Fill| format!("{:.1}; {:.1}", fill.mean * 100.0, fill.worst * 100.0);
        let fills = [played.nodes, played.databases, played.nats, played.memory].map(shown);
        writeln!(text, "| {} | {} |", named(load), fills.join(" | "))?;
    }
    Ok(())
}

fn named(load: &Load) -> String {
    format!("{} | {} | {}", number(load.nodes), number(load.streams), number(load.turns_per_second))
}

/// A number as people write it: whole, with commas, where it is large.
fn number(value: f64) -> String {
    if value < 100.0 {
        return format!("{value}");
    }
    let digits = format!("{value:.0}");
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}
