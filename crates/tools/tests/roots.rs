//! No path, link, race or special file leads out of a root.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{World, call, failure, text};
use serde_json::json;
use turnwright_core::ToolErrorKind;
use turnwright_tools::{FilesystemConfig, RootsError, filesystem};

/// Everything that is not expected to be told by a failure that names no such thing.
fn attacks(world: &World) -> Vec<String> {
    let outside = world.outside.display();
    let root = world.root.display();
    std::fs::create_dir(world.root.join("folder")).unwrap();
    world.link(&world.outside, "out_absolute");
    world.link("../outside", "out_relative");
    world.link("out_relative", "chain_1");
    world.link("chain_1", "chain_2");
    world.link("../../outside/secret.txt", "folder/file");
    world.link("/proc/self/root", "system");
    world.link("/proc/self/cwd", "cwd");
    world.link("/", "slash");
    vec![
        "../outside/secret.txt".to_owned(),
        "folder/../../outside/secret.txt".to_owned(),
        "./././../outside/secret.txt".to_owned(),
        "..//outside//secret.txt".to_owned(),
        "../root/../outside/secret.txt".to_owned(),
        format!("{outside}/secret.txt"),
        format!("//{outside}/secret.txt"),
        format!("{root}/../outside/secret.txt"),
        format!("{root}/folder/../../outside/secret.txt"),
        format!("{root}_and_more/secret.txt"),
        "/etc/passwd".to_owned(),
        format!("/proc/self/root{outside}/secret.txt"),
        "out_absolute/secret.txt".to_owned(),
        "out_relative/secret.txt".to_owned(),
        "chain_2/secret.txt".to_owned(),
        "folder/file".to_owned(),
        format!("system{outside}/secret.txt"),
        "cwd/Cargo.toml".to_owned(),
        format!("slash{outside}/secret.txt"),
    ]
}

#[tokio::test]
async fn no_tool_leaves_its_root_by_any_path_or_link() {
    let world = World::new();
    let source = world.filesystem();
    for path in attacks(&world) {
        let calls = [
            ("read", json!({"path": path})),
            ("write", json!({"path": path, "content": "overwritten"})),
            ("edit", json!({"path": path, "old_text": "secret", "new_text": "changed"})),
            ("search", json!({"path": path, "pattern": "secret"})),
            ("list", json!({"path": path})),
        ];
        for (tool, arguments) in calls {
            let (kind, text) = failure(&source, tool, arguments).await;
            assert_eq!(kind, ToolErrorKind::PermissionDenied, "{tool} {path}: {text}");
            assert!(text.contains("is outside of what may be touched"), "{tool} {path}: {text}");
        }
    }
    assert_eq!(std::fs::read_to_string(world.outside.join("secret.txt")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(&world.outside).unwrap().count(), 1);
}

#[tokio::test]
async fn stat_tells_of_a_link_and_nothing_of_what_is_outside() {
    let world = World::new();
    world.link("../outside/secret.txt", "link");
    let source = world.filesystem();
    assert!(
        text(&source, "stat", json!({"path": "link"})).await.starts_with("`link` is a link, leads to `../outside/secret.txt`")
    );
    assert_eq!(failure(&source, "stat", json!({"path": "link/."})).await.0, ToolErrorKind::PermissionDenied);
}

#[tokio::test]
async fn new_files_are_not_made_outside() {
    let world = World::new();
    world.link("../outside", "out");
    world.link("../outside/new.txt", "dangling");
    let source = world.filesystem();
    for path in ["out/new.txt", "out/deep/new.txt", "dangling", "../outside/new.txt"] {
        let (kind, text) = failure(&source, "write", json!({"path": path, "content": "x"})).await;
        assert!(matches!(kind, ToolErrorKind::PermissionDenied | ToolErrorKind::ExecutionFailed), "{path}: {text}");
    }
    assert_eq!(std::fs::read_dir(&world.outside).unwrap().count(), 1);
}

#[tokio::test]
async fn links_and_dots_that_stay_inside_are_followed() {
    let world = World::new();
    world.put("docs/a.txt", "inside");
    world.link("docs/a.txt", "link");
    world.link("../docs", "docs/again");
    let source = world.filesystem();
    for path in ["link", "docs/../docs/a.txt", "docs/again/a.txt", "docs/again/../docs/a.txt"] {
        assert_eq!(text(&source, "read", json!({"path": path})).await, "inside", "{path}");
    }
    text(&source, "write", json!({"path": "link", "content": "changed"})).await;
    assert_eq!(world.get("docs/a.txt"), "changed");
    assert!(world.root.join("link").is_symlink());
}

#[tokio::test]
async fn a_loop_of_links_is_a_failure() {
    let world = World::new();
    world.link("b", "a");
    world.link("a", "b");
    assert_eq!(failure(&world.filesystem(), "read", json!({"path": "a"})).await.0, ToolErrorKind::ExecutionFailed);
}

#[tokio::test]
async fn absolute_paths_find_the_deepest_root_and_relative_ones_the_first() {
    let world = World::new();
    world.put("inner/a.txt", "inner");
    world.put("a.txt", "outer");
    let source = filesystem(FilesystemConfig::new(vec![world.root.clone(), world.root.join("inner")])).unwrap();
    assert_eq!(text(&source, "read", json!({"path": "a.txt"})).await, "outer");
    let inner = world.root.join("inner/a.txt");
    assert_eq!(text(&source, "read", json!({"path": inner})).await, "inner");
}

#[tokio::test]
async fn a_root_that_is_itself_a_link_is_found_under_both_names() {
    let world = World::new();
    world.put("a.txt", "here");
    let alias = world.folder.path().join("alias");
    std::os::unix::fs::symlink(&world.root, &alias).unwrap();
    let source = filesystem(FilesystemConfig::new(vec![alias.clone()])).unwrap();
    for path in [alias.join("a.txt"), world.root.join("a.txt")] {
        assert_eq!(text(&source, "read", json!({"path": path})).await, "here");
    }
}

#[test]
fn a_root_that_is_no_folder_is_named() {
    let world = World::new();
    let missing = world.root.join("missing");
    let error = filesystem(FilesystemConfig::new(vec![missing.clone()])).unwrap_err();
    assert_eq!(error.to_string(), format!("the root {} cannot be opened as a folder", missing.display()));
    assert!(matches!(filesystem(FilesystemConfig::new(Vec::new())), Err(RootsError::Empty)));
}

#[tokio::test]
async fn a_folder_that_is_a_root_or_holds_one_is_neither_moved_nor_deleted() {
    let world = World::new();
    world.put("apps/inner/a.txt", "inner");
    world.put("apps2/b.txt", "beside");
    let inner = world.root.join("apps/inner");
    let mut config = FilesystemConfig::new(vec![world.root.clone(), inner.clone()]);
    config.trash = Some(world.folder.path().join("trash"));
    let source = filesystem(config).unwrap();
    for held in ["apps/inner", "apps", "apps2/../apps"] {
        let said = format!("`{held}` holds the root `{}`; it stays", inner.display());
        for (tool, arguments) in [("move", json!({"from": held, "to": "other"})), ("delete", json!({"path": held}))] {
            assert_eq!(failure(&source, tool, arguments).await, (ToolErrorKind::PermissionDenied, said.clone()), "{tool}");
        }
    }
    text(&source, "move", json!({"from": "apps2", "to": "apps3"})).await;
    text(&source, "delete", json!({"path": "apps/inner/a.txt"})).await;
}

#[tokio::test]
async fn a_root_that_is_not_there_is_told_where_something_in_it_is_wanted_and_the_others_work() {
    let world = World::new();
    world.put("a.txt", "here");
    let missing = world.folder.path().join("unmounted");
    let within = missing.join("x.txt");
    let refused = |path: &str| {
        let root = missing.display();
        let said = format!(
            "`{path}` is in the root `{root}`, which could not be opened when this program began: No such file or directory (os error \
             2); ask the user"
        );
        (ToolErrorKind::PermissionDenied, said)
    };
    let within = within.to_str().unwrap();
    let source = filesystem(FilesystemConfig::new(vec![world.root.clone(), missing.clone()])).unwrap();
    assert_eq!(text(&source, "read", json!({"path": "a.txt"})).await, "here");
    assert_eq!(failure(&source, "read", json!({"path": within})).await, refused(within));
    // What is relative is in the first one, and in no other instead.
    let source = filesystem(FilesystemConfig::new(vec![missing.clone(), world.root.clone()])).unwrap();
    assert_eq!(failure(&source, "write", json!({"path": "a.txt", "content": "x"})).await, refused("a.txt"));
    assert_eq!(text(&source, "read", json!({"path": world.root.join("a.txt")})).await, "here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_is_swapped_in_while_a_call_runs_leads_nowhere_outside() {
    let world = World::new();
    world.put("real/secret.txt", "inside");
    world.link("real", "swapped");
    let source = world.filesystem();
    let done = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (root, done) = (world.root.clone(), Arc::clone(&done));
        move || {
            let (path, aside) = (root.join("swapped"), root.join("aside"));
            while !done.load(Ordering::Relaxed) {
                std::os::unix::fs::symlink("real", &aside).unwrap();
                std::fs::rename(&aside, &path).unwrap();
                std::os::unix::fs::symlink("../outside", &aside).unwrap();
                std::fs::rename(&aside, &path).unwrap();
            }
        }
    });
    for round in 0..400 {
        let path = "swapped/secret.txt";
        if let Ok(output) = call(&source, "read", json!({"path": path})).await {
            assert_eq!(turnwright_core::text_of(&output.content), "inside");
        }
        // Either outcome is fine; what counts is where it lands.
        drop(call(&source, "write", json!({"path": format!("swapped/{round}.txt"), "content": "x"})).await);
    }
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    let names: Vec<_> = std::fs::read_dir(&world.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["secret.txt"]);
}

#[tokio::test]
async fn special_files_are_refused_without_being_opened() {
    let world = World::new();
    nix::unistd::mkfifo(&world.root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.root.join("socket")).unwrap();
    world.link("pipe", "link");
    // Opening a FIFO for writing without waiting fails as long as nobody has it open for reading.
    let source = world.filesystem();
    for (path, kind) in [("pipe", "fifo"), ("link", "fifo"), ("socket", "socket")] {
        let calls = [
            ("read", json!({"path": path})),
            ("write", json!({"path": path, "content": "x"})),
            ("edit", json!({"path": path, "old_text": "a", "new_text": "b"})),
            ("search", json!({"path": path, "pattern": "a"})),
        ];
        for (tool, arguments) in calls {
            let expected = format!("`{path}` is a {kind}, not a regular file; it is not opened");
            assert_eq!(failure(&source, tool, arguments).await, (ToolErrorKind::ExecutionFailed, expected), "{tool}");
        }
    }
    assert_eq!(text(&source, "search", json!({"pattern": "a"})).await, "[nothing found in `.`]");
    assert_eq!(text(&source, "list", json!({})).await, "link (link)\npipe (fifo)\nsocket (socket)");
}

#[tokio::test]
async fn devices_are_refused() {
    let source = filesystem(FilesystemConfig::new(vec!["/dev".into()])).unwrap();
    for path in ["zero", "/dev/zero", "null"] {
        let (kind, text) = failure(&source, "read", json!({"path": path})).await;
        assert_eq!(kind, ToolErrorKind::ExecutionFailed);
        assert_eq!(text, format!("`{path}` is a device, not a regular file; it is not opened"));
    }
}

#[tokio::test]
async fn magic_links_of_the_system_are_not_followed() {
    let source = filesystem(FilesystemConfig::new(vec!["/proc/self".into()])).unwrap();
    for path in ["root/etc/passwd", "cwd/Cargo.toml", "exe"] {
        let (kind, text) = failure(&source, "read", json!({"path": path})).await;
        assert!(matches!(kind, ToolErrorKind::PermissionDenied | ToolErrorKind::ExecutionFailed), "{path}: {text}");
    }
}
