//! Commands as steps of jobs.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::client::{Client, JobState, is_usable};
use super::queue::Allocation;
use crate::error::FleetError;
use crate::launcher::Launcher;

/// `srun` ends with it for errors of its own.
const SLURM_FAILED: i32 = 255;
/// What `srun` ends with when its step was ended by SIGKILL or SIGTERM, as with its job.
const KILLED: [i32; 2] = [128 + 9, 128 + 15];
/// A step shares its node with the others of this study: a command that runs, and questions. It
/// starts at once or not at all.
const STEP: [&str; 10] = [
    "-QQ",
    "--overlap",
    "--whole",
    "--mem=0",
    "--mpi=none",
    "--nodes=1",
    "--ntasks=1",
    "--immediate=60",
    "--chdir=/",
    "--input=all",
];
const POLL: Duration = Duration::from_millis(200);
/// How long a job may end until its reason is not waited for any more.
const ENDING: Duration = Duration::from_secs(10);

/// Starts commands by `srun`.
#[derive(Debug)]
pub(crate) struct Slurm {
    client: Client,
    nodes: BTreeMap<String, Node>,
    binds_cpus: bool,
    held: Mutex<Vec<Allocation>>,
}

/// A node, and the job that holds it.
#[derive(Debug)]
struct Node {
    job: u64,
    ends_at: Option<Instant>,
}

impl Slurm {
    /// Without nodes yet.
    pub fn new(client: &Client) -> Result<Slurm, FleetError> {
        Ok(Slurm {
            client: client.clone(),
            nodes: BTreeMap::new(),
            binds_cpus: client.binds_cpus()?,
            held: Mutex::default(),
        })
    }

    pub fn add(&mut self, node: String, state: &JobState) {
        let ends_at = state.left.and_then(|left| Instant::now().checked_add(left));
        self.nodes.insert(node, Node { job: state.id, ends_at });
    }

    /// A job's state. While it ends Slurm does not say why, so that is waited for.
    fn last_state(&self, job: u64) -> Result<Option<String>, FleetError> {
        let begin = Instant::now();
        loop {
            let state = self.client.job(&format!("--jobs={job}"))?.map(|job| job.state);
            if state.as_deref() != Some("COMPLETING") || begin.elapsed() > ENDING {
                return Ok(state);
            }
            thread::sleep(POLL);
        }
    }

    pub fn hold(&mut self, allocation: Allocation) {
        self.held.get_mut().unwrap_or_else(PoisonError::into_inner).push(allocation);
    }
}

impl Launcher for Slurm {
    fn shell(&self, host: &str, script: &str) -> Command {
        let mut command = self.client.command("srun");
        command.env("SLURM_EXIT_ERROR", SLURM_FAILED.to_string());
        command.env("SLURM_EXIT_IMMEDIATE", SLURM_FAILED.to_string());
        command.args(STEP);
        if self.binds_cpus {
            command.arg("--cpu-bind=none");
        }
        let job = self.nodes.get(host).map_or(0, |node| node.job);
        command.arg(format!("--jobid={job}")).arg(format!("--nodelist={host}"));
        command.args(["sh", "-c", script]);
        command
    }

    fn is_unreachable(&self, code: Option<i32>) -> bool {
        code.is_some_and(|code| code == SLURM_FAILED || KILLED.contains(&code))
    }

    fn address(&self, host: &str) -> Result<String, FleetError> {
        self.client.node_address(host)
    }

    fn why_lost(&self, host: &str) -> Option<String> {
        let job = self.nodes.get(host)?.job;
        // Without an answer nothing is known of the host.
        let state = self.last_state(job).ok()?;
        let why = match state.as_deref() {
            Some("RUNNING" | "CONFIGURING" | "RESIZING" | "SIGNALING") => {
                let state = self.client.node_state(host).ok()??;
                let usable = is_usable(&state) || state.starts_with("drain");
                return (!usable).then(|| format!("Slurm has the node as {state}"));
            }
            Some("CANCELLED") => "was cancelled",
            Some("TIMEOUT" | "DEADLINE") => "reached its time limit",
            Some("PREEMPTED") => "was pre-empted",
            Some("NODE_FAIL") => "lost a node",
            Some("COMPLETING") => "is ending",
            Some(_) => "has ended",
            None => "is no longer known to Slurm",
        };
        Some(format!("its job {job} {why}"))
    }

    fn ends_at(&self, host: &str) -> Option<Instant> {
        self.nodes.get(host)?.ends_at
    }

    fn release(&self, _: &str) -> Result<(), FleetError> {
        Ok(())
    }

    fn release_all(&self) -> Result<(), FleetError> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }
}
