//! What the file tools do.

use crate::support::{World, call, call_of, context, failure, text};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use turnwright_core::{ContentBlock, Declared, ToolErrorKind};
use turnwright_engine::source::{SourceState, ToolSource};
use turnwright_tools::filesystem;

#[test]
fn the_tools_and_what_is_declared_about_them() {
    let world = World::new();
    let source = world.filesystem();
    let tools: Vec<(String, Declared)> = source.tools().iter().map(|tool| (tool.name.clone(), tool.declared)).collect();
    let reads = Declared { read_only: true, ..Declared::default() };
    let writes = Declared { serial: true, ..Declared::default() };
    let expected = [
        ("read", reads),
        ("write", writes),
        ("edit", writes),
        ("list", reads),
        ("search", reads),
        ("stat", reads),
        ("move", writes),
    ];
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
async fn of_a_file_over_the_limit_the_first_lines_come_and_say_how_to_go_on() {
    let world = World::new();
    world.put("big.txt", "twelve bytes\n".repeat(10));
    world.put("line.txt", "x".repeat(200));
    let mut config = world.config();
    config.max_read_bytes = 40;
    let source = filesystem(config).unwrap();
    let first = "twelve bytes\n".repeat(3) + "\n[lines 1 to 3 of a file of 130 bytes; read on with line 4]";
    assert_eq!(text(&source, "read", json!({"path": "big.txt"})).await, first);
    let next = "twelve bytes\n\n[lines 4 to 4 of a file of 130 bytes; read on with line 5]";
    assert_eq!(text(&source, "read", json!({"path": "big.txt", "line": 4, "lines": 1})).await, next);
    let last = "twelve bytes\n\n[lines 10 to 10 of a file of 130 bytes; the end]";
    assert_eq!(text(&source, "read", json!({"path": "big.txt", "line": 10})).await, last);
    let long = "x".repeat(40)
        + "\n[lines 1 to 1 of a file of 200 bytes; line 1 is longer than what is read at once; read it with offset and limit]";
    assert_eq!(text(&source, "read", json!({"path": "line.txt"})).await, long);
    let past = failure(&source, "read", json!({"path": "big.txt", "line": 12})).await;
    assert_eq!(past, (ToolErrorKind::InvalidArguments, "line 12 is past the end: `big.txt` has 10 lines".to_owned()));
    let both = failure(&source, "read", json!({"path": "big.txt", "line": 1, "offset": 1})).await;
    assert_eq!(both.0, ToolErrorKind::InvalidArguments);
}

#[tokio::test]
async fn a_file_of_ten_gigabytes_is_paged_without_being_held() {
    use std::os::unix::fs::FileExt;
    let world = World::new();
    let file = std::fs::File::create(world.root.join("huge")).unwrap();
    file.write_all_at("one\ntwo\n".as_bytes(), 0).unwrap();
    file.write_all_at("x".repeat(70_000).as_bytes(), 8).unwrap();
    file.write_all_at(b"the end\n", 10_000_000_000).unwrap();
    let source = world.filesystem();
    let first = text(&source, "read", json!({"path": "huge", "line": 1, "lines": 2})).await;
    assert_eq!(first, "one\ntwo\n\n[lines 1 to 2 of a file of 10,000,000,008 bytes; read on with line 3]");
    let last = text(&source, "read", json!({"path": "huge", "offset": 10_000_000_000_u64})).await;
    assert_eq!(last, "the end\n\n[bytes 10000000000 to 10000000008 of 10000000008; the end]");
    let too_large = failure(&source, "edit", json!({"path": "huge", "old_text": "one", "new_text": "1"})).await.1;
    assert_eq!(too_large, "`huge` is 10,000,000,008 bytes, limit 8,388,608: too large to edit");
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
        let [ContentBlock::Text { text }, ContentBlock::Text { text: note }] = output.content.as_slice() else {
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
async fn what_is_not_text_is_refused_and_images_are_images() {
    let world = World::new();
    world.put("binary", b"PK\x00\x01");
    let image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";
    world.put("dot.png", image);
    let mut config = world.config();
    config.max_image_bytes = 100;
    let source = filesystem(config).unwrap();
    let refused = failure(&source, "read", json!({"path": "binary"})).await;
    let expected = "`binary` is a binary file, not text: it holds zero bytes";
    assert_eq!(refused, (ToolErrorKind::ExecutionFailed, expected.to_owned()));
    let output = call(&source, "read", json!({"path": "dot.png"})).await.unwrap();
    let [ContentBlock::Text { text: note }, ContentBlock::Image { data, mime_type }] = output.content.as_slice() else {
        panic!("a note and an image: {output:?}")
    };
    assert_eq!((note.as_str(), mime_type.as_str()), ("[`dot.png`: image/png, 29 bytes]", "image/png"));
    assert_eq!(data, "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAA=");
    world.put("large.png", [&image[..], &[0; 100]].concat());
    let large = failure(&source, "read", json!({"path": "large.png"})).await.1;
    assert_eq!(large, "`large.png` is an image of 129 bytes, limit 100; make it smaller first");
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
    let expected = json!({"path": "a/b/c.txt", "size_bytes": 5, "is_new": true});
    assert_eq!(output.structured_content, Some(expected));
    assert_eq!(
        text(&source, "write", json!({"path": "a/b/c.txt", "content": "second"})).await,
        "wrote 6 bytes to `a/b/c.txt` (replaced)\n@@ -1 +1 @@\n-first\n\\ no line end\n+second\n\\ no line end"
    );
    assert_eq!(world.get("a/b/c.txt"), "second");
    assert_eq!(std::fs::read_dir(world.root.join("a/b")).unwrap().count(), 1, "no temporary file stays");
}

#[tokio::test]
async fn replacing_a_file_keeps_its_attributes() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let world = World::new();
    world.put("a.txt", "old");
    let path = world.root.join("a.txt");
    // A file system without them has none to lose.
    if setxattr(&path, "user.origin", b"scanner", XattrFlags::empty()).is_err() {
        return;
    }
    let source = world.filesystem();
    text(&source, "write", json!({"path": "a.txt", "content": "new"})).await;
    text(&source, "edit", json!({"path": "a.txt", "old_text": "new", "new_text": "newer"})).await;
    let mut value = [0; 16];
    let length = getxattr(&path, "user.origin", &mut value[..]).unwrap();
    assert_eq!((&value[..length], world.get("a.txt").as_str()), (&b"scanner"[..], "newer"));
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
    assert_eq!(
        text(&source, "edit", edit("two", "2", Value::Null)).await,
        "replaced old_text once in `a.txt`, in line 2\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n one"
    );
    assert_eq!(
        text(&source, "edit", edit("one", "1", json!(true))).await,
        "replaced old_text 2 times in `a.txt`, in lines 1, 3\n@@ -1,3 +1,3 @@\n-one\n+1\n 2\n-one\n+1"
    );
    assert_eq!(world.get("a.txt"), "1\n2\n1\n");
}

#[tokio::test]
async fn an_edit_that_is_not_clear_changes_nothing_and_says_why() {
    let world = World::new();
    world.put("a.txt", "one\n  two\r\none\r\nthree\n");
    let source = world.filesystem();
    let several =
        "`a.txt`: old_text occurs 2 times, in lines 1, 3; take in more of what surrounds the one that is meant, or set all";
    let cases = [
        ("one", "x", several),
        ("four", "x", "`a.txt`: old_text is not there; read the file and copy it exactly"),
        ("one two", "x", "`a.txt`: old_text is not there; read the file and copy it exactly"),
        ("", "x", "`a.txt`: old_text is empty; use write for a new file"),
        ("one", "one", "`a.txt`: old_text and new_text are the same: nothing would change"),
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
            "a.rs:2: // TODO: two\nsrc/b.rs:2: TODO(x)\nsrc/c.txt:1: TODO\n[1 file was left out: binary, unreadable or not to be touched]",
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
async fn several_edits_are_made_or_none_and_white_space_may_differ() {
    let world = World::new();
    world.put("a.rs", "fn a() {\n\tone();\n\ttwo();\n}\n");
    let source = world.filesystem();
    let edits = json!([{"old_text": "one();", "new_text": "1();"}, {"old_text": "three();", "new_text": "3();"}]);
    let refused = failure(&source, "edit", json!({"path": "a.rs", "edits": edits})).await.1;
    assert_eq!(refused, "`a.rs`: edit 2 of 2: old_text is not there; read the file and copy it exactly; no edit was made");
    assert_eq!(world.get("a.rs"), "fn a() {\n\tone();\n\ttwo();\n}\n");
    let edits = json!([
        {"old_text": "one();", "new_text": "1();"},
        {"old_text": "    1();\n    two();\n", "new_text": "    1();\n    2();\n"},
    ]);
    let made = text(&source, "edit", json!({"path": "a.rs", "edits": edits})).await;
    assert!(made.starts_with(
        "replaced old_text once in `a.rs`, in line 2\nreplaced old_text once in `a.rs`, in line 2 (found by its words"
    ));
    assert_eq!(world.get("a.rs"), "fn a() {\n\t1();\n\t2();\n}\n");
    let both = failure(&source, "edit", json!({"path": "a.rs", "old_text": "a", "new_text": "b", "edits": []})).await;
    assert_eq!(both.0, ToolErrorKind::InvalidArguments);
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_overwritten() {
    let world = World::new();
    world.put("a.txt", "first");
    let source = world.filesystem();
    let in_one = |tool: &str, arguments: Value| {
        let mut context = context(&CancellationToken::new());
        context.conversation = Some("one".parse().unwrap());
        source.call(call_of(tool, arguments), context)
    };
    in_one("read", json!({"path": "a.txt"})).await.unwrap();
    world.put("a.txt", "other");
    for (tool, arguments) in [
        ("write", json!({"path": "a.txt", "content": "mine"})),
        ("edit", json!({"path": "a.txt", "old_text": "other", "new_text": "mine"})),
    ] {
        let error = in_one(tool, arguments).await.unwrap_err();
        let expected = "`a.txt` changed since it was read; nothing was written: read it again, and then say what it shall hold";
        assert_eq!(error.model_text, expected);
    }
    assert_eq!(world.get("a.txt"), "other");
    // Who never read it overwrites nothing that it relies on, and what it writes is a change for the other.
    text(&source, "write", json!({"path": "a.txt", "content": "theirs"})).await;
    in_one("read", json!({"path": "a.txt"})).await.unwrap();
    in_one("write", json!({"path": "a.txt", "content": "mine"})).await.unwrap();
    in_one("edit", json!({"path": "a.txt", "old_text": "mine", "new_text": "done"})).await.unwrap();
    assert_eq!(world.get("a.txt"), "done");
}

#[tokio::test]
async fn things_are_moved_and_nothing_is_replaced() {
    let world = World::new();
    world.put("a/one.txt", "one");
    world.put("two.txt", "two");
    world.link("a", "link");
    let source = world.filesystem();
    assert_eq!(
        text(&source, "move", json!({"from": "a/one.txt", "to": "b/c/1.txt"})).await,
        "moved `a/one.txt` to `b/c/1.txt`"
    );
    assert_eq!(world.get("b/c/1.txt"), "one");
    let taken = failure(&source, "move", json!({"from": "two.txt", "to": "b/c/1.txt"})).await.1;
    assert_eq!(taken, "`b/c/1.txt` is there already; nothing was moved");
    assert_eq!(failure(&source, "move", json!({"from": ".", "to": "c"})).await.1, "`.` is a root; it stays");
    assert_eq!(failure(&source, "move", json!({"from": "b", "to": "b/c/d"})).await.1, "`b` cannot be moved into itself");
    text(&source, "move", json!({"from": "link", "to": "other"})).await;
    assert!(world.root.join("other").is_symlink() && world.root.join("a").is_dir());
}

#[tokio::test]
async fn what_is_deleted_comes_back() {
    let world = World::new();
    world.put("folder/a.txt", "a");
    let mut config = world.config();
    assert_eq!(failure(&world.filesystem(), "delete", json!({"path": "folder"})).await.0, ToolErrorKind::NotFound);
    config.trash = Some(world.folder.path().join("trash"));
    let source = filesystem(config).unwrap();
    let output = call(&source, "delete", json!({"path": "folder"})).await.unwrap();
    let id = output.structured_content.unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(
        turnwright_core::text_of(&output.content),
        format!("deleted the folder `folder`; restore with the id {id} brings it back")
    );
    assert!(!world.root.join("folder").exists());
    world.put("folder", "in the way");
    let taken = failure(&source, "restore", json!({"id": id})).await.1;
    assert_eq!(taken, "`folder` is there again; move it away first");
    std::fs::remove_file(world.root.join("folder")).unwrap();
    assert_eq!(text(&source, "restore", json!({"id": id})).await, "restored `folder`");
    assert_eq!(world.get("folder/a.txt"), "a");
    let again = failure(&source, "restore", json!({"id": id})).await;
    assert_eq!(again.0, ToolErrorKind::NotFound);
    assert_eq!(failure(&source, "restore", json!({"id": "../../root"})).await.0, ToolErrorKind::InvalidArguments);
}

#[tokio::test]
async fn names_with_line_ends_stay_on_one_line() {
    let world = World::new();
    world.put("a\nb.txt", "x\n");
    let source = world.filesystem();
    assert_eq!(text(&source, "list", json!({})).await, "a\\nb.txt (2 bytes)");
    assert_eq!(text(&source, "search", json!({"pattern": "x"})).await, "a\\nb.txt:1: x");
    assert_eq!(text(&source, "read", json!({"path": "a\nb.txt"})).await, "x\n");
}

#[tokio::test]
async fn a_search_leaves_out_what_is_ignored_and_shows_lines_around() {
    let world = World::new();
    world.put(".gitignore", "*.log\n/made/\n!kept.log\n");
    world.put("a.log", "TODO\n");
    world.put("kept.log", "TODO\n");
    world.put("made/a.txt", "TODO\n");
    world.put("src/made/a.txt", "TODO\n");
    world.put("src/.ignore", "b.txt\n");
    world.put("src/b.txt", "TODO\n");
    world.put("src/c.txt", "1\n2\nTODO\n4\n5\n6\nTODO\r\n");
    let source = world.filesystem();
    let search = |arguments: Value| text(&source, "search", arguments);
    assert_eq!(
        search(json!({"pattern": "TODO$", "regex": true})).await,
        "kept.log:1: TODO\nsrc/c.txt:3: TODO\nsrc/c.txt:7: TODO\nsrc/made/a.txt:1: TODO"
    );
    assert_eq!(search(json!({"pattern": "*.log", "target": "names", "path": "src/.."})).await, "kept.log");
    let all = search(json!({"pattern": "TODO", "include_ignored": true})).await;
    assert_eq!(all.lines().count(), 7, "{all}");
    let around = search(json!({"pattern": "TODO", "path": "src/c.txt", "context": 1})).await;
    let expected = "c.txt-2- 2\nc.txt:3: TODO\nc.txt-4- 4\n--\nc.txt-6- 6\nc.txt:7: TODO";
    assert_eq!(around, expected);
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
