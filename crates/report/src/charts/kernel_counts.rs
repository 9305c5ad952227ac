//! Histograms of what was counted inside the kernel: the share of each factor of two.

use model::{BlockOperation, KernelCounts, KernelHistogram, KernelQuantity, ProfiledSide, Unit};

use super::{ShownFigure, slug};
use crate::figure::{Axis, Chart, Entry, Line, LineChart, LinePoint, Panel, Scale, Shape};
use crate::format;
use crate::table::{ALWAYS, Align, Table};

/// The most distinguishable lines in one figure; those with the most values.
const MAX_LINES: usize = 6;
const HEIGHT: f64 = 150.0;
const TICKS: usize = 5;

/// A figure for each quantity that was counted in the pass of a run.
pub fn kernel_counts(run: &str, counts: &KernelCounts) -> Vec<ShownFigure> {
    let quantities = [
        (KernelQuantity::RunQueue, "Waits for a CPU", "time from when a thread could run"),
        (KernelQuantity::BlockWait, "Block device: wait", "time until the device has the request"),
        (KernelQuantity::BlockLatency, "Block device: latency", "time of a request"),
        (KernelQuantity::BlockSize, "Block device: size", "size of a request"),
        (KernelQuantity::Softirq, "Softirqs", "time of a softirq"),
    ];
    let figure = |(quantity, title, axis)| {
        let mut histograms: Vec<_> = counts.of(quantity).filter(|h| h.count() > 0).collect();
        histograms.sort_by_key(|histogram| std::cmp::Reverse(histogram.count()));
        histograms.truncate(MAX_LINES);
        (!histograms.is_empty()).then(|| figure(run, title, axis, &histograms))
    };
    quantities.into_iter().filter_map(figure).collect()
}

/// How many values are from 2^`n` on and below 2^(`n` + 1), from the first to the last such `n`; 0
/// counts as 1.
fn octaves(histograms: &[&KernelHistogram]) -> (Vec<u32>, Vec<Vec<u64>>) {
    let octave = |low: u64| low.max(1).ilog2();
    let lows = histograms.iter().flat_map(|h| h.buckets.iter().map(|bucket| octave(bucket.low)));
    let (first, last) = (lows.clone().min().unwrap_or(0), lows.max().unwrap_or(0));
    let all: Vec<u32> = (first..=last).collect();
    let counts = |histogram: &&KernelHistogram| {
        let mut counts = vec![0u64; all.len()];
        for bucket in &histogram.buckets {
            let count = &mut counts[(octave(bucket.low) - first) as usize];
            *count = count.saturating_add(bucket.count);
        }
        counts
    };
    let counts = histograms.iter().map(counts).collect();
    (all, counts)
}

fn name(histogram: &KernelHistogram) -> String {
    let operation = histogram.operation.map(|operation| match operation {
        BlockOperation::Read => ", reads",
        BlockOperation::Write => ", writes",
        BlockOperation::Flush => ", flushes",
        BlockOperation::Discard => ", discards",
        BlockOperation::Other => ", others",
    });
    let side = histogram.side.map(|side| match side {
        ProfiledSide::Client => ", client",
        ProfiledSide::Server => ", server",
    });
    format!("{}{}", histogram.subject, operation.or(side).unwrap_or_default())
}

fn figure(run: &str, title: &str, axis: &str, histograms: &[&KernelHistogram]) -> ShownFigure {
    let shown: fn(f64) -> String = match histograms[0].quantity.unit() {
        Unit::Bytes => format::bytes,
        _ => format::latency_tick,
    };
    let (octaves, counts) = octaves(histograms);
    let mut data = Table::new("").column("from", Align::Left, ALWAYS);
    let (mut lines, mut legend, mut highest) = (Vec::new(), Vec::new(), 0.0_f64);
    for (nth, (histogram, counts)) in histograms.iter().zip(&counts).enumerate() {
        let (name, all) = (name(histogram), histogram.count().max(1) as f64);
        let points = octaves.iter().zip(counts).map(|(octave, count)| {
            let (low, share) = (2f64.powi(*octave as i32), *count as f64 / all);
            highest = highest.max(share);
            let tip = format!(
                "{name}: {} from {} to {}",
                format::percent(share),
                shown(low),
                shown(2.0 * low)
            );
            // The middle of the factor of two on the axis.
            LinePoint { x: low * 2f64.sqrt(), y: share, tip, shown: false, whisker: None }
        });
        let (color, shape) = (nth, Shape::nth(nth));
        let points = points.collect();
        lines.push(Line { color, dashed: false, hollow: false, shape, joined: true, points });
        data = data.column(name.clone(), Align::Decimal, ALWAYS);
        legend.push(Entry {
            label: name,
            color: Some(color),
            shape: Some(shape),
            line: Some(false),
            hollow: false,
        });
    }
    for (place, octave) in octaves.iter().enumerate() {
        let mut row = vec![shown(2f64.powi(*octave as i32)).into()];
        row.extend(counts.iter().map(|c| crate::table::Cell::from(format::count(c[place]))));
        data.row(row);
    }
    let ends = [octaves[0], octaves[octaves.len() - 1] + 1].map(|octave| 2f64.powi(octave as i32));
    let vertical = Axis::new(Scale::from_zero([highest]), 3, "share", format::percent);
    ShownFigure {
        id: format!("kernel-{}-{}", slug(title), slug(run)),
        title: title.to_owned(),
        alt: format!("{title}, {run}: shares by factors of two"),
        captions: vec![
            "The share of all values in each factor of two, counted inside the kernel.".to_owned(),
        ],
        cautions: Vec::new(),
        chart: Chart::Lines(LineChart {
            axis: Axis::new(Scale::log(ends), TICKS, axis, shown),
            panels: vec![Panel { axis: vertical, height: HEIGHT, lines, levels: Vec::new() }],
            legend,
        }),
        data,
        small: true,
    }
}
