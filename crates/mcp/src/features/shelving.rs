//! Keeps what a server offers besides tools: listed after each start, and again when the server says that it changed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::items::Shelf;
use super::pages::{Pages, list};
use super::watching::Watching;
use crate::again::{Again, Listed};
use crate::agreed::Offer;
use crate::connection::Connection;
use crate::log::LogOrigin;
use crate::supervisor::{BURST, LIST_GAP, Shared};

/// What is known of one server, over all of its starts.
#[derive(Debug)]
pub(crate) struct Shelving {
    shelf: watch::Sender<Option<Arc<Shelf>>>,
    pub(crate) watching: Watching,
}

impl Shelving {
    /// `kept` is what was known before.
    pub(crate) fn new(kept: Option<Shelf>) -> Self {
        Self { shelf: watch::Sender::new(kept.map(Arc::new)), watching: Watching::default() }
    }

    /// What it offers, or offered the last time.
    pub(crate) fn known(&self) -> Option<Arc<Shelf>> {
        self.shelf.borrow().clone()
    }

    /// The same, waited for at most `limit`.
    pub(super) async fn listed(&self, limit: Duration) -> Option<Arc<Shelf>> {
        let mut changes = self.shelf.subscribe();
        let known = tokio::time::timeout(limit, changes.wait_for(Option::is_some)).await.ok()?.ok()?;
        known.clone()
    }
}

/// Lists, and lists again when it is told to: once for each burst of notices, and not more often than the gap allows. Also where
/// the server failed to list something, after a while.
pub(crate) async fn keep(shared: &Shared, connection: &Connection) -> Infallible {
    let mut again = Again::default();
    again.after(list_all(shared, connection).await);
    loop {
        tokio::select! {
            () = connection.wire.shelf_changed.notified() => tokio::time::sleep(BURST).await,
            () = again.due() => {}
        }
        again.after(list_all(shared, connection).await);
        tokio::time::sleep(LIST_GAP).await;
    }
}

async fn list_all(shared: &Shared, connection: &Connection) -> Listed {
    let (shelf, listed) = shelf_of(shared, connection).await;
    put(shared, shelf.without(&shared.log.secrets()));
    listed
}

fn put(shared: &Shared, shelf: Shelf) {
    let known = shared.shelving.known();
    if known.as_deref() == Some(&shelf) {
        return;
    }
    for problem in &shelf.problems {
        if !known.as_ref().is_some_and(|known| known.problems.contains(problem)) {
            shared.log.push(LogOrigin::Host, problem);
        }
    }
    shared.surroundings.definitions.keep_shelf(&shared.config, &shelf);
    shared.shelving.shelf.send_replace(Some(Arc::new(shelf)));
}

async fn shelf_of(shared: &Shared, connection: &Connection) -> (Shelf, Listed) {
    let (limit, agreed) = (shared.config.start_limit, &connection.agreed);
    let known = shared.shelving.known().unwrap_or_default();
    let (mut shelf, mut listed) = (Shelf::default(), Listed::Known);
    if agreed.offers(Offer::Resources) {
        let (resources, templates) =
            tokio::join!(list(connection, "resources/list", limit), list(connection, "resources/templates/list", limit));
        let problems = &mut shelf.problems;
        listed = listed.and(take(&mut shelf.resources, resources, &known.resources, problems));
        listed = listed.and(take(&mut shelf.templates, templates, &known.templates, problems));
    }
    if agreed.offers(Offer::Prompts) {
        let prompts = list(connection, "prompts/list", limit).await;
        listed = listed.and(take(&mut shelf.prompts, prompts, &known.prompts, &mut shelf.problems));
    }
    (shelf, listed)
}

/// Takes what was listed. A list that the server failed to give says nothing about what it has: what was known stays then.
fn take<T: Clone>(items: &mut Vec<T>, pages: Pages<T>, known: &[T], problems: &mut Vec<String>) -> Listed {
    let Pages { items: read, problems: told, listed } = pages;
    problems.extend(told);
    *items = match listed {
        Listed::Failed if !known.is_empty() => known.to_vec(),
        Listed::Failed | Listed::Known => read,
    };
    listed
}
