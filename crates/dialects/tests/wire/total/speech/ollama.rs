//! Ollama.

use std::fmt::Write;

use super::{Answer, End, Piece, arguments_value, json};

pub(crate) fn write(answer: &Answer) -> String {
    let mut body = String::new();
    let mut line = |message: &str, rest: &str| {
        writeln!(body, "{{\"model\":\"m\",\"created_at\":\"2026-11-01T00:00:00Z\",\"message\":{{\"role\":\"assistant\",{message}}},{rest}}}").unwrap();
    };
    for piece in &answer.pieces {
        match piece {
            Piece::Text(text) | Piece::Refusal(text) => line(&format!("\"content\":{}", json(text)), "\"done\":false"),
            Piece::Thought(text) => line(&format!("\"content\":\"\",\"thinking\":{}", json(text)), "\"done\":false"),
            Piece::Call(call) => {
                let id = call.id.as_ref().map_or(String::new(), |id| format!("\"id\":{},", json(id)));
                let function = format!("{{\"name\":{},\"arguments\":{}}}", json(&call.name), arguments_value(&call.arguments));
                line(&format!("\"content\":\"\",\"tool_calls\":[{{{id}\"function\":{function}}}]"), "\"done\":false");
            }
            Piece::Sealed | Piece::Own => {}
        }
    }
    let reason = if answer.end == End::Length { "length" } else { "stop" };
    line("\"content\":\"\"", &format!("\"done\":true,\"done_reason\":\"{reason}\",\"prompt_eval_count\":9,\"eval_count\":9"));
    body
}
