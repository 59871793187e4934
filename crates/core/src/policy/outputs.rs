//! Programs that are taken for ones that only look, and the arguments by which they write files or start others.
//!
//! A rule that allows a program says which programs start. What is known here is where one that prints what it finds is told to
//! put it into a file instead, as by `>`, or to start what its arguments name. *Not here:* programs whose work is writing (`cp`,
//! `rm`, `tee`), for which their name says it, and what the scripts of `sed`, `awk` and their like do.

use super::word::Word;

/// What a program may do besides what its name says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// It writes a file, or may: words that are not known could be such an option.
    pub(super) writes: bool,
    /// It starts programs that its arguments name.
    pub(super) starts_others: bool,
}

/// The options of a program that matter here. Long ones may be written as short as they are told apart.
#[derive(Debug)]
struct Options {
    names: &'static [&'static str],
    /// Letters, and long names, of options that write.
    writes: (&'static str, &'static [&'static str]),
    /// Those that start others.
    starts: (&'static str, &'static [&'static str]),
    /// Letters of other options with a value: what comes after one in its word is no option.
    values: &'static str,
    /// Other long names that one of the above begins with.
    whole: &'static [&'static str],
    /// Whether its first word may be letters without a dash.
    is_dashless: bool,
    /// Whether a second operand is what it writes.
    writes_second: bool,
    /// Pieces of words, in small letters, that start others wherever they stand, and those that write.
    pieces: (&'static [&'static str], &'static [&'static str]),
}

/// What begins another program among the settings of OpenSSH.
const SSH_SETTINGS: &[&str] = &["command", "exec", "include", "provider", "xauthlocation"];

const NONE: Options = Options {
    names: &[],
    writes: ("", &[]),
    starts: ("", &[]),
    values: "",
    whole: &[],
    is_dashless: false,
    writes_second: false,
    pieces: (&[], &[]),
};

static PROGRAMS: &[Options] = &[
    Options {
        names: &["sort", "gsort"],
        writes: ("o", &["output"]),
        starts: ("", &["compress-program"]),
        values: "kStT",
        ..NONE
    },
    Options { names: &["shuf", "gshuf"], writes: ("o", &["output"]), values: "ein", ..NONE },
    Options { names: &["iconv"], writes: ("o", &["output"]), values: "ft", ..NONE },
    // It reads on behind letters with a value.
    Options { names: &["tree"], writes: ("oR", &[]), ..NONE },
    Options { names: &["uniq", "guniq"], writes_second: true, values: "fsw", ..NONE },
    Options { names: &["xxd"], writes_second: true, values: "cglos", ..NONE },
    Options { names: &["sed", "gsed"], writes: ("iI", &["in-place"]), values: "efl", ..NONE },
    Options {
        names: &["awk", "gawk"],
        writes: ("iodp", &["include", "pretty-print", "profile", "dump-variables"]),
        values: "vFfeEL",
        ..NONE
    },
    Options { names: &["yq"], writes: ("is", &["inplace", "in-place", "split-exp"]), ..NONE },
    Options { names: &["file"], writes: ("C", &["compile"]), values: "mfFPe", ..NONE },
    Options {
        names: &["curl"],
        writes: (
            "oOJDcK",
            &[
                "output",
                "output-dir",
                "remote-name",
                "remote-name-all",
                "remote-header-name",
                "dump-header",
                "cookie-jar",
                "config",
                "trace",
                "trace-ascii",
                "stderr",
                "etag-save",
                "hsts",
                "alt-svc",
                "libcurl",
                "ssl-sessions",
            ],
        ),
        pieces: (&[], &["--expand-", "%output{", "write-out=@", "-w@"]),
        values: "AbCdeEFhHmPQrtTuUwxXyYz",
        whole: &["cookie", "remote-time"],
        ..NONE
    },
    Options { names: &["rg"], starts: ("", &["pre", "hostname-bin"]), ..NONE },
    Options { names: &["fd", "fdfind"], starts: ("xX", &["exec", "exec-batch"]), values: "edEtgSjco", ..NONE },
    Options { names: &["ag", "ack"], starts: ("", &["pager"]), ..NONE },
    Options { names: &["bat", "batcat"], starts: ("", &["pager"]), ..NONE },
    Options { names: &["man"], starts: ("PH", &["pager", "html", "preprocessor"]), values: "CLmMsSe", ..NONE },
    Options { names: &["less"], writes: ("oO", &["log-file", "LOG-FILE"]), values: "bhjkpPtTxyz", ..NONE },
    Options {
        names: &["tar", "gtar", "bsdtar"],
        starts: (
            "IF",
            &[
                "use-compress-program",
                "to-command",
                "checkpoint-action",
                "info-script",
                "new-volume-script",
                "rsh-command",
                "rmt-command",
            ],
        ),
        values: "fbCgHKLNTVX",
        is_dashless: true,
        ..NONE
    },
    Options { names: &["sdiff", "gsdiff"], writes: ("o", &["output"]), starts: ("", &["diff-program"]), values: "Iw", ..NONE },
    Options { names: &["diff3", "gdiff3"], starts: ("", &["diff-program"]), values: "L", ..NONE },
    Options { names: &["split", "gsplit"], starts: ("", &["filter"]), values: "abClnt", ..NONE },
    Options { names: &["cpio", "gcpio"], starts: ("", &["rsh-command"]), values: "CDEFHIMOR", ..NONE },
    // A test is made by a program that `-TT` names, also behind other letters.
    Options { names: &["zip"], starts: ("T", &["test", "unzip-command"]), values: "bnPtXi", ..NONE },
    Options {
        names: &["ssh", "slogin"],
        writes: ("E", &[]),
        starts: ("FI", &[]),
        values: "BbcDeiJLlmOoPpQRSWw",
        pieces: (SSH_SETTINGS, &[]),
        ..NONE
    },
    Options { names: &["scp"], starts: ("FSD", &[]), values: "cilJoPX", pieces: (SSH_SETTINGS, &[]), ..NONE },
    Options { names: &["sftp"], starts: ("FSDb", &[]), values: "BciJloPRsX", pieces: (SSH_SETTINGS, &[]), ..NONE },
    Options { names: &["rsync"], starts: ("e", &["rsh", "rsync-path"]), values: "fTBM", ..NONE },
];

/// Options of `git` before its command whose value is the next word, or behind `=`.
pub(super) const GIT_GLOBAL_VALUES: &[&str] =
    &["-c", "-C", "--git-dir", "--work-tree", "--namespace", "--attr-source", "--shallow-file", "--super-prefix"];

/// Commands of `git` that take an output file, or whose options start others: there a word that is not known may be one.
const GIT_WITH_SUCH_OPTIONS: &[&str] = &[
    "annotate",
    "archive",
    "bisect",
    "blame",
    "clone",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "fetch-pack",
    "format-patch",
    "grep",
    "log",
    "ls-remote",
    "pull",
    "push",
    "range-diff",
    "rebase",
    "reflog",
    "rev-list",
    "send-pack",
    "shortlog",
    "show",
    "stash",
    "submodule",
    "whatchanged",
];

/// What a program may do by its arguments; whether more words than these `follow` it.
pub(super) fn beside(name: &str, words: &[Word], follow: bool) -> Beside {
    if name == "git" {
        return Beside { writes: git_writes(words, follow), starts_others: false };
    }
    PROGRAMS
        .iter()
        .find(|options| options.names.contains(&name))
        .map_or_else(Beside::default, |options| options.of(words, follow))
}

impl Options {
    fn of(&self, words: &[Word], follow: bool) -> Beside {
        let says = |(letters, long): (&str, &[&str])| {
            words.iter().enumerate().any(|(at, word)| {
                let has_letter = |cluster: &str| {
                    let mut read = cluster.chars().take_while(|letter| !self.values.contains(*letter));
                    read.any(|letter| letters.contains(letter))
                };
                match (word.text.strip_prefix("--"), word.text.strip_prefix('-')) {
                    (Some(name), _) => is_one_of(name, long, self.whole),
                    (None, Some(cluster)) => has_letter(cluster),
                    // There each letter is an option, and the values of all come after them.
                    (None, None) => {
                        let varies = word.varies_at.is_some() && !letters.is_empty();
                        self.is_dashless && at == 0 && (varies || word.text.contains(|letter| letters.contains(letter)))
                    }
                }
            })
        };
        let end = words.iter().position(|word| word.text == "--").unwrap_or(words.len());
        let is_operand = |(at, word): &(usize, &Word)| *at > end || word.text == "-" || !word.text.starts_with('-');
        let operands = words.iter().enumerate().filter(is_operand).count();
        let writes_second = self.writes_second && (operands > 1 || follow);
        // What is put into an option, or its value, may complete such a piece.
        let is_of_option = |at: usize| {
            [Some(at), at.checked_sub(1)]
                .into_iter()
                .flatten()
                .filter_map(|at| words.get(at))
                .any(|word| word.text.starts_with('-'))
        };
        let holds = |pieces: &[&str]| {
            words.iter().enumerate().any(|(at, word)| {
                let text = word.text.to_ascii_lowercase();
                pieces.iter().any(|piece| text.contains(piece))
                    || !pieces.is_empty() && word.varies_at.is_some() && is_of_option(at)
            })
        };
        let (starting, writing) = self.pieces;
        let may_have_more = may_have_more_options(words, follow);
        let has_starting = self.starts != NONE.starts || !starting.is_empty();
        Beside {
            writes: says(self.writes) || writes_second || holds(writing) || may_have_more,
            starts_others: says(self.starts) || holds(starting) || has_starting && may_have_more,
        }
    }
}

/// Whether a long option, perhaps with a value and shortened, is one of these.
fn is_one_of(option: &str, long: &[&str], whole: &[&str]) -> bool {
    let name = option.split('=').next().unwrap_or_default();
    !name.is_empty() && !whole.contains(&name) && long.iter().any(|long| long.starts_with(name))
}

/// Whether an invocation of `git` puts what it finds into a file.
fn git_writes(words: &[Word], follow: bool) -> bool {
    let mut rest = words.iter();
    let mut command = None;
    while let Some(word) = rest.next() {
        match word.text.as_str() {
            option if GIT_GLOBAL_VALUES.contains(&option) => {
                rest.next();
            }
            option if option.starts_with('-') => {}
            name => {
                command = Some(name);
                break;
            }
        }
    }
    let Some(command) = command else { return false };
    let rest = rest.as_slice();
    let takes_letter = matches!(command, "archive" | "format-patch");
    let says = rest.iter().any(|word| match word.text.strip_prefix("--") {
        Some(name) => name.starts_with("ou") && is_one_of(name, &["output", "output-directory"], &[]),
        None => takes_letter && word.text.starts_with("-o"),
    });
    let makes_file = match command {
        "bundle" => rest.iter().any(|word| word.may_be("create")),
        "fast-export" | "fast-import" => rest.iter().any(|word| word.may_begin_with("--export")),
        _ => false,
    };
    says || makes_file || GIT_WITH_SUCH_OPTIONS.contains(&command) && may_have_more_options(rest, follow)
}

/// Whether something that is put in, or put after these words, could be an option.
pub(super) fn may_have_more_options(words: &[Word], follow: bool) -> bool {
    let is_open = |word: &Word| word.may_be_options || !word.is_literal && word.text.starts_with('-');
    // After an option the two dashes may be its value.
    let ends =
        |at: usize| at.checked_sub(1).and_then(|before| words.get(before)).is_none_or(|word| !word.text.starts_with('-'));
    let end = words.iter().enumerate().position(|(at, word)| word.text == "--" && word.is_literal && ends(at));
    let before = end.map_or(words, |end| words.get(..end).unwrap_or_default());
    before.iter().any(is_open) || follow && end.is_none()
}
