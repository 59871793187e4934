//! What bytes in base64 are.

/// The media type of an image: what its first bytes say, else what was declared, which is often wrong.
pub(crate) fn image_type<'a>(data: &str, declared: &'a str) -> &'a str {
    const SIGNS: [(&str, &str); 4] =
        [("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp")];
    SIGNS.iter().find(|(sign, _)| data.starts_with(sign)).map_or(declared, |(_, known)| known)
}
