//! Limits the number of connections of clients, and ends those without an admitted call.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Stream, stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;
use tonic::transport::server::Connected;

use super::counts::Refusal;
use super::limits::Shared;

/// The pause after the system refused a connection, for example because there are too many files.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// The client of a connection.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    address: SocketAddr,
    has_called: Arc<AtomicBool>,
}

impl Peer {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Notes a call that was not refused, with which the connection may stay.
    pub(super) fn called(&self) {
        // Relaxed: only the time of the flag matters, and nothing is read behind it.
        self.has_called.store(true, Ordering::Relaxed);
    }
}

/// Accepts connections. One beyond the limit is closed at once.
pub(super) fn incoming(
    listener: TcpListener,
    shared: Arc<Shared>,
) -> impl Stream<Item = io::Result<Connection>> {
    stream::unfold((listener, shared), |(listener, shared)| async move {
        loop {
            let Ok((stream, address)) = listener.accept().await else {
                tokio::time::sleep(REFUSED_PAUSE).await;
                continue;
            };
            let Ok(permit) = Arc::clone(&shared.connections).try_acquire_owned() else {
                shared.counts.refuse(Refusal::Connections);
                continue;
            };
            // Without it, calls are slower and right.
            drop(stream.set_nodelay(true));
            let peer = Peer { address, has_called: Arc::default() };
            let deadline = Some(Box::pin(tokio::time::sleep(shared.limits.first_call_time_max)));
            let connection = Connection { stream, peer, deadline, _permit: permit };
            return Some((Ok(connection), (listener, shared)));
        }
    })
}

/// A connection, which ends if its first call that is not refused does not come in time.
pub(super) struct Connection {
    stream: TcpStream,
    peer: Peer,
    deadline: Option<Pin<Box<Sleep>>>,
    _permit: OwnedSemaphorePermit,
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(deadline) = &mut self.deadline {
            let is_late = deadline.as_mut().poll(cx).is_ready();
            // Relaxed: see `called`.
            if self.peer.has_called.load(Ordering::Relaxed) {
                self.deadline = None;
            } else if is_late {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
