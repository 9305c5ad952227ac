//! Words that every cpufreq policy has in a file: the governor, the energy preference.

use model::Unavailable;

use super::error::KnobRefusal;
use super::level::{common, scoped, tally};
use super::plan::KnobChange;
use super::policy::Policy;
use super::{Knob, KnobInfo, policy, word_file};
use crate::root::Root;

/// One such file, and the file that lists its words.
pub struct PolicyWord {
    about: &'static KnobInfo,
    file: &'static str,
    words: &'static str,
    /// A specific remedy where the list is missing.
    remedy: Option<&'static str>,
}

/// The frequency governor.
pub const GOVERNOR: PolicyWord = PolicyWord {
    about: &KnobInfo {
        name: "governor",
        what: "what chooses the CPU's frequency",
        mechanism: "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
        scope: "every policy, or those of LEVEL@CPUS",
        proof: "none: a governor shows only in the frequency of a whole run",
    },
    file: "scaling_governor",
    words: "scaling_available_governors",
    remedy: None,
};

/// The preference of a CPU that chooses its own frequency.
pub const EPP: PolicyWord = PolicyWord {
    about: &KnobInfo {
        name: "epp",
        what: "whether the CPU's own choice of frequency leans to speed or to energy",
        mechanism: "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
        scope: "every policy, or those of LEVEL@CPUS",
        proof: "none: a preference shows only in the frequency of a whole run",
    },
    file: "energy_performance_preference",
    words: "energy_performance_available_preferences",
    remedy: Some("use intel_pstate or amd-pstate in active mode on a CPU with HWP or CPPC"),
};

impl Knob for PolicyWord {
    fn info(&self) -> &'static KnobInfo {
        self.about
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        let mut tables = Vec::new();
        for policy in policy::all(root)? {
            tables.push((self.words(root, &policy)?, policy.cpus));
        }
        Ok(common(tables))
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        let mut values = Vec::new();
        for policy in policy::all(root)? {
            values.push((root.value(&policy.file(self.file))?, policy.cpus));
        }
        Ok(tally(values))
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let (word, cpus) = scoped(level)?;
        let policies = policy::of(root, cpus.as_deref())?;
        for policy in &policies {
            word_file::check(word, &self.words(root, policy)?)?;
        }
        let prove = word_file::unverified("its effect is the frequency over a run: frequency.mean");
        word_file::plan_writes(
            root,
            policies.iter().map(|policy| policy.file(self.file)),
            word,
            prove,
        )
    }
}

impl PolicyWord {
    /// The words of one policy, which differ on hybrid machines.
    fn words(&self, root: &Root, policy: &Policy) -> Result<Vec<String>, Unavailable> {
        let text = root.value(&policy.file(self.words)).map_err(|error| match self.remedy {
            Some(remedy) => Unavailable::new(error.to_string(), remedy),
            None => error.into(),
        })?;
        Ok(word_file::words(&text))
    }
}
