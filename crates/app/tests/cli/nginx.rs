//! One server behind nginx: as the documents configure it, and as it is where somebody configures nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustls::{ClientConnection, StreamOwned};
use serde_json::{Value, json};
use turnwright_testkit::Port;
use turnwright_testkit::model_server::{ModelServer, Piece, finish_chunk, text_chunk};

use crate::serve::Server;
use crate::support::{LIMIT, Place, wait_for};
use crate::tls::{connect, has_openssl, make};

/// nginx, which ends with the test.
pub(crate) struct Nginx {
    child: Child,
    pub(crate) address: String,
    _port: Port,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Nginx {
    /// Whether it is installed; says otherwise that the test is skipped, or fails where that must not be.
    pub(crate) fn is_there() -> bool {
        let is_there = Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_ok_and(|ran| ran.success());
        if !is_there {
            let is_required = std::env::var_os("TURNWRIGHT_REQUIRE_TEST_SERVERS").is_some_and(|value| value == "1");
            assert!(!is_required, "nginx is not installed: as root on Debian: apt-get install nginx-light");
            println!("skipped: nginx is not installed");
        }
        is_there
    }

    /// Runs it in a place with a whole configuration, which listens at this port.
    pub(crate) fn start(place: &Place, port: Port, config: &str) -> Self {
        let address = port.address();
        // What it writes is the test's; one process is ended by one signal.
        let own = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|name| format!("{name}_temp_path {name}_temp;"));
        let config = config.replace("http {", &format!("http {{ access_log off; {}", own.concat()));
        let config = format!("daemon off; master_process off; pid nginx.pid; error_log nginx.log;\n{config}");
        place.write("nginx.conf", config);
        let mut command = Command::new("nginx");
        command.arg("-p").arg(place.path("")).arg("-c").arg(place.path("nginx.conf")).arg("-e").arg(place.path("nginx.log"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
        wait_for("nginx", || TcpStream::connect(&address).ok());
        Self { child, address, _port: port }
    }
}

/// The first block of this language in a section of `docs/operations.md`.
fn example(language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once("\n## Behind a proxy\n").unwrap();
    let (_, block) = section.split_once(&format!("```{language}\n")).unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

/// A browser at the name by which the world knows the server.
struct Browser<'a> {
    nginx: &'a Nginx,
    trusted: &'a Path,
    cookie: String,
}

impl Browser<'_> {
    fn send(&self, head: &str, headers: &str, body: &[u8]) -> StreamOwned<ClientConnection, TcpStream> {
        let mut stream = connect(&self.nginx.address, self.trusted).unwrap();
        stream.sock.set_read_timeout(Some(LIMIT)).unwrap();
        let own =
            format!("Host: turnwright.example.org\r\nOrigin: https://turnwright.example.org\r\nCookie: {}\r\n", self.cookie);
        let rest = format!("Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        stream.write_all(format!("{head} HTTP/1.1\r\n{own}{headers}{rest}").as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        stream.flush().unwrap();
        stream
    }

    fn ask(&self, head: &str, headers: &str, body: &[u8]) -> String {
        let mut answer = Vec::new();
        // nginx ends the connection without a goodbye.
        let _ = self.send(head, headers, body).read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// The text of an answer, whose pieces may come in smaller ones: what may be the beginning of a secret waits for what follows it.
fn said_in(stream: &str) -> String {
    stream.split("\"delta\":\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Signs in, uploads, and reads an answer while it is written, through nginx as the documents have it.
fn works_below(base: &str) {
    const MIDDLE: &str = "middle";
    let script =
        |_: &Value| vec![text_chunk("One "), Piece::Point(MIDDLE), text_chunk("two."), finish_chunk("stop"), Piece::Done];
    let model = ModelServer::start([MIDDLE], script).unwrap();
    let settings = example("toml").replace("org\"", &format!("org{base}\""));
    let provider = format!("[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n", model.base_url());
    let place = Place::with(&format!("{settings}\n{provider}"));
    make(&place, "turnwright");
    let token = place.run(&["users", "token", "local"]).stdout.trim().to_owned();
    let server = Server::start(&place);
    let port = Port::reserve().unwrap();
    let block = example("nginx").replace("listen 443", &format!("listen {}", port.address()));
    let block =
        block.replace("127.0.0.1:8700", server.address()).replace("/etc/nginx/", &format!("{}/", place.path("").display()));
    let block = block.replace("location / {", &format!("location {base}/ {{"));
    let nginx = Nginx::start(&place, port, &format!("events {{}}\nhttp {{\n{block}}}\n"));
    let trusted = place.path("turnwright.crt");
    let mut browser = Browser { nginx: &nginx, trusted: &trusted, cookie: String::new() };

    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let entered = browser.ask(&format!("POST {base}/login"), form, format!("token={token}").as_bytes());
    assert!(entered.starts_with("HTTP/1.1 303 "), "{entered}");
    let set = entered.lines().find(|line| line.to_lowercase().starts_with("set-cookie: ")).unwrap();
    assert!(set.ends_with("; Secure"), "{set}");
    let (_, value) = set.split_once(": ").unwrap();
    value.split_once(';').unwrap().0.clone_into(&mut browser.cookie);

    let large = vec![b'x'; 5 << 20];
    let file = [b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n", &*large, b"\r\n--b--\r\n"]
        .concat();
    let uploaded =
        browser.ask(&format!("POST {base}/api/v1/artifacts"), "Content-Type: multipart/form-data; boundary=b\r\n", &file);
    assert!(uploaded.starts_with("HTTP/1.1 201 ") && uploaded.contains(&format!("\"bytes\":{}", large.len())), "{uploaded}");

    // What is written of an answer is here before the model goes on.
    let said = json!({"content": "Go.", "model": "p/m"}).to_string();
    let streams = "Content-Type: application/json\r\nAccept: text/event-stream\r\n";
    let mut answer = browser.send(&format!("POST {base}/api/v1/conversations/c/chat"), streams, said.as_bytes());
    let mut told = String::new();
    let mut piece = [0; 4096];
    while !said_in(&told).contains("One") {
        let read = answer.read(&mut piece).unwrap();
        assert!(read > 0, "{told}");
        told.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    assert!(!said_in(&told).contains('t'), "{told}");
    model.run_free();
    let _ = answer.read_to_string(&mut told);
    assert!(said_in(&told) == "One two." && told.contains("[DONE]"), "{told}");

    let foreign =
        "Content-Type: application/json\r\nForwarded: for=192.0.2.1;host=evil.example\r\nX-Forwarded-Host: evil.example\r\n";
    let created = browser.ask(&format!("POST {base}/api/v1/conversations"), foreign, b"{}");
    assert!(created.starts_with("HTTP/1.1 201 "), "{created}");
    server.stop();
}

#[test]
fn the_nginx_of_the_documents_signs_in_uploads_and_streams_at_the_top_and_below_a_path() {
    if !Nginx::is_there() || !has_openssl() {
        return;
    }
    works_below("");
    works_below("/turnwright");
}

#[test]
fn behind_an_nginx_that_hands_on_nothing_people_read_which_line_mends_it_and_it_does() {
    if !Nginx::is_there() {
        return;
    }
    let place = Place::with("[server]\nauth = \"tokens\"\n");
    let token = place.run(&["users", "token", "local"]).stdout.trim().to_owned();
    let sign_in = |address: &str| {
        let form = format!("token={token}");
        let head = "Host: tw.example\r\nOrigin: http://tw.example\r\nAccept: text/html\r\nContent-Type: application/x-www-form-urlencoded";
        let mut stream = TcpStream::connect(address).unwrap();
        let text =
            format!("POST /login HTTP/1.1\r\n{head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{form}", form.len());
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let plain = |server: &Server| {
        let port = Port::reserve().unwrap();
        let (address, server) = (port.address(), server.address());
        let config =
            format!("events {{}}\nhttp {{\nserver {{ listen {address}; location / {{ proxy_pass http://{server}; }} }}\n}}\n");
        Nginx::start(&place, port, &config)
    };
    let server = Server::start(&place);
    let nginx = plain(&server);
    let refused = sign_in(&nginx.address);
    assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("403 origin_not_allowed"), "{refused}");
    let line = "public_url = &quot;http://tw.example&quot;";
    assert!(refused.contains(line), "{refused}");
    drop(nginx);
    server.stop();

    place.write(
        "turnwright.toml",
        format!("model = \"practice/practice\"\n[server]\nauth = \"tokens\"\n{}\n", line.replace("&quot;", "\"")),
    );
    let server = Server::start(&place);
    let nginx = plain(&server);
    let entered = sign_in(&nginx.address);
    assert!(entered.starts_with("HTTP/1.1 303 "), "{entered}");
    server.stop();
}
