//! How many ways of the last-level cache devices may allocate into.

use model::Unavailable;

use super::error::KnobRefusal;
use super::models::{IIO_LLC_WAYS, check_msr, msr};
use super::plan::KnobChange;
use super::target::KnobTarget;
use super::uncore::first_of_packages;
use super::write::KnobWrite;
use super::{Knob, KnobInfo, word_file};
use crate::root::Root;

const REGISTER: u64 = 0xc8b;
const WAYS: &str = "/sys/devices/system/cpu/cpu0/cache/index3/ways_of_associativity";

pub struct DdioWays;

/// A CPU of each package, and the ways of the cache.
fn here(root: &Root) -> Result<(Vec<u32>, u32), Unavailable> {
    IIO_LLC_WAYS.check(root)?;
    let cpus = first_of_packages(root)?;
    cpus.iter().try_for_each(|cpu| check_msr(root, *cpu))?;
    let ways: u32 = root.number(WAYS)?;
    if !(1..32).contains(&ways) {
        let reason = format!("{WAYS} is {ways}, and the mask of the register has fewer bits");
        return Err(Unavailable::new(reason, "report the file with the CPU's name"));
    }
    Ok((cpus, ways))
}

impl Knob for DdioWays {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "ddio_ways",
            what: "how many ways of the last-level cache devices may allocate into",
            mechanism: "MSR 0xC8B (IIO_LLC_WAYS), the highest ways first",
            scope: "every package",
            proof: "none here: models exist that take the write without effect",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        let (_, ways) = here(root)?;
        Ok((1..=ways).map(|ways| ways.to_string()).collect())
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        let mut values = Vec::new();
        for cpu in here(root)?.0 {
            let mask = u64::from_le_bytes(root.bytes_at(&msr(cpu), REGISTER)?);
            values.push((mask.count_ones().to_string(), vec![cpu]));
        }
        Ok(super::level::tally(values))
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let (cpus, all) = here(root)?;
        let ways = level.parse::<u32>().ok().filter(|ways| (1..=all).contains(ways));
        let ways = ways.ok_or_else(|| KnobRefusal::Level(format!("the cache has {all} ways")))?;
        let mask = ((1u64 << ways) - 1) << (all - ways);
        let mut writes = Vec::new();
        for cpu in cpus {
            let place = KnobTarget::register(msr(cpu), REGISTER, 8);
            writes.extend(KnobWrite::turn(root, place, format!("{mask:#x}"))?);
        }
        let prove = word_file::unverified(
            "the register read back as written, which proves nothing; watch dram.read and \
             dram.written while a device writes",
        );
        Ok(KnobChange { writes, prove })
    }
}
