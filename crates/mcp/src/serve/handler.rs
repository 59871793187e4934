//! Answers a client's requests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientResult, CompleteRequestParams, CompleteResult, ConstString, CustomRequest,
    CustomResult, ElicitRequest, ElicitRequestParams, ErrorCode, GetPromptRequestParams, GetPromptResponse, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, PromptsCapability, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ResourcesCapability, ServerCapabilities, ServerConfig, ServerRequest, SetLevelRequestMethod,
    SetLevelRequestParams, SubscribeRequestMethod, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestMethod,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceError};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::AnswerAction;
use turnwright_engine::{Progress, ToolOutput};

use super::backing::{Backing, Happened, OfferedCall, Refused, RunningCall};
use super::fixtures::{self, Fixtures};
use super::result::{Form, failed, result, tool};
use super::sessions::{Asking, Call, Calls};
use super::wanted::{Refusals, Shows, Wanted, no};
use crate::client::me;

/// How often it is looked whether a client that is told of changes is still there.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The methods that every revision of the protocol has and that are known here whatever stands behind. Others were removed (2026-07-28):
/// there a method that is not known is what they are.
const OFFERED: [&str; 2] = ["tools/list", "tools/call"];

/// What clients are told that this is.
const INSTRUCTIONS: &str = "The tools of several sources under one roof; a tool's name begins with its source's. \
    A call may wait until a person allows it.";

/// The server's side of one connection, or of one request where there are no connections.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    pub(super) backing: Arc<dyn Backing>,
    /// Owns what runs beside the requests.
    pub(super) tasks: TaskTracker,
    /// The calls that run.
    pub(super) calls: TaskTracker,
    /// Whether a call was ever answered: the newest answer may still be on its way.
    pub(super) has_answered: Arc<AtomicBool>,
    /// Those of sessions, by their names.
    pub(super) named: Arc<Calls>,
    /// Fires when the process ends: calls are answered with what is known of them.
    pub(super) puts_down: CancellationToken,
    /// Fires when the client says nothing more: nobody can be asked there.
    pub(super) is_deaf: CancellationToken,
    /// Fires when the serving ends.
    pub(super) stop: CancellationToken,
    /// Only where the conformance suite is to find what it looks for.
    pub(super) fixtures: Option<Fixtures>,
}

/// What came of asking the client's person.
enum Asked {
    /// They said this (`ElicitResult`).
    Said(Value),
    /// It is not needed any more.
    Settled,
    /// Nobody could be asked here.
    NotHere,
    /// This process ends.
    PutDown,
    /// The client does not want the call any more.
    Cancelled,
}

impl Handler {
    pub(super) fn new(backing: Arc<dyn Backing>) -> Self {
        let (calls, puts_down, has_answered) = (TaskTracker::new(), CancellationToken::new(), Arc::default());
        let (is_deaf, stop) = (CancellationToken::new(), CancellationToken::new());
        Self {
            backing,
            tasks: TaskTracker::new(),
            calls,
            has_answered,
            named: Arc::default(),
            puts_down,
            is_deaf,
            stop,
            fixtures: None,
        }
    }

    async fn run(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.stop.is_cancelled() || self.puts_down.is_cancelled() {
            let why = "this server is shutting down; the call was not begun, and can be made again once it is there again";
            return Err(ErrorData::internal_error(why, None));
        }
        let caller = Caller::of(&context);
        let named = self.named.begin(&context);
        let call = OfferedCall {
            client: caller.name.clone(),
            tool: params.name.clone().into_owned(),
            arguments: params.arguments.unwrap_or_default(),
        };
        let begun = match &params.request_state {
            Some(handle) => self.backing.find(handle, call).await,
            None => self.backing.begin(call).await,
        };
        let mut running = match begun {
            Ok(running) => running,
            Err(refused @ Refused::NoSuchTool(_)) => return Err(ErrorData::invalid_params(refused.to_string(), None)),
            Err(refused @ Refused::Other(_)) => return Ok(failed(refused.to_string()).into()),
        };
        let mut answers = params.input_responses.unwrap_or_default();
        let mut told = Told { token: context.meta.get_progress_token(), last: None };
        let mut later = VecDeque::new();
        let mut refusals = Refusals::default();
        loop {
            let happened = tokio::select! {
                biased;
                happened = next(&mut later, &mut *running) => happened,
                () = self.puts_down.cancelled() => return Ok(result(running.put_down().await, caller.form).into()),
                () = self.gone(&context, named.as_ref()) => return Err(cancelled(&mut *running).await),
            };
            let wanted = match happened {
                Happened::Progress(progress) => {
                    told.tell(&context, progress).await;
                    continue;
                }
                Happened::Decided | Happened::Answered(_) => continue,
                Happened::Ended(output) => {
                    let promised = self.has_promised(&params.name, caller.form, &output).await;
                    let mut result = result(output, caller.form);
                    if promised && result.structured_content.is_none() {
                        // Clients throw a success away that is not what was promised.
                        result.is_error = Some(true);
                    }
                    return Ok(result.into());
                }
                Happened::Asked(question) => Wanted::Approval(question),
                Happened::Inquired(inquiry) => Wanted::Answer(inquiry),
            };
            if let Some(said) = answers.remove(wanted.key()) {
                if let Err(why) = refusals.settle(wanted, &mut *running, &said, &mut later).await {
                    return Ok(failed(why).into());
                }
                continue;
            }
            let asked = match (wanted.shown(caller.shows, refusals.newest.take().as_deref()), caller.form) {
                (Some(shown), Form::Modern) => {
                    let required = wanted.required(shown, running.handle());
                    running.leave().await;
                    return Ok(required.into());
                }
                (Some(shown), Form::Legacy) => {
                    self.ask((&context, named.as_ref()), &wanted, shown, &mut *running, &mut later).await
                }
                (None, _) => Asked::NotHere,
            };
            match (asked, wanted) {
                (Asked::Said(said), wanted) => {
                    if let Err(why) = refusals.settle(wanted, &mut *running, &said, &mut later).await {
                        return Ok(failed(why).into());
                    }
                }
                (Asked::Settled, _) => {}
                (Asked::NotHere, Wanted::Approval(question)) => {
                    running.leave().await;
                    return Ok(failed(question.elsewhere).into());
                }
                // Nobody else is asked for whoever calls from elsewhere: the tool hears no, and goes on.
                (Asked::NotHere, Wanted::Answer(inquiry)) => {
                    if let Err(why) = running.answer(&inquiry.id, no(AnswerAction::Decline)).await {
                        return Ok(failed(why).into());
                    }
                }
                (Asked::PutDown, _) => return Ok(result(running.put_down().await, caller.form).into()),
                (Asked::Cancelled, _) => return Err(cancelled(&mut *running).await),
            }
        }
    }

    /// Asks the person at a client of a session, until they answer or that is not needed any more. What else happens
    /// meanwhile is kept for later.
    async fn ask(
        &self,
        (context, named): (&RequestContext<RoleServer>, Option<&Call>),
        wanted: &Wanted,
        shown: ElicitRequestParams,
        running: &mut dyn RunningCall,
        later: &mut VecDeque<Happened>,
    ) -> Asked {
        let mut request = ElicitRequest::new(shown);
        request.extensions.insert(Asking { handle: running.handle().to_owned(), key: wanted.key().to_owned() });
        let mut asking = std::pin::pin!(async {
            match context.peer.send_request(ServerRequest::ElicitRequest(request)).await? {
                ClientResult::ElicitResult(said) => Ok(said),
                _ => Err(ServiceError::UnexpectedResponse),
            }
        });
        loop {
            tokio::select! {
                biased;
                happened = running.next() => {
                    let is_settled = wanted.is_settled_by(&happened);
                    later.push_back(happened);
                    if is_settled {
                        return Asked::Settled;
                    }
                }
                () = self.puts_down.cancelled() => return Asked::PutDown,
                () = self.gone(context, named) => return Asked::Cancelled,
                () = self.is_deaf.cancelled() => return Asked::NotHere,
                said = &mut asking => return match said {
                    Ok(said) => serde_json::to_value(said).map_or(Asked::NotHere, Asked::Said),
                    Err(error) => {
                        tracing::info!(%error, "a client that says it can ask its person did not");
                        Asked::NotHere
                    }
                },
            }
        }
    }

    /// Whether a result of this tool without structured content is not what its listed schema says (MCP, "Output Schema").
    async fn has_promised(&self, name: &str, form: Form, output: &ToolOutput) -> bool {
        if output.is_error || output.structured_content.is_some() {
            return false;
        }
        let offered = self.backing.tools().await;
        offered.iter().any(|offered| offered.definition.name == name && tool(offered, form).output_schema.is_some())
    }

    /// What only the fixtures take note of.
    fn only_fixtures<M: ConstString>(&self) -> Result<(), ErrorData> {
        if self.fixtures.is_some() { Ok(()) } else { Err(ErrorData::method_not_found::<M>()) }
    }

    /// Whether the client does not need the answer any more.
    async fn gone(&self, context: &RequestContext<RoleServer>, named: Option<&Call>) {
        let elsewhere = async {
            match named {
                Some(call) => call.cancelled_elsewhere().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = context.ct.cancelled() => {}
            () = elsewhere => {}
            () = self.stop.cancelled() => {}
        }
    }
}

/// What was kept for later, else what comes.
async fn next(later: &mut VecDeque<Happened>, running: &mut dyn RunningCall) -> Happened {
    if let Some(happened) = later.pop_front() { happened } else { running.next().await }
}

/// Stops a call that nobody waits for any more.
async fn cancelled(running: &mut dyn RunningCall) -> ErrorData {
    running.cancel().await;
    ErrorData::internal_error("the call was cancelled", None)
}

/// Who asks.
struct Caller {
    name: String,
    form: Form,
    shows: Shows,
}

impl Caller {
    fn of(context: &RequestContext<RoleServer>) -> Self {
        let version = context.protocol_version();
        let is_modern = version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let info = context.client_info();
        Self {
            name: info.map_or_else(|| "a client without a name".to_owned(), |info| info.name),
            form: if is_modern { Form::Modern } else { Form::Legacy },
            shows: Shows::of(context.client_capabilities().as_ref()),
        }
    }
}

/// What the client was told of how far its call is.
struct Told {
    token: Option<ProgressToken>,
    last: Option<f64>,
}

impl Told {
    /// Tells it, where it wants to know and this is more than before.
    async fn tell(&mut self, context: &RequestContext<RoleServer>, progress: Progress) {
        let Some(token) = &self.token else { return };
        if self.last.is_some_and(|last| progress.progress <= last) {
            return;
        }
        self.last = Some(progress.progress);
        let mut told = ProgressNotificationParam::new(token.clone(), progress.progress);
        (told.total, told.message) = (progress.total, progress.message);
        if let Err(error) = context.peer.notify_progress(told).await {
            tracing::debug!(%error, "a client was not told how far its call is");
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        if self.fixtures.is_some() {
            capabilities.completions = Some(JsonObject::default());
            capabilities.logging = Some(JsonObject::default());
            capabilities.prompts = Some(PromptsCapability::default());
            let mut resources = ResourcesCapability::default();
            resources.subscribe = Some(true);
            capabilities.resources = Some(resources);
        }
        ServerConfig::new(capabilities).with_server_info(me().with_title("Turnwright")).with_instructions(INSTRUCTIONS)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        // So the library names what it cannot read, also where it knows the method.
        if OFFERED.contains(&method.as_str()) {
            return Err(ErrorData::invalid_params(format!("the params of `{method}` are not understood"), None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if let Some(cursor) = page.and_then(|page| page.cursor) {
            let why = format!("no page begins at the cursor `{cursor}`: the list comes whole");
            return Err(ErrorData::invalid_params(why, None));
        }
        let form = Caller::of(&context).form;
        let mut listed: Vec<Tool> = self.backing.tools().await.iter().map(|offered| tool(offered, form)).collect();
        if self.fixtures.is_some() {
            listed.extend(Fixtures::tools());
        }
        Ok(ListToolsResult::with_all_items(listed))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.fixtures.is_some()
            && let Some(answer) = Fixtures::call(&params, &context).await
        {
            return answer;
        }
        // Whoever ends the serving waits for the calls that are being stopped.
        let run = async {
            let answer = self.run(params, context).await;
            self.has_answered.store(true, Ordering::Relaxed);
            answer
        };
        self.calls.track_future(run).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (mut news, stop) = (self.backing.changes(), self.stop.clone());
        self.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    told = news.changed() => {
                        if told.is_err() || context.peer.notify_tool_list_changed().await.is_err() {
                            return;
                        }
                    }
                    () = tokio::time::sleep(LOOK_EVERY) => if context.peer.is_transport_closed() { return },
                }
            }
        });
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut news = self.backing.changes();
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                () = context.cancelled() => return Ok(()),
                told = news.changed() => {
                    if told.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn complete(&self, _: CompleteRequestParams, _: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        if self.fixtures.is_some() { fixtures::complete() } else { Ok(CompleteResult::default()) }
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.only_fixtures::<SetLevelRequestMethod>()
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        if self.fixtures.is_some() { fixtures::prompts() } else { Ok(ListPromptsResult::default()) }
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let none = || ErrorData::invalid_params(format!("there is no prompt `{}`", params.name), None);
        if self.fixtures.is_some() { Fixtures::prompt(&params) } else { Err(none()) }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        if self.fixtures.is_some() { fixtures::resources() } else { Ok(ListResourcesResult::default()) }
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        if self.fixtures.is_some() { fixtures::templates() } else { Ok(ListResourceTemplatesResult::default()) }
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = params.uri;
        if self.fixtures.is_some() {
            return fixtures::read(&uri).map(ReadResourceResponse::from);
        }
        let data = Some(serde_json::json!({"uri": uri}));
        Err(ErrorData::resource_not_found("there is no such resource", data))
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.only_fixtures::<SubscribeRequestMethod>()
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.only_fixtures::<UnsubscribeRequestMethod>()
    }
}
