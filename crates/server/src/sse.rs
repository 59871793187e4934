//! Event streams: a watch, folded to bytes, polled by the connection itself. No task and no channel stand between.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use tokio::time::{Instant, Sleep};
use turnwright_engine::{Frame, Watch};

use crate::error::ApiError;
use crate::open_stream::OpenStream;
use crate::ui::UiFold;

/// Proxies cut connections that are silent for 30 to 60 s.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
/// Frames that are ready are sent together up to about this size.
const MAX_CHUNK_BYTES: usize = 64 * 1024;
/// What a frame of one delta needs, and a little more.
const CHUNK_BYTES: usize = 512;
/// What happens within this of the request, or of the last write, is sent together: half a picture of a screen, so that
/// nobody sees it. The end waits for nothing.
const GATHERED_FOR: Duration = Duration::from_millis(8);

/// How a client that comes back is told when: soon, since another process takes over or its place is kept.
pub(crate) const COME_BACK: &[u8] = b"retry: 1000\n\n";

/// Turns frames into the bytes of a stream.
pub(crate) trait Fold: Send + Unpin + 'static {
    /// Appends what a frame means.
    fn fold(&mut self, frame: &Frame, out: &mut Vec<u8>);
    /// Whether nothing more comes.
    fn is_done(&self) -> bool;
    /// Appends that the watch ended before the stream was done.
    fn cut_off(&mut self, cut: Cut, out: &mut Vec<u8>);
    /// How long the head waits at most until something is told, where that decides what the head says.
    fn head_waits(&self) -> Option<Duration> {
        None
    }
    /// What is answered in place of a stream: where nothing was told but that nothing comes.
    fn refusal(&self) -> Option<ApiError> {
        None
    }
}

/// Why a watch ends before its stream is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Nobody can be told any more here: what is watched goes on.
    Here,
    /// The conversation was deleted.
    Deleted,
}

impl Cut {
    /// What people are told; `goes_on` where it goes on.
    pub(crate) fn in_words(self, goes_on: &'static str) -> &'static str {
        match self {
            Self::Here => goes_on,
            Self::Deleted => "the conversation was deleted",
        }
    }
}

impl Fold for UiFold {
    fn fold(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        Self::fold(self, frame, out);
    }
    fn is_done(&self) -> bool {
        Self::is_done(self)
    }
    fn cut_off(&mut self, cut: Cut, out: &mut Vec<u8>) {
        Self::cut_off(self, cut.in_words("the stream ended before the turn did; the turn goes on, load it again"), out);
        if cut == Cut::Here {
            out.extend_from_slice(COME_BACK);
        }
    }
}

/// The response that tells a watch, its head with the first that happens. Dropping it drops the watch and nothing else
/// (law 5).
pub(crate) async fn response<F: Fold>(watch: Watch, fold: F, mut stream: OpenStream) -> Response {
    stream.begin();
    let sent_at = Instant::now();
    let mut body = SseBody { watch: Some(watch), fold, stream, held: Vec::new(), gathering: None, keep_alive: None, sent_at };
    if let Some(limit) = body.fold.head_waits() {
        let is_told = poll_fn(|context| {
            body.gather(context);
            if body.held.is_empty() && body.watch.is_some() { Poll::Pending } else { Poll::Ready(()) }
        });
        // Where it takes longer, the head goes without.
        let _ = tokio::time::timeout(limit, is_told).await;
        if let Some(refusal) = body.fold.refusal() {
            return refusal.into_response();
        }
    }
    poll_fn(|context| {
        body.gather(context);
        body.poll_due(context)
    })
    .await;
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

#[derive(Debug)]
struct SseBody<F> {
    /// `None` once nothing more comes.
    watch: Option<Watch>,
    fold: F,
    stream: OpenStream,
    /// Folded and not sent, at most about [`MAX_CHUNK_BYTES`].
    held: Vec<u8>,
    gathering: Option<Pin<Box<Sleep>>>,
    keep_alive: Option<Pin<Box<Sleep>>>,
    /// When something was written last, or asked for.
    sent_at: Instant,
}

impl<F: Fold> SseBody<F> {
    /// Folds what the watch has.
    fn gather(&mut self, context: &mut Context<'_>) {
        if self.watch.is_some() && self.stream.poll_revoked(context).is_ready() {
            self.fold.cut_off(Cut::Here, &mut self.held);
            self.watch = None;
        }
        while let Some(watch) = &mut self.watch
            && self.held.len() < MAX_CHUNK_BYTES
        {
            match watch.poll_next(context) {
                Poll::Ready(Some(frame)) => {
                    if self.held.capacity() == 0 {
                        self.held.reserve(CHUNK_BYTES);
                    }
                    self.fold.fold(&frame, &mut self.held);
                    if self.fold.is_done() {
                        self.watch = None;
                    }
                }
                Poll::Ready(None) => {
                    let cut = if watch.is_deleted() { Cut::Deleted } else { Cut::Here };
                    self.fold.cut_off(cut, &mut self.held);
                    self.watch = None;
                }
                Poll::Pending => break,
            }
        }
    }

    /// Whether what is held is sent now.
    fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let due = self.sent_at + GATHERED_FOR;
        if self.watch.is_none() || self.held.len() >= MAX_CHUNK_BYTES || due <= Instant::now() {
            return Poll::Ready(());
        }
        let timer = self.gathering.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(context)
    }

    /// Whether the connection was silent for too long.
    fn poll_keep_alive(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let now = Instant::now();
        let sent_at = self.sent_at;
        let timer = self.keep_alive.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(sent_at + KEEP_ALIVE_EVERY)));
        loop {
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            // The timer is set again only when it fires, not with everything that is sent.
            let is_silent = now.duration_since(sent_at) >= KEEP_ALIVE_EVERY;
            let next = if is_silent { now } else { sent_at } + KEEP_ALIVE_EVERY;
            timer.as_mut().reset(next);
            if is_silent {
                self.sent_at = now;
                return Poll::Ready(());
            }
        }
    }
}

impl<F: Fold> http_body::Body for SseBody<F> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        this.gather(context);
        if !this.held.is_empty() {
            ready!(this.poll_due(context));
            this.sent_at = Instant::now();
            return Poll::Ready(Some(Ok(http_body::Frame::data(std::mem::take(&mut this.held).into()))));
        }
        if this.watch.is_none() {
            return Poll::Ready(None);
        }
        match this.poll_keep_alive(context) {
            Poll::Ready(()) => Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(b": keep-alive\n\n"))))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.watch.is_none() && self.held.is_empty()
    }
}
