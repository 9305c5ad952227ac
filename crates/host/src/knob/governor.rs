//! The cpufreq governor: what chooses the frequency.

use super::error::No;
use super::level::{scoped, tally};
use super::plan::Turn;
use super::{About, Knob, choice, policy};
use crate::root::Root;
use crate::unavailable::Unavailable;

const FILE: &str = "scaling_governor";

pub struct Governor;

impl Knob for Governor {
    fn about(&self) -> &'static About {
        &About {
            name: "governor",
            what: "what chooses the CPU's frequency",
            mechanism: "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
            scope: "every policy, or those of LEVEL@CPUS",
            proof: "none: a governor shows only in the frequency of a whole run",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        let policies = policy::all(root)?;
        let path = policies[0].file("scaling_available_governors");
        Ok(choice::words(&root.value(&path)?))
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        read(root, FILE)
    }

    fn plan(&self, root: &Root, level: &str) -> Result<Turn, No> {
        let (word, cpus) = scoped(level)?;
        choice::check(word, &self.levels(root)?)?;
        let policies = policy::of(root, cpus.as_deref())?;
        let prove = choice::unverified("its effect is the frequency over a run: frequency.mean");
        choice::turn(root, policies.iter().map(|policy| policy.file(FILE)), word, prove)
    }
}

/// One file of every policy.
pub(super) fn read(root: &Root, file: &str) -> Result<String, Unavailable> {
    let mut values = Vec::new();
    for policy in policy::all(root)? {
        values.push((root.value(&policy.file(file))?, policy.cpus));
    }
    Ok(tally(values))
}
