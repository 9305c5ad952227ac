//! Runs commands on other machines: as local processes, through the user's own `ssh`, or on nodes that
//! Slurm allocates. It knows nothing of studies.

mod ansible;
mod error;
mod fleet_file;
mod folder;
mod hosted;
mod inventory;
mod launcher;
mod limited;
mod local;
mod slurm;
mod ssh;
mod target;

pub use error::FleetError;
pub use folder::HostFolder;
pub use hosted::{Hosted, HostedEnd, HostedLine, LinesEnded};
pub use launcher::Launcher;
pub use local::Local;
pub use slurm::EarlierAttempt;
pub use ssh::Ssh;
pub use target::{FleetHost, FleetTarget, LauncherKind};
