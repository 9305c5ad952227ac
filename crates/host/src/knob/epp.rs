//! The energy performance preference: what a CPU that chooses its own frequency leans to.

use super::error::No;
use super::level::scoped;
use super::plan::Turn;
use super::{About, Knob, choice, governor, policy};
use crate::root::Root;
use crate::unavailable::Unavailable;

const FILE: &str = "energy_performance_preference";

pub struct Epp;

impl Knob for Epp {
    fn about(&self) -> &'static About {
        &About {
            name: "epp",
            what: "whether the CPU's own choice of frequency leans to speed or to energy",
            mechanism: "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
            scope: "every policy, or those of LEVEL@CPUS",
            proof: "none: a preference shows only in the frequency of a whole run",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        let policies = policy::all(root)?;
        let path = policies[0].file("energy_performance_available_preferences");
        let text = root.value(&path).map_err(|error| {
            let remedy = "use intel_pstate or amd-pstate in active mode on a CPU with HWP or CPPC";
            Unavailable::new(error.to_string(), remedy)
        })?;
        Ok(choice::words(&text))
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        governor::read(root, FILE)
    }

    fn plan(&self, root: &Root, level: &str) -> Result<Turn, No> {
        let (word, cpus) = scoped(level)?;
        choice::check(word, &self.levels(root)?)?;
        let policies = policy::of(root, cpus.as_deref())?;
        let prove = choice::unverified("its effect is the frequency over a run: frequency.mean");
        choice::turn(root, policies.iter().map(|policy| policy.file(FILE)), word, prove)
    }
}
