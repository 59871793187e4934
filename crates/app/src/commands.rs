//! The commands, one file each.

mod acp;
mod answer;
mod approvals;
mod attach;
mod chat;
mod config;
mod conversations;
mod db;
mod doctor;
mod knowledge;
mod mcp;
mod memory;
mod message;
mod models;
mod moving;
mod serve;
mod tools;
pub(crate) mod users;

use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::cli::{AnyMcp, Cli, Command};
use crate::exit::{Exit, Failure};
use crate::output::{Output, say};

/// How long threads that still write or read may take when everything else is done.
const LAST_WRITES: Duration = Duration::from_millis(500);

/// The fewest threads of a server: one turn that computes must not keep the others from going on.
const SERVER_THREADS: usize = 2;

/// Runs a command, and says why where it could not do its work.
pub(crate) fn run(cli: Cli, output: &mut Output) -> Exit {
    let Cli { everywhere, command } = cli;
    let result = match command {
        Command::Config(command) => config::run(&everywhere, command, output),
        Command::Serve(serve) => several_threads().and_then(|runtime| on(runtime, serve::run(&everywhere, serve))),
        Command::Acp => several_threads().and_then(|runtime| on(runtime, acp::run(&everywhere))),
        Command::Chat(chat) => one_thread().and_then(|runtime| on(runtime, chat::run(&everywhere, chat, output))),
        Command::Tools(command) => one_thread().and_then(|runtime| on(runtime, tools::run(&everywhere, command, output))),
        Command::Mcp(AnyMcp::Configured(command)) => {
            one_thread().and_then(|runtime| on(runtime, mcp::run(&everywhere, command, output)))
        }
        // It has a configuration of its own.
        Command::Mcp(AnyMcp::Exercise(exercise)) => {
            one_thread().and_then(|runtime| on(runtime, mcp::exercise::run(exercise, output)))
        }
        Command::Models(command) => one_thread().and_then(|runtime| on(runtime, models::run(&everywhere, command, output))),
        Command::Conversations(command) => {
            one_thread().and_then(|runtime| on(runtime, conversations::run(&everywhere, command, output)))
        }
        Command::Knowledge(command) => {
            one_thread().and_then(|runtime| on(runtime, knowledge::run(&everywhere, command, output)))
        }
        Command::Memory(command) => one_thread().and_then(|runtime| on(runtime, memory::run(&everywhere, command, output))),
        Command::Approvals(command) => {
            one_thread().and_then(|runtime| on(runtime, approvals::run(&everywhere, command, output)))
        }
        Command::Users(command) => one_thread().and_then(|runtime| on(runtime, users::run(&everywhere, command, output))),
        Command::Db(command) => one_thread().and_then(|runtime| on(runtime, db::run(&everywhere, command, output))),
        Command::Doctor(doctor) => one_thread().and_then(|runtime| on(runtime, doctor::run(&everywhere, doctor, output))),
    };
    result.unwrap_or_else(|failure| {
        failure.lines().for_each(|line| say(&line));
        failure.exit
    })
}

fn on(runtime: Runtime, command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let result = runtime.block_on(command);
    runtime.shutdown_timeout(LAST_WRITES);
    result
}

fn one_thread() -> Result<Runtime, Failure> {
    Builder::new_current_thread().enable_all().build().map_err(|error| no_runtime(&error))
}

fn several_threads() -> Result<Runtime, Failure> {
    let threads = thread::available_parallelism().map_or(SERVER_THREADS, usize::from).max(SERVER_THREADS);
    Builder::new_multi_thread().worker_threads(threads).enable_all().build().map_err(|error| no_runtime(&error))
}

fn no_runtime(error: &std::io::Error) -> Failure {
    Failure::failed(format!("the system gives no threads: {error}"))
}
