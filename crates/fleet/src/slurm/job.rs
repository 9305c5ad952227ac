//! What is requested of Slurm: `partition=arm,nodes=2,time=2h`.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Span;
use serde::Deserialize;

use crate::error::FleetError;
use crate::fleet_file::FleetFile;
use crate::target::request;

/// Longest wait in the queue by default.
const QUEUE: Duration = Duration::from_secs(3600);
/// Slurm's time limits are in minutes.
const MINUTE_S: u64 = 60;
/// The job that `--on slurm:...` describes, among those of a fleet file.
pub(crate) const ONLY: &str = "slurm";
/// The allocation in which this process runs.
const OWN_JOB: &str = "SLURM_JOB_ID";

/// One job: nodes of one kind, which are allocated together.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlurmJob {
    partition: Option<String>,
    nodes: Option<usize>,
    time: Option<Span>,
    /// How long the job may wait until it starts.
    queue: Option<Span>,
    account: Option<String>,
    qos: Option<String>,
    constraint: Option<String>,
    reservation: Option<String>,
    nodelist: Option<String>,
    exclude: Option<String>,
    gres: Option<String>,
    /// An allocation that exists, and stays.
    pub job: Option<u64>,
    /// Price and power of each node.
    pub platform: Option<String>,
    /// Values of the study that differ on the nodes.
    #[serde(default)]
    pub set: Vec<String>,
}

/// Reads `slurm` or the list after `slurm:`.
pub(crate) fn parse(list: Option<&str>) -> Result<FleetFile, FleetError> {
    let mut file = FleetFile::default();
    let job = match list {
        Some(list) => {
            let mut table = table(list)?;
            file.folder = table.remove("folder").and_then(string);
            file.slurm_conf = table.remove("conf").and_then(string);
            table.try_into().map_err(|error: toml::de::Error| {
                let known = match error.message().starts_with("unknown field") {
                    true => "; `folder` and `conf` are known, too",
                    false => "",
                };
                request(format!("slurm: {}{known}", error.message()))
            })?
        }
        None => {
            let own = std::env::var(OWN_JOB).ok().and_then(|id| id.parse().ok());
            let Some(id) = own else {
                return Err(request(format!(
                    "slurm: kvmeter does not run within an allocation ({OWN_JOB} is not set); \
                     request one, as in `slurm:partition=arm,nodes=2`"
                )));
            };
            SlurmJob { job: Some(id), ..SlurmJob::default() }
        }
    };
    file.jobs = BTreeMap::from([(ONLY.to_owned(), job)]);
    Ok(file)
}

fn string(value: toml::Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A piece without `=` goes on with the value before it: `nodelist=n1,n2`.
fn table(list: &str) -> Result<toml::Table, FleetError> {
    let mut values: Vec<(String, String)> = Vec::new();
    for piece in list.split(',').map(str::trim) {
        match (piece.split_once('='), values.last_mut()) {
            (Some((key, value)), _) => {
                if values.iter().any(|(known, _)| known == key) {
                    return Err(request(format!("slurm: `{key}` is given twice; give it once")));
                }
                values.push((key.to_owned(), value.to_owned()));
            }
            (None, Some((_, value))) if !piece.is_empty() => {
                value.push(',');
                value.push_str(piece);
            }
            _ => {
                return Err(request(format!(
                    "slurm: `{piece}` is no KEY=VALUE; write `slurm:partition=arm,nodes=2`"
                )));
            }
        }
    }
    let mut table = toml::Table::new();
    for (key, value) in values {
        let value = match (&*key, value.parse::<i64>()) {
            ("nodes" | "job", Ok(number)) => toml::Value::Integer(number),
            ("nodes" | "job", Err(_)) => {
                return Err(request(format!("slurm: {key}: `{value}` is no whole number")));
            }
            _ => toml::Value::String(value),
        };
        table.insert(key, value);
    }
    Ok(table)
}

impl SlurmJob {
    pub fn check(&self, name: &str) -> Result<(), FleetError> {
        let wrong = |words: String| Err(request(format!("{name}: {words}")));
        if self.nodes == Some(0) {
            return wrong("nodes: is at least 1".to_owned());
        }
        for (key, value) in self.texts() {
            let Some(value) = value else { continue };
            if value.is_empty() || value.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return wrong(format!("{key}: `{value}` is no value for Slurm; leave {key} out"));
            }
        }
        let described = self.texts().iter().any(|(_, value)| value.is_some())
            || self.nodes.is_some()
            || self.time.is_some()
            || self.queue.is_some();
        if self.job.is_some() && described {
            return wrong(
                "job: names an allocation that exists; leave out what describes a new \
                          one"
                .to_owned(),
            );
        }
        Ok(())
    }

    /// Options that are passed on as they are.
    fn texts(&self) -> [(&'static str, &Option<String>); 8] {
        [
            ("partition", &self.partition),
            ("account", &self.account),
            ("qos", &self.qos),
            ("constraint", &self.constraint),
            ("reservation", &self.reservation),
            ("nodelist", &self.nodelist),
            ("exclude", &self.exclude),
            ("gres", &self.gres),
        ]
    }

    pub fn nodes(&self) -> usize {
        self.nodes.unwrap_or(1)
    }

    pub fn queue(&self) -> Duration {
        self.queue.map_or(QUEUE, |limit| limit.0)
    }

    pub fn partition(&self) -> Option<&str> {
        self.partition.as_deref()
    }

    /// Whether the user excludes this node by its name.
    pub fn excludes(&self, node: &str) -> bool {
        self.exclude.as_deref().is_some_and(|list| list.split(',').any(|one| one == node))
    }

    /// Options of `salloc` for `nodes` nodes, among them those of `keep` and none of `done`.
    pub fn options(&self, nodes: usize, keep: &[String], done: &[String]) -> Vec<String> {
        let mut options = vec![format!("--nodes={nodes}")];
        for (key, value) in self.texts() {
            let own = value.iter().map(String::as_str);
            let all: Vec<&str> = match key {
                // What the user lists is for the whole job, of which a part is done already.
                "nodelist" if value.is_none() || !done.is_empty() => {
                    keep.iter().map(String::as_str).collect()
                }
                "exclude" => own.chain(done.iter().map(String::as_str)).collect(),
                _ => own.collect(),
            };
            if !all.is_empty() {
                options.push(format!("--{key}={}", all.join(",")));
            }
        }
        if let Some(Span(time)) = self.time {
            options.push(format!("--time={}", time.as_secs().div_ceil(MINUTE_S).max(1)));
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(list: &str) -> Result<SlurmJob, String> {
        let file = parse(Some(list)).map_err(|error| error.to_string())?;
        let job = file.jobs[ONLY].clone();
        job.check("slurm").map_err(|error| error.to_string())?;
        Ok(job)
    }

    #[test]
    fn options_are_those_of_salloc() {
        let job = job("partition=arm,nodes=3,nodelist=n1,n[4-5],time=90m,constraint=a&b,queue=5m");
        let job = job.expect("a job");
        assert_eq!(job.queue(), Duration::from_secs(300));
        assert_eq!(
            job.options(3, &[], &[]),
            [
                "--nodes=3",
                "--partition=arm",
                "--constraint=a&b",
                "--nodelist=n1,n[4-5]",
                "--time=90"
            ]
        );
    }

    #[test]
    fn a_study_that_is_resumed_gets_its_nodes_and_not_those_that_are_done() {
        let job = job("nodes=3,exclude=n9").expect("a job");
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            job.options(2, &names(&["n2"]), &names(&["n1"])),
            ["--nodes=2", "--nodelist=n2", "--exclude=n9,n1"]
        );
        assert!(job.excludes("n9") && !job.excludes("n1"));
    }

    #[test]
    fn bad_options_are_refused_with_their_name() {
        for (list, words) in [
            ("", "`` is no KEY=VALUE"),
            ("arm", "`arm` is no KEY=VALUE"),
            ("nodes=two", "nodes: `two` is no whole number"),
            ("nodes=0", "nodes: is at least 1"),
            ("nodes=-1", "invalid value"),
            ("partitoin=arm", "unknown field `partitoin`, expected one of `partition`"),
            ("partition=", "partition: `` is no value"),
            ("partition=a b", "partition: `a b` is no value"),
            ("nodes=1,nodes=2", "`nodes` is given twice"),
            ("time=soon", "a span of time"),
            ("job=7,nodes=2", "leave out what describes a new one"),
        ] {
            let error = job(list).expect_err("refused");
            assert!(error.contains(words), "{list}: {error}");
        }
    }
}
