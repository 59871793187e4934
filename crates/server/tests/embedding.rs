//! The example of a server of one's own does what it says.

#[path = "../../../examples/own_server.rs"]
mod own_server;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn routes_of_ones_own_stand_beside_the_api() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (host, mcp, app) = own_server::app(folder.path(), address).await.unwrap();
    let end = CancellationToken::new();
    let client = async {
        let mut answers = Vec::new();
        let body = r#"{"content":"Hello"}"#;
        let post = format!(
            "POST /api/v1/conversations/c1/chat HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let get = format!("GET /hello HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        let gets = ["/api/v1/mcp/servers", "/api/v1/memory"]
            .map(|path| format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"));
        for request in [get, post].into_iter().chain(gets) {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answers.push(answer);
        }
        end.cancel();
        answers
    };
    let (ended, answers) = tokio::join!(turnwright_server::serve(listener, app, end.clone().cancelled_owned()), client);
    ended.unwrap();
    mcp.end().await;
    host.shutdown().await;
    assert!(answers[0].starts_with("HTTP/1.1 200 OK") && answers[0].ends_with("Hello."), "{}", answers[0]);
    assert!(answers[1].starts_with("HTTP/1.1 200 OK") && answers[1].contains(r#""role":"assistant""#), "{}", answers[1]);
    for (answer, path) in answers[2..].iter().zip(["servers", "memory"]) {
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{path}: {answer}");
    }
}
