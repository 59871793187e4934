//! How a conversation was kept where it comes from, besides what is said in it. That it was pinned holds here too; what has
//! no place here is counted.

use serde_json::Value;

use super::draft::Draft;
use super::{list, text};

/// ChatGPT names the time of it.
const PINNED: [&str; 4] = ["pinned", "is_pinned", "is_starred", "pinned_time"];
const ARCHIVED: [&str; 3] = ["archived", "is_archived", "isArchived"];
/// ChatGPT's projects are named as its GPTs are.
const GROUPS: [(&str, &str); 2] =
    [("folder_id", "the folder that it was in"), ("gizmo_id", "the project or GPT that it was in")];

/// Reads it from the members of a conversation.
pub(super) fn read(record: &Value, draft: &mut Draft) {
    let is_so = |name: &&str| record.get(*name).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)));
    draft.pinned |= PINNED.iter().any(is_so);
    if ARCHIVED.iter().any(is_so) {
        draft.leave_out("that it was archived");
    }
    for (name, group) in GROUPS {
        if text(record, name).is_some() {
            draft.leave_out(group);
        }
    }
    let tags =
        [Some(record), record.get("meta"), record.get("chat")].into_iter().flatten().map(|holder| list(holder, "tags").len());
    draft.leave_out_many("a tag", tags.max().unwrap_or_default());
}
