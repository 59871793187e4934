//! People: they send, decide, stop and watch, each time through any node, and try another where one does not answer.

use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::assembling::Assembly;
use crate::http::{Answer, Door};
use crate::laws::{Sent, Watched, effect_named};
use crate::plan::Numbers;

const PAUSE: Duration = Duration::from_millis(150);
/// How long a stream may say nothing before somebody opens it at another node; streams say that they live more often.
const SILENCE: Duration = Duration::from_secs(20);
/// One turn in so many is stopped.
const STOPS: usize = 8;
/// One call in so many is denied, where some are.
const DENIALS: usize = 5;

/// What clients share.
#[derive(Debug)]
pub(crate) struct Clients {
    pub(crate) doors: Vec<Door>,
    pub(crate) effects: PathBuf,
    /// Whether some calls are denied.
    pub(crate) denies: bool,
    /// No new message is sent.
    pub(crate) is_closing: AtomicBool,
    /// Whoever still waits gives up.
    pub(crate) is_over: AtomicBool,
    pub(crate) turns: AtomicUsize,
    pub(crate) decisions: AtomicUsize,
    pub(crate) connections: AtomicUsize,
    /// Answers that no fault explains.
    pub(crate) odd: Mutex<Vec<String>>,
    /// The longest times from a message's acknowledgement to its turn's end.
    pub(crate) longest: Mutex<Duration>,
}

impl Clients {
    pub(crate) fn new(doors: Vec<Door>, effects: PathBuf) -> Self {
        Self {
            doors,
            effects,
            denies: false,
            is_closing: AtomicBool::default(),
            is_over: AtomicBool::default(),
            turns: AtomicUsize::default(),
            decisions: AtomicUsize::default(),
            connections: AtomicUsize::default(),
            odd: Mutex::default(),
            longest: Mutex::default(),
        }
    }

    fn any(&self, numbers: &mut Numbers) -> &Door {
        &self.doors[numbers.below(self.doors.len())]
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Asks one node after the other until one answers with success or a conflict; `None` where the run is over before.
    pub(crate) fn ask(&self, numbers: &mut Numbers, head: &str, headers: &str, body: &Value) -> Option<Answer> {
        while !self.is_over() {
            match self.any(numbers).ask(head, headers, body) {
                Ok(answer) if answer.status < 300 || answer.status == 409 => return Some(answer),
                Ok(answer) if matches!(answer.status, 429 | 503) => {}
                Ok(answer) => {
                    self.odd.lock().unwrap().push(format!("{head}: {} {}", answer.status, answer.body));
                    // An error of the server's own is no answer to what was asked.
                    if answer.status != 500 {
                        return Some(answer);
                    }
                }
                // It is away, or stands still.
                Err(_) => {}
            }
            thread::sleep(PAUSE);
        }
        None
    }

    /// Makes a conversation.
    pub(crate) fn create(&self, conversation: &str, approve: &str, numbers: &mut Numbers) {
        let create = json!({"id": conversation, "settings": {"approve": approve}});
        self.ask(numbers, "POST /api/v1/conversations", "", &create);
    }

    /// Says something that nobody said before.
    pub(crate) fn say(&self, conversation: &str, text: &str, numbers: &mut Numbers) -> Sent {
        let key = format!("Idempotency-Key: {}\r\n", text.replace(' ', "-"));
        let path = format!("POST /api/v1/conversations/{conversation}/messages");
        let answer = self.ask(numbers, &path, &key, &json!({"content": text}));
        let is_acknowledged = answer.is_some_and(|answer| answer.status < 300);
        Sent { conversation: conversation.to_owned(), text: text.to_owned(), is_acknowledged }
    }

    /// Talks in a conversation until the run closes; what was sent.
    pub(crate) fn talk(&self, conversation: &str, approve: &str, mut numbers: Numbers) -> Vec<Sent> {
        self.create(conversation, approve, &mut numbers);
        let mut sent = Vec::new();
        for number in 0.. {
            if self.is_closing.load(Ordering::Relaxed) {
                break;
            }
            sent.push(self.say(conversation, &format!("{conversation} {number}"), &mut numbers));
            let stops = numbers.once_in(STOPS);
            self.tend(conversation, stops, &mut numbers);
        }
        sent
    }

    /// Looks after a turn until it is over.
    pub(crate) fn tend(&self, conversation: &str, mut stops: bool, numbers: &mut Numbers) {
        let begun = Instant::now();
        loop {
            thread::sleep(PAUSE);
            let path = format!("GET /api/v1/conversations/{conversation}");
            let Some(answer) = self.ask(numbers, &path, "", &Value::Null) else { return };
            match answer.body["turn"]["status"].as_str() {
                Some("running") if stops && numbers.once_in(3) => {
                    stops = false;
                    self.ask(numbers, &format!("POST /api/v1/conversations/{conversation}/cancel"), "", &json!({}));
                }
                Some("suspended") => self.decide(conversation, numbers),
                Some("running") | None => {}
                Some(_) => break,
            }
        }
        self.turns.fetch_add(1, Ordering::Relaxed);
        let mut longest = self.longest.lock().unwrap();
        *longest = begun.elapsed().max(*longest);
    }

    /// Decides about all that waits. Whether something happened is looked up where it would have happened.
    pub(crate) fn decide(&self, conversation: &str, numbers: &mut Numbers) {
        let path = format!("GET /api/v1/conversations/{conversation}/calls");
        let Some(answer) = self.ask(numbers, &path, "", &Value::Null) else { return };
        for call in answer.body["data"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let arguments = call["arguments"].as_str().unwrap_or_default();
            let decision = match call["reason"].as_str() {
                Some("unknown_outcome") if self.has_happened(arguments) => "happened",
                Some("unknown_outcome") => "run_again",
                Some("approval") if self.denies && numbers.once_in(DENIALS) => "deny",
                _ => "allow",
            };
            let id = call["id"].as_str().unwrap_or_default();
            let path = format!("POST /api/v1/conversations/{conversation}/calls/{id}/decision");
            self.ask(numbers, &path, "", &json!({"decision": decision}));
            self.decisions.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn has_happened(&self, arguments: &str) -> bool {
        let written = std::fs::read_to_string(&self.effects).unwrap_or_default();
        effect_named(arguments).is_some_and(|name| written.lines().any(|line| line.split(' ').next() == Some(&name)))
    }

    /// Watches a conversation over one connection after the other, until it has seen as many entries as `whole` says once that
    /// is known.
    pub(crate) fn watch(&self, conversation: &str, whole: &Mutex<Option<usize>>, mut numbers: Numbers) -> Watched {
        let mut seen = Assembly::default();
        let mut wrong = None;
        while wrong.is_none() && !self.is_over() && whole.lock().unwrap().is_none_or(|whole| seen.entries.len() < whole) {
            let last = seen.last.as_ref().map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
            let head = format!("GET /api/v1/conversations/{conversation}/events");
            let Ok((200, reader)) = self.any(&mut numbers).open(&head, &last, "", SILENCE) else {
                thread::sleep(PAUSE);
                continue;
            };
            self.connections.fetch_add(1, Ordering::Relaxed);
            // Some go on elsewhere for no reason.
            let most = if numbers.once_in(2) { 40 + numbers.below(200) } else { usize::MAX };
            wrong = self.read(reader, &mut seen, most, whole);
        }
        let entries = seen.entries.into_iter().map(|event| event["entry"].clone()).collect();
        Watched { conversation: conversation.to_owned(), entries, wrong }
    }

    /// Reads so many events; what did not fit.
    fn read(&self, mut reader: impl BufRead, seen: &mut Assembly, most: usize, whole: &Mutex<Option<usize>>) -> Option<String> {
        let (mut id, mut line, mut read) = (String::new(), String::new(), 0);
        while read < most && !self.is_over() {
            if whole.lock().unwrap().is_some_and(|whole| seen.entries.len() >= whole) {
                return None;
            }
            line.clear();
            // What was cut off in the middle of a line does not count.
            if reader.read_line(&mut line).is_err() || !line.ends_with('\n') {
                return None;
            }
            if let Some(value) = line.strip_prefix("id: ") {
                value.trim_end().clone_into(&mut id);
            } else if let Some(data) = line.strip_prefix("data: ") {
                read += 1;
                let event = serde_json::from_str(data).map_err(|error| format!("{error}: {data}"));
                if let Err(why) = event.and_then(|event| seen.take(&id, event)) {
                    return Some(why);
                }
            }
        }
        None
    }
}
