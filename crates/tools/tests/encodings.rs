//! Texts in other encodings than UTF-8.

use crate::support::{World, failure, text};
use serde_json::json;

#[tokio::test]
async fn texts_in_other_encodings_are_read_and_edited_in_them() {
    let world = World::new();
    let utf_16: Vec<u8> = [0xfeff].into_iter().chain("één\ntwee\n".encode_utf16()).flat_map(u16::to_le_bytes).collect();
    world.put("latin.txt", b"caf\xe9 au lait\n");
    world.put("wide.txt", &utf_16);
    world.put("marked.txt", b"\xef\xbb\xbfmarked\n");
    let source = world.filesystem();
    let read = |path: &'static str| text(&source, "read", json!({"path": path}));
    assert_eq!(read("latin.txt").await, "café au lait\n\n[read as windows-1252]");
    assert_eq!(read("wide.txt").await, "één\ntwee\n\n[read as UTF-16LE]");
    assert_eq!(read("marked.txt").await, "marked\n");
    let second = text(&source, "read", json!({"path": "wide.txt", "line": 2})).await;
    assert_eq!(second, "twee\n\n[lines 2 to 2 of a file of 20 bytes; the end]\n[read as UTF-16LE]");
    text(&source, "edit", json!({"path": "latin.txt", "old_text": "lait", "new_text": "thé"})).await;
    text(&source, "edit", json!({"path": "marked.txt", "old_text": "marked", "new_text": "known"})).await;
    assert_eq!(std::fs::read(world.root.join("latin.txt")).unwrap(), b"caf\xe9 au th\xe9\n");
    assert_eq!(std::fs::read(world.root.join("marked.txt")).unwrap(), b"\xef\xbb\xbfknown\n");
    let refused = failure(&source, "edit", json!({"path": "latin.txt", "old_text": "café", "new_text": "世"})).await.1;
    assert_eq!(refused, "`latin.txt` is written as windows-1252, which has no `世`; nothing was written");
}

#[tokio::test]
async fn a_write_keeps_the_encoding_of_what_it_replaces_where_it_can_and_says_what_it_did() {
    let world = World::new();
    let wide = |text: &str| [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    world.put("latin.txt", b"caf\xe9\n");
    world.put("wide.txt", wide("een\n"));
    world.put("marked.csv", "\u{feff}a;b\n");
    let source = world.filesystem();
    let written = async |path: &str, content: &str| {
        let said = text(&source, "write", json!({"path": path, "content": content})).await;
        (said.lines().next().unwrap().to_owned(), std::fs::read(world.root.join(path)).unwrap())
    };
    let said = |text: &str| text.to_owned();
    assert_eq!(
        written("latin.txt", "th\u{e9}\n").await,
        (said("wrote 4 bytes to `latin.txt` (replaced) as windows-1252, as it was"), b"th\xe9\n".to_vec())
    );
    assert_eq!(
        written("latin.txt", "\u{4e16}\u{e9}\n").await,
        (
            said("wrote 6 bytes to `latin.txt` (replaced) as UTF-8: it was windows-1252, which has no `\u{4e16}`"),
            "\u{4e16}\u{e9}\n".into()
        )
    );
    assert_eq!(
        written("wide.txt", "\u{e9}\u{e9}n\n").await,
        (
            said("wrote 10 bytes to `wide.txt` (replaced) as UTF-16LE with a byte order mark, as it was"),
            wide("\u{e9}\u{e9}n\n")
        )
    );
    let marked = said("wrote 7 bytes to `marked.csv` (replaced) as UTF-8 with a byte order mark, as it was");
    for content in ["c;d\n", "\u{feff}c;d\n"] {
        assert_eq!(written("marked.csv", content).await, (marked.clone(), "\u{feff}c;d\n".into()));
    }
}

#[tokio::test]
async fn a_search_finds_what_a_read_shows_in_whatever_encoding_it_is_written() {
    let world = World::new();
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    world.put("a_latin.txt", b"first\ncaf\xe9 au lait\n");
    world.put("b_wide.txt", wide("first\ncaf\u{e9} au lait\n"));
    world.put("c_marked.txt", [b"\xff\xfe".to_vec(), wide("caf\u{e9}\n")].concat());
    world.put("d_plain.txt", "\u{feff}caf\u{e9}\r\n");
    let long = [b"caf\xe9 early\n".repeat(10_000), b"the last caf\xe9\n".to_vec()].concat();
    world.put("e_long.txt", &long);
    // One broken byte does not hide the rest.
    world.put("f_broken.txt", b"caf\xc3\xa9 and \xff\n");
    world.put("g_binary", b"PK\x00caf\xc3\xa9");
    let source = world.filesystem();
    let found = text(&source, "search", json!({"pattern": "CAF\u{c9}", "ignore_case": true, "glob": "[!e]*"})).await;
    assert_eq!(
        found,
        "a_latin.txt:2: caf\u{e9} au lait\nb_wide.txt:2: caf\u{e9} au lait\nc_marked.txt:1: caf\u{e9}\nd_plain.txt:1: \
         caf\u{e9}\nf_broken.txt:1: caf\u{e9} and \u{fffd}\n[1 file was left out: binary, unreadable or not to be touched]"
    );
    let found = text(&source, "search", json!({"pattern": "last caf\u{e9}", "path": "e_long.txt", "context": 1})).await;
    assert_eq!(found, "e_long.txt-10000- caf\u{e9} early\ne_long.txt:10001: the last caf\u{e9}");
}
