//! What files and file systems do that nobody wants: full disks, mounts, files that grow, names that are no text, huge files, a full
//! trash. Each ends with a result, or with an error that says what to do next, and loses nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{World, call, failure, text};
use serde_json::{Value, json};
use turnwright_core::ToolErrorKind;
use turnwright_tools::{FilesystemConfig, TypedSource, filesystem};

/// Something that is mounted for the length of a test.
struct Mount(PathBuf);

impl Mount {
    /// `None`, loudly, where this process may not mount.
    fn new(arguments: &[&OsStr], at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let mount = Command::new("mount").args(arguments).arg(at).output();
        match mount {
            Ok(mount) if mount.status.success() => Some(Self(at.to_path_buf())),
            Ok(mount) => {
                println!("skipped: nothing can be mounted here: {}", String::from_utf8_lossy(&mount.stderr).trim());
                None
            }
            Err(error) => {
                println!("skipped: `mount` cannot be run: {error}");
                None
            }
        }
    }

    /// A file system of 256 KiB in memory.
    fn small(at: &Path) -> Option<Self> {
        Self::new(&["-t", "tmpfs", "-o", "size=256k", "small"].map(OsStr::new), at)
    }

    /// `folder`, also at `at`.
    fn bind(folder: &Path, at: &Path) -> Option<Self> {
        Self::new(&[OsStr::new("--bind"), folder.as_os_str()], at)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.0).status());
    }
}

fn with_trash(world: &World, trash: PathBuf) -> TypedSource {
    filesystem(FilesystemConfig { trash: Some(trash), ..world.config() }).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_full_disk_leaves_what_was_there_and_says_so() {
    let world = World::new();
    let Some(_small) = Mount::small(&world.root.join("small")) else { return };
    let source = with_trash(&world, world.folder.path().join("trash"));
    world.put("small/kept.txt", "kept\n");
    world.put("large.txt", "x".repeat(400_000));
    let full = |path: &str| {
        (ToolErrorKind::ExecutionFailed, format!("`{path}` was not written: the disk is full; what was there is unchanged"))
    };
    let large = "y".repeat(400_000);
    let calls = [
        ("write", json!({"path": "small/kept.txt", "content": large}), "small/kept.txt"),
        ("write", json!({"path": "small/new.txt", "content": large}), "small/new.txt"),
        ("edit", json!({"path": "small/kept.txt", "old_text": "kept", "new_text": large}), "small/kept.txt"),
    ];
    for (tool, arguments, path) in calls {
        assert_eq!(failure(&source, tool, arguments).await, full(path), "{tool}");
    }
    let (kind, said) = failure(&source, "move", json!({"from": "large.txt", "to": "small/large.txt"})).await;
    let expected = "`small/large.txt` was not written: the disk is full; `large.txt` is where it was";
    assert_eq!((kind, said.as_str()), (ToolErrorKind::ExecutionFailed, expected));
    assert_eq!((world.get("small/kept.txt"), world.get("large.txt").len()), ("kept\n".to_owned(), 400_000));
    assert_eq!(names(&world.root.join("small")), ["kept.txt"], "nothing is left of what could not be written");
}

#[tokio::test]
async fn what_does_not_fit_into_the_trash_stays_where_it_was() {
    let world = World::new();
    let trash = world.folder.path().join("trash");
    let Some(_small) = Mount::small(&trash) else { return };
    let source = with_trash(&world, trash.clone());
    world.put("large/a.txt", "x".repeat(150_000));
    world.put("large/b.txt", "x".repeat(150_000));
    let (kind, said) = failure(&source, "delete", json!({"path": "large"})).await;
    assert_eq!(kind, ToolErrorKind::ExecutionFailed);
    assert_eq!(said, "`large` was not deleted: the disk of the trash is full; it is where it was, and the user can make room");
    assert_eq!((world.get("large/a.txt").len(), world.get("large/b.txt").len()), (150_000, 150_000));
    assert_eq!(names(&trash), Vec::<String>::new());
    // What fits goes there and comes back, over the border of file systems.
    let deleted = call(&source, "delete", json!({"path": "large/a.txt"})).await.unwrap().structured_content.unwrap();
    assert_eq!(names(&world.root.join("large")), ["b.txt"]);
    text(&source, "restore", json!({"id": deleted["id"]})).await;
    assert_eq!(names(&world.root.join("large")), ["a.txt", "b.txt"]);
}

/// The trash is in another file system, and a file cannot be removed from its folder: what was copied is then all that there is of what
/// was removed already.
#[tokio::test]
async fn what_can_be_deleted_only_in_part_is_whole_in_the_trash() {
    let world = World::new();
    let trash = world.folder.path().join("trash");
    let Some(_small) = Mount::small(&trash) else { return };
    let source = with_trash(&world, trash.clone());
    world.put("folder/a/kept.txt", "a");
    world.put("folder/b/kept.txt", "b");
    let fixed = world.root.join("folder/a");
    let change = |how: &str| Command::new("chattr").arg(how).arg(&fixed).status().is_ok_and(|status| status.success());
    if !change("+i") {
        println!("skipped: nothing can be made immutable here");
        return;
    }
    let said = failure(&source, "delete", json!({"path": "folder"})).await.1;
    assert!(change("-i"));
    let id = names(&trash).pop().expect("it is in the trash");
    assert!(said.contains("`folder` was deleted only in part") && said.contains(&id), "{said}");
    assert_eq!(std::fs::read_to_string(trash.join(&id).join("item/b/kept.txt")).unwrap(), "b");
    std::fs::remove_dir_all(world.root.join("folder")).unwrap();
    text(&source, "restore", json!({"id": id})).await;
    assert_eq!((world.get("folder/a/kept.txt"), world.get("folder/b/kept.txt")), ("a".to_owned(), "b".to_owned()));
}

#[tokio::test]
async fn what_never_became_whole_in_the_trash_goes_after_a_day() {
    let world = World::new();
    let trash = world.folder.path().join("trash");
    let source = with_trash(&world, trash.clone());
    let put = |id: &str, file: &str, age_hours: u64| {
        std::fs::create_dir_all(trash.join(id)).unwrap();
        std::fs::write(trash.join(id).join(file), "x").unwrap();
        let time = std::fs::metadata(&trash).unwrap().modified().unwrap() - std::time::Duration::from_hours(age_hours);
        std::fs::File::open(trash.join(id)).unwrap().set_modified(time).unwrap();
    };
    put("00000000000000a1", ".turnwright-1-1.tmp", 25);
    put("00000000000000a2", ".turnwright-1-2.tmp", 23);
    put("00000000000000a3", "item", 2_500);
    world.put("a.txt", "a");
    let deleted = call(&source, "delete", json!({"path": "a.txt"})).await.unwrap().structured_content.unwrap();
    let mut left = names(&trash);
    left.retain(|name| json!(name) != deleted["id"]);
    assert_eq!(left, ["00000000000000a2", "00000000000000a3"]);
}

#[tokio::test]
async fn of_a_full_trash_the_oldest_goes_and_the_newest_comes_back() {
    let world = World::new();
    let trash = world.folder.path().join("trash");
    let source = with_trash(&world, trash.clone());
    let mut ids = Vec::new();
    for number in 0..1_003 {
        world.put("a.txt", number.to_string());
        let deleted = call(&source, "delete", json!({"path": "a.txt"})).await.unwrap();
        ids.push(deleted.structured_content.unwrap()["id"].clone());
        if number == 2 {
            // So that these three are the oldest by any clock.
            for name in names(&trash) {
                std::fs::File::open(trash.join(name)).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            }
        }
    }
    assert_eq!(names(&trash).len(), 1_000);
    for id in &ids[..3] {
        let (kind, said) = failure(&source, "restore", json!({"id": id})).await;
        let id = id.as_str().unwrap();
        let expected = format!("the trash holds nothing with the id {id}; perhaps it was restored already");
        assert_eq!((kind, said), (ToolErrorKind::NotFound, expected));
    }
    text(&source, "restore", json!({"id": ids[1_002]})).await;
    assert_eq!(world.get("a.txt"), "1002");
}

#[tokio::test]
async fn a_folder_that_is_mounted_in_a_root_is_a_part_of_it_and_leads_no_further() {
    let world = World::new();
    let other = world.folder.path().join("other");
    std::fs::create_dir_all(other.join("deep")).unwrap();
    std::fs::write(other.join("deep/a.txt"), "mounted\n").unwrap();
    std::os::unix::fs::symlink("../outside/secret.txt", other.join("up")).unwrap();
    std::os::unix::fs::symlink(&world.outside, other.join("out")).unwrap();
    let Some(_mount) = Mount::bind(&other, &world.root.join("mounted")) else { return };
    let source = with_trash(&world, world.folder.path().join("trash"));
    assert_eq!(text(&source, "read", json!({"path": "mounted/deep/a.txt"})).await, "mounted\n");
    assert_eq!(text(&source, "search", json!({"pattern": "mounted"})).await, "mounted/deep/a.txt:1: mounted");
    text(&source, "write", json!({"path": "mounted/new.txt", "content": "new"})).await;
    assert_eq!(std::fs::read_to_string(other.join("new.txt")).unwrap(), "new");
    // Where it is mounted from, its links would lead out. Here `..` is the root.
    for path in ["mounted/up", "mounted/out/secret.txt", "mounted/../../outside/secret.txt", "mounted/deep/../../../outside"] {
        let (kind, said) = failure(&source, "read", json!({"path": path})).await;
        assert!(
            matches!(kind, ToolErrorKind::PermissionDenied | ToolErrorKind::NotFound | ToolErrorKind::ExecutionFailed),
            "{path}"
        );
        assert!(!said.contains("secret\n"), "{path}: {said}");
    }
    // The place where something is mounted cannot go away, and what is in it stays.
    for (tool, arguments) in [("delete", json!({"path": "mounted"})), ("move", json!({"from": "mounted", "to": "elsewhere"}))] {
        let (kind, said) = failure(&source, tool, arguments).await;
        assert_eq!(kind, ToolErrorKind::ExecutionFailed, "{tool}: {said}");
        assert!(said.contains("`mounted` is where something is mounted") && said.contains("ask the user"), "{tool}: {said}");
    }
    // Nor can the folder around it, with which it would go.
    world.put("around/a.txt", "around");
    let Some(_within) = Mount::bind(&other, &world.root.join("around/within")) else { return };
    let (_, said) = failure(&source, "delete", json!({"path": "around"})).await;
    assert!(said.contains("`around` holds `around/within`, where something is mounted"), "{said}");
    assert_eq!(std::fs::read_to_string(other.join("deep/a.txt")).unwrap(), "mounted\n");
    assert!(!world.root.join("elsewhere").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_grow_and_shrink_while_they_are_looked_at_end_all_the_same() {
    const LINE: &str = "an ordinary line of a log\n";
    let world = World::new();
    world.put("log.txt", LINE.repeat(1_000));
    let source = world.filesystem();
    let done = AtomicBool::new(false);
    let (path, done, source) = (&world.root.join("log.txt"), &done, &source);
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            scope.spawn(move || {
                use std::io::Write as _;
                while !done.load(Ordering::Relaxed) {
                    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
                    for _ in 0..2_000 {
                        file.write_all(LINE.as_bytes()).unwrap();
                    }
                    file.set_len(u64::try_from(LINE.len()).unwrap() * 1_000).unwrap();
                }
            });
            tokio::runtime::Handle::current().block_on(async {
                for _ in 0..100 {
                    for arguments in [
                        json!({"path": "log.txt"}),
                        json!({"path": "log.txt", "line": 900, "lines": 2_000}),
                        json!({"path": "log.txt", "offset": 2_600}),
                    ] {
                        // What was there at one moment, and no line that never was.
                        match call(source, "read", arguments.clone()).await {
                            Ok(output) => {
                                let read = turnwright_core::text_of(&output.content);
                                let strange = read
                                    .lines()
                                    .find(|line| !line.is_empty() && !LINE.starts_with(line) && !line.starts_with('['));
                                assert_eq!(strange, None, "{arguments}");
                            }
                            Err(error) => assert!(error.model_text.contains("past the end"), "{arguments}: {error:?}"),
                        }
                    }
                    let found = call(source, "search", json!({"pattern": "log", "path": "log.txt"})).await.unwrap();
                    assert!(found.structured_content.unwrap()["matches"].as_array().is_some_and(|found| !found.is_empty()));
                    let edit = json!({"path": "log.txt", "old_text": "no such line", "new_text": "x"});
                    let said = call(source, "edit", edit).await.unwrap_err().model_text;
                    assert!(said.contains("old_text is not there") || said.contains("changed"), "{said}");
                }
                done.store(true, Ordering::Relaxed);
            });
        });
    });
}

#[tokio::test]
async fn a_file_that_grows_between_the_read_and_the_write_of_an_edit_is_not_cut() {
    let world = World::new();
    let source = world.filesystem();
    world.put("a.txt", "one\n");
    text(&source, "read", json!({"path": "a.txt"})).await;
    world.put("a.txt", "one\ntwo\n");
    let said = failure(&source, "edit", json!({"path": "a.txt", "old_text": "one", "new_text": "1"})).await.1;
    assert_eq!(said, "`a.txt` changed since it was read; nothing was written: read it again, and then say what it shall hold");
    assert_eq!(world.get("a.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn names_that_are_no_text_are_listed_and_do_not_break_a_search() {
    let world = World::new();
    std::fs::write(world.root.join(OsStr::from_bytes(b"caf\xe9.txt")), "find me\n").unwrap();
    world.put("tab\there.txt", "find me\n");
    world.put("escape\u{1b}[31m.txt", "find me\n");
    let source = world.filesystem();
    let listed = text(&source, "list", json!({})).await;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(listed.contains("caf\u{fffd}.txt"), "{listed}");
    assert!(!listed.contains(['\u{1b}', '\t']), "{listed:?}");
    let found = text(&source, "search", json!({"pattern": "find me"})).await;
    assert_eq!(found.lines().count(), 3, "{found}");
    assert!(!found.contains('\u{1b}'), "{found:?}");
    // It cannot be said in JSON: the model is told that it is not there, with what is.
    let (kind, said) = failure(&source, "read", json!({"path": "caf\u{fffd}.txt"})).await;
    assert_eq!((kind, said.contains("there is no")), (ToolErrorKind::NotFound, true), "{said}");
}

#[tokio::test]
async fn a_file_of_ten_gigabytes_is_described_searched_past_moved_and_deleted() {
    let world = World::new();
    std::fs::File::create(world.root.join("huge")).unwrap().set_len(10_000_000_000).unwrap();
    world.put("small.txt", "needle\n");
    let source = with_trash(&world, world.folder.path().join("trash"));
    assert!(text(&source, "stat", json!({"path": "huge"})).await.contains("10,000,000,000 bytes"));
    assert_eq!(text(&source, "list", json!({})).await, "huge (10,000,000,000 bytes)\nsmall.txt (7 bytes)");
    let found = text(&source, "search", json!({"pattern": "needle"})).await;
    assert_eq!(found, "small.txt:1: needle\n[1 file was left out: binary, unreadable or not to be touched]");
    text(&source, "move", json!({"from": "huge", "to": "moved"})).await;
    text(&source, "delete", json!({"path": "moved"})).await;
    assert_eq!(names(&world.root), ["small.txt"]);
    text(&source, "write", json!({"path": "huge", "content": "small"})).await;
    std::fs::File::options().write(true).open(world.root.join("huge")).unwrap().set_len(10_000_000_000).unwrap();
    let other = world.filesystem();
    let told = text(&other, "write", json!({"path": "huge", "content": "small again"})).await;
    assert_eq!(told, "wrote 11 bytes to `huge` (replaced)", "what was there is not compared");
}

/// Lets this thread, and those that it starts, open what the permissions of files allow and no more, also as root.
fn obey_permissions() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let mut sets = capabilities(None).unwrap();
    sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
    set_capabilities(None, sets).unwrap();
}

#[tokio::test]
async fn what_the_system_does_not_allow_is_told_as_that() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.put("closed/a.txt", "x");
    world.put("secret.txt", "x");
    let set = |path: &str, mode| {
        std::fs::set_permissions(world.root.join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set("closed", 0o000);
    set("secret.txt", 0o200);
    obey_permissions();
    assert!(std::fs::read(world.root.join("secret.txt")).is_err(), "the file is not closed to whom runs this");
    let source = world.filesystem();
    let calls: [(&str, Value); 5] = [
        ("read", json!({"path": "secret.txt"})),
        ("read", json!({"path": "closed/a.txt"})),
        ("list", json!({"path": "closed"})),
        ("write", json!({"path": "closed/b.txt", "content": "x"})),
        ("edit", json!({"path": "secret.txt", "old_text": "x", "new_text": "y"})),
    ];
    for (tool, arguments) in calls {
        let (kind, said) = failure(&source, tool, arguments.clone()).await;
        assert_eq!(kind, ToolErrorKind::PermissionDenied, "{tool} {arguments}: {said}");
        assert!(said.contains("the system does not allow it"), "{tool} {arguments}: {said}");
    }
    set("closed", 0o700);
}
