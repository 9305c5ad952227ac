//! Top-down analysis: formulas on recorded counts beside the percentages that perf printed with them,
//! and the groups that are opened on written machines.
#![allow(clippy::unwrap_used)]

#[cfg(test)]
mod common;

use common::Recorded;
use common::kernel::{Fake, World};
use host::perf::{
    CountedEvent, CountedProcess, PerfTarget, TopDownCounts, TopDownPlan, TopDownTable, core,
    shares,
};
use model::{ProfiledSide, ReadingValue, SlotCategory, SlotShare, TopDown, Unavailable};

const CPU: &str = "/sys/bus/event_source/devices/cpu";

/// A machine with this processor and the fields of x86's events.
fn x86(vendor: &str, family: u32, model: u32, smt: bool) -> Recorded {
    let machine = Recorded::empty();
    let cpuinfo = format!("vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n");
    machine.write("/proc/cpuinfo", &cpuinfo);
    machine.write("/sys/devices/system/cpu/smt/active", if smt { "1\n" } else { "0\n" });
    machine.write(&format!("{CPU}/type"), "4\n");
    for (field, bits) in [
        ("event", if vendor.contains("AMD") { "0-7,32-35" } else { "0-7" }),
        ("umask", "8-15"),
        ("edge", "18"),
        ("any", "21"),
        ("cmask", "24-31"),
    ] {
        machine.write(&format!("{CPU}/format/{field}"), &format!("config:{bits}\n"));
    }
    with_processes(machine)
}

fn sapphire_rapids() -> Recorded {
    let machine = x86("GenuineIntel", 6, 143, true);
    for (name, umask) in [
        ("slots", "4"),
        ("topdown-retiring", "80"),
        ("topdown-bad-spec", "81"),
        ("topdown-fe-bound", "82"),
        ("topdown-be-bound", "83"),
        ("topdown-heavy-ops", "84"),
        ("topdown-br-mispredict", "85"),
        ("topdown-fetch-lat", "86"),
        ("topdown-mem-bound", "87"),
    ] {
        machine.write(&format!("{CPU}/events/{name}"), &format!("event=0x00,umask=0x{umask}\n"));
    }
    machine
}

/// A Neoverse core of this part, variant and revision.
fn neoverse(part: &str, variant: u32, revision: u32) -> Recorded {
    let machine = Recorded::empty();
    let cpuinfo = format!(
        "CPU implementer\t: 0x41\nCPU variant\t: {variant:#x}\nCPU part\t: {part}\nCPU revision\t: \
         {revision}\n"
    );
    machine.write("/proc/cpuinfo", &cpuinfo);
    let pmu = "/sys/bus/event_source/devices/armv8_pmuv3_0";
    machine.write(&format!("{pmu}/type"), "8\n");
    machine.write(&format!("{pmu}/format/event"), "config:0-15\n");
    for (name, code) in [
        ("br_mis_pred", "10"),
        ("cpu_cycles", "11"),
        ("stall_frontend", "23"),
        ("stall_backend", "24"),
        ("op_retired", "3a"),
        ("op_spec", "3b"),
        ("stall_slot_backend", "3d"),
        ("stall_slot_frontend", "3e"),
        ("stall_slot", "3f"),
    ] {
        machine.write(&format!("{pmu}/events/{name}"), &format!("event=0x00{code}\n"));
    }
    with_processes(machine)
}

/// Process 900 with two threads, and the rights of root.
fn with_processes(machine: Recorded) -> Recorded {
    machine.write("/proc/sys/kernel/perf_event_paranoid", "2\n");
    machine.write("/proc/self/status", "CapEff:\t000001ffffffffff\n");
    for tid in [900, 901] {
        std::fs::create_dir_all(machine.path(&format!("/proc/900/task/{tid}"))).unwrap();
    }
    machine
}

fn table(machine: &Recorded) -> &'static TopDownTable {
    TopDownTable::here(&machine.root, &core(&machine.root).unwrap()).unwrap()
}

/// Counts of a table's events by name, for each group that was counted by itself; an event that no
/// group names is missing.
fn counts(table: &TopDownTable, groups: &[&[(&str, u64)]]) -> TopDownCounts {
    let count = |events: &[host::perf::RawEvent]| {
        let of = |name: &str, group: &[(&str, u64)]| {
            group.iter().find(|(known, _)| *known == name).map(|(_, count)| *count)
        };
        // The group of the events that has most of them.
        let has = |group: &&&[(&str, u64)]| {
            events.iter().filter(|event| of(event.name, group).is_some()).count()
        };
        let group = groups.iter().max_by_key(has).unwrap();
        let counted = |event: &host::perf::RawEvent| match of(event.name, group) {
            Some(value) => Ok(CountedEvent { value: value as f64, running: 1.0, seconds: 1.0 }),
            None => Err(Unavailable::new(format!("{} is not recorded", event.name), "-")),
        };
        events.iter().map(counted).collect()
    };
    table.groups.iter().map(|events| count(events)).collect()
}

fn percent(shares: &[SlotShare], key: &str) -> Option<f64> {
    let category = SlotCategory::ALL.into_iter().find(|category| category.key() == key).unwrap();
    let share = shares.iter().find(|share| share.category == category)?;
    share.share.number().map(|share| 100.0 * share)
}

/// Compares with percentages of one digit after the point.
#[track_caller]
fn are(shares: &[SlotShare], expected: &[(&str, f64)]) {
    for (key, expected) in expected {
        let found = percent(shares, key).unwrap_or_else(|| panic!("{key}: {shares:?}"));
        assert!((found - expected).abs() < 0.0501, "{key}: {found} instead of {expected}");
    }
}

#[track_caller]
fn why(shares: &[SlotShare], key: &str) -> String {
    let category = SlotCategory::ALL.into_iter().find(|category| category.key() == key).unwrap();
    match &shares.iter().find(|share| share.category == category).unwrap().share {
        ReadingValue::Unavailable { reason, .. } => reason.clone(),
        ReadingValue::Value(value) => panic!("{key} is {value}"),
    }
}

/// `perf stat sleep 1` in "[PATCH] perf stat: Add Topdown metrics L2 events as default events" by
/// Kan Liang (Intel), linux-kernel, 2021-07-08. That perf had no event of dropped operations.
#[test]
fn sapphire_rapids_with_both_levels() {
    let table = table(&sapphire_rapids());
    let recorded = counts(
        table,
        &[&[
            ("TOPDOWN.SLOTS", 8_431_908),
            ("PERF_METRICS.RETIRING", 1_554_116),
            ("PERF_METRICS.BAD_SPECULATION", 1_289_585),
            ("PERF_METRICS.FRONTEND_BOUND", 2_810_636),
            ("PERF_METRICS.BACKEND_BOUND", 2_810_636),
            ("PERF_METRICS.HEAVY_OPERATIONS", 231_464),
            ("PERF_METRICS.BRANCH_MISPREDICTS", 1_223_453),
            ("PERF_METRICS.FETCH_LATENCY", 1_884_779),
            ("PERF_METRICS.MEMORY_BOUND", 1_454_917),
            ("INT_MISC.UOP_DROPPING", 0),
        ]],
    );
    let printed = [
        ("retiring", 18.4),
        ("bad_speculation", 15.2),
        ("frontend_bound", 33.2),
        ("backend_bound", 33.2),
        ("heavy_operations", 2.7),
        ("light_operations", 15.6),
        ("branch_mispredicts", 14.5),
        ("machine_clears", 0.8),
        ("fetch_latency", 22.3),
        ("fetch_bandwidth", 10.9),
        ("memory_bound", 17.2),
        ("core_bound", 16.0),
    ];
    are(&shares(table, &recorded), &printed);
}

/// "[PATCH V3 5/8] perf stat: New metricgroup output for the default mode" by Kan Liang,
/// linux-kernel, 2023-06-15, "On SPR, Before": only the first level was counted.
#[test]
fn sapphire_rapids_drops_operations() {
    let table = table(&sapphire_rapids());
    let recorded = counts(
        table,
        &[&[
            ("TOPDOWN.SLOTS", 3_245_820),
            ("PERF_METRICS.RETIRING", 564_859),
            ("PERF_METRICS.FRONTEND_BOUND", 1_370_999),
            ("PERF_METRICS.BACKEND_BOUND", 603_271),
            ("PERF_METRICS.BAD_SPECULATION", 744_874),
            ("INT_MISC.UOP_DROPPING", 12_661),
        ]],
    );
    let shares = shares(table, &recorded);
    are(
        &shares,
        &[
            ("backend_bound", 18.4),
            ("retiring", 17.2),
            ("bad_speculation", 23.1),
            ("frontend_bound", 41.4),
        ],
    );
    assert!(why(&shares, "memory_bound").contains("MEMORY_BOUND is not recorded"));
    assert!(why(&shares, "core_bound").contains("MEMORY_BOUND is not recorded"));
}

/// Two outputs of "perf stat: Introduce skippable evsels" by Ian Rogers (Google), linux-kernel,
/// 2023-04-14, on Tiger Lake, whose formulas of the first level are Ice Lake's.
#[test]
fn ice_lake_clears() {
    let table = table(&x86("GenuineIntel", 6, 106, true));
    for (recorded, printed) in [
        ([998_790, 144_922, 411_266, 258_510, 184_090, 2_585, 3_434], [14.5, 27.6, 40.9, 17.0]),
        ([1_167_100, 141_882, 480_570, 320_380, 224_266, 2_173, 3_323], [12.2, 28.9, 41.0, 18.0]),
    ] {
        let names = [
            "TOPDOWN.SLOTS",
            "PERF_METRICS.RETIRING",
            "PERF_METRICS.FRONTEND_BOUND",
            "PERF_METRICS.BACKEND_BOUND",
            "PERF_METRICS.BAD_SPECULATION",
            "INT_MISC.UOP_DROPPING",
            "INT_MISC.CLEARS_COUNT",
        ];
        let group: Vec<(&str, u64)> = names.into_iter().zip(recorded).collect();
        let keys = ["retiring", "backend_bound", "frontend_bound", "bad_speculation"];
        let printed: Vec<(&str, f64)> = keys.into_iter().zip(printed).collect();
        are(&shares(table, &counts(table, &[&group])), &printed);
    }
}

/// `perf stat perf bench internals synthesize` on a Cascade Lake with root's rights: Kan Liang's
/// answer to message 20230429053506.1962559-4-irogers@google.com of linux-kernel. Two groups, each
/// with cycles of its own.
#[test]
fn cascade_lake_whose_threads_share_a_core() {
    let table = table(&x86("GenuineIntel", 6, 85, true));
    let core: &[(&str, u64)] = &[
        ("CPU_CLK_UNHALTED.THREAD", 9_553_472_893),
        ("CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE", 49_591_815),
        ("CPU_CLK_UNHALTED.REF_XCLK", 49_576_109),
    ];
    let first: &[(&str, u64)] = &[
        ("CPU_CLK_UNHALTED.THREAD", 9_553_472_893),
        ("INT_MISC.RECOVERY_CYCLES_ANY", 228_406_003),
        ("UOPS_RETIRED.RETIRE_SLOTS", 22_893_372_651),
        ("UOPS_ISSUED.ANY", 24_180_375_299),
    ];
    let shared = shares(table, &counts(table, &[core, first]));
    are(&shared, &[("retiring", 59.9), ("bad_speculation", 4.6)]);

    let core: &[(&str, u64)] = &[
        ("CPU_CLK_UNHALTED.THREAD", 9_538_354_333),
        ("CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE", 49_559_962),
        ("CPU_CLK_UNHALTED.REF_XCLK", 49_562_300),
    ];
    let cycles = ("CPU_CLK_UNHALTED.THREAD", 9_538_354_333);
    let issued: &[(&str, u64)] = &[
        cycles,
        ("INT_MISC.RECOVERY_CYCLES_ANY", 228_798_426),
        ("UOPS_ISSUED.ANY", 24_207_967_071),
    ];
    let delivered: &[(&str, u64)] = &[cycles, ("IDQ_UOPS_NOT_DELIVERED.CORE", 10_735_205_084)];
    let shared = shares(table, &counts(table, &[core, issued, delivered]));
    are(&shared, &[("frontend_bound", 28.1), ("backend_bound", 7.2)]);
}

/// Both levels by `perf stat` on a Zen 4, in "How to not make interpreter faster" by nazar-pc
/// (project Abundance), 2026-04-16. Each group has cycles of its own.
const ZEN_4: [&[(&str, u64)]; 4] = [
    &[
        ("ls_not_halted_cyc", 4_895_089_444),
        ("de_src_op_disp.all", 20_284_275_971),
        ("ex_ret_ops", 18_657_737_631),
        ("ex_ret_ucode_ops", 8_854_312),
    ],
    &[
        ("ls_not_halted_cyc", 4_894_729_709),
        ("de_no_dispatch_per_slot.no_ops_from_frontend", 5_460_578_458),
        ("de_no_dispatch_per_slot.backend_stalls", 3_602_363_546),
        ("de_no_dispatch_per_slot.smt_contention", 79_739_703),
    ],
    &[
        ("ls_not_halted_cyc", 4_894_584_247),
        ("ex_no_retire.load_not_complete", 681_847_357),
        ("ex_no_retire.not_complete", 1_068_036_530),
    ],
    &[
        ("ls_not_halted_cyc", 4_894_729_709),
        ("de_no_dispatch_per_slot.no_ops_from_frontend:all", 563_718_873),
        ("ex_ret_brn_misp", 21_958_894),
        ("resyncs_or_nc_redirects", 51_318),
    ],
];

#[test]
fn zen_4_with_both_levels() {
    let table = table(&x86("AuthenticAMD", 25, 17, true));
    let printed = [
        ("retiring", 63.5),
        ("bad_speculation", 5.5),
        ("frontend_bound", 18.6),
        ("backend_bound", 12.3),
        ("smt_contention", 0.3),
        ("heavy_operations", 0.0),
        ("branch_mispredicts", 5.5),
        ("machine_clears", 0.0),
        ("fetch_latency", 11.5),
        ("fetch_bandwidth", 7.1),
        ("memory_bound", 7.8),
        ("core_bound", 4.4),
    ];
    are(&shares(table, &counts(table, &ZEN_4)), &printed);
    // Operations of microcode were counted in a group of their own.
    let microcode: &[(&str, u64)] = &[
        ("ls_not_halted_cyc", 4_895_098_597),
        ("ex_ret_ucode_ops", 8_854_312),
        ("ex_ret_ops", 18_620_594_832),
    ];
    let shares = shares(table, &counts(table, &[microcode]));
    are(&shares, &[("light_operations", 63.4), ("heavy_operations", 0.0)]);
}

/// `perf stat -M TopDownL1 false_sharing 2` in "[PATCH v7 0/9] Add metrics for neoverse-n2-v2" by
/// Jing Zhang (Alibaba), linux-kernel, 2023-01-13. Its formulas had no term of mispredicted branches, so none is
/// counted here; perf took cycles for each share anew.
#[test]
fn neoverse_n2_counts_a_slot_too_many() {
    let table = table(&neoverse("0xd49", 0, 2));
    let ops: &[(&str, u64)] = &[
        ("CPU_CYCLES", 3_408_960_257),
        ("STALL_SLOT", 19_576_079_610),
        ("OP_SPEC", 877_673_452),
        ("OP_RETIRED", 876_324_270),
        ("BR_MIS_PRED", 0),
    ];
    for (stalls, key, printed) in [
        (
            [("CPU_CYCLES", 3_406_548_064), ("STALL_SLOT_FRONTEND", 7_961_814_801)],
            "frontend_bound",
            26.7,
        ),
        (
            [("CPU_CYCLES", 3_415_528_440), ("STALL_SLOT_BACKEND", 11_746_647_747)],
            "backend_bound",
            68.8,
        ),
    ] {
        let shares = shares(table, &counts(table, &[ops, &stalls]));
        are(&shares, &[("retiring", 5.1), ("bad_speculation", 0.0), (key, printed)]);
    }
}

/// Where each slot goes one way, its share is 1.
#[test]
fn pipelines_of_one_kind() {
    let n1 = table(&neoverse("0xd0c", 3, 1));
    let stalled = [("CPU_CYCLES", 100), ("STALL_FRONTEND", 10), ("STALL_BACKEND", 55)];
    let found = shares(n1, &counts(n1, &[&stalled]));
    are(&found, &[("frontend_stalls", 10.0), ("backend_stalls", 55.0)]);
    assert_eq!(percent(&found, "retiring"), None);

    for (part, variant, revision, width) in
        [("0xd49", 0, 3, 5), ("0xd40", 1, 1, 8), ("0xd4f", 0, 1, 8), ("0xd84", 0, 1, 10)]
    {
        let table = table(&neoverse(part, variant, revision));
        let all = [
            ("CPU_CYCLES", 100),
            ("OP_RETIRED", 100 * width),
            ("OP_SPEC", 100 * width),
            ("STALL_SLOT", 0),
            ("STALL_SLOT_FRONTEND", 0),
            ("STALL_SLOT_BACKEND", 0),
            ("BR_MIS_PRED", 0),
            ("STALL_FRONTEND_FLUSH", 0),
            ("STALL_FRONTEND", 0),
            ("STALL_BACKEND", 0),
            ("STALL_BACKEND_MEMBOUND", 0),
            ("STALL_BACKEND_CPUBOUND", 0),
        ];
        let retiring = shares(table, &counts(table, &[&all]));
        are(&retiring, &[("retiring", 100.0), ("backend_bound", 0.0), ("frontend_bound", 0.0)]);
        let waits = all.map(|(name, count)| match name {
            "OP_RETIRED" | "OP_SPEC" => (name, 1),
            "STALL_SLOT" | "STALL_SLOT_BACKEND" => (name, 100 * width),
            "STALL_BACKEND" => (name, 100),
            "STALL_BACKEND_MEMBOUND" => (name, 80),
            "STALL_BACKEND_CPUBOUND" => (name, 20),
            _ => (name, count),
        });
        let waiting = shares(table, &counts(table, &[&waits]));
        are(&waiting, &[("retiring", 0.0), ("backend_bound", 100.0), ("backend_stalls", 100.0)]);
        if part == "0xd84" {
            are(&waiting, &[("memory_bound", 80.0), ("core_bound", 20.0)]);
        }
    }
    // Zen 5 has eight slots a cycle: half of them retire, the other half is thrown away.
    let zen = table(&x86("AuthenticAMD", 26, 2, false));
    let group = [
        ("ls_not_halted_cyc", 100),
        ("ex_ret_ops", 400),
        ("de_src_op_disp.all", 800),
        ("ex_ret_ucode_ops", 100),
        ("de_no_dispatch_per_slot.no_ops_from_frontend", 0),
        ("de_no_dispatch_per_slot.backend_stalls", 0),
        ("de_no_dispatch_per_slot.smt_contention", 0),
        ("ex_no_retire.load_not_complete", 0),
        ("ex_no_retire.not_complete", 0),
        ("de_no_dispatch_per_slot.no_ops_from_frontend:all", 0),
        ("ex_ret_brn_misp", 3),
        ("bp_redirects.resync", 1),
    ];
    let expected = [
        ("retiring", 50.0),
        ("bad_speculation", 50.0),
        ("heavy_operations", 12.5),
        ("light_operations", 37.5),
        ("branch_mispredicts", 37.5),
        ("machine_clears", 12.5),
        ("memory_bound", 0.0),
    ];
    are(&shares(zen, &counts(zen, &[&group])), &expected);
}

#[test]
fn counts_that_contradict_each_other_have_no_shares() {
    let table = table(&x86("AuthenticAMD", 25, 17, true));
    let change = |name: &str, to: u64| -> Vec<SlotShare> {
        let groups: Vec<Vec<(&str, u64)>> = ZEN_4
            .iter()
            .map(|group| {
                let of = |(known, count): &(&'static str, u64)| {
                    (*known, if *known == name { to } else { *count })
                };
                group.iter().map(of).collect()
            })
            .collect();
        let groups: Vec<&[(&str, u64)]> = groups.iter().map(Vec::as_slice).collect();
        shares(table, &counts(table, &groups))
    };
    // More retire than were dispatched, by rounding and by far.
    let mut rounded: TopDownCounts = counts(table, &ZEN_4);
    let cycles = rounded[0][0].as_ref().unwrap().value;
    for (at, count) in [(1, 6.0), (2, 5.95)] {
        rounded[0][at].as_mut().unwrap().value = count * cycles;
    }
    for event in rounded[1].iter_mut().skip(1) {
        event.as_mut().unwrap().value = 0.0;
    }
    rounded[3][1].as_mut().unwrap().value = 0.0;
    let rounded = shares(table, &rounded);
    are(&rounded, &[("retiring", 100.0), ("bad_speculation", 0.0), ("branch_mispredicts", 0.0)]);
    let wrong = change("de_src_op_disp.all", 10_000_000_000);
    assert!(why(&wrong, "bad_speculation").contains("bad_speculation would be -29.5 %"));
    assert!(why(&wrong, "memory_bound").contains("contradict each other"));
    // Slots that went nowhere.
    let lost = change("de_no_dispatch_per_slot.no_ops_from_frontend", 0);
    assert!(why(&lost, "retiring").contains("the first level add up to 81.6 %"), "{lost:?}");
    // More waits for memory than waits: the parts are refused, the rest stands.
    let memory = change("ex_no_retire.load_not_complete", 2_000_000_000);
    are(&memory, &[("backend_bound", 12.3), ("retiring", 63.5)]);
    assert!(why(&memory, "memory_bound").contains("and backend_bound is 12.3 %"), "{memory:?}");
    assert!(why(&memory, "core_bound").contains("core_bound would be"), "{memory:?}");
}

/// One window of a plan over a stand-in of the kernel, for process 900.
fn counted(machine: &Recorded, fake: &Fake) -> TopDown {
    let plan = TopDownPlan::here(&machine.root).unwrap();
    let process = CountedProcess {
        side: ProfiledSide::Server,
        name: "memcached".to_owned(),
        pids: vec![900],
    };
    let mut session = plan.open_with(&machine.root, vec![process], &|| fake.boxed().unwrap());
    session.start();
    let (name, top_down) = session.stop().remove(0);
    assert_eq!(name, "memcached");
    top_down.unwrap()
}

const SPR_GAINS: [(&str, u64); 10] = [
    ("umask=0x4/", 1_000_000),
    ("umask=0x80/", 300_000),
    ("umask=0x81/", 100_000),
    ("umask=0x82/", 200_000),
    ("umask=0x83/", 400_000),
    ("umask=0x84/", 50_000),
    ("umask=0x85/", 80_000),
    ("umask=0x86/", 150_000),
    ("umask=0x87/", 350_000),
    ("event=0xad", 0),
];

#[test]
fn slots_lead_the_metrics_of_each_thread() {
    let machine = sapphire_rapids();
    let fake = Fake::new(World { gains: SPR_GAINS.to_vec(), ..World::default() });
    let found = counted(&machine, &fake);
    let world = fake.0.lock().unwrap();
    for thread in [900, 901] {
        let groups = world.groups(PerfTarget::Thread(thread));
        assert_eq!(groups.len(), 1);
        assert_eq!((groups[0].len(), groups[0][0].as_str()), (10, "cpu/event=0x00,umask=0x4/"));
    }
    assert!(world.opened.iter().all(|(event, ..)| event.inherit && event.encoded.kind == 4));
    assert_eq!(world.config("cpu/event=0x00,umask=0x87/"), [0x8700, 0, 0]);
    assert_eq!(
        (found.cpu.as_str(), found.user_only),
        ("Intel Sapphire, Emerald and Granite Rapids", false)
    );
    are(&found.shares, &[("memory_bound", 35.0), ("core_bound", 5.0), ("light_operations", 25.0)]);
    let event = &found.events[0];
    assert_eq!(event.event, "cpu/event=0x00,umask=0x4/ (TOPDOWN.SLOTS)");
    assert_eq!((event.count.number(), event.running), (Some(2e6), 1.0));
}

#[test]
fn groups_of_cycles_take_turns() {
    let machine = x86("GenuineIntel", 6, 85, false);
    let gains = vec![
        ("event=0x3c/", 1_000_000),
        ("event=0xc2,umask=0x02/", 1_600_000),
        ("event=0x0e,", 1_800_000),
        ("event=0x0d,", 50_000),
        ("event=0x9c,umask=0x01/", 400_000),
        ("event=0x9c,umask=0x01,cmask=4/", 60_000),
    ];
    let fake = Fake::new(World { gains, running: Some(0.2), ..World::default() });
    let found = counted(&machine, &fake);
    let groups = fake.0.lock().unwrap().groups(PerfTarget::Thread(900));
    assert_eq!(groups.len(), 6);
    assert!(groups.iter().all(|group| group[0] == "cpu/event=0x3c/" && group.len() <= 4));
    assert!(groups[2].contains(&"cpu/event=0xc3,umask=0x01,cmask=1,edge=1/".to_owned()));
    are(
        &found.shares,
        &[
            ("retiring", 40.0),
            ("bad_speculation", 10.0),
            ("frontend_bound", 10.0),
            ("backend_bound", 40.0),
            ("fetch_latency", 6.0),
            ("fetch_bandwidth", 4.0),
            ("branch_mispredicts", 0.0),
        ],
    );
    assert!((found.events[0].running - 0.2).abs() < 1e-6);
    // Hardly ever on a counter: no number.
    let gains = vec![("event=0x3c/", 1_000_000)];
    let fake = Fake::new(World { gains, running: Some(0.01), ..World::default() });
    let found = counted(&machine, &fake);
    assert!(why(&found.shares, "retiring").contains("had a counter for 1.0 % of the time"));
}

#[test]
fn what_the_kernel_refuses_is_unavailable_alone() {
    let machine = sapphire_rapids();
    let world =
        World { gains: SPR_GAINS.to_vec(), refused: vec![("umask=0x87", 22)], ..World::default() };
    let found = counted(&machine, &Fake::new(world));
    are(&found.shares, &[("backend_bound", 40.0), ("fetch_latency", 15.0)]);
    assert!(why(&found.shares, "memory_bound").contains("does not know the event"));
    // The register of metrics is missing: a hypervisor passes general counters on alone.
    let machine = x86("GenuineIntel", 6, 143, false);
    let no = TopDownPlan::here(&machine.root).unwrap_err();
    assert_eq!(no.reason, "the PMU cpu has no event slots");
    // User space alone, for a user without rights.
    let machine = sapphire_rapids();
    machine.write("/proc/self/status", "CapEff:\t0000000000000000\n");
    let fake = Fake::new(World { gains: vec![("umask", 1)], ..World::default() });
    assert!(counted(&machine, &fake).user_only);
    assert!(fake.0.lock().unwrap().opened.iter().all(|(event, ..)| event.encoded.only_user));
}

#[test]
fn machines_without_formulas_say_so() {
    let reason = |machine: &Recorded| TopDownPlan::here(&machine.root).unwrap_err();
    let no = reason(&Recorded::named("vm"));
    assert!(no.reason.contains("the hypervisor does not pass the counters on"), "{no}");
    assert!(no.remedy.contains("bare metal"), "{no}");
    let hybrid = x86("GenuineIntel", 6, 151, true);
    hybrid.write("/sys/bus/event_source/devices/cpu_atom/type", "10\n");
    let no = reason(&hybrid);
    assert!(no.reason.contains("cores of two kinds"), "{no}");
    let no = reason(&x86("AuthenticAMD", 25, 1, true));
    assert!(no.reason.contains("no top-down formulas for AMD Zen 3"), "{no}");
    let no = reason(&neoverse("0xd05", 1, 0));
    assert!(no.reason.contains("no top-down formulas for"), "{no}");
    assert!(no.reason.ends_with("CPU part 0xd05"), "{no}");
}
