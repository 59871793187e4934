//! Items of earlier answers that a request names instead of saying them again: which conversation it goes on in.

use http::StatusCode;
use turnwright_core::{CallId, ConversationId, Journal, Seq};

use super::begin::{Ask, where_there};
use super::history::Said;
use super::ids;
use super::responses::object::{PREFIX, part_after};
use super::responses::stored::{Brings, continued};
use crate::error::ApiError;
use crate::state::ServerState;

/// What a name leads to.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    /// An item of the answer after this entry.
    Item(Seq),
    /// The question about this call.
    Request(CallId),
}

fn read(id: &str) -> Option<(Named, Option<ConversationId>)> {
    let item = ids::read_item(id).map(|(after, conversation)| (Named::Item(after), conversation));
    item.or_else(|| ids::read_request(id).map(|(asked, conversation)| (Named::Request(asked.call), conversation)))
}

/// The conversation of the newest answer that a request refers to, or, where more was said there since, a new one that is the same
/// up to there; `None` where it refers to none. What stood before that answer is what the conversation says.
///
/// # Errors
/// 404, where an item leads to no answer here, as with OpenAI; 400 where its name does not tell whose it is, and where answers that the
/// request says itself come after it.
pub(crate) async fn conversation_of(state: &ServerState, ask: &Ask) -> Result<Option<ConversationId>, ApiError> {
    let mut newest = None;
    for item in &ask.history.before {
        match &item.said {
            Said::Reference { at, id } => {
                newest = Some((*at, id.as_str(), read(id).ok_or_else(|| missing(*at, id))?));
            }
            // Calls of ours stand beside the answer that is referred to.
            Said::Answer { calls, text } if text.is_empty() && calls.iter().all(|call| ids::read_call(&call.id).is_some()) => {}
            Said::Answer { .. } => {
                if let Some((at, id, _)) = &newest {
                    let what = "stands before an answer that is said in full; refer to both, or say both in full";
                    return Err(wrong(*at, &format!("refers to `{id}`, which {what}")));
                }
            }
            Said::System(_)
            | Said::User(_)
            | Said::Result { .. }
            | Said::Approval { .. }
            | Said::Elsewhere { .. }
            | Said::Echo
            | Said::Nothing => {}
        }
    }
    let Some((at, id, (named, held))) = newest else { return Ok(None) };
    if let (Some(asked), Some(held)) = (&ask.conversation, &held)
        && asked != held
    {
        return Err(wrong(at, &format!("refers to `{id}`, which is not of conversation `{asked}`")));
    }
    let Some(conversation) = held.or_else(|| ask.conversation.clone()) else {
        let what =
            "whose conversation its name does not tell; name that as `conversation`, or the answer as `previous_response_id`";
        return Err(wrong(at, &format!("refers to `{id}`, {what}")));
    };
    let after = match named {
        Named::Item(after) => Some(after),
        Named::Request(call) => {
            let look = |journal: &Journal| part_after(journal, &[call]).map(|part| part.after);
            where_there(state.engine().look(&conversation, look).await)?.flatten()
        }
    };
    let response = ids::answer_id(PREFIX, &conversation, after.ok_or_else(|| missing(at, id))?);
    let continued = continued(state, &response, Brings::Words).await.map_err(|error| match error.status() {
        StatusCode::NOT_FOUND => missing(at, id),
        _ => error,
    })?;
    // A conversation that is named goes on at its end.
    Ok(Some(ask.conversation.clone().unwrap_or(continued)))
}

fn missing(at: usize, id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    let detail = format!("`input[{at}]` refers to `{id}`, and there is no such item here; say it in full");
    ApiError::new(StatusCode::NOT_FOUND, "not_found", detail).about("input")
}

fn wrong(at: usize, what: &str) -> ApiError {
    ApiError::invalid(format!("`input[{at}]` {what}")).about(format!("input[{at}]"))
}

#[cfg(test)]
mod tests {
    use turnwright_core::{CallId, Seq};

    use super::{Named, read};

    #[test]
    fn items_and_questions_can_be_referred_to() {
        let conversation = Some("conv_0f".parse().unwrap());
        let seq = |number| Seq::new(number).unwrap();
        assert_eq!(read("rs_7_0_conv_0f"), Some((Named::Item(seq(7)), conversation.clone())));
        let call = CallId { message: seq(4), index: 1 };
        assert_eq!(read("mcpr_4_1_conv_0f"), Some((Named::Request(call), conversation)));
        assert_eq!(read("resp_7_conv_0f"), None);
    }
}
