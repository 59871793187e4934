//! The server as AG-UI's own client sees it.

use std::process::Command;

use crate::openai::{clients, place, scripts, talk};
use crate::serve::Server;

#[test]
fn the_official_client_of_ag_ui_is_answered() {
    let Some(clients) = clients() else { return };
    let (place, _model) = place();
    let server = Server::start(&place);
    let mut command = Command::new(clients.join("npm/node_modules/.bin/node"));
    command.arg(scripts().join("ag_ui.mjs")).arg(clients.join("npm")).arg(server.root());
    talk(command);
    server.stop();
}
