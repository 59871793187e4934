//! What system and developer items say that stand beside a `previous_response_id`: it is said before the conversation from that response
//! on, and not where a branch goes on from an earlier one. What each response added is kept beside the conversation, whose system prompt
//! says it without saying since when.
//!
//! It is stored together with the message beside which it came ([`ADDED`]), and the system prompt after that. Where a process ends in
//! between, whoever goes on from that response, or sends the same request again, finishes it.

use turnwright_core::{Control, ConversationId, Entry, Journal, Seq};
use turnwright_engine::{Conversation, ConversationChange, EngineError, SettingsOverlay, StoreError, beside_message};

use crate::error::ApiError;
use crate::state::ServerState;

/// Under which name, with the place of a message, it is kept what came beside that.
pub(crate) const ADDED: &str = "developers/added";

/// Sees to it that what came beside the message of a response is said in all of the chain from there on.
pub(crate) async fn finish(state: &ServerState, (chain, after): (&ConversationId, Seq)) -> Result<(), ApiError> {
    let engine = state.engine();
    let Some(system) = engine.kept_beside(chain, &beside_message(ADDED, after)).await? else { return Ok(()) };
    if engine.kept_beside(chain, &settled(after)).await?.is_some() {
        return Ok(());
    }
    stays_in_chain(state, (chain, after), &system).await
}

/// Says it in all of the chain of responses from the one after this entry on, as the chain's other items are.
pub(crate) async fn stays_in_chain(
    state: &ServerState,
    (chain, after): (&ConversationId, Seq),
    system: &str,
) -> Result<(), ApiError> {
    loop {
        let of = state.engine().conversation(chain).await?;
        let said = with_more(of.overlay.system_prompt.clone(), Some(system));
        if said == of.overlay.system_prompt {
            break;
        }
        // First: what is said and of no response would be said in every branch.
        state.engine().keep_beside(chain, &name(after), system).await?;
        if prompted(state, of, said).await? == Stored::Yes {
            break;
        }
    }
    Ok(state.engine().keep_beside(chain, &settled(after), "").await?)
}

/// Takes what came behind the response after `after` in `of` out of what is said before the conversation `copy`, which was made of that.
pub(crate) async fn leave_later_out(
    state: &ServerState,
    mut copy: Conversation,
    (of, after): (&ConversationId, Seq),
) -> Result<(), ApiError> {
    loop {
        let mut prompt = copy.overlay.system_prompt.clone();
        let later = state.engine().look(of, |journal| begin_behind(journal, after)).await?;
        for response in later {
            if prompt.is_none() {
                break;
            }
            if let Some(added) = state.engine().kept_beside(of, &name(response)).await? {
                prompt = prompt.and_then(|prompt| without(prompt, &added));
            }
        }
        if copy.overlay.system_prompt == prompt {
            return Ok(());
        }
        let id = copy.id.clone();
        if prompted(state, copy, prompt).await? == Stored::Yes {
            return Ok(());
        }
        copy = state.engine().conversation(&id).await?;
    }
}

/// Whether a change was stored, or somebody else was first.
#[derive(Debug, PartialEq, Eq)]
enum Stored {
    Yes,
    No,
}

async fn prompted(state: &ServerState, of: Conversation, system_prompt: Option<String>) -> Result<Stored, ApiError> {
    let overlay = SettingsOverlay { system_prompt, ..of.overlay.clone() };
    let id = of.id.clone();
    let change = ConversationChange { title: None, overlay: Some(overlay), of: Some(of) };
    match state.engine().update(&id, change).await {
        Err(EngineError::Store(StoreError::Changed { .. })) => Ok(Stored::No),
        changed => changed.map(|_| Stored::Yes).map_err(ApiError::from),
    }
}

/// The entries behind this one after which a response may come, the newest first.
fn begin_behind(journal: &Journal, after: Seq) -> Vec<Seq> {
    let behind = journal.entries().iter().rev().take_while(|stored| stored.seq > after);
    let may_begin = behind.filter(|stored| match &*stored.entry {
        // One that makes no calls is the end of its response.
        Entry::Assistant(message) => message.calls().next().is_some(),
        Entry::User(_) | Entry::Question(_) | Entry::Elicited(_) | Entry::Result(_) => true,
        Entry::Control(control) => {
            matches!(control, Control::Suspended | Control::Ended { .. } | Control::Hidden { .. })
        }
        Entry::Decision(_) | Entry::Started(_) | Entry::TaskAccepted(_) | Entry::Answered(_) | Entry::Sampled(_) => false,
    });
    may_begin.map(|stored| stored.seq).collect()
}

fn name(after: Seq) -> String {
    format!("developers/{after}")
}

/// Kept once it is said: what people make of the system prompt later is theirs.
fn settled(after: Seq) -> String {
    format!("developers/said/{after}")
}

/// What is said before a conversation, with what a request adds to that where it was not added last.
pub(crate) fn with_more(before: Option<String>, more: Option<&str>) -> Option<String> {
    match (before, more) {
        (Some(before), Some(more)) if shorter(&before, more).is_some() => Some(before),
        (before, more) => joined([before, more.map(str::to_owned)]),
    }
}

/// What is said before a conversation, one below the other.
pub(crate) fn joined<const COUNT: usize>(said: [Option<String>; COUNT]) -> Option<String> {
    said.into_iter().flatten().reduce(|before, more| format!("{before}\n\n{more}"))
}

/// The same without what was added, where that was added last; nothing where there was nothing before.
fn without(prompt: String, added: &str) -> Option<String> {
    if prompt == added {
        return None;
    }
    Some(shorter(&prompt, added).map(str::to_owned).unwrap_or(prompt))
}

/// What stands before what was added last.
fn shorter<'a>(prompt: &'a str, added: &str) -> Option<&'a str> {
    let before = prompt.strip_suffix(added)?;
    if before.is_empty() { Some(before) } else { before.strip_suffix("\n\n") }
}
