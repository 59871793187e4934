use serde_json::json;

use super::super::import::{Choice, import};
use super::*;

fn operation(parameters: &[&str], body: &[&str]) -> Operation {
    let parameters: Vec<Value> = parameters.iter().map(|name| json!({"name": name, "in": "query"})).collect();
    let properties: Map<String, Value> = body.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    let body = json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Search"}}}});
    let schemas = json!({"Search": {"type": "object", "properties": properties}});
    let text = json!({"openapi": "3.1.0", "paths": {"/a": {"post": {"parameters": parameters, "requestBody": body}}}, "components": {"schemas": schemas}});
    import(text.to_string().as_bytes(), &Choice::default()).unwrap().operations.remove(0)
}

fn told(parameters: &[&str], inner: &[&str], link: Option<&str>, body: &Value) -> Option<String> {
    let url = Url::parse("https://api.example/a?q=x&page=1").unwrap();
    next(Answered { operation: &operation(parameters, inner), url: &url, link, body: Some(body) })
}

#[test]
fn the_next_page_is_told_with_the_argument_that_gives_it() {
    let link = "<https://api.example/a?q=x&page=9>; rel=\"last\", <https://api.example/a?q=x&page=2>; rel=\"prefetch next\"";
    let cases = [
        (told(&["q", "page"], &[], Some(link), &json!([])), "There is more: call this again with `page` = 2."),
        (told(&["q"], &[], Some(link), &json!([])), "There is more, for which this tool has no argument."),
        (
            told(&["cursor"], &[], None, &json!({"next": "?cursor=a%2Bb"})),
            "There is more: call this again with `cursor` = \"a+b\".",
        ),
        (
            told(&["skip$token"], &[], None, &json!({"@odata.nextLink": "https://x.example/?skip$token=7"})),
            "There is more: call this again with `skip_token` = 7.",
        ),
        (
            told(&["pageToken"], &[], None, &json!({"nextPageToken": "7"})),
            "There is more: call this again with `pageToken` = \"7\".",
        ),
        (
            told(&["nextPageToken", "page"], &[], None, &json!({"nextPageToken": "t"})),
            "There is more: call this again with `nextPageToken` = \"t\".",
        ),
        (
            told(&["cursor"], &[], None, &json!({"ok": true, "response_metadata": {"next_cursor": "c="}})),
            "There is more: call this again with `cursor` = \"c=\".",
        ),
        (
            told(&["starting_after"], &[], None, &json!({"has_more": true, "data": [{"id": "a"}, {"id": "b"}]})),
            "There is more: call this again with `starting_after` = \"b\".",
        ),
        (
            told(
                &["startAt"],
                &[],
                None,
                &json!({"startAt": 50, "maxResults": 50, "total": 120, "issues": vec![json!({}); 50]}),
            ),
            "Items 51 to 100 of 120. There is more: call this again with `startAt` = 100.",
        ),
        (
            told(&[], &["startAt"], None, &json!({"startAt": 0, "maxResults": 2, "total": 3, "issues": [1, 2]})),
            "Items 1 to 2 of 3. There is more: call this again with `startAt` in `body` = 2.",
        ),
        (
            told(&["page"], &[], None, &json!({"meta": {"page": 1, "total_pages": 3}})),
            "Page 1 of 3. There is more: call this again with `page` = 2.",
        ),
    ];
    for (told, expected) in cases {
        assert_eq!(told.as_deref(), Some(expected));
    }
}

#[test]
fn the_last_page_says_nothing() {
    let cases = [
        told(&["page"], &[], Some("<https://api.example/a?page=1>; rel=\"prev\""), &json!([])),
        told(&["startAt"], &[], None, &json!({"startAt": 100, "maxResults": 50, "total": 120, "issues": vec![json!({}); 20]})),
        told(&["startAt"], &[], None, &json!({"startAt": 0, "total": 120, "isLast": true, "issues": [1]})),
        told(&["cursor"], &[], None, &json!({"response_metadata": {"next_cursor": ""}})),
        told(&["page"], &[], None, &json!({"meta": {"page": 3, "total_pages": 3}})),
        told(&["starting_after"], &[], None, &json!({"has_more": false, "data": [{"id": "a"}]})),
        told(&["next"], &[], None, &json!({"next": null})),
        told(&["cursor"], &[], None, &json!({"next": "not an address"})),
    ];
    for told in cases {
        assert_eq!(told, None);
    }
}
