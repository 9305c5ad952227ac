//! Starts a server for a study, waits until it answers, and ends it.
//!
//! The programs are [`PROGRAMS`]; a [`Launcher`] starts them.

mod cluster;
mod error;
mod launcher;
mod local;
mod memcached;
mod program;
mod programs;
mod redis;
mod settings;

pub use cluster::{ClusterLayout, form_cluster};
pub use error::{LaunchError, SettingError};
pub use launcher::{LaunchRequest, Launched, Launcher, ServerExit, ServerHandle, ServerState};
pub use local::{LocalLauncher, installed, located};
pub use program::{LaunchContext, Program, check};
pub use programs::{PROGRAMS, program};
pub use settings::{CommonSettings, GivenSettings, ServerSetting, ServerSettings, Value};
