use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::json;

use super::{read as read_token, *};

struct Provider {
    pair: Ed25519KeyPair,
}

impl Provider {
    fn new() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { pair: Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap() }
    }

    fn keys(&self) -> Keys {
        let x = URL_SAFE_NO_PAD.encode(self.pair.public_key().as_ref());
        serde_json::from_value(json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "one", "use": "sig", "x": x}]})).unwrap()
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(self.pair.sign(signed.as_bytes())))
    }
}

const EXPECTED: Expected<'static> =
    Expected { issuer: "https://id.example", client_id: "turnwright", nonce: "n", now_s: 1_000_000 };

fn header() -> Value {
    json!({"alg": "EdDSA", "kid": "one"})
}

fn claims() -> Value {
    json!({"iss": "https://id.example", "aud": "turnwright", "sub": "7", "nonce": "n", "iat": 999_990, "exp": 1_000_300})
}

fn with(claim: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[claim] = value;
    claims
}

#[test]
fn only_what_the_provider_signed_for_us_and_this_sign_in_counts() {
    let provider = Provider::new();
    let read = |claims: Value| read_token(&provider.token(&header(), &claims), &provider.keys(), &EXPECTED).map(|_| ());
    assert_eq!(read(claims()), Ok(()));
    assert_eq!(read(with("aud", json!(["turnwright"]))), Ok(()));
    assert_eq!(read(with("nbf", json!(1_000_010))), Ok(()));
    let mut several = with("aud", json!(["turnwright", "other"]));
    assert_eq!(read(several.clone()), Err(Unread::Wrong("it was given to somebody else than this server")));
    several["azp"] = json!("turnwright");
    assert_eq!(read(several), Ok(()));
    let table = [
        (with("iss", json!("https://evil.example")), "it is another provider's"),
        (with("aud", json!("other")), "it is for somebody else than this server"),
        (with("azp", json!("other")), "it was given to somebody else than this server"),
        (with("exp", json!(999_000)), "its time is over"),
        (with("exp", Value::Null), "its time is over"),
        (with("iat", json!(1_001_000)), "it is of the future"),
        (with("nbf", json!(1_001_000)), "its time has not come"),
        (with("nbf", json!("tomorrow")), "its time has not come"),
        (with("nonce", json!("m")), "it is of another sign-in"),
        (with("nonce", Value::Null), "it is of another sign-in"),
    ];
    for (claims, why) in table {
        assert_eq!(read(claims.clone()), Err(Unread::Wrong(why)), "{claims}");
    }
}

#[test]
fn a_token_of_another_key_or_of_none_does_not_count() {
    let (provider, other) = (Provider::new(), Provider::new());
    let read = |token: &str| read_token(token, &provider.keys(), &EXPECTED).map(|_| ());
    assert_eq!(read(&other.token(&header(), &claims())), Err(Unread::NotSigned));
    let unknown = provider.token(&json!({"alg": "EdDSA", "kid": "two"}), &claims());
    assert_eq!(read(&unknown), Err(Unread::NoKey));
    assert_eq!(read(&provider.token(&json!({"alg": "RS256", "kid": "one"}), &claims())), Err(Unread::NoKey));
    for alg in ["none", "HS256", ""] {
        let token = provider.token(&json!({"alg": alg, "kid": "one"}), &claims());
        assert_eq!(read(&token), Err(Unread::Wrong("it is signed in a way that is not taken here")), "{alg}");
    }
    let good = provider.token(&header(), &claims());
    let (signed, _) = good.rsplit_once('.').unwrap();
    for bad in ["", ".", "..", "a.b.c", signed, &format!("{signed}."), &format!("{good}=")] {
        assert!(read(bad).is_err(), "{bad}");
    }
}
