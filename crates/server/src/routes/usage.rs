//! What models were asked and what tools did.

use axum::response::Response;
use http::StatusCode;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};
use serde::Deserialize;
use turnwright_api as api;
use turnwright_core::budgets::Budgeted;
use turnwright_core::{Usage, UserId};
use turnwright_engine::{Spending, Spent, ToolUse};

use super::json;
use crate::error::ApiError;
use crate::extract::{PageQuery, Search, State, Undivided, falling, id};
use crate::openapi::{NotThere, Refused};
use crate::report;
use crate::state::ServerState;

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
    /// A conversation whose own budget, and that of its newest turn, are told too.
    conversation: Option<String>,
}

/// What models were asked and what that cost, and what tools and turns came to, by day.
#[utoipa::path(
    get,
    path = "/usage",
    operation_id = "getUsage",
    tag = "installation",
    params(Days),
    responses((status = 200, description = "It.", body = api::UsageReport), Refused, NotThere)
)]
pub(super) async fn usage(State(state): State, _: Undivided, Search(days): Search<Days>) -> Result<Response, ApiError> {
    let (from, until) = span(&state, &days)?;
    let spending = state.engine().spent(start_of(from), end_of(until)).await?;
    let conversation = days.conversation.as_deref().map(id).transpose()?;
    let budgets = state.engine().budgets(conversation.as_ref()).await?;
    Ok(json(StatusCode::OK, told(&spending, &budgets, from, until)))
}

/// What the conversations of each user used, for admins; those who used nothing are left out.
#[utoipa::path(
    get,
    path = "/usage/users",
    operation_id = "getUsageOfUsers",
    tag = "installation",
    params(Days, PageQuery),
    responses((status = 200, description = "A page of them, the most used first.", body = api::List<api::UserUsageLine>), Refused)
)]
pub(super) async fn of_users(
    State(state): State,
    Search(days): Search<Days>,
    Search(page): Search<PageQuery>,
) -> Result<Response, ApiError> {
    let (from, until) = span(&state, &days)?;
    let (from_ms, until_ms) = (start_of(from), end_of(until));
    let mut users = vec![(UserId::local(), UserId::LOCAL.to_owned())];
    if let Ok(accounts) = state.accounts() {
        let all = accounts.users().await?.into_iter().filter(|user| !user.id.is_local());
        users.extend(all.map(|user| (user.id, user.name)));
    }
    let mut lines = Vec::new();
    for (user, name) in users {
        let spending = state.engine().acting_for(user.clone()).spent(from_ms, until_ms).await?;
        if spending != Spending::default() {
            lines.push(line_of(&user, name, &spending));
        }
    }
    let place = |line: &api::UserUsageLine| {
        let [models, tools, turns] = [line.model_calls, line.tool_calls, line.turns].map(falling);
        format!("{models}_{tools}_{turns}_{}", line.id)
    };
    Ok(json(StatusCode::OK, page.part("usage/users", lines, place)?))
}

fn line_of(user: &UserId, name: String, spending: &Spending) -> api::UserUsageLine {
    let usage = spending.models.iter().fold(Usage::default(), |sum, spent| sum.plus(spent.usage));
    api::UserUsageLine {
        id: user.to_string(),
        name,
        turns: spending.turns.iter().map(|day| day.turns).sum(),
        failed_turns: spending.turns.iter().map(|day| day.failures).sum(),
        model_calls: spending.models.iter().map(|spent| spent.model_calls).sum(),
        tool_calls: spending.tools.iter().map(|tool| tool.calls).sum(),
        failed_tool_calls: spending.tools.iter().map(|tool| tool.failures).sum(),
        usage: report::usage(usage),
    }
}

/// The first and the last day that is asked about.
fn span(state: &ServerState, days: &Days) -> Result<(Date, Date), ApiError> {
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
    Ok((from, until))
}

fn told(spending: &Spending, budgets: &[Budgeted], from: Date, until: Date) -> api::UsageReport {
    let lines = &spending.models;
    let written = |day: u64| date_of(day.saturating_mul(86_400_000)).to_string();
    let tool = |tool: &ToolUse| {
        let day = written(tool.day);
        api::ToolUsageLine {
            id: format!("{day}/{}", tool.name),
            day,
            tool: tool.name.clone(),
            server: tool.source.clone(),
            calls: tool.calls,
            failures: tool.failures,
            denials: tool.denials,
            timed: tool.timed,
            total_ms: tool.total_ms,
            longest_ms: tool.longest_ms,
        }
    };
    let line = |spent: &Spent| {
        let day = written(spent.day);
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
        tools: spending.tools.iter().map(tool).collect(),
        turns: spending
            .turns
            .iter()
            .map(|day| api::TurnsLine { day: written(day.day), turns: day.turns, failures: day.failures })
            .collect(),
        budgets: budgets.iter().map(crate::budgets::budget).collect(),
    }
}

fn day(name: &str, text: &str) -> Result<Date, ApiError> {
    // What is said of a time of the day would not count.
    text.parse().ok().filter(|day: &Date| day.to_string() == text).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        ApiError::bad_request("invalid_query", format!("{name} is {shown:?}, it must be a day such as 2026-11-01"))
    })
}

fn date_of(at_ms: u64) -> Date {
    let time = i64::try_from(at_ms).ok().and_then(|at_ms| Timestamp::from_millisecond(at_ms).ok());
    time.unwrap_or(Timestamp::MAX).to_zoned(jiff::tz::TimeZone::UTC).date()
}

/// The first millisecond of a day in UTC; 0 before 1970, and no time that ever comes for a day on which no time can be told.
fn start_of(day: Date) -> u64 {
    let since_1970 = |start: Timestamp| u64::try_from(start.as_millisecond()).unwrap_or_default();
    match day.to_zoned(jiff::tz::TimeZone::UTC) {
        Ok(start) => since_1970(start.timestamp()),
        Err(_) if day.year() < 1970 => 0,
        Err(_) => u64::MAX,
    }
}

/// The first millisecond after a day in UTC.
fn end_of(day: Date) -> u64 {
    day.tomorrow().map_or(u64::MAX, start_of)
}
