//! Replays against memcached and Redis as Debian packages them.

use std::collections::HashMap;
use std::sync::Arc;

use drive::{LoadPlan, Network, PhaseOutcome};
use model::{ConnectionConfig, Pacing};
use server::launch::{
    LaunchError, LaunchRequest, Launched, Launcher, LocalLauncher, ServerSettings, program,
};
use store::StoreUrl;

use crate::file::{Lines, Packed, write};
use crate::{changed, max, plan, run_phase};

/// A server that ends with this value.
struct Server {
    scheme: &'static str,
    launched: Launched,
}

impl Server {
    /// None, with a message, where the program is not installed.
    fn start(scheme: &'static str) -> Option<Server> {
        let settings = ServerSettings::default().with("memory", "256MiB");
        match LocalLauncher.start(&LaunchRequest::new(program(scheme).unwrap(), settings)) {
            Ok(launched) => Some(Server { scheme, launched }),
            Err(error @ LaunchError::NotInstalled { .. }) => {
                eprintln!("NOT TESTED: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn connect(&self, options: &str) -> Arc<Network> {
        let url = format!("{}://{}{options}", self.scheme, self.launched.addresses[0]);
        let url: StoreUrl = url.parse().unwrap();
        Arc::new(Network::connect(url.remote().unwrap().unwrap()).unwrap())
    }
}

/// What a server counted, by its own names.
fn counted(network: &Network) -> HashMap<String, u64> {
    let says = network.server_statistics().unwrap().remove(0);
    says.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}

fn check(outcome: &PhaseOutcome, lines: &Lines) {
    assert_eq!(outcome.failures, []);
    assert_eq!(outcome.operations, lines.requests());
    assert_eq!(outcome.never_sent, 0);
    assert_eq!((outcome.hits, outcome.misses), (lines.hits, lines.misses));
    assert_eq!(outcome.verified, lines.hits);
    assert_eq!(outcome.replayed.as_ref().unwrap().requests, lines.requests());
}

#[test]
fn servers_get_every_request_once_in_key_order() {
    let lines = Lines::mixed(4, 600);
    let writes = lines.by_key.values().flatten().filter(|asked| asked.0 == 'w').count() as u64;
    let deletes = lines.by_key.values().flatten().filter(|asked| asked.0 == 'd').count() as u64;
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, &lines.text, &Packed::Gzip);
    for (scheme, options) in [
        ("memcached", ""),
        ("memcached", "?protocol=meta"),
        ("memcached", "?protocol=binary"),
        ("redis", ""),
    ] {
        for (threads, depth, pacing) in
            [(1, 1, max()), (3, 16, max()), (2, 1000, Pacing::Recorded { speed: 8.0 })]
        {
            // A connection a thread: the order of a key on its way is that in which it was sent.
            let Some(server) = Server::start(scheme) else { return };
            let network = server.connect(options);
            let before = counted(&network);
            let connections = ConnectionConfig { count: 1, depth, ..ConnectionConfig::default() };
            let plan = LoadPlan { connections, ..plan(&file, threads, pacing) };
            let outcome = run_phase(network.clone(), &plan).unwrap();
            check(&outcome, &lines);
            let after = counted(&network);
            let grew = |name: &str| after[name] - before[name];
            if scheme == "memcached" {
                assert_eq!((grew("get_hits"), grew("get_misses")), (lines.hits, lines.misses));
                assert_eq!(grew("cmd_set"), writes);
                assert_eq!(grew("delete_hits") + grew("delete_misses"), deletes);
            } else {
                let hits = (grew("keyspace_hits"), grew("keyspace_misses"));
                assert_eq!(hits, (lines.hits, lines.misses));
            }
        }
    }
}

#[test]
fn several_connections_lose_nothing_and_values_expire() {
    let mut lines = Lines::new();
    for second in 0..4 {
        for key in 0..50 {
            let operation = if second == 0 { "set" } else { "get" };
            // Two seconds of the trace are one of the clock.
            lines.push(second * 4, &format!("short:{key}"), 50, operation, 2);
            lines.push(second * 4, &format!("long:{key}"), 50, operation, 4_000_000);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, &lines.text, &Packed::Zstd);
    for scheme in ["memcached", "redis"] {
        let Some(server) = Server::start(scheme) else { return };
        let network = server.connect("");
        let connections = ConnectionConfig { count: 4, depth: 4, ..ConnectionConfig::default() };
        let plan = LoadPlan { connections, ..plan(&file, 2, Pacing::Recorded { speed: 2.0 }) };
        let outcome = run_phase(network.clone(), &plan).unwrap();
        assert_eq!(outcome.failures, [], "{scheme}");
        assert_eq!(outcome.operations, 400);
        // The first reads are two seconds after the writes.
        assert_eq!((outcome.hits, outcome.misses), (150, 150), "{scheme}");
    }
}

#[test]
fn misses_are_refilled_if_enabled() {
    let mut lines = Lines::new();
    for second in 0..3 {
        for key in 0..100 {
            lines.push(second, &format!("key:{key}"), 300, "get", 0);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, &lines.text, &Packed::Plain);
    let Some(server) = Server::start("memcached") else { return };
    let network = server.connect("");
    // One request after the other: no key is asked for again before it was set.
    let connections = ConnectionConfig { count: 1, depth: 1, ..ConnectionConfig::default() };
    let plan =
        LoadPlan { connections, ..changed(plan(&file, 1, max()), |replay| replay.refill = true) };
    let outcome = run_phase(network.clone(), &plan).unwrap();
    assert_eq!(outcome.failures, []);
    assert_eq!((outcome.hits, outcome.misses, outcome.refills), (200, 100, 100));
}
