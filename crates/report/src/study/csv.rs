//! The numbers of a figure of a study as CSV.

use super::plot::{Plot, PlotValue};
use crate::tables::origin_name;

const HEAD: [&str; 17] = [
    "kind",
    "panel",
    "series",
    "x",
    "n",
    "median",
    "mean",
    "sd",
    "cv",
    "min",
    "max",
    "ci95_low",
    "ci95_high",
    "ci95_method",
    "outliers",
    "unit",
    "read",
];

/// One row for each cell and published point, in full precision; unknown numbers are empty.
pub fn csv(plotted: &Plot) -> String {
    let mut out = HEAD.join(",") + "\n";
    for point in &plotted.points {
        let known = |value: Option<f64>| {
            value.filter(|v| v.is_finite()).map_or(String::new(), |v| v.to_string())
        };
        let (kind, numbers, method, odd, read) = match &point.value {
            PlotValue::Measured { of, values, outliers } => {
                let interval = of.interval();
                let ends = interval.as_ref().ok();
                let numbers = [
                    Some(of.n as f64),
                    Some(of.median),
                    Some(of.mean),
                    of.sd,
                    of.cv,
                    Some(of.min),
                    Some(of.max),
                    ends.map(|i| i.low),
                    ends.map(|i| i.high),
                ];
                let method =
                    interval.as_ref().map_or_else(ToString::to_string, |i| i.method.to_string());
                let odd: Vec<String> = outliers.iter().map(|at| values[*at].to_string()).collect();
                (origin_name(plotted.origin), numbers, method, odd.join(" "), String::new())
            }
            PlotValue::Published { y, read, .. } => {
                let mut numbers = [None; 9];
                numbers[1] = Some(*y);
                ("published", numbers, String::new(), String::new(), read.clone())
            }
        };
        let mut row = vec![
            kind.to_owned(),
            plotted.panels[point.panel].clone(),
            plotted.series[point.series].clone(),
            plotted.xs[point.x].clone(),
        ];
        row.extend(numbers.map(known));
        row.extend([method, odd, plotted.unit.clone(), read]);
        out +=
            &row.iter().map(|cell| quoted(&model::text::cell(cell))).collect::<Vec<_>>().join(",");
        out.push('\n');
    }
    out
}

/// A field as RFC 4180 has it.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
