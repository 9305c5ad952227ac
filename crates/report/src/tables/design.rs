//! The design of a study, before it runs.

use model::design::{Design, DesignKind, FactorLevels};

use crate::table::{ALWAYS, Align, Table};

/// How much a plan measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanSize {
    pub cells: usize,
    /// Cells with their stores.
    pub stores: usize,
    pub repeats: u32,
}

/// The factors with their levels, the number of cells, and skipped cells.
pub fn design(design: &Design, size: &PlanSize) -> Table {
    let kind = match design.kind {
        DesignKind::Factorial => "every combination",
        DesignKind::OneAtATime => "one factor at a time",
        DesignKind::List => "the cells of its list",
    };
    let mut table = Table::new(format!("Design: {kind}"))
        .column("factor", Align::Left, ALWAYS)
        .column("sets", Align::Wrap, 40)
        .column("levels", Align::Wrap, ALWAYS)
        .column("where", Align::Wrap, 20);
    for factor in &design.factors {
        let conditions = factor.within.0.iter();
        let conditions = conditions.map(|(name, some)| format!("{name}={}", some.0.join("|")));
        table.row(vec![
            factor.name.clone().into(),
            factor.sets.join(", ").into(),
            factor.levels.join(", ").into(),
            conditions.collect::<Vec<_>>().join(" ").into(),
        ]);
    }
    let mut table = table.without_empty_columns();
    let repeats = match &design.adaptive {
        None if design.spare_repeats > 0 => format!(
            "{} repeats and up to {} more for invalid runs",
            size.repeats, design.spare_repeats
        ),
        None => format!("{} repeats", size.repeats),
        Some(adaptive) => format!(
            "{} to {} repeats, until {} is within ±{:.1} %",
            size.repeats,
            adaptive.most,
            adaptive.metric,
            adaptive.width * 100.0
        ),
    };
    table.note(format!("{} cells, {} with their stores, {repeats}", size.cells, size.stores));
    if let Some(scale) = &design.scale {
        table.note(format!("scale {}: {}", scale.name, scale.note));
    }
    skipped_lines(design).for_each(|words| table.note(words));
    table
}

/// Cells that this build or machine cannot run, with the reason.
pub fn skipped_lines(design: &Design) -> impl Iterator<Item = String> {
    design
        .skipped
        .iter()
        .map(|skipped| format!("left out: {}: {}", levels(&skipped.levels), skipped.why))
}

fn levels(levels: &FactorLevels) -> String {
    let pairs: Vec<String> = levels.iter().map(|(name, level)| format!("{name}={level}")).collect();
    pairs.join(", ")
}
