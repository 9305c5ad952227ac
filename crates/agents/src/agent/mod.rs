//! The side that does the work.
mod desk;
mod door;
mod event;
mod service;
mod session;
mod worker;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::Address;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tonic::transport::Server;

pub use event::AgentLogEvent;

use crate::clock::MonotonicClock;
use crate::credentials::{Credentials, Token};
use crate::error::AgentError;
use crate::work::{AgentTask, PeerOptions};
use crate::{CONNECTION_WINDOW, STREAM_WINDOW};
use desk::SessionSlot;
use door::ConnectionGate;

/// How often the flag that ends the agent is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long connections may take to close.
const CLOSING: Duration = Duration::from_secs(1);
/// Calls at once on one connection; a coordinator needs one.
const MOST_CALLS: u32 = 8;

/// What every session of an agent shares.
pub struct Agent {
    desk: Arc<SessionSlot>,
    work: Arc<dyn AgentTask>,
    token: Option<Token>,
    options: PeerOptions,
    clock: MonotonicClock,
    closing: watch::Sender<bool>,
}

/// Serves coordinators, one after the other, until `stop` is raised. Blocks; all of its own work
/// is done in this thread, the [`Work`] in another. With port 0 a free port is taken; `on_event`
/// is told which, and is called from both threads.
///
/// # Errors
/// It cannot listen there, or the work did not end when it was told to.
pub fn serve(
    listen: &Address,
    credentials: &Credentials,
    work: Arc<dyn AgentTask>,
    options: PeerOptions,
    on_event: impl Fn(AgentLogEvent) + Send + Sync + 'static,
    stop: &AtomicBool,
) -> Result<(), AgentError> {
    let wrong = |why: String| AgentError::Listen { address: listen.clone(), why };
    let (listener, address) = bind(listen)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| AgentError::Runtime { why: error.to_string() })?;
    let patience = options.pace.wind_down;
    let agent = Arc::new(Agent {
        desk: SessionSlot::new(Arc::new(on_event)),
        work,
        token: credentials.token().cloned(),
        clock: MonotonicClock::new(),
        closing: watch::Sender::new(false),
        options,
    });
    runtime.block_on(async {
        let keep_alive = agent.options.pace.silence / 2;
        let mut server = Server::builder()
            .http2_keepalive_interval(Some(keep_alive))
            .http2_keepalive_timeout(Some(keep_alive))
            .max_concurrent_streams(MOST_CALLS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        if let Some(tls) = credentials.server() {
            server = server.tls_config(tls).map_err(|error| wrong(root_of(&error)))?;
        }
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(|error| wrong(error.to_string()))?;
        let (most, limit) = (agent.options.connections, agent.options.pace.greeting);
        let incoming = ConnectionGate::new(most, limit, agent.desk.clone()).open(listener);
        agent.desk.tell(AgentLogEvent::Listening { address, credentials: credentials.kind() });
        let service = service::AgentService(agent.clone());
        let stopped = async {
            until(stop).await;
            agent.closing.send_replace(true);
        };
        let serving = server.serve_with_incoming_shutdown(service, incoming, stopped);
        tokio::select! {
            served = serving => served.map_err(|error| wrong(root_of(&error)))?,
            // Who does not close the connection is left.
            () = async { until(stop).await; sleep(patience + CLOSING).await } => {}
        }
        let free = async {
            while !agent.desk.is_free() {
                sleep(LOOK).await;
            }
        };
        timeout(patience, free).await.map_err(|_| AgentError::StillWorking { limit: patience })
    })
}

async fn until(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        sleep(LOOK).await;
    }
}

fn bind(listen: &Address) -> Result<(TcpListener, SocketAddr), AgentError> {
    let address = || listen.clone();
    let Address::Tcp { host, port } = listen else {
        return Err(AgentError::NotTcp { address: address() });
    };
    let wrong = |error: std::io::Error| match error.kind() {
        ErrorKind::AddrInUse => AgentError::PortInUse { address: address() },
        ErrorKind::AddrNotAvailable => AgentError::Listen {
            address: address(),
            why: "not an address of this machine; 0.0.0.0 or [::] listens on all of them"
                .to_owned(),
        },
        ErrorKind::PermissionDenied => AgentError::Listen {
            address: address(),
            why: "not allowed; ports from 1024 are".to_owned(),
        },
        _ => AgentError::Listen { address: address(), why: error.to_string() },
    };
    let listener = TcpListener::bind((host.as_str(), *port)).map_err(wrong)?;
    listener.set_nonblocking(true).map_err(wrong)?;
    let address = listener.local_addr().map_err(wrong)?;
    Ok((listener, address))
}

/// The innermost cause, in words.
fn root_of(error: &dyn std::error::Error) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}
