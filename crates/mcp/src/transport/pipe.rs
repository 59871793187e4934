//! The protocol's messages as lines over two pipes, as `rmcp` wants to have them.
//!
//! A transport of our own rather than `rmcp`'s over a cleaned pipe: each line is parsed once.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::time::Instant;

use super::cleaner::{self, Message, Remark};
use super::inbox::Inbox;
use super::line::{Line, LineReader};
use super::outbox;
use super::outgoing::Outgoing;
use super::shallow::MAX_DEPTH;
use super::wire::Wire;
use crate::era;
use crate::log::{LogOrigin, ServerLog};

/// What a pipe holds at most on Linux.
const PIPE_BYTES: usize = 64 << 10;
/// The most that a server may print beside its messages within one window, where a line costs at least so much. A program
/// that prints without end is over it, log lines and even a large file never come near it.
const MAX_NOISE_COST: u64 = 256 << 20;
const LEAST_LINE_COST: u64 = 256;
const NOISE_WINDOW: Duration = Duration::from_secs(10);

/// See the module.
pub(crate) struct PipeTransport<R, W> {
    lines: LineReader<R>,
    limit: usize,
    outgoing: Outgoing<W>,
    read: VecDeque<Message>,
    inbox: Inbox,
    said_glued: bool,
    noise: Noise,
}

/// What was printed beside messages since a moment.
struct Noise {
    since: Instant,
    cost: u64,
}

impl<R, W> PipeTransport<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    /// Over the server's output and input. A line may be at most `limit` bytes long.
    pub(crate) fn new(output: R, input: W, limit: usize, wire: Arc<Wire>, log: Arc<ServerLog>) -> Self {
        let lines = LineReader::new(BufReader::with_capacity(PIPE_BYTES, output), limit);
        let outgoing = Outgoing::new(input);
        Self {
            lines,
            limit,
            outgoing,
            read: VecDeque::new(),
            inbox: Inbox::new(wire, log),
            said_glued: false,
            noise: Noise { since: Instant::now(), cost: 0 },
        }
    }

    /// Writes a message that `rmcp` knows nothing of.
    pub(crate) fn send_value(&self, message: &Value) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.outgoing.send(&line)
    }

    /// The next message; `None` at the end. May be dropped while it waits: nothing is lost.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.read.pop_front() {
                return Some(message);
            }
            // A server that prints without end must not keep timers and everybody else from their turn.
            tokio::task::coop::consume_budget().await;
            let line = match self.lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return None,
                Err(error) => {
                    self.inbox.log.push(LogOrigin::Host, &format!("its output cannot be read: {error}"));
                    return None;
                }
            };
            match line {
                Line::Whole(line) => match cleaner::read(line, |message| self.read.push_back(message)) {
                    Remark::Clean => {}
                    Remark::Noise => {
                        self.inbox.log.push_bytes(LogOrigin::Stdout, line);
                        if line.trim_ascii().starts_with(b"\"jsonrpc\"") {
                            let _ = self.inbox.wire.is_spread.set(());
                        }
                        if self.noise.is_too_much(line.len() as u64) {
                            self.give_up();
                            return None;
                        }
                    }
                    Remark::Cut => self.inbox.log.push(
                        LogOrigin::Host,
                        &format!("an answer is nested more than {MAX_DEPTH} levels deep: what lies deeper was left out"),
                    ),
                    Remark::Unreadable => {
                        self.inbox.log.push(LogOrigin::Host, &format!("an answer of {} bytes cannot be read", line.len()));
                    }
                    Remark::Glued(bytes) => {
                        self.inbox.log.push_bytes(LogOrigin::Stdout, line.get(..bytes).unwrap_or_default());
                        if !std::mem::replace(&mut self.said_glued, true) {
                            self.inbox
                                .log
                                .push(LogOrigin::Host, "it prints text in front of its messages: only stderr is for that");
                        }
                    }
                },
                Line::TooLong { head, tail, length } => {
                    let limit = self.limit;
                    self.inbox.log.push(LogOrigin::Host, &format!("a line of {length} bytes was dropped, limit {limit}"));
                    let answer = cleaner::too_long(head, tail, length, limit);
                    self.read.extend(
                        answer.filter(
                            |answer| matches!(answer, Message::Error { id: Some(id), .. } if self.inbox.wire.expects(id)),
                        ),
                    );
                    if self.read.is_empty() && self.noise.is_too_much(length) {
                        self.give_up();
                        return None;
                    }
                }
            }
        }
    }

    /// Ends a connection over which hardly anything but noise comes.
    fn give_up(&self) {
        self.inbox.wire.condemn("it prints without end what is no message of the protocol: only stderr is for that");
    }

    /// Puts messages back that were read too early.
    pub(crate) fn unread(&mut self, mut messages: VecDeque<Message>) {
        messages.append(&mut self.read);
        self.read = messages;
    }
}

impl<R, W> Transport<RoleClient> for PipeTransport<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, mut item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let sending = match outbox::note(&self.inbox.wire, &mut item) {
            outbox::Outgoing::Send => outbox::line(&item).map(|line| Some(self.outgoing.send(&line))),
            outbox::Outgoing::Skip => Ok(None),
        };
        async move {
            match sending? {
                Some(sending) => sending.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(message) = self.next().await else {
                self.inbox.wire.closed.cancel();
                return None;
            };
            if let Some(era) = era::answer(&message) {
                // It started slowly; which era it speaks is worth knowing all the same.
                self.inbox.wire.late_era(era);
                continue;
            }
            if let Some(message) = self.inbox.typed(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.inbox.wire.closed.cancel();
        self.outgoing.close().await;
        Ok(())
    }
}

impl<R, W> Drop for PipeTransport<R, W> {
    fn drop(&mut self) {
        self.inbox.wire.closed.cancel();
    }
}

impl Noise {
    fn is_too_much(&mut self, bytes: u64) -> bool {
        if self.since.elapsed() > NOISE_WINDOW {
            *self = Self { since: Instant::now(), cost: 0 };
        }
        self.cost = self.cost.saturating_add(bytes.max(LEAST_LINE_COST));
        self.cost > MAX_NOISE_COST
    }
}
