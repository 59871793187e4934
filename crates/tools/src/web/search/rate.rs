//! How often is searched.

use std::time::Duration;

use turnwright_core::ToolErrorKind;
use turnwright_engine::source::ToolError;
use turnwright_engine::{Admission, Rate, Rates};

use crate::error::failed;

/// In which time searches are counted.
const WINDOW: Duration = Duration::from_mins(1);

/// By what all who use a store count their searches.
const NAME: &str = "web search";

/// Counts a search, or says when the next one may be.
pub(super) async fn admit(rates: &dyn Rates, per_minute: u32) -> Result<(), ToolError> {
    match rates.admit(NAME, Rate { most: per_minute, within: WINDOW }).await {
        Ok(Admission::Counted) => Ok(()),
        Ok(Admission::NotFor { wait }) => {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            Err(failed(format!(
                "searches are limited to {per_minute} a minute; the next one may be in {seconds} s. Go on with what is known until then"
            )))
        }
        Err(error) => {
            let text = "searches cannot be counted at the moment, so none is made; try again later";
            Err(ToolError { diagnostic: Some(error.to_string()), ..ToolError::new(ToolErrorKind::Unavailable, text) })
        }
    }
}

#[cfg(test)]
mod tests {
    use turnwright_engine::rates::RatesHere;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_search_too_many_is_told_when_the_next_one_may_be() {
        let rates = RatesHere::default();
        let ask = async || admit(&rates, 1).await.map_err(|error| error.model_text);
        assert_eq!(ask().await, Ok(()));
        tokio::time::advance(Duration::from_millis(44_500)).await;
        let text = "searches are limited to 1 a minute; the next one may be in 16 s. Go on with what is known until then";
        assert_eq!(ask().await, Err(text.to_owned()));
        tokio::time::advance(Duration::from_millis(15_500)).await;
        assert_eq!(ask().await, Ok(()));
    }
}
