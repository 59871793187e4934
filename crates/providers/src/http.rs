//! A provider behind HTTP.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use lru::LruCache;
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Client, Method, Request, Response, Url};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use turnwright_core::prompt::Prompt;
use turnwright_core::{ConversationId, ModelFacts, Origin, ProviderFailure, ProviderFailureKind, StreamDelta, TokenCounting};
use turnwright_dialects::{
    ErrorResponse, HttpRequest, Offered, Profile, Refused, Target, measure, still_without_media, token_counting,
    without_refused_media,
};
use turnwright_engine::{Clock, ModelInfo, ModelStream, Provider};
use turnwright_network::Reason;

use crate::answer::{self, Call};
use crate::explain::{explain, shown_url};
use crate::kept::KeptRequests;
use crate::mended::{LeftOut, MendedTalks, Talk};
use crate::retry::{Failed, Patience, retry_after_ms};
use crate::unseen::unseen;
use crate::{EndpointConfig, client};

/// The most bytes of an error's body that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// Of how many models it is remembered what is known of them.
const KNOWN_MODELS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);
/// How often one request is sent once more without something of the conversation.
const MAX_MENDS: usize = 16;
/// How much of what a model refused is remembered.
const MAX_REFUSED: usize = 32;
/// The most bytes of a list of models.
const MAX_MODELS_BYTES: usize = 8 * 1024 * 1024;

/// A [`Provider`] over HTTP, for any dialect. Its client is made when it is first used.
#[derive(Debug, Clone)]
pub struct HttpProvider {
    endpoint: Arc<Endpoint>,
}

impl HttpProvider {
    /// The provider at this endpoint.
    pub fn new(config: EndpointConfig, clock: Arc<dyn Clock>) -> Self {
        Self {
            endpoint: Arc::new(Endpoint {
                config,
                clock,
                connection: OnceCell::new(),
                refused: Mutex::new(LruCache::new(KNOWN_MODELS)),
                facts: Mutex::new(LruCache::new(KNOWN_MODELS)),
                kept: KeptRequests::default(),
                mended: MendedTalks::default(),
            }),
        }
    }

    /// The models that the endpoint itself lists.
    pub(crate) async fn listed(&self) -> Result<Listed, ProviderFailure> {
        let listed = self.endpoint.list_models().await;
        listed.map_err(|failed| explain(&self.endpoint.config, "", failed.failure))
    }

    /// Asks for something that needs the key, at a path below the base address, and says whether it was given.
    ///
    /// # Errors
    /// Why not; of the kind [`ProviderFailureKind::Auth`] where the key is not taken.
    pub async fn answers_at(&self, path: &str) -> Result<(), ProviderFailure> {
        let opened = self.endpoint.get(path).await;
        opened.map(drop).map_err(|failed| explain(&self.endpoint.config, "", failed.failure))
    }
}

#[async_trait]
impl Provider for HttpProvider {
    fn dialect(&self) -> &str {
        self.endpoint.config.dialect.name()
    }

    fn forget(&self, conversation: &ConversationId) {
        self.endpoint.kept.forget(conversation);
    }

    fn kept(&self) -> Vec<ConversationId> {
        self.endpoint.kept.conversations()
    }

    fn call(&self, model: &str, prompt: &Prompt<'_>) -> Result<ModelStream, ProviderFailure> {
        let config = &self.endpoint.config;
        let dialect = config.dialect;
        let origin = Origin { dialect: dialect.name().to_owned(), provider: config.name.clone(), model: model.to_owned() };
        let facts = self.endpoint.facts(model);
        let target = Target { origin: &origin, profile: &config.profile, model: &facts };
        let mut kept = self.endpoint.kept.take(prompt.conversation, model);
        let mut request = dialect.request(&target, prompt, &mut kept);
        self.endpoint.kept.put(prompt.conversation, model, kept);
        for refused in self.endpoint.refused_by(model) {
            request.leave_out(&refused);
        }
        let talk: Option<Talk> = prompt.conversation.map(|of| (of.id.clone(), model.to_owned()));
        let left_out = talk.as_ref().map(|talk| self.endpoint.mended.left_out(talk)).unwrap_or_default();
        if let Some(body) = left_out.messages.and_then(|messages| dialect.still_mended(&request.body, messages)) {
            request.body = body.into();
        }
        if !left_out.media.is_empty()
            && let Some(body) = still_without_media(&request.body, &left_out.media)
        {
            request.body = body.into();
        }
        let offered = if config.profile.recover_text_calls.is_empty() { Offered::default() } else { Offered::of(prompt) };
        let notices = unseen(prompt, &request.body).into_iter().collect();
        let request = Prepared { request, model: model.to_owned(), talk, notices };
        let patience = Patience::new(config.max_retries, &prompt.settings.fallback);
        let endpoint = Arc::clone(&self.endpoint);
        let call = Call { endpoint, model: origin.model, prices: facts.prices, request, offered, patience };
        Ok(answer::stream(call))
    }

    fn facts(&self, model: &str) -> ModelFacts {
        self.endpoint.facts(model)
    }

    fn max_tools(&self) -> Option<usize> {
        self.endpoint.config.profile.max_tools.map(usize::from)
    }

    fn measure(&self, model: &str, prompt: &Prompt<'_>) -> Option<u64> {
        Some(measure(self.dialect(), model, prompt))
    }

    fn counts_by(&self, model: &str) -> TokenCounting {
        token_counting(model)
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ProviderFailure> {
        let config = &self.endpoint.config;
        let named = |id: String| ModelInfo { facts: config.facts(&id), id, description: None };
        if !config.models.is_empty() {
            return Ok(config.models.iter().cloned().map(named).collect());
        }
        let listed = self.listed().await?;
        Ok(listed.ids.into_iter().map(named).collect())
    }
}

/// The models that an endpoint lists.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) ids: Vec<String>,
    /// The preset of the server, where the list shows which it is.
    pub(crate) server: Option<&'static str>,
}

/// An endpoint and what is known of it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) config: EndpointConfig,
    clock: Arc<dyn Clock>,
    connection: OnceCell<Connection>,
    /// What models refused once and can do without.
    refused: Mutex<LruCache<String, Vec<Refused>>>,
    /// What is known of the models that were asked last.
    facts: Mutex<LruCache<String, ModelFacts>>,
    kept: KeptRequests,
    mended: MendedTalks,
}

/// A request, which can be sent again.
#[derive(Debug)]
pub(crate) struct Prepared {
    request: HttpRequest,
    /// Whom it asks.
    model: String,
    /// What it is part of; `None` where it stands alone.
    talk: Option<Talk>,
    /// What people should know of it.
    notices: Vec<String>,
}

impl Prepared {
    /// What people should know of it, once.
    pub(crate) fn take_notices(&mut self) -> Vec<StreamDelta> {
        std::mem::take(&mut self.notices).into_iter().map(StreamDelta::Notice).collect()
    }

    /// It is not sent again: what an answer that streams for minutes does without.
    pub(crate) fn let_go(&mut self) {
        drop(std::mem::take(&mut self.request.body));
    }
}

/// What every request needs.
#[derive(Debug)]
struct Connection {
    client: Client,
    base: Url,
    headers: HeaderMap,
}

/// A response with a success status.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) response: Response,
    pub(crate) content_type: Option<String>,
    pub(crate) request_id: Option<String>,
}

impl Endpoint {
    /// What is known of a model; looked up once, since every call asks.
    fn facts(&self, model: &str) -> ModelFacts {
        let mut known = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(facts) = known.get(model) {
            return *facts;
        }
        let facts = self.config.facts(model);
        known.put(model.to_owned(), facts);
        facts
    }

    /// What a model refused.
    fn refused_by(&self, model: &str) -> Vec<Refused> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).get(model).cloned().unwrap_or_default()
    }

    /// Remembers that a model refused this.
    fn remember(&self, model: &str, refused: Refused) {
        let mut known = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let of_model = known.get_or_insert_mut(model.to_owned(), Vec::new);
        if of_model.len() < MAX_REFUSED && !of_model.contains(&refused) {
            of_model.push(refused);
        }
    }

    async fn connection(&self) -> Result<&Connection, ProviderFailure> {
        let make = || async {
            let (base, headers) = (client::base(&self.config)?, client::headers(&self.config)?);
            Ok(Connection { client: client::client(&self.config).await?, base, headers })
        };
        self.connection.get_or_try_init(make).await
    }

    /// Sends a request once; where the endpoint refuses a part of it that can be done without, once more without that
    /// for each such part.
    pub(crate) async fn open(&self, Prepared { request, model, talk, notices }: &mut Prepared) -> Result<Opened, Failed> {
        let mut left_out = LeftOut::default();
        let mut mends = 0;
        loop {
            let answer = self.send(Method::POST, request).await;
            let failure = answer.as_ref().err().map(|failed| &failed.failure);
            if let Some(refused) = failure.and_then(|failure| request.refused(failure)) {
                request.leave_out(&refused);
                self.remember(model, refused);
                continue;
            }
            // What stands alone is asked to find out what is taken.
            let may_be_without = |_: &&ProviderFailure| talk.is_some();
            let mended = failure.and_then(|failure| self.config.dialect.mended(&request.body, failure));
            let without = || failure.filter(may_be_without).and_then(|failure| without_refused_media(&request.body, failure));
            let body = if let Some(mended) = mended {
                left_out.messages = Some(mended.messages);
                Some(mended.body)
            } else {
                without().map(|without| {
                    notices.extend(failure.map(|failure| refused_media(&self.config, model, failure, without.left_out.len())));
                    left_out.media.extend(without.left_out);
                    without.body
                })
            };
            if let (Some(talk), true) = (&talk, failure.is_none() || (mends == MAX_MENDS && body.is_some())) {
                self.mended.remember(talk, std::mem::take(&mut left_out));
            }
            let Some(body) = body.filter(|_| mends < MAX_MENDS) else { return answer };
            mends += 1;
            request.body = body.into();
        }
    }

    async fn send(&self, method: Method, request: &HttpRequest) -> Result<Opened, Failed> {
        let connection = self.connection().await?;
        let mut sent = Request::new(method, client::url(&connection.base, &request.path));
        *sent.headers_mut() = connection.headers.clone();
        for (name, value) in &request.headers {
            if let Ok(value) = value.parse() {
                sent.headers_mut().insert(*name, value);
            }
        }
        if !request.body.is_empty() {
            *sent.body_mut() = Some(Bytes::from_owner(request.body.clone()).into());
        }
        let waited = self.config.timeouts.headers;
        let mut response = match timeout(waited, connection.client.execute(sent)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.unreachable(&error).into()),
            Err(_) => {
                let text = format!("no response within {} s", waited.as_secs_f64());
                return Err(ProviderFailure::new(ProviderFailureKind::Timeout, text).into());
            }
        };
        let status = response.status();
        if status.is_redirection() {
            return Err(redirected(&response).into());
        }
        if !status.is_success() {
            return Err(self.refused(response).await);
        }
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (content_type, request_id) = (header("content-type"), header("x-request-id").or_else(|| header("request-id")));
        // They lie in what was read first, which would be kept for as long as the answer streams.
        *response.headers_mut() = HeaderMap::new();
        Ok(Opened { response, content_type, request_id })
    }

    /// What went wrong before there was a response.
    fn unreachable(&self, error: &reqwest::Error) -> ProviderFailure {
        let text = match self.config.network.reason(error) {
            Reason::Proxy(text) => text,
            Reason::Elsewhere(text) => {
                format!("{text} at {}; check that it runs and that base_url is right", shown_url(&self.config.base_url))
            }
        };
        let kind =
            if error.is_timeout() && !error.is_connect() { ProviderFailureKind::Timeout } else { ProviderFailureKind::Connect };
        ProviderFailure::new(kind, text)
    }

    /// What a response with an error status says.
    async fn refused(&self, mut response: Response) -> Failed {
        let status = response.status().as_u16();
        if let Some(text) = self.config.network.refusal(response.url(), status) {
            return Failed::from(ProviderFailure::new(ProviderFailureKind::Connect, text));
        }
        let headers = response.headers().clone();
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        // A body that breaks off or is too long still says most of what it has to say.
        let body = read(&mut response, MAX_ERROR_BYTES, self.config.timeouts.idle).await;
        let mut failure = self.config.dialect.failure(&ErrorResponse { status, header: &header, body: &body.bytes });
        failure.retry_after_ms = retry_after_ms(header, self.clock.now_ms()).or(failure.retry_after_ms);
        let should_retry = match header("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        Failed { failure, should_retry }
    }

    /// Asks once, with the key and the headers that the dialect has on every request.
    async fn get(&self, path: &str) -> Result<Opened, Failed> {
        let headers = self.config.dialect.headers().iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let request = HttpRequest { path: path.to_owned(), headers, body: Vec::new().into(), optional: Vec::new() };
        self.send(Method::GET, &request).await
    }

    async fn list_models(&self) -> Result<Listed, Failed> {
        let mut opened = self.get(self.config.dialect.models_path()).await?;
        let body = read(&mut opened.response, MAX_MODELS_BYTES, self.config.timeouts.idle).await;
        if body.is_whole {
            let ids = self.config.dialect.models(&body.bytes)?;
            return Ok(Listed { ids, server: Profile::name_for_models(&body.bytes) });
        }
        let text = "its list of models broke off or is too long";
        Err(ProviderFailure::new(ProviderFailureKind::CutOff, text).into())
    }
}

/// What people are told of images and files that a provider refused.
fn refused_media(config: &EndpointConfig, model: &str, failure: &ProviderFailure, count: usize) -> String {
    let ProviderFailure { message, .. } = explain(config, model, failure.clone());
    let what = if count == 1 { "1 image or file".to_owned() } else { format!("{count} images or files") };
    format!("{message}; it is asked again without what it refused, which is left out from now on ({what})")
}

fn redirected(response: &Response) -> ProviderFailure {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or("elsewhere");
    let text = format!("it redirects to {}, and keys are not sent on; set base_url to where the API is", shown_url(location));
    ProviderFailure { status: Some(response.status().as_u16()), ..ProviderFailure::new(ProviderFailureKind::NotFound, text) }
}

struct Body {
    bytes: Vec<u8>,
    is_whole: bool,
}

async fn read(response: &mut Response, max_bytes: usize, idle: std::time::Duration) -> Body {
    let mut body = Body { bytes: Vec::new(), is_whole: false };
    while let Ok(Ok(chunk)) = timeout(idle, response.chunk()).await {
        let Some(chunk) = chunk else {
            body.is_whole = true;
            break;
        };
        let room = max_bytes.saturating_sub(body.bytes.len());
        body.bytes.extend(chunk.iter().take(room));
        if chunk.len() > room {
            break;
        }
    }
    body
}
