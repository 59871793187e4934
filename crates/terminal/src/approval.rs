//! The question whether a call may run, and what a person can answer. Pure.

use serde_json::Value;
use turnwright_core::policy::Scope;
use turnwright_core::{QuestionReason, ToolDefinition, counted};
use turnwright_engine::WaitingCall;

use crate::clean::clean_line;
use crate::look::{Look, Paint};

/// The most lines of arguments that are shown at first.
const MAX_LINES: usize = 40;
/// The most characters of a line of them.
const MAX_LINE: usize = 400;

/// What a person answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Run it.
    Allow,
    /// Run it, and the like by itself from now on, this far.
    AllowFor(Scope),
    /// Do not run it; why, for the model.
    Deny(Option<String>),
    /// Run it with other arguments.
    Edit,
    /// Say more first.
    Why,
    /// Its outcome was unknown: it happened.
    Happened,
    /// Its outcome was unknown: run it again.
    RunAgain,
    /// Its outcome was unknown: go on without it.
    Skip,
    /// Decide later.
    Later,
    /// Stop the turn.
    Stop,
    /// None of these.
    Unclear,
}

/// Reads an answer to a question that is asked for this reason.
pub fn parse_reply(reason: QuestionReason, line: &str) -> Reply {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let word = word.trim_start_matches('/').to_lowercase();
    let may_be_unknown = reason == QuestionReason::UnknownOutcome;
    let reply = match (word.as_str(), may_be_unknown) {
        ("w" | "why" | "?" | "help", _) => Reply::Why,
        ("l" | "later", _) => Reply::Later,
        ("stop", _) | ("s", false) => Reply::Stop,
        ("y" | "yes" | "allow" | "once", false) => Reply::Allow,
        ("t" | "turn", false) => Reply::AllowFor(Scope::Turn),
        ("c" | "conversation", false) => Reply::AllowFor(Scope::Conversation),
        ("a" | "always", false) => Reply::AllowFor(Scope::User),
        ("e" | "edit", false) => Reply::Edit,
        ("n" | "no" | "d" | "deny", false) => {
            return Reply::Deny(Some(rest.trim().to_owned()).filter(|why| !why.is_empty()));
        }
        ("h" | "happened", true) => Reply::Happened,
        ("r" | "run_again", true) => Reply::RunAgain,
        ("s" | "skip", true) => Reply::Skip,
        _ => Reply::Unclear,
    };
    // Words after a choice that takes none may mean something else than the choice.
    if rest.trim().is_empty() { reply } else { Reply::Unclear }
}

/// The question, several lines without a break at the end.
pub fn question(call: &WaitingCall, look: Look) -> String {
    let name = look.paint(Paint::Strong, &clean_line(&call.name));
    let asks = match call.reason {
        QuestionReason::Approval => format!("{name} wants to run with"),
        QuestionReason::UnknownOutcome => format!("{name} was interrupted and may or may not have happened, with"),
        QuestionReason::Loop => match &call.rule {
            Some(rule) => format!("{}; {name} would be called once more with", clean_line(rule)),
            None => format!("the model repeats itself; {name} would be called once more with"),
        },
        QuestionReason::DefinitionChanged => format!("{name} is not the tool any more that was allowed; it wants to run with"),
        QuestionReason::ClientTool => {
            format!("{name} runs at the program that offers it, whose result is waited for; it is called with")
        }
    };
    let always = call.always.as_ref().map(|rule| format!("\nthe like: {}", cut(&rule.to_string(), MAX_LINE)));
    format!("{asks}\n{}{}", arguments(&call.arguments, MAX_LINES), always.unwrap_or_default())
}

/// What a person can answer.
pub(crate) fn choices(reason: QuestionReason) -> &'static str {
    match reason {
        QuestionReason::Approval | QuestionReason::DefinitionChanged => {
            "[y]es, the like in this [t]urn, in this [c]onversation, [a]lways, [n]o WHY, [e]dit arguments, [w]hy, [l]ater, [s]top the turn"
        }
        QuestionReason::Loop => "let it go on: [y]es, [n]o WHY, [e]dit arguments, [w]hy, [l]ater, [s]top the turn",
        QuestionReason::ClientTool => "[n]o WHY, [w]hy, [l]ater, [s]top the turn",
        QuestionReason::UnknownOutcome => "it [h]appened, [r]un it again, [s]kip it, [w]hy, [l]ater, stop the turn",
    }
}

/// A decision that lets it go on, as `turnwright approvals decide` takes it.
pub fn suggested(reason: QuestionReason) -> &'static str {
    match reason {
        QuestionReason::Approval | QuestionReason::DefinitionChanged | QuestionReason::Loop => "allow",
        QuestionReason::UnknownOutcome => "run_again",
        QuestionReason::ClientTool => "deny",
    }
}

/// All that is known about the question; `flags` follow the command that decides it.
pub(crate) fn why(call: &WaitingCall, tool: Option<&ToolDefinition>, flags: &str) -> String {
    let mut lines = vec![match call.reason {
        QuestionReason::Approval => "A person is asked before this runs.".to_owned(),
        QuestionReason::UnknownOutcome => {
            "The process that ran this is gone. Nothing here knows how far it came: look, then decide.".to_owned()
        }
        QuestionReason::DefinitionChanged => "The tool's description or schema changed since it was allowed.".to_owned(),
        QuestionReason::Loop => {
            "The model asked for the same again and again, and got the same. With yes it goes on, with no it is told to stop that.".to_owned()
        }
        QuestionReason::ClientTool => {
            "A program that asked by the OpenAI-compatible API offers this tool and runs it itself. With no it is not waited for.".to_owned()
        }
    }];
    lines.extend(call.rule.as_ref().map(|rule| format!("asked by: {}", clean_line(rule))));
    if let Some(tool) = tool {
        lines.push(format!("tool: {} of {}", clean_line(&tool.tool), clean_line(&tool.source)));
        lines.push(format!("it says: {}", clean_line(&tool.description)));
        lines.extend(
            tool.annotations.as_ref().map(|hints| format!("its own hints, not checked: {}", clean_line(&hints.to_string()))),
        );
    }
    lines.push(format!("all arguments:\n{}", arguments(&call.arguments, usize::MAX)));
    let (id, asked, conversation, choice) = (call.call, call.approval, &call.conversation, suggested(call.reason));
    let elsewhere =
        format!("turnwright approvals decide {id} {choice} --approval {asked} --conversation {conversation}{flags}");
    lines.push(format!("elsewhere: {elsewhere}"));
    lines.join("\n")
}

/// Arguments on indented lines.
fn arguments(text: &str, most: usize) -> String {
    let value: Result<Value, _> = serde_json::from_str(text);
    let pretty = value.ok().and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| text.to_owned());
    let longest = if most == usize::MAX { usize::MAX } else { MAX_LINE };
    let mut lines: Vec<String> = pretty.lines().take(most).map(|line| format!("  {}", cut(line, longest))).collect();
    let more = pretty.lines().count().saturating_sub(most);
    if more > 0 {
        lines.push(format!("  … {}, `why` shows all", counted(more, "more line")));
    }
    lines.join("\n")
}

fn cut(line: &str, most: usize) -> String {
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{} … `why` shows all", clean_line(line.get(..end).unwrap_or_default())),
        None => clean_line(line).into_owned(),
    }
}
