//! Globs as rules take them: `*` stays within one part of a path, `**` does not.

use globset::GlobBuilder;

use crate::Glob;

/// Anything, over any number of `/`, in the words of a library whose `**` says that of whole parts of a path alone.
const ANYTHING: &str = "{*,*/**/*}";

/// What finds texts that match.
///
/// # Errors
/// What is wrong with it.
pub(super) fn matcher(glob: &str) -> Result<Glob, String> {
    Glob::new(GlobBuilder::new(&crossing(glob)).literal_separator(true).backslash_escape(true))
}

/// The first letter that a text must have to match this glob, or a branch of it, and that is in no tool's name. A `/` is in those of what
/// servers ask for.
pub(super) fn strange_in_names(glob: &str) -> Option<char> {
    let is_strange = |letter: &char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '/'));
    let mut rest = glob;
    while let Some(first) = rest.chars().next() {
        let after = rest.get(token_length(rest)..).unwrap_or_default();
        // What is escaped was not written by hand.
        let is_letter = !matches!(first, '*' | '?' | '[' | '{' | ',' | '}' | '\\');
        if is_letter && is_strange(&first) {
            return Some(first);
        }
        rest = after;
    }
    None
}

/// The glob with each `**` that is only a piece of a part written so that it crosses `/` too: `a**b` would otherwise be `a*b`, and a
/// rule that denies would pass over what it names.
fn crossing(glob: &str) -> String {
    let mut crossing = String::with_capacity(glob.len());
    let (mut rest, mut before, mut depth) = (glob, None, 0_usize);
    while let Some(first) = rest.chars().next() {
        let (token, after) = rest.split_at_checked(token_length(rest)).unwrap_or((rest, ""));
        let is_edge = |edge: Option<char>, of_branch: [char; 2]| match edge {
            None | Some('/') => true,
            Some(edge) => depth > 0 && of_branch.contains(&edge),
        };
        let is_whole_part = token == "**" && is_edge(before, ['{', ',']) && is_edge(after.chars().next(), ['}', ',']);
        if token.starts_with("**") && !is_whole_part {
            crossing.push_str(ANYTHING);
        } else {
            crossing.push_str(token);
        }
        match token {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        // What is escaped, or in a class, is no edge.
        before = Some(if token.len() == first.len_utf8() { first } else { '*' });
        rest = after;
    }
    crossing
}

/// How many bytes of a glob that is not empty belong together: what is escaped, a class, all stars of a row, or one letter.
fn token_length(glob: &str) -> usize {
    let after = |found: Option<(usize, char)>| found.map_or(glob.len(), |(at, letter)| at + letter.len_utf8());
    let mut letters = glob.char_indices();
    match letters.next() {
        Some((_, '\\')) => after(letters.next()),
        Some((_, '[')) => {
            // A bracket that comes first in a class is one of its letters.
            if let Some((_, '!' | '^')) = letters.next() {
                letters.next();
            }
            after(letters.find(|(_, letter)| *letter == ']'))
        }
        Some((_, '*')) => letters.find(|(_, letter)| *letter != '*').map_or(glob.len(), |(at, _)| at),
        first => after(first),
    }
}
