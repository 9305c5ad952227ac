//! Spill, kvmeter's own engine: one store with one or more tables.

use std::ops::Bound;
use std::time::Duration;

use ::spill::{CachedWrites, ColdReads, Durability, Options, Table};
use model::{Bytes, Span, Unavailable, Unit};

use super::key_spread::spread;
use crate::{
    Capabilities, EmbeddedAdapter, LongestValue, OptionInfo, Session, Statistic, Store, StoreError,
    StoreOptions, StoreUrl, Survives, on_off,
};

const OPTIONS: &[OptionInfo] = &[
    OptionInfo::new("memory", "32MiB", "size of the memtable at which it is compacted"),
    OptionInfo::new(
        "frozen",
        "2",
        "frozen memtables that may wait to be compacted before writes are delayed",
    ),
    OptionInfo::new(
        "throttle",
        "1ms",
        "maximum delay of a write of up to 4KiB: off, or a time up to 100ms",
    ),
    OptionInfo::new(
        "segment",
        "16MiB",
        "file of the log, a multiple of 4KiB; also the limit of a value",
    ),
    OptionInfo::new(
        "durability",
        "none",
        "syncs: none, sync (before a write returns), or an interval",
    ),
    OptionInfo::new("cold_reads", "auto", "what a first read fetches: around, page, auto"),
    OptionInfo::new(
        "cached_writes",
        "auto",
        "whether writes stay in the page cache: auto, on, off",
    ),
    OptionInfo::new("verify", "on", "the checksum of each record that is read"),
    OptionInfo::new("space_amplification", "1.5", "limit of log bytes over live bytes"),
    OptionInfo::new("growth", "8", "how many times larger each level may be than the one above"),
    OptionInfo::new("bloom_bits", "0", "bits per key of the filters of all levels but the last")
        .shaping(),
    OptionInfo::new("tables", "1", "tables that the keys are spread over by hash").shaping(),
];

/// Bytes that a segment needs in addition to its longest value (see "Limits" in Spill's README):
/// header and seal, a record's header and longest key.
const BESIDE_A_VALUE: u64 = 1194;

#[derive(Debug)]
struct Config {
    options: Options,
    tables: usize,
}

impl Config {
    fn read(url: &StoreUrl) -> Result<Self, StoreError> {
        let given = StoreOptions::new(url, OPTIONS)?;
        let default = Options::default();
        let size = |name, otherwise| {
            let bytes = given.bytes(name)?;
            Ok::<_, StoreError>(bytes.map_or(otherwise, |bytes| bytes as usize))
        };
        let durability = given.choice_or_span(
            "durability",
            &[("none", Durability::None), ("sync", Durability::Sync)],
            Durability::Interval,
        )?;
        let throttle = given.choice_or_span("throttle", &[("off", Duration::ZERO)], |span| span)?;
        let cold_reads = given.choice(
            "cold_reads",
            &[("auto", ColdReads::Auto), ("around", ColdReads::Around), ("page", ColdReads::Page)],
        )?;
        let cached_writes = given.choice(
            "cached_writes",
            &[
                ("auto", CachedWrites::Auto),
                ("on", CachedWrites::Always),
                ("off", CachedWrites::Never),
            ],
        )?;
        let options = Options {
            memory: size("memory", default.memory)?,
            frozen: given.integer("frozen", 1, 1000)?.unwrap_or(default.frozen),
            throttle: throttle.unwrap_or(default.throttle),
            segment: size("segment", default.segment)?,
            durability: durability.unwrap_or(default.durability),
            cold_reads: cold_reads.unwrap_or(default.cold_reads),
            cached_writes: cached_writes.unwrap_or(default.cached_writes),
            verify: given.flag("verify")?.unwrap_or(default.verify),
            space_amplification: given
                .number("space_amplification", 1.1, 100.0)?
                .unwrap_or(default.space_amplification),
            growth: given.integer("growth", 2, 1000)?.unwrap_or(default.growth),
            bloom_bits: given.integer("bloom_bits", 0, 32)?.unwrap_or(default.bloom_bits),
            ..default
        };
        options.check().map_err(|error| StoreError::Request(format!("`{url}`: {error}")))?;
        Ok(Self { options, tables: given.integer("tables", 1, 1024)?.unwrap_or(1) })
    }
}

/// One store, whose tables hold the keys.
pub struct Spill {
    store: ::spill::Store,
    tables: Vec<Table>,
    config: Config,
}

impl Spill {
    #[inline]
    fn table(&self, key: &[u8]) -> &Table {
        &self.tables[spread(key, self.tables.len())]
    }
}

impl EmbeddedAdapter for Spill {
    const OPTIONS: &'static [OptionInfo] = OPTIONS;
    const LONGEST_KEY: usize = ::spill::MAX_KEY_LEN;
    const VARIANTS: &'static [&'static str] = &[
        "?memory=32KiB&segment=2MiB&tables=3",
        "?durability=sync&verify=off",
        "?durability=50ms&cold_reads=page&memory=64KiB",
    ];

    fn longest_value(url: &StoreUrl) -> Result<Option<LongestValue>, StoreError> {
        let segment = Config::read(url)?.options.segment as u64;
        Ok(Some(LongestValue { bytes: segment - BESIDE_A_VALUE, raised_by: Some("segment") }))
    }

    fn check(url: &StoreUrl) -> Result<(), StoreError> {
        Config::read(url).map(|_| ())
    }

    fn linked() -> Result<String, Unavailable> {
        Ok(version())
    }
}

fn version() -> String {
    format!("Spill {}", ::spill::VERSION)
}

impl Store for Spill {
    type Session<'a> = SpillSession<'a>;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let config = Config::read(url)?;
        let store =
            ::spill::Store::open(url.data_path(), config.options.clone()).map_err(failed)?;
        let tables = (0..config.tables).map(|number| store.table(&number.to_string()));
        let tables = tables.collect::<Result<_, _>>().map_err(failed)?;
        Ok(Self { store, tables, config })
    }

    fn capabilities(&self) -> Capabilities {
        let survives = Survives::synced(self.config.options.durability == Durability::Sync);
        Capabilities { scan: true, survives, stores_values: true, may_evict: false }
    }

    fn version(&self) -> String {
        version()
    }

    fn options(&self) -> Vec<(String, String)> {
        let Options { memory, segment, durability, throttle, cold_reads, cached_writes, .. } =
            self.config.options;
        let throttle =
            if throttle.is_zero() { "off".to_owned() } else { Span(throttle).to_string() };
        let durability = match durability {
            Durability::None => "none".to_owned(),
            Durability::Sync => "sync".to_owned(),
            Durability::Interval(interval) => Span(interval).to_string(),
        };
        let cold_reads = match cold_reads {
            ColdReads::Auto => "auto",
            ColdReads::Around => "around",
            ColdReads::Page => "page",
        };
        let cached_writes = match cached_writes {
            CachedWrites::Auto => "auto",
            CachedWrites::Always => "on",
            CachedWrites::Never => "off",
        };
        [
            ("memory", Bytes(memory as u64).to_string()),
            ("frozen", self.config.options.frozen.to_string()),
            ("throttle", throttle),
            ("segment", Bytes(segment as u64).to_string()),
            ("durability", durability),
            ("cold_reads", cold_reads.to_owned()),
            ("cached_writes", cached_writes.to_owned()),
            ("verify", on_off(self.config.options.verify)),
            ("space_amplification", self.config.options.space_amplification.to_string()),
            ("growth", self.config.options.growth.to_string()),
            ("bloom_bits", self.config.options.bloom_bits.to_string()),
            ("tables", self.config.tables.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    fn session(&self) -> Result<SpillSession<'_>, StoreError> {
        Ok(SpillSession { store: self })
    }

    fn settle(&self, limit: Duration) -> Result<(), StoreError> {
        match self.store.settle(limit).map_err(failed)? {
            true => Ok(()),
            false => Err(StoreError::Unsettled(format!(
                "Spill was still collecting garbage after {} s",
                limit.as_secs_f64()
            ))),
        }
    }

    fn statistics(&self) -> Vec<Statistic> {
        let all = self.store.statistics();
        [
            ("log.bytes", all.log_bytes, Unit::Bytes),
            ("log.dead", all.dead_bytes, Unit::Bytes),
            ("index.bytes", all.index_bytes, Unit::Bytes),
            ("index.entries", all.index_entries, Unit::Count),
            ("runs", all.levels, Unit::Count),
            ("memory", all.memory_bytes, Unit::Bytes),
            ("spills.total", all.spills, Unit::Count),
            ("spills.entries.total", all.merged_entries, Unit::Count),
            ("segments.stuck", all.stuck_segments, Unit::Count),
            ("collected.segments.total", all.collected_segments, Unit::Count),
            ("collected.copied.total", all.copied_bytes, Unit::Bytes),
            ("writes.throttled.total", all.throttled_writes, Unit::Count),
        ]
        .map(|(name, value, unit)| Statistic { name: name.to_owned(), value: value as f64, unit })
        .to_vec()
    }
}

/// One thread's access to Spill.
pub struct SpillSession<'a> {
    store: &'a Spill,
}

impl Session for SpillSession<'_> {
    #[inline]
    fn read(&mut self, key: &[u8], on_value: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        let found = self.store.table(key).read(key, on_value).map_err(failed)?;
        Ok(found.is_some())
    }

    #[inline]
    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.store.table(key).put(key, value).map_err(failed)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.store.table(key).delete(key).map_err(failed)
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        mut on_pair: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let range = (Bound::Included(from), Bound::Unbounded);
        let mut range = self.store.table(from).range(range);
        let mut count = 0;
        while count < limit {
            let Some((key, value)) = range.next().map_err(failed)? else { break };
            on_pair(key, value);
            count += 1;
        }
        Ok(count)
    }
}

#[cold]
fn failed(error: ::spill::Error) -> StoreError {
    match error {
        ::spill::Error::Full { .. } => StoreError::Full(format!("Spill: {error}")),
        other => StoreError::Failed(format!("Spill: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(home: &tempfile::TempDir, options: &str) -> StoreUrl {
        std::fs::create_dir_all(home.path().join("data")).unwrap();
        format!("spill:{}?{options}", home.path().display()).parse().unwrap()
    }

    #[test]
    fn options_in_force_round_trip() {
        for (given, shown) in [
            ("frozen=4&throttle=250us&durability=5", ["4", "250us", "5s"]),
            ("frozen=1&throttle=off&durability=sync", ["1", "off", "sync"]),
            ("verify=on", ["2", "1ms", "none"]),
        ] {
            let home = tempfile::tempdir().unwrap();
            let in_force = Spill::open(&url(&home, given)).unwrap().options();
            for (name, value) in ["frozen", "throttle", "durability"].iter().zip(shown) {
                assert!(in_force.contains(&((*name).to_owned(), value.to_owned())), "{in_force:?}");
            }
            let text: Vec<String> =
                in_force.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let again = Spill::open(&url(&home, &text.join("&"))).unwrap();
            assert_eq!(again.options(), in_force);
        }
    }

    #[test]
    fn longest_value_matches_the_engine() {
        for segment in ["64KiB", "68KiB", "16MiB"] {
            let home = tempfile::tempdir().unwrap();
            let url = url(&home, &format!("segment={segment}"));
            let longest = url.longest_value().unwrap().unwrap();
            let spill = Spill::open(&url).unwrap();
            let key = [b'k'; ::spill::MAX_KEY_LEN];
            let mut value = vec![7; longest.bytes as usize];
            spill.tables[0].put(&key, &value).unwrap();
            value.push(7);
            match spill.tables[0].put(&key, &value) {
                Err(::spill::Error::ValueTooLong { limit, .. }) => {
                    assert_eq!(limit as u64, longest.bytes, "{segment}");
                }
                other => panic!("{segment}: {other:?}"),
            }
        }
    }

    #[test]
    fn passes_options_to_the_engine() {
        let home = tempfile::tempdir().unwrap();
        let options = Config::read(&url(&home, "frozen=7&throttle=2ms")).unwrap().options;
        assert_eq!((options.frozen, options.throttle), (7, Duration::from_millis(2)));
        let options = Config::read(&url(&home, "throttle=off")).unwrap().options;
        assert_eq!(options.throttle, Duration::ZERO);
    }
}
