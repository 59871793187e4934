//! One prompt: a turn of the session's conversation, told to the client until it comes to rest.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock as Block, Diff, Meta, PermissionOption, PermissionOptionKind, PromptResponse, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SessionId, StopReason, ToolCallContent, ToolCallUpdate,
    ToolCallUpdateFields,
};
use agent_client_protocol::{Client, Error, ErrorCode};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use turnwright_core::policy::Scope;
use turnwright_core::{
    AnswerAction, CallId, ContentBlock, ConversationId, ElicitationId, Journal, QuestionReason, Seq, TurnId, Verdict,
};
use turnwright_engine::{
    Choice, Engine, EngineError, Event, KeptBy, NewMessage, Remember, Reply, Sent, SentState, TurnState, WaitingCall, WatchFrom,
};

use super::changes;
use super::in_hand::Prompted;
use super::sessions::Open;
use super::updates::{self, Rest, Rests};

const ALLOW: &str = "allow";
/// For the like of it in this session, by a rule that is stored.
const ALWAYS: &str = "always";
const DENY: &str = "deny";
const HAPPENED: &str = "happened";
const AGAIN: &str = "again";

/// Asking a client about what waits.
type Asking<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// What a prompt runs with.
pub(super) struct Prompting<'a> {
    pub(super) engine: &'a Engine,
    pub(super) folder: &'a Path,
    pub(super) session: SessionId,
    pub(super) conversation: ConversationId,
    pub(super) client: ConnectionTo<Client>,
    pub(super) prompted: Prompted,
    /// What tells the client.
    pub(super) open: Arc<Open>,
}

impl Prompting<'_> {
    /// Says `prompt` and looks after the turn until it is over, and told.
    ///
    /// # Errors
    /// Where it could not be said, or the turn failed.
    pub(super) async fn run(&self, prompt: Vec<Block>) -> Result<PromptResponse, Error> {
        let content = prompt.into_iter().map(block).collect::<Result<Vec<_>, _>>()?;
        let message = NewMessage { content, kept_by: KeptBy::Chat, ..NewMessage::text(String::new()) };
        let storing = self.engine.send(&self.conversation, message);
        let sent = self.open.sending(storing, |sent| sent.message_id).await.map_err(|error| failed(&error))?;
        let stopping = async {
            self.prompted.stopped().await;
            match self.engine.cancel(&self.conversation, Some(sent.turn_id)).await {
                // It is told to its end; one that is over already needs no stop.
                Ok(_) | Err(EngineError::NoOpenTurn { .. }) => std::future::pending().await,
                Err(error) => failed(&error),
            }
        };
        let ended = tokio::select! {
            biased;
            error = stopping => Err(error),
            reason = self.look_after(&sent) => reason,
            error = self.go_on_with(sent.turn_id) => Err(error),
        };
        match ended {
            Err(_) if self.is_gone().await => Ok(PromptResponse::new(StopReason::Cancelled)),
            ended => ended,
        }
    }

    /// Goes on with a turn that the message joined, where the process that drove it is found to be gone. Ends where it cannot.
    async fn go_on_with(&self, turn: TurnId) -> Error {
        loop {
            match self.engine.wait(&self.conversation, turn).await {
                Ok(TurnState::Parked) => {}
                // It is told to its end, and so is that the process ends.
                Ok(TurnState::Ended(_)) | Err(EngineError::ShuttingDown) => return std::future::pending().await,
                Err(error) => return failed(&error),
            }
            match self.engine.watch(&self.conversation, WatchFrom::Now).await {
                Ok(mut watch) => drop(watch.next().await),
                Err(error) => return failed(&error),
            }
        }
    }

    /// Whether the conversation was deleted meanwhile, which ends its turn.
    async fn is_gone(&self) -> bool {
        matches!(self.engine.conversation(&self.conversation).await, Err(EngineError::NotFound { .. }))
    }

    /// Asks what a person must decide of what comes of a message, until its turn is over.
    async fn look_after(&self, sent: &Sent) -> Result<PromptResponse, Error> {
        let before = Seq::new(sent.message_id.0.get().saturating_sub(1));
        let mut watch =
            self.engine.watch(&self.conversation, WatchFrom::After(before)).await.map_err(|error| failed(&error))?;
        let mut rests = Rests::default();
        // That the turn waits was told before a message that is held, and is not told again.
        let mut is_due = matches!(sent.state, SentState::Held);
        // Other calls of the turn go on while a person is asked about one.
        let mut asking: Option<Asking<'_>> = None;
        loop {
            if asking.is_none() && is_due {
                is_due = false;
                asking = Some(Box::pin(self.ask()));
            }
            let frame = tokio::select! {
                biased;
                asked = until_asked(&mut asking) => {
                    asked?;
                    asking = None;
                    continue;
                }
                frame = watch.next() => frame,
            };
            let Some(frame) = frame else {
                let why = "the process ends; the turn is kept and goes on when its conversation is taken up again";
                return Err(Error::internal_error().data(why));
            };
            let mut over = None;
            for event in frame.events.iter() {
                match rests.fold(event) {
                    None => {}
                    Some(Rest::Waits) => is_due = true,
                    rest @ Some(Rest::Over { .. }) => over = rest,
                }
                match event {
                    // A call that waits on its open connection goes on meanwhile: the turn does not come to rest.
                    Event::ElicitationRequested { question_id, holds_connection: true, .. } => {
                        self.decline(*question_id).await?;
                    }
                    Event::ToolApprovalRequested { .. } => is_due = true,
                    _ => {}
                }
            }
            if is_due || over.is_some() {
                // What it is about is told before it is asked, and all of a turn before its prompt is answered.
                self.open.has_told(frame.seq).await;
            }
            if let Some(Rest::Over { status, stop, finish_reason, error }) = over {
                let reason = stop_reason(status, finish_reason, error)?;
                // The protocol has no word for it.
                let meta = stop.map(|stop| Meta::from_iter([("turnwright".to_owned(), json!({"stop": stop}))]));
                return Ok(PromptResponse::new(reason).meta(meta));
            }
        }
    }

    /// Asks the client about everything that waits. Of several prompts in one session one asks.
    async fn ask(&self) -> Result<(), Error> {
        let _asking = self.open.asking.lock().await;
        self.decline_all().await?;
        for call in self.engine.waiting(&self.conversation).await.map_err(|error| failed(&error))? {
            let asked = tokio::select! {
                biased;
                settled = self.settled(call.call) => { settled?; None }
                verdict = self.verdict(&call) => Some(verdict?),
            };
            let Some((verdict, remember)) = asked else { continue };
            let choice = Choice { verdict, arguments: None, reason: None };
            let decided = self.engine.decide_and_remember(&self.conversation, call.approval, choice, remember).await;
            stale(decided.map(drop))?;
        }
        Ok(())
    }

    /// Declines what calls ask of people: the client has no forms.
    async fn decline_all(&self) -> Result<(), Error> {
        for question in self.engine.questions(&self.conversation).await.map_err(|error| failed(&error))? {
            self.decline(question.id).await?;
        }
        Ok(())
    }

    async fn decline(&self, question: ElicitationId) -> Result<(), Error> {
        let declined = self.engine.answer(&self.conversation, question, Reply::of(AnswerAction::Decline)).await;
        stale(declined.map(drop))
    }

    /// Waits until nobody is asked about a call any more: it was decided elsewhere, or the turn was stopped. What others of the
    /// turn's calls ask meanwhile is declined.
    async fn settled(&self, call: CallId) -> Result<(), Error> {
        let watch = self.engine.watch(&self.conversation, WatchFrom::Now).await;
        let mut watch = watch.map_err(|error| failed(&error))?;
        loop {
            let waiting = self.engine.waiting(&self.conversation).await.map_err(|error| failed(&error))?;
            if waiting.iter().all(|waiting| waiting.call != call) {
                return Ok(());
            }
            self.decline_all().await?;
            if watch.next().await.is_none() {
                return Ok(());
            }
        }
    }

    /// What a call is about to change, with what is there.
    async fn changes(&self, name: &str, input: Option<Value>) -> Option<Diff> {
        let (folder, name, input, known) = (self.folder.to_owned(), name.to_owned(), input?, self.engine.secrets());
        let reading = tokio::task::spawn_blocking(move || changes::read(&folder, &name, &input));
        let diff = reading.await.ok()??;
        let before = diff.old_text.as_deref().map(|text| known.now().hide(text).into_owned());
        Some(diff.old_text(before))
    }

    async fn verdict(&self, call: &WaitingCall) -> Result<(Verdict, Option<Remember>), Error> {
        let (why, options) = question(call);
        let input: Option<Value> = serde_json::from_str(&call.arguments).ok();
        let tool = |journal: &Journal| journal.offered().iter().find(|tool| tool.name == call.name).cloned();
        let tool = self.engine.look(&self.conversation, tool).await.map_err(|error| failed(&error))?;
        // A client takes over what it is told here into what it shows of the call: its title stays.
        let title = updates::title(tool.as_deref(), &call.name, input.as_ref().unwrap_or(&Value::Null));
        let changes = self.changes(&call.name, input.clone()).await.map(ToolCallContent::Diff);
        let content: Vec<_> = why.map(ToolCallContent::from).into_iter().chain(changes).collect();
        let content = Some(content).filter(|content| !content.is_empty());
        let fields = ToolCallUpdateFields::new().title(title).raw_input(input).content(content);
        let request =
            RequestPermissionRequest::new(self.session.clone(), ToolCallUpdate::new(call.call.to_string(), fields), options);
        // Nobody decided: a client that went away answers so too.
        let answer = self.asked(request).await.map_err(|error| {
            let why = format!("the client could not ask about `{}`, which still waits: {}", call.name, error.message);
            Error::new(ErrorCode::INTERNAL_ERROR, why)
        })?;
        let chosen = match answer.outcome {
            RequestPermissionOutcome::Selected(selected) => selected.option_id.to_string(),
            _ => String::new(),
        };
        let remember = (chosen == ALWAYS).then(|| Remember::proposed(Scope::Conversation));
        let verdict = match (chosen.as_str(), call.reason) {
            (HAPPENED, _) => Verdict::Happened,
            (AGAIN, _) => Verdict::RunAgain,
            (_, QuestionReason::UnknownOutcome) => Verdict::Skip,
            (ALLOW | ALWAYS, _) => Verdict::Allow,
            _ => Verdict::Deny,
        };
        Ok((verdict, remember))
    }

    /// What the client answers. Whoever does not wait for it any more takes nothing back: a client that cancels a turn answers what
    /// it was asked as cancelled, and not every one knows `$/cancel_request`, which is sent where a request is dropped.
    async fn asked(&self, request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        let (tell, told) = oneshot::channel();
        let sent = self.client.send_request(request);
        self.client.spawn(async move {
            // Nobody waits any more where the turn is over.
            drop(tell.send(sent.block_task().await));
            Ok(())
        })?;
        told.await.unwrap_or_else(|_| Err(Error::new(ErrorCode::INTERNAL_ERROR, "the connection is closed")))
    }
}

/// Why the client is asked about a call, where that is not all that it asks, and what may be chosen.
fn question(call: &WaitingCall) -> (Option<String>, Vec<PermissionOption>) {
    let name = &call.name;
    let why = match call.reason {
        QuestionReason::Approval => call.rule.as_ref().map(|rule| format!("asked by: {rule}")),
        QuestionReason::UnknownOutcome => Some(format!("`{name}` was interrupted and may have happened.")),
        // Nobody but the client that offers it can run it.
        QuestionReason::ClientTool => Some(format!("`{name}` runs in another program, which is waited for.")),
        QuestionReason::DefinitionChanged => Some(format!("`{name}` is not the tool any more that was allowed.")),
        QuestionReason::Loop => {
            let rule = call.rule.as_deref().unwrap_or("the model repeats itself");
            Some(format!("{rule}; `{name}` would be called once more."))
        }
    };
    let option = |id: &'static str, name: &str, kind| PermissionOption::new(id, name, kind);
    let deny = option(DENY, "Deny", PermissionOptionKind::RejectOnce);
    let options = match call.reason {
        QuestionReason::UnknownOutcome => vec![
            option(HAPPENED, "It happened", PermissionOptionKind::AllowOnce),
            option(AGAIN, "Run it again", PermissionOptionKind::AllowOnce),
            option(DENY, "Go on without it", PermissionOptionKind::RejectOnce),
        ],
        QuestionReason::ClientTool => vec![deny],
        QuestionReason::Approval | QuestionReason::DefinitionChanged | QuestionReason::Loop => {
            let always = |rule| option(ALWAYS, &format!("In this session: {rule}"), PermissionOptionKind::AllowAlways);
            let once = option(ALLOW, "Allow once", PermissionOptionKind::AllowOnce);
            [Some(once), call.always.as_ref().map(always), Some(deny)].into_iter().flatten().collect()
        }
    };
    (why, options)
}

/// What was answered elsewhere meanwhile, or is over since the turn was stopped, is no failure.
fn stale(done: Result<(), EngineError>) -> Result<(), Error> {
    match done {
        Ok(()) | Err(EngineError::NotWaiting { .. } | EngineError::NotAsked { .. }) => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}

fn stop_reason(status: &str, finish_reason: &str, error: Option<String>) -> Result<StopReason, Error> {
    match status {
        "cancelled" => Ok(StopReason::Cancelled),
        "step_limit" => Ok(StopReason::MaxTurnRequests),
        "stopped" if error.is_some() => Ok(StopReason::MaxTurnRequests),
        "stopped" => Ok(StopReason::Refusal),
        "failed" => Err(Error::new(ErrorCode::INTERNAL_ERROR, error.unwrap_or_else(|| "the turn failed".to_owned()))),
        _ if finish_reason == "length" => Ok(StopReason::MaxTokens),
        _ => Ok(StopReason::EndTurn),
    }
}

/// A block of a prompt: both have MCP's shapes.
fn block(block: Block) -> Result<ContentBlock, Error> {
    let wrong = |why: String| Error::new(ErrorCode::INVALID_PARAMS, why);
    let kept: ContentBlock = serde_json::to_value(block)
        .and_then(serde_json::from_value)
        .map_err(|error| wrong(format!("a block of the prompt is not understood: {error}")))?;
    kept.shown().map_err(|error| wrong(error.to_string()))
}

/// Never, where nobody is asked.
async fn until_asked(asking: &mut Option<Asking<'_>>) -> Result<(), Error> {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}

pub(super) fn failed(error: &EngineError) -> Error {
    match error {
        EngineError::NotFound { .. } | EngineError::NoTool { .. } => {
            Error::new(ErrorCode::RESOURCE_NOT_FOUND, error.to_string())
        }
        EngineError::Invalid { .. } => Error::new(ErrorCode::INVALID_PARAMS, error.to_string()),
        _ => Error::new(ErrorCode::INTERNAL_ERROR, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use turnwright_core::ApprovalId;
    use turnwright_core::policy::{Action, Policy};

    use super::*;

    fn offered(reason: QuestionReason) -> Vec<String> {
        let id = CallId { message: Seq::FIRST, index: 0 };
        let call = WaitingCall {
            conversation: "c".parse().unwrap(),
            call: id,
            approval: ApprovalId { call: id, number: 1 },
            name: "pick".to_owned(),
            arguments: "{}".to_owned(),
            reason,
            rule: None,
            always: (reason == QuestionReason::Approval)
                .then(|| Policy::default().proposed("pick", &Value::Null, Action::Allow)),
        };
        question(&call).1.iter().map(|option| option.option_id.to_string()).collect()
    }

    #[test]
    fn what_is_offered_about_a_call_can_be_decided_about_it() {
        assert_eq!(offered(QuestionReason::Approval), [ALLOW, ALWAYS, DENY]);
        assert_eq!(offered(QuestionReason::Loop), [ALLOW, DENY]);
        assert_eq!(offered(QuestionReason::UnknownOutcome), [HAPPENED, AGAIN, DENY]);
        assert_eq!(offered(QuestionReason::ClientTool), [DENY]);
    }
}
