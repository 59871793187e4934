//! A way to a server that a test breaks, mends, or blocks at a piece of traffic that it knows.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use crate::support::LIMIT;

/// A way to the server of an address.
pub(crate) struct Way {
    /// The address by this way.
    pub(crate) address: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_broken: bool,
    /// What a piece has in it that comes from a client, and how many such pieces pass until nothing does any more.
    block: Option<(Vec<u8>, usize)>,
    is_blocked: bool,
    /// Both ends of all connections that were made.
    open: Vec<TcpStream>,
}

impl Way {
    /// To a server at an address such as `postgres://ada:secret@127.0.0.1:5432/work`.
    pub(crate) fn to(address: &str) -> Self {
        let (user, rest) = address.split_once('@').unwrap();
        let (target, database) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("{user}@{}/{database}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let (target, inside) = (target.to_owned(), Arc::clone(&shared));
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut state = inside.lock();
                // Whoever comes while it is broken is hung up on.
                if state.is_broken {
                    continue;
                }
                let (client, server) = (client.unwrap(), TcpStream::connect(&target).unwrap());
                state.open.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let up = Arc::clone(&inside);
                thread::spawn(move || carry(from, to, |piece| up.pass(piece)));
                thread::spawn(move || carry(server, client, |_| {}));
            }
        });
        Self { address, shared }
    }

    /// All connections end, and no other comes to be.
    pub(crate) fn break_off(&self) {
        let mut state = self.shared.lock();
        state.is_broken = true;
        for end in state.open.drain(..) {
            drop(end.shutdown(Shutdown::Both));
        }
    }

    /// Everything passes again.
    pub(crate) fn mend(&self) {
        let mut state = self.shared.lock();
        (state.is_broken, state.is_blocked, state.block) = (false, false, None);
        self.shared.changed.notify_all();
    }

    /// Once so many pieces with these words have passed, the next waits, and all that come after it.
    pub(crate) fn block_after(&self, count: usize, words: &str) {
        self.shared.lock().block = Some((words.as_bytes().to_vec(), count));
    }

    /// Waits until a piece waits.
    pub(crate) fn wait_until_blocked(&self) {
        let waiting = self.shared.changed.wait_timeout_while(self.shared.lock(), LIMIT, |state| !state.is_blocked).unwrap();
        assert!(!waiting.1.timed_out(), "no piece came that had to wait");
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn pass(&self, piece: &[u8]) {
        let mut state = self.lock();
        if let Some((words, left)) = &mut state.block
            && piece.windows(words.len()).any(|part| part == words.as_slice())
        {
            if let Some(fewer) = left.checked_sub(1) {
                *left = fewer;
            } else {
                state.is_blocked = true;
                self.changed.notify_all();
            }
        }
        drop(self.changed.wait_while(state, |state| state.is_blocked).unwrap());
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, pass: impl Fn(&[u8])) {
    let mut bytes = vec![0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        pass(&bytes[..read]);
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Both));
}
