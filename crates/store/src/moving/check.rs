//! Whether everything can be read and nothing is missing.

use std::collections::BTreeMap;

use turnwright_core::{Entry, counted};
use turnwright_engine::StoreError;

use super::tables::{Broken, CONVERSATIONS, ENTRIES, Found, TABLES, Table, Value};
use super::{Moved, Rows, typed};

/// How many problems are told of; more say the same.
const MOST_TOLD: usize = 100;

/// A journal, as it should be.
struct Journal {
    id: String,
    next_seq: i64,
    /// How many of its entries were seen without a gap.
    seen: i64,
}

pub(super) async fn check(rows: &dyn Rows) -> Result<(Moved, Vec<String>), StoreError> {
    let mut wrong = rows.damage().await?;
    let mut counts = Vec::new();
    let mut journals: BTreeMap<i64, Journal> = BTreeMap::new();
    for table in TABLES {
        let (mut after, mut count) = (None, 0_u64);
        loop {
            let page = match rows.page(table, after).await {
                Ok(page) => page,
                // What cannot be read hinders nobody from looking at the other tables.
                Err(StoreError::Damaged { reason, .. }) => {
                    wrong.push(format!("`{}` cannot be read to its end: {reason}", table.name));
                    break;
                }
                Err(error) => return Err(error),
            };
            let Some(last) = page.last() else { break };
            after = Some(table.key_of(values(last)));
            count = count.saturating_add(u64::try_from(page.len()).unwrap_or_default());
            for found in &page {
                let told = look(table, found, &mut journals);
                wrong.extend(told.filter(|_| wrong.len() < MOST_TOLD));
            }
        }
        counts.push((table.name, count));
    }
    for journal in journals.values() {
        if journal.seen.saturating_add(1) != journal.next_seq && wrong.len() < MOST_TOLD {
            let there = journal.next_seq.saturating_sub(1);
            wrong.push(format!(
                "conversation `{}` should have {} and has {} in a row",
                journal.id,
                counted(there, "entry"),
                journal.seen
            ));
        }
    }
    Ok((Moved { rows: counts }, wrong))
}

/// What is wrong with a row, as far as one sees by looking at it.
fn look(table: &'static Table, found: &Found, journals: &mut BTreeMap<i64, Journal>) -> Option<String> {
    if table.name == ENTRIES.name {
        return entry(found, journals);
    }
    if table.name == CONVERSATIONS.name
        && let [Value::Number(key), id, Value::Number(next_seq), ..] = values(found)
    {
        let id = if let Value::Text(id) = id { id.clone() } else { format!("with the key {key}") };
        journals.insert(*key, Journal { id, next_seq: *next_seq, seen: 0 });
    }
    let name = |key| journals.get(&key).map_or_else(|| format!("with the key {key}"), |journal| journal.id.clone());
    let read = found.as_ref().map_err(|broken| table.damaged(broken)).and_then(|row| typed::read(table, row, name));
    read.err().map(|error| error.to_string())
}

/// What can be read of a row.
fn values(found: &Found) -> &[Value] {
    match found {
        Ok(row) | Err(Broken { row, .. }) => row,
    }
}

fn entry(found: &Found, journals: &mut BTreeMap<i64, Journal>) -> Option<String> {
    let Some(Value::Number(place)) = values(found).first() else {
        return Some("an entry has something else in its columns than it should".to_owned());
    };
    let (key, seq) = (place >> 32, place & 0xFFFF_FFFF);
    let Some(journal) = journals.get_mut(&key) else {
        return Some(format!("entry {seq} belongs to no conversation (key {key})"));
    };
    if seq == journal.seen.saturating_add(1) {
        journal.seen = seq;
    }
    let error = match found.as_deref() {
        Ok([_, Value::Number(version), _, Value::Text(body)]) => {
            Entry::decode(u8::try_from(*version).unwrap_or(u8::MAX), body).err()?.to_string()
        }
        Ok(_) => "it has something else in its columns than it should".to_owned(),
        Err(broken) => broken.reason.clone(),
    };
    Some(format!("entry {seq} of conversation `{}` cannot be read: {error}", journal.id))
}
