//! Bars of many cells in groups, with a table of the same values.

use model::Origin;

use super::throughput::flatten;
use super::{CellSeries, ShownFigure, any_invalid, invalid_entry};
use crate::cells::ReportCell;
use crate::figure::{Axis, Bar, Chart, Entry, Group, Row, RowChart, Scale, Shape};
use crate::table::{self, ALWAYS, Align, Table};
use crate::tables;

/// A figure of bars under construction.
pub(super) struct BarsFigure<'a> {
    series: &'a CellSeries,
    data: Table,
    groups: Vec<Group>,
    /// The ends of the rows' bars, for the scale of the axis.
    ends: Vec<f64>,
    /// Whether rows have labels of their own.
    labelled: bool,
}

/// A row: its bars, and its table cells between the store and the kind.
pub(super) struct BarsRow {
    /// None: the store.
    pub label: Option<String>,
    pub bars: Vec<Bar>,
    pub note: String,
    pub data: Vec<table::Cell>,
}

/// Title, caption and axis of a figure.
pub(super) struct Caption {
    pub id: &'static str,
    pub title: &'static str,
    pub alt: &'static str,
    pub caption: &'static str,
    pub axis: &'static str,
    pub tick: fn(f64) -> String,
}

impl<'a> BarsFigure<'a> {
    /// `columns` come between the columns of the store and of the kind.
    pub fn new(series: &'a CellSeries, columns: &[(&str, Align)]) -> Self {
        let mut data = Table::new("").column("workload", Align::Left, ALWAYS).column(
            "store",
            Align::Left,
            ALWAYS,
        );
        for (head, align) in columns {
            data = data.column(*head, *align, ALWAYS);
        }
        let data = data.column("kind", Align::Left, ALWAYS);
        BarsFigure { series, data, groups: Vec::new(), ends: Vec::new(), labelled: false }
    }

    /// Begins the group of a category.
    pub fn group(&mut self, category: &str) {
        self.groups.push(Group { label: category.to_owned(), rows: Vec::new() });
    }

    pub fn row(&mut self, cell: &ReportCell, kind: Origin, row: BarsRow) {
        let valid = cell.counted().1;
        self.ends.extend(row.bars.last().map(|bar| bar.to));
        let mut values = vec![cell.category.clone().into(), cell.series.clone().into()];
        values.extend(row.data);
        values.push(tables::origin(kind));
        self.data.row_of(values, valid);
        self.labelled |= row.label.is_some();
        let drawn = Row {
            label: row.label.unwrap_or_else(|| cell.series.clone()),
            bars: row.bars,
            note: row.note,
            invalid: !valid,
            ..Row::default()
        };
        if let Some(group) = self.groups.last_mut() {
            group.rows.push(drawn);
        }
    }

    /// The figure; None without rows. `legend` explains the colours.
    pub fn into_figure(
        mut self,
        cells: &[&ReportCell],
        mut legend: Vec<Entry>,
        about: Caption,
    ) -> Option<ShownFigure> {
        self.groups.retain(|group| !group.rows.is_empty());
        if self.groups.is_empty() {
            return None;
        }
        if !self.labelled {
            flatten(&mut self.groups, self.series);
        }
        if any_invalid(cells) {
            legend.push(invalid_entry(Shape::Square));
        }
        Some(ShownFigure {
            id: about.id.to_owned(),
            title: about.title.to_owned(),
            alt: about.alt.to_owned(),
            captions: vec![about.caption.to_owned()],
            cautions: Vec::new(),
            chart: Chart::Rows(RowChart {
                groups: self.groups,
                axis: Axis::new(Scale::from_zero(self.ends), 6, about.axis, about.tick),
                legend,
            }),
            data: self.data,
            small: false,
        })
    }
}
