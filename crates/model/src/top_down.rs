//! Top-down analysis: what became of the pipeline's slots while a run's load was repeated.

use serde::{Deserialize, Serialize};

use crate::{ProfiledSide, ReadingValue};

/// What becomes of a pipeline slot: room for one operation in one cycle. The names are those of
/// Yasin, "A Top-Down Method for Performance Analysis and Counters Architecture" (ISPASS 2014).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotCategory {
    /// An operation that retires.
    Retiring,
    /// An operation that is thrown away, and what recovering from it takes.
    BadSpeculation,
    /// The front end delivers nothing.
    FrontendBound,
    /// The back end has no room.
    BackendBound,
    /// The other thread of the core had the slot; AMD alone counts it.
    SmtContention,
    LightOperations,
    /// Operations of instructions that need several, or of microcode.
    HeavyOperations,
    BranchMispredicts,
    /// What else throws operations away, such as an access that breaks the memory's order.
    MachineClears,
    FetchLatency,
    FetchBandwidth,
    MemoryBound,
    CoreBound,
    /// Of cycles, not of slots: the front end delivers nothing.
    FrontendStalls,
    /// Of cycles, not of slots: the back end has no room.
    BackendStalls,
}

impl SlotCategory {
    /// The first level; its shares add up to 1.
    pub const FIRST_LEVEL: [SlotCategory; 5] = [
        SlotCategory::Retiring,
        SlotCategory::BadSpeculation,
        SlotCategory::FrontendBound,
        SlotCategory::BackendBound,
        SlotCategory::SmtContention,
    ];
    /// All, the first level first.
    pub const ALL: [SlotCategory; 15] = [
        SlotCategory::Retiring,
        SlotCategory::BadSpeculation,
        SlotCategory::FrontendBound,
        SlotCategory::BackendBound,
        SlotCategory::SmtContention,
        SlotCategory::LightOperations,
        SlotCategory::HeavyOperations,
        SlotCategory::BranchMispredicts,
        SlotCategory::MachineClears,
        SlotCategory::FetchLatency,
        SlotCategory::FetchBandwidth,
        SlotCategory::MemoryBound,
        SlotCategory::CoreBound,
        SlotCategory::FrontendStalls,
        SlotCategory::BackendStalls,
    ];

    /// Its name in files: `backend_bound`.
    pub const fn key(self) -> &'static str {
        match self {
            SlotCategory::Retiring => "retiring",
            SlotCategory::BadSpeculation => "bad_speculation",
            SlotCategory::FrontendBound => "frontend_bound",
            SlotCategory::BackendBound => "backend_bound",
            SlotCategory::SmtContention => "smt_contention",
            SlotCategory::LightOperations => "light_operations",
            SlotCategory::HeavyOperations => "heavy_operations",
            SlotCategory::BranchMispredicts => "branch_mispredicts",
            SlotCategory::MachineClears => "machine_clears",
            SlotCategory::FetchLatency => "fetch_latency",
            SlotCategory::FetchBandwidth => "fetch_bandwidth",
            SlotCategory::MemoryBound => "memory_bound",
            SlotCategory::CoreBound => "core_bound",
            SlotCategory::FrontendStalls => "frontend_stalls",
            SlotCategory::BackendStalls => "backend_stalls",
        }
    }

    /// Of which category of the first level it is a part.
    pub const fn part_of(self) -> Option<SlotCategory> {
        match self {
            SlotCategory::LightOperations | SlotCategory::HeavyOperations => {
                Some(SlotCategory::Retiring)
            }
            SlotCategory::BranchMispredicts | SlotCategory::MachineClears => {
                Some(SlotCategory::BadSpeculation)
            }
            SlotCategory::FetchLatency | SlotCategory::FetchBandwidth => {
                Some(SlotCategory::FrontendBound)
            }
            SlotCategory::MemoryBound | SlotCategory::CoreBound => Some(SlotCategory::BackendBound),
            _ => None,
        }
    }
}

/// The share of a category, of all slots (or cycles), from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotShare {
    pub category: SlotCategory,
    pub share: ReadingValue,
}

/// An event that shares were computed from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotEvent {
    /// As perf writes it, with the manual's name: `cpu/event=0xc1/ (ex_ret_ops)`.
    pub event: String,
    /// Over all threads, scaled to the whole window.
    pub count: ReadingValue,
    /// The share of the time in which it was counted; 0 where it never was.
    pub running: f64,
}

/// What became of the slots of one program's processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopDown {
    pub side: ProfiledSide,
    pub process: String,
    /// The kind of core: `AMD Zen 4`.
    pub cpu: String,
    /// Where the formulas were published.
    pub source: String,
    /// Only slots of user space are counted.
    pub user_only: bool,
    pub shares: Vec<SlotShare>,
    pub events: Vec<SlotEvent>,
}

/// A pass that counted slots, or why there was none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TopDownPass {
    /// Length of its window, and what was done in it.
    pub seconds: f64,
    pub operations: u64,
    pub processes: Vec<TopDown>,
    /// Why slots were not counted, or not those of every process, and what helps.
    pub missing: Option<String>,
}

impl TopDown {
    /// The share of a category; none where it is unavailable.
    pub fn share(&self, category: SlotCategory) -> Option<f64> {
        self.shares.iter().find(|share| share.category == category)?.share.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_names_in_files() {
        for category in SlotCategory::ALL {
            let name = serde_json::to_value(category).unwrap();
            assert_eq!(name, category.key());
            let above = category.part_of();
            assert!(above.is_none_or(|above| SlotCategory::FIRST_LEVEL.contains(&above)));
        }
    }
}
