//! `turnwright db`: everything moved either way, whatever breaks off in the middle; backups that are used; damage that is found.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::costs::psql;
use crate::serve::Server;
use crate::support::{Place, Ran, own_schema, test_postgres, wait_for};
use crate::way::Way;

/// Conversations that are taken over, and the messages of each.
const CONVERSATIONS: usize = 10;
const MESSAGES: usize = 200;
/// How many entries a move carries in one transaction.
const TOGETHER: usize = 200;

/// A model that reads the long file and answers then, and what that takes.
fn model() -> ModelServer {
    ModelServer::start([], |request| {
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}});
        let said = match results_shown(request) {
            0 => [call_chunk(0, "filesystem__read", "{\"path\":\"long.txt\"}"), finish_chunk("tool_calls")],
            _ => [text_chunk("It is long."), finish_chunk("stop")],
        };
        said.into_iter().chain([Piece::Chunk(usage), Piece::Done]).collect()
    })
    .unwrap()
}

/// A place whose configuration has budgets, and prices that count on them.
fn place(model: &ModelServer) -> Place {
    let place = Place::new();
    let config = format!(
        "model = \"p/m\"\napprove = \"all\"\n[budgets]\nuser_day = {{ usd = 5 }}\n[tools.artifact]\nshown_bytes = 4096\n\
         [providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         [models.\"p/m\"]\nprices = {{ input = 1, output = 10 }}\n",
        model.base_url()
    );
    place.write("turnwright.toml", config);
    place.write("long.txt", "a line of a long file\n".repeat(2_000));
    place
}

/// Runs a command over a database. Whatever it says, it says no password.
fn run(place: &Place, database: &str, words: &[&str]) -> Ran {
    let ran = place.run(&[words, &["--database", database]].concat());
    assert!(!ran.stdout.contains("tw-test-password") && !ran.stderr.contains("tw-test-password"), "{words:?}: {ran:?}");
    ran
}

fn done(place: &Place, database: &str, words: &[&str]) -> Ran {
    let ran = run(place, database, words);
    assert_eq!(ran.code, Some(0), "{words:?}: {ran:?}");
    ran
}

fn move_all(place: &Place, from: &str, to: &str) -> Ran {
    let ran = place.run(&["db", "move", "--from", from, "--to", to]);
    assert!(!ran.stdout.contains("tw-test-password") && !ran.stderr.contains("tw-test-password"), "{ran:?}");
    ran
}

/// The same, once nobody has one of them open: what a process held that was killed lapses.
fn move_all_when_free(place: &Place, from: &str, to: &str) -> Ran {
    wait_for("both to be free", || Some(move_all(place, from, to)).filter(|ran| !ran.stderr.contains(" is in use; ")))
}

/// Fills a database: 2,000 entries that were taken over, a turn with an artifact that was paid for, a rule, a user with a token.
fn fill(place: &Place, database: &str) {
    for conversation in 0..CONVERSATIONS {
        let message = |number: usize| {
            let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
            json!({"role": role, "content": format!("needle-{conversation}-{number} Grüße 🎈 {}", "word ".repeat(number % 30))})
        };
        let file = place.path("import.json");
        std::fs::write(&file, (0..MESSAGES).map(message).collect::<Value>().to_string()).unwrap();
        done(place, database, &["conversations", "import", file.to_str().unwrap()]);
    }
    done(place, database, &["chat", "How long is it?", "--conversation", "paid"]);
    let when = "{\"path\": \"/tmp/**\"}";
    done(place, database, &["approvals", "rules", "add", "allow", "filesystem__write*", "--when", when]);
    done(place, database, &["users", "add", "ada", "--role", "admin"]);
    done(place, database, &["users", "token", "ada"]);
}

/// All that can be seen of a database through its doors, and how many entries it has.
fn seen(place: &Place, database: &str) -> (Vec<Value>, u64) {
    let json = |words: &[&str]| serde_json::from_str::<Value>(&done(place, database, words).stdout).unwrap();
    let mut seen = vec![
        json(&["conversations", "list", "--json"]),
        json(&["approvals", "rules", "list", "--json"]),
        json(&["users", "list", "--json"]),
        json(&["users", "tokens", "ada", "--json"]),
    ];
    let listed = seen[0].as_array().unwrap().clone();
    assert_eq!(listed.len(), CONVERSATIONS + 1);
    for conversation in &listed {
        seen.push(json(&["conversations", "show", conversation["id"].as_str().unwrap(), "--json"]));
    }
    let said = seen.iter().find_map(|told| Some(told.to_string()).filter(|said| said.contains("art_"))).unwrap();
    let artifact = said.get(said.find("art_").unwrap()..).and_then(|rest| rest.get(..36)).unwrap();
    let server = Server::start_over(place, database);
    let whole = server.request(&format!("GET /api/v1/artifacts/{artifact}"), "");
    let (head, body) = whole.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && body.len() > 40_000, "{head}: {}", body.len());
    seen.push(Value::String(body.to_owned()));
    let usage = server.ask("GET /api/v1/usage", &Value::Null);
    assert_eq!(usage["budgets"][0]["spent"]["usd"], json!(0.0038), "{usage}");
    seen.push(usage);
    server.stop();
    let checked = done(place, database, &["db", "check"]);
    assert!(checked.stderr.ends_with("nothing is wrong with it\n"), "{checked:?}");
    let entries = rows(&checked, "entry");
    assert!(entries > 2_000, "{checked:?}");
    (seen, entries)
}

/// How many rows of a table were told.
fn rows(ran: &Ran, table: &str) -> u64 {
    let told = ran.stdout.lines().find_map(|line| line.strip_prefix(table)?.trim().parse().ok());
    told.unwrap_or_else(|| panic!("no `{table}` in {ran:?}"))
}

/// Moves until so many transactions with entries are stored, and kills the process there.
fn move_and_kill(place: &Place, way: &Way, (from, to): (&str, &str), statement: &str) {
    way.block_after(4, statement);
    let words = ["db", "move", "--from", from, "--to", to];
    let mut child = place.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    way.wait_until_blocked();
    child.kill().unwrap();
    child.wait().unwrap();
    way.mend();
}

/// Whether nobody can use a database to which a move broke off, and the source of that is named.
fn assert_half_moved(place: &Place, database: &str, source: &str) {
    for words in [&["conversations", "list"][..], &["chat", "hello"], &["serve", "--listen", "127.0.0.1:0"]] {
        let refused =
            wait_for("it to be free", || Some(run(place, database, words)).filter(|ran| !ran.stderr.contains(" is in use; ")));
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{words:?}: {refused:?}");
        let (whence, what) = refused.stderr.split_once(" broke off before it was whole").unwrap_or_default();
        assert!(whence.contains("a move from the database `") && whence.contains(source), "{words:?}: {refused:?}");
        assert!(what.contains("the same `turnwright db move` goes on"), "{words:?}: {refused:?}");
    }
}

/// Puts other words of the same length into a file, once.
fn put_into(file: &Path, old: &str, new: impl AsRef<[u8]>) {
    let mut bytes = std::fs::read(file).unwrap();
    let at = bytes.windows(old.len()).position(|part| part == old.as_bytes());
    let at = at.unwrap_or_else(|| panic!("`{old}` is not in {}", file.display()));
    bytes[at..at + old.len()].copy_from_slice(new.as_ref());
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn a_database_that_is_moved_to_postgresql_and_back_is_the_same_however_often_that_breaks_off() {
    let Some(server) = test_postgres() else { return };
    let model = model();
    let place = place(&model);
    let way = Way::to(&server);
    let there = own_schema(&way.address);
    let (_, schema) = there.split_once("schema=").unwrap();
    let (first, back) = (place.path("first.db"), place.path("back.db"));
    let (first, back) = (first.to_str().unwrap(), back.to_str().unwrap());
    fill(&place, first);
    let (whole, entries) = seen(&place, first);
    let ask = |query: &str| psql(&server, &query.replace("OURS", schema));

    // Nobody may use either of them.
    for used in [first, &there] {
        let running = Server::start_over(&place, used);
        let refused = move_all(&place, first, &there);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(" is in use; end every turnwright that has it open first"), "{refused:?}");
        running.stop();
    }
    ask("DROP SCHEMA OURS CASCADE");

    // To PostgreSQL, killed in the middle: what is there stays as it is, and the same move goes on behind it.
    move_and_kill(&place, &way, (first, &there), "INSERT INTO \"entry\"");
    let moved = "SELECT json_agg(array[place::text, xmin::text] ORDER BY place) FROM OURS.entry";
    let before: Value = serde_json::from_str(&ask(moved)).unwrap();
    let before = before.as_array().unwrap();
    assert_eq!(before.len(), 4 * TOGETHER, "it was killed in the middle");
    assert_half_moved(&place, &there, first);
    // One that somebody changed there is found by the comparison, and the source is what counts.
    let tamper = |from: &str, to: &str| {
        let change = format!("body = replace(body, 'needle-0-7 {from}', 'needle-0-7 {to}')");
        ask(&format!("UPDATE OURS.entry SET {change} WHERE body LIKE '%needle-0-7 %'"));
    };
    tamper("Grüße", "Grüsse");
    let refused = move_all_when_free(&place, first, &there);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("error: `entry` of the conversation with the key 1 is not the same in"), "{refused:?}");
    tamper("Grüsse", "Grüße");
    let moved_all = move_all_when_free(&place, first, &there);
    assert_eq!((moved_all.code, rows(&moved_all, "entry")), (Some(0), entries), "{moved_all:?}");
    assert!(moved_all.stderr.ends_with("moved, and compared: every row is the same in both\n"), "{moved_all:?}");
    let after: Value = serde_json::from_str(&ask(moved)).unwrap();
    let is_kept = |row: &Value| after.as_array().unwrap().contains(row);
    assert_eq!(
        before.iter().filter(|row| !is_kept(row)).count(),
        1,
        "all but the one that was changed is as it was stored first"
    );
    assert_eq!(seen(&place, &there).0, whole);

    // And back, likewise.
    move_and_kill(&place, &way, (&there, back), " FROM \"entry\" ");
    let half = run(&place, back, &["db", "check"]);
    assert_eq!((half.code, rows(&half, "entry")), (Some(1), 4 * TOGETHER as u64), "{half:?}");
    assert!(half.stderr.contains(" should have "), "{half:?}");
    assert_half_moved(&place, back, schema);
    put_into(Path::new(back), "needle-0-7 Gr", "needle-0-7 gR");
    let refused = move_all_when_free(&place, &there, back);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("error: `entry` of the conversation with the key 1 is not the same in"), "{refused:?}");
    put_into(Path::new(back), "needle-0-7 gR", "needle-0-7 Gr");
    let moved_all = move_all_when_free(&place, &there, back);
    assert_eq!((moved_all.code, rows(&moved_all, "entry")), (Some(0), entries), "{moved_all:?}");
    assert_eq!(seen(&place, back).0, whole);
    // Neither source was changed.
    for source in [first, &there] {
        assert_eq!(seen(&place, source).0, whole);
    }
}

#[test]
fn a_database_to_which_a_move_broke_off_is_refused_until_the_move_is_whole() {
    let place = place(&model());
    let path = |name: &str| place.path(name).to_str().unwrap().to_owned();
    let (first, there, kept) = (path("first.db"), path("there.db"), path("kept.db"));
    let messages = (0..MESSAGES).map(|number| {
        json!({"role": if number % 2 == 0 { "user" } else { "assistant" }, "content": format!("needle-{number} {}", "word ".repeat(400))})
    });
    place.write("import.json", messages.collect::<Value>().to_string());
    done(&place, &first, &["conversations", "import", "import.json"]);
    std::fs::copy(&first, &kept).unwrap();
    // What cannot be read ends the move in the middle.
    let mut bytes = std::fs::read(&first).unwrap();
    let end = bytes.len() / 4096 * 4096;
    bytes[end / 2..end].fill(0xA5);
    std::fs::write(&first, bytes).unwrap();
    let refused = move_all(&place, &first, &there);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let counted = run(&place, &there, &["db", "check"]);
    assert!(rows(&counted, "conversation") == 1 && rows(&counted, "entry") < MESSAGES as u64, "{counted:?}");
    assert_half_moved(&place, &there, &first);
    // The file is there again as it was, and the same move goes on.
    std::fs::copy(&kept, &first).unwrap();
    let moved = move_all(&place, &first, &there);
    assert_eq!(moved.code, Some(0), "{moved:?}");
    let listed = |database: &str| done(&place, database, &["conversations", "list", "--json"]).stdout;
    assert_eq!(listed(&there), listed(&first));
}

#[test]
fn the_database_of_the_data_directory_is_in_use_also_where_it_is_named_as_a_file() {
    let place = Place::with("").with_variable("TURNWRIGHT_DATABASE", "");
    let file = place.path("data/turnwright.db");
    let (file, to) = (file.to_str().unwrap(), place.path("to.db"));
    let server = Server::start(&place);
    let refused = move_all(&place, file, to.to_str().unwrap());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains(" is in use; end every turnwright that has it open first"), "{refused:?}");
    server.stop();
    let refused = move_all(&place, file, file);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("turnwright.db` is both what is moved and where to"), "{refused:?}");
    assert_eq!(move_all(&place, file, to.to_str().unwrap()).code, Some(0));
}

#[test]
fn a_backup_of_either_kind_is_a_database_that_has_everything() {
    let Some(server) = test_postgres() else { return };
    let model = model();
    let place = place(&model);
    let path = |name: &str| place.path(name).to_str().unwrap().to_owned();
    let (first, there, restored) = (path("first.db"), own_schema(&server), own_schema(&server));
    fill(&place, &first);
    let (whole, entries) = seen(&place, &first);
    assert_eq!(move_all(&place, &first, &there).code, Some(0));
    for (database, file) in [(&first, path("of-sqlite.db")), (&there, path("of-postgresql.db"))] {
        // While it is used.
        let running = Server::start_over(&place, database);
        let made = done(&place, database, &["db", "backup", &file]);
        running.stop();
        assert_eq!(rows(&made, "entry"), entries);
        assert_eq!(made.stderr, format!("written to {file}\n"));
        assert_eq!(seen(&place, &file).0, whole);
        let again = run(&place, database, &["db", "backup", &file]);
        assert_eq!(again.code, Some(2), "{again:?}");
        assert!(again.stderr.contains("is there already; name a file that is not"), "{again:?}");
    }
    let moved = move_all(&place, &path("of-postgresql.db"), &restored);
    assert_eq!((moved.code, rows(&moved, "entry")), (Some(0), entries), "{moved:?}");
    assert_eq!(seen(&place, &restored).0, whole);
}

#[test]
fn a_damaged_file_is_found_and_told_with_what_to_do() {
    let model = model();
    let place = place(&model);
    let path = |name: &str| place.path(name).to_str().unwrap().to_owned();
    let first = path("first.db");
    fill(&place, &first);
    let said = done(&place, &first, &["db", "check"]);
    assert_eq!((said.stderr.as_str(), rows(&said, "user")), ("nothing is wrong with it\n", 2), "{said:?}");
    let damaged = |name: &str, damage: &dyn Fn(&Path)| {
        std::fs::copy(&first, path(name)).unwrap();
        damage(&place.path(name));
        let said = run(&place, &path(name), &["db", "check"]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.stderr.ends_with("hint: restore it from a backup\n"), "{said:?}");
        said.stderr
    };
    // An entry that is no JSON any more.
    let said = damaged("entry.db", &|file| put_into(file, "\"needle-3-17 ", " needle-3-17 "));
    assert!(said.starts_with("error: entry ") && said.contains(" cannot be read: "), "{said}");
    assert_eq!(said.lines().count(), 2, "it alone: {said}");
    let id = said.split('`').nth(1).unwrap().to_owned();
    let shown = run(&place, &path("entry.db"), &["conversations", "show", &id]);
    let hint = "hint: `turnwright db check` says all that is damaged; restore it from a backup\n";
    assert!(shown.code == Some(1) && shown.stderr.contains(" cannot be read: ") && shown.stderr.ends_with(hint), "{shown:?}");
    // A byte that is no text.
    let said = damaged("text.db", &|file| put_into(file, "\"needle-3-17 ", b"\"needle-3-17\xff"));
    assert!(said.starts_with("error: entry ") && said.contains(" is not UTF-8 text\n"), "{said}");
    for words in [&["db", "backup", &path("text.backup")][..], &["conversations", "show", &id]] {
        let refused = run(&place, &path("text.db"), words);
        assert!(refused.code == Some(1) && refused.stderr.contains("UTF-8") && refused.stderr.ends_with(hint), "{refused:?}");
    }
    assert!(!place.path("text.backup").exists());
    // Pages in the middle of the file that are nothing any more.
    let said = damaged("pages.db", &|file| {
        let mut bytes = std::fs::read(file).unwrap();
        let middle = bytes.len() / 2 / 4096 * 4096;
        bytes[middle..middle + 3 * 4096].fill(0xA5);
        std::fs::write(file, bytes).unwrap();
    });
    assert!(said.contains("error: "), "{said}");
}

#[test]
fn what_is_missing_in_postgresql_is_found() {
    let Some(server) = test_postgres() else { return };
    let model = model();
    let place = place(&model);
    let there = own_schema(&server);
    done(&place, &there, &["chat", "How long is it?", "--conversation", "paid"]);
    done(&place, &there, &["db", "check"]);
    let schema = there.split_once("schema=").unwrap().1;
    psql(&server, &format!("DELETE FROM {schema}.entry WHERE place & 4294967295 = 3"));
    let said = run(&place, &there, &["db", "check"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let expected = "error: conversation `paid` should have ";
    assert!(said.stderr.starts_with(expected) && said.stderr.contains(" entries and has 2 in a row\n"), "{said:?}");
}
