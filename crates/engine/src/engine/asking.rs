//! What calls ask of people, and what is closed since nobody waits for its answer any more.

use std::sync::Arc;

use turnwright_core::{CallId, ConversationId, Elicitation, ElicitationId, Hold, Journal, Wants};

use super::Engine;
use crate::EngineError;
use crate::live::Live;

/// A question that a call asks of people.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingQuestion {
    /// Its conversation.
    pub conversation: ConversationId,
    /// Its name.
    pub id: ElicitationId,
    /// The call that asks.
    pub call: CallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The call's arguments, JSON text as the model wrote it.
    pub arguments: String,
    /// Who asks: the tool source's name.
    pub source: String,
    /// What it asks.
    pub ask: Elicitation,
    /// What the call does meanwhile.
    pub hold: Hold,
}

impl WaitingQuestion {
    /// The host of the address that it wants to have opened, where it wants that and the address has one.
    pub fn host(&self) -> Option<&str> {
        match &self.ask.wants {
            Wants::Url { url } => host_of(url),
            Wants::Form { .. } | Wants::Sampling { .. } => None,
        }
    }
}

/// The host of an address. Who is named before an `@` is not it.
fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    (!host.is_empty()).then_some(host)
}

/// The open questions of a conversation.
pub fn questions_in(id: &ConversationId, journal: &Journal) -> Vec<WaitingQuestion> {
    let Some(turn) = journal.open_turn() else { return Vec::new() };
    turn.questions()
        .map(|question| WaitingQuestion {
            conversation: id.clone(),
            id: question.id,
            call: question.call.id,
            name: question.call.name.to_owned(),
            arguments: question.call.arguments.to_owned(),
            source: question.source.to_owned(),
            ask: question.ask.clone(),
            hold: question.hold,
        })
        .collect()
}

impl Engine {
    /// Where the process is gone whose call holds its connection for the answer, its turn is taken up: that closes the question.
    pub(super) async fn close_what_is_gone(&self, live: &Arc<Live>, question: ElicitationId) -> Result<(), EngineError> {
        let claimer = {
            let state = live.lock();
            let open = state.journal.open_turn();
            let held = open.and_then(|turn| {
                let asked = turn.questions().find(|open| open.id == question)?;
                matches!(asked.hold, Hold::Connection { .. }).then(|| turn.claim().map(|claim| claim.driver.clone()))?
            });
            match held {
                Some(driver) if !state.is_driven => driver,
                Some(_) | None => return Ok(()),
            }
        };
        let is_gone = claimer == *self.inner.store.driver() || !self.inner.store.is_alive(&claimer).await?;
        if is_gone {
            self.take_up(live).await?;
            return Err(EngineError::NotAsked { question, why: "the process whose call asked is gone".to_owned() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn the_host_is_the_one_that_a_browser_would_ask() {
        let cases = [
            ("https://pay.example.org:8443/a?b#c", Some("pay.example.org:8443")),
            ("https://good.example@bad.example/good.example", Some("bad.example")),
            ("https://bad.example\\@good.example/", Some("bad.example")),
            ("https://bad.example?@good.example/", Some("bad.example")),
            ("mailto:a@b.org", None),
            ("https:///path", None),
        ];
        for (url, host) in cases {
            assert_eq!(host_of(url), host, "{url}");
        }
    }
}
