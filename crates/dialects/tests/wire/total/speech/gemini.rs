//! Gemini.

use std::fmt::Write;

use super::{Answer, End, Piece, arguments_value, json};
use crate::total::random::Random;

pub(crate) fn write(answer: &Answer, random: &mut Random) -> String {
    let mut body = String::new();
    let mut chunk = |parts: &str, finish: &str| {
        let candidate = format!("{{\"content\":{{\"role\":\"model\",\"parts\":[{parts}]}},\"index\":0{finish}}}");
        write!(
            body,
            "data: {{\"candidates\":[{candidate}],\"usageMetadata\":{{\"promptTokenCount\":9,\"totalTokenCount\":9}}}}\n\n"
        )
        .unwrap();
    };
    let is_signed = random.percent(70);
    let has_ids = random.percent(50);
    let mut is_first = true;
    for piece in &answer.pieces {
        let signature = format!(",\"thoughtSignature\":\"c2ln{:016x}\"", random.next());
        match piece {
            Piece::Text(text) | Piece::Refusal(text) => chunk(&format!("{{\"text\":{}}}", json(text)), ""),
            Piece::Thought(text) => chunk(&format!("{{\"text\":{},\"thought\":true}}", json(text)), ""),
            Piece::Sealed => chunk(&format!("{{\"text\":\"\"{signature}}}"), ""),
            Piece::Call(call) => {
                let id = call.id.as_ref().filter(|_| has_ids).map_or(String::new(), |id| format!("\"id\":{},", json(id)));
                let signature = if is_signed && is_first { &*signature } else { "" };
                is_first = false;
                let arguments = arguments_value(&call.arguments);
                chunk(
                    &format!("{{\"functionCall\":{{{id}\"name\":{},\"args\":{arguments}}}{signature}}}", json(&call.name)),
                    "",
                );
            }
            Piece::Own => {
                chunk(
                    "{\"executableCode\":{\"language\":\"PYTHON\",\"code\":\"1\"}},{\"codeExecutionResult\":{\"outcome\":\"OUTCOME_OK\",\"output\":\"1\"}}",
                    "",
                );
            }
        }
    }
    let finish = match answer.end {
        End::Length => "MAX_TOKENS",
        End::Filter | End::Refusal => "SAFETY",
        End::Stop | End::Pause => "STOP",
    };
    let last =
        if is_signed && !answer.has_calls() { "{\"text\":\"\",\"thoughtSignature\":\"bGFzdA==\"}" } else { "{\"text\":\"\"}" };
    chunk(last, &format!(",\"finishReason\":\"{finish}\""));
    body
}
