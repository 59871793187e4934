//! Whoever is away hears of a turn that waits: by a real command, and at a real receiver of webhooks.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};

use crate::serve::Server;
use crate::support::{Place, wait_for};

const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What came by one request.
#[derive(Debug, Clone)]
struct Received {
    head: Vec<String>,
    body: String,
}

impl Received {
    fn header(&self, name: &str) -> &str {
        let value = self.head.iter().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        value.unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn conversation(&self) -> Value {
        self.json()["data"]["conversation_id"].clone()
    }

    /// The body, once its signature was found to be right.
    fn signed(&self) -> Value {
        let signed = format!("{}.{}.{}", self.header("webhook-id"), self.header("webhook-timestamp"), self.body);
        let signature = STANDARD.decode(self.header("webhook-signature").strip_prefix("v1,").unwrap()).unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(SECRET).unwrap());
        hmac::verify(&key, signed.as_bytes(), &signature).unwrap();
        self.json()
    }
}

/// Takes webhooks, and answers with these statuses, the last one from then on; where one is empty, not at all.
struct Receiver {
    address: String,
    received: Arc<Mutex<Vec<Received>>>,
    answers: Arc<Mutex<Vec<&'static str>>>,
}

impl Receiver {
    fn start(answers: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (all, answers) = (Arc::default(), Arc::new(Mutex::new(answers.to_vec())));
        let receiver = Self { address, received: Arc::clone(&all), answers: Arc::clone(&answers) };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (all, answers) = (Arc::clone(&all), Arc::clone(&answers));
                thread::spawn(move || drop(take(&stream.unwrap(), &all, &answers)));
            }
        });
        receiver
    }

    fn answer(&self, status: &'static str) {
        *self.answers.lock().unwrap() = vec![status];
    }

    fn config(&self, more: &str) -> String {
        let address = &self.address;
        format!("[notify]\n{more}\n[notify.webhook]\nurl = \"http://{address}/hook?key=1\"\nsecret = \"whsec_{SECRET}\"\n")
    }

    fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until so many came.
    fn wait(&self, count: usize) -> Vec<Received> {
        wait_for("webhooks", || Some(self.received()).filter(|received| received.len() >= count))
    }
}

fn take(stream: &TcpStream, received: &Mutex<Vec<Received>>, answers: &Mutex<Vec<&'static str>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        received.lock().unwrap().push(Received { head, body: String::from_utf8(body).unwrap() });
        let status = {
            let mut answers = answers.lock().unwrap();
            if answers.len() > 1 { answers.remove(0) } else { answers[0] }
        };
        if status.is_empty() {
            continue;
        }
        let mut answer = stream;
        answer.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes())?;
    }
}

fn park(server: &Server, conversation: &str) {
    let body = "{\"content\":\"write \\\"hi\\\" to file \\\"b.txt\\\"\"}";
    let answer = server.request(&format!("POST /api/v1/conversations/{conversation}/chat"), body);
    assert!(answer.contains("\"suspended\""), "{answer}");
}

/// What the command wrote down, an event in each line.
fn told(place: &Place) -> Vec<Value> {
    let text = std::fs::read_to_string(place.path("told")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A program that writes down what it is told.
fn teller(place: &Place, name: &str, line: &str) {
    use std::os::unix::fs::PermissionsExt;
    place.write(name, format!("#!/bin/sh\n{line}\n"));
    std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn configure(place: &Place, config: &str) {
    place.write("turnwright.toml", format!("model = \"practice/practice\"\n{config}"));
}

#[test]
fn a_command_and_a_webhook_hear_once_of_each_turn_that_waits_also_over_a_restart() {
    let receiver = Receiver::start(&["503 Busy", "200 OK"]);
    let place = Place::new();
    teller(&place, "tell", "cat > event; echo >> event; cat event >> told");
    configure(&place, &receiver.config("command = [\"./tell\"]"));
    let server = Server::start(&place);
    park(&server, "first");
    let url = format!("{}/#/c/first", server.root());
    // The first was not taken, and came once more under the same name.
    let twice = receiver.wait(2);
    assert_eq!(twice[0].header("webhook-id"), twice[1].header("webhook-id"));
    assert_eq!(twice[0].head[0], "POST /hook?key=1 HTTP/1.1");
    let event = twice[1].signed();
    let expected = json!({
        "id": twice[1].header("webhook-id"),
        "type": "turn.waiting",
        "timestamp": event["timestamp"],
        "data": {
            "conversation_id": "first",
            "turn_id": event["data"]["turn_id"],
            "user_id": "local",
            "url": url,
            "waiting": [{
                "id": event["data"]["waiting"][0]["id"],
                "approval_id": event["data"]["waiting"][0]["approval_id"],
                "reason": "approval",
                "tool": "filesystem__write",
                "rule": "approve mode ask",
                "asked_at": event["timestamp"],
            }],
        },
    });
    assert_eq!(event, expected);
    let by_command = wait_for("the command", || told(&place).first().cloned());
    assert_eq!(by_command, event);
    // What is told of the second comes after what was kept of the first.
    park(&server, "second");
    let hears_of = |conversation: &str| {
        let webhooks = receiver.received().iter().filter(|event| event.conversation() == conversation).count();
        (webhooks, told(&place).iter().filter(|event| event["data"]["conversation_id"] == conversation).count())
    };
    let hear = |conversation: &str| {
        wait_for("both", || {
            let (webhooks, commands) = hears_of(conversation);
            (webhooks > 0 && commands > 0).then_some(())
        });
    };
    hear("second");
    server.stop();
    let server = Server::start(&place);
    park(&server, "third");
    hear("third");
    assert_eq!(hears_of("first"), (2, 1));
    server.stop();
}

#[test]
fn what_nobody_could_be_told_of_is_told_after_a_restart_under_the_same_id() {
    let receiver = Receiver::start(&["500 Broken"]);
    let place = Place::with(&receiver.config(""));
    let server = Server::start(&place);
    park(&server, "c");
    let before = receiver.wait(1);
    server.kill();
    receiver.answer("204 Told");
    let server = Server::start(&place);
    let asked = before.len();
    let after = wait_for("the webhook", || receiver.received().get(asked).cloned());
    assert_eq!(after.header("webhook-id"), before[0].header("webhook-id"));
    assert_eq!(after.signed()["data"]["conversation_id"], "c");
    server.stop();
}

#[test]
fn a_turn_that_another_process_parked_is_told_with_what_was_said_where_that_is_asked_for() {
    let receiver = Receiver::start(&["200 OK"]);
    let place = Place::with(&receiver.config("content = true"));
    let server = Server::start(&place);
    place.park("c");
    let event = receiver.wait(1)[0].signed();
    assert_eq!(event["data"]["title"], "write \"hi\" to file \"b.txt\"");
    let arguments: Value = serde_json::from_str(event["data"]["waiting"][0]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({"path": "b.txt", "content": "hi"}));
    server.stop();
}

#[test]
fn of_nodes_on_several_machines_one_tells_and_another_once_it_is_gone() {
    let receiver = Receiver::start(&["200 OK"]);
    let Some(place) = Place::on_postgres() else { return };
    // Another data directory is another machine: nothing but the database is common.
    let elsewhere = Place::new().with_variable("TURNWRIGHT_DATABASE", place.database().unwrap());
    for place in [&place, &elsewhere] {
        configure(place, &receiver.config(""));
    }
    let first = Server::start(&place);
    park(&first, "warm-up");
    receiver.wait(1);
    let second = Server::start(&elsewhere);
    park(&second, "at-the-second");
    park(&first, "at-the-first");
    receiver.wait(3);
    let told = |conversation: &str| -> Vec<String> {
        let all = receiver.received();
        let of_it = all.iter().filter(|event| event.conversation() == conversation);
        of_it.map(|event| event.json()["data"]["url"].as_str().unwrap().to_owned()).collect()
    };
    // By whom it was told is seen by the address that it names.
    for conversation in ["at-the-second", "at-the-first"] {
        assert_eq!(told(conversation), [format!("{}/#/c/{conversation}", first.root())]);
    }
    first.kill();
    park(&second, "after");
    wait_for("the second to tell", || (!told("after").is_empty()).then_some(()));
    assert_eq!(told("after"), [format!("{}/#/c/after", second.root())]);
    // What was told while its node died before it could note that is told again, under the same id.
    let ids: BTreeSet<String> = receiver.received().iter().map(|event| event.header("webhook-id").to_owned()).collect();
    assert_eq!(ids.len(), 4, "nothing is told again");
    second.stop();
}

#[test]
fn a_command_that_hangs_is_killed_and_holds_nothing_up() {
    let place = Place::new();
    teller(&place, "hang", "if [ -e began ]; then cat > ended; else echo $$ > began; sleep 1000; fi");
    configure(&place, "[notify]\ncommand = [\"./hang\"]\ntimeout_ms = 300\n");
    let server = Server::start(&place);
    park(&server, "c");
    let decided = server.request("POST /api/v1/conversations/other/chat", "{\"content\":\"read the file \\\"a.txt\\\"\"}");
    assert!(decided.starts_with("HTTP/1.1 200"), "{decided}");
    wait_for("the second try", || place.path("ended").exists().then_some(()));
    let log = server.said();
    assert!(log.contains("did not end within 300 ms and was killed"), "{log}");
    let hung = std::fs::read_to_string(place.path("began")).unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{}", hung.trim())).exists());
    server.stop();
}

#[test]
fn a_webhook_that_never_answers_holds_no_command_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::new();
    teller(&place, "tell", "cat >> told; echo >> told");
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let ways = format!(
        "command = [\"./tell\"]\ntimeout_ms = 600000\n[notify.webhook]\nurl = \"{url}\"\nsecret = \"whsec_{SECRET}\"\n"
    );
    configure(&place, &format!("[notify]\n{ways}"));
    let server = Server::start(&place);
    for (conversation, count) in [("first", 1), ("second", 2)] {
        park(&server, conversation);
        wait_for("the command", || (told(&place).len() == count).then_some(()));
    }
    server.stop();
}

#[test]
fn a_webhook_that_is_never_answered_holds_no_other_up() {
    let receiver = Receiver::start(&["", "200 OK"]);
    let place = Place::with(&receiver.config("timeout_ms = 600000"));
    let server = Server::start(&place);
    park(&server, "first");
    receiver.wait(1);
    park(&server, "second");
    let told: Vec<Value> = receiver.wait(2).iter().map(Received::conversation).collect();
    assert_eq!(told, ["first", "second"]);
    server.stop();
}

#[test]
fn a_command_that_a_killed_server_left_is_ended_by_the_next() {
    let place = Place::new();
    // On PostgreSQL a killed node counts as alive until its lease is over, and what it left ends once its turns are taken up.
    if place.database().is_some() {
        return;
    }
    teller(&place, "stay", "echo $$ >> began; sleep 1000");
    configure(&place, "[notify]\ncommand = [\"./stay\"]\ntimeout_ms = 600000\n");
    let server = Server::start(&place);
    park(&server, "c");
    let began = || std::fs::read_to_string(place.path("began")).unwrap_or_default();
    wait_for("the command", || began().contains('\n').then_some(()));
    let left = began().trim().to_owned();
    server.kill();
    let next = Server::start(&place);
    let is_gone = || !std::path::Path::new(&format!("/proc/{left}")).exists();
    wait_for("its end", || is_gone().then_some(()));
    next.stop();
}

#[test]
fn what_is_wrong_with_a_channel_is_told_with_its_place() {
    let place = Place::with("[notify]\ncommand = [\"\"]\n[notify.webhook]\nurl = \"ftp://x\"\nsecret = \"short\"\n");
    let ran = place.run(&["config", "check"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("`notify.webhook.url` is \"ftp://x\"; it must be a URL"), "{ran:?}");
    configure(&place, "[notify]\ncommand = [\"\"]\n[notify.webhook]\nurl = \"http://x\"\nsecret = \"short\"\n");
    let ran = place.run(&["config", "check"]);
    assert!(ran.stderr.contains("turnwright.toml:3: `notify.command` begins with an empty text"), "{ran:?}");
    assert!(ran.stderr.contains("turnwright.toml:6: `notify.webhook.secret` is no signing secret"), "{ran:?}");
}
