//! Frequencies above the base frequency.

use super::error::No;
use super::place::Place;
use super::plan::Turn;
use super::proof::{Outcome, Prove};
use super::write::Write;
use super::{About, Knob, choice, observed};
use crate::facts::topology;
use crate::root::Root;
use crate::unavailable::Unavailable;

const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";

pub struct Turbo;

/// The file, and what it holds when turbo is on and off.
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
    fn about(&self) -> &'static About {
        &About {
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

    fn plan(&self, root: &Root, level: &str) -> Result<Turn, No> {
        choice::check(level, &self.levels(root)?)?;
        let (path, [on, off]) = switch(root)?;
        let is_on = level == "on";
        let write = Write::turn(root, Place::file(path), if is_on { on } else { off })?;
        Ok(Turn { writes: write.into_iter().collect(), prove: prove(is_on) })
    }
}

/// Steps of the counters and of the clock that a CPU at its base may show above it.
const SLACK: f64 = 0.01;

fn prove(on: bool) -> Prove {
    Box::new(move |root| {
        let cpu = topology::online(root).ok().and_then(|cpus| cpus.first().copied()).unwrap_or(0);
        let ratio = match observed::ratio(root, cpu) {
            Ok(ratio) => ratio,
            Err(why) => return Outcome::Unverified(why),
        };
        let seen = format!("CPU {cpu} ran at {ratio:.3} of its base frequency under load");
        match (on, ratio > 1.0 + SLACK) {
            (true, true) | (false, false) => Outcome::Proven(seen),
            (false, true) => Outcome::Refuted(seen),
            // Heat, power limits and wide instructions keep a CPU down, too.
            (true, false) => Outcome::Unverified(seen),
        }
    })
}
