//! Whether an ID token counts (`OpenID` Connect Core 3.1.3.7): whose signature it has, for whom it is, and until when. Pure.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::{Map, Value};

/// By how many seconds clocks may differ.
const MAX_SKEW_S: u64 = 120;

/// A provider's keys (RFC 7517).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Keys {
    keys: Vec<Key>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Key {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    used_for: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// What a token must say.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    /// The time, in seconds since 1970 UTC.
    pub(super) now_s: u64,
}

/// Why a token does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// None of the keys is the one that it names.
    NoKey,
    /// None of the keys that it may name made its signature.
    NotSigned,
    /// What is the case.
    Wrong(&'static str),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoKey => "its key is not among the provider's",
            Self::NotSigned => "its signature is wrong",
            Self::Wrong(why) => why,
        })
    }
}

/// The claims of a token that counts.
pub(super) fn read(token: &str, keys: &Keys, expected: &Expected<'_>) -> Result<Map<String, Value>, Unread> {
    #[derive(Deserialize)]
    struct Header {
        alg: String,
        kid: Option<String>,
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(Unread::Wrong("it is no JWT"))?;
    let (header, body) = signed.split_once('.').ok_or(Unread::Wrong("it is no JWT"))?;
    let header: Header =
        serde_json::from_slice(&decoded(header)?).map_err(|_| Unread::Wrong("its header is not understood"))?;
    let signature = decoded(signature)?;
    let may_be = |key: &&Key| {
        key.used_for.as_deref().is_none_or(|used_for| used_for == "sig")
            && (header.kid.is_none() || key.kid.is_none() || key.kid == header.kid)
    };
    let mut has_key = false;
    let mut is_signed = false;
    for key in keys.keys.iter().filter(may_be) {
        if let Some(verified) = key.verifies(&header.alg, signed.as_bytes(), &signature)? {
            has_key = true;
            is_signed |= verified;
        }
    }
    if !has_key {
        return Err(Unread::NoKey);
    }
    if !is_signed {
        return Err(Unread::NotSigned);
    }
    let claims: Map<String, Value> =
        serde_json::from_slice(&decoded(body)?).map_err(|_| Unread::Wrong("its claims are not understood"))?;
    counts(&claims, expected)?;
    Ok(claims)
}

fn counts(claims: &Map<String, Value>, expected: &Expected<'_>) -> Result<(), Unread> {
    let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
    let time_s = |claim: &str| claims.get(claim).and_then(Value::as_f64);
    #[expect(clippy::cast_precision_loss, reason = "seconds of our time are far below where that begins")]
    let (now_s, skew_s) = (expected.now_s as f64, MAX_SKEW_S as f64);
    let audience: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let wrong = |why| Err(Unread::Wrong(why));
    if text("iss") != Some(expected.issuer) {
        return wrong("it is another provider's");
    }
    if !audience.contains(&expected.client_id) {
        return wrong("it is for somebody else than this server");
    }
    if text("azp").is_some_and(|party| party != expected.client_id) || (audience.len() > 1 && text("azp").is_none()) {
        return wrong("it was given to somebody else than this server");
    }
    if time_s("exp").is_none_or(|end| end + skew_s <= now_s) {
        return wrong("its time is over");
    }
    if time_s("iat").is_none_or(|begin| begin > now_s + skew_s) {
        return wrong("it is of the future");
    }
    if claims.get("nbf").is_some_and(|begin| begin.as_f64().is_none_or(|begin| begin > now_s + skew_s)) {
        return wrong("its time has not come");
    }
    if text("nonce") != Some(expected.nonce) {
        return wrong("it is of another sign-in");
    }
    Ok(())
}

impl Key {
    /// Whether it made this signature; `None` where it is no key for `alg`.
    fn verifies(&self, alg: &str, signed: &[u8], made: &[u8]) -> Result<Option<bool>, Unread> {
        let part = |part: &Option<String>| part.as_deref().map_or(Err(Unread::Wrong("its key is not whole")), decoded);
        let is = |kty: &str, crv: Option<&str>| self.kty == kty && self.crv.as_deref() == crv;
        Ok(match alg {
            "RS256" | "RS384" | "RS512" | "PS256" if self.kty == "RSA" => {
                let way = match alg {
                    "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
                    "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
                    "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
                    _ => &signature::RSA_PSS_2048_8192_SHA256,
                };
                let key = RsaPublicKeyComponents { n: part(&self.n)?, e: part(&self.e)? };
                Some(key.verify(way, signed, made).is_ok())
            }
            "ES256" if is("EC", Some("P-256")) => {
                let point: Vec<u8> = [vec![4], part(&self.x)?, part(&self.y)?].concat();
                Some(UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point).verify(signed, made).is_ok())
            }
            "ES384" if is("EC", Some("P-384")) => {
                let point: Vec<u8> = [vec![4], part(&self.x)?, part(&self.y)?].concat();
                Some(UnparsedPublicKey::new(&signature::ECDSA_P384_SHA384_FIXED, point).verify(signed, made).is_ok())
            }
            "EdDSA" if is("OKP", Some("Ed25519")) => {
                Some(UnparsedPublicKey::new(&signature::ED25519, part(&self.x)?).verify(signed, made).is_ok())
            }
            "RS256" | "RS384" | "RS512" | "PS256" | "ES256" | "ES384" | "EdDSA" => None,
            // Not signed at all, or with a secret that more than the provider know.
            _ => return Err(Unread::Wrong("it is signed in a way that is not taken here")),
        })
    }
}

fn decoded(part: &str) -> Result<Vec<u8>, Unread> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| Unread::Wrong("it is not base64"))
}

#[cfg(test)]
mod tests;
