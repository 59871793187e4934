//! The OpenAPI document: what the routes say of themselves, put together, and the page that shows it.
//!
//! Each route's description stands at its handler and names the path under which `routes.rs` hangs it, so that the two cannot
//! part. What is refused is the same for many routes and is said here, once for each kind of request.

use std::collections::BTreeMap;

use turnwright_api::openai::OpenAiError;
use turnwright_api::{PROBLEM_CONTENT_TYPE, Problem, Remember};
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi as Document, PathItem, Ref, RefOr, Required, Response, Schema};
use utoipa::{IntoParams, IntoResponses, OpenApi, ToSchema};

/// What the document says beside the routes.
#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "Turnwright",
        description = "Conversations with language models that work with tools. Everything that is said or done is kept in a \
                       journal; every refusal is a problem document (RFC 9457) whose `code` is stable, and under `/v1` OpenAI's error \
                       object with the same code.",
        license(name = "MIT OR Apache-2.0")
    ),
    components(schemas(Problem, OpenAiError, Remember)),
    tags(
        (name = "conversations", description = "Conversations and what was said in them."),
        (name = "turns", description = "Saying something, watching what comes of it, stopping it."),
        (name = "approvals", description = "What waits for a person, and the answers."),
        (name = "tools", description = "The tools that there are and those that a conversation offers."),
        (name = "knowledge", description = "Documents that are looked up, and what is remembered."),
        (name = "mcp", description = "MCP servers."),
        (name = "users", description = "Who asks, who may come in, and by what they are known."),
        (name = "installation", description = "Models, and whether the server is well."),
        (name = "openai", description = "What clients of OpenAI's APIs ask. Fields that are not named here are ignored."),
        (name = "pages", description = "What pages that are made with other kits ask.")
    )
)]
pub(crate) struct Frame;

/// A file as it is.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "describes what bodies are")]
pub(crate) struct FileBytes(Vec<u8>);

/// The document of these routes.
pub(crate) fn described_by(mut document: Document) -> Document {
    // A link that works from wherever the document was read; the paths begin at the root.
    document.servers = None;
    let components = document.components.get_or_insert_default();
    let ways_in = [
        ("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer))),
        ("session", SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new("tw_session")))),
    ];
    components.security_schemes.extend(ways_in.map(|(name, scheme)| (name.to_owned(), RefOr::T(scheme))));
    // The last one: where nobody has to sign in.
    let none: [&str; 0] = [];
    let named = |name| SecurityRequirement::new(name, none);
    document.security = Some(vec![named("token"), named("session"), SecurityRequirement::default()]);
    components.responses.extend(refusals().map(|(name, why)| (name, refusal(why, &Problem::name(), PROBLEM_CONTENT_TYPE))));
    components
        .responses
        .extend(openai::refusals().map(|(name, why)| (name, refusal(why, &OpenAiError::name(), "application/json"))));
    let schemas = &components.schemas;
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        // An empty body counts as an empty object.
        if let Some(RefOr::T(body)) = &mut operation.request_body {
            let is_needed = body.content.values().any(|content| match content {
                RefOr::T(content) => content.schema.as_ref().is_some_and(|schema| demands(schema, schemas)),
                RefOr::Ref(_) => true,
            });
            body.required = Some(if is_needed { Required::True } else { Required::False });
        }
    }
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, options, head, patch, trace, .. } = item;
    [get, put, post, delete, options, head, patch, trace].into_iter().filter_map(Option::as_mut)
}

/// Whether what fits this schema has fields that must be there.
fn demands(schema: &RefOr<Schema>, schemas: &BTreeMap<String, RefOr<Schema>>) -> bool {
    match schema {
        RefOr::Ref(named) => {
            let name = named.ref_location.rsplit('/').next().unwrap_or_default();
            schemas.get(name).is_some_and(|schema| demands(schema, schemas))
        }
        RefOr::T(Schema::Object(object)) => !object.required.is_empty(),
        RefOr::T(Schema::AllOf(all)) => all.items.iter().any(|schema| demands(schema, schemas)),
        RefOr::T(_) => false,
    }
}

/// A conversation, named in a path.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes what `InConversation` reads")]
pub(crate) struct ConversationPath {
    /// The conversation's name.
    #[param(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    id: String,
}

/// A request that may be sent again.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes what `repeatable` reads")]
pub(crate) struct RepeatableHeader {
    /// The same request with the same key is carried out once.
    #[param(rename = "Idempotency-Key", pattern = "^[!-~][ -~]{0,254}$")]
    key: Option<String>,
}

/// A change of what the client saw.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes what `Tag::must_match` reads")]
pub(crate) struct IfMatch {
    /// The `ETag` of what the client read: the change is refused where it was changed since.
    #[param(rename = "If-Match")]
    tag: Option<String>,
}

/// A look at what the client may have.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes what `Tag::answer` reads")]
pub(crate) struct IfNoneMatch {
    /// The `ETag` of what the client has: it is not sent again.
    #[param(rename = "If-None-Match")]
    tag: Option<String>,
}

/// Which part of a file is asked for.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes what `byte_range::Wanted` reads")]
pub(crate) struct RangeHeaders {
    /// `bytes=FIRST-LAST`, `bytes=FIRST-` or `bytes=-COUNT`. Of several ranges, and of what is no range, the whole is given.
    #[param(rename = "Range")]
    range: Option<String>,
    /// The `ETag` of what the client has a part of: where that is another one, the whole is given.
    #[param(rename = "If-Range")]
    if_range: Option<String>,
}

/// In which conversation a client of OpenAI's APIs goes on.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes what `openai::begin::named` reads")]
pub(crate) struct ConversationHeader {
    /// The conversation in which the request goes on, or which it begins; it counts more than `metadata.conversation_id`. The
    /// answer has it too.
    #[param(rename = "X-Turnwright-Conversation", pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    conversation: Option<String>,
}

/// Makes types that stand for the refusals of a kind of request, and the list of all.
macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident { $($status:literal: $why:literal),+ $(,)? })+) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub(crate) struct $name;

            impl IntoResponses for $name {
                fn responses() -> BTreeMap<String, RefOr<Response>> {
                    let name = |status| Ref::from_response_name(concat!(stringify!($name), "_").to_owned() + status);
                    BTreeMap::from([$(($status.to_owned(), RefOr::Ref(name($status)))),+])
                }
            }
        )+

        /// The name of each in the document, and why it is answered.
        pub(super) fn refusals() -> impl Iterator<Item = (String, &'static str)> {
            [$($((concat!(stringify!($name), "_", $status), $why)),+),+].into_iter().map(|(name, why)| (name.to_owned(), why))
        }
    };
}

refusals! {
    /// Of every route.
    Refused {
        "400": "The path, the query or a header is wrong.",
        "401": "Who asks is not known: sign in, or send a token that counts. Never where nobody has to sign in.",
        "403": "The `Host` is not this machine, the `Origin` is another site's, the token may not do this, or a tool asks for what only people decide.",
        "500": "What is stored is damaged, or of a newer version.",
        "501": "The body comes by another transfer coding than `chunked`.",
        "503": "The store does not answer, the server is shutting down, or as many turns run or streams are open as may. Worth repeating.",
    }
    /// Of routes that read a body.
    BodyRefused {
        "408": "No more of the body came.",
        "413": "The body, the message in it, or one of its attachments is too large.",
        "415": "The body is not of a type that is taken here.",
        "422": "A field is unknown, or its value is wrong.",
    }
    /// Of routes that need something of a server that it may lack.
    Unusable {
        "422": "The server cannot do this.",
    }
    /// Of routes that name something.
    NotThere {
        "404": "There is no such thing.",
    }
    /// Of routes that change something.
    Conflicting {
        "409": "It is not in a state in which this can be done.",
    }
    /// Of routes that begin a turn, open a stream or ask a model.
    Limited {
        "429": "As many of your turns run, or of your streams are open, as may, or a budget does not allow it. Nothing was stored; worth repeating.",
    }
    /// Of routes that change what a client may have read before.
    Conditional {
        "412": "It was changed since the client read it, or is not what `If-Match` says.",
    }
    /// Of routes that ask another server.
    NotAnswered {
        "502": "A server that had to be asked refused or failed.",
        "504": "A server that had to be asked did not answer in time.",
    }
}

/// Refusals in OpenAI's shape.
pub(crate) mod openai {
    use super::{BTreeMap, IntoResponses, Ref, RefOr, Response};

    refusals! {
        /// Of every route.
        OpenAiRefused {
            "400": "The path, the query, a header or a field is wrong, or is for something that is not done here.",
            "401": "Who asks is not known: send a token that counts. Never where nobody has to sign in.",
            "403": "The `Host` is not this machine, the `Origin` is another site's, or the token may not do this.",
            "404": "There is no such thing.",
            "500": "What is stored is damaged, or of a newer version.",
            "501": "The body comes by another transfer coding than `chunked`.",
            "503": "The store does not answer, the server is shutting down, or as many turns run or streams are open as may. Worth repeating.",
        }
        /// Of routes that run a turn.
        OpenAiTurnRefused {
            "408": "No more of the body came.",
            "409": "The conversation is not in a state in which this can be done.",
            "413": "The body, the message in it, or one of its attachments is too large.",
            "415": "The body is not JSON.",
            "429": "As many of your turns run, or of your streams are open, as may, and nothing was stored; or the model's provider asks to wait.",
            "502": "The model's provider refused or failed.",
            "504": "The model's provider did not answer in time.",
        }
    }
}

fn refusal(why: &str, schema: &str, kind: &str) -> RefOr<Response> {
    let schema = Ref::from_schema_name(schema);
    RefOr::T(Response::builder().description(why).content(kind, Content::new(Some(schema))).build())
}
