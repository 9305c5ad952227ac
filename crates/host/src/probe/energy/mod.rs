//! Energy sources. Each has a boundary of its own, and no two are added.

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
mod settings;

pub use idle::{IdlePower, idle_power};
pub use settings::{
    Channels, CommandSettings, DcmiSettings, EnergySettings, MeterSettings, MeterVariant,
    ModelSettings, PlugSettings, Quantity, SettingError,
};

use super::ProbeSpec;

/// The probes of this folder, the dearest first.
pub(super) const COMMAND: ProbeSpec = command::SPEC;
pub(super) const PLUG: ProbeSpec = plug::SPEC;
pub(super) const DCMI: ProbeSpec = dcmi::SPEC;
pub(super) const METER: ProbeSpec = meter::SPEC;
pub(super) const NVML: ProbeSpec = nvml::SPEC;
pub(super) const HWMON: ProbeSpec = hwmon::SPEC;
pub(super) const BATTERY: ProbeSpec = battery::SPEC;
pub(super) const MODEL: ProbeSpec = model::SPEC;
pub(super) const RAPL: ProbeSpec = rapl::SPEC;
pub(super) use rapl::over as rapl_over;

/// All of them, by name.
pub(super) const NAMES: [&str; 9] = [
    COMMAND.name,
    PLUG.name,
    DCMI.name,
    METER.name,
    NVML.name,
    HWMON.name,
    BATTERY.name,
    MODEL.name,
    RAPL.name,
];
