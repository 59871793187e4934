//! What a reference means: identifiers, anchors and pointers within one schema.
//!
//! Nothing is fetched. A reference to another document is one to nothing, but for the meta-schemas, which every reader knows.

use std::collections::HashMap;

use serde_json::Value;

use super::Object;
use super::keyword::{Holds, holds};

/// The schemas that have a name.
#[derive(Debug)]
pub(super) struct Resources<'v> {
    root: &'v Value,
    by_id: HashMap<String, &'v Value>,
    /// By the identifier of their document and their name.
    anchors: HashMap<(String, String), &'v Value>,
    draft: Draft,
}

/// What of a schema's draft changes the meaning of references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Draft {
    /// Up to draft 4: `id` names a schema, and what stands beside a `$ref` says nothing.
    UpTo4,
    /// Drafts 6 and 7: what stands beside a `$ref` says nothing.
    UpTo7,
    /// From draft 2019-09.
    Modern,
}

/// What a reference refers to.
#[derive(Debug)]
pub(super) enum Target<'v> {
    /// A schema, and the identifier that references in it start from.
    Schema(&'v Value, String),
    /// The schema of schemas.
    MetaSchema,
}

impl Draft {
    fn of(root: &Value) -> Self {
        let schema = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let is = |draft: &str| schema.contains(draft);
        match () {
            () if is("draft-03") || is("draft-04") => Self::UpTo4,
            () if is("draft-06") || is("draft-07") => Self::UpTo7,
            () => Self::Modern,
        }
    }

    /// Whether `id` names a schema.
    pub(super) fn names_by_id(self) -> bool {
        match self {
            Self::UpTo4 => true,
            Self::UpTo7 | Self::Modern => false,
        }
    }

    /// Whether what stands beside a `$ref` is ignored.
    pub(super) fn ignores_siblings(self) -> bool {
        match self {
            Self::UpTo4 | Self::UpTo7 => true,
            Self::Modern => false,
        }
    }
}

impl<'v> Resources<'v> {
    pub(super) fn of(root: &'v Value) -> Self {
        let draft = Draft::of(root);
        let mut resources = Self { root, by_id: HashMap::new(), anchors: HashMap::new(), draft };
        resources.index(root, "");
        resources
    }

    pub(super) fn draft(&self) -> Draft {
        self.draft
    }

    /// The identifier that references in a schema start from, where they start from `base` around it.
    pub(super) fn base(&self, members: &Object, base: &str) -> String {
        match self.id(members) {
            Some(id) if !id.starts_with('#') => join(base, id.split('#').next().unwrap_or_default()),
            _ => base.to_owned(),
        }
    }

    fn id<'m>(&self, members: &'m Object) -> Option<&'m str> {
        let keyword = match self.draft {
            Draft::UpTo4 => "id",
            Draft::UpTo7 | Draft::Modern => "$id",
        };
        members.get(keyword).and_then(Value::as_str)
    }

    /// Of two schemas with one name the later counts, as for whoever validates the arguments.
    fn index(&mut self, value: &'v Value, base: &str) {
        let Value::Object(members) = value else { return };
        let inner = self.base(members, base);
        if inner != base {
            self.by_id.insert(inner.clone(), value);
        }
        let old_anchor = self.id(members).and_then(|id| id.strip_prefix('#'));
        let anchors = ["$anchor", "$dynamicAnchor"].map(|keyword| members.get(keyword).and_then(Value::as_str));
        for name in anchors.into_iter().flatten().chain(old_anchor) {
            self.anchors.insert((inner.clone(), name.to_owned()), value);
        }
        for (keyword, value) in members {
            match (holds(keyword), value) {
                (Holds::Schema | Holds::SchemaOrList, Value::Object(_)) => self.index(value, &inner),
                (Holds::List | Holds::SchemaOrList, Value::Array(items)) => {
                    for item in items {
                        self.index(item, &inner);
                    }
                }
                (Holds::Map | Holds::Dependencies, Value::Object(all)) => {
                    for value in all.values() {
                        self.index(value, &inner);
                    }
                }
                _ => {}
            }
        }
    }

    /// What `reference` refers to in a schema whose references start from `base`.
    ///
    /// # Errors
    /// In words for people, that there is no such schema.
    pub(super) fn resolve(&self, base: &str, reference: &str) -> Result<Target<'v>, String> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let document = if address.is_empty() { base.to_owned() } else { join(base, address) };
        if is_meta_schema(&document) && !self.by_id.contains_key(&document) {
            return Ok(Target::MetaSchema);
        }
        let found = self.by_id.get(&document).copied().or_else(|| document.is_empty().then_some(self.root));
        let Some(start) = found else {
            return Err(format!("`{reference}` is another document; only references within the schema are followed"));
        };
        let fragment = percent_decoded(fragment);
        let unknown = || format!("`{reference}` refers to nothing in the schema");
        if fragment.is_empty() {
            return Ok(Target::Schema(start, document));
        }
        let Some(pointer) = fragment.strip_prefix('/') else {
            let found = self.anchors.get(&(document.clone(), fragment)).ok_or_else(unknown)?;
            return Ok(Target::Schema(found, document));
        };
        let (mut value, mut base) = (start, document);
        for (step, segment) in pointer.split('/').enumerate() {
            if let (Value::Object(members), true) = (value, step > 0) {
                base = self.base(members, &base);
            }
            let segment = segment.replace("~1", "/").replace("~0", "~");
            let next = match value {
                Value::Object(members) => members.get(&segment),
                Value::Array(items) => segment.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => None,
            };
            value = next.ok_or_else(unknown)?;
        }
        Ok(Target::Schema(value, base))
    }
}

fn is_meta_schema(address: &str) -> bool {
    let rest = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://"));
    rest.is_some_and(|rest| {
        let name = rest.strip_prefix("json-schema.org/").unwrap_or_default();
        name.starts_with("draft") && name.ends_with("/schema") || name == "schema"
    })
}

/// `address` as seen from `base` (RFC 3986, section 5.2, as far as identifiers of schemas use it).
fn join(base: &str, address: &str) -> String {
    if address.is_empty() {
        return base.to_owned();
    }
    let has_scheme = address.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    if has_scheme {
        return address.to_owned();
    }
    let (authority, path) = match base.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split('/').next().unwrap_or_default();
            (format!("{scheme}://{host}"), rest.strip_prefix(host).unwrap_or_default())
        }
        None => (String::new(), base),
    };
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let joined = if address.starts_with('/') { address.to_owned() } else { format!("{folder}/{address}") };
    let mut segments: Vec<&str> = Vec::new();
    for segment in joined.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    format!("{authority}/{}", segments.join("/"))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match tail {
            [high, low, tail @ ..] if *first == b'%' => {
                if let (Some(high), Some(low)) = (hex(high), hex(low)) {
                    bytes.push(high * 16 + low);
                    rest = tail;
                    continue;
                }
            }
            _ => {}
        }
        bytes.push(*first);
        rest = tail;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
