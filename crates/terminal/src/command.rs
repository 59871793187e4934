//! What a person can type instead of a message.

/// A command of the interactive chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Say what there is.
    Help,
    /// Leave.
    Quit,
    /// List the tools.
    Tools,
    /// Show the model, or choose another.
    Model(Option<String>),
    /// Stop the turn that is open.
    Stop,
    /// Take the last turn up again that did not end well.
    Retry,
    /// Put a summary in the place of what was said.
    Compact,
    /// Take that back.
    UndoCompact,
    /// There is one of this name, and it takes something else or nothing.
    Misused(String),
    /// There is no such command.
    Unknown(String),
}

/// What `/help` says.
pub(crate) const HELP: &str = "\
/help          this text
/tools         the tools that are offered
/model [NAME]  the model that answers, or another from here on (PROVIDER/MODEL)
/stop          stop the turn that waits
/retry         ask again where the last turn failed or was stopped
/compact       put a summary in the place of what was said so far, for the model
/compact undo  take that back
/quit          leave; so does Ctrl-D
//TEXT         say /TEXT, which is no command
Ctrl-C stops the turn that runs, and pressed twice leaves. Anything else is a message.";

/// What a line says that is a message: where one slash more stands before it so that it is no command, it is without that.
pub(crate) fn message(line: String) -> String {
    match line.trim_start().strip_prefix('/') {
        Some(rest) if rest.starts_with('/') && !line.trim_end().contains('\n') => rest.to_owned(),
        Some(_) | None => line,
    }
}

/// Reads a line as a command; `None` where it is a message, as are paths such as `/etc/hosts`, and several lines.
pub fn parse_command(line: &str) -> Option<Command> {
    if line.trim().contains('\n') {
        return None;
    }
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let name = word.strip_prefix('/')?;
    if name.is_empty() || name.contains('/') {
        return None;
    }
    let rest = rest.trim();
    Some(match (name, rest) {
        ("help" | "?", "") => Command::Help,
        ("quit" | "exit" | "q", "") => Command::Quit,
        ("tools", "") => Command::Tools,
        ("model", "") => Command::Model(None),
        ("model", model) => Command::Model(Some(model.to_owned())),
        ("stop", "") => Command::Stop,
        ("retry", "") => Command::Retry,
        ("compact", "") => Command::Compact,
        ("compact", "undo") => Command::UndoCompact,
        ("help" | "?" | "quit" | "exit" | "q" | "tools" | "stop" | "retry" | "compact", _) => Command::Misused(word.to_owned()),
        _ => Command::Unknown(word.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::{Command, message, parse_command};

    #[test]
    fn commands_begin_with_a_slash_and_paths_are_messages() {
        assert_eq!(parse_command(" /model a/b "), Some(Command::Model(Some("a/b".to_owned()))));
        assert_eq!(parse_command("/stop"), Some(Command::Stop));
        assert_eq!(parse_command("/retry"), Some(Command::Retry));
        assert_eq!(parse_command("/compact"), Some(Command::Compact));
        assert_eq!(parse_command("/compact  undo"), Some(Command::UndoCompact));
        assert_eq!(parse_command("/compact all"), Some(Command::Misused("/compact".to_owned())));
        assert_eq!(parse_command("/quit now"), Some(Command::Misused("/quit".to_owned())));
        assert_eq!(parse_command("/sotp"), Some(Command::Unknown("/sotp".to_owned())));
        assert_eq!(parse_command("/etc/hosts is what?"), None);
        assert_eq!(parse_command("stop"), None);
        assert_eq!(parse_command("/stop\nis what I typed"), None);
        assert_eq!(parse_command("//stop"), None);
    }

    #[test]
    fn a_slash_before_another_makes_a_message_of_a_line() {
        for (line, said) in [
            ("//stop it", "/stop it"),
            ("/etc/hosts", "/etc/hosts"),
            ("stop // it", "stop // it"),
            ("// one\n// two", "// one\n// two"),
        ] {
            assert_eq!(message(line.to_owned()), said, "{line}");
        }
    }
}
