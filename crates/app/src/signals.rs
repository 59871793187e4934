//! Wishes to stop from outside: Ctrl-C and the end of the process.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use turnwright_terminal::{Interrupt, Interrupts};

/// SIGINT and SIGTERM. From its creation on neither ends the process by itself.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }
}

impl Interrupts for Signals {
    async fn next(&mut self) -> Interrupt {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Interrupt::Interrupt,
            Some(()) = self.terminate.recv() => Interrupt::Terminate,
            else => std::future::pending().await,
        }
    }
}
