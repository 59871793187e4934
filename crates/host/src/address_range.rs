//! Ranges of internet addresses.

use std::net::IpAddr;
use std::str::FromStr;

/// Addresses that begin with the same bits, written `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    first: u128,
    mask: u128,
    is_v4: bool,
}

/// A text is no range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an address or a range, such as `127.0.0.1` or `10.0.0.0/8`, without bits beyond its length")]
pub struct AddressRangeError;

impl AddressRange {
    /// Whether `address` is one of these; one of IPv4 that is written as IPv6 is taken for what it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.is_v4 && bits(address) & self.mask == self.first
    }
}

impl FromStr for AddressRange {
    type Err = AddressRangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| AddressRangeError)?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let is_number = |length: &&str| !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length = match length {
            Some(length) => Some(length).filter(is_number).and_then(|length| length.parse().ok()).ok_or(AddressRangeError)?,
            None => all,
        };
        let beyond: u32 = u32::checked_sub(all, length).ok_or(AddressRangeError)?;
        // Beside an address of IPv4 the higher bits are zero, in both.
        let mask = u128::MAX.checked_shl(beyond).unwrap_or(0);
        let first = bits(address);
        if first & mask == first { Ok(Self { first, mask, is_v4: address.is_ipv4() }) } else { Err(AddressRangeError) }
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_begins_with_its_bits() {
        let table = [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1/32", "127.0.0.2", false),
            ("10.0.0.0/8", "10.255.1.2", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("0.0.0.0/0", "203.0.113.7", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "127.0.0.1", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::1", "::1", true),
        ];
        for (range, address, expected) in table {
            let range: AddressRange = range.parse().unwrap();
            assert_eq!(range.contains(address.parse().unwrap()), expected, "{range:?} {address}");
        }
        for wrong in
            ["", "localhost", "10.0.0.1/8", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "10.0.0/8", "10.0.0.0/8/8"]
        {
            assert_eq!(wrong.parse::<AddressRange>(), Err(AddressRangeError), "{wrong}");
        }
    }
}
