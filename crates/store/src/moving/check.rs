//! Whether everything can be read and nothing is missing.

use std::collections::BTreeMap;

use turnwright_core::Entry;
use turnwright_engine::StoreError;

use super::tables::{CONVERSATIONS, ENTRIES, TABLES, Value};
use super::{Moved, Rows};

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
            after = Some(table.key_of(last));
            count = count.saturating_add(u64::try_from(page.len()).unwrap_or_default());
            for row in &page {
                if table.name == CONVERSATIONS.name {
                    if let [Value::Number(key), Value::Text(id), Value::Number(next_seq), ..] = row.as_slice() {
                        journals.insert(*key, Journal { id: id.clone(), next_seq: *next_seq, seen: 0 });
                    }
                } else if table.name == ENTRIES.name && wrong.len() < MOST_TOLD {
                    wrong.extend(entry(row, &mut journals));
                }
            }
        }
        counts.push((table.name, count));
    }
    for journal in journals.values() {
        if journal.seen.saturating_add(1) != journal.next_seq && wrong.len() < MOST_TOLD {
            let there = journal.next_seq.saturating_sub(1);
            wrong.push(format!("conversation `{}` should have {there} entries and has {} in a row", journal.id, journal.seen));
        }
    }
    Ok((Moved { rows: counts }, wrong))
}

fn entry(row: &[Value], journals: &mut BTreeMap<i64, Journal>) -> Option<String> {
    let [Value::Number(place), Value::Number(version), _, Value::Text(body)] = row else {
        return Some("an entry has something else in its columns than it should".to_owned());
    };
    let (key, seq) = (place >> 32, place & 0xFFFF_FFFF);
    let Some(journal) = journals.get_mut(&key) else {
        return Some(format!("entry {seq} belongs to no conversation (key {key})"));
    };
    if seq == journal.seen.saturating_add(1) {
        journal.seen = seq;
    }
    let decoded = Entry::decode(u8::try_from(*version).unwrap_or(u8::MAX), body);
    decoded.err().map(|error| format!("entry {seq} of conversation `{}` cannot be read: {error}", journal.id))
}
