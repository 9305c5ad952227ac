//! The machine's facts, one table a group.

use model::Machine;

use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// Grouped by the first part of each fact's name; an unknown one says why.
pub fn machine(machine: &Machine) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for fact in &machine.facts {
        let (group, name) = fact.name.split_once('.').unwrap_or(("machine", &fact.name));
        let at = tables.iter().position(|table| table.title == group).unwrap_or_else(|| {
            tables.push(
                Table::new(group)
                    .column("fact", Align::Left, ALWAYS)
                    .column("value", Align::Left, ALWAYS)
                    .column("source", Align::Left, 20),
            );
            tables.len() - 1
        });
        let value = match &fact.value {
            Ok(value) => Cell::from(value.clone()),
            Err(reason) => Cell::new(format!("unknown: {reason}"), Tone::Warning),
        };
        tables[at].row(vec![name.into(), value, Cell::new(fact.source.clone(), Tone::Muted)]);
    }
    tables
}
