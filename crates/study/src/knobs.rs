//! The levels of the machine's knobs under which runs happen, checked before anything starts.

use host::Root;
use host::knob::{KnobError, KnobPlan};
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

    /// The CPUs that the knob `cpus` leaves to the load, where its level lists them.
    pub fn cpus(&self) -> Option<Vec<u32>> {
        let (_, level) = self.0.iter().find(|(knob, _)| knob == "cpus")?;
        model::cpu_list::parse(level)
    }

    /// What a run under these levels depends on: `knob.NAME = LEVEL`.
    pub fn settings(&self, settings: &mut RunSettings) {
        for (knob, level) in &self.0 {
            settings.insert(format!("knob.{knob}"), level.clone());
        }
    }
}
