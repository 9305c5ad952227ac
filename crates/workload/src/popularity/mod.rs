//! The record of an operation.

mod exponential;
mod hotspot;
mod key_ranges;
mod ranks;
mod top_of_ranges;
mod zipf;

use std::fmt;
use std::str::FromStr;

use model::{Count, suggest};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::SpecError;
use crate::fnv::fnv64;
use crate::text_or_table::{self, TextOrTable};
use exponential::Exponential;
use hotspot::Hotspot;
pub use key_ranges::KeyRanges;
use key_ranges::RangeChooser;
use model::random::{Draws, below};
use ranks::RankTable;
pub use top_of_ranges::TopOfRanges;
use zipf::Zipf;

/// Zipf's constant where none is given, as in YCSB.
pub const THETA: f64 = 0.99;

/// The number of items that YCSB's scrambled Zipfian draws from before it scatters them.
pub const SCRAMBLED_ITEMS: u64 = 10_000_000_000;

/// The distribution of requests over the loaded records, `0 .. records`. Only `latest` also reads
/// records that the run inserts.
///
/// In a file: a text as [`Popularity::parse`] reads it, or a table with the name, e.g.
/// `{ zipfian = { theta = 0.99 } }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields, remote = "Self")]
pub enum Popularity {
    /// Every record equally often.
    Uniform,
    /// Operation `i` uses record `i` modulo `records`.
    Sequential,
    /// P(record k) proportional to (k + 1)^-theta: the first record is the most popular.
    ///
    /// Exactly, for any positive theta. YCSB draws from an approximation of the same law (Gray et
    /// al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994), which is exact
    /// for the first two ranks only: over 1,000,000 records at 0.99 it gives the third rank 19 %
    /// and the fifth 10 % too many requests, the thousandth 1.6 % too few, and the first ten
    /// together 20.2 % of all instead of 19.2 %.
    Zipfian {
        #[serde(default = "theta")]
        theta: f64,
    },
    /// YCSB's way to spread the popular records over the key space: a Zipfian draw from 10^10
    /// items, whatever the number of records, is hashed with FNV-1a-64 (its absolute value, as
    /// YCSB takes it) and taken modulo `records`. With 0.99 and a million records the 10,000 most
    /// popular ones take 39.4 % of the requests; YCSB itself, with its approximation of the law,
    /// comes to 39.9 %, and ports that draw from as many items as there are records to 67 %.
    ScrambledZipfian {
        #[serde(default = "theta")]
        theta: f64,
    },
    /// The newest record minus a Zipfian draw: the last inserted records are read most. The draw is
    /// over as many ranks as records were loaded, and does not widen as the run inserts.
    Latest {
        #[serde(default = "theta")]
        theta: f64,
    },
    /// YCSB's hotspot: the share `operations` of the requests goes to the first `keys` part of the
    /// records, the others to the rest; uniformly inside each.
    Hotspot { keys: f64, operations: f64 },
    /// YCSB's exponential: `percentile` % of the requests would go to the first `fraction` of an
    /// endless sequence of records; ranks beyond the last record are drawn again.
    Exponential { percentile: f64, fraction: f64 },
    /// An empirical table: numbers of records from the most popular on, and the share of the
    /// requests that each of these ranges has, evenly within it. Shares are proportions. The
    /// ranges are stretched to the records that there are.
    Ranks { ranges: Vec<(Count, f64)> },
    /// Ranges of keys that are hot or cold as a whole.
    KeyRanges(KeyRanges),
}

fn theta() -> f64 {
    THETA
}

impl Default for Popularity {
    fn default() -> Popularity {
        Popularity::ScrambledZipfian { theta: THETA }
    }
}

impl Popularity {
    const NAMES: [&'static str; 9] = [
        "uniform",
        "sequential",
        "zipfian",
        "scrambled_zipfian",
        "latest",
        "hotspot",
        "exponential",
        "ranks",
        "key_ranges",
    ];

    /// Reads what a flag holds: `uniform`, `sequential`, `zipfian`, `scrambled_zipfian` or
    /// `latest`, the last three also with `:THETA`, `hotspot:KEYS,OPERATIONS` (0.2,0.8 where left
    /// out), `exponential:PERCENTILE,FRACTION` (95,0.8571428571), `ranks:RECORDS=SHARE,...` and
    /// `key_ranges:COUNT,A,B,C,D[,A,B]`.
    ///
    /// # Errors
    /// [`SpecError::Unreadable`] with the nearest name.
    pub fn parse(text: &str) -> Result<Popularity, SpecError> {
        let unreadable = |problem: String| SpecError::Unreadable {
            text: text.to_owned(),
            what: "a popularity",
            problem,
        };
        let (name, rest) = match text.trim().split_once(':') {
            Some((name, rest)) => (name.trim(), Some(rest)),
            None => (text.trim(), None),
        };
        if let ("ranks", Some(rest)) = (name, rest) {
            return ranges(rest).map(|ranges| Popularity::Ranks { ranges }).map_err(unreadable);
        }
        let numbers: Vec<f64> = rest
            .map_or(Vec::new(), |rest| rest.split(',').collect())
            .into_iter()
            .map(|part| part.trim().parse().map_err(|_| format!("`{part}` is not a number")))
            .collect::<Result<_, String>>()
            .map_err(unreadable)?;
        match (name, numbers.as_slice()) {
            ("uniform", []) => Ok(Popularity::Uniform),
            ("sequential", []) => Ok(Popularity::Sequential),
            ("zipfian", []) => Ok(Popularity::Zipfian { theta: THETA }),
            ("zipfian", &[theta]) => Ok(Popularity::Zipfian { theta }),
            ("scrambled_zipfian", []) => Ok(Popularity::ScrambledZipfian { theta: THETA }),
            ("scrambled_zipfian", &[theta]) => Ok(Popularity::ScrambledZipfian { theta }),
            ("latest", []) => Ok(Popularity::Latest { theta: THETA }),
            ("latest", &[theta]) => Ok(Popularity::Latest { theta }),
            ("hotspot", []) => Ok(Popularity::Hotspot { keys: 0.2, operations: 0.8 }),
            ("hotspot", &[keys, operations]) => Ok(Popularity::Hotspot { keys, operations }),
            ("exponential", []) => {
                Ok(Popularity::Exponential { percentile: 95.0, fraction: 0.857_142_857_1 })
            }
            ("exponential", &[percentile, fraction]) => {
                Ok(Popularity::Exponential { percentile, fraction })
            }
            ("key_ranges", [count, range @ .., key_a, key_b]) if range.len() == 4 => {
                key_ranges(*count, range, Some([*key_a, *key_b])).map_err(unreadable)
            }
            ("key_ranges", [count, range @ ..]) if range.len() == 4 => {
                key_ranges(*count, range, None).map_err(unreadable)
            }
            (known, _) if Popularity::NAMES.contains(&known) => Err(unreadable(format!(
                "`{known}` takes other parameters; write `zipfian:0.99`, `hotspot:0.2,0.8`, \
                 `exponential:95,0.86`, `ranks:10=0.5,90=0.5` or \
                 `key_ranges:30,14.2,-2.9,0.016,-0.081`"
            ))),
            (unknown, _) => Err(unreadable(suggest::hint(unknown, Popularity::NAMES))),
        }
    }

    /// # Errors
    /// A parameter outside its range.
    pub fn check(&self) -> Result<(), SpecError> {
        let wrong = |problem| Err(SpecError::invalid("popularity", problem));
        match *self {
            Popularity::Ranks { ref ranges } => RankTable::problem(ranges).map_or(Ok(()), wrong),
            Popularity::KeyRanges(ranges) => ranges.problem().map_or(Ok(()), wrong),
            Popularity::Uniform | Popularity::Sequential => Ok(()),
            Popularity::Zipfian { theta }
            | Popularity::ScrambledZipfian { theta }
            | Popularity::Latest { theta } => {
                if theta > 0.0 && theta <= 100.0 {
                    return Ok(());
                }
                wrong(format!("`theta` is {theta}; it must be above 0 and at most 100"))
            }
            Popularity::Hotspot { keys, operations } => {
                if (0.0..=1.0).contains(&keys) && (0.0..=1.0).contains(&operations) {
                    return Ok(());
                }
                wrong("`keys` and `operations` are parts between 0 and 1".to_owned())
            }
            Popularity::Exponential { percentile, fraction } => {
                if percentile > 0.0 && percentile < 100.0 && fraction > 0.0 && fraction <= 1.0 {
                    return Ok(());
                }
                wrong("`percentile` lies between 0 and 100, `fraction` between 0 and 1".to_owned())
            }
        }
    }
}

/// Reads `10=0.5,90=0.5`.
fn ranges(text: &str) -> Result<Vec<(Count, f64)>, String> {
    let pair = |pair: &str| {
        let (ranks, share) = pair.split_once('=').ok_or("write it as `ranks:10=0.5,90=0.5`")?;
        let ranks = ranks.trim().parse().map_err(|_| format!("`{ranks}` is not a number"))?;
        let share = share.trim().parse().map_err(|_| format!("`{share}` is not a number"))?;
        Ok((ranks, share))
    };
    text.split(',').map(pair).collect()
}

/// A number of ranges, four parameters of their shares, and those of their keys.
fn key_ranges(count: f64, range: &[f64], key: Option<[f64; 2]>) -> Result<Popularity, String> {
    match range {
        &[a, b, c, d] if count.fract() == 0.0 && (0.0..=1e9).contains(&count) => {
            Ok(Popularity::KeyRanges(KeyRanges { count: count as u32, range: [a, b, c, d], key }))
        }
        _ => Err(format!("`{count}` is not a number of ranges")),
    }
}

/// Writes what [`Popularity::parse`] reads.
impl fmt::Display for Popularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Popularity::Uniform => f.write_str("uniform"),
            Popularity::Sequential => f.write_str("sequential"),
            Popularity::Zipfian { theta } => write!(f, "zipfian:{theta}"),
            Popularity::ScrambledZipfian { theta } => write!(f, "scrambled_zipfian:{theta}"),
            Popularity::Latest { theta } => write!(f, "latest:{theta}"),
            Popularity::Hotspot { keys, operations } => write!(f, "hotspot:{keys},{operations}"),
            Popularity::Exponential { percentile, fraction } => {
                write!(f, "exponential:{percentile},{fraction}")
            }
            Popularity::Ranks { ranges } => {
                for (index, (ranks, share)) in ranges.iter().enumerate() {
                    let before = if index == 0 { "ranks:" } else { "," };
                    write!(f, "{before}{}={share}", ranks.0)?;
                }
                Ok(())
            }
            Popularity::KeyRanges(KeyRanges { count, range, key }) => {
                write!(f, "key_ranges:{count}")?;
                range.iter().chain(key.iter().flatten()).try_for_each(|x| write!(f, ",{x}"))
            }
        }
    }
}

impl FromStr for Popularity {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Popularity, SpecError> {
        Popularity::parse(text)
    }
}

impl TextOrTable for Popularity {
    const EXPECTED: &'static str =
        "a popularity, as `\"uniform\"` or `{ zipfian = { theta = 0.99 } }`";
    fn table<'de, D: Deserializer<'de>>(from: D) -> Result<Popularity, D::Error> {
        // The inherent function that `remote = "Self"` derives.
        Popularity::deserialize(from)
    }
}

impl<'de> Deserialize<'de> for Popularity {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Popularity, D::Error> {
        text_or_table::read(from)
    }
}

impl Serialize for Popularity {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        Popularity::serialize(self, out)
    }
}

/// A popularity over a number of records, compiled for sampling.
#[derive(Debug, Clone)]
pub struct RecordChooser {
    records: u64,
    law: PopularityLaw,
}

#[derive(Debug, Clone)]
enum PopularityLaw {
    Uniform,
    Sequential { stride: u64 },
    Zipfian(Zipf),
    Scrambled(Zipf),
    Latest(Zipf),
    Hotspot(Hotspot),
    Exponential(Exponential),
    Ranks(RankTable),
    KeyRanges(RangeChooser),
}

impl RecordChooser {
    /// `records` is at least 1 and the popularity has been checked. A sequential operation uses
    /// `stride` records.
    pub fn new(popularity: &Popularity, records: u64, stride: u32) -> RecordChooser {
        let law = match *popularity {
            Popularity::Uniform => PopularityLaw::Uniform,
            Popularity::Sequential => PopularityLaw::Sequential { stride: u64::from(stride) },
            Popularity::Zipfian { theta } => PopularityLaw::Zipfian(Zipf::new(records, theta)),
            Popularity::ScrambledZipfian { theta } => {
                PopularityLaw::Scrambled(Zipf::new(SCRAMBLED_ITEMS, theta))
            }
            Popularity::Latest { theta } => PopularityLaw::Latest(Zipf::new(records, theta)),
            Popularity::Hotspot { keys, operations } => {
                PopularityLaw::Hotspot(Hotspot::new(records, keys, operations))
            }
            Popularity::Exponential { percentile, fraction } => {
                PopularityLaw::Exponential(Exponential::new(records, percentile, fraction))
            }
            Popularity::Ranks { ref ranges } => {
                PopularityLaw::Ranks(RankTable::new(records, ranges))
            }
            Popularity::KeyRanges(ref ranges) => {
                PopularityLaw::KeyRanges(RangeChooser::new(records, ranges))
            }
        };
        RecordChooser { records, law }
    }

    /// Whether a rank counts back from the newest record.
    #[inline(always)]
    pub fn counts_from_newest(&self) -> bool {
        matches!(self.law, PopularityLaw::Latest(_))
    }

    /// The law of the items that are scattered over the records, if any.
    pub fn scattered(&self) -> Option<&Zipf> {
        match &self.law {
            PopularityLaw::Scrambled(zipf) => Some(zipf),
            _ => None,
        }
    }

    pub fn is_sequential(&self) -> bool {
        matches!(self.law, PopularityLaw::Sequential { .. })
    }

    /// The key ranges, if any: then ranks are records, in the order of their keys.
    pub fn key_ranges(&self) -> Option<&RangeChooser> {
        match &self.law {
            PopularityLaw::KeyRanges(ranges) => Some(ranges),
            _ => None,
        }
    }

    /// The rank of operation `index`: 0 is the most popular, except with key ranges.
    #[inline(always)]
    pub fn rank(&self, index: u64, draws: &mut Draws) -> u64 {
        match &self.law {
            PopularityLaw::Uniform => below(draws.next(), self.records),
            PopularityLaw::Sequential { stride } => index.wrapping_mul(*stride) % self.records,
            PopularityLaw::Zipfian(zipf)
            | PopularityLaw::Scrambled(zipf)
            | PopularityLaw::Latest(zipf) => zipf.draw(draws),
            PopularityLaw::Hotspot(hotspot) => hotspot.draw(draws),
            PopularityLaw::Exponential(exponential) => exponential.draw(draws),
            PopularityLaw::Ranks(table) => table.draw(draws),
            PopularityLaw::KeyRanges(ranges) => ranges.draw(draws),
        }
    }

    /// The record that has a rank, `newest` being the last one that exists.
    #[inline(always)]
    pub fn record(&self, rank: u64, newest: u64) -> u64 {
        match self.law {
            PopularityLaw::Scrambled(_) => scatter(rank, self.records),
            PopularityLaw::Latest(_) => newest - rank,
            _ => rank,
        }
    }
}

/// YCSB's hash of an item into the records.
#[inline(always)]
pub fn scatter(item: u64, records: u64) -> u64 {
    (fnv64(item) as i64).unsigned_abs() % records
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::random::RandomStream;

    #[test]
    fn reads_flags_and_files_and_writes_them_back() {
        for text in [
            "uniform",
            "sequential",
            "zipfian:0.5",
            "scrambled_zipfian:0.99",
            "latest:1.2",
            "hotspot:0.2,0.8",
            "exponential:95,0.5",
            "ranks:10=0.5,90=0.25",
            "key_ranges:30,14.18,-2.917,0.0164,-0.08082",
            "key_ranges:30,14.18,-2.917,0.0164,-0.08082,0.002312,0.3467",
        ] {
            let popularity = Popularity::parse(text).unwrap();
            popularity.check().unwrap();
            assert_eq!(popularity.to_string(), text);
            let json = serde_json::to_string(&popularity).unwrap();
            assert_eq!(serde_json::from_str::<Popularity>(&json).unwrap(), popularity, "{json}");
        }
        let json = r#"{"zipfian":{"theta":0.99}}"#;
        let zipfian = Popularity::Zipfian { theta: 0.99 };
        assert_eq!(serde_json::from_str::<Popularity>(json).unwrap(), zipfian);
        assert_eq!(serde_json::from_str::<Popularity>("\"zipfian\"").unwrap(), zipfian);
        assert_eq!(serde_json::from_str::<Popularity>(r#"{"zipfian":{}}"#).unwrap(), zipfian);
        assert_eq!(serde_json::to_string(&Popularity::Uniform).unwrap(), "\"uniform\"");
    }

    #[test]
    fn explains_invalid_texts() {
        for (text, says) in [
            ("zipfain", "did you mean `zipfian`?"),
            ("uniform:3", "other parameters"),
            ("zipfian:x", "`x` is not a number"),
            ("ranks", "other parameters"),
            ("ranks:x=1", "`x` is not a number"),
            ("ranks:10", "ranks:10=0.5"),
            ("key_ranges:30,1,2", "other parameters"),
            ("key_ranges:30,1,2,3,4,5", "other parameters"),
            ("key_ranges:1.5,1,2,3,4", "not a number of ranges"),
        ] {
            let error = Popularity::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        for text in [
            "zipfian:0",
            "zipfian:-1",
            "zipfian:nan",
            "latest:inf",
            "hotspot:2,0.5",
            "exponential:100,0.5",
            "exponential:95,0",
            "ranks:10=-1",
            "ranks:10=0",
            "ranks:0=1",
            "key_ranges:0,1,2,3,4",
            "key_ranges:5,1,2,3,4,0,1",
        ] {
            let error = Popularity::parse(text).unwrap().check().unwrap_err().to_string();
            assert!(error.starts_with("`popularity`"), "{text}: {error}");
        }
        let error = serde_json::from_str::<Popularity>(r#"{"zipfian":{"teta":1}}"#).unwrap_err();
        assert!(error.to_string().contains("teta"), "{error}");
    }

    #[test]
    fn uniform_and_sequential_follow_their_definition() {
        let mut observed = [0u64; 100];
        let uniform = RecordChooser::new(&Popularity::Uniform, 100, 1);
        for i in 0..500_000 {
            observed[uniform.rank(i, &mut Draws::from(RandomStream::new(1, 1).at(i))) as usize] +=
                1;
        }
        let chi: f64 = observed.iter().map(|&s| (s as f64 - 5000.0).powi(2) / 5000.0).sum();
        // 99 degrees of freedom, five standard deviations.
        assert!(chi < 99.0 + 5.0 * 198f64.sqrt(), "{chi}");
        let sequential = RecordChooser::new(&Popularity::Sequential, 7, 1);
        let ranks: Vec<u64> = (0..15).map(|i| sequential.rank(i, &mut Draws::from(0))).collect();
        assert_eq!(ranks, [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0]);
    }

    /// The part of the requests that the 10,000 most popular of a million records take, where the
    /// item of rank k (from 0) has probability `mass(k)`: the ranks of the head are hashed one by
    /// one, and the rare rest is spread evenly. With the records themselves.
    fn share_of_the_top(mass: impl Fn(u64) -> f64) -> (f64, Vec<u32>) {
        const HEAD: u64 = 4_000_000;
        let mut of_record = vec![0.0; RECORDS as usize];
        let mut head = 0.0;
        for rank in 0..HEAD {
            let p = mass(rank);
            of_record[scatter(rank, RECORDS) as usize] += p;
            head += p;
        }
        let mut order: Vec<u32> = (0..RECORDS as u32).collect();
        order.sort_unstable_by(|a, b| of_record[*b as usize].total_cmp(&of_record[*a as usize]));
        order.truncate(10_000);
        let top: f64 = order.iter().map(|&record| of_record[record as usize]).sum();
        (top + (1.0 - head) * order.len() as f64 / RECORDS as f64, order)
    }

    const RECORDS: u64 = 1_000_000;
    /// The sum of k^-0.99 for k in 1 ..= 10^10.
    const ZETAN: f64 = 26.469_028_201_783_02;

    /// YCSB's own figure, counted in a sample, is 40.0 %.
    #[test]
    fn the_approximation_of_ycsb_gives_forty_percent() {
        let n = SCRAMBLED_ITEMS as f64;
        let two = 1.0 + 0.5f64.powf(THETA);
        let eta = (1.0 - (2.0 / n).powf(1.0 - THETA)) / (1.0 - two / ZETAN);
        // P(rank < r) of the inversion of Gray et al.
        let below = |r: u64| match r {
            0 => 0.0,
            1 => 1.0 / ZETAN,
            r => (((r as f64 / n).powf(1.0 - THETA) - 1.0 + eta) / eta).max(two / ZETAN),
        };
        let (share, _) = share_of_the_top(|rank| below(rank + 1) - below(rank));
        assert!((share - 0.400).abs() < 0.001, "{share}");
    }

    #[test]
    fn scrambled_zipfian_has_the_skew_of_the_exact_law() {
        let (share, top) = share_of_the_top(|rank| ((rank + 1) as f64).powf(-THETA) / ZETAN);
        assert!((share - 0.394).abs() < 0.0005, "{share}");
        let mut hot = vec![false; RECORDS as usize];
        top.iter().for_each(|&record| hot[record as usize] = true);
        let chooser = RecordChooser::new(&Popularity::default(), RECORDS, 1);
        let draws = 1_000_000;
        let hits = (0..draws)
            .filter(|&i| {
                let rank = chooser.rank(i, &mut Draws::from(RandomStream::new(5, 1).at(i)));
                hot[chooser.record(rank, RECORDS - 1) as usize]
            })
            .count() as f64
            / draws as f64;
        // Four standard errors of a share of 0.4 in a million draws.
        assert!((hits - share).abs() < 0.002, "{hits} {share}");
    }
}
