//! The Agent Client Protocol, version 1, over standard input and output: what editors speak to agents.
//!
//! A session of the protocol is a conversation. [`agent`] answers the client's requests, [`sessions`] tells each open session what
//! happens in its conversation, [`prompting`] runs one prompt as a turn and asks the client what a person must decide, [`updates`] folds engine events into what the client shows. Not here: anything
//! that decides about a turn. Standard output belongs to the protocol; the log goes to standard error.

mod agent;
mod before;
mod changes;
mod choices;
mod in_hand;
mod input;
mod prompting;
mod sessions;
mod started;
mod updates;

pub(crate) use agent::serve;
