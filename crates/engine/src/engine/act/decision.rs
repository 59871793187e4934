//! What a person's decision about a call appends.

use std::sync::Arc;

use serde_json::Value;
use turnwright_core::{CallId, DecidedBy, Decision, Entry, QuestionReason, ToolDefinition, Verdict};

use super::{Act, Choice, still_open};
use crate::EngineError;
use crate::catalog::definition_hash;
use crate::inner::Inner;
use crate::live::State;

/// Decisions that are stored together, with the definitions that are agreed to by them.
pub(super) fn decisions(
    inner: &Inner,
    state: &State,
    choices: &[(CallId, Choice)],
) -> Result<Act<Vec<Arc<ToolDefinition>>>, EngineError> {
    let mut all = Act { entries: Vec::new(), side: Vec::new(), answer: Vec::new() };
    for (call, choice) in choices {
        let one = decision(inner, state, *call, choice)?;
        all.entries.extend(one.entries);
        all.side = one.side;
        all.answer.extend(one.answer);
    }
    Ok(all)
}

/// Checks a decision against what the call waits for, and changed arguments against the tool and the rules that deny. Answers
/// the definition that the person agrees to by it.
fn decision(
    inner: &Inner,
    state: &State,
    call: CallId,
    choice: &Choice,
) -> Result<Act<Option<Arc<ToolDefinition>>>, EngineError> {
    let journal = &state.journal;
    let Some(turn) = journal.open_turn() else {
        return Err(EngineError::NotWaiting { call, why: "no turn is open".to_owned() });
    };
    let Some(view) = turn.call(call) else {
        return Err(EngineError::NotFound { what: format!("call `{call}` in the open turn") });
    };
    let waits_for = turn.waiting().find(|(waiting, _)| waiting.id == call).map(|(_, question)| question.reason);
    let fits = match (choice.verdict, waits_for) {
        (_, None) => return Err(EngineError::NotWaiting { call, why: "it was decided already".to_owned() }),
        (Verdict::Allow | Verdict::Deny, Some(QuestionReason::Approval | QuestionReason::DefinitionChanged))
        | (Verdict::Deny, Some(QuestionReason::ClientTool))
        | (Verdict::Happened | Verdict::RunAgain | Verdict::Skip, Some(QuestionReason::UnknownOutcome)) => Ok(()),
        (_, Some(QuestionReason::UnknownOutcome)) => Err("its outcome is unknown: decide happened, run_again or skip"),
        (_, Some(QuestionReason::ClientTool)) => {
            Err("it runs at the client that offers it: decide deny, or wait for its result")
        }
        (_, Some(QuestionReason::Approval | QuestionReason::DefinitionChanged)) => {
            Err("it waits to be allowed: decide allow or deny")
        }
    };
    fits.map_err(|why: &str| EngineError::NotWaiting { call, why: why.to_owned() })?;
    let may_run = matches!(choice.verdict, Verdict::Allow | Verdict::RunAgain);
    if choice.arguments.is_some() && !may_run {
        return Err(EngineError::Invalid { what: "arguments can only be changed with allow or run_again".to_owned() });
    }
    let catalog = inner.catalogs.of(&state.owner);
    let asks_about_change = waits_for == Some(QuestionReason::DefinitionChanged);
    // Whoever was asked about the call alone has not seen what changed.
    let now = if asks_about_change { catalog.get_changed_too(view.name) } else { catalog.get(view.name) };
    let hash = now.map(|tool| tool.hash.clone()).or_else(|| journal.definition(view.name).map(|tool| definition_hash(tool)));
    if let Some(arguments) = &choice.arguments {
        let schema = now.map(|tool| &tool.definition).or_else(|| journal.definition(view.name));
        if let (Some(definition), Some(hash)) = (schema, &hash) {
            let object = inner.validators.check(hash, &definition.input_schema, arguments);
            let object = object.map_err(|problem| EngineError::Invalid { what: problem })?;
            if let Some(rule) = inner.policy.denied_by(view.name, &Value::Object(object)) {
                return Err(EngineError::Invalid { what: format!("the changed arguments are denied by {rule}") });
            }
        }
    }
    let agreed = now.filter(|_| choice.verdict == Verdict::Allow).map(|tool| tool.definition.clone());
    let entry = Entry::Decision(Decision {
        call,
        verdict: choice.verdict,
        by: DecidedBy::Person,
        definition_hash: hash.filter(|_| may_run).map(|hash| hash.to_string()),
        arguments: choice.arguments.clone(),
        reason: choice.reason.clone(),
    });
    Ok(Act { entries: vec![entry], side: vec![still_open(inner, state, turn.id())], answer: agreed })
}
