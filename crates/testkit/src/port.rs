//! Ports of this machine that nobody else takes while a test has them.

use std::hash::{BuildHasher, RandomState};
use std::io::{Error, Result};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

/// Below those that Linux gives to whoever asks for any (32768 to 60999 unless set otherwise): a port that was only free a moment ago
/// is soon another's.
const RANGE: std::ops::Range<u16> = 10_000..20_000;

/// A TCP port on loopback for a program that a test starts, or at which nobody is to listen. Other tests get other ones until it is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// UDP of the same number, bound: the mark that it is taken, which the system removes with the process.
    _mark: UdpSocket,
}

impl Port {
    /// A port that nobody listens at.
    ///
    /// # Errors
    /// Where all are taken.
    pub fn reserve() -> Result<Self> {
        let count = RANGE.end - RANGE.start;
        let first = u16::try_from(RandomState::new().hash_one(()) % u64::from(count)).unwrap_or_default();
        (0..count)
            .find_map(|step| Self::take(RANGE.start + (first + step) % count))
            .ok_or_else(|| Error::other(format!("none of the ports {RANGE:?} is free")))
    }

    fn take(number: u16) -> Option<Self> {
        let mark = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        Some(Self { number, _mark: mark })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// `127.0.0.1` with its number.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_one_holders_until_it_is_dropped() {
        let port = Port::reserve().unwrap();
        assert!(Port::take(port.number()).is_none());
        let number = port.number();
        drop(port);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, number)).unwrap();
        assert!(Port::take(number).is_none(), "somebody listens there");
        drop(listener);
    }
}
