//! Opening files: regular ones only, and never by waiting.

use std::io::{self, Read, Seek, SeekFrom};

use cap_std::fs::{File, FileType, FileTypeExt, Metadata, OpenOptions, OpenOptionsExt};
use nix::fcntl::OFlag;
use turnwright_engine::source::ToolError;

use crate::error::failed;
use crate::roots::{Place, Roots};

/// What a directory entry is, in one word: `file`, `folder`, `link`, `fifo`, `socket`, `device` or `other`.
pub(super) fn kind_of(kind: FileType) -> &'static str {
    if kind.is_file() {
        "file"
    } else if kind.is_dir() {
        "folder"
    } else if kind.is_symlink() {
        "link"
    } else if kind.is_fifo() {
        "fifo"
    } else if kind.is_socket() {
        "socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "device"
    } else {
        "other"
    }
}

/// Refuses what is not a regular file.
pub(super) fn regular(place: &Place<'_>, metadata: &Metadata) -> Result<(), ToolError> {
    match kind_of(metadata.file_type()) {
        "file" => Ok(()),
        "folder" => Err(failed(format!("`{}` is a folder, not a file", place.shown))),
        kind => Err(failed(format!("`{}` is a {kind}, not a regular file; it is not opened", place.shown))),
    }
}

/// Options under which opening never waits: something that is swapped for a FIFO between look and open does not hang us.
pub(super) fn read_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits());
    options
}

/// Opens a regular file for reading. FIFOs, sockets and devices are refused by what `stat` says, before they are opened.
pub(super) fn open_regular(roots: &Roots, place: &Place<'_>) -> Result<(File, Metadata), ToolError> {
    let explain = |error: io::Error| roots.explain(place, &error);
    regular(place, &place.dir().metadata(&place.path).map_err(explain)?)?;
    let file = place.dir().open_with(&place.path, &read_options()).map_err(explain)?;
    let metadata = file.metadata().map_err(explain)?;
    regular(place, &metadata)?;
    Ok((file, metadata))
}

/// Reads at most `limit` bytes from `offset` on.
pub(super) fn read_part(mut file: File, offset: u64, limit: u64) -> io::Result<Vec<u8>> {
    if offset > 0 {
        file.seek(SeekFrom::Start(offset))?;
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The bytes as text. `offset` is where in the file they begin.
pub(super) fn text_of(place: &Place<'_>, offset: u64, bytes: Vec<u8>) -> Result<String, ToolError> {
    if bytes.contains(&0) {
        return Err(failed(format!("`{}` is a binary file, not text: it holds zero bytes", place.shown)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let within = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(within).copied().unwrap_or_default();
        let at = offset.saturating_add(within as u64);
        failed(format!("`{}` is not UTF-8 text: the byte at offset {at} is 0x{byte:02x}", place.shown))
    })
}
