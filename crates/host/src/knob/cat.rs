//! Cache allocation (CAT): the ways of the last-level cache into which the load may allocate.

use model::Unavailable;

use super::error::KnobRefusal;
use super::level::scoped;
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::{Knob, KnobInfo, resctrl};
use crate::format;
use crate::parse::cache_size;
use crate::root::{Root, RootError};

const RESOURCE: &str = "L3";
const SIZE: &str = "/sys/devices/system/cpu/cpu0/cache/index3/size";

pub struct Cat;

/// The mask of all ways, and the minimum of a group.
fn ways(root: &Root) -> Result<(u64, u32), Unavailable> {
    let info = resctrl::info(root, RESOURCE)?;
    let path = format!("{info}/cbm_mask");
    let text = root.value(&path)?;
    let all = u64::from_str_radix(&text, 16)
        .map_err(|_| RootError::malformed(&path, &text, "a mask in hexadecimal"))?;
    Ok((all, root.number(&format!("{info}/min_cbm_bits"))?))
}

impl Knob for Cat {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "cat",
            what: "the ways of the last-level cache into which the load may allocate",
            mechanism: "a resctrl group kvmeter-PID: its schemata and its tasks or cpus_list",
            scope: "this process and its children, or the CPUs of LEVEL@CPUS",
            proof: "the group's llc_occupancy stays within its ways",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        let (all, least) = ways(root)?;
        Ok((least..=all.count_ones()).map(|ways| ways.to_string()).collect())
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        ways(root)?;
        let ways = |mask: &str| match u64::from_str_radix(mask, 16) {
            Ok(mask) => mask.count_ones().to_string(),
            Err(_) => mask.to_owned(),
        };
        let shares = resctrl::shares(root, RESOURCE)?;
        let values =
            shares.iter().zip(0..).map(|((_, mask), number)| (ways(mask), vec![number])).collect();
        Ok(super::level::tally(values))
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let (all, least) = ways(root)?;
        let (text, cpus) = scoped(level)?;
        let most = all.count_ones();
        let count = text.parse().ok().filter(|ways| (least..=most).contains(ways));
        let count = count.ok_or_else(|| KnobRefusal::Level(format!("{least} to {most} ways")))?;
        // The lowest ways, as devices use the highest.
        let mask = all & ((1u64 << count) - 1);
        let writes = resctrl::writes(root, RESOURCE, &format!("{mask:x}"), cpus.as_deref())?;
        Ok(KnobChange { writes, prove: prove(f64::from(count) / f64::from(most)) })
    }
}

/// Factor by which a measured occupancy may be too high.
const TOLERANCE: f64 = 1.1;

fn prove(share: f64) -> Prove {
    Box::new(move |root| {
        let group = format!("{}/mon_data", resctrl::group());
        let domains = root.list(&group).unwrap_or_default();
        let caches = root.value(SIZE).ok().and_then(|text| cache_size(&text));
        let (Some(size), false) = (caches, domains.is_empty()) else {
            return ProofOutcome::Unverified(
                "the group's occupancy of the cache is not counted here".to_owned(),
            );
        };
        if root.is_live() {
            fill(size);
        }
        let most = size as f64 * share;
        let mut observed = Vec::new();
        for domain in domains.iter().filter(|name| name.starts_with("mon_L3")) {
            let path = format!("{group}/{domain}/llc_occupancy");
            let Ok(bytes) = root.number::<u64>(&path) else { continue };
            observed.push((domain.clone(), bytes));
        }
        let text: Vec<String> = observed
            .iter()
            .map(|(domain, bytes)| format!("{domain}: {}", format::bytes(*bytes)))
            .collect();
        let text = format!("{} of at most {}", text.join(", "), format::bytes(most as u64));
        let used = observed.iter().any(|(_, bytes)| *bytes > 0);
        let within = observed.iter().all(|(_, bytes)| *bytes as f64 <= most * TOLERANCE);
        if used && within { ProofOutcome::Proven(text) } else { ProofOutcome::Unverified(text) }
    })
}

/// Reads more memory than the cache holds.
fn fill(size: u64) {
    let memory = vec![1u8; size as usize * 2];
    for _ in 0..2 {
        let sum: u64 = memory.iter().step_by(64).map(|byte| u64::from(*byte)).sum();
        std::hint::black_box(sum);
    }
}
