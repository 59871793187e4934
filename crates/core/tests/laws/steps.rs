//! The limit of steps, and user messages in the middle of a turn.

use std::sync::Arc;

use turnwright_core::{
    AssistantBlock, CallNeed, Control, Declared, Entry, FinishReason, QuestionReason, RunsAt, Step, StopReason,
    SyntheticResult, ToolDefinition, TurnId, TurnSettings, TurnStatus, Verdict,
};

use crate::told::{
    Told, call_id, claimed, ended, failed, question, retried, seq, settings, success, text, tool_call, user_message,
    with_max_steps,
};

fn ask(allow_calls: bool) -> Step {
    Step::CallModel { allow_calls }
}

#[test]
fn the_last_step_may_not_call() {
    let told = Told::new(with_max_steps(2));
    assert_eq!(told.step(), ask(true));
    assert_eq!(told.asks_for(1).runs(call_id(3, 0)).step(), ask(false));
    assert_eq!(Told::new(with_max_steps(1)).step(), ask(false), "the only step is the last");
}

#[test]
fn an_answer_that_the_last_step_forced_ends_at_the_step_limit() {
    let told = Told::new(with_max_steps(2)).asks_for(1).runs(call_id(3, 0)).answers("as far as I got");
    assert_eq!((told.step(), told.turn().steps()), (Step::End(TurnStatus::StepLimit), 2));
}

#[test]
fn a_plain_answer_in_the_last_step_completes_the_turn() {
    assert_eq!(Told::new(with_max_steps(1)).answers("hi").step(), Step::End(TurnStatus::Completed));
}

#[test]
fn an_answer_before_the_last_step_completes_the_turn() {
    let told = Told::new(with_max_steps(3)).asks_for(1).runs(call_id(3, 0)).answers("done");
    assert_eq!(told.step(), Step::End(TurnStatus::Completed));
}

#[test]
fn calls_made_in_the_last_step_get_failed_results_and_end_the_turn() {
    let told = Told::new(with_max_steps(1)).asks_for(2);
    let Step::Calls(pending) = told.step() else { panic!("{:?}", told.step()) };
    let needs: Vec<CallNeed> = pending.into_iter().map(|pending| pending.need).collect();
    assert_eq!(needs, [CallNeed::Answer(SyntheticResult::StepLimit); 2]);
    let told = told.tell(failed(call_id(3, 0))).tell(failed(call_id(3, 1)));
    assert_eq!(told.step(), Step::End(TurnStatus::StepLimit));
}

#[test]
fn calls_after_the_most_that_the_turn_may_make_are_not_run() {
    let told = Told::new(TurnSettings { max_tool_calls: Some(2), ..settings() }).asks_for(1).runs(call_id(3, 0));
    assert_eq!(told.step(), ask(true));
    let told = told.asks_for(3);
    let Step::Calls(pending) = told.step() else { panic!("{:?}", told.step()) };
    let needs: Vec<CallNeed> = pending.into_iter().map(|pending| pending.need).collect();
    let too_many = CallNeed::Answer(SyntheticResult::CallLimit);
    assert_eq!(needs, [CallNeed::Decide, too_many, too_many]);
    let at = told.turn().calls().next().unwrap().id.message.get();
    let told = told.runs(call_id(at, 0)).tell(failed(call_id(at, 1))).tell(failed(call_id(at, 2)));
    assert_eq!(told.step(), ask(false), "it must answer");
    assert_eq!(told.answers("done").step(), Step::End(TurnStatus::Completed));
}

#[test]
fn calls_that_could_not_run_are_not_counted_after_a_retry_either() {
    let call = || vec![tool_call("tool", "{}")];
    let unrun = |told: Told, reason| told.says(reason, call()).tell(failed(call_id(3, 0)));
    let most = |max_tool_calls| Told::new(TurnSettings { max_tool_calls: Some(max_tool_calls), ..settings() });
    let twice = unrun(most(1), FinishReason::Length);
    assert_eq!(twice.step(), ask(true));
    let twice = twice.says(FinishReason::Length, call()).tell(failed(call_id(5, 0)));
    let last = Told::new(TurnSettings { max_tool_calls: Some(2), ..with_max_steps(2) }).asks_for(1).runs(call_id(3, 0));
    let ends = [
        ("at its output limit twice", twice),
        ("refused", unrun(most(1), FinishReason::Refusal)),
        ("filtered", unrun(most(1), FinishReason::ContentFilter)),
        ("in the last step", last.asks_for(1).tell(failed(call_id(7, 0)))),
    ];
    for (what, told) in ends {
        let Step::End(status) = told.step() else { panic!("{what}: {:?}", told.step()) };
        let told = told.tell(ended(1, status)).tell(retried(1));
        assert_eq!(told.step(), ask(true), "{what}");
        let at = told.journal.next_seq().get();
        let told = told.asks_for(1).runs(call_id(at, 0));
        assert_eq!(told.step(), ask(false), "{what}");
    }
}

#[test]
fn calls_are_counted_from_the_beginning_of_the_turn_whenever_their_limit_is_chosen() {
    let told = Told::new(settings()).asks_for(2).runs(call_id(3, 0)).runs(call_id(3, 1));
    let again = |told: Told, max_tool_calls| {
        let settings = Some(Box::new(TurnSettings { max_tool_calls, ..settings() }));
        told.tell(ended(1, TurnStatus::Cancelled)).tell(Entry::Control(Control::Retried {
            turn: TurnId(seq(1)),
            settings,
            hides: None,
        }))
    };
    assert_eq!(again(told.clone(), Some(2)).step(), ask(false));
    let told = again(again(again(told, Some(3)), None), Some(3));
    assert_eq!(told.step(), ask(true), "what is taken up again is counted once");
    let at = told.journal.next_seq().get();
    let Step::Calls(pending) = told.asks_for(2).step() else { panic!("no calls") };
    let needs: Vec<(u64, CallNeed)> = pending.into_iter().map(|pending| (pending.call.message.get(), pending.need)).collect();
    assert_eq!(needs, [(at, CallNeed::Decide), (at, CallNeed::Answer(SyntheticResult::CallLimit))]);
}

#[test]
fn a_message_into_an_open_turn_leaves_its_limit_of_calls_as_it_is() {
    let told = Told::new(TurnSettings { max_tool_calls: Some(1), ..settings() }).asks_for(1).runs(call_id(3, 0)).user("also");
    assert_eq!(told.step(), ask(false));
}

#[test]
fn calls_that_ran_elsewhere_are_not_counted() {
    let told = Told::default().tell(user_message("hello", TurnSettings { max_tool_calls: Some(1), ..settings() }));
    let told = told.tell(Entry::Control(Control::Imported { source: "chatgpt".to_owned() })).asks_for(1);
    let told = told.tell(success(call_id(3, 0))).tell(ended(1, TurnStatus::Cancelled)).tell(retried(1)).tell(claimed(1));
    assert_eq!(told.step(), ask(true));
}

/// Where the client brings tools with these names.
fn with_client_tools(names: &[&str], most: u32) -> TurnSettings {
    let tools = names.iter().map(|name| ToolDefinition {
        name: (*name).to_owned(),
        source: "client".to_owned(),
        tool: (*name).to_owned(),
        title: None,
        description: String::new(),
        input_schema: serde_json::json!({"type": "object"}),
        annotations: None,
        declared: Declared::default(),
    });
    TurnSettings { max_tool_calls: Some(most), client_tools: tools.map(Arc::new).collect(), ..settings() }
}

fn asked_anew(settings: TurnSettings) -> Entry {
    Entry::Control(Control::Settings { settings: Box::new(settings) })
}

#[test]
fn a_call_stays_its_clients_where_the_result_comes_without_the_tool() {
    let told = Told::new(with_client_tools(&["pick"], 1)).says(FinishReason::ToolCalls, vec![tool_call("pick", "{}")]);
    let told = told.tell(question(call_id(3, 0), QuestionReason::ClientTool));
    let told = told.tell(asked_anew(with_client_tools(&[], 1))).tell(success(call_id(3, 0)));
    assert_eq!(told.step(), ask(true));
}

#[test]
fn whose_a_call_is_says_what_the_model_was_shown() {
    let told = Told::new(with_client_tools(&["pick"], 1));
    let told = told.tell(asked_anew(with_client_tools(&["draw"], 1))).tell(user_message("and", settings()));
    let told = told.tell(asked_anew(with_client_tools(&[], 1))).tell(user_message("more", settings()));
    let calls = vec![tool_call("pick", "{}"), tool_call("draw", "{}")];
    let told = told.says_having_seen(2, FinishReason::ToolCalls, calls);
    let where_they_run: Vec<RunsAt> = told.turn().calls().map(|call| call.runs_at).collect();
    assert_eq!(where_they_run, [RunsAt::Client, RunsAt::Here]);
}

#[test]
fn calls_that_a_client_runs_are_not_counted() {
    let told = Told::new(with_client_tools(&["pick"], 0));
    assert_eq!(told.step(), ask(true));
    let told = told.says(FinishReason::ToolCalls, vec![tool_call("pick", "{}"), tool_call("tool", "{}")]);
    let Step::Calls(pending) = told.step() else { panic!("{:?}", told.step()) };
    let needs: Vec<CallNeed> = pending.into_iter().map(|pending| pending.need).collect();
    assert_eq!(needs, [CallNeed::Decide, CallNeed::Answer(SyntheticResult::CallLimit)]);
}

#[test]
fn pauses_of_the_provider_count_as_steps() {
    let told = Told::new(with_max_steps(2)).says(FinishReason::Pause, vec![text("a")]);
    assert_eq!(told.step(), ask(false));
    let told = told.says(FinishReason::Pause, vec![text("b")]);
    assert_eq!(told.step(), Step::End(TurnStatus::StepLimit));
}

#[test]
fn a_message_at_its_length_limit_with_calls_in_the_last_step_ends_at_the_step_limit() {
    let told = Told::new(with_max_steps(1)).says(FinishReason::Length, vec![tool_call("tool", "{\"a")]);
    assert_eq!(told.tell(failed(call_id(3, 0))).step(), Step::End(TurnStatus::StepLimit));
}

#[test]
fn a_user_message_in_the_middle_gets_all_steps_of_its_own() {
    let told = Told::new(with_max_steps(2)).asks_for(1).user("also").runs(call_id(3, 0));
    assert_eq!(told.step(), ask(true));
    let told = told.asks_for(1).runs(call_id(8, 0));
    assert_eq!((told.step(), told.turn().steps()), (ask(false), 2));
}

#[test]
fn a_user_message_that_the_newest_answer_has_not_seen_asks_the_model_again() {
    let told = Told::new(settings()).user("also").says_having_seen(2, FinishReason::Stop, vec![text("to the first")]);
    assert_eq!(told.step(), ask(true));
    assert_eq!(told.answers("to both").step(), Step::End(TurnStatus::Completed));
}

#[test]
fn an_answer_that_has_not_seen_the_newest_user_message_takes_no_step_from_it() {
    let told = Told::new(with_max_steps(1)).user("also").says_having_seen(2, FinishReason::Stop, vec![text("first")]);
    assert_eq!(told.step(), ask(false), "the one step is still to come");
    assert_eq!(told.answers("both").step(), Step::End(TurnStatus::Completed));
}

#[test]
fn calls_of_an_answer_that_has_not_seen_the_newest_user_message_run() {
    let told = Told::new(with_max_steps(1)).user("also");
    let told = told.says_having_seen(2, FinishReason::ToolCalls, vec![tool_call("tool", "{}")]);
    assert_eq!(told.runs(call_id(4, 0)).step(), ask(false));
}

#[test]
fn a_refusal_that_has_not_seen_the_newest_user_message_does_not_stop_the_turn() {
    let told = Told::new(settings()).user("rather").says_having_seen(2, FinishReason::Refusal, vec![text("no")]);
    assert_eq!(told.step(), ask(true));
}

#[test]
fn words_of_refusal_and_nothing_else_are_a_refusal_whatever_the_provider_calls_the_end() {
    let refusal = || AssistantBlock::Refusal { text: "I will not.".to_owned() };
    let step = |reason, blocks| Told::new(settings()).says(reason, blocks).step();
    let refused = Step::End(TurnStatus::stopped(StopReason::Refused));
    assert_eq!(step(FinishReason::Stop, vec![refusal()]), refused);
    assert_eq!(step(FinishReason::Stop, vec![text(" "), refusal()]), refused);
    assert_eq!(step(FinishReason::Stop, vec![text("Sure: 4."), refusal()]), Step::End(TurnStatus::Completed));
    let nothing = AssistantBlock::Refusal { text: String::new() };
    assert_eq!(step(FinishReason::Stop, vec![nothing]), Step::End(TurnStatus::Completed));
    let call = tool_call("tool", "{}");
    assert!(matches!(step(FinishReason::Stop, vec![refusal(), call]), Step::Calls(_)));
}

#[test]
fn a_user_message_waits_until_the_calls_are_answered() {
    let told = Told::new(settings()).asks_for(1).decides(call_id(3, 0), Verdict::Deny).user("also");
    assert!(matches!(told.step(), Step::Calls(_)));
}

#[test]
fn a_retry_after_the_step_limit_has_all_steps_again() {
    let told = Told::new(with_max_steps(2)).asks_for(1).runs(call_id(3, 0)).answers("so far");
    let told = told.tell(ended(1, TurnStatus::StepLimit)).tell(retried(1));
    assert_eq!(told.step(), ask(true));
}
