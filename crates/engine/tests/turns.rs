//! Turns over scripted ports: what is stored, what watchers are told, what survives.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, also in the helpers that clippy does not know as tests"
)]

#[path = "turns/support.rs"]
mod support;

#[path = "turns/ahead.rs"]
mod ahead;
#[path = "turns/approvals.rs"]
mod approvals;
#[path = "turns/asking.rs"]
mod asking;
#[path = "turns/budgets.rs"]
mod budgets;
#[path = "turns/by_hand.rs"]
mod by_hand;
#[path = "turns/compacting.rs"]
mod compacting;
#[path = "turns/context.rs"]
mod context;
#[path = "turns/crashes.rs"]
mod crashes;
#[path = "turns/draining.rs"]
mod draining;
#[path = "turns/early.rs"]
mod early;
#[path = "turns/ends.rs"]
mod ends;
#[path = "turns/failures.rs"]
mod failures;
#[path = "turns/held_back.rs"]
mod held_back;
#[path = "turns/keys.rs"]
mod keys;
#[path = "turns/large.rs"]
mod large;
#[path = "turns/limits.rs"]
mod limits;
#[path = "turns/logged.rs"]
mod logged;
#[path = "turns/nodes.rs"]
mod nodes;
#[path = "turns/owners.rs"]
mod owners;
#[path = "turns/pages.rs"]
mod pages;
#[path = "turns/parked.rs"]
mod parked;
#[path = "turns/people.rs"]
mod people;
#[path = "turns/plain.rs"]
mod plain;
#[path = "turns/processes.rs"]
mod processes;
#[path = "turns/remembered.rs"]
mod remembered;
#[path = "turns/repeated.rs"]
mod repeated;
#[path = "turns/sampling.rs"]
mod sampling;
#[path = "turns/sources.rs"]
mod sources;
#[path = "turns/tasks.rs"]
mod tasks;
#[path = "turns/telemetry.rs"]
mod telemetry;
#[path = "turns/titles.rs"]
mod titles;
#[path = "turns/unheard.rs"]
mod unheard;
#[path = "turns/upkeep.rs"]
mod upkeep;
#[path = "turns/watching.rs"]
mod watching;
#[path = "turns/writers.rs"]
mod writers;
