//! Documents and memory, as they can be typed.

use clap::{Args, Subcommand};

use super::Listed;

/// Documents that are looked up for each message.
#[derive(Debug, Subcommand)]
pub(crate) enum Knowledge {
    /// List the folders, and how much of them is indexed
    List(Listed),
    /// Bring the index to what the folders hold, now
    Index {
        /// The folder's name; all unless given
        name: Option<String>,
    },
    /// List the documents of a folder, with what was passed over and why
    Files {
        /// The folder's name
        name: String,
        #[command(flatten)]
        listed: Listed,
    },
    /// Show what documents say to a question
    Search(SearchKnowledge),
}

/// A question to documents.
#[derive(Debug, Args)]
pub(crate) struct SearchKnowledge {
    /// The question
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// The folder's name; all unless given
    #[arg(long = "in", value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) listed: Listed,
}

/// What was remembered of the user.
#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// Print it
    Show,
    /// Change it: in $VISUAL or $EDITOR, or to what is piped in
    Edit,
    /// Forget all of it
    Clear,
}
