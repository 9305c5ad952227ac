//! Real servers under every workload: all is answered, verified and counted.

use std::time::Duration;

use drive::{FailureKind, PhaseKind};
use model::{Op, StopCondition};
use workload::{Mix, Popularity, WorkloadSpec};

use crate::support::*;

#[test]
fn every_preset_is_answered_and_verified_on_every_protocol() {
    every_protocol(|protocol, url| {
        let network = network(url);
        for preset in WorkloadSpec::presets() {
            let spec = spec(preset.name, 500);
            if spec.mix.contains(Op::Scan) || spec.is_load() {
                continue;
            }
            let workload = made(&spec);
            let mut key = Vec::new();
            workload.key(0, &mut key);
            if network.remote().protocol.check_key(&key).is_err() {
                assert_eq!(protocol, "text", "{}: only text carries no binary keys", preset.name);
                continue;
            }
            network.flush().unwrap();
            load(&network, &workload);
            let mut plan = mix(2, 2, 4);
            plan.shape.until = operations(2000);
            let outcome = run_phase(&network, &workload, &plan).unwrap();
            let name = format!("{} over {protocol}", preset.name);
            assert_eq!(outcome.operations, 2000, "{name}");
            assert_eq!(outcome.failures, [], "{name}");
            let expected = 2000.0 * (1.0 - spec.hit_ratio);
            // Five standard deviations of a binomial distribution; none where all keys exist.
            let most = 5.0 * (expected * spec.hit_ratio).sqrt();
            let misses = outcome.misses as f64;
            assert!((misses - expected).abs() <= most, "{name}: {misses} misses, not {expected}");
            assert!(outcome.verified > 0, "{name}");
            assert_eq!(outcome.verified, outcome.hits, "{name}: every hit is verified");
            let histograms: u64 = outcome.service.iter().map(|(_, h)| h.len()).sum();
            assert_eq!(histograms, 2000, "{name}: every operation has its latency");
            let series: u64 = outcome.series.iter().map(|point| point.operations).sum();
            assert_eq!(series, 2000, "{name}: every operation is in the series");
            assert_eq!(outcome.reconnected, 0, "{name}");
        }
    });
}

#[test]
fn the_stream_does_not_depend_on_threads_connections_or_depth() {
    let Some(server) = Real::memcached(&["-m", "64"]) else { return };
    let network = network(&format!("memcached://{}?clear=flush", server.address()));
    for preset in ["ycsb-a", "ycsb-d"] {
        let workload = workload(preset, 500);
        let run = |threads, count, depth| {
            network.flush().unwrap();
            load(&network, &workload);
            let mut plan = mix(threads, count, depth);
            // Not a multiple of the block: the last one is cut.
            plan.shape.until = operations(3007);
            let outcome = run_phase(&network, &workload, &plan).unwrap();
            (outcome.fingerprint, outcome.counts, outcome.drawn)
        };
        let alone = run(1, 1, 1);
        assert_eq!(alone.1.iter().map(|(_, count)| count).sum::<u64>(), 3007);
        for (threads, count, depth) in [(1, 3, 7), (2, 1, 16), (3, 5, 2)] {
            assert_eq!(alone, run(threads, count, depth), "{preset}: {threads} {count} {depth}");
        }
    }
}

#[test]
fn server_counters_match_the_outcome() {
    let Some(server) = Real::memcached(&["-m", "64"]) else { return };
    for protocol in ["meta", "text", "binary"] {
        let url = format!("memcached://{}?clear=flush&protocol={protocol}", server.address());
        let network = network(&url);
        network.flush().unwrap();
        let mut spec = spec("ycsb-a", 300);
        spec.mix = Mix::parse("read=0.5,update=0.3,rmw=0.1,delete=0.1").unwrap();
        let workload = made(&spec);
        load(&network, &workload);
        let before = (statistic(&network, "cmd_get"), statistic(&network, "cmd_set"));
        let deletes = statistic(&network, "delete_hits") + statistic(&network, "delete_misses");
        let mut plan = mix(2, 3, 4);
        plan.shape.until = operations(5000);
        let outcome = run_phase(&network, &workload, &plan).unwrap();
        assert_eq!(outcome.failures, [], "{protocol}: deletes make misses, not failures");
        assert!(outcome.misses > 0);
        let [reads, updates, twos, deleted] =
            [Op::Read, Op::Update, Op::ReadModifyWrite, Op::Delete].map(|op| outcome.counts[op]);
        assert_eq!(statistic(&network, "cmd_get") - before.0, reads + twos, "{protocol}");
        assert_eq!(statistic(&network, "cmd_set") - before.1, updates + twos, "{protocol}");
        let after = statistic(&network, "delete_hits") + statistic(&network, "delete_misses");
        assert_eq!(after - deletes, deleted, "{protocol}");
        assert_eq!(outcome.changes.deleted, deleted);
        assert_eq!(outcome.hits + outcome.misses, reads + twos, "{protocol}");
    }
}

#[test]
fn multi_gets_work_with_one_server_and_three() {
    let servers: Vec<Real> = (0..3).filter_map(|_| Real::memcached(&["-m", "64"])).collect();
    if servers.len() < 3 {
        return;
    }
    let mut spec = spec("ycsb-b", 1000);
    spec.multi_get = 8;
    let workload = made(&spec);
    for count in [1, 3] {
        for protocol in ["meta", "text", "binary"] {
            let names: Vec<String> = servers[..count].iter().map(Real::address).collect();
            let names = names.join(",");
            let network = network(&format!("memcached://{names}?clear=flush&protocol={protocol}"));
            network.flush().unwrap();
            load(&network, &workload);
            let items = network.server_statistics().unwrap();
            let holds: Vec<u64> = items
                .iter()
                .map(|server| {
                    let (_, text) = server.iter().find(|(name, _)| name == "curr_items").unwrap();
                    text.parse().unwrap()
                })
                .collect();
            assert_eq!(holds.iter().sum::<u64>(), 1000);
            assert!(holds.iter().all(|held| *held > 1000 / count as u64 / 2), "{holds:?}");
            let mut plan = mix(2, 2, 3);
            plan.shape.until = operations(1000);
            let outcome = run_phase(&network, &workload, &plan).unwrap();
            let name = format!("{protocol} over {count}");
            assert_eq!(outcome.failures, [], "{name}");
            assert_eq!(outcome.operations, 1000, "{name}");
            assert_eq!(outcome.hits, 8 * outcome.counts[Op::Read], "{name}");
            assert_eq!((outcome.verified, outcome.misses), (outcome.hits, 0), "{name}");
            let latencies: u64 = outcome.service.iter().map(|(_, h)| h.len()).sum();
            assert_eq!(latencies, 1000, "{name}: one latency an operation");
        }
    }
}

/// Within five standard deviations of a binomial share.
fn is_share(share: f64, hits: u64, all: u64) -> bool {
    let sigma = (share * (1.0 - share) / all as f64).sqrt();
    (hits as f64 / all as f64 - share).abs() <= 5.0 * sigma + 1e-9
}

#[test]
fn the_hit_ratio_is_that_of_the_workload() {
    every_protocol(|protocol, url| {
        let network = network(url);
        for keys in [1, 4] {
            network.flush().unwrap();
            let mut spec = spec("ycsb-c", 500);
            spec.hit_ratio = 0.8;
            spec.multi_get = keys;
            let workload = made(&spec);
            load(&network, &workload);
            let mut plan = mix(1, 2, 4);
            plan.shape.until = operations(5000);
            let outcome = run_phase(&network, &workload, &plan).unwrap();
            assert_eq!(outcome.failures, [], "{protocol}");
            let all = outcome.hits + outcome.misses;
            assert_eq!(all, 5000 * u64::from(keys));
            assert!(is_share(0.8, outcome.hits, all), "{protocol}: {} of {all}", outcome.hits);
        }
    });
}

#[test]
fn misses_refill_a_cold_cache() {
    let Some(server) = Real::memcached(&["-m", "64"]) else { return };
    let network = network(&format!("memcached://{}?clear=flush", server.address()));
    let mut spec = spec("ycsb-c", 200);
    spec.popularity = Popularity::parse("uniform").unwrap();
    spec.refill = true;
    let workload = made(&spec);
    let mut plan = mix(2, 2, 4);
    plan.shape.until = operations(10_000);
    let cold = run_phase(&network, &workload, &plan).unwrap();
    assert_eq!(cold.failures, []);
    // A record may be missed by all that read it before the first of them has set it.
    let slots = 2 * 2 * 4;
    assert!((200..=200 + 200 * slots).contains(&cold.misses), "{}", cold.misses);
    assert_eq!(cold.refills, cold.misses);
    assert_eq!(cold.operations, 10_000, "refills are no operations of the workload");
    let sets = statistic(&network, "cmd_set");
    assert_eq!(sets, cold.refills);
    let warm = run_phase(&network, &workload, &plan).unwrap();
    assert_eq!((warm.hits, warm.misses, warm.refills), (10_000, 0, 0));
    assert_eq!(warm.verified, 10_000, "what was set again is right");
}

#[test]
fn absent_records_are_not_refilled() {
    let Some(server) = Real::memcached(&["-m", "64"]) else { return };
    let network = network(&format!("memcached://{}?clear=flush", server.address()));
    let mut spec = spec("ycsb-c", 200);
    spec.refill = true;
    spec.hit_ratio = 0.5;
    let workload = made(&spec);
    load(&network, &workload);
    let mut plan = mix(1, 2, 4);
    plan.shape.until = operations(4000);
    let outcome = run_phase(&network, &workload, &plan).unwrap();
    assert_eq!(outcome.failures, []);
    assert_eq!(outcome.refills, 0);
    assert!(is_share(0.5, outcome.hits, 4000), "{}", outcome.hits);
}

#[test]
fn reads_find_acknowledged_inserts_of_all_threads() {
    // Redis does not evict: a read before its insert would be a failure.
    let Some(server) = Real::redis(&[]) else { return };
    let network = network(&format!("redis://{}?clear=flush", server.address()));
    let mut spec = spec("ycsb-d", 100);
    spec.mix = Mix::parse("read=0.5,insert=0.5").unwrap();
    let workload = made(&spec);
    for (threads, count, depth) in [(1, 8, 8), (4, 4, 4)] {
        network.flush().unwrap();
        load(&network, &workload);
        let mut plan = mix(threads, count, depth);
        plan.shape.until = operations(20_000);
        let outcome = run_phase(&network, &workload, &plan).unwrap();
        assert_eq!(outcome.failures, [], "{threads} threads");
        assert_eq!(outcome.changes.inserted, outcome.counts[Op::Insert]);
        assert!(outcome.counts[Op::Insert] > 9000);
        assert_eq!(outcome.misses, 0);
    }
}

#[test]
fn reads_of_dropped_inserts_are_not_failures() {
    let Some(server) = Real::redis(&[]) else { return };
    let network = network(&format!("redis://{}?clear=flush", server.address()));
    let mut spec = spec("ycsb-d", 100);
    spec.mix = Mix::parse("read=0.5,insert=0.5").unwrap();
    let workload = made(&spec);
    load(&network, &workload);
    // More than one connection at a time can answer, and hardly any queue.
    let mut plan = mix(1, 1, 1);
    plan.shape.pacing = open(2e6);
    plan.connections.queue = 3;
    plan.shape.warm_up = Some(Duration::from_millis(50));
    plan.shape.warm_up_rate = Some(3e6);
    plan.shape.until = time(100);
    let outcome = run_phase(&network, &workload, &plan).unwrap();
    assert!(outcome.dropped > 0, "the queue is short");
    assert!(outcome.never_sent >= outcome.dropped);
    assert_eq!(outcome.failures, [], "what was never inserted need not be there");
    assert!(!outcome.invalid_because.is_empty());
    assert!(outcome.warnings.join(" ").contains("dropped"), "{:?}", outcome.warnings);
}

#[test]
fn evicted_records_are_misses_not_failures() {
    let Some(server) = Real::memcached(&["-m", "2", "-t", "1"]) else { return };
    let network = network(&format!("memcached://{}", server.address()));
    let workload = workload("ycsb-b", 20_000);
    load(&network, &workload);
    let mut plan = mix(1, 4, 8);
    plan.shape.until = operations(20_000);
    let outcome = run_phase(&network, &workload, &plan).unwrap();
    assert!(statistic(&network, "evictions") > 0, "it is too small for all records");
    assert_eq!(outcome.failures, []);
    assert!(outcome.misses > 0 && outcome.hits > 0);
    assert_eq!(outcome.invalid_because, [] as [String; 0]);
}

#[test]
fn out_of_memory_is_a_failure_of_its_own() {
    let Some(server) = Real::redis(&["--maxmemory", "3mb", "--maxmemory-policy", "noeviction"])
    else {
        return;
    };
    let network = network(&format!("redis://{}", server.address()));
    let workload = workload("ycsb-a", 20_000);
    let loading = run_phase(&network, &workload, &plan(PhaseKind::Load, 1, 2, 8)).unwrap();
    assert_eq!(loading.failures.len(), 1);
    let failure = &loading.failures[0];
    assert_eq!(failure.kind, FailureKind::OutOfMemory);
    assert!(failure.first.contains(&server.address()), "{}", failure.first);
    assert!(failure.first.contains("OOM"), "{}", failure.first);
    let why = loading.gave_up.expect("nothing but failures came in the end");
    assert!(why.contains("in a row"), "{why}");
    assert!(loading.changes.inserted < 20_000 && loading.changes.inserted > 0);
    assert!(loading.changes.refused >= 1000);
    assert_eq!(loading.operations, loading.changes.inserted + failure.count);
    // Reads that are answered between them keep a run going.
    let mut plan = mix(1, 2, 8);
    plan.shape.until = operations(5000);
    let outcome = run_phase(&network, &workload, &plan).unwrap();
    assert_eq!(outcome.operations, 5000);
    let kinds: Vec<FailureKind> = outcome.failures.iter().map(|f| f.kind).collect();
    assert_eq!(kinds, [FailureKind::Missing, FailureKind::OutOfMemory]);
}

#[test]
fn sockets_and_ipv6_are_supported() {
    let all = [
        Real::memcached_on_a_socket().map(|s| (format!("memcached://{}", s.socket.display()), s)),
        Real::redis(&[]).map(|s| (format!("redis://{}", s.socket.display()), s)),
        Real::memcached(&[]).map(|s| (format!("memcached://[::1]:{}", s.port), s)),
        Real::redis(&[]).map(|s| (format!("redis://[::1]:{}", s.port), s)),
    ];
    for (url, _server) in all.into_iter().flatten() {
        with_each_engine(|engine| {
            let network = network(&url);
            let workload = workload("ycsb-a", 200);
            load(&network, &workload);
            for pacing in [plan(PhaseKind::Mix, 1, 1, 1).shape.pacing, open(5000.0)] {
                let mut plan = mix(2, 2, 4);
                plan.connections.engine = Some(engine);
                plan.shape.pacing = pacing;
                plan.shape.until = StopCondition { operations: Some(1000), time: None };
                let outcome = run_phase(&network, &workload, &plan).unwrap();
                assert_eq!(outcome.failures, [], "{url}");
                assert!(outcome.verified > 300, "{url}");
            }
        });
    }
}

#[test]
fn scans_are_refused_before_the_phase() {
    let Some(server) = Real::memcached(&[]) else { return };
    let network = network(&format!("memcached://{}", server.address()));
    let error = run_phase(&network, &workload("ycsb-e", 100), &mix(1, 1, 1)).unwrap_err();
    assert!(error.to_string().contains("scans"), "{error}");
}
