//! What each keyword holds.

/// Where schemas are in a keyword's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// It is one.
    Schema,
    /// It is a list of them.
    List,
    /// It is an object of them.
    Map,
    /// It is one, or a list of them (`items` before draft 2020-12).
    SchemaOrList,
    /// It is an object of schemas and of lists of names (`dependencies` before draft 2019-09).
    Dependencies,
    /// There are none.
    Nothing,
}

pub(super) fn holds(keyword: &str) -> Holds {
    match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Holds::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::List,
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => Holds::Map,
        "items" => Holds::SchemaOrList,
        "dependencies" => Holds::Dependencies,
        _ => Holds::Nothing,
    }
}

/// Keywords that name schemas or speak to their authors. A lowered schema needs none of them.
pub(super) fn is_meta(keyword: &str) -> bool {
    matches!(
        keyword,
        "$anchor"
            | "$comment"
            | "$defs"
            | "$dynamicAnchor"
            | "$id"
            | "$recursiveAnchor"
            | "$schema"
            | "$vocabulary"
            | "definitions"
    )
}

/// Keywords that refer to other schemas.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Keywords that accept and refuse nothing.
pub(super) fn is_annotation(keyword: &str) -> bool {
    matches!(keyword, "default" | "deprecated" | "description" | "examples" | "example" | "readOnly" | "title" | "writeOnly")
}

/// The types of JSON Schema.
pub(super) const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// The type that alone a keyword speaks about.
pub(super) fn type_of(keyword: &str) -> Option<&'static str> {
    match keyword {
        "additionalProperties"
        | "dependentRequired"
        | "dependentSchemas"
        | "maxProperties"
        | "minProperties"
        | "patternProperties"
        | "properties"
        | "propertyNames"
        | "required"
        | "unevaluatedProperties" => Some("object"),
        "contains" | "items" | "maxContains" | "maxItems" | "minContains" | "minItems" | "prefixItems" | "unevaluatedItems"
        | "uniqueItems" => Some("array"),
        "contentEncoding" | "contentMediaType" | "contentSchema" | "maxLength" | "minLength" | "pattern" => Some("string"),
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" | "multipleOf" => Some("number"),
        _ => None,
    }
}
