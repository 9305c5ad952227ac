//! Energy sources. Each has a boundary of its own, and no two are added.
//!
//! A source is one file here and one line in `energy_sources!`. Its boundary is the scope of its
//! signals; its settings, if it has any, implement [`SourceSettings`].

#[macro_use]
mod settings;

mod amdgpu;
mod battery;
mod command;
mod dcmi;
mod hwmon;
mod idle;
mod meter;
mod model;
mod nvml;
mod plug;
mod program;
mod rapl;
mod redfish;
mod secret;
mod snmp;

use serde::de::MapAccess;
use serde::{Deserialize, Serialize};

pub use self::command::{CommandSettings, Quantity};
pub use self::dcmi::DcmiSettings;
pub use self::hwmon::SensorName;
pub use self::idle::{IdlePower, idle_power};
pub use self::meter::{Channels, MeterSettings, MeterVariant};
pub use self::model::ModelSettings;
pub use self::plug::PlugSettings;
pub use self::redfish::RedfishSettings;
pub use self::settings::{ReadFlag, SettingError, SettingKey, SourceSettings};
pub use self::snmp::{SnmpSettings, SnmpVersion};

use super::{PROBES, ProbeSpec};

// Of several sources of one boundary, the first counts.
energy_sources! {
    meter: MeterSettings,
    plug: PlugSettings,
    snmp: SnmpSettings,
    command: CommandSettings,
    dcmi: DcmiSettings,
    redfish: RedfishSettings,
    nvml,
    amdgpu,
    hwmon: SensorName,
    battery,
    model: ModelSettings,
}

/// Not among them because its counters are read at both edges of a window: it starts late.
pub(super) const RAPL: ProbeSpec = rapl::SPEC;
pub(super) use rapl::over as rapl_over;

/// The probes that read energy.
pub(super) fn probes() -> impl Iterator<Item = &'static ProbeSpec> {
    PROBES.iter().filter(|spec| spec.reads_energy())
}

/// Whether a signal of energy may be of another machine than the one that reads it.
pub fn may_be_elsewhere(signal: &str) -> bool {
    of_signal(signal).is_some_and(|spec| spec.may_be_elsewhere)
}

/// The largest error of a signal of energy as a share of its value, where the maker of its source
/// states one.
pub fn stated_error(signal: &str) -> Option<f64> {
    of_signal(signal)?.stated_error
}

fn of_signal(signal: &str) -> Option<&'static ProbeSpec> {
    PROBES.iter().find(|spec| spec.signals.iter().any(|known| known.name == signal))
}
