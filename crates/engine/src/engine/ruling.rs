//! What the rules say, what is remembered of decisions, and what would happen to a call.

use sha2::{Digest, Sha256};
use turnwright_core::policy::{
    Action, Asked, Explanation, Policy, Reach, ReadyRule, Remembered, RuleError, RuleText, Scope, Verdict, Whose,
};
use turnwright_core::{ApproveMode, ConversationId, Journal, TurnId, TurnStatus};

use super::{Conversation, Engine, not_there};
use crate::inner::Inner;
use crate::live::Live;
use crate::ruler::{asked, may_call};
use crate::{ChosenTools, EngineError};

/// What to remember of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remember {
    /// How far it reaches.
    pub scope: Scope,
    /// A glob over tools; the call's tool where `None`.
    pub tool: Option<String>,
    /// What must hold of arguments; what is proposed for the call where neither this nor the tool is given.
    pub when: Option<std::collections::BTreeMap<String, turnwright_core::policy::PredicateText>>,
}

impl Remember {
    /// The rule that is proposed for the call, in this scope.
    pub fn proposed(scope: Scope) -> Self {
        Self { scope, tool: None, when: None }
    }
}

/// Where a rule is to hold that comes with no decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRule {
    /// How far it reaches.
    pub scope: Scope,
    /// Its conversation, with the scopes turn (its open one) and conversation.
    pub conversation: Option<ConversationId>,
    /// What it says.
    pub rule: RuleText,
    /// A key that makes a repetition harmless, and a hash of the request: the same rule is there once, whatever became of the first
    /// answer.
    pub idempotency: Option<(String, String)>,
}

/// What would happen to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// What happens, and by which rule; `None` where it is refused before any rule is looked at.
    pub explanation: Result<Explanation, String>,
    /// The rule that "always" would store.
    pub always: RuleText,
}

impl Engine {
    /// Keeps there what people have remembered of their decisions. It must be in the same database as the store.
    pub async fn keep_rules(&self, documents: std::sync::Arc<dyn crate::Documents>) {
        self.inner.rules.keep(documents);
        self.inner.refresh_rules().await;
    }

    /// The policy of the configuration, without what is remembered.
    pub fn configured_policy(&self) -> &Policy {
        &self.inner.policy
    }

    /// The rules of the configuration.
    pub fn configured_rules(&self) -> Vec<RuleText> {
        self.inner.policy.configured()
    }

    /// The rules that were remembered, hold, or will again where a turn is tried again, and concern the user for whom this handle acts, the oldest first.
    pub async fn rules(&self) -> Vec<Remembered> {
        self.inner.refresh_rules().await;
        let open = self.inner.store.open_turns().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the rules of open turns cannot be told");
            Vec::new()
        });
        let mut own = Vec::new();
        for rule in self.inner.rules.known().iter().map(|rule| &rule.remembered) {
            let is_own = match &rule.reach {
                Reach::Everyone => true,
                Reach::User(user) => *user == self.user,
                Reach::Conversation(conversation) => self.conversation(conversation).await.is_ok(),
                Reach::Turn(conversation, turn) => {
                    let is_open = open.iter().any(|open| open.conversation == *conversation && open.turn == *turn);
                    self.conversation(conversation).await.is_ok()
                        && (is_open || self.may_hold_again(rule, conversation, *turn).await)
                }
            };
            if is_own {
                own.push(rule.clone());
            }
        }
        own
    }

    /// Whether a rule of a turn that is over holds once more where the turn is tried again. One that never can is forgotten: no journal is
    /// read for it the next time.
    async fn may_hold_again(&self, rule: &Remembered, conversation: &ConversationId, turn: TurnId) -> bool {
        let look = |journal: &Journal| {
            let newest = journal.turn()?;
            let is_completed = newest.id() == turn && newest.ended() == Some(&TurnStatus::Completed);
            Some((newest.id() == turn && !is_completed, newest.id().0 > turn.0 || is_completed))
        };
        let Ok(Some((may_hold, is_past))) = self.look(conversation, look).await else { return false };
        if is_past && let Err(error) = self.inner.rules.remove(rule).await {
            tracing::debug!(rule = rule.id, %error, "a rule of a turn that is over stays stored");
        }
        may_hold
    }

    /// Remembers a rule.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] where it cannot be used or its scope wants a conversation, [`EngineError::NotFound`],
    /// [`EngineError::NoOpenTurn`], [`EngineError::OverLimit`].
    pub async fn add_rule(&self, new: NewRule) -> Result<Remembered, EngineError> {
        self.must_decide().await?;
        let wants = |what: &str| EngineError::Invalid { what: format!("a rule for {} needs {what}", new.scope) };
        let of = match (new.scope, &new.conversation) {
            (Scope::Turn | Scope::Conversation, Some(id)) => Some(self.conversation(id).await?),
            _ => None,
        };
        let reach = match (new.scope, new.conversation.clone()) {
            (Scope::Turn, Some(id)) => {
                let open = self.look(&id, |journal| journal.open_turn().map(turnwright_core::Turn::id)).await?;
                let why = || format!("no turn of `{id}` is open");
                Reach::Turn(id.clone(), open.ok_or_else(|| EngineError::NoOpenTurn { why: why() })?)
            }
            (Scope::Conversation, Some(id)) => Reach::Conversation(id),
            (Scope::Turn | Scope::Conversation, None) => return Err(wants("its conversation")),
            (Scope::User | Scope::Everyone, Some(_)) => return Err(wants("no conversation")),
            (Scope::User, None) => Reach::User(self.user.clone()),
            (Scope::Everyone, None) => Reach::Everyone,
        };
        let id = match &new.idempotency {
            Some((key, fingerprint)) => id_for(&self.own_key(key), fingerprint),
            None => new_id()?,
        };
        let rule = ready(id, new.rule, reach, self.inner.clock.now_ms())?;
        // The same request once more takes the place of what it made.
        if !self.inner.rules.known().iter().any(|known| known.remembered.id == rule.remembered.id) {
            self.must_have_room_for_rule(new.scope).await?;
        }
        self.inner.rules.put(&rule).await?;
        // Deleted meanwhile: another one of its name begins without.
        if let Some(of) = of
            && self.is_gone(&of).await
        {
            self.inner.rules.remove(&rule.remembered).await?;
            return Err(not_there(&of.id));
        }
        Ok(rule.remembered)
    }

    async fn is_gone(&self, conversation: &Conversation) -> bool {
        match self.conversation(&conversation.id).await {
            Ok(known) => known.created_at_ms != conversation.created_at_ms,
            Err(EngineError::NotFound { .. }) => true,
            Err(_) => false,
        }
    }

    /// Forgets a remembered rule. What it has decided stays decided.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn remove_rule(&self, id: &str) -> Result<Remembered, EngineError> {
        self.must_decide().await?;
        let rule = self.rules().await.into_iter().find(|rule| rule.id == id);
        let rule = rule.ok_or_else(|| EngineError::NotFound { what: format!("remembered rule `{id}`") })?;
        self.inner.rules.remove(&rule).await?;
        Ok(rule)
    }

    /// What would happen to a call of the tool with the qualified name `name`, now and in that conversation.
    ///
    /// # Errors
    /// [`EngineError::NoTool`] where there is no such tool, [`EngineError::NotFound`] where there is no such conversation.
    pub async fn explain(
        &self,
        conversation: Option<&ConversationId>,
        approve: Option<ApproveMode>,
        name: &str,
        arguments: &str,
    ) -> Result<Explained, EngineError> {
        self.inner.settle_source_of(&self.user, name).await;
        self.inner.refresh_rules().await;
        let (turn, settings, is_known_to_turn) = match conversation {
            Some(id) => {
                let overlay = self.conversation(id).await?.overlay;
                let of_turn = |journal: &Journal| {
                    let turn = journal.open_turn()?;
                    Some((Some(turn.id()), turn.settings().clone(), journal.definition(name).is_some()))
                };
                let next = || (None, self.inner.settings(&overlay, &self.inner.defaults()), false);
                self.look(id, of_turn).await?.unwrap_or_else(next)
            }
            None => (None, (*self.inner.defaults()).clone(), false),
        };
        let catalog = self.inner.catalogs.of(&self.user);
        let Some(tool) = catalog.get_changed_too(name) else {
            return Err(self.no_such_tool(name));
        };
        let checked = self.inner.validators.check(&tool.hash, &tool.definition.input_schema, arguments);
        let value = match &checked {
            Ok(arguments) => serde_json::Value::Object(arguments.clone()),
            Err(_) => serde_json::from_str(arguments).unwrap_or_default(),
        };
        let whose = Whose { conversation, turn, owner: &self.user };
        let policy = self.inner.policy.with(self.inner.rules.known().iter(), whose);
        let asked = asked(&settings, &tool.definition, &value);
        let mode = approve.unwrap_or(asked.mode);
        let is_offered = settings.tools.as_deref().is_none_or(|globs| ChosenTools::of(globs).has(name));
        let why_changed = catalog.why_changed(name).filter(|_| !is_known_to_turn);
        let checked = match why_changed {
            _ if !may_call(&settings) => Err("no tool may be called in its turn".to_owned()),
            _ if !is_offered => Err("it is not offered in this conversation".to_owned()),
            Some(why) => Err(format!("it is set aside: {why}")),
            None => checked,
        };
        let explanation = checked
            .map(|_| policy.explain(Asked { mode, ..asked }))
            .map_err(|problem| format!("nobody is asked about it, because {problem}"));
        Ok(Explained { explanation, always: policy.proposed(name, &value, Action::Allow) })
    }
}

impl Inner {
    /// The policy for calls of a turn.
    pub(crate) fn policy_of(&self, live: &Live, turn: TurnId) -> Policy {
        self.rules.over(&self.policy, Whose { conversation: Some(&live.id), turn: Some(turn), owner: &live.owner })
    }
}

/// The rule that a decision leaves behind.
pub(super) fn remembered(
    remember: &Remember,
    verdict: turnwright_core::Verdict,
    (name, arguments): (&str, &serde_json::Value),
    (live, turn): (&Live, TurnId),
    (policy, at_ms): (&Policy, u64),
) -> Result<ReadyRule, EngineError> {
    let action = match verdict {
        turnwright_core::Verdict::Allow => Action::Allow,
        turnwright_core::Verdict::Deny => Action::Deny,
        turnwright_core::Verdict::Happened | turnwright_core::Verdict::RunAgain | turnwright_core::Verdict::Skip => {
            let what = "only allow and deny can be remembered: how a lost call ended is known of that call alone".to_owned();
            return Err(EngineError::Invalid { what });
        }
    };
    let narrow = policy.proposed(name, arguments, action);
    let when = match (&remember.when, &remember.tool) {
        (Some(when), _) => when.clone(),
        (None, Some(_)) => std::collections::BTreeMap::new(),
        (None, None) => narrow.when,
    };
    let rule = RuleText { tool: remember.tool.clone().unwrap_or(narrow.tool), when, action };
    let reach = match remember.scope {
        Scope::Turn => Reach::Turn(live.id.clone(), turn),
        Scope::Conversation => Reach::Conversation(live.id.clone()),
        Scope::User => Reach::User(live.owner.clone()),
        Scope::Everyone => Reach::Everyone,
    };
    let rule = ready(new_id()?, rule, reach, at_ms)?;
    if !policy.would_match(&rule, name, arguments) {
        let what =
            format!("the rule to remember ({}) does not match this call, so it was not what was asked", rule.remembered.rule);
        return Err(EngineError::Invalid { what });
    }
    Ok(rule)
}

/// How many bytes of a rule's name tell it from others.
const ID_BYTES: usize = 5;
/// The same of a name that is made from what a client chooses: who tries so many keys as it takes must not meet the name of another's
/// rule, which would be put in its place.
const ID_BYTES_OF_KEY: usize = 16;

fn new_id() -> Result<String, EngineError> {
    Ok(format!("rule_{}", crate::names::random::<ID_BYTES>()?))
}

/// The name of the rule that this request makes, however often it comes.
fn id_for(key: &str, fingerprint: &str) -> String {
    let hash = Sha256::digest(format!("{key}\n{fingerprint}"));
    format!("rule_{}", crate::names::hex(hash.get(..ID_BYTES_OF_KEY).unwrap_or_default()))
}

fn ready(id: String, rule: RuleText, reach: Reach, at_ms: u64) -> Result<ReadyRule, EngineError> {
    let unusable =
        |error: RuleError| EngineError::Invalid { what: format!("the rule cannot be used: `{}` {}", error.at, error.reason) };
    rule.fits().map_err(unusable)?;
    let remembered = Remembered { id, reach, rule, at_ms };
    ReadyRule::new(remembered).map_err(unusable)
}

/// Whether a verdict is this very rule's.
pub(super) fn is_by(verdict: &Verdict, rule: &ReadyRule) -> bool {
    verdict.rule == rule.described()
}
