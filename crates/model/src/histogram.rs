//! A whole distribution as bytes: HDR's V2 format, deflated, as other HDR tools read it
//! (they mostly expect it in base64 on top). Results files and agents carry it.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// Encodes; the error is in words.
pub fn encode(histogram: &Histogram<u64>) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|error| format!("a histogram cannot be encoded: {error}"))?;
    Ok(bytes)
}

/// Decodes into a histogram that grows, so that any two can be added. The error is in words.
pub fn decode(bytes: &[u8]) -> Result<Histogram<u64>, String> {
    let mut histogram: Histogram<u64> = Deserializer::new()
        .deserialize(&mut &bytes[..])
        .map_err(|error| format!("a histogram cannot be decoded: {error}"))?;
    histogram.auto(true);
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_encoded_decodes_equal_and_grows(
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

        #[test]
        fn garbage_is_an_error_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(decode(&bytes).is_err());
        }
    }
}
