//! What stays the same from request to request, and where the provider keeps it.

use turnwright_core::prompt::PromptMessage;
use turnwright_core::{AssistantBlock, AssistantMessage, FinishReason, ToolCall, UserMessage};
use turnwright_dialects::Kept;

use super::opaque;
use super::request::{Ask, answer, asks, call, message, ok, says, thought};

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

struct Step {
    asked: UserMessage,
    calls: Vec<ToolCall>,
    said: AssistantMessage,
    done: AssistantMessage,
}

fn step(number: usize) -> Step {
    let calls: Vec<_> = (0..number % 13).map(|index| call(Some(&format!("toolu_{number}_{index}")), "{}")).collect();
    let mut blocks = vec![thought("Hm."), super::text("Well.")];
    blocks.extend(calls.iter().cloned().map(AssistantBlock::Call));
    let paused = number.is_multiple_of(5);
    let mut done = says(if paused {
        vec![opaque(r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}"#)]
    } else {
        vec![super::text("So.")]
    });
    done.finish.reason = if paused { FinishReason::Pause } else { FinishReason::Stop };
    Step { asked: asks(&format!("Question {number}")), calls, said: says(blocks), done }
}

fn messages(steps: &[Step]) -> Vec<PromptMessage<'_>> {
    let mut messages = Vec::new();
    for (step, place) in steps.iter().zip(0..) {
        let place = place * 10;
        messages.push(message(place + 1, &step.asked));
        messages.push(answer(place + 2, &step.said));
        if !step.calls.is_empty() {
            let results = step.calls.iter().zip(0..).map(|(call, index)| ok(place + 2, index, call)).collect();
            messages.push(PromptMessage::Results(results));
        }
        messages.push(answer(place + 9, &step.done));
    }
    messages
}

#[test]
fn each_request_begins_with_the_one_before_up_to_its_last_block_whatever_was_kept() {
    let steps: Vec<Step> = (0..30).map(step).collect();
    let all = messages(&steps);
    let mut kept = Kept::default();
    let mut before: Option<(String, usize)> = None;
    // Calls are shown together with their results.
    let is_whole = |count: &usize| !matches!(all.get(*count), Some(PromptMessage::Results(_)));
    for count in (1..=all.len()).filter(is_whole) {
        let mut ask = Ask::new(all[..count].to_vec());
        ask.settings.system_prompt = Some("Be kind.".to_owned());
        ask.body();
        let request = String::from_utf8(ask.request_with(&mut kept).body.into_vec()).unwrap();
        assert_eq!(request.as_bytes(), &*ask.request().body, "{count} messages");
        let common = before.map_or(0, |(before, shared)| {
            let common = before.bytes().zip(request.bytes()).take_while(|(a, b)| a == b).count();
            assert!(common >= shared, "{count} messages: {common} bytes are the same, {shared} were");
            common
        });
        before = Some((request, common));
    }
}

#[test]
fn tools_the_system_prompt_and_the_newest_message_are_marked_and_a_far_one_in_between() {
    let hello = asks("Hi");
    let marked = |count: u32| {
        let calls: Vec<_> = (0..count).map(|_| call(None, "")).collect();
        let said = says(calls.iter().cloned().map(AssistantBlock::Call).collect());
        let results = calls.iter().zip(0..).map(|(call, index)| ok(2, index, call)).collect();
        let mut ask = Ask::new(vec![message(1, &hello), answer(2, &said), PromptMessage::Results(results)]);
        ask.settings.system_prompt = Some("Be kind.".to_owned());
        let body = ask.body();
        assert_eq!(body["tools"][0]["cache_control"], body["system"][0]["cache_control"]);
        let blocks: Vec<_> =
            body["messages"].as_array().unwrap().iter().flat_map(|message| message["content"].as_array().unwrap()).collect();
        let marked = blocks.iter().zip(0..).filter(|(block, _)| block.get("cache_control").is_some());
        (blocks.len(), marked.map(|(_, place)| place).collect::<Vec<usize>>(), body.to_string().matches(MARK).count())
    };
    assert_eq!(marked(2), (5, vec![4], 3));
    assert_eq!(marked(9), (19, vec![18], 3));
    assert_eq!(marked(10), (21, vec![18, 20], 4));
    assert_eq!(marked(40), (81, vec![18, 80], 4));
}
