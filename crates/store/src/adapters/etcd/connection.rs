//! A connection to one member: HTTP/2 over TCP or TLS, driven by the runtime of one thread.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use model::Address;
use tls::{TlsConfig, TlsFailure};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_util::either::Either;
use tonic::Status;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic_prost::ProstCodec;

use super::messages::Method;
use crate::StoreError;

/// The longest answer: what announces more is refused before memory is taken for it.
pub(super) const LONGEST_ANSWER: usize = 64 << 20;

/// How many bytes of answers may be under way: one value of etcd's limit without a pause.
const WINDOW: u32 = 2 << 20;

/// The token of a login, sent with each request.
pub(super) type Token = MetadataValue<Ascii>;

/// An endpoint of the URL.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) address: Address,
    /// What requests name as their server.
    origin: Uri,
}

impl Endpoint {
    /// # Errors
    /// It is a unix socket, or no name of a host.
    pub(super) fn new(address: &Address) -> Result<Endpoint, StoreError> {
        let Address::Tcp { .. } = address else {
            let words = format!("{address}: etcd is reached at `etcd://HOST:PORT`");
            return Err(StoreError::Request(words));
        };
        let origin = format!("http://{address}").parse().map_err(|_| {
            StoreError::Request(format!("{address}: no host has such a name; correct it"))
        })?;
        Ok(Endpoint { address: address.clone(), origin })
    }
}

/// An open connection. Its own task runs on the runtime in which it was opened.
pub(super) struct Connection {
    grpc: Grpc<Http2>,
    sender: SendRequest<Body>,
}

impl Connection {
    /// # Errors
    /// Why there is no connection; `Request` where another URL would help.
    pub(super) async fn open(
        endpoint: &Endpoint,
        tls: Option<&TlsConfig>,
    ) -> Result<Connection, StoreError> {
        let address = &endpoint.address;
        let stream = connect(address).await?;
        let stream = match tls {
            None => Either::Left(stream),
            Some(tls) => Either::Right(secure(address, tls, stream).await?),
        };
        let failed = |error: hyper::Error| failed(address, &error);
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(failed)?;
        // Its error is also that of the request that is under way.
        tokio::spawn(async move { drop(connection.await) });
        let grpc = Grpc::with_origin(Http2(sender.clone()), endpoint.origin.clone())
            .max_decoding_message_size(LONGEST_ANSWER);
        Ok(Connection { grpc, sender })
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn call<M: Method>(
        &mut self,
        message: M,
        token: Option<&Token>,
    ) -> Result<M::Answer, Status> {
        self.grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let mut request = tonic::Request::new(message);
        if let Some(token) = token {
            request.metadata_mut().insert("token", token.clone());
        }
        let path = PathAndQuery::from_static(M::PATH);
        let answer = self.grpc.unary(request, path, ProstCodec::<M, M::Answer>::default()).await?;
        Ok(answer.into_inner())
    }

    /// Whether this error means that the connection cannot be used any more.
    pub(super) fn is_lost(&self, status: &Status) -> bool {
        self.sender.is_closed() || lost_with(status).is_some()
    }
}

/// The error of the connection that a status stands for; none where the server sent the status.
pub(super) fn lost_with(status: &Status) -> Option<&hyper::Error> {
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        source = error.source();
    }
    None
}

/// The first of the host's addresses that answers.
async fn connect(address: &Address) -> Result<TcpStream, StoreError> {
    let Address::Tcp { host, port } = address else {
        return Err(StoreError::Request(format!("{address}: etcd has no unix socket")));
    };
    let no_host = |why: String| {
        StoreError::Request(format!(
            "{address}: there is no host of that name ({why}); check the spelling"
        ))
    };
    let all = lookup_host((host.as_str(), *port)).await;
    let mut last = no_host("it has no address".to_owned());
    for one in all.map_err(|error| no_host(error.to_string()))? {
        match TcpStream::connect(one).await {
            Ok(stream) => {
                // Requests are small and each waits for its answer.
                let set = stream.set_nodelay(true);
                return set.map(|()| stream).map_err(|error| failed(address, &error));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                last = StoreError::Failed(format!(
                    "{address}: nothing listens there; is the member started, on this port?"
                ));
            }
            Err(error) => last = failed(address, &error),
        }
    }
    Err(last)
}

async fn secure(
    address: &Address,
    tls: &TlsConfig,
    stream: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, StoreError> {
    let refused = |why: TlsFailure| StoreError::Request(format!("{address}: {why}"));
    let name = tls.name_of(address).map_err(refused)?;
    let connector = TlsConnector::from(Arc::clone(&tls.client));
    connector.connect(name, stream).await.map_err(|error| match TlsFailure::inside(&error) {
        Some(why) => refused(why),
        None => match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                refused(TlsFailure::NotTls("it closed the connection in the handshake".to_owned()))
            }
            _ => failed(address, &error),
        },
    })
}

fn failed(address: &Address, error: &dyn std::error::Error) -> StoreError {
    StoreError::Failed(format!("{address}: {}", innermost(error)))
}

/// The words of the innermost error: those around it repeat themselves.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Requests go to the connection without a queue in between.
struct Http2(SendRequest<Body>);

impl tower_service::Service<Request<Body>> for Http2 {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
