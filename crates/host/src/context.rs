//! What models are shown besides what was said, made of the configuration.

use std::sync::Arc;
use std::time::Duration;

use turnwright_engine::knowledge::{Embedder, KnowledgeIndex};
use turnwright_engine::{Documents, SystemClock, ToolSource};
use turnwright_providers::HttpEmbedder;
use turnwright_tools::knowledge::split::Sizes;
use turnwright_tools::{
    FilesystemConfig, Gatherer, Instructions, InstructionsConfig, Knowledge, KnowledgeConfig, KnowledgeFolder, Memory, OwnPaths,
};

use crate::config::Loaded;
use crate::mcp_endpoint::caller;
use crate::{Environment, Host, HostError, kept, providers};

/// How much like a question a piece is at least, in hundredths of the cosine: unlike texts are below it for models whose cosines begin
/// near 0, and none that has to do with a question is for any.
const LEAST_LIKENESS_PERCENT: u8 = 20;
/// The largest document that is read where nothing is said, in bytes.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// How often a server brings the index to what the folders hold by itself.
const KEPT_EVERY: Duration = Duration::from_mins(5);
/// How long it may take over one folder at once.
const KEPT_FOR: Duration = Duration::from_mins(20);

/// What there is to gather.
#[derive(Debug)]
pub(crate) struct Gathering {
    pub(crate) gatherer: Gatherer,
    pub(crate) knowledge: Option<Knowledge>,
    pub(crate) memory: Option<Memory>,
    pub(crate) problems: Vec<String>,
}

impl Gathering {
    /// What a configuration names. A folder that cannot be opened is left out and told.
    pub(crate) fn new(
        loaded: &Loaded,
        environment: &Environment,
        index: Arc<dyn KnowledgeIndex>,
        documents: Arc<dyn Documents>,
        holder: &str,
    ) -> Result<Self, HostError> {
        let mut problems = Vec::new();
        let memory = loaded.config.memory.enabled.then(|| Memory::new(documents));
        let knowledge = knowledge((loaded, environment), index, holder, &mut problems)?;
        let gatherer = Gatherer {
            instructions: instructions(loaded, environment)?,
            memory: memory.clone(),
            knowledge: knowledge.clone(),
            not_for: vec![caller::NAME.to_owned()],
        };
        Ok(Self { gatherer, knowledge, memory, problems })
    }

    /// The tools that belong to it.
    pub(crate) fn sources(&self) -> Vec<Arc<dyn ToolSource>> {
        self.memory.iter().map(|memory| Arc::new(memory.source()) as Arc<dyn ToolSource>).collect()
    }
}

/// What of the program itself nobody reads.
pub(crate) fn ours(loaded: &Loaded, environment: &Environment) -> OwnPaths {
    kept::files(loaded, environment).and([loaded.data_dir.clone()])
}

fn instructions(loaded: &Loaded, environment: &Environment) -> Result<Option<Instructions>, HostError> {
    let (config, files) = (&loaded.config.instructions, &loaded.config.tools.filesystem);
    if !config.enabled || !files.enabled || config.files.is_empty() {
        return Ok(None);
    }
    let here = || vec![environment.working_directory().to_owned()];
    let roots = if files.roots.is_empty() { here() } else { files.roots.clone() };
    let mut filesystem = FilesystemConfig::new(roots);
    filesystem.denied.extend(files.deny.iter().cloned());
    filesystem.hard_links = files.hard_links;
    filesystem.ours = ours(loaded, environment);
    let max_bytes = usize::try_from(config.max_bytes).unwrap_or(usize::MAX);
    Ok(Some(Instructions::open(InstructionsConfig { filesystem, files: config.files.clone(), max_bytes })?))
}

fn knowledge(
    (loaded, environment): (&Loaded, &Environment),
    index: Arc<dyn KnowledgeIndex>,
    holder: &str,
    problems: &mut Vec<String>,
) -> Result<Option<Knowledge>, HostError> {
    let config = &loaded.config.knowledge;
    if !config.enabled {
        return Ok(None);
    }
    let mut folders = Vec::new();
    for (name, folder) in &config.folders {
        match std::fs::metadata(&folder.path) {
            Ok(found) if found.is_dir() => folders.push(KnowledgeFolder {
                name: name.clone(),
                path: folder.path.clone(),
                include: folder.include.clone(),
                exclude: folder.exclude.clone(),
                denied: folder.deny.clone(),
                ours: ours(loaded, environment),
                max_file_bytes: folder.max_file_bytes.unwrap_or(MAX_FILE_BYTES),
            }),
            Ok(_) => problems.push(format!("knowledge `{name}` is left out: `{}` is not a folder", folder.path.display())),
            Err(error) => {
                problems.push(format!("knowledge `{name}` is left out: `{}` cannot be opened: {error}", folder.path.display()));
            }
        }
    }
    let max_pieces = usize::try_from(config.max_pieces).unwrap_or(usize::MAX);
    let sizes = Sizes::of_tokens(config.piece_tokens, config.overlap_tokens);
    let config = KnowledgeConfig {
        folders,
        sizes,
        budget_tokens: config.budget_tokens,
        max_pieces,
        least_likeness_percent: loaded.config.embeddings.least_likeness_percent.unwrap_or(LEAST_LIKENESS_PERCENT),
        secrets: environment.secrets().clone(),
    };
    Ok(Some(Knowledge::open(config, index, embedder(loaded, problems), Arc::new(SystemClock), holder.to_owned())?))
}

fn embedder(loaded: &Loaded, problems: &mut Vec<String>) -> Option<Arc<dyn Embedder>> {
    let (provider, model) = (loaded.config.embeddings.provider.as_ref()?, loaded.config.embeddings.model.as_ref()?);
    let endpoint = loaded.endpoints.iter().find(|endpoint| endpoint.name == *provider)?;
    match providers::endpoint_config(endpoint, &loaded.network) {
        Ok(config) => Some(Arc::new(HttpEmbedder::new(config, model))),
        Err(failure) => {
            problems.push(format!("documents are looked up by words alone: {}", failure.message));
            None
        }
    }
}

impl Host {
    /// The documents that are looked up; `None` where that is switched off.
    pub fn knowledge(&self) -> Option<&Knowledge> {
        self.knowledge.as_ref()
    }

    /// What users had remembered; `None` where that is switched off.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// Brings the index to what the folders hold, from here on, so that those who ask have less to wait for. Of all processes
    /// over the same data one does, for each folder.
    pub fn keep_indexed(&self) {
        let Some(knowledge) = self.knowledge.clone().filter(|knowledge| knowledge.names().next().is_some()) else { return };
        let ending = self.ending.clone();
        let keep = async move {
            loop {
                for name in knowledge.names() {
                    match knowledge.refresh(name, KEPT_FOR).await {
                        Ok(Some((done, notices))) => {
                            tracing::debug!(
                                knowledge = name,
                                read = done.read,
                                removed = done.removed,
                                "documents are indexed"
                            );
                            for notice in &notices {
                                tracing::warn!(knowledge = name, "{notice}");
                            }
                        }
                        Ok(None) => {}
                        Err(error) => tracing::warn!(knowledge = name, %error, "documents cannot be indexed"),
                    }
                }
                tokio::time::sleep(KEPT_EVERY).await;
            }
        };
        self.tasks.spawn(async move {
            tokio::select! {
                () = keep => {}
                () = ending.cancelled() => {}
            }
        });
    }
}
