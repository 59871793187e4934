//! Which tools a list of globs lets in. Not in it: which tools there are.

use globset::{GlobBuilder, GlobMatcher};

/// What a glob begins with that keeps out what it fits.
const KEEPS_OUT: char = '!';

/// A list of globs over qualified tool names, ready for use. The last glob that fits a name decides; one with a `!` before it keeps
/// out. So `["*", "!web__fetch"]` is all but one tool, also of sources that are not there at the moment.
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
        let built = globs.iter().rev().filter_map(|glob| Some((Fits::of(of_glob(glob))?, lets_in(glob))));
        Self { globs: built.collect() }
    }

    /// Whether a tool of this name is among them.
    pub fn has(&self, name: &str) -> bool {
        self.globs.iter().find(|(glob, _)| glob.is(name)).is_some_and(|(_, lets_in)| *lets_in)
    }
}

/// The list with the tool of this name in it, whatever there is now.
pub fn with(name: &str, globs: Vec<String>) -> Vec<String> {
    let mut globs: Vec<_> = globs.into_iter().filter(|glob| lets_in(glob) || of_glob(glob) != name).collect();
    if !ChosenTools::of(&globs).has(name) {
        globs.push(name.to_owned());
    }
    globs
}

/// The list without the tool of this name; all others stay as they are, whatever there is now.
pub fn without(name: &str, mut globs: Vec<String>) -> Vec<String> {
    globs.retain(|glob| glob != name);
    if ChosenTools::of(&globs).has(name) {
        globs.push(format!("{KEEPS_OUT}{name}"));
    }
    globs
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
        assert_eq!(of("!lab__touch"), "");
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
        let more = |globs: &str| with("lab__touch", list(globs)).join(" ");
        assert_eq!(more(""), "lab__touch");
        assert_eq!(more("* !lab__touch"), "*");
        assert_eq!(more("* !lab__*"), "* !lab__* lab__touch");
        assert_eq!(more("lab__*"), "lab__*");
    }
}
