//! Users on the command line, and the server that asks who is there.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::serve::{Server, request_with};
use crate::support::{LIMIT, Place, wait_for};

/// The lines that it prints, after all went well.
fn printed(place: &Place, words: &[&str]) -> String {
    let ran = place.run(words);
    assert_eq!(ran.code, Some(0), "{words:?}: {ran:?}");
    ran.stdout.trim().to_owned()
}

#[test]
fn users_are_added_listed_kept_out_and_removed() {
    let place = Place::new();
    let id = printed(&place, &["users", "add", "anna", "--role", "admin"]);
    assert!(id.starts_with("user_"), "{id}");
    let again = place.run(&["users", "add", "ANNA"]);
    assert_eq!((again.code, again.stderr.lines().next()), (Some(2), Some("error: there is a user `ANNA` already")));
    let listed = place.json(&["users", "list", "--json"]);
    assert_eq!((&listed[0]["name"], &listed[0]["role"], &listed[1]["id"]), (&"anna".into(), &"admin".into(), &"local".into()));

    let token = printed(&place, &["users", "token", "anna", "--name", "ci", "--scope", "read,chat", "--expires", "90d"]);
    assert_eq!((token.len(), token.starts_with("tw_")), (67, true));
    let tokens = place.json(&["users", "tokens", "anna", "--json"]);
    assert_eq!((&tokens[0]["name"], &tokens[0]["scopes"]), (&"ci".into(), &serde_json::json!(["read", "chat"])));
    assert!(!tokens.to_string().contains(&token), "a token is shown once");
    printed(&place, &["users", "revoke", tokens[0]["id"].as_str().unwrap()]);
    assert_eq!(place.json(&["users", "tokens", "anna", "--json"]), Value::Array(Vec::new()));

    printed(&place, &["users", "role", "anna", "member"]);
    let refused = place.run(&["users", "token", "anna", "--scope", "admin"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    printed(&place, &["users", "disable", &id]);
    assert_eq!(place.json(&["users", "list", "--json"])[0]["enabled"], false);
    printed(&place, &["users", "remove", "anna"]);
    for words in [
        &["users", "token", "anna"][..],
        &["users", "remove", "local"],
        &["users", "role", "local", "member"],
        &["users", "add", ""],
    ] {
        let ran = place.run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words:?}: {ran:?}");
    }
}

#[test]
fn what_is_said_of_a_name_can_be_given_to_a_shell() {
    let place = Place::new();
    let added = place.run(&["users", "add", "anna o'hara"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(added.stderr.contains(r"`turnwright users link 'anna o'\''hara'`"), "{added:?}");
    assert!(added.stderr.contains(r"`turnwright users token 'anna o'\''hara'`"), "{added:?}");
}

#[test]
fn the_commands_act_for_local_or_for_whom_they_name() {
    let place = Place::new();
    printed(&place, &["users", "add", "anna"]);
    printed(&place, &["chat", "hello", "--conversation", "mine"]);
    printed(&place, &["chat", "hello", "--conversation", "hers", "--user", "anna"]);
    let names = |words: &[&str]| -> Vec<String> {
        let listed = place.json(words);
        listed.as_array().unwrap().iter().map(|found| found["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["conversations", "list", "--json"]), ["mine"]);
    assert_eq!(names(&["conversations", "list", "--json", "--user", "ANNA"]), ["hers"]);
    let shown = place.run(&["conversations", "show", "hers"]);
    assert_eq!((shown.code, shown.stderr.lines().next()), (Some(2), Some("error: there is no conversation `hers`")));
    // What belonged to somebody who was removed is reached by their id, and can be erased.
    let users = place.json(&["users", "list", "--json"]);
    let anna = users.as_array().unwrap().iter().find(|user| user["name"] == "anna").unwrap()["id"].as_str().unwrap().to_owned();
    printed(&place, &["users", "remove", "anna"]);
    assert_eq!(names(&["conversations", "list", "--json", "--user", &anna]), ["hers"]);
    let deleted = place.run(&["conversations", "delete", "hers", "--user", &anna]);
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    assert!(deleted.stderr.starts_with(&format!("note: there is no user `{anna}` (any more)")), "{deleted:?}");
    assert_eq!(names(&["conversations", "list", "--json", "--user", &anna]), Vec::<String>::new());
    let unknown = place.run(&["conversations", "list", "--user", "eve"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.starts_with("error: there is no user `eve`\nhint: "), "{unknown:?}");
}

#[test]
fn an_address_for_all_without_signing_in_is_refused_with_the_way_on() {
    let place = Place::new();
    let ran = place.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for word in ["0.0.0.0:0 can be reached from other machines", "hint: ", "auth = \"tokens\"", "turnwright users add"] {
        assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
    }
    place.write("turnwright.toml", "model = \"practice/practice\"\n[server]\nauth = \"local\"\n");
    assert_eq!(place.run(&["serve", "--listen", "0.0.0.0:0"]).code, Some(2));
}

#[test]
fn what_is_looked_at_before_a_start_refuses_an_address_for_all_without_signing_in_too() {
    let place = Place::with("[server]\nlisten = \"0.0.0.0:0\"\n");
    let told = "0.0.0.0:0 can be reached from other machines, and nobody has to sign in";
    let checked = place.run(&["config", "check"]);
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(checked.stderr.starts_with(&format!("error: turnwright.toml:3: {told}")), "{checked:?}");
    let looked = place.run(&["doctor"]);
    assert!(looked.code == Some(1) && looked.stdout.contains(told), "{looked:?}");
    place.write("turnwright.toml", "model = \"practice/practice\"\n[server]\nlisten = \"0.0.0.0:0\"\nauth = \"tokens\"\n");
    assert_eq!([place.run(&["config", "check"]).code, place.run(&["doctor"]).code], [Some(0), Some(0)]);
}

#[test]
fn an_identity_provider_needs_the_address_to_send_browsers_back_to() {
    let place = Place::new();
    let oidc = "[server.oidc]\nissuer = \"http://127.0.0.1:1\"\nclient_id = \"turnwright\"\n";
    let written =
        |server: &str| place.write("turnwright.toml", format!("model = \"practice/practice\"\n[server]\n{server}\n{oidc}"));
    let needs = "[server.oidc] needs `server.public_url`, the address to which the provider sends browsers back: ";
    for (server, why) in [
        ("listen = \"0.0.0.0:0\"", "0.0.0.0:0 stands for all addresses of this machine"),
        ("listen = \"[::]:0\"", "[::]:0 stands for all addresses of this machine"),
        (
            "listen = \"127.0.0.1:0\"\ntrusted_proxies = [\"127.0.0.1\"]",
            "by which address browsers reach `server.trusted_proxies` the proxies alone know",
        ),
    ] {
        written(server);
        let told = format!("{needs}{why}");
        let line = server.lines().count() + 3;
        let checked = place.run(&["config", "check"]);
        assert_eq!(checked.code, Some(2), "{checked:?}");
        assert!(checked.stderr.starts_with(&format!("error: turnwright.toml:{line}: {told}\nhint: ")), "{checked:?}");
        let looked = place.run(&["doctor"]);
        assert!(looked.code == Some(1) && looked.stdout.contains(&told), "{looked:?}");
        let served = place.run(&["serve"]);
        assert!(served.code == Some(2) && served.stderr.contains(&format!("error: {told}\nhint: ")), "{served:?}");
        written(&format!("{server}\npublic_url = \"http://localhost:8700\""));
        assert_eq!(place.run(&["config", "check"]).code, Some(0), "{server}");
    }
    for server in ["listen = \"127.0.0.1:0\"", "listen = \"10.1.2.3:8700\""] {
        written(server);
        assert_eq!(place.run(&["config", "check"]).code, Some(0), "{server}");
    }
}

#[test]
fn the_first_admin_is_let_in_by_the_link_that_the_start_prints() {
    let place = Place::with("[server]\nauth = \"tokens\"\n");
    let server = Server::start(&place);
    assert!(server.request("GET /api/v1/conversations", "").starts_with("HTTP/1.1 401 "));
    let link = wait_for("the link", || {
        let said = server.said();
        let link = said.lines().find_map(|line| line.strip_prefix("http://"))?.to_owned();
        said.ends_with('\n').then_some(link)
    });
    let (address, code) = link.split_once("/login?code=").unwrap();
    assert_eq!((address, code.len()), (server.address(), 64));
    let page = server.request(&format!("GET /login?code={code}"), "");
    assert!(page.contains("Sign in here") && page.contains(code), "{page}");
    server.stop();

    // Once an admin has a way in there is no link any more.
    printed(&place, &["users", "token", "local"]);
    let server = Server::start(&place);
    assert!(!server.said().contains("code="), "{}", server.said());
    server.stop();
}

#[test]
fn what_an_mcp_client_listens_to_ends_when_its_token_is_revoked() {
    let place = Place::with("[server]\nauth = \"tokens\"\n[server.limits]\nstreams_per_user = 1\n");
    printed(&place, &["users", "add", "anna"]);
    let token = printed(&place, &["users", "token", "anna"]);
    let id = place.json(&["users", "tokens", "anna", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let server = Server::start(&place);
    let accept = "Accept: application/json, text/event-stream\r\n";
    let headers = format!("Authorization: Bearer {token}\r\n{accept}");
    let hello = r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}"#;
    let opened = request_with(server.address(), "POST /mcp", &headers, hello);
    let session = opened.lines().find(|line| line.starts_with("mcp-session-id: ")).unwrap_or_else(|| panic!("{opened}"));

    let mut listening = TcpStream::connect(server.address()).unwrap();
    listening.set_read_timeout(Some(LIMIT)).unwrap();
    let head = format!("GET /mcp HTTP/1.0\r\nHost: {}\r\n{headers}{session}\r\n\r\n", server.address());
    listening.write_all(head.as_bytes()).unwrap();
    let mut first = [0; 12];
    listening.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.0 200");
    // It is one of the streams that a user may have.
    let second = request_with(server.address(), "GET /api/v1/conversations/none/events", &headers, "");
    assert!(second.contains("too_many_user_streams"), "{second}");

    let revoked = request_with(server.address(), &format!("DELETE /api/v1/tokens/{id}"), &headers, "");
    assert!(revoked.starts_with("HTTP/1.1 204 "), "{revoked}");
    listening.read_to_string(&mut String::new()).unwrap();
    server.stop();
}

#[test]
fn what_was_given_for_one_mcp_server_does_not_go_along_to_another() {
    let place = Place::with("[server]\nauth = \"tokens\"\n[mcp]\nmembers_allow = [\"127.0.0.1\"]\n");
    printed(&place, &["users", "add", "anna"]);
    let whole = printed(&place, &["users", "token", "anna"]);
    let weak = printed(&place, &["users", "token", "anna", "--scope", "read,chat"]);
    let server = Server::start(&place);
    let change = |token: &str, method: &str, body: &str| {
        let path = if method == "POST" { "POST /api/v1/mcp/servers" } else { "PATCH /api/v1/mcp/servers/hers" };
        let headers = format!("Authorization: Bearer {token}\r\n");
        let answer = request_with(server.address(), path, &headers, body);
        let status = answer.split(' ').nth(1).unwrap().to_owned();
        (status, answer)
    };
    let added = r#"{"name": "hers", "url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "for-nine-alone"},
        "tools": {"look": {"read_only": true}}}"#;
    assert_eq!(change(&whole, "POST", added).0, "201");
    for token in [&whole, &weak] {
        let (status, told) = change(token, "PATCH", r#"{"url": "http://127.0.0.1:10/mcp"}"#);
        assert!(status == "422" && told.contains("`headers.X-Key` was typed in for"), "{told}");
        let masked = r#"{"url": "http://127.0.0.1:10/mcp", "headers": {"X-Key": "***"}}"#;
        assert_eq!(change(token, "PATCH", masked).0, "422");
    }
    let again = r#"{"url": "http://127.0.0.1:10/mcp", "headers": {"X-Key": "for-ten"}}"#;
    let (status, told) = change(&weak, "PATCH", again);
    assert!(status == "403" && told.contains("`tools` was said of the server"), "{told}");
    assert_eq!(change(&whole, "PATCH", again).0, "200");
    assert_eq!(change(&weak, "PATCH", r#"{"url": "http://127.0.0.1:10/v2"}"#).0, "200");
    server.stop();
}

#[test]
fn what_a_server_for_all_wrote_about_the_call_of_one_is_not_told_to_another() {
    let place = Place::with("[server]\nauth = \"tokens\"\n");
    place.write("ends.py", "import sys\nsys.exit('about annas salary')\n");
    let config = "[server]\nauth = \"tokens\"\n[mcp.servers.all]\ncommand = \"python3\"\nargs = [\"ends.py\"]\n";
    place.write("turnwright.toml", format!("model = \"practice/practice\"\n{config}"));
    for (name, role) in [("root", "admin"), ("bob", "member")] {
        printed(&place, &["users", "add", name, "--role", role]);
    }
    let [root, bob] = [("root", "read,admin"), ("bob", "read,chat,approve")]
        .map(|(name, scopes)| printed(&place, &["users", "token", name, "--scope", scopes]));
    let server = Server::start(&place);
    wait_for("the end", || {
        let told = server.look("/api/v1/mcp/servers/all", &root);
        (told.contains("it ended during its start") && told.contains("about annas salary")).then_some(())
    });
    for path in ["/api/v1/mcp/servers/all", "/api/v1/mcp/servers"] {
        let told = server.look(path, &bob);
        assert!(told.contains("it ended during its start") && !told.contains("salary"), "{told}");
    }
    server.stop();
}
