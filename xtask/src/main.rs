//! The project's own tasks, run as `cargo xtask TASK`: nothing to install besides Rust.
//!
//! The program has next to no dependencies, so that it is there at once. What the tree must look like is not checked here but by
//! this package's tests, which are run with all the others.

mod chaos;
mod ci;
mod dist;
mod load;
mod pack;
mod page;
mod scale;
mod skips;

use std::io::{self, Write};
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask ci          everything a change must pass: formatting, lints, documentation, the page, tests
cargo xtask page        makes the page that the server serves, in web/made (needs Node.js with npm)
cargo xtask dist        makes what is given to others, in target/dist: an archive, an image for docker load, checksums
                        (--profile NAME, --binary FILE for one that is built, --output FOLDER)
cargo xtask run WORDS   makes the page where npm is there, and runs turnwright with these words
cargo xtask load [SECONDS]
                        1,000 streams over 64 running conversations, five minutes unless said, on a release build
cargo xtask chaos [SECONDS] [--seed N]
                        three nodes over PostgreSQL and NATS, whose members fail at random, one minute unless said (root on Linux)
cargo xtask chaos --without-fence
                        whether that finds a build whose nodes do what they have begun although their leases ran out
cargo xtask scale       what is full first, up to 100 nodes and a million streams: the tables of docs/scale.md
cargo xtask help        this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ci"] => ci::run(),
        ["load"] => load::run(None),
        ["load", seconds] => load::run(Some(seconds)),
        ["chaos", words @ ..] => chaos::run(words),
        ["scale"] => scale::run(),
        ["page"] => page::make(),
        ["dist", words @ ..] => dist::run(words),
        ["run", words @ ..] => page::run_program(words),
        ["help" | "--help" | "-h"] | [] => match io::stdout().write_all(HELP.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        _ => {
            say(&format!("xtask: `{}` is not a task; there are:\n{HELP}", words.join(" ")));
            ExitCode::from(2)
        }
    }
}

/// Cargo as from a shell. What it tells the program that it runs of that program's package, build scripts (that of `ring`) take for a change of
/// their own: much would be built anew, and again by whoever calls cargo without this program.
fn cargo() -> Command {
    let mut command = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
    command
}

/// Tells people something. Where nobody listens any more, the exit code still says how it went.
fn say(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn cargo_is_told_nothing_of_this_package() {
        let command = super::cargo();
        let removed = |name: &str| command.get_envs().any(|(removed, value)| removed == name && value.is_none());
        // Whoever runs tests is told it too.
        assert!(removed("CARGO_PKG_NAME") && removed("CARGO_MANIFEST_DIR"));
    }

    /// Where cargo does not look for tests itself, one that nobody names would not be run and nobody would hear of it.
    #[test]
    fn every_file_of_tests_is_named_by_their_program() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let mut seen = 0;
        for folder in std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("tests")) {
            let Ok(program) = std::fs::read_to_string(folder.join("main.rs")) else { continue };
            for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let name = file.file_stem().and_then(|name| name.to_str()).unwrap();
                if file.extension().is_some_and(|extension| extension == "rs") && name != "main" {
                    assert!(program.lines().any(|line| line == format!("mod {name};")), "{}", file.display());
                    seen += 1;
                }
            }
        }
        assert!(seen > 50, "{seen}");
    }
}
