//! Programs that look, told to write or to start others.

use serde_json::json;

use crate::Is::{self, In, Mixed};

/// All that are named in the lines below and only look.
const LOOKS: &[&str] = &[
    "ack", "ag", "awk", "bat", "cat", "cpio", "curl", "diff3", "echo", "env", "fd", "file", "find", "gawk", "git", "iconv",
    "less", "ls", "man", "npx", "rg", "rsync", "scp", "sdiff", "sed", "sftp", "shuf", "sort", "split", "ssh", "tar", "tee",
    "tree", "uniq", "xxd", "yq", "zip",
];

fn looks(line: &str) -> Is {
    crate::is("command__run", &json!({"command": {"program": LOOKS}}), &json!({"command": line}))
}

const CASES: &[(&str, Is)] = &[
    // git
    ("git log --output=x", Mixed),
    ("git log --output x", Mixed),
    ("git log --outp=x", Mixed),
    ("git diff --ou x", Mixed),
    ("git show HEAD --output=.git/hooks/pre-commit", Mixed),
    ("git -C a stash show --output=x", Mixed),
    ("git -c user.name=a log --output=x", Mixed),
    ("env A=1 git log --output=x", Mixed),
    ("sh -c 'git log --output=x'", Mixed),
    ("git log \"--output=x\"", Mixed),
    ("git log --out\"$x\"", Mixed),
    ("x=--output=y; git log $x", Mixed),
    ("git log \"$x\"", Mixed),
    ("git log *", Mixed),
    ("git log -S -- $x", Mixed),
    ("git log -- $x", In),
    ("git log main -- *.rs", In),
    ("git log \"origin/$branch\"", In),
    ("git log origin/$branch", Mixed),
    ("echo --output=x | xargs git log", Mixed),
    ("echo --output=x | xargs -I% git log %", Mixed),
    ("echo output=x | xargs -I% git log --%", Mixed),
    ("ls | xargs git log --", In),
    ("find . -exec git diff --output=x {} \\;", Mixed),
    ("git archive -o x HEAD", Mixed),
    ("git format-patch -ox main", Mixed),
    ("git grep -O y", Mixed),
    ("git grep \"$x\"", Mixed),
    ("git clone \"$x\"", Mixed),
    ("git log --oneline -n 5", In),
    ("git diff --output-indicator-new=x", In),
    ("git show HEAD:a", In),
    ("git ls-files -o", In),
    ("git commit -o a -m \"$x\"", In),
    // What else looks.
    ("sort -o x y", Mixed),
    ("sort -ox y", Mixed),
    ("sort -uo x y", Mixed),
    ("sort y --output=x", Mixed),
    ("sort --o=x y", Mixed),
    ("sort --compress-program='rm x' y", Mixed),
    ("sort $x", Mixed),
    ("ls | xargs sort", Mixed),
    ("sort -to -k2 x", In),
    ("sort -rn x | uniq -c", In),
    ("shuf -o x y", Mixed),
    ("uniq x y", Mixed),
    ("uniq -- x -y", Mixed),
    ("tree -Lo 2 x", Mixed),
    ("tree -L 2 x", In),
    ("sort -t \"\"{},-o/tmp/out} f", Mixed),
    ("uniq -c x", In),
    ("xxd x y", Mixed),
    ("xxd x", In),
    ("iconv -f a -t b -o x y", Mixed),
    ("tree -o x", Mixed),
    ("tree -R -H . -L 1", Mixed),
    ("tree -L 2", In),
    ("file -C -m x", Mixed),
    ("file x", In),
    ("find . -delete", Mixed),
    ("find . -fprint x", Mixed),
    ("find . -name x -ok sort -o x {} \\;", Mixed),
    ("find . -name x", In),
    ("sed -i s/a/b/ x", Mixed),
    ("sed -ni s/a/b/ x", Mixed),
    ("sed -i.old s/a/b/ x", Mixed),
    ("sed --in-place=.old s/a/b/ x", Mixed),
    ("sed -I '' s/a/b/ x", Mixed),
    ("sed -n 1,5p x", In),
    ("sed -es/i/j/ x", In),
    ("gawk -i inplace 1 x", Mixed),
    ("awk --include=inplace 1 x", Mixed),
    ("awk -F: '{print $1}' x", In),
    ("awk -vi=1 1 x", In),
    ("yq -i .a=1 x", Mixed),
    ("less -o x y", Mixed),
    ("less x", In),
    // Over the network.
    ("curl -o x https://a", Mixed),
    ("curl -sSLo x https://a", Mixed),
    ("curl -O https://a", Mixed),
    ("curl --outp x https://a", Mixed),
    ("curl -D x https://a", Mixed),
    ("curl -K x", Mixed),
    ("curl --variable x=y --expand-output '{{x}}' https://a", Mixed),
    ("curl -w '%output{x}y' https://a", Mixed),
    ("curl -w '%{http_code}' https://a", In),
    ("curl https://a/$x", Mixed),
    ("curl \"https://a/$x\"", In),
    ("curl -XPOST --cookie a=b https://a", In),
    // What starts what its arguments name.
    ("rg --pre ./x y", Mixed),
    ("rg --pre=./x y", Mixed),
    ("rg --pretty y", In),
    ("fd x -x rm", Mixed),
    ("fd x --exec-batch rm", Mixed),
    ("fd -e rs x", In),
    ("ag --pager=./x y", Mixed),
    ("ack --pager=./x y", Mixed),
    ("bat --pager ./x y", Mixed),
    ("man -P ./x y", Mixed),
    ("man y", In),
    ("tar -I ./x -xf y", Mixed),
    ("tar xIf ./x y", Mixed),
    ("tar -xf y --to-command=./x", Mixed),
    ("tar --checkpoint-action=exec=./x -cf y z", Mixed),
    ("tar cf x *", Mixed),
    ("tar -tzf x", In),
    ("tar tzf x", In),
    ("rsync -e ./x a b:c", Mixed),
    ("sdiff --diff-program=./x a b", Mixed),
    ("sdiff -s a b", In),
    ("diff3 --diff-program ./x a b c", Mixed),
    ("split --filter=./x a", Mixed),
    ("split -l 5 a", In),
    ("cpio --rsh-command=./x -F h:a -t", Mixed),
    ("zip -T -TT ./x a.zip b", Mixed),
    ("zip a.zip b -T -qTT ./x", Mixed),
    ("git bundle create x main", Mixed),
    ("git bundle verify x", In),
    ("git fast-export --export-marks=x main", Mixed),
    ("zip -r a.zip b", In),
    ("ssh -o ProxyCommand=./x h", Mixed),
    ("ssh -oproxycommand=./x h", Mixed),
    ("ssh -o 'Match exec ./x' h", Mixed),
    ("ssh -F x h", Mixed),
    ("ssh \"$x\"", Mixed),
    ("ssh -p 22 -o BatchMode=yes a@h ls", In),
    ("scp -S ./x a h:b", Mixed),
    ("scp -P 22 a h:b", In),
    ("sftp -b x h", Mixed),
    ("npx prettier x", In),
    ("env -S 'sort -o x'", Mixed),
    ("git -c core.pager=./x log", Mixed),
    ("git -c alias.x='!rm y' x", Mixed),
    ("git --exec-path=/tmp log", Mixed),
    // What is named writes, where that is its work.
    ("git log | tee x", In),
    ("ls \"$x\" *", In),
    ("cat $x", In),
];

#[test]
fn a_program_that_looks_is_not_allowed_where_it_is_told_to_write_or_to_start_others() {
    let wrong: Vec<_> = CASES
        .iter()
        .filter(|(line, expected)| looks(line) != *expected)
        .map(|(line, expected)| (line, expected, looks(line)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nor_where_it_comes_as_a_list_of_words() {
    for words in [json!(["git", "log", "--output=x"]), json!(["sort", "-o", "x", "y"]), json!(["sed", "-i", "s/a/b/", "x"])] {
        let when = json!({"command": {"program": LOOKS}});
        assert_eq!(crate::is("command__run", &when, &json!({"command": words})), Mixed, "{words}");
        let beside = json!({"command": words[0], "args": words.as_array().unwrap()[1..]});
        assert_eq!(crate::is("command__run", &when, &beside), Mixed, "{beside}");
    }
}
