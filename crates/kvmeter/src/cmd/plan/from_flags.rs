//! A machine whose capacity is given.

use analyse::cost::{LoadPower, Platform, PlatformValue, absence_note, source_text};
use analyse::fleet_plan::{DataRoom, Demand};

use super::choice::ServingMachine;
use super::measured::room_bytes;
use super::prices::COMMAND_LINE;
use crate::flags::platform::PlatformFlag;

/// A machine with `throughput=` on the command line.
pub fn from_flags<'a>(
    flag: &'a PlatformFlag,
    demand: &Demand,
) -> anyhow::Result<ServingMachine<'a>> {
    let platform: Option<Platform> = flag.base.as_deref().map(study::open_platform).transpose()?;
    let known = platform.as_ref().map(|platform| platform.name.clone());
    let name = flag.name.clone().or(known).unwrap_or_else(|| "machine".to_owned());
    let full = platform.as_ref().and_then(|platform| platform.full_load_w.clone());
    let power = match (flag.watts, full) {
        (Some(watts), _) => Ok(LoadPower::given(watts, COMMAND_LINE)),
        (None, Some(full)) => {
            let from = source_text(platform.as_ref(), "full_load_w", full.from.as_deref());
            Ok(LoadPower::given(full.value, &from))
        }
        (None, None) => Err(format!(
            "--platform {}: its power is not known{}; add `watts=W`",
            flag.text,
            absence_note(platform.as_ref(), PlatformValue::FullLoadW)
        )),
    };
    // Without runs the room that is known says where data lie.
    let bytes = |in_memory| room_bytes(Some(flag), platform.as_ref(), in_memory);
    let in_memory = bytes(true).is_some() || bytes(false).is_none();
    let mut notes = Vec::new();
    if demand.replicas > 1 {
        notes.push(format!("{name}: its share of writes is not known, and taken as none."));
    }
    Ok(ServingMachine {
        name,
        flag: Some(flag),
        capacity_ops_s: flag.throughput.map_or(0.0, |rate| rate.0),
        capacity_from: COMMAND_LINE.to_owned(),
        repeats_ops_s: Vec::new(),
        trials: Vec::new(),
        held: Vec::new(),
        write_share: 0.0,
        power,
        data_room: DataRoom { in_memory, bytes: bytes(in_memory), taken_per_byte: 1.0 },
        network: None,
        measured_bytes: None,
        notes,
        platform,
    })
}
