//! The lowest and the highest frequency that the governor may choose.

use model::{Unavailable, cpu_list};

use super::error::KnobRefusal;
use super::level::{common, frequency, scoped, span, span_text, tally};
use super::plan::KnobChange;
use super::policy::Policy;
use super::proof::{ProofOutcome, Prove};
use super::target::KnobTarget;
use super::write::KnobWrite;
use super::{Knob, KnobInfo, observed_frequency, policy};
use crate::format;
use crate::root::{Root, RootError};

const MIN: &str = "scaling_min_freq";
const MAX: &str = "scaling_max_freq";
const BASE: &str = "base_frequency";

pub struct Frequency;

impl Knob for Frequency {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "frequency",
            what: "the lowest and the highest frequency of the CPUs",
            mechanism: "/sys/devices/system/cpu/cpufreq/policy*/scaling_{min,max}_freq",
            scope: "every policy, or those of LEVEL@CPUS",
            proof: "APERF and MPERF of a busy CPU stay within the limits",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        self.read(root)?;
        let policies = policy::all(root)?;
        let (mut tables, mut spans) = (Vec::new(), Vec::new());
        for policy in policies {
            let (least, most) = hardware(root, &policy)?;
            spans.push((span_text(least, most), policy.cpus.clone()));
            let mut levels = vec!["all".to_owned(), "min".to_owned(), "max".to_owned()];
            if root.exists(&policy.file(BASE)) {
                levels.push("base".to_owned());
            }
            tables.push((levels, policy.cpus));
        }
        let mut levels = common(tables);
        levels.push(format!("FREQUENCY or LOW..HIGH within {}", tally(spans)));
        Ok(levels)
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        let mut values = Vec::new();
        for policy in policy::all(root)? {
            let (low, high) = (root.number(&policy.file(MIN))?, root.number(&policy.file(MAX))?);
            values.push((span_text(low, high), policy.cpus));
        }
        Ok(tally(values))
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let (text, cpus) = scoped(level)?;
        let policies = policy::of(root, cpus.as_deref())?;
        let (mut writes, mut limits) = (Vec::new(), Vec::new());
        for policy in &policies {
            let (least, most) = hardware(root, policy)?;
            let (low, high) = match text {
                "base" if !root.exists(&policy.file(BASE)) => {
                    let cpus = cpu_list::show(&policy.cpus);
                    return Err(KnobRefusal::Level(format!(
                        "CPUs {cpus} report no base frequency"
                    )));
                }
                "base" => {
                    let base = root.number(&policy.file(BASE))?;
                    (base, base)
                }
                text => span(text, least, most)?,
            };
            writes.extend(limit(root, (policy.file(MIN), policy.file(MAX)), (low, high))?);
            limits.push((policy.cpus.clone(), policy.file(BASE), low, high));
        }
        Ok(KnobChange { writes, prove: prove(limits) })
    }
}

fn hardware(root: &Root, policy: &Policy) -> Result<(u64, u64), RootError> {
    Ok((
        root.number(&policy.file("cpuinfo_min_freq"))?,
        root.number(&policy.file("cpuinfo_max_freq"))?,
    ))
}

/// Writes of two limits in an order in which the lower never exceeds the higher, neither now nor
/// when they are put back in reverse.
pub(super) fn limit(
    root: &Root,
    (min, max): (String, String),
    (low, high): (u64, u64),
) -> Result<Vec<KnobWrite>, KnobRefusal> {
    let highest: u64 = root.number(&max)?;
    let low = KnobWrite::turn(root, KnobTarget::file(min), low.to_string())?;
    let is_above = low.as_ref().is_some_and(|write| frequency(&write.new) > Some(highest));
    let high = KnobWrite::turn(root, KnobTarget::file(max), high.to_string())?;
    let writes = if is_above { [high, low] } else { [low, high] };
    Ok(writes.into_iter().flatten().collect())
}

/// Share by which a busy CPU may exceed its limits, because frequencies have steps.
const TOLERANCE: f64 = 0.03;

fn prove(limits: Vec<(Vec<u32>, String, u64, u64)>) -> Prove {
    Box::new(move |root| {
        let mut observed = Vec::new();
        for (cpus, base, low, high) in &limits {
            let Some(cpu) = cpus.first() else { continue };
            let base: u64 = match root.number(base) {
                Ok(base) => base,
                Err(error) => {
                    return ProofOutcome::Unverified(format!("no base frequency: {error}"));
                }
            };
            let ratio = match observed_frequency::ratio(root, *cpu) {
                Ok(ratio) => ratio,
                Err(why) => return ProofOutcome::Unverified(why),
            };
            let ran = ratio * base as f64;
            let text = format!("CPU {cpu} ran at {}", format::kilohertz(ran as u64));
            if ran > *high as f64 * (1.0 + TOLERANCE) {
                return ProofOutcome::Refuted(text);
            }
            if ran < *low as f64 * (1.0 - TOLERANCE) {
                // Heat and power limits may force a lower frequency.
                return ProofOutcome::Unverified(format!("{text}, below the limit"));
            }
            observed.push(text);
        }
        ProofOutcome::Proven(observed.join(", "))
    })
}
