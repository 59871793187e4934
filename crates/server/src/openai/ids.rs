//! Names that clients of OpenAI's APIs are given: they hold the conversation, so that what comes back finds its way without an
//! index.

use std::fmt::Display;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use turnwright_core::{ApprovalId, CallId, ConversationId, IdError, Seq, UserId};

/// The longest name that those clients take.
const MAX_BYTES: usize = 64;

/// The name of a call for a client. Where the conversation's own name does not fit in, it has to be named beside.
pub(crate) fn call_id(conversation: &ConversationId, call: CallId) -> String {
    named(&call, conversation)
}

/// A name of a thing that stands in a conversation.
fn named(thing: &dyn Display, conversation: &ConversationId) -> String {
    let conversation = conversation.as_str();
    let plain = thing.to_string();
    let fits = plain.len().saturating_add(conversation.len()) < MAX_BYTES
        && conversation.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if fits { format!("{plain}_{conversation}") } else { plain }
}

/// What [`named`] wrote, with its conversation where the name holds it. A client's name may begin otherwise than `plain`, ours.
fn read<T: FromStr>(text: &str, (prefix, plain): (&str, &str)) -> Option<(T, Option<ConversationId>)> {
    let mut parts = text.strip_prefix(prefix)?.splitn(3, '_');
    let (message, index) = (parts.next()?, parts.next()?);
    let thing = format!("{plain}{message}_{index}").parse().ok()?;
    let conversation = parts.next().map(str::parse).transpose().ok()?;
    Some((thing, conversation))
}

/// A call that a client names.
pub(crate) fn read_call(text: &str) -> Option<(CallId, Option<ConversationId>)> {
    read(text, ("call_", "call_"))
}

/// The name of a question about a call for a client.
pub(crate) fn request_id(conversation: &ConversationId, approval: ApprovalId) -> String {
    named(&approval, conversation).replacen("appr_", "mcpr_", 1)
}

/// The question that a client names.
pub(crate) fn read_request(text: &str) -> Option<(ApprovalId, Option<ConversationId>)> {
    read(text, ("mcpr_", "appr_"))
}

/// What the names of a response's items begin with.
const ITEMS: [&str; 5] = ["msg_", "rs_", "fc_", "ctc_", "mcp_"];

/// The name of an item of the response after an entry, by its place there. It holds the conversation as the name of a call does.
pub(crate) fn item_id(prefix: &str, conversation: &ConversationId, after: Seq, index: usize) -> String {
    named(&format_args!("{prefix}_{after}_{index}"), conversation)
}

/// The entry after which the response of an item comes, with its conversation where the item's name holds it.
pub(crate) fn read_item(text: &str) -> Option<(Seq, Option<ConversationId>)> {
    let mut parts = ITEMS.iter().find_map(|prefix| text.strip_prefix(prefix))?.splitn(3, '_');
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let after = Seq::new(parts.next().filter(is_number)?.parse().ok()?)?;
    parts.next().filter(is_number)?;
    match parts.next() {
        None => Some((after, None)),
        Some(conversation) => Some((after, Some(conversation.parse().ok()?))),
    }
}

/// The name of what comes in a conversation after an entry, with the prefix that the API wants.
pub(crate) fn answer_id(prefix: &str, conversation: &ConversationId, after: Seq) -> String {
    format!("{prefix}{after}_{conversation}")
}

/// The conversation and the entry that a name of [`answer_id`] holds.
pub(crate) fn read_answer(prefix: &str, text: &str) -> Option<(ConversationId, Seq)> {
    let (after, conversation) = text.strip_prefix(prefix)?.split_once('_')?;
    let is_number = !after.is_empty() && after.bytes().all(|b| b.is_ascii_digit());
    Some((conversation.parse().ok()?, Seq::new(after.parse().ok().filter(|_| is_number)?)?))
}

/// The conversation that a request with this key makes.
pub(crate) fn of_key(user: &UserId, key: &str) -> Result<ConversationId, IdError> {
    let key = if user.is_local() { key.to_owned() } else { format!("{user}\t{key}") };
    let mut name = "conv_".to_owned();
    for byte in Sha256::digest(key.as_bytes()).iter().take(12) {
        use std::fmt::Write;
        // Writing to memory does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    name.parse()
}

#[cfg(test)]
mod tests {
    use turnwright_core::{ApprovalId, CallId, ConversationId, Seq};

    use super::{answer_id, call_id, item_id, read_answer, read_call, read_item, read_request, request_id};

    #[test]
    fn a_name_holds_its_conversation_where_that_fits() {
        let call = CallId { message: Seq::new(12).unwrap(), index: 1 };
        let long = "a".repeat(60);
        for (conversation, expected) in
            [("conv_0f", "call_12_1_conv_0f"), ("with.dots", "call_12_1"), (long.as_str(), "call_12_1")]
        {
            let conversation: ConversationId = conversation.parse().unwrap();
            let id = call_id(&conversation, call);
            assert_eq!(id, expected);
            let held = (id.len() > 9).then_some(conversation.clone());
            assert_eq!(read_call(&id), Some((call, held.clone())));
            for (number, name) in [(1, expected), (2, &expected.replacen("call_12_1", "call_12_1-2", 1))] {
                let approval = ApprovalId { call, number };
                assert_eq!(request_id(&conversation, approval), name.replacen("call_", "mcpr_", 1));
                assert_eq!(read_request(&request_id(&conversation, approval)), Some((approval, held.clone())));
            }
        }
        for foreign in ["call_abc", "call_1", "toolu_1_2", "call_0_1", "call_1_x_conv"] {
            assert_eq!(read_call(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn an_item_is_found_by_its_name_and_by_one_without_its_conversation() {
        let conversation: ConversationId = "conv_0f".parse().unwrap();
        let after = Seq::new(7).unwrap();
        assert_eq!(item_id("msg", &conversation, after, 2), "msg_7_2_conv_0f");
        for prefix in ["msg", "rs", "fc", "mcp"] {
            assert_eq!(read_item(&item_id(prefix, &conversation, after, 2)), Some((after, Some(conversation.clone()))));
            assert_eq!(read_item(&format!("{prefix}_7_2")), Some((after, None)));
        }
        for foreign in ["msg_7", "msg_0_1", "msg_7_x", "msg_+7_1", "mcpr_7_1", "msg_67ccd2bed1ec8190", "fco_7"] {
            assert_eq!(read_item(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn an_answer_is_found_by_its_name() {
        let conversation: ConversationId = "any_name.at:all".parse().unwrap();
        let id = answer_id("resp_", &conversation, Seq::new(7).unwrap());
        assert_eq!(id, "resp_7_any_name.at:all");
        assert_eq!(read_answer("resp_", &id), Some((conversation, Seq::new(7).unwrap())));
        for foreign in ["resp_0_c", "resp_abc", "resp_7", "msg_7_c", "resp_+7_c"] {
            assert_eq!(read_answer("resp_", foreign), None, "{foreign}");
        }
    }
}
