//! What is said: the prompt, what is piped in, what is attached.

use std::io::{self, IsTerminal, Read};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::exit::Failure;
use crate::output::say;

/// The most that is read from standard input, in bytes.
const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;

/// When to say that standard input is waited for, although there is a prompt already.
const PATIENCE: Duration = Duration::from_secs(3);

/// The message that the command line and standard input make; empty where neither says anything. A prompt comes first, then
/// a blank line, then what is piped in.
pub(super) fn message(prompt: Option<String>) -> Result<String, Failure> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(prompt.unwrap_or_default());
    }
    let (done, reading) = mpsc::channel::<()>();
    if prompt.is_some() {
        thread::spawn(move || {
            if reading.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                say("note: standard input is read until its end; `< /dev/null` gives none");
            }
        });
    }
    let piped = read(stdin.lock(), MAX_INPUT_BYTES);
    drop(done);
    let piped = piped?;
    let piped = piped.strip_suffix('\n').map_or(piped.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    Ok(match prompt {
        Some(prompt) if piped.is_empty() => prompt,
        Some(prompt) => format!("{prompt}\n\n{piped}"),
        None => piped.to_owned(),
    })
}

fn read(input: impl Read, limit: u64) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = input.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    let read = read.map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?;
    if u64::try_from(read).is_ok_and(|read| read > limit) {
        return Err(Failure::usage(format!("standard input is over {limit} bytes, the limit of a message")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("standard input is not UTF-8 text: byte {at} does not fit")).hint("--attach FILE takes images")
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn input_over_the_limit_and_input_that_is_no_text_are_refused() {
        assert_eq!(read("abc".as_bytes(), 3), Ok("abc".to_owned()));
        assert_eq!(read("abcd".as_bytes(), 3).unwrap_err().text, "standard input is over 3 bytes, the limit of a message");
        assert_eq!(read(b"ab\xff".as_slice(), 9).unwrap_err().text, "standard input is not UTF-8 text: byte 2 does not fit");
    }
}
