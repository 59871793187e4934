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
        /// Whether it answered a call.
        has_served: bool,
    },
    /// It did not become ready.
    NotStarted,
    /// It did not become ready, and said too late that it speaks the other era.
    OtherEra,
    /// It wants somebody to sign in.
    NeedsSignIn,
    /// It was ready, and nobody needed it.
    Unused,
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
    /// Leave it alone for so long: calls fail at once. Then start it when a call needs it.
    Rest(Duration),
    /// The same, and then start it: no call can need what nobody knows.
    RestThenStart(Duration),
}

/// Whether models are offered what it has while it is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tools {
    /// They are, from this run or from an earlier one.
    Known,
    /// It never said what it has.
    Unknown,
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
    pub(crate) fn after(&mut self, course: Course, tools: Tools, luck: u64) -> Next {
        match course {
            // One that is of use is worth another start, however short it lived.
            Course::Ended { lived, has_served } if has_served || lived >= self.policy.stable_after => self.failures = 1,
            Course::Ended { .. } | Course::NotStarted => self.failures = self.failures.saturating_add(1),
            // It runs well; it was asked in the wrong way.
            Course::OtherEra => return Next::Start,
            // Trying again alone changes nothing; a call may come after somebody signed in.
            Course::NeedsSignIn => return Next::Wait,
            Course::Unused => {
                self.failures = 0;
                return Next::Wait;
            }
        }
        match (self.policy.pause(self.failures, luck), tools) {
            (Some(pause), _) => Next::Pause(pause),
            (None, Tools::Known) => Next::Rest(self.policy.rest(self.failures)),
            // Without a rest it would be started again and again.
            (None, Tools::Unknown) => match self.policy.rest(self.failures) {
                Duration::ZERO => Next::Wait,
                rest => Next::RestThenStart(rest),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without luck a pause is its shortest.
    fn nexts(courses: &[Course]) -> Vec<Next> {
        nexts_of(Tools::Known, courses)
    }

    fn nexts_of(tools: Tools, courses: &[Course]) -> Vec<Next> {
        let mut supervision = Supervision::new(RestartPolicy { attempts: 3, ..RestartPolicy::default() });
        courses.iter().map(|course| supervision.after(*course, tools, 0)).collect()
    }

    fn ended(seconds: u64, has_served: bool) -> Course {
        Course::Ended { lived: Duration::from_secs(seconds), has_served }
    }

    #[test]
    fn a_server_that_answered_a_call_has_not_failed_in_a_row() {
        let (useless, useful) = (ended(0, false), ended(0, true));
        assert_eq!(nexts(&[useful; 5]), [PAUSES[0]; 5]);
        assert_eq!(nexts(&[useless, useless, useful, useless]), [PAUSES[0], PAUSES[1], PAUSES[0], PAUSES[1]]);
    }

    const PAUSES: [Next; 2] = [Next::Pause(Duration::from_millis(80)), Next::Pause(Duration::from_millis(800))];

    #[test]
    fn starts_that_fail_in_a_row_are_tried_ever_later_and_then_left_alone_ever_longer() {
        let rest = |seconds| Next::Rest(Duration::from_secs(seconds));
        let rests = [30, 60, 120, 240, 300, 300].map(rest);
        assert_eq!(nexts(&[Course::NotStarted; 8]), [PAUSES.as_slice(), &rests].concat());
    }

    #[test]
    fn a_server_that_never_said_what_it_has_is_tried_ever_later_without_end() {
        let rests = [30, 60, 120, 240, 300, 300].map(|seconds| Next::RestThenStart(Duration::from_secs(seconds)));
        assert_eq!(nexts_of(Tools::Unknown, &[Course::NotStarted; 8]), [PAUSES.as_slice(), &rests].concat());
    }

    #[test]
    fn one_good_life_ends_the_resting_and_a_short_one_does_not() {
        let (short, long) = (ended(0, false), ended(10, false));
        let down = [Course::NotStarted; 3];
        let rest = |seconds| Next::Rest(Duration::from_secs(seconds));
        assert_eq!(nexts(&[&down[..], &[short]].concat()), [PAUSES[0], PAUSES[1], rest(30), rest(60)]);
        assert_eq!(nexts(&[&down[..], &[long]].concat()), [PAUSES[0], PAUSES[1], rest(30), PAUSES[0]]);
        let unused = [&down[..], &[Course::Unused, Course::NotStarted]].concat();
        assert_eq!(nexts(&unused), [PAUSES[0], PAUSES[1], rest(30), Next::Wait, PAUSES[0]]);
    }

    #[test]
    fn a_server_that_lived_long_has_not_failed_in_a_row() {
        let (short, long) = (ended(0, false), ended(10, false));
        assert_eq!(nexts(&[short, short, long, short]), [PAUSES[0], PAUSES[1], PAUSES[0], PAUSES[1]]);
    }

    #[test]
    fn a_sign_in_and_a_misjudged_era_are_no_failures() {
        let courses = [Course::NeedsSignIn, Course::OtherEra, Course::NotStarted];
        assert_eq!(nexts(&courses), [Next::Wait, Next::Start, PAUSES[0]]);
    }
}
