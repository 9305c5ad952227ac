//! etcd: gRPC to the members of a cluster, one connection and one request at a time in each thread.

mod access;
mod call_failure;
mod cluster;
mod connection;
mod messages;
mod session;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use model::{Address, Unavailable, Unit};

use self::access::{Access, OPTIONS};
use self::cluster::Cluster;
use self::messages::RangeRequest;
use self::session::EtcdSession;
use crate::{
    Capabilities, DataLocation, EmbeddedAdapter, OptionInfo, ServedData, Statistic, Store,
    StoreError, StoreUrl, Survives,
};

/// How long the members are left alone between two looks at them.
const LOOK: Duration = Duration::from_millis(10);

/// Keys that one request deletes.
const DELETED_AT_ONCE: i64 = 10_000;

/// The members of one cluster.
pub struct Etcd {
    cluster: Arc<Cluster>,
    addresses: Vec<Address>,
    /// Number of the next session.
    next: AtomicUsize,
}

impl EmbeddedAdapter for Etcd {
    const OPTIONS: &'static [OptionInfo] = OPTIONS;
    const LOCATION: DataLocation = DataLocation::Servers { default_port: 2379 };
    /// The limit is that of a request, 1.5 MiB; this leaves room for the value.
    const LONGEST_KEY: usize = 1 << 20;

    fn check(url: &StoreUrl) -> Result<(), StoreError> {
        Access::read(url).map(drop)
    }

    fn linked() -> Result<String, Unavailable> {
        Ok("API v3 built in; the server reports its version".to_owned())
    }
}

impl Store for Etcd {
    type Session<'a> = EtcdSession<'a>;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let cluster = Arc::new(Cluster::find(url)?);
        Ok(Etcd { cluster, addresses: url.servers.clone(), next: AtomicUsize::new(0) })
    }

    fn capabilities(&self) -> Capabilities {
        let survives = Some(Survives::PowerLoss);
        Capabilities { scan: true, survives, stores_values: true, may_evict: false }
    }

    fn version(&self) -> String {
        self.cluster.version.clone()
    }

    fn options(&self) -> Vec<(String, String)> {
        let mut options = self.cluster.access.options.clone();
        options.push(("cluster_id".to_owned(), format!("{:x}", self.cluster.id)));
        options.push(("members".to_owned(), self.cluster.members.to_string()));
        options
    }

    /// The sessions take the endpoints in turn.
    fn session(&self) -> Result<EtcdSession<'_>, StoreError> {
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.cluster.endpoints.len();
        EtcdSession::new(&self.cluster, at)
    }

    /// Waits until every endpoint has applied what was committed so far.
    fn settle(&self, limit: Duration) -> Result<(), StoreError> {
        let begun = Instant::now();
        let mut goal = None;
        loop {
            let statuses: Vec<_> = self.cluster.statuses()?.into_iter().flatten().collect();
            let index = statuses.iter().map(|status| status.raft_index).max().unwrap_or(0);
            let goal = *goal.get_or_insert(index);
            if statuses.iter().all(|status| status.raft_applied_index >= goal) {
                return Ok(());
            }
            if begun.elapsed() + LOOK > limit {
                let words = "a member of etcd had not applied all writes";
                return Err(StoreError::Unsettled(words.to_owned()));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Of the endpoints together; empty where one of them does not answer.
    fn statistics(&self) -> Vec<Statistic> {
        let statuses: Option<Vec<_>> =
            self.cluster.statuses().ok().and_then(|all| all.into_iter().collect());
        let statuses = statuses.unwrap_or_default();
        let size = statuses.iter().map(|status| status.db_size as f64).sum();
        let in_use = statuses.iter().map(|status| status.db_size_in_use as f64).sum();
        let term = statuses.iter().map(|status| status.raft_term).max();
        let revision = statuses.iter().filter_map(|status| Some(status.header?.revision)).max();
        let (Some(term), Some(revision)) = (term, revision) else { return Vec::new() };
        [
            ("database.size", size, Unit::Bytes),
            ("database.in_use", in_use, Unit::Bytes),
            ("revisions.total", revision as f64, Unit::Count),
            ("terms.total", term as f64, Unit::Count),
        ]
        .map(|(name, value, unit)| Statistic { name: name.to_owned(), value, unit })
        .to_vec()
    }

    fn served(&self) -> Option<Arc<dyn ServedData>> {
        let cluster = Arc::clone(&self.cluster);
        Some(Arc::new(EtcdData { cluster, addresses: self.addresses.clone() }))
    }
}

/// What lies in the cluster, under the prefix.
struct EtcdData {
    cluster: Arc<Cluster>,
    addresses: Vec<Address>,
}

impl EtcdData {
    fn session(&self) -> Result<EtcdSession<'_>, StoreError> {
        EtcdSession::new(&self.cluster, 0)
    }
}

impl ServedData for EtcdData {
    fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    fn marker(&self) -> Result<Option<String>, StoreError> {
        let value = self.session()?.value(self.cluster.access.marker.clone(), false)?;
        Ok(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
    }

    fn mark(&self, marker: &str) -> Result<(), StoreError> {
        self.session()?.put(self.cluster.access.marker.clone(), marker.as_bytes())
    }

    fn unmark(&self) -> Result<(), StoreError> {
        self.session()?.delete_range(self.cluster.access.marker.clone(), Bytes::new())
    }

    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.session()?.value(self.cluster.access.key(key), false)?.is_some())
    }

    /// Deletes what lies under the prefix, in pieces, so that each request ends in time.
    fn clear(&self) -> Result<(), StoreError> {
        self.unmark()?;
        let access = &self.cluster.access;
        let mut session = self.session()?;
        loop {
            let (first, end) = (access.data.clone(), access.data_end());
            let request = RangeRequest {
                key: first.clone(),
                range_end: end,
                limit: DELETED_AT_ONCE,
                serializable: false,
                keys_only: true,
            };
            let pairs = session.call(request)?.kvs;
            let Some(last) = pairs.last() else { return Ok(()) };
            // The end itself is not deleted.
            let behind = [&last.key[..], &[0]].concat();
            session.delete_range(first, Bytes::from(behind))?;
        }
    }

    fn warnings(&self) -> Vec<String> {
        self.cluster.warnings()
    }
}
