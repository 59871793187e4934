//! `turnwright approvals rules` and `approvals explain`.

use turnwright_api::ExplainedAction;
use turnwright_core::policy::{RuleText, Scope};
use turnwright_engine::{Decided, Engine, EngineError, NewRule};
use turnwright_server::{configured_rule, explanation, remembered_rule};
use turnwright_terminal::clean_line;

use crate::cli::{AddRule, Explain, Listed, RuleScope, Rules};
use crate::exit::{Exit, Failure};
use crate::output::{Output, say};
use crate::table::table;

pub(super) async fn run(engine: &Engine, command: Rules, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        Rules::List(listed) => list(engine, listed, output).await,
        Rules::Add(rule) => {
            let rule = engine.add_rule(new(rule)?).await.map_err(|error| match error {
                EngineError::Invalid { .. } => Failure::usage(error.to_string()),
                error => error.into(),
            })?;
            output.line(&rule.id);
            say(&format!("note: for {}, {}", rule.reach.scope(), clean_line(&rule.rule.to_string())));
        }
        Rules::Remove { rule } => {
            let removed = engine.remove_rule(&rule).await.map_err(|error| {
                Failure::from(error).hint("`turnwright approvals rules list` shows those that can be removed")
            })?;
            say(&format!("note: forgotten: {}", clean_line(&removed.rule.to_string())));
        }
    }
    Ok(Exit::Done)
}

async fn list(engine: &Engine, listed: Listed, output: &mut Output) {
    let configured = engine.configured_rules().into_iter().zip(1..).map(|(rule, number)| configured_rule((number, rule)));
    let remembered = engine.rules().await;
    let rules: Vec<_> = configured.chain(remembered.iter().map(remembered_rule)).collect();
    if listed.json {
        return output.json_pretty(&rules);
    }
    let rows: Vec<_> = rules
        .into_iter()
        .map(|rule| {
            let scope = serde_json::to_value(rule.scope).ok().and_then(|scope| scope.as_str().map(str::to_owned));
            let place = rule.turn_id.or(rule.conversation_id).map(|place| format!(" {place}")).unwrap_or_default();
            [rule.id, format!("{}{place}", scope.unwrap_or_default()), clean_line(&rule.rule.text).into_owned()]
        })
        .collect();
    output.lines(&table(&rows));
}

fn new(rule: AddRule) -> Result<NewRule, Failure> {
    let when = match &rule.when {
        None => std::collections::BTreeMap::new(),
        Some(text) => serde_json::from_str(text)
            .map_err(|error| Failure::usage(format!("--when is no JSON object of tests: {error}")).hint(WHEN))?,
    };
    let is_of_one = matches!(rule.scope, Some(RuleScope::Turn | RuleScope::Conversation));
    if let Some(scope) = rule.scope.filter(|_| is_of_one != rule.conversation.is_some()) {
        let scope = Scope::from(scope).as_str();
        return Err(Failure::usage(if is_of_one {
            format!("--scope {scope} needs --conversation ID: the rule is of that one alone")
        } else {
            format!("--scope {scope} and --conversation do not go together; leave one out")
        }));
    }
    let by_conversation = if rule.conversation.is_some() { Scope::Conversation } else { Scope::Everyone };
    Ok(NewRule {
        scope: rule.scope.map_or(by_conversation, Scope::from),
        conversation: rule.conversation,
        rule: RuleText { tool: rule.tool, when, action: rule.action.into() },
        idempotency: None,
    })
}

/// How tests are written.
const WHEN: &str = r#"such as {"path": {"below": "/tmp"}} or {"command": {"program": ["git", "ls"]}}"#;

pub(super) async fn explain(engine: &Engine, call: Explain, output: &mut Output) -> Result<Exit, Failure> {
    let approve = call.approve.map(Into::into);
    let explained = engine.explain(call.conversation.as_ref(), approve, &call.tool, &call.arguments).await?;
    let told = explanation(explained);
    if call.listed.json {
        output.json_pretty(&told);
        return Ok(Exit::Done);
    }
    let action = serde_json::to_value(told.action).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default();
    let why = told.rule.or(told.problem).unwrap_or_default();
    output.line(&format!("{action}: {}", clean_line(&why)));
    for other in &told.others {
        output.line(&format!("also matches: {}", clean_line(&other.rule)));
    }
    // Where nobody is asked nobody says "always".
    if told.action == ExplainedAction::Ask {
        output.line(&format!("\"always\" would store: {}", clean_line(&told.always.text)));
    }
    Ok(Exit::Done)
}

/// Says what a decision left behind.
pub(super) fn told(decided: &Decided) {
    if let Some(rule) = &decided.remembered {
        say(&format!("note: {} from now on, for {}: {}", rule.id, rule.reach.scope(), clean_line(&rule.rule.to_string())));
    }
    for (call, _) in &decided.also {
        say(&format!("note: {call} was decided by it too"));
    }
}
