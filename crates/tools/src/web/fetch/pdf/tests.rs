use std::time::Duration;

use lopdf::Stream;

use super::*;

const CATALOGUE: &str = "<< /Type /Catalog /Pages 2 0 R >>";
const PAGES: &str = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>";
const PAGE: &str = "<< /Type /Page /Parent 2 0 R /Resources << /Font << /F0 5 0 R >> >> /Contents 4 0 R >>";
const FONT: &str = "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R >>";
const PLAIN_FONT: &str = "<< /Type /Font /Subtype /Type1 /Encoding /WinAnsiEncoding >>";

/// A file of these objects, numbered from 1, whose table of places is what `table` makes of them.
fn file_with(objects: &[Vec<u8>], table: impl Fn(&[usize]) -> Vec<usize>) -> Vec<u8> {
    let (mut out, mut places) = (b"%PDF-1.4\n".to_vec(), Vec::new());
    for (index, object) in objects.iter().enumerate() {
        places.push(out.len());
        out.extend([format!("{} 0 obj\n", index + 1).as_bytes(), object, b"\nendobj\n"].concat());
    }
    let (start, places) = (out.len(), table(&places));
    out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).into_bytes());
    out.extend(places.iter().flat_map(|place| format!("{place:010} 00000 n \n").into_bytes()));
    out.extend(format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n", places.len() + 1).into_bytes());
    out
}

fn file(objects: &[Vec<u8>]) -> Vec<u8> {
    file_with(objects, <[usize]>::to_vec)
}

fn text(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// A stream with these entries besides.
fn stream(entries: &str, content: &[u8]) -> Vec<u8> {
    [format!("<< {entries} /Length {} >>\nstream\n", content.len()).as_bytes(), content, b"\nendstream"].concat()
}

fn packed(entries: &str, content: &[u8]) -> Vec<u8> {
    stream(&format!("/Filter /FlateDecode {entries}"), &deflated(content))
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut stream = Stream::new(Dictionary::new(), content.to_vec());
    stream.compress().unwrap();
    stream.content
}

/// A page that shows this with a font of this map.
fn mapped(map: &str, shown: &str) -> Vec<u8> {
    let drawing = format!("BT /F0 12 Tf 10 10 Td {shown} Tj ET");
    file(&[text(CATALOGUE), text(PAGES), text(PAGE), stream("", drawing.as_bytes()), text(FONT), packed("", map.as_bytes())])
}

/// The first page's text and the notes, which were there in time.
fn read_all(body: &[u8]) -> (String, Vec<String>) {
    let begun = Instant::now();
    let read = read(body, begun + Duration::from_mins(1)).unwrap();
    assert!(begun.elapsed() < Duration::from_mins(1));
    (read.pages.into_iter().next().map(|(_, text)| text).unwrap_or_default(), read.notes)
}

fn said(text: &str) -> (String, Vec<String>) {
    (text.to_owned(), Vec::new())
}

#[test]
fn a_map_of_all_codes_of_four_bytes_takes_no_more_than_one_of_two() {
    let all =
        "1 begincodespacerange <00000000> <FFFFFFFF> endcodespacerange 1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange";
    assert_eq!(read_all(&mapped(all, "<0000000000000002>")), said("AC"));
}

#[test]
fn a_map_that_an_encoding_leads_to_is_no_other() {
    let font = "<< /Type /Font /Encoding << /BaseEncoding /Identity-H /Differences [0 /A] >> /ToUnicode 6 0 R >>";
    let map = b"1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange";
    let drawing = b"BT /F0 12 Tf <00000001> Tj ET";
    let objects = [text(CATALOGUE), text(PAGES), text(PAGE), stream("", drawing), text(font), stream("", map)];
    assert_eq!(read_all(&file(&objects)), said("B"));
}

#[test]
fn fonts_that_share_a_map_are_read_with_one() {
    let fonts = (0..1_000).map(|font| format!("/F{font} << /Type /Font /ToUnicode 6 0 R >> ")).collect::<Vec<_>>().concat();
    let page = format!("<< /Type /Page /Parent 2 0 R /Resources << /Font << {fonts} >> >> /Contents 4 0 R >>");
    let drawing = (0..1_000).map(|font| format!("BT /F{font} 12 Tf <0041> Tj ET ")).collect::<Vec<_>>().concat();
    let codes = (0..0x2000_u16).map(|code| format!("<{code:04x}> <{code:04x}> ")).collect::<Vec<_>>().concat();
    let map = format!("1 beginbfchar {codes} endbfchar");
    let objects =
        [text(CATALOGUE), text(PAGES), text(&page), stream("", drawing.as_bytes()), text("null"), packed("", map.as_bytes())];
    assert_eq!(read_all(&file(&objects)), said(&"A".repeat(1_000)));
}

#[test]
fn what_draws_a_page_many_times_ends_with_the_time() {
    let page = format!("<< /Type /Page /Parent 2 0 R /Contents [{}] >>", "4 0 R ".repeat(20_000));
    let nothing = stream("/Filter [/FlateDecode /FlateDecode /ASCIIHexDecode]", &deflated(&deflated(&vec![b'>'; 4 << 20])));
    let body = file(&[text(CATALOGUE), text(PAGES), text(&page), nothing]);
    let begun = Instant::now();
    let read = read(&body, begun + Duration::from_secs(1)).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(read.pages, []);
    assert!(read.notes.iter().any(|note| note.starts_with("the pages from 1 on are missing")), "{:?}", read.notes);
}

#[test]
fn no_object_is_read_twice_whatever_the_tables_say() {
    let drawing = b"BT /F0 12 Tf (Here) Tj ET";
    let large = format!("[{}]", "0 ".repeat(20_000));
    let plain = [text(CATALOGUE), text(PAGES), text(PAGE), stream("", drawing), text(PLAIN_FONT), text(&large)];
    let often = file_with(&plain, |places| [places, &vec![places[5]; 20_000]].concat());
    assert_eq!(read_all(&often), said("Here"));

    // A length, and an end, that reach over all that follows.
    let within: Vec<u8> = (10..5_000)
        .flat_map(|number| format!("{number} 0 obj\n<< /Length 1000000 >>\nstream\n\nendstream\nendobj\n").into_bytes())
        .collect();
    assert_eq!(read_all(&[file(&plain), within].concat()), said("Here"));

    let index = (10..20_000).map(|number| format!("{number} 0 ")).collect::<Vec<_>>().concat();
    let of_objects = packed(&format!("/Type /ObjStm /N 19990 /First {}", index.len()), format!("{index}{large}").as_bytes());
    let streamed = [text(CATALOGUE), text(PAGES), text(PAGE), stream("", drawing), text(PLAIN_FONT), of_objects];
    assert_eq!(read_all(&file(&streamed)), said("Here"));
}

#[test]
fn what_says_more_than_can_be_held_is_read_in_part() {
    let drawing = b"BT /F0 12 Tf (Here) Tj ET";
    let large = format!("[{}]", "0 ".repeat(3_500_000));
    let objects = [text(CATALOGUE), text(PAGES), text(PAGE), stream("", drawing), text(PLAIN_FONT), text(&large)];
    let note = "parts of the PDF are missing: it is too large to read as a whole".to_owned();
    assert_eq!(read_all(&file(&objects)), ("Here".to_owned(), vec![note]));
    let late = read(&file(&objects), Instant::now()).unwrap_err();
    assert_eq!(late, "the PDF is too large to read; ask the person for a part of it");
}

#[test]
fn objects_are_found_in_streams_behind_other_lengths_and_the_last_of_each_counts() {
    let objects = format!("1 0 2 {} 3 {} {CATALOGUE} {PAGES} {PAGE}", CATALOGUE.len() + 1, CATALOGUE.len() + PAGES.len() + 2);
    let first = objects.find("<<").unwrap();
    let container = packed(&format!("/Type /ObjStm /N 3 /First {first}"), objects.as_bytes());
    let about = stream("/Type /XRef /Size 12 /Root 1 0 R /W [1 2 1]", b"");
    let drawing = b"BT /F0 12 Tf (As it was) Tj ET";
    let body = [
        b"%PDF-1.5\r\n".as_slice(),
        b"4 0 obj<< /Length 9 0 R >>stream\r\n",
        drawing,
        b"\r\nendstream endobj\r\n5 0 obj",
        PLAIN_FONT.as_bytes(),
        format!("endobj 9 0 obj {} endobj\r\n10 0 obj\r\n", drawing.len()).as_bytes(),
        &container,
        b"\r\nendobj\r\n11 0 obj",
        &about,
        b"endobj startxref 0 %%EOF\r\n",
    ]
    .concat();
    assert_eq!(read_all(&body), said("As it was"));

    let change = [b"4 0 obj\n".as_slice(), &stream("", b"BT /F0 12 Tf (As it is) Tj ET"), b"\nendobj\n"].concat();
    assert_eq!(read_all(&[body.clone(), change].concat()), said("As it is"));
    let page = format!("3 0 obj {} endobj", PAGE.replace("4 0 R", "12 0 R"));
    let change = [page.as_bytes(), b" 12 0 obj\n", &stream("", b"BT /F0 12 Tf (Another) Tj ET"), b"\nendobj\n"].concat();
    assert_eq!(read_all(&[body, change].concat()), said("Another"));
}

#[test]
fn a_file_without_an_end_is_read_as_far_as_it_goes() {
    let drawing = b"BT /F0 12 Tf (Here) Tj ET";
    let whole = file(&[text(CATALOGUE), text(PAGES), text(PAGE), text(PLAIN_FONT), text("null"), stream("", drawing)]);
    let whole = String::from_utf8(whole).unwrap().replace("4 0 R", "6 0 R").replace("5 0 R", "4 0 R");
    let cut = whole.split_once("endstream").unwrap().0;
    assert_eq!(read_all(cut.as_bytes()), said("Here"));
    let nothing = read(b"%PDF-1.7\n1 0 obj null endobj", Instant::now() + Duration::from_secs(9)).unwrap_err();
    assert_eq!(nothing, "the PDF is broken (it has no catalogue); try another source");
}
