//! `turnwright acp`: an agent for editors.

use turnwright_terminal::Interrupts;

use crate::acp;
use crate::cli::Everywhere;
use crate::exit::{Exit, Failure};
use crate::signals::Signals;

pub(super) async fn run(everywhere: &Everywhere) -> Result<Exit, Failure> {
    let mut signals = Signals::new().map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
    tokio::select! {
        served = acp::serve(everywhere) => match served {
            Ok(()) => Ok(Exit::Done),
            Err(error) => {
                let failure = Failure::failed(format!("what came on standard input is no ACP client: {error}"));
                Err(failure.hint("this command is started by an editor; name it among its agents"))
            }
        },
        // Turns stay open; whoever takes their conversation up goes on with them.
        _ = signals.next() => Ok(Exit::Done),
    }
}
