//! Bodies that are packed on their way (`Content-Encoding`, RFC 9110, section 8.4), undone as they come: what is counted and held
//! is what comes out.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

/// The codings that are undone, as they are asked for.
pub(super) const TAKEN: &str = "gzip, deflate";
/// Codings that are sent and are not undone. What is none of these is no coding: some write a character set there.
const OTHERS: [&str; 7] = ["br", "zstd", "compress", "x-compress", "dcb", "dcz", "exi"];

/// Takes a body as it comes.
pub(super) enum Body {
    Plain(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
    Zlib(Box<ZlibDecoder<Bounded>>),
    /// As some send it who were told `deflate`: without what stands around it.
    Raw(Box<DeflateDecoder<Bounded>>),
    /// `deflate`, of which nothing came: its first byte says which.
    Unseen(Bounded),
}

/// Whether more of a body is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    More,
    /// There is more than the limit.
    Nothing,
}

/// A body that cannot be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    /// As the answer names it.
    pub(super) coding: String,
    pub(super) why: String,
}

impl Body {
    /// A body of an answer with these headers, of which at most `max_bytes` are held.
    ///
    /// # Errors
    /// How it is packed, where that is not undone.
    pub(super) fn of(headers: &HeaderMap, max_bytes: usize) -> Result<Self, Packed> {
        let into = Bounded { held: Vec::new(), max_bytes, is_cut: false };
        let written = coding(headers);
        let named = |name: &str| !name.is_empty() && name != "identity";
        let codings: Vec<&str> = written.split(',').map(str::trim).filter(|name| named(name)).collect();
        let is_known = |name: &&str| matches!(*name, "gzip" | "x-gzip" | "deflate") || OTHERS.contains(name);
        match codings.as_slice() {
            ["gzip" | "x-gzip"] => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(into)))),
            ["deflate"] => Ok(Self::Unseen(into)),
            several if several.iter().any(is_known) => {
                let why = format!("is not unpacked here ({TAKEN} are)");
                Err(Packed { coding: several.join(", "), why })
            }
            _ => Ok(Self::Plain(into)),
        }
    }

    /// Takes the next part.
    ///
    /// # Errors
    /// Why it is not what it is said to be.
    pub(super) fn take(self, part: &[u8]) -> io::Result<(Self, Wanted)> {
        let mut body = match (self, part.first()) {
            // RFC 1950, section 2.2: the method 8 is in the low bits of the first byte, where a bare block of that is none.
            (Self::Unseen(into), Some(first)) if first & 0x0f == 8 => Self::Zlib(Box::new(ZlibDecoder::new(into))),
            (Self::Unseen(into), Some(_)) => Self::Raw(Box::new(DeflateDecoder::new(into))),
            (body, _) => body,
        };
        let written = match &mut body {
            Self::Plain(into) | Self::Unseen(into) => into.write_all(part),
            Self::Gzip(decoder) => decoder.write_all(part).and_then(|()| decoder.flush()),
            Self::Zlib(decoder) => until_end(&mut **decoder, part),
            Self::Raw(decoder) => until_end(&mut **decoder, part),
        };
        match written {
            _ if body.bounded().is_cut => Ok((body, Wanted::Nothing)),
            Ok(()) => Ok((body, Wanted::More)),
            Err(error) => Err(error),
        }
    }

    /// What came out, and whether there was more than the limit. `has_come` says whether any part was taken: where there is no
    /// body, nothing is missing of it.
    ///
    /// # Errors
    /// Why it is not whole.
    pub(super) fn end(mut self, has_come: bool) -> io::Result<(Vec<u8>, bool)> {
        if has_come && !self.bounded().is_cut {
            let ended = match &mut self {
                Self::Plain(_) | Self::Unseen(_) => Ok(()),
                Self::Gzip(decoder) => decoder.try_finish(),
                Self::Zlib(decoder) => decoder.try_finish(),
                Self::Raw(decoder) => decoder.try_finish(),
            };
            if !self.bounded().is_cut {
                ended?;
            }
        }
        let bounded = self.bounded();
        Ok((std::mem::take(&mut bounded.held), bounded.is_cut))
    }

    fn bounded(&mut self) -> &mut Bounded {
        match self {
            Self::Plain(into) | Self::Unseen(into) => into,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zlib(decoder) => decoder.get_mut(),
            Self::Raw(decoder) => decoder.get_mut(),
        }
    }
}

/// The names of codings in small letters, by commas.
pub(super) fn coding(headers: &HeaderMap) -> String {
    let written: Vec<&str> = headers.get_all(CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok()).collect();
    written.join(",").to_ascii_lowercase()
}

/// What stands behind the end is not looked at.
fn until_end(decoder: &mut impl Write, mut part: &[u8]) -> io::Result<()> {
    while !part.is_empty() {
        match decoder.write(part)? {
            0 => break,
            taken => part = part.get(taken..).unwrap_or_default(),
        }
    }
    decoder.flush()
}

/// Holds so many bytes and refuses more.
#[derive(Debug)]
pub(super) struct Bounded {
    held: Vec<u8>,
    max_bytes: usize,
    is_cut: bool,
}

impl Write for Bounded {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let room = self.max_bytes.saturating_sub(self.held.len());
        if room == 0 && !part.is_empty() {
            self.is_cut = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = part.get(..room).unwrap_or(part);
        self.held.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use reqwest::header::HeaderValue;

    use super::*;

    fn headers(coding: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(coding))])
    }

    /// What comes of a body in parts of this size: its bytes and whether it is cut, or why not.
    fn read(coding: &'static str, body: &[u8], part: usize, max_bytes: usize) -> Result<(Vec<u8>, bool), String> {
        let mut taking = Body::of(&headers(coding), max_bytes).map_err(|packed| packed.coding)?;
        for part in body.chunks(part) {
            let (next, wanted) = taking.take(part).map_err(|error| error.to_string())?;
            taking = next;
            if wanted == Wanted::Nothing {
                break;
            }
        }
        taking.end(!body.is_empty()).map_err(|error| error.to_string())
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_packed_body_comes_out_whole_in_whatever_parts_it_comes() {
        let text = b"a page of words, and of words again".repeat(50);
        let (mut zlib, mut raw) =
            (ZlibEncoder::new(Vec::new(), Compression::fast()), DeflateEncoder::new(Vec::new(), Compression::fast()));
        zlib.write_all(&text).unwrap();
        raw.write_all(&text).unwrap();
        let (zlib, raw) = (zlib.finish().unwrap(), raw.finish().unwrap());
        let two = [gzip(&text[..100]), gzip(&text[100..])].concat();
        let bodies: [(&str, &[u8]); 8] = [
            ("gzip", &gzip(&text)),
            ("X-GZIP", &two),
            ("deflate", &zlib),
            ("deflate", &raw),
            ("deflate", &[&zlib[..], b"behind its end"].concat()),
            ("identity", &text),
            ("utf-8", &text),
            ("identity, gzip", &gzip(&text)),
        ];
        for (coding, body) in bodies {
            for part in [1, 7, 10_000] {
                assert_eq!(read(coding, body, part, 10_000), Ok((text.clone(), false)), "{coding} {part}");
            }
            assert_eq!(read(coding, body, 10_000, text.len()), Ok((text.clone(), false)), "{coding}: at the limit");
            assert_eq!(read(coding, body, 10_000, 100), Ok((text[..100].to_vec(), true)), "{coding}: over it");
            assert_eq!(read(coding, b"", 1, 10_000), Ok((Vec::new(), false)), "{coding}: no body");
        }
    }

    #[test]
    fn of_what_is_packed_to_burst_no_more_is_held_than_the_limit() {
        let bomb = gzip(&vec![0; 20 << 20]);
        let (held, is_cut) = read("gzip", &bomb, bomb.len(), 1_000).unwrap();
        assert!(is_cut && held.capacity() < 100_000, "{}", held.capacity());
    }

    #[test]
    fn what_is_not_undone_is_named_and_what_is_broken_is_told() {
        for coding in ["br", "zstd", "compress", "gzip, br", "gzip, gzip"] {
            assert_eq!(read(coding, b"x", 1, 10), Err(coding.to_owned()));
        }
        let whole = gzip(b"a page of words");
        for broken in [&whole[..whole.len() / 2], b"<html>not packed at all</html>"] {
            for coding in ["gzip", "deflate"] {
                assert!(read(coding, broken, 100, 1_000).is_err(), "{coding}");
            }
        }
    }
}
