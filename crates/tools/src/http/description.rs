//! The text of an OpenAPI description, read as JSON or YAML.

use serde_json::Value;

use crate::error::grouped;

/// The largest description that is read, in bytes.
pub(super) const MAX_BYTES: usize = 32 << 20;
/// How deep a description in YAML may go; the reader of JSON has a limit of its own.
const MAX_DEPTH: usize = 64;
/// The most events of a description in YAML, a scalar being one: what 32 MiB of ordinary lines come to.
const MAX_EVENTS: usize = 6_000_000;
/// The most events that aliases of YAML may repeat.
const MAX_REPEATED: usize = 200_000;
/// References that are followed from one to the next.
const MAX_HOPS: usize = 32;

/// Why a text is no description that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// It is larger than is read.
    #[error("it is larger than {} bytes, the limit", grouped(u64::try_from(MAX_BYTES).unwrap_or(u64::MAX)))]
    TooLarge,
    /// It is no text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It is in no form that is read.
    #[error("it is neither JSON nor YAML that can be read: {0}")]
    NotReadable(String),
    /// It is something else.
    #[error("it is no OpenAPI description: it has no `openapi` with a version")]
    NotOpenApi,
    /// It is of a version that is not read.
    #[error(
        "it is of {0}; OpenAPI 3.0 and later are read. A converter such as `swagger2openapi` makes one of older descriptions"
    )]
    Version(String),
    /// There is nothing in it to call.
    #[error("it has no `paths` with operations")]
    NoPaths,
}

/// A description, with what its version means for its schemas.
#[derive(Debug, Clone)]
pub(super) struct Document {
    root: Value,
    /// OpenAPI 3.0 has schemas of its own; later ones are JSON Schema.
    is_first: bool,
}

/// Why a reference leads to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error("it refers to `{0}`, which is another document: nothing is fetched")]
    Elsewhere(String),
    #[error("it refers to `{0}`, which is not in the description")]
    Missing(String),
    #[error("it refers to `{0}`, which leads back to itself")]
    Circular(String),
}

impl Document {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, DescriptionError> {
        if bytes.len() > MAX_BYTES {
            return Err(DescriptionError::TooLarge);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| DescriptionError::NotText)?;
        let text = text.trim_start_matches('\u{feff}');
        let root = if text.trim_start().starts_with('{') { json(text) } else { yaml(text) }?;
        let version = match (root.get("openapi"), root.get("swagger")) {
            (Some(Value::String(version)), _) => version.clone(),
            // As YAML without quotes.
            (Some(Value::Number(version)), _) => version.to_string(),
            (_, Some(Value::String(version))) => return Err(DescriptionError::Version(format!("Swagger {version}"))),
            (_, Some(Value::Number(version))) => return Err(DescriptionError::Version(format!("Swagger {version}"))),
            _ => return Err(DescriptionError::NotOpenApi),
        };
        let is_known = version == "3" || version.starts_with("3.");
        if !is_known {
            let version: String = version.chars().take(20).collect();
            return Err(DescriptionError::Version(format!("OpenAPI {version}")));
        }
        Ok(Self { root, is_first: version == "3" || version == "3.0" || version.starts_with("3.0.") })
    }

    pub(super) fn root(&self) -> &Value {
        &self.root
    }

    /// Whether its schemas are those of OpenAPI 3.0.
    pub(super) fn is_first(&self) -> bool {
        self.is_first
    }

    /// What a reference within the document leads to.
    pub(super) fn at(&self, reference: &str) -> Result<&Value, Broken> {
        let shown = || reference.chars().take(200).collect::<String>();
        let Some(fragment) = reference.strip_prefix('#') else { return Err(Broken::Elsewhere(shown())) };
        self.root.pointer(&percent_decoded(fragment)).ok_or_else(|| Broken::Missing(shown()))
    }

    /// A value, or what it refers to.
    pub(super) fn resolved<'d>(&'d self, mut value: &'d Value) -> Result<&'d Value, Broken> {
        let mut last = "";
        for _ in 0..MAX_HOPS {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return Ok(value) };
            (value, last) = (self.at(reference)?, reference);
        }
        Err(Broken::Circular(last.chars().take(200).collect()))
    }
}

fn json(text: &str) -> Result<Value, DescriptionError> {
    serde_json::from_str(text).map_err(|error| DescriptionError::NotReadable(error.to_string()))
}

fn yaml(text: &str) -> Result<Value, DescriptionError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_events: MAX_EVENTS,
            max_nodes: MAX_EVENTS,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPEATED },
        strict_booleans: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    };
    let read: Result<Value, _> = serde_saphyr::from_str_with_options(text, options);
    let told = |error: serde_saphyr::Error| error.to_string().chars().take(300).collect();
    let value = read.map_err(|error| DescriptionError::NotReadable(told(error)))?;
    if value.is_object() { Ok(value) } else { Err(DescriptionError::NotOpenApi) }
}

/// The text of a fragment (RFC 6901, section 6); what is no escape stays.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match (first, after) {
            (b'%', [high, low, tail @ ..]) if hex(high).is_some() && hex(low).is_some() => {
                bytes.push(hex(high).unwrap_or_default() << 4 | hex(low).unwrap_or_default());
                rest = tail;
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_and_yaml_are_read_alike() {
        let expected = json!({"openapi": "3.1.0", "paths": {"/a": {"get": {"responses": {"200": {"description": "on"}}}}}});
        let yaml = "openapi: 3.1.0\npaths:\n  /a:\n    get:\n      responses:\n        200:\n          description: on\n";
        for text in [expected.to_string(), yaml.to_owned(), format!("\u{feff}\n {expected}")] {
            let document = Document::read(text.as_bytes()).unwrap();
            assert_eq!((document.root(), document.is_first()), (&expected, false), "{text}");
        }
    }

    #[test]
    fn what_is_no_description_is_told_apart() {
        let error = |text: &[u8]| Document::read(text).map(|_| ()).unwrap_err();
        assert_eq!(error(b"\xff\xfe"), DescriptionError::NotText);
        assert!(matches!(error(b"{\"openapi\": "), DescriptionError::NotReadable(_)));
        assert!(matches!(error(b"a: [b"), DescriptionError::NotReadable(_)));
        assert_eq!(error(b"<html></html>"), DescriptionError::NotOpenApi);
        assert_eq!(error(b""), DescriptionError::NotOpenApi);
        assert_eq!(error(b"swagger: '2.0'"), DescriptionError::Version("Swagger 2.0".into()));
        assert_eq!(error(b"{\"openapi\": \"4.0.0\"}"), DescriptionError::Version("OpenAPI 4.0.0".into()));
        let deep = format!("{{\"openapi\": {}{}}}", "[".repeat(200), "]".repeat(200));
        assert!(matches!(error(deep.as_bytes()), DescriptionError::NotReadable(_)));
        let deep = format!("openapi: {}{}", "[".repeat(200), "]".repeat(200));
        assert!(matches!(error(deep.as_bytes()), DescriptionError::NotReadable(_)));
        let repeated = |n: u32| format!("a{n}: &a{n} [{}]", vec![format!("*a{}", n - 1); 10].join(", "));
        let lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned()].into_iter().chain((1..9).map(repeated));
        let bomb = lines.collect::<Vec<_>>().join("\n");
        assert!(matches!(error(bomb.as_bytes()), DescriptionError::NotReadable(_)));
    }

    #[test]
    fn references_are_followed_within_the_document_alone() {
        let text = json!({"openapi": "3.0.3", "components": {"a/b~c d": {"x": 1}, "one": {"$ref": "#/components/two"}, "two": {"$ref": "#/components/one"}}});
        let document = Document::read(text.to_string().as_bytes()).unwrap();
        let resolved = |reference: &str| document.resolved(&json!({"$ref": reference})).cloned();
        assert_eq!(resolved("#/components/a~1b~0c%20d"), Ok(json!({"x": 1})));
        assert_eq!(resolved("#/components/none"), Err(Broken::Missing("#/components/none".into())));
        assert_eq!(resolved("other.yaml#/a"), Err(Broken::Elsewhere("other.yaml#/a".into())));
        assert!(matches!(resolved("#/components/one"), Err(Broken::Circular(_))));
    }
}
