//! Which of the pieces that were found are shown. Pure.

use std::collections::HashMap;

use turnwright_core::ContextPlace;
use turnwright_engine::knowledge::{FoundPiece, PieceId};

use super::split::CHARACTERS_PER_TOKEN;

/// What each rank of a list is divided by besides itself, as the authors of reciprocal rank fusion chose it.
const RANK_CONSTANT: f64 = 60.0;
/// What a piece costs besides its words, in characters: where it comes from.
const FRAME: usize = 120;

/// One list of several, each the best first: reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009).
pub fn fuse(lists: &[Vec<PieceId>]) -> Vec<PieceId> {
    let mut scores: HashMap<PieceId, f64> = HashMap::new();
    for list in lists {
        let mut rank = RANK_CONSTANT;
        for id in list {
            rank += 1.0;
            *scores.entry(*id).or_default() += 1.0 / rank;
        }
    }
    let mut fused: Vec<(PieceId, f64)> = scores.into_iter().collect();
    fused.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    fused.into_iter().map(|(id, _)| id).collect()
}

/// The best pieces that fit into a budget of tokens, in their order; one that is too large is passed over, and so is one
/// that another has most lines of.
pub fn within(found: Vec<FoundPiece>, budget_tokens: u32, most: usize) -> Vec<FoundPiece> {
    let mut room = usize::try_from(budget_tokens).unwrap_or(usize::MAX).saturating_mul(CHARACTERS_PER_TOKEN);
    let mut taken: Vec<FoundPiece> = Vec::new();
    for (place, mut piece) in found.into_iter().enumerate() {
        if place == 0 {
            piece.piece.text = beginning(piece.piece.text, room.saturating_sub(FRAME + 1));
        }
        let cost = piece.piece.text.chars().count() + FRAME;
        let is_there = taken.iter().any(|other| is_mostly_in(&piece, other));
        if cost <= room && !is_there && taken.len() < most {
            room -= cost;
            taken.push(piece);
        }
    }
    taken
}

fn is_mostly_in(piece: &FoundPiece, other: &FoundPiece) -> bool {
    if (&piece.collection, &piece.path) != (&other.collection, &other.path) {
        return false;
    }
    match (piece.piece.place, other.piece.place) {
        (ContextPlace::Lines { first, last }, ContextPlace::Lines { first: from, last: to }) => {
            let shared = last.min(to).saturating_add(1).saturating_sub(first.max(from));
            shared.saturating_mul(2) > last.saturating_sub(first).saturating_add(1) && piece.piece.text != other.piece.text
                || other.piece.text.contains(&piece.piece.text)
        }
        (ContextPlace::Lines { .. } | ContextPlace::Pages { .. }, _) => piece.piece.text == other.piece.text,
    }
}

#[cfg(test)]
mod tests {
    use turnwright_engine::knowledge::Piece;

    use super::*;

    fn ids(ids: &[i64]) -> Vec<PieceId> {
        ids.iter().map(|id| PieceId(*id)).collect()
    }

    fn found(id: i64, first: u32, last: u32, text: &str) -> FoundPiece {
        let piece = Piece { place: ContextPlace::Lines { first, last }, heading: String::new(), text: text.to_owned() };
/// As much of a text as so many characters are.
fn beginning(mut text: String, characters: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(characters) {
        text.truncate(end);
        text.push_str("…");
    }
    text
}

        FoundPiece { id: PieceId(id), collection: "c".into(), path: "a.md".into(), hash: "h".into(), piece }
    }

    #[test]
    fn what_both_lists_hold_comes_before_what_one_has_first() {
        assert_eq!(fuse(&[ids(&[1, 2, 3]), ids(&[4, 2])]), ids(&[2, 1, 4, 3]));
        assert_eq!(fuse(&[ids(&[7, 5])]), ids(&[7, 5]));
        assert_eq!(fuse(&[]), ids(&[]));
    }

    #[test]
    fn the_budget_holds_and_what_is_too_large_makes_room_for_the_next() {
        let all =
            vec![found(1, 1, 9, &"a".repeat(300)), found(2, 20, 29, &"b".repeat(900)), found(3, 40, 49, &"c".repeat(200))];
        let taken: Vec<PieceId> = within(all.clone(), 200, 8).into_iter().map(|piece| piece.id).collect();
        assert_eq!(taken, ids(&[1, 3]));
        assert_eq!(within(all.clone(), 0, 8), []);
        assert_eq!(within(all, 2_000, 1).len(), 1);
    }

    #[test]
    fn what_another_piece_shows_is_not_shown_again() {
        let all = vec![found(1, 1, 20, "one"), found(2, 11, 22, "two"), found(3, 19, 40, "three")];
        let taken: Vec<PieceId> = within(all, 2_000, 8).into_iter().map(|piece| piece.id).collect();
        assert_eq!(taken, ids(&[1, 3]));
    }
}
    #[test]
    fn of_the_best_piece_as_much_is_shown_as_there_is_room_for() {
        let taken = within(vec![found(1, 1, 9, &"ü".repeat(2_000)), found(2, 20, 21, "short")], 100, 8);
        let texts: Vec<&str> = taken.iter().map(|found| found.piece.text.as_str()).collect();
        assert_eq!(texts, [format!("{}…", "ü".repeat(279))]);
    }

