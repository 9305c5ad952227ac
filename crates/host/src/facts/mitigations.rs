use super::Facts;
use crate::root::{Root, RootError};

const FOLDER: &str = "/sys/devices/system/cpu/vulnerabilities";

/// A vulnerability of the CPU and its mitigation.
pub(crate) struct CpuVulnerability {
    pub name: String,
    /// The kernel's words: `Not affected`, `Mitigation: ...`, `Vulnerable ...`.
    pub state: String,
}

impl CpuVulnerability {
    pub fn affects(&self) -> bool {
        self.state != "Not affected"
    }
}

pub(crate) fn vulnerabilities(root: &Root) -> Result<Vec<CpuVulnerability>, RootError> {
    let names = root.list(FOLDER)?;
    if names.is_empty() {
        return Err(RootError::Empty { path: FOLDER.to_owned() });
    }
    let flaw = |name: String| {
        let state = root.value(&format!("{FOLDER}/{name}"))?;
        Ok(CpuVulnerability { name, state })
    };
    names.into_iter().map(flaw).collect()
}

pub(super) fn add(root: &Root, facts: &mut Facts) {
    let flaws = match vulnerabilities(root) {
        Ok(flaws) => flaws,
        Err(error) => return facts.unknown("mitigations", FOLDER, error),
    };
    let (affecting, others): (Vec<CpuVulnerability>, Vec<CpuVulnerability>) =
        flaws.into_iter().partition(CpuVulnerability::affects);
    for flaw in affecting {
        let name = format!("mitigations.{}", flaw.name);
        facts.known(name, format!("{FOLDER}/{}", flaw.name), flaw.state);
    }
    if !others.is_empty() {
        let names: Vec<String> = others.into_iter().map(|flaw| flaw.name).collect();
        facts.known("mitigations.not_affected", FOLDER, names.join(", "));
    }
}
