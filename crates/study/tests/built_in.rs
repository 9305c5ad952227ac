//! Plans of the built-in studies on recorded machines: each has runs at every scale, whatever the
//! machine lacks.
#![allow(clippy::unwrap_used)]

#[path = "../../host/tests/common/mod.rs"]
mod common;

use std::collections::BTreeSet;

use common::Recorded;
use store::ADAPTERS;
use study::{BUILT_IN, Plan, StudyText};

/// Every recorded machine with what else is recorded of it.
fn machines() -> Vec<(&'static str, Recorded)> {
    let xeon_4114 = Recorded::named("xeon-4114").and("xeon-4114.knobs").and("xeon-4114.energy");
    let epyc = Recorded::named("epyc").and("epyc.energy");
    let plain = ["vm", "xeon", "arm", "neoverse"].map(|name| (name, Recorded::named(name)));
    plain.into_iter().chain([("xeon-4114", xeon_4114), ("epyc", epyc)]).collect()
}

/// A study and its scales, the study as it is first.
fn scaled(name: &str) -> Vec<StudyText> {
    let whole = StudyText::open(name).unwrap();
    let scales = whole.spec().unwrap().scale;
    let smaller = scales.keys().map(|scale| {
        let mut source = whole.clone();
        source.scale(scale.get_ref()).unwrap();
        source
    });
    [whole.clone()].into_iter().chain(smaller).collect()
}

fn plan(source: &StudyText, machine: &Recorded) -> Plan {
    let data = machine.path("data");
    Plan::of(source, &data, &machine.root).unwrap_or_else(|error| panic!("{error}"))
}

/// The values of a setting in a plan's runs.
fn values(plan: &Plan, setting: &str) -> BTreeSet<String> {
    plan.steps().filter_map(|(_, step)| step.settings.get(setting).cloned()).collect()
}

fn texts<const N: usize>(all: [&str; N]) -> BTreeSet<String> {
    all.map(str::to_owned).into()
}

#[test]
fn every_built_in_study_has_runs_on_every_machine_at_every_scale() {
    for study in BUILT_IN {
        let sources = scaled(study.name);
        let stores = sources[0].spec().unwrap().store;
        let here =
            |name: &str| ADAPTERS.iter().any(|it| it.scheme == name && it.available().is_ok());
        if !stores.keys().any(|name| here(name.get_ref())) {
            eprintln!("skipped: {} has no store that is here", study.name);
            continue;
        }
        for (name, machine) in &machines() {
            for source in &sources {
                let plan = plan(source, machine);
                assert!(plan.steps().count() > 0, "{} on {name}", study.name);
            }
        }
    }
}

/// What the studies of the papers are built for: questions, checks, figures, published numbers
/// and a size for a laptop that says what it does.
#[test]
fn studies_of_papers_are_complete() {
    let machine = Recorded::named("vm");
    for name in ["arm-vs-x86", "memcached-power", "direct-cache-access"] {
        let sources = scaled(name);
        let whole = plan(&sources[0], &machine);
        let design = &whole.design;
        assert!(!design.questions.is_empty() && !design.figures.is_empty(), "{name}");
        assert!(!design.checks.is_empty(), "{name}");
        let published = design.published.as_ref().unwrap();
        assert!(!published.source.is_empty() && !published.findings.is_empty(), "{name}");
        // Engine and study agree on names; ids are also unique, so that they can be spoken of.
        let mut ids = BTreeSet::new();
        assert!(design.figures.iter().all(|figure| ids.insert(figure.id.clone())), "{name}");
        assert!(published.findings.iter().all(|one| ids.insert(one.id.clone())), "{name}");
        let small = sources.iter().map(|source| plan(source, &machine));
        let small = small.filter_map(|plan| plan.design.scale).find(|scale| scale.name == "small");
        assert!(small.unwrap().note.len() > 50, "{name}");
    }
}

#[test]
fn memcached_power_has_every_combination_of_the_thesis() {
    let machine = Recorded::named("xeon-4114").and("xeon-4114.knobs");
    let plan = plan(&StudyText::open("memcached-power").unwrap(), &machine);
    assert_eq!(values(&plan, "factor.smt"), texts(["on", "off"]));
    assert_eq!(values(&plan, "factor.idle"), texts(["all", "C1E", "C1", "none"]));
    assert_eq!(values(&plan, "factor.rate"), texts(["10k", "100k", "200k"]));
    let of = |experiment: &str| {
        let usual = plan.steps().filter(|(_, step)| !plan.is_spare(step));
        usual.filter(|(_, step)| step.settings["factor.experiment"] == experiment).count()
    };
    // Two by four by three, nine times; with timing in the server and without, nine times.
    assert_eq!((of("graphs"), of("timing")), (216, 18));
    // Half of the hardware threads, of which there are half without SMT, on one of two sockets.
    let at = |smt: &str, setting: &str| -> BTreeSet<String> {
        let settings = plan.steps().map(|(_, step)| &step.settings);
        let at = settings.filter(|of| of.get("factor.smt").is_some_and(|own| own == smt));
        at.map(|of| of[setting].clone()).collect()
    };
    for (smt, threads, cpus) in [("on", "4", "0,2,4,6"), ("off", "2", "0,2")] {
        assert_eq!(at(smt, "server.threads"), texts([threads]));
        assert_eq!(at(smt, "server.cpus"), texts([cpus]));
    }
    assert_eq!(values(&plan, "server.arguments"), texts([r#"["-o", "hash_algorithm=jenkins"]"#]));
    assert_eq!(values(&plan, "factor.timing"), texts(["off", "tap"]));
}

#[test]
fn unavailable_levels_are_skipped_with_a_reason() {
    let plan = plan(&StudyText::open("memcached-power").unwrap(), &Recorded::named("vm"));
    assert_eq!(values(&plan, "factor.smt"), texts(["as found"]));
    assert_eq!(values(&plan, "factor.rate"), texts(["10k", "100k", "200k"]));
    let of = |factor: &str| {
        let skipped = plan.design.skipped.iter();
        skipped.filter(|one| one.levels.contains_key(factor)).count()
    };
    assert_eq!((of("smt"), of("idle")), (2, 4), "{:?}", plan.design.skipped);
}

#[test]
fn direct_cache_access_is_complete_at_every_scale() {
    let machine = Recorded::named("vm");
    for source in scaled("direct-cache-access") {
        let plan = plan(&source, &machine);
        assert_eq!(values(&plan, "store"), texts(["memcached", "micro", "simulate"]));
        let workloads = texts(["data-caching", "dca", "flow", "latency", "pingpong", "stream"]);
        assert_eq!(values(&plan, "workload"), workloads);
        assert_eq!(values(&plan, "factor.ddio"), texts(["as found"]));
        assert_eq!(values(&plan, "factor.ddio_ways"), texts(["as found"]));
        // A factor is in the cells of what it sets, and in no others.
        for (_, step) in plan.steps() {
            let has = |factor: &str| step.settings.contains_key(&format!("factor.{factor}"));
            let of = |workload: &str| step.settings["workload"] == workload;
            assert_eq!((has("payload"), has("stride")), (of("pingpong"), of("flow")));
            assert_eq!(
                (has("size"), has("ddio_ways")),
                (of("data-caching"), of("data-caching") || of("flow"))
            );
            assert_eq!((has("rate"), has("policy")), (of("data-caching"), of("dca")));
            let moves_data = of("data-caching") || of("flow") || of("pingpong");
            assert_eq!((has("ddio"), has("working_set")), (moves_data, of("latency")));
        }
        // Policies that control are simulated where something changes, ways where they matter.
        let traffic_under = |policy: &str| -> BTreeSet<String> {
            let steps = plan.steps().map(|(_, step)| &step.settings);
            let of = steps.filter(|of| of.get("factor.policy").is_some_and(|own| own == policy));
            of.map(|settings| settings["factor.traffic"].clone()).collect()
        };
        assert_eq!(traffic_under("iat"), texts(["co-run", "phases"]));
        assert_eq!(traffic_under("phase-and-rate"), texts(["caching-bursts", "co-run", "phases"]));
        assert_eq!(traffic_under("ways:4"), texts(["co-run", "flow", "phases"]));
        assert_eq!(traffic_under("ways:8"), texts(["caching-bursts", "co-run", "flow", "phases"]));
    }
    // Payloads, strides, reuse distances, validation; pairs and rates; and what is simulated; three times.
    let mut small = StudyText::open("direct-cache-access").unwrap();
    small.scale("small").unwrap();
    let plan = plan(&small, &machine);
    let usual = || plan.steps().filter(|(_, step)| !plan.is_spare(step));
    let of = |store: &str| usual().filter(|(_, s)| s.settings["store"] == store).count();
    let stacks = values(&plan, "factor.stack").len();
    assert_eq!(of("micro"), 3 * (stacks * (4 + 3 * 2) + 3 + 1));
    assert_eq!(
        (of("memcached"), of("simulate")),
        (3 * 2 * 4, 3 * (2 * (3 + 3 + 3) + 2 * 3 + 2 * 4 + 2 * 7))
    );
}

#[test]
fn direct_cache_access_varies_ways_and_the_size_of_the_data() {
    let machine = Recorded::named("xeon-4114").and("xeon-4114.knobs");
    for cpu in [0, 1] {
        machine.write(&format!("/dev/cpu/{cpu}/msr"), "");
        std::fs::write(machine.path(&format!("/dev/cpu/{cpu}/msr")), [0; 0x1000]).unwrap();
    }
    for port in ["0000:17:00.0", "0000:85:02.0"] {
        machine.write(&format!("/sys/bus/pci/devices/{port}/config"), "");
        let config = machine.path(&format!("/sys/bus/pci/devices/{port}/config"));
        std::fs::write(config, [0; 0x1000]).unwrap();
    }
    let plan = plan(&StudyText::open("direct-cache-access").unwrap(), &machine);
    assert_eq!(values(&plan, "factor.size"), texts(["1GB", "10GB", "30GB"]));
    assert_eq!(values(&plan, "knob.ddio_ways"), texts(["2", "4", "8"]));
    let cells = |of: &[(&str, &str)]| -> usize {
        let holds = |settings: &model::RunSettings| {
            of.iter().all(|(name, level)| settings.get(*name).is_some_and(|own| own == level))
        };
        let steps = plan.steps().filter(|(_, step)| !plan.is_spare(step) && holds(&step.settings));
        steps.count() / 9
    };
    let caching = ("workload", "data-caching");
    // Seven rates for one pair and four, with it and without; two more numbers of ways and two
    // more sizes at three rates.
    assert_eq!(cells(&[caching, ("factor.ddio_ways", "2"), ("factor.size", "10GB")]), 7 * 2 * 2);
    assert_eq!(cells(&[caching, ("factor.ddio_ways", "8"), ("factor.ddio", "on")]), 7);
    assert_eq!(cells(&[caching, ("factor.ddio_ways", "8"), ("factor.ddio", "off")]), 0);
    assert_eq!(cells(&[caching, ("factor.size", "30GB")]), 3 * 2);
    assert_eq!(cells(&[("workload", "pingpong"), ("factor.ddio_ways", "8")]), 0);
}

#[test]
fn arm_vs_x86_follows_the_machine() {
    // Eight hardware threads, as the thesis' S1.
    let machine = Recorded::named("xeon-4114").and("xeon-4114.knobs");
    let plan = plan(&StudyText::open("arm-vs-x86").unwrap(), &machine);
    let spill = |experiment: &str, setting: &str| -> BTreeSet<String> {
        let steps = plan.steps().map(|(_, step)| &step.settings);
        let at = steps.filter(|settings| {
            settings["store"] == "spill" && settings["factor.experiment"] == experiment
        });
        at.filter_map(|settings| settings.get(setting).cloned()).collect()
    };
    assert_eq!(spill("one-thread", "threads"), texts(["1"]));
    assert_eq!(spill("one-thread", "workload.records"), texts(["3M"]));
    assert_eq!(spill("full-load", "threads"), texts(["64"]));
    assert_eq!(spill("full-load", "factor.smt"), texts(["on", "off"]));
    assert_eq!(spill("full-load", "store.tables"), texts(["32"]));
    assert_eq!(spill("tail", "threads"), texts(["8", "16", "32", "64"]));
    assert!(spill("block-cache", "threads").is_empty());
    let workloads = ["load", "kreon-a", "kreon-b", "kreon-c", "kreon-d", "kreon-e", "kreon-f"];
    assert_eq!(spill("full-load", "workload"), texts(workloads));
    assert_eq!(spill("tail", "workload"), texts(["load", "kreon-c"]));
    assert_eq!(values(&plan, "micro.threads"), texts(["1", "4", "64"]));
    // Load A and Load E are runs of their own.
    let loads = |part: &str| {
        let steps = plan.steps().filter(|(_, step)| !plan.is_spare(step));
        let settings = steps.map(|(_, step)| &step.settings);
        let of_part = settings.filter(|of| of.get("factor.part").is_some_and(|own| own == part));
        of_part.filter(|of| of["store"] == "spill" && of["workload"] == "load").count()
    };
    // With one thread, and under full load with SMT and without; five times.
    assert_eq!((loads("A-D"), loads("E")), (15, 15));
}

fn has_rocksdb() -> bool {
    store::ADAPTERS.iter().any(|adapter| adapter.scheme == "rocksdb" && adapter.available().is_ok())
}

#[test]
fn arm_vs_x86_gives_rocksdb_the_sizes_of_the_thesis() {
    if !has_rocksdb() {
        eprintln!("skipped: RocksDB is not here");
        return;
    }
    let machine = Recorded::named("xeon-4114").and("xeon-4114.knobs");
    let plan = plan(&StudyText::open("arm-vs-x86").unwrap(), &machine);
    let steps = plan.steps().map(|(_, step)| &step.settings);
    let rocksdb = steps.filter(|settings| {
        settings["store"] == "rocksdb" && settings["factor.experiment"] == "tail"
    });
    let sizes: BTreeSet<(String, String, String)> = rocksdb
        .map(|settings| {
            let of = |name: &str| settings[name].clone();
            (of("workload.records"), of("store.databases"), of("store.cache"))
        })
        .collect();
    // Of its S1: 5 M records, 4 databases, 2 GB.
    assert_eq!(sizes, [("5M".to_owned(), "4".to_owned(), "2GiB".to_owned())].into());
}

#[test]
fn unavailable_stores_are_skipped_with_a_reason() {
    if has_rocksdb() {
        eprintln!("skipped: RocksDB is here");
        return;
    }
    let plan = plan(&StudyText::open("quickstart").unwrap(), &Recorded::named("vm"));
    assert_eq!(values(&plan, "store"), texts(["spill"]));
    let [skipped] = plan.design.skipped.as_slice() else { panic!("{:?}", plan.design.skipped) };
    assert_eq!(skipped.levels["store"], "rocksdb");
    assert!(skipped.why.contains("install it"), "{}", skipped.why);
}
