//! Small worlds, all of them: one scenario, driven to its end with every crash, every pair of crashes, and everything that
//! others may append, at every point.
//!
//! `world` holds the store, the effects and what goes wrong; `driver` carries out plans as the engine does; `script` is the
//! model, the policy and the person; `laws` says what must be true of each world.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a helper that cannot go on stops its test")]
#![expect(clippy::print_stdout, reason = "a test tells how many worlds it tried")]

mod driver;
mod laws;
mod script;
mod world;

use std::collections::BTreeMap;

use turnwright_core::budgets::{BudgetKind, BudgetUnit};
use turnwright_core::{
    ApproveMode, BudgetStop, Control, Entry, Outcome, QuestionReason, StopReason, ToolErrorKind, TurnStatus, Verdict,
};

use driver::live;
use laws::{Depth, check_world};
use script::{Script, Service};
use world::{Mishap, What, World};

fn world(script: Script, mishaps: &[(usize, What)], depth: Depth) -> World {
    let mishaps = mishaps.iter().map(|(at, what)| Mishap { at: *at, what: *what }).collect();
    let mut world = World::new(script, mishaps, depth);
    live(&mut world);
    world
}

fn try_world(script: Script, mishaps: &[(usize, What)], depth: Depth) -> usize {
    let world = world(script, mishaps, depth);
    if let Err(broken) = check_world(&world) {
        panic!("{broken}\nwith {mishaps:?} in {script:?}\n{}", world.story());
    }
    world.now
}

fn points(script: Script) -> usize {
    world(script, &[], Depth::End).now
}

fn scripts() -> Vec<Script> {
    let ask = |unknown| Script { mode: ApproveMode::Ask, unknown, provider: Service::Good };
    vec![
        ask(Verdict::Happened),
        ask(Verdict::RunAgain),
        ask(Verdict::Skip),
        Script { mode: ApproveMode::All, unknown: Verdict::Skip, provider: Service::Good },
        Script { mode: ApproveMode::All, unknown: Verdict::Skip, provider: Service::Troubled },
        Script { mode: ApproveMode::Ask, unknown: Verdict::RunAgain, provider: Service::Asking },
        Script { mode: ApproveMode::All, unknown: Verdict::Skip, provider: Service::Asking },
        Script { mode: ApproveMode::Ask, unknown: Verdict::RunAgain, provider: Service::Working },
        Script { mode: ApproveMode::All, unknown: Verdict::Skip, provider: Service::Working },
        Script { mode: ApproveMode::Ask, unknown: Verdict::RunAgain, provider: Service::Circling },
        Script { mode: ApproveMode::All, unknown: Verdict::Skip, provider: Service::Circling },
        Script { mode: ApproveMode::All, unknown: Verdict::Skip, provider: Service::Spending },
    ]
}

const INTRUSIONS: [What; 5] = [What::User, What::Cancel, What::Decide, What::ClaimOnly, What::Usurp];

/// Tries `a` and `b` at every two points and tells how many worlds that were. The first may make the story longer, so the
/// second goes on until no point is left.
fn every_pair(script: Script, (a, b): (What, What), depth: Depth) -> usize {
    let mut tried = 0;
    for first in 0..points(script) {
        let mut second = if a == b { first + 1 } else { 0 };
        loop {
            let end = try_world(script, &[(first, a), (second, b)], depth);
            tried += 1;
            second += 1;
            if second >= end {
                break;
            }
        }
    }
    tried
}

/// Tries `what` with `other` at every two points, in every scenario.
fn every_pair_in_every_script(name: &str, what: What, other: What, least: usize) {
    let tried = scripts().into_iter().map(|script| every_pair(script, (what, other), Depth::End)).sum();
    enough(name, tried, least);
}

fn enough(name: &str, tried: usize, least: usize) {
    // `cargo xtask ci` shows it at its end.
    println!("worlds: {name}: {tried}");
    assert!(tried >= least, "{name}: only {tried} worlds, at least {least} expected");
}

#[test]
fn without_mishaps_the_scenario_goes_through_everything() {
    let world = world(scripts()[0], &[], Depth::EveryPrefix);
    assert_eq!(check_world(&world), Ok(()), "{}", world.story());
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for stored in &world.log {
        if let Entry::Result(result) = &*stored.entry {
            let outcome = match result.outcome {
                Outcome::Success => "success",
                Outcome::Denied => "denied",
                Outcome::Error(kind) => kind.as_str(),
            };
            *outcomes.entry(outcome.to_owned()).or_default() += 1;
        }
    }
    let expected = [("cancelled", 3), ("denied", 1), ("invalid_arguments", 1), ("not_found", 1), ("success", 5)];
    assert_eq!(outcomes, expected.map(|(outcome, count)| (outcome.to_owned(), count)).into());
    let ends: Vec<&TurnStatus> = world
        .log
        .iter()
        .filter_map(|stored| match &*stored.entry {
            Entry::Control(Control::Ended { status, .. }) => Some(status),
            _ => None,
        })
        .collect();
    assert!(matches!(ends.as_slice(), [TurnStatus::Failed { .. }, TurnStatus::Completed]), "{ends:?}");
    println!("the scenario has {} points and {} entries", world.now, world.log.len());
}

#[test]
fn a_troubled_provider_is_gone_around_and_the_conversation_shortened_as_often_as_it_is_too_long() {
    let world = world(scripts()[4], &[], Depth::EveryPrefix);
    assert_eq!(check_world(&world), Ok(()), "{}", world.story());
    let told = |entry: &Entry| match entry {
        Entry::Control(Control::Failed(failure)) => Some(failure.kind.as_str().to_owned()),
        Entry::Control(Control::Compacted(_)) => Some("compacted".to_owned()),
        Entry::Assistant(message) => Some(message.origin.model.clone()),
        _ => None,
    };
    let told: Vec<String> = world.log.iter().filter_map(|stored| told(&stored.entry)).collect();
    // The third message is the one that is not cut off, after the retry; a retry begins with the first model again.
    let around = ["overloaded", "second", "second", "model", "model"];
    let shortened = ["context_length", "compacted", "model", "context_length", "compacted", "model"];
    assert_eq!(told, [around.as_slice(), &shortened].concat());
}

#[test]
fn tools_that_ask_are_made_again_with_the_answers() {
    let world = world(scripts()[5], &[], Depth::EveryPrefix);
    assert_eq!(check_world(&world), Ok(()), "{}", world.story());
    let told = |entry: &Entry| match entry {
        Entry::Elicited(elicited) => Some(format!("{} asks {}", elicited.call, elicited.asks.len())),
        Entry::Answered(answered) => Some(format!("{} {}", answered.question, answered.by.as_str())),
        Entry::Started(started) => Some(format!("{} starts", started.call)),
        Entry::Result(result) => Some(format!("{} is done", result.call)),
        _ => None,
    };
    let told: Vec<String> = world.log.iter().filter_map(|stored| told(&stored.entry)).collect();
    let [fill, talk, write] = ["call_3_0", "call_3_1", "call_3_2"];
    let expected = [
        format!("{fill} starts"),
        format!("{talk} starts"),
        format!("{talk} asks 1"),
        "question_3_1_0 deadline".to_owned(),
        format!("{talk} is done"),
        format!("{fill} asks 2"),
        format!("{write} starts"),
        format!("{write} is done"),
        "question_3_0_0 person".to_owned(),
        "question_3_0_1 person".to_owned(),
        format!("{fill} starts"),
        format!("{fill} asks 1"),
        "question_3_0_2 person".to_owned(),
        format!("{fill} starts"),
        format!("{fill} is done"),
    ];
    assert_eq!(told, expected, "{}", world.story());
}

#[test]
fn what_tools_want_models_to_be_asked_is_asked_once_it_is_allowed() {
    let world = world(scripts()[7], &[], Depth::EveryPrefix);
    assert_eq!(check_world(&world), Ok(()), "{}", world.story());
    let told = |entry: &Entry| match entry {
        Entry::Elicited(elicited) => Some(format!("{} asks", elicited.call)),
        Entry::Answered(answered) => Some(format!("{} {}", answered.question, answered.by.as_str())),
        Entry::Sampled(sampled) => Some(format!("{} is answered", sampled.question)),
        Entry::TaskAccepted(accepted) => Some(format!("{} is a task", accepted.call)),
        Entry::Started(started) => Some(format!("{} starts", started.call)),
        Entry::Result(result) => Some(format!("{} is done", result.call)),
        _ => None,
    };
    let told: Vec<String> = world.log.iter().filter_map(|stored| told(&stored.entry)).collect();
    let [think, write, job, question] = ["call_3_0", "call_3_1", "call_3_2", "question_3_0_0"];
    let expected = [
        format!("{think} starts"),
        format!("{job} starts"),
        format!("{job} is a task"),
        format!("{job} is done"),
        format!("{think} asks"),
        format!("{write} starts"),
        format!("{write} is done"),
        format!("{question} person"),
        format!("{question} is answered"),
        format!("{think} starts"),
        format!("{think} is done"),
    ];
    assert_eq!(told, expected, "{}", world.story());
}

/// What is stored about a loop.
fn about_the_loop(world: &World) -> Vec<String> {
    let told = |entry: &Entry| match entry {
        Entry::Control(Control::Nudged { text, .. }) => Some(format!("nudged: {text}")),
        Entry::Question(question) if question.reason == QuestionReason::Loop => Some(format!("asked: {:?}", question.rule)),
        Entry::Control(Control::Ended { status, .. }) => Some(format!("{status:?}")),
        _ => None,
    };
    world.log.iter().filter_map(|stored| told(&stored.entry)).collect()
}

#[test]
fn a_model_that_goes_in_circles_is_told_asked_about_and_stopped_wherever_a_process_dies() {
    for (script, expected) in [(scripts()[9], 4), (scripts()[10], 3)] {
        let undisturbed = world(script, &[], Depth::EveryPrefix);
        assert_eq!(check_world(&undisturbed), Ok(()), "{}", undisturbed.story());
        let told = about_the_loop(&undisturbed);
        assert_eq!(told.len(), expected, "{told:?}");
        let has_asked = told.iter().any(|told| told.starts_with("asked"));
        assert_eq!(has_asked, script.mode == ApproveMode::Ask, "{told:?}");
        assert!(told.last().is_some_and(|end| end.contains("Loop")), "{told:?}");
        for at in 0..undisturbed.now {
            let world = world(script, &[(at, What::Crash)], Depth::EveryPrefix);
            assert_eq!(about_the_loop(&world), told, "with a crash at {at}\n{}", world.story());
        }
    }
}

#[test]
fn a_turn_is_stopped_by_its_budget_wherever_a_process_dies_and_what_is_lost_counts_as_reserved() {
    let script = Script { mode: ApproveMode::All, unknown: Verdict::Skip, provider: Service::Spending };
    let told = |world: &World| {
        let stop = world.log.iter().find_map(|stored| match &*stored.entry {
            Entry::Control(Control::Ended { status: TurnStatus::Stopped { reason, summary }, .. }) => {
                Some((*reason, summary.clone().unwrap_or_default()))
            }
            _ => None,
        });
        let Some((StopReason::Budget(stop), summary)) = stop else { panic!("it is not stopped\n{}", world.story()) };
        assert!(summary.starts_with("Stopped: this turn's budget (`budgets.turn`) is 90 tokens"), "{summary}");
        assert!(summary.contains("\n- think {\"a\":0}: "), "{summary}");
        stop
    };
    let undisturbed = world(script, &[], Depth::EveryPrefix);
    assert_eq!(check_world(&undisturbed), Ok(()), "{}", undisturbed.story());
    // Five answers and the tool's question; the sixth might have taken 18.
    let stop = told(&undisturbed);
    let expected = BudgetStop {
        budget: BudgetKind::Turn,
        unit: BudgetUnit::Tokens,
        limit: 90,
        spent: 80,
        reserved: 0,
        needed: Some(18),
        resets_at_ms: None,
    };
    assert_eq!(stop, expected);
    let mut lost = 0;
    for at in 0..undisturbed.now {
        let world = world(script, &[(at, What::Crash)], Depth::EveryPrefix);
        assert_eq!(check_world(&world), Ok(()), "with a crash at {at}\n{}", world.story());
        let stop = told(&world);
        // Each reservation that a process died with is 18 instead of 15, or of 5 for the tool's question.
        assert!(stop.spent <= 90 && stop.spent + 18 > 90, "{stop:?} with a crash at {at}\n{}", world.story());
        lost += usize::from(stop != expected);
    }
    assert!(lost >= 10, "a process died {lost} times with something reserved");
}

#[test]
fn a_task_whose_driver_dies_is_asked_for_by_the_next_and_not_made_again() {
    let script = Script { mode: ApproveMode::All, unknown: Verdict::Skip, provider: Service::Working };
    let (mut resumed, mut unknown) = (0, 0);
    for at in 0..points(script) {
        let world = world(script, &[(at, What::Crash)], Depth::End);
        assert_eq!(check_world(&world), Ok(()), "{}", world.story());
        let of = |wanted: &dyn Fn(&Entry) -> bool| world.log.iter().filter(|stored| wanted(&stored.entry)).count();
        let message =
            world.log.iter().find(|stored| matches!(&*stored.entry, Entry::Assistant(message) if message.calls().count() == 3));
        let Some(message) = message.map(|stored| stored.seq) else { continue };
        let job = turnwright_core::CallId { message, index: 2 };
        let starts = of(&|entry| matches!(entry, Entry::Started(started) if started.call == job));
        let accepted = of(&|entry| matches!(entry, Entry::TaskAccepted(_)));
        let succeeded =
            of(&|entry| matches!(entry, Entry::Result(result) if result.call == job && result.outcome == Outcome::Success));
        assert!(world.runs(job) <= 1, "it is made twice\n{}", world.story());
        assert_eq!(accepted, succeeded, "a task that is known comes to its result\n{}", world.story());
        resumed += usize::from(accepted == 1 && starts == 2);
        unknown += usize::from(accepted == 0 && world.runs(job) == 1);
    }
    assert!(resumed >= 1 && unknown >= 1, "{resumed} tasks were taken up, of {unknown} nobody had heard");
}

#[test]
fn every_crash_and_every_intrusion_alone() {
    let mut tried = 0;
    for script in scripts() {
        for what in INTRUSIONS.into_iter().chain([What::Crash]) {
            for at in 0..points(script) {
                try_world(script, &[(at, what)], Depth::EveryPrefix);
                tried += 1;
            }
        }
    }
    enough("single mishaps", tried, 1_000);
}

#[test]
fn every_pair_of_crashes() {
    every_pair_in_every_script("pairs of crashes", What::Crash, What::Crash, 4_000);
}

#[test]
fn the_state_after_each_entry_stands_whatever_two_mishaps_came_before_it() {
    // To look at each of them takes long, so this is for the shortest story alone.
    let shortest = scripts().into_iter().min_by_key(|script| points(*script)).expect("there are scenarios");
    let pairs = [(What::Crash, What::Crash), (What::Cancel, What::Crash)];
    let tried = pairs.into_iter().map(|pair| every_pair(shortest, pair, Depth::EveryPrefix)).sum();
    enough("two mishaps, looked at after each entry", tried, 300);
}

#[test]
fn every_three_crashes() {
    let script = scripts()[1];
    let mut tried = 0;
    for first in 0..points(script) {
        let mut second = first + 1;
        loop {
            let mut third = second + 1;
            let end = loop {
                let end = try_world(script, &[(first, What::Crash), (second, What::Crash), (third, What::Crash)], Depth::End);
                tried += 1;
                third += 1;
                if third >= end {
                    break end;
                }
            };
            second += 1;
            if second >= end {
                break;
            }
        }
    }
    enough("three crashes", tried, 20_000);
}

#[test]
fn every_cancel_with_every_crash() {
    every_pair_in_every_script("cancel and crash", What::Cancel, What::Crash, 4_000);
}

#[test]
fn every_user_message_with_every_crash() {
    every_pair_in_every_script("user message and crash", What::User, What::Crash, 4_000);
}

#[test]
fn every_user_message_with_every_cancel() {
    every_pair_in_every_script("user message and cancel", What::User, What::Cancel, 4_000);
}

#[test]
fn every_second_driver_with_every_crash() {
    every_pair_in_every_script("second driver that claims, and crash", What::ClaimOnly, What::Crash, 4_000);
    every_pair_in_every_script("second driver that drives, and crash", What::Usurp, What::Crash, 4_000);
}

#[test]
fn every_second_driver_with_every_intrusion() {
    for what in [What::User, What::Cancel, What::Decide, What::Usurp] {
        let tried = every_pair(scripts()[1], (What::ClaimOnly, what), Depth::End);
        enough("second driver and another intrusion", tried, 2_000);
    }
}

#[test]
fn every_early_decision_with_every_crash() {
    every_pair_in_every_script("decision and crash", What::Decide, What::Crash, 4_000);
}

#[test]
fn every_early_decision_with_every_cancel_and_user_message() {
    every_pair_in_every_script("decision and cancel", What::Decide, What::Cancel, 4_000);
    every_pair_in_every_script("decision and user message", What::Decide, What::User, 4_000);
}

#[test]
fn an_unknown_outcome_is_never_run_again_by_itself() {
    // The crash falls right between the effect of an unsafe call and its result.
    let script = Script { mode: ApproveMode::All, unknown: Verdict::Skip, provider: Service::Good };
    let interrupted = (0..points(script))
        .map(|at| world(script, &[(at, What::Crash)], Depth::End))
        .filter(|world| {
            world.log.iter().any(|stored| match &*stored.entry {
                Entry::Result(result) => {
                    result.outcome == Outcome::Error(ToolErrorKind::Interrupted) && world.runs(result.call) == 1
                }
                _ => false,
            })
        })
        .count();
    assert!(interrupted >= 4, "one world for each unsafe call, {interrupted} found");
}
