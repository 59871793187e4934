//! How a turn ended, in words for people.

use turnwright_core::{ProviderFailure, ProviderFailureKind, StopReason, TurnStatus};

use crate::abridge::beginning;
use crate::clean::clean_text;

/// How a turn ended that did not end well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// What happened, one sentence.
    pub text: String,
    /// What to do about it.
    pub hint: Option<&'static str>,
}

/// What to say about the end of a turn; `None` where the answer says it all.
pub fn ending(status: &TurnStatus, failure: Option<&ProviderFailure>) -> Option<Ending> {
    let (text, hint) = match status {
        TurnStatus::Completed => return None,
        TurnStatus::Cancelled => ("the turn was stopped".to_owned(), None),
        TurnStatus::Failed { reason } => {
            let request = failure.and_then(|failure| failure.request_id.as_ref());
            let request = request.map(|id| format!(" (request {id})")).unwrap_or_default();
            let reason = match failure {
                // What the provider said may be a page; what was made of it stands behind that.
                Some(failure) if !failure.message.is_empty() => {
                    reason.replacen(failure.message.as_str(), &beginning(&failure.message), 1)
                }
                Some(_) | None => reason.clone(),
            };
            (format!("{reason}{request}"), failure.map(|failure| hint(failure.kind)))
        }
        TurnStatus::StepLimit => {
            ("the step limit ended the turn".to_owned(), Some("--max-steps N allows more, and another message goes on"))
        }
        TurnStatus::Stopped { reason: StopReason::Loop, summary } => {
            let tried = summary.as_deref().map(|summary| format!("\n{}", clean_text(summary))).unwrap_or_default();
            (format!("the model went in circles, and the turn was stopped{tried}"), Some("say what it should do instead"))
        }
        TurnStatus::Stopped { reason: StopReason::Budget(stop), summary } => {
            let text = summary.as_deref().map_or_else(|| stop.told(), |summary| clean_text(summary).into_owned());
            (
                text,
                Some("`[budgets]` in the configuration has the limits; --retry, in a chat /retry, goes on once they allow it"),
            )
        }
        TurnStatus::Stopped { reason: StopReason::Refused, .. } => (
            "the model or its provider declined to answer".to_owned(),
            Some("put it in other words, or choose another model with --model, in a chat with /model"),
        ),
    };
    Some(Ending { text, hint })
}

fn hint(kind: ProviderFailureKind) -> &'static str {
    use ProviderFailureKind as K;
    match kind {
        K::NotFound => "`turnwright models list` shows the models that there are",
        K::Unavailable => "check how the provider is configured; `turnwright doctor` shows what is found",
        K::Auth | K::Permission => "check the provider's key; `turnwright models check` asks the model one small question",
        K::Connect => "check the provider's address and whether it is running; `turnwright doctor` shows what is found",
        K::ContextLength => "the conversation is too long for the model: begin a new one, or choose another with --model",
        K::Quota => "add credit there, or choose another model with --model, in a chat with /model",
        K::RateLimit | K::Overloaded | K::Server | K::Timeout | K::CutOff => {
            "--retry, in a chat /retry, asks again; --model or /model chooses another model"
        }
        K::TooLarge => "send less at once: a shorter message, or fewer and smaller files",
        K::ContentFilter | K::InvalidRequest | K::Limit => {
            "put it in other words, or choose another model with --model, in a chat with /model"
        }
        K::Malformed => "check the provider's base_url; `turnwright models check` asks the model one small question",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_failure_is_cut_and_what_was_tried_before_it_stays() {
        let mut failure = ProviderFailure::new(ProviderFailureKind::Server, "x".repeat(4_096));
        failure.request_id = Some("r1".to_owned());
        let status = TurnStatus::Failed { reason: format!("{}; failed before it: `p/m`", failure.message) };
        let text = ending(&status, Some(&failure)).map(|ending| ending.text);
        assert_eq!(text, Some(format!("{}…; failed before it: `p/m` (request r1)", "x".repeat(300))));
    }

    #[test]
    fn a_model_that_is_not_there_and_a_provider_that_cannot_be_used_get_hints_of_their_own() {
        let hint = |kind| {
            let failure = ProviderFailure::new(kind, "why");
            let status = TurnStatus::Failed { reason: "why".to_owned() };
            ending(&status, Some(&failure)).and_then(|ending| ending.hint)
        };
        assert_eq!(
            [hint(ProviderFailureKind::NotFound), hint(ProviderFailureKind::Unavailable)],
            [
                Some("`turnwright models list` shows the models that there are"),
                Some("check how the provider is configured; `turnwright doctor` shows what is found"),
            ]
        );
    }
}
