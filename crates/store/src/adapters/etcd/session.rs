//! One thread's access to etcd: a connection and a runtime of its own, one request at a time.

use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Runtime;
use tokio::time::{Instant, timeout_at};

use super::call_failure::CallFailure;
use super::cluster::Cluster;
use super::connection::{Connection, Token};
use super::messages::{DeleteRangeRequest, Headed, Method, PutRequest, RangeRequest};
use crate::{Session, StoreError};

/// The first pause before a request is repeated, and the longest.
const PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

pub struct EtcdSession<'a> {
    cluster: &'a Cluster,
    runtime: Runtime,
    connection: Option<Connection>,
    /// The endpoint of the connection, or of the next one.
    at: usize,
    token: Option<Token>,
}

impl<'a> EtcdSession<'a> {
    /// A session with a connection to this endpoint, or where it is down to the next one.
    pub(super) fn new(cluster: &'a Cluster, at: usize) -> Result<EtcdSession<'a>, StoreError> {
        let token = cluster.token();
        let mut session = EtcdSession { cluster, runtime: runtime()?, connection: None, at, token };
        let mut last = None;
        for _ in 0..cluster.endpoints.len() {
            let deadline = Instant::now() + cluster.access.timeout;
            match session.connect(deadline) {
                Ok(()) => return Ok(session),
                Err(CallFailure::Final(error)) => return Err(error),
                Err(failure) => last = Some(failure),
            }
            session.next_endpoint();
        }
        Err(StoreError::Lost(match last {
            Some(CallFailure::Retryable { words, .. }) => words,
            _ => "no endpoint answers".to_owned(),
        }))
    }

    fn connect(&mut self, deadline: Instant) -> Result<(), CallFailure> {
        let EtcdSession { cluster, runtime, at, .. } = self;
        let endpoint = &cluster.endpoints[*at];
        let open = Connection::open(endpoint, cluster.tls.as_ref());
        let opened = runtime.block_on(async { timeout_at(deadline, open).await });
        match opened {
            Ok(Ok(connection)) => {
                self.connection = Some(connection);
                Ok(())
            }
            Ok(Err(error)) => Err(CallFailure::connecting(error)),
            Err(_) => {
                let words = format!("{}: no connection within the limit", endpoint.address);
                Err(CallFailure::Retryable { words, connected: false })
            }
        }
    }

    fn next_endpoint(&mut self) {
        self.connection = None;
        self.at = (self.at + 1) % self.cluster.endpoints.len();
    }

    /// Sends a request and waits for its answer; repeats it within the limit where that can help.
    pub(super) fn call<M: Method>(&mut self, message: M) -> Result<M::Answer, StoreError> {
        let begun = Instant::now();
        match self.attempt(message.clone(), begun) {
            Ok(answer) => Ok(answer),
            Err(failure) => self.repeat(message, begun, failure),
        }
    }

    /// One attempt; a silent member is left for another endpoint before the limit is over.
    #[inline]
    fn attempt<M: Method>(&mut self, message: M, begun: Instant) -> Result<M::Answer, CallFailure> {
        let cluster = self.cluster;
        let share = cluster.access.timeout / cluster.endpoints.len() as u32;
        let deadline = (Instant::now() + share).min(begun + cluster.access.timeout);
        if self.connection.is_none() {
            self.connect(deadline)?;
        }
        let Some(connection) = &mut self.connection else {
            return Err(CallFailure::Retryable {
                words: "no connection".to_owned(),
                connected: false,
            });
        };
        let address = &cluster.endpoints[self.at].address;
        let call = connection.call(message, self.token.as_ref());
        match self.runtime.block_on(async { timeout_at(deadline, call).await }) {
            Ok(Ok(answer)) => match answer.header().map(|header| header.cluster_id) {
                Some(id) if id == cluster.id => Ok(answer),
                _ => Err(CallFailure::Final(StoreError::Broken(cluster.another(address, &answer)))),
            },
            Ok(Err(status)) => {
                let failure = CallFailure::of(address, &status);
                if connection.is_lost(&status) {
                    self.connection = None;
                }
                Err(failure)
            }
            Err(_) => {
                self.connection = None;
                let words = format!("{address}: no answer within {:.1?}", deadline - begun);
                Err(CallFailure::Retryable { words, connected: true })
            }
        }
    }

    /// Repeats a request at the other endpoints until it is served or too old.
    #[cold]
    fn repeat<M: Method>(
        &mut self,
        message: M,
        begun: Instant,
        mut failure: CallFailure,
    ) -> Result<M::Answer, StoreError> {
        let deadline = begun + self.cluster.access.timeout;
        let mut pause = PAUSE;
        loop {
            match failure {
                CallFailure::Final(error) => return Err(error),
                CallFailure::TokenExpired => self.log_in_again()?,
                CallFailure::Retryable { words, connected } => {
                    self.cluster.failed_calls().note(self.at, &words);
                    if Instant::now() + pause >= deadline {
                        let limit = self.cluster.access.timeout;
                        let words = format!("not served within {limit:?}; the last: {words}");
                        return Err(match connected {
                            true => StoreError::Unanswered(words),
                            false => StoreError::Lost(words),
                        });
                    }
                    self.next_endpoint();
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            failure = match self.attempt(message.clone(), begun) {
                Ok(answer) => {
                    self.cluster.failed_calls().served_late(begun.elapsed());
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
        }
    }

    /// The members forget a login that was not used for some minutes. One thread logs in for all.
    #[cold]
    fn log_in_again(&mut self) -> Result<(), StoreError> {
        let EtcdSession { cluster, runtime, connection, at, token } = self;
        let mut shared = cluster.shared_token();
        if *shared == *token {
            let Some(connection) = connection else { return Ok(()) };
            let deadline = Instant::now() + cluster.access.timeout;
            let address = &cluster.endpoints[*at].address;
            let log_in = cluster.access.log_in(address, connection);
            let done = runtime.block_on(async { timeout_at(deadline, log_in).await });
            *shared = done.map_err(|_| {
                StoreError::Unanswered(format!("{address}: no answer to the login"))
            })??;
        }
        token.clone_from(&shared);
        Ok(())
    }

    /// The value under a whole key.
    pub(super) fn value(
        &mut self,
        key: Bytes,
        serializable: bool,
    ) -> Result<Option<Bytes>, StoreError> {
        let request = RangeRequest { key: key.clone(), serializable, ..RangeRequest::default() };
        let mut pairs = self.call(request)?.kvs;
        match (pairs.pop(), pairs.is_empty()) {
            (None, _) => Ok(None),
            (Some(pair), true) if pair.key == key => Ok(Some(pair.value)),
            _ => Err(self.wrong("answered a read with another key")),
        }
    }

    pub(super) fn put(&mut self, key: Bytes, value: &[u8]) -> Result<(), StoreError> {
        self.call(PutRequest { key, value: Bytes::copy_from_slice(value) }).map(drop)
    }

    /// Deletes a key, or all keys from it and below the end.
    pub(super) fn delete_range(&mut self, key: Bytes, range_end: Bytes) -> Result<(), StoreError> {
        self.call(DeleteRangeRequest { key, range_end }).map(drop)
    }

    fn wrong(&self, words: &str) -> StoreError {
        StoreError::Failed(format!("{}: {words}", self.cluster.endpoints[self.at].address))
    }
}

impl Session for EtcdSession<'_> {
    fn read(&mut self, key: &[u8], mut on_value: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        let access = &self.cluster.access;
        let value = self.value(access.key(key), access.serializable)?;
        Ok(value.inspect(|value| on_value(value)).is_some())
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.put(self.cluster.access.key(key), value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.delete_range(self.cluster.access.key(key), Bytes::new())
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        mut on_pair: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        // To etcd 0 is no limit.
        if limit == 0 {
            return Ok(0);
        }
        let access = &self.cluster.access;
        let request = RangeRequest {
            key: access.key(from),
            range_end: access.data_end(),
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
            serializable: access.serializable,
            keys_only: false,
        };
        let pairs = self.call(request)?.kvs;
        if pairs.len() > limit {
            return Err(self.wrong("answered a scan with more pairs than requested"));
        }
        for pair in &pairs {
            match pair.key.strip_prefix(&access.data[..]) {
                Some(key) => on_pair(key, &pair.value),
                None => return Err(self.wrong("answered a scan with a key outside of it")),
            }
        }
        Ok(pairs.len())
    }
}

/// A runtime that runs only while its thread waits in it.
pub(super) fn runtime() -> Result<Runtime, StoreError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| StoreError::Failed(format!("no runtime for a connection: {error}")))
}
