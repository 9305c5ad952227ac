//! Power limits of packages: what is written, what is refused, and what the energy counters show.

use std::fs;
use std::time::{Duration, Instant};

use host::knob::ProofOutcome;

use super::common::Recorded;
use super::{assert_as_before, plan, recorded, refused, snapshot, turn, while_running, xeon};

const ZONES: &str = "/sys/class/powercap";

fn zone(number: u32, file: &str) -> String {
    format!("{ZONES}/intel-rapl:{number}/{file}")
}

fn limits(machine: &Recorded) -> [u64; 2] {
    [0, 1].map(|n| machine.root.number(&zone(n, "constraint_0_power_limit_uw")).unwrap())
}

#[test]
fn each_package_gets_the_limit_and_its_own_back() {
    let (machine, folder) = xeon();
    let before = snapshot(&machine);
    for (level, expected) in
        [("60W", 60_000_000), ("70.125w", 70_125_000), ("max", 85_000_000), ("0.5W", 500_000)]
    {
        let turned = turn(&machine, folder.path(), &[("power_cap", level)]);
        assert_eq!(limits(&machine), [expected; 2], "{level}");
        assert_eq!(machine.root.value(&zone(1, "enabled")).unwrap(), "1", "{level}");
        drop(turned);
        assert_as_before(&machine, &before);
    }
    let knob = host::knob::Knobs::find("power_cap").unwrap();
    assert_eq!(knob.read(&machine.root).unwrap(), "85W@0 80W@1");
    let form = "WATTS such as 80W, in steps of 0.125W up to 85W";
    assert_eq!(knob.levels(&machine.root).unwrap(), ["max", form]);
    let of_dram = plan(&machine.root, &[("power_cap", "60W")]);
    assert!(of_dram.writes().all(|(_, _, write)| !write.place.path.contains(":0:0")));
}

#[test]
fn a_limit_that_the_processor_cannot_hold_is_refused() {
    let (machine, _folder) = xeon();
    let refused_here =
        |level: &str, words: &[&str]| refused(&machine.root, &[("power_cap", level)], words);
    refused_here("90W", &["package 0 is made for 85W"]);
    refused_here("60.1W", &["steps of 0.125 W"]);
    for level in ["60", "W", "-5W", "0W", "infW", "NaNW", "1e9W", "low"] {
        refused_here(level, &["power_cap"]);
    }
    // The processor may not say its most.
    for package in [0, 1] {
        machine.write(&zone(package, "constraint_0_max_power_uw"), "0\n");
    }
    plan(&machine.root, &[("power_cap", "200W")]);
    refused_here("max", &["does not say its most"]);
    let (epyc, _folder) = recorded("epyc");
    refused(&epyc.root, &[("power_cap", "60W")], &["powercap does not exist", "bare metal"]);
    epyc.add("epyc.energy");
    refused(&epyc.root, &[("power_cap", "60W")], &["only counts energy"]);
}

#[test]
fn a_limit_is_proven_by_the_energy_that_is_drawn_under_load() {
    let (machine, folder) = xeon();
    let outcome = |watts: f64, wraps: bool| {
        let mut turned = turn(&machine, folder.path(), &[("power_cap", "60W")]);
        let start = Instant::now();
        // The second package's counter may begin again.
        let range = 262_143_328_850u64;
        let counting = |_| {
            let microjoules = (start.elapsed().as_secs_f64() * watts * 1e6) as u64;
            for (package, from) in [(0, 0), (1, if wraps { range - 9_000_000 } else { 0 })] {
                let path = machine.path(&zone(package, "energy_uj"));
                let new = path.with_extension("new");
                fs::write(&new, ((from + microjoules) % range).to_string()).unwrap();
                fs::rename(new, &path).unwrap();
            }
        };
        while_running(counting, || turned.proofs()[0].outcome.clone())
    };
    for package in [0, 1] {
        machine.write(&zone(package, "constraint_0_time_window_us"), "200000\n");
    }
    // The machine that runs this test may be late with a count: then the power is another one.
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        match outcome(58.0, true) {
            ProofOutcome::Proven(seen) => {
                assert!(seen.contains("package 0 drew ") && seen.contains("limit 60 W"), "{seen}");
                assert!(seen.contains("package 1 drew "), "{seen}");
                break;
            }
            other => assert!(Instant::now() < limit, "{other:?}"),
        }
    }
    match outcome(600.0, false) {
        ProofOutcome::Refuted(seen) => assert!(seen.contains("package 0 drew "), "{seen}"),
        other => panic!("{other:?}"),
    }
    match outcome(0.0, false) {
        ProofOutcome::Unverified(why) => {
            assert!(why.starts_with("package 0 drew 0 W under load, limit 60 W: too little"));
        }
        other => panic!("{other:?}"),
    }
    machine.write(&zone(1, "constraint_0_time_window_us"), "27983872\n");
    match outcome(58.0, false) {
        ProofOutcome::Unverified(why) => assert!(why.contains("27.98 s, longer than"), "{why}"),
        other => panic!("{other:?}"),
    }
}
