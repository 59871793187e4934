//! A server in a container.

use std::fmt;
use std::path::PathBuf;

use super::transport::{TransportConfig, names};

/// Where an engine listens unless `DOCKER_HOST` says otherwise.
pub(crate) const DEFAULT_ENGINE: &str = "unix:///var/run/docker.sock";

/// A program in a container that talks over its standard input and output.
///
/// It gets nothing that is not given here: no network, no folder of this machine, no variable of the host.
#[derive(Clone, PartialEq)]
pub struct DockerConfig {
    /// The image, as `docker run` takes it.
    pub image: String,
    /// Arguments to the image's entry point.
    pub args: Vec<String>,
    /// Its variables. Values may be secret: they are never shown.
    pub env: Vec<(String, String)>,
    /// Folders and files of this machine that it sees.
    pub mounts: Vec<Mount>,
    /// The network it is in; none where not given.
    pub network: Option<String>,
    /// The most memory, in bytes, swap included.
    pub memory: u64,
    /// The most processors.
    pub cpus: f64,
    /// The most processes and threads.
    pub max_processes: u32,
    /// Whether its own files can be changed. Where not, it still has a small `/tmp` in memory.
    pub writable: bool,
    /// The user inside, as `1000:1000`; the image's where not given.
    pub user: Option<String>,
    /// Whether an image that is not there is fetched.
    pub fetches_image: bool,
}

/// A folder or file of this machine in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Here.
    pub source: PathBuf,
    /// There.
    pub target: PathBuf,
    /// Whether it may be changed from there.
    pub writable: bool,
}

impl DockerConfig {
    /// An image with nothing but the limits that every container has: 512 MiB, one processor, 128 processes.
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            args: Vec::new(),
            env: Vec::new(),
            mounts: Vec::new(),
            network: None,
            memory: 512 << 20,
            cpus: 1.0,
            max_processes: 128,
            writable: false,
            user: None,
            fetches_image: false,
        }
    }
}

impl From<DockerConfig> for TransportConfig {
    fn from(docker: DockerConfig) -> Self {
        Self::Docker(docker)
    }
}

impl fmt::Debug for DockerConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DockerConfig")
            .field("image", &self.image)
            .field("args", &self.args)
            .field("env", &names(&self.env))
            .field("mounts", &self.mounts)
            .field("network", &self.network)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}
