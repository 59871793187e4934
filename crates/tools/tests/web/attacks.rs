//! Nobody is connected to who may not be reached, whatever the way there.

use std::sync::Arc;

use serde_json::json;
use turnwright_core::ToolErrorKind;
use turnwright_tools::net::Allow;
use turnwright_tools::{FetchConfig, Manners, TypedSource, WebConfig, web};

use crate::support::site::{Names, Reply, Site};
use crate::support::{failure, text};

fn fetcher(allow: &[&str], names: Names) -> TypedSource {
    let fetch = FetchConfig { robots: Manners::Ignored, ..FetchConfig::default() };
    let allow = Allow::new(allow.iter().copied()).unwrap();
    web(WebConfig { fetch: Some(fetch), allow, lookup: Arc::new(names), ..WebConfig::new() })
}

#[tokio::test]
async fn no_spelling_reaches_a_server_on_this_machine() {
    let site = Site::new(|_| Reply::ok("text/plain", "the secret"));
    let port = site.port();
    let names = Names::default()
        .with("localhost", &[&["127.0.0.1"]])
        .with("rebound.example", &[&["127.0.0.1"]])
        .with("six.example", &[&["::1"]])
        .with("mapped.example", &[&["::ffff:127.0.0.1"]])
        .with("nat64.example", &[&["64:ff9b::7f00:1"]])
        .with("metadata.google.internal", &[&["169.254.169.254"]])
        .with("xn--bcher-kva.example", &[&["127.0.0.1"]]);
    let tool = fetcher(&[], names);
    let hosts = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "017700000001",
        "127.0.0.1.",
        "127。0。0。1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::1]",
        "0.0.0.0",
        "0",
        "localhost",
        "localhost.",
        "LOCALHOST",
        "ｌｏｃａｌｈｏｓｔ",
        "localhost。",
        "rebound.example",
        "rebound.example.",
        "six.example",
        "mapped.example",
        "nat64.example",
        "metadata.google.internal",
        "bücher.example",
        "example.org@127.0.0.1",
        "127.0.0.1:80@localhost",
    ];
    for host in hosts {
        let (kind, said) = failure(&tool, "fetch", json!({ "url": format!("http://{host}:{port}/") })).await;
        let is_refused = kind == ToolErrorKind::PermissionDenied || said.contains("a user or a password");
        assert!(is_refused && !said.contains("the secret"), "{host}: {kind:?} {said}");
    }
    assert_eq!(site.connections(), 0);
}

#[tokio::test]
async fn a_name_that_leads_somewhere_else_the_second_time_is_looked_at_again() {
    let inside = Site::at("127.0.0.1:0", |_| Reply::ok("text/plain", "the secret"));
    let port = inside.port();
    // On the same port of another address of this machine, which alone is allowed, as if it were public.
    let outside = Site::at(&format!("127.0.0.2:{port}"), move |asked| match asked.path.as_str() {
        "/" => Reply::to("/again"),
        _ => Reply::ok("text/plain", "again"),
    });
    let names = Names::default().with("turning.example", &[&["127.0.0.2"], &["127.0.0.1"]]);
    let tool = fetcher(&["127.0.0.2"], names);
    let (kind, said) = failure(&tool, "fetch", json!({ "url": format!("http://turning.example:{port}/") })).await;
    assert_eq!(kind, ToolErrorKind::PermissionDenied, "{said}");
    assert!(said.starts_with("`turning.example` leads to 127.0.0.1, which is a loopback address"), "{said}");
    assert_eq!((outside.paths(), inside.connections()), (vec!["/".to_owned()], 0));
}

#[tokio::test]
async fn of_several_addresses_of_a_name_only_those_are_tried_that_may_be_reached() {
    let inside = Site::at("127.0.0.1:0", |_| Reply::ok("text/plain", "the secret"));
    let port = inside.port();
    let outside = Site::at(&format!("127.0.0.2:{port}"), |_| Reply::ok("text/plain", "the page"));
    let names = Names::default().with("both.example", &[&["127.0.0.1", "::1", "127.0.0.2", "10.0.0.1"]]);
    let tool = fetcher(&["127.0.0.2"], names);
    let said = text(&tool, "fetch", json!({ "url": format!("http://both.example:{port}/") })).await;
    assert!(said.ends_with("the page"), "{said}");
    assert_eq!((outside.connections(), inside.connections()), (1, 0));
}

#[tokio::test]
async fn no_redirect_leads_where_an_address_may_not() {
    let inside = Site::at("127.0.0.1:0", |_| Reply::ok("text/plain", "the secret"));
    let port = inside.port();
    let locations = [
        format!("http://127.0.0.1:{port}/"),
        format!("//127.0.0.1:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://inside.example:{port}/"),
        format!("http://user@127.0.0.1:{port}/"),
        format!("http:\\\\127.0.0.1:{port}\\"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1:6379/_INFO".to_owned(),
        "ftp://127.0.0.1/".to_owned(),
        "http://127.0.0.2:22/".to_owned(),
    ];
    let given = locations.clone();
    let outside = Site::at("127.0.0.2:0", move |asked| {
        let number: usize = asked.path.trim_start_matches('/').parse().unwrap();
        Reply::to(&given[number])
    });
    let tool = fetcher(&["127.0.0.2"], Names::default().with("inside.example", &[&["127.0.0.1"]]));
    for (number, location) in locations.iter().enumerate() {
        let (kind, said) = failure(&tool, "fetch", json!({ "url": outside.url(&format!("/{number}")) })).await;
        let is_refused = matches!(kind, ToolErrorKind::PermissionDenied | ToolErrorKind::InvalidArguments);
        assert!(is_refused && !said.contains("secret"), "{location}: {kind:?} {said}");
    }
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn a_circle_of_redirects_ends() {
    let site = Site::new(|_| Reply::to("/round"));
    let tool = fetcher(&["127.0.0.1"], Names::default());
    let (kind, said) = failure(&tool, "fetch", json!({ "url": site.url("/") })).await;
    assert_eq!((kind, said.as_str()), (ToolErrorKind::ExecutionFailed, "the address leads on to another more than 8 times"));
    assert_eq!(site.connections(), 9);
}

#[tokio::test]
async fn one_port_that_is_allowed_opens_no_other() {
    let (open, closed) = (Site::new(|_| Reply::ok("text/plain", "open")), Site::new(|_| Reply::ok("text/plain", "closed")));
    let names = Names::default().with("here.example", &[&["127.0.0.1"]]);
    let tool = fetcher(&[&format!("127.0.0.1:{}", open.port())], names);
    let at = |site: &Site| json!({ "url": format!("http://here.example:{}/", site.port()) });
    assert!(text(&tool, "fetch", at(&open)).await.ends_with("open"));
    assert_eq!(failure(&tool, "fetch", at(&closed)).await.0, ToolErrorKind::PermissionDenied);
    assert_eq!(closed.connections(), 0);
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_told_as_that() {
    let tool = fetcher(&[], Names::default());
    let (kind, said) = failure(&tool, "fetch", json!({ "url": "http://nowhere.example/" })).await;
    assert_eq!(kind, ToolErrorKind::NotFound);
    assert_eq!(said, "there is no host `nowhere.example`; look for its right name, for instance with a search");
}
