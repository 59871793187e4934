//! The page that the server serves: `web/` and the libraries that its lock file names, put together in `web/made/page`.
//!
//! Only this task needs Node.js. Without it the server is built all the same and says in place of the page how to get it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::{cargo, pack, say};

/// Which of the packages are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packages {
    /// What the page is made of.
    Page,
    /// Also what it is checked and tested with.
    Checks,
}

/// Makes the page.
pub(crate) fn make() -> ExitCode {
    match put_together(Packages::Page) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&format!("xtask: the page was not made: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// Makes the page where that can be done, and runs the program with `words` in any case.
pub(crate) fn run_program(words: &[&str]) -> ExitCode {
    if !is_made()
        && let Err(why) = put_together(Packages::Page)
    {
        say(&format!("note: the page is not part of this build: {why}"));
    }
    let mut command = cargo();
    command.arg("run");
    if is_compiled() {
        command.arg("--quiet");
    } else {
        say("note: the program is compiled first, which takes some minutes");
    }
    let status = command.arg("--").args(words).status();
    match status.map(|status| status.code()) {
        Ok(Some(code)) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Ok(None) | Err(_) => ExitCode::FAILURE,
    }
}

/// Whether there is a program already, so that compiling what has changed is short. Where cargo was told another folder by its configuration,
/// it says what it does each time.
fn is_compiled() -> bool {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| web().join("../target"), PathBuf::from);
    target.join("debug").join(format!("turnwright{}", std::env::consts::EXE_SUFFIX)).is_file()
}

/// Makes the page and checks the types of its modules.
pub(crate) fn check() -> Result<(), String> {
    put_together(Packages::Checks)?;
    let tsc = web().join("node_modules/typescript/bin/tsc");
    run("node", &[tsc.as_os_str(), OsStr::new("-p"), OsStr::new(".")])
}

/// Whether Node.js and npm are there.
pub(crate) fn has_npm() -> bool {
    ["node", "npm"].iter().all(|program| {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

fn put_together(packages: Packages) -> Result<(), String> {
    if !has_npm() {
        return Err("Node.js with npm is not installed".to_owned());
    }
    install(packages)?;
    // Not beside what it replaces: a folder of `made` that came and went has the server built again.
    let making = web().join(format!("node_modules/.page.{}", std::process::id()));
    let made = make_in(&making);
    if making.is_dir() {
        remove(&making)?;
    }
    made
}

/// Makes the page in a folder, and puts it where the server has it from. Where it comes out the same the one that is there stays: a newer one
/// would have the server built again.
fn make_in(making: &Path) -> Result<(), String> {
    run("node", &[OsStr::new("build.mjs"), making.as_os_str()])?;
    let counted = pack::pack(making)?;
    let made = web().join("made/page");
    if !pack::are_same(&made, making)? {
        if made.is_dir() {
            remove(&made)?;
        }
        std::fs::rename(making, &made).map_err(|error| format!("{}: {error}", made.display()))?;
    }
    say(&format!("page: {counted}, in web/made/page"));
    Ok(())
}

fn remove(folder: &Path) -> Result<(), String> {
    std::fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Installs exactly what the lock file names, where that was not done.
fn install(packages: Packages) -> Result<(), String> {
    let lock =
        std::fs::read_to_string(web().join("package-lock.json")).map_err(|error| format!("package-lock.json: {error}"))?;
    let stamp = web().join("node_modules/.installed");
    let known = std::fs::read_to_string(&stamp).unwrap_or_default();
    let all = format!("all\n{lock}");
    if known == all || (packages == Packages::Page && known == lock) {
        return Ok(());
    }
    let words = ["ci", "--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts"].map(OsStr::new);
    let (omitted, stamped): (&[&OsStr], _) = match packages {
        Packages::Page => (&[OsStr::new("--omit=dev")], lock),
        Packages::Checks => (&[], all),
    };
    run("npm", &[&words, omitted].concat())?;
    std::fs::write(&stamp, stamped).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// Whether the page is newer than what it is made of.
fn is_made() -> bool {
    let Ok(made) = std::fs::metadata(web().join("made/page/index.html")).and_then(|file| file.modified()) else { return false };
    newest(&web().join("page")).into_iter().chain(newest(&web().join("package-lock.json"))).all(|changed| changed <= made)
}

/// When the newest file at or below `path` was changed.
fn newest(path: &Path) -> Option<std::time::SystemTime> {
    let own = std::fs::metadata(path).and_then(|file| file.modified()).ok();
    let below = std::fs::read_dir(path).into_iter().flatten().flatten().filter_map(|entry| newest(&entry.path()));
    below.chain(own).max()
}

fn run(program: &str, words: &[&OsStr]) -> Result<(), String> {
    let shown = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let shown = format!("{program} {shown}");
    let mut command = Command::new(program);
    command.args(words).current_dir(web()).stdin(Stdio::null()).stdout(std::io::stderr());
    let status = command.status().map_err(|error| format!("`{shown}` cannot be run: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` ended with {status}")) }
}

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../web")
}
