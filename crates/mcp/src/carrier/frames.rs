//! The output of a container as the engine sends it: frames of two streams on one connection, apart again.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What is read at once.
const CHUNK: usize = 64 << 10;

/// Writes what comes to the two outputs, until the end. Whoever stops reading one of them does not hinder the other.
///
/// A frame is a byte that names the stream (0 and 1 standard output, 2 standard error), three that say nothing, four with
/// the length, and the bytes; lines may be cut anywhere.
pub(crate) async fn take_apart(
    mut from: impl AsyncRead + Unpin,
    mut stdout: impl AsyncWrite + Unpin,
    mut stderr: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let mut head = [0; 8];
        match from.read_exact(&mut head).await {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        let [stream, _, _, _, length @ ..] = head;
        let mut left = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        while left > 0 {
            let room = chunk.get_mut(..left.min(CHUNK)).unwrap_or_default();
            let read = from.read(room).await?;
            if read == 0 {
                return Ok(());
            }
            left -= read;
            let bytes = chunk.get(..read).unwrap_or_default();
            // A side that nobody reads any more is dropped, the other goes on.
            let _ = match stream {
                2 => stderr.write_all(bytes).await,
                _ => stdout.write_all(bytes).await,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(stream: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        [&[stream, 0, 0, 0], length.as_slice(), bytes].concat()
    }

    async fn apart(bytes: &[u8]) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        take_apart(bytes, &mut out, &mut err).await.unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    #[tokio::test]
    async fn two_streams_come_apart_wherever_their_lines_are_cut() {
        let all = [frame(1, b"{\"a\""), frame(2, b"warn"), frame(1, b":1}\n"), frame(2, b""), frame(2, b"ing\n")].concat();
        assert_eq!(apart(&all).await, ("{\"a\":1}\n".to_owned(), "warning\n".to_owned()));
    }

    #[tokio::test]
    async fn a_frame_that_is_longer_than_what_is_read_at_once_comes_whole_and_a_broken_one_as_far_as_it_came() {
        let long = "x".repeat(CHUNK * 2 + 7);
        let all = [frame(1, long.as_bytes()), frame(1, b"abcdef")].concat();
        assert_eq!(apart(&all[..all.len() - 3]).await, (long + "abc", String::new()));
    }
}
