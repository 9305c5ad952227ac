//! Commands in pods.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;

use super::api::Cluster;
use super::job::{PodJob, RunningPod};
use super::pods::{PodState, state};
use super::shell::{POD_NOT_REACHED, PodShell};
use crate::error::FleetError;
use crate::launcher::Launcher;

/// What a command ends with when its pod is ended.
const KILLED: [i32; 2] = [128 + 9, 128 + 15];

/// Starts commands in pods, which its Jobs hold.
#[derive(Debug)]
pub(crate) struct Kubernetes {
    cluster: Arc<Cluster>,
    shell: PodShell,
    /// By their nodes, which name the hosts.
    pods: BTreeMap<String, HostPod>,
    held: Mutex<Vec<PodJob>>,
}

#[derive(Debug)]
struct HostPod {
    name: String,
    /// The label of its job among those that are held.
    job: String,
    ends_at: Option<Instant>,
}

impl Kubernetes {
    pub(super) fn new(cluster: Arc<Cluster>, shell: PodShell) -> Kubernetes {
        Kubernetes { cluster, shell, pods: BTreeMap::new(), held: Mutex::default() }
    }

    pub(super) fn hold(&mut self, job: PodJob, pods: Vec<RunningPod>, limit: Option<Duration>) {
        let ends_at = limit.and_then(|limit| Instant::now().checked_add(limit));
        for pod in pods {
            let host = HostPod { name: pod.name, job: job.name.clone(), ends_at };
            self.pods.insert(pod.node, host);
        }
        self.held.get_mut().unwrap_or_else(PoisonError::into_inner).push(job);
    }

    /// What the cluster says of a host's pod; None where it has no such pod.
    fn pod(&self, host: &str) -> Result<Option<Pod>, FleetError> {
        let Some(pod) = self.pods.get(host) else { return Ok(None) };
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(job) = held.iter().find(|job| job.name == pod.job) else { return Ok(None) };
        let all = job.pods(Duration::ZERO)?;
        Ok(all.into_iter().find(|one| one.metadata.name.as_deref() == Some(&pod.name)))
    }
}

impl Launcher for Kubernetes {
    fn shell(&self, host: &str, script: &str) -> Command {
        let pod = self.pods.get(host).map_or(host, |pod| &pod.name);
        self.shell.command(pod, script)
    }

    fn is_unreachable(&self, code: Option<i32>) -> bool {
        code.is_some_and(|code| code == i32::from(POD_NOT_REACHED) || KILLED.contains(&code))
    }

    /// The pod's own, or its node's if it shares the network.
    fn address(&self, host: &str) -> Result<String, FleetError> {
        let address = self.pod(host)?.and_then(|pod| pod.status?.pod_ip);
        address.ok_or_else(|| FleetError::Failed {
            host: host.to_owned(),
            what: "finding its address",
            why: "its pod has none".to_owned(),
        })
    }

    fn why_lost(&self, host: &str) -> Option<String> {
        let name = &self.pods.get(host)?.name;
        let why = match self.pod(host) {
            Err(error) => return Some(error.to_string()),
            Ok(None) => "was deleted".to_owned(),
            Ok(Some(pod)) => match state(&pod) {
                PodState::Ended(why) => why,
                PodState::Waits(_) | PodState::Runs | PodState::Never(_) => return None,
            },
        };
        Some(format!("its pod {name} {why}"))
    }

    fn ends_at(&self, host: &str) -> Option<Instant> {
        self.pods.get(host)?.ends_at
    }

    fn release(&self, host: &str) -> Result<(), FleetError> {
        let Some(pod) = self.pods.get(host) else { return Ok(()) };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let job = held.iter_mut().find(|job| job.name == pod.job);
        let keeper = job.and_then(|job| job.release(&pod.name));
        // Its end is waited for, which must not keep the other hosts.
        drop(held);
        drop(keeper);
        Ok(())
    }

    fn release_all(&self) -> Result<(), FleetError> {
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        drop(held);
        match self.cluster.take_left() {
            left if left.is_empty() => Ok(()),
            left => Err(FleetError::Here(left.join("\n"))),
        }
    }
}
