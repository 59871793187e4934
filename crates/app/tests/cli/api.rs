//! The HTTP API, driven from its own description by schemathesis.

use std::process::Command;

use crate::moving::libraries;
use crate::serve::Server;
use crate::support::{Place, Ran};

/// What an answer must be: described, and no failure of the server. That what fits the description is taken is not among
/// it: a name may fit and be nobody's.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance,negative_data_rejection,unsupported_method,allow_header_conformance";

/// Drives the server with these phases, and a token where there is one.
fn driven(server: &Server, place: &Place, (phases, examples): (&str, &str), token: Option<&str>) {
    let Some(libraries) = libraries() else { return };
    let mut command = Command::new(libraries.join("python/bin/schemathesis"));
    command.args(["run", &format!("{}/openapi.json", server.root()), "--checks", CHECKS]);
    command.args(["--phases", phases, "--max-examples", examples, "--seed", "1", "--generation-deterministic"]);
    command.args(["--request-timeout", "2", "--no-color"]);
    if let Some(token) = token {
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
    }
    let ran = Ran::of(command.current_dir(place.path(".")).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
}

#[test]
fn no_request_made_from_the_description_is_answered_otherwise_than_described() {
    if libraries().is_none() {
        return;
    }
    let place = Place::with("approve = \"none\"\n");
    let server = Server::start(&place);
    driven(&server, &place, ("examples,coverage,fuzzing", "15"), None);
    server.stop();
}

#[test]
fn nor_is_any_where_everybody_signs_in_whoever_sends_it() {
    if libraries().is_none() {
        return;
    }
    let place = Place::with("approve = \"none\"\n[server]\nauth = \"tokens\"\n");
    let token = |words: &[&str]| {
        let ran = place.run(&[&["users", "token"][..], words].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout.trim().to_owned()
    };
    let added = place.run(&["users", "add", "anna", "--role", "member"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let admins = token(&["local", "--scope", "read,chat,approve,admin"]);
    let reads = token(&["anna", "--scope", "read"]);
    let server = Server::start(&place);
    for token in [None, Some(reads.as_str()), Some(admins.as_str())] {
        driven(&server, &place, ("examples,fuzzing", "3"), token);
    }
    // Both refusals were among the answers, at many routes.
    let told = server.look("/metrics", &admins);
    for status in ["401", "403"] {
        let count = told.lines().filter(|line| line.starts_with("turnwright_http_requests_total{"));
        let count = count.filter(|line| line.contains(&format!("status=\"{status}\""))).count();
        assert!(count > 20, "{status} at {count} routes: {told}");
    }
    server.stop();
}
