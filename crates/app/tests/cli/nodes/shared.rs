//! What counts over all nodes: a message that is sent again, and what may be spent.

use serde_json::{Value, json};
use turnwright_testkit::model_server::{Piece, finish_chunk, text_chunk};

use super::{until_end, world, world_in};
use crate::support::Place;

fn short() -> Vec<Piece> {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}});
    vec![text_chunk("Short."), finish_chunk("stop"), Piece::Chunk(usage), Piece::Done]
}

#[test]
fn a_message_that_is_sent_again_to_another_node_is_the_same_message() {
    let Some(world) = world(2, &[], |_| short()) else { return };
    world.create();
    let body = json!({"content": "Once."}).to_string();
    let send = |at: usize| {
        let head = "POST /api/v1/conversations/c/messages HTTP/1.1\r\nIdempotency-Key: once\r\nX-Ignored: ";
        let answer = world.servers[at].request(head, &body);
        let (status, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(status.starts_with("HTTP/1.1 2"), "{answer}");
        serde_json::from_str::<Value>(body).unwrap()
    };
    let first = send(0);
    let events = until_end(&mut world.watch(1, None));
    assert_eq!((send(1), send(0)), (first.clone(), first));
    assert_eq!(events.iter().filter(|told| told.event["entry"]["user"].is_object()).count(), 1);
    let messages = world.servers[1].ask("GET /api/v1/conversations/c/messages", &Value::Null);
    assert_eq!(messages["data"].as_array().unwrap().len(), 2, "{messages}");
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn what_is_spent_at_one_node_counts_at_the_other() {
    let more = "[budgets]\nuser_day = { tokens = 6000 }\n[models.\"p/m\"]\nmax_output_tokens = 500\n";
    let Some(world) = world_in(Place::new(), more, 2, &[], |_| short()) else { return };
    let mut stopped_at = None;
    for turn in 0..8 {
        let id = format!("c{turn}");
        let server = &world.servers[turn % 2];
        server.ask("POST /api/v1/conversations", &json!({"id": id}));
        let told = server.ask(&format!("POST /api/v1/conversations/{id}/chat"), &json!({"content": "Go."}));
        if told["turn"]["status"] == "stopped" {
            stopped_at = Some(turn);
            break;
        }
    }
    let asked = world.model.requests().len();
    // With 1,000 tokens each no more than six fit, wherever they ran.
    assert!(stopped_at.is_some_and(|turn| turn <= 6 && asked == turn), "{stopped_at:?}, {asked}");
    let usage = |at: usize| world.servers[at].ask("GET /api/v1/usage", &Value::Null)["budgets"].clone();
    assert_eq!(usage(0)[0]["spent"]["tokens"], json!(asked * 1_000));
    assert_eq!(usage(0), usage(1));
    for server in world.servers {
        server.stop();
    }
}
