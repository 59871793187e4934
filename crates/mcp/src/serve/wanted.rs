//! What a call waits for from a person: leave to run, or an answer to its tool.

use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests,
    InputRequiredResult,
};
use serde_json::{Value, json};
use turnwright_core::AnswerAction;
use turnwright_engine::Reply;

use super::approval;
use super::backing::{Asks, Happened, Inquiry, Question, RunningCall};

/// See the module.
#[derive(Debug)]
pub(super) enum Wanted {
    /// Whether it may run.
    Approval(Question),
    /// What its tool asks.
    Answer(Inquiry),
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

    /// As the client shows it, where it can.
    pub(super) fn shown(&self, shows: Shows) -> Option<ElicitRequestParams> {
        let (can, params) = match self {
            Self::Approval(question) => return approval::form(question).filter(|_| shows.forms),
            Self::Answer(Inquiry { id, message, asks }) => match asks {
                Asks::Form(schema) => (shows.forms, json!({"mode": "form", "message": message, "requestedSchema": schema})),
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
    pub(super) async fn settle(&self, running: &mut dyn RunningCall, said: &Value) -> Result<(), String> {
        let said: Option<ElicitResult> = serde_json::from_value(said.clone()).ok();
        match self {
            Self::Approval(question) => running.decide(said.is_some_and(|said| approval::allows(&said, question.leave))).await,
            Self::Answer(inquiry) => match running.answer(&inquiry.id, said.map_or(no(AnswerAction::Cancel), reply)).await {
                Ok(()) => Ok(()),
                Err(why) => {
                    tracing::info!(why, "the answer to a tool's question does not fit: it is told no");
                    running.answer(&inquiry.id, no(AnswerAction::Decline)).await
                }
            },
        }
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
    use super::*;

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
