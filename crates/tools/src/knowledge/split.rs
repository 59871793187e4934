//! A document in pieces of about one size. Pure.
//!
//! A piece begins and ends between lines: before a heading where one is near, else at an empty line, else where it must. Of
//! the piece before, its last lines are repeated, so that what stands on the border is found whole in one of the two.

use turnwright_core::ContextPlace;
use turnwright_engine::knowledge::Piece;

/// About how many characters a token has. Tokens are counted by this alone: the models that embed and answer differ.
pub const CHARACTERS_PER_TOKEN: usize = 4;

/// How large pieces are, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The largest; a line that is longer is cut.
    pub most: usize,
    /// How much of the piece before is repeated, at most; less than half of `most`.
    pub overlap: usize,
}

impl Sizes {
    /// Pieces of so many tokens, see [`CHARACTERS_PER_TOKEN`]; at least 32.
    pub fn of_tokens(most: u32, overlap: u32) -> Self {
        let characters = |tokens: u32| usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(CHARACTERS_PER_TOKEN);
        let most = characters(most.max(32));
        Self { most, overlap: characters(overlap).min(most / 2) }
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self::of_tokens(400, 50)
    }
}

/// How the lines of a text belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Markdown: headings begin with `#`, or are underlined.
    Markdown,
    /// Text without headings, and code.
    Plain,
}

/// A line with what is known of it.
struct Line<'a> {
    number: u32,
    text: &'a str,
    characters: usize,
    /// The headings that it stands under, itself where it is one.
    heading: String,
    /// How good it is to begin a piece with it.
    begins: Begins,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Begins {
    Badly,
    AfterAnEmptyLine,
    WithAHeading,
}

/// The pieces of a text, in order. What is empty gives none.
pub fn split(text: &str, form: Form, sizes: Sizes) -> Vec<Piece> {
    let lines = lines(text, form, sizes.most);
    let mut pieces = Vec::new();
    let mut from = 0;
    while from < lines.len() {
        let end = end_of(&lines, from, sizes.most);
        pieces.extend(piece(lines.get(from..end).unwrap_or_default()));
        if end >= lines.len() {
            break;
        }
        from = repeated(&lines, from, end, sizes.overlap);
    }
    pieces
}

/// The pieces of pages; none stands on two.
pub fn split_pages<'a>(pages: impl IntoIterator<Item = (u32, &'a str)>, sizes: Sizes) -> Vec<Piece> {
    let of_page = |(number, text): (u32, &str)| {
        let place = ContextPlace::Pages { first: number, last: number };
        split(text, Form::Plain, sizes).into_iter().map(move |piece| Piece { place, ..piece }).collect::<Vec<_>>()
    };
    pages.into_iter().flat_map(of_page).collect()
}

fn lines(text: &str, form: Form, most: usize) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut headings: Vec<(usize, String)> = Vec::new();
    let (mut blocks, mut after_empty) = (Blocks::default(), true);
    let mut numbered = text.lines().zip(1_u32..).peekable();
    while let Some((line, number)) = numbered.next() {
        let trimmed = line.trim();
        if form == Form::Markdown {
            blocks.pass(number, trimmed);
        }
        let in_fence = blocks.is_inside();
        let heading = if form == Form::Markdown && !in_fence {
            let next = numbered.peek().map_or("", |(next, _)| *next);
            heading(line).or_else(|| if after_empty { underlined(line, next) } else { None })
        } else {
            None
        };
        if let Some((level, title)) = &heading {
            headings.retain(|(above, _)| above < level);
            headings.push((*level, (*title).to_owned()));
        }
        let under = headings.iter().map(|(_, title)| title.as_str()).collect::<Vec<_>>().join(" > ");
        let mut begins = match (&heading, after_empty && !in_fence) {
            (Some(_), _) => Begins::WithAHeading,
            (None, true) => Begins::AfterAnEmptyLine,
            (None, false) => Begins::Badly,
        };
        for part in cut(line, most) {
            lines.push(Line { number, text: part, characters: part.chars().count() + 1, heading: under.clone(), begins });
            begins = Begins::Badly;
        }
        after_empty = trimmed.is_empty();
    }
    lines
}

/// What of a Markdown text holds no headings: blocks of code, and what stands before the text between lines of `---`.
#[derive(Debug, Default)]
struct Blocks {
    /// The sign with which a block of code begins and ends, and how many of it at least.
    fence: Option<(char, usize)>,
    is_front: bool,
}

impl Blocks {
    /// Takes the next line.
    fn pass(&mut self, number: u32, line: &str) {
        if number == 1 || self.is_front {
            // A line that stands before nothing of the kind is a rule.
            self.is_front = if number == 1 { line == "---" } else { line != "---" && !line.is_empty() };
            return;
        }
        let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'));
        let count = line.chars().take_while(|other| Some(*other) == sign).count();
        let rest = line.get(count..).unwrap_or_default();
        match (self.fence, sign) {
            (None, Some(sign)) if count >= 3 && !(sign == '`' && rest.contains('`')) => self.fence = Some((sign, count)),
            (Some((begun, least)), Some(sign)) if sign == begun && count >= least && rest.is_empty() => self.fence = None,
            (None | Some(_), None | Some(_)) => {}
        }
    }

    fn is_inside(&self) -> bool {
        self.is_front || self.fence.is_some()
    }
}

/// The level and title of a Markdown heading that is one line of words with a line of `=` or `-` below it.
fn underlined<'a>(line: &'a str, next: &str) -> Option<(usize, &'a str)> {
    let mark = next.trim();
    let is_of = |sign: char| mark.len() >= 2 && mark.chars().all(|other| other == sign);
    let level = if is_of('=') { 1 } else { 2 };
    let title = line.trim();
    // Quotes, tables, items of lists and code are no headings, whatever is below them.
    let is_paragraph = title.starts_with(|sign: char| sign.is_alphanumeric() || matches!(sign, '`' | '[' | '(' | '"' | '_'))
        && !line.starts_with([' ', '\t'])
        && !title.split_once(['.', ')']).is_some_and(|(number, _)| number.chars().all(|sign| sign.is_ascii_digit()));
    ((is_of('=') || is_of('-')) && is_paragraph).then_some((level, title))
}

/// The level and title of a Markdown heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|sign| *sign == '#').count();
    let rest = line.get(level..)?;
    let title = rest.trim().trim_end_matches('#').trim();
    ((1..=6).contains(&level) && rest.starts_with(' ') && !title.is_empty()).then_some((level, title))
}

/// A line in parts of at most `most` characters, cut after white space where there is some.
fn cut(line: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some((end, _)) = rest.char_indices().nth(most) {
        let head = rest.get(..end).unwrap_or(rest);
        let at = head.rfind(char::is_whitespace).map_or(end, |space| rest.ceil_char_boundary(space + 1));
        let (part, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

/// Where the piece that begins at `from` ends: before the line from which on it would be too large or, in its second half,
/// before the best line to begin another with.
fn end_of(lines: &[Line<'_>], from: usize, most: usize) -> usize {
    let mut characters = 0;
    let mut best: Option<(Begins, usize)> = None;
    for (at, line) in lines.iter().enumerate().skip(from) {
        if at > from && line.begins == Begins::WithAHeading && characters > most / 3 {
            return at;
        }
        if at > from && characters > most / 2 && best.is_none_or(|(begins, _)| line.begins >= begins) {
            best = Some((line.begins, at));
        }
        characters += line.characters;
        if at > from && characters > most {
            return best.map_or(at, |(_, at)| at);
        }
    }
    lines.len()
}

/// Where the piece after the one from `from` to `end` begins: some lines before its end, but with no other heading.
fn repeated(lines: &[Line<'_>], from: usize, end: usize, overlap: usize) -> usize {
    let Some(next) = lines.get(end) else { return end };
    if next.begins == Begins::WithAHeading {
        return end;
    }
    let (mut at, mut characters) = (end, 0);
    while let Some(line) = at.checked_sub(1).filter(|before| *before > from).and_then(|before| lines.get(before)) {
        characters += line.characters;
        if characters > overlap || line.heading != next.heading {
            break;
        }
        at -= 1;
    }
    at
}

fn piece(lines: &[Line<'_>]) -> Option<Piece> {
    let says = |line: &&Line<'_>| !line.text.trim().is_empty();
    let (first, last) = (lines.iter().find(says)?, lines.iter().rfind(says)?);
    let mut text = String::new();
    let mut before = 0;
    for line in lines.iter().filter(|line| (first.number..=last.number).contains(&line.number)) {
        // The parts of a line that was cut stand beside one another.
        if !text.is_empty() && line.number != before {
            text.push('\n');
        }
        before = line.number;
        text.push_str(line.text);
    }
    let place = ContextPlace::Lines { first: first.number, last: last.number };
    Some(Piece { place, heading: first.heading.clone(), text: text.trim_end().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, form: Form, most: usize, overlap: usize) -> Vec<String> {
        let told = |piece: Piece| format!("{} [{}] {}", piece.place, piece.heading, piece.text.replace('\n', "/"));
        split(text, form, Sizes { most, overlap }).into_iter().map(told).collect()
    }

    #[test]
    fn a_short_text_is_one_piece_and_nothing_is_none() {
        assert_eq!(shown("\n\none\ntwo\n\n", Form::Plain, 100, 10), ["lines 3-4 [] one/two"]);
        assert_eq!(shown(" \n\n", Form::Plain, 100, 10), [""; 0]);
    }

    #[test]
    fn pieces_begin_with_headings_and_know_what_they_stand_under() {
        let text = "# Keys\nintro intro intro\n\n## Rotate\nturn them\n```\n# no heading\n```\n## Revoke\ntake them";
        let expected = [
            "lines 1-2 [Keys] # Keys/intro intro intro",
            "lines 4-8 [Keys > Rotate] ## Rotate/turn them/```/# no heading/```",
            "lines 9-10 [Keys > Revoke] ## Revoke/take them",
        ];
        assert_eq!(shown(text, Form::Markdown, 60, 10), expected);
    }

    #[test]
    fn headings_may_be_underlined_and_a_block_of_code_ends_as_it_began() {
        let headings = |text: &str| -> Vec<String> {
            split(text, Form::Markdown, Sizes { most: 1, overlap: 0 }).into_iter().map(|piece| piece.heading).collect()
        };
        let last = |text: &str| headings(text).pop().unwrap();
        assert_eq!(last("# One\n\nGuide\n=====\n\nStart\n-----\nword"), "Guide > Start");
        for none in
            ["- item\n---\nword", "1. item\n---\nword", "> quote\n---\nword", "a\nb\n---\nword", "---\nname: x\n---\nword"]
        {
            assert_eq!(last(none), "", "{none}");
        }
        assert_eq!(last("---\nname: x\n---\n\n# Title\nword"), "Title");
        assert_eq!(last("# One\n\n````md\n```\n# inner\n```\n````\nword"), "One");
        assert_eq!(last("# One\n~~~\n```\n# inner\n~~~\n# Two\nword"), "Two");
        assert_eq!(last("# One\n```rust\n# inner\n```\n``` a `b` ```\n# Two\nword"), "Two");
    }

    #[test]
    fn without_headings_paragraphs_stay_together_and_the_border_is_repeated() {
        let text = "aaaa aaaa\nbbbb\n\ncccc cccc\ndddd\neeee eeee\nffff";
        let pieces = shown(text, Form::Plain, 26, 0);
        assert_eq!(pieces, ["lines 1-2 [] aaaa aaaa/bbbb", "lines 4-6 [] cccc cccc/dddd/eeee eeee", "line 7 [] ffff"]);
        let lines = (0..20).map(|line| format!("line {line:02}\n")).collect::<Vec<_>>().concat();
        let pieces = split(&lines, Form::Plain, Sizes { most: 40, overlap: 10 });
        for pair in pieces.windows(2) {
            let last = pair[0].text.lines().last().unwrap();
            assert!(pair[1].text.starts_with(last), "{pair:?}");
        }
    }

    #[test]
    fn no_line_is_lost_and_none_is_longer_than_a_piece() {
        let text = format!("{}\n{}\nüü {}", "word ".repeat(50), "x".repeat(130), "漢字".repeat(40));
        let pieces = split(&text, Form::Plain, Sizes { most: 64, overlap: 8 });
        assert!(pieces.iter().all(|piece| piece.text.chars().count() <= 66), "{pieces:?}");
        let signs: usize = pieces.iter().map(|piece| piece.text.chars().filter(|sign| !sign.is_whitespace()).count()).sum();
        assert!(signs >= text.chars().filter(|sign| !sign.is_whitespace()).count());
    }

    #[test]
    fn pages_are_told_by_their_numbers() {
        let pieces = split_pages([(1, "one"), (2, ""), (3, "three")], Sizes::default());
        let places: Vec<String> = pieces.iter().map(|piece| piece.place.to_string()).collect();
        assert_eq!(places, ["page 1", "page 3"]);
    }
}
