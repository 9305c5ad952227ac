//! Workloads by name.

mod cache;

use model::{Bytes, Op, suggest};

use crate::{KeyForm, KeySpec, Mix, Popularity, Size, Spec, SpecError, ValueSpec};

/// A named workload.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// The arrivals of requests that belong to it, by their name, where a rate is asked.
    pub arrivals: Option<&'static str>,
    /// The service level objective that belongs to it, as `search --slo` reads it.
    pub slo: Option<&'static str>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Core(Core, Data),
    Etc,
    DataCaching,
}

/// The mixes of YCSB's core workloads: Cooper et al., "Benchmarking Cloud Serving Systems with
/// YCSB", SoCC 2010, and its `workloads/` folder.
#[derive(Debug, Clone, Copy)]
enum Core {
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
enum Data {
    /// `user` and the digits of a hash; 10 fields of 100 bytes, as one value.
    Ycsb,
    /// Keys of 30 bytes, values of 1,000 bytes, as Kreon was measured: Papagiannis et al., SoCC
    /// 2018.
    Kreon,
    /// Keys of 16 bytes, values of 4 KiB, as the MBWU was measured: Liu et al., HPC-IODC 2019.
    Mbwu,
}

pub(crate) const PRESETS: &[Preset] = &[
    preset("ycsb-a", "YCSB A: 50 % read, 50 % update, scrambled Zipfian", Core::A, Data::Ycsb),
    preset("ycsb-b", "YCSB B: 95 % read, 5 % update, scrambled Zipfian", Core::B, Data::Ycsb),
    preset("ycsb-c", "YCSB C: read only, scrambled Zipfian", Core::C, Data::Ycsb),
    preset("ycsb-d", "YCSB D: 95 % read, 5 % insert, latest", Core::D, Data::Ycsb),
    preset("ycsb-e", "YCSB E: 95 % scan of 1 to 100 records, 5 % insert", Core::E, Data::Ycsb),
    preset("ycsb-f", "YCSB F: 50 % read, 50 % read-modify-write", Core::F, Data::Ycsb),
    preset("ycsb-load", "YCSB load: insert every record once", Core::Load, Data::Ycsb),
    preset("kreon-a", "YCSB A with 30 B keys and 1,000 B values", Core::A, Data::Kreon),
    preset("kreon-b", "YCSB B with 30 B keys and 1,000 B values", Core::B, Data::Kreon),
    preset("kreon-c", "YCSB C with 30 B keys and 1,000 B values", Core::C, Data::Kreon),
    preset("kreon-d", "YCSB D with 30 B keys and 1,000 B values", Core::D, Data::Kreon),
    preset("kreon-e", "YCSB E with 30 B keys and 1,000 B values", Core::E, Data::Kreon),
    preset("kreon-f", "YCSB F with 30 B keys and 1,000 B values", Core::F, Data::Kreon),
    preset("kreon-load", "load of 30 B keys and 1,000 B values", Core::Load, Data::Kreon),
    preset("mbwu", "MBWU: 16 B keys, 4 KiB values, 50 % read, 50 % update", Core::A, Data::Mbwu),
    preset("mbwu-load", "load of 16 B keys and 4 KiB values", Core::Load, Data::Mbwu),
    Preset {
        name: "etc",
        description: "Facebook's ETC pool: 36 B keys, 194 B values, 30 reads an update",
        arrivals: Some("facebook"),
        slo: None,
        kind: Kind::Etc,
    },
    Preset {
        name: "data-caching",
        description: "CloudSuite data caching: Twitter-like, 80 % read, 20 % update",
        arrivals: Some("poisson"),
        slo: Some("p99<1ms"),
        kind: Kind::DataCaching,
    },
];

const fn preset(name: &'static str, description: &'static str, mix: Core, data: Data) -> Preset {
    Preset { name, description, arrivals: None, slo: None, kind: Kind::Core(mix, data) }
}

impl Preset {
    pub fn spec(&self) -> Spec {
        match self.kind {
            Kind::Core(core, data) => core_spec(core, data),
            Kind::Etc => cache::etc(),
            Kind::DataCaching => cache::data_caching(),
        }
    }
}

fn core_spec(core: Core, data: Data) -> Spec {
    let mix = match core {
        Core::Load => Mix::only(Op::Insert),
        Core::A => Mix::default().with(Op::Read, 0.5).with(Op::Update, 0.5),
        Core::B => Mix::default().with(Op::Read, 0.95).with(Op::Update, 0.05),
        Core::C => Mix::only(Op::Read),
        Core::D => Mix::default().with(Op::Read, 0.95).with(Op::Insert, 0.05),
        Core::E => Mix::default().with(Op::Scan, 0.95).with(Op::Insert, 0.05),
        Core::F => Mix::default().with(Op::Read, 0.5).with(Op::ReadModifyWrite, 0.5),
    };
    let popularity = match core {
        Core::D => Popularity::Latest { theta: crate::popularity::THETA },
        _ => Popularity::default(),
    };
    let (form, key_size, value_size) = match data {
        Data::Ycsb => (KeyForm::Ycsb, None, Bytes(1000)),
        Data::Kreon => (KeyForm::Ycsb, Some(Size::fixed(30)), Bytes(1000)),
        Data::Mbwu => (KeyForm::Binary, Some(Size::fixed(16)), Bytes(4096)),
    };
    Spec {
        key: KeySpec { form, size: key_size },
        value: ValueSpec { size: Size::Fixed(value_size), ..ValueSpec::default() },
        popularity,
        mix,
        ..Spec::default()
    }
}

pub(crate) fn find(name: &str) -> Result<Spec, SpecError> {
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
    fn a_slip_is_answered_with_the_nearest_name() {
        let error = find("ycbs-a").unwrap_err().to_string();
        assert!(error.contains("did you mean `ycsb-a`?"), "{error}");
    }
}
