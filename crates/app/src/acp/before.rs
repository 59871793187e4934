//! What a file held before it was written, from the changes that the tool tells afterwards. Pure.

/// The text that `new` replaced, from the unified diff of the two; nothing where that does not tell all that changed.
///
/// A diff has neither the line ends of what was removed, which are taken to be those of `new`, nor the spaces at its own end.
pub(super) fn text_before(new: &str, diff: &str) -> Option<String> {
    let line_end = if new.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines = new.split_inclusive('\n');
    let mut taken = 0_usize;
    let mut old = String::new();
    let mut changes = diff.lines().peekable();
    while let Some(head) = changes.next() {
        let first = first_line(head)?;
        while taken < first {
            old.push_str(lines.next()?);
            taken += 1;
        }
        let mut was_removed = false;
        while let Some(change) = changes.next_if(|line| !line.starts_with("@@ ")) {
            let (kind, text) = change.split_at_checked(1)?;
            match kind {
                "-" => old.extend([text, line_end]),
                " " | "+" => {
                    let line = lines.next().filter(|line| line.trim_end() == text.trim_end())?;
                    taken += 1;
                    if kind == " " {
                        old.push_str(line);
                    }
                }
                // The line before it has no end.
                "\\" if was_removed => old.truncate(old.len().saturating_sub(line_end.len())),
                "\\" => {}
                _ => return None,
            }
            was_removed = kind == "-";
        }
    }
    old.extend(lines);
    Some(old)
}

/// How many lines of the new text come before a hunk.
fn first_line(head: &str) -> Option<usize> {
    let (_, place) = head.strip_prefix("@@ -")?.strip_suffix(" @@")?.split_once(" +")?;
    let (line, lines) = place.split_once(',').unwrap_or((place, "1"));
    let line: usize = line.parse().ok()?;
    // Where a hunk has no line of the new text, its place is the line before it.
    if lines == "0" { Some(line) } else { line.checked_sub(1) }
}

#[cfg(test)]
mod tests {
    use super::text_before;

    #[test]
    fn what_was_there_is_what_is_there_without_the_changes() {
        let lines = |range: std::ops::RangeInclusive<u32>| range.map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
        let old = lines(1..=40);
        let new = old.replace("\n2\n", "\ntwo\n").replace("\n39\n", "\nend\nof\n");
        let far_apart = "@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n@@ -36,5 +36,6 @@\n 36\n 37\n 38\n-39\n+end\n+of\n 40";
        let rows = [
            (new.as_str(), far_apart, Some(old.as_str())),
            ("hi", "@@ -1 +1 @@\n-hello file\n+hi\n\\ no line end", Some("hello file\n")),
            ("b\n", "@@ -1 +1 @@\n-a\n\\ no line end\n+b", Some("a")),
            ("", "@@ -1,2 +0,0 @@\n-a\n-b", Some("a\nb\n")),
            ("a\r\nc\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c", Some("a\r\nb\r\n")),
            // Its end, a line of nothing but a space, is not told.
            ("a\n\n", "@@ -1,2 +1,2 @@\n-b\n+a", Some("b\n\n")),
        ];
        for (new, diff, old) in rows {
            assert_eq!(text_before(new, diff).as_deref(), old, "{diff}");
        }
    }

    #[test]
    fn a_diff_that_does_not_tell_all_or_is_of_another_text_tells_nothing() {
        for diff in [
            "[60000 lines became 2: too many to show]",
            "@@ -1 +1 @@\n-a\n+b\n[the rest of the changes is not shown]",
            "@@ -1 +1 @@\n-a\n+c",
            "@@ -9 +9 @@\n-a\n+b",
            "@@ -1 +0 @@\n-a",
        ] {
            assert_eq!(text_before("b\n", diff), None, "{diff}");
        }
    }
}
