//! Whether one more rule may be remembered. All rules are in memory, and each that holds is looked at for each call.

use turnwright_core::policy::{Reach, Remembered, Scope};

use super::Engine;
use crate::{EngineError, OverLimit};

/// The most bytes that the rules of one user have together, as they are stored; those for everyone have as many.
const MAX_RULE_BYTES: usize = 4 << 20;

/// How many rules there are, and how large they are together.
#[derive(Debug, Clone, Copy, Default)]
struct Kept {
    count: usize,
    bytes: usize,
}

impl Kept {
    fn of<'a>(rules: impl Iterator<Item = &'a Remembered>) -> Self {
        rules.fold(Self::default(), |kept, rule| {
            let bytes = serde_json::to_string(rule).map_or(0, |text| text.len());
            Self { count: kept.count.saturating_add(1), bytes: kept.bytes.saturating_add(bytes) }
        })
    }

    /// Whether one more is taken.
    fn admit(self, most: usize) -> Result<(), OverLimit> {
        if self.count >= most {
            return Err(OverLimit::Rules { most });
        }
        if self.bytes >= MAX_RULE_BYTES {
            return Err(OverLimit::RuleBytes { bytes: self.bytes, most: MAX_RULE_BYTES });
        }
        Ok(())
    }
}

impl Engine {
    /// Refuses one more rule of this scope where the user, or everyone, has as many as may be. Of requests that come at the same instant
    /// each may be the last one.
    pub(super) async fn must_have_room_for_rule(&self, scope: Scope) -> Result<(), EngineError> {
        let most = self.limits().rules_per_user;
        if most == usize::MAX {
            return Ok(());
        }
        let may_count = |rule: &Remembered| match &rule.reach {
            Reach::Everyone => scope == Scope::Everyone,
            Reach::User(user) => scope != Scope::Everyone && user == self.user(),
            // Whose the conversation is, is known to the store alone, which is not asked where even all of them are within the limit.
            Reach::Conversation(_) | Reach::Turn(..) => scope != Scope::Everyone,
        };
        self.inner.refresh_rules().await;
        let known = self.inner.rules.known();
        let at_most = Kept::of(known.iter().map(|rule| &rule.remembered).filter(|rule| may_count(rule)));
        if at_most.admit(most).is_ok() {
            return Ok(());
        }
        let own = self.rules().await;
        Ok(Kept::of(own.iter().filter(|rule| may_count(rule))).admit(most)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_counted_and_weighed() {
        let kept = |count, bytes| Kept { count, bytes };
        let too_large = Err(OverLimit::RuleBytes { bytes: MAX_RULE_BYTES, most: MAX_RULE_BYTES });
        assert_eq!(kept(1, MAX_RULE_BYTES - 1).admit(2), Ok(()));
        assert_eq!(kept(2, 0).admit(2), Err(OverLimit::Rules { most: 2 }));
        assert_eq!(kept(1, MAX_RULE_BYTES).admit(2), too_large);
        let rule = serde_json::from_value(serde_json::json!({"tool": "a__*", "action": "deny"})).unwrap();
        let rule = Remembered { id: "rule_1".to_owned(), reach: Reach::Everyone, rule, at_ms: 1 };
        let text = serde_json::to_string(&rule).unwrap();
        let Kept { count, bytes } = Kept::of([&rule, &rule].into_iter());
        assert_eq!((count, bytes), (2, 2 * text.len()));
    }
}
