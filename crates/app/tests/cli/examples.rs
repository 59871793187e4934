//! Conversations as people have them, from the question to the answer: several places at once, one thing after another, files,
//! and a tool that fails.

use std::sync::{Arc, Barrier};

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, text_chunk};

use crate::mock_api::MockApi;
use crate::support::Place;

/// A call: its tool and its arguments.
pub(crate) type Call = (&'static str, Value);

/// A model that makes the calls of each step, one step after another, then says this.
pub(crate) fn model(steps: Vec<Vec<Call>>, says: &'static str) -> ModelServer {
    ModelServer::start(None, move |request| {
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let made = messages.iter().filter(|message| message["tool_calls"].is_array()).count();
        let Some(calls) = steps.get(made) else { return vec![text_chunk(says), finish_chunk("stop"), Piece::Done] };
        let calls = (0..).zip(calls).map(|(index, (tool, arguments))| call_chunk(index, tool, &arguments.to_string()));
        calls.chain([finish_chunk("tool_calls"), Piece::Done]).collect()
    })
    .unwrap()
}

/// A place that asks this model, with more in its configuration.
pub(crate) fn place(model: &ModelServer, more: &str) -> Place {
    let place = Place::new();
    let provider = format!(
        "model = \"scripted/m\"\n[providers.scripted]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\nmax_retries = 0\n",
        model.base_url()
    );
    place.write("turnwright.toml", provider + more);
    place
}

/// What the model was shown the last time.
pub(crate) fn shown(model: &ModelServer) -> Vec<Value> {
    model.requests().last().unwrap()["messages"].as_array().unwrap().clone()
}

const WEATHER: &str = r#"
openapi: 3.0.3
info: {title: Weather, version: "1"}
paths:
  /weather:
    get:
      operationId: get_weather
      summary: Get current weather for a location
      parameters:
        - {name: location, in: query, required: true, schema: {type: string}}
"#;

/// The configuration of the weather at an address.
fn weather(place: &Place, api: &MockApi) {
    place.write("weather.yaml", WEATHER);
    let config = std::fs::read_to_string(place.path("turnwright.toml")).unwrap();
    let more = format!("[tools.http.weather]\ndescription = \"weather.yaml\"\nbase_url = \"http://{}\"\n", api.address);
    place.write("turnwright.toml", config + &more);
}

#[test]
fn the_weather_of_two_cities_is_asked_for_at_the_same_time() {
    // Neither city is answered before both were asked for.
    let both = Arc::new(Barrier::new(2));
    let api = MockApi::new(move |asked| {
        both.wait();
        let (temperature, sky) = if asked.line.ends_with("London") { (15, "Cloudy") } else { (18, "Sunny") };
        (200, json!({"temperature": temperature, "sky": sky}))
    });
    let city = |name: &str| ("weather__get_weather", json!({"location": name}));
    let model = model(vec![vec![city("London"), city("Paris")]], "15 °C and cloudy in London, 18 °C and sunny in Paris.");
    let place = place(&model, "");
    weather(&place, &api);
    let ran = place.run(&["chat", "How is the weather in London and Paris?"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "15 °C and cloudy in London, 18 °C and sunny in Paris.\n"),
        "{ran:?}"
    );
    let mut asked = api.lines();
    asked.sort();
    assert_eq!(asked, ["GET /weather?location=London", "GET /weather?location=Paris"]);
    // One message with both calls, then their results in the order of the calls.
    let messages = shown(&model);
    let assistant = messages.iter().position(|message| message["role"] == "assistant").unwrap();
    assert_eq!(messages[assistant]["tool_calls"].as_array().unwrap().len(), 2);
    let results: Vec<_> = messages[assistant + 1..].iter().map(|message| &message["content"]).collect();
    assert_eq!(results, [&json!("{\"temperature\":15,\"sky\":\"Cloudy\"}"), &json!("{\"temperature\":18,\"sky\":\"Sunny\"}")]);
}

#[test]
fn a_folder_is_listed_and_a_file_of_it_read() {
    let list = ("filesystem__list", json!({"path": "notes"}));
    let read = ("filesystem__read", json!({"path": "notes/todo.txt"}));
    let model = model(vec![vec![list], vec![read]], "You wanted to buy milk.");
    let place = place(&model, "");
    std::fs::create_dir(place.path("notes")).unwrap();
    place.write("notes/todo.txt", "buy milk\n");
    let ran = place.run(&["chat", "What is in my notes?"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "You wanted to buy milk.\n"), "{ran:?}");
    let results: Vec<String> = shown(&model)
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].to_string())
        .collect();
    assert!(results.len() == 2 && results[0].contains("todo.txt") && results[1].contains("buy milk"), "{results:?}");
}

#[test]
fn a_tool_that_is_not_there_and_one_that_fails_are_told_and_the_turn_goes_on() {
    let api = MockApi::new(|_| (500, json!({"error": "no station"})));
    let unknown = ("weather__invalid_tool", json!({}));
    let failing = ("weather__get_weather", json!({"location": "Nowhere"}));
    let unfit = ("weather__get_weather", json!({"town": "London"}));
    let model = model(vec![vec![unknown], vec![failing, unfit]], "I cannot tell.");
    let place = place(&model, "");
    weather(&place, &api);
    let ran = place.run(&["chat", "How is the weather?", "--output", "json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &report["status"], &report["text"]), (Some(0), &json!("completed"), &json!("I cannot tell.")));
    let results: Vec<_> =
        report["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool").cloned().collect();
    let told: Vec<_> = results.iter().map(|result| result["content"].as_str().unwrap()).collect();
    assert!(results.iter().all(|result| result["is_error"] == true), "{results:?}");
    assert!(told[0].contains("invalid_tool"), "{told:?}");
    assert!(told[1].contains("GET answers 500") && told[1].contains("no station"), "{told:?}");
    assert!(told[2].contains("location"), "{told:?}");
    // What does not fit is not sent.
    assert_eq!(api.lines(), ["GET /weather?location=Nowhere"]);
}
