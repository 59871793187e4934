//! The framer: the same events however the network cuts them. The first byte is the size of the pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use turnwright_dialects::{SseError, SseFramer};

fn events(body: &[u8], size: usize) -> (Vec<(String, String)>, Result<(), SseError>) {
    let mut framer = SseFramer::default();
    let mut events = Vec::new();
    let pushed = body.chunks(size).try_for_each(|chunk| {
        framer.push(chunk, |event| {
            events.push((event.name.to_owned(), event.data.to_owned()));
            Ok::<(), SseError>(())
        })
    });
    let ended = pushed.and_then(|()| {
        framer.end(|event| {
            events.push((event.name.to_owned(), event.data.to_owned()));
            Ok(())
        })
    });
    (events, ended)
}

fuzz_target!(|data: &[u8]| {
    let [size, body @ ..] = data else { return };
    assert_eq!(events(body, body.len().max(1)), events(body, usize::from(*size).max(1)));
});
