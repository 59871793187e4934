//! A stream of each format, of so many deltas of text.
#![expect(clippy::unwrap_used, reason = "writing into a text cannot fail")]

use std::fmt::Write;

/// Text in the format of `openai-chat`.
pub(crate) fn chat(deltas: u32) -> String {
    let mut body = String::new();
    for number in 0..deltas {
        write!(
            body,
            "data: {{\"id\":\"chatcmpl-9HpyGSWv1hoKdGaUaiFhfxzTEVlZo\",\"object\":\"chat.completion.chunk\",\"created\":1714038380,\
             \"model\":\"gpt-x\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_1\",\"choices\":[{{\"index\":0,\
             \"delta\":{{\"content\":\" word{number:06}\"}},\"logprobs\":null,\"finish_reason\":null}}],\"usage\":null}}\n\n"
        )
        .unwrap();
    }
    body.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    body
}

/// Text in the format of `openai-responses`.
pub(crate) fn responses(deltas: u32) -> String {
    const ID: &str = "msg_68c9f2f3a4b88190a1b2c3d4e5f60718";
    let mut body = String::new();
    let mut event = |kind: &str, rest: &str| {
        write!(body, "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":1,{rest}}}\n\n").unwrap();
    };
    let item = |text: &str, status: &str| {
        format!(
            r#"{{"id":"{ID}","type":"message","status":"{status}","content":[{{"type":"output_text","annotations":[],"text":"{text}"}}],"role":"assistant"}}"#
        )
    };
    event("response.created", r#""response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}"#);
    event("response.output_item.added", &format!(r#""output_index":0,"item":{}"#, item("", "in_progress")));
    let mut text = String::new();
    for number in 0..deltas {
        write!(text, " word{number:06}").unwrap();
        let rest = format!(
            r#""item_id":"{ID}","output_index":0,"content_index":0,"delta":" word{number:06}","logprobs":[],"obfuscation":"abcdefgh""#
        );
        event("response.output_text.delta", &rest);
    }
    event("response.output_item.done", &format!(r#""output_index":0,"item":{}"#, item(&text, "completed")));
    let response = format!(
        r#""response":{{"id":"resp_1","object":"response","status":"completed","output":[{}],"usage":{{"input_tokens":1,"output_tokens":2,"total_tokens":3}}}}"#,
        item(&text, "completed")
    );
    event("response.completed", &response);
    body
}

/// Text in the format of `anthropic`.
pub(crate) fn anthropic(deltas: u32) -> String {
    let mut body = String::new();
    let mut event = |kind: &str, rest: &str| {
        let comma = if rest.is_empty() { "" } else { "," };
        write!(body, "event: {kind}\ndata: {{\"type\":\"{kind}\"{comma}{rest}}}\n\n").unwrap();
    };
    event(
        "message_start",
        r#""message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}"#,
    );
    event("content_block_start", r#""index":0,"content_block":{"type":"text","text":""}"#);
    for number in 0..deltas {
        event("content_block_delta", &format!(r#""index":0,"delta":{{"type":"text_delta","text":" word{number:06}"}}"#));
    }
    event("content_block_stop", r#""index":0"#);
    event("message_delta", r#""delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":100}"#);
    event("message_stop", "");
    body
}

/// Text in the format of `gemini`.
pub(crate) fn gemini(deltas: u32) -> String {
    let mut body = String::new();
    for number in 0..deltas {
        write!(
            body,
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\" word{number:06}\"}}],\"role\":\"model\"}},\"index\":0}}],\
             \"usageMetadata\":{{\"promptTokenCount\":9,\"candidatesTokenCount\":{number},\"totalTokenCount\":99}},\
             \"modelVersion\":\"gemini-x\",\"responseId\":\"abc\"}}\r\n\r\n"
        )
        .unwrap();
    }
    body.push_str("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"finishReason\":\"STOP\"}]}\r\n\r\n");
    body
}

/// Text in the format of `ollama`.
pub(crate) fn ollama(deltas: u32) -> String {
    let mut body = String::new();
    for number in 0..deltas {
        writeln!(
            body,
            "{{\"model\":\"llama-x\",\"created_at\":\"2026-01-01T00:00:00.000000Z\",\
             \"message\":{{\"role\":\"assistant\",\"content\":\" word{number:06}\"}},\"done\":false}}"
        )
        .unwrap();
    }
    body.push_str(
        "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":9}\n",
    );
    body
}
