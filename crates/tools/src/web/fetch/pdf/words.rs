//! How much is written somewhere, without reading it.

/// The most that the drawing of one page, or a table of a font, may say. Each word is held as a value of some hundred bytes.
pub(super) const MAX_WORDS: usize = 250_000;

/// About how many values and operators there are at most (ISO 32000-1, section 7.2), half of them at least: each begins behind white
/// space, with a sign of its own, or where the one before cannot go on.
pub(super) fn words(content: &[u8]) -> usize {
    let (mut count, mut was, mut has_point) = (0, b' ', false);
    for byte in content.iter().copied() {
        let is_space = matches!(byte, 0 | b'\t' | b'\n' | 0x0c | b'\r' | b' ');
        let was_space = matches!(was, 0 | b'\t' | b'\n' | 0x0c | b'\r' | b' ');
        let begins = match byte {
            b'(' | b'<' | b'[' | b'/' => true,
            b'+' | b'-' => was.is_ascii_digit() || was == b'.' || was_space,
            b'.' => has_point || was_space,
            _ => was_space && !is_space,
        };
        has_point = byte == b'.' || (has_point && byte.is_ascii_digit());
        count += usize::from(begins);
        was = byte;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_count_however_close_they_stand() {
        let table = [("", 0), ("  12 .5 -3 (a) Tj", 5), ("[1+1-1.5.5.5]", 5), ("<</A/B>>", 4), ("12.5 0.1", 2)];
        for (content, expected) in table {
            assert_eq!(words(content.as_bytes()), expected, "{content}");
        }
    }
}
