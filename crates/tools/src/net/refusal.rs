//! Why an address is not reached, in words for a model.

use std::net::IpAddr;

use turnwright_network::{Allow, Special};

/// Why an address is not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The text is no URL.
    #[error("{text:?} is no address of a page ({reason}); give a whole one, such as `https://example.org/page`")]
    NotAUrl {
        /// The text, shortened.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Neither `http` nor `https`.
    #[error("`{scheme}:` cannot be fetched; only `http:` and `https:` can")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// There is a user or a password in it.
    #[error("the address holds a user or a password before `@`; leave them out")]
    UserInfo,
    /// Its port belongs to another protocol.
    #[error("port {port} is not a web server's; only pages can be fetched")]
    Port {
        /// The port.
        port: u16,
    },
    /// The address itself is not public.
    #[error(
        "{address} is {special}; only public addresses are reached. Do not try other spellings of it: ask the person, who can allow it in the configuration"
    )]
    Address {
        /// The address.
        address: IpAddr,
        /// What it is.
        special: Special,
    },
    /// The name leads to nothing that is public.
    #[error(
        "`{name}` leads to {address}, which is {special}; only public addresses are reached. Do not try other names for it: ask the person, who can allow it in the configuration"
    )]
    Name {
        /// The name.
        name: String,
        /// An address that it leads to.
        address: IpAddr,
        /// What that is.
        special: Special,
    },
    /// The name leads nowhere.
    #[error("there is no host `{name}`; look for its right name, for instance with a search")]
    NoSuchName {
        /// The name.
        name: String,
    },
    /// A name of the own network, where a proxy looks names up and the address cannot be seen.
    #[error("`{name}` is a name of a network of its own; only public names are reached")]
    LocalName {
        /// The name.
        name: String,
    },
}

impl Refusal {
    /// [`Refusal::Address`] unless this address may be reached at this port.
    pub(super) fn unless(allow: &Allow, address: IpAddr, port: u16) -> Result<(), Self> {
        allow.admit(address, port).map_err(|special| Self::Address { address, special })
    }
}
