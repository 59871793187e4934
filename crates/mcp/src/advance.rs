//! A call from its begin to its end, or until people are wanted: over a new connection where that is safe, as a task where the server
//! goes on with it by itself.

use std::time::Duration;

use turnwright_core::{Resumption, ToolErrorKind};
use turnwright_engine::{CallContext, SourceCall, ToolError, ToolReply, ToolSource};

use crate::McpServer;
use crate::call::{self, Called, Caller, Form};
use crate::input::Again;
use crate::meant::Meant;
use crate::server::MAX_ROUNDS;
use crate::task::{Reach, TakenUp, Task};

/// How much longer is waited each time before a call is made again, where nothing was asked of people.
const ROUND_PAUSE: Duration = Duration::from_millis(100);

impl McpServer {
    /// Makes a call, or goes on with one, until it is done or people are wanted. What comes of it is as the server said it.
    pub(crate) async fn advanced(&self, call: SourceCall, context: CallContext) -> Result<ToolReply, ToolError> {
        let meant = self.tool(&call.tool);
        let mut again = match &context.resume {
            Some(resumption) => Box::pin(self.again(&call.tool, resumption)).await?,
            None => Again::Plain,
        };
        let mut task = context.task.as_deref().and_then(Task::resumed);
        let mut taken_up = if task.is_some() { TakenUp::Unheard } else { TakenUp::Heard };
        for round in 0..MAX_ROUNDS {
            if let Again::Task { task: own, responses } = &again {
                let mut own = own.clone();
                Box::pin(self.tell_task(&call.tool, &mut own, responses, &context)).await?;
                task = Some(own);
            }
            let called = match &mut task {
                Some(task) => Box::pin(self.follow(&call.tool, task, &context, &mut taken_up)).await?,
                None => self.call_mended(meant.as_ref(), &call, again, &context).await?,
            };
            again = Again::Plain;
            match called {
                Called::Changed if round == 0 => return Ok(ToolReply::Changed),
                Called::Changed => return Err(self.changed(&call.tool)),
                Called::OnlyAsTask => {
                    return Err(self.not_finished(&call.tool, "is taken as a task alone, and was not taken as one"));
                }
                Called::Task(accepted) => {
                    context.tasks.accepted(accepted.stored()).await;
                    task = Some(accepted);
                }
                Called::Done(output) => {
                    let promises = self.shared().offered().promises;
                    return Ok(ToolReply::Done(promises.judged(meant.as_ref().and_then(Meant::tool), output)));
                }
                Called::Wants(wanted) if wanted.asks.is_empty() => {
                    // There is nothing to wait for but the server itself.
                    Box::pin(tokio::time::sleep(ROUND_PAUSE * round)).await;
                    again = wanted.again;
                }
                Called::Wants(wanted) => {
                    return Ok(ToolReply::Asks { resume: wanted.again.stored(), asks: wanted.asks });
                }
            }
        }
        Err(self.insatiable(&call.tool))
    }

    /// One request and its answer, of a call of what was `meant`.
    async fn call_once(
        &self,
        meant: Option<&Meant>,
        call: &SourceCall,
        again: Again,
        context: &CallContext,
    ) -> Result<Called, Broken> {
        // Its start has a limit of its own.
        let starts = context.standstill.hold();
        let connection = tokio::select! {
            // First: nothing is sent of a call that is told to end while its server starts.
            biased;
            () = context.cancel.cancelled() => {
                let text = format!("`{}` was cancelled before it was called.", call.tool);
                return Err(Broken::Failed(ToolError::new(ToolErrorKind::Cancelled, text)));
            }
            connection = self.connection(&call.tool) => connection.map_err(Broken::Unreached)?,
        };
        drop(starts);
        // What was offered may be what an earlier run had learned.
        if meant.is_some() && meant != self.tool(&call.tool).as_ref() {
            return Ok(Called::Changed);
        }
        let caller = Caller {
            server: &self.shared().config.name,
            log: &self.shared().log,
            granted: &self.shared().config.granted,
            total: self.limits(&call.tool).total,
            cancel_grace: self.shared().config.cancel_grace,
        };
        let knows = connection.agreed.knows_tasks() && again == Again::Plain;
        let form = if knows && self.shared().offered().tasks.contains(&call.tool) { Form::Task } else { Form::Plain };
        let mut answer = call::call(caller, &connection, (call, form), again, context).await;
        if let (Ok(Called::OnlyAsTask), Form::Plain) = (&answer, form) {
            answer = Box::pin(call::call(caller, &connection, (call, Form::Task), Again::Plain, context)).await;
        }
        match answer {
            Ok(answer) => {
                connection.served();
                Ok(answer)
            }
            Err(error) if error.kind == ToolErrorKind::Unavailable && !connection.is_open() => Err(Broken::Lost(error)),
            Err(error) => Err(Broken::Failed(error)),
        }
    }

    /// The same, sent once more over a new connection where the tool is replayable and the connection broke.
    async fn call_mended(
        &self,
        meant: Option<&Meant>,
        call: &SourceCall,
        again: Again,
        context: &CallContext,
    ) -> Result<Called, ToolError> {
        let is_replayable = meant.and_then(Meant::tool).is_some_and(|tool| tool.declared.is_replayable());
        let first = self.call_once(meant, call, again.clone(), context).await;
        match first {
            // The connection is opened anew, once for all who wait.
            Err(Broken::Lost(lost)) if is_replayable && !context.cancel.is_cancelled() => {
                tracing::info!(server = self.shared().config.name, tool = call.tool, "a replayable call is repeated");
                match Box::pin(self.call_once(meant, call, again, context)).await {
                    // It was called the first time.
                    Err(Broken::Unreached(_)) | Ok(Called::Changed) => Err(lost),
                    done => done.map_err(Broken::into_error),
                }
            }
            done => done.map_err(Broken::into_error),
        }
    }

    /// The call that was stored, with what was answered. A task whose server does not get what it wants is of no use.
    async fn again(&self, tool: &str, resumption: &Resumption) -> Result<Again, ToolError> {
        match Again::resumed(resumption) {
            Ok(again) => Ok(again),
            Err(why) => {
                if let Some(task) = resumption.resume.get("task").and_then(Task::resumed) {
                    self.called_off(tool, &task, Reach::Start).await;
                }
                Err(self.not_finished(tool, &why))
            }
        }
    }
}

/// How an attempt at a call went wrong.
enum Broken {
    /// There was no connection: nothing was sent.
    Unreached(ToolError),
    /// The connection broke while it ran.
    Lost(ToolError),
    /// In any other way.
    Failed(ToolError),
}

impl Broken {
    fn into_error(self) -> ToolError {
        let (Self::Unreached(error) | Self::Lost(error) | Self::Failed(error)) = self;
        error
    }
}
