//! A coordinator, two agents and a memcached, each pair of machines a network namespace apart. The
//! server is on the coordinator's machine.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::machines::{HUB, Machines, Process};
use crate::tool::{CommandOutput, Place, command_output, value};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const SECRET: &str = "KVMETER_TEST_PASSWORD";
const PASSWORD: &str = "a-password-of-the-test";
const AGENTS: &str = "192.0.2.1,192.0.2.2";
pub const SERVER: &str = "memcached://192.0.2.3:11299";
const STUDY: &str = "name = \"spread\"\nsequence = [\"load\", \"ycsb-b\"]\n\
    [store.memcached]\nservers = \"192.0.2.3:11299\"\n\
    [data]\nrecords = \"2k\"\n\
    [load]\nthreads = 2\npin = false\n\
    [measure]\nthreads = 2\ntime = \"1s\"\nrate = \"1k\"\npin = false\n\
    [agents]\nhosts = [\"192.0.2.1\", \"192.0.2.2\"]\ntoken_file = \"token\"\n";

/// Machines with what the agents need; None, loudly, where there can be none.
fn machines() -> Option<Machines> {
    let net = Machines::new("memcached")?;
    net.place.secret("token", TOKEN);
    net.place.secret("other", "fedcba9876543210fedcba9876543210");
    Some(net)
}

impl Machines {
    pub fn memcached(&self) -> Process {
        let args = ["-u", "root", "-l", HUB, "-p", "11299", "-m", "64", "-t", "1"];
        let server = Process::of(&mut self.on(2, "memcached", &args));
        let reached = || {
            let ask = ["-c", "exec 3<>/dev/tcp/192.0.2.3/11299"];
            self.on(2, "bash", &ask).stderr(Stdio::null()).status().unwrap().success()
        };
        crate::tool::until("memcached", reached);
        server
    }

    fn agents(&self) -> [Process; 2] {
        self.agents_that_allow(&[])
    }

    /// Each machine's recorded one has this setting, which a knob turns.
    fn aslr(&self, who: usize) -> String {
        let path = format!("machine{who}/proc/sys/kernel/randomize_va_space");
        std::fs::read_to_string(self.place.file(&path)).unwrap().trim().to_owned()
    }

    /// `{who}` stands for the number of the agent.
    fn agents_that_allow(&self, more: &[&str]) -> [Process; 2] {
        [0, 1].map(|who| {
            let args = ["agent", "--listen", "0.0.0.0", "--agent-token-file", "token"];
            let more: Vec<String> =
                more.iter().map(|word| word.replace("{who}", &who.to_string())).collect();
            let more: Vec<&str> = more.iter().map(String::as_str).collect();
            let args = [&args[..], &more].concat();
            let mut command = self.on(who, env!("CARGO_BIN_EXE_kvmeter"), &args);
            let agent = Process::of(command.env(SECRET, PASSWORD));
            agent.until("listening on 0.0.0.0:9377 (a token over plain text)");
            agent
        })
    }

    fn bench_command(&self, more: &[&str]) -> Command {
        let mut args = vec!["bench", SERVER, "--records", "2k", "--json", "--no-pin"];
        args.extend(["--agents", AGENTS]);
        args.extend(more);
        self.on(2, env!("CARGO_BIN_EXE_kvmeter"), &args)
    }

    fn bench(&self, more: &[&str]) -> CommandOutput {
        let all = [&["--agent-token-file", "token"], more].concat();
        command_output(self.bench_command(&all).output().unwrap())
    }
}

#[test]
fn two_agents_load_one_server_without_loss() {
    let Some(net) = machines() else { return };
    let (_server, agents) = (net.memcached(), net.agents());
    let more = ["--workload", "ycsb-a", "--ops", "20001", "--threads", "3"];
    let result = net.bench(&more);
    assert_eq!(result.code, 0, "{result:#?}");
    let run = result.json();
    assert_eq!(run["operations"], 20_001, "{}", run["invalid_because"]);
    assert_eq!(run["threads"], 3);
    let counts = ["read", "update"].map(|op| run["latency_us"][op]["count"].as_f64().unwrap());
    let of_agents = [1, 2].map(|n| value(&run, &format!("agent.{n}.operations")));
    assert!(of_agents.iter().all(|operations| *operations > 5000.0), "{of_agents:?}");
    assert_eq!(counts.iter().sum::<f64>(), of_agents.iter().sum::<f64>());
    // The server's own count agrees, as far as it was read when nothing had been asked yet.
    let seen = value(&run, "store.gets") + value(&run, "store.sets");
    assert!((10_000.0..=20_001.0).contains(&seen), "{seen}");
    assert_eq!(run["settings"]["agents"], "192.0.2.1:9377,192.0.2.2:9377");
    assert_eq!(run["settings"]["agents.count"], "2");
    assert!(value(&run, "agents.clock_bound") > 0.0);
    assert!(run["cpu_s_per_mop"].as_f64().unwrap() > 0.0);
    for agent in &agents {
        agent.until("of 2: done");
        agent.until("waiting for a coordinator");
    }
    // The same operations as one client asks.
    let alone = ["bench", SERVER, "--records", "2k", "--json"];
    let mut alone = net.on(2, env!("CARGO_BIN_EXE_kvmeter"), &alone);
    let alone = crate::tool::command_output(alone.args(more).output().unwrap()).json();
    assert_eq!(run["stream"]["fingerprint"], alone["stream"]["fingerprint"]);
    assert_eq!(run["stream"]["asked"], alone["stream"]["asked"]);
}

#[test]
fn the_seconds_of_all_agents_are_shown_together() {
    let Some(net) = machines() else { return };
    let (_server, _agents) = (net.memcached(), net.agents());
    net.place.write("study.toml", &STUDY.replace("1s", "6s"));
    let args = ["run", "study.toml", "--out", "s.sqlite", "--progress=json"];
    let result = command_output(net.on(2, env!("CARGO_BIN_EXE_kvmeter"), &args).output().unwrap());
    let events: Vec<Value> =
        result.err.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let seconds: Vec<&Value> =
        events.iter().filter(|event| event["latency"]["at_s"].is_number()).collect();
    assert!(!seconds.is_empty(), "{result:?}");
    for event in seconds {
        let us = ["p50_us", "p99_us", "p99_9_us", "max_us"].map(|name| &event["latency"][name]);
        let us = us.map(|value| value.as_f64().unwrap());
        assert!(us[0] > 0.0 && us.is_sorted(), "{event}");
        // Each agent has a half of a thousand a second.
        assert!(event["hits"].as_u64().unwrap() > 500, "{event}");
    }
}

#[test]
fn a_coordinator_that_measures_keeps_the_load_apart() {
    let Some(net) = machines() else { return };
    let (_server, _agents) = (net.memcached(), net.agents());
    let more = ["--rate", "2k", "--agents-measure-rate", "100", "--time", "2s"];
    let run = net.bench(&more).json();
    // A busy machine may make a client late, which is not what is looked at here.
    assert_eq!(run["target_rate_ops_s"], 100.0);
    assert_eq!(run["threads"], 1);
    assert!(run["operations"].as_u64().unwrap() <= 201, "{}", run["operations"]);
    assert_eq!(run["latency_us"]["read"]["count"], run["operations"]);
    assert_eq!(run["settings"]["measured_by"], "coordinator");
    assert_eq!(run["settings"]["agents.measure_rate"], "100");
    let load = value(&run, "load.operations");
    assert_eq!(load, value(&run, "agent.1.operations") + value(&run, "agent.2.operations"));
    assert!(load > 1000.0, "{load}");
    assert!(run["warnings"].to_string().contains("coordinator's own connection"));
}

#[test]
fn an_agent_measures_beside_those_that_load() {
    let Some(net) = machines() else { return };
    let (_server, [loading, measuring]) = (net.memcached(), net.agents());
    let [first, second] = ["192.0.2.1", "192.0.2.2"];
    let bench = ["bench", SERVER, "--records", "2k", "--json", "--no-pin", "--agents", first];
    let rates = ["--threads", "2", "--rate", "2k", "--agents-measure-rate", "100", "--time", "2s"];
    let on = ["--agents-measure-host", second, "--agent-token-file", "token"];
    let args = [&bench[..], &rates, &on].concat();
    let done = net.on(2, env!("CARGO_BIN_EXE_kvmeter"), &args).output().unwrap();
    let run = command_output(done).json();
    // A busy machine may make a client late, which is not what is looked at here.
    assert_eq!((&run["target_rate_ops_s"], &run["threads"]), (&100.0.into(), &1.into()));
    assert!(run["operations"].as_u64().unwrap() <= 201, "{}", run["operations"]);
    assert_eq!(run["latency_us"]["read"]["count"], run["operations"]);
    assert_eq!(run["settings"]["measured_by"], "192.0.2.2:9377");
    assert_eq!(run["settings"]["agents"], "192.0.2.1:9377");
    assert_eq!(value(&run, "load.operations"), value(&run, "agent.1.operations"));
    assert!(value(&run, "load.operations") > 1000.0);
    assert!(run["warnings"].to_string().contains("192.0.2.2:9377's own connection"));
    // The client's CPU time is that machine's.
    let readings = run["readings"].as_array().unwrap();
    let cpu = readings.iter().find(|reading| reading["signal"] == "cpu.user").unwrap();
    assert_eq!(cpu["scope"], "client");
    loading.until("part 1 of 1");
    measuring.until("at 100 beside the agents that load");
}

#[test]
fn an_agent_that_is_killed_makes_the_run_invalid_and_frees_the_other() {
    let Some(net) = machines() else { return };
    let (_server, [first, mut second]) = (net.memcached(), net.agents());
    let more = ["--agent-token-file", "token", "--time", "60s", "--out", "kept.sqlite"];
    let mut command = net.bench_command(&more);
    let bench = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Both are at work when the server counts more connections than the coordinator's.
    first.until("taken by ");
    second.until("taken by ");
    std::thread::sleep(Duration::from_secs(3));
    second.kill();
    let result = command_output(bench.wait_with_output().unwrap());
    assert_eq!(result.code, 1, "{result:#?}");
    let run = result.json();
    assert_eq!(run["valid"], false);
    let why = run["invalid_because"].to_string();
    assert!(why.contains("agent 192.0.2.2:9377 was lost: "), "{why}");
    assert!(value(&run, "agent.1.operations") > 0.0, "it was at work");
    first.until("of 2: stopped");
    first.until("waiting for a coordinator");
    let kept = net.place.ok(&["report", "kept.sqlite"]);
    assert!(kept.contains("was lost"), "{kept}");
}

#[test]
fn mistakes_with_agents_are_refused_with_a_way_out() {
    let Some(net) = machines() else { return };
    let agents = net.agents();
    let refused = |command: &mut Command, words: &[&str]| {
        let result = command_output(command.output().unwrap());
        assert_eq!(result.code, 2, "{result:#?}");
        words.iter().for_each(|word| assert!(result.err.contains(word), "{word}: {}", result.err));
    };
    let _server = net.memcached();
    refused(&mut net.bench_command(&[]), &["agents need a shared secret", "--agent-token-file"]);
    let other = ["--agent-token-file", "other"];
    refused(&mut net.bench_command(&other), &["rejects this token"]);
    agents[0].until("it showed a wrong token");
    let [_, mut second] = agents;
    second.kill();
    let token = ["--agent-token-file", "token"];
    refused(&mut net.bench_command(&token), &["no agent listens at 192.0.2.2:9377"]);
    net.cut(1);
    let begun = Instant::now();
    refused(&mut net.bench_command(&token), &["agent 192.0.2.2:9377 cannot be reached"]);
    assert!(begun.elapsed() < Duration::from_secs(40));
}

/// A coordinator that has the token may name any variable, file and server.
#[test]
fn an_agents_secrets_are_used_where_it_allows_it_only() {
    let Some(net) = machines() else { return };
    let args = ["--port", "6399", "--bind", HUB, "--requirepass", PASSWORD, "--save", ""];
    if Command::new("redis-server").arg("--version").output().is_err() {
        eprintln!("SKIPPED: redis-server does not start");
        return;
    }
    let _server = Process::of(&mut net.on(2, "redis-server", &args));
    let reached = || {
        let ask = ["-c", "exec 3<>/dev/tcp/192.0.2.3/6399"];
        net.on(2, "bash", &ask).stderr(Stdio::null()).status().unwrap().success()
    };
    crate::tool::until("redis-server", reached);
    let store = format!("redis://{HUB}:6399?password_env={SECRET}");
    let bench = || {
        let args = ["bench", &store, "--records", "2k", "--time", "0.3s", "--no-pin", "--json"];
        let agents = ["--agents", AGENTS, "--agent-token-file", "token", "--threads", "2"];
        let args = [&args[..], &agents].concat();
        let mut command = net.on(2, env!("CARGO_BIN_EXE_kvmeter"), &args);
        command_output(command.env(SECRET, PASSWORD).output().unwrap())
    };
    let refused = |words: &str| {
        let result = bench();
        assert!(result.code != 0 && result.err.contains(words), "{words}: {result:#?}");
    };
    let agents = net.agents();
    refused(&format!("--allow-env {SECRET}"));
    drop(agents);
    let agents = net.agents_that_allow(&["--allow-env", SECRET]);
    refused("--allow-server 192.0.2.3:6399");
    drop(agents);
    let _agents = net.agents_that_allow(&["--allow-env", SECRET, "--allow-server", HUB]);
    let result = bench();
    assert_eq!(result.code, 0, "{result:#?}");
}

#[test]
fn an_agent_ends_cleanly_on_a_signal() {
    let Some(net) = machines() else { return };
    let [mut agent, _other] = net.agents();
    let id = agent.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert!(agent.child.wait().unwrap().success());
}

#[test]
fn a_study_runs_on_agents() {
    let Some(net) = machines() else { return };
    let (_server, _agents) = (net.memcached(), net.agents());
    net.place.write("study.toml", STUDY);
    let args = ["run", "study.toml", "--out", "s.sqlite", "--json"];
    let result = command_output(net.on(2, env!("CARGO_BIN_EXE_kvmeter"), &args).output().unwrap());
    let runs: Vec<Value> =
        result.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(runs.len(), 2, "{result:#?}");
    assert_eq!(runs[0]["operations"], 2000, "each record was loaded once");
    assert_eq!(runs[1]["target_rate_ops_s"], 1000.0);
    for run in &runs {
        assert_eq!(run["settings"]["agents.count"], "2");
        assert_eq!(run["errors"], 0, "{}", run["failures"]);
        assert!(value(run, "agent.2.operations") > 0.0);
    }
}

#[test]
fn agents_turn_knobs_and_read_probes_that_they_allow() {
    let Some(net) = machines() else { return };
    for who in 0..3 {
        for (path, text) in [
            ("proc/sys/kernel/random/boot_id", "boot-one"),
            ("proc/sys/kernel/randomize_va_space", "2"),
        ] {
            let file = net.place.file(&format!("machine{who}")).join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, format!("{text}\n")).unwrap();
        }
    }
    let _server = net.memcached();
    let wanted = ["--threads", "2", "--root", "machine2", "--knob", "aslr=off"];
    let wanted =
        [&wanted[..], &["--agents-knobs", "aslr", "--agents-probes", "counters,rapl"]].concat();
    let refused = |words: &str| {
        let result = net.bench(&wanted);
        assert!(result.code != 0 && result.err.contains(words), "{words}: {result:#?}");
        assert_eq!([0, 1, 2].map(|who| net.aslr(who)), ["2", "2", "2"]);
    };
    let root = ["--root", "machine{who}"];
    let agents = net.agents_that_allow(&root);
    refused("--allow-knob aslr=off");
    drop(agents);
    let more = [&root[..], &["--allow-knob", "aslr=off"]].concat();
    let agents = net.agents_that_allow(&more);
    refused("--allow-probe counters");
    drop(agents);
    let more = [&more[..], &["--allow-probe", "counters", "--allow-probe", "rapl"]].concat();
    let [_first, mut second] = net.agents_that_allow(&more);
    let result = net.bench(&[&wanted[..], &["--time", "1s"]].concat());
    assert_eq!(result.code, 0, "{result:#?}");
    let run = result.json();
    assert_eq!(run["settings"]["agents.knob.aslr"], "off");
    assert!(run["settings"]["agents.knob.aslr.effect"].is_string(), "{}", run["settings"]);
    assert_eq!(run["settings"]["agents.probes"], "counters,rapl");
    let readings = run["readings"].as_array().unwrap();
    for signal in ["client.llc.miss_ratio", "agent.1.llc.misses", "agent.2.energy.package"] {
        assert!(readings.iter().any(|reading| reading["signal"] == signal), "{signal}");
    }
    assert_eq!([0, 1, 2].map(|who| net.aslr(who)), ["2", "2", "2"]);
    // However coordinator and agent end, the knobs return.
    let begin = || {
        let args = [&wanted[..], &["--agent-token-file", "token", "--time", "60s"]].concat();
        let bench = net.bench_command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        crate::tool::until("turned knobs", || [0, 1].iter().all(|who| net.aslr(*who) == "0"));
        bench.unwrap()
    };
    let mut bench = begin();
    bench.kill().unwrap();
    bench.wait().unwrap();
    let returned = || [0, 1, 2].iter().all(|who| net.aslr(*who) == "2");
    crate::tool::until("knobs without their coordinator", returned);
    let mut bench = begin();
    second.kill();
    crate::tool::until("knobs of a killed agent", returned);
    assert!(!bench.wait().unwrap().success());
}

#[test]
fn agents_are_for_servers() {
    let place = Place::new();
    place.refused(
        &["bench", "null", "--agents", "h1,h2"],
        &["--agents is for stores behind a network", "memcached://HOST"],
    );
    let server = ["bench", "memcached://h", "--agents", "h1,h2"];
    let refused = |more: &[&str], words: &[&str]| place.refused(&[&server, more].concat(), words);
    refused(&["--threads", "1"], &["--threads are of all agents together", "at least one"]);
    refused(&["--ops", "10"], &["--ops 10 are too few"]);
    refused(&["--steady"], &["--steady would open each agent's window"]);
    refused(&["--ops", "1k", "--agents-measure-rate", "10"], &["--agents-measure-rate needs"]);
    let measuring = ["--agents-measure-rate", "10", "--agents-measure-host"];
    refused(&[&measuring[..], &["h1"]].concat(), &["--agents-measure-host", "at once"]);
    refused(&[&measuring[..], &["/x"]].concat(), &["--agents-measure-host", "TCP"]);
    refused(&["--agents-measure-host", "h3"], &["--agents-measure-rate"]);
    place.refused(&["bench", "memcached://h", "--agents", "h1,h1"], &["named twice"]);
    place.refused(&["agent", "--listen", "x:y"], &["--listen", "a port is a number"]);
    place.refused(&["agent", "--listen", "127.0.0.1:0"], &["agents need a shared secret"]);
}
