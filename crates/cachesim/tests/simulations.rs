//! Whole simulations: invariants, and the effect of each parameter.

#![allow(clippy::unwrap_used)]

use cachesim::describe::text::DescriptionText;
use cachesim::{Policy, SimOutcome, SimulatedMachine, Traffic, simulate};

fn machine() -> SimulatedMachine {
    SimulatedMachine::open("xeon-gold-6140").unwrap()
}

/// Forwarding with some keys changed and a short window.
fn forward(changes: &[(&str, &str)], policy: &str) -> SimOutcome {
    let machine = machine();
    let mut traffic = Traffic::open("forward", &machine).unwrap();
    for (key, value) in changes {
        traffic.set(key, value).unwrap();
    }
    traffic.run.warm_up = Some("3ms".parse().unwrap());
    traffic.run.measure = Some("3ms".parse().unwrap());
    simulate(&machine, &traffic, Policy::parse(policy).unwrap()).unwrap()
}

fn hits(outcome: &SimOutcome) -> f64 {
    outcome.pcie_write_hit_percent.unwrap()
}

#[test]
fn a_small_ring_never_misses_and_touches_no_memory() {
    // One send queue does not carry all that the wire does.
    let outcome = forward(&[("descriptors", "128"), ("rate", "3M")], "on");
    assert!(hits(&outcome) > 99.5, "{outcome:?}");
    assert!(outcome.memory.read_bytes_s < 1e8, "{:?}", outcome.memory);
    assert_eq!(outcome.drops.share, 0.0);
    assert_eq!(outcome.lost_buffers, 0);
    let latency = outcome.latency_us.unwrap();
    assert!(latency.p50 <= latency.p99 && latency.p99 <= latency.max);
    assert!(latency.p50 > 1.0, "two trips over the bus: {}", latency.p50);
}

#[test]
fn more_descriptors_fewer_ways_and_larger_packets_are_worse() {
    let base = hits(&forward(&[("descriptors", "2048")], "on"));
    assert!(hits(&forward(&[("descriptors", "4096")], "on")) < base - 10.0);
    assert!(hits(&forward(&[("descriptors", "2048")], "ways:4")) > base + 10.0);
    assert!(hits(&forward(&[("descriptors", "2048"), ("packet", "512")], "on")) > base + 10.0);
    assert!(hits(&forward(&[("descriptors", "2048"), ("cores", "4")], "on")) < base - 10.0);
}

#[test]
fn without_direct_cache_access_every_byte_goes_to_memory() {
    let outcome = forward(&[("descriptors", "256")], "off");
    let received = outcome.received_bits_s / 8.0;
    assert_eq!(hits(&outcome), 0.0);
    assert!(outcome.memory.device_writes_bytes_s >= received * 0.99, "{outcome:?}");
    // Of 24 lines and two quarters of one with descriptors, the core has its first with the one
    // that its prefetcher brings, and wrote the descriptors.
    let expected_hits = 100.0 * 2.5 / 24.5;
    assert!((outcome.pcie_read_hit_percent.unwrap() - expected_hits).abs() < 0.2, "{outcome:?}");
}

#[test]
fn a_slow_worker_drops_and_queues() {
    let quick = forward(&[("descriptors", "512"), ("rate", "3M")], "on");
    let slow = forward(&[("descriptors", "512"), ("rate", "5M"), ("cycles", "1800")], "on");
    assert!(slow.drops.share > 0.5 && slow.drops.no_descriptor > 0, "{:?}", slow.drops);
    assert!(slow.worker_busy > 0.98);
    let p50 = |outcome: &SimOutcome| outcome.latency_us.as_ref().unwrap().p50;
    assert!(p50(&slow) > 20.0 * p50(&quick), "the ring is a queue: {}", p50(&slow));
    let share = slow.throughput_packets_s / slow.offered_packets_s + slow.drops.share;
    assert!((share - 1.0).abs() < 0.02, "what is not dropped is sent: {share}");
}

#[test]
fn send_queues_carry_more_when_packets_are_posted_together() {
    let mut machine = machine();
    // With its bytes, some 290 ns for a packet that is posted alone: 6.9 million of two queues.
    machine.card.send_fetch = Some("160ns".parse().unwrap());
    let done = |cores: &str, rate: &str| {
        let mut traffic = Traffic::open("forward", &machine).unwrap();
        for (key, value) in [("descriptors", "256"), ("cores", cores), ("rate", rate)] {
            traffic.set(key, value).unwrap();
        }
        traffic.run.warm_up = Some("6ms".parse().unwrap());
        traffic.run.measure = Some("3ms".parse().unwrap());
        let outcome = simulate(&machine, &traffic, Policy::Ways(2)).unwrap();
        (outcome.throughput_packets_s / outcome.offered_packets_s, outcome.latency_us.unwrap().p50)
    };
    let (share, us) = done("1", "8.15M");
    assert!(share < 0.95 && us > 150.0, "as fast as one goes, and its rings fill: {share} {us} us");
    let (share, us) = done("4", "8.15M");
    assert!(share > 0.995 && us < 5.0, "four share the wire: {share} {us} us");
    let (share, us) = done("2", "6M");
    assert!(share > 0.995 && us < 5.0, "so do two: {share} {us} us");
    // They wait in the send rings, and full rings are posted to many at a time.
    let (share, us) = done("2", "7.8M");
    assert!(share > 0.99 && us > 150.0, "{share} {us} us");
}

#[test]
fn the_same_seed_gives_the_same_numbers_and_another_seed_others() {
    let once = serde_json::to_string(&forward(&[], "on")).unwrap();
    assert_eq!(once, serde_json::to_string(&forward(&[], "on")).unwrap());
    assert_ne!(once, serde_json::to_string(&forward(&[("seed", "2")], "on")).unwrap());
}

#[test]
fn no_buffer_is_lost_in_any_traffic() {
    let machine = machine();
    for name in Traffic::built_in() {
        let mut traffic = Traffic::open(name, &machine).unwrap();
        traffic.run.warm_up = Some("1ms".parse().unwrap());
        traffic.run.measure = Some("1ms".parse().unwrap());
        for policy in ["on", "off", "phase-and-rate", "iat", "yield-search"] {
            let policy = Policy::parse(policy).unwrap();
            let outcome = simulate(&machine, &traffic, policy).unwrap();
            assert_eq!(outcome.lost_buffers, 0, "{name}");
            assert!(outcome.throughput_packets_s > 0.0, "{name}");
            assert_eq!(outcome.neighbours.len(), traffic.neighbours.len());
        }
    }
}

/// Two neighbours, one of which has a single way for a working set that needs more: it misses,
/// whichever is described first.
#[test]
fn every_neighbour_has_its_own_ways() {
    let machine = machine();
    let misses = |first: u32, second: u32| {
        let mut traffic = Traffic::open("co-run", &machine).unwrap();
        traffic.neighbours.push(traffic.neighbours[0].clone());
        traffic.port.rate = Some(toml::Spanned::new(0..0, "10k".parse().unwrap()));
        for (neighbour, ways) in traffic.neighbours.iter_mut().zip([first, second]) {
            neighbour.cores = toml::Spanned::new(0..0, 1);
            neighbour.working_set = toml::Spanned::new(0..0, "8MiB".parse().unwrap());
            neighbour.ways = Some(toml::Spanned::new(0..0, ways));
        }
        traffic.run.warm_up = Some("8ms".parse().unwrap());
        traffic.run.measure = Some("1ms".parse().unwrap());
        let outcome = simulate(&machine, &traffic, Policy::On).unwrap();
        let of = |i: usize| outcome.neighbours[i].group.llc_miss_percent.unwrap();
        (of(0), of(1))
    };
    let (confined, at_ease) = misses(0x1, 0x7fe);
    assert!(confined > 50.0 && at_ease < 15.0, "{confined} {at_ease}");
    let (at_ease, confined) = misses(0x7fe, 0x1);
    assert!(confined > 50.0 && at_ease < 15.0, "{confined} {at_ease}");
}

#[test]
fn errors_show_their_place_in_a_description() {
    let machine = machine();
    let text = include_str!("../src/machines/xeon-gold-6140.toml");
    let broken = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let source = DescriptionText { origin: "m.toml".into(), text: text.replacen(from, to, 1) };
        SimulatedMachine::parse(&source).unwrap_err().to_string()
    };
    let says = broken("sets = 2048", "sets = 2000");
    assert!(says.starts_with("`shared.sets` must be a power of two"), "{says}");
    assert!(says.contains("--> m.toml:11:8\n"), "{says}");
    let says = broken("[dca]\nways = 2", "[dca]\nways = 12");
    assert!(says.contains("`dca.ways` must be at most 11"), "{says}");
    let says = broken("inclusive = false", "inclusiv = false");
    assert!(says.contains("did you mean `inclusive`?"), "{says}");

    let traffic = |text: &str| {
        let source = DescriptionText { origin: "t.toml".into(), text: text.into() };
        Traffic::parse(&source, &machine).unwrap_err().to_string()
    };
    let base = "name = \"x\"\n[port]\npacket = 1500\n[queues]\nreceive = 4096\n[workers]\ncores = ";
    let says = traffic(&format!("{base}19"));
    assert!(says.starts_with("`workers.cores`") && says.contains("--> t.toml:7:9\n"), "{says}");
    let says = traffic(&format!("{base}1\nways = 0x800"));
    assert!(says.starts_with("`ways` must be a mask of 0x1 to 0x7ff"), "{says}");
    assert!(says.contains("--> t.toml:8:8\n"), "{says}");
    let says = traffic(&format!("{base}18").replace("4096", "8192"));
    assert!(says.contains("`pool.buffers` must be at least 152064"), "{says}");
    let says = traffic(&format!("{base}1").replace("1500", "4000"));
    assert!(says.contains("`port.packet` must be 1 to 2048 B"), "{says}");
    assert!(Policy::parse("iatt").unwrap_err().to_string().contains("did you mean `iat`?"));
    assert!(
        SimulatedMachine::open("xeon-gold").unwrap_err().to_string().contains("xeon-gold-6140")
    );
}

#[test]
fn published_series_validate() {
    let names = ["ways", "descriptors"].map(str::to_owned);
    let validation = cachesim::validate::validate_series(&names).unwrap();
    assert_eq!(validation.points.len(), 11);
    assert!(validation.series.iter().all(|series| series.seen && series.valid), "{validation:?}");
    assert!(validation.valid, "{validation:?}");
}
