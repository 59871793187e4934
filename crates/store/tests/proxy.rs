//! A way to the server of the tests that breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::server::Schema;

/// What is lost where a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// What the client sent: it is not done.
    Statement,
    /// What the server says to it: it is done, and nobody hears of it.
    Answer,
}

/// A way to the server that breaks a connection at the request of a number that comes over it: what a client sends until the server
/// answers, of however many bytes.
#[derive(Debug)]
pub(crate) struct Proxy {
    /// The schema, by this way.
    pub(crate) address: String,
    /// How many requests pass until it breaks; negative for never.
    pub(crate) left: Arc<AtomicI64>,
    /// How many pass after that until it breaks again; negative for never.
    pub(crate) again: Arc<AtomicI64>,
    lost: Lost,
    /// What the server says in place of something else of the same length.
    said: Option<(Vec<u8>, Vec<u8>)>,
}

impl Proxy {
    /// One that breaks where it is told to.
    pub(crate) async fn start(schema: &Schema, lost: Lost) -> Arc<Self> {
        Self::begin(schema, lost, None).await
    }

    /// One over which the server says something else of the same length than it does.
    pub(crate) async fn start_saying(schema: &Schema, old: Vec<u8>, new: Vec<u8>) -> Arc<Self> {
        assert_eq!(old.len(), new.len());
        Self::begin(schema, Lost::Answer, Some((old, new))).await
    }

    async fn begin(schema: &Schema, lost: Lost, said: Option<(Vec<u8>, Vec<u8>)>) -> Arc<Self> {
        let (user, rest) = schema.server.split_once('@').unwrap();
        let (target, database) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = format!("{user}@127.0.0.1:{port}/{database}?schema={}&sslmode=disable", schema.name);
        let never = || Arc::new(AtomicI64::new(-1));
        let proxy = Arc::new(Self { address, left: never(), again: never(), lost, said });
        let (target, shared) = (target.to_owned(), Arc::clone(&proxy));
        #[expect(clippy::disallowed_methods, reason = "it ends with its test")]
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (target, shared) = (target.clone(), Arc::clone(&shared));
                #[expect(clippy::disallowed_methods, reason = "it ends with its connection")]
                tokio::spawn(async move { shared.carry(client, &target).await });
            }
        });
        proxy
    }

    /// Whether the connection that a request comes over breaks.
    fn breaks(&self) -> bool {
        let next = |left: i64| match left {
            ..0 => None,
            0 => Some(self.again.load(Ordering::SeqCst)),
            1.. => Some(left - 1),
        };
        self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next) == Ok(0)
    }

    fn put_words_into(&self, piece: &mut [u8]) {
        let Some((old, new)) = &self.said else { return };
        if let Some(at) = piece.windows(old.len()).position(|part| part == old.as_slice()) {
            piece[at..at + old.len()].copy_from_slice(new);
        }
    }

    async fn carry(&self, mut client: TcpStream, target: &str) {
        let mut server = TcpStream::connect(target).await.unwrap();
        let (mut up, mut down) = (vec![0_u8; 65_536], vec![0_u8; 65_536]);
        let (mut is_broken, mut is_answered) = (false, true);
        loop {
            tokio::select! {
                read = client.read(&mut up) => {
                    let Ok(read @ 1..) = read else { return };
                    is_broken |= std::mem::take(&mut is_answered) && self.breaks();
                    if is_broken && self.lost == Lost::Statement {
                        return;
                    }
                    if server.write_all(&up[..read]).await.is_err() { return }
                }
                read = server.read(&mut down) => {
                    let Ok(read @ 1..) = read else { return };
                    self.put_words_into(&mut down[..read]);
                    is_answered = true;
                    // It was done, and nobody hears of it.
                    if is_broken || client.write_all(&down[..read]).await.is_err() { return }
                }
            }
        }
    }
}
