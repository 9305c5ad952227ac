//! What a table of top-down formulas is, and which one a machine has.

use model::Unavailable;

use crate::facts::cpu::CPUINFO;
use crate::parse::field;
use crate::perf::table::{CoreEvents, RawEvent};
use crate::root::Root;

/// The events and formulas of one kind of core, as its vendor published them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopDownTable {
    pub name: &'static str,
    /// The vendor's file.
    pub source: &'static str,
    /// Events that are counted together. The first of each group is the same, slots or cycles, and
    /// leads its group.
    pub groups: &'static [&'static [RawEvent]],
    /// Names and what they stand for, each after those that it uses. Those that are keys of
    /// [`model::SlotCategory`] are shares.
    pub(super) formulas: &'static [&'static [(&'static str, &'static str)]],
    pub(super) cores: Cores,
}

/// Which cores of an event table a table of formulas is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cores {
    All,
    /// Those whose threads share them, or do not.
    Smt(bool),
    /// Of these part numbers, with (variant, revision) from the first to the last.
    Parts(&'static [u32], (u32, u32), (u32, u32)),
}

pub(super) const ANY_REVISION: ((u32, u32), (u32, u32)) = ((0, 0), (u32::MAX, u32::MAX));

/// Arm, and Microsoft, whose Cobalt 100 has Arm's cores under their part numbers.
const IMPLEMENTERS: [u32; 2] = [0x41, 0x6d];

impl TopDownTable {
    pub(super) fn formulas(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.formulas.iter().flat_map(|formulas| formulas.iter().copied())
    }

    /// The table for the cores here.
    ///
    /// # Errors
    /// No vendor's formulas for this kind of core are in the tables.
    pub fn here(root: &Root, core: &CoreEvents) -> Result<&'static TopDownTable, Unavailable> {
        let tables = core.table.top_down;
        let cpuinfo = root.text(CPUINFO).unwrap_or_default();
        let found = tables.iter().find(|table| table.cores.are_those_of(root, &cpuinfo));
        found.ok_or_else(|| {
            let part = match field(&cpuinfo, "CPU part") {
                Some(part) => format!("{}, CPU part {part}", core.table.name),
                None => core.table.name.to_owned(),
            };
            Unavailable::new(
                format!("there are no top-down formulas for {part}"),
                "name raw events of this CPU's manual yourself: `kvmeter bench --probes \
                 event=cpu/TERMS/`",
            )
        })
    }
}

impl Cores {
    fn are_those_of(self, root: &Root, cpuinfo: &str) -> bool {
        match self {
            Cores::All => true,
            Cores::Smt(wanted) => {
                let active = root.number::<u8>("/sys/devices/system/cpu/smt/active");
                active.is_ok_and(|active| active == 1) == wanted
            }
            Cores::Parts(parts, first, last) => {
                let number = |key: &str| {
                    let text = field(cpuinfo, key)?;
                    match text.strip_prefix("0x") {
                        Some(digits) => u32::from_str_radix(digits, 16).ok(),
                        None => text.parse().ok(),
                    }
                };
                let is_one = |key: &str, known: &[u32]| {
                    number(key).is_some_and(|number| known.contains(&number))
                };
                let revision = number("CPU variant").zip(number("CPU revision"));
                is_one("CPU implementer", &IMPLEMENTERS)
                    && is_one("CPU part", parts)
                    && revision.is_some_and(|revision| (first..=last).contains(&revision))
            }
        }
    }
}
