//! The levels of the machine's knobs under which runs happen, checked before anything starts.

use host::knob::{KnobError, KnobPlan};
use host::{CpuOrder, Root};
use model::RunSettings;

/// Levels such as `("idle", "none")`, which the knobs of a machine are to be at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnobLevels(pub Vec<(String, String)>);

impl KnobLevels {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every write that leads to the levels. Nothing is written.
    ///
    /// # Errors
    /// A knob or level that is not here.
    pub fn plan(&self, root: &Root) -> Result<KnobPlan, KnobError> {
        let levels: Vec<(&str, &str)> =
            self.0.iter().map(|(knob, level)| (knob.as_str(), level.as_str())).collect();
        host::knob::Knobs::plan(root, &levels)
    }

    /// The CPUs that these levels leave to kvmeter and what it starts, in the order for pinning
    /// threads.
    pub(crate) fn cpus_left(&self, root: &Root) -> Vec<u32> {
        let Ok(CpuOrder { mut cpus, cores, .. }) = host::cpus(root) else { return Vec::new() };
        if self.level("smt") == Some("off") {
            cpus.truncate(cores);
        }
        let listed = self.level("cpus").and_then(|level| {
            let node = || host::node_cpus(root, level).ok().flatten();
            model::cpu_list::parse(level).or_else(node)
        });
        cpus.retain(|cpu| listed.as_ref().is_none_or(|listed| listed.contains(cpu)));
        cpus
    }

    pub(crate) fn level(&self, name: &str) -> Option<&str> {
        let (_, level) = self.0.iter().find(|(knob, _)| knob == name)?;
        Some(level)
    }

    /// What a run under these levels depends on: `knob.NAME = LEVEL`.
    pub fn settings(&self, settings: &mut RunSettings) {
        for (knob, level) in &self.0 {
            settings.insert(format!("knob.{knob}"), level.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_leave_cpus_to_load_server_and_hog() {
        let folder = tempfile::tempdir().unwrap();
        let tree = include_str!("../../host/tests/fixtures/xeon-4114.tree");
        host::recorded::unpack(tree, "xeon-4114", folder.path()).unwrap();
        let root = Root::at(folder.path());
        for (levels, left) in [
            (&[][..], vec![0, 1, 2, 3, 4, 5, 6, 7]),
            (&[("smt", "off")], vec![0, 1, 2, 3]),
            (&[("cpus", "1,4")], vec![1, 4]),
            (&[("cpus", "all")], vec![0, 1, 2, 3, 4, 5, 6, 7]),
            // One thread of each core of the node first.
            (&[("cpus", "node0")], vec![0, 2, 4, 6]),
            (&[("cpus", "node1"), ("smt", "off")], vec![1, 3]),
        ] {
            let own =
                levels.iter().map(|(knob, level)| (String::from(*knob), String::from(*level)));
            assert_eq!(KnobLevels(own.collect()).cpus_left(&root), left, "{levels:?}");
        }
    }
}
