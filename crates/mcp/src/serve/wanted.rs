//! What a call waits for from a person: leave to run, or an answer to its tool.

use std::collections::VecDeque;

use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests,
    InputRequiredResult,
};
use serde_json::{Value, json};
use turnwright_core::AnswerAction;
use turnwright_engine::Reply;

use super::approval;
use super::backing::{Asks, Happened, Inquiry, Question, RunningCall};

/// How often a person is asked again for an answer that did not fit.
const MOST_REFUSALS: usize = 3;

/// See the module.
#[derive(Debug)]
pub(super) enum Wanted {
    /// Whether it may run.
    Approval(Question),
    /// What its tool asks.
    Answer(Inquiry),
}

/// What came of what a person said.
#[derive(Debug)]
pub(super) enum Settled {
    /// The call was told.
    Told,
    /// It does not fit what the tool asks, for this reason, and the question is still open.
    Refused(Inquiry, String),
}

/// The kinds of questions that a client can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shows {
    forms: bool,
    addresses: bool,
}

impl Shows {
    /// As the client says. One that names no kind of elicitation means forms.
    pub(super) fn of(capabilities: Option<&ClientCapabilities>) -> Self {
        let kinds = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
        Self {
            forms: kinds.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none()),
            addresses: kinds.is_some_and(|kinds| kinds.url.is_some()),
        }
    }
}

impl Wanted {
    /// Its key among the input that a call requires (2026-07-28).
    pub(super) fn key(&self) -> &str {
        match self {
            Self::Approval(question) => &question.key,
            Self::Answer(inquiry) => &inquiry.id,
        }
    }

    /// As the client shows it, where it can; with what did not fit of the answer before.
    pub(super) fn shown(&self, shows: Shows, refused: Option<&str>) -> Option<ElicitRequestParams> {
        let (can, params) = match self {
            Self::Approval(question) => return approval::form(question).filter(|_| shows.forms),
            Self::Answer(Inquiry { id, message, asks }) => match asks {
                Asks::Form(schema) => {
                    let message = refused.map_or_else(|| message.clone(), |why| format!("{message}\n\n{why}"));
                    (shows.forms, json!({"mode": "form", "message": message, "requestedSchema": schema}))
                }
                Asks::Visit(url) => {
                    (shows.addresses, json!({"mode": "url", "message": message, "url": url, "elicitationId": id}))
                }
            },
        };
        can.then(|| serde_json::from_value(params).ok()).flatten()
    }

    /// The same as input that the call requires, with the handle by which the call is found again.
    pub(super) fn required(&self, shown: ElicitRequestParams, handle: &str) -> InputRequiredResult {
        let request = InputRequest::Elicitation(ElicitRequest::new(shown));
        let requests = InputRequests::from([(self.key().to_owned(), request)]);
        InputRequiredResult::new(Some(requests), Some(handle.to_owned()))
    }

    /// Whether nobody needs to be asked any more.
    pub(super) fn is_settled_by(&self, happened: &Happened) -> bool {
        match (self, happened) {
            (_, Happened::Ended(_)) | (Self::Approval(_), Happened::Decided) => true,
            (Self::Answer(inquiry), Happened::Answered(id)) => inquiry.id == *id,
            (
                _,
                Happened::Progress(_) | Happened::Asked(_) | Happened::Inquired(_) | Happened::Decided | Happened::Answered(_),
            ) => false,
        }
    }

    /// Gives the call what the person said.
    ///
    /// # Errors
    /// Where nothing more can come of the call, in words.
    async fn settle(self, running: &mut dyn RunningCall, said: &Value) -> Result<Settled, String> {
        let said: Option<ElicitResult> = serde_json::from_value(said.clone()).ok();
        match self {
            Self::Approval(question) => {
                let is_allowed = said.is_some_and(|said| approval::allows(&said, question.leave));
                running.decide(is_allowed).await.map(|()| Settled::Told)
            }
            Self::Answer(inquiry) => {
                let mut reply = said.map_or(no(AnswerAction::Cancel), reply);
                if let Asks::Visit(_) = inquiry.asks {
                    reply.content = None;
                }
                let action = reply.action;
                match running.answer(&inquiry.id, reply).await {
                    Ok(()) => Ok(Settled::Told),
                    Err(why) if action == AnswerAction::Accept => Ok(Settled::Refused(inquiry, why)),
                    Err(why) => Err(why),
                }
            }
        }
    }
}

/// Answers that did not fit what a tool asks.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    count: usize,
    /// What did not fit of the newest.
    pub(super) newest: Option<String>,
}

impl Refusals {
    /// After which nobody is asked again.
    pub(super) fn without_another() -> Self {
        Self { count: MOST_REFUSALS, newest: None }
    }

    /// Gives the call what the person said. Where it does not fit, the person is asked again with the reason; a client that gives what
    /// does not fit each time gave no answer.
    ///
    /// # Errors
    /// Where nothing more can come of the call, in words.
    pub(super) async fn settle(
        &mut self,
        wanted: Wanted,
        running: &mut dyn RunningCall,
        said: &Value,
        later: &mut VecDeque<Happened>,
    ) -> Result<(), String> {
        match wanted.settle(running, said).await? {
            Settled::Told => *self = Self::default(),
            Settled::Refused(inquiry, why) if self.count < MOST_REFUSALS => {
                tracing::debug!(why, "an answer to a tool's question does not fit: it is asked again");
                (self.count, self.newest) = (self.count + 1, Some(why));
                later.push_front(Happened::Inquired(inquiry));
            }
            Settled::Refused(inquiry, why) => {
                tracing::info!(why, "the answers to a tool's question do not fit: it is told that there is none");
                running.answer(&inquiry.id, no(AnswerAction::Cancel)).await?;
            }
        }
        Ok(())
    }
}

/// An answer that holds nothing.
pub(super) fn no(action: AnswerAction) -> Reply {
    Reply::of(action)
}

fn reply(said: ElicitResult) -> Reply {
    let action = match said.action {
        ElicitationAction::Accept => AnswerAction::Accept,
        ElicitationAction::Decline => AnswerAction::Decline,
        // Whatever else the protocol may know one day is no yes.
        ElicitationAction::Cancel | _ => AnswerAction::Cancel,
    };
    let content = match said.content {
        Some(Value::Object(content)) if action == AnswerAction::Accept => Some(content),
        _ => None,
    };
    Reply { content, ..Reply::of(action) }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use turnwright_engine::ToolOutput;

    use super::*;

    /// A call whose tool wants a number, and what it was told.
    #[derive(Debug, Default)]
    struct Number(Vec<AnswerAction>);

    #[async_trait]
    impl RunningCall for Number {
        fn handle(&self) -> &'static str {
            "handle"
        }

        async fn next(&mut self) -> Happened {
            std::future::pending().await
        }

        async fn decide(&mut self, _: bool) -> Result<(), String> {
            Ok(())
        }

        async fn answer(&mut self, _: &str, reply: Reply) -> Result<(), String> {
            let fits = reply.action != AnswerAction::Accept || reply.content.is_some_and(|content| content["n"].is_u64());
            if !fits {
                return Err("`n` must be a whole number".to_owned());
            }
            self.0.push(reply.action);
            Ok(())
        }

        async fn cancel(&mut self) {}

        async fn put_down(&mut self) -> ToolOutput {
            ToolOutput::default()
        }

        async fn leave(self: Box<Self>) {}
    }

    #[tokio::test]
    async fn what_does_not_fit_is_asked_again_with_the_reason_and_is_no_answer_in_the_end() {
        let inquiry = Inquiry {
            id: "q".to_owned(),
            message: "How many?".to_owned(),
            asks: Asks::Form(json!({"type": "object", "properties": {"n": {"type": "integer"}}})),
        };
        let (wrong, right) =
            (json!({"action": "accept", "content": {"n": "5"}}), json!({"action": "accept", "content": {"n": 5}}));
        let can = Shows { forms: true, addresses: true };
        let (mut call, mut later, mut refusals) = (Number::default(), VecDeque::new(), Refusals::default());
        refusals.settle(Wanted::Answer(inquiry.clone()), &mut call, &wrong, &mut later).await.unwrap();
        let Some(Happened::Inquired(again)) = later.pop_front() else { panic!("{later:?}") };
        let question = Wanted::Answer(again).shown(can, refusals.newest.as_deref());
        let question = serde_json::to_value(question).unwrap();
        assert_eq!(question["message"], json!("How many?\n\n`n` must be a whole number"));
        refusals.settle(Wanted::Answer(inquiry.clone()), &mut call, &right, &mut later).await.unwrap();
        assert_eq!((call.0.as_slice(), later.len()), ([AnswerAction::Accept].as_slice(), 0));
        for _ in 0..=MOST_REFUSALS {
            refusals.settle(Wanted::Answer(inquiry.clone()), &mut call, &wrong, &mut later).await.unwrap();
        }
        assert_eq!((call.0.as_slice(), later.len()), ([AnswerAction::Accept, AnswerAction::Cancel].as_slice(), MOST_REFUSALS));
    }

    #[test]
    fn a_client_is_shown_what_it_says_it_can_show() {
        let shows = |elicitation: Value| {
            let capabilities = serde_json::from_value(json!({"elicitation": elicitation})).unwrap();
            let Shows { forms, addresses } = Shows::of(Some(&capabilities));
            (forms, addresses)
        };
        assert_eq!([shows(json!({})), shows(json!({"form": {}}))], [(true, false); 2]);
        assert_eq!((shows(json!({"form": {}, "url": {}})), shows(json!({"url": {}}))), ((true, true), (false, true)));
        let nothing = Shows { forms: false, addresses: false };
        assert_eq!([Shows::of(Some(&ClientCapabilities::default())), Shows::of(None)], [nothing; 2]);
    }
}
