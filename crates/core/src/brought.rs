//! Files that people bring within a message, as models can be shown them. Pure.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::{ContentBlock, EmbeddedResource};

/// Base64 with or without its padding.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

/// What is text and is not called so.
const TEXT: [&str; 9] = [
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
    "application/x-sh",
    "application/sql",
    "application/x-ndjson",
];

/// Why a file can be shown to no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotShown {
    /// It is not what it is said to be written in.
    #[error("the bytes of `{name}` are not base64")]
    Base64 {
        /// The file.
        name: String,
    },
    /// There is nothing in it.
    #[error("`{name}` is empty")]
    Empty {
        /// The file.
        name: String,
    },
    /// It is said to be text.
    #[error("`{name}` is said to be `{mime_type}` and is not text in UTF-8")]
    Text {
        /// The file.
        name: String,
        /// What it is said to be.
        mime_type: String,
    },
    /// No model takes such a thing.
    #[error("`{name}` is `{mime_type}`; models are shown text in UTF-8, images, PDF files, audio and video")]
    Type {
        /// The file.
        name: String,
        /// What it is said to be.
        mime_type: String,
    },
}

/// Whether files of this media type are text; parameters do not count.
pub fn is_text_type(mime_type: &str) -> bool {
    let mime_type = plain(mime_type);
    mime_type.starts_with("text/")
        || TEXT.contains(&&*mime_type)
        || (mime_type.starts_with("application/") && (mime_type.ends_with("+json") || mime_type.ends_with("+xml")))
}

/// A media type without parameters, in small letters.
fn plain(mime_type: &str) -> String {
    mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

impl ContentBlock {
    /// The block as models can be shown it: a text file that came as bytes is the text, one that is a picture or a sound is that.
    /// What came as text, and a link, are as they were.
    ///
    /// # Errors
    /// [`NotShown`], where its bytes cannot be read, or no model takes such a file: it would be lost without a word.
    pub fn shown(self) -> Result<Self, NotShown> {
        match self {
            Self::Image { ref data, ref mime_type } => held(data, "the image", mime_type, "image/").map(|()| self),
            Self::Audio { ref data, ref mime_type } => held(data, "the sound", mime_type, "audio/").map(|()| self),
            Self::Resource { resource: EmbeddedResource { uri, mime_type, text: None, blob: Some(data) } } => {
                file(uri, mime_type, data)
            }
            Self::Text { .. } | Self::Resource { .. } | Self::ResourceLink { .. } => Ok(self),
        }
    }
}

fn file(uri: String, mime_type: Option<String>, data: String) -> Result<ContentBlock, NotShown> {
    let name = uri.rsplit('/').next().unwrap_or_default().to_owned();
    let bytes = decoded(&data, &name)?;
    let kind = plain(mime_type.as_deref().unwrap_or_default());
    let written = mime_type.clone().unwrap_or_default();
    match kind.as_str() {
        "application/pdf" => {}
        image if image.starts_with("image/") => {
            held(&data, &name, image, "image/")?;
            return Ok(ContentBlock::Image { data, mime_type: kind });
        }
        audio if audio.starts_with("audio/") => {
            held(&data, &name, audio, "audio/")?;
            return Ok(ContentBlock::Audio { data, mime_type: kind });
        }
        video if video.starts_with("video/") => {}
        // Where nobody says what it is, its bytes do.
        unsaid if unsaid.is_empty() || unsaid == "application/octet-stream" || is_text_type(unsaid) => {
            let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
            let text = text.ok_or_else(|| {
                if is_text_type(&kind) {
                    NotShown::Text { name, mime_type: written }
                } else {
                    NotShown::Type { name, mime_type: "application/octet-stream".to_owned() }
                }
            })?;
            return Ok(ContentBlock::Resource { resource: EmbeddedResource { uri, mime_type, text: Some(text), blob: None } });
        }
        _ => return Err(NotShown::Type { name, mime_type: written }),
    }
    Ok(ContentBlock::Resource { resource: EmbeddedResource { uri, mime_type, text: None, blob: Some(data) } })
}

/// Whether a picture or a sound holds something, and is of a type that models take as one: drawings in XML are none.
fn held(data: &str, name: &str, mime_type: &str, kind: &str) -> Result<(), NotShown> {
    if decoded(data, name)?.is_empty() {
        return Err(NotShown::Empty { name: name.to_owned() });
    }
    let is_taken = plain(mime_type).strip_prefix(kind).is_some_and(|rest| !rest.is_empty() && !rest.ends_with("+xml"));
    if is_taken { Ok(()) } else { Err(NotShown::Type { name: name.to_owned(), mime_type: mime_type.to_owned() }) }
}

fn decoded(data: &str, name: &str) -> Result<Vec<u8>, NotShown> {
    BASE64.decode(data).map_err(|_| NotShown::Base64 { name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brought(mime_type: &str, data: &str) -> Result<ContentBlock, NotShown> {
        resource(mime_type, None, Some(data)).shown()
    }

    fn resource(mime_type: &str, text: Option<&str>, blob: Option<&str>) -> ContentBlock {
        let mime_type = (!mime_type.is_empty()).then(|| mime_type.to_owned());
        let (text, blob) = (text.map(str::to_owned), blob.map(str::to_owned));
        ContentBlock::Resource { resource: EmbeddedResource { uri: "file:///x/a.b".to_owned(), mime_type, text, blob } }
    }

    #[test]
    fn a_text_that_comes_as_bytes_is_the_text() {
        for mime_type in ["text/plain", "TEXT/CSV; charset=utf-8", "application/json", "application/ld+json", ""] {
            assert_eq!(brought(mime_type, "YcOf"), Ok(resource(mime_type, Some("aß"), None)), "{mime_type}");
        }
        assert_eq!(brought("text/plain", "aGk"), Ok(resource("text/plain", Some("hi"), None)), "without padding");
    }

    #[test]
    fn what_models_take_as_bytes_stays_and_a_picture_is_one() {
        for mime_type in ["application/pdf", "video/mp4"] {
            assert_eq!(brought(mime_type, "AAAA"), Ok(resource(mime_type, None, Some("AAAA"))));
        }
        let image = ContentBlock::Image { data: "AAAA".to_owned(), mime_type: "image/png".to_owned() };
        assert_eq!(brought("image/png", "AAAA"), Ok(image.clone()));
        assert_eq!(image.clone().shown(), Ok(image));
    }

    #[test]
    fn what_no_model_could_be_shown_is_told_so() {
        let name = || "a.b".to_owned();
        let (zip, text) = ("application/zip".to_owned(), "text/plain".to_owned());
        assert_eq!(brought("application/zip", "UEsDBA=="), Err(NotShown::Type { name: name(), mime_type: zip }));
        let unsaid = "application/octet-stream".to_owned();
        assert_eq!(brought("", "AAAA"), Err(NotShown::Type { name: name(), mime_type: unsaid }));
        assert_eq!(brought("text/plain", "/w=="), Err(NotShown::Text { name: name(), mime_type: text }));
        assert_eq!(brought("text/plain", "@@@"), Err(NotShown::Base64 { name: name() }));
        let image = ContentBlock::Image { data: "@@@".to_owned(), mime_type: "image/png".to_owned() };
        assert_eq!(image.shown(), Err(NotShown::Base64 { name: "the image".to_owned() }));
    }

    #[test]
    fn a_picture_or_a_sound_of_another_type_or_without_bytes_is_told_so() {
        let image =
            |mime_type: &str, data: &str| ContentBlock::Image { data: data.to_owned(), mime_type: mime_type.to_owned() };
        let audio =
            |mime_type: &str, data: &str| ContentBlock::Audio { data: data.to_owned(), mime_type: mime_type.to_owned() };
        let other = |name: &str, mime_type: &str| NotShown::Type { name: name.to_owned(), mime_type: mime_type.to_owned() };
        for mime_type in ["image/svg+xml", "text/html", "image/", ""] {
            assert_eq!(image(mime_type, "AAAA").shown(), Err(other("the image", mime_type)), "{mime_type}");
        }
        assert_eq!(audio("x", "AAAA").shown(), Err(other("the sound", "x")));
        assert_eq!(brought("image/svg+xml", "AAAA"), Err(other("a.b", "image/svg+xml")));
        assert_eq!(image("image/png", "").shown(), Err(NotShown::Empty { name: "the image".to_owned() }));
        assert_eq!(audio("audio/wav", "").shown(), Err(NotShown::Empty { name: "the sound".to_owned() }));
    }
}
