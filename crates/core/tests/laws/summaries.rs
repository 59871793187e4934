//! What a model is shown that is asked for a summary, and what of its answer is taken.

use turnwright_core::budget::most_tokens;
use turnwright_core::compaction::{self, Asked, NoSummary, Request};
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{ModelFacts, ModelRef, text_of};

use crate::told::{Told, ended, settings};

/// Four bytes a token, instructions included.
fn measured(prompt: &Prompt<'_>) -> u64 {
    let system_prompt = prompt.settings.system_prompt.as_ref().map_or(0, String::len) as u64;
    (most_tokens(&prompt.messages) + system_prompt) / 4
}

fn facts(window: Option<u32>) -> ModelFacts {
    ModelFacts { context_window: window, ..ModelFacts::default() }
}

fn model() -> ModelRef {
    ModelRef::new("p", "m")
}

fn asking<R>(facts: &ModelFacts, with: impl FnOnce(&Asked<'_>) -> R) -> R {
    with(&Asked { model: &model(), facts, measure: &|prompt| Some(measured(prompt)) })
}

/// Three questions that name their port in the middle, each answered.
fn specifications() -> Told {
    let long = "x y z ".repeat(300);
    (0..3).fold(Told::new(settings()), |told, number| {
        let told = if number == 0 { told } else { told.user(&format!("{long} The port is {}. {long}", 4000 + number)) };
        let turn = told.turn().id().0.get();
        told.answers(&format!("{long} Noted: {}. {long}", 5000 + number))
            .tell(ended(turn, turnwright_core::TurnStatus::Completed))
    })
}

fn question(request: &Request) -> String {
    let prompt = request.prompt();
    let asked = prompt.messages.iter().map(|message| match message {
        PromptMessage::User { message, .. } => text_of(&message.content),
        PromptMessage::Context { .. } | PromptMessage::Assistant { .. } | PromptMessage::Results(_) => String::new(),
    });
    asked.collect()
}

#[test]
fn a_summary_is_asked_of_all_that_fits_into_the_window() {
    let told = specifications();
    let cut = compaction::cut(&told.journal).expect("there is something to compact");
    let asked = |window| asking(&facts(window), |asked| cut.request(asked));
    let whole = question(&asked(Some(128_000)));
    for fact in ["4001", "4002", "5000", "5001"] {
        assert!(whole.contains(fact), "{fact}");
    }
    assert!(!whole.contains("left out"));
    for window in [600, 2_000, 4_096] {
        let request = asked(Some(window));
        let (tokens, answer) = (measured(&request.prompt()), request.prompt().settings.max_output_tokens.unwrap());
        assert!(tokens + u64::from(answer) <= u64::from(window), "{tokens} and {answer} of {window}");
        assert!(
            tokens + u64::from(answer) > u64::from(window) * 3 / 4 || !question(&request).contains("left out"),
            "{tokens} of {window}"
        );
        assert!(answer <= window / 4);
    }
    assert_eq!(asked(None).prompt().settings.max_output_tokens, Some(4_096));
}

#[test]
fn where_the_window_is_not_known_it_is_asked_of_what_the_model_has_read_before() {
    let told = specifications();
    let cut = compaction::cut(&told.journal).expect("there is something to compact");
    let asked = |model: ModelRef| question(&cut.request(&Asked { model: &model, facts: &facts(None), measure: &|_| None }));
    let stranger = asked(model());
    assert!(
        !stranger.contains("4001") && stranger.contains("bytes are left out"),
        "a quarter, since nobody knows what it takes"
    );
    let origin = told.journal.entries().iter().find_map(|stored| match &*stored.entry {
        turnwright_core::Entry::Assistant(message) => Some(message.origin.clone()),
        _ => None,
    });
    let origin = origin.expect("there is an answer");
    let known = asked(ModelRef::new(origin.provider, origin.model));
    assert!(known.contains("4001") && known.contains("4002"), "it has read all of it");
}

#[test]
fn who_refuses_the_question_as_too_long_is_asked_one_that_is_a_good_deal_shorter() {
    let told = specifications();
    let cut = compaction::cut(&told.journal).expect("there is something to compact");
    let request = asking(&facts(Some(128_000)), |asked| cut.request(asked));
    let whole = question(&request).len();
    let shorter = request.shorter().expect("it can be shorter");
    assert!(question(&shorter).len() < whole / 3, "{} of {whole}", question(&shorter).len());
    assert_eq!(shorter.shorter(), None);
}

#[test]
fn a_summary_is_no_longer_than_it_may_be_nor_than_what_it_stands_for() {
    let told = specifications();
    let cut = compaction::cut(&told.journal).expect("there is something to compact");
    for window in [1_000, 4_096] {
        asking(&facts(Some(window)), |asked| {
            let request = cut.request(asked);
            let most = u64::from(request.prompt().settings.max_output_tokens.unwrap());
            assert_eq!(request.summary(" Short. ", asked).as_deref(), Ok("Short."));
            assert_eq!(request.summary("\n", asked), Err(NoSummary::Empty));
            assert_eq!(request.summary(&"y".repeat(100_000), asked), Err(NoSummary::NoShorter));
            let long = format!("first {} last", "word ".repeat(1_400));
            let taken = request.summary(&long, asked).unwrap();
            assert!(taken.starts_with("first ") && taken.ends_with(" last") && taken.contains("left out"), "{taken}");
            assert!(taken.len() as u64 / 4 <= most, "{} bytes for {most} tokens", taken.len());
            assert!(cut.digest_for(asked).len() as u64 / 4 <= most);
        });
    }
}
