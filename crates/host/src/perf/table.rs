//! The raw events of each quantity by CPU.
//!
//! The kernel's generic events are not used: `cache-misses` is the last level
//! on Intel, the L2 on Zen and the L1D on Arm. Codes and names are those of
//! the vendors' manuals as the kernel keeps them (`tools/perf/pmu-events`,
//! `drivers/perf`); docs/counters.md has the tables with their sources.

use crate::facts::cpu::CPUINFO;
use crate::parse::field;
use crate::root::Root;

use super::encoding::PMUS;
use super::top_down::{self, TopDownTable};

/// A quantity, independent of a CPU's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PerfQuantity {
    Instructions,
    Cycles,
    Branches,
    BranchMisses,
    /// Lines that were not in the first level's data cache.
    L1dMisses,
    L1iMisses,
    /// Requests that missed the second level, for data and instructions.
    L2Misses,
    LlcReferences,
    LlcMisses,
    /// Translations that no TLB had, so that the page table was walked.
    DtlbMisses,
    ItlbMisses,
}

/// One raw event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawEvent {
    /// In the PMU's own terms: `event=0x2e,umask=0x41`.
    pub terms: &'static str,
    /// The manual's name.
    pub name: &'static str,
}

/// Which PMU counts the last level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastLevel {
    /// By the core: of the threads or CPUs that are counted.
    Core,
    /// By PMUs of their own, whose names begin so: of the whole machine.
    Uncore(&'static str),
}

type Row = (PerfQuantity, &'static [RawEvent]);

/// A kind of core and its events. A quantity with two events is their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTable {
    pub name: &'static str,
    rows: &'static [&'static [Row]],
    pub last_level: LastLevel,
    /// Where the slots of its pipeline go; the first that is for the cores here counts.
    pub(super) top_down: &'static [TopDownTable],
}

impl EventTable {
    const fn with(self, top_down: &'static [TopDownTable]) -> EventTable {
        EventTable { top_down, ..self }
    }

    /// The events of a quantity on this kind of core.
    pub fn of(&self, quantity: PerfQuantity) -> Option<&'static [RawEvent]> {
        let mut rows = self.rows.iter().flat_map(|rows| rows.iter());
        rows.find(|(of, _)| *of == quantity).map(|(_, raws)| *raws)
    }
}

/// The core of a machine: its PMU and its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreEvents {
    pub pmu: String,
    pub table: EventTable,
    /// Whether the PMU lists its events (Arm).
    lists_events: bool,
}

impl CoreEvents {
    /// The events of a quantity here.
    ///
    /// # Errors
    /// This kind of core has none, or the PMU does not implement it.
    pub fn events(
        &self,
        root: &Root,
        quantity: PerfQuantity,
    ) -> Result<&'static [RawEvent], Unavailable> {
        let Some(raws) = self.table.of(quantity) else {
            return Err(Unavailable::new(
                format!("the event table of {} has no event for it", self.table.name),
                "name a raw event of this CPU's manual yourself",
            ));
        };
        raws.iter().try_for_each(|raw| self.implements(root, raw))?;
        Ok(raws)
    }

    /// Whether the PMU implements an event, as far as it says so.
    ///
    /// # Errors
    /// It lists its events, and this one is not among them.
    pub(super) fn implements(&self, root: &Root, raw: &RawEvent) -> Result<(), Unavailable> {
        let file = format!("{PMUS}/{}/events/{}", self.pmu, raw.name.to_lowercase());
        match self.lists_events && !root.exists(&file) {
            true => Err(Unavailable::new(
                format!("the PMU {} does not implement {} ({})", self.pmu, raw.name, raw.terms),
                "name another event that its folder `events` lists",
            )),
            false => Ok(()),
        }
    }
}

pub(super) const fn raw(terms: &'static str, name: &'static str) -> RawEvent {
    RawEvent { terms, name }
}

use PerfQuantity::{
    BranchMisses, Branches, Cycles, DtlbMisses, Instructions, ItlbMisses, L1dMisses, L1iMisses,
    L2Misses, LlcMisses, LlcReferences,
};
use model::Unavailable;

/// The architectural events, the same on every Intel core since Core 2 (SDM
/// volume 3, "Architectural Performance Monitoring").
const INTEL_ANY: &[Row] = &[
    (Instructions, &[raw("event=0xc0", "INST_RETIRED.ANY")]),
    (Cycles, &[raw("event=0x3c", "CPU_CLK_UNHALTED.THREAD")]),
    (Branches, &[raw("event=0xc4", "BR_INST_RETIRED.ALL_BRANCHES")]),
    (BranchMisses, &[raw("event=0xc5", "BR_MISP_RETIRED.ALL_BRANCHES")]),
    (LlcReferences, &[raw("event=0x2e,umask=0x4f", "LONGEST_LAT_CACHE.REFERENCE")]),
    (LlcMisses, &[raw("event=0x2e,umask=0x41", "LONGEST_LAT_CACHE.MISS")]),
];

const INTEL_L1D: Row = (L1dMisses, &[raw("event=0x51,umask=0x01", "L1D.REPLACEMENT")]);
const INTEL_L2: Row = (L2Misses, &[raw("event=0x24,umask=0x3f", "L2_RQSTS.MISS")]);
const INTEL_DTLB: Row = (
    DtlbMisses,
    &[
        raw("event=0x08,umask=0x0e", "DTLB_LOAD_MISSES.WALK_COMPLETED"),
        raw("event=0x49,umask=0x0e", "DTLB_STORE_MISSES.WALK_COMPLETED"),
    ],
);
const INTEL_ITLB: Row = (ItlbMisses, &[raw("event=0x85,umask=0x0e", "ITLB_MISSES.WALK_COMPLETED")]);

const HASWELL: &[Row] = &[
    INTEL_L1D,
    (L1iMisses, &[raw("event=0x80,umask=0x02", "ICACHE.MISSES")]),
    INTEL_L2,
    INTEL_DTLB,
    INTEL_ITLB,
];

const SKYLAKE: &[Row] = &[
    INTEL_L1D,
    (L1iMisses, &[raw("event=0x83,umask=0x02", "ICACHE_64B.IFTAG_MISS")]),
    INTEL_L2,
    INTEL_DTLB,
    INTEL_ITLB,
];

/// Ice Lake servers do not support `L2_RQSTS.MISS`; lines brought in stand for it.
const ICE_LAKE: &[Row] = &[
    INTEL_L1D,
    (L1iMisses, &[raw("event=0x83,umask=0x02", "ICACHE_64B.IFTAG_MISS")]),
    (L2Misses, &[raw("event=0xf1,umask=0x1f", "L2_LINES_IN.ALL")]),
    INTEL_DTLB,
    INTEL_ITLB,
];

/// No event counts L1I misses without a filter register; the L2's code reads
/// are the misses that reach it.
const GOLDEN_COVE: &[Row] = &[
    INTEL_L1D,
    (L1iMisses, &[raw("event=0x24,umask=0xe4", "L2_RQSTS.ALL_CODE_RD")]),
    INTEL_L2,
    (
        DtlbMisses,
        &[
            raw("event=0x12,umask=0x0e", "DTLB_LOAD_MISSES.WALK_COMPLETED"),
            raw("event=0x13,umask=0x0e", "DTLB_STORE_MISSES.WALK_COMPLETED"),
        ],
    ),
    (ItlbMisses, &[raw("event=0x11,umask=0x0e", "ITLB_MISSES.WALK_COMPLETED")]),
];

/// What all Zen cores share (Processor Programming References of families 17h,
/// 19h and 1Ah). The last level is not the core's.
const ZEN: &[Row] = &[
    (Instructions, &[raw("event=0xc0", "ex_ret_instr")]),
    (Cycles, &[raw("event=0x76", "ls_not_halted_cyc")]),
    (Branches, &[raw("event=0xc2", "ex_ret_brn")]),
    (BranchMisses, &[raw("event=0xc3", "ex_ret_brn_misp")]),
    (L2Misses, &[raw("event=0x64,umask=0x09", "l2_cache_req_stat.ic_dc_miss_in_l2")]),
    (DtlbMisses, &[raw("event=0x45,umask=0xf0", "ls_l1_d_tlb_miss.all_l2_miss")]),
    (LlcReferences, &[raw("event=0x04,umask=0xff", "l3_lookup_state.all_l3_req_typs")]),
    (LlcMisses, &[raw("event=0x04,umask=0x01", "l3_lookup_state.l3_miss")]),
];

/// The L1's misses are what it asks of the L2; Zen 1 and 2 have no event for
/// all fills.
const ZEN_1_2: &[Row] = &[
    (ItlbMisses, &[raw("event=0x85,umask=0x07", "bp_l1_tlb_miss_l2_tlb_miss")]),
    (L1dMisses, &[raw("event=0x60,umask=0xc8", "l2_cache_accesses_from_dc_misses")]),
    (L1iMisses, &[raw("event=0x60,umask=0x10", "l2_cache_accesses_from_ic_misses")]),
];

/// Walks for coalesced pages (bit 3) are told apart from Zen 3 on.
const ZEN_3_ITLB: Row =
    (ItlbMisses, &[raw("event=0x85,umask=0x0f", "bp_l1_tlb_miss_l2_tlb_miss.all")]);

const ZEN_3: &[Row] = &[
    ZEN_3_ITLB,
    (L1dMisses, &[raw("event=0x44,umask=0xff", "ls_any_fills_from_sys.all")]),
    (L1iMisses, &[raw("event=0x18e,umask=0x18", "ic_tag_hit_miss.instruction_cache_miss")]),
];

/// Zen 6 has no event for tags that miss: what fills the L1I stands for it. Its
/// L1D fills are not known to be Zen 3's.
const ZEN_6: &[Row] =
    &[ZEN_3_ITLB, (L1iMisses, &[raw("event=0x29c,umask=0xdf", "ic_fills_from_sys.all")])];

/// The common events of PMUv3 (Arm Architecture Reference Manual, "PMU events
/// and event numbers"). Which of them a core has, its PMU lists.
const PMUV3: &[Row] = &[
    (Instructions, &[raw("event=0x08", "INST_RETIRED")]),
    (Cycles, &[raw("event=0x11", "CPU_CYCLES")]),
    (L1dMisses, &[raw("event=0x03", "L1D_CACHE_REFILL")]),
    (L1iMisses, &[raw("event=0x01", "L1I_CACHE_REFILL")]),
    (L2Misses, &[raw("event=0x17", "L2D_CACHE_REFILL")]),
];

const NEOVERSE: &[Row] = &[
    (Branches, &[raw("event=0x21", "BR_RETIRED")]),
    (BranchMisses, &[raw("event=0x22", "BR_MIS_PRED_RETIRED")]),
    (LlcReferences, &[raw("event=0x36", "LL_CACHE_RD")]),
    (LlcMisses, &[raw("event=0x37", "LL_CACHE_MISS_RD")]),
    (DtlbMisses, &[raw("event=0x34", "DTLB_WALK")]),
    (ItlbMisses, &[raw("event=0x35", "ITLB_WALK")]),
];

/// The older set: branches as predicted, TLBs of the first level. The L3 of
/// X-Gene counts in PMUs of its own (`drivers/perf/xgene_pmu.c`), reads only; their codes differ
/// between its generations, so the events are those that the PMU lists by these names.
const X_GENE: &[Row] = &[
    (Branches, &[raw("event=0x12", "BR_PRED")]),
    (BranchMisses, &[raw("event=0x10", "BR_MIS_PRED")]),
    (DtlbMisses, &[raw("event=0x05", "L1D_TLB_REFILL")]),
    (ItlbMisses, &[raw("event=0x02", "L1I_TLB_REFILL")]),
    (LlcReferences, &[raw("read-hit", "read-hit"), raw("read-miss", "read-miss")]),
    (LlcMisses, &[raw("read-miss", "read-miss")]),
];

const fn table(name: &'static str, rows: &'static [&'static [Row]]) -> EventTable {
    EventTable { name, rows, last_level: LastLevel::Core, top_down: &[] }
}

const fn zen(name: &'static str, rows: &'static [&'static [Row]]) -> EventTable {
    EventTable { name, rows, last_level: LastLevel::Uncore("amd_l3"), top_down: &[] }
}

/// A vendor, a family, ranges of models and their table.
type X86 = (&'static str, u32, &'static [(u32, u32)], EventTable);

/// Families, models and their tables, the first that holds counts. Model
/// numbers are those of the kernel's `intel-family.h` and of AMD's revision guides.
const X86_CORES: &[X86] = &[
    (
        "GenuineIntel",
        6,
        // Haswell and Broadwell, their servers and Xeon D.
        &[(0x3c, 0x3d), (0x3f, 0x3f), (0x45, 0x47), (0x4f, 0x4f), (0x56, 0x56)],
        table("Intel Haswell and Broadwell", &[HASWELL, INTEL_ANY]),
    ),
    (
        "GenuineIntel",
        6,
        // Skylake, Kaby Lake, Comet Lake; 0x55 is Skylake-SP, Cascade and Cooper Lake.
        &[(0x4e, 0x4e), (0x55, 0x55), (0x5e, 0x5e), (0x8e, 0x8e), (0x9e, 0x9e), (0xa5, 0xa6)],
        table("Intel Skylake and Cascade Lake", &[SKYLAKE, INTEL_ANY]).with(top_down::SKYLAKE),
    ),
    (
        "GenuineIntel",
        6,
        &[(0x6a, 0x6a), (0x6c, 0x6c), (0x7d, 0x7e), (0xa7, 0xa7)],
        table("Intel Ice Lake", &[ICE_LAKE, INTEL_ANY]).with(top_down::ICE_LAKE),
    ),
    (
        "GenuineIntel",
        6,
        // Sapphire, Emerald and Granite Rapids.
        &[(0x8f, 0x8f), (0xcf, 0xcf), (0xad, 0xae)],
        table("Intel Sapphire, Emerald and Granite Rapids", &[GOLDEN_COVE, INTEL_ANY])
            .with(top_down::GOLDEN_COVE),
    ),
    (
        "GenuineIntel",
        6,
        &[(0, u32::MAX)],
        table("Intel (architectural events alone)", &[INTEL_ANY]),
    ),
    ("AuthenticAMD", 0x17, &[(0, u32::MAX)], zen("AMD Zen 1 and 2", &[ZEN_1_2, ZEN])),
    ("HygonGenuine", 0x18, &[(0, u32::MAX)], zen("Hygon (Zen 1)", &[ZEN_1_2, ZEN])),
    ("AuthenticAMD", 0x19, &[(0x00, 0x0f), (0x20, 0x5f)], zen("AMD Zen 3", &[ZEN_3, ZEN])),
    ("AuthenticAMD", 0x19, &[(0, u32::MAX)], zen("AMD Zen 4", &[ZEN_3, ZEN]).with(top_down::ZEN_4)),
    (
        "AuthenticAMD",
        0x1a,
        &[(0x50, 0x5f), (0x90, 0xaf), (0xc0, 0xcf)],
        zen("AMD Zen 6", &[ZEN_6, ZEN]).with(top_down::ZEN_6),
    ),
    ("AuthenticAMD", 0x1a, &[(0, u32::MAX)], zen("AMD Zen 5", &[ZEN_3, ZEN]).with(top_down::ZEN_5)),
];

/// Implementer and the table of its server cores.
const ARM: EventTable =
    table("Arm Neoverse and other PMUv3 cores", &[PMUV3, NEOVERSE]).with(top_down::NEOVERSE);
const ARM_X_GENE: EventTable = EventTable {
    name: "Applied Micro X-Gene",
    rows: &[PMUV3, X_GENE],
    last_level: LastLevel::Uncore("l3c"),
    top_down: &[],
};
const APPLIED_MICRO: u32 = 0x50;

/// The core's PMU here and the table for it.
///
/// # Errors
/// There is no PMU (a virtual machine), or no table for this vendor, or cores
/// of two kinds whose counters cannot be added up.
pub fn core(root: &Root) -> Result<CoreEvents, Unavailable> {
    let devices = root.list(PMUS).map_err(|error| {
        Unavailable::new(error.to_string(), "use a kernel with CONFIG_PERF_EVENTS, and mount /sys")
    })?;
    let arm: Vec<&String> = devices
        .iter()
        .filter(|name| name.starts_with("armv8_") || name.starts_with("armv9_"))
        .collect();
    if devices.iter().any(|name| name == "cpu_atom") || arm.len() > 1 {
        return Err(Unavailable::new(
            "the CPU has cores of two kinds, each with counters of its own",
            "pin the load to one kind and name raw events of its PMU yourself",
        ));
    }
    let pmu = devices.iter().find(|name| *name == "cpu" || *name == "cpu_core");
    let Some(pmu) = pmu.or(arm.first().copied()) else {
        return Err(Unavailable::new(
            format!("{PMUS} has no CPU: the hypervisor does not pass the counters on"),
            "use bare metal or an instance type that offers a virtual PMU; without one, \
             cachegrind counts the same workload in simulation",
        ));
    };
    let cpuinfo = root.text(CPUINFO)?;
    let table = identify(&cpuinfo)?;
    Ok(CoreEvents { pmu: pmu.clone(), table, lists_events: !arm.is_empty() })
}

fn identify(cpuinfo: &str) -> Result<EventTable, Unavailable> {
    if let Some(text) = field(cpuinfo, "CPU implementer") {
        let code = text.strip_prefix("0x").and_then(|hex| u32::from_str_radix(hex, 16).ok());
        return Ok(if code == Some(APPLIED_MICRO) { ARM_X_GENE } else { ARM });
    }
    let number = |key: &str| field(cpuinfo, key).and_then(|text| text.parse::<u32>().ok());
    let vendor = field(cpuinfo, "vendor_id").unwrap_or("an unnamed vendor");
    let (family, model) = (number("cpu family"), number("model"));
    let row = X86_CORES.iter().find(|(of, known, models, _)| {
        *of == vendor
            && family == Some(*known)
            && model.is_some_and(|model| models.iter().any(|(a, b)| (*a..=*b).contains(&model)))
    });
    row.map(|(.., table)| *table).ok_or_else(|| {
        let shown = |number: Option<u32>| number.map_or("unknown".to_owned(), |n| n.to_string());
        Unavailable::new(
            format!(
                "there is no event table for {vendor} family {} model {}",
                shown(family),
                shown(model)
            ),
            "name raw events of this CPU's manual yourself, and report the CPU",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(vendor: &str, family: u32, model: u32) -> Option<&'static str> {
        let text = format!("vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n");
        identify(&text).ok().map(|table| table.name)
    }

    #[test]
    fn finds_tables_by_family_and_model() {
        for (vendor, family, model, expected) in [
            ("GenuineIntel", 6, 63, "Intel Haswell and Broadwell"),
            ("GenuineIntel", 6, 79, "Intel Haswell and Broadwell"),
            ("GenuineIntel", 6, 85, "Intel Skylake and Cascade Lake"),
            ("GenuineIntel", 6, 106, "Intel Ice Lake"),
            ("GenuineIntel", 6, 143, "Intel Sapphire, Emerald and Granite Rapids"),
            ("GenuineIntel", 6, 45, "Intel (architectural events alone)"),
            ("AuthenticAMD", 23, 49, "AMD Zen 1 and 2"),
            ("AuthenticAMD", 25, 1, "AMD Zen 3"),
            ("AuthenticAMD", 25, 17, "AMD Zen 4"),
            ("AuthenticAMD", 26, 2, "AMD Zen 5"),
            ("AuthenticAMD", 26, 0x52, "AMD Zen 6"),
        ] {
            assert_eq!(name(vendor, family, model), Some(expected), "{vendor} {family} {model}");
        }
        assert_eq!(name("AuthenticAMD", 21, 2), None);
        assert_eq!(name("CentaurHauls", 6, 15), None);
        let xgene = "CPU implementer\t: 0x50\nCPU part\t: 0x000\n";
        assert_eq!(identify(xgene).unwrap().name, "Applied Micro X-Gene");
    }
}
