//! Runs commands on other machines, through what starts programs there already: this machine's
//! processes or the user's own `ssh`. It knows nothing of studies; what a command does is its own
//! affair.

mod error;
mod fleet_file;
mod folder;
mod hosted;
mod inventory;
mod launcher;
mod limited;
mod local;
mod quote;
mod ssh;
mod target;

pub use error::FleetError;
pub use folder::{HostFolder, Platform};
pub use hosted::{Hosted, HostedEnd, HostedLine};
pub use launcher::Launcher;
pub use local::Local;
pub use quote::quoted;
pub use ssh::Ssh;
pub use target::{FleetHost, FleetTarget, LauncherKind};
