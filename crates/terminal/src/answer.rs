//! What a tool asks of the person, field by field.

use serde_json::{Map, Value};
use turnwright_core::{AnswerAction, Field, FieldKind, Form, Hold, Sampling, Wants, counted, shell_word, text_of};
use turnwright_engine::{EngineError, Reply, WaitingQuestion};

use crate::carry::{Asked, Person};
use crate::clean::clean_line;
use crate::editor::Wanted;
use crate::follow::Interrupts;
use crate::look::{Look, Paint};
use crate::screen::Screen;

/// What a person can say in the place of a value.
const WORDS: &str = "/decline, /cancel, /later or /stop in place of a value; an empty line keeps what stands in brackets";

/// What a person wants at the end, or in the place of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Yes,
    Again,
    Decline,
    Cancel,
    Later,
    Stop,
}

/// Reads a choice.
fn wish(line: &str) -> Option<Wish> {
    match line.trim().trim_start_matches('/').to_lowercase().as_str() {
        "y" | "yes" | "a" | "accept" => Some(Wish::Yes),
        "e" | "edit" => Some(Wish::Again),
        "n" | "no" | "d" | "decline" => Some(Wish::Decline),
        "c" | "cancel" => Some(Wish::Cancel),
        "l" | "later" => Some(Wish::Later),
        "s" | "stop" => Some(Wish::Stop),
        _ => None,
    }
}

/// Reads what is wanted in the place of a value: one of the [`WORDS`] alone, since a value may well be a path such as `/a`.
fn instead(line: &str) -> Option<Wish> {
    match line.trim() {
        "/decline" => Some(Wish::Decline),
        "/cancel" => Some(Wish::Cancel),
        "/later" => Some(Wish::Later),
        "/stop" => Some(Wish::Stop),
        _ => None,
    }
}

/// What is asked and by whom, several lines without a break at the end.
pub fn asked(question: &WaitingQuestion, look: Look) -> String {
    let server = look.paint(Paint::Strong, &clean_line(&question.source));
    let mut lines = vec![format!("{server} asks, for {}: {}", clean_line(&question.name), clean_line(&question.ask.message))];
    if let Wants::Sampling { request } = &question.ask.wants {
        lines.extend(sampling(request, look));
    }
    if let Wants::Url { url } = &question.ask.wants {
        lines.push("It wants this address to be opened in a browser:".to_owned());
        lines.push(format!("  {}", clean_line(url)));
        let host = question.host().map_or_else(|| "none that can be told".to_owned(), |host| clean_line(host).into_owned());
        lines.push(format!("  host: {}", look.paint(Paint::Strong, &host)));
    }
    if let Hold::Connection { .. } = question.hold {
        lines.push("The tool waits on its open connection; without an answer it goes on by itself after a while.".to_owned());
    }
    lines.join("\n")
}

/// The commands that answer a question elsewhere, with what has no default to be filled in; `flags` follow each.
pub fn answering(question: &WaitingQuestion, flags: &str) -> [String; 2] {
    let values: Vec<String> = match &question.ask.wants {
        Wants::Url { .. } | Wants::Sampling { .. } => Vec::new(),
        Wants::Form { schema } => {
            let fields = Form::read(schema).map(|form| form.fields).unwrap_or_default();
            let value = |field: &Field| format!(" {}", shell_word(&format!("{}=VALUE", clean_line(&field.name))));
            fields.iter().filter(|field| field.default.is_none()).map(value).collect()
        }
    };
    let command = format!(
        "turnwright approvals answer {} --conversation {}{flags}",
        question.id,
        clean_line(question.conversation.as_str())
    );
    [format!("{command} --accept{}", values.concat()), format!("{command} --decline")]
}

/// What somebody is told who puts off a question whose call holds its connection.
pub(crate) fn held(question: &WaitingQuestion, now_ms: u64, flags: &str) -> String {
    let minutes = match question.hold {
        Hold::Connection { until_ms } => until_ms.saturating_sub(now_ms).div_ceil(60_000),
        Hold::Nothing => 0,
    };
    let note = format!(
        "note: the call waits for an answer from elsewhere, for {} at most; Ctrl-C stops the turn",
        counted(minutes, "minute")
    );
    let [accept, decline] = answering(question, flags);
    format!("{note}\nhint: {accept}\nhint: {decline}")
}

/// What a model is to be asked.
fn sampling(request: &Sampling, look: Look) -> Vec<String> {
    let model = request.model.as_ref().map_or_else(|| "a model".to_owned(), ToString::to_string);
    let tokens = request.max_tokens;
    let mut lines = vec![format!(
        "It wants {} to be asked, at your cost, for at most {tokens} tokens:",
        look.paint(Paint::Strong, &clean_line(&model))
    )];
    let mut say = |who: &str, text: &str| lines.extend(shown(text).map(|line| format!("  {who}: {line}")));
    if let Some(system_prompt) = &request.system_prompt {
        say("system", system_prompt);
    }
    for message in &request.messages {
        if !message.content.is_empty() {
            say(message.role.as_str(), &text_of(&message.content));
        }
        for call in &message.calls {
            say(message.role.as_str(), &format!("[calls {} {}]", call.name, Value::Object(call.arguments.clone())));
        }
        for result in &message.results {
            say("its tool", &text_of(&result.content));
        }
    }
    if !request.tools.is_empty() {
        let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        lines.push(format!("  tools of its own that the model may ask for: {}", clean_line(&names.join(", "))));
    }
    lines
}

/// The lines of a text as a person is shown them before it is sent to a model.
fn shown(text: &str) -> impl Iterator<Item = String> {
    const MOST: usize = 40;
    let rest = text.lines().count().saturating_sub(MOST);
    let more = (rest > 0).then(|| format!("[{}]", counted(rest, "more line")));
    text.lines().take(MOST).map(|line| clean_line(line).into_owned()).chain(more).collect::<Vec<_>>().into_iter()
}

/// Asks a question until it has its answer.
pub(crate) async fn answer(
    person: &mut Person<'_, impl Screen, impl Interrupts>,
    question: &WaitingQuestion,
) -> Result<Asked, EngineError> {
    let look = person.teller.renderer.look();
    person.teller.say(&asked(question, look)).await;
    loop {
        let (wish, content) = match given(person, question).await {
            Ok(given) => given,
            Err(asked) => return Ok(asked),
        };
        let reply = match wish {
            Wish::Yes => Reply::accept(content),
            Wish::Decline => Reply::of(AnswerAction::Decline),
            Wish::Cancel => Reply::of(AnswerAction::Cancel),
            Wish::Again => continue,
            Wish::Later => return Ok(Asked::Later),
            Wish::Stop => return Ok(Asked::Stop(None)),
        };
        match person.engine.answer(&question.conversation, question.id, reply).await {
            Ok(_) => return Ok(Asked::Decided),
            Err(error @ (EngineError::Misfilled { .. } | EngineError::Invalid { .. })) => {
                person.teller.say(&format!("error: {}", clean_line(&error.to_string()))).await;
            }
            Err(EngineError::NotAsked { why, .. }) => {
                person.teller.say(&format!("note: {why}")).await;
                return Ok(Asked::Decided);
            }
            Err(error) => return Err(error),
        }
    }
}

/// What the person gives: the values of a form, or a wish.
async fn given(
    person: &mut Person<'_, impl Screen, impl Interrupts>,
    question: &WaitingQuestion,
) -> Result<(Wish, Option<Map<String, Value>>), Asked> {
    let form = match &question.ask.wants {
        Wants::Url { .. } => {
            let prompt = "open it yourself, then: [y]es I did, [n]o, [c]ancel, [l]ater, [s]top the turn";
            return Ok((choose(person, prompt).await?, None));
        }
        Wants::Sampling { .. } => {
            let prompt = "allow it? [y]es, [n]o, [c]ancel, [l]ater, [s]top the turn";
            return Ok((choose(person, prompt).await?, None));
        }
        Wants::Form { schema } => Form::read(schema),
    };
    let fields = match form {
        Ok(form) => form.fields,
        Err(problem) => {
            person.teller.say(&format!("error: {}", clean_line(&problem))).await;
            return Ok((choose(person, "it cannot be filled in: [n]o, [c]ancel, [l]ater, [s]top the turn").await?, None));
        }
    };
    if !fields.is_empty() {
        person.teller.say(WORDS).await;
    }
    let mut content = Map::new();
    for field in &fields {
        match value(person, field).await? {
            Ok(Some(value)) => drop(content.insert(field.name.clone(), value)),
            Ok(None) => {}
            Err(wish) => return Ok((wish, None)),
        }
    }
    let prompt = if fields.is_empty() {
        "[y]es, [n]o, [c]ancel, [l]ater, [s]top the turn"
    } else {
        "send this? [y]es, [e]dit again, [n]o, [c]ancel, [l]ater, [s]top the turn"
    };
    Ok((choose(person, prompt).await?, Some(content)))
}

async fn choose(person: &mut Person<'_, impl Screen, impl Interrupts>, choices: &str) -> Result<Wish, Asked> {
    loop {
        let line = person.chooses(choices).await?;
        if let Some(wish) = wish(&line) {
            return Ok(wish);
        }
        person.teller.say("one of the letters in brackets, or the word").await;
    }
}

/// The value of one field; `None` where it is left alone.
async fn value(
    person: &mut Person<'_, impl Screen, impl Interrupts>,
    field: &Field,
) -> Result<Result<Option<Value>, Wish>, Asked> {
    let prompt = prompt(field);
    if let Some(description) = &field.description {
        person.teller.say(&format!("  {}", clean_line(description))).await;
    }
    loop {
        let line = person.types(&prompt, Wanted::Detail).await?;
        if let Some(wish) = instead(&line) {
            return Ok(Err(wish));
        }
        if line.trim().is_empty() {
            if field.default.is_some() || !field.is_required {
                return Ok(Ok(None));
            }
            person.teller.say("this is required").await;
            continue;
        }
        match field.read(&line) {
            Ok(value) => return Ok(Ok(Some(value))),
            Err(problem) => person.teller.say(&format!("it {}", clean_line(&problem))).await,
        }
    }
}

/// What a field is called, what it takes, and what it holds.
fn prompt(field: &Field) -> String {
    let name = clean_line(field.title.as_deref().unwrap_or(&field.name)).into_owned();
    let mut about = vec![clean_line(&field.described()).into_owned()];
    if !field.is_required && field.default.is_none() {
        about.push("may be empty".to_owned());
    }
    about.retain(|about| !about.is_empty());
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join("; ")) };
    let default = match (&field.default, &field.kind) {
        (None, _) => String::new(),
        (Some(Value::Bool(yes)), FieldKind::Boolean) => format!(" [{}]", if *yes { "yes" } else { "no" }),
        (Some(Value::String(text)), _) => format!(" [{}]", clean_line(text)),
        (Some(Value::Array(items)), _) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            format!(" [{}]", clean_line(&items.join(", ")))
        }
        (Some(other), _) => format!(" [{other}]"),
    };
    format!("{name}{about}{default}: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_place_of_a_value_only_the_words_that_are_named_mean_something_else() {
        let wishes = WORDS.split(' ').filter_map(|word| instead(word.trim_end_matches(',')));
        assert_eq!(wishes.collect::<Vec<_>>(), [Wish::Decline, Wish::Cancel, Wish::Later, Wish::Stop]);
        for value in ["/a", "/accept", "/d", "/n", "/c", "/l", "/s", "/e", "/yes", "decline", "/Decline"] {
            assert_eq!(instead(value), None, "{value}");
        }
    }
}
