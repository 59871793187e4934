//! The seam at which wire formats join.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use turnwright_core::prompt::Prompt;
use turnwright_core::{Origin, ProviderFailure, StreamDelta, ToolChoice, ToolDefinition};

use crate::anthropic::Anthropic;
use crate::facts::ModelFacts;
use crate::gemini::Gemini;
use crate::kept::Kept;
use crate::ollama::Ollama;
use crate::openai_chat::OpenAiChat;
use crate::openai_responses::OpenAiResponses;
use crate::profile::Profile;
use crate::sse::SseEvent;

/// A wire format: requests out, answers in. Nothing here does input or output.
pub trait Dialect: Send + Sync + Debug {
    /// Its name in the configuration and in a message's origin, such as `openai-chat`.
    fn name(&self) -> &'static str;

    /// The request that asks `target` for a streamed answer. The same prompt gives the same bytes, whatever was kept.
    /// `kept` belongs to one conversation and one target; with it, only what is new in the conversation is written.
    /// There is a request for every prompt (law 3).
    fn request(&self, target: &Target<'_>, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest;

    /// The body as it can be sent once more, where an endpoint that failed so may take it without what belongs to another
    /// account or time, such as ciphertext that it cannot read any more; else `None`.
    fn mended(&self, _body: &[u8], _failure: &ProviderFailure) -> Option<Mended> {
        None
    }

    /// The body of a later request of the same conversation without what was mended: its first `messages` messages are
    /// written as [`Dialect::mended`] wrote them, what came since stays as it is. `None` where that changes nothing.
    fn still_mended(&self, _body: &[u8], _messages: usize) -> Option<Vec<u8>> {
        None
    }

    /// A decoder for one answer to such a request.
    fn decoder(&self, profile: &Profile, offered: &Offered) -> Box<dyn StreamDecoder>;

    /// What a response with an error status says.
    fn failure(&self, response: &ErrorResponse<'_>) -> ProviderFailure;

    /// The header that carries a key.
    fn authorization(&self, key: &str) -> (&'static str, String);

    /// Headers that every request carries besides, the one for the list of models too.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The path of the list of models, below the base address.
    fn models_path(&self) -> &'static str;

    /// The models that the answer to a request for [`Dialect::models_path`] names, in its order.
    ///
    /// # Errors
    /// [`turnwright_core::ProviderFailureKind::Malformed`] where it is no list of models.
    fn models(&self, body: &[u8]) -> Result<Vec<String>, ProviderFailure>;
}

/// A request without what was refused of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    /// The body.
    pub body: Vec<u8>,
    /// How many messages it holds, as the format counts them: those that later requests must not bring as they were.
    pub messages: usize,
}

/// Whom a request is for.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// What the answer's origin will be. Native blocks of the same origin go back as they came (law 4).
    pub origin: &'a Origin,
    /// How the endpoint differs from the format's own.
    pub profile: &'a Profile,
    /// What is known of the model.
    pub model: &'a ModelFacts,
}

/// The dialect with this name, where there is one.
pub fn by_name(name: &str) -> Option<&'static dyn Dialect> {
    let all: [&'static dyn Dialect; 5] = [&OpenAiChat, &OpenAiResponses, &Anthropic, &Gemini, &Ollama];
    all.into_iter().find(|dialect| dialect.name() == name)
}

/// The tools whose calls may be recovered from text; none where the model may not call.
#[derive(Debug, Clone, Default)]
pub struct Offered(Option<Arc<[Arc<ToolDefinition>]>>);

impl Offered {
    /// The tools that `prompt` offers.
    pub fn of(prompt: &Prompt<'_>) -> Self {
        let may_call = !prompt.tools.is_empty() && prompt.tool_choice() != ToolChoice::None;
        Self(may_call.then(|| Arc::from(prompt.tools)))
    }

    /// These tools, which the model may call.
    pub fn to_call(tools: Vec<Arc<ToolDefinition>>) -> Self {
        Self(Some(tools.into()))
    }

    /// Whether a tool with exactly this name is offered.
    pub fn contains(&self, name: &str) -> bool {
        self.0.iter().flat_map(|tools| tools.iter()).any(|tool| tool.name == name)
    }

    /// The names of the tools.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|tools| tools.iter()).map(|tool| tool.name.as_str())
    }

    /// The tool with exactly this name.
    pub(crate) fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.0.iter().flat_map(|tools| tools.iter()).find(|tool| tool.name == name).map(Arc::as_ref)
    }

    /// Whether nothing is offered.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// A request, below an endpoint's base address. Its method is `POST`, its body JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// The path, from the `/` that follows the base address.
    pub path: String,
    /// Headers besides the key's and the content type's.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Body,
    /// The members of the body that a server may refuse and that can be done without; `a.b` is the member `b` of the member `a`.
    pub optional: Vec<&'static str>,
}

/// The bytes of a body, which many can have and none can change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body(Arc<Vec<u8>>);

impl Body {
    /// The bytes; a copy of them where another has them too.
    pub fn into_vec(self) -> Vec<u8> {
        Arc::unwrap_or_clone(self.0)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// A response with an error status.
#[derive(Clone, Copy)]
pub struct ErrorResponse<'a> {
    /// The HTTP status.
    pub status: u16,
    /// Its headers, by name in lower case.
    pub header: &'a dyn Fn(&str) -> Option<&'a str>,
    /// Its body, possibly cut.
    pub body: &'a [u8],
}

impl Debug for ErrorResponse<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ErrorResponse")
            .field("status", &self.status)
            .field("body", &String::from_utf8_lossy(self.body))
            .finish_non_exhaustive()
    }
}

/// Decodes one answer. Give it every event with [`StreamDecoder::event`] and then call [`StreamDecoder::end`] once; or one
/// whole body with [`StreamDecoder::whole`]. After an error, and where the connection broke, call
/// [`StreamDecoder::cut_off`] once for what it held back.
pub trait StreamDecoder: Send + Debug {
    /// Takes the next event.
    ///
    /// # Errors
    /// What the provider says went wrong, an event that is not JSON, or an answer over our limits.
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure>;

    /// Takes a whole reply, in one JSON body.
    ///
    /// # Errors
    /// As [`StreamDecoder::event`], and where it is no reply.
    fn whole(&mut self, body: &[u8], out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure>;

    /// Whether an answer comes as lines of JSON, each an event: what begins with such a line is not taken whole.
    fn takes_lines(&self) -> bool {
        false
    }

    /// Takes the end of the stream.
    ///
    /// # Errors
    /// Where the answer's terminal marker did not come.
    fn end(&mut self, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure>;

    /// The model that answers, as its provider names it, where it has said so.
    fn model(&self) -> Option<&str>;

    /// What is wrong with an answer that was taken as complete all the same, in words for the operator.
    fn warning(&self) -> Option<&'static str> {
        None
    }

    /// Gives what is known of an answer that will not be finished.
    fn cut_off(&mut self, out: &mut Vec<StreamDelta>);

    /// Whether the terminal marker came: nothing more is to be read.
    fn is_done(&self) -> bool;

    /// Whether the provider said that it failed: little more comes, and [`StreamDecoder::end`] says how it failed.
    fn is_failing(&self) -> bool;
}
