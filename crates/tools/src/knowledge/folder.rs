//! A folder of documents and its place in the index.
//!
//! Before each look-up the folder is walked and compared with what the index knows: sizes and times, no contents. What looks
//! changed is read, what has the same contents keeps its pieces, also under another name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use turnwright_engine::knowledge::{IndexedFile, KnowledgeIndex, version_of};
use turnwright_engine::{Clock, StoreError};

use super::changes::{Changes, changes, settled_ns};
use super::split::Sizes;
use super::{KnowledgeFolder, document};
use crate::filesystem::tree::{Listing, Tree, TreeFile};
use crate::{FilesystemConfig, PathGlob, RootsError};

/// The most files and folders that one walk looks at.
const MOST_VISITED: usize = 500_000;
/// How long the right to change a collection is taken for at once.
const CLAIM: Duration = Duration::from_secs(20);
/// How long is waited for another process that changes the collection, and between two looks.
const OTHERS_TIME: Duration = Duration::from_millis(1_500);
const OTHERS_PAUSE: Duration = Duration::from_millis(50);
/// A walk is not repeated before so many times as long as it took.
const WALK_SHARE: u32 = 8;
/// What takes no longer is repeated each time.
const CHEAP_WALK: Duration = Duration::from_millis(100);

/// A folder that is looked into.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) name: String,
    /// Its collection in the index; another one where it is read in another way.
    pub(super) collection: String,
    tree: Arc<Tree>,
    wanted: Arc<Wanted>,
    max_file_bytes: u64,
    sizes: Sizes,
    /// When the folder may be walked again. Held while it is.
    again: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Wanted {
    include: Vec<PathGlob>,
    exclude: Vec<PathGlob>,
}

impl Wanted {
    fn fits(&self, path: &Path) -> bool {
        let fits = |globs: &[PathGlob]| globs.iter().any(|glob| glob.fits(path));
        path.to_str().is_some() && (self.include.is_empty() || fits(&self.include)) && !fits(&self.exclude)
    }
}

/// What came of bringing the index to what a folder holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Documents that were read.
    pub read: usize,
    /// Documents that were removed.
    pub removed: usize,
    /// Documents that are to be read still.
    pub left: usize,
    /// Whether there are documents without vectors, and time was up.
    pub lacks_vectors: bool,
    /// Whether another process is at it.
    pub is_elsewhere: bool,
    /// Whether the folder holds more than is looked at, or a part of it cannot be.
    pub is_cut: bool,
}

/// Who changes the index, and by what clock.
#[derive(Debug, Clone)]
pub(super) struct Hand {
    pub(super) index: Arc<dyn KnowledgeIndex>,
    pub(super) clock: Arc<dyn Clock>,
    /// Names this process.
    pub(super) holder: String,
}

impl Hand {
    /// Takes the right to change a collection, or prolongs it.
    pub(super) async fn claim(&self, collection: &str) -> Result<bool, StoreError> {
        let now = self.clock.now_ms();
        let until = now.saturating_add(u64::try_from(CLAIM.as_millis()).unwrap_or(u64::MAX));
        self.index.claim(collection, &self.holder, now, until).await
    }

    /// Gives the right back.
    pub(super) async fn release(&self, collection: &str) -> Result<(), StoreError> {
        let now = self.clock.now_ms();
        self.index.claim(collection, &self.holder, now, now).await.map(|_| ())
    }
}

impl Folder {
    pub(super) fn open(config: KnowledgeFolder, sizes: Sizes) -> Result<Self, RootsError> {
        let how =
            format!("{}|{:?}|{:?}|{}", config.path.display(), sizes, (&config.include, &config.exclude), config.max_file_bytes);
        let collection = format!("folder/{}/{}", config.name, version_of(how.as_bytes()));
        let globs = |patterns: &[String]| {
            let glob = |pattern: &String| {
                PathGlob::new(pattern, false).map_err(|reason| RootsError::Pattern { pattern: pattern.clone(), reason })
            };
            patterns.iter().map(glob).collect::<Result<Vec<_>, _>>()
        };
        let wanted = Wanted { include: globs(&config.include)?, exclude: globs(&config.exclude)? };
        let mut files = FilesystemConfig::new(vec![config.path]);
        files.denied.extend(config.denied);
        files.ours = config.ours;
        Ok(Self {
            name: config.name,
            collection,
            tree: Arc::new(Tree::open(files)?),
            wanted: Arc::new(wanted),
            max_file_bytes: config.max_file_bytes,
            sizes,
            again: Mutex::new(None),
        })
    }

    /// Brings the index to what the folder holds, until `deadline`.
    pub(super) async fn refresh(&self, hand: &Hand, deadline: Instant) -> Result<Refreshed, StoreError> {
        // In this process, too, one at a time reads: whoever asks does not wait for all of a folder.
        let Ok(mut again) = timeout(OTHERS_TIME, self.again.lock()).await else {
            return Ok(Refreshed { is_elsewhere: true, ..Refreshed::default() });
        };
        if again.is_some_and(|again| Instant::now() < again) {
            return Ok(Refreshed::default());
        }
        let begun = Instant::now();
        let listing = self.listing().await;
        let took = begun.elapsed();
        let refreshed = self.follow(hand, &listing, deadline).await?;
        // A folder that is dear to walk is walked now and then; where something is left to do, with the next look-up.
        let rests = took > CHEAP_WALK && refreshed.left == 0;
        *again = rests.then(|| Instant::now() + took * WALK_SHARE);
        Ok(Refreshed { is_cut: listing.is_cut, ..refreshed })
    }

    async fn listing(&self) -> Listing {
        let (tree, wanted) = (Arc::clone(&self.tree), Arc::clone(&self.wanted));
        let walk = move || tree.files(&|path| wanted.fits(path), MOST_VISITED);
        tokio::task::spawn_blocking(walk).await.unwrap_or_else(|_| Listing { is_cut: true, ..Listing::default() })
    }

    async fn follow(&self, hand: &Hand, listing: &Listing, deadline: Instant) -> Result<Refreshed, StoreError> {
        let given_up = (Instant::now() + OTHERS_TIME).min(deadline);
        loop {
            if changes(&hand.index.files(&self.collection).await?, listing) == Changes::default() {
                return Ok(Refreshed::default());
            }
            if hand.claim(&self.collection).await? {
                break;
            }
            // Whoever has it may be about to do all that is to be done.
            if Instant::now() >= given_up {
                return Ok(Refreshed { is_elsewhere: true, ..Refreshed::default() });
            }
            tokio::time::sleep(OTHERS_PAUSE).await;
        }
        let refreshed = self.bring(hand, listing, deadline).await;
        hand.release(&self.collection).await?;
        refreshed
    }

    async fn bring(&self, hand: &Hand, listing: &Listing, deadline: Instant) -> Result<Refreshed, StoreError> {
        let mut refreshed = Refreshed::default();
        // Whoever had it before may have done it meanwhile.
        let known = hand.index.files(&self.collection).await?;
        let Changes { to_read, gone } = changes(&known, listing);
        let known: HashMap<&str, &IndexedFile> = known.iter().map(|file| (file.path.as_str(), file)).collect();
        let mut gone: Vec<&IndexedFile> = gone.iter().filter_map(|path| known.get(path.as_str()).copied()).collect();
        let mut claimed = Instant::now();
        for (at, file) in to_read.iter().enumerate() {
            if Instant::now() >= deadline {
                refreshed.left = to_read.len() - at;
                break;
            }
            if claimed.elapsed() > CLAIM / 4 {
                if !hand.claim(&self.collection).await? {
                    return Ok(Refreshed { is_elsewhere: true, ..refreshed });
                }
                claimed = Instant::now();
            }
            self.take(hand, file, &known, &mut gone).await?;
            refreshed.read += 1;
        }
        refreshed.removed = gone.len();
        hand.index.remove(&self.collection, gone.into_iter().map(|file| file.path.clone()).collect()).await?;
        Ok(refreshed)
    }

    /// Reads a file and puts it into the index, if it is not there under this or another name.
    async fn take(
        &self,
        hand: &Hand,
        file: &TreeFile,
        known: &HashMap<&str, &IndexedFile>,
        gone: &mut Vec<&IndexedFile>,
    ) -> Result<(), StoreError> {
        let path = file.path.to_string_lossy().into_owned();
        let read = self.read(file.path.clone()).await;
        let modified_ns = settled_ns(file, hand.clock.now_ms());
        let mut row = IndexedFile { path, bytes: file.bytes, modified_ns, hash: String::new(), skipped: None };
        let (hash, bytes) = match read {
            Ok(read) => read,
            Err(Unread { why, may_change }) => {
                "-".clone_into(&mut row.hash);
                row.skipped = Some(why);
                if may_change {
                    row.modified_ns = -1;
                }
                return hand.index.put(&self.collection, row, Vec::new()).await;
            }
        };
        row.hash = hash;
        if let Some(same) = known.get(row.path.as_str()).filter(|known| known.hash == row.hash) {
            row.skipped.clone_from(&same.skipped);
            let path = row.path.clone();
            return hand.index.moved(&self.collection, &path, row).await;
        }
        if let Some(at) = gone.iter().position(|gone| gone.hash == row.hash && gone.skipped.is_none()) {
            let from = gone.swap_remove(at).path.clone();
            return hand.index.moved(&self.collection, &from, row).await;
        }
        let (path, sizes) = (file.path.clone(), self.sizes);
        let pieces = tokio::task::spawn_blocking(move || document::pieces(&path, bytes, sizes)).await;
        let pieces = pieces.unwrap_or_else(|_| Err("its reader broke off".to_owned())).unwrap_or_else(|why| {
            row.skipped = Some(why);
            Vec::new()
        });
        hand.index.put(&self.collection, row, pieces).await
    }

    /// The hash of a file and its bytes, or why it is passed over.
    async fn read(&self, path: PathBuf) -> Result<(String, Vec<u8>), Unread> {
        let (tree, most) = (Arc::clone(&self.tree), self.max_file_bytes);
        let read = move || match tree.read(&path, most) {
            Ok(Some(bytes)) => Ok((version_of(&bytes), bytes)),
            Ok(None) => Err(Unread { why: format!("it is larger than {most} bytes, the limit"), may_change: false }),
            Err(error) => Err(Unread { why: format!("it cannot be read: {error}"), may_change: true }),
        };
        let broke_off = |_| Err(Unread { why: "its reading broke off".to_owned(), may_change: true });
        tokio::task::spawn_blocking(read).await.unwrap_or_else(broke_off)
    }
}

/// Why a file was not read.
struct Unread {
    why: String,
    /// Whether it may be read although the file stays as it is, such as with other rights.
    may_change: bool,
}
