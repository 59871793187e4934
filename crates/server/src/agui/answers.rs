//! What a page answers to interrupts: which of them are open, and whether what comes again is what was answered. Pure.

use std::collections::BTreeSet;

use serde_json::Value;
use turnwright_core::{
    AnswerAction, AnsweredBy, ApprovalId, CallId, ConversationId, Decision, ElicitationId, Entry, Form, Journal,
    QuestionReason, Verdict, Wants,
};
use turnwright_engine::{Answers, Choice, Reply, shown_name};

use crate::agui::input::{Resume, Status};
use crate::agui::interrupt::Interrupt;
use crate::arguments;
use crate::error::ApiError;
use crate::openai::responses::object;

/// What a page answers, of which all fits to what is asked or was.
#[derive(Debug)]
pub(crate) struct Resumed {
    /// To what is open; nothing where all was answered before as it is now.
    pub(crate) fresh: Answers,
    /// The calls that all of it is about.
    pub(crate) calls: Vec<CallId>,
    /// What was answered otherwise before, and how, in words for people: that counts.
    pub(crate) otherwise: Vec<String>,
}

/// What an answer is to.
#[derive(Debug)]
enum Answer {
    Call(ApprovalId, Choice),
    Question(ElicitationId, Reply),
}

/// How what is asked stands to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// It waits for one.
    Open,
    /// It has this one, or is closed without one of a person's.
    Answered,
    /// A person gave it another before: this one, in words.
    AnsweredOtherwise(String),
    /// It was never asked.
    Unasked,
}

/// What a page answers. All that is open is answered, or nothing of it: then all of it comes again. What somebody was quicker to
/// answer, at another door, is no longer open, and a page cannot know it: it is told of that, or it could never go on.
///
/// # Errors
/// 422, with what does not fit.
pub(crate) fn resumed(conversation: &ConversationId, journal: &Journal, answers: &[Resume]) -> Result<Resumed, ApiError> {
    let names: BTreeSet<&str> = answers.iter().map(|answer| answer.interrupt_id.as_str()).collect();
    if names.len() != answers.len() {
        return Err(ApiError::invalid("`resume` must answer each open interrupt once, and no other"));
    }
    let (mut fresh, mut calls, mut otherwise) = (Answers::default(), Vec::new(), Vec::new());
    for given in answers {
        let answer = Answer::read(conversation, given, journal)?;
        calls.push(answer.call());
        match answer.standing(journal) {
            Standing::Open => match answer {
                Answer::Call(asked, choice) => fresh.decisions.push((asked.into(), choice)),
                Answer::Question(question, reply) => fresh.replies.push((question, reply)),
            },
            Standing::Answered => {}
            Standing::AnsweredOtherwise(how) => otherwise.push(how),
            Standing::Unasked => return Err(unknown(&given.interrupt_id)),
        }
    }
    let waiting: Vec<String> = waiting(journal).map(|asked| asked.name(conversation)).collect();
    let answered = fresh.decisions.len().saturating_add(fresh.replies.len());
    if !fresh.is_empty() && answered != waiting.len() {
        return Err(not_answered(&waiting));
    }
    Ok(Resumed { fresh, calls, otherwise })
}

/// The names of the interrupts that are open.
pub(crate) fn interrupts(conversation: &ConversationId, journal: &Journal) -> Vec<String> {
    // Of what waits while something else still runs the page was not told.
    if !journal.open_turn().is_some_and(|turn| turn.is_parked() || turn.is_held()) {
        return Vec::new();
    }
    waiting(journal).map(|asked| asked.name(conversation)).collect()
}

/// Refuses what leaves interrupts open.
pub(crate) fn not_answered(open: &[String]) -> ApiError {
    ApiError::invalid(format!("interrupts are open; `resume` must answer each of them: {}", open.join(", ")))
}

fn unknown(name: &str) -> ApiError {
    ApiError::invalid(format!("there is no interrupt `{name}` in this thread"))
}

/// What waits for people.
fn waiting(journal: &Journal) -> impl Iterator<Item = Interrupt> {
    journal.turn().into_iter().flat_map(|turn| {
        let waiting = turn.waiting().filter(|(_, question)| question.reason != QuestionReason::ClientTool);
        let calls = waiting.map(|(call, _)| Interrupt::Approval(call.approval()));
        calls.chain(turn.questions().map(|question| Interrupt::Question(question.id)))
    })
}

impl Answer {
    /// What an answer says; refused where it is of another conversation, or does not fit what was asked for.
    fn read(conversation: &ConversationId, answer: &Resume, journal: &Journal) -> Result<Self, ApiError> {
        let given = answer.payload().filter(|payload| !payload.is_null());
        let given = given.as_ref();
        let wrong = |what: String| ApiError::invalid(format!("the payload for `{}` {what}", answer.interrupt_id));
        if let Some(other) = given.filter(|payload| !payload.is_object()) {
            return Err(wrong(format!("is {}, it must be an object", shown_name(&other.to_string()))));
        }
        let field = |key: &str| given.and_then(|payload| payload.get(key)).filter(|field| !field.is_null());
        let asked = match Interrupt::read(&answer.interrupt_id, conversation) {
            Some(Interrupt::Approval(asked)) => asked,
            Some(Interrupt::Question(question)) => return Ok(Self::Question(question, reply(answer))),
            None => return Err(unknown(&answer.interrupt_id)),
        };
        let is_approved = match (answer.status, field("approved")) {
            (Status::Cancelled, _) => false,
            (Status::Resolved, Some(Value::Bool(approved))) => *approved,
            (Status::Resolved, other) => {
                let got =
                    other.map_or_else(|| "is missing".to_owned(), |other| format!("is {}", shown_name(&other.to_string())));
                return Err(wrong(format!("says nothing: `approved` {got}, it must be true or false")));
            }
        };
        let is_unknown = reason_of(journal, asked) == Some(QuestionReason::UnknownOutcome);
        let verdict = match (is_unknown, is_approved) {
            (false, true) => Verdict::Allow,
            (false, false) => Verdict::Deny,
            (true, true) => Verdict::RunAgain,
            (true, false) => Verdict::Skip,
        };
        let arguments = match field("editedArgs").filter(|_| is_approved) {
            None => None,
            Some(Value::Object(_)) => answer.edited_arguments().map(str::to_owned),
            Some(other) => {
                return Err(wrong(format!("has {} as `editedArgs`, it must be an object", shown_name(&other.to_string()))));
            }
        };
        let reason = match field("reason") {
            None => None,
            Some(Value::String(reason)) => Some(reason.clone()),
            Some(other) => return Err(wrong(format!("has {} as `reason`, it must be a text", shown_name(&other.to_string())))),
        };
        Ok(Self::Call(asked, Choice { verdict, arguments, reason }))
    }

    fn call(&self) -> CallId {
        match self {
            Self::Call(asked, _) => asked.call,
            Self::Question(question, _) => question.call,
        }
    }

    fn standing(&self, journal: &Journal) -> Standing {
        match self {
            Self::Call(asked, choice) => of_call(journal, *asked, choice),
            Self::Question(question, reply) => of_question(journal, *question, reply),
        }
    }
}

/// What an answer to a form says.
fn reply(answer: &Resume) -> Reply {
    let declines = answer.metadata.as_ref().and_then(|data| data.get("turnwright")?.get("action")?.as_str()) == Some("decline");
    match answer.status {
        Status::Resolved => match answer.payload() {
            Some(Value::Object(content)) => Reply::accept(Some(content)),
            Some(_) | None => Reply::accept(None),
        },
        Status::Cancelled if declines => Reply::of(AnswerAction::Decline),
        Status::Cancelled => Reply::of(AnswerAction::Cancel),
    }
}

/// Why a person is asked this, where they are.
fn reason_of(journal: &Journal, asked: ApprovalId) -> Option<QuestionReason> {
    let mut waiting = journal.turn()?.waiting().filter(|(_, question)| question.reason != QuestionReason::ClientTool);
    waiting.find(|(call, _)| call.approval() == asked).map(|(_, question)| question.reason)
}

fn of_call(journal: &Journal, asked: ApprovalId, choice: &Choice) -> Standing {
    // An answer to what was asked about the call before is none to what is asked now.
    if reason_of(journal, asked).is_some() {
        return Standing::Open;
    }
    let (mut decided, mut was_asked) = (0_u32, false);
    for stored in journal.entries() {
        match &*stored.entry {
            Entry::Question(question) if question.call == asked.call && question.reason != QuestionReason::ClientTool => {
                was_asked |= decided.saturating_add(1) == asked.number;
            }
            Entry::Decision(decision) if decision.call == asked.call => {
                decided = decided.saturating_add(1);
                if !was_asked || decided != asked.number {
                    continue;
                }
                let read = |arguments: &str| serde_json::from_str::<Value>(arguments).unwrap_or_default();
                let is_same = match (decision.arguments.as_deref(), choice.arguments.as_deref()) {
                    (None, None) => true,
                    (Some(decided), Some(given)) => read(decided) == read(given),
                    (Some(_), None) => false,
                    // What is given back as it came changes nothing.
                    (None, Some(given)) => {
                        let call = journal.turn().and_then(|turn| turn.call(asked.call));
                        call.is_some_and(|call| read(arguments::told(call.arguments)) == read(given))
                    }
                };
                let is_it = decision.verdict.lets_run() == choice.verdict.lets_run()
                    && is_same
                    && (choice.reason.is_none() || decision.reason == choice.reason);
                return if is_it {
                    Standing::Answered
                } else {
                    Standing::AnsweredOtherwise(decided_in_words(journal, decision))
                };
            }
            _ => {}
        }
    }
    if was_asked { Standing::Answered } else { Standing::Unasked }
}

fn of_question(journal: &Journal, question: ElicitationId, reply: &Reply) -> Standing {
    if journal.turn().is_some_and(|turn| turn.questions().any(|open| open.id == question)) {
        return Standing::Open;
    }
    let mut asks = journal.entries().iter().filter_map(|stored| match &*stored.entry {
        Entry::Elicited(elicited) if elicited.call == question.call => Some(&elicited.asks),
        _ => None,
    });
    let index = usize::try_from(question.index).unwrap_or(usize::MAX);
    let Some(ask) = asks.by_ref().flatten().nth(index) else { return Standing::Unasked };
    let answered = journal.entries().iter().find_map(|stored| match &*stored.entry {
        Entry::Answered(answered) if answered.question == question => Some(answered),
        _ => None,
    });
    let Some(answered) = answered.filter(|answered| answered.by == AnsweredBy::Person) else { return Standing::Answered };
    let is_it = answered.action == reply.action
        && match (reply.action, &ask.wants) {
            (AnswerAction::Accept, Wants::Form { schema }) => {
                let given = reply.content.clone().unwrap_or_default();
                let filled = Form::read(schema).ok().and_then(|form| form.fill(given).ok());
                filled.is_some() && filled == answered.content
            }
            (AnswerAction::Accept, Wants::Url { .. } | Wants::Sampling { .. })
            | (AnswerAction::Decline | AnswerAction::Cancel, _) => true,
        };
    if is_it {
        return Standing::Answered;
    }
    let how = match answered.action {
        AnswerAction::Accept => "answered with something else",
        AnswerAction::Decline => "declined",
        AnswerAction::Cancel => "taken back",
    };
    let name = name_of(journal, question.call);
    Standing::AnsweredOtherwise(format!("What {name} asks had been {how} before this answer came; that counts."))
}

fn decided_in_words(journal: &Journal, decision: &Decision) -> String {
    let name = name_of(journal, decision.call);
    let had = match (decision.verdict, decision.arguments.is_some()) {
        (Verdict::Allow, false) => "been allowed",
        (Verdict::Allow, true) => "been allowed with other arguments",
        (Verdict::Deny, _) => "been denied",
        (Verdict::Happened, _) => "been said to have happened",
        (Verdict::RunAgain, _) => "been run again",
        (Verdict::Skip, _) => "been skipped",
    };
    format!("{name} had {had} before this answer came; that counts.")
}

fn name_of(journal: &Journal, id: CallId) -> &str {
    object::name_of(journal, id).unwrap_or("a call")
}
