//! What passing tests have to tell: which were skipped, and why, and how much was tried.
//!
//! A test that needs something which this machine lacks prints one line `skipped: …` and passes. One that tries all that can
//! be tried prints one line `worlds: …` with the number. Passing tests are quiet, so the lines are taken from the report that
//! nextest writes and shown together at the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const SKIPPED: &str = "skipped: ";
const WORLDS: &str = "worlds: ";
const HINT: &str = "hint: scripts/install-test-servers installs the servers that tests talk to; scripts/start-test-docker cargo \
                    xtask ci runs them with a Docker engine";

/// Where nextest's profiles `ci` and `page` write their reports: `.config/nextest.toml` names the folder, from the workspace's root.
pub(crate) fn reports(root: &Path) -> [PathBuf; 2] {
    ["ci", "page"].map(|profile| root.join("target/nextest").join(profile).join("junit.xml"))
}

/// Removes older reports, so that they are not taken for the coming ones.
pub(crate) fn forget(reports: &[PathBuf]) {
    for report in reports {
        drop(std::fs::remove_file(report));
    }
}

/// What to tell people about skipped tests, and what was tried; nothing where there is nothing to tell.
pub(crate) fn lines(reports: &[PathBuf]) -> Vec<String> {
    let texts: Vec<String> = reports.iter().filter_map(|report| std::fs::read_to_string(report).ok()).collect();
    if texts.is_empty() {
        return vec![
            "note: tests whose servers are not installed were skipped; cargo-nextest lists them here".to_owned(),
            HINT.to_owned(),
        ];
    }
    told(&texts.join("\n"))
}

fn told(report: &str) -> Vec<String> {
    let reasons = marked(report, SKIPPED);
    let mut lines: Vec<String> =
        reasons.iter().map(|(reason, tests)| format!("skipped by {tests} {}: {reason}", tests_word(*tests))).collect();
    if !lines.is_empty() {
        lines.push(HINT.to_owned());
    }
    lines.extend(marked(report, WORLDS).into_keys().map(|told| format!("{WORLDS}{told}")));
    lines
}

fn tests_word(count: usize) -> &'static str {
    if count == 1 { "test" } else { "tests" }
}

/// What stands behind this mark in a report, each text with the number of times that it is there.
fn marked(report: &str, mark: &str) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    for line in report.lines() {
        let Some((before, text)) = line.split_once(mark) else { continue };
        // The line begins with the mark, after at most the element that holds the output.
        if before.is_empty() || before.ends_with('>') {
            let text = text.split("</").next().unwrap_or(text);
            *told.entry(unescaped(text.trim_end())).or_insert(0) += 1;
        }
    }
    told
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
        assert_eq!(marked(report, SKIPPED), BTreeMap::from(expected));
    }

    #[test]
    fn what_was_tried_is_told_after_what_was_skipped() {
        let report = "<system-out>running 1 test\nworlds: pairs of crashes: 4711\ntest ok</system-out>\n\
                      <system-out>skipped: npm is not here\nother worlds: none</system-out>\n\
                      <system-out>worlds: a &amp; b: 5</system-out>";
        let expected = ["skipped by 1 test: npm is not here", HINT, "worlds: a & b: 5", "worlds: pairs of crashes: 4711"];
        assert_eq!(told(report), expected);
    }
}
