//! The knobs of a machine.

use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// One knob as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct KnobRow {
    pub name: String,
    /// None where it cannot be read.
    pub now: Option<String>,
    /// It was turned, and stays so until it is restored.
    pub kept: bool,
    /// The levels that it has here, or why it has none.
    pub levels: Result<Vec<String>, String>,
}

/// A row for each knob.
pub fn knobs(rows: &[KnobRow]) -> Table {
    let mut table = Table::new("")
        .column("knob", Align::Left, ALWAYS)
        .column("now", Align::Wrap, ALWAYS)
        .column("levels here", Align::Wrap, ALWAYS);
    for row in rows {
        let now = match (&row.now, row.kept) {
            (Some(now), true) => Cell::new(format!("{now} (until knob restore)"), Tone::Strong),
            (Some(now), false) => Cell::new(now, Tone::Strong),
            (None, _) => Cell::new("unavailable", Tone::Warning),
        };
        let levels = match &row.levels {
            Ok(levels) => levels.join(", ").into(),
            Err(why) => Cell::new(why, Tone::Muted),
        };
        table.row(vec![row.name.clone().into(), now, levels]);
    }
    table
}
