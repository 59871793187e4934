//! What servers offered the last time, so that one need not be started to know it.
//!
//! Kept as the server sent it: it is read again as if it had just come, by what the operator says then.

use std::fmt::{Debug, Write};
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Granted, ServerConfig, Shelf};

/// The most that is read of what was kept of one server.
const MAX_BYTES: u64 = 32 << 20;

/// Remembers what servers offer.
pub trait Definitions: Send + Sync + Debug {
    /// The tools as this server sent them the last time; `None` where that is not known.
    fn kept(&self, server: &ServerConfig) -> Option<Vec<Value>>;

    /// Keeps them. Where that fails the server is started the next time, no more.
    fn keep(&self, server: &ServerConfig, tools: &[Value]);

    /// What this server offered besides tools the last time.
    fn kept_shelf(&self, _server: &ServerConfig) -> Option<Shelf> {
        None
    }

    /// Keeps that too.
    fn keep_shelf(&self, _server: &ServerConfig, _shelf: &Shelf) {}

    /// Forgets all of this server.
    fn forget(&self, _server: &ServerConfig) {}
}

/// Remembers nothing: every server is started to learn what it offers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDefinitions;

impl Definitions for NoDefinitions {
    fn kept(&self, _server: &ServerConfig) -> Option<Vec<Value>> {
        None
    }

    fn keep(&self, _server: &ServerConfig, _tools: &[Value]) {}
}

/// A file for each server's name, and owner where it has one. It holds for the way in which the server was reached: another command or address is
/// another server.
#[derive(Debug, Clone)]
pub struct FileDefinitions {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    way: String,
    tools: Vec<Value>,
}

/// Of either, the way alone.
#[derive(Deserialize)]
struct Way {
    way: String,
}

#[derive(Serialize, Deserialize)]
struct KeptShelf {
    way: String,
    shelf: Shelf,
}

impl FileDefinitions {
    /// In this folder, which is made when something is kept.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn file(&self, server: &ServerConfig) -> PathBuf {
        self.folder.join(format!("{}.json", key(server)))
    }

    fn shelf_file(&self, server: &ServerConfig) -> PathBuf {
        self.folder.join(format!("{}-shelf.json", key(server)))
    }

    fn write(&self, server: &ServerConfig, file: &Path, kept: &impl Serialize) {
        if let Err(error) = write(&self.folder, file, kept) {
            let server = server.name.as_str();
            tracing::warn!(server, %error, "what an MCP server offers could not be kept; it is started the next time");
        }
    }
}

impl Definitions for FileDefinitions {
    fn kept(&self, server: &ServerConfig) -> Option<Vec<Value>> {
        let kept: Kept = read(&self.file(server))?;
        (kept.way == way(server)).then_some(kept.tools)
    }

    fn keep(&self, server: &ServerConfig, tools: &[Value]) {
        let kept = Kept { way: way(server), tools: tools.to_vec() };
        self.write(server, &self.file(server), &kept);
    }

    fn kept_shelf(&self, server: &ServerConfig) -> Option<Shelf> {
        let kept: KeptShelf = read(&self.shelf_file(server))?;
        (kept.way == way(server)).then_some(kept.shelf)
    }

    fn keep_shelf(&self, server: &ServerConfig, offered: &Shelf) {
        self.write(server, &self.shelf_file(server), &KeptShelf { way: way(server), shelf: offered.clone() });
    }

    fn forget(&self, server: &ServerConfig) {
        let way = way(server);
        for file in [self.file(server), self.shelf_file(server)] {
            // What a server offers that is reached otherwise by now, under the same name, is not this one's.
            if read::<Way>(&file).is_some_and(|kept| kept.way != way) {
                continue;
            }
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(server = server.name, %error, "what an MCP server offered could not be forgotten");
                }
                Ok(()) | Err(_) => {}
            }
        }
    }
}

/// Whose server of this name it is: one user is not told what another's offered.
fn key(server: &ServerConfig) -> String {
    match &server.owner {
        None => digest(&server.name),
        Some(owner) => digest(&format!("{}\0{}", server.name, owner.as_str())),
    }
}

fn read<T: DeserializeOwned>(file: &Path) -> Option<T> {
    if std::fs::metadata(file).ok()?.len() > MAX_BYTES {
        return None;
    }
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// Whole or not at all, whoever writes at the same time.
fn write(folder: &Path, file: &Path, kept: &impl Serialize) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let draft = file.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&draft, serde_json::to_vec(kept)?)?;
    std::fs::rename(draft, file)
}

/// The way to a server, without what may be secret: an address may hold a key.
fn way(server: &ServerConfig) -> String {
    // What a server is told that it could ask for may change what it offers.
    let granted = (*server.granted != Granted::default()).then_some(&server.granted);
    digest(&format!("{:?}{}", server.transport, granted.map(|granted| format!("{granted:?}")).unwrap_or_default()))
}

pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
