//! Results that were too large to be shown whole, and the files of a person: read in parts, searched, asked.
//!
//! Every tool gives exact slices within a bound and holds no more of a file than a few pieces. What belongs to another user is
//! not there. All of them are declared read-only.

mod bytes;
mod json;
mod page;
mod query;
mod search;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::ContentBlock;
use turnwright_engine::artifacts::Artifacts;
use turnwright_engine::source::{CallContext, ToolError, ToolOutput};

use self::bytes::{Pieces, Whole};
use crate::error::failed;
use crate::{ToolSpec, TypedSource};

/// What the tools share.
#[derive(Debug)]
struct Shared {
    artifacts: Arc<dyn Artifacts>,
    /// The most text of one result, in bytes.
    most_bytes: usize,
    tracker: TaskTracker,
}

/// How much of a result is left for what is said beside the text.
const BESIDE_BYTES: usize = 1_024;
/// The least text of a result, in bytes.
const LEAST_BYTES: usize = 1_024;

/// The tool source `artifact`: `page`, `search` and `query`. None of their results has more than `shown_bytes` of text.
pub fn artifact(artifacts: Arc<dyn Artifacts>, shown_bytes: usize) -> TypedSource {
    let source = TypedSource::new("artifact");
    let most_bytes = shown_bytes.saturating_sub(BESIDE_BYTES).max(LEAST_BYTES);
    let shared = Arc::new(Shared { artifacts, most_bytes, tracker: source.tracker().clone() });
    let reads = |name: &str, text: &str, title: &str| ToolSpec::new(name, text).title(title).read_only();
    let (pages, searches, queries) = (shared.clone(), shared.clone(), shared);
    source
        .tool(reads("page", page::DESCRIPTION, "Read a part of a result"), move |arguments, context| {
            let shared = pages.clone();
            async move { page::page(&shared, arguments, &context).await }
        })
        .tool(reads("search", search::DESCRIPTION, "Search a result"), move |arguments, context| {
            let shared = searches.clone();
            async move { search::search(&shared, arguments, &context).await }
        })
        .tool(reads("query", query::DESCRIPTION, "Query a JSON result"), move |arguments, context| {
            let shared = queries.clone();
            async move { query::query(&shared, arguments, &context).await }
        })
}

impl Shared {
    /// Goes through an artifact on the blocking pool. Work whose call is cancelled or dropped finds no more pieces.
    async fn through<T: Send + 'static>(
        &self,
        whole: Whole,
        context: &CallContext,
        work: impl FnOnce(Pieces, &CancellationToken) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let cancel = context.cancel.child_token();
        let _given_up = cancel.clone().drop_guard();
        let pieces = whole.pieces(cancel.clone());
        let task = self.tracker.spawn_blocking(move || work(pieces, &cancel));
        task.await.unwrap_or_else(|error| Err(failed(format!("the reading broke off: {error}"))))
    }
}

/// A text as it is, and beside it what is said about it.
fn output(text: String, note: &str) -> ToolOutput {
    let mut content = Vec::with_capacity(2);
    if !text.is_empty() {
        content.push(ContentBlock::text(text));
    }
    content.push(ContentBlock::text(format!("[{note}]")));
    ToolOutput { content, ..ToolOutput::default() }
}
