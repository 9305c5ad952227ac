//! A Job: created, waited for, and deleted with all that it owns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PostParams};
use kube::core::Status;
use model::Span;
use serde_json::{Value, json};

use super::api::Cluster;
use super::group::PodGroup;
use super::keeper::Keeper;
use super::manifest::{JobPlan, pods_of};
use super::pods::{PodState, state};
use super::shell::PodShell;
use crate::error::FleetError;
use crate::target::request;

/// Between looks at the pods.
const LOOK: Duration = Duration::from_secs(1);
/// How long pods may take to end: their grace period, and some for the cluster itself.
const END: Duration = Duration::from_secs(120);
/// How long an API server may be away, such as while it is restarted.
const AWAY: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(200);

/// A Job that is deleted when this is dropped.
#[derive(Debug)]
pub(super) struct PodJob {
    cluster: Arc<Cluster>,
    pub name: String,
    /// One for each pod that has run.
    keepers: BTreeMap<String, Keeper>,
}

/// A Job that waits for its pods.
pub(super) struct QueuedPods {
    pub job: PodJob,
    label: String,
    group: PodGroup,
    nodes: usize,
    lease: Duration,
    shell: PodShell,
    begun: Instant,
    next_look: Instant,
    prolonged: Instant,
    shown: String,
}

/// A pod that runs.
pub(super) struct RunningPod {
    pub name: String,
    pub node: String,
}

impl QueuedPods {
    pub fn create(
        cluster: &Arc<Cluster>,
        label: &str,
        plan: &JobPlan<'_>,
        shell: PodShell,
    ) -> Result<QueuedPods, FleetError> {
        let manifest: DynamicObject = serde_json::from_value(plan.manifest())
            .map_err(|error| FleetError::Here(format!("kubernetes: the Job: {error}")))?;
        let kind = ApiResource::erase::<Job>(&());
        let jobs: Api<DynamicObject> =
            Api::namespaced_with(cluster.client.clone(), plan.namespace, &kind);
        // It exists from here on, even where the answer is lost.
        let job = PodJob {
            cluster: Arc::clone(cluster),
            name: plan.name.to_owned(),
            keepers: BTreeMap::new(),
        };
        cluster.ask(jobs.create(&PostParams::default(), &manifest))?;
        let now = Instant::now();
        Ok(QueuedPods {
            job,
            label: label.to_owned(),
            group: plan.group.clone(),
            nodes: plan.nodes,
            lease: plan.lease,
            shell,
            begun: now,
            next_look: now,
            prolonged: now,
            shown: String::new(),
        })
    }

    /// The pods, once all of them run.
    ///
    /// # Errors
    /// A pod will never run, or they wait for longer than their limit.
    pub fn running(
        &mut self,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Option<Vec<RunningPod>>, FleetError> {
        if Instant::now() < self.next_look {
            return Ok(None);
        }
        self.next_look = Instant::now() + LOOK;
        let pods = self.job.pods(AWAY)?;
        let (mut ready, mut words) = (Vec::new(), Vec::new());
        for pod in &pods {
            let name = pod.metadata.name.clone().unwrap_or_default();
            match state(pod) {
                PodState::Runs => {
                    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
                    self.keep(&name)?;
                    ready.push(RunningPod { name, node: node.unwrap_or_default() });
                }
                PodState::Waits(why) => words.push(why),
                PodState::Never(why) | PodState::Ended(why) => {
                    return Err(request(format!("{}: pod {name}: {why}", self.label)));
                }
            }
        }
        if ready.len() == self.nodes {
            let limit = self.group.time().map(|time| self.begun.elapsed() + time);
            self.job.set_limit(limit)?;
            return Ok(Some(ready));
        }
        words.sort();
        words.dedup();
        let why = match pods.len() {
            0 => "no pod is created yet (`kubectl describe job` says why)".to_owned(),
            _ => words.join("; "),
        };
        let words = format!("{} of {}: {why}", ready.len(), self.nodes);
        if words != self.shown {
            tell(&format!("{}: job {}: pods run: {words}", self.label, self.job.name));
            self.shown.clone_from(&words);
        }
        if self.begun.elapsed() > self.group.queue() {
            return Err(request(format!(
                "{}: not all pods run within {}: {words}; its Job is deleted; wait longer with \
                 queue=TIME, or mend node-selector=, toleration=, cpus= or memory=",
                self.label,
                Span(self.group.queue())
            )));
        }
        self.prolong()?;
        Ok(None)
    }

    /// Renews the lease of a pod that runs.
    fn keep(&mut self, pod: &str) -> Result<(), FleetError> {
        if !self.job.keepers.contains_key(pod) {
            let keeper = Keeper::start(&self.shell, pod, self.lease)?;
            self.job.keepers.insert(pod.to_owned(), keeper);
        }
        Ok(())
    }

    /// While pods wait no process of theirs can hold a lease: the Job's own limit does.
    fn prolong(&mut self) -> Result<(), FleetError> {
        if self.prolonged.elapsed() < self.lease / 4 {
            return Ok(());
        }
        self.prolonged = Instant::now();
        self.job.set_limit(Some(self.begun.elapsed() + self.lease))
    }
}

impl PodJob {
    fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace)
    }

    /// Its pods, as a server says that is away for no longer than `patience`.
    pub fn pods(&self, patience: Duration) -> Result<Vec<Pod>, FleetError> {
        let pods: Api<Pod> = Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        let of_job = ListParams::default().labels(&pods_of(&self.name));
        Ok(self.cluster.ask_within(patience, || pods.list(&of_job))?.items)
    }

    /// The Job ends so long after its begin.
    fn set_limit(&self, limit: Option<Duration>) -> Result<(), FleetError> {
        let limit: Value = limit.map_or(Value::Null, |limit| limit.as_secs().max(1).into());
        let patch = Patch::Merge(json!({ "spec": { "activeDeadlineSeconds": limit } }));
        let jobs = self.jobs();
        let parameters = Default::default();
        self.cluster.ask_within(AWAY, || jobs.patch(&self.name, &parameters, &patch)).map(drop)
    }

    /// Lets a pod end before the others.
    pub fn release(&mut self, pod: &str) -> Option<Keeper> {
        self.keepers.remove(pod)
    }

    /// Deletes it, and waits until it is gone with its pods.
    fn delete(&self) -> Result<(), String> {
        let (jobs, parameters) = (self.jobs(), DeleteParams::foreground());
        let deleted = self.cluster.answer_within(AWAY, || jobs.delete(&self.name, &parameters));
        let mut is_gone = self.is_gone(deleted)?;
        let begin = Instant::now();
        while !is_gone {
            if begin.elapsed() > END {
                return Err(format!("its pods have not ended within {}", Span(END)));
            }
            thread::sleep(POLL);
            is_gone = self.is_gone(self.cluster.answer_within(AWAY, || jobs.get(&self.name)))?;
        }
        Ok(())
    }

    /// Whether an answer says that there is no such Job.
    fn is_gone<T>(&self, answer: Result<Result<T, Status>, FleetError>) -> Result<bool, String> {
        match answer {
            Ok(Ok(_)) => Ok(false),
            Ok(Err(status)) if status.code == 404 => Ok(true),
            Ok(Err(status)) => Err(self.cluster.refused(&status).to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for PodJob {
    fn drop(&mut self) {
        self.keepers.values().for_each(Keeper::stop);
        self.keepers.clear();
        if let Err(why) = self.delete() {
            self.cluster.note_left(&self.name, &why);
        }
    }
}
