//! Through a forward proxy, to servers with an authority of their own: a model, an MCP server, a webhook, the receiver of traces.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use turnwright_testkit::model_server::{ModelServer, Piece, finish_chunk, text_chunk};

use crate::serve::Server;
use crate::support::{Place, Ran, wait_for};
use crate::tls::has_openssl;

const HOSTS: [&str; 3] = ["models.invalid", "servers.invalid", "hooks.invalid"];
const PASSWORD: &str = "p@ss/w:ord %41";

/// An authority, and a certificate of all the hosts that it signed.
fn make_certificates(place: &Place) {
    let ran = |words: &[&str]| {
        let mut command = Command::new("openssl");
        command.args(words).current_dir(place.path("")).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().unwrap().success(), "{words:?}");
    };
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    let of_ca = ["-subj", "/CN=Our own", "-keyout", "ca.key", "-out", "ca.crt"];
    ran(&[&["req", "-x509"], &key[..], &of_ca].concat());
    let names = format!("subjectAltName={}", HOSTS.map(|host| format!("DNS:{host}")).join(","));
    let signed = ["-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE"];
    let of_all = ["-subj", "/CN=all", "-addext", &names, "-keyout", "all.key", "-out", "all.crt"];
    ran(&[&["req", "-x509"], &key[..], &signed, &of_all].concat());
}

/// A proxy that connects to three servers that speak TLS, each before an address that does not, and knows of no others.
struct Proxy {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
    _runtime: Runtime,
}

impl Proxy {
    /// `behind` are the addresses behind the hosts; `login` is the name and the password that it wants.
    fn start(place: &Place, behind: [String; 3], login: Option<String>) -> Self {
        let certificates = CertificateDer::pem_file_iter(place.path("all.crt")).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(place.path("all.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config.with_no_client_auth().with_single_cert(certificates, key).unwrap()));
        let behind: Arc<HashMap<_, _>> = Arc::new(HOSTS.iter().map(|host| format!("{host}:443")).zip(behind).collect());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let wanted = login.map(|login| format!("basic {}", STANDARD.encode(login)));
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let told = Arc::clone(&asked);
        runtime.spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let (behind, told, wanted, acceptor) = (behind.clone(), told.clone(), wanted.clone(), acceptor.clone());
                tokio::spawn(async move { serve(client, &behind, &told, wanted.as_deref(), &acceptor).await });
            }
        });
        Self { address, asked, _runtime: runtime }
    }

    fn asked(&self) -> Vec<String> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort();
        asked.dedup();
        asked
    }
}

async fn serve(
    client: TcpStream,
    behind: &HashMap<String, String>,
    told: &Mutex<Vec<String>>,
    wanted: Option<&str>,
    acceptor: &TlsAcceptor,
) -> std::io::Result<()> {
    let mut client = BufReader::new(client);
    let mut head = Vec::new();
    while !matches!(head.last().map(String::as_str), Some("" | "\r\n")) {
        let mut line = String::new();
        client.read_line(&mut line).await?;
        head.push(line);
    }
    let target = head[0].strip_prefix("CONNECT ").unwrap_or(&head[0]).split(' ').next().unwrap().to_owned();
    let shown = head.iter().find_map(|line| {
        let (name, value) = line.trim_end().split_once(": ")?;
        name.eq_ignore_ascii_case("proxy-authorization").then(|| value.replacen("Basic", "basic", 1))
    });
    if wanted.is_some_and(|wanted| shown.as_deref() != Some(wanted)) {
        return client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n").await;
    }
    told.lock().unwrap().push(target.clone());
    let Some(address) = behind.get(&target) else {
        return client.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await;
    };
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    let plain = acceptor.accept(client).await?;
    joined(plain, TcpStream::connect(address).await?).await
}

async fn joined(mut client: impl AsyncRead + AsyncWrite + Unpin, mut server: TcpStream) -> std::io::Result<()> {
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// Takes whatever is sent, and answers that it was taken.
fn receiver() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, taken) = (listener.local_addr().unwrap().to_string(), Arc::<Mutex<Vec<String>>>::default());
    let told = Arc::clone(&taken);
    std::thread::spawn(move || {
        use std::io::{BufRead, Read, Write};
        for stream in listener.incoming() {
            let (mut stream, told) = (stream.unwrap(), Arc::clone(&told));
            std::thread::spawn(move || {
                let mut reader = std::io::BufReader::new(stream.try_clone().unwrap());
                let mut length = 0;
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    let lower = line.to_ascii_lowercase();
                    length = lower.strip_prefix("content-length: ").map_or(length, |length| length.trim().parse().unwrap());
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                told.lock().unwrap().push(String::from_utf8_lossy(&body).into_owned());
                drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
            });
        }
    });
    (address, taken)
}

fn model() -> (ModelServer, String) {
    let model = ModelServer::start(None, |_| vec![text_chunk("Hello there."), finish_chunk("stop"), Piece::Done]).unwrap();
    let address = model.base_url().strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    (model, address)
}

const PROVIDER: &str = "model = \"far/m\"\n[providers.far]\ndialect = \"openai-chat\"\nbase_url = \"https://models.invalid/v1\"\n\
                        models = [\"m\"]\nmax_retries = 0\n";

fn nowhere() -> [String; 3] {
    ["127.0.0.1:9".to_owned(), "127.0.0.1:9".to_owned(), "127.0.0.1:9".to_owned()]
}

#[test]
fn models_servers_and_webhooks_are_asked_through_the_proxy_and_by_the_own_authority() {
    if !has_openssl() {
        return;
    }
    let (_model, model) = model();
    let (hook, taken) = receiver();
    // What is asked as an MCP server is another of ours, known by whatever name its proxy is asked by.
    let far = Place::with("[server]\nauth = \"tokens\"\ntrusted_proxies = [\"127.0.0.9\"]\n");
    let secret = far.run(&["users", "token", "local"]).stdout.trim().to_owned();
    let far = Server::start(&far);

    let place = Place::new();
    make_certificates(&place);
    let proxy = Proxy::start(&place, [model, far.address().to_owned(), hook], Some(format!("anna:{PASSWORD}")));
    let config = format!(
        "{PROVIDER}[network]\nproxy = \"http://{}\"\nproxy_user = \"anna\"\nproxy_password = \"${{PROXY_PASSWORD}}\"\n\
         ca_file = \"ca.crt\"\n[mcp.servers.far]\nurl = \"https://servers.invalid/mcp\"\n\
         headers = {{ Authorization = \"Bearer {secret}\" }}\n",
        proxy.address
    );
    place.write("turnwright.toml", &config);
    let run = |words: &[&str]| {
        let mut command = place.command(words);
        // What the configuration says goes before what the environment does.
        command.env("PROXY_PASSWORD", PASSWORD).env("HTTPS_PROXY", "http://127.0.0.1:9");
        Ran::of(command.stdin(Stdio::null()).output().unwrap())
    };
    let ran = run(&["chat", "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello there.\n"), "{ran:?}");
    let ran = run(&["mcp", "check", "far"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(proxy.asked(), ["models.invalid:443", "servers.invalid:443"]);
    let shown = run(&["config", "show"]);
    assert!(shown.stdout.contains("proxy_user = \"anna\"") && !shown.stdout.contains(PASSWORD), "{shown:?}");

    // A practice turn that waits: the webhook hears of it.
    place.write(
        "turnwright.toml",
        format!(
            "{}[notify.webhook]\nurl = \"https://hooks.invalid/hook\"\nsecret = \"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\n",
            config.replace("${PROXY_PASSWORD}", PASSWORD).replace("model = \"far/m\"", "model = \"practice/practice\"")
        ),
    );
    let server = Server::start(&place);
    let answer =
        server.request("POST /api/v1/conversations/c/chat", "{\"content\":\"write \\\"hi\\\" to file \\\"b.txt\\\"\"}");
    assert!(answer.contains("\"suspended\""), "{answer}");
    wait_for("the webhook", || taken.lock().unwrap().iter().any(|body| body.contains("\"c\"")).then_some(()));
    assert_eq!(proxy.asked(), ["hooks.invalid:443", "models.invalid:443", "servers.invalid:443"]);
    server.stop();
    far.stop();
}

#[test]
fn what_is_wrong_on_the_way_is_told_in_words_that_say_what_to_do() {
    if !has_openssl() {
        return;
    }
    let (_model, model) = model();
    let place = Place::new();
    make_certificates(&place);
    let mut behind = nowhere();
    behind[0] = model;
    let proxy = Proxy::start(&place, behind, Some("anna:secret".to_owned()));
    let chat = |network: &str, config: &str| {
        place.write("turnwright.toml", format!("{config}[network]\n{network}\n"));
        let ran = place.run(&["chat", "hello"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        ran.stderr
    };
    let through = format!("proxy = \"http://{}\"", proxy.address);
    let with_login = format!("{through}\nproxy_user = \"anna\"\nproxy_password = \"secret\"");
    let told = chat(&with_login, PROVIDER);
    assert!(
        told.contains("its certificate is from an authority that is not trusted here") && told.contains("`ca_file`"),
        "{told}"
    );
    let told = chat(&format!("{through}\nca_file = \"ca.crt\""), PROVIDER);
    assert!(told.contains("the proxy wants a name and a password: `proxy_user` and `proxy_password`"), "{told}");
    let told = chat(&with_login.replace("\"secret\"", "\"other\""), PROVIDER);
    let refused =
        format!("the proxy http://{} does not take the name and the password that it is shown: `proxy_user`", proxy.address);
    assert!(told.contains(&refused) && !told.contains("other"), "{told}");
    let told = chat(&through, &PROVIDER.replace("https://", "http://"));
    assert!(told.contains("the proxy wants a name and a password: `proxy_user` and `proxy_password`"), "{told}");
    let told = chat(&with_login, &PROVIDER.replace("models.invalid", "other.invalid"));
    assert!(told.contains("the proxy refuses to connect to it"), "{told}");
    // What the proxy is not asked for is not there.
    let told = chat(&format!("{with_login}\nno_proxy = [\".invalid\"]"), PROVIDER);
    assert!(!told.contains("proxy"), "{told}");
    assert_eq!(proxy.asked(), ["models.invalid:443", "other.invalid:443"]);
}

#[test]
fn loopback_addresses_are_asked_directly_whatever_names_a_proxy() {
    let model = ModelServer::start(None, |_| vec![text_chunk("Here."), finish_chunk("stop"), Piece::Done]).unwrap();
    let place = Place::new();
    let config = format!(
        "model = \"near/m\"\n[providers.near]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\nmax_retries = 0\n",
        model.base_url()
    );
    for network in ["", "[network]\nproxy = \"http://127.0.0.1:9\"\n"] {
        place.write("turnwright.toml", format!("{config}{network}"));
        let mut command = place.command(&["chat", "hello"]);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env(name, "http://127.0.0.1:9");
        }
        let ran = Ran::of(command.stdin(Stdio::null()).output().unwrap());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Here.\n"), "{ran:?}");
    }
}

#[test]
fn what_cannot_be_used_is_told_at_the_start_with_its_line() {
    let place = Place::new();
    place.write("broken.crt", "hello");
    let missing = place.path("none.crt").display().to_string();
    let table = [
        (
            "ca_file = \"none.crt\"",
            format!("`network.ca_file` is `{missing}`, which cannot be used: No such file or directory"),
        ),
        ("ca_file = \"broken.crt\"", "which cannot be used: it holds no certificate as PEM".to_owned()),
        ("proxy = \"ftp://proxy\"", "it must be the address of a proxy, such as `http://proxy.example.org:3128`".to_owned()),
        ("proxy = \"http://a:b@proxy\"", "which are for `proxy_user` and `proxy_password`".to_owned()),
        ("proxy_user = \"anna\"", "`network.proxy_user` counts beside `network.proxy` alone, which is not there".to_owned()),
        ("no_proxy = [\"http://a\"]", "it must be a host, a domain such as `example.org`".to_owned()),
    ];
    for (network, expected) in table {
        place.write("turnwright.toml", format!("model = \"practice/practice\"\n[network]\n{network}\n"));
        for words in [["config", "check"].as_slice(), &["chat", "hello"]] {
            let ran = place.run(words);
            assert_eq!(ran.code, Some(2), "{ran:?}");
            assert!(ran.stderr.contains("turnwright.toml:3: ") && ran.stderr.contains(&expected), "{expected}: {ran:?}");
        }
    }
    place.write("turnwright.toml", "model = \"practice/practice\"\n");
    let ran = Ran::of(place.command(&["chat", "hello"]).env("HTTPS_PROXY", "ftp://a").stdin(Stdio::null()).output().unwrap());
    assert!(ran.code == Some(0) && ran.stderr.contains("HTTPS_PROXY: it is not the address of a proxy"), "{ran:?}");
}
