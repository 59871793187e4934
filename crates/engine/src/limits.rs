//! How much an engine takes at once, and how large.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Semaphore;
use turnwright_core::{ContentBlock, UserId};

use crate::engine::Engine;
use crate::inner::Inner;
use crate::{Choice, EngineError, Full, KeptBy, SettingsOverlay, SideRecord, Slot, StoreError, weight};

/// What an engine takes; nothing is limited by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many turns this process drives at once before no other may begin.
    pub turns: usize,
    /// How many of them may belong to one user; where nodes share turns, of those that run over all of them.
    pub turns_per_user: usize,
    /// The most text of one message, in bytes, and the most of what is chosen for a conversation or a turn.
    pub message_bytes: usize,
    /// The most images, sounds and files of one message.
    pub attachments: usize,
    /// The largest of them, in bytes.
    pub attachment_bytes: usize,
    /// How many rules are remembered for one user, and how many for everyone. Where any number is, they may also be as large as one likes.
    pub rules_per_user: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let most = usize::MAX;
        Self {
            turns: most,
            turns_per_user: most,
            message_bytes: most,
            attachments: most,
            attachment_bytes: most,
            rules_per_user: most,
        }
    }
}

/// Which limit a request went over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OverLimit {
    /// As many turns run here as may.
    #[error("{most} turns run here, which is the limit; nothing was stored, try again when one of them has ended")]
    Turns {
        /// The limit.
        most: usize,
    },
    /// As many of the user's turns run here as may.
    #[error("{most} of your turns run, which is the limit; nothing was stored, try again when one of them has ended")]
    UserTurns {
        /// The limit.
        most: usize,
    },
    /// The text of a message is too long.
    #[error("the text of the message is {bytes} bytes, the limit is {most} bytes (`[server.limits] message_bytes`)")]
    Message {
        /// How long it is.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// What is chosen is too much: a system prompt, tools of a client, a form.
    #[error(
        "the system prompt, tools and form that are chosen are {bytes} bytes, the limit is {most} bytes (`[server.limits] message_bytes`)"
    )]
    Settings {
        /// How much it is.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// A title is too long.
    #[error("the title is {characters} characters long, the limit is {most}")]
    Title {
        /// How long it is.
        characters: usize,
        /// The limit.
        most: usize,
    },
    /// The reason of a decision is too long.
    #[error("the reason is {characters} characters long, the limit is {most}")]
    Reason {
        /// How long it is.
        characters: usize,
        /// The limit.
        most: usize,
    },
    /// A message has too many attachments.
    #[error("the message has {count} attachments, the limit is {most} (`[server.limits] attachments`)")]
    Attachments {
        /// How many it has.
        count: usize,
        /// The limit.
        most: usize,
    },
    /// An attachment is too large.
    #[error("an attachment is {bytes} bytes, the limit is {most} bytes (`[server.limits] attachment_bytes`)")]
    Attachment {
        /// How large it is.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// As many rules are remembered as may be.
    #[error(
        "{most} rules are remembered, which is the limit (`[server.limits] rules_per_user`); remove one that is not needed any more"
    )]
    Rules {
        /// The limit.
        most: usize,
    },
    /// The rules that are remembered are too large together.
    #[error(
        "the rules that are remembered are {bytes} bytes, the limit is {most} bytes; remove one that is not needed any more"
    )]
    RuleBytes {
        /// How large they are.
        bytes: usize,
        /// The limit.
        most: usize,
    },
}

impl From<Full> for OverLimit {
    fn from(full: Full) -> Self {
        match full {
            Full::ForAll { most } => Self::Turns { most },
            Full::ForUser { most } => Self::UserTurns { most },
        }
    }
}

/// The longest title, in characters.
pub const MAX_TITLE_CHARS: usize = 1_000;

/// The longest reason of a decision, in characters.
pub const MAX_REASON_CHARS: usize = 10_000;

/// Whether what is decided is taken.
pub(crate) fn admit_choices<'a>(choices: impl Iterator<Item = &'a Choice>) -> Result<(), OverLimit> {
    let reasons = choices.filter_map(|choice| choice.reason.as_deref());
    let longest = reasons.map(|reason| reason.chars().count()).max().unwrap_or(0);
    if longest > MAX_REASON_CHARS {
        return Err(OverLimit::Reason { characters: longest, most: MAX_REASON_CHARS });
    }
    Ok(())
}

impl Limits {
    /// Whether this title and these settings are taken.
    pub(crate) fn admit_chosen(&self, title: Option<&str>, chosen: &SettingsOverlay) -> Result<(), OverLimit> {
        let characters = title.map_or(0, |title| title.chars().count());
        if characters > MAX_TITLE_CHARS {
            return Err(OverLimit::Title { characters, most: MAX_TITLE_CHARS });
        }
        let bytes = weight::written_overlay(chosen);
        if bytes > self.message_bytes {
            return Err(OverLimit::Settings { bytes, most: self.message_bytes });
        }
        Ok(())
    }

    /// Whether a message of this content is taken.
    pub(crate) fn admit(&self, content: &[ContentBlock]) -> Result<(), OverLimit> {
        let (mut text, mut count) = (0_usize, 0_usize);
        for block in content {
            let attached = match block {
                ContentBlock::Text { text: said } => {
                    text = text.saturating_add(said.len());
                    continue;
                }
                ContentBlock::Image { data, .. } | ContentBlock::Audio { data, .. } => decoded(data),
                ContentBlock::Resource { resource } => {
                    let blob = resource.blob.as_deref().map_or(0, decoded);
                    blob.saturating_add(resource.text.as_ref().map_or(0, String::len))
                }
                ContentBlock::ResourceLink { .. } => 0,
            };
            count = count.saturating_add(1);
            if attached > self.attachment_bytes {
                return Err(OverLimit::Attachment { bytes: attached, most: self.attachment_bytes });
            }
        }
        if text > self.message_bytes {
            return Err(OverLimit::Message { bytes: text, most: self.message_bytes });
        }
        if count > self.attachments {
            return Err(OverLimit::Attachments { count, most: self.attachments });
        }
        Ok(())
    }
}

/// How many bytes base64 stands for, about.
fn decoded(base64: &str) -> usize {
    (base64.trim_end_matches('=').len() / 4).saturating_mul(3).saturating_add(base64.trim_end_matches('=').len() % 4 * 3 / 4)
}

impl Engine {
    /// How long people are waited for while a call holds its connection to ask them something; then the question is
    /// cancelled. One that holds nothing waits as long as an approval.
    pub fn limit_questions(&self, limit: Duration) {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.inner().question_limit_ms.store(limit_ms, Ordering::Relaxed);
    }

    /// Takes only so much from now on. Counts once, before the first turn.
    pub fn limit(&self, limits: Limits) {
        if self.inner().choices.limits.set(limits).is_err() {
            tracing::error!("the limits of an engine are set once, before its first turn");
            return;
        }
        self.inner().running.limit(limits.turns, limits.turns_per_user);
    }

    /// At most so many calls run at once from now on, over all sources and conversations; others wait. Counts once, before the
    /// first turn.
    pub fn limit_calls(&self, most: usize) {
        let slots = Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS));
        if self.inner().choices.calls.set(Arc::new(slots)).is_err() {
            tracing::error!("how many calls run at once is chosen once, before the first turn");
        }
    }

    /// What it takes.
    pub fn limits(&self) -> Limits {
        self.inner().choices.limits.get().copied().unwrap_or_default()
    }

    /// Whether a message of this content is taken, whatever runs: to be asked before what it names is read.
    ///
    /// # Errors
    /// [`EngineError::OverLimit`].
    pub fn admits(&self, content: &[ContentBlock]) -> Result<(), EngineError> {
        Ok(self.limits().admit(content)?)
    }

    /// Whether a message of this content could begin a turn now: to be asked before something is made for it. What
    /// begins the turn asks again.
    ///
    /// # Errors
    /// [`EngineError::OverLimit`].
    pub fn has_room_for(&self, content: &[ContentBlock]) -> Result<(), EngineError> {
        self.admits(content)?;
        self.must_have_room(self.user())
    }

    fn must_have_room(&self, user: &UserId) -> Result<(), EngineError> {
        match self.inner().running.has_room(user) {
            Err(Full::ForAll { .. }) if self.inner().is_for_all(KeptBy::Servers) => Ok(()),
            room => Ok(room.map_err(OverLimit::from)?),
        }
    }
}

impl Inner {
    /// A place for a turn that begins. One that any node may take begins although this node is full: it waits for one that is
    /// not.
    pub(crate) fn room_for_turn(&self, owner: &UserId, is_for_all: bool) -> Result<Option<Slot>, EngineError> {
        match self.running.try_enter(owner) {
            Ok(slot) => Ok(Some(slot)),
            Err(Full::ForAll { .. }) if is_for_all => Ok(None),
            Err(full) => Err(OverLimit::from(full).into()),
        }
    }

    /// What the store is to look at where a turn begins that any node may take: whether the user may have one more beside those
    /// of all nodes.
    pub(crate) fn room_elsewhere(&self, owner: &UserId, is_for_all: bool) -> Option<SideRecord> {
        let most = self.most_turns_of_one().filter(|_| is_for_all)?;
        Some(SideRecord::RunningTurns { owner: owner.clone(), most })
    }

    /// What a store's refusal of an append is called here.
    pub(crate) fn refusal(&self, error: StoreError) -> EngineError {
        match (error, self.most_turns_of_one()) {
            (StoreError::TooManyTurns, Some(most)) => OverLimit::UserTurns { most }.into(),
            (error, _) => error.into(),
        }
    }

    fn most_turns_of_one(&self) -> Option<usize> {
        self.choices.limits.get().map(|limits| limits.turns_per_user).filter(|most| *most < usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_measured_by_its_text_and_by_each_thing_that_it_brings() {
        let limits = Limits { message_bytes: 5, attachments: 2, attachment_bytes: 3, ..Limits::default() };
        let image = |data: &str| ContentBlock::Image { data: data.to_owned(), mime_type: "image/png".to_owned() };
        let table = [
            (vec![ContentBlock::text("12345")], Ok(())),
            (vec![ContentBlock::text("123"), ContentBlock::text("456")], Err(OverLimit::Message { bytes: 6, most: 5 })),
            (vec![image("AAAA"), image("AA==")], Ok(())),
            (vec![image("AAAAAA==")], Err(OverLimit::Attachment { bytes: 4, most: 3 })),
            (vec![image(""), image(""), image("")], Err(OverLimit::Attachments { count: 3, most: 2 })),
        ];
        for (content, expected) in table {
            assert_eq!(limits.admit(&content), expected, "{content:?}");
        }
    }

    #[test]
    fn a_title_is_measured_in_characters_and_what_is_chosen_by_all_its_texts() {
        let limits = Limits { message_bytes: 60, ..Limits::default() };
        let title = "é".repeat(MAX_TITLE_CHARS);
        assert_eq!(limits.admit_chosen(Some(&title), &SettingsOverlay::default()), Ok(()));
        let longer = title + "x";
        let over = OverLimit::Title { characters: MAX_TITLE_CHARS + 1, most: MAX_TITLE_CHARS };
        assert_eq!(limits.admit_chosen(Some(&longer), &SettingsOverlay::default()), Err(over));
        let prompt = SettingsOverlay { system_prompt: Some("x".repeat(60)), ..SettingsOverlay::default() };
        assert_eq!(limits.admit_chosen(None, &prompt), Ok(()));
        let schema = serde_json::json!({"type": "object", "description": "y".repeat(60)});
        let output = Some(turnwright_core::OutputFormat::Schema(turnwright_core::OutputSchema {
            name: "o".to_owned(),
            schema,
            strict: true,
        }));
        for chosen in [
            SettingsOverlay { tools: Some(vec!["z".to_owned()]), ..prompt },
            SettingsOverlay { output, ..SettingsOverlay::default() },
        ] {
            let refused = limits.admit_chosen(None, &chosen);
            assert!(matches!(refused, Err(OverLimit::Settings { most: 60, .. })), "{refused:?}");
        }
    }

    #[test]
    fn the_reason_of_a_decision_is_measured_in_characters() {
        let reason = "é".repeat(MAX_REASON_CHARS);
        let admit = |reason: String| {
            let verdict = turnwright_core::Verdict::Deny;
            admit_choices([Choice { verdict, arguments: None, reason: Some(reason) }].iter())
        };
        assert_eq!(admit(reason.clone()), Ok(()));
        let over = admit(reason + "x").unwrap_err();
        assert_eq!(over.to_string(), "the reason is 10001 characters long, the limit is 10000");
    }

    #[test]
    fn what_is_over_a_limit_is_told_with_the_key_that_sets_it() {
        let told = OverLimit::Message { bytes: 6, most: 5 }.to_string();
        assert_eq!(told, "the text of the message is 6 bytes, the limit is 5 bytes (`[server.limits] message_bytes`)");
    }
}
