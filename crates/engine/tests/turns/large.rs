//! Results that are too large for a model.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use turnwright_core::{ContentBlock, EmbeddedResource, Entry, Journal, Seq, ToolResult};
use turnwright_engine::artifacts::{Artifacts, PIECE_BYTES};
use turnwright_engine::{Append, LargeResults, NewConversation, NewMessage, SettingsOverlay, SideRecord, Store, ToolOutput};
use turnwright_testkit::{
    Answer, Disk, MemoryArtifacts, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text,
};

use crate::support::{Setup, completed, engine, id};

const HOW: LargeResults = LargeResults { shown_bytes: 4_000, most_bytes: 1 << 20, can_be_read: true };

fn result(journal: &Journal) -> ToolResult {
    let result = journal.entries().iter().find_map(|stored| match &*stored.entry {
        Entry::Result(result) => Some(result.clone()),
        _ => None,
    });
    result.unwrap()
}

/// One call of a tool, and an answer.
fn one_call() -> Arc<ScriptedProvider> {
    ScriptedProvider::new([Answer::whole([call(0, "tools__tool", "{}")]), Answer::whole([text("Done.")])])
}

fn giving(output: ToolOutput) -> Arc<ScriptedSource> {
    let tool = ScriptedTool::new("tool", move |_, _| {
        let output = output.clone();
        async move { Ok(output) }
    });
    Arc::new(ScriptedSource::new("tools", [tool]))
}

/// The journal after one call of this source, what was kept, and what the conversation holds.
async fn after(source: Arc<ScriptedSource>) -> (Journal, Arc<MemoryArtifacts>, Vec<String>) {
    let (store, artifacts) = (Arc::new(MemoryStore::default()), Arc::new(MemoryArtifacts::default()));
    let engine = engine(store.clone(), one_call(), source, Setup::default());
    engine.keep_large_results(artifacts.clone(), HOW);
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    let held = store.held().into_iter().map(|(_, artifact)| artifact).collect();
    (engine.journal(&id()).await.unwrap(), artifacts, held)
}

#[tokio::test]
async fn a_model_is_shown_beginning_and_end_of_a_long_text_and_the_whole_is_kept() {
    let long = (0..20_000).map(|number| format!("line {number}\n")).collect::<Vec<_>>().concat();
    let (journal, artifacts, held) = after(giving(ToolOutput::text(long.clone()))).await;
    let [(artifact, bytes)] = &artifacts.files()[..] else { panic!("one file is kept") };
    assert_eq!(*bytes, long.as_bytes());
    assert_eq!((artifact.name.as_str(), artifact.media_type.as_str()), ("tools__tool.txt", "text/plain"));
    assert_eq!(held, std::slice::from_ref(&artifact.id));
    let result = result(&journal);
    let [ContentBlock::Text { text }, link] = &result.content[..] else { panic!("{:?}", result.content) };
    assert_eq!(*link, artifact.link());
    assert!(text.len() < HOW.shown_bytes, "{}", text.len());
    assert!(text.starts_with("line 0\nline 1\n") && text.ends_with("line 19998\nline 19999\n"), "{text}");
    assert!(text.contains(&format!("of 208,890 bytes left out: the whole is artifact `{}`", artifact.id)), "{text}");
}

#[tokio::test]
async fn tools_that_a_conversation_has_not_are_not_named_where_a_result_is_cut() {
    for (globs, is_named) in [(vec!["tools__*"], false), (vec!["tools__*", "artifact__*"], true)] {
        let artifacts = Arc::new(MemoryArtifacts::default());
        let source = giving(ToolOutput::text("x".repeat(HOW.shown_bytes + 1)));
        let engine = engine(Arc::new(MemoryStore::default()), one_call(), source, Setup::default());
        engine.keep_large_results(artifacts.clone(), HOW);
        let tools = Some(globs.iter().map(|glob| (*glob).to_owned()).collect());
        let overlay = SettingsOverlay { tools, ..SettingsOverlay::default() };
        engine.create(NewConversation { id: Some(id()), overlay, ..NewConversation::default() }).await.unwrap();
        let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
        assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
        let said = turnwright_core::text_of(&result(&engine.journal(&id()).await.unwrap()).content);
        let kept = &artifacts.files()[0].0.id;
        assert_eq!(said.contains("artifact__page"), is_named, "{said}");
        assert!(is_named || said.contains(&format!("kept as `{kept}`, which no tool of this conversation reads")), "{said}");
    }
}

#[tokio::test]
async fn what_fits_is_stored_as_it_came() {
    let output = ToolOutput::json(json!({"a": "b".repeat(HOW.shown_bytes - 20)}));
    let (journal, artifacts, held) = after(giving(output.clone())).await;
    let result = result(&journal);
    assert_eq!((result.content, result.structured_content), (output.content, output.structured_content));
    assert!(artifacts.files().is_empty() && held.is_empty());
}

#[tokio::test]
async fn images_stay_images_and_other_bytes_are_kept_as_what_they_are() {
    let resource = |uri: &str, mime_type: &str, blob: &str| {
        let (mime_type, blob) = (Some(mime_type.to_owned()), Some(blob.to_owned()));
        let resource = EmbeddedResource { uri: uri.to_owned(), mime_type, text: None, blob };
        ContentBlock::Resource { resource }
    };
    let content = vec![
        ContentBlock::text("see"),
        resource("file:///a/b.png", "image/png", "iVBORw0KGgo="),
        resource("file:///a/b.zip", "application/zip", "UEsDBA=="),
    ];
    let (journal, artifacts, held) = after(giving(ToolOutput { content, ..ToolOutput::default() })).await;
    let [(zip, bytes)] = &artifacts.files()[..] else { panic!("one file is kept") };
    assert_eq!(
        (zip.name.as_str(), zip.media_type.as_str(), bytes.as_slice()),
        ("b.zip", "application/zip", &b"PK\x03\x04"[..])
    );
    let image = ContentBlock::Image { data: "iVBORw0KGgo=".to_owned(), mime_type: "image/png".to_owned() };
    assert_eq!(result(&journal).content, [ContentBlock::text("see"), image, zip.link()]);
    assert_eq!(held, std::slice::from_ref(&zip.id));
}

#[tokio::test]
async fn no_model_is_given_base64_to_read() {
    let png = format!("iVBORw0KGgo{}", "A".repeat(1_001));
    let image = ContentBlock::Image { data: png.clone(), mime_type: "image/png".to_owned() };
    // As some servers give an image: as JSON, and nothing beside it.
    let structured = Some(json!({"type": "image", "data": png}));
    let output = ToolOutput { structured_content: structured.clone(), ..ToolOutput::default() };
    let (journal, _, _) = after(giving(output)).await;
    let result = result(&journal);
    let text = ContentBlock::text(r#"{"type":"image","data":"[image/png of 759 bytes, shown below]"}"#);
    assert_eq!(result.content, [text, image]);
    assert_eq!(result.structured_content, structured, "programs get what the tool gave");
}

#[tokio::test]
async fn a_tool_writes_what_it_could_not_hold_piece_by_piece() {
    let tool = ScriptedTool::new("tool", |_, context| async move {
        let mut spooling = context.spool.expect("there is a place").begin().await.unwrap();
        for _ in 0..3 {
            spooling.write(&vec![b'x'; PIECE_BYTES / 2 + 1]).await.unwrap();
        }
        spooling.write(&vec![b'y'; 1 << 20]).await.unwrap();
        assert_eq!(spooling.left_out(), (3 * (PIECE_BYTES as u64 / 2 + 1)));
        let artifact = spooling.finish("all.txt", "text/plain").await.unwrap();
        Ok(ToolOutput { content: vec![artifact.link()], ..ToolOutput::default() })
    });
    let (_, artifacts, held) = after(Arc::new(ScriptedSource::new("tools", [tool]))).await;
    assert_eq!(artifacts.pieces(), [PIECE_BYTES; 4]);
    let files = artifacts.files();
    assert_eq!((files[0].0.bytes, files[0].1.len()), (1 << 20, 1 << 20));
    assert_eq!(held, [files[0].0.id.clone()]);
}

#[tokio::test(start_paused = true)]
async fn a_large_result_is_held_until_it_can_be_kept() {
    let (store, artifacts) = (Arc::new(MemoryStore::default()), Arc::new(MemoryArtifacts::default()));
    let source = giving(ToolOutput::text("x".repeat(HOW.shown_bytes + 1)));
    let engine = engine(store.clone(), one_call(), source.clone(), Setup::default());
    engine.keep_large_results(artifacts.clone(), HOW);
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    artifacts.set_full(Disk::Full);
    let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    let waiting = timeout(Duration::from_mins(5), engine.wait(&id(), sent.turn_id)).await;
    assert!(waiting.is_err(), "the result waits");
    artifacts.set_full(Disk::HasRoom);
    assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    assert_eq!((artifacts.files().len(), source.effects().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_waiting_for_room_and_the_result_says_what_is_missing() {
    let (store, artifacts) = (Arc::new(MemoryStore::default()), Arc::new(MemoryArtifacts::default()));
    let source = giving(ToolOutput::text("x".repeat(HOW.shown_bytes + 1)));
    let engine = engine(store, one_call(), source, Setup::default());
    engine.keep_large_results(artifacts.clone(), HOW);
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    artifacts.set_full(Disk::Full);
    let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    let _waits = timeout(Duration::from_mins(1), engine.wait(&id(), sent.turn_id)).await;
    engine.cancel(&id(), None).await.unwrap();
    engine.wait(&id(), sent.turn_id).await.unwrap();
    let said = turnwright_core::text_of(&result(&engine.journal(&id()).await.unwrap()).content);
    assert!(said.contains("left out: they could not be kept: the disk is full"), "{said}");
}

#[tokio::test]
async fn a_fork_holds_what_its_results_name() {
    let (store, artifacts) = (Arc::new(MemoryStore::default()), Arc::new(MemoryArtifacts::default()));
    let source = giving(ToolOutput::text("x".repeat(HOW.shown_bytes + 1)));
    let engine = engine(store.clone(), one_call(), source, Setup::default());
    engine.keep_large_results(artifacts.clone(), HOW);
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    engine.wait(&id(), sent.turn_id).await.unwrap();
    let forked = engine.fork(&id(), None, NewConversation::default()).await.unwrap();
    let last = engine.journal(&id()).await.unwrap().last_seq().unwrap();
    let branched = engine.branch(&id(), (last, u64::MAX), NewConversation::default()).await.unwrap();
    let kept = artifacts.files()[0].0.id.clone();
    assert!(artifacts.artifact(&turnwright_core::UserId::local(), &kept).await.unwrap().is_some());
    assert_eq!(store.held(), [(id(), kept.clone()), (forked.id, kept.clone()), (branched.id, kept)]);
}

#[tokio::test]
async fn a_fork_holds_what_its_original_was_said_to_hold() {
    let store = Arc::new(MemoryStore::default());
    let engine = engine(store.clone(), one_call(), giving(ToolOutput::text("short")), Setup::default());
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    // As for a file that a message brought, which its entry does not name.
    let side = vec![SideRecord::Holds { artifact: "art_1".to_owned() }];
    store.append(Append { conversation: id(), at: Seq::FIRST, entries: Vec::new(), at_ms: 1, side }).await.unwrap();
    let forked = engine.fork(&id(), None, NewConversation::default()).await.unwrap();
    assert_eq!(store.held(), [(id(), "art_1".to_owned()), (forked.id, "art_1".to_owned())]);
}
