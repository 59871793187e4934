//! Files that people bring: taken in pieces, looked at, named by messages, given back.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;
use turnwright_core::{ContentBlock, Entry};
use turnwright_engine::Limits;
use turnwright_host::{Environment, Host, Needs, Overrides, config};
use turnwright_server::{ServerOptions, ServerState, router};
use turnwright_testkit::MemoryArtifacts;

use crate::documented::documented;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";

struct Server {
    router: Router,
    host: Host,
    _folder: tempfile::TempDir,
}

struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn code(&self) -> (u16, String) {
        (self.status.as_u16(), self.json()["code"].as_str().unwrap_or_default().to_owned())
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A server with a database, whose model is the practice one.
async fn server() -> Server {
    server_with(ServerOptions::default()).await
}

async fn server_with(options: ServerOptions) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::new(folder.path());
    let overrides = Overrides { data_dir: Some(folder.path().join("data")), ..Overrides::default() };
    let loaded = config::open(&environment, &overrides).unwrap();
    let host = Host::start(loaded, &environment, Needs::Everything).await.unwrap();
    host.engine().limit(Limits { attachment_bytes: 1 << 20, attachments: 32, ..Limits::default() });
    let state = ServerState::new(host.engine().clone(), options)
        .with_artifacts(host.artifacts().clone())
        .with_search(host.texts().clone());
    Server { router: router(state), host, _folder: folder }
}

/// The same with its files in memory.
async fn server_over(files: &Arc<MemoryArtifacts>) -> Server {
    let server = server().await;
    let state = ServerState::new(server.host.engine().clone(), ServerOptions::default()).with_artifacts(files.clone());
    Server { router: router(state), ..server }
}

impl Server {
    async fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Answered {
        let mut request = Request::builder().method(method.clone()).uri(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
        let (parts, body) = documented(&method, path, response).into_parts();
        Answered { status: parts.status, headers: parts.headers, body: to_bytes(body, usize::MAX).await.unwrap() }
    }

    async fn upload(&self, name: &str, declared: &str, bytes: impl Into<Body>) -> Answered {
        self.ask(Method::POST, &format!("/api/v1/artifacts?name={name}"), &[("content-type", declared)], bytes).await
    }

    async fn get(&self, path: &str) -> Answered {
        self.ask(Method::GET, path, &[], Body::empty()).await
    }

    async fn post(&self, path: &str, body: Value) -> Answered {
        self.ask(Method::POST, path, &[("content-type", "application/json")], body.to_string()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_comes_back_as_it_was_and_so_that_no_browser_runs_it() {
    let server = server().await;
    let text = "<script>alert(1)</script>\n".repeat(20_000);
    let stored = server.upload("a%20%22b%22.html", "text/html", text.clone()).await;
    assert_eq!(stored.status, StatusCode::CREATED);
    let told = stored.json();
    assert_eq!(
        (&told["name"], &told["media_type"], &told["bytes"]),
        (&json!("a \"b\".html"), &json!("text/html"), &json!(text.len()))
    );
    let path = stored.header("location").to_owned();
    let again = server.upload("a%20%22b%22.html", "text/html", text.clone()).await;
    assert_eq!((&again.json()["id"], again.header("location")), (&told["id"], &*path), "the same file is stored once");
    let back = server.get(&path).await;
    assert_eq!(back.body, text.as_bytes());
    for (name, expected) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-disposition", "attachment; filename=\"a _b_.html\"; filename*=UTF-8''a%20%22b%22.html"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox; frame-ancestors 'none'"),
    ] {
        assert_eq!(back.header(name), expected);
    }
    let tag = back.header("etag").to_owned();
    let known = server.ask(Method::GET, &path, &[("if-none-match", &tag)], Body::empty()).await;
    assert_eq!((known.status, known.body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert_eq!(server.ask(Method::DELETE, &path, &[], Body::empty()).await.status, StatusCode::NO_CONTENT);
    assert_eq!(server.get(&path).await.code(), (404, "not_found".to_owned()));
    server.host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_brings_a_file_as_browsers_send_it() {
    let server = server().await;
    let form = [
        b"--x\r\ncontent-disposition: form-data; name=\"note\"\r\n\r\nhi\r\n--x\r\n".as_slice(),
        b"content-disposition: form-data; name=\"file\"; filename=\"dir/pixel.png\"\r\ncontent-type: image/png\r\n\r\n",
        PNG,
        b"\r\n--x--\r\n",
    ]
    .concat();
    let headers = [("content-type", "multipart/form-data; boundary=x")];
    let stored = server.ask(Method::POST, "/api/v1/artifacts", &headers, form).await;
    assert_eq!(stored.status, StatusCode::CREATED);
    assert_eq!((&stored.json()["name"], &stored.json()["media_type"]), (&json!("pixel.png"), &json!("image/png")));
    let back = server.get(stored.header("location")).await;
    assert_eq!(
        (&*back.body, back.header("content-disposition")),
        (PNG, "inline; filename=\"pixel.png\"; filename*=UTF-8''pixel.png")
    );
    let cut = b"--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nabc".to_vec();
    assert_eq!(server.ask(Method::POST, "/api/v1/artifacts", &headers, cut).await.status, StatusCode::BAD_REQUEST);
    let empty = b"--x--\r\n".to_vec();
    assert_eq!(
        server.ask(Method::POST, "/api/v1/artifacts", &headers, empty).await.code(),
        (422, "invalid_request".to_owned())
    );
    server.host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_with_two_files_is_refused_and_neither_is_kept() {
    let files = Arc::new(MemoryArtifacts::default());
    let server = server_over(&files).await;
    let field = |name: &str, file: &str| {
        format!("--x\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\nthe words of {name}\r\n")
    };
    let headers = [("content-type", "multipart/form-data; boundary=x")];
    let send = async |form: String| server.ask(Method::POST, "/api/v1/artifacts", &headers, form + "--x--\r\n").await;
    for second in [field("file", ""), field("other", "; filename=\"b.txt\"")] {
        let refused = send(field("file", "; filename=\"a.txt\"") + &second).await;
        assert_eq!(refused.code(), (422, "invalid_request".to_owned()));
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.starts_with("the form has the files `a.txt` and `"), "{detail}");
        assert_eq!((files.drafts(), files.files().len()), (0, 0));
    }
    // All of it counts, also what is passed over.
    let note = |bytes: usize| format!("--x\r\ncontent-disposition: form-data; name=\"note\"\r\n\r\n{}\r\n", "n".repeat(bytes));
    let (file, large) = (field("file", "; filename=\"a.txt\""), note((1 << 20) + 70_000));
    for form in [large.clone() + &file, file.clone() + &large, file.clone() + &note(600_000) + &note(600_000)] {
        let refused = send(form).await;
        assert_eq!(refused.code(), (413, "attachment_too_large".to_owned()));
        assert_eq!((refused.header("connection"), files.drafts(), files.files().len()), ("close", 0, 0));
    }
    // Other fields are nothing to it, wherever they stand.
    let taken = send(field("note", "") + &field("file", "; filename=\"a.txt\"") + &field("note", "")).await;
    assert_eq!((taken.status, &taken.json()["name"]), (StatusCode::CREATED, &json!("a.txt")));
    server.host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_upload_whose_client_is_gone_nothing_stays() {
    let files = Arc::new(MemoryArtifacts::default());
    let server = server_over(&files).await;
    let (tell, told) = tokio::sync::oneshot::channel::<()>();
    let mut tell = Some(tell);
    let pieces = futures_util::stream::iter(0..3).then(move |place| {
        // The third comes after the first two are stored, and never ends.
        let tell = if place == 2 { tell.take() } else { None };
        async move {
            if let Some(tell) = tell {
                tell.send(()).unwrap();
                std::future::pending::<()>().await;
            }
            Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 300_000]))
        }
    });
    let upload = server.upload("a", "text/plain", Body::from_stream(pieces));
    tokio::select! {
        _ = upload => panic!("it never ends"),
        come = told => come.unwrap(),
    }
    // The end of the engine waits for what it has to clear away.
    server.host.shutdown().await;
    assert_eq!(files.drafts(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_what_it_says_or_too_large_is_refused_and_leaves_nothing() {
    let server = server().await;
    let table: [(&str, Vec<u8>, u16, &str); 7] = [
        ("image/jpeg", PNG.to_vec(), 422, "attachment_type_mismatch"),
        ("application/zip", b"PK\x03\x04....".to_vec(), 415, "attachment_type_not_taken"),
        ("text/plain", b"text with a \0".to_vec(), 415, "attachment_type_not_taken"),
        ("text/plain", "ß".as_bytes()[..1].to_vec(), 415, "attachment_type_not_taken"),
        ("text/plain", b"MZ words and then \0\x01".to_vec(), 415, "attachment_type_not_taken"),
        ("text/plain", Vec::new(), 422, "attachment_empty"),
        ("text/plain", vec![b'x'; (1 << 20) + 1], 413, "attachment_too_large"),
    ];
    for (declared, bytes, status, code) in table {
        assert_eq!(server.upload("a", declared, bytes).await.code(), (status, code.to_owned()), "{declared}");
    }
    let broken = Body::from_stream(futures_util::stream::iter([
        Ok(Bytes::from(vec![b'x'; 300_000])),
        Err(std::io::Error::other("gone")),
    ]));
    assert_eq!(server.upload("a", "text/plain", broken).await.code(), (400, "body_cut_off".to_owned()));
    let named = server.upload("a", "", b"BMI\0\0".to_vec()).await;
    assert!(named.json()["detail"].as_str().unwrap().starts_with("the file is `image/bmp`;"), "{:?}", named.body);
    let elsewhere: [&[u8]; 4] = [b"na\xefve", b"caf\xe9", b"\xff\xfec\0", b"\xfe\xff\0c"];
    for text in elsewhere {
        let refused = server.upload("a", "text/plain", text.to_vec()).await;
        let detail =
            "the file is of no known type, and no text in UTF-8 (perhaps it is in Latin-1 or UTF-16: save it as UTF-8);";
        assert!(refused.json()["detail"].as_str().unwrap().starts_with(detail), "{text:?}: {:?}", refused.body);
    }
    let table = server.upload("a.csv", "text/csv", "BMI,weight\n22,70\n").await;
    assert_eq!((table.status, &table.json()["media_type"]), (StatusCode::CREATED, &json!("text/csv")));
    let whole = server.upload("a", "text/plain", vec![b'x'; 1 << 20]).await;
    assert_eq!(whole.status, StatusCode::CREATED, "exactly the limit is taken");
    server.host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_names_files_holds_them_and_they_go_with_the_last_conversation_that_does() {
    let server = server().await;
    let image = server.upload("pixel.png", "image/png", PNG).await;
    let text = server.upload("notes.txt", "text/plain", "remember this").await;
    let paths = [image.header("location"), text.header("location")];
    let link = |uri: &str| json!({"type": "resource_link", "uri": uri, "name": "x"});
    let content = json!([{"type": "text", "text": "look"}, link(paths[0]), link(paths[1])]);
    for id in ["c1", "c2"] {
        let answer = server.post(&format!("/api/v1/conversations/{id}/chat"), json!({"content": content})).await;
        assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.json());
    }
    let journal = server.host.engine().journal(&"c1".parse().unwrap()).await.unwrap();
    let Entry::User(said) = &*journal.entries()[0].entry else { panic!("the first entry is the message") };
    assert_eq!(said.content[1], ContentBlock::Image { data: STANDARD.encode(PNG), mime_type: "image/png".to_owned() });
    let ContentBlock::Resource { resource } = &said.content[2] else { panic!("the text is a resource") };
    assert_eq!((&*resource.uri, resource.text.as_deref()), ("file:///notes.txt", Some("remember this")));
    let in_use = server.ask(Method::DELETE, paths[0], &[], Body::empty()).await;
    assert_eq!(in_use.code(), (409, "in_use".to_owned()));
    let ui = json!({"id": "c3", "messages": [{"id": "m", "role": "user", "parts": [
        {"type": "file", "url": paths[0], "mediaType": "image/png", "filename": "pixel.png"}]}]});
    assert_eq!(server.post("/api/chat", ui).await.status, StatusCode::OK);
    let file_id = image.json()["id"].clone();
    let openai = json!({"model": "practice/practice", "input": [{"role": "user", "content": [
        {"type": "input_text", "text": "look"}, {"type": "input_image", "file_id": file_id}]}]});
    let openai = server.post("/v1/responses", openai).await;
    assert_eq!(openai.status, StatusCode::OK, "{:?}", openai.json());
    let fourth = openai.header("x-turnwright-conversation").to_owned();
    let nowhere = link(&format!("/api/v1/artifacts/art_{}", "0".repeat(32)));
    let missing = server.post("/api/v1/conversations/c9/chat", json!({"content": [nowhere]})).await;
    assert_eq!(missing.code(), (422, "invalid_request".to_owned()));
    for id in ["c1", "c2", "c3", &fourth] {
        assert_eq!(server.get(paths[0]).await.status, StatusCode::OK, "{id} holds it still");
        let gone = server.ask(Method::DELETE, &format!("/api/v1/conversations/{id}"), &[], Body::empty()).await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
    }
    for path in paths {
        assert_eq!(server.get(path).await.status, StatusCode::NOT_FOUND);
    }
    server.host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_cannot_name_more_than_a_request_may_bring() {
    let server = server_with(ServerOptions { body_limit_bytes: 4_096, ..ServerOptions::default() }).await;
    let stored = server.upload("a.txt", "text/plain", "a".repeat(1_024)).await;
    assert_eq!(stored.status, StatusCode::CREATED, "{:?}", stored.body);
    let link = json!({"type": "resource_link", "uri": stored.header("location"), "name": "a"});
    for (count, refusal) in [(33, (422, "too_many_attachments")), (5, (413, "attachment_too_large"))] {
        let content = vec![&link; count];
        let answer = server.post("/api/v1/conversations/c1/chat", json!({"content": content})).await;
        assert_eq!(answer.code(), (refusal.0, refusal.1.to_owned()), "{count}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_file_is_given_exactly() {
    let server = server().await;
    let text = (0..90_000).map(|number| number.to_string()).collect::<Vec<_>>().join("\n");
    let stored = server.upload("numbers.txt", "text/plain", text.clone()).await.json();
    let path = format!("/api/v1/artifacts/{}", stored["id"].as_str().unwrap());
    let part = async |range: &str| server.ask(Method::GET, &path, &[("range", range)], Body::empty()).await;
    let bytes = text.as_bytes();
    // The second crosses the ends of pieces.
    for (range, from, to) in [
        ("bytes=0-0", 0, 1),
        ("bytes=262140-524300", 262_140, 524_301),
        ("bytes=500000-", 500_000, bytes.len()),
        ("bytes=-7", bytes.len() - 7, bytes.len()),
    ] {
        let answered = part(range).await;
        assert_eq!(answered.status, StatusCode::PARTIAL_CONTENT, "{range}");
        assert_eq!(answered.body, bytes.get(from..to).unwrap(), "{range}");
        assert_eq!(answered.header("content-range"), format!("bytes {from}-{}/{}", to - 1, bytes.len()));
        assert_eq!(answered.header("content-length"), (to - from).to_string());
        assert_eq!(answered.header("x-content-type-options"), "nosniff");
    }
    let beyond = part("bytes=999999999-").await;
    assert_eq!(
        (beyond.status, beyond.header("content-range")),
        (StatusCode::RANGE_NOT_SATISFIABLE, &*format!("bytes */{}", bytes.len()))
    );
    assert_eq!(beyond.code().1, "no_such_part");
    let whole = part("bytes=0-1,5-6").await;
    assert_eq!((whole.status, whole.body.len(), whole.header("accept-ranges")), (StatusCode::OK, bytes.len(), "bytes"));
}
