//! What a call comes to at its source: from the cache where its operator allows that, and tried again where that is safe.

use std::time::Duration;

use turnwright_core::ToolErrorKind;

use crate::catalog::CatalogTool;
use crate::result_cache::{Found, ResultCache, key};
use crate::{CallContext, SourceCall, SourceState, ToolError, ToolReply};

/// The pauses before a call is made again whose source was not there.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];

/// Whether people may be asked by the call itself, which is made again with their answers then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parking {
    /// They may.
    Possible,
    /// Nobody is there.
    Impossible,
}

/// What a call came to.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) reply: ToolReply,
    /// Whether it was made before, and this is what came of it then.
    pub(super) is_cached: bool,
}

/// Makes a call, unless the cache has what it comes to.
pub(super) async fn make(
    cache: &ResultCache,
    tool: &CatalogTool,
    call: SourceCall,
    context: CallContext,
    parking: Parking,
) -> Result<Made, ToolError> {
    // What was begun before goes on; what it comes to is no answer to others.
    let is_first = context.resume.is_none() && context.task.is_none();
    let Some(time_to_live) = tool.source.cache_ttl(&call.tool).filter(|ttl| is_first && !ttl.is_zero()) else {
        let reply = attempts(tool, call, context, parking).await?;
        return Ok(Made { reply, is_cached: false });
    };
    let key = key(tool.source.name(), &tool.hash, &call, &context.user);
    let flight = match cache.look(key).await {
        Found::Hit(output) => return Ok(Made { reply: ToolReply::Done(output), is_cached: true }),
        Found::Miss(flight) => flight,
    };
    // The same call of another may have been waited for.
    if context.cancel.is_cancelled() {
        return Err(ToolError::new(ToolErrorKind::Cancelled, format!("`{}` was cancelled before it was called.", call.tool)));
    }
    let reply = attempts(tool, call, context, parking).await?;
    if let ToolReply::Done(output) = &reply {
        cache.keep(flight, output, time_to_live);
    }
    Ok(Made { reply, is_cached: false })
}

/// Makes a call, and makes it again where its source was not there and its operator says that running it twice is the same
/// as running it once. Each attempt has the same idempotency key; the call's limits hold for all of them together.
async fn attempts(
    tool: &CatalogTool,
    call: SourceCall,
    context: CallContext,
    parking: Parking,
) -> Result<ToolReply, ToolError> {
    let may_repeat = tool.definition.declared.is_replayable() && context.task.is_none() && context.resume.is_none();
    let mut pauses = PAUSES.iter().filter(|_| may_repeat);
    loop {
        let again = pauses.next();
        let (this, within) = match again {
            Some(_) => (call.clone(), context.clone()),
            // Nothing comes after it: what it needs is not copied.
            None => return once(tool, call, context, parking).await,
        };
        let error = match once(tool, this, within, parking).await {
            Err(error) if error.kind == ToolErrorKind::Unavailable => error,
            done => return done,
        };
        let is_for_good = match tool.source.state() {
            SourceState::Disabled | SourceState::NeedsSignIn { .. } | SourceState::Stopped => true,
            SourceState::Starting | SourceState::Ready | SourceState::Failing { .. } => false,
        };
        let (false, Some(pause)) = (is_for_good || context.cancel.is_cancelled(), again) else { return Err(error) };
        tracing::debug!(tool = tool.definition.name, error = error.model_text, "a call is made again");
        tokio::select! {
            // First: a call that is told to end is not made again.
            biased;
            () = context.cancel.cancelled() => return Err(error),
            () = tokio::time::sleep(*pause) => {}
        }
    }
}

async fn once(tool: &CatalogTool, call: SourceCall, context: CallContext, parking: Parking) -> Result<ToolReply, ToolError> {
    match parking {
        Parking::Possible => tool.source.advance(call, context).await,
        Parking::Impossible => tool.source.call(call, context).await.map(ToolReply::Done),
    }
}
