//! Which processes ran the calls of a conversation, as its journal tells it: what some of their sources keep is there alone
//! (docs/nodes.md).

use turnwright_core::{CallId, Claim, Control, DriverId, Entry, Journal, StoredEntry, ToolDefinition};

/// How many processes are named at most: the older ones have what nobody used for long.
const MOST_HOMES: usize = 3;

/// The processes that have what calls of this conversation left at their sources, whoever ran the newest first. `keeps` says of
/// which tools that is so.
pub(crate) fn homes(journal: &Journal, keeps: impl Fn(&ToolDefinition) -> bool) -> Vec<DriverId> {
    let mut homes: Vec<DriverId> = Vec::new();
    for (call, driver) in started(journal) {
        if homes.contains(driver) || !definition(journal, call).is_some_and(&keeps) {
            continue;
        }
        homes.push(driver.clone());
        if homes.len() == MOST_HOMES {
            break;
        }
    }
    homes
}

/// The process that ran the newest call that began before `call` and that `is_like` it; `None` where there was none.
pub(crate) fn last_before(journal: &Journal, call: CallId, is_like: impl Fn(&ToolDefinition) -> bool) -> Option<&DriverId> {
    let mut last = None;
    for (other, driver) in started(journal) {
        if other == call {
            // What is newer than this began after it, or beside it.
            last = None;
        } else if last.is_none() && definition(journal, other).is_some_and(&is_like) {
            last = Some(driver);
        }
        if last.is_some() && other.message < call.message {
            break;
        }
    }
    last
}

/// The calls that were started, newest first, each with whose claim that was under.
fn started(journal: &Journal) -> impl Iterator<Item = (CallId, &DriverId)> {
    let claims = journal.entries().chunk_by(|_, next| claim(next).is_none()).rev();
    claims.filter_map(|entries| Some((claim(entries.first()?)?, entries))).flat_map(|(claim, entries)| {
        entries.iter().rev().filter_map(move |stored| match &*stored.entry {
            Entry::Started(started) => Some((started.call, &claim.driver)),
            _ => None,
        })
    })
}

fn claim(stored: &StoredEntry) -> Option<&Claim> {
    match &*stored.entry {
        Entry::Control(Control::Claimed(claim)) => Some(claim),
        _ => None,
    }
}

/// The tool that a call was for, as far as it is still offered.
fn definition(journal: &Journal, call: CallId) -> Option<&ToolDefinition> {
    let Entry::Assistant(message) = &*journal.entry(call.message)?.entry else { return None };
    let name = &message.calls().nth(usize::try_from(call.index).ok()?)?.name;
    journal.definition(name).map(|definition| &**definition)
}

#[cfg(test)]
mod tests;
