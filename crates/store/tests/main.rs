//! The tests of the crate from outside.
//!
//! One program, since each of its own would be linked with all that the crate needs.

#![cfg(test)]

// Before those that use its macros.
#[macro_use]
mod conformance;

mod memory;
mod postgres;
mod postgres_nodes;
mod postgres_outages;
mod postgres_versions;
mod proxy;
mod server;
mod sqlite;
mod sqlite_damage;
mod sqlite_erasing;
mod sqlite_files;
mod sqlite_gathered;
mod sqlite_moving;
mod sqlite_processes;
mod sqlite_replaced;
mod sqlite_upgrades;
