//! What is given to others. This program itself stands in for the binary: it is linked like it, and says something.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy excuses only the test functions themselves")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_xtask");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A folder of its own below the target folder, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn dist(output: &Path) {
    let mut command = Command::new(BINARY);
    command.args(["dist", "--binary", BINARY, "--output"]).arg(output).env("SOURCE_DATE_EPOCH", "1700000000");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// What a program prints.
fn said(command: &mut Command) -> String {
    let output: Output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The file of this folder with this ending.
fn file(folder: &Path, ending: &str) -> PathBuf {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.into_iter().find(|file| file.to_str().unwrap().ends_with(ending)).unwrap()
}

fn is_there(program: &str) -> bool {
    let ran = Command::new(program).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}

#[test]
fn the_archive_and_the_image_are_whole_and_the_same_each_time() {
    let (first, second) = (folder("dist-first"), folder("dist-second"));
    dist(&first);
    dist(&second);
    let sums = std::fs::read_to_string(file(&first, ".sha256")).unwrap();
    assert_eq!(std::fs::read_to_string(file(&second, ".sha256")).unwrap(), sums);
    assert_eq!(sums.lines().count(), 2, "{sums}");
    said(Command::new("sha256sum").arg("-c").arg(file(&first, ".sha256")).current_dir(&first));

    let archive = said(Command::new("tar").arg("-tzf").arg(file(&first, ".tar.gz")));
    let names: Vec<&str> = archive.lines().filter_map(|name| name.split_once('/').map(|(_, name)| name)).collect();
    for name in ["turnwright", "LICENSE-MIT", "LICENSE-APACHE", "README.md", "turnwright.service", "docs/operations.md"] {
        assert!(names.contains(&name), "{name} is missing: {archive}");
    }

    let image = file(&first, "-image.tar");
    let manifest = said(Command::new("tar").arg("-xOf").arg(&image).arg("./manifest.json"));
    let layer = manifest.rsplit_once("blobs/sha256/").unwrap().1.get(..64).unwrap();
    let unpacked = folder("dist-layer");
    said(Command::new("tar").arg("-xf").arg(&image).arg("-C").arg(&unpacked));
    let layer = unpacked.join("blobs/sha256").join(layer);
    let listed = said(Command::new("tar").args(["--numeric-owner", "-tvf"]).arg(&layer));
    let owner = |name: &str| {
        let line = listed.lines().find(|line| line.ends_with(name)).unwrap_or_else(|| panic!("{name} is missing: {listed}"));
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!((owner(" usr/bin/turnwright"), owner(" data/")), ("0/0".to_owned(), "65532/65532".to_owned()));
    assert!(listed.contains("etc/ssl/certs/ca-certificates.crt") && listed.contains("libc.so.6"), "{listed}");
    assert!(!listed.contains("bin/sh"), "{listed}");
}

#[test]
fn an_engine_loads_the_image_and_runs_it_as_nobody_without_a_network() {
    let Some(host) = std::env::var_os("TURNWRIGHT_TEST_DOCKER").filter(|_| is_there("docker")) else {
        println!("skipped: there is no Docker engine; run this through scripts/start-test-docker");
        return;
    };
    let output = folder("dist-loaded");
    dist(&output);
    let docker = |words: &[&str]| said(Command::new("docker").env("DOCKER_HOST", &host).args(words));
    let loaded = docker(&["load", "-i", file(&output, "-image.tar").to_str().unwrap()]);
    let image = loaded.trim().rsplit_once(' ').unwrap().1;
    let user = docker(&["image", "inspect", "--format", "{{.Config.User}}", image]);
    assert_eq!(user.trim(), "65532:65532");
    let help = docker(&["run", "--rm", "--network=none", "--read-only", image, "help"]);
    assert!(help.contains("cargo xtask dist"), "{help}");
}

#[test]
fn the_unit_is_understood_and_leaves_little_open() {
    if !is_there("systemd-analyze") {
        println!("skipped: there is no systemd-analyze");
        return;
    }
    let unit = std::fs::read_to_string(root().join("packaging/turnwright.service")).unwrap();
    let copy = folder("unit").join("turnwright.service");
    std::fs::write(&copy, unit.replace("/usr/local/bin/turnwright", "/bin/true")).unwrap();
    let verified = Command::new("systemd-analyze").arg("verify").arg(&copy).output().unwrap();
    let told = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !told.contains("turnwright.service"), "{told}");
    let rated =
        Command::new("systemd-analyze").args(["security", "--offline=true", "--threshold=20"]).arg(&copy).output().unwrap();
    assert!(rated.status.success(), "{}", String::from_utf8_lossy(&rated.stdout));
}

/// The calls that a group of systemd's stands for, or the one of this name.
fn calls(name: &str) -> Vec<String> {
    if !name.starts_with('@') {
        return vec![name.to_owned()];
    }
    let listed = said(Command::new("systemd-analyze").args(["syscall-filter", name]));
    let members = listed.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    members.flat_map(calls).collect()
}

#[test]
fn the_unit_lets_the_sandbox_of_tools_be_set_up_and_ends_nothing_for_a_call_that_it_refuses() {
    if !is_there("systemd-analyze") {
        println!("skipped: there is no systemd-analyze");
        return;
    }
    let unit = std::fs::read_to_string(root().join("packaging/turnwright.service")).unwrap();
    let mut allowed = std::collections::BTreeSet::new();
    for line in unit.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        let (names, takes_away) = line.strip_prefix('~').map_or((line, false), |names| (names, true));
        for call in names.split_whitespace().flat_map(calls) {
            if takes_away {
                allowed.remove(&call)
            } else {
                allowed.insert(call)
            };
        }
    }
    for needed in ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp", "capset", "execve"] {
        assert!(allowed.contains(needed), "{needed}");
    }
    for refused in ["mount", "setuid", "init_module", "reboot"] {
        assert!(!allowed.contains(refused), "{refused}");
    }
    assert!(unit.contains("\nSystemCallErrorNumber=EPERM\n"), "a command that sets an owner is not ended");
}
