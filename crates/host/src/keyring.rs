//! The system's keyring: what GNOME Keyring, `KWallet` and others keep behind the Secret Service, asked through libsecret's own
//! `secret-tool`. A D-Bus stack of our own would be larger than the rest of the configuration.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::Environment;

/// The program that asks.
const PROGRAM: &str = "secret-tool";
/// How long it may take: a person may have to unlock the keyring first.
const PATIENCE: Duration = Duration::from_mins(2);
/// The largest value, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// The value that is kept for a service under a name.
///
/// # Errors
/// Why there is none, in words for people. Holds no value.
pub(crate) fn look_up(service: &str, name: &str, environment: &Environment) -> Result<String, String> {
    let mut command = Command::new(PROGRAM);
    // As other programs' libraries for keyrings name what they keep.
    command.args(["lookup", "service", service, "username", name]);
    command.env_clear().envs(environment.variables());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        format!("the keyring cannot be asked: `{PROGRAM}` cannot be run ({error}); install libsecret-tools, or keep the value in a file")
    })?;
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (says, heard) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let read = |from: Option<&mut dyn Read>| {
            let mut bytes = Vec::new();
            from.map(|from| from.take(MAX_BYTES).read_to_end(&mut bytes));
            bytes
        };
        let told = (read(out.as_mut().map(|out| out as &mut dyn Read)), read(err.as_mut().map(|err| err as &mut dyn Read)));
        // Nobody listens any more where it took too long.
        drop(says.send(told));
    });
    let told = heard.recv_timeout(PATIENCE);
    if told.is_err() {
        drop(child.kill());
    }
    let status = child.wait();
    drop(reader.join());
    let Ok((value, complaint)) = told else {
        return Err(format!("the keyring did not answer within {} s", PATIENCE.as_secs()));
    };
    let complaint = String::from_utf8_lossy(&complaint);
    let complaint = complaint.lines().map(str::trim).find(|line| !line.is_empty());
    match status {
        Ok(status) if status.success() && !value.is_empty() => {
            let value = String::from_utf8(value).map_err(|_| "what the keyring holds is no text".to_owned())?;
            Ok(value.strip_suffix('\n').map_or(value.clone(), str::to_owned))
        }
        Ok(_) | Err(_) => Err(match complaint {
            Some(complaint) => format!("the keyring cannot be asked: {complaint}"),
            None => format!(
                "the keyring holds nothing for the service `{service}` and the name `{name}`; `{PROGRAM} store --label={service} service \
                 {service} username {name}` stores it"
            ),
        }),
    }
}
