//! Answers to what joined an open turn, as messages of their own in one stream.

use turnwright_core::{ContentBlock, Entry, MessageId, Seq};
use turnwright_engine::Event;

use super::{Begin, Phase, UiFold, Untold};

/// What a person said in a turn that was open, where the client is to be told it.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) seq: Seq,
    pub(super) content: Vec<ContentBlock>,
}

impl UiFold {
    /// Whether the client has this message of a person's at its place.
    pub(super) fn is_at_its_place(&self, message: Seq) -> bool {
        matches!(self.begin, Begin::Apart(known) | Begin::Answer(known) if message <= known)
    }

    /// Whether what is told is the turn's own message, and nothing that was said in the turn is at its place in the client.
    pub(super) fn is_in_turns_own(&self) -> bool {
        self.begin == Begin::Apart(self.turn.0) && self.answers.is_none()
    }

    /// Whether an answer that saw what joined the turn begins a message, where the client has another open.
    fn begins_apart(&self) -> bool {
        match self.begin {
            Begin::Apart(_) => true,
            Begin::Answer(_) => self.first.is_some(),
            Begin::Turn | Begin::Continue { .. } | Begin::Join(_) | Begin::After(_) => false,
        }
    }

    /// The newest message that joined the turn and was seen by an answer that saw all up to this: the answer has its name.
    fn newest_seen(&self, saw: Seq) -> Option<(Seq, u64)> {
        self.joined.iter().rfind(|(seq, _)| *seq <= saw).copied()
    }

    /// Whether the answer that saw all up to this is told in another message than the one that the client has open.
    pub(super) fn is_elsewhere(&self, saw: Seq) -> bool {
        self.begins_apart() && self.phase == Phase::Telling && self.newest_seen(saw).map(|(seq, _)| seq) != self.answers
    }

    /// Begins the message of the answer that saw all up to this, where the client does not have it open, and says where it does.
    pub(super) fn begin_message(&mut self, saw: Seq, out: &mut Vec<u8>) -> Option<usize> {
        if self.phase != Phase::Telling || (self.is_started && !self.is_elsewhere(saw)) {
            return None;
        }
        if let (Begin::Answer(_), Some(first)) = (self.begin, self.first) {
            out.truncate(first);
        }
        let at = out.len();
        self.is_started = false;
        self.name_after(self.newest_seen(saw));
        if self.begin == Begin::Apart(self.turn.0) && self.answers.is_some() {
            self.chunks.clear_id();
        }
        self.start(out);
        Some(at)
    }

    fn name_after(&mut self, said: Option<(Seq, u64)>) {
        if let Some((seq, at_ms)) = said {
            (self.answers, self.created_at_ms) = (Some(seq), Some(at_ms));
        }
    }

    /// Begins the client's message before what was told of it first, which stands there.
    pub(super) fn start_before(&mut self, at: usize, out: &mut Vec<u8>) {
        if self.phase != Phase::Telling || self.is_started || out.len() <= at {
            return;
        }
        let told = out.split_off(at);
        if let Begin::Join(_) = self.begin {
            // Unless more joins before it, its answer sees all of that.
            self.name_after(self.joined.last().copied());
        }
        self.start(out);
        if self.untold != Untold::Nothing {
            self.chunks.plain(out, r#"{"type":"start-step"}"#);
        }
        if self.untold == Untold::Step {
            self.untold = Untold::Nothing;
        }
        out.extend(told);
    }

    /// Takes up what a person said, which the client is to be told.
    pub(super) fn said(&mut self, said: Said, out: &mut Vec<u8>) {
        if self.begins_apart() {
            // The answer to it says where it stands.
            self.said_before.push(said);
        } else if self.is_answering {
            self.said_meanwhile.push(said);
        } else if self.phase == Phase::Telling && !self.is_started {
            // The first answer says what the message is called.
            self.said_before.push(said);
        } else {
            self.said_before.push(said);
            self.steer(out);
        }
    }

    /// Tells what a person said and the model has not answered yet.
    pub(super) fn steer(&mut self, out: &mut Vec<u8>) {
        for Said { seq, content } in self.said_before.drain(..) {
            self.chunks.steering(out, &format!("msg_{seq}"), &content);
        }
    }

    /// The same before the answer that saw all up to this.
    pub(super) fn steer_up_to(&mut self, saw: Seq, out: &mut Vec<u8>) {
        let unseen = if self.begins_apart() {
            let first = self.said_before.iter().position(|said| said.seq > saw);
            self.said_before.split_off(first.unwrap_or(self.said_before.len()))
        } else {
            Vec::new()
        };
        self.steer(out);
        self.said_before = unseen;
    }
}

/// What the model is shown last of a step that begins at the place of `message`: of an answer that is stored it is known, and of one in
/// flight it is all before the place that it had when it began.
pub(crate) fn seen(message: MessageId, rest: &[Event]) -> Seq {
    let own = rest.iter().take_while(|event| !matches!(event, Event::StepStarted { .. }));
    let before = Seq::new(message.0.get().saturating_sub(1)).unwrap_or(Seq::FIRST);
    own.into_iter().find_map(answer).unwrap_or(before)
}

/// What the model was shown last, of an answer that is stored.
fn answer(event: &Event) -> Option<Seq> {
    let Event::Entry { entry, .. } = event else { return None };
    let Entry::Assistant(message) = &**entry else { return None };
    Some(message.saw)
}

/// Whether the next answer was begun before a person said this; `None` where nobody says anything, or it is not known yet.
pub(super) fn is_unseen_by_next(event: &Event, rest: &[Event]) -> Option<bool> {
    let Event::Entry { seq, entry, .. } = event else { return None };
    let Entry::User(_) = &**entry else { return None };
    rest.iter().find_map(|event| match event {
        // In flight, at a place that was taken meanwhile.
        Event::StepStarted { message_id } if message_id.0 <= *seq => Some(true),
        event => answer(event).map(|saw| saw < *seq),
    })
}
