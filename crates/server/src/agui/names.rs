//! What the messages of an answer are called. The names follow from the journal alone, so that a stream and what a page is told
//! later hold one message under one name. Pure.

use turnwright_core::{Journal, MessageId, Seq, TurnId};

/// Names what a model says in one message, in its order.
#[derive(Debug)]
pub(super) struct Names {
    message: MessageId,
    texts: u32,
    thoughts: u32,
    /// Whether what was named so far does not count, and nothing was named since.
    is_anew: bool,
}

impl Names {
    /// Those of the message that was to stand at `began`: after the last entry that its model was shown. It stands later where
    /// somebody appended meanwhile.
    pub(super) fn of(began: Seq) -> Self {
        Self { message: MessageId(began), texts: 0, thoughts: 0, is_anew: false }
    }

    /// Whether they are of this message.
    pub(super) fn are_of(&self, began: Seq) -> bool {
        self.message.0 == began
    }

    /// What was named so far is told anew, under other names: a page adds to what it has under a name.
    pub(super) fn begin_anew(&mut self) {
        self.is_anew = self.texts > 0;
    }

    /// The next text.
    pub(super) fn text(&mut self) -> String {
        self.is_anew = false;
        self.texts = self.texts.saturating_add(1);
        numbered(self.message.to_string(), self.texts)
    }

    /// The next thought.
    pub(super) fn thought(&mut self) -> String {
        self.thoughts = self.thoughts.saturating_add(1);
        numbered(format!("{}_thought", self.message), self.thoughts)
    }

    /// What the calls belong to: the newest text, or a message without any.
    pub(super) fn of_calls(&self) -> String {
        numbered(self.message.to_string(), self.texts.saturating_add(u32::from(self.is_anew)))
    }
}

fn numbered(name: String, number: u32) -> String {
    if number > 1 { format!("{name}_{number}") } else { name }
}

/// What a message of a person's is called that its page has no name for. One that was said while a turn ran may stand where the answer
/// in flight was to stand, which has that name.
pub(super) fn said_name(journal: &Journal, at: Seq) -> String {
    match journal.turns().binary_search(&TurnId(at)) {
        Ok(_) => MessageId(at).to_string(),
        Err(_) => format!("{SAID}{}", at.get()),
    }
}

/// Whether it is the name of the message of a person's that stands there.
pub(crate) fn is_said_name(name: &str, at: Seq) -> bool {
    let place = name.strip_prefix(SAID).map(str::parse);
    place.map_or_else(|| name.parse() == Ok(MessageId(at)), |place| place == Ok(at.get()))
}

/// Before the place of what was said while a turn ran.
const SAID: &str = "said_";

/// The name of the message that holds what a call gave.
pub(super) fn result_id(call: &str) -> String {
    call.replacen("call_", "result_", 1)
}

#[cfg(test)]
mod tests {
    use turnwright_core::Seq;

    use super::{Names, is_said_name};

    #[test]
    fn a_message_of_a_persons_has_two_names() {
        let at = Seq::new(4).unwrap();
        assert!(is_said_name("said_4", at) && is_said_name("msg_4", at));
        for other in ["said_5", "said_", "said_x", "msg_5", "msg_4_2", "4", ""] {
            assert!(!is_said_name(other, at), "{other}");
        }
    }

    #[test]
    fn what_is_told_anew_has_another_name_and_its_calls_belong_to_it() {
        let mut names = Names::of(Seq::new(4).unwrap());
        assert_eq!((names.of_calls(), names.thought(), names.text()), ("msg_4".into(), "msg_4_thought".into(), "msg_4".into()));
        names.begin_anew();
        assert_eq!((names.of_calls(), names.text(), names.of_calls()), ("msg_4_2".into(), "msg_4_2".into(), "msg_4_2".into()));
        assert_eq!((names.text(), names.thought()), ("msg_4_3".into(), "msg_4_thought_2".into()));
    }
}
