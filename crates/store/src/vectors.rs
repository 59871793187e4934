//! Vectors: which of very many point most the same way as one.
//!
//! All are compared by the signs of their numbers, which is coarse and fast; those that come near by their numbers.

use turnwright_engine::knowledge::{Hit, PieceId};

/// How many are compared by their numbers for each that is wanted, and at least.
const COMPARED_PER_WANTED: usize = 16;
const LEAST_COMPARED: usize = 256;

/// The signs of a vector's numbers, a bit each.
pub(crate) fn signs(vector: &[f32]) -> Vec<u8> {
    let byte = |numbers: &[f32]| {
        let bits = numbers.iter().zip(0_u32..).filter(|(number, _)| **number > 0.0);
        bits.fold(0_u8, |byte, (_, bit)| byte | (1 << bit))
    };
    vector.chunks(8).map(byte).collect()
}

/// A vector of length 1, as it is stored.
pub(crate) fn bytes(vector: &[f32]) -> Vec<u8> {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    let scale = if length > 0.0 && length.is_finite() { 1.0 / length } else { 0.0 };
    vector.iter().flat_map(|number| (number * scale).to_le_bytes()).collect()
}

/// In how many bits two differ; all where they are of another length.
pub(crate) fn distance(a: &[u8], b: &[u8]) -> u32 {
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

/// How many are compared by their numbers where so many are wanted.
pub(crate) fn compared(limit: usize) -> usize {
    limit.saturating_mul(COMPARED_PER_WANTED).max(LEAST_COMPARED)
}

/// Those of these vectors that point most the same way, the best first.
pub(crate) fn best<'a>(near: impl IntoIterator<Item = (i64, &'a [u8])>, vector: &[f32], limit: usize) -> Vec<Hit> {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    let scale = if length > 0.0 && length.is_finite() { 1.0 / length } else { 0.0 };
    let mut exact: Vec<(i64, f32)> = near.into_iter().map(|(piece, stored)| (piece, likeness(stored, vector))).collect();
    exact.retain(|(_, likeness)| *likeness > f32::MIN);
    exact.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let hit = |(piece, likeness): (i64, f32)| Hit { piece: PieceId(piece), score: f64::from(likeness * scale) };
    exact.into_iter().take(limit).map(hit).collect()
}

/// The numbers of a stored vector.
pub(crate) fn unpacked(stored: &[u8]) -> Vec<f32> {
    stored.chunks_exact(4).map(|bytes| bytes.try_into().map_or(0.0, f32::from_le_bytes)).collect()
}

/// The signs of a vector's numbers as digits of a bit string.
pub(crate) fn bits(vector: &[f32]) -> String {
    vector.iter().map(|number| if *number > 0.0 { '1' } else { '0' }).collect()
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
