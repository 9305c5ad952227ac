//! From jobs to the nodes that they got.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::client::{Client, JobState, is_usable};
use super::job::SlurmJob;
use super::launcher::Slurm;
use super::queue::QueuedJob;
use crate::error::FleetError;
use crate::host_request::{EarlierAttempt, GivenHosts, HostRequest};
use crate::target::{FleetHost, request};

const POLL: Duration = Duration::from_millis(50);

/// Jobs by their names.
#[derive(Debug)]
pub(crate) struct SlurmRequest {
    pub client: Client,
    pub jobs: BTreeMap<String, SlurmJob>,
}

impl HostRequest for SlurmRequest {
    fn count(&self) -> Result<usize, FleetError> {
        let nodes = |(name, job): (&String, &SlurmJob)| match job.job {
            Some(id) => Ok(self.client.node_names(&self.existing(name, id)?.nodelist)?.len()),
            None => Ok(job.nodes()),
        };
        self.jobs.iter().map(nodes).sum()
    }

    /// Gets the nodes of all jobs. Those whose results are whole already are named, too, and are not
    /// requested again.
    fn acquire(
        &self,
        _: Duration,
        earlier: EarlierAttempt<'_>,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<GivenHosts, FleetError> {
        let mut slurm = Slurm::new(&self.client)?;
        let (mut hosts, mut queued) = (Vec::new(), Vec::new());
        for (name, job) in &self.jobs {
            let of_job = |host: &&String| earlier.jobs.get(*host) == Some(name);
            let done: Vec<String> = earlier.done.iter().filter(of_job).cloned().collect();
            hosts.extend(done.iter().map(|node| host(node, name, job)));
            if let Some(id) = job.job {
                let state = self.existing(name, id)?;
                for node in self.client.node_names(&state.nodelist)? {
                    if !done.contains(&node) {
                        hosts.push(host(&node, name, job));
                    }
                    slurm.add(node, &state);
                }
                continue;
            }
            let needed = job.nodes().saturating_sub(done.len());
            if needed > 0 {
                self.check_partition(name, job)?;
                let keep = self.kept(name, job, earlier, needed, tell)?;
                let options = job.options(needed, &keep, &done);
                queued.push((name, job, QueuedJob::submit(&self.client, name, job, &options)?));
            }
        }
        while !queued.is_empty() {
            let mut waiting = Vec::new();
            for (name, job, mut one) in queued {
                match one.granted(tell)? {
                    Some(granted) => {
                        let which = format!("--jobs={}", granted.id);
                        let state = self.client.job(&which)?.ok_or_else(|| unknown(granted.id))?;
                        tell(&format!(
                            "{name}: job {} has {}",
                            granted.id,
                            granted.nodes.join(", ")
                        ));
                        for node in granted.nodes {
                            hosts.push(host(&node, name, job));
                            slurm.add(node, &state);
                        }
                        slurm.hold(one.allocation);
                    }
                    None => waiting.push((name, job, one)),
                }
            }
            queued = waiting;
            if stop.load(Ordering::Relaxed) {
                return Err(FleetError::Stopped);
            }
            thread::sleep(POLL);
        }
        Ok((Arc::new(slurm), hosts))
    }
}

impl SlurmRequest {
    pub fn check(&self) -> Result<(), FleetError> {
        if self.jobs.is_empty() {
            return Err(request("names no job; give at least one, as in `[jobs.arm]`".to_owned()));
        }
        self.jobs.iter().try_for_each(|(name, job)| job.check(name))
    }

    /// An allocation that the user has.
    fn existing(&self, name: &str, id: u64) -> Result<JobState, FleetError> {
        let state = self.client.job(&format!("--jobs={id}"))?.ok_or_else(|| unknown(id))?;
        if state.state != "RUNNING" || state.nodelist.is_empty() {
            return Err(request(format!(
                "{name}: job {id} is {}; name one that is RUNNING",
                state.state
            )));
        }
        Ok(state)
    }

    fn check_partition(&self, name: &str, job: &SlurmJob) -> Result<(), FleetError> {
        let Some(partition) = job.partition() else { return Ok(()) };
        let known = self.client.partitions()?;
        let mut nodes = 0;
        for one in partition.split(',') {
            let Some(count) = known.get(one) else {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                return Err(request(format!(
                    "{name}: the cluster has no partition `{one}`; it has {}",
                    names.join(", ")
                )));
            };
            nodes = nodes.max(*count);
        }
        if job.nodes() > nodes {
            return Err(request(format!(
                "{name}: nodes: {} are more than the {nodes} of partition `{partition}`",
                job.nodes()
            )));
        }
        Ok(())
    }

    /// The nodes on which results of an earlier attempt are continued.
    fn kept(
        &self,
        name: &str,
        job: &SlurmJob,
        earlier: EarlierAttempt<'_>,
        most: usize,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Vec<String>, FleetError> {
        let mut kept = Vec::new();
        for (node, of) in earlier.jobs {
            if of != name || earlier.done.contains(node) || job.excludes(node) || kept.len() == most
            {
                continue;
            }
            match self.client.node_state(node)? {
                Some(state) if is_usable(&state) => kept.push(node.clone()),
                state => tell(&format!(
                    "{name}: {node} is {}: its results so far are left out, another node is taken",
                    state.as_deref().unwrap_or("unknown to Slurm")
                )),
            }
        }
        Ok(kept)
    }
}

fn host(node: &str, name: &str, job: &SlurmJob) -> FleetHost {
    FleetHost {
        name: node.to_owned(),
        platform: job.platform.clone(),
        set: job.set.clone(),
        job: Some(name.to_owned()),
        ..FleetHost::at(node)
    }
}

fn unknown(id: u64) -> FleetError {
    request(format!("slurm: job {id} is unknown to Slurm; name one that `squeue --me` shows"))
}
