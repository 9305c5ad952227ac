//! Pods of a Kubernetes cluster: a Job holds them, its pods' main process is their lease, and
//! commands run in them through the API server.

mod api;
mod group;
mod job;
mod keeper;
mod launcher;
mod manifest;
mod pods;
mod request;
mod rights;
mod shell;

pub(crate) use group::{ClusterPlace, PodGroup, parse};
pub(crate) use request::scheduled;
pub use shell::{POD_NOT_REACHED, PodShell, run_pod_shell, start_pod_shells_by};
