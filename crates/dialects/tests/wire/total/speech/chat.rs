//! Chat Completions.

use std::fmt::Write;

use super::{Answer, End, Piece, json};
use crate::total::random::Random;

pub(crate) fn write(answer: &Answer, random: &mut Random, provider: &str) -> String {
    let mut body = String::new();
    let mut chunk = |delta: &str, finish: &str| {
        write!(body, "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n").unwrap();
    };
    let field = *random.pick(&["reasoning_content", "reasoning", "reasoning_details"]);
    let mut calls = 0;
    for piece in &answer.pieces {
        match piece {
            Piece::Text(text) => chunk(&format!("{{\"content\":{}}}", json(text)), "null"),
            Piece::Thought(text) if field == "reasoning_details" => {
                let detail =
                    format!("{{\"type\":\"reasoning.text\",\"text\":{},\"index\":0,\"signature\":\"s\\u00e9al\"}}", json(text));
                chunk(&format!("{{\"reasoning_details\":[{detail}]}}"), "null");
            }
            Piece::Thought(text) => chunk(&format!("{{\"{field}\":{}}}", json(text)), "null"),
            Piece::Sealed => {
                let number = random.next();
                chunk(
                    &format!(
                        "{{\"reasoning_details\":[{{\"type\":\"reasoning.encrypted\",\"data\":\"{number:x}\",\"index\":1}}]}}"
                    ),
                    "null",
                );
            }
            Piece::Refusal(text) => chunk(&format!("{{\"refusal\":{}}}", json(text)), "null"),
            Piece::Call(call) => {
                let id = call.id.as_ref().map_or("null".to_owned(), |id| json(id));
                let extra = if provider != "openai" && random.percent(20) {
                    ",\"extra_content\":{\"google\":{\"thought_signature\":\"c2ln\"}}"
                } else {
                    ""
                };
                let begin = format!("\"index\":{calls},\"id\":{id},\"type\":\"function\"{extra}");
                let function = format!("{{\"name\":{},\"arguments\":\"\"}}", json(&call.name));
                chunk(&format!("{{\"tool_calls\":[{{{begin},\"function\":{function}}}]}}"), "null");
                chunk(
                    &format!(
                        "{{\"tool_calls\":[{{\"index\":{calls},\"function\":{{\"arguments\":{}}}}}]}}",
                        json(&call.arguments)
                    ),
                    "null",
                );
                calls += 1;
            }
            Piece::Own => {}
        }
    }
    let finish = match answer.end {
        End::Length => "\"length\"",
        End::Filter => "\"content_filter\"",
        End::Stop | End::Refusal | End::Pause if answer.has_calls() => "\"tool_calls\"",
        End::Stop | End::Refusal | End::Pause => "\"stop\"",
    };
    chunk("{}", finish);
    body.push_str("data: [DONE]\n\n");
    body
}
