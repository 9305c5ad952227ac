//! The Job as `kubectl apply` takes it. It owns its pods, so that deleting it removes all.

use std::time::Duration;

use serde_json::{Value, json};

use super::group::{PodGroup, toleration};

/// A volume of each pod's own, which goes with it.
const VOLUME: &str = "/mnt/kvmeter";
/// Program, data and results, on the pod's own volume.
pub(super) const WORK_FOLDER: &str = "/mnt/kvmeter/fleet";
/// The same on a folder of the node.
const HOST_VOLUME: &str = "/mnt/node";
pub(super) const HOST_FOLDER: &str = "/mnt/node/kvmeter";
/// The container's name.
const CONTAINER: &str = "kvmeter";
/// Time between the request to end and SIGKILL; a study needs some of it to restore its machine.
const GRACE_S: u64 = 90;
/// A finished Job is deleted after it, with its pods.
const KEPT_S: u64 = 5;
/// Labels of each pod: that it is of kvmeter, and of which run.
const LABEL: &str = "app.kubernetes.io/name";
const RUN_LABEL: &str = "app.kubernetes.io/instance";

/// The pod's main process. The file `renewed` changes while the coordinator lives. Afterwards
/// commands under a lease of kvmeter are sent SIGTERM and have their time to end. A pod that is
/// deleted waits some more, while the coordinator collects what was finished.
const MAIN: &str = "cd /mnt/kvmeter || exit 1
ended=; last=; left=$LEASE_S
trap 'ended=1' TERM
while [ -z \"$ended\" ] && [ \"$left\" -gt 0 ]; do
  sleep 5 & wait $!
  left=$((left - 5)); now=
  [ -e renewed ] && read -r now <renewed
  [ \"$now\" = end ] && break
  [ \"$now\" = \"$last\" ] || { last=$now; left=$LEASE_S; }
done
left=70; sent=
while [ $left -gt 0 ]; do
  of=$(grep -l '[l]eased' /proc/[0-9]*/cmdline 2>/dev/null) || break
  for one in $of; do
    one=${one#/proc/}
    [ -n \"$sent\" ] || kill -TERM \"${one%/cmdline}\" 2>/dev/null
  done
  sent=1; left=$((left - 1)); sleep 1
done
left=15
while [ -n \"$ended\" ] && [ $left -gt 0 ] && [ -e renewed ] && [ \"$(cat renewed)\" != end ]; do
  left=$((left - 1)); sleep 1
done
exit 0";

/// What a Job is made of.
pub(super) struct JobPlan<'a> {
    /// Of this run alone.
    pub id: &'a str,
    pub name: &'a str,
    /// Empty where `kubectl` is to take that of the user's context.
    pub namespace: &'a str,
    pub group: &'a PodGroup,
    pub nodes: usize,
    /// Pods without a coordinator end after it.
    pub lease: Duration,
    /// The Job ends so long after its begin.
    pub limit: Option<Duration>,
    /// Nodes that are preferred, and nodes that are not used.
    pub keep: &'a [String],
    pub done: &'a [String],
}

/// The name of a group's Job.
pub(super) fn job_name(id: &str, group: &str) -> String {
    format!("kvmeter-{id}-{group}")
}

/// Finds the pods of a Job.
pub(super) fn pods_of(job: &str) -> String {
    format!("batch.kubernetes.io/job-name={job}")
}

impl JobPlan<'_> {
    pub fn manifest(&self) -> Value {
        let labels = json!({ LABEL: "kvmeter", RUN_LABEL: self.id });
        let mut spec = json!({
            "completionMode": "Indexed",
            "completions": self.nodes,
            "parallelism": self.nodes,
            // A pod that is lost is not replaced, and the others go on.
            "backoffLimitPerIndex": 0,
            "ttlSecondsAfterFinished": KEPT_S,
            "template": { "metadata": { "labels": labels.clone() }, "spec": self.pod() },
        });
        if let Some(limit) = self.limit {
            spec["activeDeadlineSeconds"] = whole_seconds(limit).into();
        }
        let mut metadata = json!({ "name": self.name, "labels": labels });
        if !self.namespace.is_empty() {
            metadata["namespace"] = self.namespace.into();
        }
        json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec })
    }

    fn pod(&self) -> Value {
        let group = self.group;
        let mut volumes = vec![json!({ "name": "work", "emptyDir": {} })];
        if let Some(path) = &group.host_path {
            volumes.push(json!({
                "name": "node",
                "hostPath": { "path": path, "type": "Directory" },
            }));
        }
        let mut pod = json!({
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": GRACE_S,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "affinity": { "podAntiAffinity": alone(), "nodeAffinity": self.nodes() },
            "containers": [self.container()],
            "volumes": volumes,
        });
        if !group.node_selector.is_empty() {
            pod["nodeSelector"] = json!(group.node_selector);
        }
        let tolerated: Vec<Value> =
            group.tolerations.iter().filter_map(|text| tolerated(text)).collect();
        if !tolerated.is_empty() {
            pod["tolerations"] = tolerated.into();
        }
        if group.host_network {
            pod["hostNetwork"] = true.into();
            pod["dnsPolicy"] = "ClusterFirstWithHostNet".into();
        }
        if let Some(account) = &group.service_account {
            pod["serviceAccountName"] = account.as_str().into();
        }
        if let Some(secret) = &group.pull_secret {
            pod["imagePullSecrets"] = json!([{ "name": secret }]);
        }
        pod
    }

    fn container(&self) -> Value {
        let mut mounts = vec![json!({ "name": "work", "mountPath": VOLUME })];
        if self.group.host_path.is_some() {
            mounts.push(json!({ "name": "node", "mountPath": HOST_VOLUME }));
        }
        // Equal requests and limits: the pod's class is Guaranteed.
        let resources = json!({
            "cpu": self.group.cpus().to_string(),
            "memory": self.group.memory(),
        });
        json!({
            "name": CONTAINER,
            "image": self.group.image(),
            "command": ["sh", "-c", MAIN],
            "env": [
                { "name": "LEASE_S", "value": whole_seconds(self.lease).to_string() },
                { "name": "HOME", "value": VOLUME },
            ],
            "resources": { "requests": resources.clone(), "limits": resources },
            "volumeMounts": mounts,
        })
    }

    /// Nodes that an earlier attempt used are preferred; none of which the results are here.
    fn nodes(&self) -> Value {
        let field = |operator: &str, node: &String| json!({ "key": "metadata.name", "operator": operator, "values": [node] });
        let mut affinity = json!({});
        if !self.done.is_empty() {
            let all: Vec<Value> = self.done.iter().map(|node| field("NotIn", node)).collect();
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!({ "nodeSelectorTerms": [{ "matchFields": all }] });
        }
        if !self.keep.is_empty() {
            let each = |node| json!({ "weight": 100, "preference": { "matchFields": [field("In", node)] } });
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] =
                self.keep.iter().map(each).collect();
        }
        affinity
    }
}

/// No two pods of kvmeter share a node, of whichever run they are.
fn alone() -> Value {
    json!({ "requiredDuringSchedulingIgnoredDuringExecution": [{
        "labelSelector": { "matchLabels": { LABEL: "kvmeter" } },
        "namespaceSelector": {},
        "topologyKey": "kubernetes.io/hostname",
    }] })
}

fn tolerated(text: &str) -> Option<Value> {
    let (key, value, effect) = toleration(text).ok()?;
    let mut all = match value {
        Some(value) => json!({ "key": key, "operator": "Equal", "value": value }),
        None => json!({ "key": key, "operator": "Exists" }),
    };
    if let Some(effect) = effect {
        all["effect"] = effect.into();
    }
    Some(all)
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().max(1)
}
