//! Where a list of conversations goes on: at a time and a name, so that it does where the conversation is changed or gone.

use std::fmt;
use std::str::FromStr;

use turnwright_core::ConversationId;

/// The place of a conversation in a list, the one with the newest entry first; among those of one time the name decides. As text
/// it is a cursor, `TIME_NAME`.
///
/// What stays as it is between two pages is on exactly one of them. What is changed meanwhile goes to the front of the list: a page
/// that comes later has it no more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When its newest entry was stored, in milliseconds since 1970 UTC.
    pub updated_at_ms: u64,
    /// Its name.
    pub id: ConversationId,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.updated_at_ms, self.id)
    }
}

/// A text that is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no cursor of a list of conversations, `TIME_NAME`")]
pub struct NoPlace;

impl FromStr for Place {
    type Err = NoPlace;
    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let (time, id) = text.split_once('_').ok_or(NoPlace)?;
        let place = Self { updated_at_ms: time.parse().map_err(|_| NoPlace)?, id: id.parse().map_err(|_| NoPlace)? };
        // A number has other forms too, which are not ours.
        if place.to_string() == text { Ok(place) } else { Err(NoPlace) }
    }
}

#[cfg(test)]
mod tests {
    use super::{NoPlace, Place};

    #[test]
    fn a_place_is_read_as_it_is_written_and_nothing_else_is_one() {
        let place = Place { updated_at_ms: 1_764_000_000_000, id: "conv_a".parse().unwrap() };
        assert_eq!(place.to_string().parse(), Ok(place));
        for wrong in ["", "bogus", "conv_a", "5_", "_a", "+5_a", "05_a", "-5_a", "5_a b", "99999999999999999999_a"] {
            assert_eq!(wrong.parse::<Place>(), Err(NoPlace), "{wrong}");
        }
    }
}
