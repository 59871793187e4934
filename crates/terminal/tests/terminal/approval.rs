//! The question whether a call may run, and its answers.

use turnwright_core::policy::{Action, Policy, Scope};
use turnwright_core::{ApprovalId, CallId, QuestionReason, Seq};
use turnwright_engine::WaitingCall;
use turnwright_terminal::{Look, Reply, parse_reply, question};

fn waiting(arguments: &str, reason: QuestionReason) -> WaitingCall {
    let call = CallId { message: Seq::FIRST, index: 0 };
    WaitingCall {
        conversation: "c".parse().unwrap(),
        call,
        approval: ApprovalId { call, number: 1 },
        name: "command__run".to_owned(),
        arguments: arguments.to_owned(),
        reason,
        rule: None,
        always: None,
    }
}

const PLAIN: Look = Look { answer_is_on_terminal: true, is_one_screen: true, has_color: false };

#[test]
fn the_question_shows_all_that_would_run_and_nothing_that_hides() {
    let call = waiting(r#"{"command":"rm -rf x","why":"\u001b[8m\u202e"}"#, QuestionReason::Approval);
    let expected =
        "command__run wants to run with\n  {\n    \"command\": \"rm -rf x\",\n    \"why\": \"\\u001b[8m\\u{202e}\"\n  }";
    assert_eq!(question(&call, PLAIN), expected);
}

#[test]
fn the_rule_that_would_be_remembered_is_shown() {
    let arguments = r#"{"command":"git status"}"#;
    let rule = Policy::default().proposed("command__run", &serde_json::from_str(arguments).unwrap(), Action::Allow);
    let call = WaitingCall { always: Some(rule), ..waiting(arguments, QuestionReason::Approval) };
    let expected = "command__run wants to run with\n  {\n    \"command\": \"git status\"\n  }\nthe like: allow command__run when command program git";
    assert_eq!(question(&call, PLAIN), expected);
}

#[test]
fn arguments_that_are_not_json_are_shown_as_they_are() {
    let call = waiting("{\"command\": \x1b[2J", QuestionReason::UnknownOutcome);
    let expected = "command__run was interrupted and may or may not have happened, with\n  {\"command\": ␛[2J";
    assert_eq!(question(&call, PLAIN), expected);
}

#[test]
fn long_arguments_are_cut_and_say_so() {
    let lines: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let call = waiting(&lines.join("\n"), QuestionReason::Approval);
    let question = question(&call, PLAIN);
    assert_eq!(question.lines().count(), 42);
    assert_eq!(question.lines().last(), Some("  … 60 more lines, `why` shows all"));
}

#[test]
fn answers_are_letters_or_words_and_fit_the_question() {
    use QuestionReason::{Approval, UnknownOutcome};
    let table = [
        (Approval, "y", Reply::Allow),
        (Approval, " Yes ", Reply::Allow),
        (Approval, "t", Reply::AllowFor(Scope::Turn)),
        (Approval, "conversation", Reply::AllowFor(Scope::Conversation)),
        (Approval, "a", Reply::AllowFor(Scope::User)),
        (UnknownOutcome, "a", Reply::Unclear),
        (Approval, "n", Reply::Deny(None)),
        (Approval, "no use the other file", Reply::Deny(Some("use the other file".to_owned()))),
        (Approval, "e", Reply::Edit),
        (Approval, "?", Reply::Why),
        (Approval, "later", Reply::Later),
        (Approval, "s", Reply::Stop),
        (Approval, "/stop", Reply::Stop),
        (Approval, "happened", Reply::Unclear),
        (Approval, "", Reply::Unclear),
        (Approval, "yes but not now", Reply::Unclear),
        (UnknownOutcome, "h", Reply::Happened),
        (UnknownOutcome, "r", Reply::RunAgain),
        (UnknownOutcome, "s", Reply::Skip),
        (UnknownOutcome, "stop", Reply::Stop),
        (UnknownOutcome, "y", Reply::Unclear),
    ];
    for (reason, line, reply) in table {
        assert_eq!(parse_reply(reason, line), reply, "{reason:?} {line:?}");
    }
}
