//! Faults, carried out and taken back.

use std::io::{Result, Write};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::cluster::Cluster;
use crate::plan::{Fault, Member, Planned};

/// The stream whose leader is killed.
const QUEUE: &str = "turnwright_turns";
const FILLER: &str = "filler";

/// What has begun and not ended: how it is taken back.
#[derive(Debug)]
struct Begun {
    ends: Duration,
    back: Back,
}

#[derive(Debug)]
enum Back {
    Revive(Member),
    Continue(Member),
    Join(Member, Member),
    Quicken(Member),
    MakeRoom(Member),
    SetClock(Member),
    Nothing,
}

/// Carries out a plan as time goes on.
#[derive(Debug)]
pub(crate) struct Faults {
    waiting: std::vec::IntoIter<Planned>,
    next: Option<Planned>,
    begun: Vec<Begun>,
    /// What was carried out, for people.
    pub(crate) told: Vec<String>,
}

impl Faults {
    pub(crate) fn new(plan: Vec<Planned>) -> Self {
        let mut waiting = plan.into_iter();
        Self { next: waiting.next(), waiting, begun: Vec::new(), told: Vec::new() }
    }

    /// Does what is due after so much time.
    pub(crate) fn until(&mut self, passed: Duration, cluster: &mut Cluster) -> Result<()> {
        while let Some(at) = self.begun.iter().position(|begun| begun.ends <= passed) {
            let begun = self.begun.remove(at);
            take_back(&begun.back, cluster)?;
        }
        while let Some(planned) = self.next.filter(|planned| planned.begins <= passed) {
            self.next = self.waiting.next();
            let back = begin(planned.fault, cluster)?;
            let lasts = planned.ends.saturating_sub(planned.begins);
            self.told.push(format!("{:.1} s: {:?} for {:.1} s", passed.as_secs_f64(), planned.fault, lasts.as_secs_f64()));
            self.begun.push(Begun { ends: planned.ends, back });
        }
        Ok(())
    }
}

fn begin(fault: Fault, cluster: &mut Cluster) -> Result<Back> {
    match fault {
        Fault::Kill(member) => {
            cluster.kill(member)?;
            Ok(Back::Revive(member))
        }
        Fault::KillLeader => match cluster.nats_leader(QUEUE) {
            Some(leader) => begin(Fault::Kill(leader), cluster),
            None => Ok(Back::Nothing),
        },
        Fault::Stop(member) => {
            cluster.signal(member, Signal::SIGSTOP)?;
            Ok(Back::Continue(member))
        }
        Fault::Cut(one, other) => {
            cluster.network.cut(one, other)?;
            Ok(Back::Join(one, other))
        }
        Fault::Slow(member) => {
            cluster.network.slow(member)?;
            Ok(Back::Quicken(member))
        }
        Fault::FullDisk(member) => {
            let mut filler = std::fs::File::create(cluster.disk(member).join(FILLER))?;
            let zeros = vec![0; 1 << 16];
            // Until there is no room, which is the error that ends it.
            while filler.write_all(&zeros).is_ok() {}
            Ok(Back::MakeRoom(member))
        }
        Fault::Clock(member, seconds) if cluster.has_clocks() => {
            std::fs::write(cluster.clock(member), format!("{seconds:+}"))?;
            Ok(Back::SetClock(member))
        }
        Fault::Clock(..) => Ok(Back::Nothing),
    }
}

fn take_back(back: &Back, cluster: &mut Cluster) -> Result<()> {
    match *back {
        Back::Revive(member) => cluster.revive(member),
        Back::Continue(member) => cluster.signal(member, Signal::SIGCONT),
        Back::Join(one, other) => cluster.network.join(one, other),
        Back::Quicken(member) => cluster.network.quicken(member),
        Back::MakeRoom(member) => {
            std::fs::remove_file(cluster.disk(member).join(FILLER))?;
            // A NATS server that found no room has given up its streams, and PostgreSQL may have left an empty file in its own
            // way, until somebody starts them again.
            if !matches!(member, Member::Node(_)) {
                cluster.kill(member)?;
                if member == Member::Postgres {
                    cluster.forget_lock()?;
                }
                cluster.revive(member)?;
            }
            Ok(())
        }
        Back::SetClock(member) => std::fs::write(cluster.clock(member), "+0"),
        Back::Nothing => Ok(()),
    }
}
