//! Changes at servers of 2026-07-28, which tell of them only over a subscription.
//!
//! The notices that come over it are handled like any other ([`crate::transport`]): what matters here is that there always is
//! one. `rmcp`'s own subscription takes notices out of their order with the rest and loses those that come too fast.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use rmcp::model::{ClientRequest, CustomRequest, ErrorCode};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Value, json};

use crate::agreed::{Agreed, Offer};
use crate::connection::Connection;
use crate::log::LogOrigin;
use crate::supervisor::Shared;

/// The method that subscribes.
pub(crate) const LISTEN: &str = "subscriptions/listen";
/// How long is waited before it is asked again after an end, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// A subscription that lived so long ended for a reason of its own.
const LONG_LIVED: Duration = Duration::from_secs(10);
/// How often a server that cannot be subscribed to is listed.
const WITHOUT: Duration = Duration::from_mins(5);

/// How a subscription ended.
enum End {
    /// The server does not know them, or does not want one.
    Refused(String),
    /// It was lost, or ended by the server.
    Lost,
    /// Something else is wanted.
    Changed,
}

/// Listens for as long as the connection lives.
pub(crate) async fn listen(shared: &Shared, connection: &Connection) -> Infallible {
    let mut wanted = shared.shelving.watching.wanted();
    let mut pause = FIRST_PAUSE;
    let mut is_new = true;
    loop {
        let resources = wanted.borrow_and_update().clone();
        let Some(filter) = filter(&connection.agreed, &resources) else {
            if wanted.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            continue;
        };
        let since = tokio::time::Instant::now();
        let end = tokio::select! {
            end = subscription(connection, filter) => end,
            Ok(()) = wanted.changed() => End::Changed,
        };
        match end {
            End::Changed => {}
            End::Refused(reason) => {
                if std::mem::take(&mut is_new) {
                    let minutes = WITHOUT.as_secs() / 60;
                    let text = format!("it cannot be listened to, and is listed every {minutes} minutes: {reason}");
                    shared.log.push(LogOrigin::Host, &text);
                }
                tokio::time::sleep(WITHOUT).await;
                look_again(shared, connection, &resources);
            }
            End::Lost => {
                pause = if since.elapsed() > LONG_LIVED { FIRST_PAUSE } else { (pause * 2).min(MAX_PAUSE) };
                tokio::time::sleep(pause).await;
                // What changed meanwhile was not told.
                look_again(shared, connection, &resources);
            }
        }
    }
}

fn look_again(shared: &Shared, connection: &Connection, resources: &BTreeSet<String>) {
    connection.wire.tools_changed.notify_one();
    connection.wire.shelf_changed.notify_one();
    for uri in resources {
        shared.shelving.watching.changed(uri);
    }
}

/// One subscription, until it ends; dropping this takes it back.
async fn subscription(connection: &Connection, filter: Value) -> End {
    let request = ClientRequest::CustomRequest(CustomRequest::new(LISTEN, Some(json!({"notifications": filter}))));
    let sent = connection.peer.send_request_with_option(request, PeerRequestOptions::no_options());
    let Ok(handle) = sent.await else { return End::Lost };
    let mut open = Open { handle: Some(handle), connection };
    let answer = match &mut open.handle {
        Some(handle) => (&mut handle.rx).await,
        None => return End::Lost,
    };
    open.handle = None;
    match answer {
        Ok(Err(ServiceError::McpError(error))) if is_refusal(error.code) => {
            End::Refused(format!("{} ({})", error.message, error.code.0))
        }
        _ => End::Lost,
    }
}

fn is_refusal(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::METHOD_NOT_FOUND | ErrorCode::INVALID_REQUEST | ErrorCode::INVALID_PARAMS)
}

/// A subscription that is taken back when it is dropped.
struct Open<'a> {
    handle: Option<rmcp::service::RequestHandle<rmcp::RoleClient>>,
    connection: &'a Connection,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.handle.take(), tokio::runtime::Handle::try_current()) {
            let told = async move {
                drop(tokio::time::timeout(Duration::from_secs(2), handle.cancel(None)).await);
            };
            self.connection.tracker.spawn_on(told, &runtime);
        }
    }
}

/// What is asked for: what the server says that it tells, and the resources that somebody watches.
fn filter(agreed: &Agreed, resources: &BTreeSet<String>) -> Option<Value> {
    let mut filter = serde_json::Map::new();
    for (offer, name) in [
        (Offer::ToolChanges, "toolsListChanged"),
        (Offer::PromptChanges, "promptsListChanged"),
        (Offer::ResourceChanges, "resourcesListChanged"),
    ] {
        if agreed.offers(offer) {
            filter.insert(name.to_owned(), true.into());
        }
    }
    if !resources.is_empty() {
        filter.insert("resourceSubscriptions".to_owned(), json!(resources));
    }
    (!filter.is_empty()).then_some(Value::Object(filter))
}
