//! Resources that may limit a store: the device, and those of the platform.

use std::fmt;

/// A limited resource of a platform or a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    Device,
    Cpu,
    Memory,
    MemoryBandwidth,
    Network,
}

/// The share from which on a resource has no headroom.
///
/// A device is busy while any request is under way, at its limit nearly always; CPUs and links
/// queue before 100 %; reclaiming memory costs time; mixed traffic does not reach STREAM's
/// bandwidth.
pub const LIMITS: [(Resource, f64); 5] = [
    (Resource::Device, 0.90),
    (Resource::Cpu, 0.90),
    (Resource::Memory, 0.95),
    (Resource::MemoryBandwidth, 0.80),
    (Resource::Network, 0.90),
];

impl Resource {
    /// The resources of the platform.
    pub const PLATFORM: [Resource; 4] =
        [Resource::Cpu, Resource::Memory, Resource::MemoryBandwidth, Resource::Network];

    /// The share from which on it has no headroom.
    pub fn limit(self) -> f64 {
        LIMITS.iter().find(|(resource, _)| *resource == self).map_or(1.0, |(_, limit)| *limit)
    }

    /// The name in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            Resource::Device => "device",
            Resource::Cpu => "cpu",
            Resource::Memory => "memory",
            Resource::MemoryBandwidth => "memory_bandwidth",
            Resource::Network => "network",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Resource::Device => "the device",
            Resource::Cpu => "the CPU",
            Resource::Memory => "the memory",
            Resource::MemoryBandwidth => "the memory bandwidth",
            Resource::Network => "the network",
        })
    }
}

/// How much of a resource a round used.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceUse {
    pub resource: Resource,
    /// 0 to 1, or why it is not known.
    pub share: Result<f64, String>,
}

impl ResourceUse {
    /// Whether it has no headroom; false where that is unknown.
    pub fn is_at_its_limit(&self) -> bool {
        self.share.as_ref().is_ok_and(|share| *share >= self.resource.limit())
    }
}

/// What limited a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// The devices, while every known resource of the platform had headroom.
    Device,
    /// A resource of the platform, whatever the devices did.
    Platform(Resource),
    /// No watched resource: the store's own locks, or too little load.
    Unknown,
}

impl Bottleneck {
    /// The name in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            Bottleneck::Device => "device",
            Bottleneck::Platform(resource) => resource.name(),
            Bottleneck::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bottleneck::Device => f.write_str("the device"),
            Bottleneck::Platform(resource) => resource.fmt(f),
            Bottleneck::Unknown => f.write_str("nothing that was watched"),
        }
    }
}
