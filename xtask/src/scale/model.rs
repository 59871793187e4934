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
    DatabaseCpu,
    DatabaseLog,
    DatabaseConnections,
    NatsCpu,
    NatsQueue,
}

impl Part {
    pub(crate) const ALL: [Self; 7] = [
        Self::NodeCpu,
        Self::NodeMemory,
        Self::DatabaseCpu,
        Self::DatabaseLog,
        Self::DatabaseConnections,
        Self::NatsCpu,
        Self::NatsQueue,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NodeCpu => "CPU of a node",
            Self::NodeMemory => "memory of a node",
            Self::DatabaseCpu => "CPU of a database",
            Self::DatabaseLog => "write-ahead log of a database",
            Self::DatabaseConnections => "connections of a database",
            Self::NatsCpu => "CPU of NATS",
            Self::NatsQueue => "the queue of turns",
        }
    }

    /// What helps where it is full.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::NodeCpu | Self::NodeMemory => "more nodes",
            Self::DatabaseCpu | Self::DatabaseLog | Self::DatabaseConnections => {
                "more databases, conversations among them by hash"
            }
            Self::NatsCpu | Self::NatsQueue => "more NATS clusters or accounts, one for each database",
        }
    }
}

/// Events of a turn: what a stream is told.
const EVENTS: f64 = DELTAS_PER_TURN + ENTRIES_PER_TURN;
/// Appends of a turn: entries that came together are one.
const APPENDS: f64 = ENTRIES_PER_TURN / 3.0;

// What one turn takes of what it has to do with; times in milliseconds of a processor.
impl Costs {
    /// Of the node that drives it, where so many others have watchers of it.
    pub(crate) fn driver(&self, elsewhere: f64) -> f64 {
        self.node_cpu_per_turn.value + EVENTS * elsewhere * self.node_cpu_per_crossing.value / 2.0
    }

    /// Of another node that has watchers of it.
    pub(crate) fn listener(&self) -> f64 {
        EVENTS * self.node_cpu_per_crossing.value / 2.0
    }

    /// Of the node that a watcher is at.
    pub(crate) fn watcher(&self) -> f64 {
        EVENTS * self.node_cpu_per_told.value
    }

    fn statement(&self) -> f64 {
        self.database_cpu_per_turn.value / self.statements_per_turn.value
    }

    /// Of its database. Each other node that has watchers reads what was stored, once for each word of it.
    pub(crate) fn database(&self, elsewhere: f64) -> f64 {
        self.database_cpu_per_turn.value + elsewhere * APPENDS * self.statement()
    }

    /// Of NATS: what is stored is told to every node, what streams to those that have watchers.
    pub(crate) fn nats(&self, nodes: f64, elsewhere: f64) -> f64 {
        let heard = self.nats_messages_per_turn.value + nodes + EVENTS * (1.0 + elsewhere);
        heard * self.nats_cpu_per_message.value + STORED_PER_TURN * self.nats_cpu_per_stored.value
    }

    /// What a database does each second besides turns, for its nodes and what runs: sweeps, leases, and notices of what was
    /// written, heard by all other nodes. A sweep lists the open turns, asks for each of their drivers, and looks at the
    /// journals of those in which nothing was stored since the sweep before.
    pub(crate) fn upkeep(&self, nodes: f64, turns_per_second: f64, turn_seconds: f64) -> f64 {
        let open = turns_per_second * turn_seconds;
        let rest = turn_seconds / APPENDS;
        let looked_at = turns_per_second * APPENDS * (rest / self.sweep_every.value - 1.0).clamp(0.0, 1.0);
        let sweeps = nodes / self.sweep_every.value;
        let statements =
            sweeps * (1.0 + open.min(nodes)) + nodes * (looked_at * STATEMENTS_PER_LOOK + 2.0 / self.lease_every.value);
        let notices = nodes * (turns_per_second * APPENDS / nodes).min(self.notices_per_second.value) * (nodes - 1.0);
        statements * self.statement()
            + sweeps * open * self.database_cpu_per_open_turn.value
            + notices * self.database_cpu_per_notice.value
    }
}

/// A record, and its journal or how far that is.
const STATEMENTS_PER_LOOK: f64 = 2.0;

/// An offer of a turn, and the word that it wants no driver any more.
pub(crate) const STORED_PER_TURN: f64 = 2.0;

/// The share of a part that is taken; 1 is all of it.
pub(crate) fn share(costs: &Costs, load: &Load, layout: &Layout, part: Part) -> f64 {
    let turns = load.turns_per_second;
    let watched = load.watchers_per_turn;
    // A database has its own nodes, and what is spread over databases is spread evenly.
    let nodes = load.nodes / layout.databases;
    let (of_database, of_nats) = (turns / layout.databases, turns / layout.nats);
    let elsewhere = elsewhere(watched, nodes);
    match part {
        Part::NodeCpu => {
            let per_turn = costs.driver(elsewhere) + elsewhere * costs.listener() + watched * costs.watcher();
            turns * per_turn / 1_000.0 / (load.nodes * costs.cores_per_node.value)
        }
        Part::NodeMemory => {
            let streams = load.streams / load.nodes * costs.memory_per_stream.value / 1_048_576.0;
            (streams + costs.node_at_rest.value / 1_024.0) / costs.memory_of_node.value
        }
        Part::DatabaseCpu => {
            let upkeep = costs.upkeep(nodes, of_database, load.turn_seconds);
            (of_database * costs.database(elsewhere) + upkeep) / 1_000.0 / costs.cores_of_database.value
        }
        Part::DatabaseLog => of_database * costs.log_bytes_per_turn.value / costs.log_bytes_per_second.value,
        Part::DatabaseConnections => nodes * costs.connections_per_node.value / costs.connections.value,
        Part::NatsCpu => of_nats * costs.nats(nodes, elsewhere) / 1_000.0 / costs.cores_of_nats.value,
        Part::NatsQueue => of_nats * STORED_PER_TURN / costs.nats_stored_per_second.value,
    }
}

/// How many nodes besides its driver's watch a turn, in the mean, where each watcher comes to any node: those at one node share
/// what comes.
fn elsewhere(watchers: f64, nodes: f64) -> f64 {
    nodes_reached(watchers, nodes) * (1.0 - 1.0 / nodes)
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
            (Part::NatsCpu | Part::NatsQueue, _) => {
                layout.nats *= 2.0;
                layout.databases = layout.databases.max(layout.nats);
            }
            _ => layout.databases *= 2.0,
        }
    }
    None
}
