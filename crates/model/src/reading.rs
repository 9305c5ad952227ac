use std::fmt;

use serde::{Deserialize, Serialize};

/// SI units, as they are written in files and after a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Events: operations, faults, context switches.
    Count,
    Bytes,
    BytesPerSecond,
    Seconds,
    Nanoseconds,
    OpsPerSecond,
    /// CPU seconds for a million operations.
    CpuSecondsPerMillionOps,
    /// Events for a million operations.
    PerMillionOps,
    /// Events for a thousand instructions (MPKI and its like).
    PerThousandInstructions,
    /// A share or a quotient of like quantities.
    Ratio,
    Joules,
    Watts,
    Hertz,
    Celsius,
    OpsPerJoule,
    JoulesPerOp,
    /// Energy times delay.
    JouleSeconds,
    /// US dollars for 10^9 operations.
    UsdPerBillionOps,
}

impl Unit {
    /// The symbol after a number; empty where the number stands alone.
    pub const fn symbol(self) -> &'static str {
        match self {
            Unit::Count | Unit::Ratio => "",
            Unit::Bytes => "B",
            Unit::BytesPerSecond => "B/s",
            Unit::Seconds => "s",
            Unit::Nanoseconds => "ns",
            Unit::OpsPerSecond => "ops/s",
            Unit::CpuSecondsPerMillionOps => "CPU-s/Mop",
            Unit::PerMillionOps => "/Mop",
            Unit::PerThousandInstructions => "/kinstr",
            Unit::Joules => "J",
            Unit::Watts => "W",
            Unit::Hertz => "Hz",
            Unit::Celsius => "°C",
            Unit::OpsPerJoule => "ops/J",
            Unit::JoulesPerOp => "J/op",
            Unit::JouleSeconds => "J·s",
            Unit::UsdPerBillionOps => "$/Gop",
        }
    }
}

/// The boundary that a reading covers. Two different ones are never compared silently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This process, its background threads included.
    Process,
    /// Every CPU of the machine, whoever ran on it.
    Machine,
    /// The CPUs that the source names, whoever ran on them.
    Cpus,
    /// The block device under the store, whoever used it.
    Device,
    /// Reported by the store itself.
    Store,
    /// The measuring harness alone.
    Harness,
    /// The process of a networked store's server.
    Server,
    /// The clients of a networked store: all client threads, on all machines.
    Client,
    /// Inside the CPU packages, without the memory.
    Package,
    /// The memory modules.
    Memory,
    /// The CPU packages and the memory modules, without the rest of the machine.
    PackageAndMemory,
    /// One part of the machine, which the source names.
    Component,
    /// The accelerator boards (GPUs).
    Accelerator,
    /// The whole machine, behind its power supplies or as its own sensors see it.
    Node,
    /// At the wall socket, including the losses of the power supplies.
    Wall,
    /// Defined by a user's program, which the source names.
    External,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::Process => "process",
            Scope::Machine => "machine",
            Scope::Cpus => "CPUs",
            Scope::Device => "device",
            Scope::Store => "store",
            Scope::Harness => "harness",
            Scope::Server => "server",
            Scope::Client => "client",
            Scope::Package => "package",
            Scope::Memory => "memory",
            Scope::PackageAndMemory => "package and memory",
            Scope::Component => "component",
            Scope::Accelerator => "accelerator",
            Scope::Node => "node",
            Scope::Wall => "wall",
            Scope::External => "external",
        })
    }
}

/// How a number was obtained. Only measured ones are measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Measured,
    Modelled,
    Simulated,
    Published,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Measured => "measured",
            Origin::Modelled => "modelled",
            Origin::Simulated => "simulated",
            Origin::Published => "published",
        })
    }
}

/// The value, or why there is none and what to do about it. Never zero for "unknown".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingValue {
    Value(f64),
    Unavailable { reason: String, remedy: Option<String> },
}

impl ReadingValue {
    /// The number, if there is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            ReadingValue::Value(value) => Some(*value),
            ReadingValue::Unavailable { .. } => None,
        }
    }

    /// Why there is none, and what helps: `reason; remedy`.
    pub fn why(&self) -> Option<String> {
        match self {
            ReadingValue::Value(_) => None,
            ReadingValue::Unavailable { reason, remedy: None } => Some(reason.clone()),
            ReadingValue::Unavailable { reason, remedy: Some(remedy) } => {
                Some(format!("{reason}; {remedy}"))
            }
        }
    }
}

/// The end of the reason for readings of a server that is not on this machine.
pub const IS_ELSEWHERE: &str = "is another machine, or another network namespace of this one";

/// One number about a run, with its provenance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Dotted name, e.g. `cpu.user`, `io.written`, `device.written`.
    pub signal: String,
    pub answer: ReadingValue,
    pub unit: Unit,
    pub scope: Scope,
    /// The file or raw event that it was read from, e.g. `/proc/self/io: write_bytes`.
    pub source: String,
    /// The window that the value covers, in seconds; zero for an instant.
    pub window_s: f64,
    pub origin: Origin,
}

impl Reading {
    /// The number, if there is one.
    pub fn value(&self) -> Option<f64> {
        self.answer.number()
    }

    /// Whether it is of a server that is not on this machine.
    pub fn is_elsewhere(&self) -> bool {
        matches!(&self.answer, ReadingValue::Unavailable { reason, .. } if reason.ends_with(IS_ELSEWHERE))
    }
}
