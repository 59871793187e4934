use rusqlite::Connection;

use super::ALL;
use crate::{SqliteOptions, SqliteStore};

/// The steps of a statement's plan; none for a plain insert.
fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    // Parameters stay unbound: the plan does not depend on them.
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get("detail").unwrap());
    }
    steps
}

#[test]
fn no_statement_reads_more_than_it_answers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.db");
    drop(SqliteStore::open(&SqliteOptions::at_file(&file)).unwrap());
    let connection = Connection::open(file).unwrap();

    let steps: Vec<(&str, String)> =
        ALL.iter().flat_map(|(name, sql)| plan(&connection, sql).into_iter().map(move |step| (*name, step))).collect();
    // What a virtual table is asked for stands behind the colon; where it is asked for everything there is nothing.
    let is_asked = |step: &str| step.contains("VIRTUAL TABLE INDEX") && !step.ends_with(':');
    // What a part of a statement gives was asked for by that part.
    let is_given = |step: &str| ["SCAN gone", "SCAN (subquery-"].iter().any(|given| step.starts_with(given));
    let wider = |step: &str| step.starts_with("SCAN ") && !is_given(step) && !is_asked(step);
    let wider: Vec<_> = steps.iter().filter(|(_, step)| wider(step)).map(|(name, _)| *name).collect();

    // The index of open turns is what it is asked for: all that are open, none of those that are over. So are all users and
    // collections, and the admins among the users. One looks at each conversation's row, and OLD_CONVERSATIONS at those up to a key,
    // never while anybody appends.
    assert_eq!(wider, ["OPEN_TURNS", "RUNNING_TURNS", "USERS", "ADMIN_STAYS", "BEHIND", "KNOWLEDGE_SIZES"]);
    assert!(steps.len() > 10, "there are plans to look at: {steps:?}");
}
