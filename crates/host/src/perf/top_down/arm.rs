//! Arm's formulas: those of its telemetry specifications of the Neoverse cores.

use super::table::{ANY_REVISION, Cores, TopDownTable};
use crate::perf::table::{RawEvent, raw};

const CYCLES: RawEvent = raw("event=0x11", "CPU_CYCLES");
const MISPREDICTED: RawEvent = raw("event=0x10", "BR_MIS_PRED");
const OPS: &[RawEvent] = &[
    CYCLES,
    raw("event=0x3a", "OP_RETIRED"),
    raw("event=0x3b", "OP_SPEC"),
    raw("event=0x3f", "STALL_SLOT"),
    MISPREDICTED,
];
const STALLED_SLOTS: &[RawEvent] =
    &[CYCLES, raw("event=0x3e", "STALL_SLOT_FRONTEND"), raw("event=0x3d", "STALL_SLOT_BACKEND")];
const STALLED_CYCLES: &[RawEvent] =
    &[CYCLES, raw("event=0x23", "STALL_FRONTEND"), raw("event=0x24", "STALL_BACKEND")];
const STALLS: &[(&str, &str)] = &[
    ("frontend_stalls", "STALL_FRONTEND / CPU_CYCLES"),
    ("backend_stalls", "STALL_BACKEND / CPU_CYCLES"),
];

/// What `used` is a share of: slots in which an operation was sent for execution.
const RETIRING: (&str, &str) = ("retiring", "used * OP_RETIRED / OP_SPEC");
const MISPREDICTED_COSTS_FOUR_CYCLES: (&str, &str) =
    ("bad_speculation", "used * (1 - OP_RETIRED / OP_SPEC) + 4 * BR_MIS_PRED / CPU_CYCLES");
const BACKEND: (&str, &str) = ("backend_bound", "STALL_SLOT_BACKEND / slots");
const BACKEND_LESS_FLUSHES: (&str, &str) =
    ("backend_bound", "STALL_SLOT_BACKEND / slots - 3 * BR_MIS_PRED / CPU_CYCLES");
const USED: (&str, &str) = ("used", "1 - STALL_SLOT / slots");
const SHARES: &[(&str, &str)] = &[
    USED,
    RETIRING,
    MISPREDICTED_COSTS_FOUR_CYCLES,
    ("frontend_bound", "STALL_SLOT_FRONTEND / slots - BR_MIS_PRED / CPU_CYCLES"),
    BACKEND_LESS_FLUSHES,
];

const GROUPS: &[&[RawEvent]] = &[OPS, STALLED_SLOTS, STALLED_CYCLES];

/// The newer cores count flushes of the front end, and what the back end waits for. Of the latter
/// Arm gives the share of stalled cycles, which is taken for that of stalled slots.
const NEWER_GROUPS: &[&[RawEvent]] = &[
    &[
        CYCLES,
        raw("event=0x3a", "OP_RETIRED"),
        raw("event=0x3b", "OP_SPEC"),
        raw("event=0x3f", "STALL_SLOT"),
        raw("event=0x8162", "STALL_FRONTEND_FLUSH"),
    ],
    STALLED_SLOTS,
    &[
        CYCLES,
        raw("event=0x24", "STALL_BACKEND"),
        raw("event=0x8164", "STALL_BACKEND_MEMBOUND"),
        raw("event=0x816a", "STALL_BACKEND_CPUBOUND"),
        raw("event=0x23", "STALL_FRONTEND"),
    ],
];
const NEWER_SHARES: &[(&str, &str)] = &[
    USED,
    RETIRING,
    ("bad_speculation", "used * (1 - OP_RETIRED / OP_SPEC) + STALL_FRONTEND_FLUSH / CPU_CYCLES"),
    ("frontend_bound", "STALL_SLOT_FRONTEND / slots - STALL_FRONTEND_FLUSH / CPU_CYCLES"),
    BACKEND,
    ("memory_bound", "backend_bound * STALL_BACKEND_MEMBOUND / STALL_BACKEND"),
    ("core_bound", "backend_bound * STALL_BACKEND_CPUBOUND / STALL_BACKEND"),
];

const fn any(parts: &'static [u32]) -> Cores {
    Cores::Parts(parts, ANY_REVISION.0, ANY_REVISION.1)
}

pub(in crate::perf) const NEOVERSE: &[TopDownTable] = &[
    TopDownTable {
        name: "Arm Neoverse N1",
        source: "Arm telemetry-solution 917257c776b4, neoverse_n1_r4p1_pmu.json",
        groups: &[STALLED_CYCLES],
        formulas: &[STALLS],
        cores: any(&[0xd0c]),
    },
    TopDownTable {
        name: "Arm Neoverse N2 before r0p3",
        source: "Arm telemetry-solution 917257c776b4, neoverse_n2_r0p2_pmu.json",
        groups: GROUPS,
        // Each cycle counts one stalled slot too many.
        formulas: &[
            &[
                ("slots", "5 * CPU_CYCLES"),
                ("used", "1 - (STALL_SLOT - CPU_CYCLES) / slots"),
                RETIRING,
                MISPREDICTED_COSTS_FOUR_CYCLES,
                (
                    "frontend_bound",
                    "(STALL_SLOT_FRONTEND - CPU_CYCLES) / slots - BR_MIS_PRED / CPU_CYCLES",
                ),
                BACKEND_LESS_FLUSHES,
            ],
            STALLS,
        ],
        cores: Cores::Parts(&[0xd49], (0, 0), (0, 2)),
    },
    TopDownTable {
        name: "Arm Neoverse N2",
        source: "Arm telemetry-solution 917257c776b4, neoverse_n2_r0p3_pmu.json",
        groups: GROUPS,
        formulas: &[&[("slots", "5 * CPU_CYCLES")], SHARES, STALLS],
        cores: any(&[0xd49]),
    },
    TopDownTable {
        name: "Arm Neoverse V1",
        source: "Arm telemetry-solution 917257c776b4, neoverse_v1_r1p2_pmu.json",
        groups: GROUPS,
        formulas: &[
            &[
                ("slots", "8 * CPU_CYCLES"),
                USED,
                RETIRING,
                MISPREDICTED_COSTS_FOUR_CYCLES,
                ("frontend_bound", "STALL_SLOT_FRONTEND / slots - 4 * BR_MIS_PRED / CPU_CYCLES"),
                BACKEND,
            ],
            STALLS,
        ],
        cores: any(&[0xd40]),
    },
    TopDownTable {
        name: "Arm Neoverse V2",
        source: "Arm telemetry-solution 917257c776b4, neoverse_v2_r0p0_pmu.json",
        groups: GROUPS,
        formulas: &[&[("slots", "8 * CPU_CYCLES")], SHARES, STALLS],
        cores: any(&[0xd4f]),
    },
    TopDownTable {
        name: "Arm Neoverse N3",
        source: "Arm telemetry-solution 917257c776b4, neoverse_n3_r0p0_pmu.json",
        groups: NEWER_GROUPS,
        formulas: &[&[("slots", "5 * CPU_CYCLES")], NEWER_SHARES, STALLS],
        cores: any(&[0xd8e]),
    },
    TopDownTable {
        name: "Arm Neoverse V3",
        source: "Arm telemetry-solution 917257c776b4, neoverse_v3_r0p0_pmu.json",
        groups: NEWER_GROUPS,
        formulas: &[&[("slots", "10 * CPU_CYCLES")], NEWER_SHARES, STALLS],
        cores: any(&[0xd83, 0xd84]),
    },
];
