//! The connection to one agent.
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper_util::rt::TokioIo;
use model::Address;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::mpsc::{UnboundedSender, WeakUnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsConnector;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::explain::{explain, root};
use crate::credentials::Credentials;
use crate::error::AgentError;
use crate::messages::{
    AgentMessage, CoordinatorMessage, Heartbeat, Hello, MAX_TO_COORDINATOR, SESSION, ToAgent,
    ToCoordinator, Welcome,
};
use crate::refusal;
use crate::silence_timer::SilenceTimer;
use crate::task::{PeerOptions, machine};
use crate::{CONNECTION_WINDOW, STREAM_WINDOW};

/// A message from an agent.
pub struct ReceivedMessage {
    /// Its number.
    pub from: usize,
    pub at: Instant,
    pub what: Delivery,
}

pub enum Delivery {
    Message(AgentMessage),
    /// The connection is lost, with the reason.
    Lost(String),
}

/// The coordinator's view of one agent.
pub struct AgentConnection {
    pub address: Address,
    /// None after the coordinator has hung up.
    out: Option<UnboundedSender<ToAgent>>,
    /// It has an assignment that has not ended.
    pub working: bool,
    /// Why the connection is lost.
    pub lost: Option<String>,
}

impl AgentConnection {
    /// Connects, opens a session and starts heartbeats; the agent's messages go to `sender`, marked
    /// with `number`.
    ///
    /// # Errors
    /// It is unreachable, does not answer within `limit`, or refuses.
    pub async fn reach(
        number: usize,
        address: Address,
        credentials: Credentials,
        options: PeerOptions,
        limit: Duration,
        sender: UnboundedSender<ReceivedMessage>,
    ) -> Result<(AgentConnection, Welcome), AgentError> {
        let silent = |_| AgentError::Unreachable {
            address: address.clone(),
            why: format!("nothing answered within {limit:?}"),
        };
        let stream = timeout(limit, connect(&address)).await.map_err(silent)??;
        let (out, outgoing) = unbounded_channel();
        // The receiver is here.
        let hello = Hello { version: options.version.clone(), machine: machine() };
        let _ = out.send(CoordinatorMessage::Hello(hello).into());
        let outgoing = UnboundedReceiverStream::new(outgoing);
        let opened = open(&address, &credentials, &options.version, stream, outgoing);
        let slow =
            |_| AgentError::TooSlow { address: address.clone(), what: "accept a session", limit };
        let opened = timeout(limit, opened).await.map_err(slow)?;
        let (inbound, welcome) = opened?;
        tokio::spawn(listen(number, inbound, options.timing.silence, sender));
        tokio::spawn(beat(out.downgrade(), options.timing.beat));
        Ok((AgentConnection { address, out: Some(out), working: false, lost: None }, welcome))
    }

    /// Sends a message. A lost connection is reported on the receiving side.
    pub fn send(&self, message: CoordinatorMessage) {
        if let Some(out) = &self.out {
            let _ = out.send(message.into());
        }
    }

    pub fn hang_up(&mut self) {
        self.out = None;
    }

    /// A sender that does not keep the session open.
    pub fn sender(&self) -> Option<WeakUnboundedSender<ToAgent>> {
        self.out.as_ref().map(UnboundedSender::downgrade)
    }
}

/// The first of the host's addresses that answers.
async fn connect(address: &Address) -> Result<TcpStream, AgentError> {
    let Address::Tcp { host, port } = address else {
        return Err(AgentError::NotTcp { address: address.clone() });
    };
    let no_host = |why| AgentError::NoSuchHost { address: address.clone(), why };
    let all = lookup_host((host.as_str(), *port)).await;
    let mut last = no_host("it has no address".to_owned());
    for one in all.map_err(|error| no_host(error.to_string()))? {
        match TcpStream::connect(one).await {
            Ok(stream) => {
                // Without it probes wait for one another.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                last = AgentError::NotListening { address: address.clone() };
            }
            Err(error) => {
                let why = error.to_string();
                last = AgentError::Unreachable { address: address.clone(), why };
            }
        }
    }
    Err(last)
}

/// Opens a session over a connection.
async fn open(
    address: &Address,
    credentials: &Credentials,
    version: &str,
    stream: TcpStream,
    outgoing: UnboundedReceiverStream<ToAgent>,
) -> Result<(Streaming<ToCoordinator>, Welcome), AgentError> {
    let tls = credentials.has_tls();
    let channel = match credentials.client() {
        None => channel(address, stream).await?,
        Some(config) => {
            let why = |error: rustls::Error| explain(address, tls, &error);
            let stream = secure(address, config.map_err(why)?, stream).await?;
            channel(address, stream).await?
        }
    };
    let mut grpc = Grpc::new(channel).max_decoding_message_size(MAX_TO_COORDINATOR);
    grpc.ready().await.map_err(|error| explain(address, tls, &error))?;
    let mut request = Request::new(outgoing);
    if let Some(token) = credentials.token() {
        let value = token.bearer().parse();
        let mut value: tonic::metadata::AsciiMetadataValue =
            value.map_err(|_| AgentError::WrongToken { address: address.clone() })?;
        value.set_sensitive(true);
        request.metadata_mut().insert("authorization", value);
    }
    let path = http::uri::PathAndQuery::from_static(SESSION);
    let refused = |status: Status| {
        refusal::read(address, &status, version).unwrap_or_else(|| match status.code() {
            tonic::Code::Unimplemented => AgentError::NoAnswer {
                address: address.clone(),
                tls,
                why: "it is not an agent of kvmeter".to_owned(),
            },
            _ => explain(address, tls, &status),
        })
    };
    let answer = grpc.streaming(request, path, ProstCodec::<ToAgent, ToCoordinator>::default());
    let mut inbound = answer.await.map_err(&refused)?.into_inner();
    match inbound.message().await.map_err(&refused)? {
        Some(ToCoordinator { what: Some(AgentMessage::Welcome(welcome)) }) => {
            Ok((inbound, welcome))
        }
        _ => Err(AgentError::NoAnswer {
            address: address.clone(),
            tls,
            why: "it did not answer the hello".to_owned(),
        }),
    }
}

/// TLS over a stream, until the agent has sent something. With TLS 1.3 it refuses a certificate only
/// after this side's handshake; HTTP/2 would report that as a closed connection.
async fn secure(
    address: &Address,
    config: ClientConfig,
    stream: TcpStream,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + 'static, AgentError> {
    let failed = |error: io::Error| explain(address, true, &error);
    let Address::Tcp { host, .. } = address else {
        return Err(AgentError::NotTcp { address: address.clone() });
    };
    let name = ServerName::try_from(host.clone()).map_err(|_| AgentError::Tls {
        address: address.clone(),
        why: "a certificate cannot be issued for such a name".to_owned(),
    })?;
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.map_err(failed)?;
    let mut first = vec![0; 1024];
    let length = stream.read(&mut first).await.map_err(failed)?;
    if length == 0 {
        return Err(failed(io::ErrorKind::UnexpectedEof.into()));
    }
    first.truncate(length);
    let (rest, out) = tokio::io::split(stream);
    Ok(tokio::io::join(io::Cursor::new(first).chain(rest), out))
}

/// HTTP/2 over this stream, without reconnects: a session lives on one connection.
async fn channel(
    address: &Address,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<Channel, AgentError> {
    // A placeholder: addresses need not be valid in a URI.
    let endpoint = Endpoint::from_static("http://agent")
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let mut stream = Some(TokioIo::new(stream));
    let connector = service_fn(move |_: http::Uri| {
        let stream = stream.take().ok_or(io::Error::from(io::ErrorKind::NotConnected));
        std::future::ready(stream)
    });
    let connected = endpoint.connect_with_connector(connector).await;
    connected.map_err(|error| explain(address, false, &error))
}

/// Forwards the agent's messages until the connection ends.
async fn listen(
    number: usize,
    mut inbound: Streaming<ToCoordinator>,
    limit: Duration,
    sender: UnboundedSender<ReceivedMessage>,
) {
    let mut silence = SilenceTimer::new(limit);
    let why = loop {
        let message = tokio::select! {
            biased;
            message = inbound.message() => message,
            () = silence.expired() => break silence.message(),
        };
        let at = Instant::now();
        silence.reset();
        match message {
            Ok(Some(ToCoordinator { what: None | Some(AgentMessage::Beat(_)) })) => {}
            Ok(Some(ToCoordinator { what: Some(say) })) => {
                // The group was dropped.
                if sender
                    .send(ReceivedMessage { from: number, at, what: Delivery::Message(say) })
                    .is_err()
                {
                    return;
                }
            }
            Ok(None) => break "it ended the session".to_owned(),
            Err(status) => {
                let cause = root(&status);
                break match std::error::Error::source(&status) {
                    Some(_) => format!("the connection broke: {cause}"),
                    None => status.message().to_owned(),
                };
            }
        }
    };
    let _ = sender.send(ReceivedMessage {
        from: number,
        at: Instant::now(),
        what: Delivery::Lost(why),
    });
}

/// Sends heartbeats until the coordinator hangs up.
async fn beat(out: WeakUnboundedSender<ToAgent>, every: Duration) {
    let mut beat = interval(every);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        let Some(out) = out.upgrade() else { return };
        if out.send(CoordinatorMessage::Beat(Heartbeat {}).into()).is_err() {
            return;
        }
    }
}
