//! The search over what was said.

use turnwright_core::{
    AssistantBlock, AssistantMessage, Completion, ContentBlock, Control, Entry, Finish, FinishReason, MessageId, Origin, Seq,
    TurnId, TurnSettings, Usage, UserId, UserMessage,
};
use turnwright_engine::search::Search;
use turnwright_engine::{Append, ConversationRecord};
use turnwright_store::Storage;
use turnwright_testkit::{copied, record};

use super::Full;

fn user(text: &str) -> Entry {
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    Entry::User(UserMessage { content: vec![ContentBlock::text(text)], settings })
}

fn assistant(text: &str) -> Entry {
    let origin = Origin { dialect: "test".to_owned(), provider: "p".to_owned(), model: "m".to_owned() };
    Entry::Assistant(AssistantMessage {
        origin,
        saw: Seq::FIRST,
        blocks: vec![AssistantBlock::Text { text: text.to_owned(), native: None }],
        finish: Finish { reason: FinishReason::Stop, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    })
}

async fn create(store: &dyn Storage, id: &str, owner: &str, title: Option<&str>) {
    let record = ConversationRecord { owner: owner.parse().unwrap(), title: title.map(str::to_owned), ..record(id) };
    store.create(record).await.unwrap();
}

async fn append(store: &dyn Storage, id: &str, at: u64, entries: Vec<Entry>) {
    let at = Seq::new(at).unwrap();
    store
        .append(Append { conversation: id.parse().unwrap(), at, entries, at_ms: at.get() + 10, side: Vec::new() })
        .await
        .unwrap();
}

/// What is found: the conversation, and the message with its excerpt.
async fn found(store: &dyn Storage, owner: &str, words: &str) -> Vec<String> {
    let owner: UserId = owner.parse().unwrap();
    let found = store.search(Search { owner: &owner, words, after: None, limit: 100 }).await.unwrap();
    let told = |found: turnwright_engine::search::Found| match found.excerpt {
        Some(excerpt) => format!("{} {} {}", found.conversation.id, excerpt.message, excerpt.text),
        None => found.conversation.id.to_string(),
    };
    found.into_iter().map(told).collect()
}

pub(crate) async fn what_people_and_models_said_is_found_by_its_owner_as_soon_as_it_is_stored(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    create(store, "c1", "ada", Some("A Plän")).await;
    create(store, "c2", "bob", None).await;
    append(store, "c1", 1, vec![user("The quick brown fox"), assistant("Über die Résumés")]).await;
    append(store, "c2", 1, vec![user("The quick red fox")]).await;
    assert_eq!(found(store, "ada", "FOX quick").await, ["c1 msg_1 The quick brown fox"]);
    assert_eq!(found(store, "ada", "resum").await, ["c1 msg_2 Über die Résumés"]);
    assert_eq!(found(store, "bob", "quick").await, ["c2 msg_1 The quick red fox"]);
    for title in ["plan", "PLÄN"] {
        assert_eq!(found(store, "ada", title).await, ["c1"], "{title}");
    }
    create(store, "c3", "ada", Some("Invoices: Q3-Report")).await;
    append(store, "c3", 1, vec![user("Invoices and reports")]).await;
    for (words, expected) in [("invoice rep", "c3 msg_1 Invoices and reports"), ("q3-rep", "c3")] {
        assert_eq!(found(store, "ada", words).await, [expected], "{words}");
    }
    // Neither in what was said nor in a title are words found from their middle on.
    for words in ["voices", "port", "lan"] {
        assert!(found(store, "ada", words).await.is_empty(), "{words}");
    }
    assert!(found(store, "ada", "fox red").await.is_empty());
    assert!(found(store, "ada", "fox über").await.is_empty(), "not in one message");
    append(store, "c1", 3, vec![user("Another fox")]).await;
    assert_eq!(found(store, "ada", "fox").await, ["c1 msg_3 Another fox"]);
    store.close().await;
}

pub(crate) async fn what_a_copy_begins_with_is_found_in_it_too(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    create(store, "c1", "local", None).await;
    append(store, "c1", 1, vec![user("a fox"), assistant("a hen"), user("a newt")]).await;
    for copy in ["c2", "c3"] {
        store.copy(copied(record(copy), &record("c1"), 2)).await.unwrap();
    }
    append(store, "c2", 3, vec![user("an eel"), Entry::Control(Control::Hidden { message: MessageId(Seq::FIRST) })]).await;
    let sorted = async |words: &str| {
        let mut found = found(store, "local", words).await;
        found.sort();
        found
    };
    assert_eq!(sorted("hen").await, ["c1 msg_2 a hen", "c2 msg_2 a hen", "c3 msg_2 a hen"]);
    assert_eq!(sorted("fox").await, ["c1 msg_1 a fox", "c3 msg_1 a fox"]);
    assert_eq!(
        (sorted("newt").await, sorted("eel").await),
        (vec!["c1 msg_3 a newt".to_owned()], vec!["c2 msg_3 an eel".to_owned()])
    );
    store.delete(&"c1".parse().unwrap()).await.unwrap();
    assert_eq!(sorted("hen").await, ["c2 msg_2 a hen", "c3 msg_2 a hen"]);
    store.delete(&"c2".parse().unwrap()).await.unwrap();
    assert_eq!(
        (sorted("hen").await, sorted("fox").await),
        (vec!["c3 msg_2 a hen".to_owned()], vec!["c3 msg_1 a fox".to_owned()])
    );
    store.delete(&"c3".parse().unwrap()).await.unwrap();
    create(store, "c4", "local", None).await;
    append(store, "c4", 1, vec![user("a yak")]).await;
    assert!(sorted("hen").await.is_empty());
    store.close().await;
}

pub(crate) async fn words_are_found_with_their_accents_and_without_them_in_any_script(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    let pairs = [
        ("résumé", "resume"),
        ("Über", "uber"),
        ("Καλημέρα", "καλημερα"),
        ("ΰπνος", "υπνος"),
        ("Ήλιος", "ηλιος"),
        ("йод", "иод"),
        ("Ёлка", "елка"),
        ("її", "іі"),
        ("Tiếng", "tieng"),
        ("ångström", "angstrom"),
    ];
    create(store, "c1", "local", None).await;
    let entries =
        pairs.iter().flat_map(|(accented, bare)| [user(&format!("one {accented} x")), user(&format!("two {bare} x"))]);
    append(store, "c1", 1, entries.collect()).await;
    for (at, (accented, bare)) in (0_u64..).zip(pairs) {
        for typed in [accented, bare] {
            // The newest of a conversation is told.
            let expected = format!("c1 msg_{} two {bare} x", 2 * at + 2);
            assert_eq!(found(store, "local", typed).await, [expected], "{typed}");
            let expected = format!("c1 msg_{} one {accented} x", 2 * at + 1);
            assert_eq!(found(store, "local", &format!("one {typed}")).await, [expected], "{typed}");
        }
    }
    store.close().await;
}

pub(crate) async fn scripts_without_spaces_are_found_by_any_part_and_nothing_that_is_typed_is_an_operator(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    create(store, "c1", "local", None).await;
    append(store, "c1", 1, vec![user("我喜欢学习新的语言。"), assistant("東京タワーに行きました"), user("ผมชอบเรียนภาษา")])
        .await;
    assert_eq!(found(store, "local", "学习").await, ["c1 msg_1 我喜欢学习新的语言。"]);
    assert_eq!(found(store, "local", "タワー").await, ["c1 msg_2 東京タワーに行きました"]);
    assert_eq!(found(store, "local", "เรียน").await, ["c1 msg_3 ผมชอบเรียนภาษา"]);
    assert!(found(store, "local", "习学").await.is_empty());
    for typed in
        ["\"", "'", "a AND", "OR", "NOT x", "text:x", "x*", "NEAR(a b)", "(", "^", "-", "{}", "\0", "%", "\u{1F600}", ";--"]
    {
        found(store, "local", typed).await;
    }
    store.close().await;
}

pub(crate) async fn what_is_hidden_or_deleted_is_not_found_also_where_another_takes_its_place(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    create(store, "c1", "local", None).await;
    append(store, "c1", 1, vec![user("secret one"), user("secret two")]).await;
    assert_eq!(found(store, "local", "secret").await, ["c1 msg_2 secret two"]);
    let hide = |seq| Entry::Control(Control::Hidden { message: MessageId(Seq::new(seq).unwrap()) });
    append(store, "c1", 3, vec![hide(2)]).await;
    assert_eq!(found(store, "local", "secret").await, ["c1 msg_1 secret one"]);
    let hides = Some(MessageId(Seq::FIRST));
    let retried = Entry::Control(Control::Retried { turn: TurnId(Seq::FIRST), settings: None, hides });
    append(store, "c1", 4, vec![retried, user("no word of it")]).await;
    assert!(found(store, "local", "secret").await.is_empty());
    store.delete(&"c1".parse().unwrap()).await.unwrap();
    create(store, "c9", "local", None).await;
    append(store, "c9", 1, vec![user("nothing of that")]).await;
    assert!(found(store, "local", "secret").await.is_empty());
    assert_eq!(found(store, "local", "nothing").await, ["c9 msg_1 nothing of that"]);
    store.close().await;
}

pub(crate) async fn it_goes_on_where_it_was_and_several_may_take_in_at_once(full: &dyn Full) {
    let (one, other) = (full.open_all().await, full.open_all().await);
    let (one, other) = (&*one, &*other);
    for number in 0..30_u64 {
        let id = format!("c{number}");
        create(one, &id, "local", None).await;
        append(one, &id, 1, (0..40).map(|at| user(&format!("word{at} of {number}"))).collect()).await;
    }
    let (first, second) = tokio::join!(one.take_in(), other.take_in());
    first.unwrap();
    second.unwrap();
    for store in [one, other] {
        assert_eq!(found(store, "local", "word7").await.len(), 30);
        assert_eq!(found(store, "local", "word39 17").await, ["c17 msg_40 word39 of 17"]);
    }
    let owner = UserId::local();
    let mut after = None;
    let mut seen = 0;
    loop {
        let page = one.search(Search { owner: &owner, words: "word3", after: after.as_ref(), limit: 7 }).await.unwrap();
        seen += page.len();
        let Some(last) = page.last() else { break };
        after = Some(last.conversation.place());
        // The next page goes on behind it all the same.
        one.delete(&last.conversation.id).await.unwrap();
    }
    assert_eq!(seen, 30);
    one.close().await;
    other.close().await;
}
