//! Decides what happens to a server next. Nothing here waits, starts, ends or looks at a clock: [`crate::supervisor`] tells
//! how it went, and does what comes out.

use std::time::Duration;

use crate::RestartPolicy;

/// How a start, or a life, of a server went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Course {
    /// It was ready, and ended without being asked to.
    Ended {
        /// How long it was ready.
        lived: Duration,
    },
    /// It did not become ready.
    NotStarted,
    /// It did not become ready, and said too late that it speaks the other era.
    OtherEra,
    /// It wants somebody to sign in.
    NeedsSignIn,
}

/// What to do then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Start it.
    Start,
    /// Start it after so long, or as soon as a call needs it.
    Pause(Duration),
    /// Start it when a call needs it.
    Wait,
}

/// The history of a server, as far as it matters.
#[derive(Debug)]
pub(crate) struct Supervision {
    policy: RestartPolicy,
    /// Starts and lives that went wrong in a row.
    failures: u32,
}

impl Supervision {
    pub(crate) fn new(policy: RestartPolicy) -> Self {
        Self { policy, failures: 0 }
    }

    /// What to do after this. `luck` is any number; it spreads the pauses of servers that fell together.
    pub(crate) fn after(&mut self, course: Course, luck: u64) -> Next {
        match course {
            Course::Ended { lived } if lived >= self.policy.stable_after => self.failures = 1,
            Course::Ended { .. } | Course::NotStarted => self.failures = self.failures.saturating_add(1),
            // It runs well; it was asked in the wrong way.
            Course::OtherEra => return Next::Start,
            // Trying again alone changes nothing; a call may come after somebody signed in.
            Course::NeedsSignIn => return Next::Wait,
        }
        self.policy.pause(self.failures, luck).map_or(Next::Wait, Next::Pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without luck a pause is its shortest.
    fn nexts(courses: &[Course]) -> Vec<Next> {
        let mut supervision = Supervision::new(RestartPolicy { attempts: 3, ..RestartPolicy::default() });
        courses.iter().map(|course| supervision.after(*course, 0)).collect()
    }

    const PAUSES: [Next; 2] = [Next::Pause(Duration::from_millis(80)), Next::Pause(Duration::from_millis(800))];

    #[test]
    fn starts_that_fail_in_a_row_are_tried_ever_later_and_then_only_when_needed() {
        assert_eq!(nexts(&[Course::NotStarted; 4]), [PAUSES[0], PAUSES[1], Next::Wait, Next::Wait]);
    }

    #[test]
    fn a_server_that_lived_long_has_not_failed_in_a_row() {
        let (short, long) = (Course::Ended { lived: Duration::ZERO }, Course::Ended { lived: Duration::from_secs(10) });
        assert_eq!(nexts(&[short, short, long, short]), [PAUSES[0], PAUSES[1], PAUSES[0], PAUSES[1]]);
    }

    #[test]
    fn a_sign_in_and_a_misjudged_era_are_no_failures() {
        let courses = [Course::NeedsSignIn, Course::OtherEra, Course::NotStarted];
        assert_eq!(nexts(&courses), [Next::Wait, Next::Start, PAUSES[0]]);
    }
}
