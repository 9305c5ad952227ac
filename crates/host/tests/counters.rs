//! What is counted on which CPU, and what becomes of what the kernel counts.

#[cfg(test)]
mod common;

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use common::Recorded;
use common::kernel::{Fake, World};
use common::readings::{find, near, value, why};
use host::perf::{
    CounterPlan, EventGroup, EventRole, PerfCount, PerfKernel, PerfQuantity, PerfSession,
    PerfTarget, RunningKernel, encode, plan,
};
use host::probe::COUNTING;
use host::{Context, CounterChoice, CounterScope, Root, RunWatch};
use model::{Reading, Scope, Unavailable};

const WINDOW: Duration = Duration::from_secs(1);

fn counting(scope: CounterScope, events: &[&str]) -> Context {
    let events = events.iter().map(|event| (*event).to_owned()).collect();
    Context { counters: CounterChoice { scope, events }, ..Context::default() }
}

/// One window of a probe on a recorded machine whose kernel is a stand-in.
#[track_caller]
fn window(
    name: &str,
    root: &Root,
    context: &Context,
    fake: &Fake,
) -> Result<Vec<Reading>, Unavailable> {
    let over = COUNTING.iter().find(|(of, _)| *of == name);
    let (_, over) = over.unwrap_or_else(|| panic!("no counting probe is called {name}"));
    let mut probe = over(root, context, &|| fake.boxed())?;
    probe.start();
    Ok(probe.stop(WINDOW))
}

/// What a Skylake core gains in a window, by the texts of its events.
fn skylake() -> World {
    World {
        gains: vec![
            ("cpu/event=0xc0/u", 3_000_000),
            ("cpu/event=0xc0/k", 1_000_000),
            ("cpu/event=0xc0/", 4_000_000),
            ("event=0x3c", 2_000_000),
            ("event=0xc4", 800_000),
            ("event=0xc5", 8_000),
            ("event=0x51", 40_000),
            ("event=0x83", 20_000),
            ("event=0x24", 10_000),
            ("umask=0x4f", 6_000),
            ("umask=0x41", 3_000),
            ("event=0x08", 700),
            ("event=0x49", 300),
            ("event=0x85", 100),
        ],
        ..World::default()
    }
}

#[test]
fn a_xeon_counts_its_threads_in_five_groups() {
    let xeon = Recorded::named("xeon-4114");
    let fake = Fake::new(skylake());
    let readings = window("counters", &xeon.root, &Context::default(), &fake).unwrap();
    let world = fake.0.lock().unwrap();
    assert_eq!(
        world.groups(PerfTarget::Thread(4711)),
        [
            vec!["cpu/event=0xc0/u", "cpu/event=0xc0/k", "cpu/event=0x3c/"],
            vec!["cpu/event=0xc0/", "cpu/event=0xc4/", "cpu/event=0xc5/"],
            vec!["cpu/event=0xc0/", "cpu/event=0x51,umask=0x01/", "cpu/event=0x83,umask=0x02/"],
            vec![
                "cpu/event=0xc0/",
                "cpu/event=0x24,umask=0x3f/",
                "cpu/event=0x2e,umask=0x4f/",
                "cpu/event=0x2e,umask=0x41/",
            ],
            vec![
                "cpu/event=0xc0/",
                "cpu/event=0x08,umask=0x0e/",
                "cpu/event=0x49,umask=0x0e/",
                "cpu/event=0x85,umask=0x0e/",
            ],
        ]
    );
    assert_eq!(world.groups(PerfTarget::Thread(4712)).len(), 5);
    assert!(world.opened.iter().all(|(event, ..)| event.inherit && event.encoded.kind == 4));
    assert_eq!(world.config("cpu/event=0x2e,umask=0x41/"), [0x412e, 0, 0]);
    // Two threads, each with the gains above.
    near(value(&readings, "instructions.user"), 6e6);
    near(value(&readings, "instructions.kernel"), 2e6);
    near(value(&readings, "instructions"), 8e6);
    near(value(&readings, "ipc"), 2.0);
    near(value(&readings, "branch_miss_ratio"), 0.01);
    near(value(&readings, "llc.miss_ratio"), 0.5);
    near(value(&readings, "dtlb.misses"), 2000.0);
    near(value(&readings, "mpki.l1d"), 10.0);
    near(value(&readings, "mpki.dtlb"), 0.25);
    near(value(&readings, "mpki.llc"), 0.75);
    near(value(&readings, "counters.running_ratio"), 1.0);
    let llc = find(&readings, "llc.misses");
    assert_eq!(llc.source, "perf_event_open: cpu/event=0x2e,umask=0x41/ (LONGEST_LAT_CACHE.MISS)");
    assert_eq!(llc.scope, Scope::Process);
    assert!(find(&readings, "dtlb.misses").source.contains(" + cpu/event=0x49"));
}

#[test]
fn multiplexed_counters_are_scaled_and_the_share_is_shown() {
    let xeon = Recorded::named("xeon-4114");
    let fake = Fake::new(World { running: Some(0.25), ..skylake() });
    let readings = window("counters", &xeon.root, &Context::default(), &fake).unwrap();
    near(value(&readings, "counters.running_ratio"), 0.25);
    near(value(&readings, "branches"), 1_600_000.0);
    near(value(&readings, "ipc"), 2.0);
    // A counter that never came round is no zero.
    let fake = Fake::new(World { running: Some(0.0), ..skylake() });
    let readings = window("counters", &xeon.root, &Context::default(), &fake).unwrap();
    assert!(why(&readings, "branches").0.contains("never got a counter"));
    assert!(why(&readings, "counters.running_ratio").0.contains("no event"));
}

/// As some hypervisors have it: the events open, and nothing counts.
#[test]
fn a_zero_count_of_a_permanent_event_is_unavailable() {
    let xeon = Recorded::named("xeon-4114");
    let still = World { gains: vec![], ..World::default() };
    let fake = Fake::new(still);
    let readings = window("counters", &xeon.root, &Context::default(), &fake).unwrap();
    // What may be zero elsewhere is told by the instructions beside it.
    for signal in ["cycles", "instructions.user", "branches", "l1d.misses", "llc.misses", "ipc"] {
        let (reason, remedy) = why(&readings, signal);
        assert!(reason.contains("did not move: this machine does not count"), "{signal}: {reason}");
        assert!(remedy.contains("bare metal"), "{signal}: {remedy}");
    }
    let fake = Fake::new(World::default());
    let readings = window("dram", &xeon.root, &Context::default(), &fake).unwrap();
    for signal in ["dram.read", "dram.written"] {
        assert!(why(&readings, signal).0.contains("did not move"), "{signal}");
    }
    let tsc = World { gains: vec![("event=0x00", 2_200_000_000)], ..World::default() };
    let readings = window("frequency", &xeon.root, &Context::default(), &Fake::new(tsc)).unwrap();
    assert!(why(&readings, "residency.awake").0.contains("did not move"));
    // Nothing of a kind may have happened where the counters count, and where no thread ran.
    let quiet =
        World { gains: vec![("event=0xc0", 4_000), ("event=0x3c", 9_000)], ..World::default() };
    let readings = window("counters", &xeon.root, &Context::default(), &Fake::new(quiet)).unwrap();
    near(value(&readings, "branch_misses"), 0.0);
    near(value(&readings, "mpki.llc"), 0.0);
}

#[test]
fn a_target_without_a_counter_is_extrapolated() {
    struct Two;
    impl PerfKernel for Two {
        fn open(
            &mut self,
            _: &host::perf::PerfEvent,
            target: PerfTarget,
            _: Option<host::perf::PerfHandle>,
        ) -> Result<host::perf::PerfHandle, host::perf::Errno> {
            let PerfTarget::Thread(tid) = target else { panic!() };
            Ok(host::perf::PerfHandle(tid as usize))
        }
        fn switch(&mut self, _: host::perf::PerfHandle, _: bool) -> Result<(), host::perf::Errno> {
            Ok(())
        }
        fn read(&mut self, handle: host::perf::PerfHandle) -> Result<PerfCount, host::perf::Errno> {
            // Zero at first; then thread 1 has counted for half its time, thread 2 never.
            static LOOKS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
            let first = LOOKS.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2;
            Ok(match (first, handle.0) {
                (true, _) => PerfCount::default(),
                (_, 1) => PerfCount { value: 100, enabled_ns: 1000, running_ns: 500 },
                _ => PerfCount { value: 0, enabled_ns: 1000, running_ns: 0 },
            })
        }
    }
    let xeon = Recorded::named("xeon-4114");
    let events = vec![encode(&xeon.root, "cpu", "event=0xc0").unwrap()];
    let targets = vec![PerfTarget::Thread(1), PerfTarget::Thread(2)];
    let groups = [EventGroup { events, targets, inherit: false }];
    let mut session = PerfSession::open(Box::new(Two), &groups).unwrap();
    session.start();
    let tally = session.stop().remove(0);
    let counted = tally.events[0].as_ref().unwrap();
    near(counted.value, 400.0);
    near(counted.running, 0.25);
    assert!(tally.by_target[1].1[0].is_err());
}

#[test]
fn refused_events_are_reported_and_the_rest_counted() {
    let xeon = Recorded::named("xeon-4114");
    let world = World { refused: vec![("event=0x83", 2), ("event=0xc4", 22)], ..skylake() };
    let readings = window("counters", &xeon.root, &Context::default(), &Fake::new(world)).unwrap();
    assert!(why(&readings, "l1i.misses").0.contains("does not count such an event"));
    assert!(why(&readings, "branches").0.contains("does not fit its counters"));
    assert!(why(&readings, "branches").1.contains("nmi_watchdog"));
    assert!(why(&readings, "branch_miss_ratio").0.contains("event=0xc4"));
    near(value(&readings, "branch_misses"), 16_000.0);
    near(value(&readings, "mpki.branch"), 2.0);
    near(value(&readings, "l1d.misses"), 80_000.0);
    // No descriptors left: nothing is half counted.
    let fake = Fake::new(World { descriptors: Some(20), ..skylake() });
    let no = window("counters", &xeon.root, &Context::default(), &fake).unwrap_err();
    assert!(no.remedy.contains("ulimit -n"), "{no}");
    // A sandbox that forbids the call.
    let fake = Fake::new(World { refused: vec![("cpu/", 1)], ..World::default() });
    let readings = window("counters", &xeon.root, &Context::default(), &fake).unwrap();
    assert!(why(&readings, "cycles").1.contains("seccomp"));
}

#[test]
fn a_counter_that_goes_back_or_away_is_no_number() {
    let xeon = Recorded::named("xeon-4114");
    let world = World { backwards: vec!["event=0xc5"], gone: vec!["event=0x51"], ..skylake() };
    let readings = window("counters", &xeon.root, &Context::default(), &Fake::new(world)).unwrap();
    assert!(why(&readings, "branch_misses").0.contains("went back from 1000 to 1"));
    assert!(why(&readings, "l1d.misses").0.contains("could not be read any more"));
    near(value(&readings, "branches"), 1_600_000.0);
}

#[test]
fn threads_that_ended_are_skipped() {
    let xeon = Recorded::named("xeon-4114");
    let fake = Fake::new(World { ended: vec![4711], ..skylake() });
    let readings = window("counters", &xeon.root, &Context::default(), &fake).unwrap();
    near(value(&readings, "cycles"), 2e6);
    let fake = Fake::new(World { ended: vec![4711, 4712], ..skylake() });
    let no = window("counters", &xeon.root, &Context::default(), &fake).unwrap_err();
    assert!(no.reason.contains("has ended"), "{no}");
}

#[test]
fn scopes_are_servers_cpus_or_the_machine() {
    let xeon = Recorded::named("xeon-4114");
    for tid in [900, 901, 950] {
        std::fs::create_dir_all(xeon.path(&format!("/proc/{}/task/{tid}", tid / 50 * 50))).unwrap();
    }
    let servers = Context { server_pids: vec![900, 950], ..Context::default() };
    let counter_plan = plan(&xeon.root, &servers).unwrap();
    assert_eq!(counter_plan.scope, Scope::Server);
    let threads = [900, 901, 950].map(PerfTarget::Thread);
    assert_eq!(counter_plan.groups[0].group.targets, threads);
    let gone = Context { server_pids: vec![77], ..Context::default() };
    assert!(plan(&xeon.root, &gone).unwrap_err().reason.contains("/proc/77/task"));
    let cpus = Context { cpus: vec![1, 3], ..counting(CounterScope::Cpus, &[]) };
    let fake = Fake::new(skylake());
    let readings = window("counters", &xeon.root, &cpus, &fake).unwrap();
    assert_eq!(find(&readings, "ipc").scope, Scope::Cpus);
    near(value(&readings, "ipc.cpu3"), 2.0);
    // Each CPU has a core of its own; then 1 and 5 share one, and 3 has its own.
    near(value(&readings, "ipc.core"), 2.0);
    let cpus = Context { cpus: vec![1, 3, 5], ..counting(CounterScope::Cpus, &[]) };
    let readings = window("counters", &xeon.root, &cpus, &Fake::new(skylake())).unwrap();
    near(value(&readings, "ipc"), 2.0);
    near(value(&readings, "ipc.core"), 3.0);
    assert!(fake.0.lock().unwrap().opened.iter().all(|(event, ..)| !event.inherit));
    let counter_plan = plan(&xeon.root, &counting(CounterScope::Machine, &[])).unwrap();
    assert_eq!(
        (counter_plan.scope, counter_plan.groups[0].group.targets.len()),
        (Scope::Machine, 8)
    );
    for (scope, reason) in [
        (CounterScope::Cpus, "no CPUs were named"),
        (CounterScope::Servers, "no server's process is known"),
    ] {
        let no = plan(&xeon.root, &counting(scope, &[])).unwrap_err();
        assert!(no.reason.contains(reason), "{no}");
    }
}

#[test]
fn paranoid_levels_bound_what_is_counted() {
    let xeon = Recorded::named("xeon-4114");
    xeon.change("/proc/self/status", "000001ffffffffff", "0000000000000000");
    let level = |level: &str| {
        xeon.write("/proc/sys/kernel/perf_event_paranoid", level);
    };
    // Level 1: the process, the kernel's part too, but no whole CPUs.
    let counter_plan = plan(&xeon.root, &Context::default()).unwrap();
    assert_eq!(counter_plan.only_user, None);
    let no = plan(&xeon.root, &counting(CounterScope::Machine, &[])).unwrap_err();
    assert!(no.remedy.contains("perf_event_paranoid=0"), "{no}");
    level("2");
    let readings =
        window("counters", &xeon.root, &Context::default(), &Fake::new(skylake())).unwrap();
    assert!(why(&readings, "instructions.kernel").1.contains("perf_event_paranoid=1"));
    assert!(why(&readings, "instructions").1.contains("perf_event_paranoid=1"));
    near(value(&readings, "instructions.user"), 6e6);
    near(value(&readings, "ipc"), 1.5);
    assert!(find(&readings, "cycles").source.contains("cpu/event=0x3c/u"));
    level("4");
    let no = plan(&xeon.root, &Context::default()).unwrap_err();
    assert!(no.reason.contains("is 4") && no.remedy.contains("CAP_PERFMON"), "{no}");
    // CAP_PERFMON alone is enough.
    xeon.change("/proc/self/status", "0000000000000000", "0000004000000000");
    assert!(plan(&xeon.root, &counting(CounterScope::Machine, &[])).is_ok());
}

#[test]
fn on_zen_the_last_level_is_the_machine_s() {
    let epyc = Recorded::named("epyc");
    let world = World {
        gains: vec![("amd_l3/event=0x04,umask=0xff", 5000), ("amd_l3/event=0x04,umask=0x01", 500)],
        ..World::default()
    };
    let fake = Fake::new(world);
    let readings = window("counters", &epyc.root, &Context::default(), &fake).unwrap();
    let world = fake.0.lock().unwrap();
    // An event number of nine bits lies in two places.
    assert_eq!(world.config("cpu/event=0x18e,umask=0x18/"), [0x1_0000_188e, 0, 0]);
    assert!(world.opened.iter().all(|(e, ..)| e.encoded.text != "cpu/event=0x2e,umask=0x41/"));
    // One CPU of each complex counts its L3.
    assert_eq!(world.groups(PerfTarget::Cpu(0)), world.groups(PerfTarget::Cpu(2)));
    near(value(&readings, "llc.references"), 10_000.0);
    near(value(&readings, "llc.miss_ratio"), 0.1);
    let misses = find(&readings, "llc.misses");
    assert_eq!(misses.scope, Scope::Machine);
    assert!(misses.source.contains("amd_l3/event=0x04,umask=0x01/"), "{misses:?}");
    assert_eq!(find(&readings, "l2.misses").scope, Scope::Process);
    assert!(find(&readings, "l2.misses").source.contains("cpu/event=0x64,umask=0x09/"));
    // Instructions of a process and misses of the machine make no quotient.
    assert!(why(&readings, "mpki.llc").0.contains("outside the cores"));
    std::fs::remove_dir_all(epyc.path("/sys/bus/event_source/devices/amd_l3")).unwrap();
    let readings = window("counters", &epyc.root, &Context::default(), &Fake::default()).unwrap();
    assert!(why(&readings, "llc.misses").1.contains("amd_uncore"));
}

#[test]
fn an_arm_pmu_says_which_events_it_has() {
    let arm = Recorded::named("neoverse");
    let counter_plan: CounterPlan = plan(&arm.root, &Context::default()).unwrap();
    let text = |of: PerfQuantity| -> Vec<String> {
        let all = counter_plan.groups.iter().flat_map(|p| p.roles.iter().zip(&p.group.events));
        all.filter(|(slot, _)| **slot == EventRole::Of(of))
            .map(|(_, event)| event.shown())
            .collect()
    };
    assert_eq!(text(PerfQuantity::LlcMisses), ["armv8_pmuv3_0/event=0x37/ (LL_CACHE_MISS_RD)"]);
    assert_eq!(text(PerfQuantity::Branches), ["armv8_pmuv3_0/event=0x21/ (BR_RETIRED)"]);
    arm.remove("/sys/bus/event_source/devices/armv8_pmuv3_0/events/ll_cache_miss_rd");
    let counts =
        World { gains: vec![("event=0x08", 4_000), ("event=0x11", 9_000)], ..World::default() };
    let readings = window("counters", &arm.root, &Context::default(), &Fake::new(counts)).unwrap();
    assert!(why(&readings, "llc.misses").0.contains("does not implement LL_CACHE_MISS_RD"));
    assert!(find(&readings, "llc.references").value().is_some());
}

#[test]
fn x_gene_counts_its_l3_in_units_of_its_own() {
    let arm = Recorded::named("neoverse");
    arm.change("/proc/cpuinfo", "CPU implementer\t: 0x41", "CPU implementer\t: 0x50");
    let l3c = "/sys/bus/event_source/devices/l3c";
    for n in 0..2 {
        arm.write(&format!("{l3c}{n}/type"), &format!("{}\n", 30 + n));
        arm.write(&format!("{l3c}{n}/cpumask"), "0\n");
    }
    // Its codes moved by one between the generations: what the PMU lists counts.
    for (hit, miss) in [("config=0x02", "config=0x03"), ("config=0x01", "config=0x02")] {
        for n in 0..2 {
            arm.write(&format!("{l3c}{n}/events/read-hit"), &format!("{hit}\n"));
            arm.write(&format!("{l3c}{n}/events/read-miss"), &format!("{miss}\n"));
        }
        let world = World { gains: vec![(hit, 300), (miss, 100)], ..World::default() };
        let fake = Fake::new(world);
        let readings = window("counters", &arm.root, &Context::default(), &fake).unwrap();
        near(value(&readings, "llc.references"), 800.0);
        near(value(&readings, "llc.miss_ratio"), 0.25);
    }
    let readings = window("counters", &arm.root, &Context::default(), &Fake::default()).unwrap();
    assert!(find(&readings, "branches").source.contains("BR_PRED"));
}

#[test]
fn reports_missing_pmu_missing_table_and_hybrid_cores() {
    let vm = Recorded::named("vm");
    let no = plan(&vm.root, &Context::default()).unwrap_err();
    assert!(no.reason.contains("hypervisor") && no.remedy.contains("cachegrind"), "{no}");
    let xeon = Recorded::named("xeon-4114");
    xeon.change("/proc/cpuinfo", "GenuineIntel", "CentaurHauls");
    let no = plan(&xeon.root, &Context::default()).unwrap_err();
    assert!(no.reason.contains("CentaurHauls family 6 model 85"), "{no}");
    // Then a raw event can still be named.
    let named = counting(CounterScope::Auto, &["cpu/event=0x3c,name=cycles_raw/u"]);
    let world = World { gains: vec![("event=0x3c", 70)], ..World::default() };
    let readings = window("counters", &xeon.root, &named, &Fake::new(world)).unwrap();
    near(value(&readings, "event.cycles_raw"), 140.0);
    assert!(
        why(&readings, "cycles").0.contains("no event was planned")
            || why(&readings, "cycles").0.contains("no event table")
    );
    let hybrid = Recorded::named("xeon-4114");
    hybrid.write("/sys/bus/event_source/devices/cpu_atom/type", "10\n");
    assert!(plan(&hybrid.root, &Context::default()).unwrap_err().reason.contains("two kinds"));
}

#[test]
fn raw_events_in_perf_s_syntax() {
    let xeon = Recorded::named("xeon-4114");
    let events = [
        "cpu/event=0x2e,umask=0x41/",
        "r412e",
        "cpu/cache-misses/k",
        "cpu/event=0xc0,inv,cmask=0x10/",
        "uncore_imc_0/cas_count_read/",
        "cpu/offcore_rsp=0x10,event=0xb7/",
    ];
    let counter_plan = plan(&xeon.root, &counting(CounterScope::Auto, &events)).unwrap();
    let configs: Vec<[u64; 3]> =
        counter_plan.user_events.iter().map(|extra| extra.event.as_ref().unwrap().config).collect();
    assert_eq!(
        configs,
        [
            [0x412e, 0, 0],
            [0x412e, 0, 0],
            [0x412e, 0, 0],
            [0x1080_00c0, 0, 0],
            [0x0304, 0, 0],
            [0xb7, 0x10, 0],
        ]
    );
    let apart: Vec<bool> = counter_plan.user_events.iter().map(|extra| extra.uncore).collect();
    assert_eq!(apart, [false, false, false, false, true, false]);
    for (text, reason) in [
        ("cpu/event=0x2e", "closing"),
        ("cache-misses", "neither"),
        ("cpu/colour=3/", "no term `colour`"),
        ("cpu/event=0x1ff/", "no room"),
        ("cpu/event=many/", "`event=many`"),
        ("gpu/event=1/", "gpu/type does not exist"),
        ("r41/x", "closing"),
        ("r41:z", "only `u` and `k`"),
        ("../event=1/", "the PMU or its terms are missing"),
        ("cpu/../", "contains `..`"),
        ("", "neither"),
    ] {
        let counter_plan = plan(&xeon.root, &counting(CounterScope::Auto, &[text])).unwrap();
        let no = counter_plan.user_events[0].event.as_ref().unwrap_err();
        assert!(no.reason.contains(reason), "{text}: {no}");
        assert!(!no.remedy.is_empty());
    }
}

#[test]
fn frequency_is_that_of_the_time_awake() {
    let xeon = Recorded::named("xeon-4114");
    let world = World {
        gains: vec![
            ("aperf", 300_000_000),
            ("mperf", 220_000_000),
            ("event=0x01", 300_000_000),
            ("event=0x02", 220_000_000),
            ("event=0x00", 2_200_000_000),
        ],
        ..World::default()
    };
    let context = Context { cpus: vec![2], ..Context::default() };
    let readings = window("frequency", &xeon.root, &context, &Fake::new(world)).unwrap();
    near(value(&readings, "frequency.mean"), 3e9);
    near(value(&readings, "residency.awake"), 0.1);
    assert_eq!(find(&readings, "frequency.mean").scope, Scope::Cpus);
    assert!(find(&readings, "frequency.mean").source.ends_with("CPUs 2"));
    let no = window("frequency", &Recorded::named("vm").root, &context, &Fake::default());
    assert!(no.unwrap_err().remedy.contains("bare metal"));
    let no = window("frequency", &Recorded::named("neoverse").root, &context, &Fake::default());
    assert!(no.unwrap_err().remedy.contains("Arm"));
}

#[test]
fn reads_granted_idle_states() {
    let xeon = Recorded::named("xeon-4114");
    let world = World {
        gains: vec![
            ("cstate_core/event=0x02", 1_100_000_000),
            ("cstate_core/event=0x00", 220_000_000),
            ("cstate_pkg/event=0x02", 440_000_000),
            ("msr/event=0x00", 2_200_000_000),
        ],
        ..World::default()
    };
    let fake = Fake::new(world);
    let readings = window("cstates", &xeon.root, &Context::default(), &fake).unwrap();
    near(value(&readings, "residency.core.c6"), 0.5);
    near(value(&readings, "residency.core.c1"), 0.1);
    near(value(&readings, "residency.package.c6"), 0.2);
    near(value(&readings, "residency.package.c2"), 0.0);
    assert!(find(&readings, "residency.core.c1").source.contains("cstate_core/c1-residency/"));
    let no = window("cstates", &Recorded::named("epyc").root, &Context::default(), &fake);
    assert!(no.unwrap_err().reason.contains("neither a PMU cstate_core"));
}

#[test]
fn reads_memory_traffic() {
    let xeon = Recorded::named("xeon-4114");
    let world = || World {
        gains: vec![("umask=0x03", 1000), ("umask=0x0c", 500), ("mask=0x1", 20), ("mask=0x2", 10)],
        ..World::default()
    };
    let readings = window("dram", &xeon.root, &Context::default(), &Fake::new(world())).unwrap();
    // Two controllers' PMUs on two sockets, lines of 64 bytes.
    near(value(&readings, "dram.read"), 4.0 * 64_000.0);
    near(value(&readings, "dram.written"), 4.0 * 32_000.0);
    let read = find(&readings, "dram.read");
    assert!(read.source.contains("uncore_imc_0/") && read.source.contains("1 more"), "{read:?}");
    let epyc = Recorded::named("epyc");
    let readings = window("dram", &epyc.root, &Context::default(), &Fake::new(world())).unwrap();
    near(value(&readings, "dram.read"), 2.0 * 20.0 * 64.0);
    near(value(&readings, "dram.written"), 2.0 * 10.0 * 64.0);
    // Granite Rapids: each half of a channel for itself.
    let granite = Recorded::named("xeon-4114");
    for n in 0..2 {
        let events = format!("/sys/bus/event_source/devices/uncore_imc_{n}/events");
        for (name, read, written) in [("sch0", "0x05", "0x05"), ("sch1", "0x06", "0x06")] {
            for (way, event, umask) in [("read", read, "0xcf"), ("write", written, "0xf0")] {
                let file = format!("{events}/cas_count_{way}_{name}");
                granite.write(&file, &format!("event={event},umask={umask}\n"));
                granite.write(&format!("{file}.unit"), "MiB\n");
                granite.write(&format!("{file}.scale"), "6.103515625e-5\n");
            }
        }
        granite.remove(&format!("{events}/cas_count_read"));
        granite.remove(&format!("{events}/cas_count_write"));
    }
    let halves = World {
        gains: vec![
            ("event=0x05,umask=0xcf", 1),
            ("event=0x06,umask=0xcf", 10),
            ("event=0x05,umask=0xf0", 100),
            ("event=0x06,umask=0xf0", 1000),
        ],
        ..World::default()
    };
    let readings = window("dram", &granite.root, &Context::default(), &Fake::new(halves)).unwrap();
    near(value(&readings, "dram.read"), 4.0 * 11.0 * 64.0);
    near(value(&readings, "dram.written"), 4.0 * 1100.0 * 64.0);
    xeon.write("/sys/bus/event_source/devices/uncore_imc_0/events/cas_count_read.unit", "nJ\n");
    let no = window("dram", &xeon.root, &Context::default(), &Fake::new(world()));
    assert!(no.unwrap_err().reason.contains("not the unit MiB"));
}

/// The real system call: the software events of this very process.
#[test]
fn the_running_kernel_counts_this_process() {
    let root = Root::live();
    let watch = RunWatch::begin(&root, &Context::default());
    let work = || {
        let block = black_box(vec![1u8; 8 << 20]);
        let began = Instant::now();
        let mut sum = 0u64;
        while began.elapsed() < Duration::from_millis(50) {
            sum = block.iter().step_by(4096).fold(sum, |sum, byte| sum + u64::from(*byte));
        }
        black_box(sum);
        thread::sleep(Duration::from_millis(2));
    };
    work();
    // A thread that is born in the window belongs to the process.
    thread::spawn(work).join().unwrap();
    let readings = watch.end().readings;
    let clock = find(&readings, "software.task_clock");
    match clock.value() {
        Some(clock) => {
            // The other tests' threads may be in it: no upper bound.
            assert!(clock > 0.02, "{clock}");
            assert!(value(&readings, "software.page_faults") >= 1000.0);
            assert!(value(&readings, "software.context_switches") >= 1.0);
            assert!(find(&readings, "software.migrations").value().is_some());
        }
        None => {
            let (reason, _) = why(&readings, "software.task_clock");
            assert!(reason.contains("paranoid") || reason.contains("refused"), "{reason}");
        }
    }
    // Of this machine's own counters, where it has some. The laboratory of virtual machines reads
    // these lines.
    for name in ["instructions", "cycles"] {
        match find(&readings, name).value() {
            Some(count) => {
                assert!(count > 1e5, "{name}: {count}");
                println!("counted {name}: {count}");
            }
            None => println!("not counted: {name}: {}", why(&readings, name).0),
        }
    }
}

/// An event that no kernel has is refused by the real one with a reason.
#[test]
fn the_running_kernel_refuses_unknown_events() {
    let root = Root::live();
    let Ok(event) = encode(&root, "software", "config=0xffff") else {
        panic!("the software PMU is in every kernel")
    };
    let tid = nix::unistd::gettid().as_raw() as u32;
    let groups =
        [EventGroup { events: vec![event], targets: vec![PerfTarget::Thread(tid)], inherit: true }];
    let mut session = PerfSession::open(Box::<RunningKernel>::default(), &groups).unwrap();
    session.start();
    let tally = session.stop().remove(0);
    let no = tally.events[0].as_ref().unwrap_err();
    assert!(no.reason.contains("was refused"), "{no}");
}

/// RAPL counts through the same kernel as every other event.
#[test]
fn energy_is_counted_by_perf_where_permitted() {
    let xeon = Recorded::named("xeon-4114").and("xeon-4114.energy");
    let fake = Fake::new(World::default());
    let over = COUNTING.iter().find(|(of, _)| *of == "rapl").map(|(_, over)| *over).unwrap();
    let mut probe = over(&xeon.root, &Context::default(), &|| fake.boxed()).unwrap();
    probe.start();
    // A joule is 2^32 steps; CPU 0 is of the first package and CPU 1 of the other.
    let opened = fake.0.lock().unwrap().opened.clone();
    assert!(opened.iter().all(|(event, ..)| event.encoded.kind == 21 && !event.inherit));
    for (at, (event, target, _)) in opened.iter().enumerate() {
        let joules = match (event.encoded.config[0], target) {
            (2, PerfTarget::Cpu(0)) => 3,
            (2, PerfTarget::Cpu(1)) => 2,
            (3, PerfTarget::Cpu(_)) => 1,
            other => panic!("{other:?}"),
        };
        let count = PerfCount { value: joules << 32, ..PerfCount::default() };
        fake.0.lock().unwrap().counts.insert(at, count);
    }
    thread::sleep(Duration::from_millis(1));
    let readings = probe.stop(Duration::from_secs(1));
    near(value(&readings, "energy.package"), 5.0);
    near(value(&readings, "energy.total"), 7.0);
    let total = find(&readings, "energy.total");
    assert!(total.source.contains("perf power/energy-ram/ on CPU 1"), "{total:?}");
    // Without the right, powercap is asked.
    xeon.write("/proc/sys/kernel/perf_event_paranoid", "2\n");
    xeon.change("/proc/self/status", "CapEff:\t000001ffffffffff", "CapEff:\t0000000000000000");
    let mut probe = over(&xeon.root, &Context::default(), &|| fake.boxed()).unwrap();
    probe.start();
    let readings = probe.stop(Duration::from_secs(1));
    assert!(find(&readings, "energy.total").source.contains("intel-rapl:0/energy_uj"));
}
