//! Cost an hour over the price of one server: a panel a price of electricity, a line a server and
//! lifetime, the break-even prices marked.

use analyse::cost::{CandidateCosts, CostAt, WorkloadCosts};

use super::CostView;
use crate::charts::ShownFigure;
use crate::figure::{
    Axis, Chart, Entry, LimitLine, Line, LineChart, LinePoint, Panel, Scale, Shape,
};
use crate::format;
use crate::table::{ALWAYS, Align, Table};

const HEIGHT: f64 = 260.0;
/// Factor by which the axis of prices exceeds the highest price.
const PRICE_MARGIN: f64 = 1.4;
/// Points of a line with a tooltip.
const STEPS: usize = 8;

/// One figure a workload, or that of the headline alone.
pub(super) fn figures(view: &CostView<'_>) -> Vec<ShownFigure> {
    let shown = |group: &&WorkloadCosts| view.headline.is_none_or(|name| group.workload == name);
    view.answer.groups.iter().filter(shown).enumerate().map(|(at, g)| figure(view, g, at)).collect()
}

fn figure(view: &CostView<'_>, group: &WorkloadCosts, at: usize) -> ShownFigure {
    let prices = group.rows.iter().filter_map(|row| row.candidate.price_usd);
    let dearest = prices.chain([view.terms.at_price_usd]).fold(0.0, f64::max) * PRICE_MARGIN;
    let axis = Axis::new(Scale::from_zero([dearest]), 6, "price of one server, $", format::dollars);
    let panels =
        view.terms.usd_per_kwh.iter().map(|price| panel(view, group, *price, dearest)).collect();
    let of = match group.workload.is_empty() {
        true => String::new(),
        false => format!(": {}", group.workload),
    };
    ShownFigure {
        id: format!("cost-{at}"),
        title: format!("Cost an hour against the price of one server{of}"),
        alt: format!(
            "Lines: dollars an hour of all servers over the price of one, for {}",
            group.rows.iter().map(|r| r.candidate.name.as_str()).collect::<Vec<_>>().join("; ")
        ),
        captions: vec![
            format!(
                "Modelled: as many servers as {} need, written off over their life, and their \
                 energy. Hollow: the prices at which servers cost the same as the one whose price \
                 is given.",
                format::target_rate(view.terms.target_ops_s)
            ),
            "Solid: the first lifetime; dashed: longer ones.".to_owned(),
        ],
        cautions: Vec::new(),
        chart: Chart::Lines(LineChart { axis, panels, legend: legend(view, group) }),
        data: data(group),
        small: false,
    }
}

fn panel(view: &CostView<'_>, group: &WorkloadCosts, usd_per_kwh: f64, dearest: f64) -> Panel {
    let mut lines = Vec::new();
    for (color, row) in group.rows.iter().enumerate() {
        let costs = row.costs.iter().filter(|cost| cost.usd_per_kwh == usd_per_kwh);
        lines.extend(costs.enumerate().map(|(nth, cost)| line(row, cost, color, nth > 0, dearest)));
    }
    let (marks, levels) = marks(view, group, usd_per_kwh);
    lines.extend(marks);
    let heights = lines.iter().flat_map(|line| &line.points).map(|point| point.y);
    let label = format!("$/h at {} $/kWh", format::plain(usd_per_kwh));
    Panel {
        axis: Axis::new(Scale::from_zero(heights), 6, &label, format::plain),
        height: HEIGHT,
        lines,
        levels,
    }
}

fn line(row: &CandidateCosts, cost: &CostAt, color: usize, dashed: bool, dearest: f64) -> Line {
    let points = (0..=STEPS).map(|step| {
        let x = dearest * step as f64 / STEPS as f64;
        let y = cost.line.at(x);
        let tip = format!(
            "{}, {} years: {} $/h at {} $",
            row.candidate.name,
            format::plain(cost.years),
            format::usd(y),
            format::dollars(x)
        );
        LinePoint { x, y, tip, shown: false, whisker: None }
    });
    Line {
        color,
        dashed,
        hollow: false,
        shape: Shape::nth(color),
        joined: true,
        points: points.collect(),
    }
}

/// The first server's break-even prices against each other one, at the first lifetime, and the
/// cost at which they are even.
fn marks(
    view: &CostView<'_>,
    group: &WorkloadCosts,
    usd_per_kwh: f64,
) -> (Vec<Line>, Vec<LimitLine>) {
    let (mut lines, mut levels) = (Vec::new(), Vec::new());
    let years = view.terms.years.first().copied().unwrap_or_default();
    for pair in group.pairs.iter().filter(|pair| pair.own == 0) {
        let even =
            pair.break_evens.iter().find(|e| e.years == years && e.usd_per_kwh == usd_per_kwh);
        let rows = (&group.rows[pair.own], &group.rows[pair.other]);
        let of = |row: &CandidateCosts| {
            row.costs.iter().find(|c| c.years == years && c.usd_per_kwh == usd_per_kwh).copied()
        };
        let (Some(even), Some(other)) = (even, of(rows.1)) else { continue };
        let Ok(price) = even.price_usd.clone() else { continue };
        let cost = other.line.at(even.other_price_usd);
        let tip = |row: &CandidateCosts, price: f64| {
            format!(
                "even: {} at {} $ costs {} $/h",
                row.candidate.name,
                format::dollars(price),
                format::usd(cost)
            )
        };
        for (color, row, x) in
            [(pair.own, rows.0, price), (pair.other, rows.1, even.other_price_usd)]
        {
            lines.push(Line {
                color,
                dashed: false,
                hollow: true,
                shape: Shape::nth(color),
                joined: false,
                points: vec![LinePoint {
                    x,
                    y: cost,
                    tip: tip(row, x),
                    shown: true,
                    whisker: None,
                }],
            });
        }
        levels.push(LimitLine {
            y: cost,
            label: format!(
                "{} at {} $ = {} at {} $",
                rows.0.candidate.name,
                format::dollars(price),
                rows.1.candidate.name,
                format::dollars(even.other_price_usd)
            ),
        });
    }
    (lines, levels)
}

fn legend(view: &CostView<'_>, group: &WorkloadCosts) -> Vec<Entry> {
    let entry = |color: usize, row: &CandidateCosts, years: f64, dashed: bool| Entry {
        label: format!("{}, {} years", row.candidate.name, format::plain(years)),
        color: Some(color),
        shape: Some(Shape::nth(color)),
        line: Some(dashed),
        hollow: false,
    };
    let mut entries = Vec::new();
    for (color, row) in group.rows.iter().enumerate() {
        let years = view.terms.years.iter().enumerate();
        entries.extend(years.map(|(nth, years)| entry(color, row, *years, nth > 0)));
    }
    entries
}

fn data(group: &WorkloadCosts) -> Table {
    let mut table = Table::new("")
        .column("server", Align::Left, ALWAYS)
        .column("years", Align::Right, ALWAYS)
        .column("$/kWh", Align::Decimal, ALWAYS)
        .column("$/h without a price", Align::Decimal, ALWAYS)
        .column("$/h for each $ of price", Align::Decimal, ALWAYS);
    for row in &group.rows {
        for cost in &row.costs {
            table.row(vec![
                row.candidate.name.clone().into(),
                format::plain(cost.years).into(),
                format::plain(cost.usd_per_kwh).into(),
                format::usd(cost.line.fixed_usd_per_h).into(),
                format::significant(cost.line.per_h, 4).into(),
            ]);
        }
    }
    table
}
