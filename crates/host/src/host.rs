//! A running host: an engine with everything that its configuration names.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::policy::Policy;
use turnwright_core::{ModelRef, UserId};
use turnwright_engine::accounts::Accounts;
use turnwright_engine::artifacts::Artifacts;
use turnwright_engine::search::Texts;
use turnwright_engine::upkeep::Upkeep;
use turnwright_engine::{Clock, Documents, Engine, EngineParts, Observer, Provider, SystemClock, Telemetry, ToolSource};
use turnwright_mcp::{FileBoard, FileLedger, NoLedger, ProcessLedger, ResourceSource, TokenStore, sweep_gone};
use turnwright_store::{Storage, mend};
use turnwright_tools::{Knowledge, Memory, PracticeForm};

use crate::config::{self, Config, DefaultModel, Loaded, local_candidates};
use crate::context::Gathering;
use crate::lineage::{OwnProcess, is_started_by_a_tool};
use crate::notify::Notifier;
use crate::providers::{ModelProviders, OwnProvider, PRACTICE, ProviderSet, Unadded, read_added};
use crate::secrets::Secrets;
use crate::servers::{McpServers, ServerSet};
use crate::sources::{self, Kept, Sources};
use crate::storage::Place;
use crate::swept_store::SweptStore;
use crate::tidy::Rounds;
use crate::{Environment, HostError};

/// How long local servers and a provider without configured models are asked at the start.
const FIRST_LOOK: Duration = Duration::from_millis(1_500);

/// What a command needs of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The conversations alone: nothing is started.
    Store,
    /// Those, and what is started by name: nothing starts by itself.
    OnDemand,
    /// Everything: MCP servers start in the background.
    Everything,
}

/// A running host. [`Host::shutdown`] ends it with all that it started.
#[derive(Debug)]
pub struct Host {
    pub(crate) loaded: Loaded,
    pub(crate) engine: Engine,
    pub(crate) documents: Arc<dyn Documents>,
    /// When it was last looked for answers to idempotency keys that are old, in milliseconds since 1970 UTC.
    pub(crate) keys_looked_at_ms: AtomicU64,
    /// The same of requests that may be sent again.
    pub(crate) requests_looked_at_ms: AtomicU64,
    /// What is remembered of the rounds of [`Host::tidy`].
    pub(crate) rounds: Mutex<Rounds>,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    pub(crate) texts: Arc<dyn Texts>,
    pub(crate) upkeep: Arc<dyn Upkeep>,
    accounts: Arc<dyn Accounts>,
    pub(crate) knowledge: Option<Knowledge>,
    pub(crate) memory: Option<Memory>,
    pub(crate) providers: Arc<ProviderSet>,
    model_providers: ModelProviders,
    pub(crate) servers: McpServers,
    resources: Arc<ResourceSource>,
    default_model: ModelRef,
    problems: Vec<String>,
    ledger: Arc<dyn ProcessLedger>,
    command_mark: Option<String>,
    /// Where those that share the data tell what their tools start.
    processes: PathBuf,
    /// All that the database is used for.
    pub(crate) store: Arc<dyn Storage>,
    pub(crate) environment: Environment,
    pub(crate) tasks: TaskTracker,
    pub(crate) ending: CancellationToken,
}

/// Makes a host with sources of one's own.
#[derive(Debug)]
pub struct HostBuilder {
    loaded: Loaded,
    environment: Environment,
    own: Vec<Arc<dyn ToolSource>>,
    own_providers: Vec<OwnProvider>,
    needs: Needs,
    telemetry: Telemetry,
    clock: Arc<dyn Clock>,
    shows_apps: bool,
    practises: bool,
}

impl HostBuilder {
    /// Adds a tool source. Its name wins over a configured one.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.own.push(source);
        self
    }

    /// Adds a model provider under a name of its own without `/`, which wins over a configured one. Where no model is configured, the first that
    /// the first of these offers is the default.
    #[must_use]
    pub fn provider(mut self, name: impl Into<String>, provider: Arc<dyn Provider>) -> Self {
        self.own_providers.push((name.into(), provider));
        self
    }

    /// What the engine tells of itself.
    #[must_use]
    pub fn telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// The time of day; the system's where none is given.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Who hears of what happens.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.telemetry.observer = Some(observer);
        self
    }

    /// Tells MCP servers that the pages of their tools can be shown, unless `[apps]` switches that off.
    #[must_use]
    pub fn showing_apps(mut self) -> Self {
        self.shows_apps = self.loaded.config.apps.enabled;
        self
    }

    /// Offers a form to practise with for as long as no model is configured.
    #[must_use]
    pub fn practising(mut self) -> Self {
        self.practises = true;
        self
    }

    /// Starts only what is needed.
    #[must_use]
    pub fn needs(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }

    /// Opens the store, sweeps what a dead process left, and starts what is needed in the background.
    ///
    /// # Errors
    /// [`HostError`], in words for people. Nothing is left behind.
    pub async fn start(self) -> Result<Host, HostError> {
        let Self { loaded, environment, own, own_providers, needs, telemetry, clock, shows_apps, practises } = self;
        check_names(own_providers.iter().map(|(name, _)| name.as_str()))?;
        let policy = policy(&loaded)?;
        let place = Place::of(&loaded)?;
        let store = place.open().await?;
        sources::make_own_root(&loaded);
        // Beside the locks that say who is alive: another database may have the same data directory.
        let processes = place.beside("processes");
        let ledger: Arc<dyn ProcessLedger> = match needs {
            Needs::Store => Arc::new(NoLedger),
            Needs::OnDemand | Needs::Everything => {
                sweep(&processes, &*store).await;
                Arc::new(ledger(&processes, &store.driver().0)?)
            }
        };
        let secrets = Secrets::of(&loaded, &store).await?;
        let own_board = Arc::new(FileBoard::new(board(&loaded), store.driver().0.clone()));
        let Answering { providers, default_model, unadded, mut problems } =
            answering((&loaded, &environment), own_providers, (&*store, &*secrets.providers), (needs, practises)).await?;
        let gathering = Gathering::new(&loaded, &environment, store.clone(), store.clone(), &store.driver().0)?;
        let (artifacts, rates, accounts) = (store.clone(), store.clone(), store.clone());
        let kept = Kept { ledger: ledger.clone(), board: own_board, artifacts, rates, accounts, tokens: secrets.servers };
        let sources = sources::sources((&loaded, &environment), kept, (own, shows_apps))?;
        let Sources { mut built_in, servers, surroundings, completed, problems: mut of_sources, command_mark, .. } = sources;
        problems.append(&mut of_sources);
        let Gathering { gatherer, knowledge, memory, problems: mut untold } = {
            let is_free = |source: &Arc<dyn ToolSource>| !built_in.iter().any(|other| other.name() == source.name());
            let more: Vec<_> = gathering.sources().into_iter().filter(is_free).collect();
            built_in.extend(more);
            gathering
        };
        problems.append(&mut untold);
        let is_free =
            |name: &str| built_in.iter().all(|other| other.name() != name) && servers.iter().all(|server| server.name != name);
        let form = unadded.practice.clone().filter(|_| is_free(PracticeForm::NAME));
        built_in.extend(form.map(|form| Arc::new(form) as Arc<dyn ToolSource>));
        let resources = Arc::clone(&surroundings.resources);
        let set = Arc::new(ServerSet::new(store.clone(), environment.clone(), surroundings, needs, built_in, servers));
        set.refresh().await?;
        let engine = Engine::new(EngineParts {
            providers: providers.clone(),
            sources: set.offered().to_vec(),
            store: Arc::new(SweptStore::new(Arc::clone(&store), processes.clone())),
            clock,
            policy,
            defaults: loaded.config.turn_settings(default_model.clone()),
        });
        engine.stand_behind(Arc::new(OwnProcess { processes: processes.clone() }));
        engine.keep_secrets(environment.secrets().clone());
        engine.tell(telemetry);
        engine.limit_calls(loaded.config.tools.max_concurrent_calls());
        engine.keep_large_results(store.clone(), loaded.config.tools.artifact.large_results());
        if let Some(hold_back) = sources::hold_back(&loaded.config.tools.search) {
            engine.hold_back(hold_back);
        }
        engine.work_in(loaded.config.tools.folder_of(environment.working_directory()));
        engine.keep_budgets(loaded.config.budgets.budgets());
        engine.name_users(store.clone());
        engine.show_besides(Arc::new(gatherer));
        engine.follow_sources(set.clone());
        engine.keep_pins(store.clone()).await;
        engine.hear_completed(completed);
        engine.keep_rules(store.clone()).await;
        engine.keep_erasures(store.clone());
        let servers = McpServers::new(set, engine.clone(), board(&loaded));
        let about = (&loaded, &environment);
        let model_providers =
            ModelProviders::new(about, providers.clone(), (store.clone(), secrets.providers), engine.clone(), unadded);
        limit_waits(&engine, &loaded);
        Ok(Host {
            loaded,
            engine,
            documents: store.clone(),
            keys_looked_at_ms: AtomicU64::new(0),
            requests_looked_at_ms: AtomicU64::new(0),
            rounds: Mutex::default(),
            artifacts: store.clone(),
            texts: store.clone(),
            upkeep: store.clone(),
            accounts: store.clone(),
            store,
            knowledge,
            memory,
            providers,
            model_providers,
            servers,
            resources,
            default_model,
            problems,
            ledger,
            command_mark,
            processes,
            environment,
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
        })
    }
}

/// How long people may take to decide and to answer.
fn limit_waits(engine: &Engine, loaded: &Loaded) {
    if let Some(limit) = loaded.config.approval.timeout() {
        engine.limit_approvals(limit);
    }
    if let Some(limit_ms) = loaded.config.mcp.question_ms {
        engine.limit_questions(Duration::from_millis(limit_ms));
    }
}

impl Host {
    /// A host of a configuration, to which sources of one's own can be added.
    pub fn builder(loaded: Loaded, environment: Environment) -> HostBuilder {
        let telemetry = Telemetry::default();
        HostBuilder {
            loaded,
            environment,
            own: Vec::new(),
            own_providers: Vec::new(),
            needs: Needs::Everything,
            telemetry,
            clock: Arc::new(SystemClock),
            shows_apps: false,
            practises: false,
        }
    }

    /// Starts a host of a configuration.
    ///
    /// # Errors
    /// As [`HostBuilder::start`].
    pub async fn start(loaded: Loaded, environment: &Environment, needs: Needs) -> Result<Self, HostError> {
        // Boxed, so that whoever awaits it need not hold all that a start holds.
        Box::pin(Self::builder(loaded, environment.clone()).needs(needs).start()).await
    }

    /// What drives the turns.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The same host, whose engine acts for this user.
    #[must_use]
    pub fn acting_for(self, user: UserId) -> Self {
        Self { engine: self.engine.acting_for(user), ..self }
    }

    /// Who may use it.
    pub fn accounts(&self) -> &Arc<dyn Accounts> {
        &self.accounts
    }

    /// What removes for good.
    pub fn upkeep(&self) -> &Arc<dyn Upkeep> {
        &self.upkeep
    }

    /// What finds conversations by what was said.
    pub fn texts(&self) -> &Arc<dyn Texts> {
        &self.texts
    }

    /// Where files that people bring are kept.
    pub fn artifacts(&self) -> &Arc<dyn Artifacts> {
        &self.artifacts
    }

    /// What it remembers beside conversations.
    pub fn documents(&self) -> &Arc<dyn Documents> {
        &self.documents
    }

    /// Whether this process was started by a tool of this installation: then no person is at its command line.
    pub fn is_run_by_a_tool(&self) -> bool {
        is_started_by_a_tool(&self.processes)
    }

    /// Its model providers, as they are added and removed.
    pub fn model_providers(&self) -> &ModelProviders {
        &self.model_providers
    }

    /// Its MCP servers.
    pub fn mcp(&self) -> &McpServers {
        &self.servers
    }

    /// Starts those MCP servers of these names of which it is not known what they offer, and waits for the outcomes.
    pub async fn learn(&self, names: &[&str]) {
        let entries = self.servers.set.entries();
        let meant = entries.iter().filter(|entry| names.contains(&entry.name.as_str()));
        let servers = meant.filter_map(|entry| entry.server.as_ref().ok());
        futures_util::future::join_all(servers.map(|server| server.learn())).await;
    }

    /// Its MCP servers, for what they have besides tools.
    pub fn resources(&self) -> &Arc<ResourceSource> {
        &self.resources
    }

    /// What it was started with.
    pub fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// What it was started with, and where each value came from.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// The model that answers where nobody names one.
    pub fn default_model(&self) -> &ModelRef {
        &self.default_model
    }

    /// What is not right and does not hinder the rest.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The mark of the commands that it starts.
    pub(crate) fn command_mark(&self) -> Option<&str> {
        self.command_mark.as_deref()
    }

    /// Tells those whom the configuration names of turns that wait for people, from here on; `base` is where people find the
    /// page. Of all processes over the same data one does.
    ///
    /// # Errors
    /// Where a client for the webhook cannot be made.
    pub async fn keep_telling(&self, base: &str) -> Result<(), HostError> {
        let Some(notifier) = Notifier::new(self, &self.environment, base).await? else { return Ok(()) };
        let ending = self.ending.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = notifier.keep_telling() => {}
                () = ending.cancelled() => {}
            }
        });
        Ok(())
    }

    /// Ends it with all that it started. Open turns stay open and are taken up at the next start.
    pub async fn shutdown(self) {
        self.ending.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.engine.shutdown().await;
        self.servers.set.sign_ins.end().await;
        self.servers.set.settle().await;
        if let Some(mark) = &self.command_mark {
            // What a command left behind in a way that its own end did not see.
            turnwright_mcp::sweep(&sources::command_record(mark)).await;
            self.ledger.ended(mark);
        }
    }
}

/// Where processes tell one another how their MCP servers are.
pub(crate) fn board(loaded: &Loaded) -> PathBuf {
    loaded.data_dir.join("mcp/board")
}

/// Whether providers of the program can have these names.
fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), HostError> {
    let mut seen = Vec::new();
    for name in names {
        let reason = if name.is_empty() || name.contains('/') {
            "it must be a name without `/`, because a model is PROVIDER/MODEL, split at the first `/`"
        } else if seen.contains(&name) {
            "another provider of the program has it; each needs a name of its own"
        } else {
            seen.push(name);
            continue;
        };
        return Err(HostError::ProviderName { name: name.to_owned(), reason });
    }
    Ok(())
}

/// The rules of the configuration, for the tools as it sets them up.
fn policy(loaded: &Loaded) -> Result<Policy, HostError> {
    let tools = &loaded.config.tools;
    let first_root = tools.filesystem.roots.first().and_then(|root| root.to_str());
    let policy = Policy::new(loaded.config.approval.rules.iter().cloned())?;
    Ok(policy.starting_at(first_root).with_shell(tools.command.shell.as_deref()))
}

fn ledger(processes: &Path, driver: &str) -> Result<FileLedger, HostError> {
    FileLedger::open(processes, driver).map_err(|error| HostError::DataDir {
        path: processes.display().to_string(),
        reason: format!("{error}{}", mend(&error)),
    })
}

/// Ends what processes of ours that are gone left running (law 8).
async fn sweep(processes: &Path, store: &dyn Storage) {
    let is_alive = async |driver: &str| {
        // Where nobody can tell it is left alone.
        store.is_alive(&turnwright_core::DriverId(driver.to_owned())).await.unwrap_or(true)
    };
    match sweep_gone(processes, is_alive).await {
        Ok(0) => {}
        Ok(swept) => tracing::info!(swept, "ended what a process which is gone had left running"),
        Err(error) => tracing::warn!(%error, "cannot look for what a process which is gone left running"),
    }
}

/// Who answers.
struct Answering {
    providers: Arc<ProviderSet>,
    default_model: ModelRef,
    unadded: Unadded,
    problems: Vec<String>,
}

async fn answering(
    (loaded, environment): (&Loaded, &Environment),
    own: Vec<OwnProvider>,
    (store, keys): (&dyn Storage, &dyn TokenStore),
    (needs, practises): (Needs, bool),
) -> Result<Answering, HostError> {
    let (added, mut problems) = read_added(loaded, (store, keys), environment).await?;
    let newest = added.last().map(|newest| newest.model.clone());
    let locals = local_candidates(environment).into_iter().map(|mut local| {
        local.model_facts = config::model_facts(&loaded.config, &local.name);
        local
    });
    let found = loaded.endpoints.iter().cloned().chain(locals);
    let added = added.into_iter().map(|added| added.endpoint).collect();
    let providers = Arc::new(ProviderSet::new(own, found, added, &loaded.network));
    let otherwise = default_model(loaded, &providers, needs, &mut problems).await;
    let is_configured = loaded.names_a_model();
    let default_model = newest.filter(|_| !is_configured).unwrap_or_else(|| otherwise.clone());
    let practice = (practises && default_model.provider() == PRACTICE).then(PracticeForm::default);
    let unadded = Unadded { practice, otherwise: (!is_configured).then_some(otherwise) };
    Ok(Answering { providers, default_model, unadded, problems })
}

/// The default model: the configuration's, else one of the program's own, else one found, else practice (docs/configuration.md).
async fn default_model(loaded: &Loaded, providers: &ProviderSet, needs: Needs, problems: &mut Vec<String>) -> ModelRef {
    let practice = || ModelRef::new(PRACTICE, PRACTICE);
    let own = providers.first_own().filter(|_| !loaded.names_a_model());
    let is_asked = own.is_some() || needs == Needs::Everything;
    let known = own
        .map(|name| DefaultModel::FirstOf(name.to_owned()))
        .or_else(|| loaded.default_model(|dialect| turnwright_providers::dialect_named(dialect.as_str()).is_some()));
    match known {
        Some(DefaultModel::Model(model)) => model,
        Some(DefaultModel::FirstOf(name)) if is_asked => match first_model(providers, &name).await {
            Ok(model) => ModelRef::new(name, model),
            Err(reason) => {
                problems.push(format!("provider `{name}` was asked for its models and did not say: {reason}"));
                ModelRef::new(name, "default")
            }
        },
        Some(DefaultModel::FirstOf(name)) => ModelRef::new(name, "default"),
        None if needs == Needs::Everything => {
            let entries = providers.entries();
            let local: Vec<&str> = entries
                .iter()
                .filter(|(_, entry)| entry.endpoint().is_some_and(|found| found.origin == config::EndpointOrigin::Local))
                .map(|(name, _)| name.as_str())
                .collect();
            let answers = futures_util::future::join_all(local.iter().map(|name| first_model(providers, name))).await;
            let found = local.into_iter().zip(answers).find_map(|(name, model)| Some(ModelRef::new(name, model.ok()?)));
            found.unwrap_or_else(practice)
        }
        None => practice(),
    }
}

async fn first_model(providers: &ProviderSet, name: &str) -> Result<String, String> {
    use turnwright_engine::Providers;
    let provider: Arc<dyn Provider> = providers.get(name).map_err(|failure| failure.message)?;
    match tokio::time::timeout(FIRST_LOOK, provider.models()).await {
        Ok(Ok(models)) => {
            let mut names = models.into_iter().map(|model| model.id);
            names.find(|name| !name.is_empty()).ok_or_else(|| "it offers none".to_owned())
        }
        Ok(Err(failure)) => Err(failure.message),
        Err(_) => Err(format!("no answer within {} ms", FIRST_LOOK.as_millis())),
    }
}
