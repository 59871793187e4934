//! Turns carried to their end over a scripted engine.

use std::sync::Arc;

use tokio::sync::Semaphore;
use turnwright_core::policy::Policy;
use turnwright_core::{ContentBlock, ConversationId, ModelRef, TurnId, TurnSettings, TurnStatus};
use turnwright_engine::{Engine, EngineParts, SettingsOverlay, Store, ToolSource, TurnState};
use turnwright_terminal::{
    Carried, Interrupt, Interrupts, Look, Piece, Renderer, Screen, Session, Settled, Stream, Teller, Which, carry,
};
use turnwright_testkit::{
    Answer, ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders, ScriptedSource, ScriptedTool, call, text,
};

/// A screen that remembers; each writing takes a permit where there is a gate.
#[derive(Debug, Default)]
struct Paper {
    answer: String,
    aside: String,
    gate: Option<Arc<Semaphore>>,
}

impl Screen for &mut Paper {
    async fn show(&mut self, pieces: Vec<Piece>) {
        if let Some(gate) = &self.gate {
            gate.acquire().await.unwrap().forget();
        }
        for piece in pieces {
            match piece.stream {
                Stream::Answer => self.answer.push_str(&piece.text),
                Stream::Aside => self.aside.push_str(&piece.text),
            }
        }
    }
}

/// Wishes to stop of one kind, one per permit.
struct Wishes(Arc<Semaphore>, Interrupt);

impl Interrupts for Wishes {
    async fn next(&mut self) -> Interrupt {
        self.0.acquire().await.unwrap().forget();
        self.1
    }
}

fn engine(answers: impl IntoIterator<Item = Answer>) -> Engine {
    engine_over(MemoryStore::default(), answers)
}

fn engine_over(store: MemoryStore, answers: impl IntoIterator<Item = Answer>) -> Engine {
    Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(ScriptedProvider::new(answers))),
        sources: vec![Arc::new(ScriptedSource::new("tools", [ScriptedTool::echo("echo")])) as Arc<dyn ToolSource>],
        store: Arc::new(store) as Arc<dyn Store>,
        clock: Arc::new(ManualClock::at(1_000)),
        policy: Policy::default(),
        defaults: TurnSettings::new(ModelRef::new("test", "scripted")),
    })
}

fn never() -> Wishes {
    Wishes(Arc::new(Semaphore::new(0)), Interrupt::Interrupt)
}

fn once(interrupt: Interrupt) -> Wishes {
    Wishes(Arc::new(Semaphore::new(1)), interrupt)
}

async fn said(engine: &Engine, paper: &mut Paper, wishes: &mut Wishes) -> Carried {
    let mut session = Session::open(engine, Which::New, SettingsOverlay::default()).await.unwrap();
    let (id, told) = session.say(vec![ContentBlock::text("hello")]).await.unwrap();
    let look = Look { answer_is_on_terminal: false, is_one_screen: false, has_color: false };
    let mut teller = Teller { screen: paper, renderer: Renderer::new(look), flags: String::new() };
    carry(engine, (&id, told), &mut teller, wishes, None).await.unwrap()
}

#[tokio::test]
async fn an_answer_is_told_to_its_last_word() {
    let engine = engine([Answer::whole([text("Good "), text("day")])]);
    let mut paper = Paper::default();
    let carried = said(&engine, &mut paper, &mut never()).await;
    assert_eq!(carried, Carried { settled: Settled::Ended(TurnStatus::Completed), interrupt: None });
    assert_eq!((paper.answer.as_str(), paper.aside.as_str()), ("Good day\n", ""));
}

#[tokio::test]
async fn a_call_that_nobody_can_be_asked_about_parks_the_turn() {
    let engine = engine([Answer::whole([call(0, "tools__echo", "{}")])]);
    let carried = said(&engine, &mut Paper::default(), &mut never()).await;
    assert_eq!(carried, Carried { settled: Settled::Parked, interrupt: None });
}

#[tokio::test]
async fn a_wish_to_stop_cancels_and_waits_for_the_end() {
    let gate = Arc::new(Semaphore::new(1));
    let engine = engine([Answer::of([text("Some "), text("more")]).gated(&gate)]);
    let mut paper = Paper::default();
    let carried = said(&engine, &mut paper, &mut once(Interrupt::Interrupt)).await;
    assert_eq!(carried, Carried { settled: Settled::Ended(TurnStatus::Cancelled), interrupt: Some(Interrupt::Interrupt) });
    assert!(paper.aside.contains("note: stopping; once more leaves at once\n"), "{}", paper.aside);
}

#[tokio::test]
async fn the_end_of_the_process_that_drives_it_stops_a_turn() {
    let engine = engine([Answer::of([text("Some")]).gated(&Arc::new(Semaphore::new(0)))]);
    let carried = said(&engine, &mut Paper::default(), &mut once(Interrupt::Terminate)).await;
    assert_eq!(carried, Carried { settled: Settled::Ended(TurnStatus::Cancelled), interrupt: Some(Interrupt::Terminate) });
}

/// A turn that one process drives is followed by another, in which somebody wishes this: how it was carried there, and the engine that
/// drives it.
async fn followed(answer: Answer, wish: Interrupt) -> (Carried, Engine, ConversationId, TurnId) {
    let store = MemoryStore::default();
    let other = store.another_process();
    let drives = engine_over(store, [answer]);
    let mut session = Session::open(&drives, Which::New, SettingsOverlay::default()).await.unwrap();
    let (id, told) = session.say(vec![ContentBlock::text("hello")]).await.unwrap();
    let turn = told.turn;

    let follows = engine_over(other, []);
    let look = Look { answer_is_on_terminal: false, is_one_screen: false, has_color: false };
    let mut paper = Paper::default();
    let mut teller = Teller { screen: &mut paper, renderer: Renderer::new(look), flags: String::new() };
    let carried = carry(&follows, (&id, told), &mut teller, &mut once(wish), None).await.unwrap();
    (carried, drives, id, turn)
}

#[tokio::test]
async fn the_end_of_a_process_that_only_follows_a_turn_leaves_it_running() {
    let gate = Arc::new(Semaphore::new(0));
    let answer = Answer::whole([text("Good day")]).gated(&gate);
    let (carried, drives, id, turn) = followed(answer, Interrupt::Terminate).await;
    assert_eq!(carried, Carried { settled: Settled::Elsewhere, interrupt: Some(Interrupt::Terminate) });
    gate.add_permits(10);
    assert_eq!(drives.wait(&id, turn).await.unwrap(), TurnState::Ended(TurnStatus::Completed));
}

#[tokio::test]
async fn a_person_who_only_follows_a_turn_stops_it() {
    let answer = Answer::of([text("Some")]).gated(&Arc::new(Semaphore::new(0)));
    let (carried, ..) = followed(answer, Interrupt::Interrupt).await;
    assert_eq!(carried, Carried { settled: Settled::Ended(TurnStatus::Cancelled), interrupt: Some(Interrupt::Interrupt) });
}

#[tokio::test]
async fn whoever_reads_too_slowly_misses_nothing_and_holds_nothing_up() {
    const PIECES: usize = 5_000;
    let pieces: Vec<String> = (0..PIECES).map(|number| format!("{number} ")).collect();
    let engine = engine([Answer::of(pieces.iter().map(|piece| text(piece)))]);
    let reading = Arc::new(Semaphore::new(0));
    let mut paper = Paper { gate: Some(reading.clone()), ..Paper::default() };
    let mut session = Session::open(&engine, Which::New, SettingsOverlay::default()).await.unwrap();
    let (id, told) = session.say(vec![ContentBlock::text("hello")]).await.unwrap();
    let look = Look { answer_is_on_terminal: false, is_one_screen: false, has_color: false };
    let mut teller = Teller { screen: &mut paper, renderer: Renderer::new(look), flags: String::new() };
    let mut wishes = never();
    let reader = async {
        // Nothing is read before the turn is over.
        engine.wait(&id, told.turn).await.unwrap();
        reading.add_permits(PIECES * 2);
    };
    let (carried, ()) = tokio::join!(carry(&engine, (&id, told), &mut teller, &mut wishes, None), reader);
    assert_eq!(carried.unwrap().settled, Settled::Ended(TurnStatus::Completed));
    assert_eq!(paper.answer, format!("{}\n", pieces.concat()));
}
