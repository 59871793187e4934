//! Large results in parts: exact slices, within bounds, for whom they belong to.

use std::sync::Arc;

use crate::support::{call_of, context};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use turnwright_core::{ContentBlock, ToolErrorKind, UserId, text_of};
use turnwright_engine::artifacts::PIECE_BYTES;
use turnwright_engine::source::{ToolError, ToolOutput, ToolSource};
use turnwright_engine::{LargeResults, Spool, SystemClock};
use turnwright_testkit::MemoryArtifacts;
use turnwright_tools::{TypedSource, artifact};

/// The tools over one artifact.
struct World {
    source: TypedSource,
    id: String,
}

impl World {
    async fn of(bytes: &[u8], media_type: &str) -> Self {
        let artifacts = Arc::new(MemoryArtifacts::default());
        let how = LargeResults { most_bytes: u64::MAX, ..LargeResults::default() };
        let spool = Spool::new(artifacts.clone(), Arc::new(SystemClock), UserId::local(), how);
        let kept = spool.keep(bytes, "a", media_type).await.unwrap();
        Self { source: artifact(artifacts, 64 * 1024), id: kept.id }
    }

    async fn call(&self, tool: &str, mut arguments: Value) -> Result<ToolOutput, ToolError> {
        arguments["artifact"] = json!(self.id);
        self.source.call(call_of(tool, arguments), context(&CancellationToken::new())).await
    }

    /// The text and the note of a success.
    async fn said(&self, tool: &str, arguments: Value) -> (String, String) {
        let output = self.call(tool, arguments.clone()).await.unwrap_or_else(|error| panic!("{arguments}: {error}"));
        let texts: Vec<String> = output.content.iter().map(|block| block.as_text().into_owned()).collect();
        match &texts[..] {
            [note] => (String::new(), note.clone()),
            [text, note] => (text.clone(), note.clone()),
            other => panic!("{other:?}"),
        }
    }

    async fn refused(&self, tool: &str, arguments: Value) -> (ToolErrorKind, String) {
        let error = self.call(tool, arguments).await.expect_err("it is refused");
        (error.kind, error.model_text)
    }
}

/// Lines `row 0`, `row 1` … of more than two pieces.
fn rows() -> String {
    (0..80_000).map(|number| format!("row {number}\n")).collect::<Vec<_>>().concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_slice_of_bytes_is_exact_also_where_pieces_meet() {
    let text = rows();
    let world = World::of(text.as_bytes(), "text/plain").await;
    let total = text.len();
    for (offset, limit) in
        [(0, 10), (PIECE_BYTES - 5, 10), (PIECE_BYTES, 1), (2 * PIECE_BYTES - 20_000, 40_000), (total - 3, 50)]
    {
        let (page, note) = world.said("page", json!({"offset": offset, "limit": limit})).await;
        let to = (offset + limit).min(total);
        assert_eq!(page, text.get(offset..to).unwrap(), "{offset} {limit}");
        let goes_on = if to < total { format!("; go on with offset {to}]") } else { "; this is the end]".to_owned() };
        assert!(note.ends_with(&goes_on), "{note}");
    }
    let (page, _) = world.said("page", json!({"offset": -4})).await;
    assert_eq!(page, text.get(total - 4..).unwrap());
    let (page, note) = world.said("page", json!({})).await;
    assert_eq!((page.len(), note), (16_384, "[bytes 0 up to 16,384 of 788,890; go on with offset 16384]".to_owned()));
    let (page, _) = world.said("page", json!({"limit": 10_000_000})).await;
    assert_eq!(page.len(), 64 * 1024 - 1_024, "no result is larger than what is shown of one");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_go_by_lines_from_the_beginning_and_from_the_end() {
    let world = World::of(rows().as_bytes(), "text/plain").await;
    for (line, lines, expected) in [
        (1, 2, "row 0\nrow 1\n"),
        (40_001, 1, "row 40000\n"),
        (80_000, 9, "row 79999\n"),
        (-1, 9, "row 79999\n"),
        (-40_000, 2, "row 40000\nrow 40001\n"),
        (-90_000, 1, "row 0\n"),
    ] {
        assert_eq!(world.said("page", json!({"line": line, "lines": lines})).await.0, expected, "{line}");
    }
    let (_, note) = world.said("page", json!({"line": 40_001, "lines": 3})).await;
    assert_eq!(note, "[lines 40001 to 40003, bytes 388,890 up to 388,920 of 788,890; go on with offset 388920]");
    for wrong in [json!({"line": 0}), json!({"line": 80_001}), json!({"offset": 788_890}), json!({"line": 1, "offset": 1})] {
        assert_eq!(world.refused("page", wrong.clone()).await.0, ToolErrorKind::InvalidArguments, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_character_is_cut_and_pages_put_together_are_the_whole() {
    let text = "a€😀é".repeat(20_000);
    let world = World::of(text.as_bytes(), "text/plain").await;
    let (mut whole, mut offset) = (String::new(), 0);
    while offset < text.len() {
        let (page, _) = world.said("page", json!({"offset": offset, "limit": 30_001})).await;
        offset += page.len();
        whole.push_str(&page);
    }
    assert!(whole == text);
    let (page, _) = world.said("page", json!({"offset": 2, "limit": 3})).await;
    assert_eq!(page, "€", "a place within a character is its beginning");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_text_is_shown_as_it_is_or_refused() {
    let png = World::of(b"\x89PNG\r\n\x1a\n\0", "image/png").await;
    let shown = png.call("page", json!({})).await.unwrap().content;
    assert_eq!(shown, [ContentBlock::Image { data: "iVBORw0KGgoA".to_owned(), mime_type: "image/png".to_owned() }]);
    let zip = World::of(b"PK\x03\x04\0\0", "application/zip").await;
    let (kind, text) = zip.refused("page", json!({})).await;
    assert_eq!(
        (kind, text.as_str()),
        (ToolErrorKind::InvalidArguments, "this part of the artifact (application/zip) is binary: no text shows it")
    );
    let latin = World::of(b"caf\xe9 ol\xe9", "text/plain").await;
    assert_eq!(latin.said("page", json!({})).await.0, "caf\u{fffd} ol\u{fffd}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_found_with_their_number_and_their_place() {
    let text = rows();
    let world = World::of(text.as_bytes(), "text/plain").await;
    let (found, note) = world.said("search", json!({"pattern": "^row 7999[89]$"})).await;
    let place = text.find("row 79998").unwrap();
    assert_eq!(found, format!("79999 (offset {place}): row 79998\n80000 (offset {}): row 79999", place + 10));
    assert_eq!(note, "[2 matches, the last ones]");
    let (found, note) = world.said("search", json!({"pattern": "row 1", "limit": 2, "skip": 3})).await;
    assert_eq!(found, "13 (offset 74): row 12\n14 (offset 81): row 13");
    assert_eq!(note, "[2 matches, and there are more: go on with skip 5]");
    let (found, _) = world.said("search", json!({"pattern": "ROW 5", "ignore_case": true, "limit": 1, "context": 1})).await;
    assert_eq!(found, "5- row 4\n6 (offset 30): row 5\n7- row 6");
    let (_, note) = world.said("search", json!({"pattern": "row (1", "literal": true})).await;
    assert_eq!(note, "[nothing found]");
    let (kind, _) = world.refused("search", json!({"pattern": "row (1"})).await;
    assert_eq!(kind, ToolErrorKind::InvalidArguments);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_without_lines_is_searched_all_the_same() {
    // One line of 12 MB; a match lies where two parts of it meet.
    let mut text = "x".repeat(12_000_000);
    for at in [5, 1_048_574, 11_999_990] {
        text.replace_range(at..at + 6, "needle");
    }
    let world = World::of(text.as_bytes(), "text/plain").await;
    let (found, note) = world.said("search", json!({"pattern": "n[e]{2}dle"})).await;
    let places: Vec<&str> = found.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(places, ["offset 5", "offset 1048574", "offset 11999990"], "{note}");
    assert!(found.len() < 2_000 && found.lines().all(|line| line.contains("needle")));
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_taken_out_of_json() {
    let items: Vec<Value> = (0..30_000).map(|id| json!({"id": id, "name": format!("item {id}"), "tags": ["a", "b"]})).collect();
    let world = World::of(json!({"items": items, "count": 30_000}).to_string().as_bytes(), "application/json").await;
    assert_eq!(
        world.said("query", json!({"path": "$.count"})).await,
        ("30000".to_owned(), "[1 value, the last one]".to_owned())
    );
    let (values, note) = world.said("query", json!({"path": "$.items[*].name", "skip": 29_998})).await;
    assert_eq!((values.as_str(), note.as_str()), ("\"item 29998\"\n\"item 29999\"", "[2 values, the last ones]"));
    let (values, _) = world.said("query", json!({"path": "$.items[?@.id == 777].tags[1]"})).await;
    assert_eq!(values, "\"b\"");
    let (values, note) = world.said("query", json!({"path": "$.items[*]"})).await;
    assert_eq!((values.lines().count(), note.as_str()), (100, "[100 values, and there are more: go on with skip 100]"));
    let (values, note) = world.said("query", json!({"path": "$.items[*]", "limit": 100_000})).await;
    assert!(values.len() < 64 * 1024 && note.contains("go on with skip"), "{note}");
    assert!(world.refused("query", json!({"path": "items"})).await.1.starts_with("path is not a JSONPath"));
    let text = World::of(b"no JSON", "text/plain").await;
    assert!(text.refused("query", json!({"path": "$.a"})).await.1.starts_with("the artifact is not JSON"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reads_what_belongs_to_another() {
    let world = World::of(b"secret", "text/plain").await;
    let bob = context(&CancellationToken::new()).of(&"bob".parse().unwrap());
    for (tool, more) in [("page", json!({})), ("search", json!({"pattern": "s"})), ("query", json!({"path": "$"}))] {
        let mut arguments = more;
        arguments["artifact"] = json!(world.id);
        let error = world.source.call(call_of(tool, arguments), bob.clone()).await.expect_err("it is not there");
        assert_eq!(error.kind, ToolErrorKind::NotFound, "{tool}");
    }
    let own = world.call("page", json!({})).await.unwrap();
    assert!(text_of(&own.content).starts_with("secret\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_stopped_reads_no_further() {
    let world = World::of("x".repeat(9_000_000).as_bytes(), "text/plain").await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let arguments = json!({"artifact": world.id, "pattern": "y"});
    let error = world.source.call(call_of("search", arguments), context(&cancel)).await.expect_err("it is given up");
    assert_eq!(error.model_text, "the call was given up");
}
