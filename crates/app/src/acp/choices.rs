//! What a client chose for its sessions: how much may run without being asked, and which model answers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionId, SessionMode, SessionModeState,
    SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use agent_client_protocol::{Error, ErrorCode};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};
use turnwright_core::{ApproveMode, ModelRef};
use turnwright_engine::{Engine, SettingsOverlay};

/// The approve modes as the protocol's session modes.
const MODES: [(&str, &str, &str, ApproveMode); 3] = [
    ("ask", "Ask", "Asks before a call that is not declared read-only", ApproveMode::Ask),
    ("read-only", "Read only", "Runs what is declared read-only, denies the rest", ApproveMode::ReadOnly),
    ("all", "Everything", "Runs every call that no rule denies", ApproveMode::All),
];

/// The name of the option that chooses the model.
const MODEL: &str = "model";

/// How long a session waits for providers to say which models they have.
const MODELS_TIME: Duration = Duration::from_secs(2);

/// What clients chose, by session.
#[derive(Debug, Default)]
pub(super) struct Choices {
    chosen: Mutex<HashMap<SessionId, Chosen>>,
    models: OnceCell<Vec<ModelRef>>,
}

#[derive(Debug, Clone, Default)]
struct Chosen {
    approve: Option<ApproveMode>,
    model: Option<ModelRef>,
}

impl Choices {
    pub(super) fn choose_mode(&self, request: &SetSessionModeRequest) -> Result<(), Error> {
        let wanted = request.mode_id.to_string();
        let Some((.., mode)) = MODES.iter().find(|(id, ..)| *id == wanted) else {
            let known = MODES.map(|(id, ..)| id).join(", ");
            return Err(wrong(format!("there is no mode `{wanted}`; there are {known}")));
        };
        self.change(&request.session_id, |chosen| chosen.approve = Some(*mode));
        Ok(())
    }

    /// # Errors
    /// Where there is no such option, or no such model.
    pub(super) fn choose_option(&self, request: &SetSessionConfigOptionRequest, engine: &Engine) -> Result<(), Error> {
        let option = request.config_id.to_string();
        if option != MODEL {
            return Err(wrong(format!("there is no option `{option}`; there is {MODEL}")));
        }
        let wanted = request.value.as_value_id().map(ToString::to_string).unwrap_or_default();
        let model = wanted.parse::<ModelRef>().map_err(|error| wrong(format!("the model `{wanted}`: {error}")))?;
        engine.providers().get(model.provider()).map_err(|failure| wrong(failure.message))?;
        self.change(&request.session_id, |chosen| chosen.model = Some(model));
        Ok(())
    }

    /// What a turn of the session runs with.
    pub(super) fn overlay(&self, session: &SessionId, engine: &Engine) -> SettingsOverlay {
        let Chosen { approve, model } = self.of(session);
        SettingsOverlay { approve: Some(approve.unwrap_or(engine.defaults().approve)), model, ..SettingsOverlay::default() }
    }

    pub(super) fn modes(&self, session: &SessionId, engine: &Engine) -> SessionModeState {
        let mode = self.of(session).approve.unwrap_or(engine.defaults().approve);
        // Where nothing runs at all, that is what reading alone comes closest to.
        let current = MODES.iter().find(|(.., known)| *known == mode).map_or("read-only", |(id, ..)| id);
        let all = MODES.map(|(id, name, what, _)| SessionMode::new(id, name).description(what.to_owned()));
        SessionModeState::new(current, all.to_vec())
    }

    pub(super) async fn options(&self, session: &SessionId, engine: &Engine) -> Vec<SessionConfigOption> {
        let current = self.of(session).model.unwrap_or_else(|| engine.defaults().model.clone());
        let mut models = self.models.get_or_init(|| models_of(engine)).await.clone();
        if !models.contains(&current) {
            models.insert(0, current.clone());
        }
        let named = |model: &ModelRef| SessionConfigSelectOption::new(model.to_string(), model.to_string());
        let all: Vec<_> = models.iter().map(named).collect();
        let option = SessionConfigOption::select(MODEL, "Model", current.to_string(), all);
        vec![option.category(SessionConfigOptionCategory::Model)]
    }

    pub(super) fn forget(&self, session: &SessionId) {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
    }

    fn of(&self, session: &SessionId) -> Chosen {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned().unwrap_or_default()
    }

    fn change(&self, session: &SessionId, change: impl FnOnce(&mut Chosen)) {
        change(self.chosen.lock().unwrap_or_else(PoisonError::into_inner).entry(session.clone()).or_default());
    }
}

/// The models of all providers that say in time which they have.
async fn models_of(engine: &Engine) -> Vec<ModelRef> {
    let providers = engine.providers();
    let names = providers.names();
    let until = Instant::now() + MODELS_TIME;
    let mut found = Vec::new();
    for name in names {
        let Ok(provider) = providers.get(&name) else { continue };
        if let Ok(Ok(models)) = timeout_at(until, provider.models()).await {
            found.extend(models.into_iter().map(|model| ModelRef::new(&*name, model.id)));
        }
    }
    found
}

fn wrong(what: String) -> Error {
    Error::new(ErrorCode::INVALID_PARAMS, what)
}
