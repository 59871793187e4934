//! The tool source of one API.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{OnceCell, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::ToolErrorKind;
use turnwright_engine::source::{
    CallContext, CallLimits, SetAside, SourceCall, SourceState, SourceTool, ToolError, ToolOutput, ToolSource,
};
use url::Url;

use super::answer::{self, again};
use super::auth::Secrets;
use super::description::MAX_BYTES;
use super::import::{Imported, LeftOut, import_beside};
use super::operation::Operation;
use super::send::Sender;
use super::server::{self, Base, Trust};
use super::{DescriptionPlace, HttpApi};
use crate::error::{invalid, not_found};
use crate::net::{Allow, AnswerLimits, Failure, Named, Reach};

/// How long an address may take to give its description.
const DESCRIBE_LIMIT: Duration = Duration::from_secs(15);
/// How soon an address that did not answer is asked again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(15), Duration::from_mins(10));
/// How much stack a description is read with.
const STACK_BYTES: usize = 16 << 20;
/// What a call may take longer than its own limit: reading what came.
const SPARE: Duration = Duration::from_secs(10);

/// The operations of an API as tools. What they are is read when the source is first waited for.
#[derive(Debug)]
pub struct HttpSource {
    inner: Arc<Inner>,
    described: OnceCell<()>,
    running: TaskTracker,
}

#[derive(Debug)]
struct Inner {
    api: HttpApi,
    secrets: Result<Secrets, String>,
    sender: Sender,
    offered: Mutex<Offered>,
    news: watch::Sender<u64>,
    stopped: CancellationToken,
}

#[derive(Debug, Default)]
struct Offered {
    tools: Arc<[SourceTool]>,
    callable: Arc<HashMap<String, Callable>>,
    set_aside: Vec<SetAside>,
    /// Why nothing is offered.
    failing: Option<String>,
}

/// An operation with where it goes.
#[derive(Debug)]
struct Callable {
    operation: Operation,
    base: Url,
    trust: Trust,
}

/// Why a description could not be had.
struct Unread {
    reason: String,
    /// Whether it may be there another time.
    may_pass: bool,
}

impl HttpSource {
    /// The source of an API; nothing is read yet.
    pub fn new(api: HttpApi) -> Self {
        let secrets = Secrets::new(api.auth.as_ref(), &api.headers);
        let reach = Reach::new(Allow::nothing(), Arc::clone(&api.lookup), api.foreign_clients.clone(), api.way);
        let sender = Sender { named: Named::new(api.clients.clone()), reach, user_agent: api.user_agent.clone() };
        let (offered, news, stopped) = (Mutex::default(), watch::Sender::new(0), CancellationToken::new());
        let inner = Inner { api, secrets, sender, offered, news, stopped };
        Self { inner: Arc::new(inner), described: OnceCell::new(), running: TaskTracker::new() }
    }

    /// Reads the description; where its address does not answer, it is asked again now and then.
    async fn describe(&self) {
        let Err(unread) = self.inner.read().await else { return };
        if unread.may_pass && !self.inner.stopped.is_cancelled() {
            let inner = Arc::clone(&self.inner);
            self.running.spawn(async move {
                let mut wait = RETRY.0;
                loop {
                    tokio::select! {
                        () = inner.stopped.cancelled() => return,
                        () = tokio::time::sleep(wait) => {}
                    }
                    match inner.read().await {
                        Err(unread) if unread.may_pass => wait = (wait * 2).min(RETRY.1),
                        Err(_) | Ok(()) => return,
                    }
                }
            });
        }
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, Offered> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self) -> Result<(), Unread> {
        let made = tokio::select! {
            made = self.made() => made,
            () = self.stopped.cancelled() => return Ok(()),
        };
        let (offered, result) = match made {
            Ok(offered) => (offered, Ok(())),
            Err(unread) => {
                let (name, reason) = (&self.api.name, &unread.reason);
                let description = &self.api.description;
                tracing::warn!(source = name, %description, reason, "an HTTP API cannot be offered");
                let reason = format!("the description {} cannot be used: {reason}", self.api.description);
                (Offered { failing: Some(reason), ..Offered::default() }, Err(unread))
            }
        };
        *self.lock() = offered;
        self.news.send_modify(|news| *news += 1);
        result
    }

    async fn made(&self) -> Result<Offered, Unread> {
        let never = |reason: String| Unread { reason, may_pass: false };
        let secrets = self.secrets.as_ref().map_err(|reason| never(reason.clone()))?;
        let (bytes, place) = self.bytes().await?;
        let (choice, filled) = (self.api.choice.clone(), secrets.filled());
        // A large description is work for a second, and a deep one needs room.
        let work = tokio::task::spawn_blocking(move || {
            let reader = std::thread::Builder::new().name("description".to_owned()).stack_size(STACK_BYTES);
            reader.spawn(move || import_beside(&bytes, &choice, &filled)).ok()?.join().ok()
        });
        let imported = work.await.ok().flatten().ok_or_else(|| never("reading it broke off".to_owned()))?;
        let imported = imported.map_err(|error| never(error.to_string()))?;
        let base = server::base(self.api.base_url.as_deref(), imported.server.as_deref(), place.as_ref(), !secrets.is_empty());
        let base = base.map_err(never)?;
        Ok(self.offered(imported, &base, place.as_ref()))
    }

    /// The description, with its address where it has one.
    async fn bytes(&self) -> Result<(Vec<u8>, Option<Url>), Unread> {
        match &self.api.description {
            DescriptionPlace::File(path) => {
                let path = path.clone();
                let work = tokio::task::spawn_blocking(move || file(&path));
                let read = work.await.unwrap_or_else(|error| Err(error.to_string()));
                read.map(|bytes| (bytes, None)).map_err(|reason| Unread { reason, may_pass: false })
            }
            DescriptionPlace::Address(address) => {
                let url = Url::parse(address).map_err(|error| Unread { reason: error.to_string(), may_pass: false })?;
                // One byte more shows that there is more than is read.
                let asked = self.sender.get(url.clone(), DESCRIBE_LIMIT, MAX_BYTES + 1).await;
                let answer = asked.map_err(|failure| Unread {
                    may_pass: !matches!(failure, Failure::Refused(_)),
                    reason: failure.to_string(),
                })?;
                if !answer.status.is_success() {
                    let may_pass = answer.status.is_server_error() || answer.status.as_u16() == 429;
                    return Err(Unread { reason: format!("its address answers {}", answer.status), may_pass });
                }
                Ok((answer.body, Some(url)))
            }
        }
    }

    fn offered(&self, imported: Imported, base: &Base, place: Option<&Url>) -> Offered {
        let source = &self.api.name;
        let mut left_out = imported.left_out;
        let (mut tools, mut callable) = (Vec::new(), HashMap::new());
        for operation in imported.operations {
            let own = operation.server.as_deref();
            match server::of_operation(base, self.api.base_url.is_some(), own, place) {
                Ok(at) => {
                    tools.push(tool(&operation));
                    callable.insert(operation.name.clone(), Callable { operation, base: at, trust: base.trust });
                }
                Err(reason) => left_out.push(LeftOut { operation: operation.name, reason }),
            }
        }
        let set_aside = left_out.into_iter().map(|LeftOut { operation, reason }| SetAside {
            source: source.clone(),
            tool: operation,
            reason,
            definition: None,
        });
        Offered { tools: tools.into(), callable: Arc::new(callable), set_aside: set_aside.collect(), failing: None }
    }

    async fn call(&self, callable: &Callable, call: &SourceCall) -> Result<ToolOutput, ToolError> {
        let Callable { operation, base, trust } = callable;
        let secrets = self.secrets.as_ref().map_err(|reason| ToolError::new(ToolErrorKind::Unavailable, reason.clone()))?;
        let request = operation.request(base, &call.arguments, &call.idempotency_key).map_err(invalid)?;
        let url = request.url.clone();
        let limits = AnswerLimits { max_bytes: self.api.max_bytes, total: self.api.timeout };
        match self.sender.send(request, *trust, secrets, limits).await {
            Ok(answer) => answer::output(operation, &url, answer, secrets),
            Err(failure) => Err(told(operation, failure, secrets)),
        }
    }
}

/// Reads a file that is one.
fn file(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn tool(operation: &Operation) -> SourceTool {
    SourceTool {
        name: operation.name.clone(),
        title: operation.title.clone(),
        description: operation.description.clone(),
        input_schema: operation.input_schema.clone(),
        annotations: None,
        declared: operation.declared,
        face: Arc::default(),
    }
}

/// Where an API was asked, behind the word for it.
fn place(at: Option<&str>) -> String {
    at.map(|at| format!(" at {at}")).unwrap_or_default()
}

/// No answer, in words for a model.
fn told(operation: &Operation, failure: Failure, secrets: &Secrets) -> ToolError {
    let text = match &failure {
        Failure::Timeout { limit } => format!("The API did not answer within {} s.{}", limit.as_secs_f32(), again(operation)),
        Failure::Network { reason, at, is_sent: true } => {
            format!("The API{} gave no answer: {reason}.{}", place(at.as_deref()), again(operation))
        }
        Failure::Network { reason, at, is_sent: false } => format!(
            "The API{} cannot be reached: {reason}. Nothing was sent. Try once more later, or tell the person.",
            place(at.as_deref())
        ),
        Failure::Packed { status, coding, why } => {
            format!(
                "The API answers {status}, and the answer is packed as `{coding}` (its content-encoding) and {why}. Tell the person."
            )
        }
        Failure::Redirects { limit } => format!("The API leads on more than {limit} times. Tell the person."),
        Failure::Refused(refusal) => {
            format!("The API is at an address that is not reached: {refusal}. The person can name it as its `base_url`.")
        }
    };
    let error = ToolError::from(failure);
    ToolError { model_text: secrets.scrubbed_text(&text), ..error }
}

#[async_trait]
impl ToolSource for HttpSource {
    fn name(&self) -> &str {
        &self.inner.api.name
    }

    fn state(&self) -> SourceState {
        if self.inner.stopped.is_cancelled() {
            return SourceState::Stopped;
        }
        if !self.described.initialized() {
            return SourceState::Starting;
        }
        match &self.inner.lock().failing {
            Some(reason) => SourceState::Failing { reason: reason.clone() },
            None => SourceState::Ready,
        }
    }

    fn tools(&self) -> Arc<[SourceTool]> {
        Arc::clone(&self.inner.lock().tools)
    }

    fn news(&self) -> Option<watch::Receiver<u64>> {
        Some(self.inner.news.subscribe())
    }

    fn set_aside(&self) -> Vec<SetAside> {
        self.inner.lock().set_aside.clone()
    }

    async fn settled(&self) {
        self.described.get_or_init(|| self.describe()).await;
    }

    async fn call(&self, call: SourceCall, context: CallContext) -> Result<ToolOutput, ToolError> {
        let name = self.name();
        let (callable, failing) = {
            let offered = self.inner.lock();
            (Arc::clone(&offered.callable), offered.failing.clone())
        };
        let _running = self.running.token();
        if self.inner.stopped.is_cancelled() {
            return Err(ToolError::new(ToolErrorKind::Unavailable, format!("the tool source `{name}` was stopped")));
        }
        let Some(found) = callable.get(&call.tool) else {
            return Err(match failing {
                Some(reason) => ToolError::new(ToolErrorKind::Unavailable, format!("the API `{name}` is not there: {reason}")),
                None => not_found(format!("the API `{name}` has no tool `{}`", call.tool)),
            });
        };
        let ended = || {
            let text = format!("The call was stopped before the API answered.{}", again(&found.operation));
            ToolError::new(ToolErrorKind::Interrupted, text)
        };
        tokio::select! {
            // First: what waited for an address is not sent any more.
            biased;
            () = context.cancel.cancelled() => Err(ended()),
            result = self.inner.call(found, &call) => result,
            () = self.inner.stopped.cancelled() => Err(ended()),
        }
    }

    fn limits(&self, _tool: &str) -> CallLimits {
        let longest = self.inner.api.timeout.saturating_add(SPARE);
        CallLimits { idle: longest, total: longest }
    }

    async fn stop(&self) {
        self.inner.stopped.cancel();
        self.running.close();
        self.running.wait().await;
    }
}
