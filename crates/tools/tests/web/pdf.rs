//! What a PDF comes to.

use serde_json::json;
use turnwright_core::ToolErrorKind;
use turnwright_tools::net::Allow;
use turnwright_tools::{FetchConfig, Manners, TypedSource, WebConfig, web};

use crate::support::site::{Reply, Site};
use crate::support::{call, failure, text};

fn fetcher() -> TypedSource {
    let fetch = FetchConfig { robots: Manners::Ignored, ..FetchConfig::default() };
    web(WebConfig { fetch: Some(fetch), allow: Allow::new(["127.0.0.1"]).unwrap(), ..WebConfig::new() })
}

/// A file of these objects, numbered from 1, the first being the catalogue.
fn file(objects: &[String]) -> Vec<u8> {
    let (mut out, mut places) = (String::from("%PDF-1.4\n"), Vec::new());
    for (index, object) in objects.iter().enumerate() {
        places.push(out.len());
        out += &format!("{} 0 obj\n{object}\nendobj\n", index + 1);
    }
    let start = out.len();
    out += &format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for place in places {
        out += &format!("{place:010} 00000 n \n");
    }
    out += &format!("trailer\n<< /Size {} /Root 1 0 R /Info 6 0 R >>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1);
    out.into_bytes()
}

fn pdf(content: &str) -> Vec<u8> {
    let page = |content: usize| {
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R /Resources << /Font << /F1 4 0 R >> >> >>"
        )
    };
    let stream = |content: &str| format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len());
    file(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R 7 0 R] /Count 2 >>".to_owned(),
        page(5),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        stream(content),
        "<< /Title (A short report) >>".to_owned(),
        page(8),
        stream("BT /F1 12 Tf 72 720 Td (Second page) Tj ET"),
    ])
}

#[tokio::test]
async fn its_text_comes_page_by_page_with_its_lines() {
    let content = "BT /F1 12 Tf 72 720 Td (Results) Tj 0 -40 Td [(Wat) 10 (er is) -300 (wet.)] TJ 0 -14 Td (Ice is) Tj 40 0 Td (cold.) Tj ET";
    let given = pdf(content);
    let site = Site::new(move |_| Reply::ok("application/pdf", given.clone()));
    let said = text(&fetcher(), "fetch", json!({ "url": site.url("/r.pdf") })).await;
    let expected = "Title: A short report\n\n[page 1]\nResults\n\nWater is wet.\nIce is cold.\n\n[page 2]\nSecond page";
    assert_eq!(said, format!("{}\n{expected}", site.url("/r.pdf")));
}

#[tokio::test]
async fn one_without_text_says_so() {
    let given = file(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>".to_owned(),
    ]);
    let site = Site::new(move |_| Reply::ok("application/pdf", given.clone()));
    let said = text(&fetcher(), "fetch", json!({ "url": site.url("/scan.pdf") })).await;
    assert!(said.contains("[the PDF holds no text that can be read: its pages may be pictures]"), "{said}");
}

#[tokio::test]
async fn files_that_are_broken_or_made_to_break_a_reader_cost_only_themselves() {
    let deep = "[".repeat(100_000);
    let circle = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 2 /Parent 2 0 R >>".to_owned(),
        "<< /Type /Page /Parent 3 0 R /Contents 3 0 R /Resources 3 0 R >>".to_owned(),
    ];
    let whole = pdf("BT /F1 12 Tf (x) Tj ET");
    let cut = whole[..whole.len() / 2].to_vec();
    let files: Vec<Vec<u8>> = vec![
        b"%PDF-1.7\nnothing more".to_vec(),
        format!("%PDF-1.4\n1 0 obj\n{deep}\nendobj\n").into_bytes(),
        file(&circle),
        file(&["1 0 R".to_owned()]),
        file(&["<< /Type /Catalog /Pages 1 0 R >>".to_owned()]),
        pdf(&"(".repeat(100_000)),
        pdf(&"[".repeat(100_000)),
        pdf("BT /F1 Tf Td Tm TJ [[[]]] TJ ' \" T* ET"),
        cut,
    ];
    let count = files.len();
    let site = Site::new(move |asked| match asked.path.trim_start_matches('/').parse::<usize>() {
        Ok(number) => Reply::ok("application/pdf", files[number].clone()),
        Err(_) => Reply::ok("text/plain", "still here"),
    });
    let tool = fetcher();
    for number in 0..count {
        drop(call(&tool, "fetch", json!({ "url": site.url(&format!("/{number}")) })).await);
    }
    assert!(text(&tool, "fetch", json!({ "url": site.url("/after") })).await.ends_with("still here"));
    let (kind, said) = failure(&tool, "fetch", json!({ "url": site.url("/0") })).await;
    assert_eq!(kind, ToolErrorKind::ExecutionFailed);
    assert!(said.starts_with("the PDF is broken (") && said.ends_with("); try another source"), "{said}");
}

#[tokio::test]
async fn a_page_that_would_take_much_more_memory_than_it_has_bytes_is_left_out() {
    let given = pdf(&"q ".repeat(300_000));
    let site = Site::new(move |_| Reply::ok("application/pdf", given.clone()));
    let said = text(&fetcher(), "fetch", json!({ "url": site.url("/r.pdf") })).await;
    assert!(said.contains("1 of 2 pages could not be read") && said.ends_with("[page 2]\nSecond page"), "{said}");
}
