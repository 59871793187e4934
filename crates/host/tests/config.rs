//! The configuration through its public door: what loads, what is told about what does not, what is shown.

mod endpoints;
mod files;
mod loads;
mod messages;
mod refused;
mod shows;

use std::path::PathBuf;

use turnwright_host::config::{ConfigFile, Loaded, Overrides, Problems, load};
use turnwright_host::environment::Environment;

/// A working directory that need not exist.
const WORK: &str = "/work-dir";

fn environment() -> Environment {
    Environment::new(WORK).with("HOME", "/home/ada")
}

fn file(text: &str) -> ConfigFile {
    ConfigFile { path: PathBuf::from(WORK).join("turnwright.toml"), text: text.to_owned() }
}

fn load_text(text: &str) -> Result<Loaded, Problems> {
    load(Some(&file(text)), &environment(), &Overrides::default())
}

fn load_with(text: &str, environment: &Environment) -> Result<Loaded, Problems> {
    load(Some(&file(text)), environment, &Overrides::default())
}
