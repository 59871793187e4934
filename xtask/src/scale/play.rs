//! A load played through, second by second: turns begin at random, last differently long, and fall on random nodes and
//! databases, as their names are hashed. What arithmetic leaves out is how much more than the mean the unluckiest part has to
//! do in its worst second; that is what this finds.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "what is counted here is far below 2^52 and never negative"
)]

use super::costs::Costs;
use super::model::{Layout, Load};

/// Seconds that count, after those in which the first turns begin and end.
const COUNTED: usize = 60;
const BEFORE: usize = 40;

/// How full a kind of part was: the mean of all over all seconds, and the fullest of them in its worst second. 1 is all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fill {
    pub(crate) mean: f64,
    pub(crate) worst: f64,
}

/// What a load came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Played {
    pub(crate) nodes: Fill,
    pub(crate) databases: Fill,
    pub(crate) nats: Fill,
    /// Memory of nodes; streams are where chance put them.
    pub(crate) memory: Fill,
}

/// Processor time of some machines in each second.
struct Busy {
    seconds: Vec<Vec<f64>>,
}

impl Busy {
    fn new(machines: usize) -> Self {
        Self { seconds: vec![vec![0.0; machines]; BEFORE + COUNTED] }
    }

    /// Spreads a time over the seconds from `from` to `until`.
    fn spread(&mut self, machine: usize, milliseconds: f64, from: f64, until: f64) {
        let length = (until - from).max(f64::EPSILON);
        for (second, machines) in self.seconds.iter_mut().enumerate().skip(whole(from)).take(whole(until - from) + 2) {
            let begins = second as f64;
            let covered = (until.min(begins + 1.0) - from.max(begins)).max(0.0);
            if let Some(busy) = machines.get_mut(machine) {
                *busy += milliseconds * covered / length;
            }
        }
    }

    /// How full machines of so many cores were, that had `besides` to do in every second.
    fn fill(&self, cores: f64, besides: f64) -> Fill {
        let of = |busy: &f64| (busy + besides) / 1_000.0 / cores;
        let all: Vec<f64> = self.seconds.iter().skip(BEFORE).flatten().map(of).collect();
        fill(&all)
    }
}

fn fill(all: &[f64]) -> Fill {
    Fill { mean: all.iter().sum::<f64>() / all.len().max(1) as f64, worst: all.iter().copied().fold(0.0, f64::max) }
}

/// The whole part of what is not negative and small.
fn whole(number: f64) -> usize {
    number as usize
}

/// Chance from a seed: the same each time.
struct Chance(fastrand::Rng);

impl Chance {
    fn below(&mut self, count: usize) -> usize {
        self.0.usize(..count.max(1))
    }

    /// How long it takes until something comes that comes so often in a second; how long lasts what ends so often.
    fn wait(&mut self, per_second: f64) -> f64 {
        -(1.0 - self.0.f64()).ln() / per_second
    }
}

/// Plays a load through. Nodes are divided among the databases, and these among the NATS clusters, in their order.
pub(crate) fn play(costs: &Costs, load: &Load, layout: &Layout, seed: u64) -> Played {
    let mut chance = Chance(fastrand::Rng::with_seed(seed));
    let (nodes, databases, clusters) = (whole(load.nodes), whole(layout.databases), whole(layout.nats));
    let own_nodes = |database: usize| (nodes * database / databases, nodes * (database + 1) / databases);
    let (mut of_nodes, mut of_databases, mut of_nats) = (Busy::new(nodes), Busy::new(databases), Busy::new(clusters));
    let end = (BEFORE + COUNTED) as f64;
    let mut now = chance.wait(load.turns_per_second);
    while now < end {
        let until = now + chance.wait(1.0 / load.turn_seconds);
        let database = chance.below(databases);
        let (first, last) = own_nodes(database);
        let driver = first + chance.below(last - first);
        let mut elsewhere: Vec<usize> = Vec::new();
        for _ in 0..whole(load.watchers_per_turn) {
            let node = first + chance.below(last - first);
            of_nodes.spread(node, costs.watcher(), now, until);
            if node != driver && !elsewhere.contains(&node) {
                of_nodes.spread(node, costs.listener(), now, until);
                elsewhere.push(node);
            }
        }
        let others = elsewhere.len() as f64;
        of_nodes.spread(driver, costs.driver(others), now, until);
        of_databases.spread(database, costs.database(others), now, until);
        of_nats.spread(database * clusters / databases, costs.nats((last - first) as f64, others), now, until);
        now += chance.wait(load.turns_per_second);
    }
    let mut streams = vec![0.0; nodes];
    for _ in 0..whole(load.streams) {
        let node = chance.below(nodes);
        if let Some(count) = streams.get_mut(node) {
            *count += 1.0;
        }
    }
    let gibibytes = |count: &f64| count * costs.memory_per_stream.value / 1_048_576.0 + costs.node_at_rest.value / 1_024.0;
    let memory: Vec<f64> = streams.iter().map(|count| gibibytes(count) / costs.memory_of_node.value).collect();
    let of_database = load.turns_per_second / layout.databases;
    let upkeep = costs.upkeep(load.nodes / layout.databases, of_database, load.turn_seconds);
    Played {
        nodes: of_nodes.fill(costs.cores_per_node.value, 0.0),
        databases: of_databases.fill(costs.cores_of_database.value, upkeep),
        nats: of_nats.fill(costs.cores_of_nats.value, 0.0),
        memory: fill(&memory),
    }
}
