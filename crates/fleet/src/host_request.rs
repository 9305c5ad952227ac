//! Hosts that a scheduler has yet to give: nodes of Slurm, pods of Kubernetes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;

use crate::error::FleetError;
use crate::launcher::Launcher;
use crate::target::FleetHost;

/// What is known of an earlier attempt at the same study.
#[derive(Debug, Clone, Copy)]
pub struct EarlierAttempt<'a> {
    /// The job of each host.
    pub jobs: &'a BTreeMap<String, String>,
    /// The hosts whose results are whole.
    pub done: &'a BTreeSet<String>,
}

/// What starts commands on the hosts that a scheduler gave, and the hosts.
pub(crate) type GivenHosts = (Arc<dyn Launcher>, Vec<FleetHost>);

/// What is requested of a scheduler.
pub(crate) trait HostRequest: Debug + Send + Sync {
    /// Gets the hosts; `tell` shows how they are waited for.
    fn acquire(
        &self,
        lease: Duration,
        earlier: EarlierAttempt<'_>,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<GivenHosts, FleetError>;

    /// How many hosts there will be.
    fn count(&self) -> Result<usize, FleetError>;

    /// What would be created, as the scheduler's own tools take it.
    fn manifest(&self, _lease: Duration) -> Option<Value> {
        None
    }
}
