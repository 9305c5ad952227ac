//! A study on the nodes of a real Slurm cluster: jobs that wait, run, are cancelled, pre-empted, out
//! of time or queued again; nodes that die; a coordinator that is killed.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fleet::{RUNS, STUDY};
use crate::slice;
use crate::slurm_cluster::SlurmCluster;
use crate::tool::{CommandOutput, Place, command_output};

const NODES: [&str; 2] = ["node1", "node2"];
const ON: &str = "slurm:partition=arm,nodes=2";

struct Study {
    cluster: SlurmCluster,
    place: Place,
}

impl Study {
    fn start() -> Option<Study> {
        let study = Study { cluster: SlurmCluster::start()?, place: Place::new() };
        study.place.write("study.toml", STUDY);
        Some(study)
    }

    fn command(&self, on: &str, args: &[&str]) -> Command {
        let mut all = vec!["run", "study.toml", "--on", on, "--out", "both.sqlite"];
        all.extend(args);
        let mut command = self.place.command(&all);
        command.env("SLURM_CONF", self.cluster.conf());
        command
    }

    fn run(&self, on: &str, args: &[&str]) -> CommandOutput {
        command_output(self.command(on, args).output().unwrap())
    }

    /// Starts it, and waits until both nodes have finished their first run.
    fn begun(&self, on: &str, time: &str) -> Child {
        let words = std::fs::File::create(self.place.file("words")).unwrap();
        let mut command = self.command(on, &["--set", time]);
        let child = command.stdout(Stdio::null()).stderr(words).spawn().unwrap();
        self.cluster.until("first run of both nodes", |_| {
            let words = self.words();
            NODES.iter().all(|node| words.contains(&format!("{node}: 1/")))
        });
        child
    }

    /// What the command that was begun has written.
    fn words(&self) -> String {
        std::fs::read_to_string(self.place.file("words")).unwrap()
    }

    /// Waits for the end of a command that was begun, and checks that no node was kept.
    fn end(&self, mut child: Child, code: i32, words: &[&str]) {
        let status = child.wait().unwrap();
        let said = self.words();
        assert_eq!(status.code(), Some(code), "{said}");
        for one in words {
            assert!(said.contains(one), "no `{one}` in {said}");
        }
        self.nothing_runs();
    }

    fn nothing_runs(&self) {
        self.cluster.until("empty queue", |cluster| cluster.jobs().is_empty());
        self.cluster.until("end of the commands", |_| self.commands().is_empty());
    }

    /// Commands of kvmeter on the nodes, and those of Slurm here.
    fn commands(&self) -> String {
        let of_nodes = format!("^{}.*kvmeter", self.cluster.file("cache").display());
        let found = Command::new("pgrep").args(["-fa", &of_nodes]).output().unwrap();
        let here = Command::new("pgrep").args(["-fa", "job-name=kvmeter"]).output().unwrap();
        String::from_utf8_lossy(&found.stdout).into_owned() + &String::from_utf8_lossy(&here.stdout)
    }

    /// The folders that are left on the nodes.
    fn folders(&self) -> usize {
        let count = |node: &&str| {
            let folder = self.cluster.file(&format!("cache-{node}/kvmeter/fleet"));
            std::fs::read_dir(folder).map_or(0, Iterator::count)
        };
        NODES.iter().map(count).sum()
    }

    fn runs(&self) -> usize {
        let runs: Value = self.place.json(&["report", "both.sqlite", "--json"]);
        runs.as_array().unwrap().len()
    }

    fn resumes(&self, on: &str, args: &[&str]) {
        let done = self.run(on, &[args, &["--resume"]].concat());
        assert!(done.err.contains("8 runs of 2 hosts"), "{done:?}");
        assert_eq!((self.runs(), self.folders()), (2 * RUNS, 0), "{done:?}");
        self.nothing_runs();
    }
}

#[test]
fn two_nodes_run_a_study_and_a_killed_coordinator_leaves_no_job() {
    let Some(study) = Study::start() else { return };
    study.place.refused(
        &["run", "study.toml", "--on", "slurm", "--out", "both.sqlite"],
        &["--on: slurm: kvmeter does not run within an allocation"],
    );
    let late = study.run("slurm:partition=broken,queue=1s", &[]);
    assert_eq!(late.code, 2, "{late:?}");
    assert!(late.err.contains("is PENDING (PartitionDown); it is cancelled"), "{late:?}");
    assert!(!study.place.file("both.hosts").exists());
    let mut child = study.begun(ON, "measure.time=2s");
    assert!(!study.cluster.jobs().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    let begin = Instant::now();
    study.nothing_runs();
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(study.folders(), 2);
    study.resumes(ON, &["--set", "measure.time=2s"]);
}

#[test]
fn servers_and_agents_are_on_nodes_and_leave_no_job() {
    let Some(study) = Study::start() else { return };
    let bench = |server_on: &str, agents_on: &str, more: &[&str]| {
        let args = ["bench", "memcached", "--server", "memory=64MiB", "--server-on", server_on];
        let load = ["--agents-on", agents_on, "--records", "1k", "--rate", "500", "--json"];
        let mut command = study.place.command(&[&args[..], &load, more].concat());
        command.env("SLURM_CONF", study.cluster.conf());
        command_output(command.output().unwrap())
    };
    const ONE: &str = "slurm:partition=arm,nodes=1";
    let plan = bench(ONE, ONE, &["--dry-run"]);
    assert_eq!((plan.code, &*study.cluster.jobs()), (0, ""), "{plan:?}");
    let done = bench(ONE, ONE, &["--time", "1s"]);
    let result = done.json();
    assert_eq!(result["errors"], 0, "{done:?}");
    assert_eq!(result["settings"]["server.hosts"], "host1", "{result}");
    assert!(done.err.contains("its agent listens at 127.0.0.1:"), "{done:?}");
    // Each has a job and a node of its own.
    let has = |node: &str| done.err.contains(&format!(" has {node}"));
    assert!(has("node1") && has("node2"), "{done:?}");
    study.nothing_runs();
    assert_eq!(study.folders(), 0);
    for (server_on, agents_on, flag) in [
        ("slurm:partition=broken,queue=1s", ONE, "--server-on"),
        (ONE, "slurm:partition=broken,queue=1s", "--agents-on"),
    ] {
        let late = bench(server_on, agents_on, &["--time", "1s"]);
        assert_eq!(late.code, 2, "{late:?}");
        let words = format!("{flag}: slurm: no nodes within 1s");
        assert!(late.err.contains(&words), "{late:?}");
        study.nothing_runs();
    }
    // A killed command gives both nodes back.
    let args = ["bench", "memcached", "--server", "memory=64MiB", "--server-on", ONE];
    let load = ["--agents-on", ONE, "--records", "1k", "--rate", "500", "--time", "60s"];
    let mut command = study.place.command(&[&args[..], &load].concat());
    command.env("SLURM_CONF", study.cluster.conf()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    study.cluster.until("two jobs", |cluster| cluster.jobs().lines().count() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    study.nothing_runs();
}

/// A job that waits is cancelled, too, although `salloc` does not notice the end of kvmeter.
#[test]
fn a_coordinator_that_is_killed_in_the_queue_leaves_no_job() {
    let Some(study) = Study::start() else { return };
    let mut command = study.command("slurm:partition=broken", &[]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    study.cluster.until("job in the queue", |cluster| cluster.jobs().contains("PENDING"));
    child.kill().unwrap();
    child.wait().unwrap();
    study.nothing_runs();
}

#[test]
fn a_job_that_is_cancelled_is_named_and_resumed() {
    let Some(study) = long() else { return };
    let child = study.begun(ON, "measure.time=5s");
    let job = study.cluster.jobs();
    study.cluster.ask("scancel", &[job.split(' ').next().unwrap()]);
    let words = ["warning: node1: the host was lost: its job 1 was cancelled", "--resume"];
    study.end(child, 1, &words);
    assert_eq!(study.folders(), 2);
    study.resumes(ON, &["--set", "measure.time=5s"]);
}

#[test]
fn a_study_that_is_longer_than_its_job_keeps_its_finished_runs() {
    let Some(study) = long() else { return };
    let on = "slurm:partition=arm,nodes=2,time=1m";
    let child = study.begun(on, "measure.time=40s");
    let near = "node1: not finished: the time limit of its job is near";
    study.end(child, 1, &[near, "runs of 2 hosts", "Resume what is missing"]);
    assert!((2..8).contains(&study.runs()), "{}", study.runs());
}

#[test]
fn a_job_that_is_pre_empted_is_named_and_resumed() {
    let Some(study) = long() else { return };
    let child = study.begun(ON, "measure.time=5s");
    let urgent = ["--partition=urgent", "--nodes=2", "--exclusive", "sleep", "1"];
    study.cluster.ask("salloc", &urgent);
    study.end(child, 1, &["warning: node2: the host was lost: its job 1 was pre-empted"]);
    study.resumes(ON, &["--set", "measure.time=5s"]);
}

#[test]
fn a_node_that_dies_is_named_and_the_rest_goes_on() {
    let Some(mut study) = long() else { return };
    let child = study.begun(ON, "measure.time=10s");
    study.cluster.kill("node1");
    let words = ["warning: node1: the host was lost", "merged   both.sqlite: 4 runs of 1 host"];
    study.end(child, 1, &words);
    assert_eq!(study.runs(), RUNS);
}

#[test]
fn ctrl_c_gives_the_nodes_back_and_keeps_what_is_finished() {
    let Some(study) = long() else { return };
    let child = study.begun(ON, "measure.time=5s");
    std::thread::sleep(Duration::from_secs(7));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    study.end(child, 1, &["node1: not finished: it was stopped", "runs of 2 hosts"]);
    study.resumes(ON, &["--set", "measure.time=5s"]);
}

/// Within a batch job its own allocation is used; when Slurm queues it again, it continues.
#[test]
fn a_batch_job_runs_on_its_own_nodes_and_is_queued_again() {
    let Some(study) = long() else { return };
    let line = format!(
        "#!/bin/sh\ncd {0}\nresume=; [ ! -e both.hosts/fleet.json ] || resume=--resume\n\
         HOME={0} {1} run study.toml --on slurm --set measure.time=5s --out both.sqlite $resume \
         2>> words\n",
        study.place.path().display(),
        env!("CARGO_BIN_EXE_kvmeter"),
    );
    let script = study.place.write("batch.sh", &line).display().to_string();
    let nodes = ["--nodes=2", "--exclusive", "--requeue", "--output=/dev/null", "--parsable"];
    let job = study.cluster.ask("sbatch", &[&nodes[..], &[&script]].concat());
    study.place.write("words", "");
    study.cluster.until("first run of both nodes", |_| {
        NODES.iter().all(|node| study.words().contains(&format!("{node}: 1/")))
    });
    study.cluster.ask("scontrol", &["requeue", &job]);
    // Slurm begins a job again two minutes after it was queued again.
    let begin = Instant::now();
    while !study.words().contains("8 runs of 2 hosts") {
        assert!(begin.elapsed() < Duration::from_secs(300), "{}", study.words());
        std::thread::sleep(Duration::from_millis(500));
    }
    study.nothing_runs();
    assert_eq!((study.runs(), study.folders()), (2 * RUNS, 0));
}

/// What takes long is of `make test-fleet` alone.
fn long() -> Option<Study> {
    slice::is_whole().then(Study::start)?
}
