//! A tool's JSON Schema as each API accepts it.
//!
//! Servers send every dialect of JSON Schema; every API takes another part of it and refuses a whole request for one
//! tool that goes beyond. [`compile`] makes of any schema one that its target takes, and says what that lost. Arguments
//! are validated against the original, so a loss costs the model a second try, never the tool a wrong call.
//!
//! In order: the structure is checked, references are put in place and older forms become those of draft 2020-12
//! (`inline`), the root becomes one object (`root`), and the target's own rules follow (`json`, `strict`, `anthropic`, `gemini`).
//!
//! *Not here:* validating arguments, and deciding which tools are offered.

mod alternatives;
mod anthropic;
mod check;
mod gemini;
mod inline;
mod json;
mod keyword;
mod limits;
mod loss;
mod merge;
mod modern;
mod place;
pub(crate) mod recursive;
mod resolve;
mod root;
mod strict;

use serde_json::{Map, Value, json};

pub(crate) use anthropic::StrictRoom;
pub use check::BrokenSchema;
pub use loss::{Change, Loss};

use limits::MAX_ROUNDS;
use loss::Losses;
use place::Place;

/// The members of a schema.
type Object = Map<String, Value>;

/// Who is to read a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaTarget {
    /// OpenAI's formats, not strict: any JSON Schema whose root is an object without alternatives.
    OpenAi,
    /// OpenAI's strict mode where the schema can be made strict without changing what it accepts, but that an optional
    /// property becomes one that may be null; else as [`SchemaTarget::OpenAi`].
    OpenAiStrict,
    /// Anthropic's `input_schema`: draft 2020-12 without references or alternatives at the root, and with property names of
    /// `[A-Za-z0-9_.-]{1,64}` there.
    Anthropic,
    /// Anthropic's strict tools where the schema can be made strict without changing what it accepts; else as
    /// [`SchemaTarget::Anthropic`].
    AnthropicStrict,
    /// Gemini's `parametersJsonSchema`: JSON Schema without its meta keywords.
    GeminiJson,
    /// Gemini's `parameters`: the documented fields of its `Schema` alone. `parameters` is left out where the schema has no
    /// `properties`.
    GeminiSubset,
    /// Ollama and compatible servers, which turn schemas into grammars and templates: what they all read.
    Compatible,
}

impl SchemaTarget {
    /// All targets.
    pub const ALL: [Self; 7] = [
        Self::OpenAi,
        Self::OpenAiStrict,
        Self::Anthropic,
        Self::AnthropicStrict,
        Self::GeminiJson,
        Self::GeminiSubset,
        Self::Compatible,
    ];

    /// The target where nothing is to be strict.
    #[must_use]
    pub fn loose(self) -> Self {
        match self {
            Self::OpenAi | Self::OpenAiStrict => Self::OpenAi,
            Self::Anthropic | Self::AnthropicStrict => Self::Anthropic,
            Self::GeminiJson | Self::GeminiSubset | Self::Compatible => self,
        }
    }
}

/// Whether the API is to hold the model to the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strictness {
    /// The target has no strict mode, or it was not asked for.
    NotAsked,
    /// `strict: true`.
    Strict,
    /// `strict: false`.
    Loose {
        /// Why the schema cannot be made strict, in words for people.
        because: String,
    },
}

/// A schema as its target takes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    /// The schema; always an object schema.
    pub schema: Value,
    /// Whether it is to be sent as strict.
    pub strict: Strictness,
    /// What the original says and this does not, in the order of the schema.
    pub losses: Vec<Loss>,
    /// Whether a part of it is left open since it contains itself or is too large to be written out.
    pub is_cut: bool,
}

impl Lowered {
    /// Whether any property is declared; where none is, Gemini wants no `parameters` at all.
    pub fn has_properties(&self) -> bool {
        self.schema.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty())
    }

    /// Whether it is to be sent as strict.
    pub fn is_strict(&self) -> bool {
        self.strict == Strictness::Strict
    }
}

/// Makes `schema` one that `target` takes. The same schema gives the same bytes (law 7), and what comes out goes in again
/// unchanged.
///
/// # Errors
/// Where the schema is none, or refers to what is not in it: what is wrong, and where.
pub fn compile(schema: &Value, target: SchemaTarget) -> Result<Lowered, BrokenSchema> {
    let mut lowered = lower(schema, target)?;
    let target = match &lowered.strict {
        Strictness::Loose { .. } => target.loose(),
        Strictness::NotAsked | Strictness::Strict => target,
    };
    // What a target leaves out may have kept other things apart that are one schema without it.
    let mut text = lowered.schema.to_string();
    for _ in 0..MAX_ROUNDS {
        let next = lower(&lowered.schema, target)?;
        let next_text = next.schema.to_string();
        if next_text == text {
            break;
        }
        text = next_text;
        lowered.schema = next.schema;
        let more: Vec<Loss> = next.losses.into_iter().filter(|loss| !lowered.losses.contains(loss)).collect();
        lowered.losses.extend(more);
    }
    Ok(lowered)
}

fn lower(schema: &Value, target: SchemaTarget) -> Result<Lowered, BrokenSchema> {
    check::check(schema)?;
    let mut losses = Losses::default();
    let (inlined, is_cut) = inline::inline(schema, &mut losses)?;
    let rooted = root::root(inlined, &mut losses)?;
    let (schema, strict) = match target {
        SchemaTarget::OpenAi | SchemaTarget::Anthropic | SchemaTarget::GeminiJson | SchemaTarget::Compatible => {
            (json::lower(rooted, target, &mut losses), Strictness::NotAsked)
        }
        SchemaTarget::OpenAiStrict => match strict::lower(&rooted, losses.list()) {
            Ok(schema) => (schema, Strictness::Strict),
            Err(because) => (json::lower(rooted, SchemaTarget::OpenAi, &mut losses), Strictness::Loose { because }),
        },
        SchemaTarget::AnthropicStrict => match anthropic::lower(&rooted, losses.list()) {
            Ok(schema) => (schema, Strictness::Strict),
            Err(because) => (json::lower(rooted, target.loose(), &mut losses), Strictness::Loose { because }),
        },
        SchemaTarget::GeminiSubset => (gemini::lower(rooted, &mut losses), Strictness::NotAsked),
    };
    Ok(Lowered { schema, strict, losses: losses.into_list(), is_cut })
}

/// As [`compile`]; a schema that is none becomes one that takes any object, with the reason as its loss: for a tool that
/// was offered before its schema was found broken, since one tool must not spoil a request.
pub fn compile_or_any(schema: &Value, target: SchemaTarget) -> Lowered {
    match compile(schema, target) {
        Ok(lowered) => lowered,
        Err(broken) => {
            let mut losses = Losses::default();
            losses.add(&Place::ROOT, "", Change::Wider, format!("the schema is broken, any object is taken: {broken}"));
            let schema = match target {
                SchemaTarget::GeminiSubset => json!({"type": "object"}),
                _ => json!({"type": "object", "properties": {}}),
            };
            let strict = match target {
                SchemaTarget::OpenAiStrict | SchemaTarget::AnthropicStrict => {
                    Strictness::Loose { because: "the schema is broken".to_owned() }
                }
                _ => Strictness::NotAsked,
            };
            Lowered { schema, strict, losses: losses.into_list(), is_cut: false }
        }
    }
}
