//! Programs of command lines.

use serde_json::{Value, json};
use turnwright_core::policy::{Action, Policy, RuleText};
use turnwright_core::{ApproveMode, Declared};

use crate::Is::{self, In, Mixed, Out};

/// Whether a line runs only `git` and `ls`, as a rule sees it.
fn git_and_ls(line: &str) -> Is {
    crate::is("command__run", &json!({"command": {"program": ["git", "ls"]}}), &json!({"command": line}))
}

/// As above; whether a rule that denies `rm` sees it.
fn denies_rm(arguments: &Value) -> bool {
    crate::decided(Action::Deny, "command__run", &json!({"command": {"program": "rm"}}), arguments)
}

/// Each line beside a rule about `git` and `ls`.
const CASES: &[(&str, Is)] = &[
    // Alone, and joined.
    ("git status", In),
    ("  git   status  ", In),
    ("git", In),
    ("git status; ls", In),
    ("git status && ls -la || git log", In),
    ("git log | ls", In),
    ("git log |& ls", In),
    ("git status & ls", In),
    ("git status\nls\n", In),
    ("git status \\\n --short", In),
    ("git status # rm -rf /", In),
    ("git status#x", In),
    ("(git status; ls)", In),
    ("{ git status; ls; }", In),
    ("! git diff --quiet", In),
    ("if git diff --quiet; then ls; else git status; fi", In),
    ("for f in a b; do git add \"$f\"; done", In),
    ("while git fetch; do ls; done", In),
    // Another one among them.
    ("git status; rm -rf /", Mixed),
    ("git status && rm x", Mixed),
    ("git log | xargs rm", Mixed),
    ("git status & rm x", Mixed),
    ("git status\nrm x", Mixed),
    ("(git status; (rm x))", Mixed),
    ("rm x", Out),
    ("cat x | grep y", Out),
    ("echo git", Out),
    ("gitk", Out),
    ("xgit", Out),
    ("", Out),
    ("   ", Out),
    ("# git", Out),
    // Substitutions.
    ("git add $(ls)", In),
    ("git add \"$(ls a)\"", In),
    ("git add $(rm x)", Mixed),
    ("git add \"$(rm x)\"", Mixed),
    ("git add '$(rm x)'", In),
    ("git add `rm x`", Mixed),
    ("git add \"`rm x`\"", Mixed),
    ("git add `ls`", In),
    ("git add `ls \\`rm x\\``", Mixed),
    ("git diff <(ls a) <(ls b)", In),
    ("git diff <(rm a) <(ls b)", Mixed),
    ("X=$(rm x) git status", Mixed),
    ("git $((1+1))", Mixed),
    ("git ${x:-$(rm y)}", Mixed),
    ("ls ${branch}", In),
    ("git ${branch}", Mixed),
    ("ls $branch *", In),
    ("git add $branch", In),
    ("git diff $branch", Mixed),
    ("git diff -- $branch", In),
    ("git $(", Mixed),
    ("git \"", Mixed),
    ("git '", Mixed),
    ("git )", Mixed),
    ("git `", Mixed),
    ("git status \\", Mixed),
    // Written in another way.
    ("'git' status", In),
    ("g\"i\"t status", In),
    ("\\git status", In),
    ("g\\it status", In),
    ("$'git' status", Mixed),
    ("$\"git\" status", Mixed),
    ("$git status", Mixed),
    ("$(echo git) status", Mixed),
    ("/usr/bin/gi? status", Mixed),
    ("gi* status", Mixed),
    ("{git,rm} x", Mixed),
    ("~/bin/git status", Mixed),
    ("GIT status", Mixed),
    ("=git status", Mixed),
    ("git\u{a0}status", Out),
    ("gіt status", Out),
    ("git\u{200b} status", Out),
    ("git\r\nrm x", Mixed),
    ("git \u{7}", Mixed),
    // Paths.
    ("/usr/bin/git status", In),
    ("/bin/ls", In),
    ("/tmp/git status", Mixed),
    ("./git status", Mixed),
    ("../git status", Mixed),
    ("/usr/bin/../../tmp/git status", Mixed),
    ("/usr/bin/x/git status", Mixed),
    // Seen through what only starts others.
    ("env git status", In),
    ("env A=1 git status", In),
    ("A=1 git status", In),
    ("env -i -u X A=1 git status", In),
    ("LC_ALL=C TZ=UTC NO_COLOR=1 git status", In),
    ("COMPILER_PATH=x git status", Mixed),
    ("GCC_EXEC_PREFIX=x/ git status", Mixed),
    ("KUBECTL_EXTERNAL_DIFF=x git status", Mixed),
    ("env GOFLAGS=-toolexec=x git status", Mixed),
    ("SSLKEYLOGFILE=m git status", Mixed),
    ("env PATH=/tmp git status", Mixed),
    ("PATH=/tmp git status", Mixed),
    ("PATH=/tmp; git status", Mixed),
    ("export PATH=/tmp; git status", Mixed),
    ("LD_PRELOAD=/tmp/x.so git status", Mixed),
    ("GIT_PAGER='rm x' git log", Mixed),
    ("for PATH in /tmp; do git status; done", Mixed),
    ("env -S 'rm x'", Mixed),
    ("env --odd git status", Mixed),
    ("nice -n 5 git gc", In),
    ("nice -5 git gc", In),
    ("timeout 5 git fetch", In),
    ("timeout -k 1 5s git fetch", In),
    ("timeout 5 rm x", Out),
    ("nohup git gc &", In),
    ("time git gc", In),
    ("command git status", In),
    ("command -v git", Out),
    ("exec git status", In),
    ("stdbuf -oL git log", In),
    ("ls | xargs git add", In),
    ("ls | xargs -n 1 -I{} git add {}", In),
    ("ls | xargs --replace git add {}", In),
    ("ls | xargs --max-lines=2 git add", In),
    ("ls | xargs --replace rm ls", Mixed),
    ("ls | xargs -0 rm", Mixed),
    ("ls | xargs -I{} {} x", Mixed),
    ("ls | xargs -I{} sh -c '{}'", Mixed),
    ("ls | xargs sh -c 'git status'", In),
    ("ls | xargs env", Mixed),
    ("ls | xargs", Mixed),
    ("sh -c 'git status'", In),
    ("bash -c \"git status; ls\"", In),
    ("bash -lc 'git status'", In),
    ("bash -o pipefail -ec 'git status'", In),
    ("bash -c 'rm x'", Out),
    ("bash -c \"git status; rm -rf /\"", Mixed),
    ("bash -c \"$X\"", Mixed),
    ("bash -c 'bash -c \"bash -c ls\"'", In),
    ("bash -c 'bash -c \"bash -c rm\"'", Out),
    ("bash script.sh", Out),
    ("ls | bash", Mixed),
    ("bash <<< 'rm x'", Mixed),
    ("bash --rcfile x -c ls", Mixed),
    ("eval 'git status'", Mixed),
    ("eval git status", Mixed),
    ("eval \"$X\"", Mixed),
    // Who runs it is another: it counts itself.
    ("sudo git status", Mixed),
    ("sudo -u x env A=1 bash -c \"git status; rm -rf /\"", Mixed),
    ("doas git status", Mixed),
    ("sudo -z git status", Mixed),
    ("su -c 'git status'", Mixed),
    ("chroot /x git status", Mixed),
    // What runs what it is told to.
    ("git -c alias.x='!rm -rf /' x", Mixed),
    ("git -c core.pager='rm x' log", Mixed),
    ("git -c user.name=a commit", In),
    ("git -C /tmp status", In),
    ("git submodule foreach 'rm x'", Mixed),
    ("git rebase -x 'rm x' main", Mixed),
    ("git --exec-path=/tmp status", Mixed),
    ("git $X", Mixed),
    ("find . -name x", Out),
    ("find . -exec git add {} \\;", Mixed),
    ("source x; git status", Mixed),
    (". ./x; git status", Mixed),
    ("alias git=rm; git x", Mixed),
    ("git() { rm x; }; git status", Mixed),
    ("function git { rm x; }; git status", Mixed),
    ("trap 'rm x' EXIT; git status", Mixed),
    ("hash -p /tmp/x git; git status", Mixed),
    ("case x in x) rm y;; esac", Mixed),
    ("[[ -f x ]] && git status", Mixed),
    ("busybox ls", Mixed),
    ("watch git status", Mixed),
    // Outputs in files.
    ("git log > x", Mixed),
    ("git log >> ~/.bashrc", Mixed),
    ("git log >| x", Mixed),
    ("git log &> x", Mixed),
    ("git log > /dev/null", In),
    ("git log 2>&1", In),
    ("git log 2> /dev/null < x", In),
    ("git apply < x.patch", In),
    ("cat x > y", Out),
    ("git log &> /dev/null", In),
    ("git log &> /dev/null; ls", In),
    ("git log &>/dev/null rm x", Mixed),
    // Documents.
    ("git apply <<EOF\nrm x\nEOF", In),
    ("git apply <<'EOF'\n$(rm x)\nEOF\nls", In),
    ("git apply <<EOF\n$(rm x)\nEOF", Mixed),
    ("git apply <<EOF\nx\nEOF\nrm x", Mixed),
    ("git apply <<-EOF\n\tx\n\tEOF\nls", In),
    ("git apply <<EOF\nx", Mixed),
    ("bash <<EOF\ngit status\nEOF", Mixed),
    ("git apply <<ls $(ls\nrm x\nls\n)\nx\nls", Mixed),
    ("git apply <<ls `ls\nrm x`\nx\nls", Mixed),
    // What goes on in the next line, or after a parenthesis.
    ("git status \\\n# '\nrm x #'", Mixed),
    ("git status $\\\nX", Mixed),
    ("git add \"$\\\n(rm x)\"", Mixed),
    ("git diff <(ls)#; rm x", Mixed),
    ("git diff <(ls); ls", In),
    ("(git status)#; rm x", In),
    // What some wrappers take for a variable, or for an option.
    ("env 1=2 git status", Mixed),
    ("env a.b=1 git status", Mixed),
    ("sudo A=1 -u root git status", Mixed),
    // Programs that git starts.
    ("git ls-remote --upl='rm x' .", Mixed),
    ("git clone -u 'rm x' a b", Mixed),
    ("git clone --config=core.pager=x a b", Mixed),
    ("git clone --template=/tmp/x a b", Mixed),
    ("git init --template=/tmp/x", Mixed),
    ("git init --t /tmp/x", Mixed),
    ("git init-db --template=/tmp/x", Mixed),
    ("git svn clone --authors-prog=/tmp/x a", Mixed),
    ("git init --bare x", In),
    ("git grep --open-files-in-pager=rm y", Mixed),
    ("git grep -Orm y", Mixed),
    ("git rebase -ix 'rm x' main", Mixed),
    ("git merge-index rm -a", Mixed),
    ("git push --e='rm #' a main", Mixed),
    ("git -C $x status", Mixed),
    ("git -C \"$x\" status", In),
    ("git -c user.$x status", Mixed),
    ("git -c \"user.name=$x\" status", In),
    ("git --git-dir $x status", Mixed),
    ("git init $x", Mixed),
    ("git clone $x", Mixed),
    ("git clone -- \"$x\"", In),
    ("git push origin $x", Mixed),
    ("git commit -m \"fix: $x\"", In),
    ("ZIPOPT=x git status", Mixed),
    ("MANOPT=x git status", Mixed),
    ("RSYNC_RSH=x git status", Mixed),
    ("git submodule update", In),
    ("git bisect good \"v$x\"", Mixed),
    ("git bisect good \"a$x\"", In),
    ("git clone a b", In),
    ("git log --author \"\"{},--output=/tmp/out}", Mixed),
    ("ls | xargs -0I{} git add {}", In),
    ("git --no-pager -P log", In),
    ("git --literal-pathspecs --git-dir=x status", In),
    ("cat /x; ls < \"$x\"", Mixed),
    ("ls < /x", In),
    ("git grep -n y", In),
    ("git rebase -i main", In),
];

#[test]
fn the_programs_of_a_line_are_seen() {
    let wrong: Vec<_> = CASES
        .iter()
        .filter(|(line, expected)| git_and_ls(line) != *expected)
        .map(|(line, expected)| (line, expected, git_and_ls(line)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Lines by which `rm` is started, or may be.
const START_RM: &[&str] = &[
    "rm x",
    "/bin/rm x",
    "/tmp/rm x",
    "RM x",
    "r''m x",
    "sudo rm x",
    "sudo -u a rm x",
    "ls | xargs rm",
    "find . -exec rm {} +",
    "nice rm x",
    "sudo -u x env A=1 bash -c \"git status; rm -rf /\"",
    "echo $(rm x)",
    "cat <(rm x)",
    "doas rm x",
    "chroot / rm x",
    "timeout 1 nice rm x",
    "eval rm x",
    "sh -c 'sh -c \"rm x\"'",
    "if true; then rm x; fi",
    "x=`rm y`",
    "busybox rm x",
    "$x",
    "python3 -c 'x' | sh",
    "ionice -c 3 rm x",
    "exec rm x",
    "git status &>/dev/null rm x",
    "cat <<echo $(echo\nrm x\necho\n)\ncat\necho",
    "echo \\\n# '\nrm x #'",
    "X=rm; $\\\nX f",
    "cat <(echo hi)#; rm x",
    "env 1=2 rm x",
    "sudo A=1 -u root rm x",
    "git clone -u 'rm x' a b",
    "find . -exec git -C + submodule foreach rm \\;",
    "echo foreach rm | xargs git submodule",
    "echo foreach | xargs -I% git submodule % rm",
    "setarch -R rm x",
    "linux64 rm x",
    "i386 rm x",
    "/usr/bin/setarch x86_64 rm x",
    "choom -n 1 -- rm x",
    "dbus-run-session -- rm x",
    "capsh -- -c \"rm x\"",
    "sotruss rm x",
    "s6-setuidgid a rm x",
    "busybox.static rm x",
    "bash-5.2 -c \"rm x\"",
    "ksh93 -c \"rm x\"",
    "systemd-inhibit rm x",
    "ssh-agent rm x",
    "gpg-agent --daemon rm x",
    "npx --no rm x",
    "npx \"$x\" y",
    "npm exec -c \"rm x\"",
    "npm exec --call=\"rm x\"",
    "uv run rm x",
    "rustup run stable rm x",
    "poetry run sh -c 'rm x'",
    "ls | xargs --replace rm -f {}",
    "ls | xargs --replace rm ls",
    "ls | xargs --max-lines rm ls",
    "ls | xargs --eof rm ls",
    "ls | xargs --replace=% rm %",
    "find . -name -exec -o -name a -exec rm {} \\;",
    "find . -exec git add {} + -exec rm {} \\;",
    "eval -- rm x",
    "bash -c 'eval -- rm x'",
    "jobs -x rm x",
    "tar cfI o.tar 'rm x' x",
    "tar cIf 'rm x' o.tar x",
    "git push --ex='rm x #' a main",
    "git fetch --e='rm x' a",
    "git bisect \"ru$x\" rm",
    "git bisect view gitx/rm",
    "git submodule \"fore$x\" rm",
    "git push \"--e$x\" a main",
    "tar \"cf$x\" o.tar 'rm x' x",
    "ssh -o \"Proxy$x=rm\" h",
    "echo 'rm -rf x' | chroot /",
    "echo 'rm -rf x' | sudo -i",
    "echo 'rm -rf x' | sudo -u root",
    "sudo -i '$1rm' x",
    "sudo --login '$1rm' x",
    "fd . /data $(echo -x) rm",
    "fd . /data \"$x\" rm",
    "echo '-x rm' | xargs fd foo",
    "tar cf o.tar x $(echo '--use-compress-program=rm')",
    "echo 'rm x' | xargs ssh-agent",
    "echo 'rm x' | xargs npx",
    "echo 'rm x' | xargs uv run",
    "echo 'run rm x' | xargs uv",
    "uv \"$x\" rm y",
    "echo rm | xargs -I% ssh-agent % x",
    "cat <<\\\n-EOF\nEOF\nrm x\n-EOF",
    "cat <<\\\n<x\nrm y\n\n",
    "echo x | xargs -0I{} sh -c '{}'",
    "echo x | xargs -rI X sh -c X",
    "echo x | xargs -0i sh -c '{}'",
    "echo x | xargs -I A -I B sh -c B",
    "git='a[$(rm x)]'; echo $(\\\n(git))",
    "git='a[$(rm x)]'; (\\\n(git))",
    "env -u \"\"{},rm} git x",
    "bash -O extglob -c '!(git)'",
    "zsh -c '{ git status } always { rm x }'",
    "zsh -c 'x=\"rm f\"; $=x'",
    "zsh -c 'path=/tmp/evil; git status'",
    "READNULLCMD=/tmp/evil; </etc/hosts",
    "- rm x",
    "< *(e:\"rm x\":)",
    "git --attr-source log submodule foreach 'rm x'",
    "git --shallow-file log submodule foreach 'rm x'",
    "git --unknown log submodule foreach 'rm x'",
    "CURL_HOME=/tmp curl x",
];

#[test]
fn a_rule_that_denies_a_program_sees_it_wherever_it_is_started() {
    let missed: Vec<_> = START_RM.iter().filter(|line| !denies_rm(&json!({"command": line}))).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    let harmless = [
        "echo rm",
        "ls rm",
        "git rm x",
        "cat > x",
        "grep -r 'rm -rf' .",
        "ls # rm",
        "bash script.sh",
        "make clean",
        "docker rm x",
        "npm rm x",
        "npm run build",
        "npx prettier --write 'src/**' \"$x\"",
        "uv pip install rm",
        "bash script-5.sh",
        "ls | xargs git add",
        "ls | xargs -n 1 -I{} git add {}",
        "find . -name x -exec git add {} +",
        "ls | xargs grep x",
        "ls | xargs npm install",
        "ls | xargs fd foo --",
        "tar czf o.tgz x",
        "sudo -u root ls",
        "cat <<\\EOF\nrm x\nEOF\n",
        "cat <<-EOF\n\trm x\n\tEOF\n",
        "! (ls)",
        "path=x ls",
        "find . -exec mv {} {}.bak \\;",
        "ls | xargs -I{} git add x{}y",
        "git --no-pager --git-dir=x log",
        "cat < \"$x\"",
    ];
    let hit: Vec<_> = harmless.iter().filter(|line| denies_rm(&json!({"command": line}))).collect();
    assert!(hit.is_empty(), "{hit:#?}");
}

#[test]
fn a_program_with_its_arguments_is_no_line() {
    let when = json!({"command": {"program": ["git"]}});
    for (arguments, expected) in [
        (json!({"command": "git", "args": ["status"]}), In),
        (json!({"command": "git", "args": []}), In),
        (json!({"command": "git", "args": ["status; rm x"]}), In),
        // A tool that splits its line though it is given arguments.
        (json!({"command": "git status", "args": []}), Mixed),
        (json!({"command": "git; rm x", "args": []}), Mixed),
        (json!({"command": "rm -r x", "args": []}), Mixed),
        (json!({"command": ["git status"]}), Mixed),
        (json!({"command": "rm", "args": ["git"]}), Out),
        (json!({"command": "env", "args": ["git", "status"]}), In),
        (json!({"command": "env", "args": ["rm", "git"]}), Out),
        (json!({"command": "sh", "args": ["-c", "git status; rm x"]}), Mixed),
        (json!({"command": "git", "args": null}), In),
        (json!({"command": "git", "args": "status"}), Mixed),
        (json!({"command": "git", "args": [1]}), Mixed),
        (json!({"command": ["git", "status"]}), In),
        (json!({"command": ["git", "status", ";", "rm"]}), In),
        (json!({"command": ["rm", "git"]}), Out),
        (json!({"command": ["sudo", "git"]}), Mixed),
        (json!({"command": []}), Out),
        (json!({"command": ["git", 1]}), Mixed),
        (json!({"command": 1}), Mixed),
        (json!({"command": {"line": "git"}}), Mixed),
        (json!({"command": null}), Mixed),
        (json!({"cmd": "git"}), Out),
        (json!({}), Out),
    ] {
        assert_eq!(crate::is("command__run", &when, &arguments), expected, "{arguments}");
    }
}

#[test]
fn arguments_beside_what_a_pointer_leads_to_are_read() {
    let (finds_rm, finds_git) = (json!([".", "-exec", "rm", "{}", ";"]), json!([".", "-exec", "git", "add", "{}", ";"]));
    for (key, arguments, named, rm) in [
        ("/options/command", json!({"options": {"command": "find", "args": finds_rm}}), Mixed, Mixed),
        ("/options/command", json!({"options": {"command": "find", "args": finds_git}}), In, Out),
        ("/options/command", json!({"options": {"command": "find", "args": "."}}), Mixed, Mixed),
        // Those of another command.
        ("/options/command", json!({"options": {"command": "find . -exec rm {} +"}, "args": []}), Mixed, Mixed),
        ("/options/command", json!({"options": {"command": "find ."}, "args": finds_rm}), In, Out),
        ("/a~1b/~0/command", json!({"a/b": {"~": {"command": "find", "args": finds_rm}}}), Mixed, Mixed),
        ("/steps/0/command", json!({"steps": [{"command": "find", "args": finds_rm}]}), Mixed, Mixed),
        ("/steps/0", json!({"steps": ["find . -exec rm {} +"], "args": []}), Mixed, Mixed),
        ("/command", json!({"command": "find", "args": finds_rm}), Mixed, Mixed),
        ("/args", json!({"args": "git status"}), In, Out),
        ("/options/args", json!({"options": {"args": ["git", "status"]}}), In, Out),
    ] {
        let is = |program: Value| crate::is("lab__nested", &json!({key: {"program": program}}), &arguments);
        assert_eq!((is(json!(["find", "git"])), is(json!("rm"))), (named, rm), "{key} {arguments}");
    }
}

#[test]
fn each_of_several_commands_is_a_line() {
    for (key, arguments, named, rm) in [
        ("commands", json!({"commands": ["git status", "ls | git apply"]}), In, Out),
        ("commands", json!({"commands": ["git", "ls"]}), In, Out),
        ("commands", json!({"commands": ["ls", "rm -rf /"]}), Mixed, Mixed),
        ("commands", json!({"commands": ["ls", "rm"]}), Mixed, Mixed),
        ("commands", json!({"commands": ["ls -l", "$x"]}), Mixed, Mixed),
        ("/options/commands", json!({"options": {"commands": ["ls", "rm -rf /"]}}), Mixed, Mixed),
        // What a tool may take for one program with its arguments.
        ("commands", json!({"commands": ["git", "submodule", "foreach", "rm"]}), Mixed, Mixed),
        ("commands", json!({"commands": ["git", "status"]}), Mixed, Out),
        ("commands", json!({"commands": "ls\nrm x"}), Mixed, Mixed),
        ("commands", json!({"commands": ["ls", 1]}), Mixed, Mixed),
        ("commands", json!({"commands": []}), Out, Out),
    ] {
        let is = |program: Value| crate::is("lab__batch", &json!({key: {"program": program}}), &arguments);
        assert_eq!((is(json!(["git", "ls"])), is(json!("rm"))), (named, rm), "{key} {arguments}");
    }
}

#[test]
fn a_line_is_read_as_the_shell_that_gets_it_reads_it() {
    let rules = || -> Vec<RuleText> {
        let rule = |tool: &str| json!({"tool": tool, "when": {"command": {"program": ["git", "test"]}}, "action": "allow"});
        [rule("command__*"), rule("x__run")].map(|rule| serde_json::from_value(rule).unwrap()).into()
    };
    let cases = [
        ("test \"$x\" -eq 1", json!(null), [true, false, false]),
        ("path=/tmp/evil git status", json!(null), [true, false, false]),
        ("git status", json!(null), [true, true, false]),
        // No shell reads it.
        ("test", json!(["$x", "-eq", "1"]), [true, true, true]),
        ("git", json!(["status"]), [true, true, true]),
    ];
    for (line, args, expected) in cases {
        let arguments = json!({"command": line, "args": args});
        let shells = [["sh", "/bin/bash"], ["/usr/bin/zsh", "/opt/ksh"], ["/usr/bin/fish", "/usr/bin/nu"]];
        for (shell, is_allowed) in
            shells.iter().zip(expected).flat_map(|(shells, is_allowed)| shells.map(|shell| (shell, is_allowed)))
        {
            let policy = Policy::new(rules()).unwrap().with_shell(Some(shell));
            let action =
                |policy: &Policy, tool: &str| policy.decide(ApproveMode::Ask, tool, Declared::default(), &arguments).action;
            assert_eq!(action(&policy, "command__run") == Action::Allow, is_allowed, "{shell} {line}");
            // Nobody knows which shell it has.
            assert_eq!(action(&policy, "x__run"), Action::Allow, "{line}");
            let always = policy.proposed("command__run", &arguments, Action::Allow);
            let kept = Policy::new([always]).unwrap().with_shell(Some(shell));
            assert_eq!(action(&kept, "command__run"), Action::Allow, "{shell} {line}");
        }
    }
    let deny: RuleText =
        serde_json::from_value(json!({"tool": "*", "when": {"command": {"program": "rm"}}, "action": "deny"})).unwrap();
    let policy = Policy::new([deny]).unwrap();
    let is_denied =
        |shell: &str| policy.clone().with_shell(Some(shell)).denied_by("command__run", &json!({"command": "ls"})).is_some();
    assert_eq!(["/bin/sh", "/bin/zsh", "/usr/bin/fish"].map(is_denied), [false, false, true]);
}

#[test]
fn programs_are_named_by_glob_and_by_path() {
    let cases = [
        (json!("python3*"), "python3.12 x.py", In),
        (json!("python3*"), "python2 x.py", Out),
        (json!("/opt/x/tool"), "/opt/x/tool a", In),
        (json!("/opt/x/tool"), "tool a", Mixed),
        (json!("/opt/x/tool"), "/tmp/tool a", Out),
        (json!("/opt/x/tool"), "/opt/x//tool a", Mixed),
        (json!("/opt/x/tool"), "/opt/./x/tool a", Mixed),
        (json!("/opt/x/tool"), "/opt/y/../x/tool a", Mixed),
        (json!("/opt/x/tool"), "cd /opt/x; ./tool a", Mixed),
        (json!("/bin/tool"), "/usr/bin/tool a", Mixed),
        (json!(["*"]), "ls | rm x", In),
        (json!(["*"]), "eval \"$x\"", Mixed),
        (json!(["sudo", "git"]), "sudo git status", In),
    ];
    for (program, line, expected) in cases {
        let when = json!({"command": {"program": program}});
        assert_eq!(crate::is("command__run", &when, &json!({"command": line})), expected, "{program} {line}");
    }
}

#[test]
fn what_is_nested_too_deep_or_is_too_much_counts_as_what_cannot_be_read() {
    let wrapped = |wrapper: &str, times: usize| format!("{}rm x", format!("{wrapper} ").repeat(times));
    // Each of these commands of `find` lies in all those before it.
    let finds = wrapped("find -exec", 40);
    let (nice, words) = (wrapped("nice", 10_000), [vec!["nice"; 100_000], vec!["rm", "x"]].concat());
    let many = "true; ".repeat(5_000) + "rm x";
    for arguments in [
        json!({"command": finds}),
        json!({"command": nice}),
        json!({"command": words}),
        json!({"command": many}),
        json!({"command": wrapped("find -exec a", 5_000)}),
    ] {
        assert!(denies_rm(&arguments));
        let allowed = json!({"command": {"program": ["find", "nice", "true", "a"]}});
        assert_eq!(crate::is("command__run", &allowed, &arguments), Mixed);
    }
    assert!(!denies_rm(&json!({"command": wrapped("nice", 20).replace("rm", "ls")})));
}
