//! What a turn waits for, as a text for clients that know no other word for it. Pure.

use turnwright_core::{ConversationId, QuestionReason};

use super::recalled::WAITS_FOR_DECISION;
use super::track::{End, Track};

/// What waits for a person, and where they decide: with these flags the command reaches this data. `None` where nothing does.
pub(crate) fn text(track: &Track, conversation: &ConversationId, flags: &str) -> Option<String> {
    if track.end != Some(End::Suspended) {
        return None;
    }
    let calls = track.asked_about().map(|call| {
        let (danger, first, others) = match call.waits {
            Some(QuestionReason::UnknownOutcome) => {
                (", which was interrupted and may have happened", "happened", "`run_again` or `skip`")
            }
            Some(_) | None => ("", "allow", "`deny`"),
        };
        format!(
            "- `{}` with {}{danger}\n  `turnwright approvals decide {} {first} --approval {} --conversation {conversation}{flags}` (or {others})",
            call.name,
            call.arguments,
            call.id,
            call.approval()
        )
    });
    let lines: Vec<String> = calls.chain(track.questions(conversation)).collect();
    (!lines.is_empty()).then(|| {
        format!(
            "{WAITS_FOR_DECISION}\n{}\nOver HTTP: `GET /api/v1/conversations/{conversation}/calls`. The turn goes on by itself once that is decided; another message here declines it.",
            lines.join("\n")
        )
    })
}
