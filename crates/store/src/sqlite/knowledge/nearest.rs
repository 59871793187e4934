//! Which of very many vectors point most the same way as one.

use std::collections::BinaryHeap;

use rusqlite::{Connection, OptionalExtension};
use turnwright_engine::knowledge::Hit;

use super::sql;
use crate::vectors::{best, compared, distance, signs};

/// The pieces of these collections whose vectors are nearest, the nearest first.
pub(super) fn nearest(
    connection: &Connection,
    collections: &[i64],
    vector: &[f32],
    limit: usize,
) -> rusqlite::Result<Vec<Hit>> {
    let (wanted, most) = (signs(vector), compared(limit));
    // The farthest of those that are kept is on top.
    let mut near: BinaryHeap<(u32, i64)> = BinaryHeap::new();
    for key in collections {
        let mut statement = connection.prepare_cached(sql::SIGNS)?;
        let mut rows = statement.query((key,))?;
        while let Some(row) = rows.next()? {
            let signs = row.get_ref(1)?.as_blob().unwrap_or_default();
            let found = (distance(signs, &wanted), row.get(0)?);
            if near.len() < most {
                near.push(found);
            } else if near.peek().is_some_and(|farthest| found < *farthest) {
                near.pop();
                near.push(found);
            }
        }
    }
    let mut vectors: Vec<(i64, Vec<u8>)> = Vec::new();
    for (_, piece) in near {
        let mut statement = connection.prepare_cached(sql::VECTOR)?;
        vectors.extend(statement.query_row((piece,), |row| row.get(0)).optional()?.map(|bytes| (piece, bytes)));
    }
    Ok(best(vectors.iter().map(|(piece, bytes)| (*piece, bytes.as_slice())), vector, limit))
}
