//! How much of each part a load takes: arithmetic over costs, no clock and no machine.

use super::costs::{Costs, DELTAS_PER_TURN, ENTRIES_PER_TURN};

/// What is asked of an installation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load {
    pub(crate) nodes: f64,
    /// Streams that are open, over all nodes.
    pub(crate) streams: f64,
    /// Turns that begin in a second.
    pub(crate) turns_per_second: f64,
    /// How long a turn takes, mostly its model.
    pub(crate) turn_seconds: f64,
    /// How many of the streams are of a conversation in which a turn runs, spread over these.
    pub(crate) watchers_per_turn: f64,
}

/// How an installation is split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Layout {
    /// Databases, among which conversations are spread by a hash of their names; each with its own share of the nodes.
    pub(crate) databases: f64,
    /// NATS clusters or accounts, one for each group of databases at most.
    pub(crate) nats: f64,
}

/// A part that can be full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    NodeCpu,
    NodeMemory,
    DatabaseStatements,
    DatabaseLog,
    DatabaseConnections,
    DatabaseNotices,
    NatsMessages,
    NatsQueue,
}

impl Part {
    pub(crate) const ALL: [Self; 8] = [
        Self::NodeCpu,
        Self::NodeMemory,
        Self::DatabaseStatements,
        Self::DatabaseLog,
        Self::DatabaseConnections,
        Self::DatabaseNotices,
        Self::NatsMessages,
        Self::NatsQueue,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NodeCpu => "CPU of a node",
            Self::NodeMemory => "memory of a node",
            Self::DatabaseStatements => "statements of a database",
            Self::DatabaseLog => "write-ahead log of a database",
            Self::DatabaseConnections => "connections of a database",
            Self::DatabaseNotices => "notices of a database",
            Self::NatsMessages => "messages of NATS",
            Self::NatsQueue => "the queue of turns",
        }
    }

    /// What helps where it is full.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::NodeCpu | Self::NodeMemory => "more nodes",
            Self::DatabaseStatements | Self::DatabaseLog | Self::DatabaseConnections | Self::DatabaseNotices => {
                "more databases, conversations among them by hash"
            }
            Self::NatsMessages | Self::NatsQueue => "more NATS clusters or accounts, one for each database",
        }
    }
}

/// The share of a part that is taken; 1 is all of it.
pub(crate) fn share(costs: &Costs, load: &Load, layout: &Layout, part: Part) -> f64 {
    let turns = load.turns_per_second;
    let watched = load.watchers_per_turn;
    let events = DELTAS_PER_TURN + ENTRIES_PER_TURN;
    // A database has its own nodes, and what is spread over databases is spread evenly.
    let nodes = load.nodes / layout.databases;
    let (of_database, of_nats) = (turns / layout.databases, turns / layout.nats);
    // A watcher is at the driver's node once in as many times as there are nodes; those at one node share what comes.
    let elsewhere = nodes_reached(watched, nodes) * (1.0 - 1.0 / nodes);
    match part {
        Part::NodeCpu => {
            let per_turn = costs.node_cpu_per_turn.value
                + events * watched * costs.node_cpu_per_told.value
                + events * elsewhere * costs.node_cpu_per_crossing.value;
            turns * per_turn / 1_000.0 / (load.nodes * costs.cores_per_node.value)
        }
        Part::NodeMemory => {
            let streams = load.streams / load.nodes * costs.memory_per_stream.value / 1_048_576.0;
            (streams + costs.node_at_rest.value / 1_024.0) / costs.memory_of_node.value
        }
        Part::DatabaseStatements => {
            // Each node that has watchers reads what was stored, once for each word of it.
            let reads = elsewhere * ENTRIES_PER_TURN / 3.0;
            let open = of_database * load.turn_seconds;
            let sweeps = nodes * (1.0 + open) / costs.sweep_every.value;
            let leases = nodes * 2.0 / costs.lease_every.value;
            (of_database * (costs.statements_per_turn.value + reads) + sweeps + leases) / costs.statements_per_second.value
        }
        Part::DatabaseLog => of_database * costs.log_bytes_per_turn.value / costs.log_bytes_per_second.value,
        Part::DatabaseConnections => nodes * costs.connections_per_node.value / costs.connections.value,
        Part::DatabaseNotices => {
            // Each is one statement, and heard by every other node of the database.
            let appends = of_database * ENTRIES_PER_TURN / 3.0 / nodes;
            let told = nodes * appends.min(costs.notices_per_second.value);
            told * (nodes - 1.0) / (10.0 * costs.statements_per_second.value)
        }
        Part::NatsMessages => {
            let told = costs.nats_messages_per_turn.value + nodes;
            of_nats * (told + events * (1.0 + elsewhere)) / costs.nats_messages_per_second.value
        }
        Part::NatsQueue => of_nats * 2.0 / costs.nats_stored_per_second.value,
    }
}

/// How many nodes so many watchers are at, in the mean, where each comes to any node.
fn nodes_reached(watchers: f64, nodes: f64) -> f64 {
    nodes * (1.0 - (1.0 - 1.0 / nodes).powf(watchers))
}

/// The part that is fullest, and its share.
pub(crate) fn fullest(costs: &Costs, load: &Load, layout: &Layout) -> (Part, f64) {
    let shares = Part::ALL.map(|part| (part, share(costs, load, layout, part)));
    let first = (Part::NodeCpu, 0.0);
    shares.into_iter().fold(first, |most, next| if next.1 > most.1 { next } else { most })
}

/// The highest rate of turns at which no part is fuller than `limit`, all else as it is; 0 where none is.
pub(crate) fn most_turns(costs: &Costs, load: &Load, layout: &Layout, limit: f64) -> f64 {
    let fits = |turns: f64| fullest(costs, &Load { turns_per_second: turns, ..*load }, layout).1 <= limit;
    let (mut low, mut high) = (0.0, 1e7);
    if !fits(low) {
        return 0.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The smallest split, of powers of two, in which no part but the nodes' own is fuller than `limit`; `None` where the nodes
/// are.
pub(crate) fn split(costs: &Costs, load: &Load, limit: f64) -> Option<Layout> {
    let mut layout = Layout { databases: 1.0, nats: 1.0 };
    for _ in 0..24 {
        match fullest(costs, load, &layout) {
            (_, share) if share <= limit => return Some(layout),
            (Part::NodeCpu | Part::NodeMemory, _) => return None,
            (Part::NatsMessages | Part::NatsQueue, _) => layout.nats *= 2.0,
            _ => layout.databases *= 2.0,
        }
    }
    None
}
