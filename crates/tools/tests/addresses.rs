//! Which addresses may be reached: decided on values, for every way of writing them.

use std::net::IpAddr;

use turnwright_tools::net::{Allow, Refusal, Special, Target, special};

/// What `text` is refused as, in short.
fn refused(text: &str) -> String {
    match Target::parse(text, &Allow::nothing()) {
        Ok(target) => format!("reached: {}", target.url()),
        Err(Refusal::Address { special, .. }) => format!("{special:?}"),
        Err(Refusal::NotAUrl { .. }) => "not a url".to_owned(),
        Err(Refusal::Scheme { .. }) => "scheme".to_owned(),
        Err(Refusal::UserInfo) => "user".to_owned(),
        Err(Refusal::Port { .. }) => "port".to_owned(),
        Err(other) => other.to_string(),
    }
}

/// What is written, and what it is refused as.
const ATTACKS: &[(&str, &str)] = &[
    // Plain.
    ("http://127.0.0.1/", "Loopback"),
    ("http://127.255.255.254/", "Loopback"),
    ("http://0.0.0.0/", "Unspecified"),
    ("http://0.1.2.3/", "Unspecified"),
    ("http://10.0.0.1/", "Private"),
    ("http://172.16.0.1/", "Private"),
    ("http://172.31.255.255/", "Private"),
    ("http://192.168.1.1/", "Private"),
    ("http://169.254.1.1/", "LinkLocal"),
    ("http://169.254.169.254/latest/meta-data/", "Metadata"),
    ("http://168.63.129.16/", "Metadata"),
    ("http://100.100.100.200/latest/meta-data/", "Metadata"),
    ("http://192.0.0.192/opc/v2/", "Metadata"),
    ("http://100.64.0.1/", "Shared"),
    ("http://100.127.255.255/", "Shared"),
    ("http://192.0.0.1/", "Reserved"),
    ("http://192.0.2.1/", "Documentation"),
    ("http://198.51.100.7/", "Documentation"),
    ("http://203.0.113.9/", "Documentation"),
    ("http://192.88.99.1/", "Reserved"),
    ("http://198.18.0.1/", "Benchmarking"),
    ("http://198.19.255.255/", "Benchmarking"),
    ("http://224.0.0.1/", "Multicast"),
    ("http://239.255.255.255/", "Multicast"),
    ("http://240.0.0.1/", "Reserved"),
    ("http://255.255.255.255/", "Broadcast"),
    // Decimal, octal, hexadecimal, short, mixed, with a dot behind.
    ("http://2130706433/", "Loopback"),
    ("http://017700000001/", "Loopback"),
    ("http://0x7f000001/", "Loopback"),
    ("http://0X7F.0.0.1/", "Loopback"),
    ("http://0177.0.0.1/", "Loopback"),
    ("http://0177.0x0.0.01/", "Loopback"),
    ("http://127.1/", "Loopback"),
    ("http://127.0.1/", "Loopback"),
    ("http://127.0.0.1./", "Loopback"),
    ("http://0/", "Unspecified"),
    ("http://0x/", "Unspecified"),
    ("http://2852039166/", "Metadata"),
    ("http://0xa9fea9fe/", "Metadata"),
    ("http://0251.0376.0251.0376/", "Metadata"),
    ("http://169.254.43518/", "Metadata"),
    ("http://3232235777/", "Private"),
    ("http://0xC0.168.257/", "Private"),
    // In other letters, and percent-encoded.
    ("http://127。0。0。1/", "Loopback"),
    ("http://127．0．0．1/", "Loopback"),
    ("http://１２７.0.0.1/", "Loopback"),
    ("http://①②⑦.⓪.⓪.①/", "Loopback"),
    ("http://%31%32%37.0.0.1/", "Loopback"),
    ("http://127%2e0%2e0%2e1/", "Loopback"),
    ("http://169.254.169.254%2f/", "not a url"),
    // IPv6, and IPv4 within it.
    ("http://[::]/", "Unspecified"),
    ("http://[::1]/", "Loopback"),
    ("http://[0:0:0:0:0:0:0:1]/", "Loopback"),
    ("http://[0000::0001]/", "Loopback"),
    ("http://[::ffff:127.0.0.1]/", "Loopback"),
    ("http://[::ffff:7f00:1]/", "Loopback"),
    ("http://[::ffff:169.254.169.254]/", "Metadata"),
    ("http://[0:0:0:0:0:ffff:a9fe:a9fe]/", "Metadata"),
    ("http://[::127.0.0.1]/", "Loopback"),
    ("http://[::8.8.8.8]/", "Reserved"),
    ("http://[::ffff:0:10.0.0.1]/", "Private"),
    ("http://[64:ff9b::127.0.0.1]/", "Loopback"),
    ("http://[64:ff9b::a9fe:a9fe]/", "Metadata"),
    ("http://[64:ff9b:1::7f00:1]/", "Reserved"),
    ("http://[2002:7f00:1::]/", "Tunnel"),
    ("http://[2002:a9fe:a9fe::1]/", "Tunnel"),
    ("http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", "Tunnel"),
    ("http://[2001:470::5efe:7f00:1]/", "Loopback"),
    ("http://[2a00:1450::200:5efe:10.0.0.1]/", "Private"),
    ("http://[fc00::1]/", "UniqueLocal"),
    ("http://[fd00::1]/", "UniqueLocal"),
    ("http://[fd00:ec2::254]/", "Metadata"),
    ("http://[fd20:ce::254]/", "Metadata"),
    ("http://[fe80::1]/", "LinkLocal"),
    ("http://[febf::1]/", "LinkLocal"),
    ("http://[fec0::1]/", "Private"),
    ("http://[ff02::1]/", "Multicast"),
    ("http://[2001:db8::1]/", "Documentation"),
    ("http://[3fff::1]/", "Documentation"),
    ("http://[100::1]/", "Reserved"),
    ("http://[2001:20::1]/", "Reserved"),
    ("http://[5f00::1]/", "Reserved"),
    ("http://[4000::1]/", "Reserved"),
    // Zoned.
    ("http://[fe80::1%25eth0]/", "not a url"),
    ("http://[fe80::1%eth0]/", "not a url"),
    ("http://[::1%25lo]/", "not a url"),
    // With somebody else's name in front, behind, or around.
    ("http://example.org@127.0.0.1/", "Loopback or user"),
    ("http://example.org:80@127.0.0.1/", "Loopback or user"),
    ("http://user:secret@example.org/", "user"),
    ("http://127.0.0.1#@example.org/", "Loopback"),
    ("http://127.0.0.1\\@example.org/", "Loopback"),
    ("http://127.0.0.1?@example.org/", "Loopback"),
    ("http:\\\\127.0.0.1\\", "Loopback"),
    ("http:127.0.0.1", "Loopback"),
    ("http:///127.0.0.1/", "Loopback"),
    ("http://\t127.0.0.1\n/", "Loopback"),
    ("  http://127.0.0.1/  ", "Loopback"),
    ("HTTP://127.0.0.1/", "Loopback"),
    ("https://127.0.0.1:443/", "Loopback"),
    ("http://127.0.0.1:8080/", "Loopback"),
    ("http://127.0.0.1:65536/", "not a url"),
    // What is no web server.
    ("http://example.org:22/", "port"),
    ("http://example.org:25/", "port"),
    ("http://example.org:6379@127.0.0.1:6379/", "Loopback or user"),
    ("http://example.org:0/", "port"),
    ("ftp://example.org/", "scheme"),
    ("file:///etc/passwd", "scheme"),
    ("gopher://127.0.0.1:6379/_INFO", "scheme"),
    ("data:text/plain,hello", "scheme"),
    ("javascript:alert(1)", "scheme"),
    ("unix:///var/run/docker.sock", "scheme"),
    ("http+unix://%2fvar%2frun%2fdocker.sock/", "scheme"),
    ("/etc/passwd", "not a url"),
    ("example.org", "not a url"),
    ("http://", "not a url"),
    ("http://exa mple.org/", "not a url"),
    ("http://1.2.3.4.5/", "not a url"),
    ("http://256.1.1.1/", "not a url"),
    ("http://0x100000000/", "not a url"),
    ("http://[::1/", "not a url"),
    ("", "not a url"),
];

#[test]
fn no_spelling_of_an_address_that_is_not_public_is_reached() {
    let wrong: Vec<_> = ATTACKS
        .iter()
        .map(|(text, expected)| (text, expected, refused(text)))
        .filter(|(_, expected, got)| !expected.split(" or ").any(|word| word == got))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    println!("{} spellings of addresses that are not public were tried, and none is reached", ATTACKS.len());
    assert!(ATTACKS.len() >= 60);
}

#[test]
fn public_addresses_are_reached_whatever_way_they_are_written() {
    let public = [
        ("https://example.org/", "https://example.org/"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://0x08080808/", "http://8.8.8.8/"),
        ("http://172.32.0.1/", "http://172.32.0.1/"),
        ("http://100.128.0.1/", "http://100.128.0.1/"),
        ("http://[2606:4700::1111]/", "http://[2606:4700::1111]/"),
        ("http://[::ffff:8.8.8.8]/", "http://[::ffff:808:808]/"),
        ("http://[64:ff9b::8.8.8.8]/", "http://[64:ff9b::808:808]/"),
        ("https://例え.jp:8443/ä?q=1", "https://xn--r8jz45g.jp:8443/%C3%A4?q=1"),
    ];
    for (text, url) in public {
        assert_eq!(refused(text), format!("reached: {url}"), "{text}");
    }
}

#[test]
fn what_an_operator_allows_is_reached_and_nothing_beside_it() {
    let allow = Allow::new(["127.0.0.1:8080", "10.1.0.0/16", "[fd00::1]:443", "fd12::/16", "192.168.1.7"]).unwrap();
    let at = |address: &str, port| allow.admit(address.parse().unwrap(), port).is_ok();
    let allowed = [
        ("127.0.0.1", 8080),
        ("::ffff:127.0.0.1", 8080),
        ("10.1.255.3", 1),
        ("fd00::1", 443),
        ("fd12:3::4", 80),
        ("192.168.1.7", 80),
    ];
    let not = [
        ("127.0.0.1", 8081),
        ("127.0.0.2", 8080),
        ("10.2.0.1", 1),
        ("fd00::1", 80),
        ("fd00::2", 443),
        ("fd13::1", 80),
        ("192.168.1.8", 80),
    ];
    assert_eq!(allowed.map(|(address, port)| at(address, port)), [true; 6]);
    assert_eq!(not.map(|(address, port)| at(address, port)), [false; 7]);
    assert!(Target::parse("http://127.1:8080/", &allow).is_ok());
}

#[test]
fn everything_may_be_allowed() {
    let allow = Allow::new(["0.0.0.0/0", "::/0"]).unwrap();
    for address in ["127.0.0.1", "169.254.169.254", "255.255.255.255", "::1", "fe80::1", "::ffff:10.0.0.1"] {
        assert_eq!(allow.admit(address.parse().unwrap(), 80), Ok(()), "{address}");
    }
}

#[test]
fn a_text_that_allows_nothing_is_refused_with_what_would_be_right() {
    for text in [
        "localhost",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:70000",
        "10.0.0.0/33",
        "[::1]443",
        "::ffff:10.0.0.1",
        "",
        ":80",
        "10.0.0.0/",
    ] {
        let error = Allow::new([text]).expect_err(text).to_string();
        assert!(error.contains("it must be an address or a range"), "{text}: {error}");
    }
}

#[test]
fn where_a_redirect_leads_is_looked_at_like_any_address() {
    let here = Target::parse("https://example.org/a/b#part", &Allow::nothing()).unwrap();
    let join = |location: &str| here.join(location, &Allow::nothing()).map(|target| target.url().to_string());
    assert_eq!(join("../c"), Ok("https://example.org/c#part".to_owned()));
    assert_eq!(join("//other.org/"), Ok("https://other.org/#part".to_owned()));
    for location in
        ["http://127.0.0.1/", "//169.254.169.254/", "file:///etc/passwd", "https://a@b.org/", "//[::1]/", "http:\\\\0x7f.1"]
    {
        assert!(join(location).is_err(), "{location}");
    }
}

/// The ranges of the registries at their edges, so that a slip in a pattern is seen.
#[test]
fn ranges_end_where_the_registries_say() {
    let edges: [(&str, Option<Special>); 26] = [
        ("9.255.255.255", None),
        ("11.0.0.0", None),
        ("100.63.255.255", None),
        ("126.255.255.255", None),
        ("128.0.0.0", None),
        ("169.253.255.255", None),
        ("169.255.0.0", None),
        ("172.15.255.255", None),
        ("192.0.1.0", None),
        ("192.167.255.255", None),
        ("192.169.0.0", None),
        ("198.17.255.255", None),
        ("198.20.0.0", None),
        ("223.255.255.255", None),
        ("1.0.0.0", None),
        ("168.63.129.15", None),
        ("2001:200::1", None),
        ("2003::1", None),
        ("2000::1", None),
        ("3ffe::1", None),
        ("3fff:1000::1", None),
        ("2001:1ff::1", Some(Special::Reserved)),
        ("1fff::1", Some(Special::Reserved)),
        ("fe7f::1", Some(Special::Reserved)),
        ("fdff::1", Some(Special::UniqueLocal)),
        ("feff::1", Some(Special::Private)),
    ];
    for (address, expected) in edges {
        assert_eq!(special(address.parse::<IpAddr>().unwrap()), expected, "{address}");
    }
}
