//! Nothing that a model or a tool does reaches the door of decisions.

use serde_json::{Value, json};
use turnwright_testkit::Port;
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::serve::Server;
use crate::support::{Place, wait_for};

/// A model that runs what it is told to run, and writes a file where it is told to write.
fn obedient() -> ModelServer {
    ModelServer::start(None, |request: &Value| {
        if results_shown(request) > 0 {
            return vec![text_chunk("Done."), finish_chunk("stop"), Piece::Done];
        }
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let said = messages.last().and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned();
        let call = match said.strip_prefix("run: ") {
            Some(line) => call_chunk(0, "command__run", &json!({"command": line}).to_string()),
            None if said == "remove" => call_chunk(0, "self__removeConversation", r#"{"id":"kept"}"#),
            None => call_chunk(0, "filesystem__write", r#"{"path":"b.txt","content":"hi"}"#),
        };
        vec![call, finish_chunk("tool_calls"), Piece::Done]
    })
    .unwrap()
}

fn place(model: &ModelServer, commands: &str) -> Place {
    let place = Place::new();
    let config = format!(
        "model = \"scripted/m\"\n[providers.scripted]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         max_retries = 0\n[[approval.rules]]\ntool = \"command__*\"\naction = \"allow\"\n\
         [tools.command]\n{commands}\n",
        model.base_url()
    );
    place.write("turnwright.toml", config);
    place
}

fn chat(server: &Server, conversation: &str, content: &str) -> Value {
    let head = format!("POST /api/v1/conversations/{conversation}/chat");
    let answer = server.request(&head, &json!({"content": content}).to_string());
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

/// What a command that a model runs prints.
fn printed(server: &Server, conversation: &str, line: &str) -> Value {
    let answer = chat(server, conversation, &format!("run: {line}"));
    let messages = answer["turn"]["messages"].as_array().unwrap().clone();
    let result = messages.iter().find(|message| message["role"] == "tool").unwrap();
    serde_json::from_str(result["content"].as_str().unwrap()).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_that_a_model_runs_cannot_decide_and_a_person_can() {
    let model = obedient();
    // In a sandbox it does not even reach the door.
    let place = place(&model, "sandbox = \"off\"");
    let server = Server::start(&place);
    let parked = chat(&server, "c", "write");
    let call = parked["turn"]["waiting"][0]["id"].as_str().unwrap().to_owned();
    let root = server.root();
    let decision = format!("{root}/api/v1/conversations/c/calls/{call}/decision");
    let post = |name: &str, url: &str, body: Value| {
        place.write(name, body.to_string());
        format!("curl -s -w ' %{{http_code}}' -H 'content-type: application/json' --data @{name} {url}")
    };
    let allow = || post("allow.json", &decision, json!({"decision": "allow"}));
    let ui = json!({"id": "c", "trigger": "submit-message", "messages": [
        {"id": "x", "role": "user", "parts": [{"type": "text", "text": "write"}]},
        {"id": "turn_1", "role": "assistant", "parts": [
            {"type": "dynamic-tool", "toolName": "filesystem__write", "toolCallId": call, "state": "approval-responded",
             "input": {}, "approval": {"id": call.replace("call_", "appr_"), "approved": true}}]}]});
    let rule = json!({"tool": "*", "action": "allow", "scope": "everyone"});
    let by_hand = json!({"name": "filesystem__write", "arguments": {"path": "b.txt", "content": "x"}, "approve": "all"});
    let attempts = [
        (allow(), "people_only"),
        (format!("env -u TURNWRIGHT_PROCESS {}", allow()), "people_only"),
        (format!("setsid -w {}", allow()), "people_only"),
        (post("ui.json", &format!("{root}/api/chat"), ui), "people_only"),
        (post("rule.json", &format!("{root}/api/v1/approvals/rules"), rule), "people_only"),
        (post("call.json", &format!("{root}/api/v1/tools/call"), by_hand), "people_only"),
    ];
    for (at, (line, refusal)) in attempts.iter().enumerate() {
        let told = printed(&server, &format!("attack{at}"), line);
        let output = told["stdout"].as_str().unwrap();
        assert!(output.contains(refusal), "{line}: {told}");
        assert!(!output.contains(" 200"), "{line}: {told}");
    }
    let waiting = server.request("GET /api/v1/conversations/c/calls", "");
    assert!(waiting.contains(&call), "it waits still: {waiting}");
    assert!(!place.path("b.txt").exists());
    assert_eq!(place.json(&["approvals", "rules", "list", "--json"]).as_array().unwrap().len(), 1);
    let told = printed(&server, "reads", &format!("curl -s {root}/api/v1/approvals"));
    assert!(told["stdout"].as_str().unwrap().contains(&call), "it may look: {told}");

    let path = format!("POST /api/v1/conversations/c/calls/{call}/decision");
    let decided = server.request(&path, &json!({"decision": "allow"}).to_string());
    assert!(decided.starts_with("HTTP/1.1 200"), "{decided}");
    server.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_that_a_model_runs_has_nothing_run_that_nobody_is_asked_about() {
    let model = obedient();
    let place = place(&model, "sandbox = \"off\"");
    let server = Server::start(&place);
    // A person lets all run in one conversation, and begins a turn so in another.
    let all = json!({"approve": "all"});
    let made = server.request("POST /api/v1/conversations", &json!({"id": "free", "settings": all}).to_string());
    assert!(made.starts_with("HTTP/1.1 201"), "{made}");
    assert!(server.request("POST /api/v1/conversations", r#"{"id": "plain"}"#).starts_with("HTTP/1.1 201"));
    let parked = chat(&server, "parked", "write");
    assert_eq!(parked["turn"]["status"], "suspended");
    let root = server.root();
    let curl = |method: &str, name: &str, path: &str, body: Value| {
        place.write(name, body.to_string());
        format!("curl -s -X {method} -w ' %{{http_code}}' -H 'content-type: application/json' --data @{name} {root}{path}")
    };
    let says = json!({"content": "write"});
    let says_all = json!({"content": "write", "settings": all});
    let ui =
        |id: &str| json!({"id": id, "messages": [{"id": "x", "role": "user", "parts": [{"type": "text", "text": "write"}]}]});
    let completion = json!({"model": "scripted/m", "messages": [{"role": "user", "content": "write"}]});
    let response = json!({"model": "scripted/m", "input": "write", "metadata": {"conversation_id": "free"}});
    let run = json!({"threadId": "free", "runId": "r", "messages": [{"id": "x", "role": "user", "content": "write"}]});
    let named = |body: Value| {
        let mut body = body;
        body["metadata"] = json!({"conversation_id": "free"});
        body
    };
    let attempts = [
        // The mode in the request itself, at each door that takes one.
        curl("POST", "1", "/api/v1/conversations/a1/chat", says_all.clone()),
        curl("POST", "2", "/api/v1/conversations/plain/messages", says_all.clone()),
        // Stored by one request for another to use.
        curl("POST", "4", "/api/v1/conversations", json!({"id": "a4", "settings": all})),
        curl("PATCH", "5", "/api/v1/conversations/parked", json!({"settings": all})),
        // What a person chose for something else.
        curl("POST", "6", "/api/v1/conversations/free/chat", says.clone()),
        curl("POST", "7", "/api/v1/conversations/free/messages", says.clone()),
        curl("POST", "8", "/api/chat", ui("free")),
        curl("POST", "9", "/v1/chat/completions", named(completion)),
        curl("POST", "10", "/v1/responses", response),
        curl("POST", "11", "/ag-ui", run),
        // What waits, declined in a person's name.
        curl("POST", "12", "/api/v1/conversations/parked/messages", json!({"content": "no", "on_waiting": "deny"})),
        // Or stopped together with its turn.
        curl("POST", "23", "/api/v1/conversations/parked/cancel", json!({})),
        // What else decides: servers, providers, ways in.
        curl("POST", "13", "/api/v1/mcp/servers", json!({"name": "mine", "command": "true"})),
        curl("PUT", "14", "/api/v1/providers/mine", json!({"dialect": "openai-chat", "base_url": model.base_url()})),
        curl("POST", "15", "/api/v1/tokens", json!({"name": "mine"})),
        curl("POST", "16", "/api/v1/users/local/links", json!({})),
    ];
    for (at, line) in attempts.iter().enumerate() {
        let told = printed(&server, &format!("attack{at}"), line);
        let output = told["stdout"].as_str().unwrap();
        assert!(output.contains("people_only"), "{line}: {told}");
        assert!(!output.contains(" 20"), "{line}: {told}");
    }
    // A copy of the conversation in which all runs is one in which the copier is asked.
    let fork = curl("POST", "17", "/api/v1/conversations/free/fork", json!({"id": "copy"}));
    assert!(printed(&server, "forks", &fork)["stdout"].as_str().unwrap().contains(" 201"));
    let said = curl("POST", "18", "/api/v1/conversations/copy/chat", says.clone());
    assert!(printed(&server, "says", &said)["stdout"].as_str().unwrap().contains("suspended"));
    assert!(!place.path("b.txt").exists());

    // What asks a person as ever, or nobody because nothing runs, is let through.
    let asks = [
        curl("POST", "19", "/api/v1/conversations/new/chat", says.clone()),
        curl(
            "POST",
            "20",
            "/api/v1/conversations/free/chat",
            json!({"content": "write", "settings": {"approve": "read-only"}}),
        ),
        curl("POST", "21", "/api/v1/conversations", json!({"id": "made", "settings": {"approve": "none"}})),
        curl("POST", "22", "/api/v1/conversations/parked/messages", json!({"content": "later", "on_waiting": "hold"})),
    ];
    for (at, line) in asks.iter().enumerate() {
        let told = printed(&server, &format!("asks{at}"), line);
        assert!(told["stdout"].as_str().unwrap().contains(" 20"), "{line}: {told}");
    }
    assert!(!place.path("b.txt").exists());
    // A person's own request is carried out.
    assert_eq!(chat(&server, "free", "write")["turn"]["status"], "completed");
    assert!(place.path("b.txt").exists());
    server.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn a_tool_that_calls_the_server_over_http_does_not_decide() {
    let model = obedient();
    let place = place(&model, "sandbox = \"off\"");
    let port = Port::reserve().unwrap();
    let address = port.address();
    let before = Server::start_at(&place, &address);
    before.ask("POST /api/v1/conversations", &json!({"id": "kept"}));
    before.stop();
    let remove = json!({"operationId": "removeConversation", "responses": {"204": {"description": "It is gone."}}, "parameters": [
        {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]});
    let description = json!({"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {
        "/api/v1/conversations/{id}": {"delete": remove}}});
    place.write("self.json", description.to_string());
    let config = std::fs::read_to_string(place.path("turnwright.toml")).unwrap();
    let more = format!(
        "[tools.http.self]\ndescription = \"self.json\"\nbase_url = \"http://{address}\"\n\
         [[approval.rules]]\ntool = \"self__*\"\naction = \"allow\"\n"
    );
    place.write("turnwright.toml", config + &more);
    let server = Server::start_at(&place, &address);
    let told = chat(&server, "c", "remove").to_string();
    assert!(told.contains("people_only"), "{told}");
    // Nor does one that another process of the same program calls.
    let ran = place.run(&["tools", "call", "self__removeConversation", "--arguments", r#"{"id":"kept"}"#]);
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains("people_only"), "{ran:?}");
    server.ask("GET /api/v1/conversations/kept", &Value::Null);
    server.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_leaves_its_ancestors_and_its_mark_does_not_decide_and_ends_with_the_server() {
    let model = obedient();
    let place = place(&model, "sandbox = \"off\"");
    let server = Server::start(&place);
    let parked = chat(&server, "c", "write");
    let call = parked["turn"]["waiting"][0]["id"].as_str().unwrap().to_owned();
    place.write("allow.json", json!({"decision": "allow"}).to_string());
    let url = format!("{}/api/v1/conversations/c/calls/{call}/decision", server.root());
    let curl = format!("curl -s -H 'content-type: application/json' --data @allow.json {url}");
    let clean = "env -i PATH=/usr/bin:/bin setsid -f";
    let waits = "until [ -s said ]; do sleep 0.01; done; cat said";
    let told = printed(&server, "attack", &format!("{clean} sh -c \"sleep 0.2; {curl} >told; mv told said\"; {waits}"));
    assert!(told["stdout"].as_str().unwrap().contains("people_only"), "{told}");
    assert!(!place.path("b.txt").exists());
    let told =
        printed(&server, "stays", &format!("rm said; {clean} sh -c 'echo $$ >told; mv told said; exec sleep 1000'; {waits}"));
    let pid = told["stdout"].as_str().unwrap().trim().to_owned();
    let is_there = || std::path::Path::new(&format!("/proc/{pid}/fd")).exists();
    assert!(!pid.is_empty() && is_there(), "{told}");
    server.stop();
    wait_for("its end", || (!is_there()).then_some(()));
}

#[cfg(target_os = "linux")]
#[test]
fn the_commands_that_decide_are_for_people_too() {
    let model = obedient();
    let place = place(&model, "sandbox = \"off\"");
    let server = Server::start(&place);
    let parked = chat(&server, "c", "write");
    let call = parked["turn"]["waiting"][0]["id"].as_str().unwrap().to_owned();
    let program = env!("CARGO_BIN_EXE_turnwright");
    let data = place.path("data").display().to_string();
    // Commands are told no database, and its password is hidden from models: this one found it in a file.
    let database = place.database().map_or("", |address| {
        place.write("found", format!("export TURNWRIGHT_DATABASE='{address}'\n"));
        ". ./found; "
    });
    place.write("servers.json", json!({"mcpServers": {"mine": {"command": "true"}}}).to_string());
    let attempts = [
        format!("approvals decide {call} allow"),
        "approvals rules add allow '*'".to_owned(),
        "chat --approve all write".to_owned(),
        r#"tools call filesystem__write --arguments '{"path":"b.txt","content":"x"}' --approve all"#.to_owned(),
        "mcp add mine -- true".to_owned(),
        "mcp import servers.json --write".to_owned(),
        "mcp remove mine".to_owned(),
        "users add eve --role admin".to_owned(),
        "users token local".to_owned(),
        "users link local".to_owned(),
        "conversations delete c --purge".to_owned(),
        "conversations stop c".to_owned(),
        "conversations compact c".to_owned(),
        "memory edit <servers.json".to_owned(),
        "memory clear".to_owned(),
    ];
    let clean = format!("{database}env -u TURNWRIGHT_PROCESS {program} --data-dir {data}");
    let by_variable = format!("{database}TURNWRIGHT_APPROVE=all {program} --data-dir {data} chat write");
    let lines = attempts.iter().map(|command| format!("{clean} {command}")).chain([by_variable]);
    for (at, line) in lines.enumerate() {
        let told = printed(&server, &format!("attack{at}"), &format!("{line} 2>&1"));
        assert!(told["stdout"].as_str().unwrap().contains("only people decide"), "{line}: {told}");
        assert_ne!(told["exit_code"], 0, "{line}: {told}");
    }
    let kept = "chat --approve read-only --conversation other write";
    let told = printed(&server, "looks", &format!("{clean} {kept} 2>&1"));
    assert_eq!(told["exit_code"], 0, "it may ask a model: {told}");
    let told = printed(&server, "lists", &format!("{clean} users list --json && {clean} mcp list && {clean} approvals list"));
    assert_eq!(told["exit_code"], 0, "it may look: {told}");
    assert!(!place.path("b.txt").exists());
    assert_eq!(place.json(&["approvals", "rules", "list", "--json"]).as_array().unwrap().len(), 1);
    assert_eq!(place.json(&["users", "list", "--json"]).as_array().unwrap().len(), 1);
    server.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_in_a_sandbox_with_network_cannot_decide_either_and_without_it_reaches_nothing() {
    let model = obedient();
    for (commands, refusal) in [("network = true", "people_only"), ("network = false", " 000")] {
        let place = place(&model, commands);
        let server = Server::start(&place);
        let parked = chat(&server, "c", "write");
        let call = parked["turn"]["waiting"][0]["id"].as_str().unwrap().to_owned();
        place.write("allow.json", json!({"decision": "allow"}).to_string());
        let url = format!("{}/api/v1/conversations/c/calls/{call}/decision", server.root());
        let curl = format!("curl -s -w ' %{{http_code}}' -H 'content-type: application/json' --data @allow.json {url}");
        for (at, line) in [curl.clone(), format!("env -i PATH=/usr/bin:/bin setsid -w {curl}")].iter().enumerate() {
            let told = printed(&server, &format!("attack{at}"), line);
            assert!(told["stdout"].as_str().unwrap().contains(refusal), "{commands}: {line}: {told}");
        }
        assert!(!place.path("b.txt").exists());
        server.stop();
    }
}

/// Asks for a rule by a connection of which nobody holds the other end while the door looks: it is on its way through a socket of the
/// program's own, or all who held it have ended.
const OUT_OF_SIGHT: &str = r#"
import array, os, socket, sys, time
host, port = sys.argv[2].split("//")[1].split(":")
body = b'{"tool": "*", "action": "allow", "scope": "everyone"}'
head = "POST /api/v1/approvals/rules HTTP/1.1\r\nHost: %s:%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
request = (head % (host, port, len(body))).encode() + body
if sys.argv[1] == "ends":
    for _ in range(20):
        if os.fork() == 0:
            socket.create_connection((host, int(port))).sendall(request)
            os._exit(0)
    time.sleep(2)
    print("all have ended")
else:
    connection = socket.create_connection((host, int(port)))
    connection.sendall(request[:-1])
    here, there = socket.socketpair()
    here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [connection.fileno()]))])
    connection.sendall(request[-1:])
    connection.close()
    time.sleep(1.5)
    _, sent, _, _ = there.recvmsg(1, socket.CMSG_LEN(4))
    print(socket.socket(fileno=array.array("i", sent[0][2])[0]).recv(2000).decode())
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_connection_that_nobody_seems_to_hold_does_not_decide() {
    // Only root sees that no process hides what it holds.
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: who hides what they hold is seen by root alone");
        return;
    }
    let model = obedient();
    let place = place(&model, "sandbox = \"off\"");
    place.write("hides.py", OUT_OF_SIGHT);
    let server = Server::start(&place);
    let on_its_way = printed(&server, "way", &format!("python3 hides.py way {}", server.root()));
    assert!(on_its_way["stdout"].as_str().unwrap().contains("people_only"), "{on_its_way}");
    let ended = printed(&server, "ends", &format!("python3 hides.py ends {}", server.root()));
    assert!(ended["stdout"].as_str().unwrap().contains("all have ended"), "{ended}");
    let rules = place.json(&["approvals", "rules", "list", "--json"]);
    assert_eq!(rules.as_array().unwrap().len(), 1, "{rules}");
    server.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn on_the_command_line_too_what_stays_below_the_server_does_not_decide() {
    let model = obedient();
    let place = place(&model, "sandbox = \"off\"");
    let server = Server::start(&place);
    let binary = env!("CARGO_BIN_EXE_turnwright");
    let data = place.path("data");
    let database = place.database().map(|address| format!("TURNWRIGHT_DATABASE='{address}'")).unwrap_or_default();
    let clean = format!("env -i PATH=/usr/bin:/bin TURNWRIGHT_DATA_DIR='{}' {database} setsid -f", data.display());
    let add = format!("{binary} approvals rules add allow anything --scope everyone");
    // In a file: an address of a database in a call's arguments would be hidden.
    place.write("attack.sh", format!("{clean} sh -c 'sleep 0.2; {add} >told 2>&1; mv told said'\n"));
    let line = "sh attack.sh; until [ -s said ]; do sleep 0.01; done; cat said";
    let told = printed(&server, "attack", line);
    assert!(told["stdout"].as_str().unwrap().contains("a tool has started this command"), "{told}");
    assert_eq!(place.json(&["approvals", "rules", "list", "--json"]).as_array().unwrap().len(), 1);
    server.stop();
    assert!(place.run(&["approvals", "rules", "add", "allow", "anything", "--scope", "everyone"]).code == Some(0));
}
