//! Lists, a page at a time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct List<T> {
    /// The things.
    pub data: Vec<T>,
    /// What to give as `cursor` to get the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// Whether there is a next page.
    pub has_more: bool,
}

impl<T> List<T> {
    /// A list that is whole.
    pub fn whole(data: Vec<T>) -> Self {
        Self { data, next_cursor: None, has_more: false }
    }

    /// The page of at most `limit` things that begins `data`, which holds one thing more where there is a next page.
    /// `cursor` names a thing.
    pub fn page(mut data: Vec<T>, limit: usize, cursor: impl Fn(&T) -> String) -> Self {
        let has_more = data.len() > limit;
        data.truncate(limit);
        let next_cursor = if has_more { data.last().map(cursor) } else { None };
        Self { data, next_cursor, has_more }
    }
}

#[cfg(test)]
mod tests {
    use super::List;

    #[test]
    fn a_page_names_its_last_thing_where_there_is_more() {
        let page = List::page(vec![1, 2, 3], 2, ToString::to_string);
        assert_eq!(page, List { data: vec![1, 2], next_cursor: Some("2".to_owned()), has_more: true });
        let last = List::page(vec![1, 2], 2, ToString::to_string);
        assert_eq!(last, List { data: vec![1, 2], next_cursor: None, has_more: false });
    }
}
