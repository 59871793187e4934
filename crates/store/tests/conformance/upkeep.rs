//! What is removed for good.

use turnwright_core::{ContentBlock, ConversationId, Entry, Seq, TurnId, TurnSettings, UserId, UserMessage};
use turnwright_engine::upkeep::{RESENT, written_time};
use turnwright_engine::{Append, ConversationRecord, Idempotent, KeptBy, Page, SideRecord};
use turnwright_store::Storage;
use turnwright_testkit::record;

use super::Full;

fn titled(id: &str, settings: &str) -> ConversationRecord {
    ConversationRecord { title: Some(format!("title of {id}")), settings: settings.to_owned(), ..record(id) }
}

async fn say(store: &dyn Storage, id: &str, text: &str, at_ms: u64, side: Vec<SideRecord>) {
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    let entry = Entry::User(UserMessage { content: vec![ContentBlock::text(text)], settings });
    let conversation = id.parse().unwrap();
    store.append(Append { conversation, at: Seq::FIRST, entries: vec![entry], at_ms, side }).await.unwrap();
}

pub(crate) async fn what_is_old_goes_unless_it_is_pinned_or_its_turn_is_open(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    for (id, settings, at_ms) in [
        ("old", "{}", 5),
        ("pinned", "{\"pinned\":true}", 5),
        ("said-zero", r#"{"system_prompt":"\u0000 \\ \\u0000 \\\u0000"}"#, 5),
        ("pinned-zero", r#"{"system_prompt":"\u0000 \" \ud834\udd1e \\\\u0000","pinned":true}"#, 5),
        ("runs", "{}", 5),
        ("waits", "{}", 5),
        ("new", "{}", 50),
        ("copy", "{}", 5),
    ] {
        let created_at_ms = if id == "copy" { 50 } else { 1 };
        store.create(ConversationRecord { created_at_ms, ..titled(id, settings) }).await.unwrap();
        let open = |parked| vec![SideRecord::TurnOpen { turn: TurnId(Seq::FIRST), parked, kept_by: KeptBy::Servers }];
        let side = match id {
            "runs" => open(false),
            "waits" => open(true),
            _ => Vec::new(),
        };
        say(store, id, "x", at_ms, side).await;
    }
    let owner = UserId::local();
    let pinned = store.conversations(Page { owner: &owner, after: None, limit: 9, only_pinned: true }).await.unwrap();
    let mut pinned: Vec<_> = pinned.iter().map(|record| record.id.as_str()).collect();
    pinned.sort_unstable();
    assert_eq!(pinned, ["pinned", "pinned-zero"]);
    assert!(store.has_old(10, 60).await.unwrap());
    let mut removed = store.remove_old(10, 60, 20).await.unwrap();
    removed.sort_unstable();
    let old: [ConversationId; 2] = ["old", "said-zero"].map(|id| id.parse().unwrap());
    assert_eq!(removed, old);
    for id in &old {
        assert_eq!(store.conversation(id).await.unwrap(), None);
    }
    for id in ["pinned", "pinned-zero", "runs", "waits", "new", "copy"] {
        assert!(store.conversation(&id.parse().unwrap()).await.unwrap().is_some(), "{id}");
    }
    assert!(!store.has_old(10, 60).await.unwrap());
    assert!(store.remove_old(10, 60, 20).await.unwrap().is_empty());
    store.close().await;
}

pub(crate) async fn what_was_made_after_something_young_is_not_old_whatever_the_clock_said(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    // The clock was behind for the third, and once ahead of all.
    for (id, at_ms) in [("old", 1), ("ahead", 900), ("young", 50), ("behind", 1)] {
        store.create(ConversationRecord { created_at_ms: at_ms, updated_at_ms: at_ms, ..titled(id, "{}") }).await.unwrap();
    }
    let removed = async |before_ms, now_ms| {
        let removed = store.remove_old(before_ms, now_ms, 20).await.unwrap();
        let mut removed: Vec<String> = removed.into_iter().map(|id| id.to_string()).collect();
        removed.sort_unstable();
        removed
    };
    assert_eq!(removed(10, 60).await, ["old"]);
    assert_eq!(removed(51, 101).await, ["behind", "young"], "what is ahead of the time spares nothing");
    // What came to a conversation later is no older than what came before.
    store.create(ConversationRecord { updated_at_ms: 70, ..titled("c1", "{}") }).await.unwrap();
    say(store, "c1", "x", 1, Vec::new()).await;
    let kept = store.conversation(&"c1".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(kept.updated_at_ms, 70);
    store.close().await;
}

pub(crate) async fn requests_that_came_before_a_time_are_forgotten_and_no_other_keys(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    store.create(titled("a", "{}")).await.unwrap();
    let [beginning, _] = RESENT;
    let request = |hash: &str, at_ms| format!("{beginning}{}/{}/0f", hash.repeat(64), written_time(at_ms));
    let keys = [request("a", 9), request("a", 10), request("b", 100), request("f", 8), "v1/chat k".to_owned(), "0".repeat(120)];
    let side = keys.iter().map(|key| {
        let record = Idempotent { fingerprint: "f".to_owned(), answer: "{}".to_owned() };
        SideRecord::Idempotent { key: key.clone(), record }
    });
    say(store, "a", "x", 1, side.collect()).await;
    store.forget_requests(10).await.unwrap();
    let mut left = Vec::new();
    for key in &keys {
        left.push(store.idempotent(key).await.unwrap().is_some());
    }
    assert_eq!(left, [false, true, true, false, true, true]);
    store.close().await;
}
