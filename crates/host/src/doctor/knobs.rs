//! The knobs and their levels.

use super::CheckGroup;
use crate::knob::KNOBS;
use crate::root::Root;

pub(super) fn add(root: &Root, group: &mut CheckGroup) {
    for knob in KNOBS {
        let about = knob.info();
        let why = format!("turns {}", about.what);
        match (knob.read(root), knob.levels(root)) {
            (Ok(now), Ok(levels)) => {
                group.ok(about.name, format!("{now}; levels: {}", levels.join(", ")), &why);
            }
            (Err(no), _) | (_, Err(no)) => {
                group.unavailable(about.name, no.reason, &why, &no.remedy);
            }
        }
    }
}
