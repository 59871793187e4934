//! The ways in which people are told.

use std::path::PathBuf;
use std::time::Duration;

use turnwright_tools::Program;

use super::event::Event;
use super::webhook::Webhook;
use crate::config::Loaded;
use crate::sources::variables;
use crate::{Environment, HostError};

/// A way to tell people, with how long it may take.
#[derive(Debug)]
pub(super) struct Channel {
    way: Way,
    limit: Duration,
}

#[derive(Debug)]
enum Way {
    Command(Program),
    Webhook(Box<Webhook>),
}

/// Why nobody was told, and how long the other side wants to be left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotTold {
    pub(super) reason: String,
    pub(super) retry_after: Option<Duration>,
}

impl Channel {
    /// One word, by which is kept what it was told.
    pub(super) fn name(&self) -> &'static str {
        match self.way {
            Way::Command(_) => "command",
            Way::Webhook(_) => "webhook",
        }
    }

    /// How much it is told at once: each command is a process here, a request is little.
    pub(super) fn at_once(&self) -> usize {
        match self.way {
            Way::Command(_) => 4,
            Way::Webhook(_) => 16,
        }
    }

    pub(super) async fn tell(&self, event: &Event, now_ms: u64) -> Result<(), NotTold> {
        match &self.way {
            Way::Command(program) => {
                let told = program.tell(&event.body, self.limit).await;
                told.map_err(|reason| NotTold { reason, retry_after: None })
            }
            Way::Webhook(webhook) => webhook.tell(event, now_ms / 1_000, self.limit).await,
        }
    }
}

/// The ways that the configuration names.
///
/// `mark` is by what the next start finds a command that was left.
pub(super) async fn channels(
    loaded: &Loaded,
    environment: &Environment,
    mark: Option<&str>,
) -> Result<Vec<Channel>, HostError> {
    let notify = &loaded.config.notify;
    let limit = Duration::from_millis(notify.timeout_ms);
    let mut channels = Vec::new();
    if let Some((program, arguments)) = notify.command.split_first() {
        let folder = loaded.file.as_deref().and_then(|file| file.parent()).unwrap_or(environment.working_directory());
        // A path starts at the file's folder, a name is looked for.
        let path = if program.contains('/') { folder.join(program) } else { PathBuf::from(program) };
        let program = Program {
            program: path.into_os_string(),
            arguments: arguments.iter().map(Into::into).collect(),
            environment: variables(environment, &notify.env, mark),
            folder: folder.to_owned(),
        };
        channels.push(Channel { way: Way::Command(program), limit });
    }
    if let Some(webhook) = &notify.webhook {
        channels.push(Channel { way: Way::Webhook(Box::new(Webhook::new(webhook, &loaded.network).await?)), limit });
    }
    Ok(channels)
}
