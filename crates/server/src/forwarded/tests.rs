use http::{HeaderMap, HeaderValue};

use super::{Said, said};

const PROXY: &str = "10.0.0.2";

/// What is believed of a request: address, whether over TLS, host. Nothing where it is refused.
type Told = Result<(String, Option<bool>, Option<String>), ()>;

/// Who asks, with what headers, and what is believed of it.
type Case = (&'static str, &'static [(&'static str, &'static str)], Told);

/// That of a request from `peer`.
fn told(peer: &str, given: &[(&'static str, &'static str)]) -> Told {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        headers.append(*name, HeaderValue::from_static(value));
    }
    let trusted = ["10.0.0.0/24".parse().unwrap(), "::1".parse().unwrap()];
    let Said { address, is_https, host } = said(&headers, Some(peer.parse().unwrap()), &trusted).map_err(drop)?;
    let client = super::Client { address, is_https: false, is_handed_on: false };
    Ok((client.to_string(), is_https, host.map(|host| host.to_str().unwrap().to_owned())))
}

#[test]
fn a_trusted_proxy_is_believed_as_far_as_it_vouches_and_others_are_not() {
    let plain = |client: &str| Ok((client.to_owned(), None, None));
    let table: &[Case] = &[
        // Nobody's word counts but a trusted proxy's.
        (
            "203.0.113.7",
            &[("x-forwarded-for", "127.0.0.1"), ("x-forwarded-proto", "https"), ("x-forwarded-host", "h")],
            plain("203.0.113.7"),
        ),
        ("127.0.0.1", &[("x-forwarded-for", "203.0.113.7")], plain("127.0.0.1")),
        ("203.0.113.7", &[("forwarded", "for=127.0.0.1;proto=https;host=h")], plain("203.0.113.7")),
        (PROXY, &[], plain(PROXY)),
        (PROXY, &[("x-forwarded-for", "203.0.113.7")], plain("203.0.113.7")),
        ("::ffff:10.0.0.2", &[("x-forwarded-for", "203.0.113.7")], plain("203.0.113.7")),
        ("::1", &[("x-forwarded-for", "2001:db8::1")], plain("2001:db8::1")),
        (PROXY, &[("x-forwarded-for", "203.0.113.7:5000")], plain("203.0.113.7")),
        (PROXY, &[("x-forwarded-for", "[2001:db8::1]:5000")], plain("2001:db8::1")),
        // What the client itself wrote is before what the proxy saw.
        (PROXY, &[("x-forwarded-for", "127.0.0.1, 203.0.113.7")], plain("203.0.113.7")),
        (PROXY, &[("x-forwarded-for", "127.0.0.1"), ("x-forwarded-for", "203.0.113.7")], plain("203.0.113.7")),
        (PROXY, &[("x-forwarded-for", "127.0.0.1, 203.0.113.7, 10.0.0.9")], plain("203.0.113.7")),
        (PROXY, &[("x-forwarded-for", "10.0.0.8, 10.0.0.9")], plain("10.0.0.8")),
        (PROXY, &[("x-forwarded-for", "127.0.0.1, unknown")], plain("unknown")),
        (PROXY, &[("x-forwarded-for", "127.0.0.1, nonsense, 10.0.0.9")], plain("unknown")),
        (
            PROXY,
            &[("x-forwarded-for", "203.0.113.7"), ("x-forwarded-proto", "https"), ("x-forwarded-host", "tw.example:8443")],
            Ok(("203.0.113.7".to_owned(), Some(true), Some("tw.example:8443".to_owned()))),
        ),
        (PROXY, &[("x-forwarded-proto", "https")], Ok(("unknown".to_owned(), Some(true), None))),
        (
            PROXY,
            &[("x-forwarded-for", "203.0.113.7"), ("x-forwarded-proto", "https, http")],
            Ok(("203.0.113.7".to_owned(), Some(false), None)),
        ),
        (
            PROXY,
            &[("forwarded", "For=\"[2001:db8::1]:4711\"; Proto=HTTPS; Host=\"tw.example\"")],
            Ok(("2001:db8::1".to_owned(), Some(true), Some("tw.example".to_owned()))),
        ),
        (
            PROXY,
            &[(
                "forwarded",
                "for=127.0.0.1;host=evil.example, for=203.0.113.7;proto=https;host=tw.example, for=10.0.0.9;proto=http",
            )],
            Ok(("203.0.113.7".to_owned(), Some(true), Some("tw.example".to_owned()))),
        ),
        (PROXY, &[("forwarded", "for=_hidden;proto=https")], Ok(("unknown".to_owned(), Some(true), None))),
        // Some proxies name the scheme of a WebSocket.
        (PROXY, &[("x-forwarded-proto", "WSS")], Ok(("unknown".to_owned(), Some(true), None))),
        (PROXY, &[("x-forwarded-proto", "gopher, ws")], Ok(("unknown".to_owned(), Some(false), None))),
        (PROXY, &[("x-forwarded-for", "203.0.113.7"), ("x-forwarded-proto", "gopher")], Err(())),
        (PROXY, &[("forwarded", "for=203.0.113.7;proto=gopher")], Err(())),
        // Of the two forms one is the client's own.
        (PROXY, &[("forwarded", "for=127.0.0.1"), ("x-forwarded-for", "203.0.113.7")], Err(())),
        (PROXY, &[("forwarded", "for=203.0.113.7"), ("x-forwarded-for", "127.0.0.1, 203.0.113.7")], Err(())),
        (PROXY, &[("forwarded", "for=203.0.113.7"), ("x-forwarded-for", "203.0.113.7")], plain("203.0.113.7")),
        (PROXY, &[("x-forwarded-for", "203.0.113.7"), ("x-forwarded-host", "user@tw.example")], Err(())),
        (PROXY, &[("x-forwarded-for", "203.0.113.7"), ("x-forwarded-host", "a b")], Err(())),
        (PROXY, &[("forwarded", "for=203.0.113.7;For=127.0.0.1")], Err(())),
        (PROXY, &[("forwarded", "for=203.0.113.7;proto=http;proto=https")], Err(())),
    ];
    for (peer, given, expected) in table {
        assert_eq!(told(peer, given), *expected, "{peer} {given:?}");
    }
}
