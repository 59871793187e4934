//! What a model must call, in words: for APIs and models that take no such demand.

use turnwright_core::ToolChoice;

/// What the model is told; `None` where nothing is demanded of it.
pub(crate) fn in_words(choice: &ToolChoice) -> Option<String> {
    match choice {
        ToolChoice::Auto | ToolChoice::None => None,
        ToolChoice::Required => Some("Call at least one of the tools before you answer.".to_owned()),
        ToolChoice::Tool(name) => Some(format!("Call the tool `{name}` before you answer.")),
        ToolChoice::Tools(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            Some(format!("Call at least one of the tools {} before you answer, and no other.", names.join(", ")))
        }
    }
}
