//! Which tools a list of globs lets in. Not in it: which tools there are.

use globset::{GlobBuilder, GlobMatcher};

/// What a glob begins with that keeps out what it fits.
const KEEPS_OUT: char = '!';
/// The glob that every tool fits.
const EVERY_TOOL: &str = "*";

/// A list of globs over qualified tool names, ready for use. The last glob that fits a name decides; one with a `!` before it keeps
/// out. So `["*", "!web__fetch"]` is all but one tool, also of sources that are not there at the moment. A list whose globs all keep
/// out begins with all tools: `["!web__fetch"]` is the same. An empty list is no tool.
#[derive(Debug, Clone)]
pub struct ChosenTools {
    /// Each with whether it lets in, the last first.
    globs: Vec<(Fits, bool)>,
}

/// What a glob fits. Most are names, since people choose tool by tool, and lists are read for each call: a pattern takes
/// hundreds of times as long to make ready.
#[derive(Debug, Clone)]
enum Fits {
    Name(String),
    Pattern(GlobMatcher),
}

impl Fits {
    /// `None` where it is no glob.
    fn of(glob: &str) -> Option<Self> {
        if glob.contains(['*', '?', '[', ']', '{', '}', '\\']) {
            matcher(glob).map(Self::Pattern)
        } else {
            Some(Self::Name(glob.to_owned()))
        }
    }

    fn is(&self, name: &str) -> bool {
        match self {
            Self::Name(known) => known == name,
            Self::Pattern(pattern) => pattern.is_match(name),
        }
    }
}

impl ChosenTools {
    /// Those of these globs. What is no glob fits nothing.
    pub fn of(globs: &[String]) -> Self {
        let whole = begins_with(globs).into_iter().chain(globs.iter().map(String::as_str));
        let built = whole.rev().filter_map(|glob| Some((Fits::of(of_glob(glob))?, lets_in(glob))));
        Self { globs: built.collect() }
    }

    /// Whether a tool of this name is among them.
    pub fn has(&self, name: &str) -> bool {
        self.globs.iter().find(|(glob, _)| glob.is(name)).is_some_and(|(_, lets_in)| *lets_in)
    }
}

/// The list with the tool of this name in it, whatever there is now.
pub fn with(name: &str, globs: Vec<String>) -> Vec<String> {
    let mut globs = spelled_out(globs);
    globs.retain(|glob| lets_in(glob) || of_glob(glob) != name);
    if !ChosenTools::of(&globs).has(name) {
        globs.push(name.to_owned());
    }
    globs
}

/// The list without the tool of this name; all others stay as they are, whatever there is now.
pub fn without(name: &str, globs: Vec<String>) -> Vec<String> {
    let mut globs = spelled_out(globs);
    globs.retain(|glob| glob != name);
    // What is left when the last glob that let in goes lets in nothing, and would read as all tools but some.
    if !globs.iter().any(|glob| lets_in(glob)) {
        return Vec::new();
    }
    if ChosenTools::of(&globs).has(name) {
        globs.push(format!("{KEEPS_OUT}{name}"));
    }
    globs
}

/// The glob that stands before a list without being written: that of every tool, where the list only keeps out.
fn begins_with(globs: &[String]) -> Option<&'static str> {
    (!globs.is_empty() && !globs.iter().any(|glob| lets_in(glob))).then_some(EVERY_TOOL)
}

/// The list with the glob that it begins with, and without what no new list may hold: that fits nothing, and may only have been stored
/// before it was refused.
fn spelled_out(globs: Vec<String>) -> Vec<String> {
    let first = begins_with(&globs).map(str::to_owned);
    let fitting = globs.into_iter().filter(|glob| !of_glob(glob).is_empty() && matcher(of_glob(glob)).is_some());
    let globs: Vec<_> = first.into_iter().chain(fitting).collect();
    // What is kept out of nothing would read as kept out of all.
    if globs.iter().any(|glob| lets_in(glob)) { globs } else { Vec::new() }
}

/// Those globs of a list by which it lets in, also the one that is not written.
pub(crate) fn letting_in(globs: &[String]) -> impl Iterator<Item = &str> {
    begins_with(globs).into_iter().chain(globs.iter().map(String::as_str).filter(|glob| lets_in(glob)))
}

/// Whether what this glob fits is let in by it.
pub(crate) fn lets_in(glob: &str) -> bool {
    !glob.starts_with(KEEPS_OUT)
}

/// The glob without what says that it keeps out.
pub(crate) fn of_glob(glob: &str) -> &str {
    glob.strip_prefix(KEEPS_OUT).unwrap_or(glob)
}

/// A glob over names, where it is one.
pub(crate) fn matcher(glob: &str) -> Option<GlobMatcher> {
    GlobBuilder::new(glob).build().ok().map(|glob| glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(globs: &str) -> Vec<String> {
        globs.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_last_glob_that_fits_decides() {
        let of = |globs: &str| {
            let chosen = ChosenTools::of(&list(globs));
            ["lab__look", "lab__touch", "web__fetch"].into_iter().filter(|name| chosen.has(name)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(""), "");
        assert_eq!(of("lab__*"), "lab__look lab__touch");
        assert_eq!(of("* !lab__touch"), "lab__look web__fetch");
        assert_eq!(of("* !lab__* lab__look"), "lab__look web__fetch");
        assert_eq!(of("!lab__touch *"), "lab__look lab__touch web__fetch");
        assert_eq!(of("!lab__touch"), "lab__look web__fetch");
        assert_eq!(of("!lab__* !web__fetch"), "");
        assert_eq!(of("!lab__touch gone__*"), "");
        assert_eq!(of("lab__[lt]o* !{lab__touch} lab__touc]"), "lab__look");
        assert_eq!(of("lab lab__ look lab__loo? Lab__touch"), "lab__look");
    }

    #[test]
    fn a_tool_goes_and_comes_alone() {
        let less = |globs: &str| without("lab__touch", list(globs)).join(" ");
        assert_eq!(less("*"), "* !lab__touch");
        assert_eq!(less("* !lab__touch"), "* !lab__touch");
        assert_eq!(less("lab__touch gone__* lab__look"), "gone__* lab__look");
        assert_eq!(less("lab__touch lab__* web__*"), "lab__* web__* !lab__touch");
        assert_eq!(less("* !lab__* lab__touch"), "* !lab__*");
        assert_eq!(less("web__fetch"), "web__fetch");
        assert_eq!(less(""), "");
        assert_eq!(less("!web__fetch"), "* !web__fetch !lab__touch");
        assert_eq!(less("lab__touch !web__fetch"), "");
        let more = |globs: &str| with("lab__touch", list(globs)).join(" ");
        assert_eq!(more(""), "lab__touch");
        assert_eq!(more("* !lab__touch"), "*");
        assert_eq!(more("* !lab__*"), "* !lab__* lab__touch");
        assert_eq!(more("lab__*"), "lab__*");
        assert_eq!(more("!lab__touch"), "*");
        assert_eq!(more("!lab__touch !web__fetch"), "* !web__fetch");
    }

    #[test]
    fn what_fits_nothing_goes_with_the_next_change_and_makes_no_list_of_another_kind() {
        let stored = || ["", "!", "lab__[", "!web__fetch"].map(str::to_owned).to_vec();
        assert!(!ChosenTools::of(&stored()).has("lab__look"));
        assert_eq!(with("lab__touch", stored()), ["lab__touch"]);
        assert_eq!(without("lab__touch", stored()), Vec::<String>::new());
    }
}
