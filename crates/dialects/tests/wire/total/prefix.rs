//! The beginning of a request stays as it was (law 7), and what is kept of one changes nothing of the next.

use turnwright_core::{Control, Entry, Seq, ToolChoice};
use turnwright_dialects::{Body, Kept};

use super::endpoint::{self, Endpoint};
use super::story::{Asked, Story};

/// One endpoint that is asked again and again about a conversation that grows.
struct Asker {
    endpoint: &'static Endpoint,
    kept: Kept,
    before: Option<Vec<u8>>,
    /// The last request, where it is still being sent when the next one is made.
    sent: Option<Body>,
    common: usize,
    messages: usize,
    hid_tools: bool,
}

impl Asker {
    fn all(turn: u64) -> Vec<Self> {
        let asker = |endpoint| Self {
            endpoint,
            kept: Kept::default(),
            before: None,
            sent: None,
            common: 0,
            messages: 0,
            hid_tools: false,
        };
        endpoint::one_of_each_dialect(turn * 8).map(asker).collect()
    }

    /// Asks; `may_shrink` where the law allows it. Gives how much of the request was in the one before.
    fn ask(&mut self, story: &Story, asked: &Asked, may_shrink: bool, what: &str) -> (usize, usize) {
        let prompt = story.prompt(asked);
        let by_another = self.endpoint.request(&prompt, &mut self.kept.for_another());
        let request = self.endpoint.request(&prompt, &mut self.kept);
        let afresh = self.endpoint.request(&prompt, &mut Kept::default());
        let name = self.endpoint.dialect.name();
        // That API has no other way to forbid calls than to offer no tools.
        let hides_tools = name == "ollama" && prompt.tool_choice() == ToolChoice::None;
        let may_shrink = may_shrink || hides_tools != std::mem::replace(&mut self.hid_tools, hides_tools);
        assert!(request == afresh, "{what}, {name}: what was kept changes the request");
        assert!(by_another == afresh, "{what}, {name}: what was kept for another conversation changes the request");
        let common =
            self.before.as_ref().map_or(0, |before| before.iter().zip(&*request.body).take_while(|(a, b)| a == b).count());
        assert!(
            may_shrink || common >= self.common,
            "{what}, {name}: {common} bytes are as they were, {} before\n{}\n{}",
            self.common,
            String::from_utf8_lossy(self.before.as_deref().unwrap_or_default()),
            String::from_utf8_lossy(&request.body),
        );
        let length = request.body.len();
        // The same question again has its end in common too, also where all that is new is not worth writing.
        let has_grown = self.before.as_ref().is_none_or(|before| length > before.len());
        if may_shrink || (prompt.messages.len() > self.messages && has_grown) {
            self.common = if may_shrink { 0 } else { common };
        }
        self.messages = prompt.messages.len();
        self.before = Some(request.body.to_vec());
        self.sent = self.messages.is_multiple_of(3).then_some(request.body);
        (common, length)
    }
}

/// What happened since `seq` that may change the beginning: a compaction, hiding, a person's change of tools or settings.
fn may_shrink(story: &Story, seq: Option<Seq>) -> bool {
    let after = |stored: &&turnwright_core::StoredEntry| seq.is_none_or(|seq| stored.seq > seq);
    let mut opens = story.journal.turn().is_some_and(|turn| seq.is_none_or(|seq| turn.id().0 > seq));
    for stored in story.journal.entries().iter().filter(after) {
        if let Entry::Control(control) = &*stored.entry {
            opens |= matches!(
                control,
                Control::Compacted(_) | Control::Hidden { .. } | Control::Retried { .. } | Control::Offered { .. }
            );
        }
    }
    opens
}

#[test]
fn the_beginning_of_a_request_never_shrinks_within_a_turn_whatever_happens() {
    let (mut grown, mut compared) = (0, 0);
    for seed in (0..500).map(|number| 2_000_000 + number) {
        let mut story = Story::new(seed);
        let mut askers = Asker::all(seed);
        let mut seen = None;
        for _ in 0..10 {
            let asked = story.go_on();
            // A model that calls tools which nobody offered makes some APIs demand that there are some.
            let may_shrink = may_shrink(&story, seen) || story.journal.offered().is_empty();
            for asker in &mut askers {
                let (common, _) = asker.ask(&story, &asked, may_shrink, &format!("seed {seed}"));
                compared += usize::from(!may_shrink);
                grown += usize::from(!may_shrink && common > 0);
            }
            seen = story.journal.last_seq();
            story.answer(&asked);
        }
    }
    println!("{compared} requests were compared with the one before, {grown} began as it did");
    assert!(compared > 3_000);
}

#[test]
fn conversations_that_begin_with_the_same_go_on_from_what_one_of_them_wrote() {
    let mut shared = 0;
    for seed in (0..300).map(|number| 3_000_000 + number) {
        let mut story = Story::new(seed);
        let mut answers = 0;
        while answers < 12 || story.journal.open_turn().is_some() {
            let asked = story.go_on();
            story.answer(&asked);
            answers += 1;
            if answers > 40 {
                break;
            }
        }
        for endpoint in endpoint::one_of_each_dialect(seed * 8) {
            let mut known = None;
            for mut branch in story.branches(seed * 10..seed * 10 + 4) {
                for _ in 0..2 {
                    let asked = branch.go_on();
                    let prompt = branch.prompt(&asked);
                    let mut kept = known.as_ref().map(Kept::for_another_that_begins_so).unwrap_or_default();
                    let request = endpoint.request(&prompt, &mut kept);
                    let afresh = endpoint.request(&prompt, &mut Kept::default());
                    assert!(request == afresh, "seed {seed}, {}: the beginning changes the request", endpoint.dialect.name());
                    if let Some((beginning, kept)) = kept.take_beginning() {
                        assert_eq!(Some(&beginning), branch.journal.beginning());
                        shared += usize::from(known.is_some());
                        known = Some(kept);
                    }
                    branch.answer(&asked);
                }
            }
        }
    }
    println!("{shared} requests began with what another conversation wrote");
    assert!(shared > 500);
}

#[test]
fn over_thirty_turns_only_a_change_of_tools_changes_the_beginning() {
    let mut story = Story::calm(7);
    let mut askers = Asker::all(0);
    let mut steps = 0;
    let mut seen = None;
    for turn in 1..=30 {
        // A server that comes back offers what it offered; at two turns a person changes what is enabled.
        let is_changed = matches!(turn, 1 | 11 | 21);
        story.begin(is_changed, turn);
        loop {
            let asked = story.go_on();
            let may_shrink = is_changed && seen.is_none_or(|seen: Seq| story.journal.turn().unwrap().id().0 > seen);
            for asker in &mut askers {
                let (common, length) = asker.ask(&story, &asked, may_shrink, &format!("turn {turn}"));
                // What is new is at the end: a turn's question, calls and results are a small part of thirty turns.
                assert!(may_shrink || turn < 6 || common * 2 > length, "turn {turn}: {common} of {length}");
            }
            steps += 1;
            seen = story.journal.last_seq();
            if story.answer_calmly(&asked, turn) {
                break;
            }
        }
    }
    let entries = story.journal.entries();
    let decided = entries.iter().filter(|stored| matches!(&*stored.entry, Entry::Question(_))).count();
    let offered = entries.iter().filter(|stored| matches!(&*stored.entry, Entry::Control(Control::Offered { .. }))).count();
    println!("{steps} steps, {decided} approvals, {offered} times tools were offered");
    assert!(steps >= 60 && decided >= 5 && offered >= 6);
}
