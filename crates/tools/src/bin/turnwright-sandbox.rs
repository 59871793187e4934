//! The helper of confined commands, for those who embed the tools: it confines itself and becomes the command.

use std::process::ExitCode;

fn main() -> ExitCode {
    let error = turnwright_tools::confine(std::env::args_os().skip(1));
    // Whoever started it reads this as the command's words.
    let _ =
        std::io::Write::write_all(&mut std::io::stderr(), format!("the command could not be confined: {error}\n").as_bytes());
    ExitCode::from(126)
}
