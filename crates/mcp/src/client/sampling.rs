//! What a server asks of a model: `sampling/createMessage`, in both eras.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use turnwright_core::{
    AnswerAction, ContentBlock, Elicitation, FinishReason, Sampled, Sampling, SamplingBudget, SamplingMessage, SamplingOutcome,
    SamplingRole, Wants,
};
use turnwright_engine::Reply;

use crate::output;
use crate::transport::Wire;

/// The method by which servers ask.
pub(crate) const METHOD: &str = "sampling/createMessage";

/// The protocol's code for "the user said no".
const REJECTED: ErrorCode = ErrorCode(-1);
/// The longest question that is taken, in bytes: it is kept with the conversation and shown to people.
const MAX_BYTES: usize = 1 << 20;

/// Asks for whoever the server's call belongs to, and gives the protocol's answer.
pub(super) async fn answer(
    wire: &Wire,
    budget: SamplingBudget,
    params: Option<Value>,
    cancelled: &CancellationToken,
) -> Result<Value, ErrorData> {
    let asked = question(String::new(), params.unwrap_or_default(), budget);
    let asked = asked.map_err(|why| ErrorData::invalid_params(why, None))?;
    let door = wire.door().map_err(|why| ErrorData::invalid_request(why, None))?;
    let _held = door.standstill.hold();
    let reply = tokio::select! {
        reply = door.asks.ask(asked.clone()) => reply,
        () = cancelled.cancelled() => Reply::of(AnswerAction::Cancel),
    };
    let Wants::Sampling { request } = &asked.wants else { return Err(ErrorData::internal_error("no sampling", None)) };
    match (reply.action, reply.sampled) {
        (AnswerAction::Accept, Some(sampled)) => {
            result(request, &sampled).map_err(|why| ErrorData::internal_error(format!("the model did not answer: {why}"), None))
        }
        (AnswerAction::Accept | AnswerAction::Decline | AnswerAction::Cancel, _) => {
            let why = reply.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            Err(ErrorData::new(REJECTED, format!("User rejected sampling request{why}"), None))
        }
    }
}

/// What a model said, as the protocol has it.
///
/// # Errors
/// Why it said nothing.
pub(crate) fn result(request: &Sampling, sampled: &Sampled) -> Result<Value, String> {
    let message = match &sampled.outcome {
        SamplingOutcome::Answered(message) => message,
        SamplingOutcome::Failed { failure, .. } => return Err(failure.to_string()),
    };
    let text = message.text();
    let (text, is_stopped) = request.up_to_stop(&text);
    let reason = match message.finish.reason {
        _ if is_stopped => "stopSequence",
        FinishReason::Length => "maxTokens",
        FinishReason::Refusal | FinishReason::ContentFilter => "refusal",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Pause | FinishReason::Error => "endTurn",
    };
    let content = json!({"type": "text", "text": text});
    Ok(json!({"role": "assistant", "model": message.origin.model, "stopReason": reason, "content": content}))
}

/// Reads the parameters of a question to a model.
///
/// # Errors
/// What is wrong with it, for the server.
pub(crate) fn question(key: String, params: Value, budget: SamplingBudget) -> Result<Elicitation, String> {
    let size = params.to_string().len();
    if size > MAX_BYTES {
        return Err(format!("the request is {size} bytes long, limit {MAX_BYTES}"));
    }
    let Value::Object(mut params) = params else { return Err("a sampling request has parameters".to_owned()) };
    if params.contains_key("tools") || params.contains_key("toolChoice") {
        return Err("a sampling request with tools is not taken: `sampling.tools` was not offered".to_owned());
    }
    let Some(Value::Array(messages)) = params.remove("messages") else {
        return Err("a sampling request has an array `messages`".to_owned());
    };
    let messages = messages.iter().map(message).collect::<Result<Vec<_>, _>>()?;
    if messages.last().is_none_or(|last| last.role != SamplingRole::User) {
        return Err("the last of the `messages` must be the user's".to_owned());
    }
    let max_tokens = match params.get("maxTokens").and_then(Value::as_u64) {
        Some(0) | None => return Err("`maxTokens` must be a whole number above 0".to_owned()),
        Some(tokens) => u32::try_from(tokens).unwrap_or(u32::MAX),
    };
    let texts = |value: Option<Value>| match value {
        Some(Value::Array(texts)) => texts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let request = Sampling {
        model: None,
        system_prompt: params.get("systemPrompt").and_then(Value::as_str).map(str::to_owned),
        messages,
        max_tokens,
        temperature: params.get("temperature").and_then(Value::as_f64),
        stop_sequences: texts(params.remove("stopSequences")),
        hints: hints(&params),
        budget,
    };
    let message = "May a model be asked this?".to_owned();
    Ok(Elicitation { key, message, wants: Wants::Sampling { request: Box::new(request) } })
}

fn hints(params: &Map<String, Value>) -> Vec<String> {
    let hints = params.get("modelPreferences").and_then(|preferences| preferences.get("hints")).and_then(Value::as_array);
    let names = hints.into_iter().flatten().filter_map(|hint| hint.get("name")?.as_str());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn message(message: &Value) -> Result<SamplingMessage, String> {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("user") => SamplingRole::User,
        Some("assistant") => SamplingRole::Assistant,
        _ => return Err("the `role` of each message is `user` or `assistant`".to_owned()),
    };
    let blocks = match message.get("content").cloned() {
        Some(Value::Array(blocks)) => blocks,
        Some(block @ Value::Object(_)) => vec![block],
        _ => return Err("the `content` of each message is a block or an array of them".to_owned()),
    };
    let is_tool = |block: &Value| matches!(block.get("type").and_then(Value::as_str), Some("tool_use" | "tool_result"));
    if blocks.iter().any(is_tool) {
        return Err("calls of tools and their results are not taken: `sampling.tools` was not offered".to_owned());
    }
    let content: Vec<ContentBlock> = blocks.into_iter().map(output::block).collect();
    if content.is_empty() {
        return Err("each message has content".to_owned());
    }
    Ok(SamplingMessage { role, content })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: SamplingBudget = SamplingBudget { max_requests: 1, max_output_tokens: 100 };

    fn said(role: &str, text: &str) -> Value {
        json!({"role": role, "content": {"type": "text", "text": text}})
    }

    #[test]
    fn a_question_to_a_model_is_read_whole() {
        let params = json!({
            "messages": [said("user", "a"), said("assistant", "b"), said("user", "c")], "systemPrompt": "s", "maxTokens": 7,
            "temperature": 0.5, "stopSequences": ["\n"], "includeContext": "none",
            "modelPreferences": {"hints": [{"name": "sonnet"}, {}, {"name": ""}], "costPriority": 0.3},
        });
        let message = |role, text: &str| SamplingMessage { role, content: vec![ContentBlock::text(text)] };
        let messages =
            vec![message(SamplingRole::User, "a"), message(SamplingRole::Assistant, "b"), message(SamplingRole::User, "c")];
        let request = Box::new(Sampling {
            model: None,
            system_prompt: Some("s".into()),
            messages,
            max_tokens: 7,
            temperature: Some(0.5),
            stop_sequences: vec!["\n".into()],
            hints: vec!["sonnet".into()],
            budget: BUDGET,
        });
        let expected =
            Elicitation { key: "k".into(), message: "May a model be asked this?".into(), wants: Wants::Sampling { request } };
        assert_eq!(question("k".into(), params, BUDGET), Ok(expected));
    }

    #[test]
    fn a_question_to_a_model_that_is_none_is_refused_in_words() {
        let ask = |messages: Value| json!({"messages": messages, "maxTokens": 5});
        let with_tools = json!({"messages": [said("user", "a")], "maxTokens": 5, "tools": []});
        let result = json!({"type": "tool_result", "toolUseId": "x", "content": []});
        let cases = [
            (json!(null), "a sampling request has parameters"),
            (json!({"messages": "hi", "maxTokens": 5}), "a sampling request has an array `messages`"),
            (ask(json!([])), "the last of the `messages` must be the user's"),
            (ask(json!([said("assistant", "a")])), "the last of the `messages` must be the user's"),
            (ask(json!([said("system", "a")])), "the `role` of each message is `user` or `assistant`"),
            (ask(json!([{"role": "user", "content": "a"}])), "the `content` of each message is a block or an array of them"),
            (ask(json!([{"role": "user", "content": []}])), "each message has content"),
            (
                ask(json!([{"role": "user", "content": [result]}])),
                "calls of tools and their results are not taken: `sampling.tools` was not offered",
            ),
            (with_tools, "a sampling request with tools is not taken: `sampling.tools` was not offered"),
            (json!({"messages": [said("user", "a")], "maxTokens": "many"}), "`maxTokens` must be a whole number above 0"),
        ];
        for (params, why) in cases {
            assert_eq!(question(String::new(), params, BUDGET), Err(why.to_owned()));
        }
    }
}
