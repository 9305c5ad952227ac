use serde::{Deserialize, Serialize};

use super::target::KnobTarget;

/// A journalled write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JournalEntry {
    pub boot_id: String,
    pub knob: String,
    pub level: String,
    pub place: KnobTarget,
    /// `None`: the target exists for the time of the plan only.
    pub old: Option<String>,
    pub new: String,
}
