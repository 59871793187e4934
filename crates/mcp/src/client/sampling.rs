//! What a server asks of a model: `sampling/createMessage`, in both eras.

mod tools;

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use turnwright_core::{
    AnswerAction, Elicitation, FinishReason, Sampled, Sampling, SamplingBudget, SamplingMessage, SamplingOutcome, SamplingRole,
    Wants,
};

use super::elicitation::ask;
use crate::output;
use crate::transport::{Wire, call_of};

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
    let call = call_of(params.as_ref());
    let asked = question(String::new(), params.unwrap_or_default(), budget);
    let asked = asked.map_err(|why| ErrorData::invalid_params(why, None))?;
    let reply = ask(wire, call.as_ref(), &asked, cancelled).await?;
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
    let calls: Vec<Value> = if request.tools.is_empty() { Vec::new() } else { tools::told(sampled, message).collect() };
    let reason = match message.finish.reason {
        _ if !calls.is_empty() => "toolUse",
        _ if is_stopped => "stopSequence",
        FinishReason::Length => "maxTokens",
        FinishReason::Refusal | FinishReason::ContentFilter => "refusal",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Pause | FinishReason::Error => "endTurn",
    };
    let said = json!({"type": "text", "text": text});
    let content =
        if calls.is_empty() { said } else { Some(said).filter(|_| !text.is_empty()).into_iter().chain(calls).collect() };
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
    let (tools, tool_choice) = tools::offered(&mut params)?;
    let Some(Value::Array(messages)) = params.remove("messages") else {
        return Err("a sampling request has an array `messages`".to_owned());
    };
    let mut messages = messages.iter().map(message).collect::<Result<Vec<_>, _>>()?;
    tools::answered(&mut messages)?;
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
        tools,
        tool_choice,
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
    let mut said = SamplingMessage::saying(role, Vec::new());
    for block in blocks {
        match (block.get("type").and_then(Value::as_str), role) {
            (Some("tool_use"), SamplingRole::Assistant) => said.calls.push(tools::call(&block)?),
            (Some("tool_result"), SamplingRole::User) => said.results.push(tools::result(block)?),
            (Some("tool_use"), SamplingRole::User) => return Err("a `tool_use` is the assistant's".to_owned()),
            (Some("tool_result"), SamplingRole::Assistant) => return Err("a `tool_result` is the user's".to_owned()),
            _ => said.content.push(output::block(block)),
        }
    }
    match (said.content.is_empty(), said.calls.is_empty(), said.results.is_empty()) {
        (true, true, true) => Err("each message has content".to_owned()),
        (false, _, false) => Err("a message with results of tools holds nothing else".to_owned()),
        _ => Ok(said),
    }
}

#[cfg(test)]
mod tests {
    use turnwright_core::ContentBlock;

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
        let message = |role, text: &str| SamplingMessage::saying(role, vec![ContentBlock::text(text)]);
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
            tools: Vec::new(),
            tool_choice: None,
            budget: BUDGET,
        });
        let expected =
            Elicitation { key: "k".into(), message: "May a model be asked this?".into(), wants: Wants::Sampling { request } };
        assert_eq!(question("k".into(), params, BUDGET), Ok(expected));
    }

    #[test]
    fn a_question_to_a_model_that_is_none_is_refused_in_words() {
        let ask = |messages: Value| json!({"messages": messages, "maxTokens": 5});
        let with_tools = |tools: Value| json!({"messages": [said("user", "a")], "maxTokens": 5, "tools": tools});
        let result = |id: &str| json!({"type": "tool_result", "toolUseId": id, "content": []});
        let used = |id: &str| json!({"role": "assistant", "content": {"type": "tool_use", "id": id, "name": "t", "input": {}}});
        let cases = [
            (json!(null), "a sampling request has parameters"),
            (json!({"messages": "hi", "maxTokens": 5}), "a sampling request has an array `messages`"),
            (ask(json!([])), "the last of the `messages` must be the user's"),
            (ask(json!([said("assistant", "a")])), "the last of the `messages` must be the user's"),
            (ask(json!([said("system", "a")])), "the `role` of each message is `user` or `assistant`"),
            (ask(json!([{"role": "user", "content": "a"}])), "the `content` of each message is a block or an array of them"),
            (ask(json!([{"role": "user", "content": []}])), "each message has content"),
            (
                ask(json!([{"role": "user", "content": [result("x")]}])),
                "the result of `x` belongs to no call of the message before it",
            ),
            (ask(json!([used("x"), said("user", "a")])), "the message after the call `x` has no result of it"),
            (
                ask(json!([used("x"), {"role": "user", "content": [result("x"), {"type": "text", "text": "a"}]}])),
                "a message with results of tools holds nothing else",
            ),
            (ask(json!([{"role": "assistant", "content": [result("x")]}])), "a `tool_result` is the user's"),
            (with_tools(json!([{"name": "a b"}])), "the name of a tool is 1 to 64 letters, digits, `_` and `-`, not \"a b\""),
            (with_tools(json!([{"name": "t"}, {"name": "t"}])), "the tool `t` is there twice"),
            (with_tools(json!([{"name": "t", "inputSchema": true}])), "the inputSchema of the tool `t` is no object"),
            (json!({"messages": [said("user", "a")], "maxTokens": "many"}), "`maxTokens` must be a whole number above 0"),
        ];
        for (params, why) in cases {
            assert_eq!(question(String::new(), params, BUDGET), Err(why.to_owned()));
        }
    }
}
