//! A study on two machines by `ssh`: real `sshd`s in network namespaces, hosts that die, a
//! coordinator that is killed.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::agents::SERVER;
use crate::machines::{HOSTS, HUB, Machines, Process};
use crate::tool::{CommandOutput, Place, command_output, until};

const SSHD: &str = "/usr/sbin/sshd";
/// At a low rate, for other tests run beside it.
pub const STUDY: &str = "name = \"small\"\nquestion = \"How fast?\"\nrepeats = 2\n\
    sequence = [\"load\", \"ycsb-c\"]\n[store.spill]\n[data]\nrecords = \"2k\"\n\
    [measure]\nrate = \"1k\"\ntime = \"300ms\"\n";
/// Runs of the study on one machine.
pub const RUNS: usize = 4;

struct Fleet {
    net: Machines,
    _servers: Vec<Process>,
}

impl Fleet {
    fn start() -> Option<Fleet> {
        let net = Machines::new(SSHD)?;
        let _ = std::fs::create_dir("/run/sshd");
        let file = |name: &str| net.place.file(name).display().to_string();
        for name in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &file(name)])
                .status();
            assert!(made.unwrap().success());
        }
        let server = |who: usize| {
            let config = format!(
                "ListenAddress {}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
                 StrictModes no\nUsePAM no\nPasswordAuthentication no\n\
                 SetEnv XDG_CACHE_HOME={} KVMETER_STATE_DIR={}\n",
                HOSTS[who],
                file("host"),
                file("user.pub"),
                file(&format!("cache{who}")),
                file(&format!("state{who}")),
            );
            let config = net.place.write(&format!("sshd{who}"), &config).display().to_string();
            let log = file(&format!("log{who}"));
            Process::of(&mut net.on(who, SSHD, &["-D", "-f", &config, "-E", &log]))
        };
        let servers = vec![server(0), server(1)];
        net.place.write(
            "ssh_config",
            &format!(
                "Host *\nIdentityFile {}\nIdentitiesOnly yes\nStrictHostKeyChecking no\n\
                 UserKnownHostsFile /dev/null\nLogLevel ERROR\n",
                file("user")
            ),
        );
        net.place.write("fleet.toml", &hosts(&HOSTS[..2]));
        net.place.write("study.toml", STUDY);
        let fleet = Fleet { net, _servers: servers };
        until("the servers", || (0..2).all(|who| fleet.answers(who)));
        Some(fleet)
    }

    fn answers(&self, who: usize) -> bool {
        let words = ["-F", "ssh_config", HOSTS[who], "true"];
        self.net.on(2, "ssh", &words).output().unwrap().status.success()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut all = vec!["run", "study.toml", "--on", "fleet.toml", "--out", "both.sqlite"];
        all.extend(args);
        self.net.on(2, env!("CARGO_BIN_EXE_kvmeter"), &all)
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        command_output(self.command(args).output().unwrap())
    }

    fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The runs of the merged file.
    fn runs(&self) -> Vec<Value> {
        let done =
            self.net.on(2, env!("CARGO_BIN_EXE_kvmeter"), &["report", "both.sqlite", "--json"]);
        let done = command_output({ done }.output().unwrap());
        assert_eq!(done.code, 0, "{done:?}");
        done.json().as_array().unwrap().clone()
    }

    /// The folders that are left on a machine.
    fn folders(&self, who: usize) -> usize {
        let folder = self.net.place.file(&format!("cache{who}/kvmeter/fleet"));
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    /// Commands of the study that run on the machines.
    fn commands(&self) -> usize {
        self.processes("run")
    }

    /// Processes of a verb on the machines.
    fn processes(&self, verb: &str) -> usize {
        let folder = self.net.place.path().join("cache");
        let folder = folder.display().to_string();
        let found =
            Command::new("pgrep").args(["-fc", &format!("^{folder}.*kvmeter {verb}")]).output();
        String::from_utf8_lossy(&found.unwrap().stdout).trim().parse().unwrap()
    }
}

/// A load of one second by agents on the machines.
fn by_agents<'a>(verb: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let own = ["--agents-on", "fleet.toml", "--records", "1k", "-j", "2", "--json"];
    [&[verb, SERVER], &own[..], more].concat()
}

fn hosts(addresses: &[&str]) -> String {
    let mut text = "ssh_config = \"ssh_config\"\nlease = \"10s\"\n".to_owned();
    for (number, address) in (1..).zip(addresses) {
        text.push_str(&format!("[hosts.m{number}]\naddress = \"{address}\"\n"));
    }
    text
}

#[test]
fn two_machines_run_a_study_and_their_results_are_merged() {
    let Some(fleet) = Fleet::start() else { return };
    let plan = fleet.run(&["--dry-run"]);
    assert_eq!(plan.code, 0, "{plan:?}");
    assert!(plan.out.contains("m1: ") && plan.out.contains("m2: "), "{plan:?}");
    assert!(!fleet.net.place.file("both.hosts").exists());
    let done = fleet.run(&["--set", "seed=7"]);
    assert!(done.err.contains("merged   both.sqlite: 8 runs of 2 hosts"), "{done:?}");
    assert_eq!(fleet.runs().len(), 2 * RUNS);
    assert_eq!((fleet.folders(0), fleet.folders(1), fleet.commands()), (0, 0, 0));
    assert!(fleet.net.place.file("both.html").exists());
    let again = fleet.run(&[]);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("both.sqlite exists already"), "{again:?}");
}

#[test]
fn a_killed_coordinator_leaves_nothing_running_and_resuming_completes() {
    let Some(fleet) = Fleet::start() else { return };
    let mut child = fleet.spawn(&["--set", "measure.time=8s"]);
    until("both machines", || fleet.commands() == 2);
    // The first run of each, so that there is something to lose.
    std::thread::sleep(Duration::from_secs(2));
    child.kill().unwrap();
    child.wait().unwrap();
    let begin = Instant::now();
    until("the end of the commands", || fleet.commands() == 0);
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    assert_eq!((fleet.folders(0), fleet.folders(1)), (1, 1));
    let wrong = fleet.run(&[]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.err.contains("--resume"), "{wrong:?}");
    // Neither a look at the plan nor a machine that is away loses finished runs.
    let plan = fleet.run(&["--set", "measure.time=8s", "--resume", "--dry-run"]);
    assert_eq!(plan.code, 0, "{plan:?}");
    fleet.net.place.write("fleet.toml", &hosts(&[HOSTS[0], HUB]));
    let away = fleet.run(&["--set", "measure.time=8s", "--resume"]);
    assert_eq!(away.code, 2, "{away:?}");
    assert_eq!((fleet.folders(0), fleet.folders(1)), (1, 1));
    fleet.net.place.write("fleet.toml", &hosts(&HOSTS[..2]));
    let done = fleet.run(&["--set", "measure.time=8s", "--resume"]);
    assert!(done.err.contains("runs are done"), "{done:?}");
    assert_eq!(fleet.runs().len(), 2 * RUNS);
    assert_eq!((fleet.folders(0), fleet.folders(1)), (0, 0));
}

#[test]
fn a_machine_that_dies_is_named_and_the_rest_goes_on() {
    let Some(fleet) = Fleet::start() else { return };
    let child = fleet.spawn(&["--set", "measure.time=2s"]);
    until("both machines", || fleet.commands() == 2);
    std::thread::sleep(Duration::from_secs(1));
    fleet.net.kill_all(0);
    let done = command_output(child.wait_with_output().unwrap());
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("warning: m1: the host was lost"), "{done:?}");
    assert!(done.err.contains("merged   both.sqlite: 4 runs of 1 host"), "{done:?}");
    assert!(done.err.contains("Resume what is missing with"), "{done:?}");
    assert_eq!(fleet.runs().len(), RUNS);
}

#[test]
fn what_no_host_can_run_is_refused_and_leaves_nothing() {
    let Some(fleet) = Fleet::start() else { return };
    let bad = fleet.run(&["--set", "store.nothing.x=1"]);
    assert_eq!(bad.code, 2, "{bad:?}");
    // The coordinator's own machine has no server.
    fleet.net.place.write("fleet.toml", &hosts(&[HOSTS[0], HUB]));
    let closed = fleet.run(&[]);
    assert_eq!(closed.code, 2, "{closed:?}");
    assert!(closed.err.contains("m2: not reached") && closed.err.contains("nothing was run"));
    assert_eq!((fleet.folders(0), fleet.folders(1), fleet.commands()), (0, 0, 0));
}

#[test]
fn this_machine_is_a_host_too() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let args = ["run", "study.toml", "--on", "local", "--out", "own.sqlite"];
    let done = command_output(
        place.command(&args).env("XDG_CACHE_HOME", place.file("cache")).output().unwrap(),
    );
    assert!(done.err.contains("merged   own.sqlite: 4 runs of 1 host"), "{done:?}");
    assert_eq!(std::fs::read_dir(place.file("cache/kvmeter/fleet")).unwrap().count(), 0);
    place.refused(&["run", "study.toml", "--on", "ssh:"], &["--on: names no host"]);
    place.refused(&["run", "study.toml", "--on", "nowhere"], &["--on: nowhere is no file"]);
    let devices = ["run", "study.toml", "--on", "local", "--device"];
    place.refused(&[&devices[..], &["."]].concat(), &["--device .", "absolute path"]);
    place.refused(&[&devices[..], &["/none"]].concat(), &["a study with [mbwu]"]);
}

/// A workload in YCSB's form.
const OWN: &str = "recordcount=2000\noperationcount=500\nreadproportion=0.9\n\
    updateproportion=0.1\nrequestdistribution=zipfian\nfieldcount=1\nfieldlength=100\n";

/// A study of a trace and of a workload in files of this machine.
const FILES: &str = "name = \"files\"\nrepeats = 1\nsequence = [\"recorded\", \"clear\", \"load\", \"own\"]\n\
    [store.spill]\n[data]\nrecords = \"2k\"\n[measure]\ntime = \"300ms\"\n\
    [workloads.recorded]\ntrace = \"in/requests.csv\"\nspeed = \"max\"\n\
    [workloads.own]\nfrom = \"in/own.properties\"\n";

#[test]
fn files_that_a_study_names_are_copied_to_its_hosts() {
    let Some(fleet) = Fleet::start() else { return };
    std::fs::create_dir(fleet.net.place.file("in")).unwrap();
    let requests: String =
        (0..500).map(|at| format!("{at},key{},4,100,1,get,0\n", at % 7)).collect();
    fleet.net.place.write("in/requests.csv", &requests);
    fleet.net.place.write("in/own.properties", OWN);
    fleet.net.place.write("study.toml", FILES);
    let done = fleet.run(&[]);
    assert!(done.err.contains("merged   both.sqlite: 6 runs of 2 hosts"), "{done:?}");
    let runs = fleet.runs();
    let modified = |run: &Value| run["settings"]["trace.modified"].as_str().map(str::to_owned);
    let mut times: Vec<String> = runs.iter().filter_map(modified).collect();
    assert_eq!(times.len(), 2, "{runs:?}");
    times.dedup();
    assert_eq!(times.len(), 1, "the copies have the time of the original");
    assert_eq!((fleet.folders(0), fleet.folders(1)), (0, 0));
    fleet.net.place.write("study.toml", &FILES.replace("in/own", "../own"));
    fleet.net.place.write("../own.properties", OWN);
    let outside = fleet.run(&["--resume"]);
    std::fs::remove_file(fleet.net.place.file("../own.properties")).unwrap();
    assert_eq!(outside.code, 2, "{outside:?}");
    assert!(outside.err.contains("lies outside of this folder"), "{outside:?}");
    fleet.net.place.write("study.toml", &FILES.replace("in/own.properties", "./results.sqlite"));
    fleet.net.place.write("results.sqlite", OWN);
    let own = fleet.run(&["--resume"]);
    assert_eq!(own.code, 2, "{own:?}");
    assert!(own.err.contains("`./results.sqlite` has the name of a file of kvmeter's"), "{own:?}");
}

#[test]
fn work_units_are_measured_on_the_devices_of_each_host() {
    let Some(fleet) = Fleet::start() else { return };
    let place = &fleet.net.place;
    let mut text = "ssh_config = \"ssh_config\"\nlease = \"10s\"\n".to_owned();
    for (who, host) in HOSTS[..2].iter().enumerate() {
        std::fs::create_dir(place.file(&format!("disk{who}"))).unwrap();
        text += &format!(
            "[hosts.m{who}]\naddress = \"{host}\"\ndevice = [{:?}]\n",
            place.file(&format!("disk{who}")).display().to_string()
        );
    }
    place.write("fleet.toml", &text);
    let study = crate::mbwu::STUDY.replace("threads = [1, 8]", "threads = [1]\nrounds = 5");
    place.write("study.toml", &study.replace("time = \"1s\"", "time = \"200ms\""));
    let done = fleet.run(&[]);
    assert!(done.err.contains("runs of 2 hosts"), "{done:?}");
    let runs = fleet.runs();
    assert!(runs.len() >= 10, "{runs:?}");
    assert_eq!((fleet.folders(0), fleet.folders(1)), (0, 0));
    let left = |who: usize| std::fs::read_dir(place.file(&format!("disk{who}"))).unwrap().count();
    assert_eq!((left(0), left(1)), (1, 1), "each host used its own");
}

#[test]
fn agents_are_started_on_hosts_and_leave_nothing() {
    let Some(fleet) = Fleet::start() else { return };
    let _server = fleet.net.memcached();
    let kvmeter = |args: &[&str]| fleet.net.on(2, env!("CARGO_BIN_EXE_kvmeter"), args);
    let run = |args: &[&str]| command_output(kvmeter(args).output().unwrap());
    let left = || (fleet.folders(0), fleet.folders(1), fleet.processes("agent"));
    let measure = ["--agents-measure-rate", "200", "--agents-measure-host", "m2"];
    let more = [&["--rate", "1k", "--time", "1s"], &measure[..]].concat();
    for more in [&more[..4], &more] {
        let plan = run(&by_agents("bench", &[more, &["--dry-run"]].concat()));
        assert_eq!((plan.code, left()), (0, (0, 0, 0)), "{plan:?}");
    }

    let done = run(&by_agents("bench", &["--rate", "1k", "--time", "1s"]));
    let result = done.json();
    assert_eq!((&result["errors"], left()), (&Value::from(0), (0, 0, 0)), "{done:?}");
    // Both machines loaded it, at ports that no setting of the run shows.
    assert_eq!(result["settings"]["agents"], format!("{},{}", HOSTS[0], HOSTS[1]), "{result}");
    assert!(done.err.contains("m1: its agent listens at 192.0.2.1:"), "{done:?}");
    assert!((900.0..=1_000.5).contains(&result["throughput_ops_s"].as_f64().unwrap()), "{result}");

    let result = run(&by_agents("bench", &more)).json();
    assert_eq!(result["settings"]["measured_by"], HOSTS[1], "{result}");
    let stranger = run(&by_agents("bench", &[&more[..7], &["m3"]].concat()));
    let names_them = stranger.err.contains("m3 is no host of --agents-on: m1, m2");
    assert!(stranger.code == 2 && names_them && left() == (0, 0, 0), "{stranger:?}");

    let short = ["--slo", "p99<10s", "--from", "100", "--to", "200", "--time", "300ms"];
    let found = run(&by_agents("search", &short));
    assert!(found.json()["trials"].as_array().is_some_and(|all| !all.is_empty()), "{found:?}");
    let server = SERVER.trim_start_matches("memcached://");
    let store = format!("[store.memcached]\nservers = {server:?}");
    let study = STUDY.replace("[store.spill]", &store);
    fleet.net.place.write(
        "served.toml",
        &study.replace("[measure]", "[load]\nthreads = 2\n[measure]\nthreads = 2"),
    );
    let args = ["run", "served.toml", "--agents-on", "fleet.toml", "--out", "served.sqlite"];
    let studied = run(&args);
    let runs = studied.err.contains("4/4 ") && studied.out.contains("results  served.sqlite");
    assert!(runs && left() == (0, 0, 0), "{studied:?}");
}

/// Arguments of a cluster of four nodes on the two machines.
const CLUSTER: [&str; 9] = [
    "bench",
    "redis",
    "--server",
    "cluster=2,replicas=1",
    "--server-on",
    "fleet.toml",
    "--records",
    "1k",
    "--json",
];

#[test]
fn servers_are_started_on_hosts_and_leave_nothing() {
    let Some(fleet) = Fleet::start() else { return };
    let kvmeter = |args: &[&str]| fleet.net.on(2, env!("CARGO_BIN_EXE_kvmeter"), args);
    let run = |args: &[&str]| command_output(kvmeter(args).output().unwrap());
    let left = || (fleet.folders(0), fleet.folders(1), fleet.processes("server"));
    let on = ["bench", "memcached", "--server", "processes=3,memory=64MiB", "--server-on"];
    let more = ["fleet.toml", "--records", "1k", "--time", "1s", "--json"];
    let done = run(&[&on[..], &more].concat());
    let result = done.json();
    assert_eq!((&result["valid"], left()), (&Value::from(true), (0, 0, 0)), "{done:?}");
    assert_eq!(result["settings"]["server.hosts"], "m1,m2", "{result}");
    for node in ["m1", "m2", "m1-2"] {
        let rate = crate::tool::value(&result, &format!("node.{node}.rate"));
        assert!(rate > 0.0, "{node}: {result}");
    }
    let result = run(&[&CLUSTER[..], &["--time", "1s"]].concat()).json();
    assert_eq!((&result["valid"], left()), (&Value::from(true), (0, 0, 0)), "{result}");
    assert!(crate::tool::value(&result, "node.m2.rate") > 0.0, "{result}");

    fleet.net.place.write(
        "served.toml",
        &STUDY.replace("[store.spill]", "[store.redis]\n[server.redis]\nmemory = \"64MiB\""),
    );
    let args = ["run", "served.toml", "--server-on", "fleet.toml", "--out", "served.sqlite"];
    let studied = run(&args);
    let runs = studied.err.contains("4/4 ") && studied.out.contains("results  served.sqlite");
    assert!(runs && left() == (0, 0, 0), "{studied:?}");

    // What the host refuses, and what cannot be.
    let bad = ["binary=/bin/nothing", "listen=10.1.2.3", "socket=/tmp/s", "listen=127.0.0.1"];
    let words = ["m1: its server ended", "cannot listen at 10.1.2.3", "`socket`", "`listen`"];
    for (settings, words) in bad.into_iter().zip(words) {
        let refused =
            run(&[&["bench", "redis", "--server", settings][..], &on[4..], &more].concat());
        assert!(refused.code == 2 && refused.err.contains(words), "{refused:?}");
        assert_eq!(left(), (0, 0, 0));
    }
    let named = run(&[&["bench", SERVER][..], &on[4..], &more].concat());
    assert!(named.code == 2 && named.err.contains("--server default"), "{named:?}");
    let none = run(&["run", "study.toml", "--server-on", "fleet.toml"]);
    assert!(none.code == 2 && none.err.contains("starts no server"), "{none:?}");
}

#[test]
fn servers_end_with_a_killed_command() {
    let Some(fleet) = Fleet::start() else { return };
    let args = [&CLUSTER[..], &["--rate", "500", "--time", "60s"]].concat();
    let mut command = fleet.net.on(2, env!("CARGO_BIN_EXE_kvmeter"), &args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the servers", || fleet.processes("server") == 4);
    std::thread::sleep(Duration::from_secs(3));
    child.kill().unwrap();
    child.wait().unwrap();
    let left = || (fleet.folders(0), fleet.folders(1), fleet.processes("server"));
    until("the end of the servers", || left() == (0, 0, 0));
    let rest = [0, 1].map(|who| fleet.net.processes(who));
    assert!(!rest.iter().flatten().any(|name| name.starts_with("redis")), "{rest:?}");
}

#[test]
fn agents_end_with_a_killed_command_and_without_a_host() {
    let Some(fleet) = Fleet::start() else { return };
    let _server = fleet.net.memcached();
    let kvmeter = |args: &[&str]| fleet.net.on(2, env!("CARGO_BIN_EXE_kvmeter"), args);
    let left = || (fleet.folders(0), fleet.folders(1), fleet.processes("agent"));
    let args = by_agents("bench", &["--rate", "1k", "--time", "60s"]);
    let mut child = kvmeter(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("both agents", || fleet.processes("agent") == 2);
    std::thread::sleep(Duration::from_secs(2));
    child.kill().unwrap();
    child.wait().unwrap();
    until("the end of the agents", || left() == (0, 0, 0));

    fleet.net.place.write("fleet.toml", &hosts(&[HOSTS[0], HUB]));
    let closed = command_output(kvmeter(&args).output().unwrap());
    assert!(closed.code == 2 && closed.err.contains("--agents-on: m2: not reached"), "{closed:?}");
    until("the end of the other agent", || left() == (0, 0, 0));
    for more in [&["--agents", "m1"][..], &["--agent-token-file", "token"]] {
        let refused = command_output(kvmeter(&[&args[..], more].concat()).output().unwrap());
        assert!(refused.code == 2 && refused.err.contains("--agent"), "{refused:?}");
    }
}
