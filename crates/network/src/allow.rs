//! The addresses that an operator wants reached although they are not public.

use std::net::IpAddr;
use std::str::FromStr;

use crate::{Special, plain, special};

/// What may be reached besides the public internet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allow(Vec<Range>);

/// Addresses, at one port or at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    address: IpAddr,
    /// How many bits of it count.
    bits: u8,
    port: Option<u16>,
}

/// A text that names no addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no address; it must be an address or a range, with a port or without: `127.0.0.1:8080`, `10.1.0.0/16`, `[fd00::1]:443`, `fd00::/8`"
)]
pub struct AllowError {
    text: String,
}

impl Allow {
    /// Nothing but the public internet.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// What each text names: `127.0.0.1:8080`, `10.1.0.0/16`, `[fd00::1]:443`, `fd00::/8`.
    ///
    /// # Errors
    /// The first text that names nothing.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, AllowError> {
        texts.into_iter().map(str::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether this address may be reached at this port.
    ///
    /// # Errors
    /// What it is, where it may not.
    pub fn admit(&self, address: IpAddr, port: u16) -> Result<(), Special> {
        self.admit_at(address, Some(port))
    }

    /// The same, also where the port is not known: then what is allowed at one port alone may not.
    pub(crate) fn admit_at(&self, address: IpAddr, port: Option<u16>) -> Result<(), Special> {
        match special(address) {
            None => Ok(()),
            Some(_) if self.0.iter().any(|range| range.holds(plain(address), port)) => Ok(()),
            Some(special) => Err(special),
        }
    }

    /// Whether a port that is no web server's by its number may be reached: one that the operator wrote down.
    pub fn names_port(&self, port: u16) -> bool {
        self.0.iter().any(|range| range.port == Some(port))
    }
}

impl Range {
    fn holds(&self, address: IpAddr, port: Option<u16>) -> bool {
        if self.port.is_some_and(|only| Some(only) != port) {
            return false;
        }
        let shift = |width: u32| width.saturating_sub(u32::from(self.bits));
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(other)) => {
                (ours.to_bits() ^ other.to_bits()).checked_shr(shift(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(ours), IpAddr::V6(other)) => {
                (ours.to_bits() ^ other.to_bits()).checked_shr(shift(128)).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Range {
    type Err = AllowError;

    fn from_str(text: &str) -> Result<Self, AllowError> {
        read(text.trim()).ok_or_else(|| AllowError { text: text.to_owned() })
    }
}

fn read(text: &str) -> Option<Range> {
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    // The colons of an IPv6 address are not before a port, except after brackets.
    let (range, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (range, after) = rest.split_once(']')?;
            (range, if after.is_empty() { None } else { Some(port(after.strip_prefix(':')?)?) })
        }
        None => match text.split_once(':') {
            Some((range, after)) if !after.contains(':') && !range.is_empty() => (range, Some(port(after)?)),
            Some(_) | None => (text, None),
        },
    };
    let (address, bits) = match range.split_once('/') {
        Some((address, bits)) => (address.parse::<IpAddr>().ok()?, Some(bits.parse::<u8>().ok()?)),
        None => (range.parse::<IpAddr>().ok()?, None),
    };
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(width);
    // A mapped address is written as the one it stands for, since it is compared as that.
    (bits <= width && plain(address) == address).then_some(Range { address, bits, port })
}
