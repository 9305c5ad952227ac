//! Reads the JSON of a microbenchmark as the figures of a run.

use hdrhistogram::Histogram;
use micro::net::NetLatency;
use model::signal::{
    MICRO_CPU_PER_BYTE, MICRO_LATE, MICRO_LOAD, MICRO_LOAD_MEDIAN, MICRO_LOST, MICRO_SENDER,
    MICRO_SENDER_CPU_PER_BYTE, MICRO_THROUGHPUT, Signal,
};
use model::{Origin, Reading, ReadingValue, Scope, Unit};
use serde::Deserialize;

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

/// The JSON of `kvmeter micro NAME --json`, as far as it is used.
#[derive(Debug, Deserialize)]
struct MicroOutput {
    #[serde(default)]
    cells: Vec<Cell>,
    #[serde(default)]
    stream: Vec<Stream>,
    latency: Option<Curve>,
    steal: Option<f64>,
    warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Cell {
    threads: u32,
    seconds: f64,
    operations: u64,
    touched: u64,
    lost: u64,
    late: u64,
    corrupt: u64,
    throughput_bytes_s: Option<f64>,
    latency_histogram: Option<String>,
    latency_unavailable: Option<String>,
    /// None for a ping-pong.
    stride_bytes: Option<u64>,
    cpu_ns_per_byte: Ends<Option<f64>>,
    readings: Ends<Vec<Reading>>,
    notes: Vec<String>,
    invalid_because: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Ends<T> {
    client: T,
    server: T,
}

#[derive(Debug, Deserialize)]
struct Stream {
    threads: u32,
    rounds: u64,
    kernels: Vec<Kernel>,
}

#[derive(Debug, Deserialize)]
struct Kernel {
    kernel: String,
    best_gb_s: f64,
    mean_s: f64,
}

#[derive(Debug, Deserialize)]
struct Curve {
    points: Vec<Ring>,
}

#[derive(Debug, Deserialize)]
struct Ring {
    load: Load,
}

#[derive(Debug, Deserialize)]
struct Load {
    min_ns: f64,
    median_ns: f64,
    mean_ns: f64,
    batches: u64,
    calls: u64,
}

/// Reads what the command printed.
///
/// # Errors
/// It is not what this version prints.
pub(super) fn read(text: &str) -> Result<RunFigures, String> {
    let output: MicroOutput = serde_json::from_str(text)
        .map_err(|error| format!("its answer cannot be read: {error}"))?;
    let mut figures = match (&output.cells[..], &output.stream[..], output.latency) {
        ([cell], ..) => of_cell(cell)?,
        (_, [stream], _) => of_stream(stream),
        (.., Some(curve)) => of_curve(&curve)?,
        _ => return Err("it measured no cell, or several".to_owned()),
    };
    let steal =
        output.steal.map(ReadingValue::Value).unwrap_or_else(|| unavailable("it was not reported"));
    let steal = measured("machine.steal", steal, Unit::Ratio, Scope::Machine, "/proc/stat");
    figures.readings.push(Reading { window_s: figures.seconds, ..steal });
    // Reasons that invalidate the run are reported with it.
    figures.warnings.extend(output.warnings.into_iter().filter(|text| !text.contains("invalid:")));
    figures.warnings.dedup();
    Ok(figures)
}

fn of_cell(cell: &Cell) -> Result<RunFigures, String> {
    let pingpong = cell.stride_bytes.is_none();
    let (arriving, arrives) = match pingpong {
        true => ((&cell.readings.client, cell.cpu_ns_per_byte.client), Scope::Client),
        false => ((&cell.readings.server, cell.cpu_ns_per_byte.server), Scope::Server),
    };
    let (sending, sends) = match pingpong {
        true => ((&cell.readings.server, cell.cpu_ns_per_byte.server), Scope::Server),
        false => ((&cell.readings.client, cell.cpu_ns_per_byte.client), Scope::Client),
    };
    let mut readings = Vec::new();
    for reading in arriving.0 {
        readings.push(Reading { scope: arrives, ..reading.clone() });
    }
    for reading in sending.0 {
        // Signals of the receiving end have their own names.
        let signal = MICRO_SENDER.name_of(&reading.signal);
        readings.push(Reading { signal, scope: sends, ..reading.clone() });
    }
    let known = |value: Option<f64>, why: &str| value.map_or(unavailable(why), ReadingValue::Value);
    let mut put = |signal: Signal, answer, scope, source: String| {
        readings.push(Reading { scope, source, ..signal.answered(answer, cell.seconds) });
    };
    let way = if pingpong { "payload of both ways" } else { "payload that arrived" };
    let throughput = known(cell.throughput_bytes_s, "nothing arrived");
    put(MICRO_THROUGHPUT, throughput, arrives, format!("{way} / seconds"));
    let why = "the kernel reports no CPU time of single threads, or nothing arrived";
    for (signal, ns, scope) in
        [(MICRO_CPU_PER_BYTE, arriving.1, arrives), (MICRO_SENDER_CPU_PER_BYTE, sending.1, sends)]
    {
        let what = format!("CPU nanoseconds of the end's threads / {way}");
        put(signal, known(ns, why), scope, what);
    }
    let lost = cell.lost as f64 / ((cell.lost + cell.operations) as f64).max(1.0);
    for (signal, value) in [(MICRO_LOST, lost), (MICRO_LATE, cell.late as f64)] {
        put(signal, ReadingValue::Value(value), arrives, signal.source.to_owned());
    }
    let latency = match &cell.latency_histogram {
        Some(text) => Some(NetLatency::decode(text)?).filter(|histogram| !histogram.is_empty()),
        None => None,
    };
    let mut warnings = cell.notes.clone();
    warnings.extend(cell.latency_unavailable.iter().map(|why| format!("no latency: {why}")));
    Ok(RunFigures {
        threads: cell.threads,
        seconds: cell.seconds,
        operations: cell.operations,
        // A ping-pong's answers are verified whole, a flow's only where its receiver touches them.
        verified: if pingpong { cell.operations } else { cell.touched },
        corrupt: cell.corrupt,
        latency,
        readings,
        invalid_because: cell.invalid_because.clone(),
        warnings,
    })
}

/// An operation is one pass of one kernel.
fn of_stream(stream: &Stream) -> RunFigures {
    let what = "bytes as STREAM counts them / the shortest pass";
    let bandwidth = |kernel: &Kernel| {
        let signal = format!("micro.{}", kernel.kernel);
        let bytes_s = ReadingValue::Value(kernel.best_gb_s * 1e9);
        measured(&signal, bytes_s, Unit::BytesPerSecond, Scope::Cpus, what)
    };
    RunFigures {
        threads: stream.threads,
        seconds: stream.kernels.iter().map(|k| k.mean_s * stream.rounds as f64).sum(),
        operations: stream.rounds * stream.kernels.len() as u64,
        readings: stream.kernels.iter().map(bandwidth).collect(),
        ..RunFigures::default()
    }
}

/// An operation is one load.
fn of_curve(curve: &Curve) -> Result<RunFigures, String> {
    let [Ring { load }] = &curve.points[..] else {
        return Err("it measured several sizes".to_owned());
    };
    let loads = load.batches * load.calls;
    Ok(RunFigures {
        threads: 1,
        seconds: load.mean_ns * loads as f64 / 1e9,
        operations: loads,
        readings: vec![
            MICRO_LOAD.value(load.min_ns, 0.0),
            MICRO_LOAD_MEDIAN.value(load.median_ns, 0.0),
        ],
        ..RunFigures::default()
    })
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

fn unavailable(why: &str) -> ReadingValue {
    ReadingValue::Unavailable { reason: why.to_owned(), remedy: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = r#"{"stream": [{"threads": 2, "rounds": 10, "kernels": [
        {"kernel": "copy", "best_gb_s": 12.5, "mean_s": 0.1},
        {"kernel": "triad", "best_gb_s": 10.0, "mean_s": 0.2}]}],
        "steal": 0.0, "warnings": ["small arrays"]}"#;

    fn value(figures: &RunFigures, signal: &str) -> Option<f64> {
        figures.readings.iter().find(|reading| reading.signal == signal)?.value()
    }

    #[test]
    fn a_stream_reads_as_bandwidths() {
        let figures = read(STREAM).unwrap();
        assert_eq!((figures.threads, figures.operations), (2, 20));
        assert!((figures.seconds - 3.0).abs() < 1e-12);
        assert_eq!(value(&figures, "micro.copy"), Some(12.5e9));
        assert_eq!(value(&figures, "micro.triad"), Some(10e9));
        assert_eq!(figures.warnings, ["small arrays"]);
    }

    #[test]
    fn other_json_is_refused() {
        for text in ["", "{}", r#"{"warnings": []}"#, r#"{"cells": [{}], "warnings": []}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
