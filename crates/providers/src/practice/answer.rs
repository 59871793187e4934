//! The practice model's answer to a prompt: a pure function.

use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult};
use turnwright_core::{ContentBlock, Finish, FinishReason, Outcome, StreamDelta, ToolDefinition, ToolErrorKind};

use super::pick::{Missing, Pick, pick};

/// How every answer begins.
pub(super) const WHAT_IT_IS: &str = "Practice model (no language model, only word matching): ";

/// The longest question that is looked at, in characters.
const MOST_QUESTION_CHARACTERS: usize = 8_000;
/// The most characters of one result that an answer repeats.
const MOST_RESULT_CHARACTERS: usize = 4_000;
/// The most tools that an answer names.
const MOST_TOOLS_NAMED: usize = 40;
/// The most pieces in which an answer comes, and the fewest bytes of one.
const MOST_PIECES: usize = 8;
const LEAST_PIECE_BYTES: usize = 16;

/// What the practice model says to a prompt. One delta is one piece of the stream.
pub(super) fn answer(prompt: &Prompt<'_>) -> Vec<StreamDelta> {
    let asked = Asked::of(prompt);
    let mut said: Vec<String> = Vec::new();
    let is_single = asked.results.len() == 1;
    said.extend(asked.results.iter().map(|result| report(result, is_single)));
    if !asked.is_answered {
        match pick(prompt.tools, &asked.question) {
            Pick::Call { calls, missing } if prompt.allow_calls => {
                // Results that are already there are told with those to come.
                return ask(calls, &missing);
            }
            Pick::Call { calls, .. } => {
                let names: Vec<String> = calls.iter().map(|(name, _)| format!("`{name}`")).collect();
                said.push(format!("{} fits best, but no tool may be called any more in this turn.", names.join(", ")));
            }
            Pick::Ask(missing) => said.extend(missing.iter().map(lacking)),
            Pick::Nothing => said.push(nothing(prompt.tools)),
        }
    }
    let mut deltas = pieces(&format!("{WHAT_IT_IS}{}", said.join("\n")));
    deltas.push(finished(FinishReason::Stop));
    deltas
}

/// What is to be answered.
struct Asked<'a> {
    /// The newest words of the person.
    question: String,
    /// Whether the newest thing in the prompt are the results for the question.
    is_answered: bool,
    /// Results that were not told yet.
    results: Vec<&'a PromptResult<'a>>,
}

impl<'a> Asked<'a> {
    fn of(prompt: &'a Prompt<'a>) -> Self {
        let mut asked = Self { question: String::new(), is_answered: false, results: Vec::new() };
        let mut was_user = false;
        for message in &prompt.messages {
            match message {
                PromptMessage::User { message: user, .. } => {
                    if !was_user {
                        asked.question.clear();
                        // What an older question did not get to is over with it.
                        asked.results.retain(|result| !is_unfinished(result));
                    }
                    asked.is_answered = false;
                    for block in &user.content {
                        if let ContentBlock::Text { text } = block {
                            asked.question.push_str(text);
                            asked.question.push('\n');
                        }
                    }
                }
                // What was gathered is not asked.
                PromptMessage::Context { .. } => continue,
                PromptMessage::Assistant { message, .. } => {
                    if message.calls().next().is_none() {
                        asked.results.clear();
                    }
                }
                PromptMessage::Results(results) => {
                    asked.results.extend(results);
                    asked.is_answered = true;
                }
            }
            was_user = matches!(message, PromptMessage::User { .. });
        }
        if let Some((end, _)) = asked.question.char_indices().nth(MOST_QUESTION_CHARACTERS) {
            asked.question.truncate(end);
        }
        asked
    }
}

fn is_unfinished(result: &PromptResult<'_>) -> bool {
    matches!(result.result.outcome, Outcome::Error(ToolErrorKind::Cancelled | ToolErrorKind::Interrupted))
}

/// What a tool said, in words.
fn report(result: &PromptResult<'_>, is_single: bool) -> String {
    let name = &result.call.name;
    let with = || format!(" with {}", literal(result.call.arguments_object(), ""));
    let with = if is_single { String::new() } else { with() };
    let how = match result.result.outcome {
        Outcome::Success => "answered".to_owned(),
        Outcome::Denied => "did not run".to_owned(),
        Outcome::Error(kind) => format!("failed ({})", kind.as_str().replace('_', " ")),
    };
    let mut text = result.text();
    let mut more = String::new();
    if let Some((end, _)) = text.char_indices().nth(MOST_RESULT_CHARACTERS) {
        more = format!("\n[… {} more characters]", text.get(end..).map_or(0, |rest| rest.chars().count()));
        text.truncate(end);
    }
    // What goes wrong is told in words, in which names stand as code already.
    let may_have = if result.result.outcome == Outcome::Success { "" } else { "`" };
    let text = literal(text.trim_end(), may_have) + &more;
    let gap = if text.contains('\n') { "\n" } else { " " };
    format!("`{name}`{with} {how}:{gap}{text}")
}

/// A text that is shown as it is by whoever reads answers as Markdown: as code, unless nothing in it has a meaning there but signs of
/// `may_have`.
fn literal(text: &str, may_have: &str) -> String {
    let is_plain = |sign: char| sign.is_alphanumeric() || sign.is_whitespace() || ".,:;!?()'\"/%@-{}…".contains(sign);
    let is_item = |line: &str| {
        let rest = line.trim_start_matches(|sign: char| sign.is_ascii_digit());
        line.starts_with(char::is_whitespace)
            || rest.starts_with('-')
            || (rest.len() < line.len() && rest.starts_with(['.', ')']))
    };
    if text.chars().all(|sign| is_plain(sign) || may_have.contains(sign)) && !text.lines().any(is_item) {
        return text.to_owned();
    }
    let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or(0);
    if text.contains('\n') {
        let fence = "`".repeat(longest.max(2) + 1);
        return format!("{fence}\n{text}\n{fence}");
    }
    let ticks = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{text}{space}{ticks}")
}

fn lacking(missing: &Missing) -> String {
    let names: Vec<String> = missing.arguments.iter().map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    format!("`{}` fits best, but the question does not say its {names}. Putting it in quotation marks helps.", missing.tool)
}

fn nothing(tools: &[std::sync::Arc<ToolDefinition>]) -> String {
    if tools.is_empty() {
        return "no tool is offered, so there is nothing that it could do. A configured model provider gives real answers."
            .to_owned();
    }
    let mut names: Vec<String> = tools.iter().take(MOST_TOOLS_NAMED).map(|tool| format!("`{}`", tool.name)).collect();
    if tools.len() > MOST_TOOLS_NAMED {
        names.push(format!("and {} more", tools.len() - MOST_TOOLS_NAMED));
    }
    format!(
        "no offered tool fits the words of the question. Offered are {}. A configured model provider gives real answers.",
        names.join(", ")
    )
}

/// The calls, after what is missing for others.
fn ask(calls: Vec<(String, serde_json::Map<String, serde_json::Value>)>, missing: &[Missing]) -> Vec<StreamDelta> {
    let mut deltas = Vec::new();
    if !missing.is_empty() {
        let said: Vec<String> = missing.iter().map(lacking).collect();
        deltas.extend(pieces(&format!("{WHAT_IT_IS}{}", said.join("\n"))));
    }
    for ((name, arguments), key) in calls.into_iter().zip(0_u32..) {
        deltas.push(StreamDelta::CallStarted { key, name, provider_id: None });
        deltas.push(StreamDelta::CallArguments { key, text: serde_json::Value::Object(arguments).to_string() });
    }
    deltas.push(finished(FinishReason::ToolCalls));
    deltas
}

fn finished(reason: FinishReason) -> StreamDelta {
    StreamDelta::Finished(Finish { reason, raw: None })
}

/// A text in a few pieces that end between words.
fn pieces(text: &str) -> Vec<StreamDelta> {
    let size = (text.len() / MOST_PIECES).max(LEAST_PIECE_BYTES);
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        piece.push_str(word);
        if piece.len() >= size {
            pieces.push(StreamDelta::Text(std::mem::take(&mut piece)));
        }
    }
    if !piece.is_empty() {
        pieces.push(StreamDelta::Text(piece));
    }
    pieces
}
