//! The present status of every knob.

use std::path::Path;

use model::Unavailable;
use serde::Serialize;

use super::error::KnobError;
use super::journal::kept;
use super::{KNOBS, KnobInfo};
use crate::root::Root;

/// One knob on this machine.
#[derive(Debug, Clone, Serialize)]
pub struct KnobStatus {
    #[serde(rename = "knob")]
    pub about: &'static KnobInfo,
    /// The present level, or why it is not known.
    #[serde(serialize_with = "as_answer")]
    pub now: Result<String, Unavailable>,
    /// The levels that can be set, or why there are none.
    #[serde(serialize_with = "as_answer")]
    pub levels: Result<Vec<String>, Unavailable>,
    /// The level at which `kvmeter knob set` left it until `kvmeter knob restore`.
    pub kept: Option<String>,
}

/// The knobs of a machine, in the order of [`KNOBS`]. `folder` is that of the journal, if any.
pub fn status(root: &Root, folder: Option<&Path>) -> Result<Vec<KnobStatus>, KnobError> {
    let kept = folder.map(kept).transpose()?.unwrap_or_default();
    let of = |knob: &&dyn super::Knob| {
        let about = knob.info();
        let last = kept.iter().rev().find(|entry| entry.knob == about.name);
        let kept = last.map(|entry| entry.level.clone());
        KnobStatus { about, now: knob.read(root), levels: knob.levels(root), kept }
    };
    Ok(KNOBS.iter().map(of).collect())
}

fn as_answer<T: Serialize, S: serde::Serializer>(
    answer: &Result<T, Unavailable>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeMap;
    match answer {
        Ok(value) => value.serialize(serializer),
        Err(why) => {
            let mut map = serializer.serialize_map(Some(2))?;
            map.serialize_entry("unavailable", &why.reason)?;
            map.serialize_entry("remedy", &why.remedy)?;
            map.end()
        }
    }
}
