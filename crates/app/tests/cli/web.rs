//! Pages of the web, from the configuration to what a person sees.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use crate::support::Place;

/// Answers each connection with the same, once it was asked; ends with the process.
pub(crate) fn site(kind: &'static str, body: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut asked = [0; 8192];
            let _ = connection.read(&mut asked).unwrap();
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            connection.write_all((head + body).as_bytes()).unwrap();
        }
    });
    address
}

fn call(place: &Place, tool: &str, arguments: &str) -> (Option<i32>, String) {
    let ran = place.run(&["tools", "call", tool, "--arguments", arguments]);
    (ran.code, ran.stdout + &ran.stderr)
}

#[test]
fn the_web_is_offered_only_where_the_configuration_names_it() {
    let named = |config: &str| -> Vec<String> {
        let listed = Place::with(config).json(&["tools", "list", "--json"]);
        let names = listed.as_array().unwrap().iter().map(|tool| tool["id"].as_str().unwrap().to_owned());
        names.filter(|name| name.starts_with("web__")).collect()
    };
    assert_eq!(named(""), [""; 0]);
    assert_eq!(named("[tools.web.fetch]"), ["web__fetch"]);
    assert_eq!(named("[tools.web.fetch]\nenabled = false\n[tools.web.search]"), ["web__search"]);
}

#[test]
fn a_page_of_this_machine_is_refused_and_read_where_the_operator_allows_it() {
    let address = site("text/html", "<html><title>Inside</title><body><p>Hello from inside.</p></body></html>");
    let arguments = format!("{{\"url\":\"http://{address}/\"}}");
    let closed = Place::with("[tools.web.fetch]");
    let (code, told) = call(&closed, "web__fetch", &arguments);
    assert_ne!(code, Some(0));
    assert!(told.contains("127.0.0.1 is a loopback address; only public addresses are reached"), "{told}");
    let open = Place::with(&format!("[tools.web]\nallow = [\"{address}\"]\n[tools.web.fetch]\nrobots = false"));
    let (code, told) = call(&open, "web__fetch", &arguments);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("Title: Inside") && told.contains("Hello from inside."), "{told}");
}

#[test]
fn a_search_asks_the_service_that_is_configured_and_shows_no_key() {
    let answer = r#"{"web": {"results": [{"title": "One", "url": "https://example.org/", "description": "The first."}]}}"#;
    let address = site("application/json", answer);
    let config =
        format!("[tools.web.search]\nengine = \"brave\"\napi_key = \"k3y-of-mine\"\nbase_url = \"http://{address}/search\"");
    let place = Place::with(&config);
    let (code, told) = call(&place, "web__search", r#"{"query": "first"}"#);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("\"https://example.org/\"") && !told.contains("k3y-of-mine"), "{told}");
    let shown = place.run(&["config", "show"]).stdout;
    assert!(shown.contains("api_key = \"***\"") && !shown.contains("k3y-of-mine"), "{shown}");
}
