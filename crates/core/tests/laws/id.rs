//! The names of things.

use turnwright_core::{ApprovalId, CallId, ConversationId, MessageId, ModelRef, TurnId};

use crate::told::{call_id, seq};

#[test]
fn names_are_read_as_they_are_written() {
    assert_eq!(call_id(13, 0).to_string(), "call_13_0");
    assert_eq!("call_13_0".parse(), Ok(call_id(13, 0)));
    assert_eq!("turn_12".parse(), Ok(TurnId(seq(12))));
    assert_eq!("msg_12".parse(), Ok(MessageId(seq(12))));
    let longest = CallId { message: seq(u64::MAX), index: u32::MAX };
    assert_eq!((longest.to_string().parse(), longest.to_string().len()), (Ok(longest), 36));
}

#[test]
fn names_go_through_json_as_text() {
    let json = serde_json::to_string(&(call_id(3, 1), TurnId(seq(1)), MessageId(seq(2)))).expect("JSON");
    assert_eq!(json, r#"["call_3_1","turn_1","msg_2"]"#);
    assert_eq!(serde_json::from_str(&json).ok(), Some((call_id(3, 1), TurnId(seq(1)), MessageId(seq(2)))));
    assert_eq!(serde_json::from_str(r#""c\u0061ll_3_1""#).ok(), Some(call_id(3, 1)));
    let error = serde_json::from_str::<TurnId>("12").expect_err("not a text").to_string();
    assert!(error.contains("expected a turn id (turn_ and a number)"), "{error}");
}

#[test]
fn a_name_has_one_spelling() {
    for other in ["", "call_", "call_1", "call_1_", "call__1", "call_0_0", "call_+1_0", "call_1_+0", "call_01_0", "call_1_00"] {
        assert!(other.parse::<CallId>().is_err(), "{other}");
    }
    for other in ["call_1_0_0", "call_-1_0", "call_1_4294967296", "call_18446744073709551616_0", "Call_1_0", " call_1_0"] {
        assert!(other.parse::<CallId>().is_err(), "{other}");
    }
    for (number, name) in [(1, "appr_13_0"), (2, "appr_13_0-2")] {
        let approval = ApprovalId { call: call_id(13, 0), number };
        assert_eq!((approval.to_string().as_str(), name.parse()), (name, Ok(approval)));
    }
    for other in ["appr_13", "appr_13_0-1", "appr_13_0-0", "appr_13_0-02", "appr_13_0-", "appr_13_0_2", "call_13_0"] {
        assert!(other.parse::<ApprovalId>().is_err(), "{other}");
    }
    for other in ["turn_0", "turn_01", "turn_+1", "turn_", "msg_1", "turn_1 "] {
        assert!(other.parse::<TurnId>().is_err(), "{other}");
    }
}

#[test]
fn an_error_says_what_would_be_right() {
    let error = "call_0_0".parse::<CallId>().expect_err("there is no entry 0");
    assert_eq!(error.to_string(), "`call_0_0` is not a call id (call_, a number, _, a number)");
}

#[test]
fn conversation_ids_are_short_and_plain() {
    for good in ["a", "A-b_c.d:9", "...", &"x".repeat(128)] {
        assert_eq!(good.parse::<ConversationId>().map(|id| id.to_string()), Ok(good.to_owned()));
    }
    for bad in ["", "a b", "ä", "a/b", ".", "..", &"x".repeat(129)] {
        assert!(bad.parse::<ConversationId>().is_err(), "{bad}");
    }
    assert!(serde_json::from_str::<ConversationId>(r#""a b""#).is_err());
}

#[test]
fn a_model_is_split_at_the_first_slash() {
    let model: ModelRef = "router/vendor/model:free".parse().expect("a model");
    assert_eq!((model.provider(), model.model()), ("router", "vendor/model:free"));
    for bad in ["", "model", "/model", "provider/"] {
        assert!(bad.parse::<ModelRef>().is_err(), "{bad}");
    }
}
