//! What calls ask of people, and what is closed since nobody waits for its answer any more.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::mpsc;
use turnwright_core::{
    AnswerAction, AnsweredBy, CallId, ConversationId, Elicitation, ElicitationId, Hold, Journal, UserId, Wants,
};

use super::Engine;
use crate::live::Live;
use crate::{Completed, EngineError, Reply};

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
    /// Answers, from here on, what people were to open in a browser once their source says that it is done there.
    pub fn hear_completed(&self, mut completed: mpsc::Receiver<Completed>) {
        let engine = self.clone();
        self.inner.tasks.spawn(async move {
            loop {
                let completed = tokio::select! {
                    biased;
                    () = engine.inner.shutdown.cancelled() => return,
                    completed = completed.recv() => completed,
                };
                let Some(completed) = completed else { return };
                if let Err(error) = engine.complete(&completed).await {
                    tracing::warn!(source = completed.source, %error, "what a tool says is done in a browser stays asked");
                }
            }
        });
    }

    async fn complete(&self, completed: &Completed) -> Result<(), EngineError> {
        let is_meant = |question: &WaitingQuestion| {
            let is_address = matches!(question.ask.wants, Wants::Url { .. });
            is_address && question.source == completed.source && question.ask.key == completed.key
        };
        // Whoever's conversation it is: nobody asks for it here but its source.
        let open = self.inner.store.open_turns().await?;
        let owners: BTreeSet<UserId> = open.into_iter().map(|open| open.owner).collect();
        for engine in owners.into_iter().map(|owner| self.acting_for(owner)) {
            for question in engine.all_questions().await?.into_iter().filter(is_meant) {
                let reply = Reply::of(AnswerAction::Accept);
                match engine.answer_by(&question.conversation, question.id, reply, (AnsweredBy::Asker, None)).await {
                    Ok(_) | Err(EngineError::NotAsked { .. }) => {}
                    Err(error) => {
                        tracing::warn!(conversation = %question.conversation, %error, "what a tool says is done in a browser stays asked");
                    }
                }
            }
        }
        Ok(())
    }

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
