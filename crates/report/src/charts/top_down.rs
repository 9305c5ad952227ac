//! What became of the pipeline's slots: a bar of all slots for each process.

use model::{ProfiledSide, SlotCategory, TopDown, TopDownPass};

use super::{ShownFigure, slug};
use crate::figure::{Axis, Bar, Chart, Entry, Group, Row, RowChart, Scale};
use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table};

/// The figure of a run's pass; none where no process has all shares of the first level.
pub fn top_down(run: &str, pass: &TopDownPass) -> Option<ShownFigure> {
    let whole = |process: &&TopDown| {
        let mut first = process.shares.iter().filter(|share| is_first(share.category)).peekable();
        first.peek().is_some() && first.all(|share| share.share.number().is_some())
    };
    let shown: Vec<&TopDown> = pass.processes.iter().filter(whole).collect();
    let first = shown.first()?;
    let categories: Vec<SlotCategory> = SlotCategory::FIRST_LEVEL
        .into_iter()
        .filter(|category| shown.iter().any(|process| process.share(*category).is_some()))
        .collect();
    let entry = |(color, category): (usize, &SlotCategory)| Entry {
        label: words(*category),
        color: Some(color),
        shape: None,
        line: None,
        hollow: false,
    };
    Some(ShownFigure {
        id: format!("top-down-{}", slug(run)),
        title: "Where the pipeline's slots go".to_owned(),
        alt: format!("Shares of the pipeline's slots, {run}"),
        captions: vec![format!(
            "Top-down analysis by the processor's counters, in a further pass without samples: {}, \
             formulas of {}.",
            first.cpu, first.source
        )],
        cautions: Vec::new(),
        chart: Chart::Rows(RowChart {
            groups: vec![Group {
                label: String::new(),
                rows: shown.iter().map(|process| row(process, &categories)).collect(),
            }],
            axis: Axis::new(Scale::from_zero([1.0]), 5, "share of all slots", format::percent),
            legend: categories.iter().enumerate().map(entry).collect(),
        }),
        data: data(&shown),
        small: false,
    })
}

fn is_first(category: SlotCategory) -> bool {
    SlotCategory::FIRST_LEVEL.contains(&category)
}

/// `backend bound`.
fn words(category: SlotCategory) -> String {
    category.key().replace('_', " ")
}

fn name(process: &TopDown) -> String {
    let side = match process.side {
        ProfiledSide::Client => "client",
        ProfiledSide::Server => "server",
    };
    format!("{}, {side}", process.process)
}

/// Bars from end to end; the tip of each has its parts.
fn row(process: &TopDown, categories: &[SlotCategory]) -> Row {
    let (mut bars, mut from) = (Vec::new(), 0.0);
    for (color, category) in categories.iter().enumerate() {
        let Some(share) = process.share(*category).filter(|share| *share > 0.0) else { continue };
        let parts = SlotCategory::ALL.into_iter().filter(|part| part.part_of() == Some(*category));
        let parts = parts.filter_map(|part| {
            Some(format!("{} {}", words(part), format::percent(process.share(part)?)))
        });
        let parts: Vec<String> = parts.collect();
        let parts =
            if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        let tip =
            format!("{}: {} {}{parts}", name(process), words(*category), format::percent(share));
        bars.push(Bar { from, to: from + share, color, tip });
        from += share;
    }
    Row { label: name(process), bars, ..Row::default() }
}

fn data(shown: &[&TopDown]) -> Table {
    let mut data = Table::new("").column("share of the slots", Align::Left, ALWAYS);
    for process in shown {
        data = data.column(name(process), Align::Decimal, ALWAYS);
    }
    for category in SlotCategory::ALL {
        let shares: Vec<Option<f64>> = shown.iter().map(|p| p.share(category)).collect();
        if shares.iter().any(Option::is_some) {
            let cells = shares.into_iter().map(|share| Cell::optional(share.map(format::percent)));
            data.row(std::iter::once(Cell::from(words(category))).chain(cells).collect());
        }
    }
    data
}
