//! A real Prometheus scrapes the metrics, and each query of the dashboard finds values there.

// Helpers of tests panic as tests do.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use live::{
    LiveConfig, LiveServer, OpLatencies, PresentReading, RunEnd, RunEvent, RunProgress, Title,
};
use serde_json::Value;

const DASHBOARD: &str = include_str!("../../../dashboards/grafana.json");
const LIMIT: Duration = Duration::from_secs(60);

struct Prometheus {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    fn scraping(target: &str) -> Prometheus {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("prometheus.yml");
        let config = format!(
            "global: {{ scrape_interval: 1s }}\nscrape_configs:\n  - job_name: kvmeter\n    \
             static_configs:\n      - targets: [\"{target}\"]\n"
        );
        std::fs::write(&file, config).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={free}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("no Prometheus here: `make test` installs it");
        Prometheus { child, address: free.to_string(), _folder: folder }
    }

    /// The answer of its interface; none while it starts.
    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    fn query(&self, query: &str) -> Vec<Value> {
        let coded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = self.get(&format!("/api/v1/query?query={coded}")).unwrap();
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }

    fn number(&self, query: &str) -> f64 {
        let found = self.query(query);
        assert_eq!(found.len(), 1, "{query}: {found:?}");
        found[0]["value"][1].as_str().unwrap().parse().unwrap()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reading(signal: &str, value: f64, unit: &str) -> PresentReading {
    PresentReading {
        signal: signal.into(),
        value: Some(value),
        unit: unit.into(),
        source: "a test".into(),
        unavailable: None,
        modelled: false,
    }
}

/// A tenth of a second: 100 reads of 2 ms, one of 200 ms.
fn progress(number: u64) -> RunEvent {
    RunEvent::Progress(Box::new(RunProgress {
        stage: "measures".into(),
        offered_ops_s: Some(1010.0),
        left_s: Some(30),
        done: Some(0.5),
        errors: number,
        hits: 90 * number,
        misses: 10 * number,
        readings: vec![
            reading("cpu.kvmeter", 1.5, "CPUs"),
            reading("machine.busy", 0.5, "share"),
            reading("power.package", 55.0, "W"),
            reading("ipc", 2.5, ""),
        ],
        recorded: vec![OpLatencies::of("read", [(2_000_000, 100), (200_000_000, 1)].into_iter())],
        ..RunProgress::default()
    }))
}

fn begins() -> RunEvent {
    RunEvent::Begins {
        run: 1,
        runs: 2,
        label: "null ycsb-c".into(),
        phase: "measure".into(),
        settings: [("store".to_owned(), "null".to_owned())].into(),
    }
}

fn start() -> LiveServer {
    let title = Title { command: "run".into(), name: "a study".into(), version: "1".into() };
    let listen = "127.0.0.1:0".parse().unwrap();
    LiveServer::start(LiveConfig { listen, token: None, title, style: "" }).unwrap()
}

fn target(server: &LiveServer) -> String {
    server.url().trim_start_matches("http://").trim_end_matches('/').to_owned()
}

/// Every query of the dashboard, with its title.
fn queries() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let notes = dashboard["annotations"]["list"].as_array().unwrap();
    let mut all = Vec::new();
    for panel in panels.iter().chain(notes) {
        let title = panel["title"].as_str().or(panel["name"].as_str()).unwrap().to_owned();
        let targets = panel["targets"].as_array().cloned().unwrap_or_else(|| vec![panel.clone()]);
        for target in targets {
            let query = target["expr"].as_str().unwrap();
            let query = query.replace("$__rate_interval", "8s").replace("$instance", ".*");
            assert!(!query.contains('$'), "{query}");
            all.push((title.clone(), query));
        }
    }
    all
}

#[test]
fn a_prometheus_scrapes_it_and_the_dashboard_finds_its_values() {
    let server = start();
    let feed = server.feed();
    let prometheus = Prometheus::scraping(&target(&server));
    feed.event(begins());
    let begun = Instant::now();
    let mut number = 0;
    let scraped = |prometheus: &Prometheus| {
        let query = "/api/v1/query?query=count_over_time(kvmeter_operations_total[1m])";
        let answer = prometheus.get(query)?;
        answer["data"]["result"][0]["value"][1].as_str()?.parse::<f64>().ok()
    };
    let mut has_ended = false;
    while scraped(&prometheus).is_none_or(|count| count < 8.0) {
        number += 1;
        feed.event(progress(number));
        // Between two scrapes, so that the end is seen as a change.
        if !has_ended && scraped(&prometheus).is_some_and(|count| count >= 4.0) {
            has_ended = true;
            feed.event(RunEvent::Ended(Box::new(RunEnd { valid: true, ..RunEnd::default() })));
            feed.event(begins());
            number = 0;
        }
        std::thread::sleep(Duration::from_millis(100));
        assert!(begun.elapsed() < LIMIT, "{:?}", prometheus.get("/api/v1/targets"));
    }
    let targets = prometheus.get("/api/v1/targets").unwrap();
    let target = &targets["data"]["activeTargets"][0];
    assert_eq!((target["health"].clone(), target["lastError"].clone()), ("up".into(), "".into()));
    for (title, query) in queries() {
        let found = prometheus.query(&query);
        assert!(!found.is_empty(), "{title}: nothing for {query}");
    }
    // The values are those that were fed.
    let rate = prometheus.number("sum(rate(kvmeter_operations_total[8s]))");
    assert!((500.0..1300.0).contains(&rate), "{rate}");
    let quantile = |share: f64| {
        prometheus.number(&format!(
            "histogram_quantile({share}, sum by (le) (rate(kvmeter_request_duration_seconds_bucket[8s])))"
        ))
    };
    assert!((0.0018..=0.0032).contains(&quantile(0.5)), "{}", quantile(0.5));
    assert!((0.18..=0.32).contains(&quantile(0.995)), "{}", quantile(0.995));
    assert_eq!(prometheus.number("kvmeter_power_watts{signal=\"power.package\"}"), 55.0);
    assert_eq!(prometheus.number("sum(kvmeter_runs_total)"), 1.0);
    let kinds = prometheus.get("/api/v1/metadata?metric=kvmeter_request_duration_seconds").unwrap();
    let kind = &kinds["data"]["kvmeter_request_duration_seconds"][0];
    assert_eq!(kind["type"], "histogram", "{kinds}");
    server.end("done");
}

#[test]
fn the_names_follow_the_conventions() {
    let server = start();
    server.feed().event(begins());
    server.feed().event(progress(1));
    std::thread::sleep(Duration::from_millis(300));
    let mut stream = TcpStream::connect(target(&server)).unwrap();
    let head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(text.contains("kvmeter_operations_total{"), "{text}");
    // The linter knows Prometheus's own format alone, which names counters with their ending.
    let mut plain = String::new();
    for line in text.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT")) {
        let words: Vec<&str> = line.split(' ').collect();
        let counter = format!("# TYPE {} counter", words.get(2).unwrap_or(&""));
        match words.as_slice() {
            ["#", kind @ ("HELP" | "TYPE"), name, ..] if text.contains(&counter) => {
                let rest = line.splitn(4, ' ').nth(3).unwrap();
                plain.push_str(&format!("# {kind} {name}_total {rest}\n"));
            }
            ["#", "TYPE", name, "info"] => plain.push_str(&format!("# TYPE {name}_info gauge\n")),
            ["#", "HELP", "kvmeter_run", ..] => {
                plain.push_str(&line.replace("kvmeter_run ", "kvmeter_run_info "))
            }
            _ => plain.push_str(&format!("{line}\n")),
        }
    }
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("no promtool here: `make test` installs it");
    promtool.stdin.take().unwrap().write_all(plain.as_bytes()).unwrap();
    let linted = promtool.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&linted.stderr).into_owned();
    assert!(linted.status.success() && words.trim().is_empty(), "{words}\n{plain}");
    server.end("done");
}
