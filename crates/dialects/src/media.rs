//! What bytes in base64 are.

use std::fmt;

use serde::{Serialize, Serializer};
use turnwright_core::AssistantBlock;

/// The media type under which every API takes an image, which its first bytes say. `None` where they do not, as of the page of an error
/// that a tool gives for an image, or it is not in base64: an API would refuse the whole request for it.
pub(crate) fn image(data: &str) -> Option<&'static str> {
    sign(data).filter(|_| is_base64(data))
}

/// The media type of an image: what its first bytes say, else what was declared, which is often wrong.
pub(crate) fn image_type<'a>(data: &str, declared: &'a str) -> &'a str {
    sign(data).unwrap_or(declared)
}

fn sign(data: &str) -> Option<&'static str> {
    const SIGNS: [(&str, &str); 3] = [("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif")];
    // A sound may begin as WebP does; what follows tells them apart.
    let is_webp = data.starts_with("UklGR") && data.get(12..16) == Some("RUJQ");
    let known = SIGNS.iter().find(|(sign, _)| data.starts_with(sign)).map(|(_, known)| *known);
    known.or(is_webp.then_some("image/webp"))
}

/// What a model is told of a picture or a sound that another answered with: in words, on a line of its own after `said`.
/// Empty where the block is something else, or goes back as it is.
pub(crate) fn for_others(block: &AssistantBlock, is_origin: bool, said: &str) -> String {
    match block.media().filter(|_| !is_origin) {
        Some(media) if said.is_empty() || said.ends_with('\n') => media.to_string(),
        Some(media) => format!("\n{media}"),
        None => String::new(),
    }
}

/// Whether this is base64 as every API takes it: the standard letters, padded, and not empty.
pub(crate) fn is_base64(data: &str) -> bool {
    let bytes = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !bytes.is_empty() && data.len().is_multiple_of(4) && bytes.bytes().all(fits)
}

/// A `data:` address, written without being put together.
#[derive(Debug)]
pub(crate) struct DataUrl<'a> {
    pub(crate) mime_type: &'a str,
    pub(crate) data: &'a str,
}

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data:{};base64,{}", self.mime_type, self.data)
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
