//! Builtins of shells that do more than their words say.

use serde_json::json;

use crate::Is::{self, In, Mixed};

/// Each line beside a rule about the programs that stand in it.
const CASES: &[(&str, Is)] = &[
    // The value of these variables is an expression, and its index a command.
    ("RANDOM='a[$(rm x)]'; ls", Mixed),
    ("bash -c \"RANDOM='a[\\$(rm x)]'; ls\"", Mixed),
    ("SRANDOM='a[$(rm x)]' ls", Mixed),
    ("OPTIND='a[$(rm x)]'; ls", Mixed),
    ("HISTCMD='a[$(rm x)]'; ls", Mixed),
    ("SECONDS='a[`rm x`]'; ls", Mixed),
    ("a='b[$(rm x)]'; SECONDS=a; ls", Mixed),
    ("a='b['; SECONDS=\"$a\"; ls", Mixed),
    ("for SECONDS in 'a[$(rm x)]'; do ls; done", Mixed),
    ("export SECONDS='a[$(rm x)]'; ls", Mixed),
    ("env COLUMNS='a[$(rm x)]' zsh -c ls", Mixed),
    ("SECONDS=0; ls", In),
    ("COLUMNS=200 ls", In),
    ("env COLUMNS=200 ls", In),
    ("export SECONDS=0; ls", In),
    ("SECONDS=x; ls", Mixed),
    // So are names.
    ("test -v 'a[$(rm x)]'", Mixed),
    ("[ -v 'a[$(rm x)]' ]", Mixed),
    ("x='b[$(rm x)]'; test -v 'a[x]'", Mixed),
    ("x='a[$(rm x)]'; test -v \"$x\"", Mixed),
    ("o=-v; test \"$o\" 'a[$(rm x)]'", Mixed),
    ("o=-v; test \"$o\" \"$x\"", Mixed),
    ("[ $x = y ]", Mixed),
    ("[ \"$@\" ]", Mixed),
    ("[ * ]", Mixed),
    ("b=x; unset 'b[$(rm x)]'", Mixed),
    ("unset b$x", Mixed),
    ("declare 'a[$(rm x)]=1'", Mixed),
    ("typeset 'a[`rm x`]=1'", Mixed),
    ("export 'a[$(rm x)]=1'", Mixed),
    ("readonly 'a[$(rm x)]=1'", Mixed),
    ("declare a$x=1", Mixed),
    ("declare -i a='b[$(rm x)]'", Mixed),
    ("declare -n a=PATH; a=/tmp", Mixed),
    ("declare 'BASH_CMDS[ls]=/tmp/ls'; ls", Mixed),
    ("export 'PATH[0]=/tmp'; ls", Mixed),
    ("\\export A=$x; ls", Mixed),
    ("builtin export A=$x; ls", Mixed),
    ("printf -v 'a[$(rm x)]' y", Mixed),
    ("printf $x /tmp", Mixed),
    ("printf \"$x\" /tmp", Mixed),
    ("wait -p 'a[$(rm x)]'", Mixed),
    ("wait \"$x\"", Mixed),
    ("read 'a[$(rm x)]'", Mixed),
    ("mapfile 'a[$(rm x)]'", Mixed),
    ("let 'a[$(rm x)]=1'", Mixed),
    ("echo $(( a[$(rm x)] ))", Mixed),
    ("(( a[$(rm x)] ))", Mixed),
    ("ls {a['$(rm x)']}>/dev/null", Mixed),
    ("ls \"$a[x]\"", Mixed),
    // To some shells, numbers.
    ("zsh -c '[ x -eq 1 ]'", Mixed),
    ("ksh -c 'printf %d x'", Mixed),
    ("zsh -c 'exit x'", Mixed),
    ("zsh -c 'ls; exit 1'", In),
    ("zsh -c '[ -f x ] && ls'", In),
    ("bash -c '[ x -eq 1 ]'", In),
    ("zsh -c ls; [ 1 -eq 1 ]", In),
    // With -k, arguments are variables.
    ("bash -kc 'ls PATH=/tmp'", Mixed),
    ("set -k; ls PATH=/tmp", Mixed),
    ("set -ek; ls PATH=/tmp", Mixed),
    ("set -o keyword; ls PATH=/tmp", Mixed),
    ("bash -o keyword -c 'ls PATH=/tmp'", Mixed),
    ("shopt -so keyword; ls PATH=/tmp", Mixed),
    ("set $x; ls PATH=/tmp", Mixed),
    ("set -- -v 'a[$(rm x)]'; [ \"$@\" ]", Mixed),
    ("set -- \"$x\"; ls \"$@\"", In),
    ("set -euo pipefail; ls", In),
    ("set -eu -o pipefail -- a b; ls", In),
    ("shopt -s globstar nullglob; ls", In),
    // With -a, programs are given every variable that is set.
    ("bash -ac 'SSLKEYLOGFILE=x; ls'", Mixed),
    ("bash -c -a 'SSLKEYLOGFILE=x; ls'", Mixed),
    ("zsh -eac 'for SSLKEYLOGFILE in x; do ls; done'", Mixed),
    ("ksh -o allexport -c 'SSLKEYLOGFILE=x; ls'", Mixed),
    ("set -a; SSLKEYLOGFILE=x; ls", Mixed),
    ("set -eua; SSLKEYLOGFILE=x; ls", Mixed),
    ("set -o allexport; SSLKEYLOGFILE=x; ls", Mixed),
    ("shopt -so allexport; SSLKEYLOGFILE=x; ls", Mixed),
    ("SHELLOPTS=allexport bash -c 'SSLKEYLOGFILE=x; ls'", Mixed),
    // Also those that are exported afterwards, or were before.
    ("SSLKEYLOGFILE=x; export SSLKEYLOGFILE; ls", Mixed),
    ("SSLKEYLOGFILE=x; declare -x SSLKEYLOGFILE; ls", Mixed),
    ("typeset -x SSLKEYLOGFILE=x; ls", Mixed),
    (": ${SSLKEYLOGFILE:=x}; ls", Mixed),
    ("http_proxy=x; ls", Mixed),
    ("for HTTPS_PROXY in x; do ls; done", Mixed),
    ("TMPDIR=x; ls", Mixed),
    ("SSL_CERT_FILE=x; ls", Mixed),
    ("bash -c 'SSL_CERT_FILE=x; ls'", Mixed),
    ("SSLKEYLOGFILE=x; ls", In),
    ("LANG=C; ls", In),
    // A variable that becomes several words brings a program.
    ("y='1 rm x'; env A=$y ls", Mixed),
    ("y='1 rm x'; env B=1 A=$y ls", Mixed),
    ("env B=1 A=\"$y\" ls", In),
    // What people write every day.
    ("[ -d /tmp ] && ls", In),
    ("[ -d /tmp ]; ls", In),
    ("[ -n \"$x\" ] && ls", In),
    ("[ \"$x\" = y ] || ls", In),
    ("[ $? -eq 0 ] && ls", In),
    ("[ \"$(ls)\" != '' ]", In),
    ("[ ! -e x -a -e y ]", In),
    ("if [ -f x ]; then ls; fi", In),
    ("test -f \"$x\" && ls", In),
    ("export A=1 B=\"$x\" C=$(ls); ls", In),
    ("declare -r A=1; ls", In),
    ("export COMPILER_PATH=x; ls", Mixed),
    ("FILES='a b'; ls $FILES", In),
    ("https_proxy=x ls", Mixed),
    ("unset A B; ls", In),
    ("printf '%s\\n' \"$x\"", In),
    ("printf \"a %d\" $x", In),
    ("wait; wait $!; ls", In),
    ("shift 2; ls", In),
];

#[test]
fn a_builtin_that_may_run_an_argument_is_nobodys_to_allow() {
    let when = json!({"command": {"program": [
        "[", "bash", "declare", "echo", "env", "exit", "export", "ksh", "let", "ls", "mapfile", "printf", "read", "readonly", "set",
        "shift", "shopt", "test", "typeset", "unset", "wait", "zsh",
    ]}});
    let is = |line: &str| crate::is("command__run", &when, &json!({"command": line}));
    let wrong: Vec<_> = CASES.iter().filter(|(line, expected)| is(line) != *expected).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_may_run_an_argument_is_denied_with_the_programs_it_may_run() {
    let denied = |line: &str| {
        let when = json!({"command": {"program": "rm"}});
        crate::decided(turnwright_core::policy::Action::Deny, "command__run", &when, &json!({"command": line}))
    };
    for line in ["RANDOM='a[$(rm x)]'; ls", "test -v 'a[$(rm x)]'", "b=x; unset 'b[$(rm x)]'"] {
        assert!(denied(line), "{line}");
    }
    for line in ["[ -d /tmp ] && uname", "[ -d rm ]", "if [ -f x ]; then ls; fi", "test -n \"$x\"", "export A=$(ls)"] {
        assert!(!denied(line), "{line}");
    }
}

#[test]
fn a_lone_bracket_is_a_program() {
    let is = |program: &str, line: &str| {
        crate::is("command__run", &json!({"command": {"program": [program]}}), &json!({"command": line}))
    };
    assert_eq!(is("[", "[ -d /tmp ]"), In);
    assert_eq!(is("[", "/usr/bin/[ -d /tmp ]"), In);
    assert_eq!(is("[", "ls"), Is::Out);
    assert_eq!(is("[", "[a] x"), Mixed);
}
