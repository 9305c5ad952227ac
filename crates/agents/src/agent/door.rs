//! The way in: so many connections at most, so long until each is known, and no haste where the
//! machine can take none.
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

use super::desk::SessionSlot;
use super::event::AgentLogEvent;

/// How long nobody is let in after the machine could take no connection. Without it the loop would
/// take a whole CPU for as long as that lasts.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a connection that was closed may take to be gone.
const GOING: Duration = Duration::from_secs(1);
/// Between two lines of the log about strangers: they shall not fill it.
const QUIET: Duration = Duration::from_secs(60);

/// Where connections come in.
pub struct ConnectionGate {
    guests: Arc<ConnectedPeers>,
    desk: Arc<SessionSlot>,
    told: Option<Instant>,
}

/// All who are in.
struct ConnectedPeers {
    list: Mutex<VecDeque<Arc<ConnectedPeer>>>,
    most: usize,
    limit: Duration,
    left: Notify,
}

/// The other end of a connection. A stranger until it has shown what it is known by.
pub struct ConnectedPeer {
    pub peer: SocketAddr,
    limit: Duration,
    standing: Mutex<PeerState>,
}

struct PeerState {
    /// The end of a stranger's time; none for one who is known.
    until: Option<Instant>,
    closed: bool,
    waker: Option<Waker>,
}

/// As long as it lives, its guest is known. Then it has as much time as a stranger.
pub struct AuthenticatedPeer(Arc<ConnectedPeer>);

/// A guest's connection: it fails when the guest's time is over.
pub struct Connection {
    stream: TcpStream,
    guest: Arc<ConnectedPeer>,
    guests: Arc<ConnectedPeers>,
    timer: Pin<Box<Sleep>>,
}

impl ConnectionGate {
    /// At most `most` connections at once, each known within `limit` of its coming.
    pub fn new(most: u16, limit: Duration, desk: Arc<SessionSlot>) -> ConnectionGate {
        let guests = ConnectedPeers {
            list: Mutex::default(),
            most: usize::from(most.max(1)),
            limit,
            left: Notify::new(),
        };
        ConnectionGate { guests: Arc::new(guests), desk, told: None }
    }

    /// Connections as they come, until the stream is dropped.
    pub fn open(mut self, listener: TcpListener) -> ReceiverStream<io::Result<Connection>> {
        let listener = Arc::new(listener);
        let accept = move || {
            let listener = listener.clone();
            async move { listener.accept().await }
        };
        let (let_in, inside) = mpsc::channel(1);
        tokio::spawn(async move {
            tokio::select! {
                () = self.serve(accept, &let_in) => {}
                () = let_in.closed() => {}
            }
        });
        ReceiverStream::new(inside)
    }

    async fn serve<F: Future<Output = io::Result<(TcpStream, SocketAddr)>>>(
        &mut self,
        accept: impl Fn() -> F,
        let_in: &mpsc::Sender<io::Result<Connection>>,
    ) {
        loop {
            match accept().await {
                Ok((stream, peer)) => {
                    if !self.room().await {
                        self.tell(format!(
                            "{peer} is not let in: all of the {} connections are in use",
                            self.guests.most
                        ));
                        continue;
                    }
                    // Without it probes wait for one another.
                    let _ = stream.set_nodelay(true);
                    if let_in.send(Ok(self.guests.admit(stream, peer))).await.is_err() {
                        return;
                    }
                }
                Err(error) if gave_up(&error) => {}
                Err(error) => {
                    self.tell(format!(
                        "no connection can be taken: {error}; strangers are sent away"
                    ));
                    self.guests.close_half();
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Makes room by closing the connections of those who have been strangers for longest, so that
    /// silent ones cannot keep others out. False where all are known.
    async fn room(&mut self) -> bool {
        while self.guests.is_full() {
            if !self.guests.close_oldest() {
                return false;
            }
            self.tell(format!(
                "all of the {} connections are in use; the oldest of strangers is closed",
                self.guests.most
            ));
            // Whoever takes longer is not waited for: then the next one has to go. That somebody
            // left may be told of one who left before: it is the number that counts.
            let over = Instant::now() + GOING;
            while self.guests.is_full() {
                if timeout_at(over, self.guests.left.notified()).await.is_err() {
                    break;
                }
            }
        }
        true
    }

    fn tell(&mut self, why: String) {
        if self.told.is_none_or(|told| told.elapsed() >= QUIET) {
            self.told = Some(Instant::now());
            self.desk.tell(AgentLogEvent::Crowded { why });
        }
    }
}

/// The other end went away before it was let in; not the machine's fault.
fn gave_up(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

impl ConnectedPeers {
    fn admit(self: &Arc<ConnectedPeers>, stream: TcpStream, peer: SocketAddr) -> Connection {
        let until = Instant::now() + self.limit;
        let standing = PeerState { until: Some(until), closed: false, waker: None };
        let guest =
            Arc::new(ConnectedPeer { peer, limit: self.limit, standing: Mutex::new(standing) });
        self.lock().push_back(guest.clone());
        let timer = Box::pin(sleep_until(until));
        Connection { stream, guest, guests: self.clone(), timer }
    }

    fn is_full(&self) -> bool {
        self.lock().len() >= self.most
    }

    /// Of the strangers those who came first, so that descriptors are free again and those who wait
    /// outside get their turn.
    fn close_half(&self) {
        let list = self.lock();
        let strangers = list.iter().filter(|guest| guest.is_stranger()).count();
        for guest in list.iter().filter(|guest| guest.is_stranger()).take(strangers.div_ceil(2)) {
            guest.close();
        }
    }

    /// False where there is no stranger.
    fn close_oldest(&self) -> bool {
        self.lock().iter().any(|guest| guest.close())
    }

    // Entries are whole whatever a panicking thread did.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<ConnectedPeer>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectedPeer {
    /// It has shown what it is known by.
    pub fn known(self: &Arc<ConnectedPeer>) -> AuthenticatedPeer {
        self.lock().until = None;
        AuthenticatedPeer(self.clone())
    }

    /// Whether it is an open stranger's.
    fn is_stranger(&self) -> bool {
        let standing = self.lock();
        !standing.closed && standing.until.is_some()
    }

    /// True if it was.
    fn close(&self) -> bool {
        let mut standing = self.lock();
        if standing.closed || standing.until.is_none() {
            return false;
        }
        standing.closed = true;
        standing.wake();
        true
    }

    fn lock(&self) -> MutexGuard<'_, PeerState> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut standing = self.0.lock();
        standing.until = Some(Instant::now() + self.0.limit);
        standing.wake();
    }
}

impl Connection {
    /// Whether the guest may go on; the task is woken when it no longer may.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let until = {
            let mut standing = self.guest.lock();
            if standing.closed {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            standing.waker = Some(context.waker().clone());
            standing.until
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
        self.guests.lock().retain(|guest| !Arc::ptr_eq(guest, &self.guest));
        self.guests.left.notify_one();
    }
}

impl Connected for Connection {
    type ConnectInfo = Arc<ConnectedPeer>;

    fn connect_info(&self) -> Arc<ConnectedPeer> {
        self.guest.clone()
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
    async fn a_machine_that_can_take_none_is_not_asked_without_a_pause() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let kept = log.clone();
        let desk = SessionSlot::new(Arc::new(move |event: AgentLogEvent| {
            kept.lock().unwrap().push(event)
        }));
        let mut door = ConnectionGate::new(4, Duration::from_secs(60), desk);
        let attempts = Arc::new(AtomicU32::new(0));
        let counted = attempts.clone();
        let accept = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Err(io::Error::from_raw_os_error(NO_DESCRIPTOR)) }
        };
        let (let_in, _inside) = mpsc::channel(1);
        let _ = timeout(5 * PAUSE, door.serve(accept, &let_in)).await;
        let attempts = attempts.load(Ordering::Relaxed);
        assert!((1..=6).contains(&attempts), "{attempts}");
        // It is said once.
        let log = log.lock().unwrap();
        assert!(
            matches!(&log[..], [AgentLogEvent::Crowded { why }] if why.contains("Too many open"))
        );
    }

    #[tokio::test]
    async fn one_who_left_before_makes_no_second_stranger_go() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let mut door = ConnectionGate::new(
            2,
            Duration::from_secs(60),
            SessionSlot::new(Arc::new(|_: AgentLogEvent| {})),
        );
        let mut others = Vec::new();
        let mut come = async |guests: &Arc<ConnectedPeers>| {
            others.push(TcpStream::connect(at).await.unwrap());
            let (stream, peer) = listener.accept().await.unwrap();
            guests.admit(stream, peer)
        };
        let guests = door.guests.clone();
        let first = come(&guests).await;
        drop(come(&guests).await);
        let second = come(&guests).await;
        let going = tokio::spawn(async move {
            sleep(Duration::from_millis(50)).await;
            drop(first);
        });
        assert!(door.room().await);
        assert!(second.guest.is_stranger(), "closed, though the first one went");
        going.await.unwrap();
    }
}
