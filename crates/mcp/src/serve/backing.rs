//! The port to what has the tools and runs them.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use turnwright_core::ToolDefinition;
use turnwright_engine::{Progress, Reply, ToolFace, ToolOutput};

/// How much of a digest tells calls apart.
const DIGEST_BYTES: usize = 16;

/// Has tools, and runs one when it is asked to.
#[async_trait]
pub trait Backing: Send + Sync + Debug {
    /// The tools of this moment under the names by which they are called. Waits for what is starting.
    async fn tools(&self) -> Vec<OfferedTool>;

    /// A number that changes whenever the tools do.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Begins a call; it runs, or waits for a person, from then on.
    ///
    /// # Errors
    /// [`Refused`] where nothing was begun.
    async fn begin(&self, call: OfferedCall) -> Result<Box<dyn RunningCall>, Refused>;

    /// Finds the call that was begun under `handle`, with everything that happened to it. `call` must be the same one.
    ///
    /// # Errors
    /// [`Refused`] where there is no such call, or it is another.
    async fn find(&self, handle: &str, call: OfferedCall) -> Result<Box<dyn RunningCall>, Refused>;

    /// Finds the call that another process began under `handle` and waits for, to give it what its person said to `client`.
    ///
    /// # Errors
    /// [`Refused`] where there is no such call.
    async fn join(&self, handle: &str, client: &str) -> Result<Box<dyn RunningCall>, Refused>;

    /// What a process that is gone was asked to call for `client`, after this time (in milliseconds since 1970 UTC): the call of
    /// this [`OfferedCall::digest`], and by which handle it is found. `None` where there is none.
    async fn lost(&self, client: &str, digest: &str, since_ms: u64) -> Option<(String, OfferedCall)>;
}

/// A tool as clients are told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// What models are told, under the name by which it is called.
    pub definition: Arc<ToolDefinition>,
    /// What its source says of it besides.
    pub face: Arc<ToolFace>,
}

/// A call that a client asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedCall {
    /// What the client calls itself, for people.
    pub client: String,
    /// The tool, by the name under which it is offered.
    pub tool: String,
    /// Its arguments, as they came.
    pub arguments: Map<String, Value>,
}

impl OfferedCall {
    /// What all calls of this tool with these arguments have in common, and no others.
    pub fn digest(&self) -> String {
        let text = format!("{} {}", self.tool, Value::Object(self.arguments.clone()));
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().take(DIGEST_BYTES).fold(String::new(), |mut hex, byte| {
            // Writing to a string does not fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

/// A call that was begun. Dropping it stops nothing.
#[async_trait]
pub trait RunningCall: Send + Debug {
    /// By which [`Backing::find`] finds it again. Nobody can guess it.
    fn handle(&self) -> &str;

    /// What happens next. Nothing more comes after [`Happened::Ended`].
    async fn next(&mut self) -> Happened;

    /// Takes the decision of a person: whether it may run.
    ///
    /// # Errors
    /// Where it could not be taken, in words for people. That it was decided before is no error.
    async fn decide(&mut self, may_run: bool) -> Result<(), String>;

    /// Takes a person's answer to what its tool asked. That it was answered before is no error.
    ///
    /// # Errors
    /// Where it could not be taken, in words for people.
    async fn answer(&mut self, inquiry: &str, reply: Reply) -> Result<(), String>;

    /// Stops it, and waits until it stands still.
    async fn cancel(&mut self);

    /// What is known of it, where this process ends before it does: its result, or where that will be told.
    async fn put_down(&mut self) -> ToolOutput;

    /// Goes on with it in the background when a person decides; nobody waits for it here.
    async fn leave(self: Box<Self>);
}

/// What happened to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    /// It says how far it is.
    Progress(Progress),
    /// It does not run before a person allows it.
    Asked(Question),
    /// A person decided, here or elsewhere.
    Decided,
    /// Its tool asks a person something, and waits for the answer.
    Inquired(Inquiry),
    /// The tool has its answer to what it asked under this name, from here or elsewhere.
    Answered(String),
    /// It has its result.
    Ended(ToolOutput),
}

/// What a person is asked about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Names it among all that is asked about the call: an answer to an earlier one is none to it.
    pub key: String,
    /// For what leave is asked.
    pub leave: Leave,
    /// What may run or not, and why that is asked.
    pub text: String,
    /// How to allow it where the client cannot ask: for a model, which tells its person.
    pub elsewhere: String,
}

impl Question {
    /// What the keys of such questions begin with; what tools ask have names of their own.
    pub(crate) const KEY: &str = "approval";

    /// The key of the question of this number, from 1, about a call.
    pub fn key_of(number: usize) -> String {
        if number > 1 { format!("{}_{number}", Self::KEY) } else { Self::KEY.to_owned() }
    }
}

/// For what leave is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// To run.
    ToRun,
    /// To run although it may have happened.
    ToRunAgain,
}

/// What a tool asks a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Inquiry {
    /// Its name.
    pub id: String,
    /// What it says, and who says it.
    pub message: String,
    /// What it asks for.
    pub asks: Asks,
}

/// What a tool asks a person for.
#[derive(Debug, Clone, PartialEq)]
pub enum Asks {
    /// The values of a form, described by a flat JSON Schema.
    Form(Value),
    /// To open this address.
    Visit(String),
}

/// Why a call was not begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such tool.
    #[error("Unknown tool: {0}; tools/list tells which there are")]
    NoSuchTool(String),
    /// Something else, in words for a model.
    #[error("{0}")]
    Other(String),
}
