//! The programs that a command line starts, seen through what only starts others.

use super::builtins::{self, Dialect};
use super::outputs::{GIT_GLOBAL_VALUES, beside, may_have_more_options};
use super::shell::{self, Command};
use super::word::Word;
use super::wrappers::{
    Meaning, Wrapper, is_opaque, is_runner, is_shell, may_be_started, may_steer, may_steer_from_the_shell, wrapper,
};

/// How deep lines may lie in the arguments of shells.
const MAX_DEPTH: usize = 8;
/// How many commands may lie in one another, as what a wrapper or `find` starts. `find` has each of its own commands in the one before,
/// so that reading all of them would take twice as long with each.
const MAX_NESTING: usize = 24;
/// How many programs of a line are read.
const MAX_PROGRAMS: usize = 1_000;

/// Folders in which only the system puts programs: there a name stands for what it says.
const SYSTEM_FOLDERS: &[&str] = &["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"];

/// One program of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// As it is written.
    pub(super) word: String,
    /// Whether it only starts another of the list.
    pub(super) is_seen_through: bool,
}

/// All programs of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Programs {
    /// They; each as often as it stands there.
    pub(super) found: Vec<Program>,
    /// Whether there may be others.
    pub(super) has_unknown: bool,
    /// Whether it writes a file, or words that are not known could be an option by which it does. Rules that deny do not look at this.
    pub(super) writes: bool,
    /// That of the line which is read.
    dialect: Dialect,
    /// How many commands the one lies in that is read.
    nesting: usize,
    /// Whether there was more than is read: then nothing else is.
    is_given_up: bool,
}

impl Program {
    /// The name alone, where it lies in a folder of the system or is looked up by the shell.
    pub(super) fn trusted_name(&self) -> Option<&str> {
        let word = self.word.as_str();
        match SYSTEM_FOLDERS.iter().find_map(|folder| word.strip_prefix(folder)) {
            Some(name) if !name.contains('/') => Some(name),
            Some(_) => None,
            None => (!word.contains('/')).then_some(word),
        }
    }

    /// Whether it certainly lies in another folder than a program of this absolute path: it is written as an absolute path that has one
    /// form alone, and not both are in folders of the system, of which several may be one.
    pub(super) fn is_elsewhere_than(&self, path: &str) -> bool {
        let is_of_system = |path: &str| SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder));
        let has_one_form =
            self.word.starts_with('/') && self.word.split('/').skip(1).all(|part| !matches!(part, "" | "." | ".."));
        has_one_form && !(is_of_system(&self.word) && is_of_system(path))
    }

    /// The last part of its path.
    pub(super) fn base(&self) -> &str {
        base(&self.word)
    }
}

impl Programs {
    /// Those of a line of this shell.
    pub(super) fn of_line(line: &str, shell: Dialect) -> Self {
        let mut programs = Self { dialect: shell, ..Self::default() };
        programs.line(line, 0);
        programs
    }

    /// Those of a program with its arguments. A tool may take what looks like a line for one, whatever stands beside it.
    pub(super) fn of_arguments<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let words: Vec<&str> = words.into_iter().collect();
        let mut programs = Self::default();
        if let Some(line) = words.first().filter(|word| looks_like_a_line(word)) {
            programs.line(line, 0);
            programs.has_unknown = true;
        }
        let bytes: usize = words.iter().map(|word| word.len().saturating_add(1)).sum();
        let most = if bytes > shell::MAX_BYTES { 1 } else { words.len() };
        programs.has_unknown |= most < words.len();
        let words: Vec<Word> = words.into_iter().take(most).map(Word::literal).collect();
        programs.command(&words, Tail::Whole, 0);
        programs
    }

    /// Those of several lines. A tool may take words alone for a program with its arguments.
    pub(super) fn of_lines(lines: &[&str], shell: Dialect) -> Self {
        let is_words = lines.first().is_some_and(|first| !looks_like_a_line(first));
        let mut programs = if is_words { Self::of_arguments(lines.iter().copied()) } else { Self::default() };
        programs.dialect = shell;
        for line in lines {
            programs.line(line, 0);
        }
        programs
    }

    /// The programs that an allow rule must name.
    pub(super) fn counted(&self) -> impl Iterator<Item = &Program> {
        self.found.iter().filter(|program| !program.is_seen_through)
    }

    fn line(&mut self, line: &str, depth: usize) {
        let Some(read) = shell::read(line).filter(|_| depth < MAX_DEPTH) else {
            self.has_unknown = true;
            return;
        };
        self.has_unknown |= self.dialect == Dialect::Unread;
        self.writes |= read.writes;
        for Command { sets, words } in &read.commands {
            let is_tied = |name: &str| self.dialect == Dialect::Expressions && builtins::is_tied(name);
            // What is set by itself is the shell's own, and what is set before a program is that one's.
            let is_bad = if words.is_empty() { may_steer_from_the_shell } else { may_steer };
            let may_start_others = sets.iter().any(|set| is_bad(&set.name, set.is_number) || is_tied(&set.name));
            self.has_unknown |= may_start_others;
            self.command(words, Tail::Whole, depth);
        }
    }

    fn command(&mut self, words: &[Word], tail: Tail, depth: usize) {
        self.is_given_up |= self.nesting >= MAX_NESTING || self.found.len() >= MAX_PROGRAMS;
        if self.is_given_up {
            self.has_unknown = true;
            return;
        }
        self.nesting = self.nesting.saturating_add(1);
        self.one_command(words, tail, depth);
        self.nesting = self.nesting.saturating_sub(1);
    }

    fn one_command(&mut self, words: &[Word], tail: Tail, depth: usize) {
        let Some((first, rest)) = words.split_first() else {
            self.has_unknown |= tail == Tail::Follows;
            return;
        };
        if !first.is_literal || first.text.is_empty() || is_keyword(&first.text) {
            self.has_unknown = true;
            return;
        }
        let at = self.found.len();
        self.found.push(Program { word: first.text.clone(), is_seen_through: false });
        let name = base(&first.text);
        let is_seen_through = if let Some(wrapper) = wrapper(name) {
            self.wrapped(wrapper, name, rest, tail, depth) && wrapper.is_transparent
        } else if is_shell(name) {
            let around = std::mem::replace(&mut self.dialect, Dialect::of(name));
            let is_all_seen = self.shell(rest, depth);
            self.dialect = around;
            is_all_seen
        } else {
            // Read otherwise where it is not a word of the shell's own.
            self.has_unknown |= first.is_quoted && builtins::sets_variables(name) && rest.iter().any(|word| word.splits);
            match name {
                "eval" => self.eval(rest, tail, depth),
                "find" | "gfind" => self.find(rest, tail, depth),
                "git" => self.has_unknown |= git_may_start_others(rest, tail),
                _ => self.has_unknown |= is_opaque(name) || builtins::may_do_more(name, rest, self.dialect),
            }
            let follows = tail == Tail::Follows && is_runner(name);
            let started = may_be_started(name, rest);
            self.has_unknown |= follows && (started.is_some() || rest.iter().all(|word| word.text.starts_with('-')));
            self.behind(started.unwrap_or_default(), depth);
            let beside = beside(name, rest, tail == Tail::Follows);
            self.writes |= beside.writes;
            self.has_unknown |= beside.starts_others;
            false
        };
        // What lies elsewhere only has the wrapper's name.
        if let Some(program) = self.found.get_mut(at) {
            program.is_seen_through = is_seen_through && program.trusted_name().is_some();
        }
    }

    /// What may be started by a program that is named in its own right. Which of its words is a command is for that program to say.
    fn behind(&mut self, words: &[Word], depth: usize) {
        let mut is_first = true;
        for word in words {
            let line = match word.text.strip_prefix('-') {
                Some(option) => option.split_once('=').map_or("", |(_, value)| value),
                None => word.text.as_str(),
            };
            if !word.is_literal {
                self.has_unknown |= is_first || line.contains(' ');
            } else if !line.is_empty() {
                let (at, has_unknown, writes) = (self.found.len(), self.has_unknown, self.writes);
                self.line(line, depth + 1);
                self.found.iter_mut().skip(at).for_each(|program| program.is_seen_through = true);
                (self.has_unknown, self.writes) = (has_unknown || self.is_given_up, writes);
            }
            is_first &= word.text.starts_with('-');
        }
    }

    /// What a wrapper starts; whether it starts anything. Without a command one that changes who runs it, or where, starts a shell,
    /// which reads its input.
    fn wrapped(&mut self, wrapper: &Wrapper, name: &str, words: &[Word], tail: Tail, depth: usize) -> bool {
        let mut words = words.iter().peekable();
        let mut replaced = None;
        while let Some(word) = words.next_if(|word| word.text.starts_with('-') || !word.is_literal) {
            if !word.is_literal {
                self.has_unknown = true;
                return false;
            }
            if word.text == "--" {
                break;
            }
            let value = match wrapper.option(&word.text) {
                Meaning::Whole => None,
                Meaning::ValueFollows => match words.next() {
                    Some(value) if value.is_literal => Some(value.text.as_str()),
                    _ => {
                        self.has_unknown = true;
                        return false;
                    }
                },
                Meaning::Unknown => {
                    self.has_unknown |= !(name == "command" && matches!(word.text.as_str(), "-v" | "-V"));
                    return false;
                }
            };
            if name == "xargs" {
                let mark = replaced_by(&word.text, value);
                // Of several the last counts, or another.
                self.has_unknown |= mark.is_some() && replaced.as_ref().is_some_and(|before| mark.as_ref() != Some(before));
                replaced = mark.or(replaced);
            }
        }
        if wrapper.takes_variables {
            let sets = |word: &&Word| {
                word.text.split_once('=').filter(|(name, _)| shell::is_name(name)).map(|(name, _)| name.to_owned())
            };
            while let Some(variable) = words.peek().and_then(sets) {
                let is_harmless =
                    |word: &Word| builtins::sets_one(word, variable.len()) && !may_steer(&variable, word.sets_number());
                self.has_unknown |= !words.next().is_some_and(is_harmless);
            }
        }
        for _ in 0..wrapper.before {
            if words.next().is_some_and(|word| !word.is_literal) {
                self.has_unknown = true;
            }
        }
        let mut inner: Vec<Word> = words.cloned().collect();
        if let Some(mark) = &replaced {
            for word in &mut inner {
                word.may_be_options |= word.text.starts_with(mark) || word.text.starts_with('-') && word.text.contains(mark);
            }
        }
        let Some(first) = inner.first() else {
            self.has_unknown |= tail == Tail::Follows || !wrapper.is_transparent;
            return false;
        };
        self.has_unknown |= builtins::sets_variables(base(&first.text)) && inner.iter().any(|word| word.splits);
        // Options after variables, and variables whose names are none, are read otherwise by some.
        self.has_unknown |= first.text.contains('=') || first.text.starts_with('-');
        if let Some(mark) = replaced {
            let starts_others = |name: &str| starts_what_it_names(name) || matches!(name, "eval" | "find");
            let may_start_others = starts_others(base(&first.text)) || git_reads_more_than_names(&inner);
            let is_put_in =
                first.text.contains(&mark) || may_start_others && inner.iter().any(|word| word.text.contains(&mark));
            self.has_unknown |= is_put_in;
        }
        self.command(&inner, if name == "xargs" { Tail::Follows } else { tail }, depth);
        true
    }

    /// What a shell runs; whether that is all seen.
    fn shell(&mut self, words: &[Word], depth: usize) -> bool {
        let mut words = words.iter().peekable();
        let mut runs_line = false;
        while let Some(word) = words.next_if(|word| word.text.starts_with(['-', '+']) || !word.is_literal) {
            if !word.is_literal {
                self.has_unknown = true;
                return false;
            }
            if matches!(word.text.as_str(), "--" | "-") {
                break;
            }
            if let Some(long) = word.text.strip_prefix("--") {
                if !matches!(long, "login" | "noprofile" | "norc" | "posix" | "restricted" | "verbose" | "noediting") {
                    self.has_unknown = true;
                    return false;
                }
                continue;
            }
            for letter in word.text.chars().skip(1) {
                let is_known = match letter {
                    'c' => {
                        runs_line = true;
                        true
                    }
                    'o' | 'O' => words.next().is_some_and(builtins::is_plain_setting),
                    letter => builtins::is_plain_letter(letter) || matches!(letter, 'l' | 'p' | 'r' | 't'),
                };
                if !is_known {
                    self.has_unknown = true;
                    return false;
                }
            }
        }
        match (words.next(), runs_line) {
            (Some(line), true) if line.is_literal => {
                self.line(&line.text, depth + 1);
                true
            }
            // A script of that name.
            (Some(script), false) if script.is_literal => false,
            // What it reads from its input, or what is put after it.
            (Some(_) | None, _) => {
                self.has_unknown = true;
                false
            }
        }
    }

    fn eval(&mut self, words: &[Word], tail: Tail, depth: usize) {
        if tail == Tail::Follows || words.iter().any(|word| !word.is_literal) {
            self.has_unknown = true;
            return;
        }
        // The end of options, which `eval` has none of; a shell that takes it for a command finds none of that name.
        let words =
            if words.first().is_some_and(|word| word.text == "--") { words.get(1..).unwrap_or_default() } else { words };
        let line: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        self.line(&line.join(" "), depth + 1);
    }

    fn find(&mut self, words: &[Word], tail: Tail, depth: usize) {
        if tail == Tail::Follows || words.iter().any(|word| !word.is_literal) {
            self.has_unknown = true;
        }
        // Each of them, also where it seems to be what another test asks for (`-name -exec`), or within another's command.
        for (at, word) in words.iter().enumerate() {
            if self.is_given_up {
                return;
            }
            match word.text.as_str() {
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let inner = executed(words.get(at.saturating_add(1)..).unwrap_or_default());
                    let starts_others = git_reads_more_than_names(inner)
                        || inner
                            .first()
                            .is_some_and(|first| first.text.contains("{}") || starts_what_it_names(base(&first.text)));
                    self.has_unknown |= starts_others && inner.iter().any(|word| word.text.contains("{}"));
                    self.command(inner, Tail::Whole, depth);
                }
                "-delete" | "-fprint" | "-fprint0" | "-fprintf" | "-fls" => self.writes = true,
                _ => {}
            }
        }
    }
}

/// Whether a program starts one that its arguments name.
fn starts_what_it_names(name: &str) -> bool {
    wrapper(name).is_some() || is_shell(name) || is_runner(name)
}

/// The command that `find` executes, of the words behind the option that says so.
fn executed(words: &[Word]) -> &[Word] {
    let is_end = |(at, word): (usize, &Word)| match word.text.as_str() {
        ";" => true,
        "+" => at.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|before| before.text == "{}"),
        _ => false,
    };
    let end = words.iter().enumerate().position(is_end).unwrap_or(words.len());
    words.get(..end).unwrap_or_default()
}

/// Whether words come after those that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    Whole,
    Follows,
}

/// What `xargs` replaces in its command, where this option says so, also behind letters without a value.
fn replaced_by(option: &str, value: Option<&str>) -> Option<String> {
    const DEFAULT: &str = "{}";
    if let Some(long) = option.strip_prefix("--") {
        let (name, mark) = long.split_once('=').unwrap_or((long, ""));
        return (name == "replace").then(|| if mark.is_empty() { DEFAULT } else { mark }.to_owned());
    }
    let mut letters = option.strip_prefix('-')?.chars();
    loop {
        match letters.next()? {
            '0' | 'r' | 't' | 'p' | 'x' | 'o' => {}
            'I' | 'J' | 'R' => {
                let attached = letters.as_str();
                return if attached.is_empty() { value.map(str::to_owned) } else { Some(attached.to_owned()) };
            }
            'i' if letters.as_str().is_empty() => return Some(DEFAULT.to_owned()),
            'i' => return Some(letters.as_str().to_owned()),
            _ => return None,
        }
    }
}

/// Commands of `git` for which what comes after them are names of files and revisions.
const GIT_WITH_NAMES: &[&str] =
    &["add", "blame", "checkout", "diff", "log", "mv", "restore", "rm", "show", "stash", "status", "switch"];

/// Commands of `git` with options that start others: there a word that is not known may be one.
const GIT_WITH_STARTING_OPTIONS: &[&str] = &[
    "archive",
    "bisect",
    "clone",
    "fetch",
    "fetch-pack",
    "grep",
    "init",
    "init-db",
    "ls-remote",
    "pull",
    "push",
    "rebase",
    "remote",
    "send-pack",
    "submodule",
];

/// Whether these words are a `git` for which more words may mean more than names.
fn git_reads_more_than_names(words: &[Word]) -> bool {
    let mut words = words.iter();
    words.next().is_some_and(|first| base(&first.text) == "git")
        && words.next().is_none_or(|command| !command.is_literal || !GIT_WITH_NAMES.contains(&command.text.as_str()))
}

/// Options of `git` before its command without a value, by their texts behind the first dash.
const GIT_GLOBAL_FLAGS: &[&str] = &[
    "p",
    "P",
    "v",
    "h",
    "-paginate",
    "-no-pager",
    "-bare",
    "-no-replace-objects",
    "-no-lazy-fetch",
    "-no-optional-locks",
    "-no-advice",
    "-literal-pathspecs",
    "-glob-pathspecs",
    "-noglob-pathspecs",
    "-icase-pathspecs",
    "-version",
    "-help",
    "-exec-path",
    "-html-path",
    "-man-path",
    "-info-path",
];

/// Whether an invocation of `git` runs what its configuration or its arguments say.
fn git_may_start_others(words: &[Word], tail: Tail) -> bool {
    const HARMLESS: &[&str] =
        &["user.", "color.", "advice.", "init.defaultbranch", "core.quotepath", "core.autocrlf", "log.", "diff.renames"];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(option) = word.text.strip_prefix('-').filter(|_| word.is_literal) else {
            let is_open = tail == Tail::Follows && !GIT_WITH_NAMES.contains(&word.text.as_str())
                || GIT_WITH_STARTING_OPTIONS.contains(&word.text.as_str()) && may_have_more_options(words.as_slice(), false);
            return !word.is_literal || is_open || git_command_starts_others(&word.text, words.as_slice());
        };
        let takes_value = GIT_GLOBAL_VALUES.contains(&word.text.as_str());
        let value = if takes_value { words.next() } else { None };
        if value.is_some_and(|value| value.splits) {
            return true;
        }
        let setting = match option {
            "c" => value.map_or("", |word| word.text.as_str()),
            _ if takes_value => continue,
            _ if GIT_GLOBAL_FLAGS.contains(&option) => continue,
            _ if word.text.split_once('=').is_some_and(|(name, _)| GIT_GLOBAL_VALUES.contains(&name)) => continue,
            // Nobody can tell whether the next word is its value, or the command.
            _ => return true,
        };
        let setting = setting.to_ascii_lowercase();
        if !HARMLESS.iter().any(|start| setting.starts_with(start)) {
            return true;
        }
    }
    tail == Tail::Follows
}

/// The same of one of its commands with its arguments. Long options may be written as short as they are told apart.
fn git_command_starts_others(command: &str, rest: &[Word]) -> bool {
    let begins = |starts: &[&str]| rest.iter().any(|word| starts.iter().any(|start| word.may_begin_with(start)));
    let has_letter = |letters: &[char]| {
        let is_cluster = |word: &&Word| word.text.starts_with('-') && !word.text.starts_with("--");
        rest.iter().filter(is_cluster).any(|word| word.text.contains(letters) || word.varies_at.is_some())
    };
    let says = |subcommands: &[&str]| rest.iter().any(|word| subcommands.iter().any(|name| word.may_be(name)));
    if begins(&["ext::", "--exec", "--upload-pack", "--receive-pack"]) {
        return true;
    }
    match command {
        "submodule" | "submodule--helper" => says(&["foreach"]),
        // The second and the third show what is looked at with the program that is named.
        "bisect" => says(&["run", "view", "visualize"]),
        "rebase" => begins(&["--ex"]) || has_letter(&['x']),
        "clone" => begins(&["--u", "--c", "--te"]) || has_letter(&['u', 'c']),
        // What a template brings are hooks.
        "init" | "init-db" => begins(&["--t"]),
        "fetch" | "pull" | "ls-remote" | "fetch-pack" | "archive" | "remote" => begins(&["--u", "--e"]),
        "push" | "send-pack" => begins(&["--rec", "--e"]),
        "grep" => begins(&["--op"]) || has_letter(&['O']),
        "filter-branch" | "difftool" | "mergetool" | "config" | "daemon" | "instaweb" | "send-email" | "merge-index"
        | "hook" | "shell" | "remote-ext" | "web--browse" | "svn" | "p4" | "cvsimport" | "for-each-repo" => true,
        _ => false,
    }
}

fn looks_like_a_line(word: &str) -> bool {
    word.contains(|c: char| c.is_whitespace() || ";|&<>()$`".contains(c))
}

/// Words with which a shell's own constructions begin: behind a wrapper they are read by nobody here.
fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "{" | "}"
            | "!"
            | "[["
            | "if"
            | "then"
            | "else"
            | "elif"
            | "fi"
            | "for"
            | "while"
            | "until"
            | "do"
            | "done"
            | "case"
            | "esac"
            | "function"
    )
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
