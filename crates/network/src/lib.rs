//! How requests leave this machine: through which proxy, and which authorities vouch for the servers there.
//!
//! The one place where HTTP clients begin. Whoever asks over HTTP is handed a [`Network`], begins a client with
//! [`Network::client_for`] one address or [`Network::client`] for any, adds what is its own (time limits, headers), and has it
//! [`made`]. What fails is told by [`Network::reason`], or by [`reason`] where no network is at hand. What an address is says [`special`].
//! Who is kept from what is not public is handed a network of [`Network::kept_outside`]. *Not here:* who is asked, who is kept outside, and the
//! environment.

mod address;
mod allow;
mod authorities;
mod client;
mod outside;
mod proxy;
mod reason;

pub use address::{Special, is_local_name, plain, special};
pub use allow::{Allow, AllowError};
pub use authorities::AuthoritiesError;
pub use client::{Network, is_loopback, made};
pub use outside::{Kept, Outside, OutsideError};
pub use proxy::{Proxies, ProxyAddress, ProxyError};
pub use reason::{Reason, known_reason, reason};
