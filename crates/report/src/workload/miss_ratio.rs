//! The miss ratio of an LRU cache by its size.

use workload::describe::MissRatioCurve;

use crate::format;
use crate::table::{ALWAYS, Align, Table};

pub fn table(curve: &MissRatioCurve) -> Table {
    let mut table = Table::new("Miss ratio of an LRU cache")
        .column("share of the working set", Align::Right, ALWAYS)
        .column("items", Align::Right, ALWAYS)
        .column("misses", Align::Decimal, ALWAYS)
        .column("bytes", Align::Right, ALWAYS)
        .column("misses by bytes", Align::Decimal, ALWAYS);
    let shown = [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
    for point in shown.iter().filter_map(|percent| curve.points.get(percent - 1)) {
        table.row(vec![
            format::percent(point.share).into(),
            format::count_short(point.items as f64).into(),
            format::percent(point.by_items).into(),
            format::bytes(point.bytes as f64).into(),
            format::percent(point.by_bytes).into(),
        ]);
    }
    table.note(match curve.standard_error {
        None => "Exact: the requests of every key were followed.".to_owned(),
        Some(error) => format!(
            "Estimated from {} sampled keys; the usual error of a miss ratio is {}.",
            format::count(curve.sampled_keys as u64),
            format::percent(error)
        ),
    });
    table.note("Of the reads; what is missed is filled. Bytes are those of keys and values.");
    table
}
