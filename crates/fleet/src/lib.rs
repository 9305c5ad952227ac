//! Runs commands on other machines: as local processes, through the user's own `ssh`, on nodes that
//! Slurm allocates, or in pods of Kubernetes. It knows nothing of studies.

mod ansible;
mod error;
mod fleet_file;
mod folder;
mod host_request;
mod hosted;
mod inventory;
#[cfg(feature = "kubernetes")]
mod kubernetes;
#[cfg(not(feature = "kubernetes"))]
#[path = "kubernetes_lacking.rs"]
mod kubernetes;
mod launcher;
mod limited;
mod local;
mod slurm;
mod ssh;
mod target;

pub use error::FleetError;
pub use folder::HostFolder;
pub use host_request::EarlierAttempt;
pub use hosted::{Hosted, HostedEnd, HostedLine, LinesEnded};
#[cfg(feature = "kubernetes")]
pub use kubernetes::{POD_NOT_REACHED, PodShell, run_pod_shell, start_pod_shells_by};
pub use launcher::Launcher;
pub use local::Local;
pub use ssh::Ssh;
pub use target::{FleetHost, FleetTarget, HostDevices, LauncherKind};
