//! Whether the user may do what a run needs, found out before anything is created.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::api::Cluster;
use crate::error::FleetError;
use crate::target::request;

/// Verb, group, resource and subresource.
const NEEDED: [(&str, &str, &str, &str); 7] = [
    ("create", "batch", "jobs", ""),
    ("get", "batch", "jobs", ""),
    ("patch", "batch", "jobs", ""),
    ("delete", "batch", "jobs", ""),
    ("list", "", "pods", ""),
    // A command is connected by a GET, which newer servers check as `create`, too.
    ("get", "", "pods", "exec"),
    ("create", "", "pods", "exec"),
];

/// Names each right that is missing.
pub(super) fn check(cluster: &Cluster) -> Result<(), FleetError> {
    let mut missing = Vec::new();
    for (verb, group, resource, subresource) in NEEDED {
        if !may(cluster, verb, group, resource, subresource)? {
            let below = if subresource.is_empty() { "" } else { "/" };
            missing.push(format!("`{verb}` on `{resource}{below}{subresource}`"));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(request(format!(
        "kubernetes: you have no right to {} in namespace `{}`; apply the Role of docs/fleet.md \
         there, or name another namespace",
        missing.join(", "),
        cluster.namespace
    )))
}

fn may(
    cluster: &Cluster,
    verb: &str,
    group: &str,
    resource: &str,
    subresource: &str,
) -> Result<bool, FleetError> {
    let text = |text: &str| Some(text.to_owned());
    let attributes = ResourceAttributes {
        namespace: text(&cluster.namespace),
        verb: text(verb),
        group: text(group),
        resource: text(resource),
        subresource: text(subresource),
        ..Default::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..Default::default()
        },
        ..Default::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(cluster.client.clone());
    let answer = cluster.ask(reviews.create(&PostParams::default(), &review))?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
