//! Files that go along with a message, and documents that are put beside a conversation.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use turnwright_core::{ContentBlock, EmbeddedResource};

use crate::exit::Failure;

/// The largest file, in bytes.
const MAX_BYTES: u64 = 20 * 1024 * 1024;

/// A file that is put beside a conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document {
    /// What it is called there.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// The documents at these paths.
pub(super) fn documents(paths: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    let mut documents: Vec<Document> = Vec::new();
    for path in paths {
        let refuse = |why: String| Failure::usage(format!("`{}` cannot be looked up: {why}", path.display()));
        let name = name_of(path);
        if documents.iter().any(|known| known.name == name) {
            return Err(refuse(format!("another document is called `{name}` too")).hint("rename one of them"));
        }
        documents.push(Document { name, bytes: read(path).map_err(refuse)? });
    }
    Ok(documents)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// All that a file holds, or why it cannot be taken.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    // A pipe would be waited for, perhaps for ever.
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if u64::try_from(bytes.len()).is_ok_and(|size| size > MAX_BYTES) {
        return Err(format!("it has {} bytes, the limit is {MAX_BYTES}", metadata.len().max(MAX_BYTES + 1)));
    }
    Ok(bytes)
}

/// A file as a content block: text with its name, an image, or a PDF file.
pub(super) fn attach(path: &Path) -> Result<ContentBlock, Failure> {
    let refuse = |why: String| Failure::usage(format!("`{}` cannot be attached: {why}", path.display()));
    let bytes = read(path).map_err(refuse)?;
    if bytes.is_empty() {
        return Err(refuse("it is empty".to_owned()));
    }
    if let Some(mime_type) = image_type(&bytes) {
        return Ok(ContentBlock::Image { data: STANDARD.encode(&bytes), mime_type: mime_type.to_owned() });
    }
    let name = name_of(path);
    // Before it is looked at as text: some PDF files are ASCII throughout.
    if bytes.starts_with(b"%PDF-") {
        let blob = Some(STANDARD.encode(&bytes));
        let mime_type = Some("application/pdf".to_owned());
        return Ok(ContentBlock::Resource { resource: EmbeddedResource { uri: name, mime_type, text: None, blob } });
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(ContentBlock::text(format!("File {name}:\n\n{text}"))),
        Ok(_) | Err(_) => {
            let why = "it is neither UTF-8 text nor an image nor a PDF file".to_owned();
            Err(refuse(why).hint("images are PNG, JPEG, GIF and WebP"))
        }
    }
}

/// The media type of an image that models take, by its first bytes.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let known: [(&[u8], &str); 4] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
    ];
    let found = known.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, mime_type)| *mime_type);
    found.or(is_webp.then_some("image/webp"))
}
