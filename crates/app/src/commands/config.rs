//! `turnwright config`: what is configured. Starts nothing.

use turnwright_host::config::{self, Problem, find, printed_schema};

use crate::cli::{Config, Everywhere};
use crate::exit::{Exit, Failure};
use crate::opened;
use crate::output::{Output, say};

pub(super) fn run(everywhere: &Everywhere, command: Config, output: &mut Output) -> Result<Exit, Failure> {
    let overrides = opened::overrides(everywhere);
    if let Config::Schema = command {
        output.json_pretty(&printed_schema());
        return Ok(Exit::Done);
    }
    let environment = opened::environment()?;
    if let Config::Path = command {
        let Some(path) = find(&environment, &overrides) else {
            let places = [Some(environment.working_directory().to_owned()), environment.config_dir()];
            let places = places.into_iter().flatten().map(|folder| folder.join(config::FILE_NAME).display().to_string());
            let places = places.collect::<Vec<_>>().join(" and ");
            say(&format!("note: there is no configuration file; looked for {places}"));
            return Ok(Exit::Failed);
        };
        output.line(&path.display().to_string());
        return Ok(Exit::Done);
    }
    let loaded = config::open(&environment, &overrides)?;
    let is_check = matches!(command, Config::Check);
    let unusable = if is_check { loaded.unusable(&environment) } else { None };
    let is_error = |warning: &Problem| unusable.iter().any(|all| all.iter().any(|problem| problem == warning));
    for warning in loaded.warnings.iter().filter(|warning| !is_error(warning)) {
        say(&format!("warning: {warning}"));
    }
    match command {
        Config::Show => output.write(&loaded.show()),
        Config::Check | Config::Path | Config::Schema => {
            if let Some(tls) = super::serve::read_tls(&loaded)? {
                for said in super::serve::out_of_date(&loaded, &tls) {
                    say(&format!("warning: {said}"));
                }
            }
            for secret in &loaded.not_hidden {
                say(&format!("warning: {secret}"));
            }
            if let Some(unusable) = unusable {
                return Err(unusable.into());
            }
            super::serve::check_listening(&loaded)?;
            match &loaded.file {
                Some(path) => say(&format!("{} is in order", path.display())),
                None => say("there is no configuration file; everything has its default"),
            }
        }
    }
    Ok(Exit::Done)
}
