//! How unevenly the keys are requested.

use workload::describe::{Figure, TraceDescription};

use crate::format;
use crate::table::{ALWAYS, Align, Table};

pub fn table(description: &TraceDescription) -> Table {
    let popularity = &description.popularity;
    let mut table = Table::new("Popularity")
        .column("figure", Align::Left, ALWAYS)
        .column("value", Align::Left, ALWAYS)
        .column("how exact", Align::Wrap, ALWAYS);
    let mut row = |name: &str, figure: Figure, shown: fn(f64) -> String| {
        let error = match figure.standard_error {
            None => "exact".to_owned(),
            Some(error) => format!("estimated, standard error {}", shown(error)),
        };
        table.row(vec![name.into(), shown(figure.value).into(), error.into()]);
    };
    row("distinct keys", description.keys, format::count_short);
    row("one-hit wonders", popularity.one_hit_wonders, format::percent);
    row("requests of the top 1 %", popularity.top_1_percent, format::percent);
    row("requests of the top 10 %", popularity.top_10_percent, format::percent);
    if let Some(correlation) = popularity.size_correlation {
        let shown = |value: f64| format!("{value:.3}");
        row("correlation of size and popularity", correlation, shown);
    }
    if let Some(zipf) = &popularity.zipf {
        table.row(vec![
            "Zipf's exponent".into(),
            format!("{:.3}", zipf.theta).into(),
            format!("95 % interval {:.3} to {:.3}", zipf.theta_low, zipf.theta_high).into(),
        ]);
        let fits = if zipf.is_zipf { "it is Zipf's law" } else { "it is not Zipf's law" };
        table.row(vec![
            "distance from Zipf's law".into(),
            format!("{:.3}", zipf.distance).into(),
            format!(
                "{fits}; {} keys with at least {} requests",
                format::count_short(zipf.keys as f64),
                zipf.from_requests
            )
            .into(),
        ]);
    }
    let exact =
        if popularity.ranks_exact { "exact" } else { "estimated from a sample of the keys" };
    for point in &popularity.ranks {
        table.row(vec![
            format!("requests of rank {}", format::count_short(point.rank)).into(),
            format::count(point.requests).into(),
            exact.into(),
        ]);
    }
    if let Some(drift) = &description.drift {
        let mut overlap = |name: &str, share: f64| {
            table.row(vec![name.into(), format::percent(share).into(), "estimated".into()]);
        };
        overlap("top 100 in common: halves of an interval", drift.within);
        overlap("top 100 in common: successive intervals", drift.successive);
        overlap("top 100 in common: first and last", drift.first_and_last);
        overlap("top 100 in common: half of the trace apart", drift.far);
        if let Some(requests) = drift.half_life_requests {
            table.row(vec![
                "half of the top 100 is another after".into(),
                format!("{} requests", format::count_short(requests)).into(),
                "estimated".into(),
            ]);
        }
        table.note(format!(
            "Intervals of {} requests. What successive ones have less in common than two halves of \
             the same one is drift.",
            format::count_short(drift.requests_each as f64)
        ));
    }
    if let Some(prefixes) = &description.prefixes {
        let exact = if prefixes.exact { "exact" } else { "at least, and estimated" };
        let mut row = |name: &str, shown: String| {
            table.row(vec![name.into(), shown.into(), exact.into()]);
        };
        row("prefixes of keys", format::count_short(prefixes.prefixes as f64));
        row("requests of the largest prefix", format::percent(prefixes.largest));
        row("prefix of the request before", format::percent(prefixes.same_as_before.value));
        row("prefix of the request before: by chance", format::percent(prefixes.by_chance));
    }
    table
}
