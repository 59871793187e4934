//! `cargo xtask ci`: what a change must pass, cheapest first, tests last.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
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
/// Of the examples too, for which what tests depend on counts: dependencies have the features that they have for the lints, and are
/// not checked once more.
const DOCUMENTATION: Step = Step {
    name: "documentation",
    arguments: &["doc", "--workspace", "--no-deps", "--lib", "--bins", "--examples"],
    variables: &[("RUSTDOCFLAGS", "--deny warnings")],
};
const EXAMPLES: Step =
    Step { name: "examples in the documentation", arguments: &["test", "--workspace", "--doc", "--quiet"], variables: &[] };
const BUILDING: Step = Step {
    name: "building the tests",
    arguments: &["nextest", "run", "--workspace", "--profile", "ci", "--no-run"],
    variables: &[],
};
/// The profile `ci` of `.config/nextest.toml` also writes down what passing tests print; [`skips`] reads it.
const TESTS: Step = Step {
    name: "tests",
    arguments: &[
        "nextest",
        "run",
        "--workspace",
        "--profile",
        "ci",
        "--no-fail-fast",
        "-E",
        "not binary(page) or test(=the_page_never_stands_still)",
    ],
    variables: &[],
};
/// In a browser, one at a time: beside the others, since a group of one runner holds up whatever comes after it.
const PAGE_TESTS: Step = Step {
    name: "tests of the page",
    arguments: &[
        "nextest",
        "run",
        "--workspace",
        "--profile",
        "page",
        "--no-fail-fast",
        "-E",
        "binary(page) and not test(=the_page_never_stands_still)",
    ],
    variables: &[("NEXTEST_TEST_THREADS", "1")],
};
const TESTS_WITHOUT_NEXTEST: Step =
    Step { name: "tests", arguments: &["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"], variables: &[] };

/// Runs all steps, up to the first that fails. The last line says how it ended.
pub(crate) fn run() -> ExitCode {
    let began = now();
    let root = root();
    let reports = skips::reports(&root);
    skips::forget(&reports);
    let ended = checks().and_then(|()| if has_nextest() { tests() } else { TESTS_WITHOUT_NEXTEST.run() });
    if let Err(why) = ended {
        say(&format!("ci: FAILED after {}: {why}", seconds(began)));
        return ExitCode::FAILURE;
    }
    for line in skips::lines(&reports) {
        say(&line);
    }
    say(&format!("ci: passed in {}", seconds(began)));
    ExitCode::SUCCESS
}

/// Everything but the tests.
fn checks() -> Result<(), String> {
    if page::has_npm() {
        say("==> page: npm ci, node build.mjs, gzip, tsc");
        page::check().map_err(|why| format!("page: {why}"))?;
    } else {
        say("note: the page is neither made nor checked: Node.js with npm is not installed");
    }
    [FORMATTING, LINTS, DOCUMENTATION, EXAMPLES].iter().try_for_each(Step::run)
}

/// All tests. Those of the page go on beside the others, and what they print is shown when both have ended.
fn tests() -> Result<(), String> {
    BUILDING.run()?;
    std::thread::scope(|scope| {
        let page = scope.spawn(|| PAGE_TESTS.run_unseen());
        let others = TESTS.run();
        let page = page.join().unwrap_or_else(|_| Err(PAGE_TESTS.failed("its thread ended early")));
        others.and(page)
    })
}

impl Step {
    fn run(&self) -> Result<(), String> {
        say(&format!("==> {}: {}", self.name, self.command_line()));
        let began = now();
        let status = self.command().status().map_err(|error| self.failed(&error.to_string()))?;
        say(&format!("    {}: {}", self.name, seconds(began)));
        if status.success() { Ok(()) } else { Err(self.failed(&status.to_string())) }
    }

    /// Runs it beside another, and shows what it printed in one piece.
    fn run_unseen(&self) -> Result<(), String> {
        say(&format!("==> {}, beside what follows: {}", self.name, self.command_line()));
        let began = now();
        let ran = self.command().output().map_err(|error| self.failed(&error.to_string()))?;
        say(&format!(
            "==> {}: {}\n{}{}",
            self.name,
            seconds(began),
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr)
        ));
        if ran.status.success() { Ok(()) } else { Err(self.failed(&ran.status.to_string())) }
    }

    fn command(&self) -> Command {
        let mut command = cargo();
        command
            .args(self.arguments)
            .envs(threads())
            .envs(self.variables.iter().copied())
            .current_dir(root())
            .stdin(Stdio::null());
        command
    }

    fn command_line(&self) -> String {
        format!("cargo {}", self.arguments.join(" "))
    }

    fn failed(&self, why: &str) -> String {
        format!("{}: `{}`: {why}", self.name, self.command_line())
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
