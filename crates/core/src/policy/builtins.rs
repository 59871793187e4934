//! Builtins of shells that may run, or let run, more than their words say.
//!
//! Shells read some arguments as expressions, in which the index of a variable may be a command (`test -v 'a[$(rm x)]'`).
//! Others change what later words stand for. *Not here:* what starts programs, which is `programs.rs` and `wrappers.rs`.

use super::shell::is_name;
use super::word::Word;
use super::wrappers::{is_shell, may_steer};

/// How the shell that runs a line reads what its builtins are given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    /// As `sh`, `dash` and `bash` do.
    #[default]
    Plain,
    /// As `ksh` and `zsh`, to which numbers are expressions.
    Expressions,
    /// In a way that is not known: what is seen in a line may not be all.
    Unread,
}

impl Dialect {
    /// That of the shell of this name or path.
    pub(super) fn of_shell(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        if is_shell(name) { Self::of(name) } else { Self::Unread }
    }

    /// That of a shell whose lines are read.
    pub(super) fn of(shell: &str) -> Self {
        if matches!(shell, "zsh" | "rzsh" | "ksh" | "mksh") { Self::Expressions } else { Self::Plain }
    }
}

/// Whether a variable of `zsh` is another form of one by which programs are found.
pub(super) fn is_tied(variable: &str) -> bool {
    matches!(variable, "path" | "fpath" | "cdpath" | "module_path")
}

/// Whether a builtin sets the variables that its words name.
pub(super) fn sets_variables(name: &str) -> bool {
    matches!(name, "export" | "declare" | "typeset" | "readonly" | "local" | "unset")
}

/// Whether a command with these words may do more than they say.
pub(super) fn may_do_more(name: &str, words: &[Word], dialect: Dialect) -> bool {
    match name {
        "test" | "[" => tests_a_variable(words) || dialect == Dialect::Expressions && compares_numbers(words),
        "printf" => prints_into_a_variable(words) || dialect == Dialect::Expressions && prints_numbers(words),
        // `-x` runs the rest.
        "jobs" => words.iter().any(|word| word.text.starts_with('-') && word.text.contains('x') || begins_freely(word)),
        "wait" => words.iter().any(|word| word.text.starts_with('-') && word.text.contains('p') || begins_freely(word)),
        "exit" | "return" | "break" | "continue" | "shift" => dialect == Dialect::Expressions && !words.iter().all(is_number),
        "set" => sets_options(words),
        "shopt" | "setopt" | "unsetopt" => !words.iter().all(|word| is_literal_option(word) || is_plain_setting(word)),
        _ => sets_variables(name) && changes_variables(words),
    }
}

/// Whether a word sets the variable whose name has this length, and no other.
pub(super) fn sets_one(word: &Word, name: usize) -> bool {
    !word.splits && word.varies_at.is_none_or(|at| at > name)
}

/// Whether the letter of an option of `set` changes nothing about which programs start, nor what they are given: none is `a`, with which
/// programs are given every variable that is set.
pub(super) fn is_plain_letter(letter: char) -> bool {
    "euxvfnbhmBCEHPT".contains(letter)
}

/// The same of the name of an option.
pub(super) fn is_plain_setting(word: &Word) -> bool {
    const PLAIN: &[&str] = &[
        "braceexpand",
        "dotglob",
        "errexit",
        "errtrace",
        "extglob",
        "failglob",
        "functrace",
        "globstar",
        "inherit_errexit",
        "lastpipe",
        "monitor",
        "nocaseglob",
        "noclobber",
        "noexec",
        "noglob",
        "nounset",
        "nullglob",
        "physical",
        "pipefail",
        "posix",
        "verbose",
        "xtrace",
    ];
    word.is_literal && PLAIN.contains(&word.text.as_str())
}

fn is_literal_option(word: &Word) -> bool {
    word.is_literal && word.text.starts_with('-')
}

/// Whether what is put in may be all of a word's beginning, so that it may be an option.
fn begins_freely(word: &Word) -> bool {
    word.splits || word.varies_at == Some(0)
}

fn is_number(word: &Word) -> bool {
    word.varies_at.is_none() && word.text.bytes().all(|b| b.is_ascii_digit())
}

/// `-v` reads the index of the variable. What becomes several words may have it in it.
fn tests_a_variable(words: &[Word]) -> bool {
    let may_be_operator = |word: &Word| match word.varies_at {
        None => matches!(word.text.as_str(), "-v" | "-R"),
        Some(_) => matches!(word.text.as_str(), "" | "-" | "v" | "-v" | "R" | "-R"),
    };
    let may_have_index = |word: &Word| word.varies_at.is_some() || word.text.contains('[');
    let pairs = words.iter().zip(words.iter().skip(1));
    words.iter().any(|word| word.splits || word.text.contains('[') && word.text.contains(['$', '`']))
        || pairs.into_iter().any(|(operator, name)| may_be_operator(operator) && may_have_index(name))
}

fn compares_numbers(words: &[Word]) -> bool {
    let is_comparison = |word: &Word| matches!(word.text.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-t");
    let pairs = words.iter().zip(words.iter().skip(1));
    words.iter().any(is_comparison) || pairs.into_iter().any(|(a, b)| a.varies_at.is_some() && b.varies_at.is_some())
}

fn prints_into_a_variable(words: &[Word]) -> bool {
    words.iter().any(|word| word.text.starts_with("-v"))
        || words.first().is_some_and(|word| begins_freely(word) || word.text.starts_with('-') && word.text != "--")
}

fn prints_numbers(words: &[Word]) -> bool {
    let format = words.iter().find(|word| word.text != "--");
    format.is_some_and(|word| {
        !word.is_literal || word.text.replace("%%", "").split('%').skip(1).any(|rest| !rest.starts_with('s'))
    })
}

fn sets_options(words: &[Word]) -> bool {
    let mut words = words.iter().peekable();
    while let Some(word) = words.next_if(|word| !word.is_literal || word.text.starts_with(['-', '+'])) {
        if !word.is_literal {
            return true;
        }
        if matches!(word.text.as_str(), "--" | "-") {
            break;
        }
        for letter in word.text.chars().skip(1) {
            let is_known = match letter {
                'o' => words.next().is_none_or(is_plain_setting),
                letter => is_plain_letter(letter),
            };
            if !is_known {
                return true;
            }
        }
    }
    // What comes after the options are parameters.
    false
}

fn changes_variables(words: &[Word]) -> bool {
    words.iter().any(|word| {
        if is_literal_option(word) || word.is_literal && word.text.starts_with('+') {
            // `-i` has values read as expressions, `-n` makes one name stand for another.
            return !word.text.chars().skip(1).all(|letter| "-aAfglprtuvx".contains(letter));
        }
        let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
        let is_plain = word.is_literal || word.text.contains('=') && word.varies_at.is_none_or(|at| at > name.len());
        let name = name.strip_suffix('+').unwrap_or(name);
        let has_index = value.contains('[') && value.contains(['$', '`']);
        !is_plain || !is_name(name) || has_index || may_steer(name, word.sets_number())
    })
}
