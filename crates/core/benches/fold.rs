//! What it costs to open a long conversation: to read its entries, to fold them, to show them to a model.
#![expect(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot go on should stop")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Claim, ContentBlock, Control, DecidedBy, Decision, DriverId, ENTRY_VERSION,
    Entry, Finish, FinishReason, Journal, ModelFacts, ModelRef, Next, Origin, Outcome, Ruler, Ruling, Seq, StartRuling,
    Started, StoredEntry, ToolCall, ToolResult, TurnId, TurnSettings, TurnStatus, Usage, UserMessage, Verdict, plan,
};
use turnwright_core::{compaction, prompt};

/// Each turn: a user message, two messages of the model, two calls between them. 2,000 messages and 1,000 calls or more.
const TURNS: u64 = 667;
/// So many that there are 10,000 entries.
const TURNS_OF_10000: u64 = 910;

fn stored_texts(turns: u64) -> Vec<String> {
    let settings = TurnSettings {
        system_prompt: Some("You are a helpful assistant. ".repeat(20)),
        ..TurnSettings::new(ModelRef::new("provider", "model"))
    };
    let mut entries: Vec<Entry> = Vec::new();
    for turn in 0..turns {
        let opened = place(&entries);
        entries.push(Entry::User(UserMessage {
            content: vec![ContentBlock::text(format!("Question {turn}: what is in the file, and why? {}", "word ".repeat(30)))],
            settings: settings.clone(),
        }));
        entries.push(Entry::Control(Control::Claimed(Claim {
            driver: DriverId("driver".to_owned()),
            epoch: turn + 1,
            folder: None,
        })));
        let asked = place(&entries);
        entries.push(message(&entries, FinishReason::ToolCalls, vec![text("Let me look."), call(turn), call(turn)]));
        for index in 0..2 {
            let call = CallId { message: asked, index };
            let by = DecidedBy::Policy { rule: "approve mode all".to_owned() };
            let definition_hash = Some("0123456789abcdef".to_owned());
            let verdict = Verdict::Allow;
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
        entries.push(message(&entries, FinishReason::Stop, vec![text(&"The file says this. ".repeat(30))]));
        entries.push(Entry::Control(Control::Ended { turn: TurnId(opened), status: TurnStatus::Completed }));
    }
    entries.iter().map(|entry| entry.encode().expect("it can be written")).collect()
}

fn place(entries: &[Entry]) -> Seq {
    Seq::new(entries.len() as u64 + 1).expect("not zero")
}

fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text { text: text.to_owned(), native: None }
}

fn call(turn: u64) -> AssistantBlock {
    AssistantBlock::Call(ToolCall {
        name: "filesystem__read".to_owned(),
        arguments: format!(r#"{{"path": "/data/file-{turn}.txt", "limit": 40}}"#),
        provider_id: Some(format!("call_abcdefghijklmnop{turn}")),
        native: None,
        recovered: false,
    })
}

fn message(entries: &[Entry], reason: FinishReason, blocks: Vec<AssistantBlock>) -> Entry {
    Entry::Assistant(AssistantMessage {
        origin: Origin { dialect: "openai-chat".to_owned(), provider: "provider".to_owned(), model: "model".to_owned() },
        saw: Seq::new(entries.len() as u64).expect("not the first"),
        blocks,
        finish: Finish { reason, raw: Some("stop".to_owned()) },
        completion: turnwright_core::Completion::Complete,
        usage: Usage { input_tokens: Some(1_000), output_tokens: Some(100), ..Usage::default() },
    })
}

fn decoded(texts: &[String]) -> Vec<StoredEntry> {
    (1..)
        .zip(texts)
        .map(|(seq, text)| StoredEntry {
            seq: Seq::new(seq).expect("not zero"),
            at_ms: 0,
            entry: Arc::new(Entry::decode(ENTRY_VERSION, text).expect("it can be read")),
        })
        .collect()
}

struct AllowAll;

impl Ruler for AllowAll {
    fn rule(&mut self, _: &turnwright_core::CallView<'_>) -> Ruling {
        Ruling::Allow { rule: "approve mode all".to_owned(), definition_hash: "0123456789abcdef".to_owned() }
    }

    fn start(&mut self, _: &turnwright_core::CallView<'_>) -> StartRuling {
        StartRuling::Start { replayable: true }
    }
}

fn fold(criterion: &mut Criterion) {
    let texts = stored_texts(TURNS);
    let entries = decoded(&texts);
    let journal = Journal::replay(entries.clone()).expect("it fits");
    let settings = journal.turn().expect("there is a turn").settings().clone();
    let conversation = "c".parse().expect("an id");
    assert!(prompt::messages(&journal).len() >= 2_000, "the journal is as long as it should be");

    criterion.bench_function("decode_and_fold_2000_messages_1300_calls", |bencher| {
        bencher.iter(|| Journal::replay(decoded(black_box(&texts))).expect("it fits"));
    });
    criterion.bench_function("fold_2000_messages_1300_calls", |bencher| {
        bencher.iter(|| Journal::replay(black_box(&entries).iter().cloned()).expect("it fits"));
    });
    criterion.bench_function("prompt_of_2000_messages_1300_calls", |bencher| {
        bencher.iter(|| black_box(prompt::of(&conversation, black_box(&journal), &settings, true)).messages.len());
    });
    let mut open = journal.clone();
    let question = UserMessage { content: vec![ContentBlock::text("And now?")], settings };
    for entry in [
        Entry::User(question),
        Entry::Control(Control::Claimed(Claim {
            driver: DriverId("driver".to_owned()),
            epoch: open.next_epoch(),
            folder: None,
        })),
    ] {
        let seq = open.next_seq();
        open.apply(StoredEntry { seq, at_ms: 0, entry: Arc::new(entry) }).expect("it fits");
    }
    let answer = Entry::Assistant(AssistantMessage {
        saw: open.last_seq().expect("there is an entry"),
        ..match message(&[Entry::Control(Control::Suspended)], FinishReason::ToolCalls, vec![call(1), call(2)]) {
            Entry::Assistant(message) => message,
            entry => panic!("{entry:?} is no message"),
        }
    });
    criterion.bench_function("plan_a_message_with_2_calls", |bencher| {
        bencher.iter(|| {
            let plan = plan(black_box(&open), vec![answer.clone()], &mut AllowAll).expect("it fits");
            assert_eq!(plan.next, Next::Wait);
            plan
        });
    });
}

/// What a turn that finds a conversation of 10,000 entries too long, or a person, has made of it before a model is asked for the
/// summary: what it stands for, the transcript for the model, and the summary for where that gives none.
fn compacting(criterion: &mut Criterion) {
    let entries = decoded(&stored_texts(TURNS_OF_10000));
    assert!(entries.len() >= 10_000, "{}", entries.len());
    let journal = Journal::replay(entries).expect("it fits");
    let (model, facts) = (ModelRef::new("provider", "model"), ModelFacts::default());
    let asked = compaction::Asked { model: &model, facts: &facts, measure: &|_| None };
    criterion.bench_function("plan_the_compaction_of_10000_entries", |bencher| {
        bencher.iter(|| {
            let cut = compaction::cut(black_box(&journal)).expect("there is something to compact");
            let (digest, request) = (cut.digest(), cut.request(&asked));
            black_box((digest.len(), request.prompt().messages.len()))
        });
    });
}

criterion_group!(benches, fold, compacting);
criterion_main!(benches);
