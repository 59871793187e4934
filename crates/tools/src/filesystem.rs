//! Files and folders below configured roots.
//!
//! Every tool works on a spot (`open.rs`), a name in an open folder, and so cannot leave its root nor reach what is denied.
//! Reading, listing, searching and stat are declared read-only. Work happens on the blocking pool, owned by the source.

mod attributes;
mod carry;
mod changing;
mod diff;
mod edit;
pub(crate) mod encoding;
mod guard;
mod list;
mod moving;
mod open;
mod ours;
mod read;
mod search;
mod seen;
mod stat;
mod trash;
pub(crate) mod tree;
mod write;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_engine::source::{CallContext, ToolError, ToolOutput};

use self::changing::Changing;
pub use self::edit::{Edit, EditRefusal, Found, Replaced, apply_edits};
use self::guard::Guard;
pub use self::guard::check_denied;
use self::open::Spot;
use self::ours::Ours;
pub use self::search::PathGlob;
use self::seen::Seen;
use self::trash::Trash;
use crate::error::failed;
use crate::roots::Roots;
use crate::{OwnPaths, RootsError, ToolSpec, TypedSource};

/// What the file tools may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesystemConfig {
    /// The folders that may be touched. Relative paths start at the first.
    pub roots: Vec<PathBuf>,
    /// What is not touched below them, in the form of `.gitignore`: a later pattern wins, `!` takes back.
    pub denied: Vec<String>,
    /// Files and folders that are not touched wherever they are met, nor made where they are not there: those of the program itself. Nor
    /// is a link on the way to one.
    pub ours: OwnPaths,
    /// Whether files that have several names may be read: other names may be outside of the roots.
    pub hard_links: bool,
    /// Where deleted things go; without it nothing is deleted.
    pub trash: Option<PathBuf>,
    /// The largest part of a text file that is read at once, in bytes.
    pub max_read_bytes: u64,
    /// The largest image that is read, in bytes.
    pub max_image_bytes: u64,
    /// The largest file that is written, in bytes.
    pub max_write_bytes: u64,
    /// The most entries that a listing names, and the most matches that a search gives.
    pub max_entries: usize,
}

impl FilesystemConfig {
    /// These roots with the default limits: 1 MiB read at once, images of 4 MiB, 8 MiB written, 1,000 entries. What looks
    /// like a secret is denied, files with several names are not read, and nothing is deleted.
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self {
            roots,
            denied: guard::SECRETS.iter().map(ToString::to_string).collect(),
            ours: OwnPaths::default(),
            hard_links: false,
            trash: None,
            max_read_bytes: 1024 * 1024,
            max_image_bytes: 4 * 1024 * 1024,
            max_write_bytes: 8 * 1024 * 1024,
            max_entries: 1_000,
        }
    }
}

/// What every tool works with.
#[derive(Debug)]
struct Shared {
    roots: Roots,
    config: FilesystemConfig,
    guard: Guard,
    ours: RwLock<Arc<Ours>>,
    trash: Option<Trash>,
    seen: Seen,
    /// Held from the read to the rename of a change, so that two changes of one file do not undo one another.
    changing: Changing,
}

impl Shared {
    fn open(config: FilesystemConfig) -> Result<Self, RootsError> {
        let trash = config.trash.as_deref().map(Trash::open).transpose()?;
        let roots = Roots::open(&config.roots)?;
        Ok(Self {
            guard: Guard::new(&config.denied, roots.named())?,
            roots,
            ours: RwLock::new(Arc::new(Ours::of(&config))),
            trash,
            seen: Seen::default(),
            changing: Changing::default(),
            config,
        })
    }

    /// What belongs to this program, as far as that is known by now.
    fn ours(&self) -> Arc<Ours> {
        let known = Arc::clone(&self.ours.read().unwrap_or_else(PoisonError::into_inner));
        if known.added == self.config.ours.added() {
            return known;
        }
        let ours = Arc::new(Ours::of(&self.config));
        *self.ours.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&ours);
        ours
    }
}

/// Who calls.
#[derive(Debug)]
struct Caller {
    cancel: CancellationToken,
    /// Whose reads and writes belong together: the conversation's, and where there is none the user's.
    who: String,
}

impl Caller {
    /// What the state of a file is remembered under.
    fn key(&self, spot: &Spot<'_>) -> seen::Key {
        (self.who.clone(), spot.place.root().to_owned(), spot.real.clone())
    }
}

/// The tool source `filesystem`: `read`, `write`, `edit`, `list`, `search`, `stat`, `move`, and with a trash `delete` and
/// `restore`.
///
/// # Errors
/// [`RootsError`] where no root is a folder that can be opened, a pattern says nothing, or the trash cannot be used.
pub fn filesystem(config: FilesystemConfig) -> Result<TypedSource, RootsError> {
    let shared = Arc::new(Shared::open(config)?);
    let has_trash = shared.trash.is_some();
    let roots = shared.roots.clone();
    let source = TypedSource::new("filesystem").writing(move |_, arguments| changing::written(&roots, arguments));
    let worker = Worker { shared, tracker: source.tracker().clone() };
    let reads = |name: &str, text: &str, title: &str| ToolSpec::new(name, text).title(title).read_only();
    let writes = |name: &str, text: &str, title: &str| ToolSpec::new(name, text).title(title).serial();
    let source = source
        .tool(reads("read", read::DESCRIPTION, "Read a file"), worker.clone().runs(read::read))
        .tool(writes("write", write::DESCRIPTION, "Write a file"), worker.clone().runs(write::write))
        .tool(writes("edit", edit::DESCRIPTION, "Edit a file"), worker.clone().runs(edit::edit))
        .tool(reads("list", list::DESCRIPTION, "List a folder"), worker.clone().runs(list::list))
        .tool(reads("search", search::DESCRIPTION, "Search files"), worker.clone().runs(search::search))
        .tool(reads("stat", stat::DESCRIPTION, "Describe a file"), worker.clone().runs(stat::stat))
        .tool(writes("move", moving::DESCRIPTION, "Move a file"), worker.clone().runs(moving::move_to));
    if !has_trash {
        return Ok(source);
    }
    Ok(source
        .tool(writes("delete", trash::DELETE, "Delete a file"), worker.clone().runs(trash::delete))
        .tool(writes("restore", trash::RESTORE, "Bring a deleted file back"), worker.runs(trash::restore)))
}

/// Carries file work to the blocking pool.
#[derive(Debug, Clone)]
struct Worker {
    shared: Arc<Shared>,
    tracker: TaskTracker,
}

type Work<A> = fn(&Shared, &A, &Caller) -> Result<ToolOutput, ToolError>;
type Working = futures_util::future::BoxFuture<'static, Result<ToolOutput, ToolError>>;

impl Worker {
    /// The async form of `work`. Work whose call is cancelled or dropped sees its token cancelled; a change of a file is
    /// finished or not begun, whichever it sees.
    fn runs<A: Send + 'static>(self, work: Work<A>) -> impl Fn(A, CallContext) -> Working + Send + Sync + 'static {
        move |arguments, context| {
            let Self { shared, tracker } = self.clone();
            Box::pin(async move {
                let cancel = context.cancel.child_token();
                let _given_up = cancel.clone().drop_guard();
                // No conversation has a space in its name: none is taken for a user of that name.
                let who = context.conversation.map_or_else(|| format!("user {}", context.user), |id| id.to_string());
                let caller = Caller { cancel, who };
                let task = tracker.spawn_blocking(move || work(&shared, &arguments, &caller));
                task.await.unwrap_or_else(|error| Err(failed(format!("the file work broke off: {error}"))))
            })
        }
    }
}
