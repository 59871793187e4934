//! `[loops]`: when a model that goes in circles is told, asked about and stopped (docs/loops.md).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwright_core::LoopLimits;

/// After how many times of the same calls with the same results something is done; 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoopsConfig {
    /// The model is told beside the result.
    #[schemars(range(min = 0))]
    pub nudge: u32,
    /// A person is asked before it goes on, where the approve mode asks people.
    #[schemars(range(min = 0))]
    pub ask: u32,
    /// The turn is stopped.
    #[schemars(range(min = 0))]
    pub stop: u32,
}

impl Default for LoopsConfig {
    fn default() -> Self {
        let LoopLimits { nudge, ask, stop } = LoopLimits::default();
        Self { nudge: nudge.unwrap_or(0), ask: ask.unwrap_or(0), stop: stop.unwrap_or(0) }
    }
}

impl LoopsConfig {
    /// What a turn runs with.
    pub fn limits(self) -> LoopLimits {
        let limit = |times: u32| (times > 0).then_some(times);
        LoopLimits { nudge: limit(self.nudge), ask: limit(self.ask), stop: limit(self.stop) }
    }

    /// The keys whose value is no number of repetitions: what came once does not repeat.
    pub(crate) fn wrong(self) -> impl Iterator<Item = &'static str> {
        [("nudge", self.nudge), ("ask", self.ask), ("stop", self.stop)]
            .into_iter()
            .filter(|(_, times)| *times == 1)
            .map(|(key, _)| key)
    }
}
