//! What goes wrong, and when: a list that follows from a seed and a length alone.

use std::time::Duration;

/// How many nodes there are, and how many NATS servers.
pub(crate) const NODES: u8 = 3;
/// How far a wall clock is moved.
const LEAP_SECONDS: i32 = 600;
/// Nothing goes wrong before.
const QUIET: Duration = Duration::from_secs(3);

/// A process with a network namespace of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Member {
    Node(u8),
    Nats(u8),
    Postgres,
}

impl Member {
    /// All there are.
    pub(crate) fn all() -> Vec<Self> {
        let nodes = (0..NODES).map(Self::Node);
        nodes.chain((0..NODES).map(Self::Nats)).chain([Self::Postgres]).collect()
    }
}

/// One thing that goes wrong for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL; started again at the end.
    Kill(Member),
    /// The same for the NATS server that leads the queue of turns at that moment.
    KillLeader,
    /// SIGSTOP; SIGCONT at the end.
    Stop(Member),
    /// No packet goes between these two.
    Cut(Member, Member),
    /// All that is sent to it comes late.
    Slow(Member),
    /// Its disk has no room.
    FullDisk(Member),
    /// Its wall clock is moved by so many seconds.
    Clock(Member, i32),
}

impl Fault {
    /// Its kind in a word.
    fn kind(self) -> &'static str {
        match self {
            Self::Kill(_) | Self::KillLeader => "kill",
            Self::Stop(_) => "stop",
            Self::Cut(..) => "cut",
            Self::Slow(_) => "slow",
            Self::FullDisk(_) => "disk",
            Self::Clock(..) => "clock",
        }
    }

    /// Whose process, disk, link or clock it takes: two faults at once do not have the same.
    fn takes(self) -> Vec<(Member, &'static str)> {
        match self {
            Self::Kill(member) | Self::Stop(member) => vec![(member, "process")],
            Self::KillLeader => (0..NODES).map(|at| (Member::Nats(at), "process")).collect(),
            Self::Cut(one, other) => vec![(one, "cut"), (other, "cut")],
            Self::Slow(member) => vec![(member, "link")],
            // A server whose disk was full may have to be started again.
            Self::FullDisk(member) => vec![(member, "disk"), (member, "process")],
            Self::Clock(member, _) => vec![(member, "clock")],
        }
    }
}

/// A fault with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) fault: Fault,
    pub(crate) begins: Duration,
    pub(crate) ends: Duration,
}

/// Numbers that look random and follow from where they begin (`SplitMix64`).
#[derive(Debug, Clone)]
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn from(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    /// Whether this is one time of so many.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn between(&mut self, from_ms: usize, to_ms: usize) -> Duration {
        Duration::from_millis((from_ms + self.below(to_ms - from_ms)) as u64)
    }
}

/// The faults of a run of this length, by when they begin, of one kind or of all. All are over at its end.
pub(crate) fn plan(seed: u64, length: Duration, only: Option<&str>) -> Vec<Planned> {
    let mut numbers = Numbers::from(seed);
    if only == Some("still") {
        return one_after_the_other(&mut numbers, length);
    }
    let mut planned: Vec<Planned> = Vec::new();
    let mut begins = QUIET;
    while begins < length {
        let fault = draw(&mut numbers);
        // Half of them are longer than a lease of four seconds.
        let ends = begins + numbers.between(500, 8_500);
        let one = Planned { fault, begins, ends };
        let is_meant = only.is_none_or(|kind| kind == fault.kind());
        if is_meant && ends < length && planned.iter().all(|before| before.ends < begins || !collide(before.fault, fault)) {
            planned.push(one);
        }
        if is_meant {
            begins += numbers.between(300, 3_000);
        }
    }
    planned
}

/// Each node in turn stands still for three of its leases, while the others take over what it drove: what a broken fence shows in.
fn one_after_the_other(numbers: &mut Numbers, length: Duration) -> Vec<Planned> {
    let mut planned = Vec::new();
    let mut begins = QUIET;
    for node in (0..NODES).cycle() {
        let ends = begins + Duration::from_secs(12);
        if ends >= length {
            break;
        }
        planned.push(Planned { fault: Fault::Stop(Member::Node(node)), begins, ends });
        begins = ends + numbers.between(1_000, 3_000);
    }
    planned
}

fn collide(one: Fault, other: Fault) -> bool {
    let taken = other.takes();
    one.takes().iter().any(|part| taken.contains(part))
}

fn draw(numbers: &mut Numbers) -> Fault {
    let members = Member::all();
    let member = |numbers: &mut Numbers| members[numbers.below(members.len())];
    let node = |numbers: &mut Numbers| Member::Node(u8::try_from(numbers.below(usize::from(NODES))).unwrap());
    match numbers.below(16) {
        0..3 => Fault::Kill(node(numbers)),
        3..6 => Fault::Stop(node(numbers)),
        6 => Fault::KillLeader,
        7 => Fault::Stop(Member::Nats(u8::try_from(numbers.below(usize::from(NODES))).unwrap())),
        8 => Fault::Kill(Member::Postgres),
        9 => Fault::Stop(Member::Postgres),
        10..12 => {
            let one = numbers.below(members.len());
            let other = (one + 1 + numbers.below(members.len() - 1)) % members.len();
            Fault::Cut(members[one], members[other])
        }
        12 => Fault::Cut(node(numbers), Member::Postgres),
        13 => Fault::Slow(member(numbers)),
        14 => Fault::FullDisk(member(numbers)),
        _ => {
            let seconds = if numbers.once_in(2) { LEAP_SECONDS } else { -LEAP_SECONDS };
            Fault::Clock(node(numbers), seconds)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn the_same_seed_gives_the_same_plan() {
        assert_eq!(plan(7, MINUTE, None), plan(7, MINUTE, None));
        assert_ne!(plan(7, MINUTE, None), plan(8, MINUTE, None));
    }

    #[test]
    fn no_two_faults_have_the_same_at_once_and_all_are_over_at_the_end() {
        for seed in 0..200 {
            let planned = plan(seed, MINUTE, None);
            assert!(planned.len() > 5, "{seed}: {planned:?}");
            for (at, one) in planned.iter().enumerate() {
                assert!(one.begins >= QUIET && one.begins < one.ends && one.ends < MINUTE, "{seed}: {one:?}");
                for other in &planned[..at] {
                    assert!(other.ends < one.begins || !collide(other.fault, one.fault), "{seed}: {other:?} and {one:?}");
                }
            }
        }
    }

    #[test]
    fn one_kind_alone_may_be_asked_for() {
        let planned = plan(7, MINUTE, Some("stop"));
        assert!(planned.len() > 5 && planned.iter().all(|one| matches!(one.fault, Fault::Stop(_))), "{planned:?}");
    }

    #[test]
    fn each_node_stands_still_for_longer_than_its_lease() {
        let planned = plan(7, MINUTE, Some("still"));
        let stopped: Vec<Fault> = planned.iter().map(|one| one.fault).take(3).collect();
        assert_eq!(stopped, [0, 1, 2].map(|node| Fault::Stop(Member::Node(node))));
        assert!(planned.windows(2).all(|two| two[0].ends < two[1].begins), "{planned:?}");
    }

    #[test]
    fn every_kind_of_fault_is_drawn() {
        let mut numbers = Numbers::from(1);
        let kinds: std::collections::HashSet<_> = (0..1_000).map(|_| std::mem::discriminant(&draw(&mut numbers))).collect();
        assert_eq!(kinds.len(), 7);
    }

    #[test]
    fn any_two_members_are_cut_off_from_one_another() {
        let mut numbers = Numbers::from(1);
        let cut: BTreeSet<[Member; 2]> = (0..10_000)
            .filter_map(|_| match draw(&mut numbers) {
                Fault::Cut(one, other) => Some([one.min(other), one.max(other)]),
                _ => None,
            })
            .collect();
        let members = Member::all();
        let pairs =
            members.iter().flat_map(|one| members.iter().filter(move |other| one < other).map(move |other| [*one, *other]));
        assert_eq!(cut, pairs.collect());
    }
}
