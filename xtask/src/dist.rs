//! What is given to others: an archive, an image, checksums.
//!
//! Everything is put together by `tar`, `gzip` and `sha256sum`, with names in order and the time of the last commit, so that
//! the same binary gives the same bytes.

mod image;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::{cargo, page, say};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the binary comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Binary {
    /// Built with this profile.
    Built(String),
    /// There already.
    At(PathBuf),
}

/// Puts everything together, as `words` want it.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    match options(words).and_then(|(binary, output)| make(&binary, &output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&format!("xtask: nothing can be given to others: {why}"));
            ExitCode::FAILURE
        }
    }
}

fn options(words: &[&str]) -> Result<(Binary, PathBuf), String> {
    let (mut binary, mut output) = (Binary::Built("release".to_owned()), root().join("target/dist"));
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().map(|value| (*value).to_owned()).ok_or_else(|| format!("`{word}` needs a value"));
        match *word {
            "--profile" => binary = Binary::Built(value()?),
            "--binary" => binary = Binary::At(PathBuf::from(value()?)),
            "--output" => output = PathBuf::from(value()?),
            _ => return Err(format!("`{word}` is not known; there are --profile NAME, --binary FILE and --output FOLDER")),
        }
    }
    Ok((binary, output))
}

fn make(binary: &Binary, output: &Path) -> Result<(), String> {
    let target = target()?;
    let binary = match binary {
        Binary::At(file) => file.clone(),
        Binary::Built(profile) => built(profile)?,
    };
    let name = format!("turnwright-{VERSION}-{target}");
    let work = output.join("work");
    drop(fs::remove_dir_all(&work));
    make_folder(&work)?;
    let time = commit_time();
    let archive = output.join(format!("{name}.tar.gz"));
    put_archive(&binary, &work.join(&name))?;
    pack(&work, &name, &time, &work.join("archive.tar"))?;
    compress(&work.join("archive.tar"), &archive)?;
    let image = output.join(format!("{name}-image.tar"));
    image::make(&binary, &work.join("image"), (&target, &time), &image)?;
    drop(fs::remove_dir_all(&work));
    let names: Vec<String> =
        [&archive, &image].into_iter().filter_map(|file| Some(file.file_name()?.to_str()?.to_owned())).collect();
    let sums = said(Command::new("sha256sum").args(&names).current_dir(output))?;
    write(&output.join(format!("{name}.sha256")), &sums)?;
    say(&format!("made in {}:\n{}", output.display(), sums.trim_end()));
    Ok(())
}

/// Builds the page and the binary.
fn built(profile: &str) -> Result<PathBuf, String> {
    if page::make() != ExitCode::SUCCESS {
        return Err("a release has the page in it".to_owned());
    }
    let mut command = cargo();
    command.args(["build", "--locked", "-p", "turnwright-app", "--profile", profile]).current_dir(root());
    let status = command.status().map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !status.success() {
        return Err(format!("`cargo build --profile {profile}` ended with {status}"));
    }
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    // The profile `dev` builds into a folder of another name.
    Ok(folder.join(if profile == "dev" { "debug" } else { profile }).join("turnwright"))
}

/// What is in the archive.
fn put_archive(binary: &Path, folder: &Path) -> Result<(), String> {
    make_folder(folder)?;
    copy(binary, &folder.join("turnwright"))?;
    run_program(Command::new("chmod").arg("755").arg(folder.join("turnwright")))?;
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md", "packaging/turnwright.service"] {
        let name = Path::new(file).file_name().unwrap_or_default();
        copy(&root().join(file), &folder.join(name))?;
    }
    let docs = folder.join("docs");
    make_folder(&docs)?;
    for file in fs::read_dir(root().join("docs")).map_err(|error| format!("docs: {error}"))?.flatten() {
        if file.path().extension().is_some_and(|ending| ending == "md") {
            copy(&file.path(), &docs.join(file.file_name()))?;
        }
    }
    Ok(())
}

/// A tar of `name` in `folder`, the same for the same content.
fn pack(folder: &Path, name: &str, time: &str, to: &Path) -> Result<(), String> {
    let mut command = Command::new("tar");
    command.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu", &format!("--mtime=@{time}")]);
    run_program(command.arg("-C").arg(folder).arg("-cf").arg(to).arg(name))
}

fn compress(from: &Path, to: &Path) -> Result<(), String> {
    let file = fs::File::create(to).map_err(|error| format!("{}: {error}", to.display()))?;
    run_program(Command::new("gzip").args(["-9", "-n", "-c"]).arg(from).stdout(file))
}

/// The machine and system that is built for, as rustc calls them.
fn target() -> Result<String, String> {
    let said = said(Command::new("rustc").arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say what it builds for".to_owned())
}

/// When the last commit was made, in seconds since 1970; `SOURCE_DATE_EPOCH` where that is set.
fn commit_time() -> String {
    let chosen = std::env::var_os("SOURCE_DATE_EPOCH").and_then(|time| time.into_string().ok());
    let chosen = chosen.filter(|time| time.parse::<u64>().is_ok());
    let committed = || said(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root())).ok();
    chosen.or_else(committed).map_or_else(|| "0".to_owned(), |time| time.trim().to_owned())
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

fn make_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("{} cannot be copied: {error}", from.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// What a program prints.
fn said(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("`{name}` cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{name}` ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("`{name}` prints no text"))
}

fn run_program(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().map_err(|error| format!("`{name}` cannot be run: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{name}` ended with {status}")) }
}
