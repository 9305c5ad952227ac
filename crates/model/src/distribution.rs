//! A compact distribution: only the buckets that hold samples, a few bytes each. A histogram takes
//! tens of kilobytes whatever is in it, and a study has one for every run.

use std::fmt;
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;

use crate::histogram;

/// Three significant digits: the resolution of each power of two.
const SUB_BUCKETS: u64 = 2048;
const HALF: u64 = SUB_BUCKETS / 2;
const SUB_BITS: u32 = SUB_BUCKETS.trailing_zeros();
/// Buckets below this hold values below 2^63; a histogram has no others.
const MOST_BUCKETS: u64 = (64 - SUB_BITS as u64) * HALF + HALF;

/// A whole histogram of five digits, its largest numbers in every bucket, is not longer.
const MOST_BYTES: u64 = 64 << 20;

/// HDR's V2 format, plain and deflated.
const PLAIN: u32 = 0x1c84_9313;
const DEFLATED: u32 = 0x1c84_9314;

/// The percentiles that tables and exports show. They are computed once, when a distribution is
/// made: a page asks for those of each run several times.
const COMMON_PERCENTILES: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// The samples of one histogram of three significant digits. Figures are those that
/// [`Histogram`] computes from the same samples.
#[derive(Clone, PartialEq, Default)]
pub struct Distribution {
    /// For each bucket that holds samples, by rising value: how many buckets lie between it and
    /// the one before it, and its count, as LEB128.
    counts: Box<[u8]>,
    samples: u64,
    figures: CommonFigures,
}

/// 0 without a sample.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct CommonFigures {
    pub(crate) mean: f64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    percentiles: [u64; COMMON_PERCENTILES.len()],
}

impl CommonFigures {
    /// Of the samples of these buckets, in one pass.
    pub(crate) fn new(samples: u64, buckets: impl Iterator<Item = Bucket>) -> CommonFigures {
        let total = samples as f64;
        let mut figures = CommonFigures::default();
        let (mut cumulative, mut reached) = (0_u64, 0);
        for bucket in buckets {
            if cumulative == 0 {
                figures.min = bucket.lowest();
            }
            cumulative = cumulative.saturating_add(bucket.count);
            figures.mean += bucket.middle() as f64 * bucket.count as f64 / total;
            figures.max = bucket.highest();
            while reached < COMMON_PERCENTILES.len()
                && cumulative >= rank(COMMON_PERCENTILES[reached] / 100.0, samples)
            {
                figures.percentiles[reached] = figures.max;
                reached += 1;
            }
        }
        figures.percentiles[reached..].fill(figures.max);
        figures
    }

    /// None of a percentile that is not among them.
    pub(crate) fn common(&self, percentile: f64) -> Option<u64> {
        let place = COMMON_PERCENTILES.iter().position(|common| *common == percentile)?;
        Some(self.percentiles[place])
    }
}

/// The rank of the sample at this share of all.
fn rank(share: f64, samples: u64) -> u64 {
    ((share * samples as f64).ceil() as u64).max(1)
}

/// Samples of one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    index: u64,
    pub count: u64,
}

impl Bucket {
    /// The least value that falls into it.
    pub fn lowest(self) -> u64 {
        let (shift, sub) = self.shift_and_sub_bucket();
        sub << shift
    }

    /// The greatest value that falls into it.
    pub fn highest(self) -> u64 {
        self.lowest() + (self.width() - 1)
    }

    fn middle(self) -> u64 {
        self.lowest() + (self.width() >> 1)
    }

    fn width(self) -> u64 {
        1 << self.shift_and_sub_bucket().0
    }

    fn shift_and_sub_bucket(self) -> (u64, u64) {
        match self.index / HALF {
            0 => (0, self.index),
            power => (power - 1, self.index % HALF + HALF),
        }
    }
}

fn index_of(value: u64) -> u64 {
    let power = u64::from(64 - SUB_BITS - (value | (SUB_BUCKETS - 1)).leading_zeros());
    power * HALF + (value >> power)
}

impl Distribution {
    /// The relative width of what a value was rounded to.
    pub const RESOLUTION: f64 = 1e-3;

    /// Reads HDR's V2 format, deflated or not. Announced lengths are not trusted: memory grows with
    /// the buckets that hold samples. The error is a message.
    pub fn decode(bytes: &[u8]) -> Result<Distribution, String> {
        let mut rest = bytes;
        let failed = |why: &str| format!("a histogram cannot be decoded: {why}");
        match word(&mut rest).map_err(|why| failed(&why))? {
            PLAIN => counts(&mut rest),
            DEFLATED => {
                let announced = word(&mut rest).map_err(|why| failed(&why))?;
                let mut plain = Vec::new();
                ZlibDecoder::new(rest.take(announced.into()))
                    .take(MOST_BYTES)
                    .read_to_end(&mut plain)
                    .map_err(|error| failed(&error.to_string()))?;
                let mut plain = &plain[..];
                match word(&mut plain) {
                    Ok(PLAIN) => counts(&mut plain),
                    Ok(_) => Err("its inner format is unknown".to_owned()),
                    Err(why) => Err(why),
                }
            }
            _ => Err("its format is unknown".to_owned()),
        }
        .map_err(|why| failed(&why))
    }

    /// HDR's V2 format, deflated. The error is a message.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        histogram::encode(&self.histogram())
    }

    /// All samples of these together.
    pub fn merged<'d>(parts: impl IntoIterator<Item = &'d Distribution>) -> Distribution {
        let mut builder = DistributionBuilder::default();
        merged_buckets(parts).for_each(|bucket| builder.push(bucket.index, bucket.count));
        builder.distribution()
    }

    pub fn len(&self) -> u64 {
        self.samples
    }

    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// The buckets that hold samples, by rising value.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        buckets(&self.counts)
    }

    /// 0 without a sample.
    pub fn min(&self) -> u64 {
        self.figures.min
    }

    /// 0 without a sample.
    pub fn max(&self) -> u64 {
        self.figures.max
    }

    /// 0 without a sample.
    pub fn mean(&self) -> f64 {
        self.figures.mean
    }

    /// 0 without a sample.
    pub fn value_at_percentile(&self, percentile: f64) -> u64 {
        if let Some(common) = self.figures.common(percentile) {
            return common;
        }
        let share = (percentile / 100.0).min(1.0);
        if share == 0.0 {
            return self.min();
        }
        let rank = rank(share, self.samples);
        let mut cumulative = 0_u64;
        let reached = self.buckets().find(|bucket| {
            cumulative = cumulative.saturating_add(bucket.count);
            cumulative >= rank
        });
        reached.map_or(self.max(), Bucket::highest)
    }

    /// Whether each distribution knows this percentile without its buckets.
    pub fn is_kept(percentile: f64) -> bool {
        COMMON_PERCENTILES.contains(&percentile)
    }

    /// The buckets alone, as a distribution; the figures stay here.
    pub(crate) fn take_buckets(&mut self) -> Distribution {
        Distribution { counts: std::mem::take(&mut self.counts), ..*self }
    }

    /// The buckets of others in place of its own; the figures stay its own.
    pub(crate) fn give_buckets(&mut self, others: Distribution) {
        self.counts = others.counts;
    }

    pub(crate) fn figures(&self) -> &CommonFigures {
        &self.figures
    }

    /// As a histogram that grows.
    pub fn histogram(&self) -> Histogram<u64> {
        sum([self])
    }
}

/// The buckets of all of these, by rising value.
pub(crate) fn merged_buckets<'d>(
    parts: impl IntoIterator<Item = &'d Distribution>,
) -> impl Iterator<Item = Bucket> {
    let mut parts: Vec<_> = parts.into_iter().map(|part| part.buckets().peekable()).collect();
    std::iter::from_fn(move || {
        let next = parts.iter_mut().filter_map(|part| part.peek().map(|bucket| bucket.index));
        let index = next.min()?;
        let of = parts.iter_mut().filter_map(|part| part.next_if(|bucket| bucket.index == index));
        Some(Bucket { index, count: crate::total(of.map(|bucket| bucket.count)) })
    })
}

/// All samples of these together, as a histogram that grows.
pub fn sum<'d>(parts: impl IntoIterator<Item = &'d Distribution>) -> Histogram<u64> {
    let mut counts: Vec<u64> = Vec::new();
    for part in parts {
        for bucket in part.buckets() {
            let index = bucket.index as usize;
            if counts.len() <= index {
                counts.resize(index + 1, 0);
            }
            let count = &mut counts[index];
            *count = count.saturating_add(bucket.count);
        }
    }
    let mut sum = growing();
    for (index, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
        let bucket = Bucket { index: index as u64, count };
        // One that grows refuses no value below 2^63.
        let _ = sum.record_n(bucket.lowest(), count);
    }
    sum
}

fn growing() -> Histogram<u64> {
    // The bounds are those of the type; `new` of a constant precision does not fail.
    let mut histogram = Histogram::new(3).unwrap_or_else(|_| unreachable!("3 digits are allowed"));
    histogram.auto(true);
    histogram
}

fn buckets(counts: &[u8]) -> impl Iterator<Item = Bucket> + '_ {
    let mut rest = counts;
    let mut next = 0;
    std::iter::from_fn(move || {
        let index = next + leb128(&mut rest)?;
        next = index + 1;
        Some(Bucket { index, count: leb128(&mut rest)? })
    })
}

impl From<&Histogram<u64>> for Distribution {
    fn from(histogram: &Histogram<u64>) -> Distribution {
        let mut counts = DistributionBuilder::default();
        for step in histogram.iter_recorded() {
            let value = histogram.lowest_equivalent(step.value_iterated_to());
            counts.push(index_of(value).min(MOST_BUCKETS - 1), step.count_at_value());
        }
        counts.distribution()
    }
}

impl From<Histogram<u64>> for Distribution {
    fn from(histogram: Histogram<u64>) -> Distribution {
        Distribution::from(&histogram)
    }
}

impl fmt::Debug for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max) = (self.min(), self.max());
        write!(f, "Distribution({} samples of {min} to {max})", self.samples)
    }
}

/// Collects buckets by rising index.
#[derive(Default)]
struct DistributionBuilder {
    buckets: Vec<Bucket>,
    samples: u64,
}

impl DistributionBuilder {
    fn push(&mut self, index: u64, count: u64) {
        self.samples = self.samples.saturating_add(count);
        match self.buckets.last_mut() {
            Some(last) if last.index == index => last.count = last.count.saturating_add(count),
            _ => self.buckets.push(Bucket { index, count }),
        }
    }

    fn distribution(self) -> Distribution {
        // Most gaps and counts take a byte each.
        let mut bytes = Vec::with_capacity(2 * self.buckets.len());
        let mut next = 0;
        for Bucket { index, count } in &self.buckets {
            write_leb128(index - next, &mut bytes);
            write_leb128(*count, &mut bytes);
            next = index + 1;
        }
        let figures = CommonFigures::new(self.samples, self.buckets.iter().copied());
        Distribution { counts: bytes.into_boxed_slice(), samples: self.samples, figures }
    }
}

/// Parses header and counts after the cookie, of any precision and unit.
fn counts(bytes: &mut &[u8]) -> Result<Distribution, String> {
    let length = word(bytes)?;
    let offset = word(bytes)?;
    let digits = word(bytes)?;
    let unit = long(bytes)?;
    let _highest = long(bytes)?;
    let ratio = f64::from_bits(long(bytes)?);
    if offset != 0 || ratio != 1.0 {
        return Err("it is shifted or scaled, which no histogram of kvmeter is".to_owned());
    }
    if digits > 5 || unit == 0 {
        return Err(format!("{digits} significant digits in units of {unit} are not possible"));
    }
    let half = (2 * 10_u64.pow(digits)).next_power_of_two() / 2;
    let magnitude = u64::from(unit.ilog2());
    let too_slow = || "a value of it is beyond what a histogram holds".to_owned();
    let (mut builder, mut at) = (DistributionBuilder::default(), 0_u64);
    let mut bytes = &bytes[..bytes.len().min(length as usize)];
    while let Some(number) = zigzag(&mut bytes)? {
        // Below zero: so many buckets are empty.
        let Ok(count) = u64::try_from(number) else {
            at = at.checked_add(number.unsigned_abs()).ok_or_else(too_slow)?;
            continue;
        };
        let (shift, sub) = match at / half {
            0 => (0, at),
            power => (power - 1, at % half + half),
        };
        let shift = shift + magnitude;
        if shift + u64::from(sub.checked_ilog2().unwrap_or(0)) >= 63 {
            return Err(too_slow());
        }
        if count > 0 {
            if builder.samples.checked_add(count).is_none() {
                return Err("it counts more samples than 64 bits hold".to_owned());
            }
            builder.push(index_of(sub << shift), count);
        }
        at += 1;
    }
    Ok(builder.distribution())
}

fn word(bytes: &mut &[u8]) -> Result<u32, String> {
    let mut word = [0; 4];
    bytes.read_exact(&mut word).map_err(|error| error.to_string())?;
    Ok(u32::from_be_bytes(word))
}

fn long(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut long = [0; 8];
    bytes.read_exact(&mut long).map_err(|error| error.to_string())?;
    Ok(u64::from_be_bytes(long))
}

/// The next number of HDR's LEB128 of at most nine bytes, signed by zigzag; none at the end.
fn zigzag(bytes: &mut &[u8]) -> Result<Option<i64>, String> {
    let mut value = 0_u64;
    for nth in 0..9 {
        let Some((byte, rest)) = bytes.split_first() else {
            return if nth == 0 { Ok(None) } else { Err("it ends within a number".to_owned()) };
        };
        *bytes = rest;
        let byte = u64::from(*byte);
        // The ninth byte is whole.
        let (bits, last) = if nth == 8 { (byte, true) } else { (byte & 0x7f, byte < 0x80) };
        value |= bits << (7 * nth);
        if last {
            break;
        }
    }
    Ok(Some(((value >> 1) as i64) ^ -((value & 1) as i64)))
}

fn leb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn write_leb128(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::{Serializer, V2Serializer};
    use proptest::prelude::*;

    fn of(digits: u8, samples: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram = Histogram::new(digits).unwrap();
        histogram.auto(true);
        samples.iter().for_each(|(value, count)| histogram.record_n(*value, *count).unwrap());
        histogram
    }

    fn samples() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let value = prop_oneof![0u64..4096, 0u64..1 << 30, 0u64..1 << 62];
        prop::collection::vec((value, 1u64..1 << 40), 0..100)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn figures_match_hdr_histogram(samples in samples(), percentile in 0.0..=100.0) {
            let whole = of(3, &samples);
            let packed = Distribution::from(&whole);
            prop_assert_eq!(packed.len(), whole.len());
            prop_assert_eq!(packed.mean(), whole.mean());
            prop_assert_eq!((packed.min(), packed.max()), (whole.min(), whole.max()));
            if !whole.is_empty() {
                let ends = [percentile, 0.0, 100.0];
                for percentile in ends.into_iter().chain(COMMON_PERCENTILES) {
                    prop_assert_eq!(
                        packed.value_at_percentile(percentile),
                        whole.value_at_percentile(percentile)
                    );
                }
            }
            prop_assert!(packed.histogram() == whole);
        }

        #[test]
        fn merged_is_the_sum(parts in prop::collection::vec(samples(), 0..4)) {
            let parts: Vec<_> = parts.iter().map(|part| Distribution::from(of(3, part))).collect();
            let merged = Distribution::merged(&parts);
            prop_assert_eq!(&merged, &Distribution::from(sum(&parts)));
            prop_assert_eq!(merged.len(), parts.iter().map(Distribution::len).sum::<u64>());
        }

        #[test]
        fn reads_hdr_format(samples in samples()) {
            let whole = of(3, &samples);
            let packed = Distribution::from(&whole);
            let mut plain = Vec::new();
            V2Serializer::new().serialize(&whole, &mut plain).unwrap();
            let deflated = histogram::encode(&whole).unwrap();
            prop_assert_eq!(&Distribution::decode(&plain).unwrap(), &packed);
            prop_assert_eq!(&Distribution::decode(&deflated).unwrap(), &packed);
            prop_assert_eq!(Distribution::decode(&packed.encode().unwrap()).unwrap(), packed);
        }

        #[test]
        fn sum_adds_two_distributions(a in samples(), b in samples()) {
            let both = [&a[..], &b[..]].concat();
            let parts = [Distribution::from(of(3, &a)), Distribution::from(of(3, &b))];
            prop_assert!(sum(&parts) == of(3, &both));
        }

        #[test]
        fn other_precisions_keep_their_samples(samples in samples(), digits in 1u8..=5) {
            let whole = of(digits, &samples);
            let read = Distribution::decode(&histogram::encode(&whole).unwrap()).unwrap();
            prop_assert_eq!(read.len(), whole.len());
        }

        #[test]
        fn garbage_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let framed = [&PLAIN.to_be_bytes()[..], &bytes].concat();
            let _ = Distribution::decode(&framed);
            prop_assert!(Distribution::decode(&bytes).is_err() || bytes.len() >= 4);
        }
    }

    /// 36 bytes that announce 4 GiB of counts, and counts of buckets that do not exist.
    #[test]
    fn announced_lengths_are_not_trusted() {
        let mut bytes = PLAIN.to_be_bytes().to_vec();
        bytes.extend(u32::MAX.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(3_u32.to_be_bytes());
        bytes.extend(1_u64.to_be_bytes());
        bytes.extend(u64::MAX.to_be_bytes());
        bytes.extend(1_f64.to_be_bytes());
        assert!(Distribution::decode(&bytes).unwrap().is_empty());
        // 2^40 empty buckets, then a sample.
        let mut far = bytes.clone();
        far.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0x02]);
        assert!(Distribution::decode(&far).unwrap_err().contains("beyond"));
        bytes.extend([0x80]);
        assert!(Distribution::decode(&bytes).unwrap_err().contains("within a number"));
    }
}
