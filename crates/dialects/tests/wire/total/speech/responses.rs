//! Responses.

use std::fmt::Write;

use super::{Answer, End, Piece, json};
use crate::total::random::Random;

/// An item as it begins, what comes of it, and as it is in the end.
struct Item {
    begin: String,
    delta: Option<(&'static str, String)>,
    done: String,
}

pub(crate) fn write(answer: &Answer, random: &mut Random) -> String {
    let mut body = String::new();
    let mut event = |kind: &str, rest: &str| write!(body, "event: {kind}\ndata: {{\"type\":\"{kind}\"{rest}}}\n\n").unwrap();
    event("response.created", ",\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\",\"output\":[]}");
    let items: Vec<Item> = answer.pieces.iter().map(|piece| item(piece, random.next())).collect();
    for (Item { begin, delta, done }, index) in items.iter().zip(0..) {
        event("response.output_item.added", &format!(",\"output_index\":{index},\"item\":{begin}"));
        if let Some((kind, rest)) = delta {
            event(kind, &format!(",\"output_index\":{index}{rest}"));
        }
        event("response.output_item.done", &format!(",\"output_index\":{index},\"item\":{done}"));
    }
    let (kind, status, details) = match answer.end {
        End::Length => ("response.incomplete", "incomplete", "{\"reason\":\"max_output_tokens\"}"),
        End::Filter => ("response.incomplete", "incomplete", "{\"reason\":\"content_filter\"}"),
        End::Stop | End::Refusal | End::Pause => ("response.completed", "completed", "null"),
    };
    let output = items.iter().map(|item| item.done.as_str()).collect::<Vec<_>>().join(",");
    let usage = "{\"input_tokens\":9,\"output_tokens\":9,\"total_tokens\":18}";
    let rest = format!("\"incomplete_details\":{details},\"output\":[{output}],\"usage\":{usage}");
    event(kind, &format!(",\"response\":{{\"id\":\"resp_1\",\"status\":\"{status}\",{rest}}}"));
    body
}

fn item(piece: &Piece, number: u64) -> Item {
    match piece {
        Piece::Thought(text) => thought(text, number),
        Piece::Sealed => whole(format!(
            "{{\"id\":\"rs_{number:x}\",\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"gBBB{number:x}\"}}"
        )),
        Piece::Text(text) => {
            let part = format!("{{\"type\":\"output_text\",\"text\":{},\"annotations\":[]}}", json(text));
            message(text, number, "response.output_text.delta", &part)
        }
        Piece::Refusal(text) => {
            let part = format!("{{\"type\":\"refusal\",\"refusal\":{}}}", json(text));
            message(text, number, "response.refusal.delta", &part)
        }
        Piece::Call(call) => {
            let id = format!("fc_{number:x}");
            let call_id = call.id.as_ref().map_or("null".to_owned(), |id| json(id));
            let item = |status: &str, arguments: &str| {
                let name = json(&call.name);
                let rest = format!("\"call_id\":{call_id},\"name\":{name},\"arguments\":{}", json(arguments));
                format!("{{\"id\":\"{id}\",\"type\":\"function_call\",\"status\":\"{status}\",{rest}}}")
            };
            let delta = format!(",\"item_id\":\"{id}\",\"delta\":{}", json(&call.arguments));
            Item {
                begin: item("in_progress", ""),
                delta: Some(("response.function_call_arguments.delta", delta)),
                done: item("completed", &call.arguments),
            }
        }
        Piece::Own => {
            let action = "{\"type\":\"search\",\"query\":\"q\"}";
            whole(format!(
                "{{\"id\":\"ws_{number:x}\",\"type\":\"web_search_call\",\"status\":\"completed\",\"action\":{action}}}"
            ))
        }
    }
}

fn whole(item: String) -> Item {
    Item { begin: item.clone(), delta: None, done: item }
}

fn thought(text: &str, number: u64) -> Item {
    let id = format!("rs_{number:x}");
    let is_shown = !text.is_empty();
    let part = format!("{{\"type\":\"summary_text\",\"text\":{}}}", json(text));
    let summary = if is_shown { part.as_str() } else { "" };
    let delta = format!(",\"summary_index\":0,\"item_id\":\"{id}\",\"delta\":{}", json(text));
    Item {
        begin: format!("{{\"id\":\"{id}\",\"type\":\"reasoning\",\"summary\":[]}}"),
        delta: is_shown.then_some(("response.reasoning_summary_text.delta", delta)),
        done: format!(
            "{{\"id\":\"{id}\",\"type\":\"reasoning\",\"summary\":[{summary}],\"encrypted_content\":\"gAAA{number:x}\"}}"
        ),
    }
}

fn message(text: &str, number: u64, kind: &'static str, part: &str) -> Item {
    let id = format!("msg_{number:x}");
    let phase = if number.is_multiple_of(3) { ",\"phase\":\"commentary\"" } else { "" };
    let item = |status: &str, content: &str| {
        let rest = format!("\"status\":\"{status}\",\"content\":[{content}]");
        format!("{{\"id\":\"{id}\",\"type\":\"message\",\"role\":\"assistant\"{phase},{rest}}}")
    };
    let delta = format!(",\"item_id\":\"{id}\",\"content_index\":0,\"delta\":{}", json(text));
    Item { begin: item("in_progress", ""), delta: Some((kind, delta)), done: item("completed", part) }
}
