//! Root in the data directory of another user, and a data directory that cannot be written.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Place, Ran};

/// A user who is there on every system, without a folder of its own.
const NOBODY: u32 = 65_534;

/// A place as root has it, with data; `None` where the tests are not root's, or keep their data elsewhere.
fn of_root() -> Option<Place> {
    let place = Place::new();
    if std::fs::metadata(place.path("")).unwrap().uid() != 0 || place.database().is_some() {
        println!("skipped: the tests are not root's, or their data is on PostgreSQL");
        return None;
    }
    let ran = place.run(&["users", "list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    Some(place)
}

/// Everything below a folder.
fn all_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = entries.flat_map(|path| if path.is_dir() { [all_below(&path), vec![path]].concat() } else { vec![path] });
    below.collect()
}

fn give(place: &Place, owner: u32) {
    for path in [all_below(&place.path("data")), vec![place.path("data")]].concat() {
        chown(path, Some(owner), None).unwrap();
    }
}

#[test]
fn root_makes_no_files_where_another_users_data_is_and_reads_how_to_run_it() {
    let Some(place) = of_root() else { return };
    give(&place, NOBODY);
    for words in [&["users", "list"][..], &["serve", "--listen", "127.0.0.1:0"], &["chat", "hello"]] {
        let ran = place.run(words);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let belongs = format!("belongs to the user with the id {NOBODY}, and this process is root's");
        assert!(ran.stderr.contains(&belongs) && ran.stderr.contains("hint: `sudo -u nobody turnwright …`"), "{ran:?}");
    }
    // These leave nothing behind.
    for words in [&["db", "check"][..], &["db", "backup", "copy.db"]] {
        let ran = place.run(words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let of_others: Vec<_> =
        all_below(&place.path("data")).into_iter().filter(|path| path.metadata().unwrap().uid() != NOBODY).collect();
    assert_eq!(of_others, Vec::<std::path::PathBuf>::new());
    // Where nothing is yet root may begin, as in a volume of a container; what is root's already root goes on with.
    let empty = place.path("empty");
    std::fs::create_dir(&empty).unwrap();
    chown(&empty, Some(NOBODY), None).unwrap();
    let ran = place.run(&["users", "list", "--data-dir", "empty"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    give(&place, 0);
    chown(place.path("data"), Some(NOBODY), None).unwrap();
    let ran = place.run(&["users", "list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// What the binary says as a user who may do nothing special, with a file system of its own as its data directory.
fn on_own_disk(place: &Place, options: &str, before: &str, words: &[&str]) -> Option<Ran> {
    let script = format!("mount -t tmpfs -o {options} tmpfs data && {before} && exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_turnwright")]);
    let ran = Ran::of(place.clean(command, words).stdin(Stdio::null()).output().unwrap());
    let is_refused = ran.stderr.contains("unshare: ") || ran.stderr.contains("mount: ");
    if is_refused {
        println!("skipped: no file system can be mounted here: {}", ran.stderr);
    }
    (!is_refused).then_some(ran)
}

#[test]
fn a_data_directory_that_cannot_be_written_is_named_with_what_mends_it() {
    let Some(place) = of_root() else { return };
    let fill = "dd if=/dev/zero of=data/fill bs=1k 2>/dev/null; true";
    // With room for a database, one is there before the disk is full.
    let later = format!("'{}' users list >/dev/null && {fill}", env!("CARGO_BIN_EXE_turnwright"));
    let cases = [
        ("ro", "true", "its file system is mounted read-only: mount it writable, or name another place"),
        ("size=4k", fill, "free some"),
        ("size=400k", &later, "free some space there"),
    ];
    for (options, before, mend) in cases {
        let Some(ran) = on_own_disk(&place, options, before, &["serve", "--listen", "127.0.0.1:0"]) else { return };
        assert_eq!(ran.code, Some(2), "{options}: {ran:?}");
        let data = place.path("data").display().to_string();
        assert!(ran.stderr.contains(&data) && ran.stderr.contains(mend), "{options}: {ran:?}");
    }
    // What only reads needs no room beside it, nor does a backup on another disk.
    let backup = place.path("copy.db");
    for words in [&["db", "check"][..], &["db", "backup", backup.to_str().unwrap()]] {
        let Some(ran) = on_own_disk(&place, "size=400k", &later, words) else { return };
        assert_eq!(ran.code, Some(0), "{words:?}: {ran:?}");
    }
    // Root without its rights is as any other user.
    give(&place, NOBODY);
    let mut command = Command::new("setpriv");
    command.args(["--inh-caps=-all", "--bounding-set=-all", env!("CARGO_BIN_EXE_turnwright")]);
    let ran = Ran::of(place.clean(command, &["serve", "--listen", "127.0.0.1:0"]).stdin(Stdio::null()).output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("Permission denied"), "{ran:?}");
    assert!(ran.stderr.contains("must be writable for the user who runs this"), "{ran:?}");
}
