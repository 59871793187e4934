//! A tool to practise with: it shows a form to the person and does nothing with what is written into it.
//!
//! It asks as an MCP server's tool does whose call is over until people have answered, so that the form is stored, outlives
//! this process and is answered wherever such questions are. A host offers it only while no model is configured.

use std::fmt::Write;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use turnwright_core::{AnswerAction, Declared, Elicitation, ToolErrorKind, Wants};
use turnwright_engine::ToolReply;
use turnwright_engine::source::{
    CallContext, CallLimits, SourceCall, SourceState, SourceTool, ToolError, ToolFace, ToolOutput, ToolSource,
};

use crate::error::not_found;

const TOOL: &str = "show_form";

/// The source `practice` with its one tool. Clones are one source.
#[derive(Debug, Clone)]
pub struct PracticeForm {
    tools: Arc<[SourceTool]>,
    /// How often what is offered changed: not at all, or once, when it was withdrawn.
    news: Arc<watch::Sender<u64>>,
}

impl Default for PracticeForm {
    fn default() -> Self {
        let tool = SourceTool {
            name: TOOL.to_owned(),
            title: Some("Show a practice form".to_owned()),
            description: "Shows the person a form to practise with; what they write into it is told and kept nowhere else"
                .to_owned(),
            input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
            annotations: None,
            declared: Declared { read_only: true, ..Declared::default() },
            face: Arc::new(ToolFace::default()),
        };
        Self { tools: Arc::from([tool]), news: Arc::new(watch::Sender::new(0)) }
    }
}

impl PracticeForm {
    /// Its name: the first half of its tool's.
    pub const NAME: &'static str = "practice";

    /// It is offered no more, since a model is there. Forms that were shown are still answered.
    pub fn withdraw(&self) {
        self.news.send_if_modified(|count| {
            let is_offered = *count == 0;
            *count = 1;
            is_offered
        });
    }

    fn is_withdrawn(&self) -> bool {
        *self.news.borrow() > 0
    }
}

/// What the form asks.
fn question() -> Elicitation {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 1, "maxLength": 80},
            "destination": {"type": "string", "title": "Where to", "enum": ["mountains", "sea", "city"]},
            "people": {"type": "integer", "title": "How many come along", "minimum": 1, "maximum": 9, "default": 2},
            "leaving": {"type": "string", "format": "date", "title": "Leaving on"},
            "window_seat": {"type": "boolean", "title": "A seat at the window", "default": true}
        },
        "required": ["name", "destination"]
    });
    let message = "This is practice: where would you like to travel? Nothing is booked.".to_owned();
    Elicitation { key: TOOL.to_owned(), message, wants: Wants::Form { schema } }
}

/// What the model is told of the answer.
fn told(action: AnswerAction, content: Option<&Map<String, Value>>) -> ToolOutput {
    match action {
        AnswerAction::Accept => {
            let mut text = "The person filled in the practice form:".to_owned();
            for (field, value) in content.into_iter().flatten() {
                let _ = write!(text, "\n{field}: {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
            ToolOutput { structured_content: content.cloned().map(Value::Object), ..ToolOutput::text(text) }
        }
        AnswerAction::Decline => ToolOutput::text("The person declined the practice form."),
        AnswerAction::Cancel => ToolOutput::text("The person closed the practice form without an answer."),
    }
}

#[async_trait]
impl ToolSource for PracticeForm {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn state(&self) -> SourceState {
        SourceState::Ready
    }

    fn tools(&self) -> Arc<[SourceTool]> {
        if self.is_withdrawn() { Arc::from([]) } else { Arc::clone(&self.tools) }
    }

    fn news(&self) -> Option<watch::Receiver<u64>> {
        Some(self.news.subscribe())
    }

    async fn settled(&self) {}

    async fn call(&self, call: SourceCall, context: CallContext) -> Result<ToolOutput, ToolError> {
        is_known(&call)?;
        let reply = tokio::select! {
            reply = context.asks.ask(question()) => reply,
            () = context.cancel.cancelled() => None,
        };
        match reply {
            Some(reply) => Ok(told(reply.action, reply.content.as_ref())),
            None => Err(ToolError::new(ToolErrorKind::Interrupted, "Nobody answers any more.")),
        }
    }

    async fn advance(&self, call: SourceCall, context: CallContext) -> Result<ToolReply, ToolError> {
        is_known(&call)?;
        let answer = context.resume.as_ref().and_then(|resumed| resumed.answers.first());
        Ok(match answer {
            Some(settled) => ToolReply::Done(told(settled.answer.action, settled.answer.content.as_ref())),
            None => ToolReply::Asks { asks: vec![question()], resume: Value::Null },
        })
    }

    fn limits(&self, _tool: &str) -> CallLimits {
        CallLimits::default()
    }

    async fn stop(&self) {}
}

fn is_known(call: &SourceCall) -> Result<(), ToolError> {
    if call.tool == TOOL {
        return Ok(());
    }
    Err(not_found(format!("the tool source `{}` has no tool `{}`", PracticeForm::NAME, call.tool)))
}

#[cfg(test)]
mod tests {
    use turnwright_core::Form;

    use super::*;

    #[test]
    fn its_form_is_one_that_people_can_be_shown_in_the_order_of_its_fields() {
        let Wants::Form { schema } = question().wants else { panic!("it asks for something else") };
        let form = Form::read(&schema).unwrap();
        let names: Vec<&str> = form.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["name", "destination", "people", "leaving", "window_seat"]);
    }

    #[test]
    fn what_was_answered_is_told_and_a_refusal_is_told_as_one() {
        let content = json!({"name": "Ada", "people": 2}).as_object().cloned();
        let output = told(AnswerAction::Accept, content.as_ref());
        assert_eq!(output.content, ToolOutput::text("The person filled in the practice form:\nname: Ada\npeople: 2").content);
        assert_eq!(told(AnswerAction::Decline, None), ToolOutput::text("The person declined the practice form."));
    }

    #[test]
    fn once_withdrawn_it_offers_nothing_and_says_so_once() {
        let source = PracticeForm::default();
        let news = source.news().unwrap();
        assert_eq!(source.tools().len(), 1);
        source.withdraw();
        source.clone().withdraw();
        assert_eq!((source.tools().len(), *news.borrow()), (0, 1));
    }
}
