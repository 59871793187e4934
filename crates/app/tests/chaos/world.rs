//! What each of these tests begins with: a cluster, its model, and what its tools did.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece};
use turnwright_testkit::nats_server;

use crate::cluster::{Cluster, Programs};
use crate::laws::{Effect, Record};
use crate::network;

/// Dropped, all of it is ended.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) model: ModelServer,
    pub(crate) cluster: Cluster,
    /// Where each effect of a tool is a line.
    pub(crate) written: PathBuf,
    folder: tempfile::TempDir,
}

/// While there is a network, by which the model learns that nobody asks any more.
impl Drop for World {
    fn drop(&mut self) {
        self.cluster.end();
    }
}

impl World {
    /// A cluster in which all is well, with a model that stops at these points; `None` where this machine can have none, which
    /// is said.
    pub(crate) fn start<S>(stops: &[&'static str], script: impl FnOnce(&Path) -> S) -> Option<Self>
    where
        S: Fn(&Value) -> Vec<Piece> + Send + Sync + 'static,
    {
        let must_be_there = |why: &str| assert!(std::env::var_os("TURNWRIGHT_REQUIRE_TEST_NETWORK").is_none(), "{why}");
        let programs = match programs() {
            Ok(programs) => programs,
            Err(why) => {
                must_be_there(&why);
                println!("skipped: {why}");
                return None;
            }
        };
        if programs.clock.is_none() {
            let why = "no wall clock is moved: faketime is not installed";
            must_be_there(why);
            println!("note: {why}");
        }
        let folder = tempfile::Builder::new().prefix("turnwright-chaos.").tempdir().unwrap();
        let written = folder.path().join("effects");
        std::fs::write(&written, "").unwrap();
        let network = network::Network::new().unwrap();
        let script = script(&written);
        let model = ModelServer::start_at(network.outside().into(), stops.iter().copied(), script).unwrap();
        let cluster = Cluster::start(folder.path(), programs, network, &configuration(&model.base_url())).unwrap();
        Some(Self { model, cluster, written, folder })
    }

    /// What tools did so far.
    pub(crate) fn effects(&self) -> Vec<Effect> {
        let written = std::fs::read_to_string(&self.written).unwrap_or_default();
        let effect = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            Effect { name: words[0].to_owned(), node: words[1].parse().unwrap(), at_ns: words[2].parse().unwrap() }
        };
        written.lines().map(effect).collect()
    }

    /// The journals as the database has them.
    pub(crate) fn journals(&self) -> BTreeMap<String, Vec<Value>> {
        let query = "SELECT json_build_array(conversation.id, entry.body::json) FROM turnwright.entry AS entry
            JOIN turnwright.conversation AS conversation ON conversation.key = entry.place >> 32 ORDER BY entry.place";
        let mut journals: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for line in self.cluster.sql(query).unwrap().lines().filter(|line| !line.is_empty()) {
            let row: Value = serde_json::from_str(line).unwrap();
            journals.entry(row[0].as_str().unwrap().to_owned()).or_default().push(row[1].clone());
        }
        journals
    }

    /// Keeps the logs and what was read of a run, and says where.
    pub(crate) fn keep(&self, name: &str, record: &Record) {
        let kept = std::env::temp_dir().join(format!("turnwright-chaos-{name}"));
        drop(std::fs::remove_dir_all(&kept));
        std::fs::create_dir_all(&kept).unwrap();
        for entry in std::fs::read_dir(self.folder.path()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
            std::fs::copy(entry.path(), kept.join(entry.file_name())).unwrap();
        }
        std::fs::write(kept.join("journals.json"), json!(record.journals).to_string()).unwrap();
        println!("the logs, effects and journals are in {}", kept.display());
    }
}

/// What is missing here, where something is.
fn programs() -> Result<Programs, String> {
    if let Some(why) = network::unavailable() {
        return Err(why);
    }
    let nats = nats_server::program().unwrap().ok_or("run scripts/install-test-servers")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install-test-postgres");
    let postgres = network::run(&script.display().to_string(), &[]).map_err(|error| error.to_string())?;
    let clock = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
    let clock = Some(PathBuf::from(clock)).filter(|path| path.exists());
    let turnwright = std::env::var_os("TURNWRIGHT_CHAOS_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_turnwright").into());
    Ok(Programs { turnwright: turnwright.into(), nats, postgres: postgres.trim().into(), clock })
}

/// What all nodes are told of the model and their tools. The model reads its script from the newest message alone.
fn configuration(base_url: &str) -> String {
    format!(
        "model = \"p/m\"\nlog_level = \"info\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{base_url}\"\nmodels = [\"m\"]\n\
         profile = {{ joins_messages = false }}\n[tools.command]\nsandbox = \"off\"\n"
    )
}
