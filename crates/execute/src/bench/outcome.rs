//! The outcome of a microbenchmark as the figures of a run.

use hdrhistogram::Histogram;
use micro::BatchSpread;
use micro::job::{MicroOutcome, MicroResults};
use micro::net::{Kind, MeasuredCell};
use micro::stream::{KernelResult, StreamPoint};
use model::signal::{
    MICRO_CPU_PER_BYTE, MICRO_LATE, MICRO_LOAD, MICRO_LOAD_MEDIAN, MICRO_LOST, MICRO_SENDER,
    MICRO_SENDER_CPU_PER_BYTE, MICRO_THROUGHPUT, Signal,
};
use model::{Origin, Reading, ReadingValue, Scope, Unit};

/// The figures of one run.
#[derive(Debug, Default)]
pub(super) struct RunFigures {
    pub(super) threads: u32,
    /// Of the measured window.
    pub(super) seconds: f64,
    pub(super) operations: u64,
    pub(super) verified: u64,
    pub(super) corrupt: u64,
    /// Round trips, or one-way delays, in nanoseconds from the sending.
    pub(super) latency: Option<Histogram<u64>>,
    pub(super) readings: Vec<Reading>,
    pub(super) invalid_because: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// The figures of the one cell of a run.
///
/// # Errors
/// It measured none, or several.
pub(super) fn figures(outcome: MicroOutcome) -> Result<RunFigures, String> {
    let mut figures = match &outcome.results {
        MicroResults::Net(cells) => of_cell(only(cells)?),
        MicroResults::Stream(points) => of_stream(only(points)?),
        MicroResults::Latency(curve) => of_load(&only(&curve.points)?.load),
    };
    let steal = known(outcome.steal, "it was not reported");
    let steal = measured("machine.steal", steal, Unit::Ratio, Scope::Machine, "/proc/stat");
    figures.readings.push(Reading { window_s: figures.seconds, ..steal });
    figures.warnings.extend(outcome.warnings);
    figures.warnings.dedup();
    Ok(figures)
}

fn only<T>(cells: &[T]) -> Result<&T, String> {
    match cells {
        [cell] => Ok(cell),
        _ => Err("it measured no cell, or several".to_owned()),
    }
}

fn of_cell(cell: &MeasuredCell) -> RunFigures {
    let pingpong = cell.job.kind == Kind::Pingpong;
    let (client, server) = ((&cell.client, Scope::Client), (&cell.server, Scope::Server));
    let (arriving, sending) = if pingpong { (client, server) } else { (server, client) };
    let (arriving, arrives) = arriving;
    let (sending, sends) = sending;
    let mut readings = Vec::new();
    for reading in &arriving.readings {
        readings.push(Reading { scope: arrives, ..reading.clone() });
    }
    for reading in &sending.readings {
        // Signals of the receiving end have their own names.
        let signal = MICRO_SENDER.name_of(&reading.signal);
        readings.push(Reading { signal, scope: sends, ..reading.clone() });
    }
    let mut put = |signal: Signal, answer, scope, source: String| {
        readings.push(Reading { scope, source, ..signal.answered(answer, arriving.seconds) });
    };
    let way = if pingpong { "payload of both ways" } else { "payload that arrived" };
    let throughput = known(cell.bytes_s(), "nothing arrived");
    put(MICRO_THROUGHPUT, throughput, arrives, format!("{way} / seconds"));
    let why = "the kernel reports no CPU time of single threads, or nothing arrived";
    for (signal, end, scope) in
        [(MICRO_CPU_PER_BYTE, arriving, arrives), (MICRO_SENDER_CPU_PER_BYTE, sending, sends)]
    {
        let what = format!("CPU nanoseconds of the end's threads / {way}");
        put(signal, known(cell.cpu_ns_per_byte(end), why), scope, what);
    }
    let operations = cell.messages();
    let lost = cell.lost() as f64 / ((cell.lost() + operations) as f64).max(1.0);
    for (signal, value) in [(MICRO_LOST, lost), (MICRO_LATE, cell.late() as f64)] {
        put(signal, ReadingValue::Value(value), arrives, signal.source.to_owned());
    }
    let latency = &cell.latency().0;
    let mut warnings = cell.notes.clone();
    warnings.extend(latency.as_ref().err().map(|why| format!("no latency: {why}")));
    RunFigures {
        threads: cell.job.threads,
        seconds: arriving.seconds,
        operations,
        // A ping-pong's answers are verified whole, a flow's only where its receiver touches them.
        verified: if pingpong { operations } else { cell.server.touched },
        corrupt: cell.corrupt(),
        latency: latency.as_ref().ok().filter(|histogram| !histogram.is_empty()).cloned(),
        readings,
        invalid_because: cell.invalid_because(),
        warnings,
    }
}

/// An operation is one pass of one kernel.
fn of_stream(stream: &StreamPoint) -> RunFigures {
    let what = "bytes as STREAM counts them / the shortest pass";
    let bandwidth = |kernel: &KernelResult| {
        let signal = format!("micro.{}", kernel.kernel.name());
        let bytes_s = ReadingValue::Value(kernel.best_gb_s * 1e9);
        measured(&signal, bytes_s, Unit::BytesPerSecond, Scope::Cpus, what)
    };
    RunFigures {
        threads: u32::try_from(stream.threads).unwrap_or(u32::MAX),
        seconds: stream.kernels.iter().map(|k| k.mean_s * stream.rounds as f64).sum(),
        operations: (stream.rounds * stream.kernels.len()) as u64,
        readings: stream.kernels.iter().map(bandwidth).collect(),
        ..RunFigures::default()
    }
}

/// An operation is one load.
fn of_load(load: &BatchSpread) -> RunFigures {
    let loads = load.batches as u64 * load.calls;
    RunFigures {
        threads: 1,
        seconds: load.mean_ns * loads as f64 / 1e9,
        operations: loads,
        readings: vec![
            MICRO_LOAD.value(load.min_ns, 0.0),
            MICRO_LOAD_MEDIAN.value(load.median_ns, 0.0),
        ],
        ..RunFigures::default()
    }
}

fn measured(signal: &str, answer: ReadingValue, unit: Unit, scope: Scope, source: &str) -> Reading {
    Reading {
        signal: signal.to_owned(),
        answer,
        unit,
        scope,
        source: source.to_owned(),
        window_s: 0.0,
        origin: Origin::Measured,
    }
}

fn known(value: Option<f64>, why: &str) -> ReadingValue {
    let missing = || ReadingValue::Unavailable { reason: why.to_owned(), remedy: None };
    value.map_or_else(missing, ReadingValue::Value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = r#"{"results": {"Stream": [{"threads": 2, "cpus": [0, 1],
        "array_bytes": 64, "stores": "plain", "vectors": "baseline", "pages": "system",
        "placement": "first_touch", "huge_bytes": {"Ok": 0}, "pages_on_node": {}, "rounds": 10,
        "passes": 1, "worst_error": 0.0, "kernels": [
        {"kernel": "copy", "best_gb_s": 12.5, "mean_gb_s": 12.0, "worst_gb_s": 11.0,
         "min_s": 0.1, "mean_s": 0.1, "max_s": 0.1},
        {"kernel": "triad", "best_gb_s": 10.0, "mean_gb_s": 9.0, "worst_gb_s": 8.0,
         "min_s": 0.2, "mean_s": 0.2, "max_s": 0.2}]}]},
        "steal": 0.0, "warnings": ["small arrays"]}"#;

    fn value(figures: &RunFigures, signal: &str) -> Option<f64> {
        figures.readings.iter().find(|reading| reading.signal == signal)?.value()
    }

    #[test]
    fn a_stream_reads_as_bandwidths() {
        let figures = figures(serde_json::from_str(STREAM).unwrap()).unwrap();
        assert_eq!((figures.threads, figures.operations), (2, 20));
        assert!((figures.seconds - 3.0).abs() < 1e-12);
        assert_eq!(value(&figures, "micro.copy"), Some(12.5e9));
        assert_eq!(value(&figures, "micro.triad"), Some(10e9));
        assert_eq!(figures.warnings, ["small arrays"]);
    }

    #[test]
    fn a_run_has_one_cell() {
        let results = MicroResults::Net(Vec::new());
        let none = MicroOutcome { results, steal: None, warnings: Vec::new() };
        assert!(figures(none).is_err());
    }
}
