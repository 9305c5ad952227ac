//! Bars of many cells in groups, with the table of the same values: what such figures share.

use model::Origin;

use super::throughput::flatten;
use super::{Series, Shown, any_invalid, invalid_entry};
use crate::cells::Cell;
use crate::figure::{Axis, Bar, Chart, Entry, Group, Row, RowChart, Scale, Shape};
use crate::table::{self, ALWAYS, Align, Table};
use crate::tables;

/// A figure of bars under construction.
pub(super) struct Bars<'a> {
    series: &'a Series,
    data: Table,
    groups: Vec<Group>,
    /// Where the rows' bars end, which the axis must hold.
    ends: Vec<f64>,
    /// Rows have labels of their own, which must stay.
    labelled: bool,
}

/// A row: its bars, and what the table says of it between the store and the kind.
pub(super) struct BarsRow {
    /// None: the store.
    pub label: Option<String>,
    pub bars: Vec<Bar>,
    pub note: String,
    pub data: Vec<table::Cell>,
}

/// What is said about a figure.
pub(super) struct About {
    pub id: &'static str,
    pub title: &'static str,
    pub alt: &'static str,
    pub caption: &'static str,
    pub axis: &'static str,
    pub tick: fn(f64) -> String,
}

impl<'a> Bars<'a> {
    /// `columns` stand between the workload with its store and the kind of the numbers.
    pub fn new(series: &'a Series, columns: &[(&str, Align)]) -> Self {
        let mut data = Table::new("").column("workload", Align::Left, ALWAYS).column(
            "store",
            Align::Left,
            ALWAYS,
        );
        for (head, align) in columns {
            data = data.column(*head, *align, ALWAYS);
        }
        let data = data.column("kind", Align::Left, ALWAYS);
        Bars { series, data, groups: Vec::new(), ends: Vec::new(), labelled: false }
    }

    /// The rows that follow belong to this category.
    pub fn group(&mut self, category: &str) {
        self.groups.push(Group { label: category.to_owned(), rows: Vec::new() });
    }

    pub fn row(&mut self, cell: &Cell, kind: Origin, row: BarsRow) {
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

    /// None where no row came. `legend` tells the colours.
    pub fn shown(mut self, cells: &[&Cell], mut legend: Vec<Entry>, about: About) -> Option<Shown> {
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
        Some(Shown {
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
