//! Every run of a study that has too many for a row each: a table that pages and searches, from
//! data that are deflated in the page. Without a script the page says where they are.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use model::{Run, text};
use serde_json::{Map, Value, json};

use super::markup::Markup;
use super::sections::Runs;
use crate::cells;
use crate::format;
use crate::tables;

/// The most runs; more would make the page too large.
const MAX_RUNS: usize = 200_000;
/// The most distinct reasons.
const MAX_TEXTS: usize = 1000;
const SCRIPT: &str = include_str!("singles.js");
const PERCENTILES: [(&str, f64); 3] = [("p50, µs", 50.0), ("p99, µs", 99.0), ("p99.9, µs", 99.9)];

pub fn section(out: &mut Markup, runs: &Runs) {
    let shown = &runs[..runs.len().min(MAX_RUNS)];
    let Some(data) = deflated(&data(shown)) else { return };
    out.raw("<p class=\"note\">");
    if shown.len() < runs.len() {
        out.raw("The first ").text(format::count(shown.len() as u64)).raw(" of ");
    }
    out.text(format::count(runs.len() as u64)).raw(" runs, to search and to sort. ");
    out.raw("<code>kvmeter export FILE --table runs</code> has them with all their settings, ");
    out.raw("<code>kvmeter report FILE?key=value</code> shows fewer of them whole.</p>");
    out.raw("<noscript><p class=\"note\">This table alone needs JavaScript.</p></noscript>");
    out.raw("<div id=\"singles\"></div><script type=\"text/plain\" id=\"singles-data\">");
    out.data(&data).raw("</script><script>").raw(SCRIPT).raw("</script>");
}

fn deflated(data: &Value) -> Option<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data.to_string().as_bytes()).ok()?;
    encoder.finish().ok()
}

/// Column by column, texts once, so that it deflates well.
///
/// `cells`: the titles of the configurations; `why`: reasons and warnings; `heads`: of `columns`.
/// For each run `cell` and `number` (its place in the plan, each less the one before it), and its
/// values in `columns`, 0 for none. `invalid` and `warned`: the reasons of the few runs that have
/// some, by their place.
fn data(runs: &Runs) -> Value {
    let cells = cells::cells(runs);
    let mut cell_of: HashMap<&str, usize> = HashMap::new();
    for (nth, cell) in cells.iter().enumerate() {
        cell_of.extend(cell.runs.iter().map(|run| (run.id.as_str(), nth)));
    }
    let names: Vec<String> =
        cells.iter().map(|cell| text::line(&cells::title(cell)).into_owned()).collect();
    let mut why = TextTable::default();
    let (mut invalid, mut warned) = (Map::new(), Map::new());
    let mut columns: Vec<Vec<Value>> = vec![Vec::with_capacity(runs.len()); 2 + PERCENTILES.len()];
    let (mut cell, mut number, mut before) = (Vec::new(), Vec::new(), 0);
    for (place, (_, run)) in runs.iter().enumerate() {
        cell.push(cell_of.get(run.id.as_str()).copied().unwrap_or_default());
        let ordinal = i64::from(run.ordinal);
        number.push(ordinal - before);
        before = ordinal;
        for (column, value) in columns.iter_mut().zip(values(run)) {
            column.push(value);
        }
        for (texts, of) in [(&run.invalid_because, &mut invalid), (&run.warnings, &mut warned)] {
            if !texts.is_empty() {
                let places: Vec<usize> = texts.iter().map(|text| why.place(text)).collect();
                of.insert(place.to_string(), places.into());
            }
        }
    }
    let heads = ["kops/s", "seconds"].into_iter().chain(PERCENTILES.map(|(head, _)| head));
    json!({
        "cells": names,
        "why": why.texts,
        "heads": heads.collect::<Vec<_>>(),
        "cell": cell,
        "number": number,
        "columns": columns,
        "invalid": invalid,
        "warned": warned,
    })
}

/// Texts that differ only in numbers once, cut to a line or two.
#[derive(Default)]
struct TextTable {
    texts: Vec<String>,
    places: BTreeMap<String, usize>,
}

impl TextTable {
    /// The position of the text in `texts`.
    fn place(&mut self, text: &str) -> usize {
        const LONGEST: usize = 200;
        let shape = tables::shape(&text::line(text));
        let cut: String = shape.chars().take(LONGEST).collect();
        if let Some(place) = self.places.get(&cut) {
            return *place;
        }
        if self.texts.len() >= MAX_TEXTS {
            return MAX_TEXTS - 1;
        }
        let text = match self.texts.len() + 1 {
            MAX_TEXTS => "a reason that only the export has".to_owned(),
            _ => cut.clone(),
        };
        self.texts.push(text);
        self.places.insert(cut, self.texts.len() - 1);
        self.texts.len() - 1
    }
}

fn values(run: &Run) -> impl Iterator<Item = Value> {
    let latency = run.latency_of_all(run.clock());
    let percentiles = PERCENTILES.map(|(_, percentile)| {
        latency.as_ref().map_or(0.0, |latency| latency.value_at_percentile(percentile) as f64 / 1e3)
    });
    [run.throughput() / 1e3, run.seconds].into_iter().chain(percentiles).map(digits)
}

/// Four significant digits suffice for all of these.
fn digits(value: f64) -> Value {
    if !value.is_finite() || value == 0.0 {
        return 0.into();
    }
    let step = 10f64.powi(3 - value.abs().log10().floor() as i32);
    let rounded = (value * step).round() / step;
    match rounded.is_finite() {
        true if rounded.fract() == 0.0 && rounded.abs() < 1e15 => (rounded as i64).into(),
        true => rounded.into(),
        false => 0.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_kept() {
        for (value, text) in [
            (123_456.789, "123500"),
            (1.234_56, "1.235"),
            (0.000_123_456, "0.0001235"),
            (0.0, "0"),
            (f64::INFINITY, "0"),
            (f64::NAN, "0"),
            (5e-324, "0"),
        ] {
            assert_eq!(digits(value).to_string(), text, "{value}");
        }
    }
}
