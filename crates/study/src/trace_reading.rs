//! How a trace is read, as flags and studies say it.

use model::Count;
use workload::trace::{MOST_COPIES, TraceFormat, TraceOptions};

use crate::load::InvalidOption;

/// How a trace is read, unchecked; what is not given has its default.
#[derive(Debug, Clone, Default)]
pub struct TraceReading {
    /// `auto` or the name of a format.
    pub format: Option<String>,
    pub copies: Option<u32>,
    pub sample: Option<f64>,
    pub skip_bad: Option<Count>,
}

impl TraceReading {
    /// Checks it.
    ///
    /// # Errors
    /// An unknown format, no copy or too many, a share that is not above 0 and at most 1.
    pub fn options(&self) -> Result<TraceOptions, InvalidOption> {
        let no = |key, why| Err(InvalidOption { key, why });
        let format = match self.format.as_deref() {
            None | Some("auto") => None,
            Some(name) => match name.parse::<TraceFormat>() {
                Ok(format) => Some(format),
                Err(why) => return no("trace_format", why),
            },
        };
        let copies = self.copies.unwrap_or(1);
        if !(1..=MOST_COPIES).contains(&copies) {
            return no("trace_copies", format!("is 1 to {MOST_COPIES}, not {copies}"));
        }
        let sample = self.sample.unwrap_or(1.0);
        if !(sample > 0.0 && sample <= 1.0) {
            return no("trace_sample", format!("is above 0 and at most 1, not {sample}"));
        }
        let skip_bad = self.skip_bad.map_or(0, |most| most.0);
        Ok(TraceOptions { format, copies, sample, skip_bad, ..TraceOptions::default() })
    }
}
