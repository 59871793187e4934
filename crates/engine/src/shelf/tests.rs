use serde_json::json;
use turnwright_core::{EmbeddedResource, UserId};

use super::*;

fn text(text: &str) -> ContentBlock {
    ContentBlock::text(text)
}

fn blob(uri: &str, mime_type: &str) -> ContentBlock {
    let (mime_type, blob) = (Some(mime_type.to_owned()), Some("AAAA".to_owned()));
    ContentBlock::Resource { resource: EmbeddedResource { uri: uri.to_owned(), mime_type, text: None, blob } }
}

fn kept_as(id: &str, media_type: &str) -> Artifact {
    let (name, media_type) = ("t".to_owned(), media_type.to_owned());
    Artifact { id: id.to_owned(), owner: UserId::local(), name, media_type, bytes: 1, created_at_ms: 0 }
}

#[test]
fn an_excerpt_is_cut_at_lines_where_they_are_near_and_never_within_a_character() {
    let lines = "0123456\n".repeat(100);
    assert_eq!(
        excerpt(&lines, 80),
        Excerpt { head: "0123456\n0123456\n0123456\n0123456\n0123456", tail: lines.get(760..).unwrap() }
    );
    let one = "x".repeat(90) + "\ny";
    assert_eq!(excerpt(&one, 40), Excerpt { head: one.get(..20).unwrap(), tail: one.get(72..).unwrap() });
    let euros = "€".repeat(100);
    assert_eq!(excerpt(&euros, 20), Excerpt { head: "€€€", tail: "€€€" });
    assert_eq!(excerpt("ab", 20), Excerpt { head: "ab", tail: "" });
}

#[test]
fn what_is_within_the_limit_stays_and_what_is_not_becomes_one_text() {
    let image = ContentBlock::Image { data: "AAAA".to_owned(), mime_type: "image/png".to_owned() };
    let content = vec![text("abc"), image.clone(), text("def")];
    let stays = content.iter().cloned().map(Part::Shown).collect::<Vec<_>>();
    assert_eq!(sorted(content.clone(), None, 6), (stays, None));
    let whole = Part::Text { text: "abc\ndef".to_owned(), media_type: TEXT };
    assert_eq!(sorted(content, None, 5), (vec![whole, Part::Shown(image)], None));
}

#[test]
fn structured_content_is_kept_once() {
    let value = json!({"a": [1, 2, 3]});
    let same = Part::Text { text: "{ \"a\": [1,2,3] }".to_owned(), media_type: JSON };
    assert_eq!(sorted(vec![text("{ \"a\": [1,2,3] }")], Some(value.clone()), 5), (vec![same], None));
    let other = Part::Text { text: "in words".to_owned(), media_type: TEXT };
    assert_eq!(sorted(vec![text("in words")], Some(value.clone()), 5), (vec![other], Some(value.clone())));
    let short = Part::Shown(text("ok"));
    assert_eq!(sorted(vec![text("ok")], Some(value.clone()), 5), (vec![short], Some(value.clone())));
    let alone = Part::Text { text: value.to_string(), media_type: JSON };
    assert_eq!(sorted(Vec::new(), Some(value), 5), (vec![alone], None));
}

#[test]
fn an_image_is_shown_as_one_and_other_bytes_are_kept() {
    let image = ContentBlock::Image { data: "AAAA".to_owned(), mime_type: "image/png".to_owned() };
    assert_eq!(part(blob("file:///a.png", "image/png")), Part::Shown(image));
    let kept = |name: &str, media_type: &str| Part::Kept {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        base64: "AAAA".to_owned(),
    };
    assert_eq!(part(blob("file:///x/a.zip", "application/zip")), kept("a.zip", "application/zip"));
    assert_eq!(part(blob("file:///a\u{202e}piz.exe", "application/zip")), kept("apiz.exe", "application/zip"));
    assert_eq!(part(blob("mem:/", "text/html\r\nx: y")), kept("mem:", "application/octet-stream"));
}

#[test]
fn a_model_is_told_where_the_whole_is_and_by_which_tools_it_reads_on() {
    let long = "a".repeat(40) + &"b".repeat(1_000) + &"c".repeat(40);
    let how = LargeResults { shown_bytes: 160, ..LargeResults::default() };
    let said = shown(&long, Ok(&kept_as("art_1", TEXT)), how);
    let expected = format!(
        "{}\n[… 1,000 of 1,080 bytes left out: the whole is artifact `art_1`; artifact__page gives any part of it, \
         artifact__search finds lines in it …]\n{}",
        "a".repeat(40),
        "c".repeat(40)
    );
    assert_eq!(said, expected);
    assert!(shown(&long, Ok(&kept_as("art_1", JSON)), how).contains("artifact__query"));
    let quiet = LargeResults { can_be_read: false, ..how };
    assert!(
        shown(&long, Ok(&kept_as("art_1", JSON)), quiet)
            .contains("left out: the whole is kept as `art_1`, which no tool of this conversation reads …]")
    );
    assert!(shown(&long, Err(&"the disk is full".to_owned()), how).contains("could not be kept: the disk is full"));
}
