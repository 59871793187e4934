//! `turnwright doctor`: everything that a person can mend.

mod serving;

use serde_json::json;
use turnwright_host::{Finding, Level, Needs};

use crate::cli::{Doctor, Everywhere, Listed};
use crate::exit::{Exit, Failure};
use crate::opened::{self, TELLS_OF_SERVERS};
use crate::output::Output;
use crate::table::table;

pub(super) async fn run(everywhere: &Everywhere, doctor: Doctor, output: &mut Output) -> Result<Exit, Failure> {
    let Doctor { serving, listed } = doctor;
    if serving {
        return Ok(report(&serving::look(everywhere).await?, listed, output, Exit::Failed));
    }
    let opened = match opened::open(&opened::overrides(everywhere), TELLS_OF_SERVERS) {
        Ok(opened) => opened,
        Err(failure) => return Ok(report(&of_failure("configuration", &failure), listed, output, Exit::Usage)),
    };
    let mut not_served: Vec<_> = super::serve::check_listening(&opened.loaded).err().into_iter().collect();
    match super::serve::read_tls(&opened.loaded) {
        Ok(tls) => {
            let said = tls.iter().flat_map(|tls| super::serve::out_of_date(&opened.loaded, tls));
            not_served.extend(said.map(Failure::failed));
        }
        Err(failure) => not_served.push(failure),
    }
    // Its findings say all that a start would have said.
    let host = match turnwright_host::Host::start(opened.loaded, &opened.environment, Needs::Everything).await {
        Ok(host) => host,
        Err(error) => return Ok(report(&of_failure("start", &error.into()), listed, output, Exit::Usage)),
    };
    let mut findings = host.doctor().await;
    host.shutdown().await;
    findings.extend(not_served.iter().flat_map(|failure| of_failure("server", failure)));
    Ok(report(&findings, listed, output, Exit::Failed))
}

fn of_failure(subject: &str, failure: &Failure) -> Vec<Finding> {
    let finding = |line: &str| Finding { subject: subject.to_owned(), level: Level::Problem, text: line.to_owned() };
    failure.text.lines().map(finding).collect()
}

fn report(findings: &[Finding], listed: Listed, output: &mut Output, if_bad: Exit) -> Exit {
    if listed.json {
        let findings = findings
            .iter()
            .map(|finding| json!({"subject": finding.subject, "level": word(finding.level), "text": finding.text}));
        output.json_pretty(&findings.collect::<Vec<_>>());
    } else {
        let rows: Vec<_> = findings
            .iter()
            .map(|finding| [word(finding.level).to_owned(), finding.subject.clone(), finding.text.clone()])
            .collect();
        output.lines(&table(&rows));
    }
    if findings.iter().any(|finding| finding.level == Level::Problem) { if_bad } else { Exit::Done }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Note => "note",
        Level::Problem => "problem",
    }
}
