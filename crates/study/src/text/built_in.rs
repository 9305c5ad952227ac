//! The studies that are part of the command.

/// A study that is built in.
pub struct BuiltInStudy {
    pub name: &'static str,
    /// One line for a list.
    pub what: &'static str,
    pub(super) text: &'static str,
    /// Its `published.toml`, if it has one.
    pub(super) published: Option<&'static str>,
}

pub const BUILT_IN: &[BuiltInStudy] = &[
    BuiltInStudy {
        name: "quickstart",
        what: "Spill and RocksDB under the YCSB core workloads, in two to three minutes",
        text: include_str!("../../../../studies/quickstart/study.toml"),
        published: None,
    },
    BuiltInStudy {
        name: "memcached",
        what: "both sides of the latency of a memcached that it starts, in under a minute",
        text: include_str!("../../../../studies/memcached/study.toml"),
        published: None,
    },
    BuiltInStudy {
        name: "arm-vs-x86",
        what: "two stores by the second and by the joule, SMT, tails and block cache (Mikrou 2019)",
        text: include_str!("../../../../studies/arm-vs-x86/study.toml"),
        published: Some(include_str!("../../../../studies/arm-vs-x86/published.toml")),
    },
    BuiltInStudy {
        name: "memcached-power",
        what: "SMT and idle states under memcached: latency and power (Kazarian 2022)",
        text: include_str!("../../../../studies/memcached-power/study.toml"),
        published: Some(include_str!("../../../../studies/memcached-power/published.toml")),
    },
    BuiltInStudy {
        name: "direct-cache-access",
        what: "DDIO under microbenchmarks, data caching and in simulation (Basavaraj 2017)",
        text: include_str!("../../../../studies/direct-cache-access/study.toml"),
        published: Some(include_str!("../../../../studies/direct-cache-access/published.toml")),
    },
    BuiltInStudy {
        name: "energy-proportionality",
        what: "power over load, from a calibrated maximum to the idle machine",
        text: include_str!("../../../../studies/energy-proportionality/study.toml"),
        published: None,
    },
    BuiltInStudy {
        name: "cache-servers",
        what: "memcached, Redis and Valkey up to the highest rate that holds an objective",
        text: include_str!("../../../../studies/cache-servers/study.toml"),
        published: None,
    },
    BuiltInStudy {
        name: "mbwu",
        what: "media-based work units of the devices that are named, in hours",
        text: include_str!("../../../../studies/mbwu/study.toml"),
        published: Some(include_str!("../../../../studies/mbwu/published.toml")),
    },
];
