//! What it costs to build a request from a long journal: the first of a conversation, and the next one; beside parsing and
//! writing the same bytes as plain JSON.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run should stop")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::{Value, json};
use turnwright_core::prompt;
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Claim, Completion, ContentBlock, Control, ConversationId, DecidedBy, Decision,
    Declared, DriverId, Entry, Finish, FinishReason, Journal, ModelRef, Origin, Outcome, Seq, Started, StoredEntry, ToolCall,
    ToolDefinition, ToolResult, TurnId, TurnSettings, TurnStatus, Usage, UserMessage, Verdict,
};
use turnwright_dialects::{Kept, ModelFacts, Profile, Target, by_name};

/// Each turn: a user message, a message with two calls, their results, and an answer. 2,000 messages, 1,000 calls and more.
const TURNS: u64 = 667;
const TOOLS: usize = 20;
const DIALECTS: [&str; 5] = ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"];

fn settings() -> TurnSettings {
    let system_prompt = Some("You are a helpful assistant. ".repeat(20));
    TurnSettings { system_prompt, ..TurnSettings::new(ModelRef::new("provider", "model")) }
}

fn place(entries: &[Entry]) -> Seq {
    Seq::new(entries.len() as u64 + 1).unwrap()
}

fn user(turn: u64) -> Entry {
    let text = format!("Question {turn}: what is in the file, and \"why\"?\n{}", "word ".repeat(30));
    Entry::User(UserMessage { content: vec![ContentBlock::text(text)], settings: settings() })
}

fn says(entries: &[Entry], text: &str, calls: Vec<ToolCall>) -> Entry {
    let reason = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    let text = AssistantBlock::Text { text: text.to_owned(), native: None };
    Entry::Assistant(AssistantMessage {
        origin: Origin { dialect: "openai-chat".to_owned(), provider: "provider".to_owned(), model: "model".to_owned() },
        saw: Seq::new(entries.len() as u64).unwrap(),
        blocks: std::iter::once(text).chain(calls.into_iter().map(AssistantBlock::Call)).collect(),
        finish: Finish { reason, raw: Some("stop".to_owned()) },
        completion: Completion::Complete,
        usage: Usage::default(),
    })
}

fn call(turn: u64) -> ToolCall {
    ToolCall {
        name: "files__read_0".to_owned(),
        arguments: format!(r#"{{"path": "/data/file-{turn}.txt", "limit": 40}}"#),
        provider_id: Some(format!("call_abcdefghijklmnop{turn}")),
        native: None,
        recovered: false,
    }
}

fn tools() -> Vec<Arc<ToolDefinition>> {
    let tool = |number| ToolDefinition {
        name: format!("files__read_{number}"),
        source: "files".to_owned(),
        tool: format!("read_{number}"),
        title: None,
        description: "Reads a file, or a part of it, and says how long it is.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where it is"},
                "limit": {"type": "integer", "minimum": 1},
                "encoding": {"enum": ["utf-8", "latin-1"]},
            },
            "required": ["path"],
        }),
        annotations: None,
        declared: Declared::default(),
    };
    (0..TOOLS).map(|number| Arc::new(tool(number))).collect()
}

/// A journal of this many turns, and one question more.
fn journal(turns: u64) -> Journal {
    let mut entries: Vec<Entry> = Vec::new();
    for turn in 0..turns {
        let opened = place(&entries);
        entries.push(user(turn));
        entries.push(Entry::Control(Control::Claimed(Claim {
            driver: DriverId("driver".to_owned()),
            epoch: turn + 1,
            folder: None,
        })));
        if turn == 0 {
            entries.push(Entry::Control(Control::Offered { definitions: tools() }));
        }
        let asked = place(&entries);
        entries.push(says(&entries, "Let me look.", vec![call(turn), call(turn)]));
        for index in 0..2 {
            let call = CallId { message: asked, index };
            let by = DecidedBy::Policy { rule: "approve mode all".to_owned() };
            let (verdict, definition_hash) = (Verdict::Allow, Some("0123456789abcdef".to_owned()));
            entries.push(Entry::Decision(Decision {
                call,
                verdict,
                by,
                definition_hash,
                arguments: None,
                reason: None,
                remembered: None,
            }));
            entries.push(Entry::Started(Started::new(call, true)));
            entries.push(Entry::Result(ToolResult::of(call, Outcome::Success, "line of the file\n".repeat(40))));
        }
        entries.push(says(&entries, &"The file says this. ".repeat(30), Vec::new()));
        entries.push(Entry::Control(Control::Ended { turn: TurnId(opened), status: TurnStatus::Completed }));
    }
    entries.push(user(turns));
    let stored =
        (1..).zip(entries).map(|(seq, entry)| StoredEntry { seq: Seq::new(seq).unwrap(), at_ms: 0, entry: Arc::new(entry) });
    Journal::replay(stored).unwrap()
}

fn build(c: &mut Criterion) {
    let (before, now) = (journal(TURNS - 1), journal(TURNS));
    let conversation: ConversationId = "c".parse().unwrap();
    let settings = settings();
    assert!(prompt::messages(&now).len() >= 2_000);
    for name in DIALECTS {
        let dialect = by_name(name).unwrap();
        // A model that did not write the history: nothing is copied as it came.
        let origin = Origin { dialect: name.to_owned(), provider: "other".to_owned(), model: "model".to_owned() };
        let target = Target { origin: &origin, profile: &Profile::OPENAI, model: &ModelFacts::default() };
        let request = |journal: &Journal, kept: &mut Kept| {
            dialect.request(&target, &prompt::of(&conversation, black_box(journal), &settings, true), kept)
        };
        let body = request(&now, &mut Kept::default()).body;
        let value: Value = serde_json::from_slice(&body).unwrap();
        let mut group = c.benchmark_group(format!("request {name}, 2,000 messages with 1,300 calls"));
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function("first", |b| b.iter(|| request(&now, &mut Kept::default())));
        group.bench_function("next", |b| {
            b.iter_batched_ref(
                || {
                    let mut kept = Kept::default();
                    request(&before, &mut kept);
                    kept
                },
                |kept| request(&now, kept),
                criterion::BatchSize::LargeInput,
            );
        });
        group.bench_function("plain JSON written", |b| b.iter(|| serde_json::to_vec(black_box(&value)).unwrap()));
        group.bench_function("plain JSON parsed", |b| {
            b.iter(|| serde_json::from_slice::<Value>(black_box(&body)).unwrap());
        });
        group.finish();
    }
}

criterion_group!(benches, build);
criterion_main!(benches);
