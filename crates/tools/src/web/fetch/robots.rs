//! What sites ask of programs (RFC 9309).

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use robotxt::Robots as Rules;
use tokio::time::Instant;
use turnwright_core::ToolErrorKind;
use turnwright_engine::source::ToolError;

use crate::net::{Answer, AnswerLimits, Asking, Failure, Reach, Step, Target};

/// The name by which `robots.txt` knows this program.
const NAME: &str = "Turnwright";
/// The most of a `robots.txt` that is read (RFC 9309, section 2.5), in bytes.
const MAX_BYTES: usize = 500 * 1024;
/// How long one holds (RFC 9309, section 2.4: at most a day).
const HOLDS: Duration = Duration::from_hours(1);
/// How long it is taken for broken where its server failed: most that fail do so for a moment.
const BROKEN_HOLDS: Duration = Duration::from_mins(1);
/// The most sites of which it is known.
const MAX_SITES: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Whether what a site asks of programs is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manners {
    /// It is.
    Honoured,
    /// It is not looked at.
    Ignored,
}

/// Asks sites only for what their `robots.txt` allows.
#[derive(Debug)]
pub(super) struct Robots {
    manners: Manners,
    known: Mutex<LruCache<String, (Asks, Instant)>>,
}

/// What a site asks for.
#[derive(Debug, Clone)]
enum Asks {
    For(Arc<Rules>),
    /// Nobody knows: its server failed, with this status. It is left alone (RFC 9309, section 2.3.1.4).
    Unknown(u16),
}

impl Asks {
    fn holds(&self) -> Duration {
        match self {
            Self::For(_) => HOLDS,
            Self::Unknown(_) => BROKEN_HOLDS,
        }
    }
}

impl Robots {
    pub(super) fn new(manners: Manners) -> Self {
        Self { manners, known: Mutex::new(LruCache::new(MAX_SITES)) }
    }

    /// Gets what is there, each redirect being one that its site allows.
    pub(super) async fn get(
        &self,
        reach: &Reach,
        target: Target,
        asking: &Asking,
        limits: AnswerLimits,
    ) -> Result<Answer, ToolError> {
        let following = async {
            let mut target = target;
            for _ in 0..=Reach::MAX_REDIRECTS {
                self.allows(reach, &target, asking, limits).await?;
                match reach.step(&target, asking, limits.max_bytes).await? {
                    Step::There(answer) => return Ok(answer),
                    Step::Elsewhere(next) => target = next,
                }
            }
            Err(ToolError::from(Failure::Redirects { limit: Reach::MAX_REDIRECTS }))
        };
        let late = || Err(Failure::Timeout { limit: limits.total }.into());
        tokio::time::timeout(limits.total, following).await.unwrap_or_else(|_| late())
    }

    async fn allows(&self, reach: &Reach, target: &Target, asking: &Asking, limits: AnswerLimits) -> Result<(), ToolError> {
        if self.manners == Manners::Ignored {
            return Ok(());
        }
        let site = target.url().origin().ascii_serialization();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&site).cloned();
        let asks = match known {
            Some((asks, since)) if since.elapsed() < asks.holds() => asks,
            Some(_) | None => {
                let asks = asks_of(reach, target, asking, limits).await?;
                let entry = (asks.clone(), Instant::now());
                self.known.lock().unwrap_or_else(PoisonError::into_inner).put(site.clone(), entry);
                asks
            }
        };
        match asks {
            Asks::For(rules) if rules.is_url_allowed(target.url()) => Ok(()),
            Asks::For(_) => {
                let text = format!(
                    "{site}/robots.txt asks programs not to read {}; try another source, or ask the person to open it",
                    target.url()
                );
                Err(ToolError::new(ToolErrorKind::PermissionDenied, text))
            }
            Asks::Unknown(status) => {
                let text = format!(
                    "{site}/robots.txt, which says what programs may read there, could not be read: its server failed (HTTP \
                     {status}); try again after a minute, or another source"
                );
                Err(ToolError::new(ToolErrorKind::ExecutionFailed, text))
            }
        }
    }
}

/// What a site asks for. One that has no such file asks for nothing; one that is broken is left alone (RFC 9309, section 2.3.1).
async fn asks_of(reach: &Reach, target: &Target, asking: &Asking, limits: AnswerLimits) -> Result<Asks, Failure> {
    let rules = |rules| Ok(Asks::For(Arc::new(rules)));
    let robots = target.join("/robots.txt", reach.allow())?;
    let limits = AnswerLimits { max_bytes: MAX_BYTES, ..limits };
    match reach.get(robots, asking, limits).await {
        Ok(answer) if answer.status.is_success() => rules(Rules::parse(&answer.body, NAME)),
        Ok(answer) if answer.status.is_server_error() => Ok(Asks::Unknown(answer.status.as_u16())),
        // A site whose file leads in circles, or to where nobody may go, has none.
        Ok(_) | Err(Failure::Redirects { .. }) => rules(Rules::allow_all()),
        Err(failure) => Err(failure),
    }
}
