//! How large an image is, by its first bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// How much of an image is looked at, in letters of base64: what stands before the size of a JPEG may be long.
const MAX_HEAD: usize = 512 * 1024;

/// Width and height in pixels of an image in base64; `None` where its first bytes do not tell.
pub(crate) fn of_base64(data: &str) -> Option<(u32, u32)> {
    let head = data.get(..data.len().min(MAX_HEAD))?;
    let head = STANDARD.decode(head).ok()?;
    of_png(&head).or_else(|| of_gif(&head)).or_else(|| of_webp(&head)).or_else(|| of_jpeg(&head))
}

fn of_png(bytes: &[u8]) -> Option<(u32, u32)> {
    let side = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    if !bytes.starts_with(b"\x89PNG\r\n\x1a\n") || bytes.get(12..16) != Some(b"IHDR") {
        return None;
    }
    side(16).zip(side(20))
}

fn of_gif(bytes: &[u8]) -> Option<(u32, u32)> {
    if !bytes.starts_with(b"GIF8") {
        return None;
    }
    little16(bytes, 6).zip(little16(bytes, 8))
}

fn of_webp(bytes: &[u8]) -> Option<(u32, u32)> {
    if !bytes.starts_with(b"RIFF") || bytes.get(8..12) != Some(b"WEBP") {
        return None;
    }
    match bytes.get(12..16)? {
        b"VP8X" => {
            let side = |at: usize| Some(little16(bytes, at)? + (u32::from(*bytes.get(at + 2)?) << 16) + 1);
            side(24).zip(side(27))
        }
        b"VP8L" => {
            let bits = little16(bytes, 21)? | (little16(bytes, 23)? << 16);
            Some(((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1))
        }
        b"VP8 " => Some((little16(bytes, 26)? & 0x3FFF, little16(bytes, 28)? & 0x3FFF)),
        _ => None,
    }
}

/// The size stands in the first frame's head, behind segments that each tell their length.
fn of_jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
    loop {
        let [0xFF, marker, high, low, body @ ..] = rest else { return None };
        let is_frame = matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC);
        if is_frame {
            let [_, height_high, height_low, width_high, width_low, ..] = body else { return None };
            let side = |high: &u8, low: &u8| u32::from(u16::from_be_bytes([*high, *low]));
            return Some((side(width_high, width_low), side(height_high, height_low)));
        }
        rest = body.get(usize::from(u16::from_be_bytes([*high, *low])).checked_sub(2)?..)?;
    }
}

fn little16(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes).map(u32::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_tells_its_size_in_its_first_bytes() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\xc8\0\0\x23\x28\x08\x02\0\0\0";
        let gif = b"GIF89a\x0a\0\x14\0";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x11\x08\0\x20\0\x10\x03";
        let extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x0f\0\x01\x1f\0\0";
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x0f\xc0\x07\0";
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x10\0\x20\0";
        for (bytes, size) in [
            (png.as_slice(), Some((200, 9000))),
            (gif, Some((10, 20))),
            (jpeg, Some((16, 32))),
            (extended, Some((65_552, 32))),
            (lossless, Some((16, 32))),
            (lossy, Some((16, 32))),
            (b"\xff\xd8\xff", None),
            (b"%PDF-1.4", None),
        ] {
            assert_eq!(of_base64(&STANDARD.encode(bytes)), size, "{bytes:?}");
            assert_eq!(of_base64(&STANDARD.encode(&bytes[..bytes.len().min(8)])), None, "{bytes:?}");
        }
    }
}
