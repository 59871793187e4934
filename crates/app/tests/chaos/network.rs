//! Network namespaces on a bridge, one for each member: links that can be cut and slowed. Linux, for root alone.

use std::collections::BTreeMap;
use std::io::{Error, Result};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use crate::plan::Member;

/// What goes to a member whose link is slow comes so much later, some of it after what was sent after it.
const LATE: [&str; 4] = ["netem", "delay", "250ms", "100ms"];
/// The same where the kernel cannot do that: a word waits some milliseconds, a page of a journal half a second.
const NARROW: [&str; 7] = ["tbf", "rate", "256kbit", "burst", "1600", "latency", "800ms"];

/// The bridge with all namespaces. Dropped, it is gone.
#[derive(Debug)]
pub(crate) struct Network {
    /// What all names begin with; another run at the same time has another.
    prefix: String,
    subnet: [u8; 3],
    places: BTreeMap<Member, u8>,
    /// How a link is made slow.
    slow: &'static [&'static str],
}

/// Runs a program that must succeed.
pub(crate) fn run(program: &str, words: &[&str]) -> Result<String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::other(format!("`{program} {}`: {said}", words.join(" "))))
}

/// Why there can be no namespaces here, where there can be none.
pub(crate) fn unavailable() -> Option<String> {
    if !run("id", &["-u"]).is_ok_and(|user| user.trim() == "0") {
        return Some("only root makes network namespaces".to_owned());
    }
    let probe = format!("twp{}", std::process::id());
    let made = run("ip", &["netns", "add", &probe]).and_then(|_| run("ip", &["link", "add", &probe, "type", "bridge"]));
    drop(run("ip", &["link", "del", &probe]));
    drop(run("ip", &["netns", "del", &probe]));
    let filter = run("iptables", &["-w", "-S"]);
    made.and(filter).err().map(|error| format!("no network namespaces with a bridge and a filter: {error}"))
}

impl Network {
    /// A namespace for each member, all in one network.
    pub(crate) fn new() -> Result<Self> {
        let process = std::process::id();
        let third = u8::try_from(process % 250).unwrap_or_default();
        let places = Member::all().into_iter().zip(1..).collect();
        let mut network = Self { prefix: format!("tw{process}"), subnet: [10, 231, third], places, slow: &LATE };
        let bridge = network.bridge();
        run("ip", &["link", "add", &bridge, "type", "bridge"])?;
        run("ip", &["addr", "add", &format!("{}/24", network.outside()), "dev", &bridge])?;
        run("ip", &["link", "set", &bridge, "up"])?;
        for member in Member::all() {
            let (space, link) = (network.space(member), network.link(member));
            run("ip", &["netns", "add", &space])?;
            run("ip", &["link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", &space])?;
            run("ip", &["link", "set", &link, "master", &bridge, "up"])?;
            run("ip", &["-n", &space, "addr", "add", &format!("{}/24", network.address(member)), "dev", "eth0"])?;
            run("ip", &["-n", &space, "link", "set", "eth0", "up"])?;
            run("ip", &["-n", &space, "link", "set", "lo", "up"])?;
        }
        if network.slow(Member::Postgres).is_err() {
            network.slow = &NARROW;
            network.slow(Member::Postgres)?;
        }
        network.quicken(Member::Postgres)?;
        Ok(network)
    }

    /// How a link is made slow, for people.
    pub(crate) fn slowness(&self) -> String {
        self.slow.join(" ")
    }

    fn bridge(&self) -> String {
        format!("{}b", self.prefix)
    }

    fn link(&self, member: Member) -> String {
        format!("{}v{}", self.prefix, self.places[&member])
    }

    /// The namespace of a member.
    pub(crate) fn space(&self, member: Member) -> String {
        format!("{}-{}", self.prefix, self.places[&member])
    }

    fn host(&self, last: u8) -> Ipv4Addr {
        let [one, two, three] = self.subnet;
        Ipv4Addr::new(one, two, three, last)
    }

    /// Where a member is.
    pub(crate) fn address(&self, member: Member) -> Ipv4Addr {
        self.host(self.places[&member])
    }

    /// Where clients and the model are, whom no fault reaches.
    pub(crate) fn outside(&self) -> Ipv4Addr {
        self.host(254)
    }

    /// All members' network, as rules of access name it.
    pub(crate) fn range(&self) -> String {
        format!("{}/24", self.host(0))
    }

    fn filter(&self, change: &str, one: Member, other: Member) -> Result<()> {
        for (at, from) in [(one, other), (other, one)] {
            let (space, from) = (self.space(at), self.address(from).to_string());
            run("ip", &["netns", "exec", &space, "iptables", "-w", change, "INPUT", "-s", &from, "-j", "DROP"])?;
        }
        Ok(())
    }

    /// Nothing goes between these two any more.
    pub(crate) fn cut(&self, one: Member, other: Member) -> Result<()> {
        self.filter("-I", one, other)
    }

    /// Everything goes between them again.
    pub(crate) fn join(&self, one: Member, other: Member) -> Result<()> {
        self.filter("-D", one, other)
    }

    /// What is sent to this member comes late.
    pub(crate) fn slow(&self, member: Member) -> Result<()> {
        let link = self.link(member);
        run("tc", &[&["qdisc", "add", "dev", &link, "root"][..], self.slow].concat()).map(drop)
    }

    /// Its link is as it was.
    pub(crate) fn quicken(&self, member: Member) -> Result<()> {
        run("tc", &["qdisc", "del", "dev", &self.link(member), "root"]).map(drop)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for member in Member::all() {
            drop(run("ip", &["netns", "del", &self.space(member)]));
            drop(run("ip", &["link", "del", &self.link(member)]));
        }
        drop(run("ip", &["link", "del", &self.bridge()]));
    }
}
