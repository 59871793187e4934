//! What things cost, and where that was measured. The simulation has no other numbers.

/// A number with its origin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The command that measures it, or the document that has it; or that it is assumed.
    pub(crate) origin: &'static str,
}

/// All of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Costs {
    pub(crate) node_cpu_per_turn: Cost,
    pub(crate) node_cpu_per_told: Cost,
    pub(crate) node_cpu_per_crossing: Cost,
    pub(crate) memory_per_stream: Cost,
    pub(crate) node_at_rest: Cost,
    pub(crate) statements_per_turn: Cost,
    pub(crate) log_bytes_per_turn: Cost,
    pub(crate) database_cpu_per_turn: Cost,
    pub(crate) database_cpu_per_notice: Cost,
    pub(crate) database_cpu_per_open_turn: Cost,
    pub(crate) connections_per_node: Cost,
    pub(crate) nats_messages_per_turn: Cost,
    pub(crate) nats_cpu_per_message: Cost,
    pub(crate) nats_cpu_per_stored: Cost,
    pub(crate) nats_stored_per_second: Cost,
    pub(crate) sweep_every: Cost,
    pub(crate) lease_every: Cost,
    pub(crate) notices_per_second: Cost,
    pub(crate) cores_per_node: Cost,
    pub(crate) memory_of_node: Cost,
    pub(crate) cores_of_database: Cost,
    pub(crate) log_bytes_per_second: Cost,
    pub(crate) connections: Cost,
    pub(crate) cores_of_nats: Cost,
}

/// A turn of one round with one tool (S2 of benches/README.md), told in 70 deltas and 12 entries.
pub(crate) const DELTAS_PER_TURN: f64 = 70.0;
/// Entries of such a turn.
pub(crate) const ENTRIES_PER_TURN: f64 = 12.0;

/// What an installation is made of is chosen: another choice gives other tables.
const CHOSEN: &str = "chosen";

/// The costs of this version on the machine of benches/README.md.
pub(crate) const MEASURED: Costs = Costs {
    node_cpu_per_turn: Cost {
        name: "CPU of a node for a turn",
        value: 0.49,
        unit: "ms",
        origin: "0.44 ms of S2 on SQLite (benches/README.md), 1.11 times that on PostgreSQL (crates/app/tests/cli/costs/processor.rs)",
    },
    node_cpu_per_told: Cost {
        name: "CPU of a node for an event that one stream is told",
        value: 0.0038,
        unit: "ms",
        origin: "crates/app/tests/cli/costs/processor.rs",
    },
    node_cpu_per_crossing: Cost {
        name: "CPU of both nodes for an event that goes over NATS",
        value: 0.25,
        unit: "ms",
        origin: "crates/nodes/examples/crossing.rs, each event by itself: those that come together are one message and cost less",
    },
    memory_per_stream: Cost {
        name: "memory of an idle stream",
        value: 19.2,
        unit: "KiB",
        origin: "benches/peers/server, in benches/README.md",
    },
    node_at_rest: Cost {
        name: "memory of a node at rest",
        value: 17.3,
        unit: "MiB",
        origin: "benches/peers/server, in benches/README.md",
    },
    statements_per_turn: Cost {
        name: "statements of a turn",
        value: 7.0,
        unit: "",
        origin: "counted by PostgreSQL, crates/app/tests/cli/costs.rs",
    },
    log_bytes_per_turn: Cost {
        name: "write-ahead log of a turn, without images of pages",
        value: 4_427.0,
        unit: "bytes",
        origin: "counted by PostgreSQL, crates/app/tests/cli/costs.rs",
    },
    database_cpu_per_turn: Cost {
        name: "CPU of a database for a turn",
        value: 2.5,
        unit: "ms",
        origin: "crates/app/tests/cli/costs/processor.rs",
    },
    database_cpu_per_notice: Cost {
        name: "CPU of a database for a notice that one node hears",
        value: 0.012,
        unit: "ms",
        origin: "crates/app/tests/cli/costs/processor.rs",
    },
    database_cpu_per_open_turn: Cost {
        name: "CPU of a database for an open turn each time a node sweeps",
        value: 0.000_57,
        unit: "ms",
        origin: "crates/app/tests/cli/costs/processor.rs",
    },
    connections_per_node: Cost { name: "connections of a node", value: 9.0, unit: "", origin: "docs/operations.md" },
    nats_messages_per_turn: Cost {
        name: "messages of NATS for a turn that nobody watches elsewhere: its offer, signs of life, acknowledgement, word of what is stored",
        value: 6.0,
        unit: "",
        origin: "counted in crates/nodes/src/queue.rs for a turn of three seconds",
    },
    nats_cpu_per_message: Cost {
        name: "CPU of NATS, over its servers, for a message that one node hears",
        value: 0.0021,
        unit: "ms",
        origin: "crates/nodes/examples/carrying.rs",
    },
    nats_cpu_per_stored: Cost {
        name: "CPU of NATS, over its servers, for a message that three of them store",
        value: 0.028,
        unit: "ms",
        origin: "crates/nodes/examples/carrying.rs",
    },
    nats_stored_per_second: Cost {
        name: "messages that a stream of three replicas stores",
        value: 49_000.0,
        unit: "/s",
        origin: "crates/nodes/examples/carrying.rs, three servers and their client on two cores",
    },
    sweep_every: Cost { name: "time between sweeps", value: 5.0, unit: "s", origin: "docs/nodes.md" },
    lease_every: Cost { name: "time between renewals of a lease", value: 1.0, unit: "s", origin: "docs/operations.md" },
    notices_per_second: Cost {
        name: "notices of writes that a node gives at most",
        value: 25.0,
        unit: "/s",
        origin: "crates/store/src/postgres/presence.rs, one in 40 ms",
    },
    cores_per_node: Cost { name: "cores of a node", value: 4.0, unit: "", origin: CHOSEN },
    memory_of_node: Cost { name: "memory of a node", value: 16.0, unit: "GiB", origin: CHOSEN },
    cores_of_database: Cost { name: "cores of a database", value: 16.0, unit: "", origin: CHOSEN },
    log_bytes_per_second: Cost {
        name: "write-ahead log that a database's disk takes",
        value: 200_000_000.0,
        unit: "bytes/s",
        origin: CHOSEN,
    },
    connections: Cost { name: "connections of a database", value: 1_000.0, unit: "", origin: CHOSEN },
    cores_of_nats: Cost { name: "cores of the three servers of a NATS cluster", value: 12.0, unit: "", origin: CHOSEN },
};

impl Costs {
    /// All, in the order in which they are shown.
    pub(crate) fn all(&self) -> [Cost; 24] {
        [
            self.node_cpu_per_turn,
            self.node_cpu_per_told,
            self.node_cpu_per_crossing,
            self.memory_per_stream,
            self.node_at_rest,
            self.statements_per_turn,
            self.log_bytes_per_turn,
            self.database_cpu_per_turn,
            self.database_cpu_per_notice,
            self.database_cpu_per_open_turn,
            self.connections_per_node,
            self.nats_messages_per_turn,
            self.nats_cpu_per_message,
            self.nats_cpu_per_stored,
            self.nats_stored_per_second,
            self.sweep_every,
            self.lease_every,
            self.notices_per_second,
            self.cores_per_node,
            self.memory_of_node,
            self.cores_of_database,
            self.log_bytes_per_second,
            self.connections,
            self.cores_of_nats,
        ]
    }
}
