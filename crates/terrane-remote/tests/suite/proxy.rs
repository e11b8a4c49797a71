//! A proxy that cuts connections after so many bytes, and whose target may change.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

/// Passes bytes on until it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
    accepts: Option<JoinHandle<()>>,
}

struct State {
    target: Mutex<SocketAddr>,
    /// The bytes of one way that are passed on before all connections are cut.
    left: Mutex<Option<(Way, u64)>>,
    open: Mutex<Vec<TcpStream>>,
    to_server: AtomicU64,
    to_client: AtomicU64,
    is_ended: AtomicBool,
}

impl Proxy {
    pub(crate) fn new(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(State {
            target: Mutex::new(target),
            left: Mutex::new(None),
            open: Mutex::default(),
            to_server: AtomicU64::new(0),
            to_client: AtomicU64::new(0),
            is_ended: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        #[expect(clippy::disallowed_methods, reason = "a proxy of tests")]
        let accepts = std::thread::spawn(move || shared.accept(&listener));
        Proxy { address, state, accepts: Some(accepts) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends connections to another server from now on.
    pub(crate) fn set_target(&self, target: SocketAddr) {
        *self.state.target.lock().expect("no panic") = target;
    }

    /// Cuts all connections after so many further bytes of one way.
    pub(crate) fn cut(&self, way: Way, bytes: u64) {
        *self.state.left.lock().expect("no panic") = Some((way, bytes));
    }

    /// Cuts no connection any more.
    pub(crate) fn cut_nothing(&self) {
        *self.state.left.lock().expect("no panic") = None;
    }

    /// Ends all connections.
    pub(crate) fn sever(&self) {
        self.state.sever();
    }

    /// The bytes that were passed on in one way.
    pub(crate) fn passed(&self, way: Way) -> u64 {
        self.state.passed(way).load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.is_ended.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
        drop(self.accepts.take().map(JoinHandle::join));
        self.sever();
    }
}

impl State {
    fn passed(&self, way: Way) -> &AtomicU64 {
        if way == Way::ToServer { &self.to_server } else { &self.to_client }
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        while let Ok((client, _)) = listener.accept() {
            if self.is_ended.load(Ordering::SeqCst) {
                return;
            }
            let target = *self.target.lock().expect("no panic");
            // A server that is down: the client sees a connection that ends.
            let Ok(server) = TcpStream::connect(target) else { continue };
            for stream in [&client, &server] {
                stream.set_nodelay(true).expect("a socket");
            }
            let copy = |stream: &TcpStream| stream.try_clone().expect("a socket");
            self.open.lock().expect("no panic").extend([copy(&client), copy(&server)]);
            self.pass(copy(&client), copy(&server), Way::ToServer);
            self.pass(server, client, Way::ToClient);
        }
    }

    fn sever(&self) {
        for stream in self.open.lock().expect("no panic").drain(..) {
            // It may have ended.
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// How many of `len` bytes are passed on, and whether the connections are cut behind them.
    fn allowed(&self, way: Way, len: usize) -> (usize, bool) {
        let mut left = self.left.lock().expect("no panic");
        match &mut *left {
            Some((cut, bytes)) if *cut == way => {
                let allowed = len.min(usize::try_from(*bytes).unwrap_or(usize::MAX));
                *bytes -= allowed as u64;
                let is_cut = allowed < len;
                if is_cut {
                    *left = None;
                }
                (allowed, is_cut)
            }
            _ => (len, false),
        }
    }

    /// Passes bytes of one way on by a thread of their own.
    fn pass(self: &Arc<Self>, mut from: TcpStream, mut to: TcpStream, way: Way) {
        let state = Arc::clone(self);
        let run = move || {
            let mut bytes = vec![0; 64 << 10];
            loop {
                let len = from.read(&mut bytes).unwrap_or(0);
                let (allowed, is_cut) = state.allowed(way, len);
                let is_passed = to.write_all(&bytes[..allowed]).is_ok();
                state.passed(way).fetch_add(allowed as u64, Ordering::SeqCst);
                if is_cut {
                    state.sever();
                }
                if len == 0 || is_cut || !is_passed {
                    break;
                }
            }
            // They may have ended.
            drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
        };
        #[expect(clippy::disallowed_methods, reason = "a proxy of tests")]
        drop(std::thread::spawn(run));
    }
}
