//! What the two ends of a connection share: the calls in flight, where their progress goes, and what was noticed.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::model::{NumberOrString, ProgressToken, RequestId};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turnwright_engine::{Asks, Completed, Progress, ProgressSink, Standstill};

use crate::era::Era;

/// Calls in a row without any answer, after which a server is taken for dead.
const SILENT_CALLS: u32 = 3;
/// How long a server may still be at a call that was given up, and ask something about it: not every one heeds a cancel.
const GIVEN_UP_FOR: Duration = Duration::from_mins(1);
/// The most of them that are remembered, the newest.
const MAX_GIVEN_UP: usize = 1_000;
/// Changed resources that are remembered until somebody looks, and how long the address of one may be.
const MAX_CHANGED: usize = 1_000;
const MAX_URI_BYTES: usize = 8 << 10;

/// Travels with a request, inside the process alone, so that its progress finds the way back.
#[derive(Debug, Clone)]
pub(crate) struct ProgressRoute(pub(crate) Arc<dyn ProgressSink>);

/// Travels with a request like its [`ProgressRoute`]: where the server's questions go that belong to it.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) asks: Arc<dyn Asks>,
    pub(crate) standstill: Standstill,
}

#[derive(Debug)]
struct InFlight {
    id: RequestId,
    token: Option<ProgressToken>,
    progress: Option<Arc<dyn ProgressSink>>,
    door: Option<Door>,
    is_cancelled: bool,
    /// It is answered when its subscription ends, if ever.
    is_open_end: bool,
}

/// A call that nobody waits for any more, and that its server has not answered.
#[derive(Debug)]
struct GivenUp {
    id: RequestId,
    by: Option<String>,
    until: Instant,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    in_flight: Mutex<Vec<InFlight>>,
    given_up: Mutex<VecDeque<GivenUp>>,
    silent_calls: AtomicU32,
    /// The server says that its tools changed.
    pub(crate) tools_changed: Notify,
    /// It says that its resources or prompts changed.
    pub(crate) shelf_changed: Notify,
    /// It says that single resources changed, see [`Wire::changed_resources`].
    pub(crate) resource_changed: Notify,
    changed: Mutex<BTreeSet<String>>,
    /// Who is told that what the server wanted to have opened is done, and the server's name.
    pub(crate) completed: OnceLock<(mpsc::Sender<Completed>, String)>,
    /// The server says that something changed about a task.
    pub(crate) task_changed: Notify,
    /// What it is asked to log with every request (2026-07-28), where it is.
    pub(crate) log_level: OnceLock<&'static str>,
    /// The session that it opened, where it has sessions (over HTTP, before 2026-07-28).
    pub(crate) session: OnceLock<Arc<str>>,
    /// The output ended, or nobody reads it any more.
    pub(crate) closed: CancellationToken,
    late_era: OnceLock<Era>,
    condemned: OnceLock<String>,
    challenge: OnceLock<String>,
    /// Its messages are spread over many lines.
    pub(crate) is_spread: OnceLock<()>,
    not_taken: Mutex<Vec<(RequestId, &'static str)>>,
    /// The connection does not work any more, see [`Wire::condemn`].
    pub(crate) is_condemned: CancellationToken,
}

impl Wire {
    /// A request goes out.
    pub(crate) fn sent(&self, id: RequestId, token: Option<ProgressToken>, route: Option<ProgressRoute>, door: Option<Door>) {
        let progress = route.map(|route| route.0);
        self.with(|calls| calls.push(InFlight { id, token, progress, door, is_cancelled: false, is_open_end: false }));
    }

    /// A request goes out that is answered when it is over.
    pub(crate) fn subscribed(&self, id: RequestId) {
        let call = InFlight { id, token: None, progress: None, door: None, is_cancelled: false, is_open_end: true };
        self.with(|calls| calls.push(call));
    }

    /// The calls to which a question of the server may belong, the newest last: it does not say to which. Where calls of several
    /// conversations run, or one of another user was given up a moment ago, nobody is asked rather than the wrong one.
    ///
    /// # Errors
    /// Why nobody can be asked, for the server.
    pub(crate) fn doors(&self) -> Result<Vec<(RequestId, Door)>, &'static str> {
        let doors = self.with(|calls| {
            let open = calls.iter().filter(|call| !call.is_cancelled);
            let doors: Vec<_> = open.filter_map(|call| Some((call.id.clone(), call.door.clone()?))).collect();
            let (_, newest) = doors.last().ok_or("no call is open to which the question could belong")?;
            if !doors.iter().all(|(_, door)| door.asks.whose() == newest.asks.whose()) {
                return Err("calls of several conversations are open, and the question does not say to which it belongs");
            }
            let mut cancelled = calls.iter().filter(|call| call.is_cancelled).filter_map(|call| call.door.as_ref());
            let is_for_them = cancelled.all(|door| door.asks.by() == newest.asks.by());
            if is_for_them { Ok(doors) } else { Err(OF_ANOTHER) }
        })?;
        let by = doors.last().and_then(|(_, newest)| newest.asks.by());
        if self.with_given_up(|calls| calls.iter().all(|call| call.by.as_deref() == by)) { Ok(doors) } else { Err(OF_ANOTHER) }
    }

    /// Whether a call is open, and its questions can be answered.
    pub(crate) fn is_open(&self, id: &RequestId) -> bool {
        self.with(|calls| calls.iter().any(|call| is_same(&call.id, id) && !call.is_cancelled))
    }

    /// The same where it may have been told whose call the question belongs to: that alone then.
    ///
    /// # Errors
    /// As [`Wire::doors`].
    pub(crate) fn doors_of(&self, call: Option<&RequestId>) -> Result<Vec<(RequestId, Door)>, &'static str> {
        let known = call.and_then(|call| {
            self.with(|calls| {
                let known = calls.iter().find(|known| is_same(&known.id, call))?;
                Some((known.id.clone(), known.door.clone()?))
            })
        });
        if call.is_some_and(|call| self.with_given_up(|calls| calls.iter().any(|known| is_same(&known.id, call)))) {
            return Err("the call to which the question belongs is over");
        }
        known.map_or_else(|| self.doors(), |known| Ok(vec![known]))
    }

    /// Its answer is there.
    pub(crate) fn answered(&self, id: &RequestId) {
        self.silent_calls.store(0, Ordering::Relaxed);
        self.take(id);
        self.with_given_up(|calls| calls.retain(|call| !is_same(&call.id, id)));
    }

    /// Nobody waits for the answer any more. Returns whether the server was told so before.
    pub(crate) fn forget(&self, id: &RequestId) -> bool {
        let Some(call) = self.take(id) else { return false };
        if let Some(door) = call.door {
            let (id, by) = (call.id, door.asks.by().map(str::to_owned));
            self.with_given_up(|calls| {
                if calls.len() >= MAX_GIVEN_UP {
                    calls.pop_front();
                }
                calls.push_back(GivenUp { id, by, until: Instant::now() + GIVEN_UP_FOR });
            });
        }
        call.is_cancelled
    }

    fn take(&self, id: &RequestId) -> Option<InFlight> {
        // They stay in their order: a question goes to the newest.
        self.with(|calls| Some(calls.remove(calls.iter().position(|call| is_same(&call.id, id))?)))
    }

    /// The server was told that the answer is not needed; it may still come.
    pub(crate) fn cancelled(&self, id: &RequestId) {
        self.with(|calls| {
            if let Some(call) = calls.iter_mut().find(|call| is_same(&call.id, id)) {
                call.is_cancelled = true;
            }
        });
    }

    /// Whether an answer with this id, which came, is waited for. A call that was given up is over with it.
    pub(crate) fn expects(&self, id: &RequestId) -> bool {
        self.with_given_up(|calls| calls.retain(|call| !is_same(&call.id, id)));
        self.with(|calls| calls.iter().any(|call| is_same(&call.id, id)))
    }

    /// The one request in flight, where there is exactly one.
    pub(crate) fn lone(&self) -> Option<RequestId> {
        self.with(|calls| {
            let mut calls = calls.iter().filter(|call| !call.is_open_end);
            match (calls.next(), calls.next()) {
                (Some(only), None) => Some(only.id.clone()),
                _ => None,
            }
        })
    }

    /// `notifications/progress` came.
    pub(crate) fn progressed(&self, params: Option<Value>) {
        let Some(Value::Object(mut params)) = params else { return };
        let token = match params.remove("progressToken") {
            Some(Value::Number(number)) => number.as_i64().map(NumberOrString::Number),
            Some(Value::String(text)) => Some(NumberOrString::String(text.into())),
            _ => None,
        };
        let (Some(token), Some(progress)) = (token, params.get("progress").and_then(Value::as_f64)) else { return };
        self.silent_calls.store(0, Ordering::Relaxed);
        let sink = self.with(|calls| {
            let mut calls = calls.iter();
            calls
                .find(|call| call.token.as_ref().is_some_and(|own| is_same(&own.0, &token)))
                .and_then(|call| call.progress.clone())
        });
        if let Some(sink) = sink {
            let message = match params.remove("message") {
                Some(Value::String(message)) => Some(message),
                _ => None,
            };
            sink.report(Progress { progress, total: params.get("total").and_then(Value::as_f64), message });
        }
    }

    /// `notifications/elicitation/complete` came.
    pub(crate) fn completed(&self, params: Option<&Value>) {
        let id = params.and_then(|params| params.get("elicitationId")).and_then(Value::as_str).filter(|id| !id.is_empty());
        if let (Some((told, server)), Some(id)) = (self.completed.get(), id) {
            // Where too many are told at once, people answer themselves.
            let _ = told.try_send(Completed { source: server.clone(), key: id.to_owned() });
        }
    }

    /// `notifications/resources/updated` came.
    pub(crate) fn updated(&self, params: Option<&Value>) {
        let Some(uri) = params.and_then(|params| params.get("uri")).and_then(Value::as_str) else { return };
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        if changed.len() < MAX_CHANGED && uri.len() <= MAX_URI_BYTES {
            changed.insert(uri.to_owned());
            self.resource_changed.notify_one();
        }
    }

    /// The resources that changed since this was asked.
    pub(crate) fn changed_resources(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A call ran out of its time.
    pub(crate) fn timed_out(&self) {
        if self.silent_calls.fetch_add(1, Ordering::Relaxed) + 1 >= SILENT_CALLS {
            self.condemn(&format!("it answered none of {SILENT_CALLS} calls in a row"));
        }
    }

    /// The answer to the probe came after it was given up.
    pub(crate) fn late_era(&self, era: Era) {
        let _ = self.late_era.set(era);
    }

    /// The era that a late answer named.
    pub(crate) fn known_late(&self) -> Option<Era> {
        self.late_era.get().copied()
    }

    /// Asks for the end of the connection, since it does not work any more.
    pub(crate) fn condemn(&self, why: &str) {
        // The first reason is the one that counts.
        let _ = self.condemned.set(why.to_owned());
        self.is_condemned.cancel();
    }

    /// Why it was condemned.
    pub(crate) fn condemned_because(&self) -> Option<&str> {
        self.condemned.get().map(String::as_str)
    }

    /// A request was refused before the server looked at what it asks for, as the end of "The MCP server NAME …".
    pub(crate) fn not_taken(&self, id: RequestId, why: &'static str) {
        self.not_taken.lock().unwrap_or_else(PoisonError::into_inner).push((id, why));
    }

    /// Why a request was certainly not run, where that is known.
    pub(crate) fn why_not_taken(&self, id: &RequestId) -> Option<&'static str> {
        let not_taken = self.not_taken.lock().unwrap_or_else(PoisonError::into_inner);
        not_taken.iter().find(|(own, _)| own == id).map(|(_, why)| *why)
    }

    /// The server wants us to sign in before it does anything more; `asked` is its `WWW-Authenticate` header.
    pub(crate) fn challenge(&self, asked: &str) {
        let _ = self.challenge.set(asked.to_owned());
        self.condemn("it needs a sign-in");
    }

    /// What it said when it wanted us to sign in.
    pub(crate) fn challenged(&self) -> Option<&str> {
        self.challenge.get().map(String::as_str)
    }

    /// Those that may still ask something.
    fn with_given_up<T>(&self, work: impl FnOnce(&mut VecDeque<GivenUp>) -> T) -> T {
        let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        given_up.retain(|call| call.until > now);
        work(&mut given_up)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Vec<InFlight>) -> T) -> T {
        work(&mut self.in_flight.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Why nobody is asked where somebody else may be meant.
const OF_ANOTHER: &str = "a call of another user was stopped a moment ago, and the question does not say to which it belongs";

/// Whether two ids are the same one; some servers answer with a number's text.
fn is_same(own: &NumberOrString, other: &NumberOrString) -> bool {
    match (own, other) {
        (NumberOrString::Number(own), NumberOrString::String(other)) => other.parse() == Ok(*own),
        (own, other) => own == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default)]
    struct Reports(Mutex<Vec<Progress>>);
    impl ProgressSink for Reports {
        fn report(&self, progress: Progress) {
            self.0.lock().unwrap().push(progress);
        }
    }

    #[test]
    fn progress_goes_to_its_own_call_until_that_is_answered() {
        let (wire, reports) = (Wire::default(), Arc::new(Reports::default()));
        let (id, token) = (NumberOrString::Number(4), ProgressToken(NumberOrString::Number(9)));
        wire.sent(id.clone(), Some(token), Some(ProgressRoute(reports.clone())), None);
        let params = json!({"progressToken": 9, "progress": 1, "total": 2.5, "message": "half"});
        wire.progressed(Some(params.clone()));
        wire.progressed(Some(json!({"progressToken": 8, "progress": 1})));
        wire.answered(&NumberOrString::String("4".into()));
        wire.progressed(Some(params));
        let expected = Progress { progress: 1.0, total: Some(2.5), message: Some("half".into()) };
        assert_eq!(*reports.0.lock().unwrap(), [expected]);
        assert_eq!(wire.lone(), None);
    }

    /// Somebody's conversation.
    #[derive(Debug)]
    struct Of(&'static str, &'static str);
    #[async_trait::async_trait]
    impl Asks for Of {
        async fn ask(&self, _ask: turnwright_core::Elicitation) -> Option<turnwright_engine::Reply> {
            None
        }
        fn whose(&self) -> Option<&str> {
            Some(self.1)
        }
        fn by(&self) -> Option<&str> {
            Some(self.0)
        }
    }

    fn sent(wire: &Wire, id: i64, by: &'static str, whose: &'static str) {
        let door = Door { asks: Arc::new(Of(by, whose)), standstill: Standstill::default() };
        wire.sent(NumberOrString::Number(id), None, None, Some(door));
    }

    fn asked(wire: &Wire) -> Result<String, &'static str> {
        wire.doors().map(|doors| doors.last().unwrap().1.asks.whose().unwrap_or_default().to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_asked_what_may_belong_to_a_call_of_another_user_that_was_stopped() {
        let (wire, id) = (Wire::default(), NumberOrString::Number);
        sent(&wire, 1, "anna", "annas first");
        sent(&wire, 2, "ben", "bens");
        assert!(asked(&wire).unwrap_err().starts_with("calls of several conversations are open"));
        wire.cancelled(&id(1));
        assert_eq!(asked(&wire), Err(OF_ANOTHER), "its answer may still come");
        wire.forget(&id(1));
        assert_eq!(asked(&wire), Err(OF_ANOTHER));
        let of_the_stopped = wire.doors_of(Some(&id(1))).map(drop).unwrap_err();
        assert_eq!(of_the_stopped, "the call to which the question belongs is over");
        assert!(wire.doors_of(Some(&id(2))).is_ok(), "whose it is was said");
        tokio::time::advance(GIVEN_UP_FOR).await;
        assert_eq!(asked(&wire), Ok("bens".to_owned()));
        wire.answered(&id(2));
        // One that is answered after all is over.
        sent(&wire, 3, "anna", "annas first");
        wire.forget(&id(3));
        sent(&wire, 4, "ben", "bens");
        assert_eq!(asked(&wire), Err(OF_ANOTHER));
        assert!(!wire.expects(&id(3)));
        assert_eq!(asked(&wire), Ok("bens".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_users_other_conversation_is_asked_after_a_stop() {
        let (wire, id) = (Wire::default(), NumberOrString::Number);
        sent(&wire, 1, "anna", "annas first");
        sent(&wire, 2, "anna", "annas second");
        wire.cancelled(&id(1));
        assert_eq!(asked(&wire), Ok("annas second".to_owned()));
        wire.forget(&id(1));
        assert_eq!(asked(&wire), Ok("annas second".to_owned()));
    }

    #[test]
    fn a_server_that_answers_nothing_is_condemned() {
        let wire = Wire::default();
        wire.timed_out();
        wire.timed_out();
        wire.answered(&NumberOrString::Number(0));
        wire.timed_out();
        wire.timed_out();
        assert_eq!(wire.condemned_because(), None);
        wire.timed_out();
        assert_eq!(wire.condemned_because(), Some("it answered none of 3 calls in a row"));
    }
}
