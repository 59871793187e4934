//! All pages of a list, whatever a server does with its cursors.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::asking::{NoAnswer, ask};
use super::items::{Item, twice};
use crate::again::Listed;
use crate::connection::Connection;
use crate::weight::{MAX_LIST_BYTES, weight};

/// Pages and entries that are taken of one list.
const MAX_PAGES: usize = 100;
const MAX_ITEMS: usize = 10_000;

/// A list, and what is wrong with it.
pub(super) struct Pages<T> {
    pub(super) items: Vec<T>,
    pub(super) problems: Vec<String>,
    /// Whether the server gave it to its end. What is left out because it is wrong or too much is not there the next time either.
    pub(super) listed: Listed,
}

/// Asks for all pages of `method`. A server that does not know it has none of them.
pub(super) async fn list<T: Item>(connection: &Connection, method: &str, limit: Duration) -> Pages<T> {
    let mut reader = Reader::<T>::new(method);
    let mut cursor: Option<String> = None;
    let pages = async {
        for _ in 0..MAX_PAGES {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            match ask(connection, method, params, limit).await {
                Ok(page) => cursor = reader.page(page),
                Err(error) if error.is_unknown_method() => return,
                Err(error) => return reader.fail(&error.in_words(method)),
            }
            if cursor.is_none() {
                return;
            }
        }
        reader.complain(&format!("there are more than {MAX_PAGES} pages: the rest is left out"));
    };
    if tokio::time::timeout(limit, pages).await.is_err() {
        reader.fail(&NoAnswer::TooLong(limit).in_words(method));
    }
    reader.pages
}

struct Reader<'a, T> {
    method: &'a str,
    pages: Pages<T>,
    ids: HashSet<String>,
    cursors: HashSet<String>,
    bytes: usize,
}

impl<'a, T: Item> Reader<'a, T> {
    fn new(method: &'a str) -> Self {
        let pages = Pages { items: Vec::new(), problems: Vec::new(), listed: Listed::Known };
        Self { method, pages, ids: HashSet::new(), cursors: HashSet::new(), bytes: 0 }
    }

    /// Takes a page; returns the cursor of the next one.
    fn page(&mut self, mut page: Value) -> Option<String> {
        let Some(Value::Array(entries)) = page.get_mut(T::KEY).map(Value::take) else {
            self.complain(&format!("the answer has no array `{}`", T::KEY));
            return None;
        };
        for entry in entries {
            if self.pages.items.len() >= MAX_ITEMS {
                self.complain(&format!("there are more than {MAX_ITEMS}: the rest is left out"));
                return None;
            }
            self.bytes = self.bytes.saturating_add(weight(&entry));
            if self.bytes > MAX_LIST_BYTES {
                self.complain(&format!("its entries take more than {} MiB: the rest is left out", MAX_LIST_BYTES >> 20));
                return None;
            }
            self.entry(entry);
        }
        let cursor = page.get("nextCursor").and_then(Value::as_str)?.to_owned();
        if !self.cursors.insert(cursor.clone()) {
            self.complain("its cursor repeats: the rest is left out");
            return None;
        }
        Some(cursor)
    }

    fn entry(&mut self, entry: Value) {
        let Value::Object(mut entry) = entry else { return self.complain("an entry is no object") };
        match T::read(&mut entry) {
            Ok(item) if self.ids.insert(item.id().to_owned()) => self.pages.items.push(item),
            Ok(item) => self.complain(&twice(item.id())),
            Err(problem) => self.complain(problem),
        }
    }

    /// The server failed before the end of its list.
    fn fail(&mut self, problem: &str) {
        self.pages.listed = Listed::Failed;
        self.complain(problem);
    }

    fn complain(&mut self, problem: &str) {
        const MAX_PROBLEMS: usize = 20;
        let problem = format!("{}: {problem}", self.method);
        if self.pages.problems.len() < MAX_PROBLEMS && !self.pages.problems.contains(&problem) {
            self.pages.problems.push(problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::items::{Prompt, PromptArgument, Resource};
    use super::*;

    #[test]
    fn one_bad_entry_spoils_itself_alone() {
        let mut reader = Reader::<Resource>::new("resources/list");
        let page = json!({"resources": [
            {"uri": "a://1", "name": "one", "title": "One", "mimeType": "text/plain", "size": 3, "annotations": {"priority": 1}},
            {"uri": "a://2"},
            {"uri": "a://1", "name": "again"},
            {"name": "nowhere"},
            {"uri": 7},
            "no",
        ], "nextCursor": "more"});
        assert_eq!(reader.page(page.clone()), Some("more".to_owned()));
        let one = Resource {
            uri: "a://1".into(),
            name: "one".into(),
            title: Some("One".into()),
            description: None,
            mime_type: Some("text/plain".into()),
            size: Some(3),
            annotations: Some(json!({"priority": 1})),
        };
        let two = Resource {
            uri: "a://2".into(),
            name: "a://2".into(),
            title: None,
            mime_type: None,
            size: None,
            annotations: None,
            ..one.clone()
        };
        assert_eq!(reader.pages.items, [one, two]);
        let problems = [
            "resources/list: `a://1` is listed twice: the first one is kept",
            "resources/list: a resource without an address is left out",
            "resources/list: an entry is no object",
        ];
        assert_eq!(reader.pages.problems, problems);
        assert_eq!(reader.page(json!({"resources": [], "nextCursor": "more"})), None);
        assert_eq!(reader.pages.problems.last().unwrap(), "resources/list: its cursor repeats: the rest is left out");
    }

    #[test]
    fn a_prompt_keeps_the_arguments_that_have_names() {
        let mut reader = Reader::<Prompt>::new("prompts/list");
        let arguments = json!([{"name": "code", "description": "What.", "required": true}, {"name": "style"}, {}, 1]);
        assert_eq!(reader.page(json!({"prompts": [{"name": "review", "arguments": arguments}]})), None);
        let argument = |name: &str, description: Option<&str>, is_required| PromptArgument {
            name: name.into(),
            description: description.map(Into::into),
            is_required,
        };
        let arguments = vec![argument("code", Some("What."), true), argument("style", None, false)];
        assert_eq!(reader.pages.items, [Prompt { name: "review".into(), title: None, description: None, arguments }]);
        assert_eq!(reader.page(json!({"prompts": null})), None);
        assert_eq!(reader.pages.problems, ["prompts/list: the answer has no array `prompts`"]);
    }
}
