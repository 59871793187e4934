//! Servers on machines of their own, over one database and with one key for what is secret: what one is given, the others have.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::mock_api::{Asked, MockApi};
use crate::serve::Server;
use crate::support::{Place, own_database, wait_for};

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// So many folders as machines would have them, over one database; each key seals what one of them keeps.
fn places(keys: &[&str], config: &str) -> Vec<Place> {
    let mut database = own_database();
    let mut places = Vec::new();
    for key in keys {
        let place = Place::with(config);
        let file = || place.path("shared.db").display().to_string();
        let database = database.get_or_insert_with(file).clone();
        places.push(place.with_variable("TURNWRIGHT_DATABASE", &database).with_variable("SEAL", key));
    }
    places
}

fn sealed(config: &str) -> String {
    format!("[storage]\nseal_key = \"${{SEAL}}\"\n{config}")
}

/// Whether a file below a folder has this text in it.
fn has(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).into_iter().flatten().any(|file| {
        let path = file.unwrap().path();
        let is_inside = || String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).contains(text);
        if path.is_dir() { has(&path, text) } else { is_inside() }
    })
}

#[test]
fn a_provider_that_is_added_at_one_answers_at_the_other_with_its_key_until_it_is_removed() {
    let api = MockApi::new(|asked| match asked.authorization.as_deref() {
        Some("Bearer sesame-0123456789") => (200, json!({"object": "list", "data": [{"id": "m", "object": "model"}]})),
        _ => (401, json!({"error": {"message": "who are you?"}})),
    });
    let places = places(&[KEY, KEY], &sealed(""));
    let servers: Vec<Server> = places.iter().map(Server::start).collect();
    let address = format!("http://{}/v1", api.address);
    let added = servers[0].ask(
        "PUT /api/v1/providers/far",
        &json!({"api_key": "sesame-0123456789", "base_url": address, "dialect": "openai-chat"}),
    );
    assert_eq!(added["model"], "far/m", "{added}");
    let at_other = || servers[1].ask("GET /api/v1/models", &Value::Null);
    let has_far = |models: &Value| models["data"].as_array().unwrap().iter().any(|model| model["id"] == "far/m");
    let models = wait_for("the provider", || Some(at_other()).filter(has_far));
    assert!(!models.to_string().contains("sesame"), "{models}");
    assert!(places.iter().all(|place| !has(&place.path("data"), "sesame") && !has(&place.path("."), "sesame")));

    servers[1].request("DELETE /api/v1/providers/far", "");
    wait_for("the end of the provider", || (!has_far(&servers[0].ask("GET /api/v1/models", &Value::Null))).then_some(()));
    for server in servers {
        server.stop();
    }
}

#[test]
fn a_secret_that_is_typed_in_at_one_is_given_to_the_server_that_runs_at_the_other() {
    let places = places(&[KEY, KEY], &sealed(""));
    let servers: Vec<Server> = places.iter().map(Server::start).collect();
    let seen = places[0].path("seen");
    let script = format!("echo \"$API_KEY\" >> {}; exec cat", seen.display());
    let config =
        json!({"command": "/bin/sh", "args": ["-c", script], "env": {"API_KEY": "sesame-0123456789"}, "start": "eager"});
    servers[0].ask("POST /api/v1/mcp/servers", &json!({"name": "far", "config": config}));
    // Each starts it for itself, the second when it is asked what there is.
    wait_for("both", || {
        servers[1].ask("GET /api/v1/mcp/servers", &Value::Null);
        std::fs::read_to_string(&seen).ok().filter(|seen| seen.lines().count() >= 2)
    });
    let seen = std::fs::read_to_string(&seen).unwrap();
    assert!(seen.lines().all(|line| line == "sesame-0123456789"), "{seen}");
    for server in servers {
        server.stop();
    }
}

/// An MCP server that wants a token, and who gives one to a client that knows its secret.
fn guarded(asked: &Asked) -> (u16, Value) {
    let (method, path) = asked.line.split_once(' ').unwrap();
    let own = format!("http://{}", asked.host);
    match path {
        "/mcp" if asked.authorization.as_deref() != Some("Bearer let-me-in") => (401, Value::Null),
        "/mcp" if method != "POST" => (405, Value::Null),
        "/mcp" => match (asked.body["id"].clone(), asked.body["method"].as_str()) {
            (Value::Null, _) => (202, Value::Null),
            (id, Some("initialize")) => {
                let info = json!({"name": "guarded", "version": "1"});
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info});
                (200, json!({"jsonrpc": "2.0", "id": id, "result": result}))
            }
            (id, Some("tools/list")) => {
                let tool = json!({"name": "secret", "description": "Behind a sign-in", "inputSchema": {"type": "object"}});
                (200, json!({"jsonrpc": "2.0", "id": id, "result": {"tools": [tool]}}))
            }
            (id, _) => (200, json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "there is none"}})),
        },
        "/token" => (200, json!({"access_token": "let-me-in", "token_type": "Bearer", "expires_in": 3600})),
        _ if path.starts_with("/.well-known/oauth-protected-resource") => {
            (200, json!({"resource": format!("{own}/mcp"), "authorization_servers": [own]}))
        }
        _ if path.starts_with("/.well-known/oauth-authorization-server") => {
            let token = format!("{own}/token");
            let ways = json!(["client_credentials"]);
            (
                200,
                json!({"issuer": own, "authorization_endpoint": format!("{own}/authorize"), "token_endpoint": token,
                "response_types_supported": ["code"], "grant_types_supported": ways, "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"]}),
            )
        }
        _ => (404, Value::Null),
    }
}

#[test]
fn of_servers_over_one_database_one_asks_for_a_token_and_all_have_it() {
    let api = MockApi::new(guarded);
    let config = sealed(&format!(
        "[mcp.servers.far]\nurl = \"http://{}/mcp\"\nstart = \"eager\"\n\
         [mcp.servers.far.oauth]\ngrant = \"client_credentials\"\nclient_id = \"us\"\nclient_secret = \"sesame-0123456789\"\n",
        api.address
    ));
    let places = places(&[KEY, KEY, KEY], &config);
    let servers: Vec<Server> = std::thread::scope(|scope| {
        let starting: Vec<_> = places.iter().map(|place| scope.spawn(|| Server::start(place))).collect();
        starting.into_iter().map(|server| server.join().unwrap()).collect()
    });
    for server in &servers {
        wait_for("the server to be ready", || {
            let far = server.ask("GET /api/v1/mcp/servers/far", &Value::Null);
            (far["state"]["state"] == "ready" || far["state"] == "ready").then_some(())
        });
    }
    let asked = api.lines().into_iter().filter(|line| line == "POST /token").count();
    assert_eq!(asked, 1, "{:?}", api.lines());
    for server in servers {
        server.stop();
    }
}

/// An authorization server whose tokens are good for two calls, and whose refresh tokens are good for one renewal.
#[derive(Default)]
struct Rotating {
    /// The number of the newest tokens.
    number: u32,
    calls: u32,
    /// Refresh tokens that came a second time.
    replayed: Vec<String>,
}

impl Rotating {
    fn tokens(&mut self) -> (u16, Value) {
        self.number += 1;
        self.calls = 0;
        let (access, refresh) = (format!("access-{}", self.number), format!("refresh-{}", self.number));
        (200, json!({"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600}))
    }

    fn answer(&mut self, asked: &Asked) -> (u16, Value) {
        let (method, path) = asked.line.split_once(' ').unwrap();
        let own = format!("http://{}", asked.host);
        if path == "/token" {
            let form: Vec<(&str, &str)> = asked.text.split('&').filter_map(|pair| pair.split_once('=')).collect();
            let value = |name: &str| form.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
            return match (value("grant_type"), value("refresh_token")) {
                (Some("authorization_code"), _) => self.tokens(),
                (_, Some(token)) if token == format!("refresh-{}", self.number) => self.tokens(),
                (_, token) => {
                    self.replayed.extend(token.map(str::to_owned));
                    (400, json!({"error": "invalid_grant"}))
                }
            };
        }
        if path == "/register" {
            let mut client = asked.body.clone();
            client["client_id"] = json!("us");
            return (201, client);
        }
        if path.starts_with("/.well-known/oauth-authorization-server") {
            let at = |path: &str| format!("{own}/{path}");
            return (
                200,
                json!({"issuer": own, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
                "registration_endpoint": at("register"), "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"], "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"]}),
            );
        }
        if path != "/mcp" || method != "POST" {
            let known = Asked { authorization: Some("Bearer let-me-in".to_owned()), ..asked.clone() };
            return guarded(&known);
        }
        let is_call = asked.body["method"] == "tools/call";
        let is_newest = asked.authorization.as_deref() == Some(&format!("Bearer access-{}", self.number));
        if !is_newest || (is_call && self.calls == 2) {
            return (401, Value::Null);
        }
        if !is_call {
            return guarded(&Asked { authorization: Some("Bearer let-me-in".to_owned()), ..asked.clone() });
        }
        self.calls += 1;
        let content = json!([{"type": "text", "text": "let in"}]);
        (200, json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": {"content": content}}))
    }
}

#[test]
fn a_sign_in_is_renewed_by_one_server_at_a_time_and_no_refresh_token_is_used_twice() {
    let rotating: Arc<Mutex<Rotating>> = Arc::default();
    let answering = rotating.clone();
    let api = MockApi::new(move |asked| answering.lock().unwrap().answer(asked));
    let config = sealed(&format!("[mcp.servers.far]\nurl = \"http://{}/mcp\"\n", api.address));
    let places = places(&[KEY, KEY], &config);
    // A browser that agrees to everything, and whose address the authorization server would have sent back.
    places[0].write(
        "visit",
        "#!/usr/bin/env python3\nimport sys, urllib.parse, urllib.request\n\
         asked = urllib.parse.parse_qs(urllib.parse.urlsplit(sys.argv[1]).query)\n\
         back = urllib.parse.urlencode({'code': 'one', 'state': asked['state'][0]})\n\
         urllib.request.urlopen(asked['redirect_uri'][0] + '?' + back)\n",
    );
    std::fs::set_permissions(places[0].path("visit"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let visit = places[0].path("visit").display().to_string();
    let ran = places[0].run(&["mcp", "login", "far", "--open", &visit]);
    assert_eq!(ran.code, Some(0), "{ran:?}");

    let servers: Vec<Server> = places.iter().map(Server::start).collect();
    let call = json!({"name": "far__secret", "approve": "all"});
    let mut rounds = 0;
    while rotating.lock().unwrap().number < 6 {
        let called: Vec<Value> = std::thread::scope(|scope| {
            let calling: Vec<_> =
                servers.iter().map(|server| scope.spawn(|| server.ask("POST /api/v1/tools/call", &call))).collect();
            calling.into_iter().map(|called| called.join().unwrap()).collect()
        });
        for called in called {
            assert_eq!(called["is_error"], false, "{called}");
        }
        rounds += 1;
        assert!(rounds < 50, "the tokens are not renewed: {:?}", api.lines());
    }
    assert_eq!(rotating.lock().unwrap().replayed, Vec::<String>::new());
    let renewals = api.lines().into_iter().filter(|line| line == "POST /token").count();
    assert_eq!(renewals, usize::try_from(rotating.lock().unwrap().number).unwrap(), "one for each pair of tokens");
    for server in servers {
        server.stop();
    }
}

#[test]
fn a_server_with_another_key_or_none_that_is_one_says_so() {
    let other = KEY.replace('0', "f");
    let places = places(&[KEY, &other, "sesame"], &sealed(""));
    Server::start(&places[0]).stop();
    let ran = places[1].run(&["conversations", "list"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("`storage.seal_key` is another key than the one that the secrets in the database are sealed with"),
        "{ran:?}"
    );
    let ran = places[2].run(&["conversations", "list"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("64 hexadecimal digits") && !ran.stderr.contains("sesame"), "{ran:?}");
}
