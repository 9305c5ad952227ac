//! From groups to the pods that they got.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::api::Cluster;
use super::group::{ClusterPlace, PodGroup};
use super::job::QueuedPods;
use super::launcher::Kubernetes;
use super::manifest::{JobPlan, WORK_FOLDER, job_name};
use super::rights;
use super::shell::PodShell;
use crate::error::FleetError;
use crate::fleet_file::FleetFile;
use crate::host_request::{EarlierAttempt, GivenHosts, HostRequest};
use crate::target::{FleetHost, request};

const POLL: Duration = Duration::from_millis(50);

/// Groups of pods by their names.
#[derive(Debug)]
pub(crate) struct PodRequest {
    pub place: ClusterPlace,
    pub groups: BTreeMap<String, PodGroup>,
}

/// The pods of a fleet file.
pub(crate) fn scheduled(file: &mut FleetFile) -> Result<Box<dyn HostRequest>, FleetError> {
    let (place, groups) = (std::mem::take(&mut file.cluster), std::mem::take(&mut file.pods));
    let all = PodRequest { place, groups };
    all.check()?;
    let of_nodes = all.groups.values().find_map(PodGroup::folder);
    file.folder.get_or_insert_with(|| of_nodes.unwrap_or(WORK_FOLDER).to_owned());
    Ok(Box::new(all))
}

impl PodRequest {
    fn check(&self) -> Result<(), FleetError> {
        if self.groups.is_empty() {
            return Err(request("names no pods; give at least one, as in `[pods.arm]`".to_owned()));
        }
        self.place.check()?;
        self.groups.iter().try_for_each(|(name, group)| group.check(name))
    }
}

impl HostRequest for PodRequest {
    fn count(&self) -> Result<usize, FleetError> {
        Ok(self.groups.values().map(PodGroup::nodes).sum())
    }

    /// The Jobs as `kubectl apply` takes them.
    fn manifest(&self, lease: Duration) -> Option<Value> {
        let id = new_id();
        let job = |(label, group): (&String, &PodGroup)| {
            let name = job_name(&id, label);
            let nodes = group.nodes();
            let namespace = self.place.namespace.as_deref().unwrap_or_default();
            plan(&id, &name, namespace, group, nodes, lease, group.time()).manifest()
        };
        let mut jobs: Vec<Value> = self.groups.iter().map(job).collect();
        Some(match jobs.len() {
            1 => jobs.remove(0),
            _ => json!({ "apiVersion": "v1", "kind": "List", "items": jobs }),
        })
    }

    /// Gets the pods of all groups. Those whose results are whole already are named, too, and are
    /// not requested again.
    fn acquire(
        &self,
        lease: Duration,
        earlier: EarlierAttempt<'_>,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<GivenHosts, FleetError> {
        let cluster = Arc::new(Cluster::connect(&self.place)?);
        cluster.check_version()?;
        rights::check(&cluster)?;
        let given = self.given(&cluster, lease, earlier, stop, tell);
        if given.is_err() {
            cluster.take_left().iter().for_each(|left| tell(left));
        }
        given
    }
}

/// A group whose Job waits for its pods.
type Queued<'a> = (&'a String, &'a PodGroup, QueuedPods);

impl PodRequest {
    /// Creates the Jobs, and waits for their pods. Without success none is held afterwards.
    fn given(
        &self,
        cluster: &Arc<Cluster>,
        lease: Duration,
        earlier: EarlierAttempt<'_>,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<GivenHosts, FleetError> {
        let shell = PodShell::new(&self.place, &cluster.namespace);
        let (mut hosts, mut queued) = self.create(cluster, lease, earlier, &shell)?;
        let mut kubernetes = Kubernetes::new(Arc::clone(cluster), shell);
        while !queued.is_empty() {
            let mut waiting = Vec::new();
            for (label, group, mut one) in queued {
                match one.running(tell)? {
                    Some(pods) => {
                        let nodes: Vec<&str> = pods.iter().map(|pod| &*pod.node).collect();
                        tell(&format!("{label}: job {} has {}", one.job.name, nodes.join(", ")));
                        hosts.extend(nodes.into_iter().map(|node| host(node, label, group)));
                        kubernetes.hold(one.job, pods, group.time());
                    }
                    None => waiting.push((label, group, one)),
                }
            }
            queued = waiting;
            if stop.load(Ordering::Relaxed) {
                return Err(FleetError::Stopped);
            }
            thread::sleep(POLL);
        }
        Ok((Arc::new(kubernetes), hosts))
    }

    /// A Job for what each group lacks, and the hosts that it has already.
    fn create(
        &self,
        cluster: &Arc<Cluster>,
        lease: Duration,
        earlier: EarlierAttempt<'_>,
        shell: &PodShell,
    ) -> Result<(Vec<FleetHost>, Vec<Queued<'_>>), FleetError> {
        let (mut hosts, mut queued, id) = (Vec::new(), Vec::new(), new_id());
        for (label, group) in &self.groups {
            let of_group = |host: &&String| earlier.jobs.get(*host) == Some(label);
            let done: Vec<String> = earlier.done.iter().filter(of_group).cloned().collect();
            let begun = earlier.jobs.keys().filter(of_group).filter(|host| !done.contains(host));
            let keep: Vec<String> = begun.cloned().collect();
            hosts.extend(done.iter().map(|node| host(node, label, group)));
            let needed = group.nodes().saturating_sub(done.len());
            if needed > 0 {
                let name = job_name(&id, label);
                // While its pods wait the Job has a lease of its own.
                let begin = plan(&id, &name, &cluster.namespace, group, needed, lease, Some(lease));
                let job = JobPlan { keep: &keep, done: &done, ..begin };
                let created = QueuedPods::create(cluster, label, &job, shell.clone())?;
                queued.push((label, group, created));
            }
        }
        Ok((hosts, queued))
    }
}

fn plan<'a>(
    id: &'a str,
    name: &'a str,
    namespace: &'a str,
    group: &'a PodGroup,
    nodes: usize,
    lease: Duration,
    limit: Option<Duration>,
) -> JobPlan<'a> {
    JobPlan { id, name, namespace, group, nodes, lease, limit, keep: &[], done: &[] }
}

fn new_id() -> String {
    format!("{:010x}", RandomState::new().build_hasher().finish() >> 24)
}

fn host(node: &str, label: &str, group: &PodGroup) -> FleetHost {
    FleetHost {
        name: node.to_owned(),
        platform: group.platform.clone(),
        set: group.set.clone(),
        job: Some(label.to_owned()),
        ..FleetHost::at(node)
    }
}
