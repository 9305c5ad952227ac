//! Memory bandwidth allocation (MBA).

use model::Unavailable;

use super::error::KnobRefusal;
use super::level::scoped;
use super::plan::KnobChange;
use super::{Knob, KnobInfo, resctrl, word_file};
use crate::root::Root;

const RESOURCE: &str = "MB";

pub struct Mba;

/// The smallest share, its step, and the whole.
fn steps(root: &Root) -> Result<(u32, u32, u32), Unavailable> {
    let info = resctrl::info(root, RESOURCE)?;
    let least = root.number(&format!("{info}/min_bandwidth"))?;
    let step = root.number::<u32>(&format!("{info}/bandwidth_gran"))?.max(1);
    let shares = resctrl::shares(root, RESOURCE)?;
    // Intel has percent; AMD eighths of a GB/s up to 2048.
    let most = shares.iter().filter_map(|(_, value)| value.parse().ok()).max().unwrap_or(100);
    Ok((least, step, most))
}

impl Knob for Mba {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "mba",
            what: "the share of the memory bandwidth that the load may take",
            mechanism: "a resctrl group kvmeter-PID: its schemata and its tasks or cpus_list",
            scope: "this process and its children, or the CPUs of LEVEL@CPUS",
            proof: "none here: it shows in the memory bandwidth of the load",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        let (least, step, most) = steps(root)?;
        if most > 100 {
            return Ok(vec![format!("{least}..{most} in eighths of a GB/s")]);
        }
        Ok((least..=most).step_by(step as usize).map(|share| share.to_string()).collect())
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        steps(root)?;
        let shares = resctrl::shares(root, RESOURCE)?;
        let values = shares.into_iter().zip(0..);
        Ok(super::level::tally(values.map(|((_, value), n)| (value, vec![n])).collect()))
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let (least, step, most) = steps(root)?;
        let (text, cpus) = scoped(level)?;
        let share = text
            .parse::<u32>()
            .ok()
            .filter(|share| (least..=most).contains(share) && (share - least).is_multiple_of(step));
        let share = share.ok_or_else(|| {
            KnobRefusal::Level(format!("a share is {least} to {most} in steps of {step}"))
        })?;
        let writes = resctrl::writes(root, RESOURCE, &share.to_string(), cpus.as_deref())?;
        let prove = word_file::unverified(
            "the delay is approximate (kernel resctrl documentation); watch dram.read",
        );
        Ok(KnobChange { writes, prove })
    }
}
