//! Files and folders below configured roots.
//!
//! Every tool works on a [`Place`](crate::roots::Place) and so cannot leave its root. Reading, listing, searching and
//! stat are declared read-only. Work happens on the blocking pool, owned by the source.

mod edit;
mod list;
mod open;
mod read;
mod search;
mod stat;
mod write;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_engine::source::{CallContext, ToolError, ToolOutput};

use crate::error::failed;
use crate::roots::Roots;
use crate::{RootsError, ToolSpec, TypedSource};

/// What the file tools may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesystemConfig {
    /// The folders that may be touched. Relative paths start at the first.
    pub roots: Vec<PathBuf>,
    /// The largest file or part of a file that is read at once, in bytes.
    pub max_read_bytes: u64,
    /// The largest file that is written, in bytes.
    pub max_write_bytes: u64,
    /// The most entries that a listing names, and the most matches that a search gives.
    pub max_entries: usize,
}

impl FilesystemConfig {
    /// These roots with the default limits: 1 MiB read at once, 8 MiB written, 1,000 entries.
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots, max_read_bytes: 1024 * 1024, max_write_bytes: 8 * 1024 * 1024, max_entries: 1_000 }
    }
}

/// What every tool works with.
#[derive(Debug)]
struct Shared {
    roots: Roots,
    config: FilesystemConfig,
    /// Held from the read to the rename of a change, so that two changes of one file do not undo one another.
    changing: Mutex<()>,
}

/// The tool source `filesystem`: `read`, `write`, `edit`, `list`, `search`, `stat`.
///
/// # Errors
/// [`RootsError`] where a root is not a folder that can be opened.
pub fn filesystem(config: FilesystemConfig) -> Result<TypedSource, RootsError> {
    let shared = Arc::new(Shared { roots: Roots::open(&config.roots)?, config, changing: Mutex::new(()) });
    let source = TypedSource::new("filesystem");
    let worker = Worker { shared, tracker: source.tracker().clone() };
    let source = source
        .tool(ToolSpec::new("read", read::DESCRIPTION).title("Read a file").read_only(), worker.clone().runs(read::read))
        .tool(ToolSpec::new("write", write::DESCRIPTION).title("Write a file").serial(), worker.clone().runs(write::write))
        .tool(ToolSpec::new("edit", edit::DESCRIPTION).title("Edit a file").serial(), worker.clone().runs(edit::edit))
        .tool(ToolSpec::new("list", list::DESCRIPTION).title("List a folder").read_only(), worker.clone().runs(list::list))
        .tool(
            ToolSpec::new("search", search::DESCRIPTION).title("Search files").read_only(),
            worker.clone().runs(search::search),
        )
        .tool(ToolSpec::new("stat", stat::DESCRIPTION).title("Describe a file").read_only(), worker.runs(stat::stat));
    Ok(source)
}

/// Carries file work to the blocking pool.
#[derive(Debug, Clone)]
struct Worker {
    shared: Arc<Shared>,
    tracker: TaskTracker,
}

type Work<A> = fn(&Shared, &A, &CancellationToken) -> Result<ToolOutput, ToolError>;
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
                let task = tracker.spawn_blocking(move || work(&shared, &arguments, &cancel));
                task.await.unwrap_or_else(|error| Err(failed(format!("the file work broke off: {error}"))))
            })
        }
    }
}
