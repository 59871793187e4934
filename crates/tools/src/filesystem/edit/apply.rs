//! What edits make of a text: all of them, or a reason why none. Pure.

use std::fmt;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

/// A replacement in a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Edit {
    /// What is replaced, as it stands in the file.
    pub old_text: String,
    /// What stands there afterwards.
    pub new_text: String,
    /// Whether every occurrence is replaced.
    pub all: Option<bool>,
}

/// What was done by one edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The lines, from 1, in which the replaced parts began, in the text as that edit found it.
    pub lines: Vec<usize>,
    /// How the place was found.
    pub found: Found,
}

/// How the place of an edit was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It stands there as it was written.
    Exactly,
    /// It stands there with other line ends.
    ByLineEnds,
    /// Its lines stand there with other white space at their beginnings and ends.
    ByWhiteSpace,
}

/// Why an edit cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditRefusal {
    /// `old_text` is empty.
    Empty,
    /// Nothing would change.
    Same,
    /// It is not there; where it would be with other words between, that line.
    Missing {
        /// The line, from 1, of the text that looks most like its first line.
        closest: Option<(usize, String)>,
    },
    /// It is there more than once, in these lines, from 1.
    Several(Vec<usize>),
}

/// The most lines that a message names.
const MOST_LINES_NAMED: usize = 5;

/// Lines as a list that stays short.
pub(super) fn named(lines: &[usize]) -> String {
    let mut names: Vec<String> = lines.iter().take(MOST_LINES_NAMED).map(ToString::to_string).collect();
    if lines.len() > MOST_LINES_NAMED {
        names.push("…".to_owned());
    }
    names.join(", ")
}

impl fmt::Display for EditRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("old_text is empty; use write for a new file"),
            Self::Same => f.write_str("old_text and new_text are the same: nothing would change"),
            Self::Missing { closest: None } => f.write_str("old_text is not there; read the file and copy it exactly"),
            Self::Missing { closest: Some((line, text)) } => {
                write!(
                    f,
                    "old_text is not there; line {line} looks like its beginning: `{text}`; read the file and copy it exactly"
                )
            }
            Self::Several(lines) => write!(
                f,
                "old_text occurs {} times, in lines {}; take in more of what surrounds the one that is meant, or set all",
                lines.len(),
                named(lines)
            ),
        }
    }
}

/// The text after all edits, each of which finds it as the one before left it.
///
/// # Errors
/// The first edit that cannot be made, by its number from 0, and why.
pub fn apply_edits(text: &str, edits: &[Edit]) -> Result<(String, Vec<Replaced>), (usize, EditRefusal)> {
    let mut now = text.to_owned();
    let mut done = Vec::with_capacity(edits.len());
    for (number, edit) in edits.iter().enumerate() {
        let (next, replaced) = apply(&now, edit).map_err(|refusal| (number, refusal))?;
        now = next;
        done.push(replaced);
    }
    Ok((now, done))
}

fn apply(text: &str, edit: &Edit) -> Result<(String, Replaced), EditRefusal> {
    let Edit { old_text: old, new_text: new, all } = edit;
    if old.is_empty() {
        return Err(EditRefusal::Empty);
    }
    if old == new {
        return Err(EditRefusal::Same);
    }
    let all = all.unwrap_or(false);
    let has_returns = text.contains("\r\n");
    let ends = |part: &str| {
        let plain = part.replace("\r\n", "\n");
        if has_returns { plain.replace('\n', "\r\n") } else { plain }
    };
    let exactly = occurrences(text, old, all);
    if !exactly.is_empty() {
        let has_returns_alone = has_returns && !text.replace("\r\n", "").contains('\n');
        let new = if has_returns_alone { ends(new) } else { new.clone() };
        return replaced(text, exactly, Found::Exactly, all, |_| new.clone());
    }
    if has_returns || old.contains("\r\n") {
        let wanted = ends(old);
        let found = occurrences(text, &wanted, all);
        if !found.is_empty() && ends(new) != wanted {
            return replaced(text, found, Found::ByLineEnds, all, |_| ends(new));
        }
    }
    let found = by_white_space(text, old, all);
    if found.is_empty() {
        return Err(EditRefusal::Missing { closest: closest(text, old) });
    }
    replaced(text, found, Found::ByWhiteSpace, all, |part| indented_like(part, old, new))
}

/// Where a text stands. Where all are replaced, places do not overlap; where one is meant, each that it could be counts.
fn occurrences(text: &str, wanted: &str, all: bool) -> Vec<Range<usize>> {
    let finder = memchr::memmem::Finder::new(wanted);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = text.as_bytes().get(from..).and_then(|rest| finder.find(rest)).map(|at| from + at) {
        places.push(at..at + wanted.len());
        from = at + if all { wanted.len() } else { 1 };
    }
    places
}

fn replaced(
    text: &str,
    places: Vec<Range<usize>>,
    found: Found,
    all: bool,
    new: impl Fn(&str) -> String,
) -> Result<(String, Replaced), EditRefusal> {
    let lines = lines_of(text, &places);
    if places.len() > 1 && !all {
        return Err(EditRefusal::Several(lines));
    }
    let mut changed = String::with_capacity(text.len());
    let mut end = 0;
    for place in places {
        changed.push_str(text.get(end..place.start).unwrap_or_default());
        changed.push_str(&new(text.get(place.clone()).unwrap_or_default()));
        end = place.end;
    }
    changed.push_str(text.get(end..).unwrap_or_default());
    if changed == text { Err(EditRefusal::Same) } else { Ok((changed, Replaced { lines, found })) }
}

/// The lines, from 1, in which the places begin.
fn lines_of(text: &str, places: &[Range<usize>]) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    let lines = places.iter().map(|place| {
        line += memchr::memchr_iter(b'\n', text.get(from..place.start).unwrap_or_default().as_bytes()).count();
        from = place.start;
        line
    });
    lines.collect()
}

/// Where whole lines stand that are those of `old` but for white space at their beginnings and ends. Where all are replaced, places
/// do not overlap.
fn by_white_space(text: &str, old: &str, all: bool) -> Vec<Range<usize>> {
    let wanted: Vec<&str> = old.lines().map(str::trim).collect();
    // Lines without words say nothing about a place.
    if wanted.iter().all(|line| line.is_empty()) {
        return Vec::new();
    }
    let mut lines: Vec<(Range<usize>, &str)> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.trim_end_matches(['\n', '\r']).len();
        lines.push((start..end, line.trim()));
        start += line.len();
    }
    let takes_end = old.ends_with('\n');
    let mut places: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some(window) = lines.get(from..from + wanted.len()) {
        let is_there = window.iter().map(|(_, line)| *line).eq(wanted.iter().copied());
        let there = window.iter().filter_map(|(place, _)| text.get(place.clone()));
        if is_there && Shift::between(old.lines(), there).is_some() {
            let start = window.first().map_or(0, |(place, _)| place.start);
            let end = window.last().map_or(start, |(place, _)| place.end);
            let after = lines.get(from + wanted.len()).map_or(text.len(), |(place, _)| place.start);
            places.push(start..if takes_end { after } else { end });
            from += if all { wanted.len() } else { 1 };
        } else {
            from += 1;
        }
    }
    places
}

/// How the indentation of a file's lines differs from that of the same lines as they were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shift {
    /// How many columns a tab stands for.
    tab: usize,
    /// How many columns the file's lines begin further to the right.
    right: isize,
    /// Whether the file's lines begin with tabs.
    has_tabs: bool,
}

impl Shift {
    /// Of lines in the same order. `None` where they do not differ all alike: what means one block here would be another there.
    fn between<'t>(written: impl Iterator<Item = &'t str>, there: impl Iterator<Item = &'t str>) -> Option<Self> {
        const TABS: [usize; 4] = [4, 2, 8, 3];
        let pairs: Vec<(&str, &str)> = written
            .zip(there)
            .filter(|(line, _)| !line.trim().is_empty())
            .map(|(line, there)| (indent(line), indent(there)))
            .collect();
        let has_tabs = pairs.iter().any(|(_, there)| there.contains('\t'));
        let shift = |tab: usize| {
            let by = |(written, there): &(&str, &str)| {
                columns(there, tab).checked_sub_unsigned(columns(written, tab).unsigned_abs())
            };
            let right = by(pairs.first()?)?;
            pairs.iter().all(|pair| by(pair) == Some(right)).then_some(Self { tab, right, has_tabs })
        };
        TABS.into_iter().find_map(shift)
    }

    /// The indentation that a line has there.
    fn indentation(self, written: &str) -> String {
        let columns = columns(written, self.tab).saturating_add(self.right);
        let columns = usize::try_from(columns).unwrap_or(0);
        let (tabs, spaces) = if self.has_tabs { (columns / self.tab, columns % self.tab) } else { (0, columns) };
        "\t".repeat(tabs) + &" ".repeat(spaces)
    }
}

/// The white space at the beginning of a line.
fn indent(line: &str) -> &str {
    line.get(..line.len() - line.trim_start().len()).unwrap_or_default()
}

fn columns(indent: &str, tab: usize) -> isize {
    let columns: usize = indent.chars().map(|letter| if letter == '\t' { tab } else { 1 }).sum();
    isize::try_from(columns).unwrap_or(isize::MAX)
}

/// `new` with the indentation of what it replaces, and line ends as they are there.
fn indented_like(part: &str, old: &str, new: &str) -> String {
    let shift = Shift::between(old.lines(), part.lines());
    let has_returns = part.contains("\r\n");
    let mut text = String::with_capacity(new.len());
    for line in new.split_inclusive('\n') {
        let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body.strip_suffix('\r').unwrap_or(body), "\n"));
        match shift.filter(|_| !body.trim().is_empty()) {
            Some(shift) => {
                text.push_str(&shift.indentation(indent(body)));
                text.push_str(body.trim_start());
            }
            None => text.push_str(body),
        }
        text.push_str(if has_returns && !end.is_empty() { "\r\n" } else { end });
    }
    text
}

/// The line that looks most like the first line of `old` with words.
fn closest(text: &str, old: &str) -> Option<(usize, String)> {
    const MOST_LINES: usize = 20_000;
    const MOST_CHARACTERS: usize = 200;
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty())?;
    if wanted.len() > MOST_CHARACTERS {
        return None;
    }
    let lines = text.lines().take(MOST_LINES).zip(1_usize..);
    let near = lines.map(|(line, number)| (line.trim(), number)).filter(|(line, _)| {
        !line.is_empty() && line.len() <= MOST_CHARACTERS && line.len().abs_diff(wanted.len()) <= wanted.len() / 2
    });
    let best = near.map(|(line, number)| (strsim::jaro_winkler(line, wanted), line, number)).fold(
        None::<(f64, &str, usize)>,
        |best, next| if best.is_none_or(|best| next.0 > best.0) { Some(next) } else { best },
    )?;
    (best.0 > 0.85).then(|| (best.2, best.1.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{Edit, EditRefusal, Found, apply_edits};

    fn edit(old: &str, new: &str) -> Edit {
        Edit { old_text: old.to_owned(), new_text: new.to_owned(), all: None }
    }

    fn one(text: &str, old: &str, new: &str) -> Result<(String, Found), EditRefusal> {
        apply_edits(text, &[edit(old, new)]).map(|(text, done)| (text, done[0].found)).map_err(|(_, refusal)| refusal)
    }

    #[test]
    fn what_stands_there_exactly_is_replaced_as_it_is() {
        assert_eq!(one("a b c", "b", "x"), Ok(("a x c".to_owned(), Found::Exactly)));
        assert_eq!(one("a b b", "b", "x"), Err(EditRefusal::Several(vec![1, 1])));
        assert_eq!(one("a", "", "x"), Err(EditRefusal::Empty));
        assert_eq!(one("a", "a", "a"), Err(EditRefusal::Same));
        assert_eq!(one("a", "b", "x"), Err(EditRefusal::Missing { closest: None }));
    }

    #[test]
    fn places_that_overlap_are_several() {
        let closing = "<div>\n</div>\n</div>\n</div>\n";
        assert_eq!(one(closing, "</div>\n</div>\n", "</div>\n"), Err(EditRefusal::Several(vec![2, 3])));
        assert_eq!(one("a\r\n}\r\n}\r\n}\r\n", "}\n}\n", "}\n"), Err(EditRefusal::Several(vec![2, 3])));
        assert_eq!(one("  }\n  }\n  }\n", "}\n}\n", "}\n"), Err(EditRefusal::Several(vec![1, 2])));
        assert_eq!(one("ééé", "éé", "é"), Err(EditRefusal::Several(vec![1, 1])));
        let all = Edit { all: Some(true), ..edit("aa", "b") };
        assert_eq!(apply_edits("aaaaa", &[all]).unwrap().0, "bba");
    }

    #[test]
    fn line_ends_are_those_of_the_file() {
        assert_eq!(one("a\r\nb\r\nc\r\n", "b", "b\nnew"), Ok(("a\r\nb\r\nnew\r\nc\r\n".to_owned(), Found::Exactly)));
        assert_eq!(one("a\r\nb\nc\n", "b", "b\nnew"), Ok(("a\r\nb\nnew\nc\n".to_owned(), Found::Exactly)));
        assert_eq!(one("a\r\nb\r\nc\r\n", "a\nb", "x\ny"), Ok(("x\r\ny\r\nc\r\n".to_owned(), Found::ByLineEnds)));
        assert_eq!(one("a\nb\nc\n", "a\r\nb", "x\r\ny"), Ok(("x\ny\nc\n".to_owned(), Found::ByLineEnds)));
    }

    #[test]
    fn other_indentation_is_found_and_kept() {
        let text = "fn a() {\n        if b {\n            c();\n        }\n}\n";
        let old = "if b {\n    c();\n}";
        let new = "if b {\n    d();\n\n    e();\n}";
        let expected = "fn a() {\n        if b {\n            d();\n\n            e();\n        }\n}\n";
        assert_eq!(one(text, old, new), Ok((expected.to_owned(), Found::ByWhiteSpace)));
        assert_eq!(one("\ta;  \n\tb;\n", "    a;\n    b;\n", "    c;\n"), Ok(("\tc;\n".to_owned(), Found::ByWhiteSpace)));
        let twice = "  a\n  b\n\n    a\n    b\n";
        assert_eq!(one(twice, "a\nb", "c"), Err(EditRefusal::Several(vec![1, 4])));
    }

    #[test]
    fn blocks_stay_blocks() {
        let block = "if x:\n    a\nelse:\n    b\n";
        assert!(matches!(one(block, "a\nelse:\nb", "c\nelse:\nd"), Err(EditRefusal::Missing { .. })));
        let inner = "  if x:\n      a\n  else:\n      b\n";
        let changed = "  if x:\n      a\n  else:\n      c\n";
        assert_eq!(
            one(inner, "if x:\n    a\nelse:\n    b", "if x:\n    a\nelse:\n    c"),
            Ok((changed.to_owned(), Found::ByWhiteSpace))
        );
        // Tabs are the file's, however many spaces were written for one.
        let tabs = "\tif a:\n\t\tb()\n";
        for unit in ["    ", "  "] {
            let old = format!("{unit}if a:\n{unit}{unit}b()");
            let new = format!("{old}\n{unit}{unit}c()");
            let changed = "\tif a:\n\t\tb()\n\t\tc()\n";
            assert_eq!(one(tabs, &old, &new), Ok((changed.to_owned(), Found::ByWhiteSpace)), "{unit:?}");
        }
        let spaces = "    if a:\n        b()\n";
        let changed = "    if a:\n        b()\n        c()\n";
        assert_eq!(one(spaces, "\tif a:\n\t\tb()", "\tif a:\n\t\tb()\n\t\tc()"), Ok((changed.to_owned(), Found::ByWhiteSpace)));
    }

    #[test]
    fn a_part_of_a_line_is_not_found_by_its_white_space() {
        assert_eq!(one("let a  =  1;", "a = 1", "b"), Err(EditRefusal::Missing { closest: None }));
        let near = one("fn start(a: u8) {}\n", "fn start(a: u16) {}", "x");
        assert_eq!(near, Err(EditRefusal::Missing { closest: Some((1, "fn start(a: u8) {}".to_owned())) }));
    }

    #[test]
    fn several_edits_follow_one_another_or_none_is_made() {
        let all = Edit { all: Some(true), ..edit("x", "y") };
        let (text, done) = apply_edits("a b\nx x\n", &[edit("a", "x"), all]).unwrap();
        assert_eq!((text.as_str(), done[1].lines.as_slice()), ("y b\ny y\n", [1, 2, 2].as_slice()));
        let refused = apply_edits("a b", &[edit("a", "x"), edit("c", "d")]);
        assert_eq!(refused, Err((1, EditRefusal::Missing { closest: None })));
    }
}
