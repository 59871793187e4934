//! Thoughts that an endpoint does not take any more, over the requests of a conversation.

use turnwright_core::prompt::{Prompt, PromptMessage, PromptOf};
use turnwright_core::{
    AssistantBlock, AssistantMessage, Completion, ContentBlock, ConversationId, Finish, FinishReason, ModelRef, NativeBlock,
    Origin, Seq, TurnSettings, Usage, UserMessage,
};
use turnwright_dialects::by_name;
use turnwright_engine::Provider;
use turnwright_providers::{EndpointConfig, HttpProvider};

use crate::support::{Act, Server, collect, provider, response};

/// How an API refuses a thought, and what it says otherwise.
struct Api {
    dialect: &'static str,
    refusal: &'static str,
    answer: &'static str,
    /// A thought as the provider made it; `MARK` tells thoughts apart.
    thought: &'static str,
}

const APIS: [Api; 3] = [
    Api {
        dialect: "anthropic",
        refusal: r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#,
        answer: r#"{"type":"message","content":[{"type":"text","text":"Well."}],"stop_reason":"end_turn"}"#,
        thought: r#"{"type":"thinking","thinking":"MARK","signature":"s"}"#,
    },
    Api {
        dialect: "openai-responses",
        refusal: r#"{"error":{"message":"The encrypted content could not be verified.","code":"invalid_encrypted_content"}}"#,
        answer: r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Well."}]}]}"#,
        thought: r#"{"id":"MARK","type":"reasoning","summary":[],"encrypted_content":"g"}"#,
    },
    Api {
        dialect: "gemini",
        refusal: r#"{"error":{"code":400,"message":"Corrupted thought signature.","status":"INVALID_ARGUMENT"}}"#,
        answer: r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Well."}]},"finishReason":"STOP"}]}"#,
        thought: r#"{"text":"t","thought":true,"thoughtSignature":"MARK"}"#,
    },
];

fn json_answer(status: &str, body: &str) -> Vec<Act> {
    vec![response(status, "content-type: application/json\r\nconnection: close\r\n", body)]
}

fn settings() -> TurnSettings {
    TurnSettings::new(ModelRef::new("local", "m"))
}

fn person(text: &str) -> UserMessage {
    UserMessage { content: vec![ContentBlock::text(text)], settings: settings() }
}

fn thinks(api: &Api, mark: &str) -> AssistantMessage {
    let native = NativeBlock(api.thought.replace("MARK", mark));
    AssistantMessage {
        origin: Origin { dialect: api.dialect.to_owned(), provider: "local".to_owned(), model: "m".to_owned() },
        saw: Seq::FIRST,
        blocks: vec![
            AssistantBlock::Reasoning { text: mark.to_owned(), native: Some(native) },
            AssistantBlock::Text { text: "So.".to_owned(), native: None },
        ],
        finish: Finish { reason: FinishReason::Stop, raw: None },
        usage: Usage::default(),
        completion: Completion::Complete,
    }
}

async fn ask(provider: &HttpProvider, conversation: &str, messages: Vec<PromptMessage<'_>>) -> String {
    heard(provider, conversation, messages).await.0
}

/// What the model says, and what people are told of the call.
async fn heard(provider: &HttpProvider, conversation: &str, messages: Vec<PromptMessage<'_>>) -> (String, Vec<String>) {
    let (settings, conversation) = (settings(), conversation.parse::<ConversationId>().unwrap());
    let prompt = Prompt {
        conversation: Some(PromptOf { id: &conversation, beginning: None }),
        settings: &settings,
        messages,
        tools: &[],
        allow_calls: true,
        has_open_demand: false,
    };
    let came = collect(provider.call("m", &prompt).unwrap()).await;
    assert_eq!(came.failure, None);
    (came.text(), came.notices())
}

fn body(request: &str) -> &str {
    request.split_once("\r\n\r\n").unwrap().1
}

#[tokio::test]
async fn a_refused_thought_is_paid_for_once_in_a_conversation_and_newer_ones_go_back() {
    for api in APIS {
        let name = api.dialect;
        let script = [json_answer("400 Bad Request", api.refusal)];
        let good = std::iter::repeat_with(|| json_answer("200 OK", api.answer)).take(3);
        let server = Server::start(script.into_iter().chain(good).collect()).await;
        let config =
            EndpointConfig { max_retries: 0, ..EndpointConfig::new("local", by_name(name).unwrap(), &server.base_url) };
        let provider = provider(config);
        let at = |number: u64| Seq::new(number).unwrap();
        let (hi, more, again) = (person("hi"), person("more"), person("again"));
        let (old, new) = (thinks(&api, "old_thought"), thinks(&api, "new_thought"));
        let messages = [
            PromptMessage::User { seq: at(1), message: &hi },
            PromptMessage::Assistant { seq: at(2), message: &old },
            PromptMessage::User { seq: at(3), message: &more },
            PromptMessage::Assistant { seq: at(4), message: &new },
            PromptMessage::User { seq: at(5), message: &again },
        ];
        assert_eq!(ask(&provider, "a", messages.get(..3).unwrap().to_vec()).await, "Well.", "{name}");
        assert_eq!(ask(&provider, "a", messages.to_vec()).await, "Well.", "{name}");
        assert_eq!(ask(&provider, "b", messages.to_vec()).await, "Well.", "{name}");
        let asked = server.requests();
        assert_eq!(asked.len(), 4, "{name}: no later request is refused");
        let [refused, mended, later, other] = [0, 1, 2, 3].map(|at| body(asked.get(at).unwrap()));
        assert!(refused.contains("old_thought") && !mended.contains("old_thought"), "{name}");
        assert!(later.contains("new_thought") && !later.contains("old_thought"), "{name}: {later}");
        let beginning = mended.split_once("more").unwrap().0;
        assert!(later.starts_with(beginning), "{name}: the beginning that was mended stays\n{mended}\n{later}");
        assert!(other.contains("old_thought"), "{name}: another conversation is another matter");
    }
}

#[tokio::test]
async fn what_does_not_help_is_not_remembered() {
    let api = &APIS[0];
    let refusal = json_answer("400 Bad Request", api.refusal);
    let script = vec![refusal.clone(), refusal, json_answer("200 OK", api.answer)];
    let server = Server::start(script).await;
    let config =
        EndpointConfig { max_retries: 0, ..EndpointConfig::new("local", by_name(api.dialect).unwrap(), &server.base_url) };
    let provider = provider(config);
    let (hi, more, old) = (person("hi"), person("more"), thinks(api, "old_thought"));
    let messages = vec![
        PromptMessage::User { seq: Seq::FIRST, message: &hi },
        PromptMessage::Assistant { seq: Seq::new(2).unwrap(), message: &old },
        PromptMessage::User { seq: Seq::new(3).unwrap(), message: &more },
    ];
    let (settings, conversation) = (settings(), "a".parse::<ConversationId>().unwrap());
    let prompt = Prompt {
        conversation: Some(PromptOf { id: &conversation, beginning: None }),
        settings: &settings,
        messages: messages.clone(),
        tools: &[],
        allow_calls: true,
        has_open_demand: false,
    };
    assert_eq!(collect(provider.call("m", &prompt).unwrap()).await.failed().status, Some(400));
    assert_eq!(ask(&provider, "a", messages).await, "Well.");
    assert!(body(server.requests().get(2).unwrap()).contains("old_thought"));
}

/// How an API shows an image and refuses it, and what it says otherwise.
struct Shown {
    dialect: &'static str,
    refusal: &'static str,
    answer: &'static str,
}

const SHOWN: [Shown; 5] = [
    Shown {
        dialect: "anthropic",
        refusal: r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64: Could not process image"}}"#,
        answer: r#"{"type":"message","content":[{"type":"text","text":"Well."}],"stop_reason":"end_turn"}"#,
    },
    Shown {
        dialect: "openai-responses",
        refusal: r#"{"error":{"message":"The image data you provided does not represent a valid image.","param":"input[0].content[1].image_url","code":"invalid_value"}}"#,
        answer: r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Well."}]}]}"#,
    },
    Shown {
        dialect: "openai-chat",
        refusal: r#"{"error":{"message":"Invalid image.","type":"invalid_request_error","param":"messages.[0].content.[1].image_url"}}"#,
        answer: r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Well."},"finish_reason":"stop"}]}"#,
    },
    Shown {
        dialect: "gemini",
        refusal: r#"{"error":{"code":400,"message":"Unable to process input image.","status":"INVALID_ARGUMENT"}}"#,
        answer: r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Well."}]},"finishReason":"STOP"}]}"#,
    },
    Shown {
        dialect: "ollama",
        refusal: r#"{"error":"invalid image input"}"#,
        answer: r#"{"message":{"role":"assistant","content":"Well."},"done":true,"done_reason":"stop"}"#,
    },
];

#[tokio::test]
async fn a_refused_image_is_left_out_of_the_conversation_and_no_other_is() {
    const BROKEN: &str = "iVBORw0KGgoAAAAB";
    const WHOLE: &str = "iVBORw0KGgoAAAAC";
    for api in SHOWN {
        let name = api.dialect;
        let good = std::iter::repeat_with(|| json_answer("200 OK", api.answer)).take(3);
        let script = [json_answer("400 Bad Request", api.refusal)].into_iter().chain(good);
        let server = Server::start(script.collect()).await;
        let config =
            EndpointConfig { max_retries: 0, ..EndpointConfig::new("local", by_name(name).unwrap(), &server.base_url) };
        let provider = provider(config);
        let shows = |text: &str, data: &str| {
            let image = serde_json::json!({"type": "image", "data": data, "mimeType": "image/png"});
            let mut message = person(text);
            message.content.push(serde_json::from_value(image).unwrap());
            message
        };
        let at = |number: u64| Seq::new(number).unwrap();
        let (hi, more) = (shows("hi", BROKEN), shows("more", WHOLE));
        let said = AssistantMessage {
            blocks: vec![AssistantBlock::Text { text: "So.".to_owned(), native: None }],
            ..thinks(&APIS[0], "")
        };
        let messages = [
            PromptMessage::User { seq: at(1), message: &hi },
            PromptMessage::Assistant { seq: at(2), message: &said },
            PromptMessage::User { seq: at(3), message: &more },
        ];
        let (said, told) = heard(&provider, "a", messages.get(..1).unwrap().to_vec()).await;
        assert_eq!(said, "Well.", "{name}");
        let [told] = told.as_slice() else { panic!("{name}: {told:?}") };
        assert!(told.starts_with("provider `local` refused the request (400"), "{name}: {told}");
        assert!(told.ends_with("without what it refused, which is left out from now on (1 image or file)"), "{name}: {told}");
        // What was left out once is told once.
        assert_eq!(heard(&provider, "a", messages.to_vec()).await, ("Well.".to_owned(), Vec::new()), "{name}");
        assert_eq!(ask(&provider, "b", messages.get(2..).unwrap().to_vec()).await, "Well.", "{name}");
        let asked = server.requests();
        assert_eq!(asked.len(), 4, "{name}: no later request is refused");
        let [refused, mended, later, other] = [0, 1, 2, 3].map(|at| body(asked.get(at).unwrap()));
        assert!(refused.contains(BROKEN) && !mended.contains(BROKEN), "{name}");
        assert!(mended.contains("image, left out") || mended.contains("file, left out"), "{name}: {mended}");
        assert!(!later.contains(BROKEN) && later.contains(WHOLE), "{name}: {later}");
        assert!(other.contains(WHOLE), "{name}");
        for sent in [mended, later] {
            assert!(serde_json::from_str::<serde_json::Value>(sent).is_ok(), "{name}: {sent}");
        }
    }
}

#[tokio::test]
async fn what_a_model_is_not_shown_is_told_once() {
    let answer = json_answer("200 OK", SHOWN[0].answer);
    let server = Server::start(vec![answer.clone(), answer]).await;
    let provider = provider(EndpointConfig::new("local", by_name("anthropic").unwrap(), &server.base_url));
    let mut hi = person("look");
    for block in [
        serde_json::json!({"type": "image", "data": "iVBORw0KGgoAAAAB", "mimeType": "image/png"}),
        serde_json::json!({"type": "audio", "data": "UklGRgAA", "mimeType": "audio/wav"}),
        serde_json::json!({"type": "resource", "resource": {"uri": "a.pdf", "mimeType": "application/pdf", "blob": "no base64!"}}),
    ] {
        hi.content.push(serde_json::from_value(block).unwrap());
    }
    let said = AssistantMessage {
        blocks: vec![AssistantBlock::Text { text: "So.".to_owned(), native: None }],
        ..thinks(&APIS[0], "")
    };
    let more = person("more");
    let at = |number: u64| Seq::new(number).unwrap();
    let messages = [
        PromptMessage::User { seq: at(1), message: &hi },
        PromptMessage::Assistant { seq: at(2), message: &said },
        PromptMessage::User { seq: at(3), message: &more },
    ];
    let told = "the model is told in words alone, since it is not shown them, of: [audio, audio/wav], [binary resource a.pdf]";
    let first = heard(&provider, "a", messages.get(..1).unwrap().to_vec()).await;
    assert_eq!(first, ("Well.".to_owned(), vec![told.to_owned()]));
    assert_eq!(heard(&provider, "a", messages.to_vec()).await, ("Well.".to_owned(), Vec::new()));
}
