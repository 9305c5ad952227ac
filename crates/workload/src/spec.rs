//! What a workload is, as it stands in a study file.

use std::fmt;

use model::{Bytes, Count, Op};
use serde::{Deserialize, Serialize};

use crate::key::Keys;
use crate::length::{Length, Limits};
use crate::value::Values;
use crate::{InsertOrder, KeySpec, LengthBy, Mix, Popularity, Size, SpecError, ValueSpec, preset};
use model::random::Lane;

/// The most records: their keys are proven distinct with as many again inserted.
pub const MOST_RECORDS: u64 = crate::fnv::DISTINCT / 2;

/// The longest scan, in records.
pub const LONGEST_SCAN: u64 = 1_000_000;

/// A workload: which data is loaded and what is then asked. Every field has a default; together
/// they are YCSB's workload C over a million records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spec {
    /// Records that are loaded before anything is measured, at most 2^47.
    pub records: Count,
    /// Everything random follows from this number.
    pub seed: u64,
    pub key: KeySpec,
    pub value: ValueSpec,
    pub order: InsertOrder,
    pub popularity: Popularity,
    pub mix: Mix,
    /// Records of a scan, 1 to [`LONGEST_SCAN`].
    pub scan: Size,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            records: Count(1_000_000),
            seed: 1,
            key: KeySpec::default(),
            value: ValueSpec::default(),
            order: InsertOrder::default(),
            popularity: Popularity::default(),
            mix: Mix::only(Op::Read),
            scan: Size::Uniform { min: Bytes(1), max: Bytes(100) },
        }
    }
}

impl Spec {
    /// The preset of this name, see [`Spec::presets`].
    ///
    /// # Errors
    /// [`SpecError::UnknownPreset`] with the nearest name.
    pub fn preset(name: &str) -> Result<Spec, SpecError> {
        preset::find(name)
    }

    pub fn preset_names() -> impl Iterator<Item = &'static str> {
        preset::PRESETS.iter().map(|preset| preset.name)
    }

    pub fn presets() -> &'static [preset::Preset] {
        preset::PRESETS
    }

    /// # Errors
    /// Whatever would keep the workload from being run, with the key to change.
    pub fn check(&self) -> Result<(), SpecError> {
        self.parts().map(drop)
    }

    /// Whether the measured phase is the load itself: nothing but inserts is asked.
    pub fn is_load(&self) -> bool {
        self.mix.is_only(Op::Insert)
    }

    /// Checks everything and makes what is drawn from.
    pub(crate) fn parts(&self) -> Result<Parts, SpecError> {
        let shares = self.mix.shares()?;
        let records = self.records.0;
        if records == 0 && !self.is_load() {
            return Err(SpecError::NoRecords);
        }
        if records > MOST_RECORDS {
            let most = MOST_RECORDS;
            return Err(SpecError::TooManyRecords { records: self.records, most });
        }
        self.popularity.check()?;
        let limits = Limits { key: "scan", lowest: 1, highest: LONGEST_SCAN, cut: LONGEST_SCAN };
        let keys = Keys::new(
            &self.key,
            self.order,
            records,
            self.mix.asks(Op::Insert),
            Lane::new(self.seed, KEY_LENGTHS),
        )?;
        let values = Values::new(&self.value, Lane::new(self.seed, POOL))?;
        Ok(Parts { shares, keys, values, scan: Length::new(&self.scan, limits)? })
    }

    /// One line for people.
    pub fn describe(&self) -> String {
        let mut line = format!("{} records, {}", self.records, self.data());
        for (op, &weight) in self.mix.weights().iter().filter(|(_, weight)| **weight > 0.0) {
            let share = self.mix.shares().map_or(weight, |shares| shares[op]);
            line += &format!(", {} % {op}", (share * 1e4).round() / 1e2);
        }
        if !self.is_load() {
            line += &format!(", {}", self.popularity);
        }
        if self.mix.asks(Op::Scan) {
            line += &format!(", scans of {} records", self.scan);
        }
        line
    }

    /// Keys and values, in words.
    fn data(&self) -> String {
        let form = format!("{:?}", self.key.form).to_lowercase();
        let order = format!("{:?}", self.order).to_lowercase();
        let key =
            self.key.size.as_ref().map_or(String::new(), |size| format!(" of {}", words(size)));
        let mut data = format!("{order} {form} keys{key}, values of {}", words(&self.value.size));
        if self.value.compressibility > 0.0 {
            data += &format!(" ({} % compressible)", self.value.compressibility * 100.0);
        }
        data
    }

    /// What the loaded data follows from. Mix, popularity and scans do not matter.
    pub fn dataset(&self) -> DatasetId {
        let key = self.key.size.as_ref().map_or("default".to_owned(), Size::to_string);
        let by = match self.value.length_by {
            LengthBy::Write => "write",
            LengthBy::Key => "key",
        };
        DatasetId(format!(
            "format={FORMAT} records={} seed={} key={:?}/{key} value={}/{by}/{} order={:?}",
            self.records.0,
            self.seed,
            self.key.form,
            self.value.size,
            self.value.compressibility,
            self.order,
        ))
    }

    /// Expected bytes of the loaded keys and values, from the means of their distributions; 0 for
    /// a spec that does not pass [`Spec::check`].
    pub fn data_bytes(&self) -> u64 {
        self.parts().map_or(0, |parts| {
            ((parts.keys.mean() + parts.values.mean()) * self.records.0 as f64).round() as u64
        })
    }
}

/// A size in bytes for people.
fn words(size: &Size) -> String {
    match size {
        Size::Fixed(Bytes(bytes)) if *bytes < 1024 || bytes % 1024 != 0 => format!("{size} B"),
        _ => size.to_string(),
    }
}

/// What keys and values are made of; raised when the same spec gives other bytes.
const FORMAT: u32 = 1;

/// The purposes of the random lanes of a seed, all different.
pub(crate) const OPERATIONS: u64 = 1;
pub(crate) const INSERTS: u64 = 2;
pub(crate) const LOAD: u64 = 3;
const KEY_LENGTHS: u64 = 4;
const POOL: u64 = 5;

/// A checked spec, ready to be drawn from.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub shares: model::PerOp<f64>,
    pub keys: Keys,
    pub values: Values,
    pub scan: Length,
}

/// Names a loaded dataset: the same for two specs only if they load the same bytes, so that a
/// store that holds it can be used again. Text of the form `records=... seed=...`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DatasetId(String);

impl fmt::Display for DatasetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_table_is_the_default_and_every_spec_reads_back() {
        assert_eq!(toml::from_str::<Spec>("").unwrap(), Spec::default());
        for name in Spec::preset_names() {
            let spec = Spec::preset(name).unwrap();
            let text = toml::to_string(&spec).unwrap();
            assert_eq!(toml::from_str::<Spec>(&text).unwrap(), spec, "{text}");
        }
    }

    #[test]
    fn a_file_as_people_write_it() {
        let spec: Spec = toml::from_str(
            r#"
            records = "10M"
            order = "ordered"
            popularity = { zipfian = { theta = 1.2 } }
            mix = { read = 0.5, rmw = 0.5 }
            scan = 10
            [key]
            form = "binary"
            size = 16
            [value]
            size = { uniform = { min = "100", max = "2KiB" } }
            compressibility = 0.5
            "#,
        )
        .unwrap();
        spec.check().unwrap();
        assert_eq!(spec.records, Count(10_000_000));
        assert_eq!(spec.data_bytes(), 10_000_000 * (16 + (100 + 2048) / 2));
        assert_eq!(
            spec.describe(),
            "10M records, ordered binary keys of 16 B, values of uniform:100..2KiB \
             (50 % compressible), 50 % read, 50 % read_modify_write, zipfian:1.2"
        );
    }

    #[test]
    fn unknown_keys_are_refused_where_they_stand() {
        for (text, says) in [
            ("recods = 5", "recods"),
            ("[value]\nsiz = 5", "siz"),
            ("[mix]\nraed = 5", "raed"),
            ("order = 'sorted'", "sorted"),
            ("popularity = 'zipfain'", "did you mean `zipfian`?"),
        ] {
            let error = toml::from_str::<Spec>(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn what_cannot_run_names_the_key_to_change() {
        let spec = Spec::default;
        for (bad, says) in [
            (Spec { records: Count(0), ..spec() }, "`records` is 0"),
            (Spec { records: Count(1 << 48), ..spec() }, "`records` is 2814"),
            (Spec { mix: Mix::default(), ..spec() }, "`mix` is empty"),
            (Spec { scan: Size::fixed(0), ..spec() }, "`scan`"),
            (Spec { popularity: Popularity::Latest { theta: 0.0 }, ..spec() }, "`popularity`"),
        ] {
            let error = bad.check().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let empty_load = Spec { records: Count(0), mix: Mix::only(Op::Insert), ..spec() };
        assert_eq!(empty_load.check(), Ok(()));
    }

    #[test]
    fn a_dataset_is_what_is_loaded_and_nothing_else() {
        let c = Spec::preset("ycsb-c").unwrap();
        for name in ["ycsb-a", "ycsb-d", "ycsb-e", "ycsb-load"] {
            assert_eq!(Spec::preset(name).unwrap().dataset(), c.dataset());
        }
        let others = [
            Spec { records: Count(1), ..c.clone() },
            Spec { seed: 2, ..c.clone() },
            Spec { order: InsertOrder::Ordered, ..c.clone() },
            Spec { key: KeySpec { size: Some(Size::fixed(30)), ..c.key.clone() }, ..c.clone() },
            Spec { value: ValueSpec { compressibility: 0.1, ..c.value.clone() }, ..c.clone() },
        ];
        for other in others {
            assert_ne!(other.dataset(), c.dataset());
        }
        let json = serde_json::to_string(&c.dataset()).unwrap();
        assert_eq!(serde_json::from_str::<DatasetId>(&json).unwrap(), c.dataset());
    }
}
