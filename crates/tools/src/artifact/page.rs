//! The tool `page`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use turnwright_core::ContentBlock;
use turnwright_engine::artifacts::PIECE_BYTES;
use turnwright_engine::source::{CallContext, ToolError, ToolOutput};

use super::bytes::{Whole, place};
use super::{Shared, output};
use crate::error::{grouped, invalid};

pub(super) const DESCRIPTION: &str = "Gives a part of an artifact exactly as it is: from the byte offset, or from a line on. \
    A negative offset or line counts from the end. The result says where it ends and how to go on.";

/// How much is given where nothing is said, in bytes.
const USUAL_BYTES: u64 = 16 * 1024;
/// The largest image that is shown, in bytes.
const MOST_IMAGE_BYTES: u64 = 4 << 20;
/// The types that every API takes as images.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The id that a result names: `art_…`.
    artifact: String,
    /// The first byte, from 0; the beginning by default.
    offset: Option<i64>,
    /// The most bytes that are given; 16,384 by default.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// The first line, from 1, in the place of offset.
    line: Option<i64>,
    /// The most lines that are given.
    #[schemars(range(min = 1))]
    lines: Option<u64>,
}

pub(super) async fn page(shared: &Shared, arguments: Arguments, context: &CallContext) -> Result<ToolOutput, ToolError> {
    let Arguments { artifact, offset, limit, line, lines } = arguments;
    if offset.is_some() && line.is_some() {
        return Err(invalid("offset and line say both where to begin: give one of them"));
    }
    let whole = Whole::open(shared, &context.user, &artifact).await?;
    if let Some(image) = image(&whole).await? {
        return Ok(image);
    }
    let most = shared.most_bytes as u64;
    let limit = limit.unwrap_or(USUAL_BYTES.min(most)).clamp(1, most);
    let total = whole.len();
    let (from, first_line) = match line {
        Some(0) => return Err(invalid("line is 0: lines are counted from 1, and from -1 backwards")),
        Some(line) if line > 0 => (after_lines(&whole, line.unsigned_abs() - 1).await?, Some(line.unsigned_abs())),
        Some(line) => (before_lines(&whole, line.unsigned_abs()).await?, None),
        None => (place_of(offset.unwrap_or(0), total), None),
    };
    if from >= total && total > 0 {
        let what = line.map_or_else(|| format!("byte {}", grouped(from)), |line| format!("line {line}"));
        return Err(invalid(format!("the artifact has {} bytes; {what} is behind its end", grouped(total))));
    }
    let from = whole_characters_from(&whole, from).await?;
    let mut bytes = whole.bytes(from, from.saturating_add(limit)).await?;
    if let Some(lines) = lines {
        bytes.truncate(end_of_lines(&bytes, lines));
    }
    let is_at_end = from.saturating_add(bytes.len() as u64) >= total;
    if !is_at_end {
        bytes.truncate(whole_characters_until(&bytes));
    }
    if bytes.contains(&0) {
        let what = &whole.artifact.media_type;
        return Err(invalid(format!("this part of the artifact ({what}) is binary: no text shows it")));
    }
    let to = from.saturating_add(bytes.len() as u64);
    let (text, is_exact) = match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
    };
    let mut note = format!("bytes {} up to {} of {}", grouped(from), grouped(to), grouped(total));
    let given = text.lines().count() as u64;
    if let Some(first) = first_line.filter(|_| given > 0) {
        note = format!("lines {first} to {}, {note}", first.saturating_add(given).saturating_sub(1));
    }
    if !is_exact {
        note.push_str("; what is not UTF-8 is shown as \u{fffd}");
    }
    let next = if to < total { format!("; go on with offset {to}") } else { "; this is the end".to_owned() };
    Ok(output(text, &(note + &next)))
}

/// An image, which is shown as one.
async fn image(whole: &Whole) -> Result<Option<ToolOutput>, ToolError> {
    let mime_type = whole.artifact.media_type.clone();
    if !IMAGES.contains(&mime_type.as_str()) || whole.len() > MOST_IMAGE_BYTES {
        return Ok(None);
    }
    let data = STANDARD.encode(whole.bytes(0, whole.len()).await?);
    Ok(Some(ToolOutput { content: vec![ContentBlock::Image { data, mime_type }], ..ToolOutput::default() }))
}

fn place_of(offset: i64, total: u64) -> u64 {
    if offset < 0 { total.saturating_sub(offset.unsigned_abs()) } else { offset.unsigned_abs() }
}

/// Where the text begins that comes after so many lines; the end, where there are not so many.
async fn after_lines(whole: &Whole, mut lines: u64) -> Result<u64, ToolError> {
    let (mut at, mut index) = (0_u64, 0_u64);
    while lines > 0 && at < whole.len() {
        let piece = whole.piece(index).await?;
        if piece.is_empty() {
            break;
        }
        let ends = memchr::memchr_iter(b'\n', &piece);
        let count = memchr::memchr_iter(b'\n', &piece).count() as u64;
        if count >= lines {
            let last = usize::try_from(lines - 1).ok().and_then(|nth| ends.into_iter().nth(nth));
            return Ok(last.map_or(at, |end| at.saturating_add(end as u64).saturating_add(1)));
        }
        lines -= count;
        at = at.saturating_add(piece.len() as u64);
        index = index.saturating_add(1);
    }
    Ok(at)
}

/// Where the last so many lines begin; the beginning, where there are not so many.
async fn before_lines(whole: &Whole, mut lines: u64) -> Result<u64, ToolError> {
    let mut end = whole.len();
    let mut is_last = true;
    while end > 0 {
        let (index, _) = place(end - 1);
        let begin = index.saturating_mul(PIECE_BYTES as u64);
        let piece = whole.piece(index).await?;
        let mut part = piece.get(..usize::try_from(end - begin).unwrap_or_default()).unwrap_or(&piece);
        if std::mem::take(&mut is_last) {
            // The end of the last line begins none.
            part = part.strip_suffix(b"\n").unwrap_or(part);
        }
        for found in memchr::memrchr_iter(b'\n', part) {
            lines -= 1;
            if lines == 0 {
                return Ok(begin.saturating_add(found as u64).saturating_add(1));
            }
        }
        end = begin;
    }
    Ok(0)
}

/// Where so many lines of these bytes end.
fn end_of_lines(bytes: &[u8], lines: u64) -> usize {
    let nth = usize::try_from(lines.saturating_sub(1)).unwrap_or(usize::MAX);
    memchr::memchr_iter(b'\n', bytes).nth(nth).map_or(bytes.len(), |end| end + 1)
}

/// The beginning of the character in which a byte is; the byte's own place, where it is in none.
async fn whole_characters_from(whole: &Whole, from: u64) -> Result<u64, ToolError> {
    let is_inside = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let before = from.min(3);
    let near = whole.bytes(from - before, from.saturating_add(1)).await?;
    let inside = near.iter().rev().take_while(|byte| is_inside(byte)).count() as u64;
    Ok(if inside <= before { from - inside } else { from })
}

/// Where the last whole character of these bytes ends. All of them, where that would be none.
fn whole_characters_until(bytes: &[u8]) -> usize {
    let near = bytes.len().saturating_sub(3);
    let lead = (near..bytes.len()).rev().find(|at| bytes.get(*at).is_some_and(|byte| byte & 0b1100_0000 == 0b1100_0000));
    let Some(lead) = lead.filter(|lead| *lead > 0) else { return bytes.len() };
    let needs = bytes.get(lead).map_or(1, |byte| byte.leading_ones() as usize);
    if bytes.len() - lead < needs { lead } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_with_a_whole_character_and_after_the_lines_that_are_asked_for() {
        for (text, cut, whole) in [("aé", 2, 1), ("aé", 3, 3), ("a€b", 3, 1), ("a😀", 4, 1), ("€", 2, 2), ("abc", 3, 3)]
        {
            assert_eq!(whole_characters_until(text.as_bytes().get(..cut).unwrap()), whole, "{text} {cut}");
        }
        for (lines, end) in [(1, 2), (2, 4), (3, 5), (9, 5)] {
            assert_eq!(end_of_lines(b"a\nb\nc", lines), end);
        }
        assert_eq!([place_of(-3, 10), place_of(-30, 10), place_of(4, 10)], [7, 0, 4]);
    }
}
