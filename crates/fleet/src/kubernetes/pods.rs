//! What the cluster says of pods.

use k8s_openapi::api::core::v1::{ContainerState, Pod};

/// Reasons why a container waits that no waiting changes.
const IMAGE: [&str; 5] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
];
const CONTAINER: [&str; 4] =
    ["CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"];

/// How far a pod is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PodState {
    /// With the words of who it waits for.
    Waits(String),
    Runs,
    /// It will not run; says why and the way out.
    Never(String),
    /// It ran.
    Ended(String),
}

/// The state of a pod, as its status says it.
pub(super) fn state(pod: &Pod) -> PodState {
    let Some(status) = &pod.status else { return PodState::Waits("is new".to_owned()) };
    if pod.metadata.deletion_timestamp.is_some() {
        return PodState::Ended("was deleted".to_owned());
    }
    let container = status.container_statuses.iter().flatten().next();
    let container = container.and_then(|one| one.state.as_ref());
    match status.phase.as_deref() {
        Some("Running") => running(container),
        Some("Failed" | "Succeeded") => PodState::Ended(end(pod, container)),
        _ => waiting(pod, container),
    }
}

fn running(container: Option<&ContainerState>) -> PodState {
    match container {
        Some(ContainerState { terminated: Some(_), .. }) => {
            PodState::Ended("has ended its container".to_owned())
        }
        Some(ContainerState { waiting: Some(waiting), .. }) => {
            PodState::Waits(waiting.reason.clone().unwrap_or_default())
        }
        _ => PodState::Runs,
    }
}

/// Why a pod has ended.
fn end(pod: &Pod, container: Option<&ContainerState>) -> String {
    let status = pod.status.as_ref();
    let reason = status.and_then(|status| status.reason.clone());
    if let Some(reason) = reason {
        let message = status.and_then(|status| status.message.as_deref()).unwrap_or_default();
        return format!("has ended: {reason}: {message}");
    }
    match container.and_then(|state| state.terminated.as_ref()) {
        Some(ended) => {
            let reason = ended.reason.as_deref().unwrap_or("without a reason");
            let message = ended.message.as_deref().unwrap_or_default();
            format!("has ended: {reason}: exit code {} {message}", ended.exit_code)
                .trim_end()
                .to_owned()
        }
        None => "has ended".to_owned(),
    }
}

fn waiting(pod: &Pod, container: Option<&ContainerState>) -> PodState {
    if let Some(waiting) = container.and_then(|state| state.waiting.as_ref()) {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let message = waiting.message.as_deref().unwrap_or_default();
        if IMAGE.contains(&reason) {
            return PodState::Never(format!(
                "its image cannot be pulled: {reason}: {message}; name another image=, or a \
                 pull-secret="
            ));
        }
        if CONTAINER.contains(&reason) {
            return PodState::Never(format!(
                "its container cannot be started: {reason}: {message}; the image needs `sh`"
            ));
        }
        return PodState::Waits(reason.to_owned());
    }
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let unscheduled = conditions
        .filter(|one| one.type_ == "PodScheduled" && one.status == "False")
        .find_map(|one| one.message.clone());
    PodState::Waits(unscheduled.unwrap_or_else(|| "waits for its container".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(status: Value) -> PodState {
        let pod = json!({ "metadata": { "name": "p" }, "status": status });
        state(&serde_json::from_value(pod).expect("a pod"))
    }

    #[test]
    fn a_pod_runs_waits_or_never_will() {
        let with = |phase: &str, state: Value| {
            json!({ "phase": phase, "containerStatuses": [{
                "name": "kvmeter", "image": "a", "imageID": "", "ready": false, "restartCount": 0,
                "state": state,
            }] })
        };
        assert_eq!(of(with("Running", json!({ "running": {} }))), PodState::Runs);
        let pull =
            json!({ "waiting": { "reason": "ImagePullBackOff", "message": "no such image" } });
        let PodState::Never(why) = of(with("Pending", pull)) else { panic!("it waits") };
        assert!(why.contains("cannot be pulled: ImagePullBackOff: no such image; name"), "{why}");
        let creating = json!({ "waiting": { "reason": "ContainerCreating" } });
        assert_eq!(of(with("Pending", creating)), PodState::Waits("ContainerCreating".to_owned()));
        let ended = json!({ "terminated": { "exitCode": 127, "reason": "Error" } });
        assert_eq!(
            of(with("Failed", ended)),
            PodState::Ended("has ended: Error: exit code 127".to_owned())
        );
        let unscheduled = json!({ "phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "message": "0/2 nodes are available",
        }] });
        assert_eq!(of(unscheduled), PodState::Waits("0/2 nodes are available".to_owned()));
        let evicted = json!({ "phase": "Failed", "reason": "Evicted", "message": "low on disk" });
        assert_eq!(of(evicted), PodState::Ended("has ended: Evicted: low on disk".to_owned()));
    }
}
