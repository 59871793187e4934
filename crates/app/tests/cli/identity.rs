//! Signing in at a real `OpenID` Connect provider, as a browser does it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::serve::Server;
use crate::support::{Place, wait_for};

/// Where `scripts/install-test-servers` put the provider.
fn installed() -> Option<PathBuf> {
    let folder = std::env::var_os("TURNWRIGHT_TEST_SERVERS").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
        Some(cache.join("turnwright/test-servers"))
    });
    let found = folder.map(|folder| folder.join("identity")).filter(|folder| folder.join("installed").is_file());
    if found.is_none() {
        let required = std::env::var_os("TURNWRIGHT_REQUIRE_TEST_SERVERS").is_some_and(|value| value == "1");
        assert!(!required, "the identity provider is not installed: run scripts/install-test-servers");
        println!("skipped: run scripts/install-test-servers");
    }
    found
}

struct Provider {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    address: String,
}

impl Provider {
    fn start(folder: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/identity/provider.mjs");
        let mut command = Command::new("node");
        command.arg(script).arg(folder.join("npm")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let (stdin, mut stdout) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        let mut port = String::new();
        stdout.read_line(&mut port).unwrap();
        Self { process, stdin, stdout, address: format!("127.0.0.1:{}", port.trim()) }
    }

    /// Begins, and sends browsers back to this server.
    fn send_back_to(&mut self, root: &str) {
        self.tell(&format!("{root}/login/callback"));
    }

    /// Gives it a line, and waits until it has done as that says.
    fn tell(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        // Its library greets first.
        while line.trim() != "ready" {
            line.clear();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the provider ended");
        }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.stdin.take());
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A browser: it keeps cookies and goes where it is sent.
#[derive(Default)]
struct Browser {
    cookies: BTreeMap<(String, String), String>,
    /// The hosts that set cookies, and for what paths.
    paths: BTreeSet<(String, String)>,
}

struct Answered {
    status: u16,
    location: Option<String>,
    body: String,
    url: String,
}

impl Browser {
    fn ask(&mut self, method: &str, url: &str, form: &str) -> Answered {
        let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let of_host = self.cookies.iter().filter(|((at, _), value)| at == host && !value.is_empty());
        let cookies: Vec<String> = of_host.map(|((_, name), value)| format!("{name}={value}")).collect();
        let (cookies, length) = (cookies.join("; "), form.len());
        let head = format!(
            "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {cookies}\r\nContent-Length: {length}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n\r\n{form}"
        );
        let mut stream = TcpStream::connect(host).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap_or_else(|error| panic!("{method} {url}: {error} after {answer:?}"));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let headers = || head.lines().skip(1).filter_map(|line| line.split_once(": "));
        for (_, cookie) in headers().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert((host.to_owned(), name.to_owned()), value.to_owned());
            let path = cookie.split("; ").find_map(|part| part.strip_prefix("Path=").or_else(|| part.strip_prefix("path=")));
            self.paths.insert((host.to_owned(), path.unwrap_or_default().to_owned()));
        }
        let location =
            headers().find(|(name, _)| name.eq_ignore_ascii_case("location")).map(|(_, to)| match to.strip_prefix('/') {
                Some(path) => format!("http://{host}/{path}"),
                None if to.starts_with("http") => to.to_owned(),
                None => format!("http://{host}/{to}"),
            });
        Answered { status, location, body: body.to_owned(), url: url.to_owned() }
    }

    /// Goes where it is sent, until there is something to look at or the next address begins with `until`.
    fn follow(&mut self, mut answer: Answered, until: &str) -> Answered {
        while let Some(to) = answer.location.clone().filter(|to| !to.starts_with(until)) {
            answer = self.ask("GET", &to, "");
        }
        answer
    }

    /// Presses the button of the form that is sent so, and goes where it is sent until the next address begins with `until`.
    fn press(&mut self, page: &Answered, method: &str, until: &str) -> Answered {
        let form = page.body.split("<form ").find(|form| form.starts_with(&format!("method=\"{method}\""))).unwrap();
        let value = |name: &str| form.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let given: Vec<String> = value("value").replace("&amp;", "&").bytes().map(|byte| format!("%{byte:02X}")).collect();
        let (to, field) = (value("action"), format!("{}={}", value(" name"), given.concat()));
        // As browsers do with what does not begin at the top.
        let root_ends_at = page.url.match_indices('/').nth(2).unwrap().0;
        let folder = if to.starts_with('/') { root_ends_at } else { page.url.rfind('/').unwrap() + 1 };
        let to = format!("{}{to}", page.url.split_at(folder).0);
        let answer = match method {
            "get" => self.ask("GET", &format!("{to}?{field}"), ""),
            _ => self.ask("POST", &to, &field),
        };
        self.follow(answer, until)
    }

    /// Signs in as `name`, up to the address at which the server at `root` takes it over; `to` is where to go then.
    fn up_to_the_way_back(&mut self, root: &str, name: &str, to: &str) -> String {
        let back = format!("{root}/login/callback");
        let begun = self.ask("GET", &format!("{root}/login/oidc?return={to}"), "");
        let page = self.follow(begun, &back);
        self.as_whom(&page, name, &back)
    }

    /// Says on the page of the provider who it is, up to the address that begins with `back`.
    fn as_whom(&mut self, page: &Answered, name: &str, back: &str) -> String {
        assert!(page.body.contains("name=\"login\""), "{} {}", page.status, page.body);
        let given = self.ask("POST", &page.url, &format!("prompt=login&login={name}&password=any"));
        let mut answer = self.follow(given, back);
        if answer.location.is_none() {
            let agreed = self.ask("POST", &answer.url.clone(), "prompt=consent");
            answer = self.follow(agreed, back);
        }
        answer.location.unwrap_or_else(|| panic!("{} {}", answer.status, answer.body))
    }

    fn me(&mut self, root: &str) -> Answered {
        self.ask("GET", &format!("{root}/api/v1/me"), "")
    }

    fn is_signed_in(&self) -> bool {
        self.cookies.iter().any(|((_, name), value)| name == "tw_session" && !value.is_empty())
    }
}

#[test]
fn who_signs_in_at_a_provider_is_a_user_with_the_role_that_it_gives() {
    let Some(folder) = installed() else { return };
    let mut provider = Provider::start(&folder);
    let config = format!(
        "[server.oidc]\nissuer = \"http://{}\"\nclient_id = \"turnwright\"\nclient_secret = \"a secret/with:odd+characters\"\n\
         scopes = [\"openid\", \"profile\", \"groups\"]\nadmin_group = \"tw-admins\"\nmember_group = \"tw\"\nname = \"Example\"\n",
        provider.address
    );
    let place = Place::with(&config);
    let server = Server::start(&place);
    let root = server.root();
    provider.send_back_to(&root);
    let page = Browser::default().ask("GET", &format!("{root}/login"), "");
    assert!(page.body.contains("Continue with Example"), "{}", page.body);
    assert_eq!(Browser::default().me(&root).status, 401);

    let mut ids = Vec::new();
    for (name, role) in [("anna", "admin"), ("ben", "member"), ("anna", "admin")] {
        let mut browser = Browser::default();
        let way_back = browser.up_to_the_way_back(&root, name, "/%23/inbox");
        let kept = browser.cookies.clone();
        let entered = browser.ask("GET", &way_back, "");
        let inbox = format!("{root}/#/inbox");
        assert_eq!((entered.status, entered.location), (303, Some(inbox)), "{}", entered.body);
        let me: Value = serde_json::from_str(&browser.me(&root).body).unwrap();
        assert_eq!((me["name"].as_str(), me["role"].as_str(), me["how"].as_str()), (Some(name), Some(role), Some("session")));
        ids.push(me["id"].as_str().unwrap().to_owned());
        // The way back leads in once, and only the browser that set out.
        for cookies in [kept, BTreeMap::new()] {
            let mut other = Browser { cookies, ..Browser::default() };
            let again = other.ask("GET", &way_back, "");
            assert!(matches!(again.status, 401 | 502) && !other.is_signed_in(), "{} {}", again.status, again.body);
        }
    }
    assert_eq!((&ids[0], ids[0] == ids[1]), (&ids[2], false));

    let mut stranger = Browser::default();
    let way_back = stranger.up_to_the_way_back(&root, "eve", "/%23/inbox");
    let refused = stranger.ask("GET", &way_back, "");
    assert_eq!((refused.status, stranger.is_signed_in()), (403, false), "{}", refused.body);
    assert!(refused.body.contains("not in the group"), "{}", refused.body);

    let users = place.json(&["users", "list", "--json"]);
    let issuer = format!("http://{}", provider.address);
    let known: Vec<_> = users.as_array().unwrap().iter().map(|user| (user["name"].as_str(), user["issuer"].as_str())).collect();
    assert_eq!(known, [(Some("anna"), Some(&*issuer)), (Some("ben"), Some(&*issuer)), (Some("local"), None)]);
    let said = server.said();
    server.stop();
    // The link for the first admin is for whoever reads this; nothing else is.
    let logged = said.lines().filter(|line| !line.starts_with("http://")).collect::<Vec<_>>().join("\n");
    assert!(!logged.contains("odd+characters") && !logged.contains("code="), "{logged}");
}

/// A server below this path whose users sign in at the provider, and where it is.
fn signing_in(provider: &mut Provider, path: &str) -> (Place, Server, String) {
    let base_path = if path.is_empty() { String::new() } else { format!("base_path = \"{path}\"") };
    let config = format!(
        "[server]\n{base_path}\n[server.oidc]\nissuer = \"http://{}\"\nclient_id = \"turnwright\"\n\
         client_secret = \"a secret/with:odd+characters\"\nscopes = [\"openid\", \"profile\"]\n",
        provider.address
    );
    let place = Place::with(&config);
    let server = Server::start(&place);
    let root = format!("{}{path}", server.root());
    provider.send_back_to(&root);
    (place, server, root)
}

#[test]
fn below_a_path_the_provider_sends_back_to_that_path_and_the_cookies_are_for_it_alone() {
    let Some(folder) = installed() else { return };
    let mut provider = Provider::start(&folder);
    let (_place, server, root) = signing_in(&mut provider, "/tw");
    for (to, expected) in [("/tw/%23/inbox", "/#/inbox"), ("/%23/inbox", "/"), ("//evil.example/tw/", "/")] {
        let mut browser = Browser::default();
        let way_back = browser.up_to_the_way_back(&root, "anna", to);
        let entered = browser.ask("GET", &way_back, "");
        assert_eq!((entered.status, entered.location), (303, Some(format!("{root}{expected}"))), "{to}: {}", entered.body);
        assert!(browser.me(&root).body.contains("\"name\":\"anna\""));
        let paths: Vec<_> = browser.paths.iter().filter(|(host, _)| host == server.address()).collect();
        assert!(paths.iter().all(|(_, path)| path == "/tw") && !paths.is_empty(), "{paths:?}");
    }
    server.stop();
}

#[test]
fn where_nobody_was_signed_in_the_page_leads_there_again() {
    let Some(folder) = installed() else { return };
    let mut provider = Provider::start(&folder);
    let (_place, server, root) = signing_in(&mut provider, "/tw");
    let mut browser = Browser::default();
    let refused = browser.ask("GET", &format!("{root}/login/callback?error=access_denied&state=x"), "");
    assert_eq!(refused.status, 401, "{}", refused.body);
    let wrong = browser.press(&refused, "post", "");
    assert_eq!(wrong.status, 401, "{}", wrong.body);
    assert!(wrong.body.contains("Paste a token to sign in."), "{}", wrong.body);
    let back = format!("{root}/login/callback");
    let page = browser.press(&refused, "get", &back);
    let way_back = browser.as_whom(&page, "anna", &back);
    let entered = browser.ask("GET", &way_back, "");
    assert_eq!((entered.status, entered.location), (303, Some(format!("{root}/"))), "{}", entered.body);
    server.stop();
}

#[test]
fn a_provider_may_change_its_keys_and_where_codes_are_changed() {
    let Some(folder) = installed() else { return };
    let mut provider = Provider::start(&folder);
    let (_place, server, root) = signing_in(&mut provider, "");
    for change in ["", "{\"keys\": true}", "{\"token\": \"/token/2\"}", "{\"keys\": true, \"token\": \"/token/3\"}"] {
        if !change.is_empty() {
            provider.tell(change);
        }
        let mut browser = Browser::default();
        let way_back = browser.up_to_the_way_back(&root, "anna", "/");
        let entered = browser.ask("GET", &way_back, "");
        assert_eq!((entered.status, browser.is_signed_in()), (303, true), "{change}: {} {}", entered.body, server.said());
    }
    server.stop();
}

#[test]
fn a_browser_that_knows_the_server_by_another_name_signs_in_at_the_one_it_is_sent_back_to() {
    let Some(folder) = installed() else { return };
    let mut provider = Provider::start(&folder);
    let (_place, server, root) = signing_in(&mut provider, "/tw");
    let other = root.replace("127.0.0.1", "localhost");
    let mut browser = Browser::default();
    let page = browser.ask("GET", &format!("{other}/login?return=%2Ftw%2F%3Fa%3Db%26c%23%2Finbox"), "");
    let back = format!("{root}/login/callback");
    let asked = browser.press(&page, "get", &back);
    let way_back = browser.as_whom(&asked, "anna", &back);
    let entered = browser.ask("GET", &way_back, "");
    assert_eq!((entered.status, entered.location), (303, Some(format!("{root}/?a=b&c#/inbox"))), "{}", entered.body);
    assert!(browser.me(&root).body.contains("\"name\":\"anna\""));
    // A proxy that always names another one does not lead in a circle.
    let sent = Browser::default().ask("GET", &format!("{other}/login/oidc?is_moved=true"), "");
    assert!(sent.location.as_ref().unwrap().starts_with(&format!("http://{}/", provider.address)), "{:?}", sent.location);
    server.stop();
}

#[test]
fn tabs_of_a_browser_sign_in_each_by_itself() {
    let Some(folder) = installed() else { return };
    let mut provider = Provider::start(&folder);
    let (_place, server, root) = signing_in(&mut provider, "");
    let back = format!("{root}/login/callback");
    let mut browser = Browser::default();
    let first = browser.up_to_the_way_back(&root, "anna", "/%23/one");
    // It is signed in at the provider by now.
    let begun = browser.ask("GET", &format!("{root}/login/oidc?return=/%23/two"), "");
    let second = browser.follow(begun, &back).location.unwrap();
    let of_sign_ins = |browser: &Browser| {
        let kept = browser.cookies.iter().filter(|((_, name), value)| name.starts_with("tw_sign_in") && !value.is_empty());
        kept.count()
    };
    assert_eq!(of_sign_ins(&browser), 2);
    for (way_back, to, left) in [(first, "one", 1), (second, "two", 0)] {
        let entered = browser.ask("GET", &way_back, "");
        assert_eq!((entered.status, entered.location), (303, Some(format!("{root}/#/{to}"))), "{}", entered.body);
        assert_eq!(of_sign_ins(&browser), left);
        assert!(browser.is_signed_in());
    }
    server.stop();
}

#[test]
fn what_the_provider_says_instead_of_signing_in_is_told_and_logged() {
    let Some(folder) = installed() else { return };
    let mut provider = Provider::start(&folder);
    let (_place, server, root) = signing_in(&mut provider, "");
    provider.tell("{\"scope\": \"openid\"}");
    let mut browser = Browser::default();
    let begun = browser.ask("GET", &format!("{root}/login/oidc?return=/%23/inbox"), "");
    let refused = browser.follow(begun, "none");
    assert_eq!((refused.status, browser.is_signed_in()), (401, false), "{}", refused.body);
    assert!(refused.body.contains("The provider did not sign you in (invalid_scope)."), "{}", refused.body);
    // Who tries again is led to where they wanted to go.
    assert!(refused.body.contains("value=\"/#/inbox\""), "{}", refused.body);
    let logged = wait_for("what the provider said", || {
        server.said().lines().find_map(|line| line.contains("invalid_scope").then(|| line.to_owned()))
    });
    assert!(logged.contains("WARN") && logged.contains("requested scope is not allowed"), "{logged}");
    server.stop();
}

#[test]
fn doctor_reads_what_the_provider_says_of_itself() {
    let Some(folder) = installed() else { return };
    let mut provider = Provider::start(&folder);
    provider.send_back_to("http://127.0.0.1:1");
    let issuer = format!("http://{}", provider.address);
    let place = Place::new();
    let found = |issuer: &str, listen: &str| {
        let config =
            format!("[server]\nlisten = \"{listen}\"\n[server.oidc]\nissuer = \"{issuer}\"\nclient_id = \"turnwright\"\n");
        place.write("turnwright.toml", format!("model = \"practice/practice\"\n{config}"));
        let ran = place.run(&["doctor", "--json"]);
        let findings: Value = serde_json::from_str(&ran.stdout).unwrap();
        let ours = findings.as_array().unwrap().iter().find(|finding| finding["subject"] == "identity provider").unwrap();
        let told = |key: &str| ours[key].as_str().unwrap().to_owned();
        (ran.code, told("level"), told("text"))
    };
    let ok = (
        Some(0),
        "ok".to_owned(),
        format!("{issuer} is read; it has to send browsers back to http://127.0.0.1:8700/login/callback"),
    );
    assert_eq!(found(&issuer, "127.0.0.1:8700"), ok);
    assert_eq!(found(&issuer, "127.0.0.1:0"), (Some(0), "ok".to_owned(), format!("{issuer} is read")));
    assert_eq!(found(&issuer, "0.0.0.0:8700"), (Some(1), "ok".to_owned(), format!("{issuer} is read")));
    let other = issuer.replace("127.0.0.1", "localhost");
    let told = format!("the identity provider {other} calls itself {issuer}; write that as `issuer`");
    assert_eq!(found(&other, "127.0.0.1:8700"), (Some(1), "problem".to_owned(), told));
    drop(provider);
    let (code, level, text) = found(&issuer, "127.0.0.1:8700");
    assert_eq!((code, level), (Some(1), "problem".to_owned()), "{text}");
    assert!(text.starts_with(&format!("the identity provider {issuer} does not answer at {issuer}/.well-known/")), "{text}");
}

/// Waits for a warning with these words.
fn is_logged(server: &Server, words: &str) {
    wait_for(words, || server.said().lines().any(|line| line.contains("WARN") && line.contains(words)).then_some(()));
}

#[test]
fn who_left_the_group_is_no_admin_any_more_and_signed_in_nowhere() {
    let Some(folder) = installed() else { return };
    let mut provider = Provider::start(&folder);
    let config = |scopes: &str| {
        format!(
            "model = \"practice/practice\"\n[server.oidc]\nissuer = \"http://{}\"\nclient_id = \"turnwright\"\n\
             client_secret = \"a secret/with:odd+characters\"\nscopes = [{scopes}]\nadmin_group = \"tw-admins\"\n\
             member_group = \"tw\"\n",
            provider.address
        )
    };
    let (asked, not_asked) = (config("\"openid\", \"profile\", \"groups\""), config("\"openid\", \"profile\""));
    let place = Place::new();
    place.write("turnwright.toml", asked);
    let server = Server::start(&place);
    let root = server.root();
    provider.send_back_to(&root);
    let mut browser = Browser::default();
    let way_back = browser.up_to_the_way_back(&root, "anna", "/");
    assert_eq!(browser.ask("GET", &way_back, "").status, 303);
    assert!(browser.me(&root).body.contains("\"role\":\"admin\""));
    provider.tell("{\"groups\": {\"anna\": [\"other\"]}}");
    let mut other = Browser::default();
    let way_back = other.up_to_the_way_back(&root, "anna", "/");
    let refused = other.ask("GET", &way_back, "");
    assert_eq!((refused.status, browser.me(&root).status), (403, 401), "{}", refused.body);
    assert!(!server.said().contains("in which groups"), "{}", server.said());
    is_logged(&server, "not in the group");
    let invented = other.ask("GET", &format!("{root}/login/callback?code=made-up&state=made-up"), "");
    assert_eq!(invented.status, 401, "{}", invented.body);
    is_logged(&server, "a sign-in that came back from the identity provider is refused");
    assert!(!server.said().contains("made-up"), "{}", server.said());
    let users = place.json(&["users", "list", "--json"]);
    assert_eq!((&users[0]["name"], &users[0]["role"], &users[0]["enabled"]), (&"anna".into(), &"member".into(), &true.into()));
    let address = server.address().to_owned();
    server.stop();

    // A provider that was not asked for groups tells of none; the operator is told so.
    place.write("turnwright.toml", not_asked);
    let server = Server::start_at(&place, &address);
    let mut browser = Browser::default();
    let way_back = browser.up_to_the_way_back(&root, "ben", "/");
    assert_eq!(browser.ask("GET", &way_back, "").status, 403);
    let logged = wait_for("what was not said", || {
        server.said().lines().find_map(|line| line.contains("in which groups").then(|| line.to_owned()))
    });
    for word in ["WARN", "groups", "preferred_username"] {
        assert!(logged.contains(word), "{word}: {logged}");
    }
    server.stop();
}
