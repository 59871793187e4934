//! Values of the wire, read as leniently as servers are careless: `null`, a number or an object where a text was meant is
//! never an error.
//!
//! Texts are borrowed from the event where they hold no escapes.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::json;

/// A text, or nothing.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Text<'a>(Option<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// The text, where it is not empty.
    pub(crate) fn filled(self) -> Option<Cow<'a, str>> {
        self.0.filter(|text| !text.is_empty())
    }

    /// The text, where there is one.
    pub(crate) fn any(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl<'a> From<Cow<'a, str>> for Text<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self(Some(text))
    }
}

impl<'a> From<Option<Cow<'a, str>>> for Text<'a> {
    fn from(text: Option<Cow<'a, str>>) -> Self {
        Self(text)
    }
}

/// What stands where a text is meant.
enum Scalar<'a> {
    Text(Cow<'a, str>),
    Nothing,
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_string<E>(self, text: String) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text)))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(number.to_string())))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(number.to_string())))
    }
    fn visit_f64<E>(self, _: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Nothing)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Nothing)
    }
    fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Nothing)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar<'de>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Nothing)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Nothing)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match deserializer.deserialize_any(ScalarVisitor)? {
            Scalar::Text(text) => Some(text),
            Scalar::Nothing => None,
        }))
    }
}

/// A number of things, or nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) Option<u64>);

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }
    fn visit_u64<E>(self, number: u64) -> Result<Count, E> {
        Ok(Count(Some(number)))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Count, E> {
        Ok(Count(u64::try_from(number).ok()))
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, and a count is small")]
    fn visit_f64<E>(self, number: f64) -> Result<Count, E> {
        Ok(Count((number >= 0.0).then_some(number as u64)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Count, E> {
        Ok(Count(text.parse().ok()))
    }
    fn visit_bool<E>(self, _: bool) -> Result<Count, E> {
        Ok(Count(None))
    }
    fn visit_unit<E>(self) -> Result<Count, E> {
        Ok(Count(None))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Count, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Count, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

/// A price in dollars: a number, or an object with a `total_cost`.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Cost(pub(crate) Option<f64>);

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let dollars = value.as_f64().or_else(|| value.get("total_cost").and_then(serde_json::Value::as_f64));
        Ok(Self(dollars.filter(|dollars| *dollars >= 0.0)))
    }
}

impl Cost {
    /// With what the vendor behind a gateway charges besides, where the key is the vendor's own (OpenRouter's `is_byok`): the cost is the
    /// gateway's fee alone then.
    pub(crate) fn with_own_key(self, is_own_key: bool, details: &CostDetails) -> Option<f64> {
        match details.upstream_inference_cost.0.filter(|_| is_own_key) {
            Some(upstream) => Some(self.0.unwrap_or_default() + upstream),
            None => self.0,
        }
    }
}

/// Of what a cost is made up, as OpenRouter says it.
#[derive(Debug, Default, Clone, Copy, serde::Deserialize)]
#[serde(default)]
pub(crate) struct CostDetails {
    upstream_inference_cost: Cost,
}

/// A call's arguments: a text, or an object that should have been one.
#[derive(Debug, Default, Clone)]
pub(crate) struct Arguments<'a>(Option<&'a RawValue>);

impl<'a> Arguments<'a> {
    /// The text of the arguments; an object's JSON; empty for nothing and for an empty object, which means the same.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        let raw = self.0.map_or("", RawValue::get);
        match raw.as_bytes().first() {
            Some(b'"') => match serde_json::from_str::<Text<'a>>(raw) {
                Ok(text) => text.filled().unwrap_or_default(),
                Err(_) => {
                    json::value(raw).ok().and_then(|text| Some(Cow::Owned(text.as_str()?.to_owned()))).unwrap_or_default()
                }
            },
            Some(b'{') if raw.bytes().filter(|byte| !byte.is_ascii_whitespace()).count() > 2 => Cow::Borrowed(raw),
            _ => Cow::Borrowed(""),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'a RawValue>::deserialize(deserializer).map(|raw| Self(Some(raw)))
    }
}

/// An object, or something else that is passed over.
#[derive(Debug)]
pub(crate) struct Maybe<T>(pub(crate) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        OneOrMany::<T>::deserialize(deserializer).map(|many| Self(many.0.into_iter().next()))
    }
}

/// A list of objects, one object, or nothing.
#[derive(Debug)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

struct ManyVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ManyVisitor<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(OneOrMany::default())
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(OneOrMany::default())
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(OneOrMany::default())
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(OneOrMany::default())
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(OneOrMany::default())
    }
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(OneOrMany::default())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut many = Vec::new();
        while let Some(one) = list.next_element()? {
            many.push(one);
        }
        Ok(OneOrMany(many))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(de::value::MapAccessDeserializer::new(map)).map(|one| OneOrMany(vec![one]))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ManyVisitor(PhantomData))
    }
}
