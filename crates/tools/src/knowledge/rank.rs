//! Which of the pieces that were found are shown. Pure.

use std::collections::HashMap;

use turnwright_core::ContextPlace;
use turnwright_engine::knowledge::{FoundPiece, Hit, PieceId};

use super::split::CHARACTERS_PER_TOKEN;

/// What each rank of a list is divided by besides itself, as the authors of reciprocal rank fusion chose it.
const RANK_CONSTANT: f64 = 60.0;
/// What a piece costs besides its words, in characters: where it comes from.
const FRAME: usize = 120;

/// The least that the words of a piece tell, as a share of what those of the best do: one that has one of five words that few pieces
/// have is above it, so that a question after two things finds both; one that has the frequent words alone is below it where the best has a
/// rare one. Over the documents of this project (200 pieces) a question for one page leaves 5 of 46 pieces that have any of its words.
const LEAST_OF_BEST: f64 = 0.2;
/// What is this like the question counts in any case, as a share of the most alike.
const ALIKE: f64 = 0.9;

/// The pieces whose words tell enough, of a list that has the best first.
pub fn by_words(hits: &[Hit]) -> Vec<PieceId> {
    let least = hits.first().map_or(0.0, |best| best.score * LEAST_OF_BEST);
    above(hits, least)
}

/// The pieces that are enough like the question, of a list that has the best first: at least `floor`, and nearer to the best than to
/// the last. Each model has a likeness of its own at which texts have nothing to do with one another (near 0, or 0.7): the last of a
/// list is about there, unless all of it is nearly as good as the best.
pub fn by_vector(hits: &[Hit], floor: f64) -> Vec<PieceId> {
    let (Some(best), Some(last)) = (hits.first(), hits.last()) else { return Vec::new() };
    let middle = f64::midpoint(best.score, last.score);
    above(hits, middle.min(best.score * ALIKE).max(floor))
}

fn above(hits: &[Hit], least: f64) -> Vec<PieceId> {
    hits.iter().take_while(|hit| hit.score >= least).map(|hit| hit.piece).collect()
}

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
/// that another has most lines of. Of the best as much as fits is shown.
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

/// As much of a text as so many characters are.
fn beginning(mut text: String, characters: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(characters) {
        text.truncate(end);
        text.push('…');
    }
    text
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
        FoundPiece { id: PieceId(id), collection: "c".into(), path: "a.md".into(), hash: "h".into(), piece }
    }

    #[test]
    fn what_both_lists_hold_comes_before_what_one_has_first() {
        assert_eq!(fuse(&[ids(&[1, 2, 3]), ids(&[4, 2])]), ids(&[2, 1, 4, 3]));
        assert_eq!(fuse(&[ids(&[7, 5])]), ids(&[7, 5]));
        assert_eq!(fuse(&[]), ids(&[]));
    }

    fn hits(scores: &[f64]) -> Vec<Hit> {
        scores.iter().zip(1..).map(|(score, id)| Hit { piece: PieceId(id), score: *score }).collect()
    }

    #[test]
    fn what_has_the_frequent_words_alone_is_not_found() {
        assert_eq!(by_words(&hits(&[9.0, 5.0, 1.9, 1.7, 0.1])), ids(&[1, 2, 3]));
        assert_eq!(by_words(&hits(&[0.1])), ids(&[1]));
        assert_eq!(by_words(&[]), ids(&[]));
    }

    #[test]
    fn what_is_no_more_like_the_question_than_anything_is_not_found() {
        // A model whose texts are unlike, one whose texts are all alike, and a collection in which everything fits.
        assert_eq!(by_vector(&hits(&[0.55, 0.4, 0.2, 0.1]), 0.2), ids(&[1, 2]));
        assert_eq!(by_vector(&hits(&[0.88, 0.84, 0.78, 0.74]), 0.2), ids(&[1, 2]));
        assert_eq!(by_vector(&hits(&[0.62, 0.61, 0.6]), 0.2), ids(&[1, 2, 3]));
        assert_eq!(by_vector(&hits(&[0.15, 0.1]), 0.2), ids(&[]));
        assert_eq!(by_vector(&hits(&[0.88, 0.78]), 0.8), ids(&[1]));
        assert_eq!(by_vector(&[], 0.2), ids(&[]));
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
    fn of_the_best_piece_as_much_is_shown_as_there_is_room_for() {
        let taken = within(vec![found(1, 1, 9, &"ü".repeat(2_000)), found(2, 20, 21, "short")], 100, 8);
        let texts: Vec<&str> = taken.iter().map(|found| found.piece.text.as_str()).collect();
        assert_eq!(texts, [format!("{}…", "ü".repeat(279))]);
    }

    #[test]
    fn what_another_piece_shows_is_not_shown_again() {
        let all = vec![found(1, 1, 20, "one"), found(2, 11, 22, "two"), found(3, 19, 40, "three")];
        let taken: Vec<PieceId> = within(all, 2_000, 8).into_iter().map(|piece| piece.id).collect();
        assert_eq!(taken, ids(&[1, 3]));
    }
}
