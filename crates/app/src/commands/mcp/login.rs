//! `turnwright mcp login` and `mcp logout`.

use std::fmt::Display;
use std::process::{Command, Stdio};

use turnwright_host::SignedOut;

use crate::exit::{Exit, Failure};
use crate::output::{Output, say};

/// What opens the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Opener {
    /// What this system opens addresses with.
    System,
    /// This program.
    Program(String),
    /// The person.
    Nobody,
}

/// Shows the address to the person, and to the browser where there is one.
pub(super) fn show(address: &str, opener: &Opener) {
    say(&format!("open this address to sign in:\n{address}"));
    let program = match opener {
        Opener::System if cfg!(target_os = "macos") => "open",
        // Without a desktop it would open a browser in the terminal.
        Opener::System if ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some()) => "xdg-open",
        Opener::Program(program) => program,
        Opener::System | Opener::Nobody => return,
    };
    let quiet = || Stdio::null();
    if let Err(error) = Command::new(program).arg(address).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn() {
        say(&format!("{program} could not be started ({error}); open the address yourself"));
    }
}

pub(super) fn signed_in<E: Display>(
    name: &str,
    result: Result<Result<(), E>, Failure>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    result?.map_err(|error| Failure::failed(format!("MCP server `{name}`: {error}")))?;
    output.line(&format!("signed in at {name}"));
    Ok(Exit::Done)
}

pub(super) fn signed_out<E: Display>(
    name: &str,
    result: Result<Result<SignedOut, E>, Failure>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let signed_out = result?.map_err(|error| Failure::failed(format!("MCP server `{name}`: {error}")))?;
    match signed_out {
        SignedOut::WasNot => output.line(&format!("there was no sign-in at {name}")),
        SignedOut::Revoked => output.line(&format!("signed out at {name}: its tokens are forgotten and revoked")),
        SignedOut::Forgotten { reason } => {
            output.line(&format!("forgot the sign-in at {name}"));
            say(&format!("its tokens could not be revoked ({reason}): whoever has a copy can use them until they end"));
        }
    }
    Ok(Exit::Done)
}
