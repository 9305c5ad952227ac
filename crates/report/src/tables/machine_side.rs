//! Energy, processor and idle states of the machine; and simulated counters in a table of their
//! own.

use model::signal::{
    JOULES_PER_OP, JOULES_PER_OP_NET, OPS_PER_JOULE, SIMULATED_BRANCHES, SIMULATED_D1_MISSES,
    SIMULATED_INSTRUCTIONS, SIMULATED_LL_MISSES, SIMULATED_MISPREDICTS,
};
use model::{Execution, Origin, Reading, Run, Unit};

use super::runs::name_of;
use crate::format;
use crate::run_names;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// The main metrics, and the signal that shows whether each is available.
pub const HEADLINE_SIGNALS: [(&str, &str); 5] = [
    ("energy", JOULES_PER_OP.name),
    ("hardware counters", "ipc"),
    ("idle states", "residency.idle"),
    ("frequency", "frequency.mean"),
    ("temperature", "temperature.max"),
];

/// Readings of `residency` that are no idle state.
const NOT_IDLE_STATES: [&str; 4] = ["idle", "entries", "awake", "load"];

/// Joules of an operation, IPC, misses, frequency and idle states: one row a run, as far as they
/// could be read, and a note for each that could not. None if the runs have no such reading.
pub fn machine_side(runs: &[(&Execution, &Run)]) -> Option<Table> {
    let known =
        |run: &Run| HEADLINE_SIGNALS.iter().any(|(_, signal)| run.reading(signal).is_some());
    if !runs.iter().any(|(_, run)| known(run)) {
        return None;
    }
    let mut table = Table::new("Energy and processor")
        .column("run", Align::Left, ALWAYS)
        .column("an op", Align::Right, ALWAYS)
        .column("net", Align::Right, 60)
        .column("ops/J", Align::Decimal, 70)
        .column("W", Align::Decimal, 50)
        .column("boundary", Align::Left, ALWAYS)
        .column("IPC", Align::Decimal, ALWAYS)
        .column("LLC MPKI", Align::Decimal, 40)
        .column("branch MPKI", Align::Decimal, 20)
        .column("GHz", Align::Decimal, 30)
        .column("idle states", Align::Left, 45);
    for ((_, run), name) in runs.iter().zip(run_names::names(runs)) {
        let number = |signal: &str| Cell::from(run.reading(signal).map_or(String::new(), number));
        let boundary = run.joules_per_op().map_or(String::new(), |r| r.scope.to_string());
        let cells = vec![
            name_of(run, &name),
            Cell::new(run.reading(JOULES_PER_OP.name).map_or(String::new(), joules), Tone::Strong),
            run.reading(JOULES_PER_OP_NET.name).map_or(String::new(), joules).into(),
            number(OPS_PER_JOULE.name),
            power(run).into(),
            boundary.into(),
            number("ipc"),
            number("mpki.llc"),
            number("mpki.branch"),
            run.value("frequency.mean")
                .map_or(String::new(), |hertz| format::readable(hertz / 1e9, 3))
                .into(),
            states(run).into(),
        ];
        table.row_of(cells, run.valid());
    }
    let mut table = table.without_empty_columns();
    if table.columns.len() == 1 {
        // Nothing was read in any run; the notes say why.
        table.rows.clear();
    }
    if runs.iter().any(|(_, run)| modelled(run)) {
        table.note("~ marks a number that was not measured but modelled");
    }
    if runs.iter().any(|(_, run)| run.value(JOULES_PER_OP_NET.name).is_some()) {
        table.note("net: without what the idle machine draws in the same time");
    }
    for missing in missing(runs) {
        table.note(missing);
    }
    let says_anything = table.columns.len() > 1 || !table.notes.is_empty();
    says_anything.then_some(table)
}

/// Events that were simulated: one row a run.
pub fn simulated(runs: &[(&Execution, &Run)]) -> Option<Table> {
    let signals = [
        ("instructions", SIMULATED_INSTRUCTIONS.name),
        ("branches", SIMULATED_BRANCHES.name),
        ("mispredicts", SIMULATED_MISPREDICTS.name),
        ("D1 misses", SIMULATED_D1_MISSES.name),
        ("LL misses", SIMULATED_LL_MISSES.name),
    ];
    let reading = |run: &Run| run.reading(signals[0].1).map(|reading| reading.answer.clone());
    if !runs.iter().any(|(_, run)| reading(run).is_some()) {
        return None;
    }
    let mut table = Table::new("Simulated events of an operation (cachegrind, not measured)")
        .column("run", Align::Left, ALWAYS);
    for (head, _) in signals {
        table = table.column(head, Align::Decimal, ALWAYS);
    }
    for ((_, run), name) in runs.iter().zip(run_names::names(runs)) {
        let mut cells = vec![name_of(run, &name)];
        cells.extend(signals.map(|(_, signal)| {
            let an_operation = run.value(signal).map(|of_a_million| of_a_million / 1e6);
            an_operation.map_or(format::NONE.into(), |value| format::readable(value, 3)).into()
        }));
        table.row_of(cells, run.valid());
    }
    let why = runs.iter().find_map(|(_, run)| match reading(run) {
        Some(model::ReadingValue::Unavailable { reason, .. }) => Some(reason),
        _ => None,
    });
    if let Some(why) = why {
        table.note(format!("not simulated: {why}"));
    }
    Some(table)
}

fn modelled(run: &Run) -> bool {
    run.joules_per_op().is_some_and(|reading| reading.origin != Origin::Measured)
}

/// Marks a number that was not measured.
fn mark(reading: &Reading) -> &'static str {
    if reading.origin == Origin::Measured { "" } else { "~" }
}

fn number(reading: &Reading) -> String {
    let text = |value| format!("{}{}", mark(reading), format::readable(value, 3));
    reading.value().map_or(String::new(), text)
}

fn joules(reading: &Reading) -> String {
    let text = |value| format!("{}{}", mark(reading), format::value(value, Unit::JoulesPerOp));
    reading.value().map_or(String::new(), |value| text(value).replace("/op", ""))
}

/// Mean watts over the window, at the boundary of the joules.
fn power(run: &Run) -> String {
    let watts = || {
        let energy = run.joules_per_op()?;
        let joules = energy.value()? * run.operations as f64;
        (energy.window_s > 0.0).then(|| (mark(energy), joules / energy.window_s))
    };
    watts().map_or(String::new(), |(mark, watts)| format!("{mark}{}", format::readable(watts, 3)))
}

/// The idle states with the highest residency, up to three: `C6 61 %, C1 12 %`.
fn states(run: &Run) -> String {
    let state = |reading: &Reading| {
        let name = reading.signal.strip_prefix("residency.")?;
        let is_state = !NOT_IDLE_STATES.contains(&name) && !name.contains('.');
        Some((name.to_owned(), reading.value()?)).filter(|(_, share)| is_state && *share >= 0.005)
    };
    let mut states: Vec<(String, f64)> = run.readings.iter().filter_map(state).collect();
    states.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown = states.iter().take(3).map(|(name, share)| format!("{name} {:.0} %", share * 100.0));
    shown.collect::<Vec<_>>().join(", ")
}

/// Metrics that no run could read, with the first reason; not those that were switched off.
fn missing(runs: &[(&Execution, &Run)]) -> Vec<String> {
    let mut notes = Vec::new();
    for (what, signal) in HEADLINE_SIGNALS {
        let readings: Vec<&Reading> =
            runs.iter().filter_map(|(_, run)| run.reading(signal)).collect();
        if readings.iter().any(|reading| reading.value().is_some()) {
            continue;
        }
        let reason = readings.iter().find_map(|reading| match &reading.answer {
            model::ReadingValue::Unavailable { reason, .. } => Some(reason),
            model::ReadingValue::Value(_) => None,
        });
        if let Some(reason) = reason.filter(|reason| !reason.contains("was not asked for")) {
            notes.push(format!("{what}: unavailable, {reason}"));
        }
    }
    if !notes.is_empty() {
        notes.push("kvmeter doctor says what to do about it".to_owned());
    }
    notes
}
