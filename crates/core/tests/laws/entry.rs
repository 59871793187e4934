//! The stored form of entries.

use serde_json::json;
use turnwright_core::budgets::{Amount, BudgetKind, BudgetUnit, Purpose};
use turnwright_core::{
    AnswerAction, Answered, AnsweredBy, AssistantBlock, BudgetStop, Claim, Compacted, ContentBlock, Control, CutOffCause,
    DecidedBy, DecodeError, DriverId, ENTRY_VERSION, Elicitation, ElicitationId, Elicited, Entry, FinishReason, MessageId,
    ModelRef, NativeBlock, Origin, Outcome, OutputFormat, OutputSchema, ProviderFailure, ProviderFailureKind, QuestionReason,
    Reserved, StopReason, ToolErrorKind, ToolResult, TurnId, TurnSettings, TurnStatus, Usage, Verdict, Waits, Wants,
};

use crate::told::{
    call_id, cancel, claimed, decision, ended, failed, hidden, message, question, resumed, retried, seq, settings, started,
    success, text, tool_call, user_message, with_max_steps,
};

/// One of each.
fn entries() -> Vec<Entry> {
    let native = Some(NativeBlock(r#"{ "b":1,"a" : [2] }"#.to_owned()));
    let mut cut_off = message(
        seq(2),
        FinishReason::Error,
        vec![
            AssistantBlock::Reasoning { text: "hm".to_owned(), native: native.clone() },
            AssistantBlock::Text { text: "line\n\u{0}\"quoted\" \u{1f600}".to_owned(), native },
            AssistantBlock::Refusal { text: "no".to_owned() },
            AssistantBlock::Opaque { native: NativeBlock("[]".to_owned()) },
            tool_call("tool", "{\"trunc"),
        ],
    );
    let mut failure = ProviderFailure::new(ProviderFailureKind::RateLimit, "slow down");
    failure.retry_after_ms = Some(1_500);
    cut_off.completion = turnwright_core::Completion::CutOff(CutOffCause::Provider(Box::new(failure.clone())));
    cut_off.usage = Usage { input_tokens: Some(7), cost_usd: Some(0.25), ..Usage::default() };
    let mut edited = decision(call_id(3, 0), Verdict::Allow);
    edited.by = DecidedBy::Policy { rule: "rule 1 (allow *)".to_owned() };
    edited.arguments = Some("{}".to_owned());
    let mut result = ToolResult::of(call_id(3, 0), Outcome::Error(ToolErrorKind::Timeout), "late");
    result.structured_content = Some(serde_json::json!({"b": 1, "a": [null, 1.5]}));
    result.content.push(ContentBlock::Image { data: "AA==".to_owned(), mime_type: "image/png".to_owned() });
    let said = vec![
        user_message("hello", settings()),
        Entry::Assistant(message(seq(2), FinishReason::Stop, vec![text("hi")])),
        Entry::Assistant(cut_off),
        Entry::Decision(edited),
        Entry::Decision(decision(call_id(3, 0), Verdict::RunAgain)),
        question(call_id(3, 0), QuestionReason::UnknownOutcome),
        question(call_id(3, 0), QuestionReason::ClientTool),
        question(call_id(3, 0), QuestionReason::Loop),
        started(call_id(3, 0), true),
        success(call_id(3, 0)),
        failed(call_id(3, 0)),
        Entry::Result(result),
        claimed(1),
        resumed(2),
        Entry::Control(Control::Offered { definitions: Vec::new() }),
        Entry::Control(Control::Found { definitions: Vec::new() }),
        cancel(1),
        Entry::Control(Control::Suspended),
        Entry::Control(Control::Failed(failure.clone())),
        Entry::Control(Control::Compacted(Compacted {
            turn: Some(TurnId(seq(1))),
            through: seq(3),
            summary: "they said hello".to_owned(),
            origin: Some(Origin { dialect: "d".to_owned(), provider: "p".to_owned(), model: "m".to_owned() }),
            usage: Usage { output_tokens: Some(3), ..Usage::default() },
        })),
        Entry::Control(Control::Uncompacted { summary: seq(7) }),
        retried(1),
        user_message("hello", TurnSettings { output: Some(OutputFormat::JsonObject), ..settings() }),
        Entry::Control(Control::Settings { settings: Box::new(with_max_steps(4)) }),
        Entry::Control(Control::Retried {
            turn: TurnId(seq(1)),
            settings: Some(Box::new(with_max_steps(3))),
            hides: Some(MessageId(seq(4))),
        }),
        hidden(1),
        Entry::Control(Control::Imported { source: "chatgpt".to_owned() }),
        ended(1, TurnStatus::StepLimit),
        ended(1, TurnStatus::stopped(StopReason::Refused)),
        ended(1, TurnStatus::Stopped { reason: StopReason::Loop, summary: Some("in circles".to_owned()) }),
        Entry::Control(Control::Nudged { call: call_id(3, 0), text: "again".to_owned() }),
        Entry::Control(Control::Reserved(Reserved {
            purpose: Purpose::Sampling(ElicitationId { call: call_id(3, 0), index: 0 }),
            model: ModelRef::new("p", "m"),
            input: Amount { tokens: 10, nano_usd: 2_000 },
            output: Amount { tokens: 256, nano_usd: 9 },
            lowered_by: Some(over_budget()),
            driver: None,
        })),
        Entry::Control(Control::Reserved(Reserved {
            purpose: Purpose::SummaryByHand,
            model: ModelRef::new("p", "m"),
            input: Amount { tokens: 10, nano_usd: 2_000 },
            output: Amount { tokens: 256, nano_usd: 9 },
            lowered_by: None,
            driver: Some(DriverId("d".to_owned())),
        })),
        Entry::Control(Control::Settled { reservation: seq(7), amount: Amount { tokens: 12, nano_usd: 2_009 } }),
        ended(1, TurnStatus::Stopped { reason: StopReason::Budget(over_budget()), summary: Some("why".to_owned()) }),
        ended(1, TurnStatus::Failed { reason: "why".to_owned() }),
    ];
    said.into_iter().chain(asked(&failure)).collect()
}

fn over_budget() -> BudgetStop {
    BudgetStop {
        budget: BudgetKind::UserMonth,
        unit: BudgetUnit::NanoUsd,
        limit: 3,
        spent: 2,
        reserved: 1,
        needed: None,
        resets_at_ms: Some(5),
    }
}

/// One of each that a call has on its way.
fn asked(failure: &ProviderFailure) -> Vec<Entry> {
    vec![
        Entry::Elicited(Elicited {
            call: call_id(3, 0),
            source: "shop".to_owned(),
            asks: vec![
                Elicitation {
                    key: "a".to_owned(),
                    message: "Which?".to_owned(),
                    wants: Wants::Form { schema: json!({"b": 1, "a": 2}) },
                },
                Elicitation {
                    key: String::new(),
                    message: "Pay".to_owned(),
                    wants: Wants::Url { url: "https://a".to_owned() },
                },
            ],
            waits: Waits::Parked { resume: json!({"state": "opaque"}) },
        }),
        Entry::Elicited(Elicited {
            call: call_id(3, 0),
            source: "shop".to_owned(),
            asks: Vec::new(),
            waits: Waits::Open { until_ms: 5 },
        }),
        Entry::Answered(Answered {
            question: ElicitationId { call: call_id(3, 0), index: 1 },
            action: AnswerAction::Accept,
            content: json!({"b": 1, "a": [null]}).as_object().cloned(),
            by: AnsweredBy::Person,
            reason: None,
        }),
        Entry::Answered(Answered {
            question: ElicitationId { call: call_id(3, 0), index: 0 },
            action: AnswerAction::Cancel,
            content: None,
            by: AnsweredBy::Deadline,
            reason: None,
        }),
        Entry::Answered(Answered {
            question: ElicitationId { call: call_id(3, 0), index: 2 },
            action: AnswerAction::Accept,
            content: None,
            by: AnsweredBy::Policy,
            reason: Some("rule 1".to_owned()),
        }),
        Entry::Sampled(turnwright_core::Sampled {
            question: ElicitationId { call: call_id(3, 0), index: 2 },
            outcome: turnwright_core::SamplingOutcome::Answered(message(seq(2), FinishReason::Stop, vec![text("4")])),
        }),
        Entry::Sampled(turnwright_core::Sampled {
            question: ElicitationId { call: call_id(3, 0), index: 3 },
            outcome: turnwright_core::SamplingOutcome::Failed {
                failure: failure.clone(),
                usage: Usage { input_tokens: Some(3), ..Usage::default() },
            },
        }),
        Entry::TaskAccepted(turnwright_core::TaskAccepted {
            call: call_id(3, 0),
            source: "shop".to_owned(),
            task: json!({"taskId": "t1", "pollInterval": 30}),
        }),
    ]
}

#[test]
fn every_entry_is_read_as_it_was_written() {
    for entry in entries() {
        let text = entry.encode().expect("it can be written");
        assert!(entry.version() <= ENTRY_VERSION, "{text}");
        assert_eq!(Entry::decode(entry.version(), &text), Ok(entry), "{text}");
    }
}

#[test]
fn the_stored_form_names_its_kind_outside() {
    let claim = Entry::Control(Control::Claimed(Claim { driver: DriverId("d".to_owned()), epoch: 2, folder: None }));
    assert_eq!(claim.encode().as_deref(), Ok(r#"{"control":{"claimed":{"driver":"d","epoch":2}}}"#));
    let text = r#"{"started":{"call":"call_3_1","replayable":true,"key":"of_conversation"}}"#;
    assert_eq!(started(call_id(3, 1), true).encode().as_deref(), Ok(text));
    assert_eq!(Entry::Control(Control::Suspended).encode().as_deref(), Ok(r#"{"control":"suspended"}"#));
}

#[test]
fn an_answer_of_any_json_is_stored_as_a_word_that_older_nodes_do_not_read() {
    let with = |output: OutputFormat| TurnSettings { output: Some(output), ..settings() };
    let json = with(OutputFormat::JsonObject);
    let said = user_message("hello", json.clone());
    assert!(said.encode().is_ok_and(|text| text.contains(r#""output":"json_object""#)));
    let retried =
        Entry::Control(Control::Retried { turn: TurnId(seq(1)), settings: Some(Box::new(json.clone())), hides: None });
    let chosen = Entry::Control(Control::Settings { settings: Box::new(json) });
    assert_eq!([said, retried, chosen].map(|entry| entry.version()), [11; 3]);
    // A schema is stored as it always was.
    let schema = OutputSchema { name: "a".to_owned(), schema: json!({"type": "object"}), strict: true };
    let said = user_message("hello", with(OutputFormat::Schema(schema)));
    assert_eq!(said.version(), 1);
    let text = said.encode().expect("it can be written");
    assert!(text.contains(r#""output":{"name":"a","schema":{"type":"object"},"strict":true}"#), "{text}");
    assert_eq!(Entry::decode(1, &text.replace(r#","strict":true"#, "")), Ok(said), "from before there was `strict`");
}

#[test]
fn a_newer_version_is_not_read() {
    let text = started(call_id(3, 1), true).encode().expect("it can be written");
    let error = Entry::decode(ENTRY_VERSION + 1, &text).expect_err("it is newer");
    assert_eq!(error, DecodeError::Newer { version: ENTRY_VERSION + 1 });
    assert_eq!(error.to_string(), "entry is of version 13, this build reads up to 12");
}

#[test]
fn an_unknown_kind_and_damaged_text_are_unreadable() {
    let texts = [
        r#"{"thought":{}}"#,
        r#"{"control":{"compacted":{}}}"#,
        r#"{"control":"#,
        "",
        r#"{"started":{"call":"call_0_0","replayable":true}}"#,
        r#"{"started":{"call":"call_1_0","replayable":true}} x"#,
    ];
    for text in texts {
        assert!(matches!(Entry::decode(ENTRY_VERSION, text), Err(DecodeError::Unreadable { .. })), "{text}");
    }
}

#[test]
fn a_member_that_this_version_does_not_know_is_passed_over() {
    let text = r#"{"started":{"call":"call_3_1","replayable":true,"key":"of_conversation","slot":4}}"#;
    assert_eq!(Entry::decode(ENTRY_VERSION, text), Ok(started(call_id(3, 1), true)));
}

#[test]
fn only_decisions_to_run_change_arguments() {
    let with = |verdict| {
        let mut decision = decision(call_id(3, 0), verdict);
        decision.arguments = Some("{}".to_owned());
        decision.changed_arguments().is_some()
    };
    assert_eq!([Verdict::Allow, Verdict::RunAgain].map(with), [true; 2]);
    assert_eq!([Verdict::Deny, Verdict::Happened, Verdict::Skip].map(with), [false; 3]);
}
