//! The server: one thread of the lowest priority beside the measurement.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::{Arc, mpsc as std_mpsc};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::board::Board;
use crate::page::{Page, Title};
use crate::{ListenAddress, LiveError, RunEvent, ViewToken, placement, service};

/// Connections at a time, viewers included; more are closed at once.
const MAX_CONNECTIONS: usize = 128;
/// How long a stranger may take for the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(5);
/// How long a request other than a viewer's stream may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// The largest head of a request, and what is buffered for a viewer.
const MAX_BUFFER: usize = 16 * 1024;
/// Events that wait for the server's thread; progress beyond is left out.
const MAX_WAITING: usize = 4096;
/// How long viewers may take for the last state when the command ends.
const LAST_FRAME_LIMIT: Duration = Duration::from_millis(1500);
const JOIN_LIMIT: Duration = Duration::from_secs(3);

/// What is served, where and to whom.
#[derive(Debug)]
pub struct LiveConfig {
    pub listen: ListenAddress,
    /// What viewers must present; none is needed on a loopback address.
    pub token: Option<ViewToken>,
    pub title: Title,
    /// The style of reports, which the page shares.
    pub style: &'static str,
}

enum Message {
    /// With the host.
    Event(Arc<str>, Box<RunEvent>),
    HostEnded(Arc<str>, String),
    /// The CPUs that the load uses now.
    Avoid(Vec<u32>),
    End(String),
}

/// Feeds the page. It never waits: where the server's thread is far behind, news is left out.
#[derive(Debug, Clone)]
pub struct Feed {
    sender: mpsc::Sender<Message>,
    /// Empty: this machine.
    host: Arc<str>,
}

impl Feed {
    /// Feeds the page with what happens on a host of this name.
    pub fn of_host(&self, name: &str) -> Feed {
        Feed { sender: self.sender.clone(), host: Arc::from(name) }
    }

    pub fn event(&self, event: RunEvent) {
        self.send(Message::Event(Arc::clone(&self.host), Box::new(event)));
    }

    /// The host has ended.
    pub fn ended(&self, how: &str) {
        self.send(Message::HostEnded(Arc::clone(&self.host), how.to_owned()));
    }

    fn send(&self, message: Message) {
        let _ = self.sender.try_send(message);
    }

    /// The load runs on these CPUs now; none where it may run anywhere.
    pub fn avoid(&self, cpus: Vec<u32>) {
        self.send(Message::Avoid(cpus));
    }
}

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub struct LiveServer {
    address: SocketAddr,
    feed: Feed,
    ended: std_mpsc::Receiver<()>,
}

impl LiveServer {
    /// Listens, and serves from a thread of its own.
    ///
    /// # Errors
    /// The address is taken, is not of this machine, or is open to others without a token.
    pub fn start(config: LiveConfig) -> Result<LiveServer, LiveError> {
        let ListenAddress(address) = config.listen;
        if !config.listen.is_loopback() && config.token.is_none() {
            return Err(LiveError::Address(format!(
                "{address} can be reached from other machines: name a file with a token, which \
                 viewers must present, or take an address of loopback such as 127.0.0.1"
            )));
        }
        let wrong = |error: io::Error| LiveError::Listen { address, why: explained(&error) };
        let listener = TcpListener::bind(address).map_err(wrong)?;
        listener.set_nonblocking(true).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        let (end_sender, ended) = std_mpsc::channel();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let all_cpus = affinity::of_thread().unwrap_or_default();
        std::thread::Builder::new().name("live".to_owned()).spawn(move || {
            placement::lower_priority();
            let local = tokio::task::LocalSet::new();
            let served = local.run_until(serve(listener, config, messages, all_cpus));
            // A listener that cannot be served leaves a measurement without a page.
            let _ = runtime.block_on(served);
            drop(local);
            let _ = end_sender.send(());
        })?;
        Ok(LiveServer { address, feed: Feed { sender, host: Arc::from("") }, ended })
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub fn feed(&self) -> Feed {
        self.feed.clone()
    }

    /// Shows viewers how the command ended, and stops serving.
    pub fn end(self, how: &str) {
        self.finish(how);
    }

    fn finish(&self, how: &str) {
        if self.feed.sender.try_send(Message::End(how.to_owned())).is_ok() {
            let _ = self.ended.recv_timeout(JOIN_LIMIT);
        }
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        // After `end` the thread has left, and this returns at once.
        self.finish("ended early");
    }
}

fn explained(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens there; take another port, or leave it out for a free one"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need root; take a higher one".to_owned()
        }
        _ => error.to_string(),
    }
}

/// What all connections share, on the server's one thread.
pub(crate) struct Shared {
    pub(crate) listen: ListenAddress,
    pub(crate) token: Option<ViewToken>,
    pub(crate) page: Page,
    pub(crate) board: RefCell<Board>,
    /// Counts the changes of the board.
    pub(crate) version: watch::Sender<u64>,
    pub(crate) viewers: Cell<usize>,
    connections: Cell<usize>,
}

async fn serve(
    listener: TcpListener,
    config: LiveConfig,
    mut messages: mpsc::Receiver<Message>,
    all_cpus: Vec<u32>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let shared = Rc::new(Shared {
        listen: config.listen,
        token: config.token,
        page: Page { style: config.style },
        board: RefCell::new(Board::new(config.title)),
        version: watch::Sender::new(0),
        viewers: Cell::new(0),
        connections: Cell::new(0),
    });
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            _ = messages.recv_many(&mut batch, MAX_WAITING) => {
                if batch.is_empty() || !take(&shared, &mut batch, &all_cpus) {
                    break;
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => admit(&shared, stream),
                // No descriptors are left, for example: others may be closed soon.
                Err(_) => sleep(Duration::from_millis(100)).await,
            },
        }
    }
    let limit = Instant::now() + LAST_FRAME_LIMIT;
    while shared.connections.get() > 0 && Instant::now() < limit {
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Shows what has come; false when it was the end.
fn take(shared: &Rc<Shared>, batch: &mut Vec<Message>, all_cpus: &[u32]) -> bool {
    let mut goes_on = true;
    for message in batch.drain(..) {
        match message {
            Message::Event(host, event) => shared.board.borrow_mut().take(&host, *event),
            Message::HostEnded(host, how) => shared.board.borrow_mut().end_host(&host, how),
            Message::Avoid(cpus) => placement::avoid(all_cpus, &cpus),
            Message::End(how) => {
                shared.board.borrow_mut().end(how);
                goes_on = false;
            }
        }
    }
    shared.version.send_modify(|version| *version += 1);
    goes_on
}

fn admit(shared: &Rc<Shared>, stream: TcpStream) {
    if shared.connections.get() >= MAX_CONNECTIONS {
        return;
    }
    shared.connections.set(shared.connections.get() + 1);
    let shared = Rc::clone(shared);
    tokio::task::spawn_local(async move {
        connection(&shared, stream).await;
        shared.connections.set(shared.connections.get() - 1);
    });
}

/// Answers one request; a connection is not used again.
async fn connection(shared: &Rc<Shared>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let hung = Rc::new(Notify::new());
    let streams = Rc::new(Cell::new(false));
    let answer = service_fn(|request| {
        let answer = service::answer(shared, &request, &hung);
        streams.set(matches!(answer.body(), crate::viewers::LiveBody::Stream(_)));
        std::future::ready(Ok::<_, std::convert::Infallible>(answer))
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(MAX_BUFFER)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    let limit = Instant::now() + REQUEST_LIMIT;
    let too_long = async {
        sleep_until(limit).await;
        if streams.get() {
            std::future::pending::<()>().await;
        }
    };
    // What a stranger did wrong needs no words here.
    tokio::select! {
        _ = served => {}
        () = hung.notified() => {}
        () = too_long => {}
    }
}
