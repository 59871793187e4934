//! Objects within a request. A list would pass for the fields of an object in their order; here it is refused.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::Patch;

/// Reads an object, and nothing else.
pub(crate) fn plain<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Object::deserialize(deserializer).map(|Object(value)| value)
}

/// Reads an object or null.
pub(crate) fn optional<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(Option::<Object<T>>::deserialize(deserializer)?.map(|Object(value)| value))
}

/// Reads a change of an object.
pub(crate) fn patch<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Patch<T>, D::Error> {
    Ok(optional(deserializer)?.map_or(Patch::Clear, Patch::Set))
}

struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use crate::{ConversationPatch, ConversationRequest, McpCompleteRequest};

    #[test]
    fn a_list_does_not_pass_for_the_fields_of_an_object_within_a_request() {
        let refused = |error: serde_json::Error| error.to_string();
        let expected = "invalid type: sequence, expected an object";
        let bodies = [r#"{"settings":[null,null]}"#, r#"{"settings":{"output":["a",{},true]}}"#];
        for body in bodies {
            let error = serde_json::from_str::<ConversationRequest>(body).map_err(refused).unwrap_err();
            assert!(error.starts_with(expected), "{body}: {error}");
            let error = serde_json::from_str::<ConversationPatch>(body).map_err(refused).unwrap_err();
            assert!(error.starts_with(expected), "{body}: {error}");
        }
        let body = r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":["a","b"]}"#;
        let error = serde_json::from_str::<McpCompleteRequest>(body).map_err(refused).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}
