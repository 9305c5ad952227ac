//! What programs, prefetchers and bursts do, against what they must; and when direct cache access loses.

#![allow(clippy::unwrap_used)]

use cachesim::describe::text::DescriptionText;
use cachesim::{Policy, SimOutcome, SimulatedMachine, Traffic, simulate};

/// The machine of the thesis, with `from` of its description as `to`.
fn machine(from: &str, to: &str) -> SimulatedMachine {
    let text = include_str!("../src/machines/xeon-e5-2697-v2.toml");
    assert!(text.contains(from), "{from}");
    let source = DescriptionText { origin: "m.toml".into(), text: text.replacen(from, to, 1) };
    SimulatedMachine::parse(&source).unwrap()
}

/// One core that reads 100,000 packets a second, with more of `[workers]`.
fn reading(machine: &SimulatedMachine, more: &str, policy: &str) -> SimOutcome {
    let text = format!(
        "name = \"x\"\n[port]\npacket = 1024\nrate = \"100k\"\n[queues]\nreceive = 256\n\
         [workers]\ncores = 1\ncycles = 100\n{more}\n[workers.read]\n\
         [run]\nwarm-up = \"30ms\"\nmeasure = \"30ms\"\n"
    );
    let traffic = Traffic::parse(&DescriptionText { origin: "t.toml".into(), text }, machine);
    simulate(machine, &traffic.unwrap(), Policy::parse(policy).unwrap()).unwrap()
}

fn service_ns(outcome: &SimOutcome) -> f64 {
    outcome.service_us.unwrap() * 1e3
}

#[test]
fn look_ups_of_a_program_wait_for_each_other() {
    let machine = machine("", "");
    let with = |program: &str| service_ns(&reading(&machine, program, "on"));
    let none = with("");
    let program = |memory: &str| {
        (with(&format!("program = {{ memory = \"{memory}\", lookups = 50 }}")) - none) / 50.0
    };
    // One line stays with the core.
    assert!(program("64B") < 0.1, "{}", program("64B"));
    // All of 2 MiB is in the shared cache, 15 ns away, and at most an eighth in the private one.
    assert!((15.0 * 7.0 / 8.0..15.0).contains(&program("2MiB")), "{}", program("2MiB"));
    // Of 2 GiB nearly nothing is in any: 15 ns and 80 ns.
    assert!((program("2GiB") / 95.0 - 1.0).abs() < 0.05, "{}", program("2GiB"));
}

#[test]
fn prefetchers_hide_memory_along_a_packet() {
    let service = |overlap: &str| {
        let keys = format!("overlap = 3.0\nstream-overlap = {overlap}");
        service_ns(&reading(&machine("overlap = 3.0", &keys), "", "off"))
    };
    // The first of 16 lines is none that follows another.
    let saved = service("3.0") - service("12.0");
    let expected = 15.0 * 95.0 * (1.0 / 3.0 - 1.0 / 12.0);
    assert!((saved / expected - 1.0).abs() < 0.03, "{saved} {expected}");
}

#[test]
fn energy_is_lines_times_their_costs() {
    let usual = machine("", "");
    let outcome = reading(&usual, "", "off");
    let energy = outcome.energy.as_ref().unwrap();
    assert_eq!(energy.kind, "modelled");
    // 16 lines of a packet and its completion's quarter go to memory and come back from it.
    let lines = 2.0 * 16.25;
    assert!((energy.dram_lines_per_packet - lines).abs() < 0.3, "{energy:?}");
    let nj = energy.dram_lines_per_packet * 15.6 + energy.llc_lines_per_packet * 0.8;
    assert!((energy.nj_per_packet - nj).abs() < 1e-9, "{energy:?}");
    let delay = outcome.latency_us.as_ref().unwrap().mean;
    assert!((energy.energy_delay_nj_us / (nj * delay) - 1.0).abs() < 1e-9, "{energy:?}");
    let on = reading(&usual, "", "on").energy.unwrap();
    assert!(on.nj_per_packet < energy.nj_per_packet / 10.0, "all of it stays in the cache: {on:?}");
    let costs = "[energy]\nllc-nanojoules = 0.8\ndram-nanojoules = 15.6\n";
    assert!(reading(&machine(costs, ""), "", "on").energy.is_none(), "nothing is made up");
}

/// Mean latency and packets a second of the client whose program needs the cache.
fn bursts(changes: &[(&str, &str)], policy: &str) -> (f64, f64) {
    let machine = machine("", "");
    let mut traffic = Traffic::open("data-caching-bursts", &machine).unwrap();
    traffic.set("measure", "60ms").unwrap();
    for (key, value) in changes {
        traffic.set(key, value).unwrap();
    }
    let outcome = simulate(&machine, &traffic, Policy::parse(policy).unwrap()).unwrap();
    (outcome.latency_us.unwrap().mean, outcome.throughput_packets_s)
}

#[test]
fn direct_cache_access_loses_after_bursts_if_the_program_needs_the_cache() {
    let rate = ("rate", "2M");
    let both = |changes: &[(&str, &str)]| (bursts(changes, "on"), bursts(changes, "off"));
    let (on, off) = both(&[rate]);
    assert!(on.0 > 1.2 * off.0 && on.1 < 0.95 * off.1, "{on:?} {off:?}");
    // Each condition is needed.
    let (on, off) = both(&[rate, ("burst", "2M")]);
    assert!(on.0 < off.0 && on.1 > 0.99 * off.1, "no bursts: {on:?} {off:?}");
    let (on, off) = both(&[rate, ("program", "4MiB")]);
    assert!(on.0 < off.0 && on.1 > 0.99 * off.1, "a small program: {on:?} {off:?}");
    let (on, off) = both(&[rate, ("descriptors", "1024")]);
    assert!(on.0 < off.0 && on.1 > 0.99 * off.1, "short queues: {on:?} {off:?}");
}

#[test]
fn the_proposal_follows_phases() {
    let machine = machine("", "");
    let traffic = Traffic::open("phases", &machine).unwrap();
    let outcome = simulate(&machine, &traffic, Policy::PhaseAndRate).unwrap();
    let ways = |mask: &str| u32::from_str_radix(&mask[2..], 16).unwrap().count_ones();
    let settings: Vec<u32> = outcome.settings.iter().map(|one| ways(&one.card_ways)).collect();
    // Three periods of 20 ms: off while the store rests, on with two ways as requests come.
    let turned_off = settings.windows(2).filter(|pair| pair[0] > 0 && pair[1] == 0).count();
    let turned_on = settings.windows(2).filter(|pair| pair[0] == 0 && pair[1] == 2).count();
    assert_eq!((turned_off, turned_on), (3, 3), "{settings:?}");
    let on = simulate(&machine, &traffic, Policy::On).unwrap();
    let share = outcome.throughput_packets_s / on.throughput_packets_s;
    assert!((share - 1.0).abs() < 0.01, "nothing is lost by it: {share}");
}
