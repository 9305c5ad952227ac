//! Tables for a pull request: what a reader compares, in readable units, with warnings below.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use super::{ExportError, Exporter};
use crate::table::{DataCell, DataTable};
use model::figures::{FIGURES, figures_us};
use model::{Execution, LatencyClock, Phase, Run};

pub(super) struct Markdown;

/// Marks a missing value.
const NO_VALUE: &str = "–";
const SHOWN: [&str; 4] = ["mean", "p50", "p99", "p99_9"];

impl Exporter for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn about(&self) -> &'static str {
        "tables for a pull request"
    }

    fn table(&self, table: &DataTable, out: &mut dyn Write) -> Result<(), ExportError> {
        let names: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
        head(&names, 0, out)?;
        for row in &table.rows {
            line(&row.iter().map(plain).collect::<Vec<_>>(), out)?;
        }
        Ok(())
    }

    /// One section an execution: the machine, a row a run and operation, and the remarks.
    fn runs(&self, runs: &[(&Execution, &Run)], out: &mut dyn Write) -> Result<(), ExportError> {
        let mut sections: Vec<(&Execution, Vec<&Run>)> = Vec::new();
        for (execution, run) in runs {
            match sections.iter_mut().find(|(known, _)| known.id == execution.id) {
                Some((_, own)) => own.push(run),
                None => sections.push((execution, vec![run])),
            }
        }
        for (index, (execution, own)) in sections.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            section(execution, own, out)?;
        }
        Ok(())
    }
}

fn section(execution: &Execution, runs: &[&Run], out: &mut dyn Write) -> Result<(), ExportError> {
    writeln!(out, "### {}\n", escaped(&execution.study))?;
    writeln!(out, "{}\n", escaped(&provenance(execution, runs)))?;

    let distinguishing = distinguishing_settings(runs);
    let mut names = vec!["run".to_owned()];
    names.extend(distinguishing.iter().map(|key| (*key).to_owned()));
    let texts = names.len() + 1;
    names.extend(["operation", "throughput, ops/s"].map(str::to_owned));
    let misses = runs.iter().any(|run| run.may_miss());
    names.extend(misses.then(|| "hit ratio".to_owned()));
    names.extend(SHOWN.map(|figure| format!("{}, µs", figure.replace('_', "."))));
    names.extend(["CPU-s/Mop", "errors", "valid"].map(str::to_owned));
    head(&names, texts, out)?;
    for run in runs {
        rows(run, &distinguishing, misses, out)?;
    }
    if runs.iter().any(|run| run.clock() == LatencyClock::Response) {
        writeln!(
            out,
            "\nLatency in an open loop counts from the instant at which a request was due."
        )?;
    }
    remarks(runs, out)
}

/// Which machine, which program, which version of the store.
fn provenance(execution: &Execution, runs: &[&Run]) -> String {
    let versions: BTreeSet<&str> = runs.iter().map(|run| run.store_version.as_str()).collect();
    let mut parts: Vec<&str> = versions.into_iter().collect();
    parts.extend(["cpu.model", "os.kernel"].iter().filter_map(|name| execution.machine.fact(name)));
    let version = format!("kvmeter {}", execution.version);
    parts.push(&version);
    parts.push(&execution.started_at);
    parts.join(" · ")
}

/// The settings that distinguish runs of one label: the repeat, or a factor that the label does not
/// name.
fn distinguishing_settings<'a>(runs: &[&'a Run]) -> Vec<&'a str> {
    let mut values_by_key: BTreeMap<(&str, &str), BTreeSet<Option<&str>>> = BTreeMap::new();
    let keys: BTreeSet<&str> =
        runs.iter().flat_map(|run| run.settings.keys().map(String::as_str)).collect();
    for run in runs {
        for key in &keys {
            let value = run.settings.get(*key).map(String::as_str);
            values_by_key.entry((key, &run.label)).or_default().insert(value);
        }
    }
    let differ =
        |key: &&str| values_by_key.iter().any(|((of, _), values)| of == key && values.len() > 1);
    keys.iter().copied().filter(differ).collect()
}

fn rows(
    run: &Run,
    distinguishing: &[&str],
    misses: bool,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let mut before = vec![escaped(&run.label)];
    before.extend(distinguishing.iter().map(|key| {
        run.settings.get(*key).map_or_else(|| NO_VALUE.to_owned(), |value| escaped(value))
    }));
    let after = [
        run.value("cpu_s_per_mop").map_or_else(|| NO_VALUE.to_owned(), digits),
        run.errors().to_string(),
        if run.valid() { "yes" } else { "**no**" }.to_owned(),
    ];
    let throughput = match run.phase {
        Phase::Simulate => NO_VALUE.to_owned(),
        _ => digits(run.throughput()),
    };
    let hits = run.hit_ratio().filter(|_| run.may_miss());
    let hits = hits.map_or_else(|| NO_VALUE.to_owned(), |ratio| format!("{ratio:.3}"));
    let own = run.latencies.iter().filter(|latency| latency.clock == run.clock());
    let mut operations: Vec<(String, Vec<String>)> = own
        .map(|latency| {
            let figures = FIGURES.iter().zip(figures_us(&latency.histogram));
            let shown = figures.filter(|(name, _)| SHOWN.contains(name));
            let figures = shown.map(|(_, us)| us.map_or_else(|| NO_VALUE.to_owned(), digits));
            (latency.op.name().to_owned(), figures.collect())
        })
        .collect();
    if operations.is_empty() {
        operations.push((NO_VALUE.to_owned(), vec![NO_VALUE.to_owned(); SHOWN.len()]));
    }
    for (operation, figures) in operations {
        let mut cells = before.clone();
        cells.extend([operation, throughput.clone()]);
        cells.extend(misses.then(|| hits.clone()));
        cells.extend(figures);
        cells.extend(after.iter().cloned());
        line(&cells, out)?;
    }
    Ok(())
}

/// Why runs are invalid and what to know of the others, each sentence once.
fn remarks(runs: &[&Run], out: &mut dyn Write) -> Result<(), ExportError> {
    let mut seen = BTreeSet::new();
    for run in runs {
        let invalid = run.invalid_because.iter().map(|text| ("invalid", text));
        for (kind, text) in invalid.chain(run.warnings.iter().map(|text| ("note", text))) {
            if seen.insert((&run.label, kind, text)) {
                if seen.len() == 1 {
                    writeln!(out)?;
                }
                writeln!(out, "- {} ({kind}): {}", escaped(&run.label), escaped(text))?;
            }
        }
    }
    Ok(())
}

/// A header whose first `texts` columns are text, the others numbers, aligned right.
fn head(names: &[String], texts: usize, out: &mut dyn Write) -> Result<(), ExportError> {
    line(&names.iter().map(|name| escaped(name)).collect::<Vec<_>>(), out)?;
    let texts = if texts == 0 { names.len() } else { texts };
    let rule = |index| if index < texts { "---" } else { "---:" }.to_owned();
    line(&(0..names.len()).map(rule).collect::<Vec<_>>(), out)
}

fn line(cells: &[String], out: &mut dyn Write) -> Result<(), ExportError> {
    Ok(writeln!(out, "| {} |", cells.join(" | "))?)
}

fn plain(cell: &DataCell) -> String {
    match cell {
        DataCell::Null => String::new(),
        DataCell::Text(text) => escaped(text),
        DataCell::Integer(value) => value.to_string(),
        DataCell::Real(value) => value.to_string(),
        DataCell::Boolean(value) => value.to_string(),
    }
}

/// Text that stays within its cell and is not taken for markup.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in model::text::line(text).chars() {
        match c {
            '|' | '\\' | '`' | '*' | '<' | '>' | '[' | ']' => safe.extend(['\\', c]),
            _ => safe.push(c),
        }
    }
    safe
}

/// Three significant digits, thousands apart: `1.23`, `45.6`, `123,000`.
fn digits(value: f64) -> String {
    if !value.is_finite() {
        return NO_VALUE.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(2 - magnitude).unwrap_or(0);
    let step = 10f64.powi((magnitude - 2).max(0));
    // Above a hundred the step rounds, below it the decimals do.
    let rounded = if magnitude > 2 { (value / step).round() * step } else { value };
    grouped(&format!("{rounded:.decimals$}"))
}

/// A comma before every third digit of the integer part.
fn grouped(number: &str) -> String {
    let (integer, fraction) = match number.find('.') {
        Some(point) => number.split_at(point),
        None => (number, ""),
    };
    let (sign, digits) = integer.split_at(usize::from(integer.starts_with('-')));
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        let cases = [
            (0.0, "0"),
            (0.01234, "0.0123"),
            (1.0, "1.00"),
            (12.345, "12.3"),
            (123.45, "123"),
            (1234.5, "1,230"),
            (359_876.0, "360,000"),
            (1_234_567.0, "1,230,000"),
            (-4567.0, "-4,570"),
            (f64::NAN, NO_VALUE),
        ];
        for (value, text) in cases {
            assert_eq!(digits(value), text, "{value}");
        }
    }

    #[test]
    fn text_cannot_leave_its_cell() {
        assert_eq!(escaped("a|b\nc`<script>`"), "a\\|b c\\`\\<script\\>\\`");
    }
}
