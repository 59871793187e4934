//! Keeps what a server offers besides tools: listed after each start, and again when the server says that it changed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::items::Shelf;
use super::pages::{Pages, list};
use super::watching::Watching;
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

/// Lists, and lists again when it is told to: once for each burst of notices, and not more often than the gap allows.
pub(crate) async fn keep(shared: &Shared, connection: &Connection) -> Infallible {
    put(shared, shelf_of(shared, connection).await);
    loop {
        connection.wire.shelf_changed.notified().await;
        tokio::time::sleep(BURST).await;
        put(shared, shelf_of(shared, connection).await);
        tokio::time::sleep(LIST_GAP).await;
    }
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

async fn shelf_of(shared: &Shared, connection: &Connection) -> Shelf {
    let (limit, agreed) = (shared.config.start_limit, &connection.agreed);
    let mut shelf = Shelf::default();
    if agreed.offers(Offer::Resources) {
        let (resources, templates) =
            tokio::join!(list(connection, "resources/list", limit), list(connection, "resources/templates/list", limit));
        take(&mut shelf.resources, resources, &mut shelf.problems);
        take(&mut shelf.templates, templates, &mut shelf.problems);
    }
    if agreed.offers(Offer::Prompts) {
        take(&mut shelf.prompts, list(connection, "prompts/list", limit).await, &mut shelf.problems);
    }
    shelf
}

fn take<T>(items: &mut Vec<T>, pages: Pages<T>, problems: &mut Vec<String>) {
    *items = pages.items;
    problems.extend(pages.problems);
}
