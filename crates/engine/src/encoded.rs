//! Whether the files within a message can be read: what is no base64 every provider refuses, also each later turn of the conversation
//! that has it.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use turnwright_core::ContentBlock;

use crate::EngineError;

/// With or without `=` at the end, as providers take it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent).with_decode_allow_trailing_bits(true),
);

/// Refuses what is not encoded as it should be.
///
/// # Errors
/// [`EngineError::Invalid`], with the number of the part, from 0.
pub(crate) fn check(content: &[ContentBlock]) -> Result<(), EngineError> {
    for (at, block) in content.iter().enumerate() {
        let (name, data, mime_type) = match block {
            ContentBlock::Image { data, mime_type } | ContentBlock::Audio { data, mime_type } => {
                ("data", data, Some(mime_type))
            }
            ContentBlock::Resource { resource } => match &resource.blob {
                Some(blob) => ("resource.blob", blob, resource.mime_type.as_ref()),
                None => continue,
            },
            ContentBlock::Text { .. } | ContentBlock::ResourceLink { .. } => continue,
        };
        let what = mime_type.map_or("bytes", String::as_str);
        if data.is_empty() {
            return Err(EngineError::Invalid { what: format!("`content[{at}].{name}` ({what}) is empty") });
        }
        // Lines are left out by whoever reads it.
        let is_line = |byte: &u8| byte.is_ascii_whitespace();
        let decoded = if data.bytes().any(|byte| is_line(&byte)) {
            BASE64.decode(data.bytes().filter(|byte| !is_line(byte)).collect::<Vec<_>>())
        } else {
            BASE64.decode(data)
        };
        if let Err(error) = decoded {
            let what = format!("`content[{at}].{name}` ({what}) must be base64 (RFC 4648, section 4): {error}");
            return Err(EngineError::Invalid { what });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_base64_is_refused_with_its_place() {
        let image = |data: &str| ContentBlock::Image { data: data.to_owned(), mime_type: "image/png".to_owned() };
        for sound in ["aGk=", "aGk", "aGlo", "aG\r\nlo", "+/+/"] {
            assert!(check(&[image(sound)]).is_ok(), "{sound}");
        }
        for (wrong, why) in
            [("", "(image/png) is empty"), ("not an image!", "must be base64"), ("-_-_", "Invalid symbol 45, offset 0")]
        {
            let said = check(&[ContentBlock::text("look"), image(wrong)]).unwrap_err().to_string();
            assert!(said.starts_with("`content[1].data`") && said.contains(why), "{said}");
        }
    }
}
