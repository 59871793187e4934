//! Values that are used but never shown.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use turnwright_core::secrets::{OfPath, Secrets, given_in_argument, in_addresses};

/// What stands for a secret wherever it is shown.
pub(crate) const MASK: &str = "***";

/// A value that is shown as `***`, both as `Debug` and serialized; an empty one is shown as empty.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps `value` from being shown.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for whoever sends it where it belongs.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn shown(&self) -> &'static str {
        if self.is_empty() { "" } else { MASK }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.shown(), f)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "password" })
    }
}

/// A text without what may be secret in its URLs: `postgres://user:***@host/name`, `https://***@host/v1?key=***`. Over
/// HTTP a user's name may be a token. All else stays as it is.
pub(crate) fn without_secrets(text: &str) -> String {
    in_addresses(text, OfPath::Nothing, |_| MASK.to_owned())
}

/// An argument of a program without what may be secret in it; it may have its name before it, as in `--token x`.
pub(crate) fn argument_without_secrets(before: &str, argument: &str) -> String {
    let secrets = given_in_argument(before, argument);
    let secrets = secrets.iter().filter(|secret| secret.len() >= Secrets::MIN_BYTES);
    secrets.fold(without_secrets_and_keys(argument), |shown, secret| shown.replace(secret, MASK))
}

/// The same, and without the parts of paths that look like keys.
pub(crate) fn without_secrets_and_keys(text: &str) -> String {
    in_addresses(text, OfPath::Keys, |_| MASK.to_owned())
}
