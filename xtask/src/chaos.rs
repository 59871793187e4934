//! `cargo xtask chaos`: the failure suite of several nodes, the random part of it for any time, or from a seed that is known.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::ci::has_nextest;
use crate::{cargo, say};

/// What is run where nobody says otherwise.
const SECONDS: &str = "60";
/// What a build without the fence is made with.
const WITHOUT_FENCE: &str = "--cfg turnwright_without_fence";
/// The fault that the fence is there for.
const FENCE: &str = "a_node_that_stood_still_between_the_entry_and_the_effect_does_nothing_of_it";
/// How the checker names an effect that came twice.
const TWICE: &str = "Twice {";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted<'a> {
    /// The whole suite, the random part of it for so many seconds, from this seed where it is given.
    Suite { seconds: &'a str, seed: Option<&'a str> },
    /// Whether the suite finds that a build has no fence.
    WithoutFence,
}

/// Lets members of a cluster fail for so many seconds, and tells what was seen.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let done = match parsed(words) {
        Some(Wanted::Suite { seconds, seed }) => suite(seconds, seed),
        Some(Wanted::WithoutFence) => without_fence(),
        None => {
            say("usage: cargo xtask chaos [SECONDS] [--seed N], or cargo xtask chaos --without-fence");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("xtask: cargo cannot be run: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The tests of the suite, or the one of this name. One after the other: each has a cluster of its own. With cargo-nextest what all tests
/// are built of is used; where cargo chooses the tests it builds most of it anew, for other features.
fn tests(name: Option<&str>) -> Command {
    let mut command = cargo();
    if has_nextest() {
        let filter = name.map_or_else(|| "binary(chaos)".to_owned(), |name| format!("binary(chaos) & test({name})"));
        command.args(["nextest", "run", "--workspace", "--profile", "chaos", "--run-ignored", "only", "--no-capture"]);
        command.args(["-E", &filter]);
    } else {
        command.args(["test", "--workspace", "--test", "chaos", "--"]).args(name);
        command.args(["--ignored", "--nocapture", "--test-threads=1"]);
    }
    command
}

fn suite(seconds: &str, seed: Option<&str>) -> std::io::Result<bool> {
    let mut command = tests(None);
    command.env("TURNWRIGHT_CHAOS_SECONDS", seconds);
    if let Some(seed) = seed {
        command.env("TURNWRIGHT_CHAOS_SEED", seed);
    }
    Ok(command.status()?.success())
}

/// Builds nodes that have no fence, makes the fault that it is there for, and says whether the checker saw what came of it.
fn without_fence() -> std::io::Result<bool> {
    // Beside what is built with the fence, of which nothing is built again then.
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let target = std::path::absolute(target.join("without-fence"))?;
    let mut flags = std::env::var_os("RUSTFLAGS").unwrap_or_default();
    flags.push(" ");
    flags.push(WITHOUT_FENCE);
    let mut build = cargo();
    build.args(["build", "--bin", "turnwright"]).env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", flags);
    if !build.status()?.success() {
        return Ok(false);
    }
    let mut test = tests(Some(FENCE));
    test.env("TURNWRIGHT_CHAOS_BINARY", target.join("debug/turnwright"));
    // A fault that cannot be made shows nothing.
    test.env("TURNWRIGHT_REQUIRE_TEST_NETWORK", "1");
    let mut test = test.stderr(Stdio::piped()).spawn()?;
    let mut is_seen = false;
    if let Some(said) = test.stderr.take() {
        for line in BufReader::new(said).lines() {
            let line = line?;
            is_seen |= line.contains(TWICE);
            say(&line);
        }
    }
    let has_failed = !test.wait()?.success();
    say(if has_failed && is_seen {
        "without the fence a call had its effect twice, and the checker said so: as it must be"
    } else {
        "without the fence the checker must report an effect that came twice, and did not"
    });
    Ok(has_failed && is_seen)
}

fn parsed<'a>(words: &[&'a str]) -> Option<Wanted<'a>> {
    let is_number = |word: &&str| word.parse::<u64>().is_ok();
    let (seconds, seed) = match *words {
        ["--without-fence"] => return Some(Wanted::WithoutFence),
        [] => (SECONDS, None),
        ["--seed", seed] => (SECONDS, Some(seed)),
        [seconds] => (seconds, None),
        [seconds, "--seed", seed] | ["--seed", seed, seconds] => (seconds, Some(seed)),
        _ => return None,
    };
    (is_number(&seconds) && seed.as_ref().is_none_or(is_number)).then_some(Wanted::Suite { seconds, seed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_a_seed_may_be_given() {
        let suite = |seconds, seed| Some(Wanted::Suite { seconds, seed });
        assert_eq!(parsed(&[]), suite("60", None));
        assert_eq!(parsed(&["--seed", "7"]), suite("60", Some("7")));
        assert_eq!(parsed(&["300", "--seed", "7"]), suite("300", Some("7")));
        assert_eq!(parsed(&["--seed", "7", "300"]), suite("300", Some("7")));
        assert_eq!(parsed(&["--without-fence"]), Some(Wanted::WithoutFence));
        assert_eq!(parsed(&["300", "--without-fence"]), None);
        assert_eq!(parsed(&["soon"]), None);
        assert_eq!(parsed(&["300", "--sed", "7"]), None);
    }
}
