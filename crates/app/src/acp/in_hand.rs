//! The prompts that were read and are not answered, so that a stop reaches also one whose message is not stored yet, and none
//! that is read after it.

use std::sync::{Mutex, PoisonError};

use agent_client_protocol::v1::schema::SessionId;
use tokio::sync::watch;

/// The prompts in hand, by session.
#[derive(Debug, Default)]
pub(super) struct InHand {
    prompts: Mutex<Vec<(SessionId, watch::Sender<bool>)>>,
}

/// A prompt in hand, until it is dropped.
#[derive(Debug)]
pub(super) struct Prompted {
    is_stopped: watch::Receiver<bool>,
}

impl InHand {
    /// One more; in the order in which the client's messages are read.
    pub(super) fn begin(&self, session: &SessionId) -> Prompted {
        let (stop, is_stopped) = watch::channel(false);
        let mut prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        prompts.retain(|(_, stop)| !stop.is_closed());
        prompts.push((session.clone(), stop));
        Prompted { is_stopped }
    }

    /// Stops those of a session that are in hand; whether any is.
    pub(super) fn stop(&self, session: &SessionId) -> bool {
        let prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_session = prompts.iter().filter(|(of, _)| of == session);
        of_session.fold(false, |any, (_, stop)| stop.send(true).is_ok() || any)
    }
}

impl Prompted {
    /// Waits until the client stops it.
    pub(super) async fn stopped(&self) {
        let mut is_stopped = self.is_stopped.clone();
        let is_told = is_stopped.wait_for(|is_stopped| *is_stopped).await.is_ok();
        if !is_told {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_for_the_prompts_of_its_session_that_were_read_before_it() {
        let (here, elsewhere) = (SessionId::new("here"), SessionId::new("elsewhere"));
        let in_hand = InHand::default();
        drop(in_hand.begin(&here));
        assert!(!in_hand.stop(&here), "that one was answered");
        let (first, second, other) = (in_hand.begin(&here), in_hand.begin(&here), in_hand.begin(&elsewhere));
        assert!(in_hand.stop(&here));
        let later = in_hand.begin(&here);
        let stopped = [&first, &second, &other, &later].map(|prompt| *prompt.is_stopped.borrow());
        assert_eq!(stopped, [true, true, false, false]);
    }
}
