//! Histograms as bytes: HDR's V2 format, deflated.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::outcome::DriveError;

pub(crate) fn encode(histogram: &Histogram<u64>) -> Result<Vec<u8>, DriveError> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|error| DriveError::Internal(format!("a histogram cannot be encoded: {error}")))?;
    Ok(bytes)
}

/// Decodes; the error is in words.
pub(crate) fn decode(bytes: &[u8]) -> Result<Histogram<u64>, String> {
    let mut histogram: Histogram<u64> =
        Deserializer::new().deserialize(&mut &bytes[..]).map_err(|error| error.to_string())?;
    // So that any two can be added.
    histogram.auto(true);
    Ok(histogram)
}
