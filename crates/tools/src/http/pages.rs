//! Where an answer is one page of several: which argument gives the next, in words.
//!
//! It is looked for where APIs usually say it (a `Link` header, an address or a mark of the next page, a place within a total) and told only
//! where the operation has an argument for it.

use serde_json::{Map, Value};
use url::Url;

use super::operation::Operation;

/// Where an address of the next page is found.
const ADDRESSES: [&str; 13] = [
    "/next",
    "/next/href",
    "/links/next",
    "/links/next/href",
    "/_links/next/href",
    "/@odata.nextLink",
    "/odata.nextLink",
    "/nextLink",
    "/nextPage",
    "/next_page_url",
    "/paging/next",
    "/pagination/next_url",
    "/meta/next",
];
/// Names of marks of the next page, at the top or one below.
const MARKS: [&str; 9] = [
    "nextPageToken",
    "next_page_token",
    "nextCursor",
    "next_cursor",
    "nextToken",
    "next_token",
    "NextToken",
    "continuationToken",
    "next_page",
];
/// Names of arguments that take a mark, as letters and digits.
const TAKERS: [&str; 8] = ["pagetoken", "cursor", "after", "token", "continuationtoken", "startingafter", "continue", "page"];
/// The longest mark that is told.
const MAX_MARK: usize = 2_000;

/// What is known of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answered<'a> {
    pub(super) operation: &'a Operation,
    /// The address that was asked.
    pub(super) url: &'a Url,
    pub(super) link: Option<&'a str>,
    pub(super) body: Option<&'a Value>,
}

/// How to get the next page, where there is one.
pub(super) fn next(answered: Answered<'_>) -> Option<String> {
    let address = answered.link.and_then(next_of_link).map(str::to_owned).or_else(|| addressed(answered.body?));
    if let Some(address) = address {
        return Some(by_address(answered, &address));
    }
    let body = answered.body?;
    marked(answered.operation, body)
        .or_else(|| last_item(answered.operation, body))
        .or_else(|| counted(answered.operation, body))
}

/// The address of `rel="next"` (RFC 8288).
fn next_of_link(header: &str) -> Option<&str> {
    let mut rest = header;
    while let Some((_, after)) = rest.split_once('<') {
        let (address, after) = after.split_once('>')?;
        let parameters = after.split('<').next().unwrap_or_default();
        let is_next = parameters.split([';', ',']).any(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or_default();
            let mut words = value.trim().trim_matches('"').split_whitespace();
            name.trim().eq_ignore_ascii_case("rel") && words.any(|word| word.eq_ignore_ascii_case("next"))
        });
        if is_next {
            return Some(address);
        }
        rest = after;
    }
    None
}

fn addressed(body: &Value) -> Option<String> {
    let found = ADDRESSES.iter().filter_map(|way| body.pointer(way)?.as_str());
    found
        .filter(|text| {
            text.starts_with("http://") || text.starts_with("https://") || text.starts_with('/') || text.starts_with('?')
        })
        .map(str::to_owned)
        .next()
}

fn by_address(answered: Answered<'_>, address: &str) -> String {
    const UNKNOWN: &str = "There is more, for which this tool has no argument.";
    let Ok(next) = answered.url.join(address) else { return UNKNOWN.to_owned() };
    let before: Vec<(String, String)> = answered.url.query_pairs().into_owned().collect();
    let changed = next.query_pairs().into_owned().filter(|pair| !before.contains(pair));
    let told: Vec<String> = changed
        .filter_map(|(name, value)| Some(format!("`{}` = {}", answered.operation.query_argument(&name)?, shown(&value))))
        .collect();
    if told.is_empty() { UNKNOWN.to_owned() } else { more(&told.join(" and ")) }
}

fn marked(operation: &Operation, body: &Value) -> Option<String> {
    let top = body.as_object()?;
    let below = top.values().filter_map(Value::as_object);
    let (name, mark) = std::iter::once(top).chain(below).find_map(|object| {
        MARKS.iter().find_map(|name| {
            let mark = object.get(*name)?;
            let is_mark = mark.as_str().is_some_and(|text| !text.is_empty() && text.len() <= MAX_MARK) || mark.is_number();
            is_mark.then_some((*name, mark))
        })
    })?;
    let own = letters(name);
    let own_takers = [own.as_str(), own.trim_start_matches("next")];
    let argument = own_takers.iter().chain(&TAKERS).find_map(|wanted| argument(operation, wanted))?;
    Some(more(&format!("{argument} = {mark}")))
}

/// Where the last item's id goes on (`has_more`).
fn last_item(operation: &Operation, body: &Value) -> Option<String> {
    if body.get("has_more") != Some(&Value::Bool(true)) {
        return None;
    }
    let argument = argument(operation, "startingafter").or_else(|| argument(operation, "after"))?;
    let id = body.get("data")?.as_array()?.last()?.get("id").filter(|id| id.is_string() || id.is_number())?;
    Some(more(&format!("{argument} = {id}")))
}

/// A place within a total.
fn counted(operation: &Operation, body: &Value) -> Option<String> {
    let top = body.as_object()?;
    let is_last = ["isLast", "is_last", "last"].iter().any(|key| top.get(*key) == Some(&Value::Bool(true)));
    let places = [top.get("pagination"), top.get("meta"), top.get("paging"), top.get("page")];
    let objects: Vec<&Map<String, Value>> =
        std::iter::once(top).chain(places.into_iter().flatten().filter_map(Value::as_object)).collect();
    let number = |names: &[&str]| {
        objects.iter().find_map(|object| names.iter().find_map(|name| object.get(*name).and_then(Value::as_u64)))
    };
    if is_last {
        return None;
    }
    if let (Some(start), Some(total)) =
        (number(&["startAt", "offset", "skip", "start"]), number(&["total", "totalCount", "total_count", "totalSize"]))
    {
        let items = top.values().filter_map(Value::as_array).map(Vec::len).max().and_then(|count| u64::try_from(count).ok());
        let step = items.filter(|count| *count > 0).or_else(|| number(&["maxResults", "limit", "size"]))?;
        let next = start.checked_add(step).filter(|next| *next < total)?;
        let argument = ["startat", "offset", "skip", "start"].iter().find_map(|wanted| argument(operation, wanted))?;
        return Some(format!("Items {} to {next} of {total}. {}", start + 1, more(&format!("{argument} = {next}"))));
    }
    let page = number(&["page", "current_page", "currentPage", "pageNumber", "page_number", "number"])?;
    let pages = number(&["total_pages", "totalPages", "pages", "last_page", "lastPage", "pageCount", "page_count"])?;
    let argument = ["page", "pagenumber"].iter().find_map(|wanted| argument(operation, wanted))?;
    (page < pages).then(|| format!("Page {page} of {pages}. {}", more(&format!("{argument} = {}", page + 1))))
}

/// The argument whose name has these letters, in words: of the query, or of the body.
fn argument(operation: &Operation, wanted: &str) -> Option<String> {
    let own = operation.inputs.iter().find(|input| letters(&input.name) == wanted);
    if let Some(input) = own {
        return Some(format!("`{}`", input.argument));
    }
    let body = operation.body.as_ref()?;
    let mut schema = operation.input_schema.get("properties")?.get(&body.argument)?;
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix("#/$defs/")) {
        schema = operation.input_schema.get("$defs")?.get(name)?;
    }
    let name = schema.get("properties")?.as_object()?.keys().find(|name| letters(name) == wanted)?;
    Some(format!("`{name}` in `{}`", body.argument))
}

fn more(how: &str) -> String {
    format!("There is more: call this again with {how}.")
}

/// A value of an address as an argument is written: figures may be a number or a text.
fn shown(value: &str) -> String {
    let is_number = value.len() < 19 && value.parse::<u64>().is_ok_and(|number| number.to_string() == value);
    if is_number { value.to_owned() } else { Value::from(value).to_string() }
}

fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests;
