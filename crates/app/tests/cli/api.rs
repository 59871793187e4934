//! The HTTP API, driven from its own description by schemathesis.

use std::process::Command;

use crate::moving::libraries;
use crate::serve::Server;
use crate::support::{Place, Ran};

/// What an answer must be: described, and no failure of the server. That what fits the description is taken is not among
/// it: a name may fit and be nobody's.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance,negative_data_rejection,unsupported_method,allow_header_conformance";

#[test]
fn no_request_made_from_the_description_is_answered_otherwise_than_described() {
    let Some(libraries) = libraries() else { return };
    let place = Place::with("approve = \"none\"\n");
    let server = Server::start(&place);
    let mut command = Command::new(libraries.join("python/bin/schemathesis"));
    command.args(["run", &format!("http://{}/openapi.json", server.address()), "--checks", CHECKS]);
    command.args([
        "--phases",
        "examples,coverage,fuzzing",
        "--max-examples",
        "15",
        "--seed",
        "1",
        "--generation-deterministic",
    ]);
    command.args(["--request-timeout", "2", "--no-color"]);
    let ran = Ran::of(command.current_dir(place.path(".")).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    server.stop();
}
