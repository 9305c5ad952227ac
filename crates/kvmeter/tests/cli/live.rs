//! `--live`: the page and the metrics of a real measurement.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::tool::Place;

const BENCH: &[&str] =
    &["bench", "null", "--records=1000", "--rate=2k", "--threads=1", "--probes=off"];

const STUDY: &str = r#"
name = "watched"
repeats = 3
sequence = ["ycsb-c"]

[store.null]

[data]
records = 1000

[measure]
rate = "1k"
threads = 1
time = "1500ms"
"#;

/// A command with a page.
struct Watched {
    child: Child,
    /// What it prints, and what it says after its address. Read at once: a command whose pipe is
    /// full waits, and its page does not end.
    out: JoinHandle<String>,
    words: JoinHandle<String>,
    address: String,
}

impl Watched {
    fn start(place: &Place, args: &[&str]) -> Watched {
        Watched::of(place.command(args))
    }

    fn of(mut command: Command) -> Watched {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut words = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            assert!(words.read_line(&mut line).unwrap() > 0, "no address: {said}");
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.split('/').next().unwrap().to_owned();
            }
            said.push_str(&line);
        };
        let out = read_all(child.stdout.take().unwrap());
        Watched { child, out, words: read_all(words), address }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = self.connect(path);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    fn connect(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// The frames of a viewer until the stream ends.
    fn frames(&self) -> impl Iterator<Item = Value> {
        let lines = BufReader::new(self.connect("/events")).lines();
        lines.map_while(Result::ok).filter_map(|line| {
            line.strip_prefix("data: ").map(|frame| serde_json::from_str(frame).unwrap())
        })
    }

    /// Its exit code, its output, and what else it said.
    fn end(mut self) -> (i32, String, String) {
        let (out, err) = (self.out.join().unwrap(), self.words.join().unwrap());
        let status = self.child.wait().unwrap();
        assert!(TcpStream::connect(&self.address).is_err(), "the port is free again");
        (status.code().unwrap_or(-1), out, err)
    }
}

fn read_all(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        all
    })
}

/// The sum of a metric over its labels.
fn metric(text: &str, name: &str) -> f64 {
    let of = text.lines().filter(|line| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
    });
    of.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[test]
fn a_bench_is_shown_while_it_runs() {
    let place = Place::new();
    let watched = Watched::start(&place, &[BENCH, &["--time=5s", "--json", "--live"]].concat());
    assert!(watched.address.starts_with("127.0.0.1:"), "{}", watched.address);
    assert!(watched.get("/").contains("<title>kvmeter live</title>"));
    let (mut seconds, mut last, mut counted) = (0, Value::Null, 0.0);
    for frame in watched.frames() {
        let progress = &frame["hosts"][0]["progress"];
        let is_measured = progress["warming_up"] == false && !progress["latency"].is_null();
        if is_measured && frame["head"]["ended"].is_null() {
            seconds += 1;
            assert_eq!(progress["offered_ops_s"], 2000.0, "{frame}");
            let answered = progress["answered_ops_s"].as_f64().unwrap();
            assert!((1500.0..2500.0).contains(&answered), "{frame}");
            let now = watched.get("/metrics");
            let operations = metric(&now, "kvmeter_operations_total");
            assert!(operations >= counted, "counters never go back: {now}");
            counted = operations;
            assert_eq!(operations, metric(&now, "kvmeter_request_duration_seconds_count"));
        }
        last = frame;
    }
    assert!(seconds >= 2, "{seconds} frames of the window: {last}");
    assert!(counted > 2000.0, "{counted}");
    let (code, out, err) = watched.end();
    assert!(!err.contains("http://"), "the address is shown once: {err}");
    // On a busy machine a run may be invalid, and the page says so.
    let run: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code == 0, run["valid"] == true, "{err}");
    assert_eq!(last["head"]["ended"] == "done", code == 0, "{last}");
}

#[test]
fn a_study_lists_its_finished_runs_and_its_lines_of_json_say_where_the_page_is() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let args = ["run", "study.toml", "--out=out.sqlite", "--progress=json", "--live"];
    let watched = Watched::start(&place, &args);
    let mut finished = Vec::new();
    let mut last = Value::Null;
    for frame in watched.frames() {
        finished.extend(frame["runs"].as_array().unwrap().iter().cloned());
        last = frame;
    }
    assert_eq!(last["head"]["name"], "watched");
    assert_eq!(
        (last["hosts"][0]["runs"].clone(), last["head"]["finished"].clone()),
        (3.into(), 3.into())
    );
    assert_eq!(finished.len(), 3);
    for run in &finished {
        assert!((900.0..1100.0).contains(&run["rate_ops_s"].as_f64().unwrap()), "{run}");
        assert!(run["p99_us"].as_f64().unwrap() > 0.0, "{run}");
        assert_eq!(run["hit_ratio"], 1.0, "{run}");
    }
    let (_, _, err) = watched.end();
    let lines: Vec<Value> =
        err.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let ended = lines.iter().filter(|line| line["event"] == "ended").count();
    assert_eq!(ended, 3, "the same stream: {err}");
}

#[test]
fn a_study_on_hosts_shows_what_each_does() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let on = ["run", "study.toml", "--out=out.sqlite", "--on=local", "--live"];
    let mut command = place.command(&on);
    command.env("XDG_CACHE_HOME", place.file("cache"));
    let watched = Watched::of(command);
    let (mut windows, mut runs, mut last) = (0, Vec::new(), Value::Null);
    for frame in watched.frames() {
        let host = &frame["hosts"][0];
        assert!(host.is_null() || host["name"] == "local", "{frame}");
        if host["progress"]["warming_up"] == false {
            windows += 1;
            let now = watched.get("/metrics");
            assert!(now.contains("kvmeter_planned_runs{host=\"local\"} 3"), "{now}");
        }
        runs.extend(frame["runs"].as_array().unwrap().iter().cloned());
        last = frame;
    }
    assert!(windows > 0, "{last}");
    assert_eq!((runs.len(), &runs[0]["host"]), (3, &"local".into()), "{runs:?}");
    let host = &last["hosts"][0];
    assert_eq!((&host["runs"], &host["finished"]), (&3.into(), &3.into()), "{last}");
    // On a busy machine a run may be invalid, and the page says so.
    assert!(host["ended"].as_str().unwrap().starts_with("done"), "{last}");
    let (code, _, err) = watched.end();
    assert_eq!(code == 0, last["head"]["ended"] == "done", "{err}");
}

#[test]
fn a_search_shows_each_trial() {
    let place = Place::new();
    let args = [
        "search",
        "null",
        "--slo=p99<1s",
        "--records=1000",
        "--time=600ms",
        "--trials=4",
        "--to=3k",
        "--threads=1",
        "--probes=off",
        "--live",
    ];
    let watched = Watched::start(&place, &args);
    let last = watched.frames().last().unwrap();
    assert!(last["head"]["finished"].as_u64().unwrap() >= 1, "{last}");
    watched.end();
}

#[test]
fn a_stop_and_a_kill_end_the_page_too() {
    let place = Place::new();
    let watched = Watched::start(&place, &[BENCH, &["--time=60s", "--live"]].concat());
    let mut frames = watched.frames();
    frames.find(|frame| !frame["hosts"][0]["progress"].is_null()).unwrap();
    let id = |watched: &Watched| Pid::from_raw(watched.child.id() as i32).unwrap();
    kill_process(id(&watched), Signal::INT).unwrap();
    let ended = frames.last().unwrap()["head"]["ended"].as_str().unwrap().to_owned();
    assert!(ended.contains("stopped"), "{ended}");
    assert_eq!(watched.end().0, 1);

    let watched = Watched::start(&place, &[BENCH, &["--time=60s", "--live"]].concat());
    let mut frames = watched.frames();
    frames.next().unwrap();
    kill_process(id(&watched), Signal::KILL).unwrap();
    // The stream breaks, and nothing is left behind.
    frames.for_each(drop);
    watched.end();
}

#[test]
fn what_cannot_be_served_is_refused_before_anything_runs() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("--live={}", taken.local_addr().unwrap());
    let token = place.write("token", "0123456789abcdef");
    let token = format!("--live-token-file={}", token.display());
    let bench = ["bench", "null", "--records=10", "--time=50ms", "--probes=off"];
    let run = ["run", "study.toml", "--out=out.sqlite"];
    let search = ["search", "null", "--slo=p99<1s", "--records=10", "--time=50ms", "--trials=4"];
    for (verb, flags, why) in [
        (&bench[..], &[taken.as_str()][..], "another program listens there"),
        (&run, &[taken.as_str()], "another program listens there"),
        (&search, &[taken.as_str()], "another program listens there"),
        (&bench, &["--live=0.0.0.0:0"], "--live-token-file"),
        (&bench, &["--live=10.255.255.1:9"], "--live-token-file"),
        (&bench, &["--live=somewhere"], "not an address"),
        (&bench, &["--live=99999"], "ports end at 65535"),
        (&bench, &["--live", token.as_str()], "chmod 600"),
        (&bench, &[token.as_str()], "--live"),
        (&run, &[taken.as_str(), "--on=local"], "another program listens there"),
    ] {
        let result = place.run(&[verb, flags].concat());
        assert_eq!(result.code, 2, "{flags:?}: {}", result.err);
        assert!(result.err.contains(why), "{flags:?}: {}", result.err);
        assert!(!result.err.contains("0123456789abcdef"), "{}", result.err);
        assert_eq!(result.out, "", "nothing was run");
    }
    // A dry run serves nothing.
    for verb in [&bench[..], &run] {
        let result = place.run(&[verb, &[taken.as_str(), "--dry-run"]].concat());
        assert_eq!(result.code, 0, "{}", result.err);
        assert!(!result.err.contains("http://"), "{}", result.err);
    }
}
