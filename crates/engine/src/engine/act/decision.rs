//! What a person's decision about a call appends.

use std::sync::Arc;

use serde_json::Value;
use turnwright_core::policy::{Action, Reach, ReadyRule, Remembered, Whose};
use turnwright_core::{
    ApprovalId, CallId, ConversationId, DecidedBy, Decision, Entry, QuestionReason, ToolDefinition, Turn, TurnId, Verdict,
};

use super::{Act, Choice, still_open};
use crate::catalog::definition_hash;
use crate::engine::Remember;
use crate::engine::ruling::{is_by, remembered};
use crate::inner::Inner;
use crate::live::{Live, State};
use crate::rules;
use crate::{EngineError, SideRecord};

/// What a decision is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// A call, whatever is asked about it by now.
    Call(CallId),
    /// One question about a call, and none that came after it.
    Question(ApprovalId),
}

impl About {
    fn call(self) -> CallId {
        match self {
            Self::Call(call) | Self::Question(ApprovalId { call, .. }) => call,
        }
    }

    /// Whether nothing else is asked about the call by now. Where nothing is, it is for others to say what became of it.
    fn must_be_open(self, turn: Option<&Turn>) -> Result<(), EngineError> {
        let Self::Question(asked) = self else { return Ok(()) };
        let open = turn.and_then(|turn| turn.waiting().find(|(view, _)| view.id == asked.call));
        match open.map(|(view, question)| (view.approval(), question.reason.as_str())) {
            Some((open, reason)) if open != asked => {
                let why = format!("`{asked}` is not what is asked about it: that is `{open}`, {reason}");
                Err(EngineError::NotWaiting { call: asked.call, why })
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl From<CallId> for About {
    fn from(call: CallId) -> Self {
        Self::Call(call)
    }
}

impl From<ApprovalId> for About {
    fn from(asked: ApprovalId) -> Self {
        Self::Question(asked)
    }
}

/// What a decision came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decided {
    /// The rule that was stored with it.
    pub remembered: Option<Remembered>,
    /// The other calls of the turn that waited and that this rule decided about, at once.
    pub also: Vec<(CallId, Verdict)>,
}

/// What was decided, and the definitions that are agreed to by it.
type Agreed = (Decided, Vec<Arc<ToolDefinition>>);

/// A decision, with the rule that it leaves behind and what that decides about at once.
pub(super) fn decided_and_remembered(
    inner: &Inner,
    live: &Live,
    state: &State,
    (about, choice): (About, &Choice),
    remember: Option<&Remember>,
) -> Result<Act<Agreed>, EngineError> {
    about.must_be_open(state.journal.open_turn())?;
    let call = about.call();
    let Act { mut entries, mut side, answer, .. } = decision(inner, live, state, call, choice)?;
    let mut decided = Decided::default();
    if let (Some(remember), Some(turn)) = (remember, state.journal.open_turn()) {
        let known = turn.call(call).map_or(("", ""), |view| (view.name, view.arguments));
        let arguments = choice.arguments.as_deref().unwrap_or(known.1);
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        let place = (live, turn.id());
        let rule = remembered(remember, choice.verdict, (known.0, &arguments), place, (&inner.policy, inner.clock.now_ms()))?;
        side.push(rules::beside(&rule.remembered)?);
        side.extend(of_turns_before(inner, &live.id, turn.id()));
        if let Some(Entry::Decision(decision)) = entries.last_mut() {
            decision.remembered = Some(Box::new(rule.remembered.clone()));
        }
        for entry in decided_by(inner, live, state, turn, &rule, call) {
            decided.also.push((entry.call, entry.verdict));
            entries.push(Entry::Decision(entry));
        }
        decided.remembered = Some(rule.remembered);
    }
    Ok(Act::of(entries, side, (decided, answer.into_iter().collect())))
}

/// As [`decision`], about what must still be asked, beside what is stored with it; nothing where that decides the same.
pub(super) fn decided_once(
    inner: &Inner,
    live: &Live,
    state: &State,
    (about, choice): (About, &Choice),
    beside: &[Entry],
) -> Result<Option<Act<Option<Arc<ToolDefinition>>>>, EngineError> {
    about.must_be_open(state.journal.open_turn())?;
    let call = about.call();
    let before = beside.iter().find_map(|entry| match entry {
        Entry::Decision(before) if before.call == call => Some(before),
        _ => None,
    });
    let Some(before) = before else { return decision(inner, live, state, call, choice).map(Some) };
    let asked = state.journal.open_turn().and_then(|turn| turn.call(call)).map_or("", |view| view.arguments);
    if (before.verdict, before.arguments.as_deref(), &before.reason) == (choice.verdict, changed(choice, asked), &choice.reason)
    {
        return Ok(None);
    }
    Err(EngineError::NotWaiting { call, why: "it is decided in two ways at once".to_owned() })
}

/// The arguments that a person put in the place of the call's. A form gives back as it came what nobody touched.
fn changed<'a>(choice: &'a Choice, asked: &str) -> Option<&'a str> {
    let read = |arguments: &str| serde_json::from_str::<Value>(arguments).ok();
    let is_it = |given: &str| given == asked || read(given).is_some_and(|given| read(asked) == Some(given));
    choice.arguments.as_deref().filter(|given| !is_it(given))
}

/// Removes what was remembered for turns of the conversation that are over.
fn of_turns_before(inner: &Inner, conversation: &ConversationId, turn: TurnId) -> Vec<SideRecord> {
    let is_over = |reach: &Reach| matches!(reach, Reach::Turn(of, other) if of == conversation && *other != turn);
    let known = inner.rules.known();
    known.iter().filter(|rule| is_over(&rule.remembered.reach)).map(|rule| rules::without(&rule.remembered)).collect()
}

/// The decisions of a new rule about the calls of the turn that wait to be allowed: who says "always" is not asked again for
/// the like a moment later.
fn decided_by(inner: &Inner, live: &Live, state: &State, turn: &Turn, rule: &ReadyRule, decided: CallId) -> Vec<Decision> {
    let known = inner.rules.known();
    let whose = Whose { conversation: Some(&live.id), turn: Some(turn.id()), owner: &live.owner };
    let policy = inner.policy.with(known.iter().chain([rule]), whose);
    let settings = turn.settings();
    let mut entries = Vec::new();
    for (call, question) in turn.waiting() {
        if question.reason != QuestionReason::Approval || call.id == decided || !settings.always_ask.is_empty() {
            continue;
        }
        let Some(definition) = state.journal.definition(call.name) else { continue };
        let hash = match inner.catalogs.of(&live.owner).get(call.name) {
            Some(tool) if *tool.definition == **definition => tool.hash.clone(),
            _ => definition_hash(definition),
        };
        let Ok(arguments) = inner.validators.check(&hash, &definition.input_schema, call.arguments) else { continue };
        let verdict = policy.decide(settings.approve, call.name, definition.declared, &Value::Object(arguments));
        let (said, hash) = match verdict.action {
            Action::Allow => (Verdict::Allow, Some(hash.to_string())),
            Action::Deny => (Verdict::Deny, None),
            Action::Ask => continue,
        };
        if is_by(&verdict, rule) {
            entries.push(Decision {
                call: call.id,
                verdict: said,
                by: DecidedBy::Policy { rule: verdict.rule },
                definition_hash: hash,
                arguments: None,
                reason: None,
                remembered: None,
            });
        }
    }
    entries
}

/// What was decided about a call before, and by whom.
fn decided_before(state: &State, call: CallId) -> Option<String> {
    let of_call = |entry: &Entry| match entry {
        Entry::Decision(decision) if decision.call == call => Some(decision.clone()),
        _ => None,
    };
    let decision = state.journal.entries().iter().rev().find_map(|stored| of_call(&stored.entry))?;
    let what = match decision.verdict {
        Verdict::Allow => "allow",
        Verdict::Deny => "deny",
        Verdict::Happened => "happened",
        Verdict::RunAgain => "run_again",
        Verdict::Skip => "skip",
    };
    Some(match decision.by {
        DecidedBy::Person => format!("it was decided already: {what}, by a person"),
        DecidedBy::Policy { rule } => format!("it was decided already: {what}, by {rule}"),
    })
}

/// Checks a decision against what the call waits for, and changed arguments against the tool and the rules that deny. Answers
/// the definition that the person agrees to by it.
fn decision(
    inner: &Inner,
    live: &Live,
    state: &State,
    call: CallId,
    choice: &Choice,
) -> Result<Act<Option<Arc<ToolDefinition>>>, EngineError> {
    let journal = &state.journal;
    let Some(turn) = journal.open_turn() else {
        let why = decided_before(state, call).unwrap_or_else(|| "no turn is open".to_owned());
        return Err(EngineError::NotWaiting { call, why });
    };
    let Some(view) = turn.call(call) else {
        // Of a step that is over: whoever answers late is told what was decided.
        return Err(match decided_before(state, call) {
            Some(why) => EngineError::NotWaiting { call, why },
            None => EngineError::NotFound { what: format!("call `{call}` in the open turn") },
        });
    };
    let question = turn.waiting().find(|(waiting, _)| waiting.id == call).map(|(_, question)| question);
    let waits_for = question.map(|question| question.reason);
    let fits = match (choice.verdict, waits_for) {
        (_, None) => {
            let why = decided_before(state, call).unwrap_or_else(|| "it does not wait for a decision".to_owned());
            return Err(EngineError::NotWaiting { call, why });
        }
        (
            Verdict::Allow | Verdict::Deny,
            Some(QuestionReason::Approval | QuestionReason::DefinitionChanged | QuestionReason::Loop),
        )
        | (Verdict::Deny, Some(QuestionReason::ClientTool))
        | (Verdict::Happened | Verdict::RunAgain | Verdict::Skip, Some(QuestionReason::UnknownOutcome)) => Ok(()),
        (_, Some(QuestionReason::UnknownOutcome)) => Err("its outcome is unknown: decide happened, run_again or skip"),
        (_, Some(QuestionReason::ClientTool)) => {
            Err("it runs at the client that offers it: decide deny, or wait for its result")
        }
        (_, Some(QuestionReason::Loop)) => Err("the model repeats itself with it: decide allow to let it go on, or deny"),
        (_, Some(QuestionReason::Approval | QuestionReason::DefinitionChanged)) => {
            Err("it waits to be allowed: decide allow or deny")
        }
    };
    // Not as where it was decided before: it waits all the same.
    fits.map_err(|why: &str| EngineError::Invalid { what: format!("`{call}` cannot be decided like this: {why}") })?;
    let may_run = choice.verdict.lets_run();
    let arguments = changed(choice, view.arguments);
    if arguments.is_some() && !may_run {
        return Err(EngineError::Invalid { what: "arguments can only be changed with allow or run_again".to_owned() });
    }
    let catalog = inner.catalogs.of(&state.owner);
    let asks_about_change = waits_for == Some(QuestionReason::DefinitionChanged);
    let offered = journal.definition(view.name).map(|definition| (definition, definition_hash(definition)));
    // Whoever was asked about the call alone has not seen what changed: they agree to what it was decided about before, or to
    // what the model was offered. Whoever was asked about a change agrees to that one, and to none that came after it.
    let seen: Option<Arc<str>> = if asks_about_change {
        question.and_then(|question| question.definition_hash.as_deref()).map(Arc::from)
    } else {
        view.decided_hash.map(Arc::from).or_else(|| offered.as_ref().map(|(_, hash)| hash.clone()))
    };
    let known = if asks_about_change { catalog.get_changed_too(view.name) } else { catalog.get(view.name) };
    let now = known.filter(|tool| seen.as_ref().is_none_or(|hash| *hash == tool.hash));
    let hash = now.map(|tool| tool.hash.clone()).or(seen).or_else(|| view.decided_hash.map(Arc::from));
    if may_run {
        let schema = now.or(known.filter(|_| asks_about_change)).map(|tool| (&tool.definition, tool.hash.clone())).or(offered);
        let checked = schema.map(|(definition, hash)| {
            inner.validators.check(&hash, &definition.input_schema, arguments.unwrap_or(view.arguments))
        });
        // What was said before is checked as it starts.
        let object = match checked {
            Some(Err(problem)) if arguments.is_some() => return Err(EngineError::Invalid { what: problem }),
            Some(Ok(object)) => Some(object),
            Some(Err(_)) | None => None,
        };
        // A rule may be there only since the call waits. One that denies wins over whoever allows.
        if let Some(rule) =
            object.and_then(|object| inner.policy_of(live, turn.id()).denied_by(view.name, &Value::Object(object)))
        {
            let what = if arguments.is_some() { "the changed arguments are" } else { "it is" };
            return Err(EngineError::Invalid { what: format!("{what} denied by {rule}") });
        }
    }
    let agreed = now.filter(|_| choice.verdict == Verdict::Allow).map(|tool| tool.definition.clone());
    let entry = Entry::Decision(Decision {
        call,
        verdict: choice.verdict,
        by: DecidedBy::Person,
        definition_hash: hash.filter(|_| may_run).map(|hash| hash.to_string()),
        arguments: arguments.map(str::to_owned),
        reason: choice.reason.clone(),
        remembered: None,
    });
    Ok(Act::of(vec![entry], vec![still_open(inner, state, turn.id())], agreed))
}
