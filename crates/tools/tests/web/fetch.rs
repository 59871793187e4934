//! What a page comes to.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use turnwright_core::{ContentBlock, ToolErrorKind};
use turnwright_tools::net::Allow;
use turnwright_tools::{FetchConfig, Manners, TypedSource, WebConfig, web};

use crate::support::site::{Asked, Reply, Site};
use crate::support::{call, failure, text};

fn with(fetch: FetchConfig) -> TypedSource {
    let allow = Allow::new(["127.0.0.1"]).unwrap();
    web(WebConfig { fetch: Some(fetch), allow, ..WebConfig::new() })
}

fn fetcher() -> TypedSource {
    with(FetchConfig { robots: Manners::Ignored, ..FetchConfig::default() })
}

fn article() -> String {
    let paragraph = "The tide turned at four, and the boats that had waited in the harbour went out one after another, \
        each with a lamp at its mast, until the whole bay was full of small lights.";
    let paragraphs = format!("<p>{paragraph}</p>").repeat(6);
    format!(
        "<!doctype html><html><head><title>The Tide</title><script>var secret = 1;</script></head><body><nav><a href='/a'>Menu</a></nav>\
         <article><h1>The Tide</h1>{paragraphs}<p>See <a href='/more'>more about it</a>.</p></article><footer>All rights \
         reserved</footer></body></html>"
    )
}

#[tokio::test]
async fn a_page_comes_as_its_main_text_and_as_a_whole_where_that_is_wanted() {
    let site = Site::new(|_| Reply::ok("text/html; charset=utf-8", article()));
    let tool = fetcher();
    let main = text(&tool, "fetch", json!({ "url": site.url("/tide") })).await;
    assert!(main.starts_with(&format!("{}\nTitle: The Tide\n\n", site.url("/tide"))), "{main}");
    assert!(
        main.contains("The tide turned at four") && main.contains(&format!("[more about it]({})", site.url("/more"))),
        "{main}"
    );
    assert!(!main.contains("Menu") && !main.contains("secret") && !main.contains("All rights"), "{main}");
    let whole = text(&tool, "fetch", json!({ "url": site.url("/tide"), "whole": true })).await;
    assert!(whole.contains("Menu") && whole.contains("All rights") && !whole.contains("secret"), "{whole}");
}

#[tokio::test]
async fn an_answer_that_is_packed_is_unpacked_within_the_limit_and_named_where_it_cannot_be() {
    let site = Site::new(|asked| {
        assert_eq!(asked.headers.get("accept-encoding").map(String::as_str), Some("gzip, deflate"));
        let of = |coding: &str, body: Vec<u8>| Reply::ok("text/plain", body).with("content-encoding", coding);
        match asked.path.as_str() {
            "/text" => of("gzip", gzip(b"packed words")),
            "/long" => of("gzip", gzip("x".repeat(20 << 10).as_bytes())),
            "/broken" => of("gzip", b"no bytes of gzip".to_vec()),
            _ => of("br", b"\x0b\x02\x80hello\x03".to_vec()),
        }
    });
    let tool = with(FetchConfig { robots: Manners::Ignored, max_bytes: 10 << 10, ..FetchConfig::default() });
    let read = text(&tool, "fetch", json!({ "url": site.url("/text") })).await;
    assert_eq!(read, format!("{}\n\npacked words", site.url("/text")));
    let long = text(&tool, "fetch", json!({ "url": site.url("/long") })).await;
    assert_eq!(long.matches('x').count(), 10 << 10, "{long}");
    for (path, named) in [
        ("/br", "the answer (200 OK) is packed as `br` (its content-encoding) and is not unpacked here (gzip, deflate are);"),
        ("/broken", "the answer (200 OK) is packed as `gzip` (its content-encoding) and cannot be unpacked: "),
    ] {
        let (kind, said) = failure(&tool, "fetch", json!({ "url": site.url(path) })).await;
        assert_eq!(kind, ToolErrorKind::ExecutionFailed);
        assert!(said.starts_with(named), "{said}");
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_long_text_comes_in_parts_and_is_asked_for_once() {
    let lines: String = (0..2_000).map(|line| format!("line {line}\n")).collect();
    let given = lines.clone();
    let site = Site::new(move |_| Reply::ok("text/plain", given.clone()));
    let tool = fetcher();
    let (mut read, mut offset) = (String::new(), 0);
    loop {
        let part = text(&tool, "fetch", json!({ "url": site.url("/log#end"), "offset": offset, "limit": 5_000 })).await;
        let (_, body) = part.split_once("\n\n").unwrap();
        let Some((body, place)) = body.rsplit_once("\n\n[characters ") else {
            read.push_str(body);
            break;
        };
        read.push_str(body);
        offset = place.trim_end_matches(']').rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    }
    assert_eq!(read, lines);
    assert_eq!(site.connections(), 1);
    let (kind, said) = failure(&tool, "fetch", json!({ "url": site.url("/log"), "offset": 99_999 })).await;
    assert_eq!(kind, ToolErrorKind::InvalidArguments);
    assert!(said.starts_with("offset is 99999; the text has 18,890 characters"), "{said}");
}

#[tokio::test]
async fn characters_are_read_as_the_answer_the_page_or_its_bytes_say() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/header" => Reply::ok("text/plain; charset=windows-1251", b"\xcf\xf0\xe8\xe2\xe5\xf2".to_vec()),
        "/meta" => Reply::ok(
            "text/html",
            b"<html><head><meta charset=\"shift_jis\"></head><body>\x93\xfa\x96\x7b</body></html>".to_vec(),
        ),
        "/feed" => Reply::ok(
            "application/rss+xml",
            b"<?xml version=\"1.0\" encoding = 'ISO-8859-15'?><title>5 \xa4, \xbduvre</title>".to_vec(),
        ),
        "/xhtml" => Reply::ok(
            "application/xhtml+xml",
            b"<?xml version=\"1.0\" encoding=\"koi8-r\"?><html><body><p>\xf0\xd2\xc9\xd7\xc5\xd4</p></body></html>".to_vec(),
        ),
        // What is no markup declares nothing, and what could be read so far is not UTF-16.
        "/quoted" => Reply::ok("text/plain; charset=utf-8", "<?xml encoding=\"koi8-r\"?> \u{e9}"),
        "/wide" => Reply::ok("text/xml", "<?xml encoding=\"utf-16\"?><a>\u{e9}</a>"),
        "/mark" => Reply::ok("text/plain", b"\xff\xfeh\0i\0".to_vec()),
        "/guess" => Reply::ok(
            "text/plain",
            "Der Käse hört schön auf, über Straßen zu gehen".chars().map(|c| c as u8).collect::<Vec<u8>>(),
        ),
        _ => Reply::ok("application/json", "{\"a\": \"ä\"}"),
    });
    let tool = fetcher();
    let cases = [
        ("/header", "Привет"),
        ("/meta", "日本"),
        ("/feed", "<?xml version=\"1.0\" encoding = 'ISO-8859-15'?><title>5 \u{20ac}, \u{153}uvre</title>"),
        ("/xhtml", "Привет"),
        ("/quoted", "<?xml encoding=\"koi8-r\"?> \u{e9}"),
        ("/wide", "<?xml encoding=\"utf-16\"?><a>\u{e9}</a>"),
        ("/mark", "hi"),
        ("/guess", "Der Käse hört schön auf, über Straßen zu gehen"),
        ("/json", "{\"a\": \"ä\"}"),
    ];
    for (path, expected) in cases {
        let said = text(&tool, "fetch", json!({ "url": site.url(path) })).await;
        assert_eq!(said, format!("{}\n\n{expected}", site.url(path)));
    }
}

#[tokio::test]
async fn what_is_no_page_is_told_with_what_to_do_next() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/zip" => Reply::ok("application/zip", b"PK\x03\x04".to_vec()),
        "/bytes" => Reply::ok("application/octet-stream", vec![0, 1, 2, 3, 0, 0, 0, 9]),
        "/401" => Reply::status(401, "who?"),
        "/404" => Reply::status(404, "no"),
        "/429" => Reply::status(429, "slower"),
        "/500" => Reply::status(500, "oh"),
        _ => Reply::ok("text/html", ""),
    });
    let tool = fetcher();
    let cases = [
        ("/zip", ToolErrorKind::ExecutionFailed, "there is application/zip (4 bytes), which cannot be read as text"),
        ("/bytes", ToolErrorKind::ExecutionFailed, "there is application/octet-stream (8 bytes)"),
        ("/401", ToolErrorKind::PermissionDenied, "the site does not give it to programs that are not signed in"),
        ("/404", ToolErrorKind::NotFound, "the page is not there: look for its address"),
        ("/429", ToolErrorKind::ExecutionFailed, "the site takes no more requests for a while"),
        ("/500", ToolErrorKind::ExecutionFailed, "the site is broken"),
    ];
    for (path, kind, part) in cases {
        let (got, said) = failure(&tool, "fetch", json!({ "url": site.url(path) })).await;
        assert!(got == kind && said.contains(part), "{path}: {got:?} {said}");
    }
    let empty = text(&tool, "fetch", json!({ "url": site.url("/empty") })).await;
    assert!(empty.contains("[there is no text; the page may need a browser]"), "{empty}");
}

#[tokio::test]
async fn a_page_over_the_limit_is_cut_and_says_so() {
    let site = Site::new(|_| Reply::ok("text/plain", "x".repeat(5_000)));
    let tool = with(FetchConfig { max_bytes: 1_000, robots: Manners::Ignored, ..FetchConfig::default() });
    let said = text(&tool, "fetch", json!({ "url": site.url("/") })).await;
    assert_eq!(
        said,
        format!(
            "{}\n[the end is missing: there is more than the limit allows to read]\n\n{}",
            site.url("/"),
            "x".repeat(1_000)
        )
    );
}

#[tokio::test]
async fn a_site_that_never_ends_its_answer_is_left() {
    // A length that is not kept leaves the reader waiting.
    let (says, holds) = std::sync::mpsc::channel::<()>();
    let holds = std::sync::Mutex::new(holds);
    let site = Site::new(move |_| {
        assert!(holds.lock().unwrap().recv().is_err());
        Reply::status(200, "late")
    });
    let tool = with(FetchConfig { timeout: Duration::from_millis(50), robots: Manners::Ignored, ..FetchConfig::default() });
    let (kind, said) = failure(&tool, "fetch", json!({ "url": site.url("/") })).await;
    drop(says);
    assert_eq!(
        (kind, said.as_str()),
        (ToolErrorKind::Timeout, "no whole answer within 0.05 s; try once more later, or another source")
    );
}

#[tokio::test]
async fn an_image_comes_as_an_image() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    let site = Site::new(move |_| Reply::ok("image/png", png.clone()));
    let output = call(&fetcher(), "fetch", json!({ "url": site.url("/a.png") })).await.unwrap();
    let image = ContentBlock::Image { data: "iVBORw0KGgoAAAANSUhEUg==".into(), mime_type: "image/png".into() };
    assert_eq!(output.content, [ContentBlock::text(format!("{}\n[image/png, 16 bytes]", site.url("/a.png"))), image]);
}

fn with_robots(asked: &Asked) -> Reply {
    match asked.path.as_str() {
        "/robots.txt" => {
            Reply::ok("text/plain", "User-agent: *\nDisallow: /private\n\nUser-agent: turnwright\nDisallow: /ours")
        }
        "/leads" => Reply::to("/ours/page"),
        _ => Reply::ok("text/plain", "read"),
    }
}

#[tokio::test]
async fn what_a_site_asks_of_programs_is_done_also_after_a_redirect() {
    let site = Site::new(with_robots);
    let tool = with(FetchConfig { cache_ttl: Duration::ZERO, ..FetchConfig::default() });
    for path in ["/ours", "/leads"] {
        let (kind, said) = failure(&tool, "fetch", json!({ "url": site.url(path) })).await;
        assert_eq!(kind, ToolErrorKind::PermissionDenied);
        assert!(said.contains("/robots.txt asks programs not to read"), "{said}");
    }
    assert!(text(&tool, "fetch", json!({ "url": site.url("/private") })).await.ends_with("read"));
    assert_eq!(site.paths(), ["/robots.txt", "/leads", "/private"]);
    let rude = fetcher();
    assert!(text(&rude, "fetch", json!({ "url": site.url("/ours") })).await.ends_with("read"));
}

#[tokio::test]
async fn a_site_whose_robots_file_is_broken_is_left_alone_and_one_without_asks_for_nothing() {
    let breaks = Arc::new(AtomicBool::new(true));
    let is_broken = Arc::clone(&breaks);
    let broken = Site::new(move |asked| {
        let fails = asked.path == "/robots.txt" && is_broken.load(Ordering::Relaxed);
        Reply::status(if fails { 503 } else { 200 }, if asked.path == "/robots.txt" { "" } else { "read" })
    });
    let without = Site::new(|asked| Reply::status(if asked.path == "/robots.txt" { 404 } else { 200 }, "read"));
    let tool = with(FetchConfig::default());
    let asked = json!({ "url": broken.url("/") });
    for is_broken in [true, false] {
        breaks.store(is_broken, Ordering::Relaxed);
        let (kind, said) = failure(&tool, "fetch", asked.clone()).await;
        let expected = format!(
            "{}, which says what programs may read there, could not be read: its server failed (HTTP 503); try again after a \
             minute, or another source",
            broken.url("/robots.txt")
        );
        assert_eq!((kind, said), (ToolErrorKind::ExecutionFailed, expected));
    }
    assert_eq!(broken.paths(), ["/robots.txt"], "it is not asked again at once");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    assert!(text(&tool, "fetch", asked).await.ends_with("read"), "what failed for a moment is not held against it");
    assert!(text(&tool, "fetch", json!({ "url": without.url("/") })).await.ends_with("read"));
}

#[tokio::test]
async fn a_page_made_to_break_its_reader_costs_only_itself() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/deep" => Reply::ok("text/html", format!("{}deep{}", "<div>".repeat(20_000), "</div>".repeat(20_000))),
        "/inline" => Reply::ok("text/html", "<b><i><a href=x>".repeat(3_000) + &"<p>".repeat(3_000)),
        "/table" => Reply::ok("text/html", "<table><tr><td>".repeat(2_000)),
        "/list" => Reply::ok("text/html", "<ul><li>".repeat(2_000)),
        "/quote" => Reply::ok("text/html", "<blockquote>".repeat(2_000)),
        _ => Reply::ok("text/plain", "still here"),
    });
    let tool = with(FetchConfig { timeout: Duration::from_secs(20), robots: Manners::Ignored, ..FetchConfig::default() });
    for path in ["/deep", "/inline", "/table", "/list", "/quote"] {
        // Whatever it comes to; the process is there to say so.
        drop(call(&tool, "fetch", json!({ "url": site.url(path) })).await);
    }
    assert!(text(&tool, "fetch", json!({ "url": site.url("/") })).await.ends_with("still here"));
}
