//! Turns over scripted ports: what is stored, what watchers are told, what survives.

#[path = "turns/support.rs"]
mod support;

#[path = "turns/approvals.rs"]
mod approvals;
#[path = "turns/crashes.rs"]
mod crashes;
#[path = "turns/plain.rs"]
mod plain;
#[path = "turns/watching.rs"]
mod watching;
