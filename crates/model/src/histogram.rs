//! A whole distribution as bytes: HDR's V2 format, deflated, as other HDR tools read it
//! (they mostly expect it in base64 on top). Results files and agents carry it.

use std::io::Read;

use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// Cookies of the compressed format and of the plain one within it.
const COMPRESSED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;
/// The plain format's header: the cookie, the payload's length, an offset, the significant digits,
/// the lowest and the highest value, a ratio.
const HEADER: usize = 40;
/// No histogram of kvmeter has more significant digits.
const MOST_DIGITS: u32 = 3;
/// The longest payload of such a one: at most 9 bytes for each of less than 2^16 counts.
const LONGEST_PAYLOAD: usize = 9 << 16;

/// Encodes; the error is a message.
pub fn encode(histogram: &Histogram<u64>) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|error| format!("a histogram cannot be encoded: {error}"))?;
    Ok(bytes)
}

/// Decodes into a histogram that grows, so that any two can be added. The error is a message.
///
/// The bytes are not trusted: announced sizes are checked before memory is allocated, which HDR's
/// own decoder does not do. It takes less than 1.5 MiB.
pub fn decode(bytes: &[u8]) -> Result<Histogram<u64>, String> {
    let wrong = |why: &str| format!("a histogram cannot be decoded: {why}");
    let compressed = bytes
        .strip_prefix(&COMPRESSED.to_be_bytes())
        .and_then(|rest| rest.split_first_chunk())
        .and_then(|(length, rest)| rest.get(..u32::from_be_bytes(*length) as usize))
        .ok_or_else(|| wrong("it is not in HDR's compressed format, or cut short"))?;
    let mut plain = Vec::new();
    ZlibDecoder::new(compressed)
        .take((HEADER + LONGEST_PAYLOAD + 1) as u64)
        .read_to_end(&mut plain)
        .map_err(|error| wrong(&error.to_string()))?;
    let field = |at: usize| plain[at..].first_chunk().map_or(0, |field| u32::from_be_bytes(*field));
    match plain.len() {
        0..HEADER => return Err(wrong("it is cut short")),
        _ if field(0) != PLAIN => return Err(wrong("its content is not a histogram")),
        length if length > HEADER + LONGEST_PAYLOAD => {
            return Err(wrong("it is larger than any histogram of kvmeter"));
        }
        length if field(4) as usize != length - HEADER => {
            return Err(wrong("it announces another length than it has"));
        }
        _ if field(12) > MOST_DIGITS => {
            return Err(wrong("it announces more significant digits than any of kvmeter has"));
        }
        _ => {}
    }
    let mut histogram: Histogram<u64> = Deserializer::new()
        .deserialize(&mut &plain[..])
        .map_err(|error| wrong(&error.to_string()))?;
    histogram.auto(true);
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    fn plain_of(histogram: &Histogram<u64>) -> Vec<u8> {
        let mut plain = Vec::new();
        ZlibDecoder::new(&encode(histogram).unwrap()[8..]).read_to_end(&mut plain).unwrap();
        plain
    }

    fn compressed(plain: &[u8]) -> Vec<u8> {
        let mut inner = ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        inner.write_all(plain).unwrap();
        let inner = inner.finish().unwrap();
        [&COMPRESSED.to_be_bytes()[..], &(inner.len() as u32).to_be_bytes(), &inner].concat()
    }

    fn refusal(plain: &[u8]) -> String {
        decode(&compressed(plain)).unwrap_err()
    }

    #[test]
    fn announced_lengths_allocate_nothing() {
        let whole = Histogram::<u64>::new_with_max(1 << 40, 3).unwrap();
        let plain = plain_of(&whole);
        assert_eq!(decode(&compressed(&plain)).unwrap(), whole);
        let with = |at: usize, field: u32| {
            let mut plain = plain.clone();
            plain[at..at + 4].copy_from_slice(&field.to_be_bytes());
            refusal(&plain)
        };
        // 4 GiB of payload; 5 digits are 50 MB.
        assert!(with(4, u32::MAX).contains("another length"));
        assert!(with(12, 5).contains("significant digits"));
        // A payload that is really there, and unpacks to far more.
        let mut bomb = plain.clone();
        bomb.resize(1 << 24, 0);
        assert!(refusal(&bomb).contains("larger than any"));
    }

    #[test]
    fn decodes_the_largest_histogram() {
        let mut whole = Histogram::<u64>::new(3).unwrap();
        whole.record(u64::MAX / 2).unwrap();
        let mut value = 1;
        while value < u64::MAX / 4 {
            whole.record_n(value, 1 << 30).unwrap();
            value = whole.next_non_equivalent(value);
        }
        assert!(whole.distinct_values() < 1 << 16);
        assert_eq!(decode(&encode(&whole).unwrap()).unwrap(), whole);
    }

    proptest! {
        #[test]
        fn encoding_round_trips(
            samples in prop::collection::vec((1u64..1 << 45, 1u64..1 << 40), 0..200),
        ) {
            let mut whole = Histogram::<u64>::new(3).unwrap();
            for (value, count) in samples {
                whole.record_n(value, count).unwrap();
            }
            let mut read = decode(&encode(&whole).unwrap()).unwrap();
            prop_assert_eq!(&read, &whole);
            prop_assert_eq!(&whole, &read);
            prop_assert_eq!(read.mean(), whole.mean());
            prop_assert!(read.record(u64::MAX / 4).is_ok());
        }

        /// Every byte that is changed within the compression.
        #[test]
        fn damaged_input_does_not_panic(at in 0usize..80, byte: u8, high: u64) {
            let mut whole = Histogram::<u64>::new(3).unwrap();
            for value in [1, 7, 1_000, 1 << 40] {
                whole.record_n(value, 1 << 20).unwrap();
            }
            let mut plain = plain_of(&whole);
            plain[24..32].copy_from_slice(&high.to_be_bytes());
            let at = at % plain.len();
            plain[at] = byte;
            if let Ok(read) = decode(&compressed(&plain)) {
                prop_assert!(read.sigfig() <= 3);
                let mut sum = Histogram::<u64>::new(3).unwrap();
                let _ = sum.add(&read);
                let _ = read.value_at_quantile(0.99);
            }
        }

        #[test]
        fn garbage_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(decode(&bytes).is_err());
        }
    }
}
