//! Which tests were skipped, and why.
//!
//! A test that needs something which this machine lacks prints one line `skipped: …` and passes. Passing tests are quiet,
//! so the lines are taken from the report that nextest writes and shown together at the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const MARK: &str = "skipped: ";
const HINT: &str = "hint: scripts/install-test-servers installs the servers that tests talk to; scripts/start-test-docker cargo \
                    xtask ci runs them with a Docker engine";

/// Where nextest's profile `ci` writes its report: `.config/nextest.toml` names the folder, from the workspace's root.
pub(crate) fn report_path(root: &Path) -> PathBuf {
    root.join("target/nextest/ci/junit.xml")
}

/// Removes an older report, so that it is not taken for the coming one.
pub(crate) fn forget(report: &Path) {
    drop(std::fs::remove_file(report));
}

/// What to tell people about skipped tests; nothing where none was.
pub(crate) fn lines(report: &Path) -> Vec<String> {
    let Ok(text) = std::fs::read_to_string(report) else {
        return vec![
            "note: tests whose servers are not installed were skipped; cargo-nextest lists them here".to_owned(),
            HINT.to_owned(),
        ];
    };
    let reasons = reasons(&text);
    let mut lines: Vec<String> =
        reasons.iter().map(|(reason, tests)| format!("skipped by {tests} {}: {reason}", tests_word(*tests))).collect();
    if !lines.is_empty() {
        lines.push(HINT.to_owned());
    }
    lines
}

fn tests_word(count: usize) -> &'static str {
    if count == 1 { "test" } else { "tests" }
}

/// The reasons in a report, each with the number of tests that gave it.
fn reasons(report: &str) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    for line in report.lines() {
        let Some((before, reason)) = line.split_once(MARK) else { continue };
        // The line begins with the mark, after at most the element that holds the output.
        if before.is_empty() || before.ends_with('>') {
            let reason = reason.split("</").next().unwrap_or(reason);
            *reasons.entry(unescaped(reason.trim_end())).or_insert(0) += 1;
        }
    }
    reasons
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_reasons_are_counted_and_other_output_is_left_alone() {
        let report = "<system-out>running 1 test\nskipped: npm is not here\nthis was not skipped: really\n</system-out>\n\
                      <system-err>skipped: npm is not here</system-err>\n\
                      <system-err>skipped: &quot;a&quot; &amp; b</system-err>";
        let expected = [("npm is not here".to_owned(), 2), ("\"a\" & b".to_owned(), 1)];
        assert_eq!(reasons(report), BTreeMap::from(expected));
    }
}
