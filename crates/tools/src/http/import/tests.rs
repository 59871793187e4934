use serde_json::{Map, json};
use turnwright_engine::bounded_validator;
use url::Url;

use super::*;

fn glob(text: &str) -> OperationGlob {
    OperationGlob::new(text).unwrap()
}

fn described(paths: &Value) -> Vec<u8> {
    json!({"openapi": "3.1.0", "info": {"title": "An API"}, "paths": paths}).to_string().into_bytes()
}

fn imported(paths: &Value) -> Imported {
    import(&described(paths), &Choice::default()).unwrap()
}

/// The only operation of a path.
fn one(path: &str, operation: &Value) -> Operation {
    let mut found = imported(&json!({path: {"post": operation}}));
    assert_eq!(found.left_out, []);
    found.operations.remove(0)
}

fn asked(operation: &Operation, arguments: Value) -> Result<String, String> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let base = Url::parse("https://api.example/v1/").unwrap();
    operation.request(&base, &arguments, "key-1").map(|request| request.url.to_string())
}

fn names(found: &Imported) -> Vec<&str> {
    found.operations.iter().map(|operation| operation.name.as_str()).collect()
}

#[test]
fn operations_are_named_by_their_ids_or_places_and_none_twice() {
    let nothing = json!({});
    let found = imported(&json!({
        "/issues/{id}": {"parameters": [{"name": "id", "in": "path", "required": true}], "get": {"operationId": "issues/get"}, "delete": nothing},
        "/a": {"get": {"operationId": "same"}, "post": {"operationId": "same"}, "put": {"operationId": "日本"}, "patch": {"operationId": " "}},
    }));
    assert_eq!(names(&found), ["issues_get", "delete_issues_id", "same", "put_a", "same_2", "patch_a"]);
    let read_only: Vec<bool> = found.operations.iter().map(|operation| operation.declared.read_only).collect();
    assert_eq!(read_only, [true, false, true, false, false, false]);
}

#[test]
fn globs_choose_and_what_fits_nothing_is_told_with_what_was_meant() {
    let paths = json!({"/a": {"get": {"operationId": "listA"}, "post": {"operationId": "createA"}}, "/b": {"get": {"operationId": "listB"}}});
    let choice = Choice {
        operations: vec![glob("list*"), glob("POST /a"), glob("creatA")],
        except: vec![glob("listB")],
        declared: vec![(glob("createA"), Declaration { read_only: Some(true), serial: Some(true), ..Declaration::default() })],
        fields: vec![(glob("listA"), vec![FieldPath::new("items.id").unwrap()])],
    };
    let found = import(&described(&paths), &choice).unwrap();
    assert_eq!(names(&found), ["listA", "createA"]);
    let reason = "`operations` names `creatA`, which no operation fits; did you mean `createA`?".to_owned();
    assert_eq!(found.left_out, [LeftOut { operation: String::new(), reason }]);
    assert_eq!(found.operations[1].declared, Declared { read_only: true, serial: true, ..Declared::default() });
    assert!(found.operations[0].description.ends_with("Of the answer you are given: items.id."), "{:?}", found.operations[0]);
}

#[test]
fn an_operation_that_cannot_be_used_is_left_out_and_the_rest_is_not() {
    let found = imported(&json!({
        "/good": {"get": {"operationId": "good"}},
        "/missing/{id}": {"get": {"operationId": "missing"}},
        "/open/{id": {"get": {"operationId": "open"}},
        "/trace": {"trace": {"operationId": "echo"}},
        "/odd": {"get": {"operationId": "odd", "parameters": [{"name": "a", "in": "body"}]}},
        "/elsewhere": {"get": {"operationId": "elsewhere", "parameters": [{"$ref": "common.yaml#/a"}]}},
        "/style": {"get": {"operationId": "style", "parameters": [{"name": "a", "in": "query", "style": "matrix"}]}},
        "/dots/../x": {"get": {"operationId": "dots"}},
        "/ref": {"$ref": "#/nowhere"},
        "x-more": 1,
    }));
    assert_eq!(names(&found), ["good"]);
    let told: Vec<String> = found.left_out.iter().map(|one| format!("{}: {}", one.operation, one.reason)).collect();
    let expected = [
        "/ref: it refers to `#/nowhere`, which is not in the description",
        "missing: no parameter fills `{id}` of its path",
        "open: a brace of its path is not closed",
        "echo: a TRACE would answer with the authentication",
        "odd: its parameter `a` is in `body`, which is no place that is known",
        "elsewhere: a parameter of it is not usable: it refers to `common.yaml#/a`, which is another document: nothing is fetched",
        "style: its parameter `a` has a style that is not for the query",
        "dots: its path holds `.` or `..`",
    ];
    assert_eq!(told, expected);
    assert_eq!(import(&described(&json!({})), &Choice::default()), Err(DescriptionError::NoPaths));
    assert_eq!(import(b"{\"openapi\": \"3.0.0\"}", &Choice::default()), Err(DescriptionError::NoPaths));
}

#[test]
fn each_parameter_goes_to_its_place_and_names_that_meet_are_parted() {
    let parameter = |name: &str, place: &str, required: bool| json!({"name": name, "in": place, "required": required, "schema": {"type": "string"}, "description": "It."});
    let operation = one(
        "/a/{id}/b",
        &json!({
            "parameters": [parameter("id", "path", true), parameter("id", "query", false), parameter("body", "query", false), parameter("filter[x]", "query", false),
                parameter("X-Trace", "header", true), parameter("Authorization", "header", true), parameter("sid", "cookie", false), parameter("Idempotency-Key", "header", true)],
            "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object"}}}},
        }),
    );
    let schema = &operation.input_schema;
    let properties: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(properties, ["path_id", "query_id", "body", "filter_x", "X-Trace", "sid", "body_2"]);
    assert_eq!(schema["required"], json!(["path_id", "X-Trace", "body_2"]));
    assert_eq!(schema["properties"]["query_id"], json!({"type": "string", "description": "`id` of the query. It."}));
    assert!(bounded_validator(schema).is_some());
    let arguments = json!({"path_id": "ä/b", "query_id": "1", "body": "&", "filter_x": "y", "X-Trace": "t", "sid": "s;p", "body_2": {"k": 1}});
    let base = Url::parse("https://api.example/v1?api-version=2").unwrap();
    let request = operation.request(&base, arguments.as_object().unwrap(), "key-1").unwrap();
    assert_eq!(request.url.as_str(), "https://api.example/v1/a/%C3%A4%2Fb/b?api-version=2&id=1&body=%26&filter%5Bx%5D=y");
    let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
    assert_eq!(
        [header("x-trace"), header("cookie"), header("idempotency-key"), header("content-type"), header("authorization")],
        [Some("t"), Some("sid=s%3Bp"), Some("key-1"), Some("application/json"), None]
    );
    assert_eq!(request.body.as_deref(), Some(&b"{\"k\":1}"[..]));
}

#[test]
fn a_query_within_a_path_is_sent_as_one_and_left_out_where_it_is_to_be_filled() {
    let parameter =
        |name: &str, place: &str| json!({"name": name, "in": place, "required": true, "schema": {"type": "string"}});
    let found = one("/search?type=x y&v=1#again", &json!({"parameters": [parameter("q", "query")]}));
    let url = asked(&found, json!({"q": "a&b"}));
    assert_eq!(url.as_deref(), Ok("https://api.example/v1/search?type=x%20y&v=1&q=a%26b"));
    let filled = imported(&json!({"/a?id={id}": {"get": {"operationId": "a", "parameters": [parameter("id", "path")]}}}));
    let reason = "its path holds a query that is to be filled".to_owned();
    assert_eq!(filled.left_out, [LeftOut { operation: "a".to_owned(), reason }]);
}

#[test]
fn no_argument_leads_to_another_path() {
    let parameter = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
    let operation = one("/a/{id}/b", &json!({"parameters": [parameter]}));
    for id in [".", "..", "", "[]"] {
        let id = if id == "[]" { json!([]) } else { json!(id) };
        assert!(asked(&operation, json!({"id": id})).is_err(), "{id}");
    }
    assert_eq!(asked(&operation, json!({})), Err("`id` is missing".into()));
    assert_eq!(asked(&operation, json!({"id": null})), Err("`id` is missing".into()));
    let cases = [
        ("../x", "..%2Fx"),
        ("%2e%2e", "%252e%252e"),
        ("..\\x", "..%5Cx"),
        ("a?b#c", "a%3Fb%23c"),
        ("http://evil.example", "http%3A%2F%2Fevil.example"),
        ("a b\r\n", "a%20b%0D%0A"),
        ("@evil.example", "%40evil.example"),
        ("\u{ff0e}\u{ff0e}", "%EF%BC%8E%EF%BC%8E"),
    ];
    for (id, written) in cases {
        assert_eq!(asked(&operation, json!({"id": id})), Ok(format!("https://api.example/v1/a/{written}/b")), "{id}");
    }
    let joined = one("/x/.{id}", &json!({"parameters": [parameter]}));
    assert!(asked(&joined, json!({"id": "."})).is_err());
    assert_eq!(asked(&joined, json!({"id": "y"})), Ok("https://api.example/v1/x/.y".into()));
}

#[test]
fn a_header_carries_no_second_one() {
    let operation = one("/a", &json!({"parameters": [{"name": "X-A", "in": "header", "schema": {"type": "string"}}]}));
    let error = asked(&operation, json!({"X-A": "a\r\nAuthorization: b"})).unwrap_err();
    assert_eq!(error, "`X-A` holds a line break or another control character, which a header cannot carry");
}

#[test]
fn the_places_that_the_configuration_fills_are_no_arguments() {
    let parameters = json!([{"name": "api_key", "in": "query", "required": true}, {"name": "X-Org", "in": "header"}, {"name": "q", "in": "query"}]);
    let filled = Filled { headers: HashSet::from(["x-org".to_owned()]), query: HashSet::from(["api_key".to_owned()]) };
    let found =
        import_beside(&described(&json!({"/a": {"get": {"parameters": parameters}}})), &Choice::default(), &filled).unwrap();
    let properties: Vec<&String> = found.operations[0].input_schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(properties, ["q"]);
}

#[test]
fn what_is_common_to_a_path_holds_for_its_operations_and_is_replaced_by_their_own() {
    let found = imported(&json!({"/a": {
        "parameters": [{"name": "x", "in": "query", "required": true, "schema": {"type": "string"}}, {"name": "y", "in": "query"}],
        "get": {"parameters": [{"name": "x", "in": "query", "schema": {"type": "integer"}}], "summary": "Lists.", "description": "Lists. All of them", "deprecated": true},
        "post": {"summary": "Makes one", "description": "As it is said."},
    }}));
    assert_eq!(found.operations[0].input_schema["properties"], json!({"x": {"type": "integer"}, "y": {}}));
    assert_eq!(found.operations[1].input_schema["required"], json!(["x"]));
    assert_eq!(found.operations[0].description, "Deprecated. Lists. All of them. (GET /a)");
    assert_eq!(found.operations[1].description, "Makes one. As it is said. (POST /a)");
}

#[test]
fn a_get_of_openapi_3_0_has_no_body() {
    let paths = json!({"/a": {"get": {"requestBody": {"content": {"application/json": {}}}}}});
    let text = json!({"openapi": "3.0.3", "paths": paths}).to_string();
    assert_eq!(import(text.as_bytes(), &Choice::default()).unwrap().operations[0].body, None);
    assert!(imported(&paths).operations[0].body.is_some());
}

#[test]
fn too_many_operations_and_huge_documents_are_bounded() {
    let paths: Map<String, Value> = (0..3_000)
        .map(|n| (format!("/p{n}"), json!({"get": {"operationId": "same", "description": "word ".repeat(1_400)}})))
        .collect();
    let text = described(&Value::Object(paths));
    assert!(text.len() > 20 << 20);
    let found = import(&text, &Choice::default()).unwrap();
    assert_eq!((found.operations.len(), names(&found)[999]), (1_000, "same_1000"));
    let reason = "2000 more operations than the 1000 that can be offered; `operations` names those that are wanted";
    assert_eq!(found.left_out, [LeftOut { operation: String::new(), reason: reason.into() }]);
    assert!(found.operations.iter().all(|operation| operation.description.chars().count() < 1_600));
    assert_eq!(import(&vec![b' '; 33 << 20], &Choice::default()), Err(DescriptionError::TooLarge));
}
