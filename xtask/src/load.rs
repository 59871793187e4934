//! `cargo xtask load`: the load test of the server for longer than CI has time for, on a release build.

use std::process::ExitCode;

use crate::{cargo, say};

/// What is run where nobody says otherwise.
const SECONDS: &str = "300";

/// Runs 1,000 streams over 64 running conversations for so many seconds, and tells what was measured.
pub(crate) fn run(seconds: Option<&str>) -> ExitCode {
    let seconds = seconds.unwrap_or(SECONDS);
    let test = "load::a_thousand_streams_of_running_conversations_are_whole_and_memory_does_not_grow";
    let mut command = cargo();
    command.args(["test", "--release", "-p", "turnwright-app", "--test", "cli", test, "--", "--exact", "--nocapture"]);
    match command.env("TURNWRIGHT_LOAD_SECONDS", seconds).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("xtask: cargo cannot be run: {error}"));
            ExitCode::FAILURE
        }
    }
}
