//! What a model is shown.

use std::sync::Arc;

use turnwright_core::prompt::{self, PromptMessage, PromptResult};
use turnwright_core::{
    AssistantBlock, ContentBlock, Control, Entry, FinishReason, NativeBlock, Outcome, QuestionReason, ToolChoice,
    ToolDefinition, ToolErrorKind, ToolResult, TurnSettings, TurnStatus, Verdict,
};

use crate::told::{
    Told, call_id, cancel, decision, ended, failed, hidden, question, retried, settings, started, success, text, tool,
    tool_call,
};

/// The messages, a word each: the users' texts, the models' with a number of calls, the results' call indexes.
fn shown(told: &Told) -> Vec<String> {
    let line = |message: &PromptMessage<'_>| match message {
        PromptMessage::User { message: user, .. } => format!("user {}", turnwright_core::text_of(&user.content)),
        PromptMessage::Context { context, .. } => format!("context {}", context.text),
        PromptMessage::Assistant { seq, message } => format!("assistant {seq} {}", message.text()),
        PromptMessage::Results(results) => {
            let results = results.iter().map(|result| {
                let word = if result.result.outcome == Outcome::Success { "done" } else { "failed" };
                format!("{} {word}", result.id)
            });
            format!("results {}", results.collect::<Vec<_>>().join(", "))
        }
    };
    prompt::messages(&told.journal).iter().map(line).collect()
}

fn results(told: &Told) -> Vec<PromptResult<'_>> {
    prompt::messages(&told.journal)
        .into_iter()
        .filter_map(|message| match message {
            PromptMessage::Results(results) => Some(results),
            PromptMessage::User { .. } | PromptMessage::Context { .. } | PromptMessage::Assistant { .. } => None,
        })
        .flatten()
        .collect()
}

fn asked(told: Told, calls: &[&str]) -> Told {
    let blocks = calls.iter().map(|arguments| tool_call("tool", arguments)).collect();
    told.says(FinishReason::ToolCalls, blocks)
}

#[test]
fn results_stand_in_call_order_whatever_order_they_finished_in() {
    let told = Told::new(settings()).asks_for(3).runs(call_id(3, 2)).runs(call_id(3, 0)).tell(failed(call_id(3, 1)));
    let expected = ["user hello", "assistant 3 ", "results call_3_0 done, call_3_1 failed, call_3_2 done"];
    assert_eq!(shown(&told), expected);
}

#[test]
fn a_user_message_that_arrives_during_the_calls_comes_after_the_results() {
    let told = Told::new(settings()).asks_for(1).user("also").runs(call_id(3, 0)).answers("both");
    assert_eq!(shown(&told), ["user hello", "assistant 3 ", "results call_3_0 done", "user also", "assistant 8 both"]);
}

#[test]
fn a_user_message_that_arrives_during_the_model_call_comes_after_the_answer() {
    let told = Told::new(settings()).user("also").says_having_seen(2, FinishReason::Stop, vec![text("first")]);
    let told = told.user("and").answers("all");
    let expected = ["user hello", "assistant 4 first", "user also", "user and", "assistant 6 all"];
    assert_eq!(shown(&told), expected);
}

#[test]
fn a_user_message_that_an_answer_with_calls_has_not_seen_comes_after_its_results() {
    let told = Told::new(settings()).user("also");
    let told = told.says_having_seen(2, FinishReason::ToolCalls, vec![tool_call("tool", "{}")]).runs(call_id(4, 0));
    assert_eq!(shown(&told), ["user hello", "assistant 4 ", "results call_4_0 done", "user also"]);
}

#[test]
fn a_hidden_message_is_not_shown_and_takes_its_results_with_it() {
    let told = Told::new(settings()).asks_for(1).runs(call_id(3, 0)).answers("done").tell(ended(1, TurnStatus::Completed));
    let told = told.user("next");
    assert_eq!(shown(&told.clone().tell(hidden(3))), ["user hello", "assistant 7 done", "user next"]);
    assert_eq!(shown(&told.clone().tell(hidden(7))), ["user hello", "assistant 3 ", "results call_3_0 done", "user next"]);
    assert_eq!(shown(&told.tell(hidden(1)))[0], "assistant 3 ");
}

#[test]
fn a_cut_off_message_is_shown_until_its_turn_is_retried() {
    let told = Told::new(settings()).gets_cut_off_by_provider(vec![text("let"), tool_call("tool", "{\"a")]);
    let told = told.tell(failed(call_id(3, 0))).tell(ended(1, TurnStatus::Failed { reason: String::new() }));
    let expected = ["user hello", "assistant 3 let", "results call_3_0 failed", "user next"];
    assert_eq!(shown(&told.clone().user("next")), expected);
    assert_eq!(shown(&told.tell(retried(1))), ["user hello"]);
}

#[test]
fn a_retry_never_shows_the_model_its_own_words_last() {
    let refused = Told::new(settings()).says(FinishReason::Refusal, vec![text("no")]);
    let refused = refused.tell(ended(1, TurnStatus::stopped(turnwright_core::StopReason::Refused)));
    assert_eq!(shown(&refused.tell(retried(1))), ["user hello"]);
    let stopped = Told::new(settings()).tell(cancel(1)).answers("whole").tell(ended(1, TurnStatus::Cancelled));
    assert_eq!(shown(&stopped.tell(retried(1))), ["user hello"]);
}

#[test]
fn a_retry_keeps_the_steps_before() {
    let told = Told::new(settings()).asks_for(1).runs(call_id(3, 0));
    let told = told.tell(ended(1, TurnStatus::Failed { reason: String::new() })).tell(retried(1));
    assert_eq!(shown(&told), ["user hello", "assistant 3 ", "results call_3_0 done"]);
}

#[test]
fn a_retry_keeps_an_answer_that_a_user_message_came_after() {
    let told = Told::new(settings()).user("also").says_having_seen(2, FinishReason::Stop, vec![text("first")]);
    let told = told.tell(ended(1, TurnStatus::Failed { reason: String::new() })).tell(retried(1));
    assert_eq!(shown(&told), ["user hello", "assistant 4 first", "user also"]);
}

#[test]
fn a_paused_message_is_shown_last() {
    let told = Told::new(settings()).says(FinishReason::Pause, vec![text("searching")]);
    assert_eq!(shown(&told), ["user hello", "assistant 3 searching"]);
}

#[test]
fn a_message_without_content_is_not_shown() {
    let nothing = [
        vec![],
        vec![text("")],
        vec![text(" \n")],
        vec![AssistantBlock::Refusal { text: String::new() }],
        vec![AssistantBlock::Reasoning { text: "hm".to_owned(), native: None }],
    ];
    for blocks in nothing {
        assert_eq!(shown(&Told::new(settings()).says(FinishReason::Stop, blocks)), ["user hello"]);
    }
    let opaque = vec![AssistantBlock::Opaque { native: NativeBlock("{}".to_owned()) }];
    assert_eq!(shown(&Told::new(settings()).says(FinishReason::Stop, opaque)).len(), 2);
}

#[test]
fn a_call_without_result_is_shown_as_interrupted() {
    let told = Told::new(settings()).asks_for(1);
    let shown = results(&told);
    let expected = ToolResult::failed(call_id(3, 0), ToolErrorKind::Interrupted, "This call has no result yet.");
    assert_eq!((shown.len(), &*shown[0].result), (1, &expected));
}

#[test]
fn edited_arguments_leave_the_call_as_it_was_and_the_result_says_so() {
    let mut edited = decision(call_id(3, 0), Verdict::Allow);
    edited.arguments = Some(r#"{"path":"/tmp"}"#.to_owned());
    let told = asked(Told::new(settings()), &[r#"{"path":"/"}"#]).tell(Entry::Decision(edited));
    let run = told.turn().call(call_id(3, 0)).map(|call| (call.arguments.to_owned(), call.is_edited));
    assert_eq!(run, Some((r#"{"path":"/tmp"}"#.to_owned(), true)));
    let told = told.tell(started(call_id(3, 0), false)).tell(success(call_id(3, 0)));
    let shown = results(&told);
    assert_eq!(shown[0].call.arguments, r#"{"path":"/"}"#);
    let expected = "[The user changed the arguments of this call to: {\"path\":\"/tmp\"}]\ndone";
    assert_eq!(shown[0].text(), expected);
}

#[test]
fn arguments_that_came_with_a_denial_change_nothing() {
    let mut denied = decision(call_id(3, 0), Verdict::Deny);
    denied.arguments = Some("{}".to_owned());
    let told = asked(Told::new(settings()), &[r#"{"a":1}"#]).tell(Entry::Decision(denied));
    assert_eq!(told.turn().call(call_id(3, 0)).map(|call| call.is_edited), Some(false));
    assert_eq!(results(&told)[0].note(), None);
}

#[test]
fn arguments_that_are_no_object_are_shown_as_one_with_the_raw_text_in_the_result() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(400), "]".repeat(400));
    let bad = ["{\"a\":", "not json", "[1]", "\"text\"", "{} {}", r#"{"a":1e999}"#, r#"{"a":"\ud800"}"#, deep.as_str()];
    let told = asked(Told::new(settings()), &bad);
    for (shown, raw) in results(&told).iter().zip(bad) {
        assert_eq!(shown.call.arguments_object(), "{}", "{raw}");
        assert!(serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(raw).is_err(), "{raw}");
        let note = shown.note().expect("a note");
        assert_eq!(note, format!("[The arguments of this call were not a JSON object: {}]", serde_json::json!(raw)));
    }
}

#[test]
fn arguments_that_are_an_object_are_shown_as_they_are() {
    let good = ["{}", " { \"b\" : 1, \"a\": [true, null, -1.5e3, \"\\u00e4\"] }\n", "{\"a\":1,\"a\":2}"];
    let told = asked(Told::new(settings()), &good);
    for (shown, raw) in results(&told).iter().zip(good) {
        assert_eq!((shown.call.arguments_object(), shown.note().as_deref()), (raw, None));
    }
}

#[test]
fn empty_arguments_mean_an_empty_object() {
    let told = asked(Told::new(settings()), &["", "  "]);
    assert!(results(&told).iter().all(|shown| shown.call.arguments_object() == "{}" && shown.note().is_none()));
}

#[test]
fn long_raw_arguments_are_shown_in_part() {
    let raw = "ä".repeat(3_000);
    let told = asked(Told::new(settings()), &[&raw]);
    let expected = format!("[The arguments of this call were not a JSON object: \"{}\" (and more)]", "ä".repeat(2_000));
    assert_eq!(results(&told)[0].note().as_deref(), Some(expected.as_str()));
}

#[test]
fn a_result_is_one_text() {
    let told = Told::new(settings()).asks_for(3);
    let mut told = told;
    let mut result = |index: u32, content: Vec<ContentBlock>, structured| {
        let id = call_id(3, index);
        let result = ToolResult {
            content,
            structured_content: structured,
            ..ToolResult::failed(id, ToolErrorKind::ExecutionFailed, "")
        };
        told.offer(Entry::Result(result)).expect("it fits");
    };
    let image = ContentBlock::Image { data: "AA==".to_owned(), mime_type: "image/png".to_owned() };
    result(0, vec![ContentBlock::text("one"), image, ContentBlock::text("two")], Some(serde_json::json!(1)));
    result(1, vec![], Some(serde_json::json!({"b": 1, "a": 2})));
    result(2, vec![], None);
    let texts: Vec<String> = results(&told).iter().map(PromptResult::text).collect();
    assert_eq!(texts, ["one\n[image, image/png]\ntwo", "{\"b\":1,\"a\":2}", "(no output)"]);
    let is_image = |block: &ContentBlock| matches!(block, ContentBlock::Image { .. });
    let beside: Vec<String> = results(&told).iter().map(|result| result.text_beside(is_image)).collect();
    assert_eq!(beside, ["one\ntwo", "{\"b\":1,\"a\":2}", "(no output)"]);
    let all: Vec<String> = results(&told).iter().map(|result| result.text_beside(|_| true)).collect();
    assert_eq!(all, texts);
}

#[test]
fn a_user_message_to_a_parked_turn_is_held() {
    let told = Told::new(settings()).asks_for(1).tell(question(call_id(3, 0), QuestionReason::Approval)).user("hurry");
    assert_eq!(shown(&told), ["user hello", "assistant 3 ", "results call_3_0 failed", "user hurry"]);
    assert!(told.turn().is_parked());
}

/// What the model must call next, where these tools are offered.
fn demanded(told: &Told) -> ToolChoice {
    let conversation = "c1".parse().expect("it is a name");
    prompt::of(&conversation, &told.journal, told.turn().settings(), true).tool_choice()
}

/// A turn that demands this of a model that is offered a tool of ours, and the client's own where it has one.
fn demanding(choice: ToolChoice, client_tools: Vec<Arc<ToolDefinition>>) -> Told {
    let definitions = ["ours", "theirs"].map(tool).into();
    let told = Told::new(TurnSettings { tool_choice: Some(choice), client_tools, ..settings() });
    told.tell(Entry::Control(Control::Offered { definitions }))
}

fn calls(told: Told, name: &str, message: u64) -> Told {
    told.says(FinishReason::ToolCalls, vec![tool_call(name, "{}")]).tell(failed(call_id(message, 0)))
}

#[test]
fn a_demand_lasts_until_what_it_names_was_called() {
    let theirs = || ToolChoice::Tool("theirs".to_owned());
    let either = || ToolChoice::Tools(vec!["theirs".to_owned(), "gone".to_owned()]);
    for (choice, client, once, first) in [
        (theirs(), false, theirs(), theirs()),
        (either(), false, theirs(), theirs()),
        (ToolChoice::Required, true, ToolChoice::Required, ToolChoice::Required),
        // Where whoever asks has no tool, any call is one.
        (ToolChoice::Required, false, ToolChoice::Auto, ToolChoice::Required),
    ] {
        let told = demanding(choice.clone(), if client { vec![tool("theirs")] } else { Vec::new() });
        assert_eq!(demanded(&told), first, "{choice:?}");
        let told = calls(told, "ours", 4);
        assert_eq!(demanded(&told), once, "{choice:?}");
        let told = calls(told, "theirs", 6);
        assert_eq!(demanded(&told), ToolChoice::Auto, "{choice:?}");
        // Another message demands it again.
        assert_eq!(demanded(&told.user("and now?")), first, "{choice:?}");
    }
}
