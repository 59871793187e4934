//! What a change changed, as a unified diff. Pure.

use std::time::Duration;

use similar::{Algorithm, TextDiff};
use turnwright_core::counted;

/// The most lines of the part between the first and the last change that are compared.
const MOST_LINES: usize = 50_000;
/// The most bytes of a diff that are shown.
const MOST_BYTES: usize = 16 * 1024;
/// How long the smallest diff is looked for; after that a larger one does.
const LONGEST: Duration = Duration::from_millis(100);
/// The lines around a change.
const AROUND: usize = 3;

/// The changes from `old` to `new` with the lines around them, empty where there are none.
pub(super) fn diff(old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (start, old_end, new_end) = changed_part(old, new);
    let (before, old_part, new_part) = (part(old, 0, start), part(old, start, old_end), part(new, start, new_end));
    if lines_in(old_part) + lines_in(new_part) > MOST_LINES {
        return format!("[{} became {}: too many to show]", counted(lines_in(old_part), "line"), lines_in(new_part));
    }
    let first_line = lines_in(before);
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).timeout(LONGEST).diff_lines(old_part, new_part);
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(AROUND).iter_hunks() {
        let (mut old_lines, mut new_lines) = (0, 0);
        let (mut old_start, mut new_start) = (usize::MAX, usize::MAX);
        let mut body = String::new();
        for change in hunk.iter_changes() {
            old_start = old_start.min(change.old_index().unwrap_or(usize::MAX));
            new_start = new_start.min(change.new_index().unwrap_or(usize::MAX));
            old_lines += usize::from(change.old_index().is_some());
            new_lines += usize::from(change.new_index().is_some());
            body.extend([change.tag().to_string().as_str(), change.value().trim_end_matches(['\n', '\r'])]);
            body.push_str(if change.missing_newline() { "\n\\ no line end\n" } else { "\n" });
        }
        let at = |start: usize, lines: usize| {
            let line = if start == usize::MAX { first_line } else { first_line + start + 1 };
            if lines == 1 { line.to_string() } else { format!("{line},{lines}") }
        };
        text.extend(["@@ -", &at(old_start, old_lines), " +", &at(new_start, new_lines), " @@\n", &body]);
        if text.len() > MOST_BYTES {
            let cut = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MOST_BYTES).last().unwrap_or(0);
            text.truncate(cut);
            text.push_str("\n[the rest of the changes is not shown]\n");
            break;
        }
    }
    text
}

/// Where the changed lines begin, and where they end in both, with the lines around them.
fn changed_part(old: &str, new: &str) -> (usize, usize, usize) {
    let (old, new) = (old.as_bytes(), new.as_bytes());
    let same = same_start(old, new);
    let (old_rest, new_rest) = (old.get(same..).unwrap_or_default(), new.get(same..).unwrap_or_default());
    let same_end = same_end(old_rest, new_rest);
    let before = old.get(..same).unwrap_or_default();
    let start = memchr::memrchr_iter(b'\n', before).nth(AROUND).map_or(0, |at| at + 1);
    let end = |bytes: &[u8]| {
        let from = bytes.len() - same_end;
        memchr::memchr_iter(b'\n', bytes.get(from..).unwrap_or_default()).nth(AROUND).map_or(bytes.len(), |at| from + at + 1)
    };
    (start, end(old), end(new))
}

/// How many bytes both begin with.
fn same_start(old: &[u8], new: &[u8]) -> usize {
    const BLOCK: usize = 4096;
    let blocks = old.chunks_exact(BLOCK).zip(new.chunks_exact(BLOCK)).take_while(|(old, new)| old == new).count() * BLOCK;
    let rest = old.iter().skip(blocks).zip(new.iter().skip(blocks)).take_while(|(old, new)| old == new).count();
    blocks + rest
}

/// How many bytes both end with.
fn same_end(old: &[u8], new: &[u8]) -> usize {
    const BLOCK: usize = 4096;
    let blocks = old.rchunks_exact(BLOCK).zip(new.rchunks_exact(BLOCK)).take_while(|(old, new)| old == new).count() * BLOCK;
    let rest = old.iter().rev().skip(blocks).zip(new.iter().rev().skip(blocks)).take_while(|(old, new)| old == new).count();
    blocks + rest
}

/// The text between two places that are line starts or ends of the text.
fn part(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or_default()
}

fn lines_in(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count() + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

#[cfg(test)]
mod tests {
    use super::diff;

    #[test]
    fn a_change_is_shown_with_three_lines_around_it_and_its_place_in_the_file() {
        let old = (1..=20).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat();
        let new = old.replace("line 10\n", "ten\nand more\n");
        let expected = "@@ -7,7 +7,8 @@\n line 7\n line 8\n line 9\n-line 10\n+ten\n+and more\n line 11\n line 12\n line 13\n";
        assert_eq!(diff(&old, &new), expected);
    }

    #[test]
    fn changes_far_apart_are_shown_apart() {
        let old = (1..=40).map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
        let new = old.replace("\n2\n", "\ntwo\n").replace("\n39\n", "\nend\n");
        let expected = "@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n@@ -36,5 +36,5 @@\n 36\n 37\n 38\n-39\n+end\n 40\n";
        assert_eq!(diff(&old, &new), expected);
    }

    #[test]
    fn new_and_emptied_and_equal_texts() {
        assert_eq!(diff("", "a\nb"), "@@ -0,0 +1,2 @@\n+a\n+b\n\\ no line end\n");
        assert_eq!(diff("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
        assert_eq!(diff("a", "a"), "");
    }

    #[test]
    fn a_change_within_a_character_is_shown_in_whole_lines() {
        assert_eq!(diff("é\n", "è\n"), "@@ -1 +1 @@\n-é\n+è\n");
    }
}
