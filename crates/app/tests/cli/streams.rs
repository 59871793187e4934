//! Streams that come back: whoever loses the connection, whenever, ends with what is stored.

use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwright_testkit::Port;
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::assembling::Assembly;
use crate::message::Message;
use crate::serve::Server;
use crate::support::{LIMIT, Place};
use crate::watching::Watcher;

const PATH: &str = "/api/v1/conversations/c/events";
const MESSAGE: &str = "/api/v1/conversations/c/stream";
/// How long a step of the model takes.
const STEP: Duration = Duration::from_secs(1);
const WORDS: u32 = 100;

/// How long the turn goes on: a minute, or as the variable says.
fn seconds() -> usize {
    let named = std::env::var("TURNWRIGHT_STREAM_SECONDS").ok();
    named.map_or(60, |seconds| seconds.parse().unwrap())
}

/// No wait is longer.
fn limit() -> Duration {
    LIMIT + 2 * STEP * u32::try_from(seconds()).unwrap()
}

/// A step of words that are all different, some of more than one byte each, at the pace of a model.
fn step(number: usize) -> Vec<Piece> {
    (0..WORDS).flat_map(|word| [text_chunk(&format!("wörd {number}.{word} ✓ ")), Piece::Pause(STEP / WORDS)]).collect()
}

/// A call that no other step makes: a model that repeats itself would be stopped.
fn call(number: usize) -> Piece {
    call_chunk(0, "filesystem__read", &json!({"path": "a.txt", "limit": number + 20}).to_string())
}

fn place(model: &ModelServer) -> Place {
    let place = Place::new();
    let config = format!(
        "model = \"p/m\"\nmax_steps = 1000\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n",
        model.base_url()
    );
    place.write("turnwright.toml", config);
    place
}

/// Times that look random and are the same in every run.
fn pauses(mut state: u64) -> impl Iterator<Item = Duration> {
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis(50 + (state >> 33) % 251)
    })
}

/// Reads events until the turn is over, with a new connection every 50 to 300 ms.
fn watch_brokenly(address: &str, numbers: u64, connections: &mut usize) -> Assembly {
    let begun = Instant::now();
    let mut seen = Assembly::default();
    for pause in pauses(numbers) {
        assert!(begun.elapsed() < limit(), "the turn never ended");
        let cut_at = Instant::now() + pause;
        // Nobody answers while the server is away.
        let Some(mut watcher) = Watcher::open(address, PATH, seen.last.as_deref()) else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        *connections += 1;
        while Instant::now() < cut_at && seen.finished == 0 {
            let Some(told) = watcher.next() else { break };
            seen.take(&told.id, told.event).unwrap();
        }
        if seen.finished > 0 {
            break;
        }
    }
    seen
}

/// Reads the message's stream to its end in the same way.
fn read_brokenly(address: &str, numbers: u64, connections: &mut usize) -> Message {
    let begun = Instant::now();
    let mut seen = Message::default();
    for pause in pauses(numbers) {
        assert!(begun.elapsed() < limit(), "the message never ended");
        let cut_at = Instant::now() + pause;
        let Some(mut watcher) = Watcher::open(address, MESSAGE, seen.last.as_deref()) else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        *connections += 1;
        while Instant::now() < cut_at && !seen.is_done {
            let Some(told) = watcher.next() else { break };
            seen.take(&told.id, &told.event).unwrap();
        }
        if seen.is_done {
            break;
        }
    }
    seen
}

/// The text of a message stream of the AI SDK, from the message's beginning.
fn read_message(address: &str, stays: &AtomicBool, pause: Duration, connected: impl FnOnce()) -> Option<String> {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    // Where nothing is told, the connection is given up in its time all the same.
    let silence = if stays.load(Ordering::SeqCst) { LIMIT } else { pause };
    stream.set_read_timeout(Some(silence)).unwrap();
    stream.write_all(format!("GET /api/v1/conversations/c/stream HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).ok()?;
    let cut_at = Instant::now() + pause;
    let (mut text, mut reports) = (String::new(), Some(connected));
    for line in BufReader::new(stream).lines() {
        let line = line.ok()?;
        if !stays.load(Ordering::SeqCst) && Instant::now() > cut_at {
            return None;
        }
        let Some(data) = line.strip_prefix("data: ") else { continue };
        if stays.load(Ordering::SeqCst)
            && let Some(report) = reports.take()
        {
            report();
        }
        if data == "[DONE]" {
            return Some(text);
        }
        let chunk: Value = serde_json::from_str(data).unwrap();
        if chunk["type"] == "text-delta" {
            text.push_str(chunk["delta"].as_str().unwrap());
        }
    }
    None
}

#[test]
fn watchers_that_lose_their_connections_and_their_server_assemble_what_is_stored() {
    let steps = seconds();
    let model = ModelServer::start(["last"], move |request| match results_shown(request) {
        number if number < steps => [step(number), vec![call(number), finish_chunk("tool_calls"), Piece::Done]].concat(),
        _ => vec![Piece::Point("last"), text_chunk("Änd."), finish_chunk("stop"), Piece::Done],
    })
    .unwrap();
    let place = place(&model);
    let port = Port::reserve().unwrap();
    let address = port.address();
    let first = Server::start_at(&place, &address);
    first.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    first.ask("POST /api/v1/conversations/c/messages", &json!({"content": "Go on."}));
    let stays = AtomicBool::new(false);
    let (connected, is_connected) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let broken = [1, 2, 3].map(|seed| {
            let address = &address;
            scope.spawn(move || {
                let mut connections = 0;
                (watch_brokenly(address, seed, &mut connections), connections)
            })
        });
        let messages = [5, 6, 7].map(|seed| {
            let address = &address;
            scope.spawn(move || {
                let mut connections = 0;
                (read_brokenly(address, seed, &mut connections), connections)
            })
        });
        let (message_at, message_stays) = (&address, &stays);
        let message = scope.spawn(move || {
            let begun = Instant::now();
            pauses(4).take_while(|_| begun.elapsed() < limit()).find_map(|pause| {
                let told = read_message(message_at, message_stays, pause, || connected.send(()).unwrap());
                if told.is_none() {
                    thread::sleep(Duration::from_millis(20));
                }
                told
            })
        });
        thread::sleep(STEP * u32::try_from(steps).unwrap() / 2);
        first.kill();
        let second = Server::start_at(&place, &address);
        assert!(model.wait_for("last", limit()), "the last step never came");
        stays.store(true, Ordering::SeqCst);
        is_connected.recv_timeout(LIMIT).unwrap();
        model.run_free();

        let mut stored = Assembly::default();
        let mut fresh = Watcher::open(&address, PATH, None).unwrap();
        while stored.finished == 0 {
            let told = fresh.next().unwrap();
            stored.take(&told.id, told.event).unwrap();
        }
        assert_eq!(stored.said.last().map(String::as_str), Some("Änd."));
        assert_eq!(stored.said.len(), steps + 1);
        for watcher in broken {
            let (seen, connections) = watcher.join().unwrap();
            assert_eq!(seen.entries, stored.entries, "byte for byte, over {connections} connections");
            assert_eq!(seen.said, stored.said, "over {connections} connections");
            assert!(connections > steps * 2, "{connections} connections");
        }
        for message in messages {
            let (seen, connections) = message.join().unwrap();
            assert_eq!(seen.steps, stored.said, "the message's stream from where it broke, over {connections} connections");
            assert!(connections > steps * 2, "{connections} connections");
        }
        assert_eq!(message.join().unwrap().unwrap(), stored.said.concat(), "the message's stream from its beginning");
        second.stop();
    });
}

#[test]
fn who_lost_the_stream_of_a_turn_that_ended_meanwhile_is_told_its_end() {
    let model = ModelServer::start(["middle"], |request| match results_shown(request) {
        0 => vec![text_chunk("I look."), call(0), finish_chunk("tool_calls"), Piece::Done],
        _ => vec![text_chunk("There it "), Piece::Point("middle"), text_chunk("is."), finish_chunk("stop"), Piece::Done],
    })
    .unwrap();
    let place = place(&model);
    let server = Server::start(&place);
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    server.ask("POST /api/v1/conversations/c/messages", &json!({"content": "Look."}));
    let (mut seen, mut old) = (Message::default(), Message::default());
    for (path, message) in [(MESSAGE.to_owned(), &mut seen), (format!("{MESSAGE}?ui=6"), &mut old)] {
        let mut watcher = Watcher::open(server.address(), &path, None).unwrap();
        // The end of a text may be held back: it could become a secret.
        while message.steps.len() < 2 || message.steps.concat().len() <= "I look.".len() {
            let told = watcher.next().unwrap();
            message.take(&told.id, &told.event).unwrap();
        }
    }
    model.run_free();
    Watcher::open(server.address(), PATH, None).unwrap().until("turn.finished");

    let at = |after: &str| format!("GET {MESSAGE}?after={after}");
    let last = seen.last.clone().unwrap();
    let answer = server.request(&at(&last), "");
    assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("I look."), "only what it missed: {answer}");
    for (path, message) in [(MESSAGE.to_owned(), &mut seen), (format!("{MESSAGE}?ui=6"), &mut old)] {
        let mut watcher = Watcher::open(server.address(), &path, message.last.clone().as_deref()).unwrap();
        while !message.is_done {
            let told = watcher.next().unwrap();
            message.take(&told.id, &told.event).unwrap();
        }
        assert_eq!(message.steps, ["I look.", "There it is."], "{path}");
        let path = format!("/api/chat/c/stream?after={}", message.last.as_deref().unwrap());
        let answer = server.request(&format!("GET {path}"), "");
        assert!(answer.starts_with("HTTP/1.1 204"), "all of it was told: {answer}");
    }
    for (after, status, code) in [("999", "400", "unknown_position"), ("soon", "400", "invalid_position")] {
        let answer = server.request(&at(after), "");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(code), "{after}: {answer}");
    }
    let answer = server.request(&format!("GET {MESSAGE}"), "");
    assert!(answer.starts_with("HTTP/1.1 204"), "without a position an open turn is asked for: {answer}");

    server.ask("POST /api/v1/conversations/c/chat", &json!({"content": "Once more."}));
    let mut next = Message::default();
    let mut watcher = Watcher::open(server.address(), MESSAGE, seen.last.as_deref()).unwrap();
    while !next.is_done {
        let told = watcher.next().unwrap();
        next.take(&told.id, &told.event).unwrap();
    }
    assert_eq!(next.steps.concat(), "I look.There it is.", "then the next turn's message");
    server.stop();
}

#[test]
fn a_watcher_that_reads_nothing_is_cut_off_and_holds_up_nobody() {
    const PIECE: usize = 8 << 10;
    const PIECES: usize = 2_560;
    let model = ModelServer::start([], |_| {
        // More than sockets and queues hold, at a pace that lets others read along.
        let few = || std::iter::repeat_n(text_chunk(&"x".repeat(PIECE)), 16).chain([Piece::Pause(Duration::from_millis(5))]);
        let mut pieces: Vec<Piece> = std::iter::repeat_with(few).take(PIECES / 16).flatten().collect();
        pieces.extend([finish_chunk("stop"), Piece::Done]);
        pieces
    })
    .unwrap();
    let place = place(&model);
    let server = Server::start(&place);
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    let mut slow = Watcher::open(server.address(), PATH, None).unwrap();
    server.ask("POST /api/v1/conversations/c/messages", &json!({"content": "Say much."}));
    let seen = watched(&server, Assembly::default());
    assert_eq!(seen.said[0].len(), PIECE * PIECES, "the turn ends, whoever watches");
    let mut late = Assembly::default();
    while let Some(told) = slow.next() {
        late.take(&told.id, told.event).unwrap();
    }
    assert_eq!(late.finished, 0, "who does not read is cut off");
    assert_eq!(watched(&server, late).entries, seen.entries, "and can come back");
    server.stop();
}

/// Watches until the turn is over, again and again where it is cut off.
fn watched(server: &Server, mut seen: Assembly) -> Assembly {
    while seen.finished == 0 {
        let mut watcher = Watcher::open(server.address(), PATH, seen.last.as_deref()).unwrap();
        while seen.finished == 0
            && let Some(told) = watcher.next()
        {
            seen.take(&told.id, told.event).unwrap();
        }
    }
    seen
}
