//! The specification of a workload, as in a study file.

use std::fmt;

use model::{Bytes, Count, Op};
use serde::{Deserialize, Serialize};

use crate::key::Keys;
use crate::length::{LengthLimits, LengthSampler};
use crate::value::Values;
use crate::{
    FetchLatency, InsertOrder, KeySpec, LengthSource, LengthSpec, Mix, Popularity, ReuseSpec,
    SpecError, TtlSpec, ValueSpec,
};
use model::random::RandomStream;

/// See [`Workload::ABSENT`](crate::Workload::ABSENT).
pub(crate) const ABSENT: u64 = 1 << 47;

/// The most records: their keys are proven distinct with as many again inserted.
pub const MOST_RECORDS: u64 = crate::fnv::DISTINCT / 2;

/// The longest scan, in records.
pub const LONGEST_SCAN: u64 = 1_000_000;

/// A longer table of lengths is described by the number of its rows.
const SHOWN_ROWS: usize = 16;

/// The most keys of a read.
pub const MOST_KEYS: u32 = 1000;

/// A workload: the loaded data and the operations on it. Every field has a default; together they
/// are YCSB's workload C over a million records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Records that are loaded before anything is measured, at most 2^47.
    pub records: Count,
    /// All randomness derives from this number.
    pub seed: u64,
    pub key: KeySpec,
    pub value: ValueSpec,
    pub order: InsertOrder,
    pub popularity: Popularity,
    pub mix: Mix,
    /// Records of a scan, 1 to [`LONGEST_SCAN`].
    pub scan: LengthSpec,
    /// Keys of a read, 1 to [`MOST_KEYS`], each drawn by the popularity.
    pub multi_get: u32,
    /// The part of the keys of reads that were loaded, 0 to 1; the others never are, so that a read
    /// of them misses. Evictions add to the misses.
    pub hit_ratio: f64,
    /// Cache-aside: whether a read that misses a record of the data is followed by a write of it.
    /// Keys that never were loaded are not filled in, see [`Workload::is_absent`].
    ///
    /// [`Workload::is_absent`]: crate::Workload::is_absent
    pub refill: bool,
    /// How long a database takes that is modelled: a read that misses waits for it, then the record
    /// is written (`refill`). No wait where left out. Servers only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss_latency: Option<FetchLatency>,
    /// How requests come back, beyond popularity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse: Option<ReuseSpec>,
    /// When writes expire; never where left out. Embedded stores do not get it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<TtlSpec>,
}

impl Default for WorkloadSpec {
    fn default() -> WorkloadSpec {
        WorkloadSpec {
            records: Count(1_000_000),
            seed: 1,
            key: KeySpec::default(),
            value: ValueSpec::default(),
            order: InsertOrder::default(),
            popularity: Popularity::default(),
            mix: Mix::only(Op::Read),
            scan: LengthSpec::Uniform { min: Bytes(1), max: Bytes(100) },
            multi_get: 1,
            hit_ratio: 1.0,
            refill: false,
            miss_latency: None,
            reuse: None,
            ttl: None,
        }
    }
}

impl WorkloadSpec {
    /// # Errors
    /// Why the workload cannot be run, with the key to change.
    pub fn check(&self) -> Result<(), SpecError> {
        self.parts().map(drop)
    }

    /// Whether the measured phase is the load itself: all operations are inserts.
    pub fn is_load(&self) -> bool {
        self.mix.is_only(Op::Insert)
    }

    /// The same workload over so many records. Reuse distances scale with them, so that a cache of
    /// the same share of the records has the same miss ratio.
    #[must_use]
    pub fn with_records(mut self, records: Count) -> WorkloadSpec {
        if let Some(reuse) = &mut self.reuse {
            reuse.scale(records.0 as f64 / self.records.0.max(1) as f64);
        }
        self.records = records;
        self
    }

    /// The same workload over `factor` times as many records, at least one.
    ///
    /// # Errors
    /// A factor that is not positive; more records than can be numbered.
    pub fn scaled(self, factor: f64) -> Result<WorkloadSpec, SpecError> {
        if !factor.is_finite() || factor <= 0.0 {
            let problem = format!("a scale of {factor} is not above 0; 2 doubles the records");
            return Err(SpecError::invalid("records", problem));
        }
        let records = Count((self.records.0 as f64 * factor).round().max(1.0) as u64);
        if records.0 > MOST_RECORDS {
            return Err(SpecError::TooManyRecords { records, most: MOST_RECORDS });
        }
        Ok(self.with_records(records))
    }

    /// Checks everything and compiles the samplers.
    pub(crate) fn parts(&self) -> Result<WorkloadParts, SpecError> {
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
        if let Some(reuse) = &self.reuse {
            reuse.check(&self.popularity)?;
        }
        if let Some(ttl) = &self.ttl {
            ttl.check()?;
        }
        self.check_reads()?;
        let limits =
            LengthLimits { key: "scan", lowest: 1, highest: LONGEST_SCAN, cut: LONGEST_SCAN };
        let keys = Keys::new(
            &self.key,
            self.order,
            records,
            self.mix.contains(Op::Insert),
            RandomStream::new(self.seed, KEY_LENGTHS),
        )?;
        if self.hit_ratio < 1.0 {
            keys.check_absent(&self.key, records)?;
        }
        let pool = RandomStream::new(self.seed, POOL);
        let values = Values::new(&self.value, pool, &keys, records)?;
        Ok(WorkloadParts { shares, keys, values, scan: LengthSampler::new(&self.scan, limits)? })
    }

    fn check_reads(&self) -> Result<(), SpecError> {
        if !(1..=MOST_KEYS).contains(&self.multi_get) {
            let problem = format!("{} is not between 1 and {MOST_KEYS} keys", self.multi_get);
            return Err(SpecError::invalid("multi_get", problem));
        }
        if !(0.0..=1.0).contains(&self.hit_ratio) {
            let problem = format!("{} is not a part between 0 and 1", self.hit_ratio);
            return Err(SpecError::invalid("hit_ratio", problem));
        }
        if self.miss_latency.is_some() && !self.refill {
            let problem = "is that of a database from which misses are refilled; set `refill` too";
            return Err(SpecError::invalid("miss_latency", problem));
        }
        if self.miss_latency.is_some() && self.multi_get > 1 {
            let problem = "is for reads of one key; leave out `multi_get`";
            return Err(SpecError::invalid("miss_latency", problem));
        }
        // Inserted records are numbered on, and must not come to those that are never loaded.
        if self.hit_ratio < 1.0 && self.mix.contains(Op::Insert) && self.records.0 > ABSENT / 2 {
            let most = ABSENT / 2;
            let problem = format!("below 1, with inserts, `records` is at most {most}");
            return Err(SpecError::invalid("hit_ratio", problem));
        }
        Ok(())
    }

    /// One-line description.
    pub fn describe(&self) -> String {
        let mut line = format!("{} records, {}", self.records, self.data());
        for (op, &weight) in self.mix.weights().iter().filter(|(_, weight)| **weight > 0.0) {
            let share = self.mix.shares().map_or(weight, |shares| shares[op]);
            line += &format!(", {} % {op}", (share * 1e4).round() / 1e2);
        }
        if !self.is_load() {
            line += &match &self.popularity {
                Popularity::Ranks { ranges } => format!(", popularity of {} ranges", ranges.len()),
                law => format!(", {law}"),
            };
            if let Some(reuse) = &self.reuse {
                line += &format!(", {} % of requests repeat", (reuse.repeat * 1e4).round() / 1e2);
            }
            if let Some(ttl) = &self.ttl {
                line += &format!(", {} % of writes expire", (ttl.expiring() * 1e4).round() / 1e2);
            }
        }
        if self.mix.contains(Op::Scan) {
            line += &match &self.scan {
                LengthSpec::Discrete { values, .. } if values.len() > SHOWN_ROWS => {
                    format!(", scans of {} lengths", values.len())
                }
                scan => format!(", scans of {scan} records"),
            };
        }
        if self.mix.contains(Op::Read) {
            line += &self.reads();
        }
        line
    }

    /// Multi-get, absent keys and refills, in words.
    fn reads(&self) -> String {
        let mut words = String::new();
        if self.multi_get > 1 {
            words += &format!(", {} keys a read", self.multi_get);
        }
        if self.hit_ratio < 1.0 {
            let absent = ((1.0 - self.hit_ratio) * 1e6).round() / 1e4;
            words += &format!(", {absent} % of the keys read were never loaded");
        }
        if self.refill {
            words += ", misses are refilled";
        }
        if let Some(latency) = &self.miss_latency {
            words += &format!(" after a modelled {latency}");
        }
        words
    }

    /// Keys and values, in words.
    fn data(&self) -> String {
        let form = format!("{:?}", self.key.form).to_lowercase();
        let order = format!("{:?}", self.order).to_lowercase();
        let key =
            self.key.size.as_ref().map_or(String::new(), |size| format!(" of {}", words(size)));
        let mut data = format!("{order} {form} keys{key}, values of {}", words(&self.value.size));
        if !self.value.size_of_first.is_empty() {
            data += ", other sizes of the first records";
        }
        if self.value.compressibility > 0.0 {
            data += &format!(" ({} % compressible)", self.value.compressibility * 100.0);
        }
        data
    }

    /// Identifies the loaded data. Mix, popularity, scans and options of reads are not part of it.
    pub fn dataset(&self) -> DatasetId {
        let key = self.key.size.as_ref().map_or("default".to_owned(), LengthSpec::to_string);
        let by = match self.value.length_by {
            LengthSource::Write => "write",
            LengthSource::Key => "key",
        };
        let first = match self.value.size_of_first.as_slice() {
            [] => String::new(),
            rows => {
                let words = rows.iter().map(|(part, size)| format!("{part}:{size};"));
                let text: String = words.collect();
                format!(" first={:016x}", crate::value::hash(text.as_bytes()))
            }
        };
        DatasetId(format!(
            "format={FORMAT} records={} seed={} key={:?}/{key} value={}/{by}/{} order={:?}{first}",
            self.records.0,
            self.seed,
            self.key.form,
            self.value.size,
            self.value.compressibility,
            self.order,
        ))
    }

    /// Expected bytes of the loaded keys and values, from the means of their distributions; 0 for a
    /// spec that does not pass [`WorkloadSpec::check`].
    pub fn data_bytes(&self) -> u64 {
        self.parts().map_or(0, |parts| {
            ((parts.keys.mean() + parts.values.mean()) * self.records.0 as f64).round() as u64
        })
    }
}

/// A size in bytes for messages.
fn words(size: &LengthSpec) -> String {
    match size {
        LengthSpec::Fixed(Bytes(bytes)) if *bytes < 1024 || bytes % 1024 != 0 => {
            format!("{size} B")
        }
        LengthSpec::Discrete { values, .. } if values.len() > SHOWN_ROWS => {
            format!("{} sizes", values.len())
        }
        _ => size.to_string(),
    }
}

/// The version of keys and values; raised when the same spec gives other bytes.
const FORMAT: u32 = 1;

/// The purposes of the random streams of a seed, all different.
pub(crate) const OPERATIONS: u64 = 1;
pub(crate) const INSERTS: u64 = 2;
pub(crate) const LOAD: u64 = 3;
const KEY_LENGTHS: u64 = 4;
const POOL: u64 = 5;
pub(crate) const REUSE: u64 = 6;

/// A checked and compiled spec.
#[derive(Debug, Clone)]
pub(crate) struct WorkloadParts {
    pub shares: model::PerOp<f64>,
    pub keys: Keys,
    pub values: Values,
    pub scan: LengthSampler,
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
        assert_eq!(toml::from_str::<WorkloadSpec>("").unwrap(), WorkloadSpec::default());
        for name in WorkloadSpec::preset_names() {
            let spec = WorkloadSpec::preset(name).unwrap();
            let text = toml::to_string(&spec).unwrap();
            assert_eq!(toml::from_str::<WorkloadSpec>(&text).unwrap(), spec, "{text}");
        }
    }

    #[test]
    fn parses_a_typical_file() {
        let spec: WorkloadSpec = toml::from_str(
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
    fn refuses_unknown_keys_at_their_position() {
        for (text, says) in [
            ("recods = 5", "recods"),
            ("[value]\nsiz = 5", "siz"),
            ("[mix]\nraed = 5", "raed"),
            ("order = 'sorted'", "sorted"),
            ("popularity = 'zipfain'", "did you mean `zipfian`?"),
        ] {
            let error = toml::from_str::<WorkloadSpec>(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn invalid_specs_name_the_key() {
        let spec = WorkloadSpec::default;
        for (bad, says) in [
            (WorkloadSpec { records: Count(0), ..spec() }, "`records` is 0"),
            (WorkloadSpec { records: Count(1 << 48), ..spec() }, "`records` is 2814"),
            (WorkloadSpec { mix: Mix::default(), ..spec() }, "`mix` is empty"),
            (WorkloadSpec { scan: LengthSpec::fixed(0), ..spec() }, "`scan`"),
            (
                WorkloadSpec { popularity: Popularity::Latest { theta: 0.0 }, ..spec() },
                "`popularity`",
            ),
            (WorkloadSpec { multi_get: 0, ..spec() }, "`multi_get`: 0 is not between 1 and 1000"),
            (WorkloadSpec { multi_get: 1001, ..spec() }, "`multi_get`: 1001"),
            (WorkloadSpec { hit_ratio: 1.01, ..spec() }, "`hit_ratio`: 1.01"),
            (WorkloadSpec { hit_ratio: f64::NAN, ..spec() }, "`hit_ratio`: NaN"),
            (
                WorkloadSpec {
                    hit_ratio: 0.5,
                    records: Count(MOST_RECORDS),
                    mix: Mix::only(Op::Read).with(Op::Insert, 1.0),
                    ..spec()
                },
                "`hit_ratio`: below 1, with inserts",
            ),
        ] {
            let error = bad.check().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let empty_load = WorkloadSpec { records: Count(0), mix: Mix::only(Op::Insert), ..spec() };
        assert_eq!(empty_load.check(), Ok(()));
    }

    #[test]
    fn multi_get_and_hit_ratio_are_parsed_and_described() {
        let spec: WorkloadSpec =
            toml::from_str("multi_get = 16\nhit_ratio = 0.9\nrefill = true").unwrap();
        spec.check().unwrap();
        assert_eq!((spec.multi_get, spec.hit_ratio, spec.refill), (16, 0.9, true));
        assert_eq!(toml::from_str::<WorkloadSpec>(&toml::to_string(&spec).unwrap()).unwrap(), spec);
        let says = ", 16 keys a read, 10 % of the keys read were never loaded, misses are refilled";
        assert!(spec.describe().ends_with(says), "{}", spec.describe());
        assert_eq!(
            WorkloadSpec { mix: Mix::only(Op::Update), ..spec.clone() }.reads(),
            spec.reads()
        );
        assert!(
            !WorkloadSpec { mix: Mix::only(Op::Update), ..spec }.describe().contains("keys a read")
        );
    }

    #[test]
    fn a_scale_multiplies_the_records() {
        let records = |factor| WorkloadSpec::default().scaled(factor).map(|spec| spec.records.0);
        assert_eq!(records(28.0), Ok(28_000_000));
        assert_eq!(records(0.5), Ok(500_000));
        assert_eq!(records(1e-9), Ok(1));
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = records(factor).unwrap_err().to_string();
            assert!(error.contains("`records`: a scale of"), "{error}");
        }
        assert!(records(1e12).unwrap_err().to_string().contains("above the most"));
    }

    #[test]
    fn dataset_id_covers_only_loaded_data() {
        let c = WorkloadSpec::preset("ycsb-c").unwrap();
        for name in ["ycsb-a", "ycsb-d", "ycsb-e", "ycsb-load"] {
            assert_eq!(WorkloadSpec::preset(name).unwrap().dataset(), c.dataset());
        }
        let with_reads = WorkloadSpec { multi_get: 10, hit_ratio: 0.5, refill: true, ..c.clone() };
        assert_eq!(with_reads.dataset(), c.dataset());
        let others = [
            WorkloadSpec { records: Count(1), ..c.clone() },
            WorkloadSpec { seed: 2, ..c.clone() },
            WorkloadSpec { order: InsertOrder::Ordered, ..c.clone() },
            WorkloadSpec {
                key: KeySpec { size: Some(LengthSpec::fixed(30)), ..c.key.clone() },
                ..c.clone()
            },
            WorkloadSpec {
                value: ValueSpec { compressibility: 0.1, ..c.value.clone() },
                ..c.clone()
            },
        ];
        for other in others {
            assert_ne!(other.dataset(), c.dataset());
        }
        let json = serde_json::to_string(&c.dataset()).unwrap();
        assert_eq!(serde_json::from_str::<DatasetId>(&json).unwrap(), c.dataset());
    }
}
