//! Names of things: conversations, entries, messages, turns, calls, drivers.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that does not name what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not {expected}")]
pub struct IdError {
    value: String,
    expected: &'static str,
}

impl IdError {
    pub(crate) fn new(value: &str, expected: &'static str) -> Self {
        Self { value: value.chars().take(140).collect(), expected }
    }
}

/// A conversation's name: 1 to 128 characters of `[A-Za-z0-9._:-]`, chosen by whoever creates it. Not `.` and `..`, which
/// no path of a URL can hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ConversationId(String);

impl ConversationId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ConversationId {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        let fits = (1..=128).contains(&value.len())
            && !matches!(value, "." | "..")
            && value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'));
        if fits {
            Ok(Self(value.to_owned()))
        } else {
            Err(IdError::new(value, "a conversation id (1 to 128 characters of A-Z a-z 0-9 . _ : -, not `.` or `..`)"))
        }
    }
}

impl<'de> Deserialize<'de> for ConversationId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Somebody to whom conversations belong: 1 to 64 characters of `[A-Za-z0-9_-]`, never given twice. What people call
/// themselves is not it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct UserId(Arc<str>);

impl UserId {
    /// Whoever sits at this machine: the one user where there are no logins, and the owner of all that was made without.
    pub const LOCAL: &str = "local";

    /// Whoever sits at this machine.
    pub fn local() -> Self {
        Self(Self::LOCAL.into())
    }

    /// Whether it is [`UserId::LOCAL`].
    pub fn is_local(&self) -> bool {
        *self.0 == *Self::LOCAL
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for UserId {
    fn default() -> Self {
        Self::local()
    }
}

impl FromStr for UserId {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        let fits =
            (1..=64).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        if fits {
            Ok(Self(value.into()))
        } else {
            Err(IdError::new(value, "a user id (1 to 64 characters of A-Z a-z 0-9 _ -)"))
        }
    }
}

impl<'de> Deserialize<'de> for UserId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The place of an entry in its journal, counted from 1 without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(NonZeroU64);

impl Seq {
    /// The first entry's place.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// The place with this number; `None` for 0.
    pub fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// The number, 1 or more.
    pub fn get(self) -> u64 {
        self.0.get()
    }

    /// The place after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A number as [`fmt::Display`] writes it: no sign, no zero in front, so that a name has one spelling.
fn number<T: FromStr>(digits: &str) -> Option<T> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits.len() == 1 || !digits.starts_with('0'));
    if is_plain { digits.parse().ok() } else { None }
}

/// Reads a name from its text without a copy.
struct FromText<T> {
    expected: &'static str,
    of: PhantomData<T>,
}

impl<T: FromStr<Err = IdError>> serde::de::Visitor<'_> for FromText<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }
    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<T, E> {
        value.parse().map_err(E::custom)
    }
}

macro_rules! seq_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Seq);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(value: &str) -> Result<Self, IdError> {
                value
                    .strip_prefix($prefix)
                    .and_then(number)
                    .and_then(Seq::new)
                    .map(Self)
                    .ok_or_else(|| IdError::new(value, $expected))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(FromText { expected: $expected, of: PhantomData })
            }
        }
    };
}

seq_id! {
    /// A turn, named by the entry of the user message that opened it: `turn_12`. Unique within its conversation.
    TurnId, "turn_", "a turn id (turn_ and a number)"
}

seq_id! {
    /// A message, named by its entry: `msg_12`. Unique within its conversation.
    MessageId, "msg_", "a message id (msg_ and a number)"
}

/// A tool call, named by its message's entry and its index among that message's calls: `call_13_0`.
///
/// Ours, since providers repeat or omit theirs. At most 40 characters, so every provider takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    /// The entry of the assistant message that asked for the call.
    pub message: Seq,
    /// The call's index among the calls of that message, from 0.
    pub index: u32,
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call_{}_{}", self.message, self.index)
    }
}

impl FromStr for CallId {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        let parts = value.strip_prefix("call_").and_then(|rest| rest.split_once('_'));
        parts
            .and_then(|(message, index)| {
                let message = number(message).and_then(Seq::new)?;
                Some(Self { message, index: number(index)? })
            })
            .ok_or_else(|| IdError::new(value, "a call id (call_, a number, _, a number)"))
    }
}

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(FromText { expected: "a call id", of: PhantomData })
    }
}

/// A question of a tool, named by its call and its number among all that the call asks: `question_13_0_2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ElicitationId {
    /// The call that asks.
    pub call: CallId,
    /// The question's number among those of the call, from 0.
    pub index: u32,
}

impl fmt::Display for ElicitationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "question_{}_{}_{}", self.call.message, self.call.index, self.index)
    }
}

impl FromStr for ElicitationId {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        let named = |numbers: &str| {
            let mut parts = numbers.split('_');
            let message = number(parts.next()?).and_then(Seq::new)?;
            let call = CallId { message, index: number(parts.next()?)? };
            let question = Self { call, index: number(parts.next()?)? };
            parts.next().is_none().then_some(question)
        };
        value
            .strip_prefix("question_")
            .and_then(named)
            .ok_or_else(|| IdError::new(value, "a question id (question_ and three numbers with _ between them)"))
    }
}

impl Serialize for ElicitationId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ElicitationId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(FromText { expected: "a question id", of: PhantomData })
    }
}

/// A question whether a call may run, named by its call and its number among all that people are asked about the call: `appr_13_0` is the
/// first, `appr_13_0-2` the next. So an answer to one is none to what was asked after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApprovalId {
    /// The call that it is about.
    pub call: CallId,
    /// Its number, from 1: one more than were decided about the call before it, by rules too.
    pub number: u32,
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "appr_{}_{}", self.call.message, self.call.index)?;
        if self.number > 1 { write!(f, "-{}", self.number) } else { Ok(()) }
    }
}

impl Serialize for ApprovalId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for ApprovalId {
    type Err = IdError;

    fn from_str(value: &str) -> Result<Self, IdError> {
        let named = |numbers: &str| {
            let (message, rest) = numbers.split_once('_')?;
            let (index, counted) = match rest.split_once('-') {
                Some((index, counted)) => (index, number(counted).filter(|counted| *counted > 1)?),
                None => (rest, 1),
            };
            let call = CallId { message: number(message).and_then(Seq::new)?, index: number(index)? };
            Some(Self { call, number: counted })
        };
        value
            .strip_prefix("appr_")
            .and_then(named)
            .ok_or_else(|| IdError::new(value, "an approval id (appr_, two numbers with _ between them, -2 for the second)"))
    }
}

/// A process that drives turns. Whether it is still alive is the store's to say.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DriverId(pub String);

impl fmt::Display for DriverId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
