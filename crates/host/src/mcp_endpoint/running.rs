//! One call of an MCP client while it runs: its turn's events as the port tells them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use turnwright_core::{AnswerAction, ApprovalId, ConversationId, ElicitationId, Journal, QuestionReason, Seq, TurnId, Verdict};
use turnwright_engine::{Choice, Engine, EngineError, Event, Progress, Reply, ToolOutput, WaitingCall, Watch, WatchFrom};
use turnwright_mcp::serve::{Asks, Happened, Inquiry, Leave, OfferedCall, Question, RunningCall};

use super::Questions;
use super::backing::{self, told};
use super::earlier::{is_looked_for, questions};
use super::pool::{MAX_CALLS, Slot};
use super::shared::{Attending, Shared};

/// How long a call that is stopped may take to stand still.
const STOP_TIME: Duration = Duration::from_secs(10);
/// How long a result that is stored may take to be told.
const TELL_TIME: Duration = Duration::from_millis(200);
/// After how long a result that was given out is with its client: a process that is killed earlier may have told nothing.
const HANDED_TIME: Duration = Duration::from_secs(1);
/// The most characters of arguments in a question.
const MAX_ARGUMENTS: usize = 2_000;
/// From this size of its result on a call is its conversation's last.
const LARGE_BYTES: usize = 64 << 10;
/// How many calls that were left are gone on with in the background.
const MAX_LEFT: usize = 256;

/// See the module.
#[derive(Debug)]
pub(super) struct Running {
    engine: Engine,
    shared: Arc<Shared>,
    client: String,
    tool: String,
    conversation: ConversationId,
    turn: TurnId,
    handle: String,
    watch: Watch,
    seen: Option<Seq>,
    told: VecDeque<Event>,
    /// What its person was asked last.
    asked: Option<(ApprovalId, QuestionReason)>,
    output: Option<ToolOutput>,
    /// Given back at the end; `None` where the call was found again.
    slot: Option<Slot>,
    /// `None` where no client waits for it here.
    attending: Option<Attending>,
}

impl Running {
    pub(super) fn new(
        engine: Engine,
        shared: Arc<Shared>,
        call: &OfferedCall,
        (conversation, turn): (ConversationId, TurnId),
        (watch, seen): (Watch, Option<Seq>),
        attending: Option<Attending>,
    ) -> Self {
        let handle = backing::handle(&conversation, turn);
        let (client, tool) = (call.client.clone(), call.tool.clone());
        let (told, asked, output, slot) = (VecDeque::new(), None, None, None);
        Self { engine, shared, client, tool, conversation, turn, handle, watch, seen, told, asked, output, slot, attending }
    }

    /// The same, which gives its conversation back at its end.
    pub(super) fn giving_back(self, slot: Slot) -> Self {
        Self { slot: Some(slot), ..self }
    }

    /// What an event means for whoever waits for the call.
    async fn read(&mut self, event: Event) -> Option<Happened> {
        match event {
            Event::Entry { seq, .. } => {
                self.seen = Some(seq);
                None
            }
            Event::ToolProgress { progress, total, message, .. } => {
                Some(Happened::Progress(Progress { progress, total, message }))
            }
            Event::ToolApprovalRequested { call_id, .. } => {
                let waiting = self.engine.waiting(&self.conversation).await.unwrap_or_default();
                // What is told from the beginning may have been decided long ago.
                let waiting = waiting.into_iter().find(|waiting| waiting.call == call_id)?;
                self.asked = Some((waiting.approval, waiting.reason));
                let number = |journal: &Journal| questions(journal, self.turn);
                let number = self.engine.look(&self.conversation, number).await.unwrap_or_default();
                Some(Happened::Asked(question(&self.tool, &waiting, number, &self.shared.command_flags)))
            }
            Event::ToolApprovalDecided { rule: None, .. } => {
                self.go_on().await;
                Some(Happened::Decided)
            }
            Event::ToolFinished { content, structured_content, is_error, .. } => {
                self.output = Some(ToolOutput { content, structured_content, is_error, diagnostic: None });
                None
            }
            Event::TurnFinished { turn_id, status, stop_summary, error, .. } if turn_id == self.turn => {
                let ended = self.output.take().unwrap_or_else(|| {
                    let why = error.map(|error| error.message).or(stop_summary);
                    let why = why.unwrap_or_else(|| format!("its turn is {status}"));
                    failure(format!("`{}` gave no result: {why}", self.tool))
                });
                self.note_told().await;
                if let Some(slot) = self.slot.take() {
                    // A conversation is in memory as a whole.
                    let calls = if is_large(&ended) { MAX_CALLS } else { slot.calls.saturating_add(1) };
                    self.shared.pool.give(&self.client, Slot { calls, ..slot });
                }
                Some(Happened::Ended(ended))
            }
            Event::ElicitationRequested { question_id, server, message, requested_schema: form, url, .. } => {
                let reply = match (self.shared.questions, &form) {
                    (Questions::AcceptDefaults, Some(_)) => Reply::accept(Some(serde_json::Map::new())),
                    (Questions::AcceptDefaults, None) => Reply::of(AnswerAction::Decline),
                    // Whoever calls from elsewhere does not say what models are asked here.
                    (Questions::AskClient, None) if url.is_none() => Reply::of(AnswerAction::Decline),
                    (Questions::AskClient, _) => {
                        let open = self.engine.questions(&self.conversation).await.unwrap_or_default();
                        // What is told from the beginning may have been answered long ago.
                        open.iter().find(|open| open.id == question_id)?;
                        let asks = form.map(Asks::Form).or_else(|| url.map(Asks::Visit))?;
                        let message = format!("{server} asks: {message}");
                        return Some(Happened::Inquired(Inquiry { id: question_id.to_string(), message, asks }));
                    }
                };
                if let Err(why) = self.reply(question_id, reply).await {
                    tracing::warn!(conversation = %self.conversation, turn = %self.turn, why, "a question of a tool stays open");
                }
                None
            }
            Event::ElicitationAnswered { question_id, .. } => Some(Happened::Answered(question_id.to_string())),
            Event::TurnStarted { .. }
            | Event::SamplingFinished { .. }
            | Event::StepStarted { .. }
            | Event::StepReset
            | Event::StepFinished { .. }
            | Event::TextDelta { .. }
            | Event::ReasoningDelta { .. }
            | Event::RefusalDelta { .. }
            | Event::ToolInputStarted { .. }
            | Event::ToolInputDelta { .. }
            | Event::ToolInputReady { .. }
            | Event::ToolApprovalDecided { .. }
            | Event::ToolStarted { .. }
            | Event::Usage { .. }
            | Event::Notice { .. }
            | Event::ContextGathered { .. }
            | Event::TurnSuspended { .. }
            | Event::TurnHeld { .. }
            | Event::TurnFinished { .. } => None,
        }
    }

    /// Notes that the client has the result, once it has had the time to come there: nobody who asks for the same call later means
    /// this one. Where more than the death of this process could make that matter, it is noted before that it is on its way.
    async fn note_told(&self) {
        if self.attending.is_none() {
            return;
        }
        let (shared, conversation, turn) = (self.shared.clone(), self.conversation.clone(), self.turn);
        let is_looked_for = self.engine.look(&conversation, |journal: &Journal| is_looked_for(journal, turn)).await;
        if is_looked_for.unwrap_or(true) {
            shared.note_handed(&conversation, turn, self.engine.driver()).await;
        }
        self.shared.tellings.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(HANDED_TIME) => {}
                () = shared.stop.cancelled() => {}
            }
            shared.note_told(&conversation, turn).await;
        });
    }

    /// Whether a person is asked whether the call is to run although it may have happened.
    async fn may_have_happened(&self) -> bool {
        let waiting = self.engine.waiting(&self.conversation).await.unwrap_or_default();
        waiting.iter().any(|waiting| waiting.reason == QuestionReason::UnknownOutcome)
    }

    /// Answers what the tool asked.
    async fn reply(&self, question: ElicitationId, reply: Reply) -> Result<(), String> {
        match self.engine.answer(&self.conversation, question, reply).await {
            Ok(_) => self.go_on().await,
            Err(EngineError::NotAsked { .. } | EngineError::NotFound { .. }) => {}
            Err(error) => return Err(told(&error)),
        }
        Ok(())
    }

    /// Has the turn driven where a decision freed it and nobody else takes it up.
    async fn go_on(&self) {
        if let Err(error) = self.engine.resume(&self.conversation).await
            && error != EngineError::ShuttingDown
        {
            tracing::warn!(conversation = %self.conversation, turn = %self.turn, %error, "a call that was decided about does not go on yet");
        }
    }
}

#[async_trait]
impl RunningCall for Running {
    fn handle(&self) -> &str {
        &self.handle
    }

    async fn next(&mut self) -> Happened {
        loop {
            if let Some(event) = self.told.pop_front() {
                if let Some(happened) = self.read(event).await {
                    return happened;
                }
                continue;
            }
            match self.watch.next().await {
                Some(frame) => self.told.extend(frame.events.iter().cloned()),
                // It was too slow, or the engine ends.
                None => match self.engine.watch(&self.conversation, WatchFrom::After(self.seen)).await {
                    Ok(watch) if !self.shared.stop.is_cancelled() => {
                        self.watch = watch;
                        tokio::task::yield_now().await;
                    }
                    Ok(_) => return Happened::Ended(failure("this server is ending; ask again later".to_owned())),
                    Err(error) => return Happened::Ended(failure(format!("`{}` is lost: {}", self.tool, told(&error)))),
                },
            }
        }
    }

    async fn decide(&mut self, may_run: bool) -> Result<(), String> {
        let Some((asked, reason)) = self.asked else { return Ok(()) };
        let verdict = match (reason, may_run) {
            (QuestionReason::UnknownOutcome, true) => Verdict::RunAgain,
            (QuestionReason::UnknownOutcome, false) => Verdict::Skip,
            (_, true) => Verdict::Allow,
            (_, false) => Verdict::Deny,
        };
        let reason = (!may_run).then(|| format!("the person at {} did not allow it", self.client));
        let choice = Choice { verdict, arguments: None, reason };
        // Others may have decided, and something else may be asked about the call by then: to that it is no answer.
        match self.engine.decide_and_remember(&self.conversation, asked, choice, None).await {
            Ok(_) | Err(EngineError::NotWaiting { .. }) => {
                self.go_on().await;
                Ok(())
            }
            Err(error) => Err(format!("the decision about `{}` was not taken: {}", self.tool, told(&error))),
        }
    }

    async fn answer(&mut self, inquiry: &str, reply: Reply) -> Result<(), String> {
        let question = inquiry.parse().map_err(|_| format!("`{}` did not ask `{inquiry}`", self.tool))?;
        self.reply(question, reply).await
    }

    async fn cancel(&mut self) {
        // Stopped, it would run a second time when the client calls it again, and nobody would have been told.
        if self.may_have_happened().await {
            self.shared.note_left(&self.conversation, self.turn).await;
            self.attending = None;
            return;
        }
        match self.engine.cancel(&self.conversation, Some(self.turn)).await {
            Ok(_) => self.go_on().await,
            // It ended by itself.
            Err(EngineError::NoOpenTurn { .. }) => {}
            Err(error) => {
                tracing::warn!(conversation = %self.conversation, turn = %self.turn, %error, "a call cannot be stopped");
            }
        }
        // Nothing is driven to its end any more; it ends as stopped at the next start.
        if self.engine.is_draining() {
            return;
        }
        let ended = async { while !matches!(self.next().await, Happened::Ended(_)) {} };
        if tokio::time::timeout(STOP_TIME, ended).await.is_err() {
            tracing::warn!(conversation = %self.conversation, turn = %self.turn, "a call that was stopped goes on");
        }
    }

    async fn put_down(&mut self) -> ToolOutput {
        let known = async {
            while self.output.is_none() {
                if let Happened::Ended(output) = self.next().await {
                    return output;
                }
            }
            self.note_told().await;
            self.output.take().unwrap_or_default()
        };
        // What is stored is told a moment later.
        let known = tokio::time::timeout(TELL_TIME, known).await;
        known.unwrap_or_else(|_late| {
            failure(format!(
                "this server is ending before `{}` is done. It goes on at the next start, in the conversation {}; whether it took \
                 effect is not known yet. Call it again with the same arguments then, to learn that",
                self.tool, self.conversation
            ))
        })
    }

    async fn leave(mut self: Box<Self>) {
        // Before the client hears of it, which may come again at another node at once.
        self.shared.note_left(&self.conversation, self.turn).await;
        // Its conversation takes no other call: what became of this one is not told yet.
        (self.attending, self.slot) = (None, None);
        let (tasks, stop) = (self.shared.tasks.clone(), self.shared.stop.clone());
        if tasks.len() >= MAX_LEFT {
            return;
        }
        tasks.spawn(async move {
            let ended = async { while !matches!(self.next().await, Happened::Ended(_)) {} };
            tokio::select! {
                () = stop.cancelled() => {}
                () = ended => {}
            }
        });
    }
}

/// Whether a result is so large that its conversation takes no other call.
fn is_large(output: &ToolOutput) -> bool {
    let texts: usize = output.content.iter().map(|block| block.as_text().len()).sum();
    let structured = output.structured_content.as_ref().map_or(0, |value| value.to_string().len());
    texts.saturating_add(structured) > LARGE_BYTES
}

fn failure(text: String) -> ToolOutput {
    ToolOutput { is_error: true, ..ToolOutput::text(text) }
}

/// What a person is asked, and where they can answer; `flags` follow the command that does.
fn question(tool: &str, waiting: &WaitingCall, number: usize, flags: &str) -> Question {
    let WaitingCall { conversation, call, approval, name, arguments, reason, rule, always: _ } = waiting;
    let mut shown: String = arguments.chars().take(MAX_ARGUMENTS).collect();
    if shown.len() < arguments.len() {
        shown.push('…');
    }
    let why = match (reason, rule) {
        (QuestionReason::Approval, Some(rule)) => format!("{rule} wants a person to allow it"),
        (QuestionReason::Approval, None) => "a person has to allow it".to_owned(),
        (QuestionReason::Loop, _) => "it was called again and again with the same result".to_owned(),
        (QuestionReason::DefinitionChanged, _) => "the tool is not the one any more that was allowed".to_owned(),
        (QuestionReason::UnknownOutcome, _) => "it was begun before and may have happened".to_owned(),
        (QuestionReason::ClientTool, _) => "it runs at the program that offers it".to_owned(),
    };
    let (allow, unlock) = match reason {
        QuestionReason::Approval | QuestionReason::DefinitionChanged | QuestionReason::Loop => {
            ("allow", "It runs once that is done")
        }
        QuestionReason::UnknownOutcome => {
            ("run_again", "It runs again once that is done (`happened` and `skip` are the other answers)")
        }
        QuestionReason::ClientTool => ("deny", "It is not waited for once that is done"),
    };
    let (leave, asks, left) = match reason {
        QuestionReason::UnknownOutcome => (Leave::ToRunAgain, "run again", "was not run again"),
        QuestionReason::Approval | QuestionReason::DefinitionChanged | QuestionReason::Loop | QuestionReason::ClientTool => {
            (Leave::ToRun, "run", "did not run")
        }
    };
    let mut elsewhere = format!(
        "`{tool}` {left}: {why}, and this client cannot ask anybody. Tell the person to run\n\
         turnwright approvals decide {call} {allow} --approval {approval} --conversation {conversation}{flags}\n\
         {unlock}; call the tool again with the same arguments to get the result."
    );
    // No rule says whether something happened.
    if leave == Leave::ToRun {
        let rule = format!(
            " A rule in turnwright.toml allows it from then on:\n[[approval.rules]]\ntool = \"{name}\"\naction = \"allow\""
        );
        elsewhere.push_str(&rule);
    }
    Question { key: Question::key_of(number), leave, text: format!("May `{name}` {asks} with {shown}? {why}."), elsewhere }
}
