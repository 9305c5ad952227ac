//! Every reading of a run, unavailable ones with their reason.

use model::{Origin, Reading, ReadingValue, Run};

use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// A reading by the last part of its name, from any probe or store.
pub fn named<'r>(run: &'r Run, name: &str) -> Option<&'r Reading> {
    let matches = |reading: &&Reading| {
        reading.signal == name
            || reading.signal.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
    };
    let mut matching = run.readings.iter().filter(matches);
    let first = matching.next()?;
    // Of several, the first that has a value.
    if first.value().is_some() {
        Some(first)
    } else {
        matching.find(|r| r.value().is_some()).or(Some(first))
    }
}

pub fn readings(run: &Run) -> Table {
    let mut table = Table::new("Readings")
        .column("signal", Align::Left, ALWAYS)
        .column("value", Align::Right, ALWAYS)
        .column("boundary", Align::Left, 60)
        .column("window", Align::Right, 40)
        .column("kind", Align::Left, 80)
        .column("source", Align::Left, 20);
    for reading in &run.readings {
        let (value, source) = match &reading.answer {
            ReadingValue::Value(value) => (
                Cell::new(format::value(*value, reading.unit), Tone::Strong),
                reading.source.clone(),
            ),
            ReadingValue::Unavailable { reason, remedy } => {
                let mut text = reason.clone();
                if let Some(remedy) = remedy {
                    text += &format!("; to do: {remedy}");
                }
                (Cell::new("unavailable", Tone::Warning), text)
            }
        };
        let window = match reading.window_s {
            w if w > 0.0 => format::seconds(w),
            _ => "instant".to_owned(),
        };
        table.row(vec![
            reading.signal.clone().into(),
            value,
            reading.scope.to_string().into(),
            window.into(),
            origin(reading.origin),
            source.into(),
        ]);
    }
    table
}

pub(crate) fn origin(origin: Origin) -> Cell {
    match origin {
        Origin::Measured => Cell::new("measured", Tone::Muted),
        other => Cell::new(origin_name(other), Tone::Warning),
    }
}

/// The name of an origin.
pub fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Measured => "measured",
        Origin::Modelled => "modelled",
        Origin::Simulated => "simulated",
        Origin::Published => "published",
    }
}
