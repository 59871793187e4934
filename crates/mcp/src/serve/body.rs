//! Bodies of requests and answers.

use std::convert::Infallible;
use std::fmt::Display;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

/// Why a body was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is longer than it may be.
    TooLong,
    /// It broke off.
    Broken(String),
}

/// Reads a body of at most `limit_bytes`.
pub(super) async fn read<B>(body: B, limit_bytes: usize) -> Result<Bytes, Unread>
where
    B: Body,
    B::Error: Display,
{
    let (mut body, mut read) = (pin!(body), BytesMut::new());
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let Ok(mut data) = frame.map_err(|error| Unread::Broken(error.to_string()))?.into_data() else { continue };
        if data.remaining() > limit_bytes.saturating_sub(read.len()) {
            return Err(Unread::TooLong);
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            let length = chunk.len();
            read.extend_from_slice(chunk);
            data.advance(length);
        }
    }
    Ok(read.freeze())
}

/// A body that is there as a whole.
#[derive(Debug, Default)]
pub(super) struct Whole(Option<Bytes>);

impl Whole {
    pub(super) fn of(text: impl Into<Bytes>) -> Self {
        Self(Some(text.into()))
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|text| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |text| text.len() as u64))
    }
}

/// The body of an answer: the protocol's, one of our own, or several streams of events as one.
#[derive(Debug)]
pub(super) enum Answer<B> {
    Served(B),
    Own(Whole),
    Together(Vec<Answer<B>>),
}

impl<B: Body<Data = Bytes, Error = Infallible> + Unpin> Body for Answer<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Served(body) => Pin::new(body).poll_frame(context),
            Self::Own(body) => Pin::new(body).poll_frame(context),
            Self::Together(bodies) => {
                let mut place = 0;
                while let Some(body) = bodies.get_mut(place) {
                    match Pin::new(body).poll_frame(context) {
                        Poll::Ready(Some(frame)) => {
                            // Each frame is a whole event; the others come first the next time.
                            bodies.rotate_left(place + 1);
                            return Poll::Ready(Some(frame));
                        }
                        Poll::Ready(None) => drop(bodies.remove(place)),
                        Poll::Pending => place += 1,
                    }
                }
                if bodies.is_empty() { Poll::Ready(None) } else { Poll::Pending }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Served(body) => body.is_end_stream(),
            Self::Own(body) => body.is_end_stream(),
            Self::Together(bodies) => bodies.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Served(body) => body.size_hint(),
            Self::Own(body) => body.size_hint(),
            Self::Together(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next<B: Body<Data = Bytes, Error = Infallible> + Unpin>(body: &mut B) -> Option<Bytes> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        match Pin::new(body).poll_frame(&mut context) {
            Poll::Ready(frame) => frame.map(|frame| frame.unwrap().into_data().unwrap()),
            Poll::Pending => panic!("nothing is waited for"),
        }
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        assert_eq!(read(Whole::of("12345"), 5).await, Ok(Bytes::from("12345")));
        assert_eq!(read(Whole::of("12345"), 4).await, Err(Unread::TooLong));
        assert_eq!(read(Whole::default(), 0).await, Ok(Bytes::new()));
    }

    #[test]
    fn several_streams_come_event_by_event_until_all_have_ended() {
        let own = |text: &'static str| Answer::<Whole>::Own(Whole::of(text));
        let mut together = Answer::Together(vec![own("a"), own("b"), Answer::Together(vec![own("c"), own("d")])]);
        let mut seen = Vec::new();
        while let Some(event) = next(&mut together) {
            seen.push(event);
        }
        assert_eq!(seen, ["a", "b", "c", "d"]);
        assert!(together.is_end_stream());
    }
}
