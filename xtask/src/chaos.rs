//! `cargo xtask chaos`: the failure suite of several nodes, the random part of it for any time, or from a seed that is known.

use std::process::{Command, ExitCode};

use crate::say;

/// What is run where nobody says otherwise.
const SECONDS: &str = "60";

/// Lets members of a cluster fail for so many seconds, and tells what was seen.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let Some((seconds, seed)) = parsed(words) else {
        say("usage: cargo xtask chaos [SECONDS] [--seed N]");
        return ExitCode::from(2);
    };
    let mut command = Command::new("cargo");
    // One after the other: each has a cluster of its own.
    command.args(["test", "--workspace", "--test", "chaos", "--", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("TURNWRIGHT_CHAOS_SECONDS", seconds);
    if let Some(seed) = seed {
        command.env("TURNWRIGHT_CHAOS_SEED", seed);
    }
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("xtask: cargo cannot be run: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn parsed<'a>(words: &[&'a str]) -> Option<(&'a str, Option<&'a str>)> {
    let is_number = |word: &&str| word.parse::<u64>().is_ok();
    let (seconds, seed) = match *words {
        [] => (SECONDS, None),
        ["--seed", seed] => (SECONDS, Some(seed)),
        [seconds] => (seconds, None),
        [seconds, "--seed", seed] | ["--seed", seed, seconds] => (seconds, Some(seed)),
        _ => return None,
    };
    (is_number(&seconds) && seed.as_ref().is_none_or(is_number)).then_some((seconds, seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_a_seed_may_be_given() {
        assert_eq!(parsed(&[]), Some(("60", None)));
        assert_eq!(parsed(&["--seed", "7"]), Some(("60", Some("7"))));
        assert_eq!(parsed(&["300", "--seed", "7"]), Some(("300", Some("7"))));
        assert_eq!(parsed(&["--seed", "7", "300"]), Some(("300", Some("7"))));
        assert_eq!(parsed(&["soon"]), None);
        assert_eq!(parsed(&["300", "--sed", "7"]), None);
    }
}
