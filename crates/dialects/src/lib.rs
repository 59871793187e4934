//! Pure translation between the conversation model and each provider's wire format.
//!
//! [`Dialect`] is the seam: a request out of a [`Prompt`](turnwright_core::prompt::Prompt), and an answer's
//! [`StreamDelta`](turnwright_core::StreamDelta)s out of the bytes that come back, which [`ReplyDecoder`] cuts into events.
//! How endpoints of one format differ is data, in [`Profile`]. Nothing here does input or output or knows what time it is.

mod alike;
mod answered;
pub mod anthropic;
mod catalogue;
mod demand;
mod dialect;
pub mod embeddings;
pub mod export;
mod facts;
mod failure;
mod form;
pub mod gemini;
mod halves;
mod ids;
pub mod import;
mod json;
mod kept;
mod left_out;
mod lenient;
mod limits;
mod lines;
mod media;
mod media_size;
mod name;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
mod optional;
mod outcome_mark;
mod profile;
mod recover;
mod reply;
pub mod schema;
mod sse;
mod think;
mod tokens;
mod words;

pub use catalogue::{catalogue_date, catalogue_facts};
pub use dialect::{Body, Dialect, ErrorResponse, HttpRequest, Mended, Offered, StreamDecoder, Target, by_name};
pub use facts::{LongPromptPrices, ModelFacts, Prices, ReasoningStyle};
pub use kept::Kept;
pub use left_out::{MediaMark, WithoutMedia, still_without_media, without_refused_media};
pub use limits::MAX_ANSWER_BYTES;
pub use optional::Refused;
pub use profile::{
    DocumentParts, EmptyContent, KeyHeader, MaxTokensField, Profile, ProfileChoice, ProfileTable, ReasoningField,
    ReasoningReplay, SchemaFields, StructuredOutput, SystemRole, ToolCallIds, ToolChoices, ToolSchemas, UnknownProfile,
};
pub use recover::{TextForm, TextForms, text_forms_in};
pub use reply::{MAX_WHOLE_BYTES, ReplyDecoder};
pub use sse::{MAX_EVENT_BYTES, SseError, SseEvent, SseFramer};
pub use tokens::{measure, token_counting};
