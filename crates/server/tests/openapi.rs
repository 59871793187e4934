//! The OpenAPI document of the repository is what the routes say of themselves.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

fn described() -> Value {
    serde_json::to_value(turnwright_server::openapi()).unwrap()
}

#[test]
fn the_document_in_the_repository_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let text = format!("{:#}\n", described());
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "crates/server/openapi.json is not what the routes say; `UPDATE_OPENAPI=1 cargo nextest run -p turnwright-server --test all openapi` \
         writes it anew"
    );
}

#[test]
fn every_operation_has_its_own_name_a_summary_and_answers_for_good_and_bad() {
    let document = described();
    let mut names = BTreeSet::new();
    let mut count = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            count += 1;
            let which = format!("{method} {path}");
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{which}: its name is another's");
            assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{which} has no summary");
            let answers: Vec<&String> = operation["responses"].as_object().unwrap().keys().collect();
            assert!(answers.iter().any(|status| status.starts_with('2')), "{which} never goes well");
            assert!(answers.iter().any(|status| status.starts_with('4')), "{which} never goes wrong");
        }
    }
    assert_eq!(count, names.len());
}

#[test]
fn every_operation_that_is_not_for_all_says_how_it_is_refused_to_whoever_may_not() {
    let document = described();
    let for_all = ["/healthz", "/readyz"];
    for (path, item) in document["paths"].as_object().unwrap().iter().filter(|(path, _)| !for_all.contains(&path.as_str())) {
        for (method, operation) in item.as_object().unwrap() {
            let missing: Vec<_> =
                ["401", "403"].into_iter().filter(|status| operation["responses"][status].is_null()).collect();
            assert_eq!(missing, Vec::<&str>::new(), "{method} {path}");
        }
    }
}

#[test]
fn every_list_is_told_page_by_page() {
    let document = described();
    // The best that is found, and what others are asked for at that moment.
    let whole = ["/api/v1/knowledge/{name}/search", "/api/v1/models", "/api/v1/usage"];
    let mut lists = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let operation = &item["get"];
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        let Some(schema) = schema["$ref"].as_str().and_then(|named| document.pointer(named.trim_start_matches('#'))) else {
            continue;
        };
        let is_list = |text: String| text.contains("\"next_cursor\"") || text.contains("schemas/List_");
        if whole.contains(&path.as_str()) || !is_list(schema.to_string()) {
            continue;
        }
        lists += 1;
        let parameters = operation["parameters"].as_array().unwrap();
        for name in ["limit", "cursor"] {
            assert!(parameters.iter().any(|one| one["name"] == name && one["in"] == "query"), "{path} has no `{name}`");
        }
    }
    assert!(lists > 15, "{lists} lists");
}

#[test]
fn headers_that_decide_what_a_request_means_are_parameters_of_the_routes_that_read_them() {
    let document = described();
    let headers = |method: &str, path: &str| -> Vec<String> {
        let parameters = document["paths"][path][method]["parameters"].as_array().unwrap_or_else(|| panic!("{method} {path}"));
        parameters.iter().filter(|one| one["in"] == "header").map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    for (method, path, expected) in [
        (
            "post",
            "/v1/chat/completions",
            ["X-Turnwright-Tool-Activity", "X-Turnwright-Conversation", "Idempotency-Key"].as_slice(),
        ),
        ("post", "/v1/responses", &["X-Turnwright-Conversation", "Idempotency-Key"]),
        ("get", "/api/v1/artifacts/{id}", &["Range", "If-Range", "If-None-Match"]),
    ] {
        assert_eq!(headers(method, path), expected, "{method} {path}");
    }
}

#[test]
fn what_the_document_refers_to_is_in_it() {
    fn walk<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|field| walk(field, found));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            _ => {}
        }
    }
    let document = described();
    let mut found = BTreeSet::new();
    walk(&document, &mut found);
    let lost: Vec<_> = found.iter().filter(|name| document.pointer(name.trim_start_matches('#')).is_none()).collect();
    assert!(found.len() > 100 && lost.is_empty(), "of {} these lead nowhere: {lost:?}", found.len());
}

/// The codes of the server's sources: each stands beside its status, or as the first word of what makes a refusal.
fn codes_of_the_sources(folder: &Path, found: &mut BTreeSet<String>) {
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            codes_of_the_sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let by_status = text.split("StatusCode::").skip(1).filter_map(|rest| {
                let (status, rest) = rest.split_once(',')?;
                let is_status = status.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
                is_status.then_some(rest)
            });
            let by_name = ["bad_request(", "refuse("].into_iter().flat_map(|maker| text.split(maker).skip(1));
            for rest in by_status.chain(by_name) {
                let code = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
                found.extend(code.filter(|code| is_code(code)).map(str::to_owned));
            }
        }
    }
}

fn is_code(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[test]
fn every_code_of_a_problem_is_in_its_list_and_none_goes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(folder.join("../../docs/problems.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let listed: Vec<&str> = rows.map(|(code, _)| code).filter(|code| is_code(code)).collect();
    assert!(listed.is_sorted(), "docs/problems.md lists them by name");
    let mut found = BTreeSet::new();
    codes_of_the_sources(&folder.join("src"), &mut found);
    // These are chosen between, and those of model providers are the kinds of their failures.
    let kinds = [
        "auth",
        "permission",
        "quota",
        "rate_limit",
        "overloaded",
        "server",
        "timeout",
        "not_found",
        "too_large",
        "context_length",
        "content_filter",
        "invalid_request",
        "connect",
        "cut_off",
        "malformed",
        "limit",
        "unavailable",
    ];
    found.extend(["invalid_token", "session_over"].into_iter().chain(kinds).map(str::to_owned));
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(listed, found, "what is listed, and what the sources have: clients act on codes, so that none is renamed");
}
