//! The gRPC call that opens a coordinator's session.
use std::convert::Infallible;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::body::Body;
use tonic::server::{Grpc, StreamingService};
use tonic::transport::server::TlsConnectInfo;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::Service;

use super::connection_gate::ConnectedPeer;
use super::session::Session;
use super::{Agent, AgentLogEvent};
use crate::messages::{
    self, AgentMessage, CoordinatorMessage, Hello, SESSION, ToAgent, ToCoordinator, Welcome,
};
use crate::refusal;
use crate::task::machine;

type Answers = UnboundedReceiverStream<Result<ToCoordinator, Status>>;
type Boxed<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// The gRPC service; one for each connection.
#[derive(Clone)]
pub struct AgentService(pub Arc<Agent>);

impl Service<http::Request<Body>> for AgentService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Boxed<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != SESSION {
            let status = Status::unimplemented("an agent has no such method");
            return Box::pin(ready(Ok(status.into_http())));
        }
        let open = Open(self.0.clone());
        let mut grpc =
            Grpc::new(ProstCodec::default()).max_decoding_message_size(messages::MAX_TO_AGENT);
        Box::pin(async move { Ok(grpc.streaming(open, request).await) })
    }
}

struct Open(Arc<Agent>);

impl StreamingService<ToAgent> for Open {
    type Response = ToCoordinator;
    type ResponseStream = Answers;
    type Future = Boxed<Response<Answers>, Status>;

    fn call(&mut self, request: Request<Streaming<ToAgent>>) -> Self::Future {
        let agent = self.0.clone();
        Box::pin(async move {
            let peer = connected_peer(&request)?;
            match open(&agent, &peer, request).await {
                Ok(answers) => Ok(Response::new(answers)),
                Err(status) => {
                    let why = status.message().to_owned();
                    agent
                        .slot
                        .log(AgentLogEvent::Refused { coordinator: peer.address.to_string(), why });
                    Err(status)
                }
            }
        })
    }
}

/// The peer of a request.
fn connected_peer(request: &Request<Streaming<ToAgent>>) -> Result<Arc<ConnectedPeer>, Status> {
    let known = request.extensions();
    let plain = known.get::<Arc<ConnectedPeer>>();
    let peer = plain
        .or_else(|| known.get::<TlsConnectInfo<Arc<ConnectedPeer>>>().map(|tls| tls.get_ref()));
    peer.cloned().ok_or_else(|| Status::internal("the connection has no peer"))
}

async fn open(
    agent: &Arc<Agent>,
    peer: &Arc<ConnectedPeer>,
    request: Request<Streaming<ToAgent>>,
) -> Result<Answers, Status> {
    if let Some(token) = &agent.token {
        match request.metadata().get("authorization") {
            None => return Err(refusal::no_token()),
            Some(shown) if !token.matches(shown.as_bytes()) => return Err(refusal::wrong_token()),
            Some(_) => {}
        }
    }
    let mut inbound = request.into_inner();
    let first = timeout(agent.options.timing.silence, inbound.message());
    let first = first.await.map_err(|_| Status::deadline_exceeded("no hello came"))??;
    let Some(ToAgent { what: Some(CoordinatorMessage::Hello(Hello { version, machine: theirs })) }) =
        first
    else {
        return Err(Status::invalid_argument("the first message is not a hello"));
    };
    let own = &agent.options.version;
    if version != *own {
        return Err(refusal::version(own));
    }
    let theirs: String = theirs.chars().filter(|c| !c.is_control()).take(64).collect();
    let coordinator = format!("{theirs} ({})", peer.address);
    let guard = agent.slot.take(coordinator.clone()).map_err(|holder| refusal::busy(&holder))?;
    agent.slot.log(AgentLogEvent::Taken { coordinator: coordinator.clone() });
    let (out, answers) = unbounded_channel();
    let about = agent.options.about.clone().into();
    let welcome = Welcome { version: own.clone(), machine: machine(), about };
    // The receiver is here.
    let _ = out.send(Ok(AgentMessage::Welcome(welcome).into()));
    tokio::spawn(Session::serve(
        agent.clone(),
        (peer.authenticate(), guard),
        coordinator,
        inbound,
        out,
    ));
    Ok(UnboundedReceiverStream::new(answers))
}
