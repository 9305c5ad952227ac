//! What may throttle a store: the device, and every resource of the platform.

use std::fmt;

/// Something that a platform, or a device, has a limited amount of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    Device,
    Cpu,
    Memory,
    MemoryBandwidth,
    Network,
}

/// From which share of it on a resource is taken to have no head-room.
///
/// A device counts as busy while one request or more is under way, so at its limit that is nearly
/// always; CPUs and links queue long before the last percent; memory that is not free is given back
/// at a price; STREAM's bandwidth is an upper bound that mixed traffic does not reach.
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

    /// The share from which on it has no head-room.
    pub fn limit(self) -> f64 {
        LIMITS.iter().find(|(resource, _)| *resource == self).map_or(1.0, |(_, limit)| *limit)
    }

    /// As it stands in `--json`.
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
    /// Whether it has no head-room; false where that is not known.
    pub fn is_at_its_limit(&self) -> bool {
        self.share.as_ref().is_ok_and(|share| *share >= self.resource.limit())
    }
}

/// What kept a round from being faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// The devices, while every resource of the platform that is known had head-room.
    Device,
    /// A resource of the platform, whatever the devices did.
    Platform(Resource),
    /// Nothing that was watched: the store's own locks, or too little load.
    Unknown,
}

impl Bottleneck {
    /// As it stands in `--json`.
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
