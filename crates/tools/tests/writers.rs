//! Changes of files at the same time: what a call says that it writes, and what stays of calls that write the same.

use std::path::PathBuf;

use crate::support::{World, call};
use serde_json::{Value, json};
use turnwright_engine::source::{ToolSource, Writes};
use turnwright_tools::filesystem;

#[test]
fn a_call_says_what_it_writes_by_its_arguments() {
    let world = World::new();
    let source = world.filesystem();
    let root = world.root.canonicalize().unwrap();
    let writes = |tool: &str, arguments: Value| source.writes(tool, arguments.as_object().unwrap());
    let at = |paths: &[&str]| Writes::Paths(paths.iter().map(|path| root.join(path)).collect());
    assert_eq!(writes("write", json!({"path": "a.txt", "content": "x"})), at(&["a.txt"]));
    assert_eq!(writes("write", json!({"path": "./a/../b//c.txt", "content": "x"})), at(&["b/c.txt"]));
    assert_eq!(writes("edit", json!({"path": root.join("a.txt"), "old_text": "a", "new_text": "b"})), at(&["a.txt"]));
    assert_eq!(writes("move", json!({"from": "a", "to": "b/c"})), at(&["a", "b/c"]));
    assert_eq!(writes("delete", json!({"path": "a"})), at(&["a"]));
    assert_eq!(writes("write", json!({"path": ".", "content": ""})), Writes::Paths(vec![PathBuf::from(&root)]));
    // Where it is not known, it is everything.
    assert_eq!(writes("restore", json!({"id": "0123456789abcdef"})), Writes::All);
    assert_eq!(writes("write", json!({"path": "/outside", "content": ""})), Writes::All);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn edits_of_one_file_at_once_all_stay_by_whatever_name_it_is_called() {
    let world = World::new();
    let names: Vec<String> = (0..40).map(|number| format!("<{number}>")).collect();
    world.put("real/a.txt", names.join("\n"));
    world.link("real", "link");
    world.link("real/a.txt", "other.txt");
    let source = world.filesystem();
    let called = ["real/a.txt", "link/a.txt", "other.txt", "link/../real/a.txt"];
    let edits = names.iter().zip(called.iter().cycle()).map(|(name, path)| {
        let arguments = json!({"path": path, "old_text": name, "new_text": "done"});
        call(&source, "edit", arguments)
    });
    for result in futures_util::future::join_all(edits).await {
        result.unwrap();
    }
    assert_eq!(world.get("real/a.txt"), vec!["done"; 40].join("\n"));
}

/// Two programs that know nothing of each other write the same new files at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_file_takes_the_place_of_none_that_another_program_made_meanwhile() {
    let world = World::new();
    let (one, other) = (world.filesystem(), world.filesystem());
    for number in 0..200 {
        let path = format!("{number}.txt");
        let writes = |source, content: &str| call(source, "write", json!({"path": path, "content": content}));
        let both = tokio::join!(writes(&one, "one"), writes(&other, "other"));
        let made = [both.0, both.1].into_iter().filter(|written| match written {
            Ok(output) => output.structured_content.as_ref().is_some_and(|told| told["is_new"] == true),
            Err(error) => {
                let said = &error.model_text;
                assert!(said.contains("meanwhile") || said.contains("changed"), "{said}");
                false
            }
        });
        assert_eq!(made.count(), 1, "{path} is made once");
    }
}

/// Files are made in a folder that is not there yet and that is moved away again and again, and deleted things come back, all at the
/// same time: nothing is lost, and nothing is twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_is_changed_at_once_nothing_is_lost() {
    let world = World::new();
    world.put("gone/kept.txt", "kept");
    let mut config = world.config();
    config.trash = Some(world.folder.path().join("trash"));
    let source = filesystem(config).unwrap();
    let deleted = call(&source, "delete", json!({"path": "gone"})).await.unwrap().structured_content.unwrap();
    let creations = (0..60).map(|number| {
        let path = format!("new/deep/{}/{number}.txt", number % 3);
        call(&source, "write", json!({"path": path, "content": number.to_string()}))
    });
    let moves = (0..20).map(|number| call(&source, "move", json!({"from": "new/deep", "to": format!("moved/{number}")})));
    let comebacks = (0..4).map(|_| call(&source, "restore", json!({"id": deleted["id"]})));
    let (written, _, restored) = tokio::join!(
        futures_util::future::join_all(creations),
        futures_util::future::join_all(moves),
        futures_util::future::join_all(comebacks)
    );
    for result in written {
        result.unwrap();
    }
    assert_eq!(restored.iter().filter(|result| result.is_ok()).count(), 1, "{restored:?}");
    assert_eq!(world.get("gone/kept.txt"), "kept");
    let mut found = Vec::new();
    let mut folders = vec![world.root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("kept.txt") {
                let number: u32 = std::fs::read_to_string(&path).unwrap().parse().unwrap();
                assert_eq!(path.file_name().unwrap().to_str().unwrap(), format!("{number}.txt"));
                found.push(number);
            }
        }
    }
    found.sort_unstable();
    assert_eq!(found, (0..60).collect::<Vec<_>>());
}
