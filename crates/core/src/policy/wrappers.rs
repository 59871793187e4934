//! Programs that start the program which their arguments name.

use super::word::Word;

/// How a wrapper's own arguments are told from the command that it starts.
#[derive(Debug)]
pub(super) struct Wrapper {
    pub(super) names: &'static [&'static str],
    /// Whether the command that it starts is all there is to it. One that changes who runs it counts besides.
    pub(super) is_transparent: bool,
    /// Letters of options without a value.
    flags: &'static str,
    /// Letters of options with one.
    values: &'static str,
    /// Letters whose value, if any, is in the same word.
    attached: &'static str,
    long_flags: &'static [&'static str],
    long_values: &'static [&'static str],
    /// How many words come before the command.
    pub(super) before: usize,
    /// Whether `NAME=VALUE` may come before the command.
    pub(super) takes_variables: bool,
}

const PLAIN: Wrapper = Wrapper {
    names: &[],
    is_transparent: true,
    flags: "",
    values: "",
    attached: "",
    long_flags: &[],
    long_values: &[],
    before: 0,
    takes_variables: false,
};

static WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &["sudo"],
        is_transparent: false,
        // No `-i` and `-s`: with these a shell reads what it is given once more, or its input.
        flags: "AbEHknPSN",
        values: "CghprRTtuUD",
        long_flags: &["preserve-env", "set-home", "non-interactive", "stdin", "background", "askpass", "reset-timestamp"],
        long_values: &["user", "group", "host", "prompt", "chdir", "chroot", "close-from", "role", "type", "command-timeout"],
        takes_variables: true,
        ..PLAIN
    },
    Wrapper { names: &["doas"], is_transparent: false, flags: "Ln", values: "uC", ..PLAIN },
    Wrapper {
        names: &["env"],
        flags: "i0v",
        values: "uC",
        long_flags: &["ignore-environment", "null", "debug"],
        long_values: &["unset", "chdir"],
        takes_variables: true,
        ..PLAIN
    },
    Wrapper { names: &["nice"], flags: "0123456789", values: "n", long_values: &["adjustment"], ..PLAIN },
    Wrapper {
        names: &["timeout", "gtimeout"],
        flags: "vfp",
        values: "ks",
        long_flags: &["preserve-status", "foreground", "verbose"],
        long_values: &["kill-after", "signal"],
        before: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["xargs"],
        flags: "0rtpxo",
        values: "InPsdEaLJRS",
        attached: "iel",
        // The value of the last three, if any, is in the same word.
        long_flags: &["null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty", "replace", "eof", "max-lines"],
        long_values: &["max-args", "max-procs", "max-chars", "delimiter", "arg-file"],
        ..PLAIN
    },
    Wrapper { names: &["nohup"], ..PLAIN },
    Wrapper { names: &["time"], flags: "p", ..PLAIN },
    Wrapper { names: &["setsid"], flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..PLAIN },
    Wrapper { names: &["stdbuf"], values: "ioe", long_values: &["input", "output", "error"], ..PLAIN },
    Wrapper {
        names: &["ionice"],
        flags: "t",
        values: "cn",
        long_flags: &["ignore"],
        long_values: &["class", "classdata"],
        ..PLAIN
    },
    Wrapper { names: &["chrt"], flags: "bfiord", before: 1, ..PLAIN },
    Wrapper { names: &["taskset"], flags: "ac", long_flags: &["all-tasks", "cpu-list"], before: 1, ..PLAIN },
    Wrapper {
        names: &["chroot"],
        is_transparent: false,
        long_values: &["userspec", "groups"],
        long_flags: &["skip-chdir"],
        before: 1,
        ..PLAIN
    },
    Wrapper { names: &["command"], flags: "p", ..PLAIN },
    Wrapper { names: &["builtin"], ..PLAIN },
    Wrapper { names: &["exec"], flags: "cl", values: "a", ..PLAIN },
];

/// The wrapper of this name.
pub(super) fn wrapper(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name))
}

/// Programs that run others in ways that are not followed here.
const OPAQUE: &[&str] = &[
    ".",
    "-",
    "alias",
    "at",
    "batch",
    "bind",
    "busybox",
    "bwrap",
    "chpst",
    "compgen",
    "complete",
    "compopt",
    "coproc",
    "cpulimit",
    "crontab",
    "csh",
    "cmd",
    "dash.exe",
    "dumb-init",
    "enable",
    "entr",
    "expect",
    "fakeroot",
    "fc",
    "firejail",
    "fish",
    "float",
    "flock",
    "getopts",
    "gosu",
    "hash",
    "integer",
    "let",
    "ltrace",
    "mapfile",
    "nameref",
    "nsenter",
    "nu",
    "numactl",
    "parallel",
    "pkexec",
    "powershell",
    "prlimit",
    "proot",
    "pwsh",
    "read",
    "readarray",
    "rlwrap",
    "run-parts",
    "runuser",
    "sandbox-exec",
    "screen",
    "script",
    "setpriv",
    "source",
    "start-stop-daemon",
    "strace",
    "su",
    "systemd-run",
    "tcsh",
    "tini",
    "tmux",
    "toybox",
    "trap",
    "unalias",
    "unshare",
    "watch",
    "zmodload",
    "autoload",
    "emulate",
    "noglob",
    "nocorrect",
    "doexec",
    "ld.so",
    "chronic",
    "ifne",
    "errno",
    "vipe",
    "sg",
    "newgrp",
    "caffeinate",
    "unbuffer",
    "valgrind",
    "gdb",
    "lldb",
    "perf",
    "torsocks",
    "proxychains",
    "proxychains4",
    "faketime",
    "aa-exec",
    "arch",
    "capsh",
    "choom",
    "dbus-run-session",
    "eatmydata",
    "elvish",
    "envdir",
    "envuidgid",
    "execlineb",
    "hyperfine",
    "i386",
    "i486",
    "i586",
    "i686",
    "lksh",
    "linux32",
    "linux64",
    "oksh",
    "osh",
    "pdksh",
    "pgrphack",
    "posh",
    "rksh",
    "runcon",
    "schroot",
    "setarch",
    "setlock",
    "setuidgid",
    "softlimit",
    "sotruss",
    "sparc",
    "sparc32",
    "sparc64",
    "ppc",
    "ppc32",
    "ppc64",
    "s390",
    "s390x",
    "mips",
    "mips64",
    "sshpass",
    "su-exec",
    "systemd-inhibit",
    "systemd-nspawn",
    "systemd-socket-activate",
    "uclampset",
    "uname26",
    "x86_64",
    "xonsh",
    "xvfb-run",
    "yash",
    "ysh",
];

/// Whether a program runs others in ways that are not followed here: what it starts is not known.
pub(super) fn is_opaque(name: &str) -> bool {
    const STARTS: &[&str] = &["ld-linux", "busybox", "s6-"];
    OPAQUE.contains(&name)
        || STARTS.iter().any(|start| name.starts_with(start))
        || name.contains(".exe")
        || is_shell(name.trim_end_matches(|letter: char| letter.is_ascii_digit() || "-.".contains(letter))) && !is_shell(name)
}

/// A program that is one in its own right and starts what its arguments name.
#[derive(Debug, Clone, Copy)]
enum Runner {
    /// Whatever they are.
    Always,
    /// Behind one of these.
    Behind(&'static [&'static str]),
}

fn runner(name: &str) -> Option<Runner> {
    Some(match name {
        "bunx" | "dbus-launch" | "gpg-agent" | "npx" | "pipx" | "pnpx" | "ssh-agent" | "uvx" => Runner::Always,
        "npm" | "pnpm" => Runner::Behind(&["exec", "x", "dlx"]),
        "bun" | "yarn" => Runner::Behind(&["exec", "x", "dlx", "run"]),
        "bundle" | "conda" | "direnv" | "hatch" | "mamba" | "mise" | "nix" | "pdm" | "pipenv" | "pixi" | "poetry" | "rbenv"
        | "pyenv" | "asdf" | "rustup" | "rye" | "uv" => Runner::Behind(&["exec", "run", "shell", "x"]),
        "nix-shell" => Runner::Behind(&["--run", "--command"]),
        _ => return None,
    })
}

/// Whether a program is one in its own right and starts what its arguments name.
pub(super) fn is_runner(name: &str) -> bool {
    runner(name).is_some()
}

/// The arguments of such a program that may name what it starts: a rule that denies looks at each. `None` where it starts none.
pub(super) fn may_be_started<'a>(name: &str, words: &'a [Word]) -> Option<&'a [Word]> {
    match runner(name)? {
        Runner::Always => Some(words),
        Runner::Behind(names) => {
            let at = words.iter().position(|word| names.iter().any(|name| word.may_be(name)))?;
            words.get(at.saturating_add(1)..)
        }
    }
}

/// Shells whose lines are read.
pub(super) fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "mksh" | "rbash" | "rzsh")
}

/// Whether setting a variable changes which program a name stands for, or what a program starts; to a number, whether
/// that is all that is set.
fn is_treacherous(variable: &str, is_number: bool) -> bool {
    // The value of these is read as an expression by some shells, in which an index may be a command: `a[$(rm x)]`.
    const EXPRESSIONS: &[&str] = &[
        "BASHPID",
        "COLUMNS",
        "EGID",
        "EPOCHREALTIME",
        "EPOCHSECONDS",
        "ERRNO",
        "EUID",
        "FUNCNEST",
        "GID",
        "HISTCMD",
        "HISTSIZE",
        "KEYTIMEOUT",
        "LINENO",
        "LINES",
        "LISTMAX",
        "LOGCHECK",
        "MAILCHECK",
        "OPTERR",
        "OPTIND",
        "PPID",
        "RANDOM",
        "SAVEHIST",
        "SECONDS",
        "SHLVL",
        "SRANDOM",
        "TMOUT",
        "TRY_BLOCK_ERROR",
        "TTYIDLE",
        "UID",
    ];
    const NAMES: &[&str] = &[
        "PATH",
        "IFS",
        "ENV",
        "BASH_ALIASES",
        "BASH_CMDS",
        "BASH_ENV",
        "SHELL",
        "SHELLOPTS",
        "BASHOPTS",
        "PS4",
        "PROMPT_COMMAND",
        "CDPATH",
        "HOME",
        "ZDOTDIR",
        "VISUAL",
        "BROWSER",
        "GCONV_PATH",
        "NODE_OPTIONS",
        "NODE_PATH",
        "TERMINFO",
        "MAKEFLAGS",
        "FPATH",
        "EXECIGNORE",
        "GLOBIGNORE",
        "ACKRC",
        "BAT_CONFIG_DIR",
        "BAT_CONFIG_PATH",
        "CURL_HOME",
        "GNUMAKEFLAGS",
        "NULLCMD",
        "OPENSSL_CONF",
        "READNULLCMD",
        "RIPGREP_CONFIG_PATH",
        "RSYNC_CONNECT_PROG",
    ];
    const STARTS: &[&str] = &[
        "LD_",
        "DYLD_",
        "BASH_FUNC_",
        "GIT_",
        "PYTHON",
        "PERL",
        "RUBY",
        "XDG_",
        "RUSTC",
        "CARGO",
        "npm_config_",
        "SSH_",
        "LESS",
    ];
    const ENDS: &[&str] =
        &["PAGER", "EDITOR", "_COMMAND", "_PRELOAD", "_ASKPASS", "_OPTIONS", "OPT", "OPTS", "_RSH", "_WRAPPER"];
    NAMES.contains(&variable)
        || !is_number && EXPRESSIONS.contains(&variable)
        || STARTS.iter().any(|start| variable.starts_with(start))
        || ENDS.iter().any(|end| variable.ends_with(end))
}

/// Whether setting a variable that programs are given may change what they start or write. Which ones do so nobody can list: only
/// those count as harmless that are known to say how something looks, and names that no program has for itself: one letter, or
/// small letters alone.
pub(super) fn may_steer(variable: &str, is_number: bool) -> bool {
    const HARMLESS: &[&str] = &[
        "CI",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLORTERM",
        "COLUMNS",
        "DEBUG",
        "FORCE_COLOR",
        "LANG",
        "LANGUAGE",
        "LINES",
        "NODE_ENV",
        "NO_COLOR",
        "RUST_BACKTRACE",
        "RUST_LOG",
        "SOURCE_DATE_EPOCH",
        "TERM",
        "TZ",
        "VERBOSE",
    ];
    let is_own = variable.len() == 1 || !variable.contains(|letter: char| letter.is_ascii_uppercase());
    let is_harmless = HARMLESS.contains(&variable) || variable.starts_with("LC_") || is_own && !variable.ends_with("_proxy");
    // What a shell counts with.
    let is_counter = is_number && is_treacherous(variable, false);
    is_treacherous(variable, is_number) || !(is_harmless || is_counter)
}

/// The same of a variable that a shell sets for itself: programs are given it where it has been exported before, as the shell's own
/// environment has been. Those of a command are inherited, so that they are known.
pub(super) fn may_steer_from_the_shell(variable: &str, is_number: bool) -> bool {
    const INHERITED: &[&str] = &["USER", "LOGNAME", "TMPDIR", "SSL_CERT_FILE"];
    let is_inherited = INHERITED.contains(&variable) || variable.to_ascii_lowercase().ends_with("_proxy");
    is_treacherous(variable, is_number) || is_inherited && may_steer(variable, is_number)
}

/// What an option of a wrapper is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Complete.
    Whole,
    /// Its value is the next word.
    ValueFollows,
    /// Not one that is known, so nobody can tell where the command begins.
    Unknown,
}

impl Wrapper {
    /// What a word that begins with `-` means.
    pub(super) fn option(&self, word: &str) -> Meaning {
        if let Some(long) = word.strip_prefix("--") {
            let (name, has_value) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
            return match (self.long_flags.contains(&name), self.long_values.contains(&name), has_value) {
                (true, ..) | (_, true, true) => Meaning::Whole,
                (_, true, false) => Meaning::ValueFollows,
                _ => Meaning::Unknown,
            };
        }
        let mut letters = word.chars().skip(1).peekable();
        while let Some(letter) = letters.next() {
            if self.flags.contains(letter) {
                continue;
            }
            if self.attached.contains(letter) {
                return Meaning::Whole;
            }
            if self.values.contains(letter) {
                return if letters.peek().is_some() { Meaning::Whole } else { Meaning::ValueFollows };
            }
            return Meaning::Unknown;
        }
        Meaning::Whole
    }
}
