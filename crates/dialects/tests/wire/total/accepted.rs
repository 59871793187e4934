//! At least 20,000 journals, each asked of every endpoint, each accepted.

use turnwright_dialects::Kept;

use super::endpoint;
use super::features::Features;
use super::story::{self, Story};

/// Journals of one test; there are eight.
const JOURNALS: u64 = 2_600;

/// What must have occurred among the journals of each test.
const WANTED: &[&str] = &[
    "a call of a tool that does not exist",
    "a cancel",
    "a crash while calls ran",
    "a crash while the model spoke",
    "a compaction",
    "a content filter",
    "a cut-off message",
    "a cut-off message with calls",
    "a definition that changed",
    "a failed result",
    "a fallback to another model",
    "a hidden message",
    "a length limit",
    "a length limit in the middle of calls",
    "a link to a resource",
    "a message that arrived in the middle",
    "a message to a parked turn",
    "a missing provider id",
    "a model call that failed",
    "a PDF",
    "a provider id that looks like ours",
    "a provider id that repeats",
    "a provider id with strange characters",
    "a refusal",
    "a resource in a result",
    "a retry",
    "a switch back",
    "a switch of the model",
    "a text resource",
    "a tool choice",
    "a tool that went away",
    "a user message of nothing",
    "an answer of nothing",
    "an answer of reasoning alone",
    "an empty failed result",
    "an empty result",
    "an image",
    "an image in a result",
    "an image of another type than it says",
    "an image that is no base64",
    "an interrupted call",
    "an overlong provider id",
    "an unknown outcome that a person settled",
    "an unknown tool name with strange characters",
    "arguments that are not a JSON object",
    "audio",
    "denied by a person",
    "denied by a rule",
    "edited arguments",
    "no tools offered",
    "outcome cancelled",
    "outcome denied",
    "outcome failed",
    "outcome interrupted",
    "outcome invalid arguments",
    "outcome success",
    "parallel calls",
    "several user messages in a row",
    "structured content",
    "structured output",
    "the step limit",
    "tools offered",
];

fn every_endpoint_accepts(eighth: u64) {
    let mut features = Features::default();
    let mut refused = Vec::new();
    let mut requests = 0;
    for seed in (0..JOURNALS).map(|number| number * 8 + eighth) {
        let (story, asked) = Story::told(seed);
        features.add(&story.features);
        story::outcomes(&story, &mut features);
        let prompt = story.prompt(&asked);
        for endpoint in endpoint::one_of_each_dialect(seed) {
            let request = endpoint.request(&prompt, &mut Kept::default());
            requests += 1;
            let found = endpoint.refuses(&request);
            if !found.is_empty() {
                refused.push(format!(
                    "seed {seed}, {} {}: {}",
                    endpoint.dialect.name(),
                    endpoint.origin.model,
                    found.join("; ")
                ));
            }
        }
    }
    println!("{JOURNALS} journals, {requests} requests\n{features}");
    let some: Vec<&str> = refused.iter().take(20).map(String::as_str).collect();
    assert!(refused.is_empty(), "{} of {requests} are refused:\n{}", refused.len(), some.join("\n"));
    features.demand(WANTED);
}

macro_rules! eighths {
    ($($name:ident $eighth:literal)*) => {
        $(#[test]
        fn $name() {
            every_endpoint_accepts($eighth);
        })*
    };
}

eighths! {
    the_first_eighth_of_all_journals_is_accepted_everywhere 0
    the_second_eighth_of_all_journals_is_accepted_everywhere 1
    the_third_eighth_of_all_journals_is_accepted_everywhere 2
    the_fourth_eighth_of_all_journals_is_accepted_everywhere 3
    the_fifth_eighth_of_all_journals_is_accepted_everywhere 4
    the_sixth_eighth_of_all_journals_is_accepted_everywhere 5
    the_seventh_eighth_of_all_journals_is_accepted_everywhere 6
    the_eighth_eighth_of_all_journals_is_accepted_everywhere 7
}
