//! Ways out of the roots, and to what is denied below them: each is tried with every tool, and none tells or changes anything.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::{World, call};
use serde_json::{Value, json};
use turnwright_core::{ContentBlock, ToolErrorKind};
use turnwright_tools::{FilesystemConfig, TypedSource, filesystem};

/// What no result may hold.
const SECRET: &str = "s3cr3t-0f-0uts1de";

/// A way out: what is put into the root, and the path that is tried.
struct Attack {
    name: &'static str,
    path: String,
    prepare: fn(&World),
}

fn spelled(name: &'static str, path: impl Into<String>) -> Attack {
    Attack { name, path: path.into(), prepare: |_| {} }
}

fn prepared(name: &'static str, path: impl Into<String>, prepare: fn(&World)) -> Attack {
    Attack { name, path: path.into(), prepare }
}

/// Everything in `outside`, and in `protected` folders and files of the root, as it is.
fn everything(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path.clone(), if kind.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() });
        }
    }
    found
}

fn world() -> World {
    let world = World::new();
    std::fs::write(world.outside.join("secret.txt"), SECRET).unwrap();
    std::fs::create_dir(world.outside.join("deep")).unwrap();
    std::fs::write(world.outside.join("deep/secret.txt"), SECRET).unwrap();
    world.put("folder/inside.txt", "inside");
    world.put("inside.txt", "inside");
    world
}

fn source(world: &World) -> TypedSource {
    let mut config = FilesystemConfig::new(vec![world.root.clone()]);
    config.trash = Some(world.folder.path().join("trash"));
    config.ours = ["data", "own.toml"].map(|name| world.root.join(name)).into();
    filesystem(config).unwrap()
}

#[tokio::test]
async fn a_file_of_this_program_is_not_made_where_it_is_not_there_yet() {
    let world = World::new();
    world.put("other/own.json", "evil");
    let mut config = FilesystemConfig::new(vec![world.root.clone()]);
    (config.ours, config.trash) = ([world.root.join("config/own.json")].into(), Some(world.folder.path().join("trash")));
    let source = filesystem(config).unwrap();
    let refused = [
        ("write", json!({"path": "config/own.json", "content": "evil"})),
        ("write", json!({"path": "other/../config/own.json", "content": "evil"})),
        ("move", json!({"from": "other/own.json", "to": "config/own.json"})),
        ("move", json!({"from": "other", "to": "config"})),
    ];
    for (tool, arguments) in refused {
        let error = call(&source, tool, arguments.clone()).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::PermissionDenied, "{tool} {arguments}: {}", error.model_text);
    }
    call(&source, "write", json!({"path": "config/other.json", "content": "{}"})).await.unwrap();
    // One that came since is none of theirs either.
    world.put("config/own.json", SECRET);
    assert!(call(&source, "read", json!({"path": "config/own.json"})).await.is_err());
    let found = call(&source, "search", json!({"pattern": "s3cr3t"})).await.unwrap();
    assert!(!format!("{found:?}").contains(SECRET), "{found:?}");
    for (tool, arguments) in [("delete", json!({"path": "config"})), ("move", json!({"from": "config", "to": "old"}))] {
        assert!(call(&source, tool, arguments).await.is_err(), "{tool}");
    }
    assert_eq!(std::fs::read_to_string(world.root.join("config/own.json")).unwrap(), SECRET);
}

#[tokio::test]
async fn a_link_to_a_file_of_this_program_keeps_its_place() {
    let world = World::new();
    world.put("real/conf/own.json", SECRET);
    world.put("real/conf/other.json", "{}");
    world.put("evil/own.json", "evil");
    symlink("real/conf", world.root.join("config")).unwrap();
    world.put("a/inner/plain.txt", "plain");
    symlink("../../config/own.json", world.root.join("a/inner/own.toml")).unwrap();
    let mut config = FilesystemConfig::new(vec![world.root.clone()]);
    (config.ours, config.trash) = ([world.root.join("a/inner/own.toml")].into(), Some(world.folder.path().join("trash")));
    let source = filesystem(config).unwrap();
    let refused = [
        ("read", json!({"path": "config/own.json"})),
        ("write", json!({"path": "a/inner/own.toml", "content": "evil"})),
        ("delete", json!({"path": "config"})),
        ("delete", json!({"path": "a/inner/own.toml"})),
        ("delete", json!({"path": "a/../a"})),
        ("move", json!({"from": "config", "to": "old"})),
        ("move", json!({"from": "a/inner", "to": "old"})),
        ("move", json!({"from": "real", "to": "old"})),
    ];
    for (tool, arguments) in refused {
        let error = call(&source, tool, arguments.clone()).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::PermissionDenied, "{tool} {arguments}: {}", error.model_text);
    }
    // What else is there is reached by the link too.
    call(&source, "read", json!({"path": "config/other.json"})).await.unwrap();
    call(&source, "write", json!({"path": "config/new.json", "content": "{}"})).await.unwrap();
    // Where a link is gone meanwhile nothing is made in its place.
    std::fs::remove_file(world.root.join("config")).unwrap();
    for (tool, arguments) in [
        ("write", json!({"path": "config/own.json", "content": "evil"})),
        ("write", json!({"path": "config/any.json", "content": "evil"})),
        ("move", json!({"from": "evil", "to": "config"})),
    ] {
        assert!(call(&source, tool, arguments.clone()).await.is_err(), "{tool} {arguments}");
    }
    assert_eq!(std::fs::read_to_string(world.root.join("real/conf/own.json")).unwrap(), SECRET);
}

#[tokio::test]
async fn a_file_that_comes_to_be_this_program_s_is_none_of_the_tools_from_then_on() {
    let world = World::new();
    world.put("later.txt", SECRET);
    let config = FilesystemConfig::new(vec![world.root.clone()]);
    let ours = config.ours.clone();
    let source = filesystem(config).unwrap();
    call(&source, "read", json!({"path": "later.txt"})).await.unwrap();
    ours.add(world.root.join("later.txt"));
    let error = call(&source, "read", json!({"path": "later.txt"})).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::PermissionDenied);
    let found = call(&source, "search", json!({"pattern": "s3cr3t"})).await.unwrap();
    assert!(!format!("{found:?}").contains(SECRET), "{found:?}");
}

/// Every tool at `path`.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read", json!({"path": path})),
        ("read", json!({"path": path, "line": 1, "lines": 5})),
        ("read", json!({"path": path, "offset": 0, "limit": 100})),
        ("list", json!({"path": path})),
        ("stat", json!({"path": path})),
        ("search", json!({"path": path, "pattern": "s3cr3t"})),
        ("search", json!({"pattern": "s3cr3t", "include_ignored": true})),
        ("search", json!({"path": path, "pattern": "**", "target": "names"})),
        ("edit", json!({"path": path, "old_text": SECRET, "new_text": "changed"})),
        ("write", json!({"path": format!("{path}/new.txt"), "content": "new"})),
        ("move", json!({"from": "inside.txt", "to": format!("{path}/moved.txt")})),
        ("move", json!({"from": path, "to": "stolen"})),
        ("read", json!({"path": "stolen"})),
        ("search", json!({"path": "stolen", "pattern": "s3cr3t"})),
        ("read", json!({"path": "stolen/secret.txt"})),
        ("delete", json!({"path": path})),
        ("write", json!({"path": path, "content": "new"})),
        ("edit", json!({"path": path, "edits": [{"old_text": SECRET, "new_text": "changed"}]})),
    ]
}

/// What the tools said that holds the secret.
async fn told(source: &TypedSource, calls: Vec<(&'static str, Value)>) -> Vec<String> {
    let mut told = Vec::new();
    for (tool, arguments) in calls {
        let said = match call(source, tool, arguments.clone()).await {
            Ok(output) => {
                let images = output.content.iter().any(|block| !matches!(block, ContentBlock::Text { .. }));
                assert!(!images, "{tool} {arguments}");
                format!("{:?} {:?}", output.content, output.structured_content)
            }
            Err(error) => format!("{error:?}"),
        };
        if said.contains(SECRET) {
            told.push(format!("{tool} {arguments}: {said}"));
        }
    }
    told
}

fn spellings(base: &str) -> Vec<Attack> {
    vec![
        spelled("dots", "../outside/secret.txt"),
        spelled("dots to a folder", "../outside"),
        spelled("dots alone", ".."),
        spelled("dots with a slash", "../"),
        spelled("many dots", "../../../../../../../../../../etc/passwd"),
        spelled("dots after a folder", "folder/../../outside/secret.txt"),
        spelled("dots after what is not there", "missing/../../outside/secret.txt"),
        spelled("dots after a file", "inside.txt/../../outside/secret.txt"),
        spelled("dots between dots", "./././../outside/secret.txt"),
        spelled("doubled slashes", "..//outside//secret.txt"),
        spelled("out and in and out", "../root/../outside/secret.txt"),
        spelled("an absolute path", format!("{base}/outside/secret.txt")),
        spelled("two slashes first", format!("//{base}/outside/secret.txt")),
        spelled("absolute with dots", format!("{base}/root/../outside/secret.txt")),
        spelled("absolute with dots after a folder", format!("{base}/root/folder/../../outside/secret.txt")),
        spelled("a longer name than the root's", format!("{base}/root_and_more/secret.txt")),
        spelled("the folder of the root", base),
        spelled("the top", "/"),
        spelled("a file of the system", "/etc/passwd"),
        spelled("the shadow of it", "/etc/shadow"),
        spelled("by the root of a process", format!("/proc/self/root{base}/outside/secret.txt")),
        spelled("by the root of another process", format!("/proc/1/root{base}/outside/secret.txt")),
        spelled("by the folder of a process", format!("/proc/self/cwd{base}/outside/secret.txt")),
        spelled("the environment of a process", "/proc/self/environ"),
        spelled("the memory of a process", "/proc/self/mem"),
        spelled("an open file of a process", "/proc/self/fd/0"),
        spelled("an open file by its device", "/dev/fd/0"),
        spelled("standard input", "/dev/stdin"),
        spelled("memory by its device", "/dev/mem"),
        spelled("a folder of processes by its thread", format!("/proc/thread-self/root{base}/outside/secret.txt")),
        spelled("percent dots", "%2e%2e/outside/secret.txt"),
        spelled("percent everything", "%2e%2e%2foutside%2fsecret.txt"),
        spelled("percent twice", "%252e%252e%252foutside%252fsecret.txt"),
        spelled("percent slash", "..%2foutside%2fsecret.txt"),
        spelled("an overlong slash", "..%c0%afoutside%c0%afsecret.txt"),
        spelled("the other slash", "..\\outside\\secret.txt"),
        spelled("both slashes", "..\\/outside/secret.txt"),
        spelled("a drive", "C:\\outside\\secret.txt"),
        spelled("a share", "\\\\localhost\\outside\\secret.txt"),
        spelled("dots of full width", "\u{ff0e}\u{ff0e}/outside/secret.txt"),
        spelled("a slash of full width", "..\u{ff0f}outside\u{ff0f}secret.txt"),
        spelled("a slash for fractions", "..\u{2215}outside\u{2215}secret.txt"),
        spelled("one sign of two dots", "\u{2025}/outside/secret.txt"),
        spelled("leader dots", "\u{2024}\u{2024}/outside/secret.txt"),
        spelled("dots with a joiner", ".\u{200d}./outside/secret.txt"),
        spelled("dots with a combining mark", "..\u{0301}/outside/secret.txt"),
        spelled("dots written backwards", "\u{202e}../outside/secret.txt"),
        spelled("dots with a space", ".. /outside/secret.txt"),
        spelled("three dots", ".../outside/secret.txt"),
        spelled("dots with a semicolon", "..;/outside/secret.txt"),
        spelled("an address", format!("file://{base}/outside/secret.txt")),
        spelled("a home", "~/../outside/secret.txt"),
        spelled("a variable", "$PWD/../outside/secret.txt"),
        spelled("braces", "{..,x}/outside/secret.txt"),
        spelled("a command in the path", "$(cat ../outside/secret.txt)"),
        spelled("a zero byte before the end", "../outside/secret.txt\0.md"),
        spelled("a zero byte in dots", "..\0/outside/secret.txt"),
        spelled("a line end in dots", "..\n/outside/secret.txt"),
        spelled("a very long way", format!("{}../outside/secret.txt", "folder/../".repeat(600))),
    ]
}

fn links() -> Vec<Attack> {
    vec![
        prepared("an absolute link to a folder", "link/secret.txt", |world| world.link(&world.outside, "link")),
        prepared("an absolute link to a file", "link", |world| world.link(world.outside.join("secret.txt"), "link")),
        prepared("a relative link to a folder", "link/secret.txt", |world| world.link("../outside", "link")),
        prepared("a relative link to a file", "link", |world| world.link("../outside/secret.txt", "link")),
        prepared("a link in a folder", "folder/link", |world| world.link("../../outside/secret.txt", "folder/link")),
        prepared("a link to a link to a link", "c/secret.txt", |world| {
            world.link("../outside", "a");
            world.link("a", "b");
            world.link("b", "c");
        }),
        prepared("dots after a link", "link/../outside/secret.txt", |world| world.link("folder", "link")),
        prepared("dots after a link out", "link/../outside/secret.txt", |world| world.link("../outside/deep", "link")),
        prepared("a link to the folder above", "link/outside/secret.txt", |world| world.link("..", "link")),
        prepared("a link through a folder that is not there", "link", |world| {
            world.link("missing/../../outside/secret.txt", "link");
        }),
        prepared("a link to what is not there", "link", |world| world.link("../outside/new.txt", "link")),
        prepared("a link to the top", "link/etc/passwd", |world| world.link("/", "link")),
        prepared("a link to the root of a process", "link/etc/passwd", |world| world.link("/proc/self/root", "link")),
        prepared("a link to the folder of a process", "link/Cargo.toml", |world| world.link("/proc/self/cwd", "link")),
        prepared("a link to an environment", "link", |world| world.link("/proc/self/environ", "link")),
        prepared("a link to open files", "link/0", |world| world.link("/proc/self/fd", "link")),
        prepared("a link to open files by their device", "link/0", |world| world.link("/dev/fd", "link")),
        prepared("a link that leads into itself", "a/secret.txt", |world| {
            world.link("b", "a");
            world.link("a", "b");
        }),
        prepared("a link inside a link's folder", "link/again", |world| {
            world.link("folder", "link");
            world.link("../../outside/secret.txt", "folder/again");
        }),
        prepared("a link that names its own root", "link", |world| {
            world.link(world.root.join("../outside/secret.txt"), "link");
        }),
        prepared("a link with a slash at its end", "link/", |world| world.link("../outside/", "link")),
        prepared("a link called by dots", "..link/secret.txt", |world| world.link("../outside", "..link")),
        prepared("a hundred links", "link100/secret.txt", |world| {
            world.link("../outside", "link0");
            for number in 0..100 {
                world.link(format!("link{number}"), &format!("link{}", number + 1));
            }
        }),
        prepared("a hard link", "hard.txt", |world| {
            std::fs::hard_link(world.outside.join("secret.txt"), world.root.join("hard.txt")).unwrap();
        }),
        prepared("a hard link in a folder", "folder/hard.txt", |world| {
            std::fs::hard_link(world.outside.join("deep/secret.txt"), world.root.join("folder/hard.txt")).unwrap();
        }),
        prepared("a link to a hard link", "link", |world| {
            std::fs::hard_link(world.outside.join("secret.txt"), world.root.join("hard.txt")).unwrap();
            world.link("hard.txt", "link");
        }),
        prepared("a list of what to ignore that is a link", "folder/.gitignore", |world| {
            world.link("../../outside/secret.txt", "folder/.gitignore");
        }),
        prepared("a FIFO", "pipe", |world| {
            nix::unistd::mkfifo(&world.root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        }),
        prepared("a link to a FIFO outside", "link", |world| {
            nix::unistd::mkfifo(&world.root.join("../pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
            world.link("../pipe", "link");
        }),
        prepared("a link to a device", "link", |world| world.link("/dev/zero", "link")),
        prepared("a socket", "socket", |world| {
            drop(std::os::unix::net::UnixListener::bind(world.root.join("socket")).unwrap());
        }),
    ]
}

/// Ways to what is denied below the root; every such file holds the secret.
fn denied() -> Vec<Attack> {
    let hide: fn(&World) = |world| {
        for path in
            [".env", "sub/.env", ".ssh/id_rsa", ".ssh/config", "tls/server.pem", "data/store.db", "own.toml", "a/b/.netrc"]
        {
            world.put(path, SECRET);
        }
        world.link(".env", "link");
        world.link(".ssh", "keys");
        world.link("data", "more");
        world.link("../.env", "folder/up");
        std::fs::hard_link(world.root.join(".env"), world.root.join("plain.txt")).unwrap();
    };
    let paths = [
        ("a secret by its name", ".env"),
        ("a secret in a folder", "sub/.env"),
        ("a secret by dots", "folder/../.env"),
        ("a secret by a link", "link"),
        ("a secret by a link in a folder", "folder/up"),
        ("a secret by a hard link", "plain.txt"),
        ("a secret with a slash", ".env/"),
        ("a secret with a dot", ".env/."),
        ("a secret by an absolute path", "{root}/.env"),
        ("a secret in capital letters", ".ENV"),
        ("a folder of keys", ".ssh"),
        ("a key", ".ssh/id_rsa"),
        ("another file beside a key", ".ssh/config"),
        ("a folder of keys by a link", "keys/config"),
        ("a key by its ending", "tls/server.pem"),
        ("a folder that holds a secret", "sub"),
        ("a folder that holds a folder that does", "a"),
        ("a folder that holds a key", "tls"),
        ("the program's own folder", "data"),
        ("a file of the program's own folder", "data/store.db"),
        ("the program's own folder by a link", "more/store.db"),
        ("the program's own file", "own.toml"),
        ("the root itself", "."),
        ("the root by its path", "{root}"),
    ];
    paths.map(|(name, path)| prepared(name, path, hide)).into()
}

#[tokio::test]
async fn no_way_leads_out_of_the_roots() {
    let base = world().root;
    drop(base);
    let mut count = 0;
    for kind in 0..3 {
        let of_kind = |base: &str| match kind {
            0 => spellings(base),
            1 => links(),
            _ => denied(),
        };
        for index in 0..of_kind("").len() {
            let world = world();
            let base = world.folder.path().canonicalize().unwrap();
            let Some(attack) = of_kind(&base.display().to_string()).into_iter().nth(index) else { continue };
            (attack.prepare)(&world);
            let path = attack.path.replace("{root}", &world.root.display().to_string());
            let (outside, source) = (everything(&world.outside), source(&world));
            let inside: BTreeMap<_, _> =
                everything(&world.root).into_iter().filter(|(_, content)| content == SECRET.as_bytes()).collect();
            assert_eq!(told(&source, calls(&path)).await, Vec::<String>::new(), "{}: {path:?}", attack.name);
            assert_eq!(everything(&world.outside), outside, "{}: {path:?}", attack.name);
            let hidden = kind == 2;
            let still = everything(&world.root);
            for (file, content) in inside.into_iter().filter(|(file, _)| hidden && !file.ends_with("plain.txt")) {
                assert_eq!(still.get(&file), Some(&content), "{}: {path:?}: {}", attack.name, file.display());
            }
            count += 1;
        }
    }
    println!("{count} ways out of the roots were tried with every tool, and all are held");
    assert!(count >= 80);
}

#[tokio::test]
async fn no_file_of_the_system_s_tree_of_processes_is_read() {
    let source = filesystem(FilesystemConfig::new(vec!["/".into()])).unwrap();
    for path in
        ["/proc/self/environ", "/proc/self/status", "/proc/1/environ", "/proc/self/task", "/proc/self/root/etc/hostname"]
    {
        let said = call(&source, "read", json!({"path": path})).await.map_err(|error| error.kind);
        assert!(said.is_err(), "{path}: {said:?}");
    }
}

/// Something in the root is swapped for something outside, all the time, while calls run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_race_leads_out_of_the_roots() {
    use std::sync::atomic::{AtomicBool, Ordering};
    type Swap = fn(&Path, &Path);
    let swaps: [(&str, Swap); 5] = [
        ("a folder for a link", |root, _| {
            let _ = std::fs::rename(root.join("swapped"), root.join("aside"));
            let _ = symlink("../outside", root.join("swapped"));
            let _ = std::fs::remove_file(root.join("swapped"));
            let _ = std::fs::rename(root.join("aside"), root.join("swapped"));
        }),
        ("a folder is moved out and back", |root, outside| {
            let _ = std::fs::rename(root.join("swapped"), outside.join("moved"));
            let _ = std::fs::rename(outside.join("moved"), root.join("swapped"));
        }),
        ("a folder for the outside itself", |root, outside| {
            let _ = std::fs::rename(root.join("swapped/deep"), root.join("aside"));
            let _ = symlink(outside, root.join("swapped/deep"));
            let _ = std::fs::remove_file(root.join("swapped/deep"));
            let _ = std::fs::rename(root.join("aside"), root.join("swapped/deep"));
        }),
        ("a file for a link", |root, outside| {
            let _ = symlink(outside.join("secret.txt"), root.join("other"));
            let _ = std::fs::rename(root.join("other"), root.join("swapped/deep/secret.txt"));
            let _ = std::fs::write(root.join("other"), "inside");
            let _ = std::fs::rename(root.join("other"), root.join("swapped/deep/secret.txt"));
        }),
        ("a file for a hard link of a secret", |root, outside| {
            let _ = std::fs::hard_link(outside.join("secret.txt"), root.join("other"));
            let _ = std::fs::rename(root.join("other"), root.join("swapped/deep/secret.txt"));
            let _ = std::fs::write(root.join("aside"), "inside");
            let _ = std::fs::rename(root.join("aside"), root.join("swapped/deep/secret.txt"));
        }),
    ];
    for (name, swap) in swaps {
        let world = world();
        world.put("swapped/deep/secret.txt", "inside");
        let before = everything(&world.outside);
        let source = source(&world);
        let done = AtomicBool::new(false);
        let (root, outside, done) = (&world.root, &world.outside, &done);
        tokio::task::block_in_place(|| {
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        swap(root, outside);
                    }
                });
                tokio::runtime::Handle::current().block_on(async {
                    for round in 0..60 {
                        let calls = vec![
                            ("read", json!({"path": "swapped/deep/secret.txt"})),
                            ("read", json!({"path": "swapped/secret.txt"})),
                            ("search", json!({"path": "swapped", "pattern": "s3cr3t"})),
                            ("list", json!({"path": "swapped/deep"})),
                            ("write", json!({"path": format!("swapped/deep/{round}.txt"), "content": "x"})),
                            ("edit", json!({"path": "swapped/secret.txt", "old_text": SECRET, "new_text": "changed"})),
                            ("delete", json!({"path": format!("swapped/deep/{round}.txt")})),
                        ];
                        assert_eq!(told(&source, calls).await, Vec::<String>::new(), "{name}");
                    }
                    done.store(true, Ordering::Relaxed);
                });
            });
        });
        let mut after = everything(outside);
        after.retain(|path, _| !path.starts_with(outside.join("moved")));
        assert_eq!(after, before, "{name}");
    }
}

#[tokio::test]
async fn a_root_that_belongs_to_this_program_is_refused_whole() {
    let world = World::new();
    world.put("secret.txt", SECRET);
    let mut config = FilesystemConfig::new(vec![world.root.clone()]);
    config.ours = [world.root.clone()].into();
    let source = filesystem(config).unwrap();
    for (tool, arguments) in calls("secret.txt").into_iter().chain([("list", json!({"path": "."}))]) {
        assert!(call(&source, tool, arguments.clone()).await.is_err(), "{tool} {arguments}");
    }
    assert_eq!(std::fs::read_to_string(world.root.join("secret.txt")).unwrap(), SECRET);
}
