//! Vectors: which of very many point most the same way as one.
//!
//! All are compared by the signs of their numbers, which is coarse and fast; those that come near by their numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rusqlite::{Connection, OptionalExtension};
use turnwright_engine::knowledge::PieceId;

use super::sql;

/// How many are compared by their numbers for each that is wanted, and at least.
const COMPARED_PER_WANTED: usize = 16;
const LEAST_COMPARED: usize = 256;

/// The signs of a vector's numbers, a bit each.
pub(super) fn signs(vector: &[f32]) -> Vec<u8> {
    let byte = |numbers: &[f32]| {
        let bits = numbers.iter().zip(0_u32..).filter(|(number, _)| **number > 0.0);
        bits.fold(0_u8, |byte, (_, bit)| byte | (1 << bit))
    };
    vector.chunks(8).map(byte).collect()
}

/// A vector of length 1, as it is stored.
pub(super) fn bytes(vector: &[f32]) -> Vec<u8> {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    let scale = if length > 0.0 && length.is_finite() { 1.0 / length } else { 0.0 };
    vector.iter().flat_map(|number| (number * scale).to_le_bytes()).collect()
}

/// In how many bits two differ; all where they are of another length.
fn distance(a: &[u8], b: &[u8]) -> u32 {
    if a.len() != b.len() {
        return u32::MAX;
    }
    let (mut a, mut b) = (a.chunks_exact(8), b.chunks_exact(8));
    let mut sum = 0;
    for (a, b) in a.by_ref().zip(b.by_ref()) {
        sum += (word(a) ^ word(b)).count_ones();
    }
    a.remainder().iter().zip(b.remainder()).fold(sum, |sum, (a, b)| sum + (a ^ b).count_ones())
}

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// How much a stored vector points the same way.
fn likeness(stored: &[u8], vector: &[f32]) -> f32 {
    if stored.len() != vector.len().saturating_mul(4) {
        return f32::MIN;
    }
    let number = |bytes: &[u8]| bytes.try_into().map_or(0.0, f32::from_le_bytes);
    stored.chunks_exact(4).zip(vector).map(|(bytes, other)| number(bytes) * other).sum()
}

/// The pieces of these collections whose vectors are nearest, the nearest first.
pub(super) fn nearest(
    connection: &Connection,
    collections: &[i64],
    vector: &[f32],
    limit: usize,
) -> rusqlite::Result<Vec<PieceId>> {
    let wanted = signs(vector);
    let most = limit.saturating_mul(COMPARED_PER_WANTED).max(LEAST_COMPARED);
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
    let mut exact: Vec<(Reverse<i64>, f32)> = Vec::new();
    for (_, piece) in near {
        let mut statement = connection.prepare_cached(sql::VECTOR)?;
        let likeness = statement.query_row((piece,), |row| Ok(likeness(row.get_ref(0)?.as_blob().unwrap_or_default(), vector)));
        exact.extend(likeness.optional()?.map(|likeness| (Reverse(piece), likeness)));
    }
    exact.retain(|(_, likeness)| *likeness > f32::MIN);
    exact.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    Ok(exact.into_iter().take(limit).map(|(piece, _)| PieceId(piece.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_differ_where_numbers_point_elsewhere() {
        let a: Vec<f32> = (0..70).map(|at| if at % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let b: Vec<f32> = a.iter().zip(0..).map(|(number, at)| if at == 5 || at == 69 { -number } else { *number }).collect();
        assert_eq!(distance(&signs(&a), &signs(&b)), 2);
        assert_eq!(distance(&signs(&a), &signs(&a[..64])), u32::MAX);
    }

    #[test]
    fn a_vector_is_stored_with_length_one() {
        let stored = bytes(&[3.0, 4.0]);
        assert!((likeness(&stored, &[0.6, 0.8]) - 1.0).abs() < 1e-6);
        assert!(bytes(&[0.0, 0.0]).iter().all(|byte| *byte == 0));
    }
}
