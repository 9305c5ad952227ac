//! Workloads by name.

mod cache;
mod cachelib;
mod cachelib_tables;
mod mixgraph;
#[cfg(test)]
mod statistics;
mod tao_bench;

use model::{Bytes, Op, suggest};

use crate::{KeyForm, KeySpec, LengthSpec, Mix, Popularity, SpecError, ValueSpec, WorkloadSpec};

/// A named workload.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    pub name: &'static str,
    /// One-line description.
    pub description: &'static str,
    /// The arrival process that belongs to it, by name, for open loops.
    pub arrivals: Option<&'static str>,
    /// The service level objective that belongs to it, as `search --slo` reads it.
    pub slo: Option<&'static str>,
    kind: PresetKind,
}

#[derive(Debug, Clone, Copy)]
enum PresetKind {
    Core(CoreWorkload, PresetData),
    Etc,
    DataCaching,
    Mixgraph,
    GraphCacheLeader,
    KvCache,
    TaoBench,
}

/// The mixes of YCSB's core workloads: Cooper et al., "Benchmarking Cloud Serving Systems with
/// YCSB", SoCC 2010, and its `workloads/` folder.
#[derive(Debug, Clone, Copy)]
enum CoreWorkload {
    Load,
    A,
    B,
    C,
    D,
    E,
    F,
}

/// The data that is loaded.
#[derive(Debug, Clone, Copy)]
enum PresetData {
    /// `user` and the digits of a hash; 10 fields of 100 bytes, as one value.
    Ycsb,
    /// Keys of 30 bytes, values of 1,000 bytes, as Kreon was measured: Papagiannis et al., SoCC
    /// 2018.
    Kreon,
    /// Keys of 16 bytes, values of 4 KiB, as the MBWU was measured: Liu et al., HPC-IODC 2019.
    Mbwu,
}

pub(crate) const PRESETS: &[Preset] = &[
    preset(
        "ycsb-a",
        "YCSB A: 50 % read, 50 % update, scrambled Zipfian",
        CoreWorkload::A,
        PresetData::Ycsb,
    ),
    preset(
        "ycsb-b",
        "YCSB B: 95 % read, 5 % update, scrambled Zipfian",
        CoreWorkload::B,
        PresetData::Ycsb,
    ),
    preset("ycsb-c", "YCSB C: read only, scrambled Zipfian", CoreWorkload::C, PresetData::Ycsb),
    preset("ycsb-d", "YCSB D: 95 % read, 5 % insert, latest", CoreWorkload::D, PresetData::Ycsb),
    preset(
        "ycsb-e",
        "YCSB E: 95 % scan of 1 to 100 records, 5 % insert",
        CoreWorkload::E,
        PresetData::Ycsb,
    ),
    preset(
        "ycsb-f",
        "YCSB F: 50 % read, 50 % read-modify-write",
        CoreWorkload::F,
        PresetData::Ycsb,
    ),
    preset(
        "ycsb-load",
        "YCSB load: insert every record once",
        CoreWorkload::Load,
        PresetData::Ycsb,
    ),
    preset(
        "kreon-a",
        "YCSB A with 30 B keys and 1,000 B values",
        CoreWorkload::A,
        PresetData::Kreon,
    ),
    preset(
        "kreon-b",
        "YCSB B with 30 B keys and 1,000 B values",
        CoreWorkload::B,
        PresetData::Kreon,
    ),
    preset(
        "kreon-c",
        "YCSB C with 30 B keys and 1,000 B values",
        CoreWorkload::C,
        PresetData::Kreon,
    ),
    preset(
        "kreon-d",
        "YCSB D with 30 B keys and 1,000 B values",
        CoreWorkload::D,
        PresetData::Kreon,
    ),
    preset(
        "kreon-e",
        "YCSB E with 30 B keys and 1,000 B values",
        CoreWorkload::E,
        PresetData::Kreon,
    ),
    preset(
        "kreon-f",
        "YCSB F with 30 B keys and 1,000 B values",
        CoreWorkload::F,
        PresetData::Kreon,
    ),
    preset(
        "kreon-load",
        "load of 30 B keys and 1,000 B values",
        CoreWorkload::Load,
        PresetData::Kreon,
    ),
    preset(
        "mbwu",
        "MBWU: 16 B keys, 4 KiB values, 50 % read, 50 % update",
        CoreWorkload::A,
        PresetData::Mbwu,
    ),
    preset("mbwu-load", "load of 16 B keys and 4 KiB values", CoreWorkload::Load, PresetData::Mbwu),
    Preset {
        name: "etc",
        description: "Facebook's ETC pool: 36 B keys, 194 B values, 30 reads an update",
        arrivals: Some("facebook"),
        slo: None,
        kind: PresetKind::Etc,
    },
    Preset {
        name: "data-caching",
        description: "CloudSuite data caching: Twitter-like, 80 % read, 20 % update",
        arrivals: Some("poisson"),
        slo: Some("p99<1ms"),
        kind: PresetKind::DataCaching,
    },
    Preset {
        name: "mixgraph",
        description: "RocksDB mixgraph, ZippyDB: hot key ranges, 83 % read, 14 % update, 3 % scan",
        arrivals: None,
        slo: None,
        kind: PresetKind::Mixgraph,
    },
    Preset {
        name: "graph-cache-leader",
        description: "CacheLib's cache of graph objects: reads, 23 % of keys requested once, refill",
        arrivals: None,
        slo: None,
        kind: PresetKind::GraphCacheLeader,
    },
    Preset {
        name: "kvcache",
        description: "CacheLib's key-value cache: reads, 12 % of keys requested once, refill",
        arrivals: None,
        slo: None,
        kind: PresetKind::KvCache,
    },
    Preset {
        name: "tao-bench",
        description: "DCPerf's TaoBench: uniform reads, misses wait for a modelled database",
        arrivals: None,
        slo: None,
        kind: PresetKind::TaoBench,
    },
];

const fn preset(
    name: &'static str,
    description: &'static str,
    mix: CoreWorkload,
    data: PresetData,
) -> Preset {
    Preset { name, description, arrivals: None, slo: None, kind: PresetKind::Core(mix, data) }
}

impl Preset {
    pub fn spec(&self) -> WorkloadSpec {
        match self.kind {
            PresetKind::Core(core, data) => core_spec(core, data),
            PresetKind::Etc => cache::etc(),
            PresetKind::DataCaching => cache::data_caching(),
            PresetKind::Mixgraph => mixgraph::mixgraph(),
            PresetKind::GraphCacheLeader => cachelib::graph_cache_leader(),
            PresetKind::KvCache => cachelib::kvcache(),
            PresetKind::TaoBench => tao_bench::tao_bench(),
        }
    }
}

fn core_spec(core: CoreWorkload, data: PresetData) -> WorkloadSpec {
    let mix = match core {
        CoreWorkload::Load => Mix::only(Op::Insert),
        CoreWorkload::A => Mix::default().with(Op::Read, 0.5).with(Op::Update, 0.5),
        CoreWorkload::B => Mix::default().with(Op::Read, 0.95).with(Op::Update, 0.05),
        CoreWorkload::C => Mix::only(Op::Read),
        CoreWorkload::D => Mix::default().with(Op::Read, 0.95).with(Op::Insert, 0.05),
        CoreWorkload::E => Mix::default().with(Op::Scan, 0.95).with(Op::Insert, 0.05),
        CoreWorkload::F => Mix::default().with(Op::Read, 0.5).with(Op::ReadModifyWrite, 0.5),
    };
    let popularity = match core {
        CoreWorkload::D => Popularity::Latest { theta: crate::popularity::THETA },
        _ => Popularity::default(),
    };
    let (form, key_size, value_size) = match data {
        PresetData::Ycsb => (KeyForm::Ycsb, None, Bytes(1000)),
        PresetData::Kreon => (KeyForm::Ycsb, Some(LengthSpec::fixed(30)), Bytes(1000)),
        PresetData::Mbwu => (KeyForm::Binary, Some(LengthSpec::fixed(16)), Bytes(4096)),
    };
    WorkloadSpec {
        key: KeySpec { form, size: key_size },
        value: ValueSpec { size: LengthSpec::Fixed(value_size), ..ValueSpec::default() },
        popularity,
        mix,
        ..WorkloadSpec::default()
    }
}

impl WorkloadSpec {
    /// The preset of this name, see [`WorkloadSpec::presets`].
    ///
    /// # Errors
    /// [`SpecError::UnknownPreset`] with the nearest name.
    pub fn preset(name: &str) -> Result<WorkloadSpec, SpecError> {
        find(name)
    }

    pub fn preset_names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|preset| preset.name)
    }

    pub fn presets() -> &'static [Preset] {
        PRESETS
    }
}

pub(crate) fn find(name: &str) -> Result<WorkloadSpec, SpecError> {
    match PRESETS.iter().find(|preset| preset.name == name) {
        Some(preset) => Ok(preset.spec()),
        None => Err(SpecError::UnknownPreset {
            name: name.to_owned(),
            hint: suggest::hint(name, PRESETS.iter().map(|preset| preset.name)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_run() {
        for preset in PRESETS {
            let spec = preset.spec();
            assert_eq!(spec.check(), Ok(()), "{}", preset.name);
            assert_eq!(spec.is_load(), preset.name.ends_with("load"));
        }
    }

    #[test]
    fn presets_are_as_published() {
        let describe = |name: &str| find(name).unwrap().describe();
        assert_eq!(
            describe("ycsb-d"),
            "1M records, hashed ycsb keys, values of 1000 B, 95 % read, 5 % insert, latest:0.99"
        );
        assert_eq!(
            describe("ycsb-e"),
            "1M records, hashed ycsb keys, values of 1000 B, 5 % insert, 95 % scan, \
             scrambled_zipfian:0.99, scans of uniform:1..100 records"
        );
        assert_eq!(
            describe("mbwu"),
            "1M records, hashed binary keys of 16 B, values of 4KiB, 50 % read, 50 % update, \
             scrambled_zipfian:0.99"
        );
        assert_eq!(find("kreon-c").unwrap().data_bytes(), 1_030_000_000);
        assert_eq!(
            describe("data-caching"),
            "300k records, hashed text keys of uniform:1..248, values of \
             pareto:500,417.75,0.25,max=1000000, 80 % read, 20 % update, zipfian:0.915"
        );
        let slo = |name: &str| PRESETS.iter().find(|preset| preset.name == name).unwrap().slo;
        assert_eq!((slo("data-caching"), slo("etc")), (Some("p99<1ms"), None));
    }

    #[test]
    fn suggests_the_nearest_preset() {
        let error = find("ycbs-a").unwrap_err().to_string();
        assert!(error.contains("did you mean `ycsb-a`?"), "{error}");
    }
}
