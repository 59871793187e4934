//! Members of a request that a server may refuse and that can be done without.

use std::fmt;
use std::ops::Range;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use turnwright_core::ProviderFailure;

use crate::dialect::HttpRequest;

/// What a refusal of a member says, in lower case, besides naming it as its parameter. A member of an object stands before
/// the object.
const SIGNS: [(&str, &[&str]); 14] = [
    ("stream_options", &["stream_options"]),
    ("reasoning_format", &["reasoning_format"]),
    ("think", &["think"]),
    ("include", &["encrypted content is not supported", "reasoning.encrypted_content"]),
    ("reasoning.summary", &["reasoning.summary", "reasoning summar"]),
    ("reasoning", &["reasoning.effort", "'reasoning'", "`reasoning`", "\"reasoning\""]),
    ("output_config.effort", &["output_config.effort", "effort level", "effort parameter"]),
    ("reasoning_effort", &["reasoning_effort", "reasoningeffort", "reasoning effort"]),
    ("prompt_cache_key", &["prompt_cache_key"]),
    ("max_output_tokens", &TOO_MANY),
    ("max_completion_tokens", &TOO_MANY),
    ("max_tokens", &TOO_MANY),
    ("generationConfig.maxOutputTokens", &TOO_MANY),
    ("generationConfig.thinkingConfig.thinkingLevel", &["thinking level", "thinking_level", "thinkinglevel"]),
];

/// What says that a limit is too large. A limit under a name that the server does not know is another matter: the model would
/// answer without one.
const TOO_MANY: [&str; 4] = [
    "max_tokens is too large",
    "max_completion_tokens is too large",
    "maxoutputtokens value of",
    "the supported range is from",
];

/// A member that a server refused, as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    name: &'static str,
    value: String,
}

impl HttpRequest {
    /// The optional member that `failure` refuses; `None` where it refuses something else.
    pub fn refused(&self, failure: &ProviderFailure) -> Option<Refused> {
        if !matches!(failure.status, Some(400 | 422)) {
            return None;
        }
        let message = failure.message.to_lowercase();
        let param = failure.said.as_ref().and_then(|said| said.param.as_deref()).unwrap_or_default();
        let is_named = |name: &str, signs: &[&str]| {
            let is_param = param.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
            (is_param && signs != TOO_MANY) || signs.iter().any(|sign| message.contains(sign))
        };
        let mut known = SIGNS.iter().filter(|(name, _)| self.optional.contains(name));
        let (name, _) = known.find(|(name, signs)| is_named(name, signs))?;
        let value = self.text().get(member(self.text(), name)?.value)?.to_owned();
        Some(Refused { name, value })
    }

    /// Takes out what was refused, where the request has it and it is the same.
    pub fn leave_out(&mut self, refused: &Refused) -> bool {
        let found = member(self.text(), refused.name).and_then(|found| self.text().get(found.value));
        found == Some(refused.value.as_str()) && self.drop_optional(refused.name)
    }

    /// Takes the optional member `name` out; says whether it was there.
    pub fn drop_optional(&mut self, name: &str) -> bool {
        let Some(found) = self.optional.iter().position(|known| *known == name) else { return false };
        self.optional.remove(found);
        let Some(found) = member(self.text(), name) else { return false };
        let mut body = std::mem::take(&mut self.body).into_vec();
        body.drain(found.whole);
        self.body = body.into();
        true
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_default()
    }
}

/// Where a member stands in a text.
struct Member {
    /// With its name and one comma.
    whole: Range<usize>,
    value: Range<usize>,
}

/// Where the member `name` of the object in `text` stands; `a.b` is the member `b` of the object `a`, and the whole of `a` where
/// that has no other. The text has no white space between its tokens.
fn member(text: &str, name: &str) -> Option<Member> {
    let (first, inner) = name.split_once('.').map_or((name, None), |(first, inner)| (first, Some(inner)));
    let Members(members) = serde_json::from_str(text).ok()?;
    let at = members.iter().position(|(known, _)| known == first)?;
    let value = place(text, members.get(at)?.1);
    let whole = match at.checked_sub(1).and_then(|before| members.get(before)) {
        Some((_, before)) => place(text, before).end..value.end,
        None => 1..value.end + usize::from(members.len() > 1),
    };
    let Some(inner) = inner else { return Some(Member { whole, value }) };
    let shifted = |range: Range<usize>| value.start + range.start..value.start + range.end;
    let found = member(text.get(value.clone())?, inner)?;
    let is_only = found.whole == (1..value.len() - 1);
    Some(Member { whole: if is_only { whole } else { shifted(found.whole) }, value: shifted(found.value) })
}

/// Where `value`, which was read from `text`, stands in it.
pub(crate) fn place(text: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + value.get().len()
}

/// The members of an object, in their order.
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use turnwright_core::{ProviderFailureKind, ProviderSaid};

    use super::*;

    fn request(optional: &[&'static str]) -> HttpRequest {
        let body = r#"{"include":[1],"input":{"reasoning":{}},"reasoning":{"effort":"high","summary":"auto"},"max_tokens":9}"#;
        HttpRequest {
            path: String::new(),
            headers: Vec::new(),
            body: body.as_bytes().to_vec().into(),
            optional: optional.to_vec(),
        }
    }

    fn refusal(message: &str, param: &str) -> ProviderFailure {
        let param = Some(param.to_owned()).filter(|param| !param.is_empty());
        let said = ProviderSaid { param, ..ProviderSaid::default() };
        let kind = ProviderFailureKind::InvalidRequest;
        ProviderFailure { status: Some(400), said: Some(Box::new(said)), ..ProviderFailure::new(kind, message) }
    }

    #[test]
    fn a_member_is_taken_out_wherever_it_stands() {
        let without = |names: &[&str]| {
            let mut request = request(&["include", "reasoning.summary", "reasoning", "max_tokens"]);
            for name in names {
                assert!(request.drop_optional(name), "{name}");
            }
            request.text().to_owned()
        };
        let end = r#""input":{"reasoning":{}},"reasoning":{"effort":"high"},"max_tokens":9}"#;
        assert_eq!(without(&["include", "reasoning.summary"]), format!("{{{end}"));
        assert_eq!(without(&["reasoning.summary", "reasoning", "max_tokens"]), r#"{"include":[1],"input":{"reasoning":{}}}"#);
        assert!(!request(&[]).drop_optional("include"));
    }

    #[test]
    fn an_object_goes_with_its_only_member() {
        let without = |body: &str| {
            let name = "output_config.effort";
            let mut request = HttpRequest { body: body.as_bytes().to_vec().into(), ..request(&[name]) };
            assert!(request.drop_optional(name), "{body}");
            request.text().to_owned()
        };
        assert_eq!(without(r#"{"a":1,"output_config":{"effort":"high"},"b":2}"#), r#"{"a":1,"b":2}"#);
        assert_eq!(without(r#"{"output_config":{"effort":"high"},"b":2}"#), r#"{"b":2}"#);
        assert_eq!(without(r#"{"output_config":{"effort":"high"}}"#), "{}");
        let held = r#"{"output_config":{"effort":"high","format":{"effort":1}}}"#;
        assert_eq!(without(held), r#"{"output_config":{"format":{"effort":1}}}"#);
    }

    #[test]
    fn a_refusal_names_a_member_by_its_parameter_or_in_words() {
        let all = ["include", "reasoning.summary", "reasoning", "max_tokens"];
        for (message, param, name) in [
            ("Encrypted content is not supported with this model.", "include", Some("include")),
            ("Encrypted content is not supported with this model.", "", Some("include")),
            ("Your organization must be verified to generate reasoning summaries.", "", Some("reasoning.summary")),
            ("Unsupported value: 'max' is not supported with this model.", "reasoning.effort", Some("reasoning")),
            ("max_tokens is too large: 9. This model supports at most 4 completion tokens.", "max_tokens", Some("max_tokens")),
            ("Unsupported parameter: use 'max_completion_tokens' instead.", "max_tokens", None),
            ("Unknown tool.", "tools[0]", None),
        ] {
            let found = request(&all).refused(&refusal(message, param));
            assert_eq!(found.map(|refused| refused.name), name, "{message}");
        }
        let effort = r#"{"reasoning_effort":"high"}"#.as_bytes().to_vec();
        let effort = HttpRequest { body: effort.into(), ..request(&["reasoning_effort"]) };
        let failure = refusal("Model grok-code-fast-1 does not support parameter reasoningEffort.", "");
        assert_eq!(effort.refused(&failure).map(|refused| refused.name), Some("reasoning_effort"));
        assert_eq!(request(&["max_tokens"]).refused(&refusal("no", "include")), None);
        let failed = ProviderFailure { status: Some(500), ..refusal("no", "include") };
        assert_eq!(request(&all).refused(&failed), None);
    }

    #[test]
    fn what_was_refused_is_left_out_only_as_it_was() {
        let mut known = request(&["reasoning"]);
        let refused = known.refused(&refusal("no", "reasoning.effort")).unwrap();
        assert!(known.leave_out(&refused));
        let mut other = request(&["reasoning"]);
        other.body = other.text().replace("high", "low").into_bytes().into();
        assert!(!other.leave_out(&refused));
    }
}
