//! Which answers of a turn are of a part of it, where people say something while the turn is open: what was begun before a message is no
//! answer to that, and whoever said something before has theirs with the answer that is whole without it. A call of a client's tool is for one
//! of them to run: for the request that came last of those that the model was shown. Pure.

use turnwright_core::{CallId, Completion, Control, Entry, QuestionReason, Seq};

use super::track::Part;

/// What is known of a part up to an entry.
#[derive(Debug)]
pub(crate) struct Apart {
    /// The message that the part begins after, where that joined an open turn, until a model is asked that is shown it.
    unseen: Option<Seq>,
    /// What people said behind it, the newest.
    said: Option<Seq>,
    /// What the model was shown last of the newest answer, where that is whole and makes no calls.
    answered: Option<Seq>,
    /// The first that a later request brought: what somebody said, or what a client's tool gave that was called behind the beginning.
    later: Option<Seq>,
    /// Whether the newest answer was begun with what a later request brought.
    is_others: bool,
    /// The calls that were handed to their client behind the beginning.
    handed: Vec<CallId>,
    /// The calls for which people are asked something, each as often as it asks.
    asked: Vec<CallId>,
}

impl Apart {
    /// Of a part that begins after this entry.
    pub(crate) fn of(part: &Part, entry: &Entry) -> Self {
        let joins = part.after > part.turn.0 && matches!(entry, Entry::User(_));
        Self {
            unseen: joins.then_some(part.after),
            said: None,
            answered: None,
            later: None,
            is_others: false,
            handed: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// Whether what comes is of what was begun before.
    pub(crate) fn is_before(&self) -> bool {
        self.unseen.is_some()
    }

    /// An answer begins whose model is shown all up to this entry.
    pub(crate) fn begins(&mut self, saw: Seq) {
        self.unseen = self.unseen.filter(|message| saw < *message);
    }

    /// Takes an entry behind the one that the part begins after.
    pub(crate) fn take(&mut self, seq: Seq, entry: &Entry) {
        match entry {
            Entry::User(_) => {
                self.said = Some(seq);
                self.later = self.later.or(Some(seq));
            }
            Entry::Assistant(message) => {
                self.begins(message.saw);
                let is_whole = message.completion == Completion::Complete && message.calls().next().is_none();
                self.answered = (is_whole && !self.is_before()).then_some(message.saw);
                self.is_others = self.is_before() || self.later.is_some_and(|later| later <= message.saw);
                self.handed.clear();
                self.asked.clear();
            }
            Entry::Question(question) if question.reason == QuestionReason::ClientTool => self.handed.push(question.call),
            Entry::Question(question) => self.asked.push(question.call),
            Entry::Elicited(elicited) => self.asked.push(elicited.call),
            Entry::Decision(decision) => self.is_asked_once_less(decision.call),
            Entry::Answered(answered) => self.is_asked_once_less(answered.question.call),
            Entry::Result(result) => {
                self.asked.retain(|call| *call != result.call);
                let is_of_client = self.handed.contains(&result.call);
                self.later = self.later.or(is_of_client.then_some(seq));
            }
            // Whoever goes on with the turn begins its answer anew, and shows all that there is.
            Entry::Control(Control::Resumed { .. }) => self.unseen = None,
            Entry::Started(_) | Entry::TaskAccepted(_) | Entry::Sampled(_) | Entry::Control(_) => {}
        }
    }

    fn is_asked_once_less(&mut self, call: CallId) {
        if let Some(at) = self.asked.iter().position(|asked| *asked == call) {
            self.asked.swap_remove(at);
        }
    }

    /// Whether its last answer is there, and what comes answers what was said since.
    pub(crate) fn is_over(&self) -> bool {
        self.answered.zip(self.said).is_some_and(|(saw, said)| said > saw)
    }

    /// What the model was shown last of its last answer, where that is there.
    pub(crate) fn answered(&self) -> Option<Seq> {
        self.answered
    }

    /// Whether this call was handed to a client behind the beginning.
    pub(crate) fn is_handed(&self, call: CallId) -> bool {
        self.handed.contains(&call)
    }

    /// Whether calls of client's tools in the newest answer are for another request to run.
    pub(crate) fn calls_are_others(&self) -> bool {
        self.is_before() || self.is_others
    }

    /// Whether it goes on behind the place where the turn waits: for what another client's tools give, and for nobody else.
    pub(crate) fn waits_on(&self) -> bool {
        self.calls_are_others() && self.asked.is_empty()
    }
}
