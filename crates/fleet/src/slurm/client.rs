//! The user's commands of Slurm: what they are started with, and what they answer.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;
use std::time::Duration;

use crate::error::FleetError;
use crate::limited::output;
use crate::target::request;

/// Time for a question; Slurm's own commands try for 10 s to reach `slurmctld`.
const LIMIT: Duration = Duration::from_secs(30);
/// What `squeue` says of a number that no job has.
const NO_JOB: &str = "Invalid job id";
const CONF: &str = "SLURM_CONF";
/// Variables of Slurm that say where it is, and who asks; others are options of its commands.
const KEPT: [&str; 2] = [CONF, "SLURM_JWT"];

/// Starts commands of Slurm.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// `slurm.conf` of another cluster than this machine's.
    pub conf: Option<String>,
}

/// What Slurm says of a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JobState {
    pub id: u64,
    /// `PENDING`, `RUNNING`, ...
    pub state: String,
    /// Why it waits or has ended.
    pub reason: String,
    /// Until its time limit; None if it has none.
    pub left: Option<Duration>,
    pub nodelist: String,
}

impl Client {
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SLURM_")
                && !KEPT.iter().any(|kept| name == *kept)
            {
                command.env_remove(name);
            }
        }
        if let Some(conf) = &self.conf {
            command.env(CONF, conf);
        }
        command
    }

    /// What a command of Slurm prints.
    pub fn ask(&self, program: &str, args: &[&str]) -> Result<String, FleetError> {
        let mut command = self.command(program);
        command.args(args);
        let printed = match output(command, io::empty(), LIMIT, "slurm", "asking") {
            Err(FleetError::Request(why)) => {
                return Err(request(format!(
                    "slurm: {why}, or run kvmeter on a login node of the cluster"
                )));
            }
            Err(FleetError::TimedOut { .. }) => {
                return Err(request(format!(
                    "slurm: `{program}` has no answer within {} s; see `scontrol ping`",
                    LIMIT.as_secs()
                )));
            }
            other => other?,
        };
        if printed.code != Some(0) {
            let why = printed.stderr.lines().rev().find(|line| !line.trim().is_empty());
            let why = why.unwrap_or("it said nothing");
            return Err(request(format!("slurm: {why}; see `scontrol ping`")));
        }
        Ok(printed.stdout)
    }

    /// Whether Slurm binds processes to CPUs, which a study does by itself.
    pub fn binds_cpus(&self) -> Result<bool, FleetError> {
        let config = self.ask("scontrol", &["show", "config"])?;
        let mut plugins = config.lines().filter_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == "TaskPlugin").then_some(value)
        });
        Ok(plugins.any(|value| value.contains("affinity") || value.contains("cgroup")))
    }

    /// The number of nodes of each partition.
    pub fn partitions(&self) -> Result<BTreeMap<String, usize>, FleetError> {
        let text = self.ask("sinfo", &["--all", "--noheader", "--format=%R|%D"])?;
        let mut partitions = BTreeMap::new();
        for line in text.lines() {
            if let Some((name, nodes)) = line.trim().split_once('|') {
                *partitions.entry(name.to_owned()).or_default() += nodes.parse().unwrap_or(0);
            }
        }
        Ok(partitions)
    }

    /// The first state that Slurm gives of a node: `idle`, `down*`; None if it has no such node.
    pub fn node_state(&self, node: &str) -> Result<Option<String>, FleetError> {
        let nodes = format!("--nodes={node}");
        let text = self.ask("sinfo", &["--all", "--noheader", "--Node", &nodes, "--format=%T"])?;
        Ok(text.lines().next().map(|line| line.trim().to_owned()))
    }

    /// Where other machines reach a node.
    pub fn node_address(&self, node: &str) -> Result<String, FleetError> {
        let nodes = format!("--nodes={node}");
        let text = self.ask("sinfo", &["--all", "--noheader", "--Node", &nodes, "--format=%o"])?;
        let address = text.lines().map(str::trim).find(|line| !line.is_empty());
        address.map(str::to_owned).ok_or_else(|| {
            request(format!("slurm: node {node} has no address; see `scontrol show node {node}`"))
        })
    }

    /// The names of a list such as `node[1-2]`.
    pub fn node_names(&self, list: &str) -> Result<Vec<String>, FleetError> {
        let text = self.ask("scontrol", &["show", "hostnames", list])?;
        Ok(text.lines().map(|line| line.trim().to_owned()).collect())
    }

    /// The job with this option of `squeue` (`--jobs=17`, `--name=NAME`), also soon after its end.
    pub fn job(&self, which: &str) -> Result<Option<JobState>, FleetError> {
        let format = "--format=%i|%T|%r|%L|%N";
        match self.ask("squeue", &["--noheader", "--states=all", which, format]) {
            Ok(text) => Ok(text.lines().next().and_then(job_state)),
            Err(FleetError::Request(why)) if why.contains(NO_JOB) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn job_state(line: &str) -> Option<JobState> {
    let mut fields = line.trim().split('|');
    let mut next = || fields.next().map(str::to_owned);
    let (id, state, reason, left, nodelist) = (next()?, next()?, next()?, next()?, next()?);
    Some(JobState { id: id.parse().ok()?, state, reason, left: time_left(&left), nodelist })
}

/// Slurm's `D-HH:MM:SS`, of which the first parts may lack.
fn time_left(text: &str) -> Option<Duration> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let clock = clock.split(':').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let seconds = clock.into_iter().fold(0_u64, |sum, part| sum * 60 + part);
    Some(Duration::from_secs(days.parse::<u64>().ok()? * 86_400 + seconds))
}

/// Whether a node in this state takes jobs. An asterisk marks one that does not answer.
pub(crate) fn is_usable(state: &str) -> bool {
    !state.contains('*') && !["down", "drain", "fail"].iter().any(|bad| state.starts_with(bad))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_slurms() {
        let seconds = |text| time_left(text).map(|left| left.as_secs());
        assert_eq!(seconds("59"), Some(59));
        assert_eq!(seconds("1:59"), Some(119));
        assert_eq!(seconds("2:00:01"), Some(7201));
        assert_eq!(seconds("3-02:00:01"), Some(3 * 86_400 + 7201));
        assert_eq!(
            (seconds("UNLIMITED"), seconds("NOT_SET"), seconds("INVALID")),
            (None, None, None)
        );
    }

    #[test]
    fn a_line_of_squeue_is_a_job() {
        let job = job_state("17|RUNNING|None|1:00|node[1-2]\n").expect("a job");
        assert_eq!((job.id, &*job.state, &*job.nodelist), (17, "RUNNING", "node[1-2]"));
        assert_eq!(job_state(""), None);
        assert!(is_usable("idle") && is_usable("mixed") && !is_usable("idle*"));
        assert!(!is_usable("down") && !is_usable("draining"));
    }
}
