//! HdrHistogram's percentile distribution, for its plotter: one distribution of all operations, by
//! the loop's own clock, in milliseconds.

use std::collections::BTreeMap;
use std::io::Write;

use hdrhistogram::Histogram;
use model::{Distribution, Execution, Run};

use super::{ExportError, Exporter};
use crate::table::DataTable;

pub(super) struct Percentiles;

const NS_OF_MS: f64 = 1e6;
/// Steps for each halving of the distance to 100 %, as HdrHistogram's own tools have.
const STEPS: u32 = 5;
/// Counts of one power of two at three significant digits.
const SUB_BUCKETS: u32 = 2048;

impl Exporter for Percentiles {
    fn name(&self) -> &'static str {
        "hgrm"
    }

    fn about(&self) -> &'static str {
        "HdrHistogram's percentiles of one configuration, for its plotter"
    }

    fn table(&self, _: &DataTable, _: &mut dyn Write) -> Result<(), ExportError> {
        Err(ExportError::NoTables(self.name()))
    }

    fn runs(&self, runs: &[(&Execution, &Run)], out: &mut dyn Write) -> Result<(), ExportError> {
        check_alike(runs)?;
        let own = runs.iter().flat_map(|(_, run)| {
            let clock = run.clock();
            run.latencies.iter().filter(move |latency| latency.clock == clock)
        });
        let all = Distribution::merged(own.map(|latency| &latency.histogram));
        if all.is_empty() {
            return Err(ExportError::NoLatencies);
        }
        write(&all.histogram(), out)
    }
}

/// One file holds one distribution, so the runs must be repeats of one configuration.
fn check_alike(runs: &[(&Execution, &Run)]) -> Result<(), ExportError> {
    let of = |run: &Run| -> (String, BTreeMap<String, String>) {
        let own = run.settings.iter();
        let own = own.filter(|(key, _)| !Run::REPEAT_SETTINGS.contains(&key.as_str()));
        (run.label.clone(), own.map(|(key, value)| (key.clone(), value.clone())).collect())
    };
    let Some((_, first)) = runs.first() else { return Err(ExportError::NoLatencies) };
    let (label, settings) = of(first);
    for (_, run) in &runs[1..] {
        let (other, others) = of(run);
        if run.phase != first.phase || other != label || others != settings {
            let differs = |key: &&String| settings.get(*key) != others.get(*key);
            let key = settings.keys().chain(others.keys()).find(differs);
            return Err(ExportError::SeveralConfigurations {
                first: label,
                other,
                key: key.map_or_else(|| "phase".to_owned(), String::clone),
            });
        }
    }
    Ok(())
}

fn write(histogram: &Histogram<u64>, out: &mut dyn Write) -> Result<(), ExportError> {
    let ms = |ns: f64| ns / NS_OF_MS;
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut total = 0;
    for step in histogram.iter_quantiles(STEPS) {
        total += step.count_since_last_iteration();
        let (value, quantile) = (ms(step.value_iterated_to() as f64), step.quantile_iterated_to());
        match quantile < 1.0 {
            true => {
                let rest = 1.0 / (1.0 - quantile);
                writeln!(out, "{value:12.6} {quantile:2.12} {total:10} {rest:14.2}")?;
            }
            false => writeln!(out, "{value:12.6} {quantile:2.12} {total:10}")?,
        }
    }
    let (mean, deviation) = (ms(histogram.mean()), ms(histogram.stdev()));
    writeln!(out, "#[Mean    = {mean:12.6}, StdDeviation   = {deviation:12.6}]")?;
    let (max, count) = (ms(histogram.max() as f64), histogram.len());
    writeln!(out, "#[Max     = {max:12.6}, Total count    = {count:12}]")?;
    let buckets = histogram.buckets();
    writeln!(out, "#[Buckets = {buckets:12}, SubBuckets     = {SUB_BUCKETS:12}]")?;
    Ok(())
}
