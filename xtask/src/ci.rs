//! `cargo xtask ci`: what a change must pass, cheapest first, tests last.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::{cargo, page, say, skips};

/// One command that must succeed.
struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

const FORMATTING: Step = Step { name: "formatting", arguments: &["fmt", "--all", "--check"], variables: &[] };
const LINTS: Step =
    Step { name: "lints", arguments: &["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"], variables: &[] };
const DOCUMENTATION: Step = Step {
    name: "documentation",
    arguments: &["doc", "--workspace", "--no-deps"],
    variables: &[("RUSTDOCFLAGS", "--deny warnings")],
};
const EXAMPLES: Step =
    Step { name: "examples in the documentation", arguments: &["test", "--workspace", "--doc", "--quiet"], variables: &[] };
/// The profile `ci` of `.config/nextest.toml` also writes down what passing tests print; [`skips`] reads it.
const TESTS: Step =
    Step { name: "tests", arguments: &["nextest", "run", "--workspace", "--profile", "ci", "--no-fail-fast"], variables: &[] };
const TESTS_WITHOUT_NEXTEST: Step =
    Step { name: "tests", arguments: &["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"], variables: &[] };

/// Runs all steps, up to the first that fails. The last line says how it ended.
pub(crate) fn run() -> ExitCode {
    let began = now();
    let tests = if has_nextest() { TESTS } else { TESTS_WITHOUT_NEXTEST };
    let report = skips::report_path(&root());
    skips::forget(&report);
    if page::has_npm() {
        say("==> page: npm ci, node build.mjs, tsc");
        if let Err(why) = page::check() {
            say(&format!("ci: FAILED at page after {}: {why}", seconds(began)));
            return ExitCode::FAILURE;
        }
    } else {
        say("note: the page is neither made nor checked: Node.js with npm is not installed");
    }
    for step in [FORMATTING, LINTS, DOCUMENTATION, EXAMPLES, tests] {
        if let Err(why) = step.run() {
            say(&format!("ci: FAILED at {} after {}: {why}", step.name, seconds(began)));
            return ExitCode::FAILURE;
        }
    }
    for line in skips::lines(&report) {
        say(&line);
    }
    say(&format!("ci: passed in {}", seconds(began)));
    ExitCode::SUCCESS
}

impl Step {
    fn run(&self) -> Result<(), String> {
        let command_line = format!("cargo {}", self.arguments.join(" "));
        say(&format!("==> {}: {command_line}", self.name));
        let began = now();
        let status = cargo()
            .args(self.arguments)
            .envs(self.variables.iter().copied())
            .envs(threads())
            .current_dir(root())
            .stdin(Stdio::null())
            .status()
            .map_err(|error| format!("`{command_line}` cannot be run: {error}"))?;
        say(&format!("    {}: {}", self.name, seconds(began)));
        if status.success() { Ok(()) } else { Err(format!("`{command_line}` ended with {status}")) }
    }
}

/// How many tests cargo-nextest runs at once, unless the environment says: two for each core, since most of them wait for processes, and for
/// time to pass.
fn threads() -> Option<(&'static str, String)> {
    const NAME: &str = "NEXTEST_TEST_THREADS";
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::env::var_os(NAME).is_none().then(|| (NAME, (2 * cores).to_string()))
}

pub(crate) fn has_nextest() -> bool {
    let mut command = cargo();
    command.args(["nextest", "--version"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[expect(clippy::disallowed_methods, reason = "steps are timed for people; nothing is decided by it")]
fn now() -> Instant {
    Instant::now()
}

fn seconds(since: Instant) -> String {
    let passed: Duration = since.elapsed();
    format!("{:.1} s", passed.as_secs_f64())
}
