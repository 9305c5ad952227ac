//! Latency and power over cost: a line a machine, a point for each measured rate that held.

use analyse::fleet_plan::FrontierPoint;

use super::PlanView;
use super::sentence::money;
use crate::charts::ShownFigure;
use crate::figure::{Axis, Chart, Entry, Line, LineChart, LinePoint, Panel, Scale, Shape};
use crate::format;

const HEIGHT: f64 = 220.0;
const TICKS: usize = 6;

/// None where no rate was measured.
pub(super) fn figure(view: &PlanView<'_>) -> Option<ShownFigure> {
    let data = super::tables::frontier(view)?;
    let months = view.frontier.iter().map(|point| point.fleet.usd_per_month());
    let axis = Axis::new(Scale::from_zero(months), TICKS, "$ a month", format::dollars);
    let mut panels =
        vec![panel(view, "latency", format::latency_tick, |point| Some(point.at.latency_ns))];
    if view.frontier.iter().any(|point| point.fleet.watts.is_some()) {
        panels.push(panel(view, "W of all machines", format::plain, |point| point.fleet.watts));
    }
    Some(ShownFigure {
        id: "frontier".to_owned(),
        title: "Cost against latency and power".to_owned(),
        alt: "Points: latency and power of fleets over what they cost a month".to_owned(),
        captions: vec![
            "Modelled from measured rates that held. Further right: more machines, each at a lower \
             rate. Hollow: another fleet is at least as good in cost, latency and power."
                .to_owned(),
        ],
        cautions: Vec::new(),
        chart: Chart::Lines(LineChart { axis, panels, legend: legend(view) }),
        data,
        small: false,
    })
}

fn panel(
    view: &PlanView<'_>,
    label: &str,
    text: fn(f64) -> String,
    of: fn(&FrontierPoint) -> Option<f64>,
) -> Panel {
    let heights: Vec<f64> = view.frontier.iter().filter_map(of).collect();
    let mut lines = Vec::new();
    for hollow in [false, true] {
        for choice in 0..view.choices.len() {
            let own = view.frontier.iter().filter(|point| point.fleet.choice == choice);
            let own = own.filter(|point| point.is_dominated == hollow);
            let points: Vec<LinePoint> = own
                .filter_map(|point| {
                    let (x, y) = (point.fleet.usd_per_month(), of(point)?);
                    let tip = format!(
                        "{}: {} machines at {} each, {}, ${} a month",
                        view.choices[choice].name,
                        format::count(point.fleet.machines()),
                        format::rate(point.at.rate_ops_s),
                        text(y),
                        money(x)
                    );
                    Some(LinePoint { x, y, tip, shown: true, whisker: None })
                })
                .collect();
            let shape = Shape::nth(choice);
            lines.push(Line { color: choice, dashed: false, hollow, shape, joined: false, points });
        }
    }
    Panel {
        axis: Axis::new(Scale::from_zero(heights), TICKS, label, text),
        height: HEIGHT,
        lines,
        levels: Vec::new(),
    }
}

fn legend(view: &PlanView<'_>) -> Vec<Entry> {
    let drawn = |choice: &usize| view.frontier.iter().any(|point| point.fleet.choice == *choice);
    let entry = |choice: usize| Entry {
        label: view.choices[choice].name.clone(),
        color: Some(choice),
        shape: Some(Shape::nth(choice)),
        line: None,
        hollow: false,
    };
    (0..view.choices.len()).filter(drawn).map(entry).collect()
}
