//! How large and how deep schemas may be.

/// Nested arrays and objects of a schema; the limit of the JSON readers on both sides.
pub(super) const MAX_JSON_DEPTH: usize = 127;
/// Bytes of a schema's names and texts.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// Schemas within schemas of a lowered one. Each takes up to four levels of JSON.
pub(super) const MAX_LEVELS: usize = 28;
/// Nested arrays and objects of a value in `enum`, `const`, `default` or `examples`.
pub(super) const MAX_LITERAL_DEPTH: usize = 8;
/// Bytes of a `description`.
pub(super) const MAX_DESCRIPTION_BYTES: usize = 8 << 10;

/// How often a lowered schema is lowered again until it stays as it is.
pub(super) const MAX_ROUNDS: usize = 8;

/// What putting references in place may cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expansion {
    /// How often the same target may be open within itself.
    pub(super) open: usize,
    /// Bytes of all copies.
    pub(super) bytes: usize,
}

/// A schema that contains itself is shown to its second level where that stays small, else to its first.
pub(super) const EXPANSIONS: [Expansion; 2] = [Expansion { open: 2, bytes: 16 << 10 }, Expansion { open: 1, bytes: 128 << 10 }];
