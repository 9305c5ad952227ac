//! The agent's side: executes assignments.
mod connection_gate;
mod event;
mod service;
mod session;
mod session_slot;
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
use crate::task::{AgentTask, PeerOptions};
use crate::{CONNECTION_WINDOW, STREAM_WINDOW};
use connection_gate::ConnectionGate;
use session_slot::SessionSlot;

/// How often the flag that ends the agent is checked.
const LOOK: Duration = Duration::from_millis(50);
/// How long connections may take to close.
const CLOSING: Duration = Duration::from_secs(1);
/// Calls at once on one connection; a coordinator needs one.
const MAX_CALLS: u32 = 8;

/// State shared by all sessions of an agent.
pub struct Agent {
    slot: Arc<SessionSlot>,
    work: Arc<dyn AgentTask>,
    token: Option<Token>,
    options: PeerOptions,
    clock: MonotonicClock,
    closing: watch::Sender<bool>,
}

/// Serves coordinators, one at a time, until `stop` is set. Blocks; the protocol runs in this thread,
/// the [`AgentTask`] in another. With port 0 a free port is taken and reported to `on_event`, which
/// is called from both threads.
///
/// # Errors
/// It cannot listen, or the task did not end after a stop.
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
    let wind_down = options.timing.wind_down;
    let agent = Arc::new(Agent {
        slot: SessionSlot::new(Arc::new(on_event)),
        work,
        token: credentials.token().cloned(),
        clock: MonotonicClock::new(),
        closing: watch::Sender::new(false),
        options,
    });
    runtime.block_on(async {
        let keep_alive = agent.options.timing.silence / 2;
        let mut server = Server::builder()
            .http2_keepalive_interval(Some(keep_alive))
            .http2_keepalive_timeout(Some(keep_alive))
            .max_concurrent_streams(MAX_CALLS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        if let Some(tls) = credentials.server() {
            server = server.tls_config(tls).map_err(|error| wrong(root_of(&error)))?;
        }
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(|error| wrong(error.to_string()))?;
        let (most, limit) = (agent.options.connections, agent.options.timing.greeting);
        let incoming = ConnectionGate::new(most, limit, agent.slot.clone()).open(listener);
        agent.slot.log(AgentLogEvent::Listening { address, credentials: credentials.kind() });
        let service = service::AgentService(agent.clone());
        let stopped = async {
            until(stop).await;
            agent.closing.send_replace(true);
        };
        let serving = server.serve_with_incoming_shutdown(service, incoming, stopped);
        tokio::select! {
            served = serving => served.map_err(|error| wrong(root_of(&error)))?,
            // Does not wait for connections that the other side keeps open.
            () = async { until(stop).await; sleep(wind_down + CLOSING).await } => {}
        }
        let free = async {
            while !agent.slot.is_free() {
                sleep(LOOK).await;
            }
        };
        timeout(wind_down, free).await.map_err(|_| AgentError::StillWorking { limit: wind_down })
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
            why: "this user may not listen on this port; choose one above 1023".to_owned(),
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
