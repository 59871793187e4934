//! Addresses that a model, a page or a redirect names: any text is refused with a reason or is an address whose host, where it is a
//! number, is a public one. The text, where it redirects to, and what an operator allows are parted by zero bytes.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use libfuzzer_sys::fuzz_target;
use turnwright_tools::net::{Allow, Target, special};

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(3, |byte| *byte == 0).map(String::from_utf8_lossy);
    let (text, location, range) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next());
    let nothing = Allow::nothing();
    if let Ok(target) = Target::parse(&text, &nothing) {
        public(&target);
        if let Ok(next) = target.join(&location, &nothing) {
            public(&next);
        }
    }
    if let Some(first) = data.first_chunk::<4>() {
        let four = Ipv4Addr::from(*first);
        let mapped = IpAddr::V6(four.to_ipv6_mapped());
        assert_eq!(special(mapped), special(IpAddr::V4(four)), "a mapped address is what it stands for");
        if let Some(Ok(allow)) = range.map(|range| Allow::new([range.as_ref()])) {
            assert_eq!(allow.admit(mapped, 443).is_ok(), allow.admit(IpAddr::V4(four), 443).is_ok());
        }
    }
});

/// What may be said of every address that is reached.
fn public(target: &Target) {
    let url = target.url();
    assert!(matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none());
    let host = url.host_str().expect("it has a host").trim_matches(['[', ']']);
    if let Ok(address) = host.parse::<IpAddr>() {
        assert_eq!(special(address), None, "{url}");
    }
    let again = Target::parse(url.as_str(), &Allow::nothing()).expect("what is reached is reached as it is written");
    assert_eq!((again.url(), again.port()), (url, target.port()));
}
