//! Frequencies above the base frequency.

use model::Unavailable;

use super::error::KnobRefusal;
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::target::KnobTarget;
use super::write::KnobWrite;
use super::{Knob, KnobInfo, observed_frequency, word_file};
use crate::facts::topology;
use crate::root::Root;

const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";

pub struct Turbo;

/// The file, and its values for on and off.
fn switch(root: &Root) -> Result<(&'static str, [&'static str; 2]), Unavailable> {
    if root.exists(NO_TURBO) {
        return Ok((NO_TURBO, ["0", "1"]));
    }
    if root.exists(BOOST) {
        return Ok((BOOST, ["1", "0"]));
    }
    Err(Unavailable::new(
        format!("neither {NO_TURBO} nor {BOOST} exists"),
        "set turbo in the firmware; a virtual machine cannot",
    ))
}

impl Knob for Turbo {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "turbo",
            what: "frequencies above the base frequency",
            mechanism: "intel_pstate/no_turbo or cpufreq/boost in /sys/devices/system/cpu",
            scope: "the machine",
            proof: "APERF over MPERF of a busy CPU: no more than 1 when off, more when on",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        switch(root)?;
        Ok(vec!["on".to_owned(), "off".to_owned()])
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        let (path, [on, _]) = switch(root)?;
        Ok(if root.value(path)? == on { "on" } else { "off" }.to_owned())
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        word_file::check(level, &self.levels(root)?)?;
        let (path, [on, off]) = switch(root)?;
        let is_on = level == "on";
        let write = KnobWrite::turn(root, KnobTarget::file(path), if is_on { on } else { off })?;
        Ok(KnobChange { writes: write.into_iter().collect(), prove: prove(is_on) })
    }
}

/// Share by which a CPU at its base frequency may seem to exceed it, because counters and clock
/// have steps.
const TOLERANCE: f64 = 0.01;

fn prove(on: bool) -> Prove {
    Box::new(move |root| {
        let cpu = topology::online(root).ok().and_then(|cpus| cpus.first().copied()).unwrap_or(0);
        let ratio = match observed_frequency::ratio(root, cpu) {
            Ok(ratio) => ratio,
            Err(why) => return ProofOutcome::Unverified(why),
        };
        let observed = format!("CPU {cpu} ran at {ratio:.3} of its base frequency under load");
        match (on, ratio > 1.0 + TOLERANCE) {
            (true, true) | (false, false) => ProofOutcome::Proven(observed),
            (false, true) => ProofOutcome::Refuted(observed),
            // Heat, power limits and wide instructions limit the frequency, too.
            (true, false) => ProofOutcome::Unverified(observed),
        }
    })
}
