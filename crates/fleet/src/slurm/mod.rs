//! Slurm: `salloc` gets the nodes of a study, `srun` starts commands on them.

mod client;
mod job;
mod launcher;
mod queue;
mod request;

pub(crate) use client::Client;
pub(crate) use job::{SlurmJob, parse};
pub(crate) use request::SlurmRequest;
