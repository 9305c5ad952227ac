//! A job from its request to its end: it waits in the queue, holds its nodes, and gives them back
//! when this process ends, however it ends.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use model::Span;

use super::client::Client;
use super::job::SlurmJob;
use crate::error::FleetError;
use crate::hosted::each_line;
use crate::target::request;

/// Becomes `salloc`. Standard input is a pipe from kvmeter: its end cancels a job that still waits,
/// of which `salloc` would not notice it.
const KEEPER: &str = "exec 3<&0
{ cat <&3
  for pause in 1 2 4; do
    kill -0 $$ || exit
    scancel --quiet --state=PENDING --name=\"$0\"
    sleep $pause
  done; } >/dev/null 2>&1 &
exec salloc --job-name=\"$0\" \"$@\" <&3 3<&-";

/// What `salloc` runs when the nodes are there: names them, and waits for the end of the same pipe.
/// The nodes are given back when the last step has ended, so that it has time to restore its machine.
const HOLDER: &str = "echo \"$SLURM_JOB_ID\"
scontrol show hostnames \"$SLURM_JOB_NODELIST\"
echo .
cat >/dev/null
left=75
while [ $left -gt 0 ] &&
  squeue --noheader --steps --jobs=\"$SLURM_JOB_ID\" --format=%i | grep -q '\\.[0-9]'
do left=$((left - 1)); sleep 1; done";

/// Whole nodes, of which one may fail without an end of the others.
const OPTIONS: [&str; 5] =
    ["--exclusive", "--mem=0", "--no-kill", "--wait-all-nodes=1", "--no-bell"];

/// Reasons why a job waits that no waiting changes.
const NEVER: [&str; 8] = [
    "PartitionConfig",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "BadConstraints",
    "InvalidAccount",
    "InvalidQOS",
    "AccountNotAllowed",
    "QOSNotAllowed",
];

/// Pauses between looks at the queue grow up to the last one.
const FIRST_LOOK: Duration = Duration::from_secs(1);
const LAST_LOOK: Duration = Duration::from_secs(15);
/// Until `salloc` counts as stuck after its end was requested.
const END: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
const MAX_WAITING: usize = 64;

/// A job that holds its nodes, or waits for them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Allocation {
    client: Client,
    /// Its name in Slurm, which no other job has.
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
}

/// A job that waits.
pub(crate) struct QueuedJob {
    pub allocation: Allocation,
    label: String,
    limit: Duration,
    begun: Instant,
    lines: Receiver<String>,
    errors: Receiver<String>,
    next_look: Instant,
    pause: Duration,
    shown: String,
    last_error: String,
    /// Job and nodes as far as they have been named.
    id: Option<u64>,
    nodes: Vec<String>,
}

/// What a job got.
pub(crate) struct GrantedNodes {
    pub id: u64,
    pub nodes: Vec<String>,
}

impl QueuedJob {
    pub fn submit(
        client: &Client,
        label: &str,
        job: &SlurmJob,
        options: &[String],
    ) -> Result<QueuedJob, FleetError> {
        let name = format!("kvmeter-{:016x}", RandomState::new().build_hasher().finish());
        let mut command = client.command("sh");
        command.args(["-c", KEEPER, &name]).args(OPTIONS).args(options).args(["sh", "-c", HOLDER]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A terminal's Ctrl-C reaches kvmeter alone, which ends the studies before the job.
        command.process_group(0);
        let here = |error: std::io::Error| FleetError::Here(format!("{label}: `sh`: {error}"));
        let mut child = command.spawn().map_err(here)?;
        let (lines, errors) = (lines_of(child.stdout.take()), lines_of(child.stderr.take()));
        let stdin = child.stdin.take();
        let begun = Instant::now();
        Ok(QueuedJob {
            allocation: Allocation { client: client.clone(), name, child, stdin },
            label: label.to_owned(),
            limit: job.queue(),
            begun,
            lines,
            errors,
            next_look: begun + FIRST_LOOK,
            pause: FIRST_LOOK,
            shown: String::new(),
            last_error: String::new(),
            id: None,
            nodes: Vec::new(),
        })
    }

    /// The nodes, once they are there.
    ///
    /// # Errors
    /// Slurm refuses the job, or it waits for longer than its limit.
    pub fn granted(
        &mut self,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Option<GrantedNodes>, FleetError> {
        // Looked at first: what it printed before its end is read after it.
        let ended = self.allocation.child.try_wait().ok().flatten();
        if ended.is_some() {
            thread::sleep(POLL);
        }
        while let Ok(line) = self.lines.try_recv() {
            match (self.id, &*line) {
                (Some(id), ".") => {
                    let nodes = std::mem::take(&mut self.nodes);
                    return Ok(Some(GrantedNodes { id, nodes }));
                }
                (Some(_), node) => self.nodes.push(node.to_owned()),
                (None, id) => self.id = id.parse().ok(),
            }
        }
        while let Ok(line) = self.errors.try_recv() {
            // The first error is the cause.
            if let Some(words) = line.strip_prefix("salloc: error: ").or(line.strip_prefix("sh: "))
                && self.last_error.is_empty()
            {
                words.clone_into(&mut self.last_error);
            }
        }
        if ended.is_some() {
            let why = match &*self.last_error {
                "" => "the job was cancelled in the queue",
                words => words,
            };
            return Err(request(format!(
                "{}: Slurm gives no nodes: {why}; mend its options (`sinfo` shows partitions and \
                 nodes)",
                self.label
            )));
        }
        if Instant::now() >= self.next_look {
            self.look(tell)?;
        }
        Ok(None)
    }

    /// Shows the job's state when it has changed.
    fn look(&mut self, tell: &mut dyn FnMut(&str)) -> Result<(), FleetError> {
        // Slurm may be away for a while.
        let job = self.allocation.client.job(&format!("--name={}", self.allocation.name));
        let Ok(Some(job)) = job else {
            self.next_look = Instant::now() + self.pause;
            return self.check_limit("Slurm does not show the job");
        };
        let words = format!("{} ({})", job.state, job.reason);
        if words != self.shown {
            tell(&format!("{}: job {} is {words}", self.label, job.id));
            self.shown.clone_from(&words);
        }
        if job.state == "PENDING" && NEVER.contains(&&*job.reason) {
            return Err(request(format!(
                "{}: job {} can never start: {}; mend its options (`sinfo` shows partitions and \
                 nodes)",
                self.label, job.id, job.reason
            )));
        }
        self.check_limit(&format!("job {} is {words}", job.id))?;
        self.pause = (self.pause * 3 / 2).min(LAST_LOOK);
        let end = self.begun + self.limit;
        self.next_look = (Instant::now() + self.pause).min(end.max(Instant::now() + FIRST_LOOK));
        Ok(())
    }

    fn check_limit(&self, state: &str) -> Result<(), FleetError> {
        if self.begun.elapsed() < self.limit {
            return Ok(());
        }
        Err(request(format!(
            "{}: no nodes within {}: {state}; it is cancelled; wait longer with queue=TIME, or \
             choose another partition",
            self.label,
            Span(self.limit)
        )))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.stdin = None;
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begin.elapsed() > END {
                // Steps that still end hold it for a while; a job without any is stuck.
                let name = format!("--name={}", self.name);
                let _ = self.client.ask("scancel", &["--quiet", &name]);
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(POLL);
        }
    }
}

/// The lines of a stream; what comes too fast waits.
fn lines_of(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, lines) = sync_channel(MAX_WAITING);
    if let Some(stream) = stream {
        thread::spawn(move || each_line(stream, |line| sender.send(line).is_ok()));
    }
    lines
}
