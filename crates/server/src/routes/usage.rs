//! What models were asked.

use axum::response::Response;
use http::StatusCode;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};
use serde::Deserialize;
use turnwright_api as api;
use turnwright_core::Usage;
use turnwright_engine::Spent;

use super::json;
use crate::error::ApiError;
use crate::extract::{Search, State};
use crate::openapi::Refused;
use crate::report;

/// How many days are told where nobody says.
const DAYS: i32 = 30;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Days {
    /// The first day (UTC), such as `2026-11-01`; 30 days up to the last one where absent.
    #[param(pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    from: Option<String>,
    /// The last day; today where absent.
    #[param(pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    until: Option<String>,
}

/// What models were asked and what that cost, by day and model.
#[utoipa::path(
    get,
    path = "/usage",
    operation_id = "getUsage",
    tag = "installation",
    params(Days),
    responses((status = 200, description = "It.", body = api::UsageReport), Refused)
)]
pub(super) async fn usage(State(state): State, Search(days): Search<Days>) -> Result<Response, ApiError> {
    let until = match days.until.as_deref() {
        Some(text) => day("until", text)?,
        None => date_of(state.engine().clock().now_ms()),
    };
    let from = match days.from.as_deref() {
        Some(text) => day("from", text)?,
        None => until.saturating_sub((DAYS - 1).days()),
    };
    if from > until {
        return Err(ApiError::bad_request("invalid_query", format!("from is {from}, which is after {until}")));
    }
    let lines = state.engine().spent(start_of(from), start_of(until.saturating_add(1.day()))).await?;
    Ok(json(StatusCode::OK, told(&lines, from, until)))
}

fn told(lines: &[Spent], from: Date, until: Date) -> api::UsageReport {
    let line = |spent: &Spent| {
        let day = date_of(spent.day.saturating_mul(86_400_000)).to_string();
        let model = format!("{}/{}", spent.provider, spent.model);
        let usage = report::usage(spent.usage);
        api::UsageLine { id: format!("{day}/{model}"), day, model, model_calls: spent.model_calls, usage }
    };
    let total = lines.iter().fold(Usage::default(), |sum, spent| sum.plus(spent.usage));
    api::UsageReport {
        data: lines.iter().map(line).collect(),
        next_cursor: None,
        has_more: false,
        from: from.to_string(),
        until: until.to_string(),
        model_calls: lines.iter().map(|spent| spent.model_calls).sum(),
        total: report::usage(total),
    }
}

fn day(name: &str, text: &str) -> Result<Date, ApiError> {
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        ApiError::bad_request("invalid_query", format!("{name} is {shown:?}, it must be a day such as 2026-11-01"))
    })
}

fn date_of(at_ms: u64) -> Date {
    let time = i64::try_from(at_ms).ok().and_then(|at_ms| Timestamp::from_millisecond(at_ms).ok());
    time.unwrap_or(Timestamp::MAX).to_zoned(jiff::tz::TimeZone::UTC).date()
}

/// The first millisecond of a day in UTC; 0 before 1970.
fn start_of(day: Date) -> u64 {
    let start = day.to_zoned(jiff::tz::TimeZone::UTC).map(|start| start.timestamp().as_millisecond());
    start.ok().and_then(|start| u64::try_from(start).ok()).unwrap_or_default()
}
