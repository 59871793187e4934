//! The server over TLS, with certificates that the `openssl` command made.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::sys::signal::Signal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use turnwright_testkit::model_server::{ModelServer, Piece, finish_chunk, text_chunk};

use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::serve::Server;
use crate::support::{Place, Ran, wait_for};

/// Whether certificates can be made here.
pub(crate) fn has_openssl() -> bool {
    let there = Command::new("openssl").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = there.is_ok_and(|status| status.success());
    if !is_there {
        println!("skipped: there is no openssl command");
    }
    is_there
}

/// A certificate that signs itself and its key, as `NAME.crt` and `NAME.key`.
pub(crate) fn make(place: &Place, name: &str) {
    let (cert, key) = (place.path(&format!("{name}.crt")), place.path(&format!("{name}.key")));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    command.args(["-subj", &format!("/CN={name}"), "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"]).arg(key).arg("-out").arg(cert);
    assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
}

/// A server, and where the certificate lies that it shows: `a.crt`.
fn served() -> (Place, Server) {
    let place = Place::with("[server.tls]\ncert = \"a.crt\"\nkey = \"a.key\"\n");
    make(&place, "a");
    let server = Server::start_over_tls(&place);
    (place, server)
}

/// A connection over TLS of a client that trusts this certificate alone.
pub(crate) fn connect(address: &str, trusted: &Path) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    for cert in CertificateDer::pem_file_iter(trusted).unwrap() {
        roots.add(cert.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    Ok(StreamOwned::new(connection, TcpStream::connect(address)?))
}

/// What such a client is answered.
fn ask(address: &str, trusted: &Path, path: &str) -> std::io::Result<String> {
    let mut stream = connect(address, trusted)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn it_speaks_tls_and_takes_a_new_certificate_without_a_restart() {
    if !has_openssl() {
        return;
    }
    let place = Place::with("[server.tls]\ncert = \"now.crt\"\nkey = \"now.key\"\n");
    for name in ["first", "second"] {
        make(&place, name);
    }
    let copy = |from: &str, to: &str| std::fs::copy(place.path(from), place.path(to)).unwrap();
    let take = |name: &str| {
        copy(&format!("{name}.crt"), "now.crt");
        copy(&format!("{name}.key"), "now.key");
    };
    take("first");
    let server = Server::start_over_tls(&place);
    let answer = ask(server.address(), &place.path("first.crt"), "/healthz").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // Who sits at the other end is known as without it.
    let answer = ask(server.address(), &place.path("first.crt"), "/api/v1/approvals").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(ask(server.address(), &place.path("second.crt"), "/healthz").is_err());
    // One that only connects, and one that speaks HTTP, keep nobody up.
    let _silent = TcpStream::connect(server.address()).unwrap();
    let mut plain = TcpStream::connect(server.address()).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").unwrap();

    let listen = format!("listen = \"{}\"", server.address());
    let asking = Place::with(&format!("[server]\n{listen}\n[server.tls]\ncert = \"none.crt\"\nkey = \"none.key\"\n"));
    let ran = asking.run(&["doctor", "--serving"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("it takes requests"), "{ran:?}");

    take("second");
    server.signal(Signal::SIGHUP);
    wait_for("the new certificate", || server.said().contains("read the certificate again").then_some(()));
    assert!(ask(server.address(), &place.path("second.crt"), "/healthz").unwrap().starts_with("HTTP/1.1 200"));

    place.write("now.crt", "no certificate");
    server.signal(Signal::SIGHUP);
    wait_for("the refusal", || server.said().contains("the new certificate cannot be used").then_some(()));
    assert!(ask(server.address(), &place.path("second.crt"), "/healthz").unwrap().starts_with("HTTP/1.1 200"));
    server.stop();
}

#[test]
fn what_is_wrong_with_a_certificate_is_told_with_the_file_and_the_reason() {
    if !has_openssl() {
        return;
    }
    let place = Place::with("[server.tls]\ncert = \"a.crt\"\nkey = \"b.key\"\n");
    let (cert, key) = (place.path("a.crt"), place.path("b.key"));
    let says = |line: usize, expected: &str| {
        for words in [["config", "check"].as_slice(), &["serve", "--listen", "127.0.0.1:0"]] {
            let ran = place.run(words);
            assert_eq!(ran.code, Some(2), "{ran:?}");
            assert!(ran.stderr.contains(&format!("turnwright.toml:{line}: {expected}")), "{ran:?}");
        }
    };
    says(3, &format!("the certificate `{}` cannot be used: No such file", cert.display()));
    place.write("a.crt", "hello");
    says(3, &format!("the certificate `{}` cannot be used: it holds no certificate as PEM", cert.display()));
    make(&place, "a");
    says(4, &format!("the private key `{}` cannot be used: No such file", key.display()));
    make(&place, "b");
    says(4, &format!("the private key `{}` and the certificate cannot be used together", key.display()));
    std::fs::copy(place.path("a.key"), &key).unwrap();
    assert_eq!(place.run(&["config", "check"]).code, Some(0));
}

/// A certificate as [`make`] makes it, for the time between two days, each as `YYYYMMDD`.
fn make_between(place: &Place, name: &str, days: [&str; 2]) {
    place.write("ca.index", "");
    place.write("ca.serial", "01\n");
    place.write(
        "ca.cnf",
        "[ca]\ndefault_ca = it\n[it]\ndatabase = ca.index\nserial = ca.serial\nnew_certs_dir = .\ndefault_md = sha256\n\
         policy = any\nx509_extensions = server\n[any]\ncommonName = supplied\n[server]\nbasicConstraints = critical, CA:FALSE\n",
    );
    let (key, asked, cert) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.crt"));
    let run = |words: &[&str]| {
        let mut command = Command::new("openssl");
        command.args(words).current_dir(place.path("")).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().unwrap().success(), "{words:?}");
    };
    let curve = "ec_paramgen_curve:prime256v1";
    run(&[
        "req",
        "-new",
        "-newkey",
        "ec",
        "-pkeyopt",
        curve,
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-keyout",
        &key,
        "-out",
        &asked,
    ]);
    let [from, until] = days.map(|day| format!("{day}000000Z"));
    let dates = ["-startdate", &from, "-enddate", &until];
    let made = ["ca", "-batch", "-config", "ca.cnf", "-selfsign", "-notext", "-keyfile", &key, "-in", &asked, "-out", &cert];
    run(&[made.as_slice(), &dates].concat());
}

#[test]
fn a_certificate_that_clients_refuse_today_is_told_of_with_the_day() {
    if !has_openssl() {
        return;
    }
    let place = Place::with("[server.tls]\ncert = \"now.crt\"\nkey = \"now.key\"\n");
    make_between(&place, "old", ["20010101", "20010203"]);
    make_between(&place, "early", ["29900101", "29910101"]);
    make(&place, "good");
    let take = |name: &str| {
        for kind in ["crt", "key"] {
            std::fs::copy(place.path(&format!("{name}.{kind}")), place.path(&format!("now.{kind}"))).unwrap();
        }
    };
    let file = place.path("now.crt");
    let expired =
        format!("the certificate `{}` expired on 2001-02-03T00:00:00.000Z; clients refuse the server", file.display());
    let early =
        format!("the certificate `{}` is not valid before 2990-01-01T00:00:00.000Z; clients refuse the server", file.display());
    for (name, said) in [("old", &expired), ("early", &early)] {
        take(name);
        let ran = place.run(&["config", "check"]);
        assert!(ran.code == Some(0) && ran.stderr.contains(&format!("turnwright.toml:3: {said}")), "{ran:?}");
        let ran = place.run(&["doctor"]);
        assert!(ran.code == Some(1) && ran.stdout.contains(said.as_str()), "{ran:?}");
    }
    take("old");
    let server = Server::start_over_tls(&place);
    assert!(server.said().contains(&expired), "{}", server.said());
    assert!(!server.said().contains(&early));
    take("early");
    server.signal(Signal::SIGHUP);
    wait_for("the warning", || server.said().contains(&early).then_some(()));
    server.stop();

    take("good");
    for words in [["config", "check"].as_slice(), &["doctor"]] {
        let ran = place.run(words);
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("clients refuse"), "{ran:?}");
    }
    // The one that it is signed with has to be of today too.
    let chain = [place.path("good.crt"), place.path("old.crt")].map(|file| std::fs::read_to_string(file).unwrap()).concat();
    place.write("now.crt", &chain);
    let ran = place.run(&["config", "check"]);
    assert!(ran.stderr.contains("certificate 2 in ") && ran.stderr.contains("expired on 2001-02-03"), "{ran:?}");
}

#[test]
fn a_key_under_a_password_is_told_from_a_file_without_a_key() {
    if !has_openssl() {
        return;
    }
    let place = Place::with("[server.tls]\ncert = \"a.crt\"\nkey = \"locked.key\"\n");
    make(&place, "a");
    for form in [["pkcs8", "-topk8"].as_slice(), &["ec", "-aes256"]] {
        let mut command = Command::new("openssl");
        command.args(form).args(["-passout", "pass:word", "-in"]).arg(place.path("a.key"));
        command.arg("-out").arg(place.path("locked.key"));
        assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
        let says = "cannot be used: it is encrypted, and a server has nobody to ask for its password";
        let ran = place.run(&["config", "check"]);
        assert!(ran.code == Some(2) && ran.stderr.contains(says), "{form:?}: {ran:?}");
        let ran = place.run(&["doctor"]);
        assert!(ran.code == Some(1) && ran.stdout.contains(says), "{form:?}: {ran:?}");
    }
}

#[test]
fn another_program_trusts_it_by_an_authority_that_its_environment_names() {
    if !has_openssl() {
        return;
    }
    let (place, server) = served();
    let (_, port) = server.address().rsplit_once(':').unwrap();
    let asks = Place::new();
    asks.write(
        "turnwright.toml",
        format!(
            "model = \"far/practice/practice\"\n[providers.far]\ndialect = \"openai-chat\"\nmax_retries = 0\n\
             base_url = \"https://localhost:{port}/v1\"\nmodels = [\"practice/practice\"]\n"
        ),
    );
    let chat = ["chat", "hello"];
    let ran = asks.run(&chat);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let ran = Ran::of(asks.command(&chat).env("SSL_CERT_FILE", place.path("a.crt")).stdin(Stdio::null()).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("Practice model"), "{ran:?}");
    server.stop();
}

#[test]
fn who_is_not_trusted_as_a_receiver_of_traces_or_an_api_is_told_with_the_address_and_what_to_do() {
    if !has_openssl() {
        return;
    }
    let (place, server) = served();
    let (_, port) = server.address().rsplit_once(':').unwrap();
    let (key, other) = ("A1b2C3d4E5f6G7h8J9k0", "B1b2C3d4E5f6G7h8J9k0");
    let asks = |network: &str| {
        let asks = Place::with(&format!(
            "[telemetry]\notlp_endpoint = \"https://localhost:{port}/{key}\"\n[tools.http.far]\n\
             description = \"https://localhost:{port}/openapi.json?key={other}\"\n{network}"
        ));
        let ran = asks.run(&["chat", "hello"]);
        assert!(ran.code == Some(0) && !ran.stderr.contains(key) && !ran.stderr.contains(other), "{ran:?}");
        let line = |word: &str| ran.stderr.lines().find(|line| line.contains(word)).unwrap_or_default().to_owned();
        (line("traces cannot be sent"), line("an HTTP API cannot be offered"))
    };
    let why = "its certificate is from an authority that is not trusted here; where that is your own, name its certificate as `ca_file`";
    let (traces, api) = asks("");
    let address = format!("https://localhost:{port}/***/v1/traces does not answer: {why}");
    assert!(traces.contains(&address), "{traces}");
    assert!(api.contains(&format!("https://localhost:{port}/openapi.json")) && api.contains(why), "{api}");
    let authority = place.path("a.crt");
    let (traces, api) = asks(&format!("[network]\nca_file = \"{}\"\n", authority.display()));
    assert!(traces.contains(&format!("https://localhost:{port}/***/v1/traces answers 4")), "{traces}");
    assert!(!api.contains("certificate"), "{api}");
    server.stop();
}

/// A proxy that forwards plain HTTP to `upstream`, whatever host is asked for, and what it was asked for.
fn proxy(upstream: String) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&asked);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (told, upstream) = (Arc::clone(&told), upstream.clone());
            thread::spawn(move || drop(forward(&client.unwrap(), &upstream, &told)));
        }
    });
    (address, asked)
}

fn forward(mut client: &TcpStream, upstream: &str, told: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n") {
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let line = String::from_utf8(head).unwrap();
    let (method, rest) = line.split_once(' ').unwrap();
    let (url, _) = rest.split_once(' ').unwrap();
    told.lock().unwrap().push(url.to_owned());
    let (_, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut server = TcpStream::connect(upstream)?;
    write!(server, "{method} /{path} HTTP/1.1\r\n")?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        drop(std::io::copy(&mut from, &mut to));
        // Who asked is gone, and the other thread still holds the connection.
        drop(to.shutdown(Shutdown::Write));
    });
    std::io::copy(&mut server, &mut client).map(drop)
}

#[test]
fn models_are_asked_through_the_proxy_that_the_environment_names() {
    let model =
        ModelServer::start(None, |_| vec![text_chunk("Through the proxy."), finish_chunk("stop"), Piece::Done]).unwrap();
    let upstream = model.base_url();
    let upstream = upstream.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let (address, asked) = proxy(upstream);
    let place = Place::new();
    place.write(
        "turnwright.toml",
        "model = \"far/m\"\n[providers.far]\ndialect = \"openai-chat\"\nbase_url = \"http://models.invalid/v1\"\n\
         models = [\"m\"]\nmax_retries = 0\n",
    );
    let ran = Ran::of(place.command(&["chat", "hello"]).env("HTTP_PROXY", &address).stdin(Stdio::null()).output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Through the proxy.\n"), "{ran:?}");
    assert_eq!(*asked.lock().unwrap(), ["http://models.invalid/v1/chat/completions"]);
}
