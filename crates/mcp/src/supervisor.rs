//! Keeps one server alive: starts it, watches it, and ends it, as [`crate::supervision`] decides.

use std::convert::Infallible;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::UserId;
use turnwright_engine::SourceState;

use crate::again::{Again, Listed};
use crate::agreed::Offer;
use crate::connection::{self, Connection, NotOpened, Opening, Running};
use crate::era::Era;
use crate::features::asking;
use crate::features::shelving::{self, Shelving};
use crate::features::watching;
use crate::list::{self, Listing, Offered};
use crate::log::{LogOrigin, ServerLog};
use crate::login::KnownTokens;
use crate::secrets;
use crate::supervision::{Course, Next, Supervision, Tools};
use crate::{McpError, ServerConfig, Surroundings, listen, login};

/// How long a burst of changed tools may take to end, and the least time between two lists.
pub(crate) const BURST: Duration = Duration::from_millis(250);
pub(crate) const LIST_GAP: Duration = Duration::from_secs(5);
/// What to do about a server whose program cannot be loaded.
const MISSES_A_PACKAGE: &str =
    "; a package that it needs is missing, or newer than it was written for: pin its version, such as `mcp<2`";
/// How long a server may take to say that it logs as it is asked to.
const LOG_LEVEL_LIMIT: Duration = Duration::from_secs(10);
/// The least time between two words to other processes.
const POST_GAP: Duration = Duration::from_millis(200);
/// How long the exit of a server is waited for whose output ended, and the other way round.
const OTHER_SIGN: Duration = Duration::from_millis(500);

/// What a server is doing.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// Nobody has started it yet.
    Idle,
    /// It is being started.
    Starting,
    /// It answers.
    Ready(Arc<Connection>),
    /// It does not, for this reason.
    Failing(Arc<str>),
    /// It waits for somebody to sign in, for this reason.
    NeedsSignIn(Arc<str>),
    /// It was ended because nobody needed it; a call starts it.
    Unused,
    /// It was ended on purpose.
    Stopped,
}

/// The phase, and how many starts failed so far: who waits for a start sees by it that one failed.
#[derive(Debug, Clone)]
pub(crate) struct Status {
    pub(crate) phase: Phase,
    pub(crate) failed_starts: u64,
    /// It failed too often in a row: until then it is left alone, and calls fail at once.
    pub(crate) rests_until: Option<Instant>,
}

/// What the tasks of a server and its calls share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: ServerConfig,
    pub(crate) surroundings: Surroundings,
    pub(crate) log: Arc<ServerLog>,
    pub(crate) status: watch::Sender<Status>,
    /// A call needs the server: the pause before its restart is over.
    pub(crate) needed: Notify,
    /// The calls that run, or wait for the server.
    pub(crate) users: watch::Sender<usize>,
    offered: Mutex<Offered>,
    /// Why it failed last: what fails again and again is said once.
    last_failure: Mutex<String>,
    /// The sign-in, as [`login::mark`] tells it from others, with which it wanted another one.
    refused: Mutex<Option<String>>,
    /// How often what it offers changed.
    pub(crate) news: watch::Sender<u64>,
    is_known: AtomicBool,
    /// What it offers besides tools.
    pub(crate) shelving: Shelving,
}

impl Shared {
    pub(crate) fn new(config: ServerConfig, mut surroundings: Surroundings) -> Self {
        if config.owner.as_ref().is_some_and(|owner| owner.as_str() != UserId::LOCAL) {
            // What one of several users gives to a server of their own is hidden in what that server says. To the others it may be a word
            // like any other.
            surroundings.secrets = surroundings.secrets.within();
        }
        surroundings.tokens = Arc::new(KnownTokens::new(surroundings.tokens, surroundings.secrets.clone()));
        surroundings.secrets.learn(secrets::of(&config.transport).iter().map(String::as_str));
        let log = Arc::new(ServerLog::new(Arc::clone(&surroundings.clock), surroundings.secrets.clone()));
        let kept = surroundings.definitions.kept(&config);
        let is_known = kept.is_some();
        let offered = Offered::from(kept.map(|tools| Listing::read(&config, &tools)).unwrap_or_default());
        let shelving =
            Shelving::new(surroundings.definitions.kept_shelf(&config).map(|shelf| shelf.without(&surroundings.secrets.now())));
        Self {
            config,
            surroundings,
            log,
            status: watch::Sender::new(Status { phase: Phase::Idle, failed_starts: 0, rests_until: None }),
            needed: Notify::new(),
            users: watch::Sender::new(0),
            offered: Mutex::new(offered),
            last_failure: Mutex::default(),
            refused: Mutex::default(),
            news: watch::Sender::new(0),
            is_known: AtomicBool::new(is_known),
            shelving,
        }
    }

    /// Whether what it offers is known, from this run or from an earlier one.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// What it offers, or offered the last time.
    pub(crate) fn offered(&self) -> Offered {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It wants another sign-in than this one.
    fn refused(&self, mark: Option<String>) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = mark;
    }

    /// Starts it, where it waits for a sign-in and there is another one than it refused: somebody may have signed in in another process.
    pub(crate) async fn look_for_sign_in(&self) {
        if !matches!(self.status.borrow().phase, Phase::NeedsSignIn(_)) {
            return;
        }
        let mark = login::mark(&self.config, &self.surroundings.tokens).await;
        let is_new = mark.is_some() && mark != *self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let wakes = |status: &mut Status| {
            let is_waiting = matches!(status.phase, Phase::NeedsSignIn(_));
            if is_waiting {
                status.phase = Phase::Starting;
                if !self.is_known() {
                    // No call waits for it, and a turn that begins does: what it offers is about to be known for the first time.
                    status.failed_starts = 0;
                }
            }
            is_waiting
        };
        if is_new && self.status.send_if_modified(wakes) {
            self.needed.notify_one();
        }
    }

    /// What it is doing, as everybody is told.
    pub(crate) fn state(&self) -> SourceState {
        match &self.status.borrow().phase {
            _ if !self.config.enabled => SourceState::Disabled,
            Phase::Idle | Phase::Unused | Phase::Stopped => SourceState::Stopped,
            Phase::Starting => SourceState::Starting,
            Phase::Ready(connection) if connection.is_open() => SourceState::Ready,
            // Its end is seen here first; the supervisor names the reason in a moment.
            Phase::Ready(_) => SourceState::Failing { reason: "its connection was closed".to_owned() },
            Phase::Failing(reason) => SourceState::Failing { reason: self.without_secrets(reason) },
            Phase::NeedsSignIn(reason) => SourceState::NeedsSignIn { reason: self.without_secrets(reason) },
        }
    }

    /// As everybody is told it, in the log too.
    pub(crate) fn without_secrets(&self, said: &(impl Display + ?Sized)) -> String {
        self.surroundings.secrets.now().hide(&said.to_string()).into_owned()
    }

    fn post(&self) {
        self.surroundings.board.post(&self.config.name, &self.state(), &self.log.lines());
    }

    fn offer(&self, mut listing: Listing) {
        let mut raw = std::mem::take(&mut listing.raw);
        let secrets = self.surroundings.secrets.now();
        if raw.iter().any(|tool| secrets.are_in(&tool.to_string())) {
            // What is kept is compared with what comes the next time: both are without secrets.
            for tool in &mut raw {
                secrets.hide_in_value(tool);
            }
            listing = Listing::read(&self.config, &raw);
        }
        self.surroundings.definitions.keep(&self.config, &raw);
        self.is_known.store(true, Ordering::Relaxed);
        let new = Offered::from(listing);
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        if offered.quarantined != new.quarantined {
            for bad in new.quarantined.iter() {
                tracing::info!(server = self.config.name, tool = bad.tool, reason = bad.reason, "a tool is not offered");
                self.log.push(LogOrigin::Host, &format!("the tool `{}` is not offered: {}", bad.tool, bad.reason));
            }
        }
        if offered.remarks != new.remarks {
            for remark in new.remarks.iter() {
                self.log.push(LogOrigin::Host, &format!("the tool `{}`: {}", remark.tool, remark.reason));
            }
        }
        *offered = new;
        drop(offered);
        self.news.send_modify(|count| *count += 1);
    }

    /// The run that `stop` ends comes into a phase. Whoever stops it has the last word.
    fn enter(&self, stop: &CancellationToken, phase: Phase, failed_starts: u64) {
        self.status.send_modify(|status| {
            if !stop.is_cancelled() {
                status.phase = phase;
                status.failed_starts += failed_starts;
            }
        });
    }

    /// Its failure, as everybody is told: with its last words.
    fn fail(&self, error: &McpError) -> Arc<str> {
        let mut reason = error.for_people(&self.config);
        if self.log.misses_a_package() {
            reason.push_str(MISSES_A_PACKAGE);
        }
        let reason = self.without_secrets(&self.log.with_last_words(&reason));
        let before = std::mem::replace(&mut *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner), reason.clone());
        if before == reason {
            tracing::debug!(server = self.config.name, reason, "an MCP server failed again");
        } else {
            tracing::warn!(server = self.config.name, reason, "an MCP server failed");
        }
        self.log.push(LogOrigin::Host, &error.to_string());
        reason.into()
    }
}

/// Tells other processes how the server is, whenever that changed.
async fn tell(shared: &Shared) -> Infallible {
    let mut status = shared.status.subscribe();
    loop {
        status.borrow_and_update();
        shared.post();
        tokio::select! {
            _ = status.changed() => {}
            () = shared.log.grew.notified() => {}
        }
        tokio::time::sleep(POST_GAP).await;
    }
}

/// Why a running server is not watched any more.
enum Left {
    Stopped,
    Unused,
    Ended(McpError),
}

/// Runs until `stop` fires; nothing of the server is left then. Begins when the run `before` is over.
pub(crate) async fn supervise(shared: Arc<Shared>, stop: CancellationToken, tracker: TaskTracker, before: Option<TaskTracker>) {
    tokio::select! {
        () = lives(&shared, stop, tracker, before) => {}
        never = tell(&shared) => match never {},
    }
    shared.post();
}

async fn lives(shared: &Shared, stop: CancellationToken, tracker: TaskTracker, before: Option<TaskTracker>) {
    if let Some(before) = before {
        before.wait().await;
    }
    let mut supervision = Supervision::new(shared.config.restart);
    let mut era = None;
    while !stop.is_cancelled() {
        let Some(course) = live(shared, &stop, &tracker, &mut era).await else { break };
        if course == Course::NeedsSignIn {
            shared.refused(login::mark(&shared.config, &shared.surroundings.tokens).await);
        }
        let tools = if shared.is_known() { Tools::Known } else { Tools::Unknown };
        let next = supervision.after(course, tools, RandomState::new().hash_one(shared.config.name.as_str()));
        tracing::debug!(server = shared.config.name, ?course, ?next, "an MCP server is not there");
        if let Next::Rest(rest) | Next::RestThenStart(rest) = next
            && !rest.is_zero()
        {
            let rests_until = Some(Instant::now() + rest);
            shared.status.send_modify(|status| status.rests_until = rests_until);
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = tokio::time::sleep(rest) => {}
            }
            shared.status.send_modify(|status| status.rests_until = None);
        }
        let pause = async {
            match next {
                Next::Start | Next::RestThenStart(_) => {}
                Next::Pause(pause) => tokio::time::sleep(pause).await,
                Next::Wait | Next::Rest(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = shared.needed.notified() => {}
            () = pause => {}
        }
    }
}

/// One life of the server, from its start to its end; `None` where it was stopped. Its phase says how it ended.
async fn live(shared: &Shared, stop: &CancellationToken, tracker: &TaskTracker, era: &mut Option<Era>) -> Option<Course> {
    let spoken_before = *era;
    shared.log.begin_life();
    shared.enter(stop, Phase::Starting, 0);
    let (config, surroundings) = (&shared.config, &shared.surroundings);
    let opening = Opening { config, surroundings, log: &shared.log, tracker, stop };
    match connection::open(&opening, era).await {
        Ok(running) => {
            let since = Instant::now();
            let connection = Arc::clone(&running.connection);
            let Some(error) = watch_over(shared, running, stop).await? else { return Some(Course::Unused) };
            tracing::info!(server = config.name, error = shared.without_secrets(&error), "an MCP server ended");
            Some(match error {
                McpError::NeedsSignIn { .. } => Course::NeedsSignIn,
                _ => Course::Ended { lived: since.elapsed(), has_served: connection.has_served() },
            })
        }
        Err(NotOpened::Stopped) => None,
        // It started so slowly that it was taken for an old one, and named its era after that.
        Err(NotOpened::Failed(_)) if *era == Some(Era::Modern) && spoken_before.is_none() => Some(Course::OtherEra),
        Err(NotOpened::Failed(error)) => {
            let reason = shared.fail(&error);
            shared.enter(stop, phase_of(&error, reason), 1);
            Some(match error {
                McpError::NeedsSignIn { .. } => Course::NeedsSignIn,
                _ => Course::NotStarted,
            })
        }
    }
}

/// The phase that a failure leads to.
fn phase_of(error: &McpError, reason: Arc<str>) -> Phase {
    match error {
        McpError::NeedsSignIn { .. } => Phase::NeedsSignIn(reason),
        _ => Phase::Failing(reason),
    }
}

/// Holds a running server until it ends or is not needed; `None` where it was stopped, no error where nobody needed it. Nothing of
/// it runs any more then.
async fn watch_over(shared: &Shared, running: Running, stop: &CancellationToken) -> Option<Option<McpError>> {
    let Running { mut carrier, mut service, connection, listing } = running;
    shared.offer(listing);
    shared.enter(stop, Phase::Ready(Arc::clone(&connection)), 0);
    let wire = &connection.wire;
    let left = tokio::select! {
        biased;
        () = stop.cancelled() => Left::Stopped,
        how = carrier.exited() => {
            // What it answered last may still be in its pipe.
            let _ = tokio::time::timeout(OTHER_SIGN, wire.closed.cancelled()).await;
            Left::Ended(McpError::Ended { how })
        }
        // Where its output was given up both signs are there.
        () = wire.is_condemned.cancelled() => {
            let why = wire.condemned_because().unwrap_or("it does not work").to_owned();
            Left::Ended(match wire.challenged() {
                Some(asked) => McpError::NeedsSignIn { reason: "it refused a request".into(), challenge: Some(asked.into()) },
                None => McpError::Condemned { why },
            })
        }
        () = wire.closed.cancelled() => {
            let how = carrier.exited_within(OTHER_SIGN).await;
            Left::Ended(McpError::Ended { how: how.unwrap_or_else(|| carrier.closed().to_owned()) })
        }
        () = unused(shared, &connection, stop) => Left::Unused,
        never = Box::pin(keep_up(shared, &connection)) => match never {},
    };
    match &left {
        Left::Stopped => connection.finish("it was stopped".to_owned()),
        Left::Unused => connection.finish("nobody needed it".to_owned()),
        Left::Ended(error) => {
            carrier.last_lines().await;
            let reason = shared.fail(error);
            shared.enter(stop, phase_of(error, Arc::clone(&reason)), 0);
            connection.finish(reason.to_string());
        }
    }
    // Closes its input, which is how a server is asked to leave.
    let grace = shared.config.stop_grace;
    if let Err(error) = service.close_with_timeout(grace).await {
        tracing::error!(server = shared.config.name, %error, "the protocol's task ended badly");
    }
    drop(service);
    if matches!(left, Left::Stopped | Left::Unused) {
        let _ = carrier.exited_within(grace).await;
    }
    carrier.end(grace).await;
    match left {
        Left::Stopped => None,
        Left::Unused => Some(None),
        Left::Ended(error) => Some(Some(error)),
    }
}

/// Waits until nobody needed the server for as long as it may run so, where there is such a limit. Its phase says then that a
/// call starts it.
async fn unused(shared: &Shared, connection: &Arc<Connection>, stop: &CancellationToken) {
    let Some(limit) = shared.config.idle_stop else { return std::future::pending().await };
    let mut users = shared.users.subscribe();
    loop {
        // The sender lives as long as what is shared.
        let _ = users.wait_for(|users| *users == 0).await;
        tokio::select! {
            biased;
            _ = users.wait_for(|users| *users > 0) => continue,
            () = tokio::time::sleep(limit) => {}
        }
        // A call counts itself first and looks at the phase then: one of both sees the other.
        shared.enter(stop, Phase::Unused, 0);
        if *shared.users.borrow() == 0 {
            return;
        }
        shared.enter(stop, Phase::Ready(Arc::clone(connection)), 0);
    }
}

/// Follows whatever changes at a running server.
async fn keep_up(shared: &Shared, connection: &Connection) -> Infallible {
    set_log_level(shared, connection).await;
    let hearing = async {
        if connection.agreed.is_modern() {
            listen::listen(shared, connection).await
        } else {
            watching::subscribe(shared, connection).await
        }
    };
    let (never, ..) = tokio::join!(
        refresh(shared, connection),
        shelving::keep(shared, connection),
        watching::hear(shared, connection),
        hearing
    );
    never
}

/// Asks a server of the older form for the log messages that are wanted. One of 2026-07-28 is told with each request.
async fn set_log_level(shared: &Shared, connection: &Connection) {
    const SET: &str = "logging/setLevel";
    let Some(level) = shared.config.log_level.filter(|_| connection.agreed.offers(Offer::Logging)) else { return };
    if connection.agreed.is_modern() {
        let _ = connection.wire.log_level.set(level.as_str());
        return;
    }
    if let Err(error) = asking::ask(connection, SET, json!({"level": level.as_str()}), LOG_LEVEL_LIMIT).await {
        shared.log.push(LogOrigin::Host, &format!("{SET}: {}", error.in_words(SET)));
    }
}

/// Lists the tools again when they changed: once for each burst of notices, and not more often than the gap allows. Also when
/// the time is over for which the server said that its list stays true, and a while after it failed to list them.
async fn refresh(shared: &Shared, connection: &Connection) -> Infallible {
    let mut again = Again::default();
    loop {
        let fresh_for = shared.offered().fresh_for;
        let out_of_date = async {
            match fresh_for {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = connection.wire.tools_changed.notified() => tokio::time::sleep(BURST).await,
            () = out_of_date => {}
            () = again.due() => {}
        }
        match list::list((&connection.peer, &connection.tracker), &shared.config, shared.config.start_limit).await {
            Ok(listing) => {
                again.after(Listed::Known);
                shared.offer(listing);
            }
            Err(error) => {
                again.after(Listed::Failed);
                let (server, reason) = (&shared.config.name, shared.without_secrets(&error));
                tracing::warn!(server, error = reason, "the tools of an MCP server changed and could not be listed");
                shared.log.push(LogOrigin::Host, &error.to_string());
            }
        }
        tokio::time::sleep(LIST_GAP).await;
    }
}

#[cfg(test)]
mod tests {
    use turnwright_engine::SystemClock;

    use super::*;
    use crate::HttpConfig;

    #[test]
    fn what_one_of_several_users_gives_to_a_server_is_no_secret_of_the_others() {
        let hidden = |owner: Option<&str>| {
            let surroundings = Surroundings::new(Arc::new(SystemClock));
            let known = surroundings.secrets.clone();
            let mut http = HttpConfig::new("http://127.0.0.1:9/");
            http.headers = vec![("Authorization".to_owned(), "Bearer container".to_owned())];
            let mut config = ServerConfig::new("s", http);
            config.owner = owner.map(|owner| owner.parse().unwrap());
            let shared = Shared::new(config, surroundings);
            [known.now(), shared.log.secrets()].map(|secrets| secrets.hide("container").into_owned())
        };
        assert_eq!(hidden(Some("u_0000000000000001")), ["container", "[secret]"]);
        assert_eq!(hidden(Some(UserId::LOCAL)), ["[secret]", "[secret]"]);
        assert_eq!(hidden(None), ["[secret]", "[secret]"]);
    }

    #[test]
    fn why_a_server_of_one_of_several_users_failed_is_told_and_logged_without_what_they_gave_to_it() {
        let mut http = HttpConfig::new("http://127.0.0.1:9/");
        http.headers = vec![("X-Api-Token".to_owned(), "sesame-open-1234567".to_owned())];
        let mut config = ServerConfig::new("s", http);
        config.owner = Some("u_0000000000000001".parse().unwrap());
        let shared = Shared::new(config, Surroundings::new(Arc::new(SystemClock)));
        let told = shared.fail(&McpError::Condemned { why: "token sesame-open-1234567 has expired".to_owned() });
        let logged = shared.last_failure.lock().unwrap().clone();
        assert_eq!((logged.as_str(), told.contains("token [secret] has expired")), (&*told, true));
    }
}
