//! AMD's formulas: those of the Processor Programming References, as the kernel keeps them.

use super::table::{Cores, TopDownTable};
use crate::perf::table::{RawEvent, raw};

const CYCLES: RawEvent = raw("event=0x76", "ls_not_halted_cyc");
const OPS: &[RawEvent] = &[
    CYCLES,
    raw("event=0xc1", "ex_ret_ops"),
    raw("event=0xaa,umask=0x07", "de_src_op_disp.all"),
    raw("event=0x1c2", "ex_ret_ucode_ops"),
];
const NO_DISPATCH: &[RawEvent] = &[
    CYCLES,
    raw("event=0x1a0,umask=0x01", "de_no_dispatch_per_slot.no_ops_from_frontend"),
    raw("event=0x1a0,umask=0x1e", "de_no_dispatch_per_slot.backend_stalls"),
    raw("event=0x1a0,umask=0x60", "de_no_dispatch_per_slot.smt_contention"),
];
const NO_RETIRE: &[RawEvent] = &[
    CYCLES,
    raw("event=0xd6,umask=0xa2", "ex_no_retire.load_not_complete"),
    raw("event=0xd6,umask=0x02", "ex_no_retire.not_complete"),
];
const MISPREDICTED: RawEvent = raw("event=0xc3", "ex_ret_brn_misp");
/// Cycles in which the front end supplied nothing at all.
const NO_OPS_AT_ALL: &str = "de_no_dispatch_per_slot.no_ops_from_frontend:all";

const SHARES: &[(&str, &str)] = &[
    ("retiring", "ex_ret_ops / slots"),
    ("bad_speculation", "(de_src_op_disp.all - ex_ret_ops) / slots"),
    ("frontend_bound", "de_no_dispatch_per_slot.no_ops_from_frontend / slots"),
    ("backend_bound", "de_no_dispatch_per_slot.backend_stalls / slots"),
    ("smt_contention", "de_no_dispatch_per_slot.smt_contention / slots"),
    ("light_operations", "retiring * (1 - ex_ret_ucode_ops / ex_ret_ops)"),
    ("heavy_operations", "retiring * ex_ret_ucode_ops / ex_ret_ops"),
    ("branch_mispredicts", "bad_speculation * ex_ret_brn_misp / (ex_ret_brn_misp + resync)"),
    ("machine_clears", "bad_speculation * resync / (ex_ret_brn_misp + resync)"),
    ("fetch_latency", "width * de_no_dispatch_per_slot.no_ops_from_frontend:all / slots"),
    ("fetch_bandwidth", "frontend_bound - fetch_latency"),
    ("memory_bound", "backend_bound * ex_no_retire.load_not_complete / ex_no_retire.not_complete"),
    ("core_bound", "backend_bound - memory_bound"),
];

/// Six operations a cycle.
pub(in crate::perf) const ZEN_4: &[TopDownTable] = &[TopDownTable {
    name: "AMD Zen 4",
    source: "linux 037dd1308c6d, tools/perf/pmu-events/arch/x86/amdzen4/pipeline.json",
    groups: &[
        OPS,
        NO_DISPATCH,
        NO_RETIRE,
        &[
            CYCLES,
            raw("event=0x1a0,umask=0x01,cmask=0x6", NO_OPS_AT_ALL),
            MISPREDICTED,
            raw("event=0x96", "resyncs_or_nc_redirects"),
        ],
    ],
    formulas: &[
        &[
            ("width", "6"),
            ("slots", "width * ls_not_halted_cyc"),
            ("resync", "resyncs_or_nc_redirects"),
        ],
        SHARES,
    ],
    cores: Cores::All,
}];

/// Eight operations a cycle.
pub(in crate::perf) const ZEN_5: &[TopDownTable] = &[TopDownTable {
    name: "AMD Zen 5",
    source: "linux a9fe4ac7a3a2, tools/perf/pmu-events/arch/x86/amdzen5/pipeline.json",
    groups: &[
        OPS,
        NO_DISPATCH,
        NO_RETIRE,
        &[
            CYCLES,
            raw("event=0x1a0,umask=0x01,cmask=0x8", NO_OPS_AT_ALL),
            MISPREDICTED,
            raw("event=0x9f,umask=0x01", "bp_redirects.resync"),
        ],
    ],
    formulas: &[
        &[
            ("width", "8"),
            ("slots", "width * ls_not_halted_cyc"),
            ("resync", "bp_redirects.resync"),
        ],
        SHARES,
    ],
    cores: Cores::All,
}];

/// Zen 5's events under other names.
pub(in crate::perf) const ZEN_6: &[TopDownTable] = &[TopDownTable {
    name: "AMD Zen 6",
    source: "linux d4eb7b2da66c, tools/perf/pmu-events/arch/x86/amdzen6/pipeline.json",
    groups: &[
        OPS,
        NO_DISPATCH,
        NO_RETIRE,
        &[
            CYCLES,
            raw("event=0x1a0,umask=0x01,cmask=0x8", NO_OPS_AT_ALL),
            MISPREDICTED,
            raw("event=0x9f,umask=0x01", "bp_fe_redir.resync"),
        ],
    ],
    formulas: &[
        &[("width", "8"), ("slots", "width * ls_not_halted_cyc"), ("resync", "bp_fe_redir.resync")],
        SHARES,
    ],
    cores: Cores::All,
}];
