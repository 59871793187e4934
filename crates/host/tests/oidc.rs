//! Signing in at a provider that is not what it was.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use turnwright_host::Oidc;
use turnwright_network::Network;

const NOW_S: u64 = 1_000_000;

/// What a provider does.
struct Doing {
    token_path: &'static str,
    user_path: Option<&'static str>,
    published: Ed25519KeyPair,
    /// The key that it signs with, where that is another one.
    signing: Option<Ed25519KeyPair>,
    describes_itself: bool,
    takes_codes: bool,
    subject: &'static str,
    /// How often its description was read.
    reads: usize,
}

type Change = fn(&mut Doing);

/// A provider that takes any code for a user's, and the nonce for that.
struct Provider {
    issuer: String,
    doing: Arc<Mutex<Doing>>,
}

fn pair() -> Ed25519KeyPair {
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap()
}

impl Provider {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let doing = Arc::new(Mutex::new(Doing {
            token_path: "/token",
            user_path: None,
            published: pair(),
            signing: None,
            describes_itself: true,
            takes_codes: true,
            subject: "7",
            reads: 0,
        }));
        let (known_as, shared) = (issuer.clone(), doing.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &known_as, &mut shared.lock().unwrap());
            }
        });
        Self { issuer, doing }
    }

    fn oidc(&self) -> Oidc {
        let config = json!({"issuer": self.issuer, "client_id": "turnwright"});
        let config = serde_json::from_value(config).unwrap();
        Oidc::new(&config, "http://127.0.0.1:1/login/callback".to_owned(), Network::default())
    }

    fn does(&self, change: impl FnOnce(&mut Doing)) {
        change(&mut self.doing.lock().unwrap());
    }

    fn reads(&self) -> usize {
        self.doing.lock().unwrap().reads
    }
}

fn answer(mut stream: TcpStream, issuer: &str, doing: &mut Doing) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let (status, said) = said(first.split(' ').nth(1).unwrap(), &String::from_utf8(body).unwrap(), issuer, doing);
    let said = said.to_string();
    let head = format!("HTTP/1.1 {status} \r\nContent-Length: {}\r\nConnection: close\r\n\r\n", said.len());
    stream.write_all(format!("{head}{said}").as_bytes()).unwrap();
}

fn said(path: &str, body: &str, issuer: &str, doing: &mut Doing) -> (u16, Value) {
    if path == "/.well-known/openid-configuration" {
        doing.reads += 1;
        if !doing.describes_itself {
            return (503, json!({}));
        }
        let userinfo = doing.user_path.map(|path| format!("{issuer}{path}"));
        return (
            200,
            json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}{}", doing.token_path),
                "jwks_uri": format!("{issuer}/keys"),
                "userinfo_endpoint": userinfo,
            }),
        );
    }
    if path == "/keys" {
        let x = URL_SAFE_NO_PAD.encode(doing.published.public_key().as_ref());
        return (200, json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "one", "x": x}]}));
    }
    if Some(path) == doing.user_path {
        return (200, json!({"sub": "7", "preferred_username": "anna"}));
    }
    if path != doing.token_path {
        return (404, json!({"error": "invalid_request"}));
    }
    if !doing.takes_codes {
        return (400, json!({"error": "invalid_grant"}));
    }
    let code = body.split('&').find_map(|field| field.strip_prefix("code=")).unwrap();
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({"iss": issuer, "aud": "turnwright", "sub": doing.subject, "nonce": code, "iat": NOW_S - 10, "exp": NOW_S + 100_000});
    let signed = format!("{}.{}", part(json!({"alg": "EdDSA", "kid": "one"})), part(claims));
    let signature = doing.signing.as_ref().unwrap_or(&doing.published).sign(signed.as_bytes());
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
    (200, json!({"id_token": token, "access_token": "any"}))
}

async fn name(oidc: &Oidc) -> Result<String, String> {
    let found = oidc.finish("n", "v", "n", NOW_S).await;
    found.map(|user| user.name).map_err(|error| error.to_string())
}

#[tokio::test]
async fn what_a_provider_says_of_itself_is_read_again_where_it_does_not_hold_once_in_a_sign_in() {
    let provider = Provider::start();
    let oidc = provider.oidc();
    let mut reads = 1;
    assert_eq!((name(&oidc).await, name(&oidc).await, provider.reads()), (Ok("7".to_owned()), Ok("7".to_owned()), reads));
    let changes: [(Change, &str); 5] = [
        (|doing| doing.published = pair(), "7"),
        (|doing| doing.token_path = "/token/2", "7"),
        (
            |doing| {
                (doing.token_path, doing.user_path, doing.published) = ("/token/3", Some("/user"), pair());
            },
            "anna",
        ),
        (|doing| doing.user_path = Some("/user/2"), "anna"),
        (|doing| doing.user_path = None, "7"),
    ];
    for (change, expected) in changes {
        provider.does(change);
        reads += 1;
        for again in 0..2 {
            assert_eq!((name(&oidc).await.as_deref(), provider.reads()), (Ok(expected), reads), "{again}");
        }
    }
    // What a user could bring about has nothing read again.
    provider.does(|doing| doing.takes_codes = false);
    let address = format!("{}/token/3", provider.issuer);
    let refused = format!("the identity provider {} refuses at {address} with 400 (invalid_grant)", provider.issuer);
    assert_eq!((name(&oidc).await, provider.reads()), (Err(refused), reads));
    // A wrong token is wrong still, and so is one for which the token endpoint had to be looked for.
    provider.does(|doing| (doing.takes_codes, doing.signing) = (true, Some(pair())));
    let wrong = format!("the identity provider {} gave a token that does not count: its signature is wrong", provider.issuer);
    for change in [(|_| {}) as Change, |doing| doing.token_path = "/token/4"] {
        provider.does(change);
        reads += 1;
        assert_eq!((name(&oidc).await, provider.reads()), (Err(wrong.clone()), reads));
    }
}

#[tokio::test]
async fn what_a_provider_says_of_itself_is_read_again_each_hour_and_stays_where_it_cannot_be_read() {
    let provider = Provider::start();
    let oidc = provider.oidc();
    let begun = async |now_s| oidc.begin(now_s).await.map(|begun| begun.url).map_err(|error| error.to_string());
    let to_it = format!("{}/authorize?response_type=code&", provider.issuer);
    for (now_s, describes_itself, reads) in [
        (NOW_S, true, 1),
        (NOW_S + 3_599, true, 1),
        (NOW_S - 10, true, 1),
        (NOW_S + 3_600, true, 2),
        (NOW_S + 7_199, true, 2),
        (NOW_S + 7_200, false, 3),
        (NOW_S + 7_201, true, 4),
        (NOW_S + 10_800, true, 4),
    ] {
        provider.does(|doing| doing.describes_itself = describes_itself);
        let url = begun(now_s).await.unwrap();
        assert!(url.starts_with(&to_it), "{url}");
        assert_eq!(provider.reads(), reads, "{now_s}");
    }
}

#[tokio::test]
async fn nobody_is_signed_in_whose_name_at_the_provider_no_database_can_tell_from_anothers() {
    let provider = Provider::start();
    let oidc = provider.oidc();
    let wrong = format!("the identity provider {} gave a token with a control character in `sub`", provider.issuer);
    for (subject, expected) in [("a\u{2400}b", Ok("a\u{2400}b".to_owned())), ("a\0b", Err(wrong.clone())), ("a\n", Err(wrong))]
    {
        provider.does(|doing| doing.subject = subject);
        assert_eq!(name(&oidc).await, expected, "{subject:?}");
    }
}
