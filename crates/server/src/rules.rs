//! Approval rules between the API's form and the policy's.

use std::collections::BTreeMap;

use serde_json::Value;
use turnwright_api as api;
use turnwright_core::policy::{Action, PredicateText, Reach, Remembered, RuleText, Scope};
use turnwright_engine::{Explained, Remember, accounts};

use crate::auth::{Caller, not_allowed};
use crate::error::ApiError;
use crate::timestamp::timestamp;

/// What a rule says.
pub fn rule_text(rule: &RuleText) -> api::RuleText {
    let when = rule.when.iter().map(|(key, test)| (key.clone(), serde_json::to_value(test).unwrap_or_default()));
    api::RuleText { tool: rule.tool.clone(), when: when.collect(), action: action(rule.action), text: rule.to_string() }
}

/// A remembered rule.
pub fn remembered_rule(rule: &Remembered) -> api::Rule {
    let turn_id = match &rule.reach {
        Reach::Turn(_, turn) => Some(turn.to_string()),
        Reach::Conversation(_) | Reach::User(_) | Reach::Everyone => None,
    };
    api::Rule {
        id: rule.id.clone(),
        scope: scope_of(rule.reach.scope()),
        conversation_id: rule.reach.conversation().map(ToString::to_string),
        turn_id,
        rule: rule_text(&rule.rule),
        created_at: Some(timestamp(rule.at_ms)),
    }
}

/// The rule at this place of the configuration, from 1.
pub fn configured_rule((number, rule): (usize, RuleText)) -> api::Rule {
    api::Rule {
        id: format!("configuration_{number}"),
        scope: api::RuleScope::Configuration,
        conversation_id: None,
        turn_id: None,
        rule: rule_text(&rule),
        created_at: None,
    }
}

/// What would happen to a call.
pub fn explanation(explained: Explained) -> api::Explanation {
    let always = rule_text(&explained.always);
    match explained.explanation {
        Err(problem) => api::Explanation {
            action: api::ExplainedAction::Refuse,
            rule: None,
            problem: Some(problem),
            others: Vec::new(),
            always,
        },
        Ok(explanation) => api::Explanation {
            action: match explanation.verdict.action {
                Action::Allow => api::ExplainedAction::Allow,
                Action::Ask => api::ExplainedAction::Ask,
                Action::Deny => api::ExplainedAction::Deny,
            },
            rule: Some(explanation.verdict.rule),
            problem: None,
            others: explanation
                .others
                .into_iter()
                .map(|other| api::MatchedRule { action: action(other.action), rule: other.rule })
                .collect(),
            always,
        },
    }
}

/// What a decision is to leave behind.
pub(crate) fn remember(remember: api::Remember) -> Result<Remember, ApiError> {
    Ok(Remember { scope: scope(remember.scope)?, tool: remember.tool, when: remember.when.map(tests).transpose()? })
}

/// A rule of a request.
pub(crate) fn text(tool: String, when: BTreeMap<String, Value>, action: api::RuleAction) -> Result<RuleText, ApiError> {
    let action = match action {
        api::RuleAction::Allow => Action::Allow,
        api::RuleAction::Ask => Action::Ask,
        api::RuleAction::Deny => Action::Deny,
    };
    Ok(RuleText { tool, when: tests(when)?, action })
}

/// What decides for everyone is for admins.
pub(crate) fn may_reach(caller: &Caller, scope: Scope) -> Result<(), ApiError> {
    match scope {
        Scope::Everyone if !caller.may(accounts::Scope::Admin) => Err(not_allowed(caller, accounts::Scope::Admin)),
        Scope::Turn | Scope::Conversation | Scope::User | Scope::Everyone => Ok(()),
    }
}

/// A scope that can be remembered.
pub(crate) fn scope(scope: api::RuleScope) -> Result<Scope, ApiError> {
    match scope {
        api::RuleScope::Turn => Ok(Scope::Turn),
        api::RuleScope::Conversation => Ok(Scope::Conversation),
        api::RuleScope::User => Ok(Scope::User),
        api::RuleScope::Everyone => Ok(Scope::Everyone),
        api::RuleScope::Configuration => {
            Err(ApiError::invalid("rules of the configuration are written in its file; `everyone` is remembered here"))
        }
    }
}

fn tests(when: BTreeMap<String, Value>) -> Result<BTreeMap<String, PredicateText>, ApiError> {
    let test = |(key, value): (String, Value)| match serde_json::from_value(value) {
        Ok(test) => Ok((key, test)),
        Err(error) => Err(ApiError::invalid(format!("`when.{key}` is wrong: {error}"))),
    };
    when.into_iter().map(test).collect()
}

fn action(action: Action) -> api::RuleAction {
    match action {
        Action::Allow => api::RuleAction::Allow,
        Action::Ask => api::RuleAction::Ask,
        Action::Deny => api::RuleAction::Deny,
    }
}

fn scope_of(scope: Scope) -> api::RuleScope {
    match scope {
        Scope::Turn => api::RuleScope::Turn,
        Scope::Conversation => api::RuleScope::Conversation,
        Scope::User => api::RuleScope::User,
        Scope::Everyone => api::RuleScope::Everyone,
    }
}
