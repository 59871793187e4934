//! Anthropic Messages.

use std::fmt::Write;

use super::{Answer, End, Piece, json};
use crate::total::random::Random;

pub(crate) fn write(answer: &Answer, random: &mut Random) -> String {
    let mut body = String::new();
    let mut event = |kind: &str, rest: &str| write!(body, "event: {kind}\ndata: {{\"type\":\"{kind}\"{rest}}}\n\n").unwrap();
    let usage = "{\"input_tokens\":9,\"output_tokens\":1}";
    event(
        "message_start",
        &format!(
            ",\"message\":{{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{usage}}}"
        ),
    );
    let mut index = 0;
    let mut block = |begin: &str, deltas: &[String]| {
        event("content_block_start", &format!(",\"index\":{index},\"content_block\":{begin}"));
        for delta in deltas {
            event("content_block_delta", &format!(",\"index\":{index},\"delta\":{delta}"));
        }
        event("content_block_stop", &format!(",\"index\":{index}"));
        index += 1;
    };
    for piece in &answer.pieces {
        let number = random.next();
        match piece {
            Piece::Text(text) | Piece::Refusal(text) => {
                block("{\"type\":\"text\",\"text\":\"\"}", &[format!("{{\"type\":\"text_delta\",\"text\":{}}}", json(text))]);
            }
            Piece::Thought(text) => {
                let signature = format!("{{\"type\":\"signature_delta\",\"signature\":\"Eq{number:x}\\/+==\"}}");
                let thinking = format!("{{\"type\":\"thinking_delta\",\"thinking\":{}}}", json(text));
                block("{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}", &[thinking, signature]);
            }
            Piece::Sealed => block(&format!("{{\"type\":\"redacted_thinking\",\"data\":\"Em{number:x}\"}}"), &[]),
            Piece::Call(call) => {
                let id = call.id.as_ref().map_or("null".to_owned(), |id| json(id));
                block(
                    &format!("{{\"type\":\"tool_use\",\"id\":{id},\"name\":{},\"input\":{{}}}}", json(&call.name)),
                    &[format!("{{\"type\":\"input_json_delta\",\"partial_json\":{}}}", json(&call.arguments))],
                );
            }
            Piece::Own => {
                let id = format!("srvtoolu_{number:x}");
                block(
                    &format!("{{\"type\":\"server_tool_use\",\"id\":\"{id}\",\"name\":\"web_search\",\"input\":{{}}}}"),
                    &["{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"query\\\":\\\"q\\\"}\"}".to_owned()],
                );
                if answer.end != End::Pause {
                    block(&format!("{{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"{id}\",\"content\":[]}}"), &[]);
                }
            }
        }
    }
    let stop = match answer.end {
        End::Length => "max_tokens",
        End::Filter | End::Refusal => "refusal",
        End::Pause => "pause_turn",
        End::Stop if answer.has_calls() => "tool_use",
        End::Stop => "end_turn",
    };
    event(
        "message_delta",
        &format!(",\"delta\":{{\"stop_reason\":\"{stop}\",\"stop_sequence\":null}},\"usage\":{{\"output_tokens\":9}}"),
    );
    event("message_stop", "");
    body
}
