//! Calls that end before they are done, since the server wants something first (`resultType: input_required` of 2026-07-28, and
//! the error -32042 of 2025-11-25).

use rmcp::model::{ErrorData, InputResponses};
use serde_json::{Map, Value, json};
use turnwright_core::{AnswerAction, Elicitation, Resumption, Settled, Wants};

use crate::Granted;
use crate::client::{self, question};
use crate::task::Task;

/// The code of "open these addresses first, then call again".
pub(crate) const URL_ELICITATION_REQUIRED: i32 = -32042;

/// What a server wants before it goes on with a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    /// What is asked of people.
    pub(crate) asks: Vec<Elicitation>,
    /// What is sent with the call when it is made again, besides the answers of people.
    pub(crate) again: Again,
}

/// How a call is made again.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Again {
    /// For the first time, or as if it were.
    #[default]
    Plain,
    /// With answers, and the server's own state byte for byte.
    Answered {
        /// The answers so far, by the server's names for its requests.
        responses: InputResponses,
        /// The server's state, where it gave one.
        state: Option<String>,
    },
    /// It goes on by itself, and is given these answers.
    Task {
        /// As what.
        task: Task,
        /// The answers so far.
        responses: InputResponses,
    },
}

/// Reads what a server wants. What it is given without asking anybody is among the answers already.
///
/// # Errors
/// The end of "The tool T of the MCP server S …".
pub(crate) fn wanted(answer: Map<String, Value>, granted: &Granted) -> Result<Wanted, String> {
    let mut answer = answer;
    let state = match answer.remove("requestState") {
        Some(Value::String(state)) => Some(state),
        None | Some(Value::Null) => None,
        Some(_) => return Err("asks for more input with a state that is no text".to_owned()),
    };
    let requests = match answer.remove("inputRequests") {
        Some(Value::Object(requests)) => requests,
        None | Some(Value::Null) => Map::new(),
        Some(_) => return Err("asks for more input and does not say what".to_owned()),
    };
    let (mut asks, mut responses) = (Vec::new(), InputResponses::new());
    for (key, request) in requests {
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let params = request.get("params").cloned().unwrap_or_default();
        match method.as_str() {
            "elicitation/create" => {
                asks.push(
                    question(key, params).map_err(|why| format!("asks the user for something that is no question: {why}"))?,
                );
            }
            client::SAMPLING if let Some(budget) = granted.sampling => {
                let asked = client::sampling_question(key, params, budget);
                asks.push(asked.map_err(|why| format!("asks for an answer of a model in a way that is not taken: {why}"))?);
            }
            client::ROOTS if !granted.roots.is_empty() => {
                responses.extend(granted.roots_listed().map(|roots| (key, roots)));
            }
            _ => return Err(format!("asks for more input by `{method}`, which was not offered to it")),
        }
    }
    Ok(Wanted { asks, again: Again::Answered { responses, state } })
}

/// Reads the addresses that a server wants to have opened before a call. `None` where the error is another.
pub(crate) fn addresses(error: &ErrorData) -> Option<Wanted> {
    let asked = error.data.as_ref().filter(|_| error.code.0 == URL_ELICITATION_REQUIRED)?.get("elicitations")?.as_array()?;
    let one = |asked: &Value| question(String::new(), asked.clone()).ok();
    let asks = asked.iter().map(one).collect::<Option<Vec<_>>>().filter(|asks| !asks.is_empty())?;
    Some(Wanted { asks, again: Again::Plain })
}

impl Again {
    /// Whether nothing goes with it.
    pub(crate) fn is_nothing(&self) -> bool {
        match self {
            Self::Plain | Self::Task { .. } => true,
            Self::Answered { responses, state } => responses.is_empty() && state.is_none(),
        }
    }

    /// The answers that it goes with.
    pub(crate) fn responses(self) -> InputResponses {
        match self {
            Self::Plain => InputResponses::new(),
            Self::Answered { responses, .. } | Self::Task { responses, .. } => responses,
        }
    }

    /// Puts it into the parameters of a request that is made again.
    pub(crate) fn add_to(&self, params: &mut Value) {
        let (Self::Answered { responses, state }, Value::Object(params)) = (self, params) else { return };
        params.insert("inputResponses".to_owned(), json!(responses));
        match state {
            Some(state) => params.insert("requestState".to_owned(), state.as_str().into()),
            None => params.remove("requestState"),
        };
    }

    /// What is stored until people have answered.
    pub(crate) fn stored(&self) -> Value {
        match self {
            Self::Plain => json!({"call": "again"}),
            Self::Task { task, responses } => json!({"task": task.stored(), "inputResponses": responses}),
            Self::Answered { responses, state } => json!({"requestState": state, "inputResponses": responses}),
        }
    }

    /// The call that was stored, with what people answered.
    ///
    /// # Errors
    /// The end of "The tool T of the MCP server S …", where it is not to be made again.
    pub(crate) fn resumed(resumption: &Resumption) -> Result<Self, String> {
        let stored = &resumption.resume;
        let Some(responses) = stored.get("inputResponses") else {
            let is_agreed = resumption.answers.iter().all(|settled| settled.answer.action == AnswerAction::Accept);
            let refused = "wants an address to be opened first, and the user did not agree to that. It was not called again";
            return if is_agreed { Ok(Self::Plain) } else { Err(refused.to_owned()) };
        };
        let mut responses: InputResponses = serde_json::from_value(responses.clone()).unwrap_or_default();
        for settled in &resumption.answers {
            responses.insert(settled.ask.key.clone(), response(settled)?);
        }
        if let Some(task) = stored.get("task").and_then(Task::resumed) {
            return Ok(Self::Task { task, responses });
        }
        let state = stored.get("requestState").and_then(Value::as_str).map(str::to_owned);
        Ok(Self::Answered { responses, state })
    }
}

/// The protocol's answer to a request.
///
/// # Errors
/// The end of "The tool T of the MCP server S …", where there is none.
fn response(settled: &Settled) -> Result<Value, String> {
    let Settled { ask, answer, sampled } = settled;
    let Wants::Sampling { request } = &ask.wants else {
        return Ok(client::answer_of(answer.action, answer.content.clone().map(Value::Object)));
    };
    if let Some(sampled) = sampled {
        return client::sampled_of(request, sampled)
            .map_err(|why| format!("wants an answer of a model first, and there was none: {why}. It did not finish"));
    }
    let why = answer.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    Err(format!("wants an answer of a model first, and that was not allowed{why}. It did not finish"))
}
