//! Conversations and entries to store.

use std::sync::Arc;

use turnwright_core::{
    ApproveMode, AssistantBlock, AssistantMessage, CallId, Claim, Completion, ContentBlock, Control, CutOffCause, DecidedBy,
    Decision, DriverId, EmbeddedResource, Entry, Finish, FinishReason, MessageId, NativeBlock, Origin, Outcome,
    ProviderFailure, ProviderFailureKind, Question, QuestionReason, Seq, Started, StopReason, StoredEntry, ToolCall,
    ToolDefinition, ToolErrorKind, ToolResult, TurnId, TurnSettings, TurnStatus, Usage, UserId, UserMessage, Verdict,
};
use turnwright_engine::{Append, ConversationRecord, SideRecord, Store};

pub(crate) fn seq(number: u64) -> Seq {
    Seq::new(number).unwrap()
}

/// A conversation that was created at `at_ms` and has no entry.
pub(crate) fn record(id: &str, at_ms: u64) -> ConversationRecord {
    ConversationRecord {
        id: id.parse().unwrap(),
        owner: UserId::local(),
        title: Some(format!("About {id}")),
        settings: r#"{"system_prompt":"Answer briefly. Ä ✓"}"#.to_owned(),
        created_at_ms: at_ms,
        updated_at_ms: at_ms,
    }
}

pub(crate) fn said(text: &str) -> Entry {
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    Entry::User(UserMessage { content: vec![ContentBlock::text(text)], settings })
}

pub(crate) fn append(id: &str, at: u64, entries: Vec<Entry>) -> Append {
    Append { conversation: id.parse().unwrap(), at: seq(at), entries, at_ms: at.saturating_add(1_000), side: Vec::new() }
}

pub(crate) fn with(mut append: Append, side: Vec<SideRecord>) -> Append {
    append.side = side;
    append
}

/// What an append of [`append`] must be read as.
pub(crate) fn stored(append: &Append) -> Vec<StoredEntry> {
    let places = append.at.get()..;
    let entries = append.entries.iter().zip(places);
    entries.map(|(entry, place)| StoredEntry { seq: seq(place), at_ms: append.at_ms, entry: Arc::new(entry.clone()) }).collect()
}

pub(crate) async fn all(store: &dyn Store, id: &str) -> Vec<StoredEntry> {
    store.entries(&id.parse().unwrap(), Seq::FIRST, usize::MAX).await.unwrap()
}

/// At least one entry of every kind, with every optional part somewhere there and somewhere missing.
pub(crate) fn every_kind() -> Vec<Entry> {
    let mut entries = vec![user_with_everything()];
    entries.extend(assistant_messages());
    entries.extend(about_calls());
    entries.extend(controls());
    entries
}

fn user_with_everything() -> Entry {
    let mut settings = TurnSettings::new("local/qwen2.5:7b/chat".parse().unwrap());
    settings.approve = ApproveMode::ReadOnly;
    settings.temperature = Some(0.1);
    settings.system_prompt = Some("\u{0}\u{1f600} \"quoted\" \\ and\nlines".to_owned());
    let text = EmbeddedResource {
        uri: "file:///a.txt".to_owned(),
        mime_type: Some("text/plain".to_owned()),
        text: Some("a".repeat(20_000)),
        blob: None,
    };
    let content = vec![
        ContentBlock::text("Grüße 🎈"),
        ContentBlock::Image { data: "aGk=".to_owned(), mime_type: "image/png".to_owned() },
        ContentBlock::Audio { data: "aGk=".to_owned(), mime_type: "audio/wav".to_owned() },
        ContentBlock::Resource { resource: text },
        ContentBlock::ResourceLink {
            uri: "https://example.com/".to_owned(),
            name: "example".to_owned(),
            title: Some("An example".to_owned()),
            description: None,
            mime_type: None,
            size: Some(12),
        },
    ];
    Entry::User(UserMessage { content, settings })
}

fn assistant_messages() -> Vec<Entry> {
    let origin = Origin { dialect: "anthropic".to_owned(), provider: "a.b".to_owned(), model: "m".to_owned() };
    let native = |text: &str| Some(NativeBlock(text.to_owned()));
    let call = ToolCall {
        name: "files__read".to_owned(),
        arguments: "{\"path\": \"/a\" ".to_owned(),
        provider_id: Some("toolu_1".to_owned()),
        native: native("{ \"b\" : 1.0e5, \"a\":2 }"),
        recovered: true,
    };
    let whole = AssistantMessage {
        origin: origin.clone(),
        saw: seq(1),
        blocks: vec![
            AssistantBlock::Reasoning { text: "Hm.".to_owned(), native: native("{\"signature\":\"x\"}") },
            AssistantBlock::Text { text: "Reading.".to_owned(), native: None },
            AssistantBlock::Refusal { text: "No.".to_owned() },
            AssistantBlock::Call(call),
            AssistantBlock::Opaque { native: NativeBlock("[1,  2]".to_owned()) },
        ],
        finish: Finish { reason: FinishReason::ToolCalls, raw: Some("tool_use".to_owned()) },
        completion: Completion::Complete,
        usage: Usage { input_tokens: Some(12), cost_usd: Some(0.1 + 0.2), ..Usage::default() },
    };
    let cut_off = |cause| AssistantMessage {
        blocks: Vec::new(),
        completion: Completion::CutOff(cause),
        usage: Usage::default(),
        ..whole.clone()
    };
    let failure = ProviderFailure::new(ProviderFailureKind::CutOff, "ended early");
    vec![
        Entry::Assistant(whole.clone()),
        Entry::Assistant(cut_off(CutOffCause::Provider(Box::new(failure)))),
        Entry::Assistant(cut_off(CutOffCause::Cancelled)),
    ]
}

fn about_calls() -> Vec<Entry> {
    let call = CallId { message: seq(2), index: 0 };
    let by_rule = Decision {
        call,
        verdict: Verdict::Deny,
        by: DecidedBy::Policy { rule: "deny files__*".to_owned() },
        definition_hash: Some("abc".to_owned()),
        arguments: None,
        reason: None,
        remembered: None,
    };
    let by_person = Decision {
        by: DecidedBy::Person,
        verdict: Verdict::RunAgain,
        arguments: Some("{}".to_owned()),
        reason: Some("because".to_owned()),
        ..by_rule.clone()
    };
    let result = ToolResult {
        structured_content: Some(serde_json::json!({"z": 1, "a": [null, 1.5, "x"]})),
        diagnostic: Some("exit code 1".to_owned()),
        duration_ms: Some(7),
        is_cached: true,
        ..ToolResult::of(call, Outcome::Success, "done")
    };
    vec![
        Entry::Decision(by_rule),
        Entry::Decision(by_person),
        Entry::Question(Question {
            rule: Some("ask *".to_owned()),
            definition_hash: Some("abc".to_owned()),
            ..Question::new(call, QuestionReason::DefinitionChanged)
        }),
        Entry::Started(Started::new(call, true)),
        Entry::Result(result),
        Entry::Result(ToolResult::failed(call, ToolErrorKind::Interrupted, "")),
    ]
}

fn controls() -> Vec<Entry> {
    let turn = TurnId(seq(1));
    let definition = ToolDefinition {
        name: "files__read".to_owned(),
        source: "files".to_owned(),
        tool: "read".to_owned(),
        title: None,
        description: "Reads.".to_owned(),
        input_schema: serde_json::json!({"type": "object", "properties": {"b": {}, "a": {}}}),
        annotations: None,
        declared: turnwright_core::Declared::default(),
    };
    let settings = Box::new(TurnSettings::new("a/b".parse().unwrap()));
    let stopped = TurnStatus::stopped(StopReason::Refused);
    let controls = vec![
        Control::Claimed(Claim { driver: DriverId("d".to_owned()), epoch: u64::MAX, folder: None }),
        Control::Resumed { count: 1 },
        Control::Offered { definitions: vec![Arc::new(definition)] },
        Control::CancelRequested { turn },
        Control::Suspended,
        Control::Failed(ProviderFailure::new(ProviderFailureKind::Auth, "no key")),
        Control::Retried { turn, settings: Some(settings), hides: None },
        Control::Hidden { message: MessageId(seq(1)) },
        Control::Imported { source: "chatgpt".to_owned() },
        Control::Ended { turn, status: TurnStatus::Failed { reason: "why".to_owned() } },
        Control::Ended { turn, status: stopped },
    ];
    controls.into_iter().map(Entry::Control).collect()
}
