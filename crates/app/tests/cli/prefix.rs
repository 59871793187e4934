//! The beginning of a request stays as it was (law 7), as an endpoint sees it: over thirty turns in which a real MCP server
//! is killed and comes back, calls are approved and denied, tools are taken away and given back, and another model is asked.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece};

use crate::serve::Server;
use crate::support::{Place, wait_for};

const TURNS: u64 = 30;

/// A server whose tools come in another order each time it starts, and that can be made to die in a call.
const SERVER: &str = concat!(
    include_str!("../servers/small.py"),
    r#"
starts = int(open("starts").read()) + 1 if os.path.exists("starts") else 1
note("starts", starts)
note("server.pid", os.getpid())
offered = [tool(name, "Does " + name) for name in ["greet", "die", "other", "more"]]
serve(lambda: offered[starts % 4:] + offered[:starts % 4],
      lambda params: os._exit(3) if params["name"] == "die" else "hello from %d" % starts)
"#
);

/// How an API answers, in one body, and how it counts what it had read before.
struct Api {
    dialect: &'static str,
    /// The answer with this text, or that calls this tool; then tokens in, and how many of them were cached.
    answer: fn(Result<&str, &str>, u64, u64) -> Value,
}

const APIS: [Api; 4] = [
    Api {
        dialect: "openai-chat",
        answer: |said, input, cached| {
            let (message, reason) = match said {
                Ok(text) => (json!({"role": "assistant", "content": text}), "stop"),
                Err(tool) => {
                    let function = json!({"name": tool, "arguments": "{}"});
                    let call = json!({"id": "call_a", "type": "function", "function": function});
                    (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
                }
            };
            let details = json!({"cached_tokens": cached});
            json!({"choices": [{"index": 0, "message": message, "finish_reason": reason}],
                   "usage": {"prompt_tokens": input, "completion_tokens": 1, "prompt_tokens_details": details}})
        },
    },
    Api {
        dialect: "openai-responses",
        answer: |said, input, cached| {
            let item = match said {
                Ok(text) => {
                    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
                    json!({"type": "message", "role": "assistant", "status": "completed", "content": content})
                }
                Err(tool) => json!({"type": "function_call", "call_id": "call_a", "name": tool, "arguments": "{}"}),
            };
            let usage = json!({"input_tokens": input, "output_tokens": 1, "input_tokens_details": {"cached_tokens": cached}});
            json!({"status": "completed", "output": [item], "usage": usage})
        },
    },
    Api {
        dialect: "anthropic",
        answer: |said, input, cached| {
            let (block, reason) = match said {
                Ok(text) => (json!({"type": "text", "text": text}), "end_turn"),
                Err(tool) => (json!({"type": "tool_use", "id": "toolu_a", "name": tool, "input": {}}), "tool_use"),
            };
            let usage = json!({"input_tokens": input - cached, "cache_read_input_tokens": cached, "output_tokens": 1});
            json!({"type": "message", "role": "assistant", "content": [block], "stop_reason": reason, "usage": usage})
        },
    },
    Api {
        dialect: "gemini",
        answer: |said, input, cached| {
            let part = match said {
                Ok(text) => json!({"text": text}),
                Err(tool) => json!({"functionCall": {"name": tool, "args": {}}}),
            };
            let usage = json!({"promptTokenCount": input, "cachedContentTokenCount": cached, "candidatesTokenCount": 1});
            json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}], "usageMetadata": usage})
        },
    },
];

/// What the model does next, and what it saw.
#[derive(Default)]
struct Script {
    /// The tool that it calls in its next step.
    next: Option<&'static str>,
    before: String,
    /// For each request, the tokens that it had read before.
    cached: Vec<u64>,
}

fn common(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

/// A model that calls what the script says and then answers. It has read before what the last request began with.
fn model(api: &'static Api, script: &Arc<Mutex<Script>>) -> ModelServer {
    let script = Arc::clone(script);
    let answer = move |request: &Value| {
        let mut script = script.lock().unwrap();
        let text = request.to_string();
        let cached = (common(&script.before, &text) / 4) as u64;
        let input = (text.len() / 4) as u64;
        script.cached.push(cached);
        script.before = text;
        let said = script.next.take().map_or(Ok("Well."), Err);
        let body = (api.answer)(said, input, cached).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
        vec![Piece::Raw(format!("{head}content-length: {}\r\n\r\n{body}", body.len()))]
    };
    ModelServer::start(None, answer).unwrap()
}

fn body(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|_| panic!("{answer}"))
}

/// The report of a turn, with the decision that it waits for, if any.
fn turn(server: &Server, request: &Value, decision: &str) -> Value {
    let answer = body(&server.request("POST /api/v1/conversations/c/chat", &request.to_string()));
    let report = answer["turn"].clone();
    if report["status"] != "suspended" {
        return report;
    }
    let call = report["waiting"][0]["id"].as_str().unwrap();
    let decided = server
        .request(&format!("POST /api/v1/conversations/c/calls/{call}/decision"), &json!({"decision": decision}).to_string());
    assert!(decided.starts_with("HTTP/1.1 200"), "{decided}");
    wait_for("the end of the turn", || {
        let shown = body(&server.request("GET /api/v1/conversations/c", ""));
        (shown["turn"]["status"] == "completed").then_some(())
    });
    json!({"status": "completed"})
}

/// Kills the MCP server as it runs now.
fn kill_server(place: &Place) {
    let pid = std::fs::read_to_string(place.path("server.pid")).unwrap();
    drop(place.clean(std::process::Command::new("kill"), &["-9", pid.trim()]).status());
}

fn tell(server: &Server, head: &str, tool: &str) {
    let answer = server.request(head, &json!({"server_id": "s", "tool_name": tool}).to_string());
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
}

fn check(api: &'static Api) {
    let script = Arc::new(Mutex::new(Script::default()));
    let endpoint = model(api, &script);
    let (dialect, url) = (api.dialect, endpoint.base_url());
    let place = Place::with(&format!(
        "approve = \"all\"\nsystem_prompt = \"Be brief.\"\n[providers.p]\ndialect = \"{dialect}\"\nbase_url = \"{url}\"\n\
         api_key = \"k\"\nmodels = [\"m\", \"n\"]\n[mcp.servers.s]\ncommand = \"python3\"\nargs = [\"server.py\"]\n"
    ));
    place.write("server.py", SERVER);
    let server = Server::start(&place);
    // The requests before which the law lets the beginning shrink.
    let mut may_shrink = vec![0];
    for number in 1..=TURNS {
        let asked = endpoint.bodies().len();
        let mut request = json!({"content": format!("Message {number}"), "model": "p/m"});
        let mut decision = "allow";
        match number {
            5 | 11 | 17 | 23 | 29 => kill_server(&place),
            8 | 14 => request["settings"] = json!({"approve": "ask"}),
            20 => (request["settings"], decision) = (json!({"approve": "ask"}), "deny"),
            12 | 24 => {
                let head = ["DELETE", "POST"][usize::from(number == 24)];
                tell(&server, &format!("{head} /api/v1/conversations/c/tools"), "other");
                may_shrink.push(asked);
            }
            26 | 27 => {
                // That API is told the model in its address.
                may_shrink.extend((dialect != "gemini").then_some(asked));
                request["model"] = json!(["p/n", "p/m"][usize::from(number == 27)]);
            }
            _ => {}
        }
        script.lock().unwrap().next = Some(if number % 6 == 3 { "s__die" } else { "s__greet" });
        let report = turn(&server, &request, decision);
        assert_eq!(report["status"], "completed", "{dialect}, turn {number}: {report}");
        let script = script.lock().unwrap();
        assert_eq!(script.cached.len(), asked + 2, "{dialect}, turn {number}: a call and an answer");
        if let Some(usage) = report.get("usage") {
            let cached: u64 = script.cached[asked..].iter().sum();
            assert_eq!(usage["cached_input_tokens"], cached, "{dialect}, turn {number}");
        }
    }
    server.stop();
    let starts: u64 = std::fs::read_to_string(place.path("starts")).unwrap().trim().parse().unwrap();
    assert!(starts > 5, "{dialect}: the server came back {starts} times");
    let bodies = endpoint.bodies();
    let mut longest = 0;
    for (at, pair) in bodies.windows(2).map(|pair| (&pair[0], &pair[1])).enumerate() {
        let (before, now) = pair;
        let shared = common(before, now);
        if may_shrink.contains(&(at + 1)) {
            assert!(shared < longest, "{dialect}, request {}: nothing changed although it should have", at + 1);
        } else {
            assert!(shared >= longest, "{dialect}, request {}: {shared} bytes, {longest} before\n{before}\n{now}", at + 1);
            // All but what only the end of a request has.
            assert!(
                shared + 400 > before.len(),
                "{dialect}, request {}: {shared} of {}\n{before}\n{now}",
                at + 1,
                before.len()
            );
        }
        longest = shared;
    }
}

#[test]
fn over_chat_completions_the_beginning_stays_while_servers_come_and_go() {
    check(&APIS[0]);
}

#[test]
fn over_responses_the_beginning_stays_while_servers_come_and_go() {
    check(&APIS[1]);
}

#[test]
fn over_anthropic_the_beginning_stays_while_servers_come_and_go() {
    check(&APIS[2]);
}

#[test]
fn over_gemini_the_beginning_stays_while_servers_come_and_go() {
    check(&APIS[3]);
}
