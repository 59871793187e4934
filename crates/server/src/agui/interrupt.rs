//! The names of interrupts. Each holds its thread, so that an answer to what another thread asked is none to what is asked here. Pure.

use turnwright_core::{ApprovalId, ConversationId, ElicitationId};

/// What a page is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Whether a call may run.
    Approval(ApprovalId),
    /// What a call asks.
    Question(ElicitationId),
}

impl Interrupt {
    /// What it is called in a thread.
    pub(crate) fn name(self, thread: &ConversationId) -> String {
        match self {
            Self::Approval(asked) => format!("{asked}_{thread}").replacen("appr_", "mcpr_", 1),
            Self::Question(asked) => format!("{asked}_{thread}"),
        }
    }

    /// The one that has this name; `None` where it is of another thread, or of none.
    pub(crate) fn read(name: &str, thread: &ConversationId) -> Option<Self> {
        let plain = name.strip_suffix(thread.as_str())?.strip_suffix('_')?;
        match plain.strip_prefix("mcpr_") {
            Some(asked) => Some(Self::Approval(format!("appr_{asked}").parse().ok()?)),
            None => Some(Self::Question(plain.parse().ok()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use turnwright_core::{ApprovalId, CallId, ConversationId, ElicitationId, Seq};

    use super::Interrupt;

    #[test]
    fn a_name_is_read_in_its_own_thread_alone() {
        let call = CallId { message: Seq::new(4).unwrap(), index: 0 };
        let asked = [
            Interrupt::Approval(ApprovalId { call, number: 1 }),
            Interrupt::Approval(ApprovalId { call, number: 2 }),
            Interrupt::Question(ElicitationId { call, index: 0 }),
            Interrupt::Question(ElicitationId { call, index: 1 }),
        ];
        let long = "a".repeat(128);
        let threads = ["t", "1", "0", "0_1", "1_0", "other_t", "with.dots:", "-2", long.as_str()];
        let threads: Vec<ConversationId> = threads.iter().map(|name| name.parse().unwrap()).collect();
        for thread in &threads {
            for interrupt in asked {
                for other in &threads {
                    let read = Interrupt::read(&interrupt.name(thread), other);
                    assert_eq!(read, (other == thread).then_some(interrupt), "{} in {other}", interrupt.name(thread));
                }
            }
            for foreign in ["mcpr_4_0", "question_4_0_0", "question_4_0_1", "", "mcpr_x_1"] {
                assert_eq!(Interrupt::read(foreign, thread), None, "{foreign} in {thread}");
            }
        }
    }
}
