use super::*;

type Events = Vec<(String, String)>;

fn frame(chunks: &[&[u8]]) -> (Events, Result<(), SseError>) {
    let mut framer = SseFramer::default();
    let mut events = Vec::new();
    let mut take = |event: SseEvent<'_>| {
        events.push((event.name.to_owned(), event.data.to_owned()));
        Ok::<(), SseError>(())
    };
    for chunk in chunks {
        if let Err(error) = framer.push(chunk, &mut take) {
            return (events, Err(error));
        }
    }
    let end = framer.end(&mut take);
    (events, end)
}

fn events(expected: &[(&str, &str)]) -> Events {
    expected.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect()
}

const MIXED: &str = "\u{FEFF}: hello\n\ndata: {\"a\":\"ü€😀\"}\r\n\r\nevent: x\rdata:1\rdata: 2\r\rdata\n\nid: 7\nretry: 3\n\
                     data:  two spaces\n\n:\n:\n\nevent: lost\n\ndata: [DONE]\n\n";

#[test]
fn every_cut_of_a_stream_in_two_gives_the_same_events() {
    let expected = events(&[("", "{\"a\":\"ü€😀\"}"), ("x", "1\n2"), ("", " two spaces"), ("", "[DONE]")]);
    assert_eq!(frame(&[MIXED.as_bytes()]), (expected.clone(), Ok(())));
    for cut in 0..=MIXED.len() {
        let (head, tail) = MIXED.as_bytes().split_at(cut);
        assert_eq!(frame(&[head, tail]), (expected.clone(), Ok(())), "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = MIXED.as_bytes().chunks(1).collect();
    assert_eq!(frame(&bytes), (expected, Ok(())));
}

#[test]
fn an_event_with_empty_data_is_not_dispatched() {
    assert_eq!(frame(&[b"event: a\ndata:\n\ndata: b\n\n"]), (events(&[("", "b")]), Ok(())));
}

#[test]
fn a_final_event_without_a_blank_line_is_one_where_it_is_complete() {
    assert_eq!(frame(&[b"data: {\"a\":1}\n"]), (events(&[("", "{\"a\":1}")]), Ok(())));
    assert_eq!(frame(&[b"data: {\"a\":1}"]), (events(&[("", "{\"a\":1}")]), Ok(())));
    assert_eq!(frame(&[b"data: [DONE]"]), (events(&[("", "[DONE]")]), Ok(())));
}

#[test]
fn a_final_event_that_is_cut_is_a_truncation() {
    for cut in ["data: {\"a\":", "data: {\"a\":\n", "data: [DON", "dat", "event: x", "data: {}\ndata: {}"] {
        assert_eq!(frame(&[cut.as_bytes()]).1, Err(SseError::Truncated), "{cut}");
    }
    assert_eq!(frame(&[b"data: 1\n\n: keep-al"]), (events(&[("", "1")]), Ok(())));
}

#[test]
fn invalid_utf8_is_replaced() {
    assert_eq!(frame(&[b"data: a\xFFb\xE2\x82\n\n"]), (events(&[("", "a\u{FFFD}b\u{FFFD}")]), Ok(())));
}

#[test]
fn an_event_over_the_limit_is_refused_however_it_comes() {
    let too_large = SseError::EventTooLarge { limit: MAX_EVENT_BYTES };
    let megabyte = vec![b'x'; 1024 * 1024];
    let mut chunks: Vec<&[u8]> = vec![b"data: "];
    chunks.extend(std::iter::repeat_n(megabyte.as_slice(), 17));
    assert_eq!(frame(&chunks).1, Err(too_large.clone()), "one endless line");
    let mut lines = b"data: ".to_vec();
    lines.extend_from_slice(&megabyte);
    lines.push(b'\n');
    assert_eq!(frame(&vec![lines.as_slice(); 17]).1, Err(too_large.clone()), "endless lines");
    let mut whole = b"data: ".to_vec();
    whole.extend(vec![b'x'; MAX_EVENT_BYTES + 1]);
    whole.extend_from_slice(b"\n\n");
    assert_eq!(frame(&[&whole]).1, Err(too_large), "one chunk");
}

#[test]
fn many_events_in_one_chunk_and_in_single_bytes_are_all_there() {
    let stream: String = (0..20_000).fold(String::new(), |stream, number| stream + &format!("data: {number}\n\n"));
    let expected: Vec<(String, String)> = (0..20_000).map(|number| (String::new(), number.to_string())).collect();
    assert_eq!(frame(&[stream.as_bytes()]), (expected.clone(), Ok(())));
    let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
    assert_eq!(frame(&bytes), (expected, Ok(())));
}

#[test]
fn an_error_of_the_receiver_ends_the_framing() {
    let mut framer = SseFramer::default();
    let mut seen = 0;
    let answer = framer.push(b"data: 1\n\ndata: 2\n\n", |_| {
        seen += 1;
        Err(SseError::Truncated)
    });
    assert_eq!((answer, seen), (Err(SseError::Truncated), 1));
}
