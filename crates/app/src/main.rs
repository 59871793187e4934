//! The `turnwright` binary: command line, logging, signals, exit codes.
//!
//! [`cli`] says what can be typed, [`commands`] holds one file per command. What they share: [`opened`] reads the
//! configuration and starts the host, [`output`] writes, [`signals`] hears wishes to stop, [`exit`] says how it ended.

mod acp;
mod cli;
mod commands;
mod exit;
mod flags;
mod hiding;
mod logging;
mod opened;
mod orphans;
mod output;
mod signals;
mod table;
mod telemetry;

use std::process::ExitCode;

use crate::exit::Exit;
use crate::output::Output;

/// Turns are made of small pieces that live shortly.
#[global_allocator]
static ALLOCATOR: turnwright_memory::Allocator = turnwright_memory::Allocator;

/// The word by which this program is called as the helper of its own commands.
const SANDBOX: &str = "__sandbox";

fn main() -> ExitCode {
    // A command of ours that confines itself first; nothing else has happened yet.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|word| word == SANDBOX) {
        let error = turnwright_host::confine(arguments);
        output::say(&format!("the command could not be confined: {error}"));
        return ExitCode::from(126);
    }
    turnwright_memory::give_back_soon();
    let mut output = Output::standard();
    let exit = match cli::parse(std::env::args_os()) {
        Ok(cli) => commands::run(cli, &mut output),
        Err(error) => {
            let text = error.render().to_string();
            if error.use_stderr() {
                output::say(text.trim_end());
                Exit::Usage
            } else {
                output.write(&text);
                Exit::Done
            }
        }
    };
    telemetry::finish();
    match output.finish() {
        Ok(()) => exit.into(),
        Err(error) => {
            output::say(&format!("error: standard output cannot be written: {error}"));
            Exit::Failed.into()
        }
    }
}
