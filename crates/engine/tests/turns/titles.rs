//! Titles that make themselves tell nothing that is not shown.

use turnwright_core::{ContentBlock, MessageId};
use turnwright_engine::{ConversationChange, NewConversation, NewMessage, WholeJournal};
use turnwright_testkit::{Answer, ScriptedProvider, ScriptedSource, text};

use crate::support::{Setup, World, completed, world};

/// A conversation in which these were said, each answered.
async fn said(messages: &[&str]) -> (World, Vec<MessageId>) {
    let provider = ScriptedProvider::new(std::iter::repeat_with(|| Answer::whole([text("Well.")])).take(9));
    let world = world(provider, ScriptedSource::new("tools", []), Setup::default()).await;
    let mut ids = Vec::new();
    for message in messages {
        let sent = world.send(message).await;
        assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
        ids.push(sent.message_id);
    }
    (world, ids)
}

async fn title(world: &World) -> Option<String> {
    world.engine.conversation(&world.id).await.unwrap().title
}

async fn edit(world: &World, replaces: MessageId, content: Vec<ContentBlock>) {
    let message = NewMessage { replaces: Some(replaces), content, ..NewMessage::text("") };
    let sent = world.engine.send(&world.id, message).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
}

#[tokio::test]
async fn a_title_that_made_itself_goes_with_its_message() {
    let (world, ids) = said(&["a secret plan", "hello"]).await;
    assert_eq!(title(&world).await.as_deref(), Some("a secret plan"));
    world.engine.hide(&world.id, ids[0]).await.unwrap();
    assert_eq!(title(&world).await.as_deref(), Some("hello"));
    world.engine.hide(&world.id, ids[1]).await.unwrap();
    assert_eq!(title(&world).await, None);
    let sent = world.send("from the start").await;
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    assert_eq!(title(&world).await.as_deref(), Some("from the start"));
}

#[tokio::test]
async fn a_title_that_made_itself_is_made_anew_where_its_message_is_edited() {
    let (world, ids) = said(&["a secret plan", "hello"]).await;
    edit(&world, ids[1], vec![ContentBlock::text("hello again")]).await;
    assert_eq!(title(&world).await.as_deref(), Some("a secret plan"));
    edit(&world, ids[0], vec![ContentBlock::text("a plan")]).await;
    assert_eq!(title(&world).await.as_deref(), Some("a plan"));
}

#[tokio::test]
async fn a_conversation_that_begins_with_a_picture_is_titled_by_the_first_words() {
    let (world, _) = said(&[]).await;
    let picture = ContentBlock::Image { data: "iVBORw0KGgo=".to_owned(), mime_type: "image/png".to_owned() };
    for (content, expected) in [(picture, None), (ContentBlock::text("what is this?"), Some("what is this?"))] {
        let sent = world.engine.send(&world.id, NewMessage { content: vec![content], ..NewMessage::text("") }).await.unwrap();
        assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
        assert_eq!(title(&world).await.as_deref(), expected);
    }
}

#[tokio::test]
async fn a_title_that_is_given_is_on_one_line_and_none_where_it_says_nothing() {
    let (world, _) = said(&[]).await;
    for (given, expected) in [("a\nb", Some("a b")), ("\0", None), (" \t", None), ("Plans", Some("Plans"))] {
        let change = ConversationChange { title: Some(Some(given.to_owned())), ..ConversationChange::default() };
        let changed = world.engine.update(&world.id, change).await.unwrap();
        assert_eq!(changed.title.as_deref(), expected, "{given:?}");
    }
}

#[tokio::test]
async fn a_title_that_a_person_gave_stays_whatever_is_hidden() {
    let (world, ids) = said(&["a secret plan", "hello"]).await;
    let change = ConversationChange { title: Some(Some("Plans".to_owned())), ..ConversationChange::default() };
    world.engine.update(&world.id, change).await.unwrap();
    edit(&world, ids[1], vec![ContentBlock::text("hello again")]).await;
    world.engine.hide(&world.id, ids[0]).await.unwrap();
    assert_eq!(title(&world).await.as_deref(), Some("Plans"));
}

#[tokio::test]
async fn a_copy_is_titled_by_what_it_shows() {
    let (world, ids) = said(&["a secret plan", "hello"]).await;
    world.engine.hide(&world.id, ids[0]).await.unwrap();
    let journal = world.journal().await;
    let copy =
        world.engine.branch(&world.id, (journal.last_seq().unwrap(), u64::MAX), NewConversation::default()).await.unwrap();
    assert_eq!(copy.title.as_deref(), Some("hello"));
    let entries: Vec<_> = journal.entries().iter().map(|stored| (*stored.entry).clone()).collect();
    let taken_in = world.engine.import(WholeJournal { entries, ..WholeJournal::empty(NewConversation::default()) }).await;
    assert_eq!(taken_in.unwrap().title.as_deref(), Some("hello"));
}
