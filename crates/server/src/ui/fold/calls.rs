//! What the client is told about calls.

use std::sync::Arc;

use turnwright_core::{ApprovalId, CallId, QuestionReason, ToolDefinition, Verdict, text_of};
use turnwright_engine::Event;

use super::{Step, UiFold, Untold};
use crate::stopping::{TOLD, is_stop};
use crate::ui::UiVersion;
use crate::ui::chunk::{Output, Question};

/// A call and what the client knows of it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) name: String,
    /// Whole arguments, once the call is stored.
    pub(super) arguments: Option<String>,
    /// The arguments that a person put in their place.
    pub(super) changed: Option<String>,
    /// Whether the client knows the call.
    pub(super) is_announced: bool,
    /// Whether the client knows that somebody is asked about it.
    pub(super) is_asked_about: bool,
    /// After how many decisions somebody was asked about it last.
    pub(super) asked: Option<u32>,
    /// Whether it has its result.
    pub(super) is_finished: bool,
    /// How often it was decided about.
    pub(super) decided: u32,
}

impl UiFold {
    pub(super) fn call(&self, id: CallId) -> Option<&Call> {
        self.calls.iter().rev().find(|call| call.id == id)
    }

    /// The call, taken up where it is not known yet.
    fn call_mut(&mut self, id: CallId, name: &str) -> Option<&mut Call> {
        if self.call(id).is_none() {
            let name = name.to_owned();
            let (is_announced, is_asked_about, is_finished) = (false, false, false);
            let (arguments, changed, asked, decided) = (None, None, None, 0);
            self.calls.push(Call { id, name, arguments, changed, is_announced, is_asked_about, asked, is_finished, decided });
        }
        self.calls.iter_mut().rev().find(|call| call.id == id)
    }

    pub(super) fn input_started(&mut self, id: CallId, name: &str, out: &mut Vec<u8>) {
        self.close_block(out);
        self.step = Step::Streaming;
        let is_told = self.untold != Untold::Answer;
        if let Some(call) = self.call_mut(id, name) {
            call.is_announced = is_told;
        }
        if !is_told {
            return;
        }
        self.chunks.input_start(out, id, name, definition(&self.offered, name));
    }

    pub(super) fn input_ready(&mut self, id: CallId, name: &str, arguments: &str, out: &mut Vec<u8>) {
        if let Some(call) = self.call_mut(id, name) {
            call.is_announced = true;
            name.clone_into(&mut call.name);
            call.arguments = Some(arguments.to_owned());
        }
        self.chunks.input(out, id, name, arguments, definition(&self.offered, name));
    }

    /// Makes sure that the client knows a call before more is said about it.
    fn announce(&mut self, id: CallId, out: &mut Vec<u8>) {
        let Some(call) = self.calls.iter_mut().rev().find(|call| call.id == id && !call.is_announced) else { return };
        call.is_announced = true;
        let arguments = call.arguments.as_deref().unwrap_or_default();
        self.chunks.input(out, id, &call.name, arguments, definition(&self.offered, &call.name));
    }

    /// Tells that the turn was stopped, while calls have not ended and as far as it is not over with what follows.
    pub(super) fn stopping(&self, event: &Event, rest: &[Event], out: &mut Vec<u8>) {
        let is_running = || self.calls.iter().any(|call| call.arguments.is_some() && !call.is_finished);
        if is_stop(event) && is_running() && !rest.iter().any(|event| matches!(event, Event::TurnFinished { .. })) {
            self.chunks.passing_notice(out, "info", TOLD);
        }
    }

    pub(super) fn approval_requested(&mut self, id: CallId, reason: &str, rule: Option<&str>, out: &mut Vec<u8>) {
        if self.version < UiVersion::V6 {
            return;
        }
        self.announce(id, out);
        let known = match reason {
            "unknown_outcome" => QuestionReason::UnknownOutcome.to_know(),
            "definition_changed" => QuestionReason::DefinitionChanged.to_know(),
            "loop" => rule,
            _ => None,
        };
        if let Some(known) = known.filter(|_| self.version < UiVersion::V7) {
            // There is no other place for it.
            let name = self.call(id).map(|call| call.name.as_str()).unwrap_or_default();
            self.chunks.notice(out, "warning", &format!("{name}: {known}"));
        }
        let reason = known.map(Into::into).or_else(|| Some(format!("asked by {}", rule?).into()));
        let approval = self.approval(id);
        self.chunks.approval_request(out, approval, &Question { version: self.version, reason, is_automatic: false });
        self.asked_about(id);
        if let Some(call) = self.calls.iter_mut().rev().find(|call| call.id == id) {
            call.asked = Some(call.decided);
        }
    }

    /// Whether the newest calls wait for something else than to be allowed, and at least one was: the client would take them for answers
    /// to be sent (`lastAssistantMessageIsCompleteWithApprovalResponses`), again each time that it is told this end, unless a step
    /// follows theirs.
    pub(super) fn is_answered_and_waits(&self) -> bool {
        let newest = self.calls.iter().map(|call| call.id.message).max();
        let open = self.calls.iter().filter(|call| Some(call.id.message) == newest && !call.is_finished);
        let (asked, others): (Vec<_>, Vec<_>) = open.partition(|call| call.asked == Some(call.decided));
        self.version >= UiVersion::V6 && asked.is_empty() && others.iter().any(|call| call.decided > 0)
    }

    /// The question about a call that is open, or would come next.
    fn approval(&self, call: CallId) -> ApprovalId {
        ApprovalId { call, number: self.call(call).map_or(0, |call| call.decided).saturating_add(1) }
    }

    /// Notes that the client knows that somebody is asked about a call; whether it did before.
    fn asked_about(&mut self, id: CallId) -> bool {
        let call = self.calls.iter_mut().rev().find(|call| call.id == id);
        call.is_some_and(|call| std::mem::replace(&mut call.is_asked_about, true))
    }

    pub(super) fn approval_decided(&mut self, id: CallId, event: &Event, out: &mut Vec<u8>) {
        let Event::ToolApprovalDecided { decision, rule, arguments, reason, .. } = event else { return };
        let approval = self.approval(id);
        let changed = arguments.as_deref().filter(|_| decision.lets_run());
        if let Some(call) = self.calls.iter_mut().rev().find(|call| call.id == id) {
            call.decided = call.decided.saturating_add(1);
            call.changed = changed.map(str::to_owned).or(call.changed.take());
        }
        if self.version < UiVersion::V7 {
            return;
        }
        let is_approved = match decision {
            Verdict::Allow | Verdict::RunAgain | Verdict::Happened => true,
            Verdict::Deny | Verdict::Skip => false,
        };
        self.announce(id, out);
        if let Some(rule) = rule {
            let reason = Some(format!("{} by {rule}", if is_approved { "allowed" } else { "denied" }).into());
            self.chunks.approval_request(out, approval, &Question { version: self.version, reason, is_automatic: true });
            self.asked_about(id);
        } else if !self.asked_about(id) {
            // It was asked before the message began that the client is told.
            self.chunks.approval_request(out, approval, &Question { version: self.version, reason: None, is_automatic: false });
        }
        self.chunks.approval_response(out, approval, is_approved, (reason.as_deref(), changed));
    }

    pub(super) fn tool_finished(&mut self, id: CallId, event: &Event, out: &mut Vec<u8>) {
        let Event::ToolFinished { outcome, is_error, content, structured_content, duration_ms, .. } = event else { return };
        self.announce(id, out);
        let mut was_asked = false;
        if let Some(call) = self.calls.iter_mut().rev().find(|call| call.id == id) {
            call.is_finished = true;
            was_asked = call.asked == Some(call.decided);
        }
        if was_asked && !matches!(*outcome, "denied" | "cancelled") && self.version >= UiVersion::V7 {
            // Its client ran it, which nobody had to allow.
            let approval = self.approval(id);
            if !self.asked_about(id) {
                let question = Question { version: self.version, reason: None, is_automatic: false };
                self.chunks.approval_request(out, approval, &question);
            }
            self.chunks.approval_response(out, approval, true, (None, None));
        }
        let call = self.call(id);
        let tool = call.and_then(|call| definition(&self.offered, &call.name));
        let changed = call.and_then(|call| call.changed.as_deref());
        match *outcome {
            "denied" if self.version >= UiVersion::V6 => self.chunks.output_denied(out, id),
            // These calls never gave a result of their own.
            "denied" | "timeout" | "unavailable" | "interrupted" | "cancelled" => {
                self.chunks.output_error(out, id, &text_of(content), (tool, changed));
            }
            _ => {
                let output = Output {
                    content,
                    structured_content: structured_content.as_ref(),
                    is_error: *is_error,
                    duration_ms: *duration_ms,
                    tool,
                    changed,
                };
                self.chunks.output(out, id, &output);
            }
        }
    }
}

/// The tool of this name.
pub(super) fn definition<'a>(offered: &'a [Arc<ToolDefinition>], name: &str) -> Option<&'a ToolDefinition> {
    offered.iter().find(|definition| definition.name == name).map(|definition| &**definition)
}
