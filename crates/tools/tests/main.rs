//! The tests of the crate from outside.
//!
//! One program, since each of its own would be linked with all that the crate needs.

#![cfg(test)]

mod addresses;
mod artifact;
mod attacks;
mod background;
mod bad_input;
mod command;
mod encodings;
mod escapes;
mod executable;
mod filesystem;
mod http;
mod roots;
mod support;
mod typed;
mod web;
mod writers;
