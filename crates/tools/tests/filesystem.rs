//! What the file tools do.

#![cfg(test)]

mod support;

use serde_json::{Value, json};
use support::{World, call, call_of, context, failure, text};
use tokio_util::sync::CancellationToken;
use turnwright_core::{Declared, ToolErrorKind};
use turnwright_engine::source::{SourceState, ToolSource};
use turnwright_tools::filesystem;

#[test]
fn the_tools_and_what_is_declared_about_them() {
    let world = World::new();
    let source = world.filesystem();
    let tools: Vec<(String, Declared)> = source.tools().iter().map(|tool| (tool.name.clone(), tool.declared)).collect();
    let reads = Declared { read_only: true, ..Declared::default() };
    let writes = Declared { serial: true, ..Declared::default() };
    let expected = [("read", reads), ("write", writes), ("edit", writes), ("list", reads), ("search", reads), ("stat", reads)];
    assert_eq!(tools, expected.map(|(name, declared)| (name.to_owned(), declared)));
    assert_eq!(source.name(), "filesystem");
}

#[test]
fn a_schema_says_what_is_required_and_takes_nothing_else() {
    let world = World::new();
    let source = world.filesystem();
    let schema = &source.tools()[1].input_schema;
    assert_eq!(
        schema,
        &json!({
            "type": "object",
            "properties": {
                "path": {
                    "description": "The file, relative to the first root, or absolute inside a root.",
                    "type": "string",
                },
                "content": {"description": "All that the file will hold.", "type": "string"},
            },
            "additionalProperties": false,
            "required": ["path", "content"],
        })
    );
}

#[tokio::test]
async fn a_file_is_read_whole_and_exactly() {
    let world = World::new();
    world.put("a.txt", "one\r\ntwo é\n");
    assert_eq!(text(&world.filesystem(), "read", json!({"path": "a.txt"})).await, "one\r\ntwo é\n");
}

#[tokio::test]
async fn a_file_over_the_limit_says_how_to_read_it() {
    let world = World::new();
    world.put("big.txt", "x".repeat(70_112));
    let mut config = world.config();
    config.max_read_bytes = 65_536;
    let source = filesystem(config).unwrap();
    let expected = "`big.txt` is 70,112 bytes, limit 65,536; read it in parts with offset and limit";
    assert_eq!(
        failure(&source, "read", json!({"path": "big.txt"})).await,
        (ToolErrorKind::ExecutionFailed, expected.to_owned())
    );
}

#[tokio::test]
async fn parts_add_up_to_the_file_and_cut_no_character() {
    let world = World::new();
    let whole = "aé€😀".repeat(50);
    world.put("a.txt", &whole);
    let source = world.filesystem();
    let (mut offset, mut read) = (0_u64, String::new());
    loop {
        let output = call(&source, "read", json!({"path": "a.txt", "offset": offset, "limit": 7})).await.unwrap();
        let [turnwright_core::ContentBlock::Text { text }, turnwright_core::ContentBlock::Text { text: note }] =
            output.content.as_slice()
        else {
            panic!("a part and a note")
        };
        read.push_str(text);
        match note.split_once("read on with offset ") {
            Some((_, next)) => offset = next.trim_end_matches(']').parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(read, whole);
}

#[tokio::test]
async fn a_part_that_begins_in_a_character_begins_after_it() {
    let world = World::new();
    world.put("a.txt", "é€z");
    let source = world.filesystem();
    assert_eq!(text(&source, "read", json!({"path": "a.txt", "offset": 3})).await, "z\n[bytes 5 to 6 of 6; the end]");
    let past = failure(&source, "read", json!({"path": "a.txt", "offset": 7})).await;
    assert_eq!(past, (ToolErrorKind::InvalidArguments, "offset 7 is past the end: `a.txt` is 6 bytes".to_owned()));
}

#[tokio::test]
async fn what_is_not_text_is_refused_with_its_place() {
    let world = World::new();
    world.put("latin.txt", b"caf\xe9 au lait");
    world.put("binary", b"PK\x00\x01");
    world.put("cut.txt", b"a\xc3");
    let source = world.filesystem();
    let cases = [
        ("latin.txt", "`latin.txt` is not UTF-8 text: the byte at offset 3 is 0xe9"),
        ("binary", "`binary` is a binary file, not text: it holds zero bytes"),
        ("cut.txt", "`cut.txt` is not UTF-8 text: the byte at offset 1 is 0xc3"),
    ];
    for (path, expected) in cases {
        let result = failure(&source, "read", json!({"path": path})).await;
        assert_eq!(result, (ToolErrorKind::ExecutionFailed, expected.to_owned()));
    }
    let part = failure(&source, "read", json!({"path": "latin.txt", "offset": 1, "limit": 5})).await.1;
    assert_eq!(part, "`latin.txt` is not UTF-8 text: the byte at offset 3 is 0xe9");
}

#[tokio::test]
async fn a_missing_file_is_named_with_those_like_it() {
    let world = World::new();
    world.put("docs/README.md", "");
    let source = world.filesystem();
    assert_eq!(
        failure(&source, "read", json!({"path": "docs/REDME.md"})).await,
        (ToolErrorKind::NotFound, "there is no `docs/REDME.md`; beside it there is `README.md`".to_owned())
    );
    assert_eq!(failure(&source, "read", json!({"path": "x"})).await.1, "there is no `x`");
    assert_eq!(failure(&source, "read", json!({"path": "docs"})).await.1, "`docs` is a folder, not a file");
    assert_eq!(failure(&source, "read", json!({"path": "a\0b"})).await.0, ToolErrorKind::InvalidArguments);
}

#[tokio::test]
async fn a_file_is_written_with_its_parents_and_then_replaced() {
    let world = World::new();
    let source = world.filesystem();
    let output = call(&source, "write", json!({"path": "a/b/c.txt", "content": "first"})).await.unwrap();
    assert_eq!(output.structured_content, Some(json!({"path": "a/b/c.txt", "size_bytes": 5, "is_new": true})));
    assert_eq!(
        text(&source, "write", json!({"path": "a/b/c.txt", "content": "second"})).await,
        "wrote 6 bytes to `a/b/c.txt` (replaced)"
    );
    assert_eq!(world.get("a/b/c.txt"), "second");
    assert_eq!(std::fs::read_dir(world.root.join("a/b")).unwrap().count(), 1, "no temporary file stays");
}

#[tokio::test]
async fn replacing_a_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.put("run.sh", "old");
    std::fs::set_permissions(world.root.join("run.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    text(&world.filesystem(), "write", json!({"path": "run.sh", "content": "new"})).await;
    assert_eq!(std::fs::metadata(world.root.join("run.sh")).unwrap().permissions().mode() & 0o7777, 0o750);
}

#[tokio::test]
async fn a_write_that_cannot_be_says_why_and_changes_nothing() {
    let world = World::new();
    world.put("file", "x");
    world.put("kept", "kept");
    std::fs::set_permissions(world.root.join("kept"), std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
    let mut config = world.config();
    config.max_write_bytes = 10;
    let source = filesystem(config).unwrap();
    let cases = [
        ("big", "x".repeat(11), "`big` would be 11 bytes, limit 10; nothing was written"),
        (".", String::new(), "`.` is a folder, not a file"),
        ("new/", String::new(), "`new/` does not name a file"),
        ("kept", String::new(), "`kept` is write-protected"),
    ];
    for (path, content, expected) in cases {
        assert_eq!(failure(&source, "write", json!({"path": path, "content": content})).await.1, expected);
    }
    assert_eq!(failure(&source, "write", json!({"path": "file/below", "content": ""})).await.0, ToolErrorKind::ExecutionFailed);
    let mut names: Vec<_> = std::fs::read_dir(&world.root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["file", "kept"]);
}

#[tokio::test]
async fn an_edit_replaces_the_one_occurrence_or_all() {
    let world = World::new();
    world.put("a.txt", "one\ntwo\none\n");
    let source = world.filesystem();
    let edit = |old: &str, new: &str, all: Value| json!({"path": "a.txt", "old_text": old, "new_text": new, "all": all});
    assert_eq!(text(&source, "edit", edit("two", "2", Value::Null)).await, "replaced old_text once in `a.txt`, in line 2");
    assert_eq!(
        text(&source, "edit", edit("one", "1", json!(true))).await,
        "replaced old_text 2 times in `a.txt`, in lines 1, 3"
    );
    assert_eq!(world.get("a.txt"), "1\n2\n1\n");
}

#[tokio::test]
async fn an_edit_that_is_not_clear_changes_nothing_and_says_why() {
    let world = World::new();
    world.put("a.txt", "one\n  two\r\none\r\nthree\n");
    let source = world.filesystem();
    let cases = [
        (
            "one",
            "x",
            "old_text occurs 2 times in `a.txt`, in lines 1, 3; take in more of what surrounds the one that is meant, or set all",
        ),
        ("four", "x", "old_text is not in `a.txt`; read the file and copy it exactly"),
        ("one two", "x", "old_text is not in `a.txt`; it is there with other white space: read the file and copy it exactly"),
        ("two\none", "x", "old_text is not in `a.txt`; the lines of the file end in \\r\\n"),
        ("", "x", "old_text is empty; use write for a new file"),
        ("one", "one", "old_text and new_text are the same: nothing would change"),
    ];
    for (old, new, expected) in cases {
        assert_eq!(failure(&source, "edit", json!({"path": "a.txt", "old_text": old, "new_text": new})).await.1, expected);
    }
    assert_eq!(world.get("a.txt"), "one\n  two\r\none\r\nthree\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_of_one_file_at_once_all_stay() {
    let world = World::new();
    let names: Vec<String> = (0..20).map(|number| format!("<{number}>")).collect();
    world.put("a.txt", names.join("\n"));
    let source = world.filesystem();
    let edits = names.iter().map(|name| {
        let arguments = json!({"path": "a.txt", "old_text": name, "new_text": "done"});
        call(&source, "edit", arguments)
    });
    for result in futures_util::future::join_all(edits).await {
        result.unwrap();
    }
    assert_eq!(world.get("a.txt"), vec!["done"; 20].join("\n"));
}

#[tokio::test]
async fn a_listing_is_sorted_and_names_kinds_and_sizes() {
    let world = World::new();
    world.put("docs/b.md", "x".repeat(1_234));
    world.put("docs/a/deep.md", "");
    world.link("b.md", "docs/c");
    let output = call(&world.filesystem(), "list", json!({"path": "docs"})).await.unwrap();
    assert_eq!(turnwright_core::text_of(&output.content), "a/\nb.md (1,234 bytes)\nc (link)");
    assert_eq!(
        output.structured_content,
        Some(json!({"path": "docs", "is_truncated": false, "entries": [
            {"name": "a", "kind": "folder", "size_bytes": null},
            {"name": "b.md", "kind": "file", "size_bytes": 1_234},
            {"name": "c", "kind": "link", "size_bytes": null},
        ]}))
    );
}

#[tokio::test]
async fn a_listing_over_its_limit_says_so() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.put(name, "");
    }
    let mut config = world.config();
    config.max_entries = 2;
    let source = filesystem(config).unwrap();
    assert_eq!(text(&source, "list", json!({})).await, "a (0 bytes)\nb (0 bytes)\n[2 of 3 entries]");
    std::fs::create_dir(world.root.join("empty")).unwrap();
    assert_eq!(text(&source, "list", json!({"path": "empty"})).await, "[`empty` is empty]");
    assert_eq!(failure(&source, "list", json!({"path": "a"})).await.1, "`a` is a file, not a folder");
}

#[tokio::test]
async fn a_search_finds_lines_below_a_path() {
    let world = World::new();
    world.put("a.rs", "fn one() {}\n// TODO: two\n");
    world.put("src/b.rs", "todo\nTODO(x)\n");
    world.put("src/c.txt", "TODO\n");
    world.put(".git/d.rs", "TODO\n");
    world.put("e.bin", b"TODO\0");
    let source = world.filesystem();
    let cases = [
        (
            json!({"pattern": "TODO"}),
            "a.rs:2: // TODO: two\nsrc/b.rs:2: TODO(x)\nsrc/c.txt:1: TODO\n[1 file was left out: too large, binary or unreadable]",
        ),
        (json!({"pattern": "TODO(", "path": "src"}), "b.rs:2: TODO(x)"),
        (json!({"pattern": "todo", "glob": "*.rs", "ignore_case": true, "path": "src"}), "b.rs:1: todo\nb.rs:2: TODO(x)"),
        (json!({"pattern": "^TODO.x", "regex": true, "glob": "src/**"}), "src/b.rs:2: TODO(x)"),
        (json!({"pattern": "one", "path": "a.rs"}), "a.rs:1: fn one() {}"),
        (json!({"pattern": "*.rs", "target": "names"}), "a.rs\nsrc/b.rs"),
        (json!({"pattern": "src", "target": "names"}), "src/"),
        (json!({"pattern": "nothing", "path": "src"}), "[nothing found in `src`]"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(text(&source, "search", arguments).await, expected);
    }
    let bad = failure(&source, "search", json!({"pattern": "(", "regex": true})).await;
    assert_eq!(bad.0, ToolErrorKind::InvalidArguments);
}

#[tokio::test]
async fn a_search_ends_at_its_limit_and_says_so() {
    let world = World::new();
    world.put("a", "x\nx\nx\n");
    let mut config = world.config();
    config.max_entries = 2;
    let source = filesystem(config).unwrap();
    assert_eq!(
        text(&source, "search", json!({"pattern": "x"})).await,
        "a:1: x\na:2: x\n[there may be more: search a smaller folder, or for something rarer]"
    );
}

#[tokio::test]
async fn a_cancelled_search_ends() {
    let world = World::new();
    world.put("a", "x");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = world.filesystem().call(call_of("search", json!({"pattern": "x"})), context(&cancel)).await.unwrap_err();
    assert_eq!(error.model_text, "the call was given up");
}

#[tokio::test]
async fn stat_says_what_a_path_is() {
    let world = World::new();
    world.put("a.txt", "x".repeat(1_000));
    std::fs::set_permissions(world.root.join("a.txt"), std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    std::fs::File::open(world.root.join("a.txt")).unwrap().set_modified(time).unwrap();
    let output = call(&world.filesystem(), "stat", json!({"path": "a.txt"})).await.unwrap();
    assert_eq!(
        turnwright_core::text_of(&output.content),
        "`a.txt` is a file, 1,000 bytes, modified 2023-11-14T22:13:20Z, mode 0640"
    );
    assert_eq!(
        output.structured_content,
        Some(json!({
            "path": "a.txt", "kind": "file", "size_bytes": 1_000, "modified": "2023-11-14T22:13:20Z", "mode": "0640",
            "leads_to": null,
        }))
    );
}

#[tokio::test]
async fn unknown_and_missing_arguments_are_refused_by_name() {
    let world = World::new();
    let source = world.filesystem();
    let (kind, text) = failure(&source, "read", json!({"file": "a"})).await;
    assert_eq!(kind, ToolErrorKind::InvalidArguments);
    assert!(text.starts_with("the arguments do not fit the tool `read`: unknown field `file`"), "{text}");
    assert_eq!(failure(&source, "fly", json!({})).await.0, ToolErrorKind::NotFound);
}

#[tokio::test]
async fn a_stopped_source_takes_no_calls() {
    let world = World::new();
    let source = world.filesystem();
    assert_eq!(source.state(), SourceState::Ready);
    source.stop().await;
    assert_eq!(source.state(), SourceState::Stopped);
    let expected = (ToolErrorKind::Unavailable, "the tool source `filesystem` was stopped".to_owned());
    assert_eq!(failure(&source, "list", json!({})).await, expected);
}
