//! Intel's formulas.

use super::table::{Cores, TopDownTable};
use crate::perf::table::{RawEvent, raw};

const SLOTS: RawEvent = raw("slots", "TOPDOWN.SLOTS");
const RETIRING: RawEvent = raw("topdown-retiring", "PERF_METRICS.RETIRING");
const BAD_SPECULATION: RawEvent = raw("topdown-bad-spec", "PERF_METRICS.BAD_SPECULATION");
const FRONTEND_BOUND: RawEvent = raw("topdown-fe-bound", "PERF_METRICS.FRONTEND_BOUND");
const BACKEND_BOUND: RawEvent = raw("topdown-be-bound", "PERF_METRICS.BACKEND_BOUND");

/// The register of metrics has shares of slots in steps of 1/255; the kernel makes counts of them.
const METRICS_SUM: (&str, &str) = (
    "sum",
    "PERF_METRICS.RETIRING + PERF_METRICS.BAD_SPECULATION + PERF_METRICS.FRONTEND_BOUND + \
     PERF_METRICS.BACKEND_BOUND",
);
const BAD_SPECULATION_IS_THE_REST: (&str, &str) =
    ("bad_speculation", "max(1 - (frontend_bound + backend_bound + retiring), 0)");
const METRICS_FRONTEND: (&str, &str) =
    ("frontend_bound", "PERF_METRICS.FRONTEND_BOUND / sum - INT_MISC.UOP_DROPPING / TOPDOWN.SLOTS");
const METRICS_RETIRING: (&str, &str) = ("retiring", "PERF_METRICS.RETIRING / sum");

/// What is the rest of a category of the first level.
const RESTS: &[(&str, &str)] = &[
    ("light_operations", "max(0, retiring - heavy_operations)"),
    ("machine_clears", "max(0, bad_speculation - branch_mispredicts)"),
    ("fetch_bandwidth", "max(0, frontend_bound - fetch_latency)"),
    ("core_bound", "max(0, backend_bound - memory_bound)"),
];

/// Sapphire, Emerald and Granite Rapids: the register of metrics has both levels.
pub(in crate::perf) const GOLDEN_COVE: &[TopDownTable] = &[TopDownTable {
    name: "Intel Sapphire, Emerald and Granite Rapids",
    source: "intel/perfmon 6dadedf3aa48, SPR/metrics/sapphirerapids_metrics.json 1.3 (TMA 5.2)",
    groups: &[&[
        SLOTS,
        RETIRING,
        BAD_SPECULATION,
        FRONTEND_BOUND,
        BACKEND_BOUND,
        raw("topdown-heavy-ops", "PERF_METRICS.HEAVY_OPERATIONS"),
        raw("topdown-br-mispredict", "PERF_METRICS.BRANCH_MISPREDICTS"),
        raw("topdown-fetch-lat", "PERF_METRICS.FETCH_LATENCY"),
        raw("topdown-mem-bound", "PERF_METRICS.MEMORY_BOUND"),
        raw("event=0xad,umask=0x10", "INT_MISC.UOP_DROPPING"),
    ]],
    formulas: &[
        &[
            METRICS_SUM,
            METRICS_FRONTEND,
            METRICS_RETIRING,
            ("backend_bound", "PERF_METRICS.BACKEND_BOUND / sum"),
            BAD_SPECULATION_IS_THE_REST,
            ("heavy_operations", "PERF_METRICS.HEAVY_OPERATIONS / sum"),
            ("branch_mispredicts", "PERF_METRICS.BRANCH_MISPREDICTS / sum"),
            (
                "fetch_latency",
                "PERF_METRICS.FETCH_LATENCY / sum - INT_MISC.UOP_DROPPING / TOPDOWN.SLOTS",
            ),
            ("memory_bound", "PERF_METRICS.MEMORY_BOUND / sum"),
        ],
        RESTS,
    ],
    cores: Cores::All,
}];

const MEMORY_SHARE: (&str, &str) = (
    "memory_bound",
    "(CYCLE_ACTIVITY.STALLS_MEM_ANY + EXE_ACTIVITY.BOUND_ON_STORES) / (CYCLE_ACTIVITY.STALLS_TOTAL \
     + EXE_ACTIVITY.1_PORTS_UTIL + retiring * EXE_ACTIVITY.2_PORTS_UTIL + \
     EXE_ACTIVITY.BOUND_ON_STORES) * backend_bound",
);
const MISPREDICTED_SHARE: (&str, &str) = (
    "branch_mispredicts",
    "BR_MISP_RETIRED.ALL_BRANCHES / (BR_MISP_RETIRED.ALL_BRANCHES + MACHINE_CLEARS.COUNT) * \
     bad_speculation",
);
const MISPREDICTED: RawEvent = raw("event=0xc5", "BR_MISP_RETIRED.ALL_BRANCHES");
const CLEARS: RawEvent = raw("event=0xc3,umask=0x01,cmask=1,edge=1", "MACHINE_CLEARS.COUNT");
const STALLS_MEM: RawEvent = raw("event=0xa3,umask=0x14,cmask=20", "CYCLE_ACTIVITY.STALLS_MEM_ANY");
const STALLS_TOTAL: RawEvent = raw("event=0xa3,umask=0x04,cmask=4", "CYCLE_ACTIVITY.STALLS_TOTAL");
const ONE_PORT: RawEvent = raw("event=0xa6,umask=0x02", "EXE_ACTIVITY.1_PORTS_UTIL");
const TWO_PORTS: RawEvent = raw("event=0xa6,umask=0x04", "EXE_ACTIVITY.2_PORTS_UTIL");
const ISSUED: RawEvent = raw("event=0x0e,umask=0x01", "UOPS_ISSUED.ANY");

/// Ice Lake: the register has the first level, other events the second.
pub(in crate::perf) const ICE_LAKE: &[TopDownTable] = &[TopDownTable {
    name: "Intel Ice Lake",
    source: "intel/perfmon 6dadedf3aa48, ICX/metrics/icelakex_metrics.json 1.2 (TMA 5.2)",
    groups: &[
        &[
            SLOTS,
            RETIRING,
            BAD_SPECULATION,
            FRONTEND_BOUND,
            BACKEND_BOUND,
            raw("event=0x0d,umask=0x10", "INT_MISC.UOP_DROPPING"),
            raw("event=0x0d,umask=0x01,cmask=1,edge=1", "INT_MISC.CLEARS_COUNT"),
        ],
        &[
            SLOTS,
            raw("event=0x9c,umask=0x01,cmask=5", "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE"),
            MISPREDICTED,
            CLEARS,
        ],
        &[
            SLOTS,
            STALLS_MEM,
            raw("event=0xa6,umask=0x40,cmask=2", "EXE_ACTIVITY.BOUND_ON_STORES"),
            STALLS_TOTAL,
        ],
        &[SLOTS, ONE_PORT, TWO_PORTS],
        &[
            SLOTS,
            raw("event=0xc2,umask=0x02", "UOPS_RETIRED.SLOTS"),
            ISSUED,
            raw("event=0x79,umask=0x30", "IDQ.MS_UOPS"),
        ],
        &[
            SLOTS,
            raw("event=0x56,umask=0x01", "UOPS_DECODED.DEC0"),
            raw("event=0x56,umask=0x01,cmask=1", "UOPS_DECODED.DEC0:c1"),
            raw("event=0x79,umask=0x04", "IDQ.MITE_UOPS"),
        ],
    ],
    formulas: &[
        &[
            METRICS_SUM,
            METRICS_FRONTEND,
            METRICS_RETIRING,
            (
                "backend_bound",
                "PERF_METRICS.BACKEND_BOUND / sum + 5 * INT_MISC.CLEARS_COUNT / TOPDOWN.SLOTS",
            ),
            BAD_SPECULATION_IS_THE_REST,
            (
                "heavy_operations",
                "UOPS_RETIRED.SLOTS / UOPS_ISSUED.ANY * IDQ.MS_UOPS / TOPDOWN.SLOTS + retiring * \
                 (UOPS_DECODED.DEC0 - UOPS_DECODED.DEC0:c1) / IDQ.MITE_UOPS",
            ),
            MISPREDICTED_SHARE,
            (
                "fetch_latency",
                "(5 * IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE - INT_MISC.UOP_DROPPING) / \
                 TOPDOWN.SLOTS",
            ),
            MEMORY_SHARE,
        ],
        RESTS,
    ],
    cores: Cores::All,
}];

const CYCLES: RawEvent = raw("event=0x3c", "CPU_CLK_UNHALTED.THREAD");
const RETIRED: RawEvent = raw("event=0xc2,umask=0x02", "UOPS_RETIRED.RETIRE_SLOTS");
const NOT_DELIVERED: &[RawEvent] = &[
    CYCLES,
    raw("event=0x9c,umask=0x01", "IDQ_UOPS_NOT_DELIVERED.CORE"),
    raw("event=0x9c,umask=0x01,cmask=4", "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE"),
];
const CLEARED: &[RawEvent] = &[CYCLES, MISPREDICTED, CLEARS];
const STALLED: &[RawEvent] = &[
    CYCLES,
    STALLS_MEM,
    raw("event=0xa6,umask=0x40", "EXE_ACTIVITY.BOUND_ON_STORES"),
    STALLS_TOTAL,
];
const PORTS: &[RawEvent] = &[CYCLES, ONE_PORT, TWO_PORTS];
const FUSED: &[RawEvent] = &[
    CYCLES,
    raw("event=0xc2,umask=0x04", "UOPS_RETIRED.MACRO_FUSED"),
    raw("event=0xc0", "INST_RETIRED.ANY"),
];

const SKYLAKE_SHARES: &[(&str, &str)] = &[
    ("retiring", "UOPS_RETIRED.RETIRE_SLOTS / slots"),
    ("bad_speculation", "(UOPS_ISSUED.ANY - UOPS_RETIRED.RETIRE_SLOTS + 4 * recovery) / slots"),
    ("frontend_bound", "IDQ_UOPS_NOT_DELIVERED.CORE / slots"),
    ("backend_bound", "1 - frontend_bound - (UOPS_ISSUED.ANY + 4 * recovery) / slots"),
    (
        "heavy_operations",
        "(UOPS_RETIRED.RETIRE_SLOTS + UOPS_RETIRED.MACRO_FUSED - INST_RETIRED.ANY) / slots",
    ),
    MISPREDICTED_SHARE,
    ("fetch_latency", "4 * IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE / slots"),
    MEMORY_SHARE,
];

const SKYLAKE_SOURCE: &str =
    "intel/perfmon 6dadedf3aa48, CLX/metrics/cascadelakex_metrics.json 1.0 (TMA 5.01)";

/// Skylake and Cascade Lake: raw events for both levels. Where threads share a core, slots are those
/// of the core, whose cycles follow from how long one thread alone was active.
pub(in crate::perf) const SKYLAKE: &[TopDownTable] = &[
    TopDownTable {
        name: "Intel Skylake and Cascade Lake",
        source: SKYLAKE_SOURCE,
        groups: &[
            &[CYCLES, RETIRED, ISSUED, raw("event=0x0d,umask=0x01", "INT_MISC.RECOVERY_CYCLES")],
            NOT_DELIVERED,
            CLEARED,
            STALLED,
            PORTS,
            FUSED,
        ],
        formulas: &[
            &[("slots", "4 * CPU_CLK_UNHALTED.THREAD"), ("recovery", "INT_MISC.RECOVERY_CYCLES")],
            SKYLAKE_SHARES,
            RESTS,
        ],
        cores: Cores::Smt(false),
    },
    TopDownTable {
        name: "Intel Skylake and Cascade Lake with two threads a core",
        source: SKYLAKE_SOURCE,
        groups: &[
            &[
                CYCLES,
                RETIRED,
                ISSUED,
                raw("event=0x0d,umask=0x01,any=1", "INT_MISC.RECOVERY_CYCLES_ANY"),
            ],
            &[
                CYCLES,
                raw("event=0x3c,umask=0x02", "CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE"),
                raw("event=0x3c,umask=0x01", "CPU_CLK_UNHALTED.REF_XCLK"),
            ],
            NOT_DELIVERED,
            CLEARED,
            STALLED,
            PORTS,
            FUSED,
        ],
        formulas: &[
            &[
                (
                    "slots",
                    "2 * CPU_CLK_UNHALTED.THREAD * (1 + CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE / \
                     CPU_CLK_UNHALTED.REF_XCLK)",
                ),
                ("recovery", "INT_MISC.RECOVERY_CYCLES_ANY / 2"),
            ],
            SKYLAKE_SHARES,
            RESTS,
        ],
        cores: Cores::Smt(true),
    },
];
