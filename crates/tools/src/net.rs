//! Reaching what a model, a page or a foreign document names, and nothing of the machine or its network.
//!
//! What an address is ([`special`]) and whether it may be reached ([`Allow`]) are decisions of values. `Reach` carries them out:
//! it looks names up itself, keeps only what may be reached, and connects to exactly that; each redirect is looked at anew. So
//! a name server that answers differently the next time changes nothing. *Not here:* addresses that an operator wrote into the
//! configuration for a service of theirs (`Named`), which are reached as they are.

mod answer;
mod clients;
mod lookup;
mod named;
mod packed;
mod reach;
mod refusal;
mod target;

pub use clients::Clients;
pub use lookup::{Lookup, SystemLookup};
pub use reach::Way;
pub use refusal::Refusal;
pub use target::Target;
pub use turnwright_network::{Allow, AllowError, Special, special};

pub(crate) use answer::{Answer, AnswerLimits};
pub(crate) use named::Named;
pub(crate) use reach::{Asking, Failure, Reach, Step};
