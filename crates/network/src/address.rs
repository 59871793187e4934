//! What kind of address an address is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not one of the public internet (the special-purpose registries of IANA, RFC 6890, and what clouds put
/// their machines' credentials behind).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// No address: `0.0.0.0/8`, `::`. Many systems take it for themselves.
    Unspecified,
    /// This machine.
    Loopback,
    /// A network of its own: RFC 1918, and `fec0::/10` as it was once meant.
    Private,
    /// A network of its own over IPv6: `fc00::/7`.
    UniqueLocal,
    /// The same link: `169.254.0.0/16`, `fe80::/10`.
    LinkLocal,
    /// A provider's own network: `100.64.0.0/10`.
    Shared,
    /// Where clouds tell a machine its credentials.
    Metadata,
    /// Several machines.
    Multicast,
    /// All machines of the link.
    Broadcast,
    /// For examples in documents.
    Documentation,
    /// For measuring networks: `198.18.0.0/15`.
    Benchmarking,
    /// IPv4 within IPv6 by a way that nobody serves any more: 6to4, Teredo.
    Tunnel,
    /// Nobody's, or for protocols.
    Reserved,
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::UniqueLocal => "a unique local address",
            Self::LinkLocal => "a link-local address",
            Self::Shared => "an address of a provider's own network",
            Self::Metadata => "a cloud's metadata address",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "a broadcast address",
            Self::Documentation => "an address for documentation",
            Self::Benchmarking => "an address for benchmarks",
            Self::Tunnel => "an address of a tunnel",
            Self::Reserved => "a reserved address",
        })
    }
}

/// What is special about an address; nothing where it is one of the public internet. IPv4 addresses within IPv6 ones
/// (mapped, NAT64, ISATAP) are what they lead to.
pub fn special(address: IpAddr) -> Option<Special> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

/// The IPv4 address that an IPv6 one stands for as it is: mapped (RFC 4291).
pub fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Whether a name is of a network of its own by its looks: all that can be seen where a proxy looks names up.
pub fn is_local_name(name: &str) -> bool {
    const ENDS: [&str; 9] = ["localhost", "local", "internal", "lan", "home", "corp", "intranet", "localdomain", "home.arpa"];
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    !name.contains('.') || ENDS.iter().any(|end| name == *end || name.strip_suffix(end).is_some_and(|rest| rest.ends_with('.')))
}

fn special_v4(address: Ipv4Addr) -> Option<Special> {
    match address.octets() {
        // Amazon's, Google's and Microsoft's; Microsoft's other one, which is public by its looks; Alibaba's; Oracle's.
        [169, 254, 169, 254] | [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192] => Some(Special::Metadata),
        [0, ..] => Some(Special::Unspecified),
        [127, ..] => Some(Special::Loopback),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some(Special::Private),
        [169, 254, ..] => Some(Special::LinkLocal),
        [100, 64..=127, ..] => Some(Special::Shared),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some(Special::Documentation),
        [198, 18..=19, ..] => Some(Special::Benchmarking),
        [224..=239, ..] => Some(Special::Multicast),
        [255, 255, 255, 255] => Some(Special::Broadcast),
        // Protocol assignments, the relays of 6to4, and what was never given out.
        [192, 0, 0, _] | [192, 88, 99, _] | [240..=255, ..] => Some(Special::Reserved),
        _ => None,
    }
}

fn special_v6(address: Ipv6Addr) -> Option<Special> {
    let segments = address.segments();
    // ISATAP (RFC 5214): its router unpacks the IPv4 address, below any prefix.
    if let [0x2000..=0x3fff, _, _, _, 0 | 0x0200, 0x5efe, high, low] = segments
        && let Some(special) = special_v4(v4(high, low))
    {
        return Some(special);
    }
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(Special::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Special::Loopback),
        // Amazon's and Google's.
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254] => Some(Special::Metadata),
        // Mapped, and the well-known prefix of NAT64 (RFC 6052), by which networks without IPv4 reach it.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => special_v4(v4(high, low)),
        // Compatible (deprecated) and translated (RFC 2765): nobody's, whatever is in them.
        [0, 0, 0, 0, 0 | 0xffff, 0, high, low] => special_v4(v4(high, low)).or(Some(Special::Reserved)),
        [0x2001, 0, ..] | [0x2002, ..] => Some(Special::Tunnel),
        [0x2001, second, ..] if second < 0x0200 => Some(Special::Reserved),
        [0x2001, 0x0db8, ..] | [0x3fff, 0x0000..=0x0fff, ..] => Some(Special::Documentation),
        [0x2000..=0x3fff, ..] => None,
        [0xfc00..=0xfdff, ..] => Some(Special::UniqueLocal),
        [0xfe80..=0xfebf, ..] => Some(Special::LinkLocal),
        [0xfec0..=0xfeff, ..] => Some(Special::Private),
        [0xff00..=0xffff, ..] => Some(Special::Multicast),
        _ => Some(Special::Reserved),
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}
