//! Where a turn is at home: at the node that has what calls of its conversation left at sources that keep something
//! ([`crate::ToolSource::keeps_state`]).
//!
//! That decides nothing but who drives: where that node is gone, ends or does not answer, any other goes on, and the next call
//! says what is lost ([`crate::driver`]).

use turnwright_core::{DriverId, ToolDefinition};

use super::Offer;
use crate::StoreError;
use crate::inner::Inner;
use crate::live::Live;
use crate::uses::homes;

impl Offer {
    /// Whom the node of the process `own` hands it to; `None` where it drives it itself. Who let go of it does not get it back.
    pub(super) fn elsewhere(&self, own: &DriverId) -> Option<&DriverId> {
        let has_let_go = |home: &DriverId| self.let_go.as_ref().is_some_and(|claim| claim.driver == *home);
        self.home.as_ref().filter(|home| *home != own && !has_let_go(home))
    }
}

impl Inner {
    /// The process that has what the calls of a conversation left behind, and lives; `None` where there is none.
    pub(super) async fn home_of(&self, live: &Live) -> Result<Option<DriverId>, StoreError> {
        let homes = {
            let state = live.lock();
            homes(&state.journal, |tool| self.keeps_state(tool))
        };
        for home in homes {
            let is_own = home == *self.store.driver();
            let is_there = if is_own {
                !self.draining.is_cancelled() && !self.shutdown.is_cancelled()
            } else {
                self.store.is_alive(&home).await?
            };
            if is_there {
                return Ok(Some(home));
            }
        }
        Ok(None)
    }

    /// Whether the source of this tool keeps what its calls leave in the process that runs them.
    pub(crate) fn keeps_state(&self, tool: &ToolDefinition) -> bool {
        let sources = self.catalogs.sources();
        sources.iter().any(|source| source.name() == tool.source && source.keeps_state(&tool.tool))
    }
}

#[cfg(test)]
mod tests {
    use turnwright_core::Claim;

    use super::*;

    #[test]
    fn an_offer_goes_to_its_home_unless_that_is_here_or_let_go_of_it() {
        let driver = |name: &str| DriverId(name.to_owned());
        let to = |home: Option<&str>, let_go: Option<&str>| {
            let offer = Offer {
                conversation: "c".parse().unwrap(),
                let_go: let_go.map(|name| Claim { driver: driver(name), epoch: 1, folder: None }),
                home: home.map(driver),
            };
            offer.elsewhere(&driver("own")).cloned()
        };
        assert_eq!(to(None, None), None);
        assert_eq!(to(Some("own"), None), None);
        assert_eq!(to(Some("other"), None), Some(driver("other")));
        assert_eq!(to(Some("other"), Some("other")), None);
        assert_eq!(to(Some("other"), Some("own")), Some(driver("other")));
    }
}
