//! What is chosen for sessions: how much may run without being asked, and which model answers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    ConfigOptionUpdate, CurrentModeUpdate, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
    SessionId, SessionMode, SessionModeState, SessionUpdate, SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use agent_client_protocol::{Error, ErrorCode};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};
use turnwright_core::{ApproveMode, ConversationId, ModelRef};
use turnwright_engine::{Conversation, ConversationChange, Engine, EngineError, SettingsOverlay, StoreError};

use super::prompting::failed;

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

/// What the client of each session is to see of what is chosen for its conversation, where it is kept: an editor that begins anew finds
/// it, and so does every other door.
#[derive(Debug, Default)]
pub(super) struct Choices {
    told: Mutex<HashMap<SessionId, Told>>,
    models: OnceCell<Vec<ModelRef>>,
}

/// What a session was told last.
#[derive(Debug, Default)]
struct Told {
    mode: Option<&'static str>,
    model: Option<ModelRef>,
}

impl Choices {
    /// # Errors
    /// Where there is no such mode or session.
    pub(super) async fn choose_mode(&self, request: &SetSessionModeRequest, session: &Session) -> Result<(), Error> {
        let wanted = request.mode_id.to_string();
        let Some((id, .., mode)) = MODES.iter().find(|(id, ..)| *id == wanted) else {
            let known = MODES.map(|(id, ..)| id).join(", ");
            return Err(wrong(format!("there is no mode `{wanted}`; there are {known}")));
        };
        session.change(|chosen| chosen.approve = Some(*mode)).await?;
        self.tell(&request.session_id, |told| told.mode = Some(id));
        Ok(())
    }

    /// # Errors
    /// Where there is no such option, model or session.
    pub(super) async fn choose_option(request: &SetSessionConfigOptionRequest, session: &Session) -> Result<(), Error> {
        let option = request.config_id.to_string();
        if option != MODEL {
            return Err(wrong(format!("there is no option `{option}`; there is {MODEL}")));
        }
        let wanted = request.value.as_value_id().map(ToString::to_string).unwrap_or_default();
        let model = wanted.parse::<ModelRef>().map_err(|error| wrong(format!("the model `{wanted}`: {error}")))?;
        session.engine.providers().get(model.provider()).map_err(|failure| wrong(failure.message))?;
        session.change(|chosen| chosen.model = Some(model)).await
    }

    /// What the conversation's next turn runs with, as the session is told of it.
    pub(super) async fn modes(&self, id: &SessionId, session: &Session) -> Result<SessionModeState, Error> {
        let current = session.mode().await?;
        self.tell(id, |told| told.mode = Some(current));
        let all = MODES.map(|(id, name, what, _)| SessionMode::new(id, name).description(what.to_owned()));
        Ok(SessionModeState::new(current, all.to_vec()))
    }

    /// What was chosen at another door since the session was told.
    pub(super) async fn changes(&self, id: &SessionId, session: &Session) -> Result<Vec<SessionUpdate>, Error> {
        let (mode, model) = (session.mode().await?, session.model().await?);
        let mut changes = Vec::new();
        if self.tell(id, |told| told.mode.replace(mode)) != Some(mode) {
            changes.push(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode)));
        }
        let before = self.tell(id, |told| told.model.clone());
        if before.is_some_and(|before| before != model) {
            changes.push(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(self.options(id, session).await?)));
        }
        Ok(changes)
    }

    pub(super) async fn options(&self, id: &SessionId, session: &Session) -> Result<Vec<SessionConfigOption>, Error> {
        let engine = &session.engine;
        let current = session.model().await?;
        self.tell(id, |told| told.model = Some(current.clone()));
        let mut models = self.models.get_or_init(|| models_of(engine)).await.clone();
        if !models.contains(&current) {
            models.insert(0, current.clone());
        }
        let named = |model: &ModelRef| SessionConfigSelectOption::new(model.to_string(), model.to_string());
        let all: Vec<_> = models.iter().map(named).collect();
        let option = SessionConfigOption::select(MODEL, "Model", current.to_string(), all);
        Ok(vec![option.category(SessionConfigOptionCategory::Model)])
    }

    pub(super) fn forget(&self, session: &SessionId) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
    }

    fn tell<T>(&self, session: &SessionId, tell: impl FnOnce(&mut Told) -> T) -> T {
        tell(self.told.lock().unwrap_or_else(PoisonError::into_inner).entry(session.clone()).or_default())
    }
}

/// The conversation of a session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) engine: Engine,
    pub(super) conversation: ConversationId,
}

impl Session {
    async fn chosen(&self) -> Result<Conversation, Error> {
        self.engine.conversation(&self.conversation).await.map_err(|error| failed(&error))
    }

    async fn mode(&self) -> Result<&'static str, Error> {
        let mode = self.chosen().await?.overlay.approve.unwrap_or(self.engine.defaults().approve);
        // Where nothing runs at all, that is what reading alone comes closest to.
        Ok(MODES.iter().find(|(.., known)| *known == mode).map_or("read-only", |(id, ..)| id))
    }

    async fn model(&self) -> Result<ModelRef, Error> {
        Ok(self.chosen().await?.overlay.model.unwrap_or_else(|| self.engine.defaults().model.clone()))
    }

    /// Chooses something; what was chosen at other doors meanwhile stays.
    async fn change(&self, change: impl FnOnce(&mut SettingsOverlay) + Clone) -> Result<(), Error> {
        loop {
            let of = self.chosen().await?;
            let mut overlay = of.overlay.clone();
            change.clone()(&mut overlay);
            let changed = ConversationChange { overlay: Some(overlay), of: Some(of), ..ConversationChange::default() };
            match self.engine.update(&self.conversation, changed).await {
                Err(EngineError::Store(StoreError::Changed { .. })) => {}
                done => return done.map(drop).map_err(|error| failed(&error)),
            }
        }
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
