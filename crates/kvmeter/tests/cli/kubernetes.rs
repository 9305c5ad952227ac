//! A study in the pods of a real Kubernetes cluster: pods that wait, run, are deleted; images that
//! are missing; rights that lack; a coordinator that is killed.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fleet::{RUNS, STUDY};
use crate::kubernetes_cluster::{KubernetesCluster, NODES};
use crate::network::Server;
use crate::slice;
use crate::tool::{CommandOutput, Place, command_output};

/// Two pods, one a node.
const ON: &str = "kubernetes:nodes=2,image=debian:12,cpus=2,memory=1Gi,node-selector=pool=arm";
/// Until pods of a killed coordinator are gone: their end is noticed at once.
const AT_ONCE: Duration = Duration::from_secs(40);

/// Exit codes of a load that was run; a busy machine makes runs invalid.
const DONE: [i32; 2] = [0, 1];
const LONGER: &[&str] = &["--set", "measure.time=5s"];

struct Study {
    cluster: KubernetesCluster,
    place: Place,
}

impl Study {
    fn start() -> Option<Study> {
        let study = Study { cluster: KubernetesCluster::start()?, place: Place::new() };
        study.place.write("study.toml", STUDY);
        Some(study)
    }

    fn kvmeter(&self, args: &[&str]) -> Command {
        let mut command = self.place.command(args);
        command.env("KUBECONFIG", self.cluster.kubeconfig("admin"));
        command
    }

    fn command(&self, on: &str, args: &[&str]) -> Command {
        let mut all = vec!["run", "study.toml", "--on", on, "--out", "both.sqlite"];
        all.extend(args);
        self.kvmeter(&all)
    }

    fn run(&self, on: &str, args: &[&str]) -> CommandOutput {
        command_output(self.command(on, args).output().unwrap())
    }

    /// Expects a refusal with these words that creates nothing, or leaves nothing.
    fn refused(&self, done: CommandOutput, words: &[&str]) {
        assert_eq!(done.code, 2, "{done:?}");
        for one in words {
            assert!(done.err.contains(one), "no `{one}` in {done:?}");
        }
        assert!(!self.place.file("both.hosts").exists());
        assert_eq!(self.cluster.objects(), "");
    }

    /// Starts a longer study, and waits until both nodes have finished their first run.
    fn begun(&self, user: &str) -> Child {
        let mut command = self.command(ON, LONGER);
        command.env("KUBECONFIG", self.cluster.kubeconfig(user));
        let first = NODES.map(|node| format!("{node}: 1/"));
        self.begun_until(command, &first)
    }

    /// Starts a command, and waits until it has written all these words.
    fn begun_until(&self, mut command: Command, words: &[String]) -> Child {
        let written = std::fs::File::create(self.place.file("words")).unwrap();
        let child = command.stdout(Stdio::null()).stderr(written).spawn().unwrap();
        let begin = Instant::now();
        while !words.iter().all(|one| self.words().contains(one)) {
            let late = begin.elapsed() > Duration::from_secs(90);
            assert!(!late, "{} {}", self.words(), self.cluster.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
        child
    }

    /// What the command that was begun has written.
    fn words(&self) -> String {
        std::fs::read_to_string(self.place.file("words")).unwrap()
    }

    /// Waits for the end of a command that was begun.
    fn end(&self, mut child: Child, codes: &[i32], words: &[&str]) {
        let status = child.wait().unwrap();
        let said = self.words();
        assert!(codes.contains(&status.code().unwrap()), "{status} {said}");
        for one in words {
            assert!(said.contains(one), "no `{one}` in {said}");
        }
    }

    /// Like `end`, after which nothing is left.
    fn end_whole(&self, child: Child, codes: &[i32], words: &[&str]) {
        self.end(child, codes, words);
        assert_eq!(self.cluster.objects(), "");
        assert_eq!(commands(), "");
    }

    fn pod_on(&self, node: &str) -> String {
        let pods = self.cluster.get(&["pods"]);
        let one = pods.iter().find(|pod| pod["spec"]["nodeName"] == node).unwrap();
        one["metadata"]["name"].as_str().unwrap().to_owned()
    }

    /// Runs what is missing of the longer study.
    fn resume(&self) -> CommandOutput {
        let resumed = self.run(ON, &[LONGER, &["--resume"]].concat());
        assert!(resumed.err.contains("8 runs of 2 hosts"), "{resumed:?}");
        assert_eq!(self.runs(), 2 * RUNS);
        resumed
    }

    fn runs(&self) -> usize {
        let runs: Value = self.place.json(&["report", "both.sqlite", "--json"]);
        runs.as_array().unwrap().len()
    }

    /// Waits until no Job, pod or command is left.
    fn nothing_is_left(&self, limit: Duration) {
        let begin = Instant::now();
        while !(self.cluster.objects().is_empty() && commands().is_empty()) {
            let left = format!("{} {}", self.cluster.objects(), commands());
            assert!(begin.elapsed() < limit, "{left} {}", self.cluster.logs());
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// Commands of kvmeter in pods.
fn commands() -> String {
    let found = Command::new("pgrep").args(["-fa", "^/mnt/kvmeter/"]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).into_owned()
}

#[test]
fn two_pods_run_a_study_and_a_killed_coordinator_leaves_nothing() {
    let Some(study) = Study::start() else { return };
    let done = study.run(ON, &[]);
    assert!(done.err.contains("merged   both.sqlite: 8 runs of 2 hosts"), "{done:?}");
    assert!(done.err.contains("node1: ready") && done.err.contains("node2: ready"), "{done:?}");
    assert_eq!(
        (study.runs(), study.cluster.objects(), commands()),
        (2 * RUNS, String::new(), String::new())
    );
    std::fs::remove_file(study.place.file("both.sqlite")).unwrap();
    std::fs::remove_dir_all(study.place.file("both.hosts")).unwrap();

    let mut child = study.begun("admin");
    assert!(study.cluster.objects().contains("pod/") && !commands().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    study.nothing_is_left(AT_ONCE);
    study.resume();
}

#[test]
fn what_the_cluster_does_not_give_is_named_and_nothing_is_left() {
    let Some(study) = long() else { return };
    let none = |more: &str| format!("kubernetes:cpus=1,memory=1Gi,queue=3s,{more}");
    let image = study.run(&none("image=missing:1"), &[]);
    study.refused(
        image,
        &["its image cannot be pulled: ErrImagePull", "image missing:1; name another"],
    );
    let selector = study.run(&none("image=a,node-selector=pool=none"), &[]);
    let words = ["not all pods run within 3s: 0 of 1: 0/2 nodes are available", "node affinity"];
    study.refused(selector, &words);
    let large = study.run("kubernetes:cpus=64,memory=1Gi,queue=3s,image=a", &[]);
    study.refused(large, &["Insufficient cpu", "mend node-selector="]);
    let many = study.run("kubernetes:nodes=3,cpus=1,memory=1Gi,queue=8s,image=a", &[]);
    study.refused(many, &["2 of 3: ", "anti-affinity"]);
    let namespace = study.run(&none("image=a,namespace=nowhere"), &[]);
    study.refused(namespace, &["there is no namespace `nowhere`; create it"]);
    let memory = study.run("kubernetes:cpus=1,memory=much,image=a", &[]);
    study.refused(memory, &["the API server refuses it", "quantit"]);

    let by = |user: &str| {
        let mut command = study.command(&none("image=a"), &[]);
        command.env("KUBECONFIG", study.cluster.kubeconfig(user));
        command_output(command.output().unwrap())
    };
    study
        .refused(by("limited"), &["no right to `create` on `jobs`, ", "the Role of docs/fleet.md"]);
    study.cluster.apply(&role("limited", "[\"create\"]"));
    let lacking = "you have no right to `get` on `pods/exec` in namespace `bench`; apply";
    study.refused(by("limited"), &[lacking]);
    study.refused(by("absent"), &["no cluster is configured", "kubeconfig=FILE"]);
    study.cluster.write_kubeconfig("closed", 1);
    study.refused(by("closed"), &["https://127.0.0.1:1/ is not reached", "kubectl cluster-info"]);
    study.cluster.write_kubeconfig("stranger", study.cluster.port());
    study.refused(by("stranger"), &["does not accept these credentials", "context=NAME"]);
    let elsewhere = study.run(&none("image=a,context=elsewhere"), &[]);
    study.refused(elsewhere, &["no cluster is configured", "elsewhere"]);
}

/// The Role of the documents, with these verbs on `pods/exec`.
fn role(user: &str, exec: &str) -> String {
    let document = include_str!("../../../../docs/fleet.md");
    let begin = document.find("apiVersion: rbac").unwrap();
    let role = &document[begin..begin + document[begin..].find("```").unwrap()];
    let role = role.replace("[\"get\", \"create\"]", exec);
    assert!(role.contains(exec), "{role}");
    format!(
        "{role}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  \
         name: kvmeter-{user}\n  namespace: bench\nroleRef: {{apiGroup: rbac.authorization.k8s.io, \
         kind: Role, name: kvmeter}}\nsubjects:\n- {{apiGroup: rbac.authorization.k8s.io, kind: \
         User, name: {user}}}\n"
    )
}

#[test]
fn the_documented_role_suffices_and_the_manifest_is_what_kubectl_takes() {
    let Some(study) = long() else { return };
    let plan = study.run(ON, &["--dry-run"]);
    assert_eq!(plan.code, 0, "{plan:?}");
    study.place.write("job.json", &plan.out);
    let file = study.place.file("job.json").display().to_string();
    let words = ["apply", "--dry-run=server", "--validate=strict", "--output=name", "-f", &file];
    let taken = study.cluster.ask(&words);
    assert!(taken.starts_with("job.batch/kvmeter-"), "{taken}");
    assert_eq!(study.cluster.objects(), "");
    study.cluster.apply(&role("worker", "[\"get\", \"create\"]"));
    let mut command = study.command(ON, &[]);
    command.env("KUBECONFIG", study.cluster.kubeconfig("worker"));
    let done = command_output(command.output().unwrap());
    assert!(done.err.contains("8 runs of 2 hosts"), "{done:?}");
    assert_eq!((study.cluster.objects(), commands()), (String::new(), String::new()));
}

#[test]
fn a_pod_that_is_deleted_is_named_and_the_rest_goes_on() {
    let Some(study) = long() else { return };
    let child = study.begun("admin");
    let name = study.pod_on("node1");
    study.cluster.ask(&["delete", "pod", &name, "--grace-period=0", "--force"]);
    let lost = format!("warning: node1: the host was lost: its pod {name} was deleted");
    study.end_whole(child, &[1], &[&lost, "merged   both.sqlite: 4 runs of 1 host", "--resume"]);
    study.resume();
}

/// As by `kubectl drain`: it has its time to end.
#[test]
fn a_pod_that_is_deleted_in_order_is_named_and_keeps_what_it_finished() {
    let Some(study) = long() else { return };
    let child = study.begun("admin");
    let name = study.pod_on("node1");
    study.cluster.ask(&["delete", "pod", &name, "--wait=false"]);
    let ended = format!("warning: node1: not finished: its pod {name} was deleted");
    study.end_whole(child, &[1], &[&ended, "runs of 2 hosts", "--resume"]);
    let finished = study.runs();
    assert!((RUNS + 1..2 * RUNS).contains(&finished), "{finished}");
    let resumed = study.resume();
    assert!(!resumed.err.contains(&format!("node1: 1/{RUNS} ")), "{resumed:?}");
}

#[test]
fn an_api_server_that_ends_is_named_with_the_job_that_is_left() {
    let Some(mut study) = long() else { return };
    let child = study.begun("admin");
    study.cluster.kill("kube-apiserver");
    let server = format!("https://127.0.0.1:{}/ is not reached", study.cluster.port());
    let lost = format!("warning: node1: the host was lost: kubernetes: {server}");
    let left = format!("is not deleted: kubernetes: {server}");
    let by_hand = "`kubectl delete job kvmeter-";
    study.end(child, &[1], &[&lost, "warning: kubernetes: the Job kvmeter-", &left, by_hand]);
    study.cluster.serve_api();
    study.nothing_is_left(2 * AT_ONCE);
    study.resume();
}

#[test]
fn a_job_that_waits_outlives_a_restart_of_the_api_server() {
    let Some(mut study) = long() else { return };
    let on = "kubernetes:image=a,cpus=1,memory=1Gi,node-selector=pool=later";
    let child = study.begun_until(study.command(on, &[]), &["0 of 1: 0/2 nodes are".to_owned()]);
    study.cluster.kill("kube-apiserver");
    study.cluster.serve_api();
    study.cluster.ask(&["label", "node", "node2", "pool=later", "--overwrite"]);
    study.end_whole(child, &DONE, &["node2: ready", "merged   both.sqlite: 4 runs of 1 host"]);
}

#[test]
fn a_job_that_cannot_be_deleted_is_named_and_ends_by_itself() {
    let Some(study) = long() else { return };
    let whole = role("worker", "[\"get\", \"create\"]");
    study.cluster.apply(&whole);
    let child = study.begun("worker");
    study.cluster.apply(&whole.replace(", \"delete\"]", "]"));
    let why = "is not deleted: kubernetes: the API server refuses it: jobs.batch";
    study.end(child, &DONE, &[why, "`kubectl delete job kvmeter-", " --namespace=bench`"]);
    study.nothing_is_left(AT_ONCE);
}

#[test]
fn ctrl_c_deletes_the_job_and_resume_continues_what_was_finished() {
    let Some(study) = long() else { return };
    let child = study.begun("admin");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    study.end_whole(child, &[1], &["node1: not finished: it was stopped", "runs of 2 hosts"]);
    let finished = study.runs();
    assert!((2..2 * RUNS).contains(&finished), "{finished}");
    let resumed = study.resume();
    // What was finished was not run again.
    let whole = |node: &str| resumed.err.contains(&format!("{node}: 1/{RUNS} "));
    assert!(!whole("node1") && !whole("node2"), "{resumed:?}");
}

/// Neither a pod nor the Job itself outlives a coordinator that is killed while its pods wait.
#[test]
fn a_coordinator_that_is_killed_while_pods_wait_leaves_nothing() {
    let Some(study) = long() else { return };
    study.place.write(
        "fleet.toml",
        "launcher = \"kubernetes\"\nlease = \"15s\"\n[cluster]\nnamespace = \"bench\"\n[pods.arm]\n\
         image = \"a\"\ncpus = 1\nmemory = \"1Gi\"\nnodes = 3\n",
    );
    let mut command = study.command("fleet.toml", &[]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    study.cluster.until("two pods that run", |cluster| {
        let pods = cluster.get(&["pods"]);
        pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count() == 2
    });
    // It is longer than the lease, which is renewed.
    std::thread::sleep(Duration::from_secs(25));
    assert_eq!(study.cluster.get(&["pods"]).len(), 3);
    child.kill().unwrap();
    child.wait().unwrap();
    study.nothing_is_left(2 * AT_ONCE);
}

#[test]
fn agents_in_pods_load_a_server_and_leave_nothing() {
    let Some(study) = long() else { return };
    let Some(server) = Server::start("memcached", &study.place, &["-m", "64"]) else { return };
    let store = format!("memcached://{}", server.address);
    let load = |time: &str| {
        let more = ["--records", "1k", "-j", "2", "--json", "--rate", "1k", "--time"];
        let all = [&["bench", &store, "--agents-on", ON][..], &more, &[time]].concat();
        study.kvmeter(&all)
    };
    let done = command_output(load("1s").output().unwrap());
    assert!(DONE.contains(&done.code), "{done:?}");
    let result = done.json();
    assert_eq!(result["settings"]["agents"], "127.0.0.1,127.0.0.1", "{result}");
    assert!(done.err.contains("node2: its agent listens at 127.0.0.1:"), "{done:?}");
    assert_eq!((study.cluster.objects(), commands()), (String::new(), String::new()));

    let mut child = load("60s").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    study.cluster.until("two agents", |_| commands().matches("kvmeter agent").count() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    study.nothing_is_left(AT_ONCE);
}

#[test]
fn a_server_in_a_pod_is_loaded_and_leaves_nothing() {
    let Some(study) = long() else { return };
    let bench = |time: &str| {
        let server = ["bench", "memcached", "--server", "processes=2,memory=64MiB"];
        let load = ["--server-on", ON, "--records", "1k", "--rate", "500", "--json", "--time"];
        study.kvmeter(&[&server[..], &load, &[time]].concat())
    };
    let done = command_output(bench("1s").output().unwrap());
    assert!(DONE.contains(&done.code), "{done:?}");
    let result = done.json();
    assert_eq!(result["settings"]["server.hosts"], "host1,host2", "{result}");
    assert!(crate::tool::value(&result, "node.host2.rate") > 0.0, "{result}");
    assert_eq!((study.cluster.objects(), commands()), (String::new(), String::new()));

    let mut child = bench("60s").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    study.cluster.until("two servers", |_| commands().matches("kvmeter server").count() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    study.nothing_is_left(AT_ONCE);
}

/// What takes long is of `make test-fleet` alone.
fn long() -> Option<Study> {
    slice::is_whole().then(Study::start)?
}
