//! Jira as tools, from its description: an issue is looked for, made and commented on, and a person allows what writes.

use std::path::Path;

use serde_json::{Value, json};

use crate::examples::{model, place, shown};
use crate::mock_api::{Asked, MockApi};
use crate::support::{Place, Ran};

const DESCRIPTION: &str = include_str!("jira/jira.json");
const TOKEN: &str = "ATATT-s3cret-of-mine";

/// An account of a small Jira: it knows one issue, takes new ones and comments.
fn answers(asked: &Asked) -> (u16, Value) {
    // `me@example.org` and the token, as RFC 7617 writes them.
    if asked.authorization.as_deref() != Some("Basic bWVAZXhhbXBsZS5vcmc6QVRBVFQtczNjcmV0LW9mLW1pbmU=") {
        return (401, json!({"message": "Client must be authenticated to access this resource.", "status-code": 401}));
    }
    let (method, path) = asked.line.split_once(' ').unwrap();
    match (method, path.split('?').next().unwrap()) {
        ("GET", "/rest/api/3/search/jql") => {
            let issue = json!({"id": "10001", "key": "AAD-1", "self": "https://x/1", "fields": {"summary": "Login is slow", "status": {"name": "Open", "iconUrl": "https://x/i"}}});
            let page = if asked.line.contains("nextPageToken") {
                json!({"isLast": true})
            } else {
                json!({"nextPageToken": "page-2", "isLast": false})
            };
            let mut answer = json!({"issues": [issue]});
            answer.as_object_mut().unwrap().extend(page.as_object().unwrap().clone());
            (200, answer)
        }
        ("POST", "/rest/api/3/issue") if asked.body["fields"]["project"].is_null() => {
            (400, json!({"errorMessages": [], "errors": {"project": "Specify a valid project ID or key"}}))
        }
        ("POST", "/rest/api/3/issue") => (201, json!({"id": "10002", "key": "AAD-2", "self": "https://x/2"})),
        ("POST", "/rest/api/3/issue/AAD-2/comment") => (201, json!({"id": "1", "body": asked.body["body"]})),
        _ => (404, json!({"errorMessages": ["Issue does not exist or you do not have permission to see it."], "errors": {}})),
    }
}

fn config(api: &MockApi) -> String {
    format!(
        "[tools.http.jira]\ndescription = \"jira.json\"\nbase_url = \"http://{}\"\n\
         auth = {{ basic = {{ user = \"me@example.org\", password = \"{TOKEN}\" }} }}\n\
         operations = [\"search*\", \"createIssue\", \"addComment\", \"getIssue\"]\n\
         [tools.http.jira.fields]\n\"search*\" = [\"issues.key\", \"issues.fields.summary\", \"issues.fields.status.name\"]\n",
        api.address
    )
}

/// Allows the one call that waits.
fn allow(place: &Place) -> (Value, Ran) {
    let waiting = place.json(&["approvals", "list", "--json"]);
    let call = waiting[0]["id"].as_str().unwrap().to_owned();
    (waiting[0].clone(), place.run(&["approvals", "decide", &call, "allow", "--conversation", "c"]))
}

/// Whether a file below a folder holds a text.
fn is_in(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return is_in(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn an_issue_is_looked_for_made_and_commented_on_with_a_persons_word() {
    let api = MockApi::new(answers);
    let search = (
        "jira__searchAndReconsileIssuesUsingJql",
        json!({"jql": "project = AAD AND text ~ \"login & co\"", "fields": ["summary", "status"]}),
    );
    let fields = json!({"project": {"key": "AAD"}, "summary": "Login fails", "issuetype": {"name": "Bug"}});
    let create = ("jira__createIssue", json!({"body": {"fields": fields}}));
    let text = json!({"type": "doc", "version": 1, "content": [{"type": "paragraph", "content": [{"type": "text", "text": "See AAD-1."}]}]});
    let comment = ("jira__addComment", json!({"issueIdOrKey": "AAD-2", "body": {"body": text}}));
    let model = model(vec![vec![search], vec![create], vec![comment]], "AAD-2 is there, and points to AAD-1.");
    let place = place(&model, &config(&api));
    place.write("jira.json", DESCRIPTION);
    let asking =
        ["chat", "Make an issue of the failing login, unless there is one.", "--conversation", "c", "--log-level", "trace"];
    let first = place.run(&asking);
    // Reading ran by itself, writing waits.
    assert_eq!(first.code, Some(3), "{first:?}");
    assert_eq!(
        api.lines(),
        [
            "GET /rest/api/3/search/jql?jql=project%20%3D%20AAD%20AND%20text%20~%20%22login%20%26%20co%22&fields=summary&fields=status"
        ]
    );
    let found = shown(&model).last().unwrap()["content"].to_string();
    assert!(found.contains("AAD-1") && found.contains("Login is slow") && !found.contains("iconUrl"), "{found}");
    assert!(found.contains("There is more: call this again with `nextPageToken` = "), "{found}");
    let (waiting, second) = allow(&place);
    assert_eq!((&waiting["name"], second.code), (&json!("jira__createIssue"), Some(3)), "{second:?}");
    let (waiting, third) = allow(&place);
    assert_eq!((&waiting["name"], third.code), (&json!("jira__addComment"), Some(0)), "{third:?}");
    assert_eq!(third.stdout, "AAD-2 is there, and points to AAD-1.\n");
    let asked = api.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!((asked[1].line.as_str(), &asked[1].body), ("POST /rest/api/3/issue", &json!({"fields": fields})));
    assert_eq!((asked[2].line.as_str(), &asked[2].body), ("POST /rest/api/3/issue/AAD-2/comment", &json!({"body": text})));
    // The secret is in the configuration, and nowhere else: journal, log, what the model was shown, what people are.
    let told = format!("{first:?}{second:?}{third:?}{:?}", model.bodies());
    let shown = place.run(&["tools", "show", "jira__createIssue"]);
    let configured = place.run(&["config", "show"]);
    for secret in [TOKEN, "QVRBVFQtczNjcmV0", "bWVAZXhhbXBsZS5vcmc6"] {
        assert!(!told.contains(secret) && !is_in(&place.path("data"), secret), "{secret}");
        assert!(!format!("{shown:?}{configured:?}").contains(secret), "{shown:?} {configured:?}");
    }
}

#[test]
fn what_jira_refuses_tells_the_model_what_to_do() {
    let api = MockApi::new(answers);
    let model = model(Vec::new(), "");
    let place = place(&model, &config(&api));
    place.write("jira.json", DESCRIPTION);
    let call = |tool: &str, arguments: &str| {
        place.json(&["tools", "call", tool, "--arguments", arguments, "--approve", "all"]).to_string()
    };
    let refused = call("jira__createIssue", r#"{"body": {"fields": {"summary": "x"}}}"#);
    assert!(refused.contains("invalid_arguments") && refused.contains("Specify a valid project ID or key"), "{refused}");
    let missing = call("jira__getIssue", r#"{"issueIdOrKey": "AAD-9"}"#);
    assert!(missing.contains("not_found") && missing.contains("Look for its right id"), "{missing}");
    // A name is no way to another place of the API.
    let astray = call("jira__getIssue", r#"{"issueIdOrKey": "../myself"}"#);
    assert!(astray.contains("not_found"), "{astray}");
    assert_eq!(api.lines().last().unwrap(), "GET /rest/api/3/issue/..%2Fmyself");
    let listed = place.run(&["tools", "list"]);
    assert!(listed.stdout.contains("jira__createIssue") && !listed.stdout.contains("deleteIssue"), "{listed:?}");
}

#[test]
fn a_slip_in_the_configuration_is_told_and_the_rest_works() {
    let api = MockApi::new(answers);
    let model = model(Vec::new(), "");
    let slip = config(&api).replace("\"createIssue\"", "\"creatIssue\"");
    let place = place(&model, &slip);
    place.write("jira.json", DESCRIPTION);
    let listed = place.run(&["tools", "list"]);
    let told = format!("{}{}", listed.stdout, listed.stderr);
    assert!(told.contains("`operations` names `creatIssue`, which no operation fits; did you mean `createIssue`?"), "{told}");
    assert!(told.contains("jira__addComment") && !told.contains("jira__createIssue"), "{told}");
    std::fs::remove_file(place.path("jira.json")).unwrap();
    let listed = place.run(&["tools", "list"]);
    let told = format!("{}{}", listed.stdout, listed.stderr);
    assert!(told.contains("jira.json cannot be used: No such file or directory"), "{told}");
    assert!(told.contains("filesystem__read"), "{told}");
}
