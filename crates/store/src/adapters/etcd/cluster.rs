//! An etcd cluster whose endpoints were looked at: version, identity, login, members.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::Address;
use tls::{Tls, TlsConfig, TlsFailure};
use tokio::time::timeout;

use super::access::Access;
use super::call_failure::{CallFailure, refused_by_tls};
use super::connection::{Connection, Endpoint, Token, lost_with};
use super::messages::{
    Headed, MemberListRequest, Method, RangeRequest, StatusRequest, StatusResponse,
};
use super::session::runtime;
use crate::{StoreError, StoreUrl, TlsFiles};

/// The major version whose API this is.
const MAJOR: &str = "3";

pub struct Cluster {
    pub(super) access: Access,
    pub(super) tls: Option<TlsConfig>,
    /// Those that answered when the store was opened.
    pub(super) endpoints: Vec<Endpoint>,
    /// Those that did not, in words.
    pub(super) down: Vec<String>,
    pub(super) id: u64,
    pub(super) members: usize,
    pub(super) version: String,
    token: Mutex<Option<Token>>,
    failed_calls: Mutex<FailedCalls>,
}

impl Cluster {
    /// Looks at every endpoint.
    ///
    /// # Errors
    /// None answers; or one that another URL would avoid.
    pub(super) fn find(url: &StoreUrl) -> Result<Cluster, StoreError> {
        let access = Access::read(url)?;
        let tls = access.tls.as_ref().map(tls_of).transpose()?;
        let all: Vec<Endpoint> = url.servers.iter().map(Endpoint::new).collect::<Result<_, _>>()?;
        let mut found = ProbedMembers::default();
        let mut endpoints = Vec::new();
        let mut down = Vec::new();
        let runtime = runtime()?;
        for endpoint in all {
            let probe = found.probe(&access, tls.as_ref(), &endpoint);
            let probed = runtime.block_on(async { timeout(access.timeout, probe).await });
            let limit = access.timeout;
            let silent = || format!("{}: no answer within {limit:?}", endpoint.address);
            match probed.unwrap_or_else(|_| Err(StoreError::Failed(silent()))) {
                Ok(()) => endpoints.push(endpoint),
                Err(StoreError::Failed(words)) => down.push(words),
                Err(other) => return Err(other),
            }
        }
        let ProbedMembers { token, id: Some(id), members, mut versions } = found else {
            return Err(StoreError::Failed(down.join("; ")));
        };
        versions.dedup();
        Ok(Cluster {
            access,
            tls,
            endpoints,
            down,
            id,
            members,
            version: versions.join(", "),
            token: Mutex::new(token),
            failed_calls: Mutex::default(),
        })
    }

    /// What an answer that names another cluster comes to.
    pub(super) fn another(&self, address: &Address, answer: &impl Headed) -> String {
        another(address, self.id, answer.header().map(|header| header.cluster_id))
    }

    /// The token of the last login.
    pub(super) fn token(&self) -> Option<Token> {
        self.shared_token().clone()
    }

    pub(super) fn shared_token(&self) -> MutexGuard<'_, Option<Token>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failed_calls(&self) -> MutexGuard<'_, FailedCalls> {
        self.failed_calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each endpoint says of itself; None for one that does not answer.
    pub(super) fn statuses(&self) -> Result<Vec<Option<StatusResponse>>, StoreError> {
        let runtime = runtime()?;
        let token = self.token();
        let status = |endpoint| {
            let request = async {
                let mut connection = Connection::open(endpoint, self.tls.as_ref()).await.ok()?;
                connection.call(StatusRequest {}, token.as_ref()).await.ok()
            };
            runtime.block_on(async { timeout(self.access.timeout, request).await.ok().flatten() })
        };
        Ok(self.endpoints.iter().map(status).collect())
    }

    /// What went wrong at the servers since the last call, in words.
    pub(super) fn warnings(&self) -> Vec<String> {
        let down = self.down.iter().map(|words| {
            format!("{words}; the load went to the {} other endpoints", self.endpoints.len())
        });
        let failed_calls = std::mem::take(&mut *self.failed_calls());
        down.chain(failed_calls.words(&self.endpoints)).collect()
    }
}

/// What the endpoints have said so far.
#[derive(Default)]
struct ProbedMembers {
    token: Option<Token>,
    id: Option<u64>,
    members: usize,
    versions: Vec<String>,
}

impl ProbedMembers {
    async fn probe(
        &mut self,
        access: &Access,
        tls: Option<&TlsConfig>,
        endpoint: &Endpoint,
    ) -> Result<(), StoreError> {
        let address = &endpoint.address;
        let mut connection = Connection::open(endpoint, tls).await?;
        if self.token.is_none() {
            self.token = access.log_in(address, &mut connection).await?;
        }
        let token = self.token.clone();
        let status: StatusResponse =
            first_call(address, access, &mut connection, StatusRequest {}, &token).await?;
        check(address, &status)?;
        match (self.id, status.header.map(|header| header.cluster_id)) {
            (Some(id), given) if given != Some(id) => {
                return Err(StoreError::Request(another(address, id, given)));
            }
            (None, None) => {
                let words = format!("{address}: it does not say of which cluster it is");
                return Err(StoreError::Request(words));
            }
            (Some(_), _) => {}
            (None, given) => {
                // Only a request about keys needs a login and a leader.
                let key = access.marker.clone();
                let probe = RangeRequest { key, ..RangeRequest::default() };
                first_call(address, access, &mut connection, probe, &token).await?;
                let request = MemberListRequest {};
                let list = first_call(address, access, &mut connection, request, &token).await?;
                self.members = list.members.len();
                self.id = given;
            }
        }
        self.versions.push(format!("etcd {}", status.version));
        Ok(())
    }
}

/// A request at opening, which is not repeated.
async fn first_call<M: Method>(
    address: &Address,
    access: &Access,
    connection: &mut Connection,
    message: M,
    token: &Option<Token>,
) -> Result<M::Answer, StoreError> {
    connection.call(message, token.as_ref()).await.map_err(|status| {
        let lost = connection.is_lost(&status);
        let has_certificate = access.tls.as_ref().is_some_and(|files| files.cert.is_some());
        if let Some(TlsFailure::ClientCertificateRefused(_)) =
            lost_with(&status).and_then(refused_by_tls)
            && !has_certificate
        {
            let why = TlsFailure::ClientCertificateRequired;
            return StoreError::Request(format!("{address}: {why}"));
        }
        match CallFailure::of(address, &status) {
            CallFailure::Final(error) => error,
            CallFailure::TokenExpired => {
                StoreError::Failed(format!("{address}: refuses its token"))
            }
            CallFailure::Retryable { words, .. } if lost => {
                let hint = match (&access.tls, has_certificate) {
                    (None, _) => "If it wants TLS, add `tls=on`",
                    (Some(_), false) => "If it wants a client certificate, give `cert` and `key`",
                    (Some(_), true) => "Check the client certificate",
                };
                StoreError::Failed(format!("{words}; is it etcd? {hint}"))
            }
            CallFailure::Retryable { words, .. } => StoreError::Failed(words),
        }
    })
}

/// Whether a member can be measured.
fn check(address: &Address, status: &StatusResponse) -> Result<(), StoreError> {
    let version = &status.version;
    if version.split('.').next() != Some(MAJOR) {
        return Err(StoreError::Request(format!(
            "{address}: etcd {version}, but kvmeter speaks the API of etcd {MAJOR}; name such a \
             server"
        )));
    }
    if status.is_learner {
        return Err(StoreError::Request(format!(
            "{address}: a learner, which serves no requests about keys; promote it, or leave it out"
        )));
    }
    if status.leader == 0 {
        return Err(StoreError::Failed(format!(
            "{address}: it knows of no leader; are more than half of the members running?"
        )));
    }
    Ok(())
}

fn another(address: &Address, id: u64, given: Option<u64>) -> String {
    let given = given.map_or("no cluster".to_owned(), |given| format!("cluster {given:x}"));
    format!(
        "{address}: answers for {given}, the first endpoint for cluster {id:x}; name one cluster"
    )
}

fn tls_of(files: &TlsFiles) -> Result<TlsConfig, StoreError> {
    let TlsFiles { ca, cert, key, server_name, any_certificate } = files.clone();
    let tls = Tls { ca, cert, key, server_name, insecure: any_certificate };
    let config = tls.load().map_err(|error| StoreError::Request(error.to_string()))?;
    Ok(config.speaking(b"h2"))
}

/// What went wrong since it was last told.
#[derive(Debug, Default)]
pub(super) struct FailedCalls {
    /// For each endpoint: how many requests it did not serve, and the first reason.
    endpoints: Vec<(usize, u64, String)>,
    served_late: u64,
    longest: Duration,
    /// Repeated requests since the store was opened.
    pub(super) repeated: u64,
}

impl FailedCalls {
    pub(super) fn note(&mut self, endpoint: usize, words: &str) {
        self.repeated += 1;
        match self.endpoints.iter_mut().find(|(at, ..)| *at == endpoint) {
            Some((_, count, _)) => *count += 1,
            None => self.endpoints.push((endpoint, 1, words.to_owned())),
        }
    }

    pub(super) fn served_late(&mut self, after: Duration) {
        self.served_late += 1;
        self.longest = self.longest.max(after);
    }

    fn words(&self, endpoints: &[Endpoint]) -> Option<String> {
        let mut words = String::new();
        for (at, count, first) in &self.endpoints {
            let address = &endpoints[*at].address;
            let between = if words.is_empty() { "" } else { ", " };
            let _ = write!(words, "{between}{address} did not serve {count} requests ({first})");
        }
        (!words.is_empty()).then(|| {
            format!(
                "{words}; repeated, {} were served late, after up to {:.1} s",
                self.served_late,
                self.longest.as_secs_f64()
            )
        })
    }
}
