//! The settings of a run that make it a round, and those of the whole evaluation.

pub const STAGE: &str = "mbwu.stage";
/// Devices that are loaded at the same time.
pub const DEVICES: &str = "mbwu.devices";
/// The load on each of them: [`DeviceLoad`](super::DeviceLoad).
pub const THREADS: &str = "mbwu.threads";
pub const DATABASES: &str = "mbwu.databases";
pub const RATE: &str = "mbwu.rate";
/// The round's number within its stage, devices and threads, from 1.
pub const ROUND: &str = "mbwu.round";
pub const LOADS: &str = "mbwu.loads";
pub const MOST_ROUNDS: &str = "mbwu.most_rounds";
pub const AVAILABLE_DEVICES: &str = "mbwu.devices_there";
pub const GAIN: &str = "mbwu.gain";
/// Operations per second of a unit that was measured elsewhere.
pub const GIVEN_UNIT: &str = "mbwu.unit";
/// Bytes of the data on one device for each byte of memory.
pub const DATA_OVER_MEMORY: &str = "mbwu.data_over_memory";
/// Bytes per second that the platform's memory moves at most.
pub const MEMORY_BANDWIDTH: &str = "mbwu.memory_bandwidth";
/// The share of the devices' addresses that was preconditioned, or `none`.
pub const PRECONDITION: &str = "mbwu.precondition";
/// A reading: the throughput of a round in units.
pub const UNITS: &str = model::signal::MBWU_UNITS.name;
