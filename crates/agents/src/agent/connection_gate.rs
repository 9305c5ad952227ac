//! Accepts connections: a maximum number of them, a time limit for authentication, and a pause where
//! the machine cannot accept any.
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use super::event::AgentLogEvent;
use super::session_slot::SessionSlot;

/// Pause after an accept failed. Without it the loop would use a whole CPU while accepts fail.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a closed connection may take to end.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
/// Minimum interval of log lines about crowding, so that they cannot fill the log.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Accepts the agent's connections.
pub struct ConnectionGate {
    peers: Arc<ConnectedPeers>,
    slot: Arc<SessionSlot>,
    last_logged: Option<Instant>,
}

/// All open connections.
struct ConnectedPeers {
    list: Mutex<VecDeque<Arc<ConnectedPeer>>>,
    most: usize,
    limit: Duration,
    peer_closed: Notify,
}

/// The other end of a connection; unauthenticated at first.
pub struct ConnectedPeer {
    pub address: SocketAddr,
    limit: Duration,
    state: Mutex<PeerState>,
}

struct PeerState {
    /// When an unauthenticated connection times out; None once authenticated.
    until: Option<Instant>,
    closed: bool,
    waker: Option<Waker>,
}

/// The peer is authenticated as long as this lives; then the time limit starts again.
pub struct AuthenticatedPeer(Arc<ConnectedPeer>);

/// A connection that fails when the peer's time is over.
pub struct Connection {
    stream: TcpStream,
    peer: Arc<ConnectedPeer>,
    peers: Arc<ConnectedPeers>,
    timer: Pin<Box<Sleep>>,
}

impl ConnectionGate {
    /// At most `most` connections at once, each authenticated within `limit`.
    pub fn new(most: u16, limit: Duration, slot: Arc<SessionSlot>) -> ConnectionGate {
        let peers = ConnectedPeers {
            list: Mutex::default(),
            most: usize::from(most.max(1)),
            limit,
            peer_closed: Notify::new(),
        };
        ConnectionGate { peers: Arc::new(peers), slot, last_logged: None }
    }

    /// Accepts connections until the stream is dropped.
    pub fn open(mut self, listener: TcpListener) -> ReceiverStream<io::Result<Connection>> {
        let listener = Arc::new(listener);
        let accept = move || {
            let listener = listener.clone();
            async move { listener.accept().await }
        };
        let (accepted, incoming) = mpsc::channel(1);
        tokio::spawn(async move {
            tokio::select! {
                () = self.serve(accept, &accepted) => {}
                () = accepted.closed() => {}
            }
        });
        ReceiverStream::new(incoming)
    }

    async fn serve<F: Future<Output = io::Result<(TcpStream, SocketAddr)>>>(
        &mut self,
        accept: impl Fn() -> F,
        accepted: &mpsc::Sender<io::Result<Connection>>,
    ) {
        loop {
            match accept().await {
                Ok((stream, address)) => {
                    if !self.make_room().await {
                        self.log_crowded(format!(
                            "refusing {address}: all {} connections are in use",
                            self.peers.most
                        ));
                        continue;
                    }
                    // Without it probes wait for one another.
                    let _ = stream.set_nodelay(true);
                    if accepted.send(Ok(self.peers.admit(stream, address))).await.is_err() {
                        return;
                    }
                }
                Err(error) if is_client_abort(&error) => {}
                Err(error) => {
                    self.log_crowded(format!(
                        "cannot accept a connection: {error}; closing the unauthenticated ones"
                    ));
                    self.peers.close_half();
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Makes room by closing the oldest unauthenticated connections, so that silent peers cannot keep
    /// others out. False where all are authenticated.
    async fn make_room(&mut self) -> bool {
        while self.peers.is_full() {
            if !self.peers.close_oldest() {
                return false;
            }
            self.log_crowded(format!(
                "all {} connections are in use; closing the oldest unauthenticated one",
                self.peers.most
            ));
            // If it takes longer, the next one is closed. A notification may be of an earlier
            // connection, so the number is checked again.
            let over = Instant::now() + CLOSE_WAIT;
            while self.peers.is_full() {
                if timeout_at(over, self.peers.peer_closed.notified()).await.is_err() {
                    break;
                }
            }
        }
        true
    }

    fn log_crowded(&mut self, why: String) {
        if self.last_logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
            self.last_logged = Some(Instant::now());
            self.slot.log(AgentLogEvent::Crowded { why });
        }
    }
}

/// The other end aborted before it was accepted; not the machine's fault.
fn is_client_abort(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

impl ConnectedPeers {
    fn admit(self: &Arc<ConnectedPeers>, stream: TcpStream, address: SocketAddr) -> Connection {
        let until = Instant::now() + self.limit;
        let state = PeerState { until: Some(until), closed: false, waker: None };
        let peer = Arc::new(ConnectedPeer { address, limit: self.limit, state: Mutex::new(state) });
        self.lock().push_back(peer.clone());
        let timer = Box::pin(sleep_until(until));
        Connection { stream, peer, peers: self.clone(), timer }
    }

    fn is_full(&self) -> bool {
        self.lock().len() >= self.most
    }

    /// Closes the older half of the unauthenticated connections, so that descriptors become free for
    /// waiting ones.
    fn close_half(&self) {
        let list = self.lock();
        let unauthenticated = list.iter().filter(|peer| peer.is_unauthenticated()).count();
        for peer in
            list.iter().filter(|peer| peer.is_unauthenticated()).take(unauthenticated.div_ceil(2))
        {
            peer.close();
        }
    }

    /// False where all are authenticated.
    fn close_oldest(&self) -> bool {
        self.lock().iter().any(|peer| peer.close())
    }

    // Entries are whole whatever a panicking thread did.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<ConnectedPeer>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectedPeer {
    /// Marks the peer as authenticated.
    pub fn authenticate(self: &Arc<ConnectedPeer>) -> AuthenticatedPeer {
        self.lock().until = None;
        AuthenticatedPeer(self.clone())
    }

    /// Whether it is open and unauthenticated.
    fn is_unauthenticated(&self) -> bool {
        let state = self.lock();
        !state.closed && state.until.is_some()
    }

    /// Closes it if it is open and unauthenticated; returns whether it was.
    fn close(&self) -> bool {
        let mut state = self.lock();
        if state.closed || state.until.is_none() {
            return false;
        }
        state.closed = true;
        state.wake();
        true
    }

    fn lock(&self) -> MutexGuard<'_, PeerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeerState {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for AuthenticatedPeer {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.until = Some(Instant::now() + self.0.limit);
        state.wake();
    }
}

impl Connection {
    /// Checks that the peer's time is not over; wakes the task when it is.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let until = {
            let mut state = self.peer.lock();
            if state.closed {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            state.waker = Some(context.waker().clone());
            state.until
        };
        let Some(until) = until else { return Ok(()) };
        if self.timer.deadline() != until {
            self.timer.as_mut().reset(until);
        }
        match self.timer.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.peers.lock().retain(|peer| !Arc::ptr_eq(peer, &self.peer));
        self.peers.peer_closed.notify_one();
    }
}

impl Connected for Connection {
    type ConnectInfo = Arc<ConnectedPeer>;

    fn connect_info(&self) -> Arc<ConnectedPeer> {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        own.check(context)?;
        Pin::new(&mut own.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        own.check(context)?;
        Pin::new(&mut own.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        own.check(context)?;
        Pin::new(&mut own.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::timeout;

    use super::*;

    /// EMFILE, which has no kind of its own.
    const NO_DESCRIPTOR: i32 = 24;

    #[tokio::test]
    async fn failing_accepts_are_retried_with_a_pause() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let kept = log.clone();
        let slot = SessionSlot::new(Arc::new(move |event: AgentLogEvent| {
            kept.lock().unwrap().push(event)
        }));
        let mut gate = ConnectionGate::new(4, Duration::from_secs(60), slot);
        let attempts = Arc::new(AtomicU32::new(0));
        let counted = attempts.clone();
        let accept = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Err(io::Error::from_raw_os_error(NO_DESCRIPTOR)) }
        };
        let (accepted, _incoming) = mpsc::channel(1);
        let _ = timeout(5 * PAUSE, gate.serve(accept, &accepted)).await;
        let attempts = attempts.load(Ordering::Relaxed);
        assert!((1..=6).contains(&attempts), "{attempts}");
        // It is logged once.
        let log = log.lock().unwrap();
        assert!(
            matches!(&log[..], [AgentLogEvent::Crowded { why }] if why.contains("Too many open"))
        );
    }

    #[tokio::test]
    async fn an_earlier_disconnect_does_not_close_another_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let mut gate = ConnectionGate::new(
            2,
            Duration::from_secs(60),
            SessionSlot::new(Arc::new(|_: AgentLogEvent| {})),
        );
        let mut others = Vec::new();
        let mut come = async |peers: &Arc<ConnectedPeers>| {
            others.push(TcpStream::connect(at).await.unwrap());
            let (stream, address) = listener.accept().await.unwrap();
            peers.admit(stream, address)
        };
        let peers = gate.peers.clone();
        let first = come(&peers).await;
        drop(come(&peers).await);
        let second = come(&peers).await;
        let going = tokio::spawn(async move {
            sleep(Duration::from_millis(50)).await;
            drop(first);
        });
        assert!(gate.make_room().await);
        assert!(second.peer.is_unauthenticated(), "closed, though the first one went");
        going.await.unwrap();
    }
}
