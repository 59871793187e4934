//! What an answer to a question of a call appends.

use serde_json::{Map, Value};
use turnwright_core::{AnswerAction, Answered, AnsweredBy, ElicitationId, Entry, Form, Journal, Wants};

use super::{Act, still_open};
use crate::inner::Inner;
use crate::live::State;
use crate::{EngineError, Reply};

/// Checks an answer against what is asked, and completes it with the defaults of the form.
pub(super) fn answer(
    inner: &Inner,
    state: &State,
    question: ElicitationId,
    (reply, by): (&Reply, AnsweredBy),
) -> Result<Act<Option<Map<String, Value>>>, EngineError> {
    let Some((turn, open)) =
        state.journal.turn().and_then(|turn| Some((turn, turn.questions().find(|open| open.id == question)?)))
    else {
        return Err(not_open(&state.journal, question));
    };
    let content = match (reply.action, &open.ask.wants) {
        (AnswerAction::Accept, Wants::Form { schema }) => {
            let form = Form::read(schema).map_err(|problem| EngineError::Invalid { what: problem })?;
            let filled = form.fill(reply.content.clone().unwrap_or_default());
            Some(filled.map_err(|problems| EngineError::Misfilled { problems })?)
        }
        (AnswerAction::Accept, Wants::Url { .. }) if reply.content.as_ref().is_some_and(|content| !content.is_empty()) => {
            return Err(EngineError::Invalid {
                what: "an address is agreed to or not; there is nothing to fill in".to_owned(),
            });
        }
        (AnswerAction::Accept, Wants::Sampling { .. }) if reply.content.as_ref().is_some_and(|content| !content.is_empty()) => {
            return Err(EngineError::Invalid {
                what: "asking a model is allowed or not; there is nothing to fill in".to_owned(),
            });
        }
        (AnswerAction::Accept, Wants::Sampling { request }) => match request.budget.left(turn.spent(open.source)) {
            Ok(left) if request.max_tokens <= left => None,
            Ok(left) => {
                let what =
                    format!("of its tokens of answers of this turn {left} are left; this asks for {}", request.max_tokens);
                return Err(EngineError::Invalid { what });
            }
            Err(what) => return Err(EngineError::Invalid { what }),
        },
        (AnswerAction::Decline | AnswerAction::Cancel, _) if reply.content.is_some() => {
            let what = format!("`{}` takes no content; only `accept` does", reply.action.as_str());
            return Err(EngineError::Invalid { what });
        }
        (AnswerAction::Accept, Wants::Url { .. }) | (AnswerAction::Decline | AnswerAction::Cancel, _) => None,
    };
    let action = reply.action;
    let answered = Answered { question, action, content: content.clone(), by, reason: None };
    let side = vec![still_open(inner, state, turn.id())];
    Ok(Act::of(vec![Entry::Answered(answered)], side, content))
}

/// Why a question cannot be answered.
fn not_open(journal: &Journal, question: ElicitationId) -> EngineError {
    let after = usize::try_from(question.call.message.get()).unwrap_or(usize::MAX);
    let mut asked = 0_usize;
    for stored in journal.entries().get(after..).unwrap_or_default() {
        match &*stored.entry {
            Entry::Assistant(_) => break,
            Entry::Elicited(elicited) if elicited.call == question.call => asked = asked.saturating_add(elicited.asks.len()),
            Entry::Answered(answered) if answered.question == question => {
                return EngineError::NotAsked { question, why: "it has its answer already".to_owned() };
            }
            _ => {}
        }
    }
    if usize::try_from(question.index).is_ok_and(|index| index < asked) {
        return EngineError::NotAsked { question, why: "it is closed: the call that asked is over".to_owned() };
    }
    EngineError::NotFound { what: format!("question `{question}` in this conversation") }
}
