//! A machine whose numbers are given.

use analyse::cost::{
    LoadPower, Platform, PlatformValue, SourcedCandidate, absence_note, source_text,
};

use super::{COMMAND_LINE, CostArgs, sourced};
use crate::exit::request;
use crate::flags::platform::PlatformFlag;

/// A machine whose numbers are all on the command line or in its platform.
pub(super) fn from_flags(args: &CostArgs, flag: &PlatformFlag) -> anyhow::Result<SourcedCandidate> {
    let platform: Option<Platform> = flag.base.as_deref().map(study::open_platform).transpose()?;
    let known = platform.as_ref().map(|platform| platform.name.clone());
    let name = flag.name.clone().or(known).unwrap_or_else(|| "server".to_owned());
    let full = platform.as_ref().and_then(|platform| platform.full_load_w.clone());
    let (watts, from) = match (flag.watts, &full) {
        (Some(watts), _) => (watts, COMMAND_LINE.to_owned()),
        (None, Some(full)) => {
            (full.value, source_text(platform.as_ref(), "full_load_w", full.from.as_deref()))
        }
        (None, None) => {
            return Err(request(format!(
                "--platform {}: its power is not known{}; add `watts=W`",
                flag.text,
                absence_note(platform.as_ref(), PlatformValue::FullLoadW)
            )));
        }
    };
    let power = LoadPower::given(watts, &from);
    let throughput = flag.throughput.map_or(0.0, |rate| rate.0);
    let workload = flag.workload.clone().unwrap_or_default();
    let from = COMMAND_LINE.to_owned();
    sourced(args, Some(flag), platform, (name, workload), (throughput, from), power)
}
